//! Smooth ranks of all items of a query in O(N log N), with their gradient.
//!
//! Ranking losses of AP replace the step in rank(k) = 1 + Σ_j H(s_j − s_k) by a smooth one. Written out, that compares
//! every item with every other: O(N²) for a query and O(B³) for a batch. This module gets the same numbers from the
//! sorted scores, in O(N log N) for a query:
//!
//! - a sigmoid is a short sum of powers of e^{−|t|/τ} (`series.rs`), and each power is a product of a number of one item
//!   and one of the other, so that sums of powers run along a sorted line with one multiplication and one addition an item
//!   and power (`sums.rs`);
//! - the straight parts of the steps are counts and sums of distances, which run along too (`sums.rs`, `distances.rs`);
//! - the gradient is the same with the slopes of the powers, once as it is and once transposed: what item j receives
//!   from all k is a sum along the line in the other direction.
//!
//! # Accuracy
//!
//! With M = 16 powers every sigmoid has a relative error of at most 2 · 5.83^−M = 1.1 · 10⁻¹², and its slope one of
//! 2.4 · 10⁻¹¹. Each rank has it too, for every number of items and every temperature. All sums are in f64. Where a step
//! jumps at t = 0, items of equal score count with the value that its definition gives to t = 0, exactly.
//!
//! Where few items are ranked, or few items in all, comparing them pair by pair is quicker (`pairs.rs`), and that is
//! what happens there. Both paths agree with [`query_losses`](crate::query_losses), the equations written out.
//!
//! # The floor
//!
//! An item adds its 16 powers to the sums of its place, in both directions, and takes them out again beyond the threshold:
//! about 45 operations each time. A ranked item adds up the sums of the places that it counts, moves them by its own powers,
//! and takes two sums of 16 products, in both directions: about 160 operations each time. The gradient is the same with the
//! roles exchanged, and needs one of the two sums. If a quarter of the items is ranked, this is about 400 operations an item
//! in f64, or 50 vectors of eight: 25 cycles of a core that finishes two a cycle, 9 ns at 2.9 GHz.
//!
//! Measured on one core of an EPYC with AVX-512 on 2026-11-28: 54 ns an item for queries of 4,096 items on three levels, of
//! which a quarter is ranked. The ranks take 19 ns, the gradient 22, the sort 3; reading scores and places and writing the
//! gradient take the rest. What keeps the ranks and the gradient from the floor was not measured. Likely are branches that
//! the processor guesses wrong, because the channels of the next item and the number of items that go beyond the threshold
//! follow no pattern, and the sums across a vector at the end of each reader. Reading the gradient for eight items in the
//! lanes of a vector, with polynomials of their powers and with pairs inside a block, was tried and took 6 ns more.
//!
//! Memory is O(B) for a thread beside the scores and their gradient. Comparing in pairs costs about 16 operations for each
//! of K·N pairs, in vectors without waiting; up to 64 ranked items this is less.
//!
//! On a GPU the tensor form is used, which compares in pairs: O(N·K) for a query. From which batch on a trip through the
//! host would be quicker there has not been measured.
//!
//! # Limits
//!
//! A query with a score that is not finite has the loss NaN and a gradient of NaN. As τ → 0 the sigmoid becomes the true
//! step with ½ at a tie; as τ → ∞ every item counts one half.

mod batch;
mod distances;
mod exponential;
mod line;
mod pairs;
mod series;
mod sorted;
mod sums;
mod terms;
mod values;

use macerator::Simd;

use crate::Checked;
use crate::steps::{LowerStep, UpperStep};

pub use batch::{BatchLoss, Places, Score};
pub use values::RankValue;

use pairs::{LARGEST_SPREAD, Pairs};
use sorted::Sorted;
use sums::StepSeries;
use values::ItemValues;

