//! Sums of counts and distances along a line, by place, for the steps that are made of straight lines.

use super::line::{Line, Window};

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

/// Calls `emit` with each item and the sums of every place, for items of these weights. Within a window the sums move
/// along: no distance is larger than the window, so that one far item takes no digits from the others.
#[inline(always)]
pub(super) fn behind_by_place(
    line: &Line,
    window: Option<&Window>,
    weights: &[f64],
    sums: &mut Vec<Behind>,
    places: usize,
    mut emit: impl FnMut(usize, &[Behind]),
) {
    sums.clear();
    sums.resize(places, Behind::default());
    let mut beyond = 0;
    for group in 0..line.scores.len() {
        if group > 0 {
            let last = line.scores[group - 1];
            for sum in sums.iter_mut() {
                sum.within += std::mem::take(&mut sum.tied);
            }
            if let Some(window) = window {
                while beyond < window.beyond[group] as usize {
                    for item in line.items(beyond) {
                        let sum = &mut sums[line.places[item] as usize];
                        sum.within -= weights[item];
                        sum.distance -= weights[item] * (last - line.scores[beyond]);
                        sum.beyond += weights[item];
                    }
                    beyond += 1;
                }
                if beyond == group {
                    sums.iter_mut().for_each(|sum| (sum.within, sum.distance) = (0.0, 0.0));
                }
            }
            let gap = line.scores[group] - last;
            sums.iter_mut().for_each(|sum| sum.distance += sum.within * gap);
        }
        for item in line.items(group) {
            sums[line.places[item] as usize].tied += weights[item];
        }
        for item in line.items(group) {
            emit(item, sums);
        }
    }
}
