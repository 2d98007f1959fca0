//! A convolution and both its gradients as products that a cache holds.

use std::ops::Range;

use crate::epilogue::Epilogue;
use crate::gathered::{Gathered, Part};
use crate::planes::Planes;
use crate::product::{DEPTH, LANES, ROWS, add_products};
use crate::{depthwise, threads};

/// The shape of a convolution of pictures [B, C, H, W] with weights [O, C / groups, h, w].
///
/// All its functions panic for slices of other lengths, and if a number below is zero where it says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// C, H and W; none is zero.
    pub input: [usize; 3],
    /// O; not zero.
    pub outputs: usize,
    /// The height and width of the window; not zero.
    pub size: [usize; 2],
    /// The rows and columns that the window moves at a time; not zero.
    pub stride: [usize; 2],
    /// The rows of zeros above and below a picture, and the columns before and behind it.
    pub padding: [usize; 2],
    /// The rows and columns from one number of the window to the next; not zero.
    pub dilation: [usize; 2],
    /// Groups of channels with weights of their own; divides C and O.
    pub groups: usize,
    /// How many channels of other layers stand before and behind this layer's in the pictures of the output.
    pub beside: [usize; 2],
}

impl Convolution {
    /// A window of 1×1 without padding, for pictures [C, H, W].
    pub fn new(input: [usize; 3], outputs: usize) -> Self {
        Self {
            input,
            outputs,
            size: [1, 1],
            stride: [1, 1],
            padding: [0, 0],
            dilation: [1, 1],
            groups: 1,
            beside: [0, 0],
        }
    }

    /// The height and width of the output; zero if the window is larger than the picture with its padding.
    pub fn output(&self) -> [usize; 2] {
        [0, 1].map(|i| match (self.input[i + 1] + 2 * self.padding[i]).checked_sub(self.extent(i)) {
            Some(room) => room / self.stride[i] + 1,
            None => 0,
        })
    }

    /// The numbers of all weights.
    pub fn weights(&self) -> usize {
        self.outputs * self.terms()
    }

    /// The rows or columns from the first to the last number of the window, both counted.
    fn extent(&self, i: usize) -> usize {
        self.dilation[i] * (self.size[i] - 1) + 1
    }

    fn is_depthwise(&self) -> bool {
        self.groups > 1
            && self.groups == self.input[0]
            && self.groups == self.outputs
            && self.beside == [0, 0]
    }

    /// The input and output channels of a group.
    fn group(&self) -> [usize; 2] {
        [self.input[0] / self.groups, self.outputs / self.groups]
    }

    /// K, the terms of each number of the output.
    fn terms(&self) -> usize {
        self.input[0] / self.groups * self.size[0] * self.size[1]
    }

    /// The numbers of the window, by row and column.
    fn places(&self) -> impl Iterator<Item = [usize; 2]> + use<> {
        let [height, width] = self.size;
        (0..height).flat_map(move |i| (0..width).map(move |j| [i, j]))
    }

    /// How far the number of each term lies behind that of the first, in `maps` maps one after another.
    pub(crate) fn offsets(&self, planes: &Planes, maps: usize) -> Vec<usize> {
        let place = |[i, j]: [usize; 2]| planes.place([i * self.dilation[0], j * self.dilation[1]]);
        (0..maps).flat_map(|map| self.places().map(move |n| map * planes.len() + place(n))).collect()
    }

    fn input_length(&self) -> usize {
        self.input.iter().product()
    }

    /// The numbers of a picture of the output, with the channels of other layers.
    fn output_length(&self) -> usize {
        self.output_part().all * self.output().iter().product::<usize>()
    }

    fn input_part(&self) -> Part {
        Part { first: 0, all: self.input[0] }
    }

    fn output_part(&self) -> Part {
        let [before, behind] = self.beside;
        Part { first: before, all: before + self.outputs + behind }
    }

    fn pictures(&self, numbers: &[f32], length: usize) -> usize {
        assert!(length > 0 && numbers.len().is_multiple_of(length), "pictures of the stated shape");
        numbers.len() / length
    }

    /// How a map of the input is laid out for a window that moves over it.
    pub(crate) fn input_planes(&self) -> Planes {
        let output = self.output();
        let extent = [0, 1].map(|i| (output[i] - 1) * self.stride[i] + self.extent(i));
        let [_, height, width] = self.input;
        Planes::new([height, width], self.padding, extent, self.stride)
    }

