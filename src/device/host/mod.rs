//! The host's processor and memory as a device: the same kernels as native loops, one pinned
//! thread per logical processor of one NUMA node.

mod facts;
#[cfg(fragbench_host)]
mod target;

pub use facts::{facts, machine};

/// The host as a device.
#[cfg(fragbench_host)]
pub use target::Host;

/// The host, in a build without a C++ compiler.
#[cfg(not(fragbench_host))]
pub struct Host(());

#[cfg(not(fragbench_host))]
impl Host {
    /// Refuses: the kernels are not there.
    ///
    /// # Errors
    ///
    /// Always [`super::DeviceError::NoHostKernels`].
    pub fn open() -> Result<impl super::Device, super::DeviceError> {
        Err::<super::cuda::Cuda, _>(super::DeviceError::NoHostKernels)
    }
}
