//! Products of rows of weights with columns gathered from maps, in blocks that a cache holds.

#![allow(clippy::extra_unused_type_parameters, reason = "`with_simd` asks for the machine's vectors by name")]

use std::cell::Cell;
use std::ops::Range;

use macerator::{Simd, with_simd};

use crate::epilogue::Epilogue;
use crate::matrix::Matrix;
use crate::planes::Planes;
use crate::product::{Block, Columns, LANES, Lanes, PANELS, ROWS, Rows, multiply};
use crate::threads;

thread_local! {
    /// Maps with their borders: memory that is kept from one layer to the next.
    static PLANES: Cell<Vec<f32>> = Cell::default();
}

/// Some of a picture's channels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub first: usize,
    pub all: usize,
}

/// Products of rows of weights with columns gathered from maps.
pub(crate) struct Gathered<'a> {
    /// The layout of a map.
    pub planes: Planes,
    /// The maps of a picture that belong to a group.
    pub maps: usize,
    /// Which maps of a picture all groups together read.
    pub source: Part,
    /// How far the number of each term lies behind that of the first.
    pub offsets: &'a [usize],
    /// The place of each position's first number, and of its result.
    pub positions: Vec<(usize, usize)>,
    /// The rows of a group.
    pub rows: usize,
    /// Which rows of a picture of the result all groups together write.
    pub result: Part,
    /// The numbers of a row of the result.
    pub target: usize,
    /// Whether the sums are added to what stands in the result.
    pub onto: bool,
}

impl Gathered<'_> {
    /// Writes the sums of each picture, group and row, with an epilogue whose channels are the rows of all groups. `weights`
    /// gives the rows of a group, [rows, terms].
    pub(crate) fn run<'w>(
        &self,
        groups: usize,
        x: &[f32],
        weights: impl Fn(usize) -> &'w [f32] + Sync + Send,
        result: &mut [f32],
        epilogue: Epilogue,
    ) {
        let picture = self.result.all * self.target;
        let count = result.len() / picture;
        let x_picture = x.len() / count;
        // The numbers of a picture that are written.
        let written = self.result.first * self.target..(self.result.first + groups * self.rows) * self.target;
        // Some pictures at a time fill a block of panels. Rows are divided where pictures are too few for the threads.
        let blocks = count.div_ceil((PANELS * LANES).div_ceil(self.positions.len()));
        let pictures = count.div_ceil(blocks.next_multiple_of(threads::count()));
        let parts = if pictures > 1 || count >= threads::count() {
            1
        } else {
            threads::count().div_ceil(count).min(self.rows.div_ceil(ROWS))
        };
        // With several groups a part is some of the groups.
        let part_rows = if groups > 1 {
            self.rows
        } else {
            self.rows.div_ceil(parts).next_multiple_of(ROWS).min(self.rows)
        };
        let parts = if parts == 1 { 1 } else { (groups * self.rows).div_ceil(part_rows) };
        let mut chunks: Vec<&mut [f32]> = if parts == 1 {
            result.chunks_mut(pictures * picture).collect()
        } else {
            result
                .chunks_mut(picture)
                .flat_map(|picture| picture[written.clone()].chunks_mut(part_rows * self.target))
                .collect()
        };
        threads::each_chunk(&mut chunks, 1, |i, chunk| {
            let (first, part) = (i / parts * pictures, i % parts);
            let pictures = if parts == 1 { chunk[0].len() / picture } else { 1 };
            let x = &x[first * x_picture..][..pictures * x_picture];
            let rows = if parts == 1 {
                0..groups * self.rows
            } else {
                part * part_rows..((part + 1) * part_rows).min(groups * self.rows)
            };
            for group in rows.start / self.rows..rows.end.div_ceil(self.rows) {
                let inner = rows.start.max(group * self.rows)..rows.end.min((group + 1) * self.rows);
                let local = inner.start - group * self.rows..inner.end - group * self.rows;
                let target = (inner.start - rows.start) * self.target;
                let target = if parts == 1 { written.start + target } else { target };
                let end = End { epilogue, channel: inner.start, row: self.target, onto: self.onto };
                let whole = if parts == 1 { picture } else { 0 };
                let maps = [self.source.first + group * self.maps, self.source.all];
                self.block(x, maps, weights(group), local, &mut chunk[0][target..], whole, end);
            }
        });
    }

    /// The same for some pictures, one group and some of its rows.
    #[allow(clippy::too_many_arguments)]
    fn block(
        &self,
        x: &[f32],
        [first_map, all_maps]: [usize; 2],
        weights: &[f32],
        rows: Range<usize>,
        result: &mut [f32],
        result_picture: usize,
        end: End,
    ) {
        let terms = self.offsets.len();
        let map = self.planes.map();
        let pictures = x.len() / (all_maps * map);
        // While a thread waits it may begin other work, which then finds nothing here and makes its own.
        let mut planes = PLANES.take();
        let plain = self.planes.is_plain();
        if !plain {
            planes.resize(pictures * self.maps * self.planes.len(), 0.0);
            for (x, planes) in
                x.chunks_exact(all_maps * map).zip(planes.chunks_exact_mut(self.maps * self.planes.len()))
            {
                self.planes.fill(&x[first_map * map..][..self.maps * map], planes);
            }
        }
        let source: &[f32] = if plain { x } else { &planes };
        let source_picture = if plain { all_maps * map } else { self.maps * self.planes.len() };
        let source_start = if plain { first_map * map } else { 0 };
        let columns = pictures * self.positions.len();
        // The place of a column's first number, and of its result in the first row.
        let column = |column: usize| {
            let (picture, position) = (column / self.positions.len(), column % self.positions.len());
            let (start, target) = self.positions[position];
            (source_start + picture * source_picture + start, picture * result_picture + target)
        };
        let runs: Vec<_> = (0..columns)
            .step_by(LANES)
            .map(|start| Run::collect((start..columns.min(start + LANES)).map(column)))
            .collect();
        let weights = Matrix::new(weights, terms).band(rows.start, rows.len());
        let gather = Gather { source, offsets: self.offsets, runs: &runs, columns };
        multiply(Rows::Of(weights), &gather, |panel, block| {
            end.write(block, rows.len(), &runs[panel..], result);
        });
        PLANES.set(planes);
    }
}

