//! What the device's timer is worth: its steps, what an interval costs, and whether it agrees with the
//! host's clock.

use std::time::Instant;

use crate::device::{Device, DeviceError, Interval, Launch, SUM_BYTES};
use crate::kernel::{Access, fill};
use crate::record::ClockTest;

/// Short intervals: enough to see the timer's steps.
const SHORT: usize = 2_000;

/// Pairs of long intervals by both clocks.
const LONG: usize = 40;

/// What a short launch reads: one unit of each thread of a block.
const SHORT_BYTES: u64 = 4 << 10;

/// What a long interval takes at least, in nanoseconds: the host's wake-ups, some 10 us, are 1 part of
/// a thousand of it.
const LONG_NS: u64 = 10_000_000;

/// Takes the intervals.
///
/// # Errors
///
/// Whatever the device says.
pub fn test(device: &dyn Device) -> Result<ClockTest, DeviceError> {
    let long_bytes = if device.facts().is_host() { 16 << 20 } else { 256 << 20 };
    let source = device.allocate(long_bytes)?;
    let sums = device.allocate(SUM_BYTES)?;
    fill(device, source.span(), 1)?;
    let read = |bytes: u64| -> Result<Launch<'_>, DeviceError> {
        let span = source.slice(0, bytes).ok_or_else(|| DeviceError::Refused {
            entry: "clock",
            what: "the source is shorter than what is read".to_owned(),
        })?;
        Access::read(span, sums.span(), 1).launch()
    };
    let (short, long) = (read(SHORT_BYTES)?, read(long_bytes)?);
    let mut found = ClockTest { short_bytes: SHORT_BYTES, long_bytes, ..ClockTest::default() };
    for launch in [&short, &long] {
        device.launch(launch)?;
        device.synchronize()?;
    }
    for _ in 0..SHORT {
        let begin = Instant::now();
        if let Interval::Ns { ns, .. } = device.time(&short, 1)? {
            found.short_host_ns.push(begin.elapsed().as_nanos() as u64);
            found.short_ns.push(ns);
        }
    }
    found.long_launches = launches(device, &long)?;
    for _ in 0..LONG {
        let twice = on_host(device, &long, 2 * found.long_launches)?;
        let once = on_host(device, &long, found.long_launches)?;
        if let Interval::Ns { ns, .. } = device.time(&long, found.long_launches)? {
            found.long_ns.push(ns);
            found.long_host_ns.push(twice - once);
        }
    }
    Ok(found)
}

/// How many launches make a long interval, at most as many as are held at a time.
fn launches(device: &dyn Device, long: &Launch<'_>) -> Result<u32, DeviceError> {
    Ok(match device.time(long, 1)? {
        Interval::Ns { ns, .. } => LONG_NS.div_ceil(ns.max(1)).clamp(1, 32) as u32,
        Interval::Void => 1,
    })
}

/// What launches take from the first call to the return of the last wait, in nanoseconds.
fn on_host(device: &dyn Device, launch: &Launch<'_>, launches: u32) -> Result<i64, DeviceError> {
    device.synchronize()?;
    let begin = Instant::now();
    for _ in 0..launches {
        device.launch(launch)?;
    }
    device.synchronize()?;
    Ok(begin.elapsed().as_nanos() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::scripted::Scripted;

    #[test]
    fn it_takes_what_the_timer_says() {
        let mut ticks = 0;
        let device = Scripted::new(1 << 30, move |timed| {
            ticks += 1;
            let ns = if timed.bytes == SHORT_BYTES { 2_048 + 32 * (ticks % 3) } else { 1_000_000 };
            Interval::Ns { ns: ns * u64::from(timed.launches), sm_khz: None }
        });
        let found = test(&device).unwrap();
        assert_eq!((found.short_ns.len(), found.short_host_ns.len()), (SHORT, SHORT));
        assert_eq!(
            (found.long_launches, found.long_ns.len(), found.long_host_ns.len()),
            (10, 40, 40)
        );
        assert!(found.long_ns.iter().all(|ns| *ns == 10_000_000));
    }

    #[test]
    fn void_intervals_are_left_out() {
        let found = test(&Scripted::new(1 << 30, |_| Interval::Void)).unwrap();
        assert!(found.short_ns.is_empty() && found.long_ns.is_empty());
    }
}
