//! What to keep in mind about a figure: one enum, each with what, why and what to do.

/// A warning about the quality of a row's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Flag {
    /// The figure is the host's, not a GPU's.
    Host,
    /// An arm touches less than 16 times the L2 cache.
    Cache,
    /// The time of a launch does not grow with its bytes.
    FlatTime,
    /// A figure lies above the theoretical peak.
    AbovePeak,
    /// The packed arm moves bytes far more slowly than its stream.
    WeakBaseline,
    /// The two arms of a ratio were not timed in the same rounds.
    Unpaired,
    /// Launches were not held back until all were queued.
    Unheld,
    /// The system is Linux under Windows.
    Wsl,
    /// Others may have used the device.
    SharedDevice,
    /// ECC errors were counted during the group.
    EccErrors,
    /// Something lowered the clocks.
    Throttled,
    /// Rounds were dropped because heat or hardware lowered the clocks in them.
    DroppedRounds,
    /// An arm's clock was low in every round.
    LowClock,
    /// The device did not come to rest before the group.
    Unsettled,
    /// The sentinel shifted around the group, the second time too.
    Drift,
    /// Samples were thrown away because the hold gave up.
    VoidSamples,
    /// Neighbouring rounds resemble each other.
    Autocorrelated,
    /// The interval is wider than what was aimed at.
    Imprecise,
    /// Fewer than 30 samples.
    FewSamples,
    /// Free memory was not the same before and after.
    Disturbed,
    /// The curve is not that of the model that the figure comes from.
    PoorFit,
}

impl Flag {
    /// Every flag, in the order of the table.
    pub const ALL: [Flag; 21] = [
        Flag::Host,
        Flag::Cache,
        Flag::FlatTime,
        Flag::AbovePeak,
        Flag::WeakBaseline,
        Flag::Unpaired,
        Flag::Unheld,
        Flag::Wsl,
        Flag::SharedDevice,
        Flag::EccErrors,
        Flag::Throttled,
        Flag::DroppedRounds,
        Flag::LowClock,
        Flag::Unsettled,
        Flag::Drift,
        Flag::VoidSamples,
        Flag::Autocorrelated,
        Flag::Imprecise,
        Flag::FewSamples,
        Flag::Disturbed,
        Flag::PoorFit,
    ];

