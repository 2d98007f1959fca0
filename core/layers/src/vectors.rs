//! Vectors of the machine as slices of as many numbers as they have lanes.
//!
//! The page is linked for size, and then the compiler makes no vectors of loops. So what a picture in the page waits for
//! uses vectors by name.

use macerator::{Simd, Vector};

#[inline(always)]
pub(crate) fn load<S: Simd>(numbers: &[f32]) -> Vector<S, f32> {
    bytemuck::pod_read_unaligned(bytemuck::cast_slice(numbers))
}

#[inline(always)]
pub(crate) fn store<S: Simd>(vector: Vector<S, f32>, numbers: &mut [f32]) {
    bytemuck::cast_slice_mut(numbers).copy_from_slice(bytemuck::bytes_of(&vector));
}
