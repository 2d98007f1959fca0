//! How far an answer can be trusted: the most likely class at each level with its certainty, and the deepest level that
//! may be said at a promise of the user.
//!
//! The nearest neighbours of a picture vote for a class at each level ([`votes`](crate::votes)). A share of votes is not
//! a probability, and a collection of easy classes needs fewer votes than one of hard classes. So the gallery is asked
//! first: each of its items is a query whose answer is known, and the other items answer it
//! ([`LeaveOneOut`]). [`Calibration`] holds what was measured:
//!
//! 1. **Certainty**: for each level, the share of right answers among those with about as many votes. It does not fall
//!    when votes rise (isotonic regression by pooling adjacent violators, Barlow et al. 1972, as Zadrozny & Elkan 2002 use
//!    it for calibration), and along a path it does not rise: the certainty of a level is at most that of the level
//!    above.
//! 2. **Threshold**: an answer says the deepest level whose certainty reaches a threshold, which is the rule of climbing
//!    of hierarchical selective classification (Goren et al. 2024). The threshold is the lowest one at which the share
//!    of right answers is at least the promise.
//! 3. **Likeness**: a picture whose nearest item is less alike than those of nearly all items is told that nothing here is
//!    like it ([`BestScores`]).
//!
//! # What is promised
//!
//! Of the queries whose answer says at least the coarsest level, at least a share of `promise` is right: the class said
//! is theirs. Silence buys nothing, because a query without an answer does not count. The promise is about all answers
//! together: one of them may be less certain than the promise, and its certainty stands beside it.
//!
//! The share of wrong answers is no monotone function of the threshold, so conformal risk control (Angelopoulos et al.
//! 2024) does not apply. *Learn then Test* (Angelopoulos et al. 2025) does: a threshold θ passes if
//!
//! P(Binomial(n(θ), 1 − promise) ≤ w(θ)) ≤ δ / J,
//!
//! with n(θ) answers on the gallery, of which w(θ) are wrong; that is the test of Geifman & El-Yaniv (2017). The tests run
//! from strict thresholds to lax ones, in J = 4 sequences that start where 1/16, 1/8, 1/4 and 1/2 of the items have an
//! answer, and each sequence ends with its first failure. The lowest threshold that passed is taken. With probability
//! 1 − δ = 90 % over galleries, the share of right answers is then at least the promise.
//!
//! **The assumption**: query and gallery items are exchangeable, as if the query had been drawn with them. Photos of other
//! cameras or of other classes break it, and near copies in the gallery make its own items easier than a query. The bound
//! holds for answers that are independent of each other. Those of leave-one-out share their neighbours, and certainties and
//! threshold come from the same answers, so that here it is an approximation, which `akin eval --certainty` measures on
//! queries of their own.
//!
//! ```
//! use akin_core::certainty::{LeaveOneOut, Promise};
//! use akin_core::embeddings::Embeddings;
//! use akin_core::search::Gallery;
//! use akin_core::similarity::Similarity;
//! use akin_core::taxonomy::Labels;
//! use akin_core::votes::votes;
//!
//! // 200 items of two families far apart; their two species each lie in one place.
//! let angle = |item: usize| (item % 4 / 2) as f32 * 1.5 + (item / 4) as f32 * 1e-3;
//! let points = (0..200).flat_map(|item| [angle(item).cos(), angle(item).sin()]).collect();
//! let gallery = Embeddings::new(2, points)?;
//! let labels = Labels::new(2, (0..200).flat_map(|item| [item % 4 / 2, item % 4]).collect())?;
//!
//! let own = LeaveOneOut::new(&gallery, &labels, Similarity::Cosine)?;
//! let calibration = own.calibration().unwrap();
//! let hits = Gallery::new(&gallery, Similarity::Cosine)?.nearest(&[1.0, 0.05], 10, None)?;
//! let answer = calibration.answer(&votes(&labels, &hits), false, Promise::new(0.95)?);
//! assert_eq!((answer.reached, answer.levels[0].class), (1, 0));
//! # akin_core::Result::Ok(())
//! ```

