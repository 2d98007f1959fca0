//! What the nearest items of a query say about it: the levels that they share with it, or the classes that they vote for
//! and how far those can be trusted.
//!
//! ```
//! use akin_core::neighbours::Known;
//! use akin_core::search::Hit;
//! use akin_core::taxonomy::Labels;
//!
//! // Three items; the second has no labels.
//! let labels = Labels::new(2, vec![0, 0, 1, 1])?;
//! let rows = [Some(0), None, Some(1)];
//! let known = Known { labels: Some(&labels), rows: Some(&rows), ..Known::default() };
//! let hits = [1, 0, 2].map(|item| Hit { item, score: 0.9 - 0.2 * item as f32 });
//!
//! // A query without labels gets votes; one with labels is compared with each item.
//! let votes = known.neighbours(&hits, 3, None).votes.unwrap();
//! assert_eq!(votes[0].class, 0);
//! let own = Labels::new(2, vec![1, 2])?;
//! let shared = known.neighbours(&hits, 3, Some(&own)).results.into_iter().map(|item| item.shared_level);
//! assert!(shared.eq([None, Some(0), Some(1)]));
//! # akin_core::Result::Ok(())
//! ```

use serde::Serialize;

use crate::certainty::{Answer, BestScores, Calibration, Certain, Promise, VOTERS};
use crate::search::Hit;
use crate::taxonomy::{Filter, Labels, UNKNOWN};
use crate::threads::in_order;
use crate::votes::{Vote, votes};

/// The items that a filter is asked about together.
const PART: usize = 1 << 16;

/// What is known of the items of a gallery.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known<'a> {
    /// The labels of the items that have some; `None` where no item has labels.
    pub labels: Option<&'a Labels>,
    /// For each item its row in `labels`, or `None` for an item without labels. Without this, an item's row is its place.
    pub rows: Option<&'a [Option<usize>]>,
    /// The best scores of the gallery's own items; `None` where they were not measured.
    pub best_scores: Option<&'a BestScores>,
    /// How far answers hold; `None` where it was not measured.
    pub calibration: Option<&'a Calibration>,
}

/// The nearest items of a query, and what they say about it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Neighbours {
    /// The best items.
    pub results: Vec<Item>,
    /// `None` where the query's labels are known, or the gallery has no labels.
    pub votes: Option<Vec<Vote>>,
    /// How far the votes hold, at each promise that is offered. `None` where there are no votes, or where the gallery has no
    /// calibration.
    pub answers: Option<Vec<Answered>>,
    /// `None` where the best scores of the gallery are unknown.
    pub likeness: Option<Likeness>,
}

/// A result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[cfg_attr(feature = "typescript", ts(rename = "Result"))]
pub struct Item {
    /// Its place in the gallery, from 0.
    pub item: usize,
    /// Its similarity to the query.
    pub score: f32,
    /// `None` where the labels of the query or of the item are unknown. Where only some of them are, they may share more.
    pub shared_level: Option<usize>,
    /// The finest level that they may share. `None` where the labels of the query or of the item are unknown.
    pub may_share: Option<usize>,
}

/// The answer at one promise.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Answered {
    /// The least share of right answers.
    pub promise: f64,
    /// What may be said.
    pub answer: Answer,
    /// The first class that is probable only; `None` if every level may be said, or nothing is like the query.
    pub probable: Option<Certain>,
    /// For each level, how many of the voters are of the class.
    pub speakers: Vec<usize>,
    /// The number of items that vote.
    pub voters: usize,
}

/// How alike a picture and its nearest item are, beside the gallery's own items and theirs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Likeness {
    /// The score of the nearest item.
    pub best: f32,
    /// 99 % of the gallery's own items have a best score of at least this.
    pub unlike_below: f32,
    /// Whether the picture is unlike everything in the gallery.
    pub unlike: bool,
}

