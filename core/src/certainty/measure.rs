//! Queries with known labels: what the gallery answers, and whether it is right.

use super::{BestScores, Calibration, Promise, VOTERS};
use crate::embeddings::Embeddings;
use crate::search::Gallery;
use crate::similarity::Similarity;
use crate::taxonomy::{Labels, UNKNOWN};
use crate::threads::in_order;
use crate::votes::{Vote, votes};
use crate::{Error, Kind, Result};

/// What the gallery answers to a query with known labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The votes of its nearest items, coarse to fine.
    pub votes: Vec<Vote>,
    /// The score of the nearest item; `None` where the gallery has no other item.
    pub best: Option<f32>,
    /// How many levels of the votes, from the coarsest on, are the query's own classes.
    pub right: usize,
    /// How many levels of the query's labels, from the coarsest on, are known.
    pub known: usize,
}

impl Case {
    /// Whether an answer down to level `reached` is right. `None` for no answer, and where the labels do not tell.
    pub fn is_right(&self, reached: usize) -> Option<bool> {
        match reached {
            0 => None,
            _ if reached <= self.right => Some(true),
            _ if self.right < self.known => Some(false),
            _ => None,
        }
    }

    fn new(
        gallery: &Gallery,
        labels: &Labels,
        embedding: &[f32],
        own: &[u32],
        itself: Option<usize>,
    ) -> Result<Self> {
        let hits = gallery.nearest(embedding, VOTERS, itself)?;
        let votes = votes(labels, &hits);
        let is_own = |vote: &&Vote| class_at(own, vote.level) == Some(vote.class);
        Ok(Self {
            right: votes.iter().take_while(is_own).count(),
            known: (1..=own.len()).take_while(|&level| class_at(own, level).is_some()).count(),
            best: hits.first().map(|hit| hit.score),
            votes,
        })
    }
}

/// The class of a row of labels at a level; `None` where it is unknown.
fn class_at(row: &[u32], level: usize) -> Option<u32> {
    row.get(level - 1).copied().filter(|&class| class != UNKNOWN)
}

/// What a gallery answers to queries that are not in it. Both are embeddings with their labels.
///
/// # Errors
///
/// [`Kind::Embeddings`](crate::Kind::Embeddings) for embeddings of different dimensions, or ones that the similarity is
/// not defined for.
pub fn cases(
    queries: (&Embeddings, &Labels),
    (embeddings, labels): (&Embeddings, &Labels),
    similarity: Similarity,
) -> Result<Vec<Case>> {
    let gallery = Gallery::new(embeddings, similarity)?;
    let case = |query| Case::new(&gallery, labels, queries.0.row(query), queries.1.row(query), None);
    in_order(queries.0.len(), case).into_iter().collect()
}

/// What a gallery answers to each of its own items, which is left out meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaveOneOut {
    /// The answer to each item that was asked with, in gallery order.
    pub cases: Vec<Case>,
    /// L.
    levels: usize,
    /// Whether each item has one label path.
    is_tree: bool,
}

impl LeaveOneOut {
    /// Asks with every item. O(N² d).
    ///
    /// # Errors
    ///
    /// [`Kind::Embeddings`](crate::Kind::Embeddings) for an embedding that the similarity is not defined for.
    pub fn new(embeddings: &Embeddings, labels: &Labels, similarity: Similarity) -> Result<Self> {
        Self::measure(embeddings, labels, similarity, embeddings.len(), || false)
    }

    /// Asks with at most `most` items, evenly spread over the gallery, so that a large one is measured in a time that
    /// grows with N alone: O(N d) for each.
    ///
    /// # Errors
    ///
    /// As [`LeaveOneOut::new`].
    pub fn of_sample(
        embeddings: &Embeddings,
        labels: &Labels,
        similarity: Similarity,
        most: usize,
    ) -> Result<Self> {
        Self::measure(embeddings, labels, similarity, most, || false)
    }

    /// As [`new`](Self::new), for a caller who may want the work to stop.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and [`Kind::Stopped`] when the caller has stopped it.
    pub fn new_unless(
        embeddings: &Embeddings,
        labels: &Labels,
        similarity: Similarity,
        is_stopped: impl Fn() -> bool + Sync + Send,
    ) -> Result<Self> {
        Self::measure(embeddings, labels, similarity, embeddings.len(), is_stopped)
    }

