//! The items of one query along the line of their scores.

use super::exponential::exponentials;

/// The longest segment in units of τ. The 16th power of its last item is e^160, far from overflow.
const LONGEST_SEGMENT: f64 = 10.0;

/// The way along a line. The items that were passed before an item are *behind* it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the lowest score up.
    Up,
    /// From the highest score down.
    Down,
}

impl Direction {
    /// How far a score is ahead of another one.
    #[inline(always)]
    pub(super) fn distance(self, score: f64, behind: f64) -> f64 {
        match self {
            Self::Up => score - behind,
            Self::Down => behind - score,
        }
    }

    /// Which of `count` things, from the lowest score up, comes at this step.
    #[inline(always)]
    pub(super) fn index(self, step: usize, count: usize) -> usize {
        match self {
            Self::Up => step,
            Self::Down => count - 1 - step,
        }
    }

    /// Whether an item is passed before another one.
    #[inline(always)]
    pub(super) fn is_behind(self, number: usize, other: usize) -> bool {
        match self {
            Self::Up => number < other,
            Self::Down => number > other,
        }
    }
}

/// An item on the line.
#[derive(Clone, Copy)]
pub(super) struct Item {
    pub score: f64,
    /// The score of the first item of the segment.
    pub anchor: f64,
    /// e^{(s − anchor)/τ}.
    rising: f64,
    /// e^{−(s − anchor)/τ}.
    falling: f64,
    pub place: usize,
}

impl Item {
    /// What the item puts into sums of powers, and what it takes out of them by: the product for an item ahead and one
    /// behind it is e^{−t/τ}, with the distance t, if they are in one segment.
    #[inline(always)]
    pub(super) fn powers(&self, direction: Direction) -> [f64; 2] {
        match direction {
            Direction::Up => [self.rising, self.falling],
            Direction::Down => [self.falling, self.rising],
        }
    }
}

/// Items by increasing score, in *segments* of at most ten τ. The powers of an item are relative to the first item of its
/// segment, so that none overflows.
#[derive(Default)]
pub(super) struct Line {
    pub items: Vec<Item>,
    /// The numbers of all items.
    pub all: Vec<u32>,
    /// The numbers of the items that are ranked.
    pub ranked: Vec<u32>,
    powers: Vec<f64>,
}

impl Line {
    /// The items in increasing order of score, each a score and a place.
    #[inline(always)]
    pub(super) fn set(
        &mut self,
        sorted: impl Iterator<Item = (f64, u32)>,
        relevances: &[f64],
        temperature: f64,
    ) {
        self.items.clear();
        let (longest, mut anchor) = (LONGEST_SEGMENT * temperature, f64::NEG_INFINITY);
        self.items.extend(sorted.map(|(score, place)| {
            if score - anchor > longest {
                anchor = score;
            }
            Item { score, anchor, rising: 1.0, falling: 1.0, place: place as usize }
        }));
        self.all.clear();
        self.all.extend(0..self.items.len() as u32);
        // Without a branch, because places come in no order.
        let mut ranked = 0;
        self.ranked.resize(self.items.len(), 0);
        for (number, item) in self.items.iter().enumerate() {
            self.ranked[ranked] = number as u32;
            ranked += usize::from(relevances[item.place] > 0.0);
        }
        self.ranked.truncate(ranked);
        self.powers.clear();
        self.powers.extend(self.items.iter().map(|item| (item.score - item.anchor) / temperature));
        exponentials(&mut self.powers);
        for (item, power) in self.items.iter_mut().zip(&self.powers) {
            (item.rising, item.falling) = (*power, 1.0 / power);
        }
    }

    /// The number of the item that is passed at this step.
    #[inline(always)]
    pub(super) fn number(&self, direction: Direction, step: usize) -> usize {
        direction.index(step, self.items.len())
    }

    /// The step after the group of equal scores that starts at this one.
    #[inline(always)]
    pub(super) fn group_end(&self, direction: Direction, start: usize) -> usize {
        let score = self.items[self.number(direction, start)].score;
        let mut end = start + 1;
        while end < self.items.len() && self.items[self.number(direction, end)].score == score {
            end += 1;
        }
        end
    }
}