/// The smooth steps of the two ranks of an item k: its rank, and the H-rank above it in the quotient.
#[derive(Clone, Debug, PartialEq)]
pub enum RankSteps {
    /// The sigmoid for all other items, in both ranks (Smooth-AP).
    Sigmoid {
        /// An [`UpperStep`] without its line.
        step: Checked<UpperStep>,
    },
    /// Bounds of the true step (SupAP, the H-AP surrogate).
    Bounds {
        /// In the rank, for items of a lower place than k. The others count by the true step.
        upper: Checked<UpperStep>,
        /// In the H-rank, for items of a higher place than k. Without it all items count by the true step, and the
        /// H-rank has no gradient.
        lower: Option<Checked<LowerStep>>,
    },
}

/// The items of one query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScoredPlaces<'a> {
    /// The score of each item.
    pub scores: &'a [f64],
    /// The place of each item: items of a higher place belong above it.
    pub places: &'a [u32],
    /// The relevance of each place, finite and at least 0. Items of a relevance above 0 are ranked.
    pub relevances: &'a [f64],
}

impl ScoredPlaces<'_> {
    /// The lowest and the highest score.
    fn range(&self) -> [f64; 2] {
        let fold = |pick: fn(f64, f64) -> f64, from: f64| self.scores.iter().copied().fold(from, pick);
        [fold(f64::min, f64::INFINITY), fold(f64::max, f64::NEG_INFINITY)]
    }
}

/// The two ranks of an item and Σ_j of the slopes of their addends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sums {
    pub above: f64,
    pub rank: f64,
    pub above_slope: f64,
    pub rank_slope: f64,
}

/// Smooth ranks by these steps, and the loss of a ranking: 1 − its [`RankValue`], with the gradient.
#[derive(Clone, Debug)]
pub struct SmoothRanks {
    steps: RankSteps,
    value: RankValue,
    series: StepSeries,
}

/// Up to this number of ranked items, comparing them with all items is quicker than sorting.
const MOST_PAIRS: usize = 64;

/// Memory that is used again for each query.
#[derive(Default)]
pub(crate) struct Memory {
    pairs: Pairs,
    sorted: Sorted,
}

/// The ways to the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// Every ranked item is compared with every item.
    Pairs,
    /// Sums along the sorted scores.
    Sorted,
}

impl SmoothRanks {
    /// Smooth ranks by these steps, with [`RankValue::Precision`] as the value.
    pub fn new(steps: RankSteps) -> Self {
        Self::with_value(steps, RankValue::Precision)
    }

    /// Smooth ranks by these steps, with this value.
    pub fn with_value(steps: RankSteps, value: RankValue) -> Self {
        let upper = match &steps {
            RankSteps::Sigmoid { step } => step,
            RankSteps::Bounds { upper, .. } => upper,
        };
        let series = StepSeries::new(upper);
        Self { series, steps, value }
    }

    /// The quicker path for these items.
    pub(crate) fn path(&self, items: &ScoredPlaces) -> Path {
        let ranked = items.places.iter().filter(|&&place| items.relevances[place as usize] > 0.0).count();
        if ranked <= MOST_PAIRS && self.pairs_fit(items) { Path::Pairs } else { Path::Sorted }
    }

    fn pairs_fit(&self, items: &ScoredPlaces) -> bool {
        let [low, high] = items.range();
        (high - low) / self.series.temperature <= LARGEST_SPREAD
    }