    fn measure(
        embeddings: &Embeddings,
        labels: &Labels,
        similarity: Similarity,
        most: usize,
        is_stopped: impl Fn() -> bool + Sync + Send,
    ) -> Result<Self> {
        let gallery = Gallery::new(embeddings, similarity)?;
        let items = spread(embeddings.len(), most);
        let case = |place| {
            let item = items[place];
            match is_stopped() {
                false => Case::new(&gallery, labels, embeddings.row(item), labels.row(item), Some(item)),
                true => Err(Error::new(Kind::Stopped, "the work was stopped", "start it again")),
            }
        };
        let cases = in_order(items.len(), case).into_iter().collect::<Result<_>>()?;
        Ok(Self { cases, levels: labels.levels(), is_tree: labels.kinship().is_none() })
    }

    /// The distribution of the best scores; `None` for fewer than two items.
    pub fn best_scores(&self) -> Option<BestScores> {
        BestScores::from_scores(self.cases.iter().filter_map(|case| case.best).collect())
    }

    /// What the answers say about certainties and thresholds; `None` for fewer than two items, and where items have several
    /// label paths or a matrix of relevance, so that a wrong class is not clearly wrong.
    pub fn calibration(&self) -> Option<Calibration> {
        let best_scores = self.best_scores();
        let is_unlike = |case: &Case| {
            best_scores
                .as_ref()
                .zip(case.best)
                .is_some_and(|(own, best)| own.is_unlike(best, Promise::default()))
        };
        self.is_tree.then(|| Calibration::new(self.levels, &self.cases, is_unlike))?
    }
}

/// At most `most` of the numbers 0 … `count` − 1, evenly spread; all of them if there are no more.
pub(super) fn spread(count: usize, most: usize) -> Vec<usize> {
    let chosen = count.min(most);
    // In 64 bits the product cannot overflow.
    (0..chosen).map(|place| (place as u64 * count as u64 / chosen as u64) as usize).collect()
}

/// How the answers to many queries turn out at one promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The number of queries.
    pub queries: usize,
    /// The queries that nothing in the gallery is like.
    pub unlike: usize,
    /// The queries whose answer goes just to each level: 0 (no answer), 1 … L.
    pub reached: Vec<usize>,
    /// The answers whose labels tell whether they are right.
    pub judged: usize,
    /// Those of them that are right.
    pub right: usize,
}

impl Outcome {
    /// The answers at a promise.
    pub fn new(
        cases: &[Case],
        calibration: &Calibration,
        best_scores: Option<&BestScores>,
        promise: Promise,
    ) -> Self {
        let threshold = calibration.threshold(promise);
        Self::of(cases, calibration.levels.len(), |case| {
            if best_scores.zip(case.best).is_some_and(|(own, best)| own.is_unlike(best, promise)) {
                return None;
            }
            let certain = calibration.certainties(&case.votes);
            Some(threshold.map_or(0, |least| certain.partition_point(|level| level.certainty >= least)))
        })
    }

    /// The answers that go to the deepest level whose share of votes is at least `least`.
    pub fn of_votes(cases: &[Case], levels: usize, least: f64) -> Self {
        Self::of(cases, levels, |case| Some(case.votes.partition_point(|vote| vote.share >= least)))
    }

    /// The answers that all go to one level.
    pub fn of_level(cases: &[Case], levels: usize, level: usize) -> Self {
        Self::of(cases, levels, |case| Some(level.min(case.votes.len())))
    }

    /// The answers that go to `reached`; `None` where nothing is like the query.
    fn of(cases: &[Case], levels: usize, reached: impl Fn(&Case) -> Option<usize>) -> Self {
        let mut outcome =
            Self { queries: cases.len(), unlike: 0, reached: vec![0; levels + 1], judged: 0, right: 0 };
        for case in cases {
            let reached = reached(case);
            outcome.unlike += usize::from(reached.is_none());
            let reached = reached.unwrap_or(0);
            outcome.reached[reached] += 1;
            let right = case.is_right(reached);
            outcome.judged += usize::from(right.is_some());
            outcome.right += usize::from(right == Some(true));
        }
        outcome
    }

    /// The share of right answers; `None` without answers.
    pub fn right_share(&self) -> Option<f64> {
        (self.judged > 0).then(|| self.right as f64 / self.judged as f64)
    }

    /// The share of the queries whose answer goes at least to `level`.
    pub fn coverage(&self, level: usize) -> f64 {
        self.reached[level..].iter().sum::<usize>() as f64 / self.queries.max(1) as f64
    }

    /// The mean level that the answers reach, over all queries; no answer counts as 0.
    pub fn mean_level(&self) -> f64 {
        let sum: usize = self.reached.iter().enumerate().map(|(level, count)| level * count).sum();
        sum as f64 / self.queries.max(1) as f64
    }
}
