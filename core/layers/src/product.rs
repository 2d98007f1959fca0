//! Products of six rows with a panel of 32 columns: the kernel of every convolution and of both its gradients.
//!
//! A column of the product stands in one lane of a vector. The terms of a sum are added in their order, with one fused
//! multiply-add each where the machine has it. So a number depends neither on the columns beside it nor on the length of
//! the machine's vectors.
//!
//! The sums of a tile stay in registers while its rows and its panel are read. The compiler makes vector instructions of
//! the loops over arrays: once for each instruction set of the machine's family, of which the best is chosen when the
//! program runs.

use macerator::{Simd, with_simd};

/// The columns of a panel: two of the widest vectors.
pub(crate) const LANES: usize = 32;

/// The rows of a tile.
pub(crate) const ROWS: usize = 6;

/// The terms that a tile adds up at a time. A panel of this depth and its rows stay in the nearest caches.
pub(crate) const DEPTH: usize = 256;

/// The panels of a block. With its rows it stays in the second-level cache.
pub(crate) const PANELS: usize = 8;

/// Sums of six rows with the columns of a panel.
pub(crate) type Tile = [[f32; LANES]; ROWS];

/// Adds Σₖ rows\[r\]\[k\] · panel\[k\]\[c\] to tile\[r\]\[c\]. Only the first `columns` columns have to be right, which may be
/// more than the panel has.
#[with_simd]
pub(crate) fn add_products<'a, S: Simd>(
    rows: &'a [&'a [f32]; ROWS],
    panel: &'a [[f32; LANES]],
    columns: usize,
    tile: &'a mut Tile,
) {
    add_with_lanes(S::lanes32(), rows, panel, columns, tile);
}

/// The same for vectors of some lanes. The registers hold the sums of six rows with two vectors, and what is multiplied.
#[inline(always)]
fn add_with_lanes(
    lanes: usize,
    rows: &[&[f32]; ROWS],
    panel: &[[f32; LANES]],
    columns: usize,
    tile: &mut Tile,
) {
    let columns = columns.min(LANES);
    match lanes {
        16 if columns > 16 => add::<true, 32>(rows, panel, columns, tile),
        16 | 8 => add::<true, 16>(rows, panel, columns, tile),
        // The first x86-64 processors and WebAssembly have no fused multiply-add, and half as many registers as ARM's.
        _ if cfg!(any(target_arch = "wasm32", target_arch = "x86_64")) => {
            add::<false, 8>(rows, panel, columns, tile);
        }
        _ => add::<true, 16>(rows, panel, columns, tile),
    }
}

/// The same, `L` columns at a time.
#[inline(always)]
fn add<const FUSED: bool, const L: usize>(
    rows: &[&[f32]; ROWS],
    panel: &[[f32; LANES]],
    columns: usize,
    tile: &mut Tile,
) {
    for first in (0..columns).step_by(L) {
        let sums = products::<FUSED, L>(*rows, panel, first);
        for r in 0..ROWS {
            // Arrays of one length and plain indices: the compiler adds them as vectors, and keeps sums in registers.
            let numbers = &mut tile[r].as_chunks_mut::<L>().0[first / L];
            for i in 0..L {
                numbers[i] += sums[r][i];
            }
        }
    }
}

/// The sums of the rows with `L` columns of a panel.
///
/// The rows are slices of their own, and the sums begin at zero and are returned: only so does the compiler keep the sums
/// in registers.
#[inline(always)]
fn products<const FUSED: bool, const L: usize>(
    rows: [&[f32]; ROWS],
    panel: &[[f32; LANES]],
    first: usize,
) -> [[f32; L]; ROWS] {
    // Equal lengths, so that no access needs a check.
    let mut equal: [&[f32]; ROWS] = [&[]; ROWS];
    for r in 0..ROWS {
        equal[r] = &rows[r][..panel.len()];
    }
    let mut sums = [[0.0; L]; ROWS];
    for (k, numbers) in panel.iter().enumerate() {
        let numbers = &numbers[first..first + L];
        for r in 0..ROWS {
            let x = equal[r][k];
            for i in 0..L {
                sums[r][i] =
                    if FUSED { x.mul_add(numbers[i], sums[r][i]) } else { x * numbers[i] + sums[r][i] };
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_every_length_give_the_same_sums() {
        let number = |i: usize| ((i * 7919 + 11) % 10007) as f32 / 5003.0 - 1.0;
        let rows: Vec<Vec<f32>> = (0..ROWS).map(|r| (0..70).map(|k| number(r * 70 + k)).collect()).collect();
        let rows = std::array::from_fn(|r| &rows[r][..]);
        let panel: Vec<[f32; LANES]> =
            (0..70).map(|k| std::array::from_fn(|lane| number(k * LANES + lane))).collect();
        // More columns than a panel has are those of the panels behind it.
        for columns in [1, 15, 16, 17, 32, 33, 500] {
            let tile = |lanes: usize| {
                let mut tile = [[1.0; LANES]; ROWS];
                add_with_lanes(lanes, &rows, &panel, columns, &mut tile);
                tile.map(|row| row[..columns.min(LANES)].to_vec())
            };
            assert_eq!(tile(8), tile(16), "{columns} columns");
            // Without fused multiply-adds the last digits differ.
            for (sum, expected) in tile(4).iter().flatten().zip(tile(16).iter().flatten()) {
                assert!((sum - expected).abs() < 1e-5, "{columns} columns: {sum} instead of {expected}");
            }
        }
    }
}