    /// The output [B, O, H′, W′] of pictures [B, C, H, W]. The channels of other layers are zero.
    pub fn forward(&self, x: &[f32], weight: &[f32], epilogue: Epilogue) -> Vec<f32> {
        let mut output = threads::zeros(self.pictures(x, self.input_length()) * self.output_length());
        self.forward_into(x, weight, epilogue, &mut output);
        output
    }

    /// Writes the output. The channels of other layers stay as they are.
    pub fn forward_into(&self, x: &[f32], weight: &[f32], epilogue: Epilogue, output: &mut [f32]) {
        self.check(x, weight, output);
        if output.is_empty() {
            return;
        }
        if self.is_depthwise() {
            depthwise::forward(self, &self.input_planes(), x, weight, output, epilogue);
        } else {
            self.gathered(x, weight, epilogue, output, false);
        }
    }

    /// Writes the output with what stands in its place, which is added before a rectifier.
    pub fn forward_onto(&self, x: &[f32], weight: &[f32], epilogue: Epilogue, numbers: &mut [f32]) {
        self.check(x, weight, numbers);
        if !numbers.is_empty() {
            self.gathered(x, weight, epilogue, numbers, true);
        }
    }

    fn check(&self, x: &[f32], weight: &[f32], output: &[f32]) {
        assert_eq!(weight.len(), self.weights(), "weights of the stated shape");
        let count = self.pictures(x, self.input_length());
        assert_eq!(output.len(), count * self.output_length(), "an output of the stated shape");
    }

    fn gathered(&self, x: &[f32], weight: &[f32], epilogue: Epilogue, output: &mut [f32], onto: bool) {
        let planes = self.input_planes();
        let [height, width] = self.output();
        let [inputs, outputs] = self.group();
        let positions =
            (0..height).flat_map(|y| (0..width).map(move |x| (y * planes.pitch() + x, y * width + x)));
        let offsets = self.offsets(&planes, inputs);
        let product = Gathered {
            planes,
            maps: inputs,
            source: self.input_part(),
            offsets: &offsets,
            positions: positions.collect(),
            rows: outputs,
            result: self.output_part(),
            target: height * width,
            onto,
        };
        let weights = |group| &weight[group * outputs * offsets.len()..];
        product.run(self.groups, x, weights, output, epilogue);
    }

    /// The gradient of the input, [B, C, H, W], from that of the output, [B, O, H′, W′].
    pub fn input_gradient(&self, gradient: &[f32], weight: &[f32]) -> Vec<f32> {
        assert_eq!(weight.len(), self.weights(), "weights of the stated shape");
        let count = self.pictures(gradient, self.output_length());
        let mut result = threads::zeros(count * self.input_length());
        let output = self.output();
        if result.is_empty() {
            return result;
        }
        if self.is_depthwise() {
            depthwise::input_gradient(self, gradient, weight, &mut result);
            return result;
        }
        let [inputs, outputs] = self.group();
        let [_, height, width] = self.input;
        let window = self.size[0] * self.size[1];
        // Input positions with one remainder of the stride meet the same numbers of the window.
        for remainder in 0..self.stride[0] * self.stride[1] {
            let remainder = [remainder / self.stride[1], remainder % self.stride[1]];
            // Row y of the input, y + padding = stride·v + remainder, meets number i of the window at row
            // v − (dilation·i − remainder) / stride of the output.
            let steps = |i: usize, n: usize| {
                let met = (self.dilation[i] * n).checked_sub(remainder[i])?;
                met.is_multiple_of(self.stride[i]).then(|| met / self.stride[i])
            };
            let met: Vec<_> = self
                .places()
                .filter_map(|[i, j]| Some((i * self.size[1] + j, [steps(0, i)?, steps(1, j)?])))
                .collect();
            if met.is_empty() {
                continue;
            }
            // The rows and columns v of the positions with this remainder.
            let side = [height, width];
            let range = [0, 1].map(|i| {
                let rows = |end: usize| end.saturating_sub(remainder[i]).div_ceil(self.stride[i]);
                rows(self.padding[i])..rows(side[i] + self.padding[i])
            });
            if range.iter().any(Range::is_empty) {
                continue;
            }
            let least = [0, 1].map(|i| met.iter().map(|(_, steps)| steps[i]).min().unwrap_or(0));
            let most = [0, 1].map(|i| met.iter().map(|(_, steps)| steps[i]).max().unwrap_or(0));
            let border = [0, 1].map(|i| most[i].saturating_sub(range[i].start));
            let extent = [0, 1].map(|i| border[i] + range[i].end - least[i].min(range[i].end - 1));
            let planes = Planes::new(output, border, extent, [1, 1]);
            let pitch = planes.pitch();
            let offsets: Vec<_> = (0..outputs)
                .flat_map(|o| {
                    met.iter().map(move |(_, steps)| {
                        o * planes.len() + (most[0] - steps[0]) * pitch + most[1] - steps[1]
                    })
                })
                .collect();
            let positions = range[0].clone().flat_map(|v| {
                range[1].clone().map(move |u| {
                    let start = (v + border[0] - most[0]) * pitch + u + border[1] - most[1];
                    let y = v * self.stride[0] + remainder[0] - self.padding[0];
                    let x = u * self.stride[1] + remainder[1] - self.padding[1];
                    (start, y * width + x)
                })
            });
            // [groups, input channels, output channels, window].
            let mut rows = vec![0.0; self.groups * inputs * offsets.len()];
            threads::each_chunk(&mut rows, offsets.len(), |channel, row| {
                let (group, channel) = (channel / inputs, channel % inputs);
                for (o, row) in row.chunks_exact_mut(met.len()).enumerate() {
                    let window = &weight[((group * outputs + o) * inputs + channel) * window..][..window];
                    for (number, (place, _)) in row.iter_mut().zip(&met) {
                        *number = window[*place];
                    }
                }
            });
            let product = Gathered {
                planes,
                maps: outputs,
                source: self.output_part(),
                offsets: &offsets,
                positions: positions.collect(),
                rows: inputs,
                result: self.input_part(),
                target: height * width,
                onto: false,
            };
            let weights = |group| &rows[group * inputs * offsets.len()..];
            product.run(self.groups, gradient, weights, &mut result, Epilogue::default());
        }
        result
    }

