//! Moments of an optimizer, where an allocator puts them in a training step.

use super::PresetError;
use super::Situation;
use super::parameters::Parameter;
use crate::layout::{Extents, Fragment, UNIT_BYTES};
use crate::policy::{Growth, Params, Placement, Policy, PolicyError, PolicyName, SimulatedSource};
use crate::record::Mechanism;

/// Bytes of a parameter, a gradient or a moment: single precision.
const PARAMETER_BYTES: u64 = 4;

/// Bytes of an element of an activation: half precision.
const ACTIVATION_BYTES: u64 = 2;

/// Activations that a layer keeps for its backward pass, in widths: both norms, queries with keys and
/// values, attention, its projection, the hidden layer before and behind its function, the output.
const ACTIVATIONS: [u64; 8] = [1, 3, 1, 1, 1, 4, 4, 1];

/// What the simulated source is made of: the granule of CUDA's virtual memory management.
const GRANULE_BYTES: u64 = 2 << 20;

/// An optimizer's pass over the two moments of every parameter (Adam: Kingma and Ba, ICLR 2015), in
/// the order of the parameters, where a policy puts them.
///
/// As frameworks do it, moments are made at the end of the first step: between parameters, gradients
/// and what activations have left free. A layer has twelve parameters, those of GPT-2 (Radford et
/// al., 2019); the default is its smallest model, of 124 million parameters: 12 layers of width 768,
/// 50,257 tokens, a context of 1,024, with 8,192 tokens a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Optimizer {
    /// Layers of the model.
    pub layers: u64,
    /// Elements of an embedding.
    pub width: u64,
    /// Tokens that it knows.
    pub vocabulary: u64,
    /// Tokens that it looks back on.
    pub context: u64,
    /// Tokens of a step, of all its sequences.
    pub step_tokens: u64,
    /// Who places the tensors.
    pub policy: PolicyName,
}

impl Default for Optimizer {
    fn default() -> Self {
        Self {
            layers: 12,
            width: 768,
            vocabulary: 50_257,
            context: 1024,
            step_tokens: 8192,
            policy: PolicyName::BestFit,
        }
    }
}

impl Optimizer {
    pub(super) const NAME: &'static str = "optimizer";

