//! The fragments of a group: of one length or of any, and how kernels find them on the device.

use super::arms::Ground;
use super::scene::Scene;
use crate::device::{Buffer, DeviceError, Movement, Span};
use crate::kernel::{
    Access, ExtentOperands, Operands, Outcome, TableBuffers, copy_back, copy_back_extents,
    extents_staging_bytes, staging_bytes,
};
use crate::layout::{EntryForm, Extents, Index, Layout};
use crate::record::{HeapFacts, LayoutFacts, Order};

/// The fragments of a group.
pub(super) enum Fragments {
    /// Of one length.
    Uniform(Layout),
    /// Of any lengths, for each order.
    Varied(Box<VariedLayout>),
}

/// How kernels find the fragments of one order.
pub(super) enum Directory {
    /// An index of slots.
    Index {
        /// As the host made it.
        on_host: Index,
        /// As it lies on the device.
        on_device: Buffer,
    },
    /// A table of extents.
    Table(TableBuffers),
}

/// What an access needs beside its fragments.
#[derive(Clone, Copy)]
pub(super) struct Ends<'a> {
    pub arena: Span<'a>,
    /// Where a copy finds or leaves the payload.
    pub payload: Option<Span<'a>>,
    pub sums: Option<Span<'a>>,
}

fn refused(error: impl ToString) -> DeviceError {
    DeviceError::Refused { entry: "layout", what: error.to_string() }
}

impl Fragments {
    /// What a scene asks for.
    ///
    /// # Errors
    ///
    /// A sentence that says why there is no such layout, and what would work.
    pub fn of(scene: &Scene, ground: &Ground<'_>) -> Result<Fragments, String> {
        match scene {
            Scene::Uniform(spec) => Layout::new(*spec, ground.seed)
                .map(Fragments::Uniform)
                .map_err(|error| error.to_string()),
            Scene::Aged(heap) => ground.heaps.layout(heap, ground.device).map(Fragments::varied),
            Scene::Preset(staged) => {
                let situation = staged.preset.situation(ground.seed);
                let situation = situation.map_err(|error| error.to_string())?;
                Ok(Fragments::varied(VariedLayout::of(situation.extents, None)))
            }
        }
    }

    fn varied(layout: VariedLayout) -> Fragments {
        Fragments::Varied(Box::new(layout))
    }

    /// The heap that they lie in, where it is one.
    pub fn heap_facts(&self) -> Option<&HeapFacts> {
        match self {
            Fragments::Uniform(_) => None,
            Fragments::Varied(layout) => layout.heap_facts(),
        }
    }

    /// Bytes held by the fragments.
    pub fn payload_bytes(&self) -> u64 {
        match self {
            Fragments::Uniform(layout) => layout.payload_bytes(),
            Fragments::Varied(layout) => layout.scattered.payload_bytes(),
        }
    }

    /// Bytes of distinct lines that the packed fragments touch.
    pub fn packed_touched_bytes(&self) -> u64 {
        match self {
            Fragments::Uniform(layout) => layout.packed_touched_bytes(),
            Fragments::Varied(layout) => layout.packed.touched_bytes(),
        }
    }

    /// How long a buffer has to be that fragments are copied back through.
    pub fn staging_bytes(&self) -> u64 {
        match self {
            Fragments::Uniform(layout) => {
                staging_bytes(layout.fragment_bytes(), layout.payload_bytes())
            }
            Fragments::Varied(layout) => {
                let orders = [&layout.packed, &layout.sorted, &layout.scattered];
                orders.into_iter().map(extents_staging_bytes).max().unwrap_or(0)
            }
        }
    }

    /// Brings the directory of an order to the device.
    pub fn directory(&self, order: &Order, ground: &Ground<'_>) -> Result<Directory, DeviceError> {
        match self {
            Fragments::Uniform(layout) => {
                let on_host = layout.index(order).map_err(refused)?;
                let bytes = on_host.as_bytes();
                let on_device = ground.device.allocate(bytes.len() as u64)?;
                ground.device.upload(on_device.span(), bytes)?;
                Ok(Directory::Index { on_host, on_device })
            }
            Fragments::Varied(layout) => {
                TableBuffers::upload(ground.device, layout.extents(order)?).map(Directory::Table)
            }
        }
    }

