//! Sums of counts and distances along a line, by place, for the steps that are made of straight lines.

use super::line::{Direction, Item, Line};

/// Of the items behind one item, by place: those within a window and those beyond it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Behind {
    /// Σ w within.
    pub within: f64,
    /// Σ w·t within, with the distance t > 0.
    pub distance: f64,
    /// Σ w beyond.
    pub beyond: f64,
    /// Σ w in the same group, the item included.
    pub tied: f64,
}

/// Calls `emit` with each item and the sums of every place, for items of these weights. Beyond the window are the
/// distances for which `is_beyond` is true, from some distance on. Within it the sums move along: no distance is larger
/// than the window, so that one far item takes no digits from the others.
#[inline(always)]
pub(super) fn behind_by_place(
    line: &Line,
    direction: Direction,
    is_beyond: impl Fn(f64) -> bool,
    weight: impl Fn(usize) -> f64,
    sums: &mut Vec<Behind>,
    places: usize,
    mut emit: impl FnMut(usize, &Item, &[Behind]),
) {
    sums.clear();
    sums.resize(places, Behind::default());
    let (mut start, mut beyond) = (0, 0);
    let mut last = f64::NAN;
    while start < line.items.len() {
        let end = line.group_end(direction, start);
        let group = (start..end).map(|passed| line.number(direction, passed));
        let score = line.items[line.number(direction, start)].score;
        if start > 0 {
            for sum in sums.iter_mut() {
                sum.within += std::mem::take(&mut sum.tied);
            }
            while beyond < start {
                let number = line.number(direction, beyond);
                let item = &line.items[number];
                if !is_beyond(direction.distance(score, item.score)) {
                    break;
                }
                let (sum, weight) = (&mut sums[item.place], weight(number));
                sum.within -= weight;
                sum.distance -= weight * direction.distance(last, item.score);
                sum.beyond += weight;
                beyond += 1;
            }
            if beyond == start {
                sums.iter_mut().for_each(|sum| (sum.within, sum.distance) = (0.0, 0.0));
            }
            let gap = direction.distance(score, last);
            sums.iter_mut().for_each(|sum| sum.distance += sum.within * gap);
        }
        for number in group.clone() {
            sums[line.items[number].place].tied += weight(number);
        }
        group.for_each(|number| emit(number, &line.items[number], sums));
        (start, last) = (end, score);
    }
}