    /// The sum of the values of the ranked items; ∂/∂s of its negative is added to `descent`.
    #[inline(always)]
    pub(crate) fn query<S: Simd>(
        &self,
        path: Path,
        memory: &mut Memory,
        items: &ScoredPlaces,
        values: &ItemValues,
        descent: &mut [f64],
    ) -> f64 {
        match path {
            Path::Pairs => memory.pairs.query(&self.steps, self.series.temperature, items, values, descent),
            Path::Sorted => memory.sorted.query::<S>(&self.series, self, items, values, descent),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::query_losses::{
        HapSurrogateConfig, ItemOrder, QueryLoss, ScoredItems, SmoothApConfig, SmoothHapConfig,
        SmoothNdcgConfig, SmoothRecallConfig, SupApConfig, SupNdcgConfig, SupRecallConfig, hap_surrogate,
        smooth_ap, smooth_hap, smooth_ndcg, smooth_recall, sup_ap, sup_ndcg, sup_recall,
    };
    use crate::random::{normal, stream};
    use crate::relevance::Relevance;

    const DEPTH: usize = 3;

    /// The loss by one path, in the form of the oracle.
    fn loss(ranks: &SmoothRanks, path: Path, items: &ScoredPlaces) -> QueryLoss {
        let size = items.scores.len();
        let mut loss = QueryLoss { value: 0.0, gradient: vec![0.0; size], quotients: Vec::new() };
        if let Some(values) = ranks.value.item_values(items) {
            let mut memory = Memory::default();
            loss.value =
                1.0 - batch::in_vectors(ranks, path, &mut memory, *items, &values, &mut loss.gradient);
        }
        loss
    }

    /// `slope_error` is the error of the slope of a sigmoid, in units of 1/τ.
    fn assert_same(
        name: &str,
        got: &QueryLoss,
        expected: &QueryLoss,
        tolerance: f64,
        slope_error: f64,
        temperature: f64,
    ) {
        let largest = expected.gradient.iter().fold(1.0_f64, |largest, slope| largest.max(slope.abs()));
        let slope_tolerance = tolerance * largest + slope_error / temperature;
        let value_scale = expected.value.abs().max(1.0);
        assert!(
            (got.value - expected.value).abs() <= tolerance * value_scale,
            "{name}: {} {}",
            got.value,
            expected.value
        );
        for (item, (got, expected)) in got.gradient.iter().zip(&expected.gradient).enumerate() {
            assert!((got - expected).abs() <= slope_tolerance, "{name}, item {item}: {got} {expected}");
        }
    }

    /// Compares both paths with an oracle.
    fn compare(name: &str, ranks: &SmoothRanks, items: &ScoredPlaces, expected: &QueryLoss) {
        // The equations have 1 − σ in their slopes, which rounds to 10⁻¹⁶. The series have an error of 2.4 · 10⁻¹¹ of slopes
        // of at most ¼.
        let paths = [(Path::Pairs, 1e-11, 1e-15), (Path::Sorted, 1e-10, 6e-12)];
        for (path, tolerance, slope_error) in paths.into_iter().skip(usize::from(!ranks.pairs_fit(items))) {
            let name = format!("{name}, {path:?}, {items:?}");
            let got = loss(ranks, path, items);
            assert_same(&name, &got, expected, tolerance, slope_error, ranks.series.temperature);
        }
    }

    fn surrogate(config: &HapSurrogateConfig, items: &ScoredItems) {
        let settings = config.checked(DEPTH).unwrap();
        let mut counts = vec![0; DEPTH + 1];
        items.levels().iter().for_each(|&level| counts[level] += 1);
        let relevances = settings.relevance.by_level(&counts);
        let mut sorted: Vec<f64> = relevances.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.dedup();
        let place = |level: usize| match config.order {
            ItemOrder::Levels => level,
            ItemOrder::Relevances => sorted.iter().position(|&rel| rel == relevances[level]).unwrap(),
        };
        let places: Vec<u32> = items.levels().iter().map(|&level| place(level) as u32).collect();
        let by_place = match config.order {
            ItemOrder::Levels => relevances,
            ItemOrder::Relevances => sorted,
        };
        let ranks = SmoothRanks::new(RankSteps::Bounds {
            upper: config.upper_step.checked().unwrap(),
            lower: config.smooth_rank.then(|| config.lower_step.checked().unwrap()),
        });
        let scored = ScoredPlaces { scores: items.scores(), places: &places, relevances: &by_place };
        compare(&format!("{config:?}"), &ranks, &scored, &hap_surrogate(items, &settings));
    }

    /// The losses whose value is a function of the rank alone.
    fn ndcg_and_recall(items: &ScoredItems, upper: &UpperStep) {
        let sigmoid = || RankSteps::Sigmoid { step: UpperStep::sigmoid(upper.temperature) };
        let bounds = || RankSteps::Bounds { upper: upper.checked().unwrap(), lower: None };
        let levels: Vec<u32> = items.levels().iter().map(|&level| level as u32).collect();
        let gains = [0.0, 1.0, 3.0, 7.0];
        let scored = ScoredPlaces { scores: items.scores(), places: &levels, relevances: &gains };
        let smooth = SmoothNdcgConfig { temperature: upper.temperature }.checked().unwrap();
        let ranks = SmoothRanks::with_value(sigmoid(), RankValue::DiscountedGain);
        compare("smooth_ndcg", &ranks, &scored, &smooth_ndcg(items, &smooth));
        let sup = SupNdcgConfig { step: upper.clone() }.checked().unwrap();
        let ranks = SmoothRanks::with_value(bounds(), RankValue::DiscountedGain);
        compare("sup_ndcg", &ranks, &scored, &sup_ndcg(items, &sup));

        let places: Vec<u32> = levels.iter().map(|&level| u32::from(level == DEPTH as u32)).collect();
        let scored = ScoredPlaces { scores: items.scores(), places: &places, relevances: &[0.0, 1.0] };
        for (cutoffs, cutoff_temperature) in [(vec![1, 2, 4, 8, 16], 1.0), (vec![3], 0.2)] {
            let temperature = upper.temperature;
            let value = || RankValue::Recall { cutoffs: cutoffs.clone(), temperature: cutoff_temperature };
            let smooth = SmoothRecallConfig { cutoffs: cutoffs.clone(), cutoff_temperature, temperature };
            let ranks = SmoothRanks::with_value(sigmoid(), value());
            compare("smooth_recall", &ranks, &scored, &smooth_recall(items, &smooth.checked().unwrap()));
            let step = upper.clone();
            let sup = SupRecallConfig { cutoffs: cutoffs.clone(), cutoff_temperature, step };
            let ranks = SmoothRanks::with_value(bounds(), value());
            compare("sup_recall", &ranks, &scored, &sup_recall(items, &sup.checked().unwrap()));
        }

        for relevance in
            [Relevance::HierarchicalAp { alpha: 1.0 }, Relevance::WeightedAp { weights: vec![0.2, 0.0, 0.8] }]
        {
            let config = SmoothHapConfig { relevance, temperature: upper.temperature };
            let settings = config.checked(DEPTH).unwrap();
            let mut counts = vec![0; DEPTH + 1];
            items.levels().iter().for_each(|&level| counts[level] += 1);
            let relevances = settings.relevance.by_level(&counts);
            let scored = ScoredPlaces { scores: items.scores(), places: &levels, relevances: &relevances };
            compare("smooth_hap", &SmoothRanks::new(sigmoid()), &scored, &smooth_hap(items, &settings));
        }
    }

    fn compare_all(items: &ScoredItems, upper: &UpperStep, lower: &LowerStep) {
        let positive = |&level: &usize| u32::from(level == DEPTH);
        let places: Vec<u32> = items.levels().iter().map(positive).collect();
        let scored = ScoredPlaces { scores: items.scores(), places: &places, relevances: &[0.0, 1.0] };
        let smooth = SmoothApConfig { temperature: upper.temperature }.checked().unwrap();
        let ranks = SmoothRanks::new(RankSteps::Sigmoid { step: smooth.step() });
        compare("smooth_ap", &ranks, &scored, &smooth_ap(items, &smooth));
        let sup = SupApConfig { step: upper.clone() }.checked().unwrap();
        let ranks = SmoothRanks::new(RankSteps::Bounds { upper: sup.step(), lower: None });
        compare("sup_ap", &ranks, &scored, &sup_ap(items, &sup));
        ndcg_and_recall(items, upper);
        for smooth_rank in [false, true] {
            for order in [ItemOrder::Levels, ItemOrder::Relevances] {
                for relevance in [
                    Relevance::HierarchicalAp { alpha: 1.0 },
                    Relevance::WeightedAp { weights: vec![0.2, 0.0, 0.8] },
                    Relevance::WeightedAp { weights: vec![0.0, 0.0, 1.0] },
                ] {
                    let (upper_step, lower_step) = (upper.clone(), lower.clone());
                    let stop_gradient = false;
                    surrogate(
                        &HapSurrogateConfig {
                            relevance,
                            upper_step,
                            lower_step,
                            order,
                            smooth_rank,
                            stop_gradient,
                        },
                        items,
                    );
                }
            }
        }
    }

    fn items() -> impl Strategy<Value = ScoredItems> {
        let list = |score: BoxedStrategy<f64>, most: usize| {
            prop::collection::vec((score, 0..=DEPTH), 1..most).prop_map(|list| {
                let (scores, levels) = list.into_iter().unzip();
                ScoredItems::new(DEPTH, scores, levels).unwrap()
            })
        };
        prop_oneof![
            list((-1.0..1.0_f64).boxed(), 40),
            list((0.4..0.6_f64).boxed(), 300),
            list((0..3_i32).prop_map(|tied| f64::from(tied) * 0.03).boxed(), 20),
            list((-1.0..1.0_f64).prop_map(|score| score * 1e3).boxed(), 20),
            list((-1.0..1.0_f64).prop_map(|score| score * 1e-9).boxed(), 20),
        ]
    }

    fn upper_steps() -> impl Strategy<Value = UpperStep> {
        let optional = |values: &[f64]| prop::option::of(prop::sample::select(values.to_vec()));
        (
            prop::sample::select(vec![1e-12, 0.001, 0.01, 0.05, 1.0, 1e12]),
            optional(&[0.0, 10.0, 100.0]),
            optional(&[0.0, 0.05, 3.0]),
            optional(&[1.0, 1.44]),
            prop::sample::select(vec![0.0, 0.5]),
            any::<bool>(),
        )
            .prop_map(|(temperature, slope, threshold, offset, start, start_at_zero)| UpperStep {
                temperature,
                slope,
                threshold,
                offset,
                start,
                start_at_zero,
            })
    }

    fn lower_steps() -> impl Strategy<Value = LowerStep> {
        let choose = |values: &[f64]| prop::sample::select(values.to_vec());
        (choose(&[0.0, 25.0]), choose(&[0.0, 0.5, 1.0]), choose(&[0.0, 10.0]), any::<bool>())
            .prop_map(|(slope, start, leak, start_at_zero)| LowerStep { slope, start, leak, start_at_zero })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn both_paths_agree_with_the_equations(items in items(), upper in upper_steps(), lower in lower_steps()) {
            compare_all(&items, &upper, &lower);
        }
    }

    /// So many that the scores are sorted by their digits, with gaps, ties and an outlier.
    #[test]
    fn both_paths_agree_for_many_items() {
        let mut scores = normal(&mut stream(0, "scores", &[]), 1200, 0.05);
        for (item, score) in scores.iter_mut().enumerate() {
            match item % 40 {
                0 => *score = 0.125,
                1 => *score += 3.0,
                _ => {}
            }
        }
        scores[7] = 1e4;
        let scores = scores.into_iter().map(f64::from).collect();
        let levels = (0..1200).map(|item| [0, 1, 0, 2, 0, 0, 3][item % 7]).collect();
        let items = ScoredItems::new(DEPTH, scores, levels).unwrap();
        compare_all(&items, &UpperStep::default(), &LowerStep::default());
    }

    #[test]
    fn both_paths_agree_where_there_is_little_to_compare() {
        for (scores, levels) in [
            (vec![0.5, 0.25, 0.25], vec![0, 0, 0]),
            (vec![0.5, 0.25, 0.25], vec![1, 2, 2]),
            (vec![0.5, 0.25, 0.25], vec![3, 3, 3]),
            (vec![0.5], vec![3]),
            (vec![0.5], vec![0]),
            (vec![0.5; 5], vec![3, 2, 1, 0, 3]),
            (vec![0.0, -0.0, 0.1], vec![3, 0, 1]),
        ] {
            let items = ScoredItems::new(DEPTH, scores, levels).unwrap();
            compare_all(&items, &UpperStep::default(), &LowerStep::default());
        }
    }
}