    /// The gradient of the weights, [O, C / groups, h, w], from the input [B, C, H, W] and the gradient of the output,
    /// [B, O, H′, W′].
    pub fn weight_gradient(&self, x: &[f32], gradient: &[f32]) -> Vec<f32> {
        let count = self.pictures(x, self.input_length());
        assert_eq!(gradient.len(), count * self.output_length(), "a gradient of the stated shape");
        let mut result = vec![0.0; self.weights()];
        if gradient.is_empty() {
            return result;
        }
        if self.is_depthwise() {
            depthwise::weight_gradient(self, &self.input_planes(), x, gradient, &mut result);
            return result;
        }
        let planes = self.input_planes();
        let [inputs, outputs] = self.group();
        let [height, width] = self.output();
        let (terms, positions) = (self.terms(), height * width);
        // Between the ends of two rows of the output, the input has columns that belong to no position.
        let span = (height - 1) * planes.pitch() + width;
        let offsets = self.offsets(&planes, inputs);
        let plain: Vec<_> = (0..outputs).map(|o| o * positions).collect();
        // The larger side gives the rows, if a term is a map as it is: lanes take whole vectors, and copying.
        let swapped = planes.is_plain() && self.size == [1, 1] && terms < outputs;
        // What is added up at a time: pictures whose numbers the third-level cache holds.
        let pictures = ((1 << 20) / (outputs * span)).clamp(1, count);
        let (row_count, lane_count) = if swapped { (outputs, terms) } else { (terms, outputs) };
        let lane_panels = lane_count.div_ceil(LANES);
        let (mut laid_out, mut panels) = (Vec::new(), Vec::new());
        for group in 0..self.groups {
            // [panels, rows, 32].
            let mut sums = vec![[0.0; LANES]; lane_panels * row_count];
            for first in (0..count).step_by(pictures) {
                let pictures = first..(first + pictures).min(count);
                let part = |part: Part, maps: usize, length: usize| -> Vec<Range<usize>> {
                    pictures
                        .clone()
                        .map(|b| {
                            let start = (b * part.all + part.first + group * maps) * length;
                            start..start + maps * length
                        })
                        .collect()
                };
                let x_parts = part(self.input_part(), inputs, self.input[1] * self.input[2]);
                let gradient_parts = part(self.output_part(), outputs, positions);
                // Rows: slices of the maps. Each picture's are `row_length` numbers.
                if !swapped && !planes.is_plain() {
                    let length = inputs * planes.len();
                    laid_out.resize(pictures.len() * length, 0.0);
                    threads::each_chunk(&mut laid_out, length, |b, target| {
                        planes.fill(&x[x_parts[b].clone()], target);
                    });
                }
                let source = |b: usize| -> &[f32] {
                    if swapped {
                        &gradient[gradient_parts[b].clone()]
                    } else if planes.is_plain() {
                        &x[x_parts[b].clone()]
                    } else {
                        &laid_out[b * inputs * planes.len()..][..inputs * planes.len()]
                    }
                };
                // Panels: [pictures, panels, span, 32].
                let lanes = |b: usize| -> &[f32] {
                    if swapped { &x[x_parts[b].clone()] } else { &gradient[gradient_parts[b].clone()] }
                };
                panels.resize(pictures.len() * lane_panels * span, [0.0; LANES]);
                threads::each_chunk(&mut panels, span, |i, panel| {
                    let (b, first) = (i / lane_panels, i % lane_panels * LANES);
                    let last = (first + LANES).min(lane_count);
                    let maps = &lanes(b)[first * positions..last * positions];
                    transpose(maps, [height, width], planes.pitch(), panel);
                });
                let places = if swapped { &plain } else { &offsets };
                // Some rows at a time, so that a panel is read from a near cache.
                let run = (row_count * lane_panels).div_ceil(4 * threads::count()).next_multiple_of(ROWS);
                let runs = row_count.div_ceil(run);
                let mut parts: Vec<_> =
                    sums.chunks_mut(row_count).flat_map(|sums| sums.chunks_mut(run)).collect();
                threads::each_chunk(&mut parts, 1, |i, sums| {
                    let (panel, first) = (i / runs, i % runs * run);
                    let lanes = (lane_count - panel * LANES).min(LANES);
                    let places = &places[first..][..sums[0].len()];
                    let mut rows = Vec::with_capacity(places.len());
                    for b in 0..pictures.len() {
                        let source = source(b);
                        let panel = &panels[(b * lane_panels + panel) * span..][..span];
                        for start in (0..span).step_by(DEPTH) {
                            let panel = &panel[start..(start + DEPTH).min(span)];
                            rows.clear();
                            rows.extend(places.iter().map(|place| &source[place + start..][..panel.len()]));
                            add_products(&rows, panel, lanes, sums[0], true);
                        }
                    }
                });
            }
            let result = &mut result[group * outputs * terms..][..outputs * terms];
            for (panel, sums) in sums.chunks_exact(row_count).enumerate() {
                for (row, sums) in sums.iter().enumerate() {
                    for (lane, sum) in (panel * LANES..lane_count).zip(sums) {
                        result[if swapped { row * terms + lane } else { lane * terms + row }] = *sum;
                    }
                }
            }
        }
        result
    }
}

