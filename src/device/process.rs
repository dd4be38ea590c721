//! What a process that holds a device needs: the tie to its parent, and its environment.

use nix::sys::signal::{self, SigHandler};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// Lets a write beyond the limit of a file's size fail like one to a full disk. By default the system
/// kills the process for it without a word.
pub fn fail_writes_beyond_limits() {
    // SAFETY: ignoring a signal runs no code of ours.
    let _ = unsafe { signal::signal(signal::Signal::SIGXFSZ, SigHandler::SigIgn) };
}

/// Asks the system to kill this process when its parent ends, so that no worker outlives a killed
/// parent with the GPU's memory in hand. Returns false where the parent is gone already, or the
/// system cannot do it (then the end of input has to do).
pub fn end_with_parent(parent: u32) -> bool {
    let asked = set_parent_process_death_signal(Some(Signal::KILL)).is_ok();
    // The parent may have ended before the signal was asked for.
    asked && getppid().is_some_and(|pid| pid.as_raw_nonzero().get() as u32 == parent)
}

/// Runs something on the processor that this thread is on, and lets it go anywhere again afterwards: a
/// thread that moves between two reads of the clock has its move timed.
pub fn pinned<T>(run: impl FnOnce() -> T) -> T {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
    let before = sched_getaffinity(None);
    let mut here = CpuSet::new();
    here.set(sched_getcpu());
    // Where the system refuses, samples wander; they are no less true.
    let is_pinned = before.is_ok() && sched_setaffinity(None, &here).is_ok();
    let answer = run();
    if let Some(before) = before.ok().filter(|_| is_pinned) {
        let _ = sched_setaffinity(None, &before);
    }
    answer
}

/// What every process that holds a device gets beside its environment; what the user set stays. The order of
/// devices is that of their PCI addresses, and no module is loaded late, in the middle of a sample.
pub fn environment() -> Vec<(&'static str, &'static str)> {
    let wanted = [("CUDA_DEVICE_ORDER", "PCI_BUS_ID"), ("CUDA_MODULE_LOADING", "EAGER")];
    wanted.into_iter().filter(|(name, _)| std::env::var_os(name).is_none()).collect()
}
