//! Binary buddies: blocks of powers of two that split in halves.

use super::lists::Lists;
use super::{
    AddressMap, Block, Growth, Hole, HoleOrder, Params, ParamsError, Policy, PolicyError, Region,
    Source, Usage,
};

/// Orders of blocks: the powers of two of 64-bit sizes.
const ORDERS: usize = 64;

/// The buddy system (Knowlton, "A fast storage allocator", CACM 8, 1965; Knuth, TAOCP volume 1,
/// section 2.5): sizes are rounded up to powers of two, the alignment being the least; a block comes
/// from halving a larger one, and merges with its other half whenever both are free. Of free blocks
/// of one size the last freed is the first used.
///
/// Halves are counted from the begin of their region, which is cut into powers of two that fall; so
/// blocks of different regions never merge.
pub struct Buddy<S> {
    source: S,
    growth: Growth,
    alignment_bytes: u64,
    regions: Vec<Region>,
    /// Live blocks of each region.
    live: Vec<u32>,
    vacant_regions: Vec<u32>,
    nodes: Vec<Node>,
    vacant: Vec<u32>,
    by_address: AddressMap<u32>,
    free: Lists,
    usage: Usage,
}

#[derive(Clone, Copy)]
struct Node {
    address: u64,
    /// What was requested; 0 where it is free.
    requested: u64,
    region: u32,
    order: u8,
}

impl Node {
    fn bytes(&self) -> u64 {
        1 << self.order
    }
}

impl<S: Source> Buddy<S> {
    /// A policy that holds nothing yet.
    ///
    /// # Errors
    ///
    /// [`ParamsError`] says which parameter cannot be.
    pub fn new(source: S, params: &Params) -> Result<Self, ParamsError> {
        params.check(&source)?;
        Ok(Self {
            source,
            growth: params.growth,
            alignment_bytes: params.alignment_bytes,
            regions: Vec::new(),
            live: Vec::new(),
            vacant_regions: Vec::new(),
            nodes: Vec::new(),
            vacant: Vec::new(),
            by_address: AddressMap::default(),
            free: Lists::new(ORDERS),
            usage: Usage::default(),
        })
    }

    /// Where it takes its memory from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The least order of at least `order` of which a block is free.
    fn fitting(&self, order: u8) -> Option<u32> {
        (usize::from(order)..ORDERS).find_map(|order| self.free.first(order))
    }

    /// A free block of at least an order, after taking a region where there is none.
    fn block_for(&mut self, order: u8) -> Result<Option<u32>, PolicyError> {
        if let Some(node) = self.fitting(order) {
            return Ok(Some(node));
        }
        let Some(region) = self.growth.grow(&mut self.source, 1 << order)? else {
            return Ok(None);
        };
        self.usage.reserved_bytes += region.bytes;
        let number = self.vacant_regions.pop().unwrap_or(self.regions.len() as u32);
        match self.regions.get_mut(number as usize) {
            Some(place) => *place = region,
            None => {
                self.regions.push(region);
                self.live.push(0);
            }
        }
        for (address, order) in tops(region) {
            self.make_free(address, number, order);
        }
        Ok(self.fitting(order))
    }

    /// Halves a block, which is on no list, until it has an order. The later halves are free.
    fn split(&mut self, node: u32, order: u8) {
        while self.nodes[node as usize].order > order {
            let this = &mut self.nodes[node as usize];
            this.order -= 1;
            let Node { address, region, order, .. } = *this;
            self.make_free(address + (1 << order), region, order);
        }
    }

    /// Merges a freed block with its other half as long as that is free. What results is on no list.
    fn merge(&mut self, mut node: u32) -> u32 {
        loop {
            let Node { address, region, order, .. } = self.nodes[node as usize];
            let base = self.regions[region as usize].address;
            let other = base + ((address - base) ^ (1 << order));
            let Some(other) = self.by_address.get(other) else { return node };
            let half = self.nodes[other as usize];
            if (half.requested, half.order, half.region) != (0, order, region) {
                return node;
            }
            self.free.remove(usize::from(order), other);
            let (lower, upper) = if half.address < address { (other, node) } else { (node, other) };
            self.by_address.remove(self.nodes[upper as usize].address);
            self.vacant.push(upper);
            self.nodes[lower as usize].order += 1;
            self.nodes[lower as usize].requested = 0;
            node = lower;
        }
    }

    fn make_free(&mut self, address: u64, region: u32, order: u8) {
        let number = self.vacant.pop().unwrap_or(self.nodes.len() as u32);
        let node = Node { address, requested: 0, region, order };
        match self.nodes.get_mut(number as usize) {
            Some(place) => *place = node,
            None => self.nodes.push(node),
        }
        self.by_address.insert(address, number);
        self.free.push(usize::from(order), number);
    }

    /// Forgets a region of which every block is free.
    fn forget(&mut self, number: u32) {
        let region =
            std::mem::replace(&mut self.regions[number as usize], Region { address: 0, bytes: 0 });
        for (address, order) in tops(region) {
            let node = self.by_address.remove(address).expect("all its blocks have merged");
            self.free.remove(usize::from(order), node);
            self.vacant.push(node);
        }
        self.vacant_regions.push(number);
        self.usage.reserved_bytes -= region.bytes;
    }

    /// The live block at an address.
    fn live_node(&self, address: u64) -> Option<u32> {
        let node = self.by_address.get(address)?;
        (self.nodes[node as usize].requested > 0).then_some(node)
    }
}

