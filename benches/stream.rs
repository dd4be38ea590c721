//! Contiguous reads, writes and copies on the default device: `cargo bench --bench stream`.

mod device;

use device::Wanted::Contiguous;
use fragbench::device::Movement::{Copy, Read, Write};

fn main() {
    let cases = [Some(Read), Some(Write), Some(Copy), None].map(Contiguous);
    device::bench("stream", &cases);
}
