//! The kernel. Each cube computes the sums of 64 queries with 64 items, and each of its units those of 4 queries with 4
//! items.
//!
//! A cube takes 16 numbers of each of its embeddings into shared memory at a time, so that each is read from the
//! memory of the GPU once for 64 pairs.

use cubecl::prelude::*;

/// The queries and the items of a cube.
pub(crate) const TILE: usize = 64;
/// The units along each side of a cube.
pub(crate) const SIDE: usize = 16;
/// The queries and the items of a unit.
const EACH: usize = TILE / SIDE;
/// The numbers of each embedding that a cube holds at a time.
const DEPTH: usize = 16;
/// One number of all embeddings of a tile in shared memory. It has one place more than a tile, so that units that
/// write numbers of one embedding meet different banks.
const ROW: usize = TILE + 1;

/// Writes the sums of queries [Q, d] with items [N, d] to [Q, N]: of squared differences or else of products. `zero` is 0,
/// which the compiler of the driver must not know.
#[cube(launch)]
pub(crate) fn add_up(
    queries: &[f32],
    items: &[f32],
    sums: &mut [f32],
    dimension: u32,
    zero: u32,
    #[comptime] squared: bool,
    #[comptime] fuses: bool,
) {
    let dimension = dimension as usize;
    let query_count = queries.len() / dimension;
    let item_count = items.len() / dimension;
    let mut query_tile = Shared::new_slice(comptime!(DEPTH * ROW));
    let mut item_tile = Shared::new_slice(comptime!(DEPTH * ROW));
    let first_query = CUBE_POS_Y as usize * TILE;
    let first_item = CUBE_POS_X as usize * TILE;
    let x = UNIT_POS_X as usize;
    let y = UNIT_POS_Y as usize;
    let mut tile = Array::<f32>::new(comptime!(EACH * EACH));
    #[unroll]
    for pair in 0..EACH * EACH {
        tile[pair] = 0.0;
    }
    let mut first = 0usize;
    while first < dimension {
        #[unroll]
        for part in 0..TILE * DEPTH / (SIDE * SIDE) {
            let place = UNIT_POS as usize + part * (SIDE * SIDE);
            let row = place / DEPTH;
            let column = place % DEPTH;
            let number = first + column;
            // Zeros behind the last number and the last embedding change no sum.
            let mut query = 0.0f32;
            let mut item = 0.0f32;
            if number < dimension {
                if first_query + row < query_count {
                    query = queries[(first_query + row) * dimension + number];
                }
                if first_item + row < item_count {
                    item = items[(first_item + row) * dimension + number];
                }
            }
            query_tile[column * ROW + row] = query;
            item_tile[column * ROW + row] = item;
        }
        sync_cube();
        for k in 0..DEPTH {
            #[unroll]
            for q in 0..EACH {
                let query = query_tile[k * ROW + y + q * SIDE];
                #[unroll]
                for i in 0..EACH {
                    let item = item_tile[k * ROW + x + i * SIDE];
                    let pair = comptime!(q * EACH + i);
                    if comptime!(squared) {
                        let difference = query - item;
                        tile[pair] = multiply_add(difference, difference, tile[pair], zero, fuses);
                    } else {
                        tile[pair] = multiply_add(query, item, tile[pair], zero, fuses);
                    }
                }
            }
        }
        sync_cube();
        first += DEPTH;
    }
    #[unroll]
    for q in 0..EACH {
        let query = first_query + y + q * SIDE;
        #[unroll]
        for i in 0..EACH {
            let item = first_item + x + i * SIDE;
            if query < query_count && item < item_count {
                sums[query * item_count + item] = tile[comptime!(q * EACH + i)];
            }
        }
    }
}

/// x·y + sum, rounded once.
///
/// Without the instruction, Boldo and Melquiond's algorithm (Emulation of FMA and correctly rounded sums, 2008): product and
/// sum are computed with their errors, and the errors are added with rounding to odd, so that the last rounding is the only
/// one that counts.
#[cube]
fn multiply_add(x: f32, y: f32, sum: f32, zero: u32, #[comptime] fuses: bool) -> f32 {
    if comptime!(fuses) {
        fma(x, y, sum)
    } else {
        let product = rounded(x * y, zero);
        let product_error = product_error(x, y, product, zero);
        let low = rounded(sum + product_error, zero);
        let low_error = sum_error(sum, product_error, low, zero);
        let high = rounded(product + low, zero);
        let high_error = sum_error(product, low, high, zero);
        high + add_to_odd(low_error, high_error, zero)
    }
}

/// A number as it was rounded. Drivers compute (a + b) − a as b, unless something that they cannot see through stands between.
#[cube]
fn rounded(x: f32, zero: u32) -> f32 {
    f32::reinterpret(u32::reinterpret(x) ^ zero)
}

/// x·y − product, exactly (Dekker): both factors are cut into halves of 12 bits, whose products are exact.
#[cube]
fn product_error(x: f32, y: f32, product: f32, zero: u32) -> f32 {
    let x_high = f32::reinterpret(u32::reinterpret(x) & 0xffff_f000u32);
    let y_high = f32::reinterpret(u32::reinterpret(y) & 0xffff_f000u32);
    let x_low = x - x_high;
    let y_low = y - y_high;
    let above = product - rounded(x_high * y_high, zero);
    let above = rounded(above - rounded(x_low * y_high, zero), zero);
    let above = rounded(above - rounded(x_high * y_low, zero), zero);
    rounded(x_low * y_low, zero) - above
}

/// a + b − sum, exactly (Knuth).
#[cube]
fn sum_error(a: f32, b: f32, sum: f32, zero: u32) -> f32 {
    let b_part = rounded(sum - a, zero);
    let a_part = sum - b_part;
    (a - a_part) + (b - b_part)
}

/// a + b, rounded to the neighbour whose last bit is 1 if the sum is not exact.
#[cube]
fn add_to_odd(a: f32, b: f32, zero: u32) -> f32 {
    let sum = rounded(a + b, zero);
    let error = sum_error(a, b, sum, zero);
    let mut bits = u32::reinterpret(sum);
    if error != 0.0 && bits % 2 == 0 {
        if (error > 0.0) == (sum > 0.0) {
            bits += 1u32;
        } else {
            bits -= 1u32;
        }
    }
    f32::reinterpret(bits)
}
