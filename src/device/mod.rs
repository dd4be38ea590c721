//! Where kernels run.

pub mod bindings;
pub mod modules;
