//! Which allocators a device has of its own: their names, without any of CUDA.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// An allocator of the device itself, behind [`Policy`](crate::policy::Policy).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DeviceAllocator {
    /// `cuMemAlloc` and `cuMemFree`.
    CuMemAlloc,
    /// The runtime's `cudaMalloc` and `cudaFree`.
    CudaMalloc,
    /// `cuMemAllocFromPoolAsync` and `cuMemFreeAsync` in an own pool, which gives what is free back to
    /// the driver whenever its stream is synchronised.
    MemPoolRelease,
    /// The same with a pool that keeps what is free.
    MemPoolKeep,
    /// Virtual memory management: addresses of their own for each block, and chunks of memory under
    /// them.
    Vmm(Chunk),
}

impl DeviceAllocator {
    /// One of each kind, and of the chunks the smallest, one between and the largest.
    pub const ALL: &[DeviceAllocator] = &[
        DeviceAllocator::CuMemAlloc,
        DeviceAllocator::CudaMalloc,
        DeviceAllocator::MemPoolRelease,
        DeviceAllocator::MemPoolKeep,
        DeviceAllocator::Vmm(Chunk::ALL[0]),
        DeviceAllocator::Vmm(Chunk::ALL[4]),
        DeviceAllocator::Vmm(Chunk::ALL[9]),
    ];

    /// The name in cases and tables.
    pub const fn name(self) -> &'static str {
        match self {
            DeviceAllocator::CuMemAlloc => "cu_mem_alloc",
            DeviceAllocator::CudaMalloc => "cuda_malloc",
            DeviceAllocator::MemPoolRelease => "mem_pool.release",
            DeviceAllocator::MemPoolKeep => "mem_pool.keep",
            DeviceAllocator::Vmm(chunk) => chunk.vmm_name(),
        }
    }

    /// Every allocator: those of [`DeviceAllocator::ALL`] and every other size of chunks.
    fn every() -> impl Iterator<Item = DeviceAllocator> {
        let others = Self::ALL.iter().copied().filter(|one| !matches!(one, Self::Vmm(_)));
        others.chain(Chunk::ALL.into_iter().map(DeviceAllocator::Vmm))
    }
}

impl fmt::Display for DeviceAllocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DeviceAllocator {
    type Err = UnknownAllocator;

    fn from_str(text: &str) -> Result<Self, UnknownAllocator> {
        let named = Self::every().find(|allocator| allocator.name() == text);
        named.ok_or_else(|| UnknownAllocator { text: text.to_owned() })
    }
}

impl TryFrom<String> for DeviceAllocator {
    type Error = UnknownAllocator;

    fn try_from(text: String) -> Result<Self, UnknownAllocator> {
        text.parse()
    }
}

impl From<DeviceAllocator> for String {
    fn from(allocator: DeviceAllocator) -> String {
        allocator.name().to_owned()
    }
}

/// How long a chunk of physical memory is: a power of two from 2 MiB to 1 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chunk {
    /// The logarithm of its bytes.
    log2: u8,
}

impl Chunk {
    /// Every length, in ascending order.
    pub const ALL: [Chunk; 10] = {
        let mut all = [Chunk { log2: Chunk::LEAST_LOG2 }; 10];
        let mut index = 0;
        while index < all.len() {
            all[index].log2 += index as u8;
            index += 1;
        }
        all
    };

    /// That of 2 MiB.
    const LEAST_LOG2: u8 = 21;

    /// A chunk of so many bytes; none where there is no such.
    pub fn of(bytes: u64) -> Option<Chunk> {
        Self::ALL.into_iter().find(|chunk| chunk.bytes() == bytes)
    }

    /// Its bytes.
    pub const fn bytes(self) -> u64 {
        1 << self.log2
    }

    const fn vmm_name(self) -> &'static str {
        const NAMES: [&str; 10] = [
            "vmm.chunk_2MiB",
            "vmm.chunk_4MiB",
            "vmm.chunk_8MiB",
            "vmm.chunk_16MiB",
            "vmm.chunk_32MiB",
            "vmm.chunk_64MiB",
            "vmm.chunk_128MiB",
            "vmm.chunk_256MiB",
            "vmm.chunk_512MiB",
            "vmm.chunk_1GiB",
        ];
        NAMES[(self.log2 - Self::LEAST_LOG2) as usize]
    }
}

/// No device has an allocator of that name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no allocator `{text}` of a device: choose one of {}", all())]
pub struct UnknownAllocator {
    text: String,
}

fn all() -> String {
    let names: Vec<&str> = DeviceAllocator::every().map(DeviceAllocator::name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::device::scripted::{Scripted, at_rate};
    use crate::device::{Device, DeviceError};
    use crate::record::size;

    #[test]
    fn other_devices_say_that_they_have_none() {
        let device = Scripted::new(1 << 30, |timed| at_rate(timed, 1.0));
        // Its memory is handed out as a driver's would be.
        let plain = |which: &DeviceAllocator| *which == DeviceAllocator::CuMemAlloc;
        for which in DeviceAllocator::every().filter(|which| !plain(which)) {
            let refused = device.allocator(which).err().unwrap();
            let said = refused.to_string();
            let begin = format!("the device offers no allocator `{which}`: only CUDA devices have");
            assert!(said.starts_with(&begin), "{said}");
            assert!(said.contains("--device cuda:0"), "{said}");
        }
        let refused = device.vmm_source(2 << 20).err();
        assert!(matches!(refused, Some(DeviceError::NoAllocator { allocator: "vmm", .. })));
    }

    #[test]
    fn every_allocator_is_found_by_its_name() {
        let mut names = HashSet::new();
        for allocator in DeviceAllocator::every() {
            assert_eq!(allocator.to_string().parse(), Ok(allocator));
            let json = serde_json::to_string(&allocator).unwrap();
            assert_eq!(json, format!("\"{allocator}\""));
            assert_eq!(serde_json::from_str::<DeviceAllocator>(&json).unwrap(), allocator);
            assert!(names.insert(allocator.name()));
        }
        assert_eq!(names.len(), 14);
        assert!(DeviceAllocator::ALL.iter().all(|allocator| names.contains(allocator.name())));
    }

    #[test]
    fn chunks_are_named_by_their_length() {
        for chunk in Chunk::ALL {
            let length = size::exact(chunk.bytes());
            assert_eq!(DeviceAllocator::Vmm(chunk).name(), format!("vmm.chunk_{length}"));
            assert_eq!(Chunk::of(chunk.bytes()), Some(chunk));
        }
        assert_eq!([0, 1 << 20, 3 << 20, 2 << 30].map(Chunk::of), [None; 4]);
        let chunks = DeviceAllocator::ALL.iter().filter_map(|allocator| match allocator {
            DeviceAllocator::Vmm(chunk) => Some(chunk.bytes()),
            _ => None,
        });
        assert_eq!(chunks.collect::<Vec<u64>>(), [2 << 20, 32 << 20, 1 << 30]);
    }

    #[test]
    fn an_unknown_name_is_told_what_exists() {
        let said = "vmm.chunk_3MiB".parse::<DeviceAllocator>().unwrap_err().to_string();
        assert!(said.starts_with("there is no allocator `vmm.chunk_3MiB` of a device: "), "{said}");
        for allocator in DeviceAllocator::every() {
            assert!(said.contains(allocator.name()), "{said}");
        }
        let json = serde_json::from_str::<DeviceAllocator>("\"malloc\"").unwrap_err();
        assert!(json.to_string().contains("no allocator `malloc`"), "{json}");
    }
}
