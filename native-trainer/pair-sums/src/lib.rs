//! Sums over the numbers of two embeddings, for all pairs of two sets, on a GPU, with the digits of the processor.
//!
//! `akin-core` says what is added up and in which order: see [`akin_core::pair_sums`]. Each unit of the GPU has the sums of
//! some pairs in its registers and goes through their numbers in that order. Libraries for matrices split a sum, or
//! multiply in a shorter format.
//!
//! A term is rounded once, together with its sum. GPUs have an instruction for this, but some drivers compute it as a
//! multiplication and an addition, each rounded. [`GpuSums::open`] finds out, and then uses a [kernel] that computes
//! the error of both, and rounds once: about twenty times the work.

#![cfg(any(feature = "cuda", feature = "vulkan", feature = "wgpu"))]

mod kernel;

use akin_core::pair_sums::{LoadedItems, PairSum, PairSums};
use akin_core::{Error, Kind, Result};
use cubecl::client::Client;
use cubecl::prelude::*;
use cubecl::server::Handle;

pub use cubecl::Device;

use self::kernel::{SIDE, TILE, add_up};

/// The most numbers of a buffer, which a kernel counts with 32 bits.
const MOST_NUMBERS: u64 = 1 << 28;

/// A GPU that adds up.
pub struct GpuSums {
    client: Client,
    /// Whether it rounds a term and a sum together.
    fuses: bool,
}

impl GpuSums {
    /// Opens a GPU, and compares its sums with those of the processor.
    ///
    /// # Errors
    ///
    /// [`Kind::Device`] when the device fails, or adds up otherwise.
    pub fn open(device: &Device) -> Result<Self> {
        let client = device.client();
        for fuses in [true, false] {
            let gpu = Self { client: client.clone(), fuses };
            if gpu.agrees()? {
                return Ok(gpu);
            }
        }
        Err(Error::new(
            Kind::Device,
            format!("the sums of {} are not those of the processor", client.properties().identity.name),
            "choose another device, and update the driver of the GPU",
        ))
    }

    /// Whether the sums of some pairs are those of the processor.
    fn agrees(&self) -> Result<bool> {
        const DIMENSION: usize = 37;
        let number = |i: usize| match i % 11 {
            0 => 0.0,
            1 => (-39f32).exp2(),
            // The fractions of multiples of the golden ratio, which fill all bits.
            _ => ((i as f64 * 0.618_033_988_749_894_9).fract() - 0.5) as f32,
        };
        let rows = |count: usize, first: usize| -> Vec<f32> {
            (first..first + count * DIMENSION).map(number).collect()
        };
        let (queries, items) = (rows(70, 0), rows(130, 100_003));
        let loaded = self.load(DIMENSION, &items)?;
        for sum in [PairSum::Products, PairSum::SquaredDifferences] {
            let expected = queries
                .chunks_exact(DIMENSION)
                .flat_map(|query| items.chunks_exact(DIMENSION).map(move |item| sum.of(query, item)));
            if !loaded.add_up(sum, &queries)?.into_iter().eq(expected) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl PairSums for GpuSums {
    fn name(&self) -> String {
        self.client.properties().identity.name.clone()
    }

    /// An adapter without the instruction is likely to be a program that runs on the processor.
    fn is_quick(&self) -> bool {
        self.fuses
    }

    fn most_numbers(&self) -> usize {
        (self.client.properties().memory.max_page_size / size_of::<f32>() as u64).min(MOST_NUMBERS) as usize
    }

    fn load(&self, dimension: usize, items: &[f32]) -> Result<Box<dyn LoadedItems>> {
        let buffer = Buffer::new(&self.client, items);
        Ok(Box::new(Loaded { client: self.client.clone(), fuses: self.fuses, dimension, items: buffer }))
    }
}

/// Items in the memory of a GPU.
struct Loaded {
    client: Client,
    fuses: bool,
    dimension: usize,
    items: Buffer,
}

impl LoadedItems for Loaded {
    fn add_up(&self, sum: PairSum, queries: &[f32]) -> Result<Vec<f32>> {
        let [query_count, item_count] =
            [queries.len(), self.items.length].map(|length| length / self.dimension);
        if query_count * item_count == 0 {
            return Ok(vec![]);
        }
        let (client, queries) = (&self.client, Buffer::new(&self.client, queries));
        let length = query_count * item_count;
        let sums = Buffer { handle: client.empty(length * size_of::<f32>()), length };
        let cubes = [item_count, query_count].map(|count| count.div_ceil(TILE) as u32);
        add_up::launch(
            client,
            CubeCount::Static(cubes[0], cubes[1], 1),
            CubeDim::new_2d(SIDE as u32, SIDE as u32),
            queries.argument(),
            self.items.argument(),
            sums.argument(),
            self.dimension as u32,
            0,
            sum == PairSum::SquaredDifferences,
            self.fuses,
        );
        let bytes = client.read_one(sums.handle).map_err(|error| {
            Error::new(
                Kind::Device,
                format!("{} failed: {error}", client.properties().identity.name),
                "choose another device, and look whether another program uses the GPU",
            )
        })?;
        Ok(f32::from_bytes(&bytes).to_vec())
    }
}

/// Numbers in the memory of a GPU.
struct Buffer {
    handle: Handle,
    length: usize,
}

impl Buffer {
    fn new(client: &Client, numbers: &[f32]) -> Self {
        Self { handle: client.create_from_slice(f32::as_bytes(numbers)), length: numbers.len() }
    }

    fn argument(&self) -> BufferArg {
        let handle = self.handle.clone().binding();
        TensorBinding { handle, shape: [self.length].into(), strides: [1].into(), tiling: Default::default() }
            .into_tensor_arg()
            .into_buffer_arg()
    }
}

#[cfg(all(test, feature = "wgpu"))]
mod tests {
    use super::*;

    fn numbers(count: usize, seed: u64) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32
        };
        // Of every size between 2⁻³⁰ and 2³⁰, so that sums cancel, swallow terms and are rounded at ties.
        let number = |bits: u32, power: u32| (bits as f32 - 1e9) * (power as f32 % 60.0 - 60.0).exp2();
        (0..count).map(|_| number(next(), next())).map(|x| if x.abs() < 1e-9 { 0.0 } else { x }).collect()
    }

    #[test]
    fn every_sum_is_that_of_the_processor_to_the_last_digit() {
        let gpu = GpuSums::open(&Device::wgpu(Default::default()).unwrap()).unwrap();
        for (queries, items, dimension) in
            [(1, 1, 1), (64, 64, 16), (65, 63, 17), (3, 200, 100), (130, 7, 1000)]
        {
            let (a, b) = (numbers(queries * dimension, 1), numbers(items * dimension, 2));
            let loaded = gpu.load(dimension, &b).unwrap();
            // The second question finds the items where the first left them.
            for sum in [PairSum::Products, PairSum::SquaredDifferences] {
                let got = loaded.add_up(sum, &a).unwrap();
                assert_eq!(got.len(), queries * items);
                for (place, &got) in got.iter().enumerate() {
                    let (query, item) = (place / items, place % items);
                    let row = |rows: &[f32], row: usize| rows[row * dimension..][..dimension].to_vec();
                    let expected = sum.of(&row(&a, query), &row(&b, item));
                    assert!(got == expected, "{sum:?} {queries} {items} {dimension}: {got:e} {expected:e}");
                }
            }
        }
    }
}
