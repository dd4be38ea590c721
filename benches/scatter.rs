//! Fragments that are written behind an index, contiguous beside scattered, on the default device:
//! `cargo bench --bench scatter`.

mod device;

use fragbench::device::Movement;

fn main() {
    device::bench("scatter_copy", &device::curve(Movement::ScatterCopy));
}
