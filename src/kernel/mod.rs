//! Which kernels there are: typed requests that are checked before they launch, the bytes they
//! account for, and the verification of what they did.

mod access;
mod copy_back;
mod data;
mod extents;
mod table;
mod verify;
mod windows;

pub use access::{Access, Operands, Traffic};
pub use copy_back::{copy_back, host_checksum, staging_bytes};
pub use data::{GUARD_BYTES, fill};
pub use extents::{ExtentOperands, copy_back_extents, extents_checksum, extents_staging_bytes};
pub use table::{TableBuffers, TableSpans};
pub use verify::{Outcome, Verifier};
pub use windows::{MOST_WINDOWS, WindowBuffers};