mod best_scores;
mod measure;

use serde::{Deserialize, Serialize};

pub use self::best_scores::BestScores;
pub use self::measure::{Case, LeaveOneOut, Outcome, cases};
use crate::votes::Vote;
use crate::{Error, Kind, Result};

/// The number of nearest items that vote.
pub const VOTERS: usize = 10;

/// The most steps of a level, and the fewest answers that one is measured on.
const STEPS: usize = 20;
const STEP_ANSWERS: usize = 25;

/// δ: the probability, over galleries, that the share of right answers is below the promise.
pub const RISK: f64 = 0.1;

/// The shares of the gallery's items that have an answer where a sequence of tests starts.
const STARTS: [f64; 4] = [1.0 / 16.0, 1.0 / 8.0, 1.0 / 4.0, 1.0 / 2.0];

/// The least share of right answers that a user asks for, 0.5 to 0.999.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Promise(f64);

impl Promise {
    /// The promises that a page offers.
    pub const OFFERED: [Self; 4] = [Self(0.8), Self(0.9), Self(0.95), Self(0.99)];

    /// A promise.
    ///
    /// # Errors
    ///
    /// [`Kind::Config`] for a number outside 0.5 to 0.999.
    pub fn new(share: f64) -> Result<Self> {
        // 99.9 / 100 is a little more than 0.999.
        if (0.5..=0.999 + 1e-9).contains(&share) {
            return Ok(Self(share.min(0.999)));
        }
        Err(Error::new(
            Kind::Config,
            format!(
                "the promise is {} %, but it is a share of right answers from 50 to 99.9 %",
                100.0 * share
            ),
            "give 95, for example",
        ))
    }

    /// The share, 0.5 to 0.999.
    pub fn share(self) -> f64 {
        self.0
    }
}

impl Default for Promise {
    /// 95 %.
    fn default() -> Self {
        Self(0.95)
    }
}

/// What the gallery's own answers say about certainties and thresholds. A few numbers per level, which travel with a
/// bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Calibration {
    /// The number of gallery items that were asked.
    pub items: usize,
    /// For each level, coarse to fine, how the share of votes becomes a certainty.
    pub levels: Vec<Steps>,
    /// What each threshold gives, from the highest certainty to the lowest.
    pub thresholds: Vec<Threshold>,
}

/// A step function from the share of votes at one level to the certainty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Steps {
    /// Where each step begins, ascending. A share below the first belongs to the first step.
    pub shares: Vec<f64>,
    /// The certainty of each step, ascending: (right + 1) / (answers + 2), Laplace's rule of succession.
    pub certainties: Vec<f64>,
}

/// The answers of the gallery's items if the certainty must reach a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Threshold {
    /// The threshold.
    pub certainty: f64,
    /// The items whose answer says at least the coarsest level.
    pub answered: usize,
    /// Those of them whose answer is wrong.
    pub wrong: usize,
}

/// The most likely class at one level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Certain {
    /// 1 … L.
    pub level: usize,
    /// The class id at this level.
    pub class: u32,
    /// The probability that this is the class of the query, in [0, 1]. It never rises from one level to the next.
    pub certainty: f64,
}

/// The answer to one query.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Answer {
    /// The most likely classes, coarse to fine: a path of the taxonomy.
    pub levels: Vec<Certain>,
    /// The deepest level that may be said at the promise; 0 where none may.
    pub reached: usize,
    /// Whether nothing in the gallery is like the query. Nothing is said then.
    pub unlike: bool,
    /// Whether the gallery is large and easy enough to say anything at this promise.
    pub possible: bool,
}

