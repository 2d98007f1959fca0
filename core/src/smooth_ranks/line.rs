//! The items of one query along the line of their scores.

/// Decays below this are 0: what they add to a rank is beyond the digits of an f64.
const SMALLEST_DECAY: f64 = 1e-18;

/// Items in groups of equal score, by increasing score. The items of lower score are behind an item. The mirror of a
/// line has the scores negated, so that the items above an item are behind it.
#[derive(Default)]
pub(super) struct Line {
    /// The score of each group.
    pub scores: Vec<f64>,
    /// e^{−gap/τ} of each group, with the gap to the group behind it; 0 for the first.
    pub decays: Vec<f64>,
    /// Where the items of each group start, and at the end their number.
    pub starts: Vec<u32>,
    /// The place of each item.
    pub places: Vec<u32>,
}

impl Line {
    /// The items in increasing order of score, each a score and a place.
    pub(super) fn set(&mut self, items: impl Iterator<Item = (f64, u32)>, temperature: f64) {
        self.scores.clear();
        self.decays.clear();
        self.starts.clear();
        self.places.clear();
        for (item, (score, place)) in items.enumerate() {
            let last = self.scores.last().copied();
            if last != Some(score) {
                self.scores.push(score);
                self.decays.push(last.map_or(0.0, |last| decay((score - last) / temperature)));
                self.starts.push(item as u32);
            }
            self.places.push(place);
        }
        self.starts.push(self.places.len() as u32);
    }

    /// The line seen from the other end: item i of N is item N − 1 − i, with the score negated.
    pub(super) fn set_mirror(&mut self, line: &Line) {
        let items = line.places.len() as u32;
        self.scores.clear();
        self.scores.extend(line.scores.iter().rev().map(|score| -score));
        self.decays.clear();
        self.decays.push(0.0);
        self.decays.extend(line.decays.iter().skip(1).rev());
        self.decays.truncate(line.decays.len());
        self.starts.clear();
        self.starts.extend(line.starts.iter().rev().map(|start| items - start));
        self.places.clear();
        self.places.extend(line.places.iter().rev());
    }

    /// The items of a group.
    #[inline(always)]
    pub(super) fn items(&self, group: usize) -> std::ops::Range<usize> {
        self.starts[group] as usize..self.starts[group + 1] as usize
    }
}

/// Which groups lie too far behind each group of a line.
#[derive(Default)]
pub(super) struct Window {
    /// The number of groups beyond the window of each group.
    pub beyond: Vec<u32>,
    /// e^{−t/τ} from each group to the nearest group beyond its window; 0 if there is none.
    pub reach: Vec<f64>,
}

impl Window {
    /// The window of those distances t for which `is_beyond(t)` is false; it is true from some t on. Without a
    /// temperature the reach is not set.
    #[inline(always)]
    pub(super) fn set(&mut self, line: &Line, temperature: Option<f64>, is_beyond: impl Fn(f64) -> bool) {
        self.beyond.clear();
        self.reach.clear();
        let mut beyond = 0;
        for (group, &score) in line.scores.iter().enumerate() {
            while beyond < group && is_beyond(score - line.scores[beyond]) {
                beyond += 1;
            }
            let reach = match (beyond.checked_sub(1), temperature) {
                (Some(last), Some(temperature)) => decay((score - line.scores[last]) / temperature),
                _ => 0.0,
            };
            self.beyond.push(beyond as u32);
            self.reach.push(reach);
        }
    }
}

/// e^{−t}, or 0 if that is too small to count.
fn decay(t: f64) -> f64 {
    let decay = (-t).exp();
    if decay < SMALLEST_DECAY { 0.0 } else { decay }
}
