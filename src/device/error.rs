//! What can go wrong with a device, as one typed enum.

use thiserror::Error;

use crate::record::size;

/// An error of a device. The texts are shown to users as they are: what was wrong, what to do.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DeviceError {
    /// Not enough memory.
    #[error(
        "the device has no {} left ({} free): another process may hold it; close that process or give a smaller --memory-limit",
        size::rounded(*requested), size::rounded(*free)
    )]
    OutOfMemory {
        /// The bytes that were asked for.
        requested: u64,
        /// The bytes that were free.
        free: u64,
    },
    /// There is no CUDA driver.
    #[error(
        "no CUDA driver could be loaded (libcuda.so.1): install the NVIDIA driver, in a container start it with the NVIDIA runtime (--gpus all), or measure the host's memory with --device host"
    )]
    NoDriver,
    /// The driver is there but refuses to work.
    #[error(
        "the CUDA driver does not start ({0}): check that the kernel module is loaded and matches the driver's version, or measure the host's memory with --device host"
    )]
    DriverBroken(String),
    /// The driver sees no device.
    #[error(
        "the CUDA driver sees no device: check CUDA_VISIBLE_DEVICES and that the GPU is passed into this container, or measure the host's memory with --device host"
    )]
    NoDevice,
    /// No device has this name.
    #[error("there is no device `{asked}`: {}", known_devices(known))]
    Unknown {
        /// The name that was asked for.
        asked: String,
        /// The devices that exist.
        known: Vec<String>,
    },
    /// More than one device has a UUID that begins like this.
    #[error("`{asked}` is the beginning of more than one UUID: choose one of {}", meant.join(", "))]
    Ambiguous {
        /// The beginning that was asked for.
        asked: String,
        /// The devices that it could mean.
        meant: Vec<String>,
    },
    /// The device is older than the kernels.
    #[error(
        "{device} has compute capability {capability}, and the kernels need 7.5 (Turing) or newer: choose another device"
    )]
    TooOld {
        /// The device's name.
        device: String,
        /// Its compute capability.
        capability: String,
    },
    /// The driver is older than the kernels' PTX.
    #[error(
        "the driver (CUDA {driver}) is older than the PTX of module `{module}` (PTX {ptx}): update the NVIDIA driver"
    )]
    PtxTooNew {
        /// The module that was refused.
        module: String,
        /// The PTX version of the module.
        ptx: String,
        /// The CUDA version of the driver.
        driver: String,
    },
    /// The driver cannot make code of a module for another reason.
    #[error(
        "the driver (CUDA {driver}) refuses module `{module}` (PTX {ptx}) with {code}: update the NVIDIA driver; where it is new enough, take a sound copy of fragbench and build it again"
    )]
    PtxRefused {
        /// The module that was refused.
        module: String,
        /// The PTX version of the module.
        ptx: String,
        /// The CUDA version of the driver.
        driver: String,
        /// The driver's name of the error.
        code: String,
    },
    /// The host target was not compiled in.
    #[error(
        "this build has no kernels for the host: it was built without a C++ compiler; install one and build again"
    )]
    NoHostKernels,
    /// The device has not this allocator.
    #[error("the device offers no allocator `{allocator}`: {why}")]
    NoAllocator {
        /// The allocator.
        allocator: &'static str,
        /// Why not, and what to do.
        why: String,
    },
    /// A call of the driver failed.
    #[error("{call} failed with {code}")]
    Call {
        /// The driver's function.
        call: &'static str,
        /// The driver's name of the error.
        code: String,
    },
    /// A launch that does not fit its buffers; nothing was launched.
    #[error("refused to launch {entry}: {what}")]
    Refused {
        /// The kernel.
        entry: &'static str,
        /// What does not fit.
        what: String,
    },
}

fn known_devices(known: &[String]) -> String {
    match known {
        [] => "no CUDA device is visible here; --device host measures the host's memory".to_owned(),
        _ => format!("choose one of {}, or host", known.join(", ")),
    }
}