    pub(super) fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::count("layers", &mut self.layers, 1024),
            Parameter::count("width", &mut self.width, 1 << 16),
            Parameter::count("vocabulary", &mut self.vocabulary, 1 << 24),
            Parameter::count("context", &mut self.context, 1 << 24),
            Parameter::count("tokens", &mut self.step_tokens, 1 << 24),
            Parameter::policy("policy", &mut self.policy),
        ]
    }

    /// Elements of each parameter: of both embeddings, of each layer, of the last norm.
    pub fn elements(&self) -> Vec<u64> {
        let Optimizer { layers, width, vocabulary, context, .. } = *self;
        let embeddings = [vocabulary * width, context * width];
        let layers = (0..layers).flat_map(|_| layer_elements(width));
        embeddings.into_iter().chain(layers).chain([width, width]).collect()
    }

    pub(super) fn situation(&self) -> Result<Situation, PresetError> {
        let moments = self.place_moments()?;
        let base = moments.iter().map(|moment| moment.offset).min().unwrap_or(0);
        let end = moments.iter().map(Fragment::end).max().unwrap_or(0);
        let relative = |moment: &Fragment| Fragment { offset: moment.offset - base, ..*moment };
        let words = format!(
            "an optimizer goes over both moments of the {} parameters of a transformer with {} \
             layers of width {}, as {} placed them at the end of a first step",
            moments.len() / 2,
            self.layers,
            self.width,
            self.policy
        );
        Ok(Situation {
            extents: Extents::new(moments.iter().map(relative).collect(), end - base)?,
            mechanism: Mechanism::Placement,
            words,
        })
    }

    /// A first step on the policy: both moments of each parameter, at their addresses.
    fn place_moments(&self) -> Result<Vec<Fragment>, PresetError> {
        let elements = self.elements();
        let mut heap = self.heap(&elements)?;
        for elements in &elements {
            heap.make(elements * PARAMETER_BYTES)?;
        }
        let mut activations: Vec<Vec<u64>> = Vec::new();
        for _ in 0..self.layers {
            let bytes = |widths: &u64| widths * self.width * self.step_tokens * ACTIVATION_BYTES;
            let made: Result<_, _> =
                ACTIVATIONS.iter().map(|widths| heap.make(bytes(widths))).collect();
            activations.push(made?);
        }
        let mut gradients = Vec::new();
        // The last norm, then layer by layer from the last, then the embeddings.
        for bytes in [self.width, self.width] {
            gradients.push(heap.make(bytes * PARAMETER_BYTES)?);
        }
        for layer in activations.into_iter().rev() {
            for elements in layer_elements(self.width).into_iter().rev() {
                gradients.push(heap.make(elements * PARAMETER_BYTES)?);
            }
            layer.into_iter().rev().try_for_each(|activation| heap.free(activation))?;
        }
        for elements in elements[..2].iter().rev() {
            gradients.push(heap.make(elements * PARAMETER_BYTES)?);
        }
        let mut moments = Vec::new();
        for elements in &elements {
            let bytes = (elements * PARAMETER_BYTES).next_multiple_of(UNIT_BYTES);
            for _ in 0..2 {
                moments.push(Fragment { offset: heap.make(bytes)?, bytes });
            }
        }
        Ok(moments)
    }

    /// A heap for a step, four times what it needs, so that no policy is short of memory.
    fn heap(&self, elements: &[u64]) -> Result<Heap, PresetError> {
        let parameter_bytes: u64 = elements.iter().sum::<u64>() * PARAMETER_BYTES;
        let widths: u64 = ACTIVATIONS.iter().sum();
        let activation_bytes =
            self.layers * widths * self.width * self.step_tokens * ACTIVATION_BYTES;
        let need_bytes = 4 * parameter_bytes + activation_bytes;
        let capacity_bytes = (4 * need_bytes).next_multiple_of(GRANULE_BYTES);
        let source = SimulatedSource::new(capacity_bytes, GRANULE_BYTES, Placement::Contiguous)?;
        let params = Params::default().with_growth(Growth::Whole);
        Ok(Heap { policy: self.policy.build(source, &params)? })
    }
}

/// The twelve parameters of a layer: norm, queries with keys and values, projection, norm, hidden
/// layer, output; of each weight and bias.
fn layer_elements(width: u64) -> [u64; 12] {
    let square = width * width;
    [
        width,
        width,
        3 * square,
        3 * width,
        square,
        width,
        width,
        width,
        4 * square,
        4 * width,
        4 * square,
        width,
    ]
}

struct Heap {
    policy: Box<dyn Policy>,
}

impl Heap {
    fn make(&mut self, bytes: u64) -> Result<u64, PresetError> {
        let made = self.policy.allocate(bytes);
        made.map(|block| block.address).map_err(|failure| self.failed(failure))
    }

    fn free(&mut self, address: u64) -> Result<(), PresetError> {
        self.policy.free(address).map_err(|failure| self.failed(failure))
    }

    fn failed(&self, failure: PolicyError) -> PresetError {
        PresetError::Policy { policy: self.policy.name(), failure }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_are_those_of_gpt_2() {
        let sum = |optimizer: Optimizer| optimizer.elements().iter().sum::<u64>();
        // As Hugging Face's `gpt2` and `gpt2-xl` count them.
        assert_eq!(sum(Optimizer::default()), 124_439_808);
        let xl = Optimizer { layers: 48, width: 1600, ..Optimizer::default() };
        assert_eq!(sum(xl), 1_557_611_200);
        assert_eq!(Optimizer::default().elements().len(), 148);
    }
}
