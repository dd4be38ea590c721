//! How long each of the driver's calls takes that together make a block of virtual memory.

use super::failure::Failure;
use crate::device::{Chunk, Device};
use crate::record::Calls;

/// Blocks before the first that counts.
const FIRST_BLOCKS: usize = 3;

/// Makes so many blocks, one after the other, and times the calls that make each: one to create each
/// chunk, one to map each, and one that makes the whole block accessible. The state holds nothing but
/// the block.
pub(super) fn time_steps(
    device: &dyn Device,
    chunk: Chunk,
    request_bytes: u64,
    blocks: usize,
) -> Result<Vec<Calls>, Failure> {
    let chunks = u32::try_from(request_bytes.div_ceil(chunk.bytes()))
        .map_err(|_| Failure::Skipped("so many chunks no device has".to_owned()))?;
    let order: Vec<u32> = (0..chunks).collect();
    let [mut create, mut map, mut open] = [const { Vec::new() }; 3];
    for block in 0..FIRST_BLOCKS + blocks {
        let physical = device.physical(chunk.bytes(), chunks)?;
        let mapped = physical.map(&order)?;
        if block < FIRST_BLOCKS {
            continue;
        }
        create.extend_from_slice(physical.create_ns());
        map.extend(mapped.times.map_ns);
        open.push(mapped.times.open_ns);
    }
    let of = |call: &str, ns| Calls { call: call.to_owned(), ns };
    Ok(vec![of("cu_mem_create", create), of("cu_mem_map", map), of("cu_mem_set_access", open)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::scripted::{Scripted, at_rate};

    #[test]
    fn each_call_of_each_block_is_kept() {
        let device = Scripted::new(1 << 30, |timed| at_rate(timed, 1.0));
        let chunk = Chunk::of(2 << 20).unwrap();
        let calls = time_steps(&device, chunk, 5 << 20, 2).unwrap();
        let of = |at: usize| (calls[at].call.as_str(), calls[at].ns.clone());
        // The scripted device's first call takes 1 ns, the next 2.
        assert_eq!(of(0), ("cu_mem_create", vec![1, 2, 3, 1, 2, 3]));
        assert_eq!(of(1), ("cu_mem_map", vec![1, 2, 3, 1, 2, 3]));
        assert_eq!(of(2), ("cu_mem_set_access", vec![9, 9]));
        assert_eq!(device.free_bytes().unwrap(), 1 << 30);
        assert!(matches!(time_steps(&device, chunk, 2 << 30, 1), Err(Failure::Skipped(_))));
    }
}
