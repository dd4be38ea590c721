//! Which allocators there are, whoever's memory they hand out.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::failure::Failure;
use crate::device::{Device, DeviceAllocator};
use crate::policy::caching::{Caching, Config};
use crate::policy::{
    AsSource, FirstFit, Growth, Params, Placement, Policy, PolicyName, SimulatedSource, Source,
};

/// What simulated memory is cut into: the pages of a CUDA driver, in bytes.
const PAGE_BYTES: u64 = 2 << 20;

/// An allocator by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Allocator {
    /// A policy of this crate, over what the memory is handed out by.
    Policy(PolicyName),
    /// One of the device's own.
    Device(DeviceAllocator),
}

impl fmt::Display for Allocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allocator::Policy(policy) => policy.fmt(f),
            Allocator::Device(own) => own.fmt(f),
        }
    }
}

impl FromStr for Allocator {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(own) = text.parse() {
            return Ok(Allocator::Device(own));
        }
        match text.parse() {
            Ok(policy) => Ok(Allocator::Policy(policy)),
            Err(error) => {
                let own: Vec<String> =
                    DeviceAllocator::ALL.iter().map(ToString::to_string).collect();
                Err(format!("{error}; and of a device {}", own.join(", ")))
            }
        }
    }
}

/// The settings of PyTorch's allocator, but that it gives nothing back by itself: whether that helps
/// is asked apart.
pub(super) fn keeping() -> Config {
    Config { releases_cache_on_failure: false, ..Config::default() }
}

/// A policy over a window of memory without pages: one range, and whatever is handed out of it is
/// contiguous. The caching policy takes its segments from a first fit over it.
pub(super) fn simulated(name: PolicyName, window_bytes: u64) -> Result<Box<dyn Policy>, String> {
    let source = SimulatedSource::new(window_bytes, PAGE_BYTES, Placement::Contiguous)
        .map_err(|error| error.to_string())?;
    let whole = Params::default().with_growth(Growth::Whole);
    if name != PolicyName::Caching {
        return name.build(source, &whole).map_err(|error| error.to_string());
    }
    let aligned = Params { alignment_bytes: PAGE_BYTES, ..whole };
    let segments = FirstFit::new(source, &aligned).map_err(|error| error.to_string())?;
    caching(keeping(), over(segments, window_bytes)?)
}

fn over<P: Policy>(below: P, capacity_bytes: u64) -> Result<AsSource<P>, String> {
    AsSource::with_capacity(below, PAGE_BYTES, capacity_bytes).map_err(|error| error.to_string())
}

fn caching(
    config: Config,
    source: impl Source + Send + 'static,
) -> Result<Box<dyn Policy>, String> {
    let caching = Caching::new(config, source).map_err(|error| error.to_string())?;
    Ok(Box::new(caching))
}

/// An allocator over a device's memory. A policy gets it from the driver's plain allocator: one range
/// of all that may be had, or in the regions that its growth says.
pub(super) fn on_device(
    allocator: Allocator,
    device: &dyn Device,
    capacity_bytes: u64,
    config: Config,
    growth: Growth,
) -> Result<Box<dyn Policy>, Failure> {
    let name = match allocator {
        Allocator::Device(which) => return Ok(device.allocator(which)?),
        Allocator::Policy(name) => name,
    };
    let plain = device.allocator(DeviceAllocator::CuMemAlloc)?;
    let source = over(plain, capacity_bytes).map_err(Failure::Failed)?;
    let built = match name {
        PolicyName::Caching => caching(config, source),
        _ => {
            let params = Params::default().with_growth(growth);
            name.build(source, &params).map_err(|error| error.to_string())
        }
    };
    built.map_err(Failure::Failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let policies = PolicyName::ALL.iter().copied().map(Allocator::Policy);
        let own = DeviceAllocator::ALL.iter().copied().map(Allocator::Device);
        for allocator in policies.chain(own) {
            assert_eq!(allocator.to_string().parse(), Ok(allocator));
        }
        let error = "cudamalloc".parse::<Allocator>().unwrap_err();
        assert!(error.contains("first_fit") && error.contains("cuda_malloc"), "{error}");
    }
}