    /// An access to the fragments in an order, through its directory where the kernel follows one.
    pub fn access<'a>(
        &'a self,
        movement: Movement,
        order: &Order,
        directory: Option<&'a Directory>,
        ends: Ends<'a>,
        data_key: u64,
    ) -> Result<Access<'a>, DeviceError> {
        let Ends { arena, payload, sums } = ends;
        match (self, directory) {
            (Fragments::Uniform(layout), None) => {
                let operands = Operands { index: None, payload, sums };
                Access::of_layout(movement, layout, order, arena, operands, data_key)
            }
            (Fragments::Uniform(layout), Some(Directory::Index { on_device, .. })) => {
                let operands = Operands { index: Some(on_device.span()), payload, sums };
                Access::of_layout(movement, layout, order, arena, operands, data_key)
            }
            (Fragments::Varied(layout), Some(Directory::Table(table))) => {
                let operands = ExtentOperands { table: table.spans(), payload, sums };
                let extents = layout.extents(order)?;
                Access::of_extents(movement, extents, arena, operands, data_key)
            }
            _ => Err(refused("the directory is one of other fragments")),
        }
    }

    /// The metrics of the layout, from the directories that there are.
    pub fn facts(
        &self,
        directories: &[(Order, Directory)],
    ) -> Result<Option<LayoutFacts>, DeviceError> {
        let layout = match self {
            Fragments::Uniform(layout) => layout,
            Fragments::Varied(layout) => return Ok(Some(layout.scattered.facts())),
        };
        let find = |order: Order| {
            directories.iter().find_map(|(own, directory)| match directory {
                Directory::Index { on_host, .. } if *own == order => Some(on_host),
                _ => None,
            })
        };
        Ok(match (find(Order::Sorted), find(Order::Scattered)) {
            (Some(sorted), Some(scattered)) => Some(layout.facts(sorted, scattered)),
            // Without indices: a strided gather, or competitors in one order only.
            (_, scattered) => match (layout.strided_facts(), scattered) {
                (Some(facts), _) => Some(facts),
                (None, Some(scattered)) => {
                    let sorted = layout.index(&Order::Sorted).map_err(refused)?;
                    Some(layout.facts(&sorted, scattered))
                }
                (None, None) => None,
            },
        })
    }

    /// The host's own look at an order: what lies on the device is copied back and compared. None
    /// where the device's own check has seen all that this would see.
    pub fn copy_back(
        &self,
        order: &Order,
        directory: &Directory,
        (arena, staging): (Span<'_>, Span<'_>),
        ground: &Ground<'_>,
    ) -> Result<Option<Outcome>, DeviceError> {
        let Ground { device, data_key, .. } = *ground;
        match (self, directory) {
            // The layout itself, and what the device has no closed form to check against.
            (Fragments::Uniform(layout), Directory::Index { on_host, on_device })
                if *order == Order::Scattered || layout.slot(order, 0).is_none() =>
            {
                let spans = (arena, on_device.span(), staging);
                copy_back(device, layout, order, on_host, spans, data_key).map(Some)
            }
            (Fragments::Varied(layout), Directory::Table(table)) => {
                let extents = layout.extents(order)?;
                let spans = (arena, staging);
                copy_back_extents(device, extents, table.spans(), spans, data_key).map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// Fragments of any lengths in every order, with entries of one form.
pub(super) struct VariedLayout {
    packed: Extents,
    sorted: Extents,
    scattered: Extents,
    /// The heap that they lie in, where it is one.
    heap: Option<HeapFacts>,
}

impl VariedLayout {
    /// The heap that they lie in, where it is one.
    pub fn heap_facts(&self) -> Option<&HeapFacts> {
        self.heap.as_ref()
    }

    /// Fragments in their own order, and what else they are compared in.
    pub fn of(scattered: Extents, heap: Option<HeapFacts>) -> VariedLayout {
        let (packed, sorted) = (scattered.packed(), scattered.sorted());
        let forms = [&packed, &sorted, &scattered].map(Extents::entry_form);
        let form = forms.into_iter().max().unwrap_or(EntryForm::Narrow);
        let [packed, sorted, scattered] =
            [packed, sorted, scattered].map(|extents| extents.with_entries_at_least(form));
        VariedLayout { packed, sorted, scattered, heap }
    }

    /// The extents of an order.
    fn extents(&self, order: &Order) -> Result<&Extents, DeviceError> {
        match order {
            Order::Packed => Ok(&self.packed),
            Order::Sorted => Ok(&self.sorted),
            Order::Scattered => Ok(&self.scattered),
            Order::Other(name) => Err(refused(format!("there is no order `{name}`"))),
        }
    }
}
