//! From a case id to the plan that it stands for.

use super::allocation::{AllocationPlan, Allocator, Factor, Freed, Study, samples};
use super::cases::Case;
use super::heaps::occupancy_percent;
use super::plan::{Plan, Subject};
use super::scatter::over_chunks;
use super::scene::{Heap, Part, Scene, Staged};
use super::suite::{Suite, default_payload, plan};
use crate::device::{Chunk, DeviceAllocator, Movement};
use crate::harness::Preset;
use crate::layout::{Layout, Pattern, Spec, UNIT_BYTES};
use crate::policy::PolicyName;
use crate::record::{DeviceKind, Experiment, KernelName, MemoryKind, PatternName, Refined, size};

/// What a case id looks like, for sentences that say so.
const FORM: &str = "bandwidth/kernel=gather_read/pattern=shuffled/fragment=128B/footprint=2GiB, \
                    with /payload=1GiB behind it where it is no default, or bandwidth/\
                    kernel=gather_read/pattern=aged.live/policy=best_fit/sizes=log_normal/\
                    hole=64KiB/footprint=2GiB, or classic/allocator=first_fit/memory=simulated";

/// The case of an id, with the precision and time of a suite.
///
/// # Errors
///
/// One sentence that says what cannot be, and what would work.
pub fn parse_case(text: &str, suite: Suite, kind: &DeviceKind) -> Result<Case, String> {
    let wrong = |what: String| format!("the case `{text}` cannot be: {what}");
    let (experiment, parts) = text.split_once('/').unwrap_or((text, ""));
    let mut keys = Keys::read(parts).map_err(wrong)?;
    match Experiment::from(experiment.to_owned()) {
        Experiment::Bandwidth | Experiment::Scatter => {
            let plan = kernels(&mut keys, suite, kind).map_err(wrong)?;
            if *kind == DeviceKind::Host && plan.heap().is_some_and(|heap| heap.is_on_device()) {
                return Err(wrong(
                    "the host has no allocator of its own: take a policy".to_owned(),
                ));
            }
            if plan.experiment.as_str() != experiment {
                let (kernel, own) = (plan.subject.kernel(), &plan.experiment);
                return Err(wrong(format!(
                    "kernel={kernel} is of another experiment: write {own}/…"
                )));
            }
            keys.end().map_err(wrong)?;
            Ok(Case::Bandwidth(Box::new(plan)))
        }
        Experiment::Other(_) => {
            Err(wrong(format!("it does not begin with an experiment; write {FORM}")))
        }
        experiment => {
            let plan = allocation(&experiment, &mut keys, suite, kind).map_err(wrong)?;
            keys.end().map_err(wrong)?;
            Ok(Case::Allocation(plan))
        }
    }
}

/// The plan of a case id of the bandwidth.
///
/// # Errors
///
/// As [`parse_case`], and for a case of another experiment.
pub fn parse_plan(text: &str, suite: Suite, kind: &DeviceKind) -> Result<Plan, String> {
    match parse_case(text, suite, kind)? {
        Case::Bandwidth(plan) => Ok(*plan),
        other => Err(format!("the case `{text}` is one of {}", other.experiment())),
    }
}