/// How the sums of some rows are written.
#[derive(Clone, Copy)]
struct End<'a> {
    epilogue: Epilogue<'a>,
    /// The channel of the first row.
    channel: usize,
    /// The numbers of a row of the result.
    row: usize,
    /// Whether the sums are added to what stands in the result.
    onto: bool,
}

impl End<'_> {
    /// Writes a block of some rows, with the runs of each of its panels.
    fn write(&self, block: Block, rows: usize, runs: &[Vec<Run>], result: &mut [f32]) {
        write(self, block, rows, runs, result);
    }
}

#[with_simd]
fn write<'a, S: Simd>(
    end: &'a End<'a>,
    block: Block<'a>,
    rows: usize,
    runs: &'a [Vec<Run>],
    result: &'a mut [f32],
) {
    let mut block = block;
    for row in 0..rows {
        let result = &mut result[row * end.row..];
        for (sums, runs) in block.row(row).zip(runs) {
            let mut before = [0.0; LANES];
            if end.onto {
                runs.iter().for_each(|run| run.read(result, &mut before));
            }
            end.epilogue.apply::<S>(end.channel + row, sums, end.onto.then_some(&before));
            runs.iter().for_each(|run| run.write(sums, result));
        }
    }
}

/// Columns of a panel side by side, whose numbers and results each lie in a row.
#[derive(Clone, Copy, Debug)]
struct Run {
    lane: usize,
    length: usize,
    start: usize,
    target: usize,
    /// From one result to the next.
    step: usize,
}

impl Run {
    /// The runs of some columns, each with the places of its first number and of its result.
    fn collect(columns: impl Iterator<Item = (usize, usize)>) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for (lane, (start, target)) in columns.enumerate() {
            match runs.last_mut() {
                Some(run)
                    if start == run.start + run.length
                        && (run.length == 1 && target > run.target
                            || target == run.target + run.length * run.step) =>
                {
                    if run.length == 1 {
                        run.step = target - run.target;
                    }
                    run.length += 1;
                }
                _ => runs.push(Run { lane, length: 1, start, target, step: 1 }),
            }
        }
        runs
    }

    #[inline(always)]
    fn read(&self, result: &[f32], lanes: &mut Lanes) {
        if self.length == LANES && self.step == 1 {
            lanes.copy_from_slice(&result[self.target..][..LANES]);
            return;
        }
        let numbers = result[self.target..].iter().step_by(self.step);
        lanes[self.lane..][..self.length].iter_mut().zip(numbers).for_each(|(lane, number)| *lane = *number);
    }

    #[inline(always)]
    fn write(&self, sums: &Lanes, result: &mut [f32]) {
        if self.length == LANES && self.step == 1 {
            result[self.target..][..LANES].copy_from_slice(sums);
            return;
        }
        let sums = &sums[self.lane..][..self.length];
        if self.step == 1 {
            result[self.target..][..self.length].copy_from_slice(sums);
        } else {
            for (target, sum) in result[self.target..].iter_mut().step_by(self.step).zip(sums) {
                *target = *sum;
            }
        }
    }
}

/// Columns whose numbers lie in runs.
struct Gather<'a> {
    source: &'a [f32],
    /// How far the number of each term lies behind that of the first.
    offsets: &'a [usize],
    /// The runs of each panel.
    runs: &'a [Vec<Run>],
    columns: usize,
}

impl Columns for Gather<'_> {
    fn count(&self) -> usize {
        self.columns
    }

    /// Each run is copied as 32 numbers, which is quicker than its own number of them. What is too much is written over by
    /// the next run. The last runs of the panel, behind which there is no room, are copied as they are.
    fn panel<'s>(&'s self, panel: usize, terms: Range<usize>, room: &'s mut [Lanes]) -> &'s [Lanes] {
        let count = terms.len();
        let numbers = room.as_flattened_mut();
        for (k, offset) in self.offsets[terms].iter().enumerate() {
            for run in &self.runs[panel] {
                let source = &self.source[run.start + offset..];
                let target = &mut numbers[k * LANES + run.lane..];
                match (source.first_chunk::<LANES>(), target.first_chunk_mut::<LANES>()) {
                    (Some(numbers), Some(target)) => *target = *numbers,
                    _ => target[..run.length].copy_from_slice(&source[..run.length]),
                }
            }
        }
        &room[..count]
    }
}
