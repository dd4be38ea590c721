//! Tests of the simulated source.

use proptest::prelude::*;

use super::*;

const GRANULE: u64 = 4096;
const SCATTERED: Placement = Placement::Scattered { seed: 7 };

fn source(pages: u64, placement: Placement) -> SimulatedSource {
    SimulatedSource::new(pages * GRANULE, GRANULE, placement).unwrap()
}

fn region(address: u64, pages: u64) -> Region {
    Region { address, bytes: pages * GRANULE }
}

#[test]
fn sizes_that_cannot_be_are_told() {
    let refused = |capacity, granule| {
        let source = SimulatedSource::new(capacity, granule, SCATTERED);
        source.unwrap_err().to_string()
    };
    assert!(refused(1 << 20, 3000).contains("a granule of 3000 B: it must be a power of two"));
    assert!(refused(1 << 20, 0).contains("a granule of 0 B"));
    assert!(refused(4096, 8192).contains("the capacity of 4096 B"));
    assert!(refused(1 << 40, 1 << 33).contains("at most 4294967296 B"));
    assert!(refused(6000, 4096).contains("a whole number of granules of 4096 B"));
    assert!(refused(1 << 51, 4096).contains("at most 1125899906842624 B"));
}

#[test]
fn contiguous_regions_are_neighbours_and_first_fit_fills_gaps() {
    let mut source = source(16, Placement::Contiguous);
    let regions = [1, 4, 2].map(|pages| source.allocate(pages * GRANULE - 1).unwrap());
    assert_eq!(regions[0].end(), regions[1].address);
    assert_eq!(regions[1].end(), regions[2].address);
    assert_eq!(source.free_bytes(), 9 * GRANULE);
    source.release(regions[1]).unwrap();
    assert_eq!(source.allocate(5 * GRANULE).unwrap().address, regions[2].end());
    assert_eq!(source.allocate(3 * GRANULE).unwrap().address, regions[1].address);
    assert_eq!(source.allocate(0).unwrap(), region(regions[1].address + 3 * GRANULE, 1));
    let calls = Calls { allocate: 6, release: 1, ..Calls::default() };
    assert_eq!(source.calls(), calls);
}

#[test]
fn scattered_regions_are_never_neighbours_and_depend_on_the_seed_alone() {
    let addresses = |seed| {
        let mut source = source(4096, Placement::Scattered { seed });
        (0..4096).map(|_| source.allocate(GRANULE).unwrap().address).collect::<Vec<u64>>()
    };
    let mut of_seven = addresses(7);
    assert_eq!(of_seven, addresses(7));
    assert_ne!(of_seven, addresses(8));
    assert!(!of_seven.is_sorted());
    of_seven.sort_unstable();
    assert!(of_seven.windows(2).all(|pair| pair[0] + GRANULE < pair[1]));
    assert!(of_seven.iter().all(|address| address.is_multiple_of(GRANULE)));
}

#[test]
fn what_was_not_handed_out_is_not_taken_back() {
    let mut source = source(8, Placement::Contiguous);
    let held = source.allocate(2 * GRANULE).unwrap();
    let reserved = source.reserve_addresses(2 * GRANULE).unwrap();
    for wrong in [region(held.address, 1), region(held.address + GRANULE, 1), reserved] {
        let error = source.release(wrong).unwrap_err();
        assert!(error.to_string().ends_with("are not a region that is handed out"), "{error}");
    }
    source.release(held).unwrap();
    assert!(source.release(held).is_err());
    assert!(source.release_addresses(held).is_err());
    assert_eq!(source.free_bytes(), 8 * GRANULE);
    source.release_addresses(reserved).unwrap();
    assert!(source.release_addresses(reserved).is_err());
}