/// The powers of two that a region is cut into: address and order of each. Every granule is a
/// multiple of the alignment, so none is shorter than that.
fn tops(region: Region) -> Vec<(u64, u8)> {
    let mut tops = Vec::new();
    let mut address = region.address;
    while address < region.end() {
        let order = (region.end() - address).ilog2();
        tops.push((address, order as u8));
        address += 1 << order;
    }
    tops
}

impl<S: Source + Send> Policy for Buddy<S> {
    fn name(&self) -> &'static str {
        "buddy"
    }

    fn alignment_bytes(&self) -> u64 {
        self.alignment_bytes
    }

    fn allocate(&mut self, bytes: u64) -> Result<Block, PolicyError> {
        let requested_bytes = bytes.max(1);
        let out_of_memory = self.usage.out_of_memory(requested_bytes);
        let rounded = requested_bytes.max(self.alignment_bytes).checked_next_power_of_two();
        let Some(rounded_bytes) = rounded else { return Err(out_of_memory) };
        let order = rounded_bytes.ilog2() as u8;
        let node = self.block_for(order)?.ok_or(out_of_memory)?;
        self.free.remove(usize::from(self.nodes[node as usize].order), node);
        self.split(node, order);
        let Node { address, requested, region, .. } = &mut self.nodes[node as usize];
        *requested = requested_bytes;
        self.live[*region as usize] += 1;
        self.usage.add(requested_bytes, rounded_bytes);
        Ok(Block { address: *address, requested_bytes, rounded_bytes })
    }

    fn free(&mut self, address: u64) -> Result<(), PolicyError> {
        let node = self.live_node(address).ok_or(PolicyError::NotLive { address })?;
        let block = self.nodes[node as usize];
        self.usage.remove(block.requested, block.bytes());
        self.live[block.region as usize] -= 1;
        self.nodes[node as usize].requested = 0;
        let merged = self.merge(node);
        self.free.push(usize::from(self.nodes[merged as usize].order), merged);
        Ok(())
    }

    fn is_live(&self, address: u64) -> bool {
        self.live_node(address).is_some()
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn holes(&self, order: HoleOrder) -> Vec<Hole> {
        let nodes = (0..ORDERS).flat_map(|order| self.free.nodes(order));
        let hole = |node: Node| Hole { address: node.address, bytes: node.bytes() };
        let mut holes: Vec<Hole> = nodes.map(|node| hole(self.nodes[node as usize])).collect();
        if order == HoleOrder::Address {
            holes.sort_unstable_by_key(|hole| hole.address);
        }
        holes
    }

    fn release_unused(&mut self) -> Result<u64, PolicyError> {
        let mut released_bytes = 0;
        for number in 0..self.regions.len() as u32 {
            let region = self.regions[number as usize];
            if self.live[number as usize] == 0 && region.bytes > 0 {
                self.source.release(region).map_err(PolicyError::Source)?;
                self.forget(number);
                released_bytes += region.bytes;
            }
        }
        Ok(released_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tests::{addresses, arena, whole};

    fn buddy(params: Params) -> Buddy<impl Source> {
        Buddy::new(arena(), &params).unwrap()
    }

    #[test]
    fn blocks_split_to_the_power_of_two_and_merge_back() {
        let mut policy = buddy(Params::default().with_growth(Growth::Regions { bytes: 8192 }));
        let first = policy.allocate(300).unwrap();
        assert_eq!(first.rounded_bytes, 512);
        let lengths = |policy: &Buddy<_>| {
            policy.holes(HoleOrder::FreeList).iter().map(|hole| hole.bytes).collect::<Vec<u64>>()
        };
        assert_eq!(lengths(&policy), [512, 1024, 2048, 4096]);
        let second = policy.allocate(1025).unwrap();
        assert_eq!(second.address, first.address + 2048);
        // Its other half is live in part only, so it stays apart.
        policy.free(first.address).unwrap();
        assert_eq!(lengths(&policy), [2048, 4096]);
        policy.free(second.address).unwrap();
        assert_eq!(lengths(&policy), [8192]);
    }

    #[test]
    fn of_one_size_the_last_freed_is_the_first_used() {
        let mut policy = buddy(whole());
        let blocks = [(); 8].map(|()| policy.allocate(256).unwrap().address);
        for n in [5, 0, 3] {
            policy.free(blocks[n]).unwrap();
        }
        let met = addresses(&policy.holes(HoleOrder::FreeList));
        assert_eq!(met[..3], [blocks[3], blocks[0], blocks[5]]);
        assert_eq!(policy.allocate(1).unwrap().address, blocks[3]);
    }

    #[test]
    fn a_region_is_cut_into_falling_powers_of_two() {
        let region = Region { address: 1 << 32 | 256, bytes: 7 << 8 };
        let base = region.address;
        assert_eq!(tops(region), [(base, 10), (base + 1024, 9), (base + 1536, 8)]);
        // Neighbouring regions of one source hold blocks of one size side by side, which never merge.
        let mut policy = buddy(Params::default().with_growth(Growth::Regions { bytes: 4096 }));
        let blocks = [(); 2].map(|()| policy.allocate(4096).unwrap().address);
        assert_eq!(blocks[0] + 4096, blocks[1]);
        blocks.iter().for_each(|&block| policy.free(block).unwrap());
        assert_eq!(policy.holes(HoleOrder::Address).len(), 2);
        assert_eq!(policy.release_unused(), Ok(8192));
        assert_eq!(policy.usage(), Usage::default());
    }
}
