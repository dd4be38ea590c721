//! From a case id to the plan that it stands for.

use super::plan::{Plan, Subject};
use super::suite::{Suite, default_payload, plan};
use crate::device::Movement;
use crate::layout::{Layout, Pattern, Spec, UNIT_BYTES};
use crate::record::{DeviceKind, Experiment, KernelName, Refined, size};

/// What a case id looks like, for sentences that say so.
const FORM: &str = "bandwidth/kernel=gather_read/pattern=shuffled/fragment=128B/footprint=2GiB, \
                    with /payload=1GiB behind it where it is no default";

/// The plan of a case id, with the precision and time of a suite.
///
/// # Errors
///
/// One sentence that says what cannot be, and what would work.
pub fn parse_case(text: &str, suite: Suite, kind: &DeviceKind) -> Result<Plan, String> {
    let wrong = |what: String| format!("the case `{text}` cannot be: {what}");
    let mut parts = text.split('/');
    let experiment = parts.next().unwrap_or_default();
    if experiment != Experiment::Bandwidth.as_str() {
        return Err(wrong(format!("it does not begin with an experiment; write {FORM}")));
    }
    let (mut kernel, mut pattern, mut fragment, mut footprint, mut payload) =
        (None, None, None, None, None);
    for part in parts {
        let (key, value) = part
            .split_once('=')
            .ok_or_else(|| wrong(format!("`{part}` is no key=value; write {FORM}")))?;
        let bytes = || size::parse(value).map_err(|error| wrong(format!("{key}={value}: {error}")));
        match key {
            "kernel" if kernel.is_none() => kernel = Some(value),
            "pattern" if pattern.is_none() => pattern = Some(value),
            "fragment" if fragment.is_none() => fragment = Some(bytes()?),
            "footprint" if footprint.is_none() => footprint = Some(bytes()?),
            "payload" if payload.is_none() => payload = Some(bytes()?),
            _ => return Err(wrong(format!("`{part}` is unknown or twice there; write {FORM}"))),
        }
    }
    let missing = |key: &str| wrong(format!("it has no {key}=; write {FORM}"));
    let kernel = kernel.ok_or_else(|| missing("kernel"))?;
    let subject = Subject::named(&Refined::<KernelName>::parse(kernel))
        .ok_or_else(|| wrong(unknown_kernel(kernel)))?;
    let pattern = pattern.ok_or_else(|| missing("pattern"))?;
    let (pattern, offset_bytes) =
        Pattern::parse(&Refined::parse(pattern)).map_err(|error| wrong(error.to_string()))?;
    let footprint_bytes = footprint.ok_or_else(|| missing("footprint"))?;
    let fragment_bytes = match (subject.has_layout(), fragment) {
        (true, fragment) => fragment.ok_or_else(|| missing("fragment"))?,
        (false, None) => UNIT_BYTES,
        (false, Some(_)) => {
            return Err(wrong(format!("{kernel} has no fragments: leave fragment= out")));
        }
    };
    let spec = Spec { pattern, fragment_bytes, offset_bytes, footprint_bytes, payload_bytes: 0 };
    check_pattern(subject, &spec).map_err(wrong)?;
    let default = default_payload(suite, kind, subject, spec);
    let payload_bytes = payload.unwrap_or(default);
    let spec = Spec { payload_bytes, ..spec };
    Layout::new(spec, 0).map_err(|error| wrong(error.to_string()))?;
    if !subject.has_layout() && payload_bytes != footprint_bytes {
        return Err(wrong(format!("{kernel} moves its whole footprint: leave payload= out")));
    }
    Ok(plan(suite, kind, subject, spec, payload_bytes != default))
}

fn unknown_kernel(kernel: &str) -> String {
    let all = Movement::ALL.into_iter();
    let layouts = all.filter(|movement| movement.has_layout()).map(Movement::name);
    let layouts: Vec<&str> = layouts.collect();
    format!(
        "there is no kernel `{kernel}` to be measured: there are ceiling, {}, and NAME.variants \
         of read, write, copy and those with competitors",
        layouts.join(", ")
    )
}

