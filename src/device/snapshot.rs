//! What NVML tells about a device at one moment, and what two moments tell about a group.

use crate::record::{Clocks, Condition};

/// A device at one moment. What NVML does not tell is none, on a host everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// SM clock in MHz.
    pub sm_mhz: Option<u32>,
    /// Memory clock in MHz.
    pub memory_mhz: Option<u32>,
    /// The bits of reasons for lowered clocks.
    pub throttle_reasons: Option<u64>,
    /// Temperature of the GPU in degrees Celsius.
    pub temperature_c: Option<u32>,
    /// Power draw in mW.
    pub power_mw: Option<u32>,
    /// ECC errors that were corrected since the driver was loaded.
    pub ecc_corrected: Option<u64>,
    /// ECC errors that were not.
    pub ecc_uncorrected: Option<u64>,
    /// Other processes on the device.
    pub other_processes: Option<u32>,
}

impl Snapshot {
    /// The clocks around what lay between this moment and a later one.
    pub fn clocks_until(&self, after: &Snapshot) -> Clocks {
        let reasons = self.throttle_reasons.zip(after.throttle_reasons);
        Clocks {
            sm_mhz: pair(self.sm_mhz, after.sm_mhz),
            memory_mhz: pair(self.memory_mhz, after.memory_mhz),
            throttle_reasons: reasons.map(|(before, after)| before | after),
        }
    }

    /// All else around it; none where nothing is known at both moments.
    pub fn condition_until(&self, after: &Snapshot) -> Option<Condition> {
        let condition = Condition {
            temperature_c: pair(self.temperature_c, after.temperature_c),
            power_mw: pair(self.power_mw, after.power_mw),
            ecc_corrected: pair(self.ecc_corrected, after.ecc_corrected),
            ecc_uncorrected: pair(self.ecc_uncorrected, after.ecc_uncorrected),
            other_processes: pair(self.other_processes, after.other_processes),
        };
        Some(condition).filter(|condition| *condition != Condition::default())
    }
}

fn pair<T>(before: Option<T>, after: Option<T>) -> Option<[T; 2]> {
    Some([before?, after?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_has_its_two_moments_and_reasons_add_up() {
        let before = Snapshot {
            sm_mhz: Some(1),
            memory_mhz: Some(2),
            throttle_reasons: Some(0x4),
            temperature_c: Some(30),
            power_mw: Some(70_000),
            ecc_corrected: Some(5),
            ecc_uncorrected: Some(6),
            other_processes: Some(7),
        };
        let after = Snapshot {
            sm_mhz: Some(11),
            memory_mhz: Some(12),
            throttle_reasons: Some(0x20),
            temperature_c: Some(40),
            power_mw: Some(80_000),
            ecc_corrected: Some(15),
            ecc_uncorrected: Some(16),
            other_processes: Some(17),
        };
        let clocks = Clocks {
            sm_mhz: Some([1, 11]),
            memory_mhz: Some([2, 12]),
            throttle_reasons: Some(0x24),
        };
        let condition = Condition {
            temperature_c: Some([30, 40]),
            power_mw: Some([70_000, 80_000]),
            ecc_corrected: Some([5, 15]),
            ecc_uncorrected: Some([6, 16]),
            other_processes: Some([7, 17]),
        };
        assert_eq!(before.clocks_until(&after), clocks);
        assert_eq!(before.condition_until(&after), Some(condition));
    }

    #[test]
    fn a_moment_that_tells_nothing_leaves_no_pair() {
        let known = Snapshot { sm_mhz: Some(1), power_mw: Some(1), ..Snapshot::default() };
        for (before, after) in [(known, Snapshot::default()), (Snapshot::default(), known)] {
            assert_eq!(before.clocks_until(&after), Clocks::default());
            assert_eq!(before.condition_until(&after), None);
        }
        let condition = known.condition_until(&known).unwrap();
        assert_eq!((condition.power_mw, condition.temperature_c), (Some([1, 1]), None));
    }
}