impl Answer {
    /// The first class that is probable only: the one below the deepest level that may be said. `None` if every level may
    /// be said, or nothing is like the query.
    pub fn probable(&self) -> Option<&Certain> {
        self.levels.get(self.reached).filter(|_| !self.unlike)
    }

    /// The certainty of the deepest class that may be said.
    pub fn certainty(&self) -> Option<f64> {
        self.levels[..self.reached].last().map(|certain| certain.certainty)
    }
}

impl Calibration {
    /// Measures the answers to the gallery's own items; `levels` is L, `is_unlike` says which of them nothing is like.
    /// `None` without answers.
    pub fn new(levels: usize, cases: &[Case], is_unlike: impl Fn(&Case) -> bool) -> Option<Self> {
        if cases.iter().all(|case| case.votes.is_empty()) {
            return None;
        }
        let levels = (1..=levels).map(|level| Steps::new(level, cases)).collect();
        let mut calibration = Self { items: cases.len(), levels, thresholds: Vec::new() };
        let certainties: Vec<(Vec<f64>, &Case)> = cases
            .iter()
            .filter(|case| !is_unlike(case))
            .map(|case| {
                let levels = calibration.certainties(&case.votes);
                (levels.into_iter().map(|certain| certain.certainty).collect(), case)
            })
            .collect();
        let mut all: Vec<f64> =
            calibration.levels.iter().flat_map(|steps| steps.certainties.clone()).collect();
        all.sort_unstable_by(|a, b| b.total_cmp(a));
        all.dedup();
        calibration.thresholds = all
            .into_iter()
            .map(|certainty| {
                let judged = certainties.iter().filter_map(|(certainties, case)| {
                    case.is_right(certainties.partition_point(|&known| known >= certainty))
                });
                let (answered, wrong) =
                    judged.fold((0, 0), |(all, wrong), right| (all + 1, wrong + usize::from(!right)));
                Threshold { certainty, answered, wrong }
            })
            .filter(|threshold| threshold.answered > 0)
            .collect();
        Some(calibration)
    }

    /// The certainty of each vote, coarse to fine. It never rises.
    pub fn certainties(&self, votes: &[Vote]) -> Vec<Certain> {
        let mut above = 1.0_f64;
        votes
            .iter()
            .map(|&Vote { level, class, share }| {
                above = above.min(self.levels.get(level - 1).map_or(0.0, |steps| steps.certainty(share)));
                Certain { level, class, certainty: above }
            })
            .collect()
    }

    /// The least certainty that may be said at a promise, see the [module](self). `None` if the gallery is too small, or too
    /// hard, for that promise.
    pub fn threshold(&self, promise: Promise) -> Option<f64> {
        let passes = |threshold: &Threshold| {
            let wrong = 1.0 - promise.share();
            at_most(threshold.wrong, threshold.answered, wrong) <= RISK / STARTS.len() as f64
        };
        let last = |start: f64| {
            let enough = |threshold: &Threshold| threshold.answered as f64 >= start * self.items as f64;
            let first = self.thresholds.iter().position(enough)?;
            self.thresholds[first..].iter().take_while(|threshold| passes(threshold)).last()
        };
        STARTS.into_iter().filter_map(last).map(|threshold| threshold.certainty).reduce(f64::min)
    }

    /// The answer of a query's votes at a promise. `unlike` says that nothing in the gallery is like it.
    pub fn answer(&self, votes: &[Vote], unlike: bool, promise: Promise) -> Answer {
        let levels = self.certainties(votes);
        let threshold = self.threshold(promise);
        let reached = match threshold {
            Some(threshold) if !unlike => levels.partition_point(|certain| certain.certainty >= threshold),
            _ => 0,
        };
        Answer { levels, reached, unlike, possible: threshold.is_some() }
    }