impl Known<'_> {
    /// The first `count` of `hits`, and what they say. `own` has one row, the labels of the query, where they are known.
    ///
    /// `hits` are the nearest items of the query, best first and without itself. The answers need the [`VOTERS`] nearest
    /// items that have labels, even if `count` is less.
    ///
    /// # Panics
    ///
    /// When a hit is no item of the gallery.
    pub fn neighbours(&self, hits: &[Hit], count: usize, own: Option<&Labels>) -> Neighbours {
        let first = &hits[..count.min(hits.len())];
        let result = |&Hit { item, score }: &Hit| {
            let labels = own.zip(self.labels).zip(self.row(item));
            let shared = labels.map(|((own, labels), row)| own.shared(0, labels, row));
            let (shared_level, may_share) =
                (shared.map(|shared| shared.least), shared.map(|shared| shared.most));
            Item { item, score, shared_level, may_share }
        };
        let labels = self.labels.filter(|_| own.is_none());
        let answers = || Promise::OFFERED.into_iter().map(|promise| self.answer(hits, promise)).collect();
        Neighbours {
            results: first.iter().map(result).collect(),
            votes: labels.map(|labels| votes(labels, &self.voters(first, count))),
            answers: labels.and_then(|_| answers()),
            likeness: self.likeness(hits),
        }
    }

    /// What the [`VOTERS`] nearest items that have labels answer at a promise. `None` where no item has labels, or the
    /// gallery has no calibration. `hits` are as for [`neighbours`](Self::neighbours).
    pub fn answer(&self, hits: &[Hit], promise: Promise) -> Option<Answered> {
        let (labels, calibration) = self.labels.zip(self.calibration)?;
        let voters = self.voters(hits, VOTERS);
        let answer = calibration.answer(&votes(labels, &voters), self.is_unlike(hits, promise), promise);
        let speaks = |certain: &Certain| {
            let is_class = |hit: &&Hit| labels.row(hit.item)[certain.level - 1] == certain.class;
            voters.iter().filter(is_class).count()
        };
        Some(Answered {
            promise: promise.share(),
            probable: answer.probable().copied(),
            speakers: answer.levels.iter().map(speaks).collect(),
            voters: voters.len(),
            answer,
        })
    }

    /// The items that a filter keeps, in their order; none where no item has labels.
    pub fn items(&self, filter: &Filter) -> Vec<usize> {
        let Some(labels) = self.labels else { return Vec::new() };
        let keeps = |item: &usize| match self.row(*item) {
            Some(row) => filter.keeps_item(labels, row),
            None => filter.keeps([]),
        };
        let part = |part: usize| -> Vec<usize> {
            (part * PART..self.len().min((part + 1) * PART)).filter(keeps).collect()
        };
        in_order(self.len().div_ceil(PART), part).concat()
    }

    /// The class of each item at a level, 1 … L; [`UNKNOWN`] where it is not known.
    pub fn column(&self, level: usize) -> Vec<u32> {
        let class = |item| Some(self.labels?.row(self.row(item)?)[level - 1]);
        (0..self.len()).map(|item| class(item).unwrap_or(UNKNOWN)).collect()
    }

    /// The number of items whose labels, or whose lack of labels, is known.
    fn len(&self) -> usize {
        self.rows.map_or_else(|| self.labels.map_or(0, Labels::len), <[_]>::len)
    }

    /// Whether nothing in the gallery is like the query, by its nearest item.
    pub fn is_unlike(&self, hits: &[Hit], promise: Promise) -> bool {
        self.best_scores.zip(hits.first()).is_some_and(|(own, hit)| own.is_unlike(hit.score, promise))
    }

    fn likeness(&self, hits: &[Hit]) -> Option<Likeness> {
        let unlike_below = self.best_scores?.unlike_below(Promise::default())?;
        let best = hits.first()?.score;
        Some(Likeness { best, unlike_below, unlike: best < unlike_below })
    }

    /// The first `count` hits that have labels, each with its row of the labels as its item.
    fn voters(&self, hits: &[Hit], count: usize) -> Vec<Hit> {
        let voters = hits.iter().filter_map(|hit| Some(Hit { item: self.row(hit.item)?, ..*hit }));
        voters.take(count).collect()
    }

    /// The row of an item's labels.
    fn row(&self, item: usize) -> Option<usize> {
        match self.rows {
            Some(rows) => rows[item],
            None => Some(item),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certainty::{Steps, Threshold};
    use crate::taxonomy::{ClassIdentity, Taxonomy};

    /// Two families with one species each. Items 1 and 3 have no labels, item 4 has no species.
    const ROWS: [Option<usize>; 5] = [Some(0), None, Some(1), None, Some(2)];

    fn labels() -> Labels {
        Labels::new(2, vec![0, 0, 1, 1, 1, UNKNOWN]).unwrap()
    }

    fn hits(items: &[usize]) -> Vec<Hit> {
        items.iter().map(|&item| Hit { item, score: 0.5 }).collect()
    }

    /// Every share of votes has these certainties, and both may be said at 80 %.
    fn calibration() -> Calibration {
        let steps = |certainty| Steps { shares: vec![0.0], certainties: vec![certainty] };
        let threshold = |certainty, wrong| Threshold { certainty, answered: 1000, wrong };
        Calibration {
            items: 1000,
            levels: vec![steps(0.9), steps(0.7)],
            thresholds: vec![threshold(0.9, 20), threshold(0.7, 100)],
        }
    }

    #[test]
    fn items_without_labels_are_found_but_do_not_vote() {
        let (labels, calibration) = (labels(), calibration());
        let known = Known {
            labels: Some(&labels),
            rows: Some(&ROWS),
            best_scores: None,
            calibration: Some(&calibration),
        };
        let found = known.neighbours(&hits(&[1, 3, 2, 4, 0]), 3, None);
        assert_eq!(found.results.iter().map(|item| item.item).collect::<Vec<_>>(), [1, 3, 2]);
        assert!(found.results.iter().all(|item| item.shared_level.is_none()));
        // Of the first three only item 2 votes; the answers ask all five, of which three have labels.
        let vote = |level, class| Vote { level, class, share: 1.0 };
        assert_eq!(found.votes.unwrap(), [vote(1, 1), vote(2, 1)]);
        let answers = found.answers.unwrap();
        assert_eq!(answers.iter().map(|at| at.answer.reached).collect::<Vec<_>>(), [2, 1, 1, 0]);
        assert_eq!((answers[0].voters, &answers[0].speakers), (3, &vec![2, 1]));
        assert_eq!(answers[1].probable.unwrap().certainty, 0.7);
        assert_eq!(found.likeness, None);

        let none = known.neighbours(&hits(&[1, 3]), 2, None);
        assert_eq!(none.votes.unwrap(), []);
        assert_eq!(none.answers.unwrap()[0].answer.reached, 0);
    }

    #[test]
    fn items_without_labels_are_of_no_class() {
        let labels = labels();
        let known = Known { labels: Some(&labels), rows: Some(&ROWS), ..Known::default() };
        assert_eq!(known.column(2), [0, UNKNOWN, 1, UNKNOWN, UNKNOWN]);
        let (levels, rows) = (["family", "species"].map(String::from), [["a", "x"], ["b", "y"]]);
        let (tree, _) = Taxonomy::from_rows(&levels, &rows.map(Vec::from), ClassIdentity::Path).unwrap();
        let items = |within: &[&str], not: &[&str]| known.items(&Filter::new(&tree, within, not).unwrap());
        assert_eq!(items(&["b"], &[]), [2, 4]);
        assert_eq!(items(&["b"], &["b/y"]), [4]);
        assert_eq!(items(&[], &["b"]), [0, 1, 3]);
    }

    #[test]
    fn a_query_with_labels_is_compared_and_gets_no_votes() {
        let (labels, calibration) = (labels(), calibration());
        let known = Known {
            labels: Some(&labels),
            rows: Some(&ROWS),
            best_scores: None,
            calibration: Some(&calibration),
        };
        let own = Labels::new(2, vec![1, 1]).unwrap();
        let found = known.neighbours(&hits(&[0, 1, 2, 4]), 9, Some(&own));
        let shared: Vec<_> = found.results.iter().map(|item| (item.shared_level, item.may_share)).collect();
        assert_eq!(shared, [(Some(0), Some(0)), (None, None), (Some(2), Some(2)), (Some(1), Some(2))]);
        assert_eq!((found.votes, found.answers), (None, None));
    }

    #[test]
    fn a_gallery_without_labels_says_only_how_alike_the_nearest_is() {
        let best_scores = BestScores::from_scores(vec![0.6; 4]).unwrap();
        let known = Known { best_scores: Some(&best_scores), ..Known::default() };
        let found = known.neighbours(&hits(&[1, 0]), 1, None);
        assert_eq!((&found.votes, &found.answers, found.results.len()), (&None, &None, 1));
        assert_eq!(found.likeness, Some(Likeness { best: 0.5, unlike_below: 0.6, unlike: true }));
        assert!(known.is_unlike(&hits(&[1]), Promise::default()));
        assert_eq!(known.neighbours(&[], 1, None).likeness, None);
    }
}