/// A case of an allocator.
fn allocation(
    experiment: &Experiment,
    keys: &mut Keys<'_>,
    suite: Suite,
    kind: &DeviceKind,
) -> Result<AllocationPlan, String> {
    let allocator: Allocator = keys.text("allocator")?.parse()?;
    let memory = MemoryKind::from(keys.text("memory")?.to_owned());
    let is_classic = *experiment == Experiment::Classic;
    match (&memory, &allocator) {
        (MemoryKind::Other(text), _) => {
            return Err(format!("memory={text}: memory is device or simulated"));
        }
        (MemoryKind::Device, _) if *kind == DeviceKind::Host => {
            return Err("memory=device is a GPU's, and the host is none".to_owned());
        }
        (MemoryKind::Simulated, _) if !is_classic => {
            return Err(format!("{experiment} is measured on a device: take memory=device"));
        }
        (MemoryKind::Simulated, Allocator::Device(_)) => {
            return Err(format!("{allocator} is a device's own: take memory=device"));
        }
        (_, Allocator::Policy(PolicyName::Slab)) => {
            return Err("slab has blocks of one size: take a policy that has any".to_owned());
        }
        _ => {}
    }
    let study = match experiment {
        Experiment::Capacity => {
            let freed = keys.text("freed")?;
            let named = |one: &Freed| one.name() == freed;
            let freed = Freed::ALL.into_iter().find(named);
            let window_bytes = match keys.text("window")? {
                "device" => None,
                text => Some(size::parse(text).map_err(|error| format!("window={text}: {error}"))?),
            };
            let block_bytes = keys.needed_bytes("block")?;
            let freed = freed.ok_or("freed= is alternate or random")?;
            if window_bytes.is_some_and(|bytes| bytes / 2 < block_bytes) {
                return Err("a window has to hold two blocks at least".to_owned());
            }
            Study::Capacity { block_bytes, freed, window_bytes }
        }
        Experiment::Granule => Study::Granule,
        Experiment::Latency => {
            let factor: Factor = keys.text("state")?.parse()?;
            let request_bytes = keys.needed_bytes("request")?;
            let is_vmm = matches!(allocator, Allocator::Device(DeviceAllocator::Vmm(_)));
            if factor == Factor::Steps && !is_vmm {
                return Err(format!(
                    "{allocator} makes a block in one call: state=steps is for vmm.chunk_2MiB and \
                     the like"
                ));
            }
            let samples = samples(suite, allocator, factor, request_bytes);
            Study::Latency { factor, request_bytes, samples }
        }
        _ => Study::Classic,
    };
    Ok(AllocationPlan { study, allocator, memory })
}

/// A case of kernels over memory.
fn kernels(keys: &mut Keys<'_>, suite: Suite, kind: &DeviceKind) -> Result<Plan, String> {
    let kernel = keys.text("kernel")?;
    let subject = Subject::named(&Refined::<KernelName>::parse(kernel))
        .ok_or_else(|| unknown_kernel(kernel))?;
    let pattern: Refined<PatternName> = Refined::parse(keys.text("pattern")?);
    let (scene, names_payload) = match pattern.base {
        PatternName::Aged => (aged(subject, &pattern, keys)?, false),
        PatternName::Preset => (preset(subject, &pattern, keys)?, false),
        _ => uniform(suite, kind, subject, &pattern, keys)?,
    };
    let plan = plan(suite, kind, subject, scene, names_payload);
    let is_on_host = *kind == DeviceKind::Host;
    match (subject, &plan.scene) {
        (Subject::Mitigations | Subject::Backings(_), _) if is_on_host => {
            Err(format!("kernel={kernel} is about a GPU's TLB, and the host is none"))
        }
        (Subject::Mitigations, Scene::Uniform(spec)) if spec.unit_bytes() < UNIT_BYTES => {
            Err(format!("kernel={kernel} takes fragments of 16 B or more"))
        }
        (Subject::Backings(_), Scene::Uniform(spec)) if spec.offset_bytes > 0 => {
            Err(format!("kernel={kernel} takes fragments without an offset"))
        }
        (Subject::Backings(_), _) => Ok(over_chunks(plan, suite, chunk_bytes(keys)?)),
        _ => Ok(plan),
    }
}

/// How long physical chunks are.
fn chunk_bytes(keys: &mut Keys<'_>) -> Result<u64, String> {
    let chunk_bytes = keys.needed_bytes("chunk")?;
    match Chunk::of(chunk_bytes) {
        Some(_) => Ok(chunk_bytes),
        None => {
            Err(format!("chunk={}: a power of two from 2MiB to 1GiB", size::exact(chunk_bytes)))
        }
    }
}

/// The `key=value` parts of a case id that were not taken yet.
struct Keys<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Keys<'a> {
    fn read(parts: &'a str) -> Result<Keys<'a>, String> {
        let mut keys: Vec<(&str, &str)> = Vec::new();
        for part in parts.split('/') {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| format!("`{part}` is no key=value; write {FORM}"))?;
            if keys.iter().any(|(known, _)| *known == key) {
                return Err(format!("`{key}=` is twice there; write {FORM}"));
            }
            keys.push((key, value));
        }
        Ok(Keys(keys))
    }

    fn take(&mut self, key: &str) -> Option<&'a str> {
        let at = self.0.iter().position(|(known, _)| *known == key)?;
        Some(self.0.remove(at).1)
    }

    fn text(&mut self, key: &str) -> Result<&'a str, String> {
        self.take(key).ok_or_else(|| format!("it has no {key}=; write {FORM}"))
    }

    fn bytes(&mut self, key: &str) -> Result<Option<u64>, String> {
        let read = |value| size::parse(value).map_err(|error| format!("{key}={value}: {error}"));
        self.take(key).map(read).transpose()
    }

    fn needed_bytes(&mut self, key: &str) -> Result<u64, String> {
        self.bytes(key)?.ok_or_else(|| format!("it has no {key}=; write {FORM}"))
    }

    fn end(self) -> Result<(), String> {
        match self.0.first() {
            None => Ok(()),
            Some((key, value)) => {
                Err(format!("`{key}={value}` is nothing that it takes; write {FORM}"))
            }
        }
    }
}

