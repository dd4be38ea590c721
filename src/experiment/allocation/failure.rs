//! Why a case of an allocator has no answer.

use super::classic::{self, Trouble};
use crate::device::DeviceError;
use crate::policy::PolicyError;
use crate::record::{Allocation, Lost, Status};

/// Why a case has no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// It cannot be, for a reason that is no fault.
    Skipped(String),
    /// It could be, and was not.
    Failed(String),
    /// The device says so.
    Device(DeviceError),
}

impl Failure {
    /// Ends a record with it.
    pub(super) fn end(self, record: &mut Allocation) {
        let (status, why) = match self {
            Failure::Skipped(why) => (Status::Skipped, why),
            Failure::Failed(why) => (Status::Failed, why),
            Failure::Device(error) => {
                let is_call = matches!(error, DeviceError::Call { .. });
                record.lost = is_call.then_some(Lost::Device);
                (Status::Failed, error.to_string())
            }
        };
        (record.status, record.reason) = (status, Some(why));
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::OutOfMemory { .. } | DeviceError::NoAllocator { .. } => {
                Failure::Skipped(error.to_string())
            }
            error => Failure::Device(error),
        }
    }
}

impl From<PolicyError> for Failure {
    fn from(error: PolicyError) -> Self {
        match error {
            PolicyError::OutOfMemory { .. } | PolicyError::Size { .. } => {
                Failure::Skipped(error.to_string())
            }
            error => Failure::Failed(error.to_string()),
        }
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::SetUp { block, error } => Failure::Skipped(format!(
                "the {} blocks do not fit into the window together: that of {} MiB was refused \
                 ({error})",
                classic::BLOCKS_BYTES.len(),
                classic::BLOCKS_BYTES[block] >> 20
            )),
            Trouble::Other(failure) => failure,
        }
    }
}