impl Convolution {
    /// The gradient of the bias, [O], from that of the output, [B, O, H′, W′].
    pub fn bias_gradient(&self, gradient: &[f32]) -> Vec<f32> {
        let count = self.pictures(gradient, self.output_length());
        let part = self.output_part();
        let map = self.output_length() / part.all;
        let mut result = vec![0.0; self.outputs];
        let run = self.outputs.div_ceil(4 * threads::count());
        threads::each_chunk(&mut result, run, |i, result| {
            for (o, result) in (i * run..).zip(result) {
                let mut sums = [0.0; LANES];
                for b in 0..count {
                    for numbers in gradient[(b * part.all + part.first + o) * map..][..map].chunks(LANES) {
                        sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
                    }
                }
                *result = sums.iter().sum();
            }
        });
        result
    }
}

/// Writes maps [M, H, W] as [H, pitch, 32], the maps side by side: M is at most 32, and what stands between the end of a
/// row and the beginning of the next is zero.
fn transpose(maps: &[f32], [height, width]: [usize; 2], pitch: usize, panel: &mut [[f32; LANES]]) {
    /// The positions that are copied at a time: they stay in the nearest cache, as read and as written.
    const RUN: usize = 16;
    if pitch > width {
        panel
            .chunks_mut(pitch)
            .for_each(|row| row.iter_mut().skip(width).for_each(|lanes| *lanes = [0.0; LANES]));
    }
    for (y, row) in panel.chunks_mut(pitch).take(height).enumerate() {
        for (run, row) in row[..width].chunks_mut(RUN).enumerate() {
            for (lane, map) in maps.chunks_exact(height * width).enumerate() {
                let numbers = &map[y * width + run * RUN..][..row.len()];
                for (lanes, &number) in row.iter_mut().zip(numbers) {
                    lanes[lane] = number;
                }
            }
        }
    }
}