/// Whether the kernel takes the pattern.
fn check_pattern(subject: Subject, spec: &Spec) -> Result<(), String> {
    let is_contiguous = spec.pattern == Pattern::Contiguous && spec.offset_bytes == 0;
    match subject.movement() {
        _ if !subject.has_layout() && !is_contiguous => {
            Err("a kernel without a layout takes pattern=contiguous only".to_owned())
        }
        Some(Movement::ScatterCopy) if spec.pattern.repeats() => Err(
            "pattern=random may take a slot twice, so what a scatter leaves there would depend on \
             chance: take shuffled, strided, checkerboard or holes"
                .to_owned(),
        ),
        Some(Movement::StridedGather)
            if !matches!(spec.pattern, Pattern::Strided { .. } | Pattern::Contiguous) =>
        {
            Err("strided_gather follows no index: take pattern=strided.stride_N".to_owned())
        }
        Some(_) if matches!(subject, Subject::Variants(_)) && subject.has_layout() => {
            let unit_bytes = subject.movement().map_or(16, Movement::competitors_unit_bytes);
            let other = spec.unit_bytes() != u64::from(unit_bytes) || spec.slots() > 1 << 32;
            match other {
                true => Err(format!(
                    "its competitors take units of {unit_bytes} B and an index of 4 B: take fragments \
                     of that length or longer, and a smaller footprint"
                )),
                false => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        parse_case(text, Suite::Quick, &DeviceKind::Cuda).unwrap_err()
    }

    #[test]
    fn contradictions_are_told_with_what_would_work() {
        let says = |text: &str, part: &str| {
            let error = refused(text);
            assert!(error.contains(part), "{text}: {error}");
        };
        let gather = "bandwidth/kernel=gather_read/pattern=shuffled";
        says(&format!("{gather}/fragment=64B/footprint=1KiB/payload=2KiB"), "1KiB is the most");
        says(&format!("{gather}/fragment=4KiB/footprint=1KiB"), "take a shorter fragment");
        says(&format!("{gather}.offset_2B/fragment=4KiB/footprint=1MiB"), "a multiple of 4 B");
        says(&format!("{gather}/fragment=48B/footprint=1MiB"), "a power of two from 4 B on");
        says(&format!("{gather}/footprint=1MiB"), "it has no fragment=");
        says(&format!("{gather}/fragment=64B/fragment=64B/footprint=1MiB"), "twice");
        says(&format!("{gather}/fragment=64B/footprint=big"), "footprint=big");
        says("latency/kernel=x", "does not begin with an experiment");
        says("bandwidth/kernel=spread/pattern=shuffled", "no kernel `spread`");
        let scatter = "bandwidth/kernel=scatter_copy/pattern=random/fragment=64B/footprint=1MiB";
        says(scatter, "take shuffled, strided, checkerboard or holes");
        let strided = "bandwidth/kernel=strided_gather/pattern=shuffled/fragment=8B/footprint=1MiB";
        says(strided, "strided.stride_N");
        says("bandwidth/kernel=ceiling/pattern=shuffled/footprint=1MiB", "contiguous only");
        says("bandwidth/kernel=ceiling/pattern=contiguous/fragment=8B/footprint=1MiB", "leave");
        let variants = "bandwidth/kernel=gather_read.variants/pattern=shuffled";
        says(&format!("{variants}/fragment=8B/footprint=1MiB"), "take fragments of that length");
    }

    #[test]
    fn a_payload_that_is_no_default_is_in_the_id() {
        let text =
            "bandwidth/kernel=gather_copy/pattern=holes.occupancy_90/fragment=64B/footprint=16MiB";
        let plan = parse_case(text, Suite::Quick, &DeviceKind::Cuda).unwrap();
        assert_eq!(plan.case(), text);
        let text = "bandwidth/kernel=gather_copy/pattern=shuffled/fragment=64B/footprint=16MiB/payload=1MiB";
        let plan = parse_case(text, Suite::Quick, &DeviceKind::Cuda).unwrap();
        assert_eq!((plan.case().as_str(), plan.spec.payload_bytes), (text, 1 << 20));
    }
}
