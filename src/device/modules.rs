//! The PTX modules that are embedded in this build.

/// One PTX module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Module {
    /// The module's name: that of its source, `cuda/<name>.cu`.
    pub name: &'static str,
    /// The module's text.
    pub ptx: &'static str,
    /// SHA-256 of the text, in hexadecimal.
    pub sha256: &'static str,
    /// Major and minor of its `.version` line: what a driver has to understand.
    pub ptx_version: (u32, u32),
    /// Major and minor of the lowest compute capability that it runs on.
    pub least_capability: (u32, u32),
}

include!(concat!(env!("OUT_DIR"), "/modules.rs"));
