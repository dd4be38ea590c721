//! Launches on fragments of varying length, checked against their buffers.

use super::super::bindings::varied_task;
use super::super::launch::{Task, Work, address_of};
use super::super::{DeviceError, Entry, Launch, Movement, SUM_BYTES, Span};
use super::VariedEntry;
use crate::layout::{EntryForm, MAX_FRAGMENTS, NARROW_BYTES, Table, UNIT_BYTES};

/// The shape of a launch: what extents look like to a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariedShape {
    /// The form of the entries.
    pub form: EntryForm,
    /// Fragments.
    pub fragments: u64,
    /// Pieces that belong to them: see [`Tally::pieces`](crate::layout::Tally::pieces).
    pub pieces: u64,
    /// Units of payload in them, of the form's [width](EntryForm::unit_bytes).
    pub units: u64,
    /// From the arena's begin to the end of the last piece of any fragment, in bytes.
    pub reach_bytes: u64,
    /// Units of the arena that are looked at for gaps.
    pub arena_units: u64,
    /// Key of the data.
    pub data_key: u64,
}

/// What a launch on extents reads and writes.
#[derive(Clone, Copy, Debug, Default)]
pub struct VariedSpans<'a> {
    /// Read by the kernel: the arena of a gather, the payload of a scatter.
    pub source: Option<Span<'a>>,
    /// Written (or checked): the payload of a gather, the arena of a scatter.
    pub destination: Option<Span<'a>>,
    /// The entries of the [table](Table).
    pub entries: Option<Span<'a>>,
    /// Its ranks.
    pub ranks: Option<Span<'a>>,
    /// [`SUM_BYTES`] of sums.
    pub sums: Option<Span<'a>>,
    /// The [places](crate::layout::Places) in the order of the visits: for checks only.
    pub places: Option<Span<'a>>,
    /// Those in address order: for checks only.
    pub ranges: Option<Span<'a>>,
}

/// Bytes of a place: `struct fb_place` of `cuda/varied.h`.
const PLACE_BYTES: u64 = 24;
/// Bytes of a range: `struct fb_range` of `cuda/varied.h`.
const RANGE_BYTES: u64 = 16;
/// Bytes of a rank: `struct fb_rank` of `cuda/varied.h`.
const RANK_BYTES: u64 = 8;

impl VariedShape {
    fn check(&self) -> Result<(), &'static str> {
        let VariedShape { form, fragments, pieces, units, reach_bytes, .. } = *self;
        if fragments == 0 || pieces == 0 || units == 0 {
            return Err("there is nothing to do");
        }
        if fragments > MAX_FRAGMENTS || fragments > pieces {
            return Err("there are more fragments than a table can have");
        }
        // Each piece holds a word of its fragment at least.
        let fits = match form {
            EntryForm::Ragged => pieces <= units && units.div_ceil(4) <= pieces,
            _ => pieces == units,
        };
        if !fits {
            return Err("the payload does not fit its pieces");
        }
        if !reach_bytes.is_multiple_of(UNIT_BYTES) {
            return Err("the arena's reach is not whole pieces");
        }
        if form == EntryForm::Narrow && reach_bytes > NARROW_BYTES {
            return Err("entries of 4 B do not reach the end of the arena");
        }
        Ok(())
    }
}