    /// The flag as it stands in tables and files.
    pub fn as_str(self) -> &'static str {
        match self {
            Flag::Host => "host",
            Flag::Cache => "cache",
            Flag::FlatTime => "flat_time",
            Flag::AbovePeak => "above_peak",
            Flag::WeakBaseline => "weak_baseline",
            Flag::Unpaired => "unpaired",
            Flag::Unheld => "unheld",
            Flag::Wsl => "wsl",
            Flag::SharedDevice => "shared_device",
            Flag::EccErrors => "ecc_errors",
            Flag::Throttled => "throttled",
            Flag::DroppedRounds => "dropped_rounds",
            Flag::LowClock => "low_clock",
            Flag::Unsettled => "unsettled",
            Flag::Drift => "drift",
            Flag::VoidSamples => "void_samples",
            Flag::Autocorrelated => "autocorrelated",
            Flag::Imprecise => "imprecise",
            Flag::FewSamples => "few_samples",
            Flag::Disturbed => "disturbed",
            Flag::PoorFit => "poor_fit",
        }
    }

    /// What happened.
    pub fn what(self) -> &'static str {
        match self {
            Flag::Host => "The figure was measured in the host's memory by its processor.",
            Flag::Cache => "An arm touches less than 16 times the cache in front of the memory.",
            Flag::FlatTime => {
                "A launch of an arm over twice the bytes, or more, took less than 1.5 times as long \
                 for each doubling."
            }
            Flag::AbovePeak => "The median lies above the theoretical peak of the memory.",
            Flag::WeakBaseline => {
                "The packed arm, its index included, moves bytes at less than 0.9 of its stream's \
                 rate."
            }
            Flag::Unpaired => "The two arms of the ratio were not timed in the same rounds.",
            Flag::Unheld => "Launches ran as they were queued: the hold gave up in a trial.",
            Flag::Wsl => "The system is Linux under Windows (WSL).",
            Flag::SharedDevice => {
                "Another process was on the device, an MPS server stood before it, or it is shared \
                 between virtual machines (vGPU)."
            }
            Flag::EccErrors => "The device counted ECC errors during the group.",
            Flag::Throttled => "The driver gave a reason for lowered clocks around the group.",
            Flag::DroppedRounds => {
                "Rounds were dropped because heat or hardware lowered the clocks in them."
            }
            Flag::LowClock => "An arm's median SM clock lies below 90 % of that of the whole run.",
            Flag::Unsettled => "The device did not come to rest within 3 s before the group.",
            Flag::Drift => {
                "A plain read shifted by more than 2 % around the group, and again when it was \
                 measured again."
            }
            Flag::VoidSamples => "Some samples were thrown away because the hold gave up.",
            Flag::Autocorrelated => "Rounds that follow each other are more alike than by chance.",
            Flag::Imprecise => "The interval is wider than what was aimed at.",
            Flag::FewSamples => "The figure stands on fewer than 30 samples.",
            Flag::Disturbed => "The driver's free memory was not the same before and after.",
            Flag::PoorFit => {
                "A median lies more than 5 % from the model that the figure comes from."
            }
        }
    }

    /// Why it matters.
    pub fn why(self) -> &'static str {
        match self {
            Flag::Host => "It says nothing about any GPU.",
            Flag::Cache => "Part of the traffic may be the cache's, so this is no memory figure.",
            Flag::FlatTime => {
                "Then the time is not that of moving the bytes: something else takes it, or part of \
                 the work is not done."
            }
            Flag::AbovePeak => {
                "Memory cannot be that fast: a cache answered, or the peak that the driver tells \
                 is wrong."
            }
            Flag::WeakBaseline => {
                "The access kernel is itself the limit, so scattered / packed hides part of the \
                 cost."
            }
            Flag::Unpaired => {
                "What is left is a choice of rounds, and what drifts no longer cancels out."
            }
            Flag::Unheld => "The time of queueing launches may be part of the interval.",
            Flag::Wsl => {
                "Windows' driver schedules the device and may move its memory out, and the host's \
                 calls go through it."
            }
            Flag::SharedDevice => "Their traffic takes bandwidth and cache from what is measured.",
            Flag::EccErrors => "Corrections take time, and memory that needs them may be failing.",
            Flag::Throttled => "Arms may have run at different clocks.",
            Flag::DroppedRounds => {
                "What is left was measured in between, on a device near its limits."
            }
            Flag::LowClock => {
                "Its kernel draws the power that the unit allows, or something slowed the unit \
                 during the group: another unit of the model may be faster."
            }
            Flag::Unsettled | Flag::Drift => {
                "Rounds may not be alike, and groups may not compare with each other."
            }
            Flag::VoidSamples => "Something else held the device or the process up.",
            Flag::Autocorrelated => {
                "They tell less than as many independent ones: the interval is a block bootstrap's, \
                 which is wider, and may still be too narrow."
            }
            Flag::Imprecise => "A difference smaller than the interval cannot be seen.",
            Flag::FewSamples => "The interval is wide, and one odd sample moves it.",
            Flag::Disturbed => {
                "Something else took or gave memory meanwhile, or the driver kept some for itself."
            }
            Flag::PoorFit => "The model does not hold here: reach and knee are no more than hints.",
        }
    }

    /// What to do about it.
    pub fn what_to_do(self) -> &'static str {
        match self {
            Flag::Host => "Measure on the GPU that the question is about.",
            Flag::Cache => "Look at a case with a larger payload.",
            Flag::FlatTime => {
                "Compare the case's sizes, and believe neither until it is explained."
            }
            Flag::AbovePeak => "Look at a case with a larger payload, and check the memory clock.",
            Flag::WeakBaseline => "Read total_ratio (scattered / stream) next to it.",
            Flag::Unpaired => "See which rounds the journal lacks, and measure again.",
            Flag::Unheld => {
                "End profilers and sanitizers, unset CUDA_LAUNCH_BLOCKING, and measure again."
            }
            Flag::Wsl => "Measure under Linux itself where figures have to be exact.",
            Flag::SharedDevice => {
                "End the others (nvidia-smi lists them) or take another device, and measure again."
            }
            Flag::EccErrors => "Look at `nvidia-smi -q -d ECC,ROW_REMAPPER`, and measure again.",
            Flag::Throttled => "Check power limit and temperature, and measure again.",
            Flag::DroppedRounds => "Check cooling and power supply, and measure again.",
            Flag::LowClock => {
                "See whether the same arm is as slow elsewhere in the run; check power limit and \
                 temperature."
            }
            Flag::Unsettled | Flag::Drift => {
                "See that nothing else uses the device, check power limit and temperature, and \
                 measure again."
            }
            Flag::VoidSamples => "Leave the machine alone while it measures.",
            Flag::Autocorrelated => {
                "One figure in a hundred is flagged by chance. Where many are, look for what drifts \
                 (clocks, temperature, other work)."
            }
            Flag::Imprecise => "Give more time, or leave the machine alone while it measures.",
            Flag::FewSamples => "Give more time.",
            Flag::Disturbed => "End whatever else uses the device, and measure again.",
            Flag::PoorFit => {
                "Look at the curve itself, and measure more footprints around the knee."
            }
        }
    }
}
