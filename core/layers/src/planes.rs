//! Maps of pictures, laid out so that what a window meets lies in runs.
//!
//! A window that moves by a stride of s meets every s-th number of a row. [`Planes`] sets those side by side: the numbers
//! of a map, with a border of zeros around it, are dealt out to s × s smaller planes by the remainders of their row and
//! column. Then each number of a window meets consecutive numbers of one plane while the window moves along a row.

/// How one map [H, W] is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planes {
    /// H and W.
    size: [usize; 2],
    /// The rows of zeros above and the columns of zeros before the map.
    border: [usize; 2],
    stride: [usize; 2],
    /// The height and width of a plane.
    plane: [usize; 2],
}

impl Planes {
    /// The layout of a map with a border before it and, so that the whole is `extent` large, behind it. A map may extend
    /// beyond that; what does is left out.
    pub(crate) fn new(size: [usize; 2], border: [usize; 2], extent: [usize; 2], stride: [usize; 2]) -> Self {
        let plane = [extent[0].div_ceil(stride[0]), extent[1].div_ceil(stride[1])];
        Self { size, border, stride, plane }
    }

    /// Whether the layout of a map is the map itself.
    pub(crate) fn is_plain(&self) -> bool {
        self.border == [0, 0] && self.stride == [1, 1] && self.plane == self.size
    }

    /// The numbers of one map in this layout.
    pub(crate) fn len(&self) -> usize {
        self.stride[0] * self.stride[1] * self.plane[0] * self.plane[1]
    }

    /// The width of a plane: how far a number lies behind that one row of the output above it.
    pub(crate) fn pitch(&self) -> usize {
        self.plane[1]
    }

    /// The place of what stands `y` rows and `x` columns behind the first number of the border.
    pub(crate) fn place(&self, [y, x]: [usize; 2]) -> usize {
        let [sy, sx] = self.stride;
        ((y % sy * sx + x % sx) * self.plane[0] + y / sy) * self.plane[1] + x / sx
    }

    /// The numbers of one map.
    pub(crate) fn map(&self) -> usize {
        self.size[0] * self.size[1]
    }

    /// Writes maps, one after another, in this layout.
    pub(crate) fn fill(&self, maps: &[f32], target: &mut [f32]) {
        let [height, width] = self.size;
        target.fill(0.0);
        let [sy, sx] = self.stride;
        let [plane_height, plane_width] = self.plane;
        let rows = height.min((plane_height * sy).saturating_sub(self.border[0]));
        for (map, target) in maps.chunks_exact(height * width).zip(target.chunks_exact_mut(self.len())) {
            for (y, row) in map.chunks_exact(width).take(rows).enumerate() {
                let y = y + self.border[0];
                for x in 0..sx {
                    // The first number of the row with this remainder.
                    let skip = (x + sx - self.border[1] % sx) % sx;
                    let place = self.place([y, self.border[1] + skip]);
                    let room = plane_width - ((self.border[1] + skip) / sx).min(plane_width);
                    let Some(numbers) = row.get(skip..) else { continue };
                    if sx == 1 {
                        let length = room.min(numbers.len());
                        target[place..][..length].copy_from_slice(&numbers[..length]);
                    } else {
                        let target = target.get_mut(place..).unwrap_or_default();
                        for (target, number) in target.iter_mut().take(room).zip(numbers.iter().step_by(sx)) {
                            *target = *number;
                        }
                    }
                }
            }
        }
    }

    /// Reads one map back from its layout. What the layout left out is zero.
    pub(crate) fn take(&self, planes: &[f32], map: &mut [f32]) {
        for (y, row) in map.chunks_exact_mut(self.size[1]).enumerate() {
            let y = y + self.border[0];
            for (x, number) in row.iter_mut().enumerate() {
                let x = x + self.border[1];
                let inside = y / self.stride[0] < self.plane[0] && x / self.stride[1] < self.plane[1];
                *number = if inside { planes[self.place([y, x])] } else { 0.0 };
            }
        }
    }
}