impl<'a> Launch<'a> {
    /// A launch of `entry` on fragments of varying length. Whatever the kernel addresses directly is
    /// checked to lie inside the spans, and the arena to reach to the end of the last piece; what the
    /// table *says* is data: it is checked on the device ([`VariedEntry::CheckEntries`],
    /// [`VariedEntry::CheckRanks`]) before a kernel follows it.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Refused`] names what is missing, too short, or does not fit the kernel.
    pub fn varied(
        entry: VariedEntry,
        spans: VariedSpans<'a>,
        shape: VariedShape,
    ) -> Result<Launch<'a>, DeviceError> {
        let own = Entry::Varied(entry);
        let refused =
            |what: &str| DeviceError::Refused { entry: entry.kind(), what: what.to_owned() };
        shape.check().map_err(refused)?;
        let need = |what: &str, span: Option<Span<'a>>, bytes: Option<u64>, alignment: u64| {
            address_of(own, what, span, bytes, alignment)
        };
        let VariedShape { form, fragments, pieces, units, .. } = shape;
        let unit_bytes = u64::from(form.unit_bytes());
        let arena = Some(shape.reach_bytes);
        let payload = units.checked_mul(unit_bytes);
        let mut task = varied_task {
            pieces,
            fragments,
            units,
            arena_units: shape.arena_units,
            data_key: shape.data_key,
            entry_bytes: form.bytes(),
            unit_bytes: form.unit_bytes(),
            ..varied_task::default()
        };
        // Whole pieces of both ends are moved at once, wherever they lie alike.
        let source = |bytes| need("source", spans.source, bytes, UNIT_BYTES);
        let destination = |bytes| need("destination", spans.destination, bytes, UNIT_BYTES);
        match entry {
            VariedEntry::Move(mover) => {
                if mover.form != form {
                    return Err(refused("the kernel takes entries of another form"));
                }
                match mover.movement {
                    Movement::GatherRead => task.source = source(arena)?,
                    Movement::GatherCopy => {
                        (task.source, task.destination) = (source(arena)?, destination(payload)?);
                    }
                    Movement::ScatterCopy => {
                        (task.source, task.destination) = (source(payload)?, destination(arena)?);
                    }
                    _ => return Err(refused("there is no such kernel")),
                }
            }
            VariedEntry::CheckGathered => task.destination = destination(payload)?,
            VariedEntry::CheckScattered => task.destination = destination(arena)?,
            VariedEntry::CheckGaps => {
                if shape.arena_units == 0 {
                    return Err(refused("there is nothing to do"));
                }
                task.destination = destination(shape.arena_units.checked_mul(unit_bytes))?;
            }
            _ => {}
        }
        let is_move = matches!(entry, VariedEntry::Move(_));
        if is_move || entry == VariedEntry::CheckEntries {
            let width = u64::from(form.bytes());
            task.entries = need("table", spans.entries, fragments.checked_mul(width), width)?;
        }
        if is_move || entry == VariedEntry::CheckRanks {
            let bytes = Table::ranks(pieces).checked_mul(RANK_BYTES);
            task.ranks = need("directory of ranks", spans.ranks, bytes, UNIT_BYTES)?;
        }
        if entry == VariedEntry::CheckGaps {
            let bytes = fragments.checked_mul(RANGE_BYTES);
            task.ranges = need("list of ranges", spans.ranges, bytes, 8)?;
        } else if !is_move {
            let bytes = (fragments + 1).checked_mul(PLACE_BYTES);
            task.places = need("list of places", spans.places, bytes, 8)?;
        }
        if entry.adds_to_sums() {
            task.sums = need("sums", spans.sums, Some(SUM_BYTES), 8)?;
        }
        Ok(Launch::of(Work::Kernel { entry: own, task: Task::Varied(task) }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Device;
    use super::super::super::scripted::{Scripted, at_rate};
    use super::super::VariedMover;
    use super::*;
    use crate::device::Variant;

    /// Why a gather read of such a shape is refused; empty where it is not.
    fn refusal(change: impl Fn(&mut VariedShape), form: EntryForm) -> String {
        let device = Scripted::new(1 << 40, |timed| at_rate(timed, 1.0));
        let buffer = device.allocate(1 << 38).unwrap();
        let all = Some(buffer.span());
        let spans = VariedSpans {
            source: all,
            destination: all,
            entries: all,
            ranks: all,
            sums: all,
            places: all,
            ranges: all,
        };
        let mut shape = VariedShape {
            form,
            fragments: 3,
            pieces: 10,
            units: if form == EntryForm::Ragged { 35 } else { 10 },
            reach_bytes: 1024,
            arena_units: 0,
            data_key: 0,
        };
        change(&mut shape);
        let (movement, variant) = (Movement::GatherRead, Variant::Default);
        let entry = VariedEntry::Move(VariedMover { movement, form, variant });
        Launch::varied(entry, spans, shape)
            .map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn impossible_shapes_are_refused() {
        use EntryForm::{Narrow, Ragged, Wide};
        for form in EntryForm::ALL {
            assert_eq!(refusal(|_| (), form), "");
            let nothing = refusal(|shape| shape.fragments = 0, form);
            assert!(nothing.contains("there is nothing to do"), "{nothing}");
            let many = refusal(|shape| shape.fragments = 11, form);
            assert!(many.contains("more fragments than"), "{many}");
            let uneven = refusal(|shape| shape.reach_bytes = 1032, form);
            assert!(uneven.contains("not whole pieces"), "{uneven}");
            let other =
                refusal(|shape| shape.form = if form == Wide { Narrow } else { Wide }, form);
            assert!(!other.is_empty());
        }
        for (form, units) in [(Narrow, 9), (Wide, 11), (Ragged, 41), (Ragged, 9)] {
            let short = refusal(|shape| shape.units = units, form);
            assert!(short.contains("does not fit its pieces"), "{form:?} {units} {short}");
        }
        assert_eq!(refusal(|shape| shape.units = 40, Ragged), "");
        assert_eq!(refusal(|shape| shape.units = 10, Ragged), "");
        let far = |form| refusal(|shape| shape.reach_bytes = NARROW_BYTES + 16, form);
        assert!(far(Narrow).contains("do not reach the end of the arena"));
        assert_eq!((far(Wide), far(Ragged)), (String::new(), String::new()));
        let other = refusal(|shape| shape.form = Wide, Narrow);
        assert!(other.contains("entries of another form"), "{other}");
    }

    #[test]
    fn only_gathers_and_scatters_take_extents() {
        let shape = VariedShape {
            form: EntryForm::Wide,
            fragments: 1,
            pieces: 1,
            units: 1,
            reach_bytes: 16,
            arena_units: 0,
            data_key: 0,
        };
        let (movement, form, variant) = (Movement::Copy, EntryForm::Wide, Variant::Default);
        let entry = VariedEntry::Move(VariedMover { movement, form, variant });
        let copy = Launch::varied(entry, VariedSpans::default(), shape);
        assert!(copy.unwrap_err().to_string().contains("no such kernel"));
        let gaps = Launch::varied(VariedEntry::CheckGaps, VariedSpans::default(), shape);
        assert!(gaps.unwrap_err().to_string().contains("nothing to do"));
        let uniform = crate::device::Shape { units: 1, ..Default::default() };
        let launch = Launch::kernel(Entry::Varied(entry), Default::default(), uniform);
        assert!(launch.unwrap_err().to_string().contains("takes extents"));
    }
}