/// Fragments of one length, and whether their payload is no default.
fn uniform(
    suite: Suite,
    kind: &DeviceKind,
    subject: Subject,
    pattern: &Refined<PatternName>,
    keys: &mut Keys<'_>,
) -> Result<(Scene, bool), String> {
    let (pattern, offset_bytes) = Pattern::parse(pattern).map_err(|error| error.to_string())?;
    let footprint_bytes = keys.needed_bytes("footprint")?;
    let kernel = subject.kernel();
    let fragment_bytes = match (subject.has_layout(), keys.bytes("fragment")?) {
        (true, fragment) => fragment.ok_or_else(|| format!("it has no fragment=; write {FORM}"))?,
        (false, None) => UNIT_BYTES,
        (false, Some(_)) => return Err(format!("{kernel} has no fragments: leave fragment= out")),
    };
    let spec = Spec { pattern, fragment_bytes, offset_bytes, footprint_bytes, payload_bytes: 0 };
    check_pattern(subject, &spec)?;
    let default = default_payload(suite, kind, subject, spec);
    let payload_bytes = keys.bytes("payload")?.unwrap_or(default);
    let spec = Spec { payload_bytes, ..spec };
    Layout::new(spec, 0).map_err(|error| error.to_string())?;
    if !subject.has_layout() && payload_bytes != footprint_bytes {
        return Err(format!("{kernel} moves its whole footprint: leave payload= out"));
    }
    Ok((Scene::Uniform(spec), payload_bytes != default))
}

/// A situation.
fn preset(
    subject: Subject,
    pattern: &Refined<PatternName>,
    keys: &mut Keys<'_>,
) -> Result<Scene, String> {
    goes_over_any_lengths(subject)?;
    let name = pattern.refinement.as_deref().unwrap_or_default();
    let text = match keys.take("with") {
        None => name.to_owned(),
        Some(own) => format!("{name}:{own}"),
    };
    let preset: Preset = text.parse().map_err(|error| format!("{error}"))?;
    // Its sizes hardly depend on the seed.
    Staged::new(preset, 1).map(Scene::Preset)
}

/// Whether the kernel takes fragments of varying length.
fn goes_over_any_lengths(subject: Subject) -> Result<(), String> {
    match subject {
        Subject::Layout(movement) if movement.follows_index() => Ok(()),
        _ => Err(format!(
            "{} does not go over fragments of varying length: take gather_read, gather_copy or \
             scatter_copy",
            subject.kernel()
        )),
    }
}

/// An aged heap.
fn aged(
    subject: Subject,
    pattern: &Refined<PatternName>,
    keys: &mut Keys<'_>,
) -> Result<Scene, String> {
    let refinement = pattern.refinement.as_deref().unwrap_or_default();
    let part = Part::ALL.into_iter().find(|part| part.name() == refinement);
    let part = part.ok_or("pattern=aged is aged.live (the live blocks) or aged.holes")?;
    goes_over_any_lengths(subject)?;
    let policy: Allocator = keys.text("policy")?.parse()?;
    let sizes = keys.text("sizes")?.parse().map_err(|error| format!("{error}"))?;
    let occupancy_percent = match keys.take("occupancy") {
        None => occupancy_percent(policy),
        Some(text) => text
            .parse()
            .map_err(|_| format!("occupancy={text}: a whole number of percent, from 1 to 99"))?,
    };
    let hole_bytes = keys.needed_bytes("hole")?;
    let heap_bytes = keys.needed_bytes("footprint")?;
    let heap = Heap { part, policy, sizes, occupancy_percent, hole_bytes, heap_bytes };
    heap.check()?;
    Ok(Scene::Aged(heap))
}