    /// Why these numbers cannot be a calibration of `levels` levels; `None` if they can.
    pub fn flaw(&self, levels: usize) -> Option<&'static str> {
        let is_share = |number: &f64| (0.0..=1.0).contains(number);
        let ascends = |numbers: &[f64]| numbers.windows(2).all(|pair| pair[0] < pair[1]);
        if self.levels.len() != levels {
            return Some("has another number of levels than the taxonomy");
        }
        for Steps { shares, certainties } in &self.levels {
            if shares.len() != certainties.len() {
                return Some("has a level with another number of shares than of certainties");
            }
            if !shares.iter().chain(certainties).all(is_share) || !ascends(shares) || !ascends(certainties) {
                return Some(
                    "has a level whose shares and certainties are not numbers from 0 to 1 that ascend",
                );
            }
        }
        let falls = self.thresholds.windows(2).all(|pair| pair[0].certainty > pair[1].certainty);
        if !falls || !self.thresholds.iter().all(|threshold| is_share(&threshold.certainty)) {
            return Some("has thresholds that are not numbers from 1 to 0 that descend");
        }
        let fits =
            |threshold: &Threshold| threshold.wrong <= threshold.answered && threshold.answered <= self.items;
        (!self.thresholds.iter().all(fits))
            .then_some("counts more wrong answers than answers, or more answers than items")
    }
}

impl Steps {
    /// The steps of a level from the answers that are right or wrong there.
    fn new(level: usize, cases: &[Case]) -> Self {
        let judged = |case: &Case| Some((case.votes.get(level - 1)?.share, case.is_right(level)?));
        let mut answers: Vec<(f64, bool)> = cases.iter().filter_map(judged).collect();
        answers.sort_unstable_by(|(a, _), (b, _)| a.total_cmp(b));
        let least = STEP_ANSWERS.max(answers.len().div_ceil(STEPS));
        // Runs of at least that many answers, equal shares together; the last one may be too short.
        let mut steps: Vec<Step> = Vec::new();
        for (place, &(share, right)) in answers.iter().enumerate() {
            let begins = match steps.last() {
                None => true,
                Some(step) => step.answers >= least && answers[place - 1].0 < share,
            };
            if begins {
                steps.push(Step { share, right: 0, answers: 0 });
            }
            if let Some(step) = steps.last_mut() {
                step.answers += 1;
                step.right += usize::from(right);
            }
        }
        let mut pooled: Vec<Step> = Vec::new();
        for step in steps {
            pooled.push(step);
            while let [.., before, last] = pooled.as_slice()
                && (last.answers < STEP_ANSWERS || before.certainty() >= last.certainty())
            {
                let sum = Step {
                    share: before.share,
                    right: before.right + last.right,
                    answers: before.answers + last.answers,
                };
                pooled.truncate(pooled.len() - 2);
                pooled.push(sum);
            }
        }
        Self {
            shares: pooled.iter().map(|step| step.share).collect(),
            certainties: pooled.iter().map(Step::certainty).collect(),
        }
    }

    /// The certainty of a share of votes; 0 where no answer was measured.
    pub fn certainty(&self, share: f64) -> f64 {
        let step = self.shares.partition_point(|&begin| begin <= share).max(1) - 1;
        self.certainties.get(step).copied().unwrap_or(0.0)
    }
}

/// The answers whose shares lie from `share` to that of the next step.
struct Step {
    share: f64,
    right: usize,
    answers: usize,
}

impl Step {
    fn certainty(&self) -> f64 {
        (self.right + 1) as f64 / (self.answers + 2) as f64
    }
}

/// P(Binomial(n, p) ≤ k), for 0 < p < 1. O(k).
fn at_most(k: usize, n: usize, p: f64) -> f64 {
    let odds = (p / (1.0 - p)).ln();
    let mut logarithm = n as f64 * (-p).ln_1p();
    let mut sum = logarithm.exp();
    for i in 0..k.min(n) {
        logarithm += ((n - i) as f64 / (i + 1) as f64).ln() + odds;
        sum += logarithm.exp();
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests;