#[test]
fn memory_is_mapped_page_by_page_under_reserved_addresses() {
    let mut source = source(4, Placement::Contiguous);
    let reserved = source.reserve_addresses(8 * GRANULE).unwrap();
    assert_eq!(source.free_bytes(), 4 * GRANULE);
    let part = |page: u64, pages| region(reserved.address + page * GRANULE, pages);
    source.map(part(0, 2)).unwrap();
    source.map(part(3, 1)).unwrap();
    let refused = source.map(part(4, 2)).unwrap_err();
    let (requested_bytes, free_bytes) = (2 * GRANULE, GRANULE);
    assert_eq!(refused, SourceError::OutOfMemory { requested_bytes, free_bytes });
    for wrong in [part(1, 1), part(1, 3), part(7, 2), part(0, 0), region(1, 1)] {
        assert!(matches!(source.map(wrong), Err(SourceError::Unknown { .. })), "{wrong:?}");
    }
    // The gap makes them one part, of which any pages can go.
    source.map(part(2, 1)).unwrap();
    assert!(source.release_addresses(reserved).is_err());
    source.unmap(part(1, 2)).unwrap();
    assert!(source.unmap(part(1, 1)).is_err());
    assert!(source.unmap(part(0, 2)).is_err());
    assert!(source.release(reserved).is_err());
    source.unmap(part(0, 1)).unwrap();
    source.unmap(part(3, 1)).unwrap();
    assert_eq!(source.free_bytes(), 4 * GRANULE);
    source.release_addresses(reserved).unwrap();
    let calls =
        Calls { reserve_addresses: 1, map: 3, unmap: 3, release_addresses: 1, ..Calls::default() };
    assert_eq!(source.calls(), calls);
}

/// Pages by number, as a plain model of mapped addresses.
type Pages = std::collections::BTreeSet<u64>;

proptest! {
    #[test]
    fn regions_never_overlap_and_every_page_is_counted(
        scattered in any::<bool>(),
        steps in prop::collection::vec((0..4u8, 1..20u64, any::<prop::sample::Index>()), 1..200),
    ) {
        let placement = if scattered { SCATTERED } else { Placement::Contiguous };
        let mut source = source(100, placement);
        let mut held: Vec<(Region, bool)> = Vec::new();
        for (kind, pages, which) in steps {
            let used = || held.iter().filter(|(_, memory)| *memory).map(|(region, _)| region.bytes);
            let used: u64 = used().sum();
            match kind {
                0 => match source.allocate(pages * GRANULE) {
                    Ok(region) => held.push((region, true)),
                    Err(_) => prop_assert!(used + pages * GRANULE > 100 * GRANULE),
                },
                1 => held.push((source.reserve_addresses(pages * GRANULE).unwrap(), false)),
                _ if held.is_empty() => {}
                _ => {
                    let (region, memory) = held.swap_remove(which.index(held.len()));
                    let refused = if memory { source.release_addresses(region) } else { source.release(region) };
                    prop_assert!(refused.is_err());
                    let given = if memory { source.release(region) } else { source.release_addresses(region) };
                    prop_assert_eq!(given, Ok(()));
                }
            }
            let used: u64 = held.iter().filter(|(_, memory)| *memory).map(|(r, _)| r.bytes).sum();
            prop_assert_eq!(source.free_bytes() + used, source.capacity_bytes());
            let mut ordered: Vec<Region> = held.iter().map(|(region, _)| *region).collect();
            ordered.sort_unstable_by_key(|region| region.address);
            let gap = u64::from(scattered);
            prop_assert!(ordered.windows(2).all(|pair| pair[0].end() + gap <= pair[1].address));
        }
        for (region, memory) in held {
            let given = if memory { source.release(region) } else { source.release_addresses(region) };
            prop_assert_eq!(given, Ok(()));
        }
        prop_assert!(source.addresses.is_untouched());
    }

    #[test]
    fn mapped_pages_are_those_of_a_plain_set(
        steps in prop::collection::vec((any::<bool>(), 0..32u64, 1..9u64), 1..100),
    ) {
        let mut source = source(20, Placement::Contiguous);
        let reserved = source.reserve_addresses(32 * GRANULE).unwrap();
        let mut model = Pages::new();
        for (maps, page, pages) in steps {
            let part = region(reserved.address + page * GRANULE, pages);
            let range = page..page + pages;
            let inside = range.end <= 32;
            let held = model.range(range.clone()).count() as u64;
            if maps {
                let fits = held == 0 && model.len() as u64 + pages <= 20;
                prop_assert_eq!(source.map(part).is_ok(), inside && fits);
                model.extend(range.filter(|_| inside && fits));
            } else {
                prop_assert_eq!(source.unmap(part).is_ok(), inside && held == pages);
                model.retain(|page| !(inside && held == pages && range.contains(page)));
            }
            prop_assert_eq!(source.free_bytes(), (20 - model.len() as u64) * GRANULE);
        }
    }
}