fn unknown_kernel(kernel: &str) -> String {
    let all = Movement::ALL.into_iter();
    let layouts = all.filter(|movement| movement.has_layout()).map(Movement::name);
    let layouts: Vec<&str> = layouts.collect();
    format!(
        "there is no kernel `{kernel}` to be measured: there are ceiling, {}, NAME.variants \
         of read, write, copy and those with competitors, and against itself NAME.same of those \
         with fragments and NAME.moved of those that read",
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
        let aged = "bandwidth/kernel=gather_read/pattern=aged.live";
        let heap = "policy=best_fit/sizes=log_normal";
        says(&format!("{aged}/policy=bestfit/sizes=uniform/hole=4KiB/footprint=1GiB"), "best_fit");
        says(
            &format!("{aged}/policy=buddy/sizes=lognormal/hole=4KiB/footprint=1GiB"),
            "log_normal",
        );
        says(&format!("{aged}/{heap}/occupancy=100/hole=4KiB/footprint=1GiB"), "1 to 99");
        says(&format!("{aged}/{heap}/occupancy=half/hole=4KiB/footprint=1GiB"), "1 to 99");
        says(&format!("{aged}/{heap}/hole=0/footprint=1GiB"), "hole");
        says(&format!("{aged}/{heap}/footprint=1GiB"), "it has no hole=");
        says(&format!("{aged}/{heap}/hole=4KiB/footprint=1GiB/fragment=64B"), "fragment=64B");
        let holes = "bandwidth/kernel=gather_read/pattern=aged.holes/policy=cu_mem_alloc";
        says(&format!("{holes}/sizes=uniform/hole=4KiB/footprint=1GiB"), "take pattern=aged.live");
        let own = holes.replace("holes", "live") + "/sizes=uniform/hole=4KiB/footprint=1GiB";
        let error = parse_case(&own, Suite::Quick, &DeviceKind::Host).unwrap_err();
        assert!(error.contains("no allocator of its own"), "{error}");
        says("bandwidth/kernel=gather_read/pattern=aged/footprint=1GiB", "aged.holes");
        says(
            "bandwidth/kernel=strided_gather/pattern=aged.live/footprint=1GiB",
            "take gather_read",
        );
        let preset = "bandwidth/kernel=gather_read/pattern=preset";
        says(&format!("{preset}.kvcache"), "kv_cache");
        says(&format!("{preset}.kv_cache/with=layers=0"), "layers");
        says(&format!("{preset}.kv_cache/footprint=2GiB"), "footprint=2GiB");
        says("stream/kernel=x", "does not begin with an experiment");
        let classic = "classic/allocator";
        says(&format!("{classic}=firstfit/memory=simulated"), "perhaps first_fit");
        says(&format!("{classic}=cuda_malloc/memory=simulated"), "take memory=device");
        says(&format!("{classic}=first_fit/memory=shared"), "device or simulated");
        says(&format!("{classic}=slab/memory=simulated"), "blocks of one size");
        says(&format!("{classic}=first_fit"), "it has no memory=");
        says(&format!("{classic}=first_fit/memory=device/hole=1MiB"), "hole=1MiB");
        let latency = "latency/allocator=cuda_malloc/memory=device";
        says(&format!("{latency}/state=hole/request=1MiB"), "holes.2MiB_x10000");
        says(&format!("{latency}/state=base/request=0"), "zero bytes");
        says(&format!("{latency}/state=base"), "it has no request=");
        says(&format!("{latency}/state=steps/request=2MiB"), "vmm.chunk_2MiB");
        says(
            "latency/allocator=first_fit/memory=simulated/state=base/request=1MiB",
            "take memory=device",
        );
        let capacity = "capacity/allocator=cuda_malloc/memory=device";
        says(&format!("{capacity}/block=1MiB/freed=all/window=4GiB"), "alternate or random");
        says(&format!("{capacity}/block=3GiB/freed=random/window=4GiB"), "two blocks");
        says(&format!("{capacity}/block=1MiB/freed=random/window=big"), "window=big");
        says("bandwidth/kernel=spread/pattern=shuffled", "no kernel `spread`");
        let scatter = "bandwidth/kernel=scatter_copy/pattern=random/fragment=64B/footprint=1MiB";
        says(
            "bandwidth/kernel=gather_read.backings/pattern=random/fragment=128B/footprint=4GiB",
            "chunk=",
        );
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
        assert_eq!(plan.id(), text);
        let text = "bandwidth/kernel=gather_copy/pattern=shuffled/fragment=64B/footprint=16MiB/payload=1MiB";
        let case = parse_case(text, Suite::Quick, &DeviceKind::Cuda).unwrap();
        let Case::Bandwidth(plan) = case else { panic!("{case:?}") };
        assert_eq!((plan.case().as_str(), plan.scene.payload_bytes()), (text, 1 << 20));
    }
}
