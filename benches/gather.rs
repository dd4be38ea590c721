//! Fragments that are read behind an index, contiguous beside scattered, on the default device:
//! `cargo bench --bench gather`.

mod device;

use fragbench::device::Movement;

fn main() {
    device::bench("gather_read", &device::curve(Movement::GatherRead));
}
