//! Products of rows of weights with columns gathered from maps, in blocks that a cache holds.

use std::cell::Cell;
use std::ops::Range;

use crate::planes::Planes;
use crate::product::{DEPTH, LANES, PANELS, ROWS, Tile, add_products};
use crate::threads;

/// Memory of a thread that is kept from one layer to the next.
#[derive(Default)]
struct Scratch {
    planes: Vec<f32>,
    panels: Vec<f32>,
    tiles: Vec<Tile>,
}

thread_local! {
    static SCRATCH: Cell<Scratch> = Cell::default();
}

/// Calls `work` with this thread's memory.
fn with_scratch(work: impl FnOnce(&mut Scratch)) {
    // While a thread waits it may begin other work, which then finds nothing here and makes its own.
    let mut scratch = SCRATCH.take();
    work(&mut scratch);
    SCRATCH.set(scratch);
}

/// Some of a picture's channels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub first: usize,
    pub all: usize,
}

/// Products of rows of weights with columns gathered from maps.
pub(crate) struct Product<'a> {
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
}

impl Product<'_> {
    /// Writes the sums of each picture, group and row after `finish(row, sums)`. `weights` gives the rows of a group,
    /// [rows, terms].
    pub(crate) fn run<'w>(
        &self,
        groups: usize,
        x: &[f32],
        weights: impl Fn(usize) -> &'w [f32] + Sync + Send,
        result: &mut [f32],
        finish: &(impl Fn(usize, &mut [f32; LANES]) + Sync + Send),
    ) {
        let picture = self.result.all * self.target;
        let count = result.len() / picture;
        let x_picture = x.len() / count;
        // The numbers of a picture that are written.
        let written = self.result.first * self.target..(self.result.first + groups * self.rows) * self.target;
        // Some pictures at a time fill a block of panels. Rows are divided where pictures are too few for the threads.
        let pictures = (PANELS * LANES).div_ceil(self.positions.len()).min(count.div_ceil(threads::count()));
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
            with_scratch(|scratch| {
                for group in rows.start / self.rows..rows.end.div_ceil(self.rows) {
                    let inner = rows.start.max(group * self.rows)..rows.end.min((group + 1) * self.rows);
                    let local = inner.start - group * self.rows..inner.end - group * self.rows;
                    let target = (inner.start - rows.start) * self.target;
                    let target = if parts == 1 { written.start + target } else { target };
                    let finish = |row: usize, sums: &mut [f32; LANES]| finish(group * self.rows + row, sums);
                    let whole = if parts == 1 { picture } else { 0 };
                    let maps = [self.source.first + group * self.maps, self.source.all];
                    self.block(
                        x,
                        maps,
                        weights(group),
                        local,
                        &mut chunk[0][target..],
                        whole,
                        finish,
                        scratch,
                    );
                }
            });
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
        finish: impl Fn(usize, &mut [f32; LANES]),
        scratch: &mut Scratch,
    ) {
        let terms = self.offsets.len();
        let map = self.planes.map();
        let pictures = x.len() / (all_maps * map);
        let Scratch { planes, panels, tiles } = scratch;
        let plain = self.planes.is_plain();
        if !plain {
            planes.resize(pictures * self.maps * self.planes.len(), 0.0);
            for (x, planes) in
                x.chunks_exact(all_maps * map).zip(planes.chunks_exact_mut(self.maps * self.planes.len()))
            {
                self.planes.fill(&x[first_map * map..][..self.maps * map], planes);
            }
        }
        let source: &[f32] = if plain { x } else { planes };
        let source_picture = if plain { all_maps * map } else { self.maps * self.planes.len() };
        let source_start = if plain { first_map * map } else { 0 };
        let columns = pictures * self.positions.len();
        // The place of a column's first number, and of its result in the first row.
        let column = |column: usize| {
            let (picture, position) = (column / self.positions.len(), column % self.positions.len());
            let (start, target) = self.positions[position];
            (source_start + picture * source_picture + start, picture * result_picture + target)
        };
        let row_tiles = rows.len().div_ceil(ROWS);
        let mut runs: Vec<Vec<Run>> = vec![Vec::new(); PANELS];
        panels.resize(PANELS * DEPTH * LANES + LANES, 0.0);
        for first in (0..columns).step_by(PANELS * LANES) {
            let columns = (columns - first).min(PANELS * LANES);
            let panel_count = columns.div_ceil(LANES);
            for (panel, runs) in runs.iter_mut().take(panel_count).enumerate() {
                let start = first + panel * LANES;
                Run::collect((start..(first + columns).min(start + LANES)).map(column), runs);
            }
            tiles.clear();
            tiles.resize(row_tiles * panel_count, [[0.0; LANES]; ROWS]);
            for start in (0..terms).step_by(DEPTH) {
                let offsets = &self.offsets[start..(start + DEPTH).min(terms)];
                for (panel, runs) in runs.iter().take(panel_count).enumerate() {
                    gather(source, offsets, runs, &mut panels[panel * DEPTH * LANES..]);
                }
                for (t, tiles) in tiles.chunks_exact_mut(panel_count).enumerate() {
                    let rows = std::array::from_fn(|r| {
                        let row = (rows.start + t * ROWS + r).min(rows.end - 1);
                        &weights[row * terms + start..][..offsets.len()]
                    });
                    for (panel, tile) in tiles.iter_mut().enumerate() {
                        let numbers = &panels[panel * DEPTH * LANES..][..offsets.len() * LANES];
                        add_products(&rows, numbers.as_chunks().0, columns - panel * LANES, tile);
                    }
                }
            }
            for (t, tiles) in tiles.chunks_exact_mut(panel_count).enumerate() {
                for (tile, runs) in tiles.iter_mut().zip(&runs) {
                    for (row, sums) in (t * ROWS..rows.len()).zip(tile) {
                        finish(rows.start + row, sums);
                        let result = &mut result[row * self.target..];
                        runs.iter().for_each(|run| run.write(sums, result));
                    }
                }
            }
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
    fn collect(columns: impl Iterator<Item = (usize, usize)>, runs: &mut Vec<Run>) {
        runs.clear();
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
    }

    fn write(&self, sums: &[f32; LANES], result: &mut [f32]) {
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

/// Writes the numbers of some terms and columns to a panel.
///
/// Each run is copied as 32 numbers, which is quicker than its own number of them. What is too much is written over by
/// the next run; behind the last there is room for it.
fn gather(source: &[f32], offsets: &[usize], runs: &[Run], panel: &mut [f32]) {
    for (k, offset) in offsets.iter().enumerate() {
        for run in runs {
            let source = &source[run.start + offset..];
            let panel = &mut panel[k * LANES + run.lane..];
            match (source.first_chunk::<LANES>(), panel.first_chunk_mut::<LANES>()) {
                (Some(numbers), Some(panel)) => *panel = *numbers,
                _ => panel[..run.length].copy_from_slice(&source[..run.length]),
            }
        }
    }
}
