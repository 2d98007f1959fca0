//! The losses of one query, written out as loops over numbers, against the losses of batches: the same values and
//! gradients, on random scores, on scores that are mostly tied, and without positives. Ranking losses have two forms, from
//! sorted scores and in tensor operations; both are compared.

use akin_core::geometry::Geometry;
use akin_core::losses::{
    Batch, BuildLoss, CalibrationConfig, HapSurrogateConfig, ItemOrder, LossContext, Objective, PairMean,
    Reference, RoadmapConfig, SmoothApConfig, SmoothHapConfig, SmoothNdcgConfig, SmoothRecallConfig,
    SupApConfig, SupNdcgConfig, SupRecallConfig,
};
use akin_core::query_losses::{
    QueryLoss, ScoredItems, calibration, hap_surrogate, roadmap, smooth_ap, smooth_hap, smooth_ndcg,
    smooth_recall, sup_ap, sup_ndcg, sup_recall,
};
use akin_core::relevance::Relevance;
use akin_core::steps::{LowerStep, Smooth, UpperStep};
use akin_core::taxonomy::{Labels, shared_level};
use burn::tensor::{DType, Device, Tensor, TensorData};
use proptest::prelude::*;

const DEPTH: usize = 3;
/// Label paths whose shared levels with the first are 3, 2, 1 and 0.
const PATHS: [[u32; DEPTH]; 4] = [[0, 0, 0], [0, 0, 1], [0, 1, 2], [1, 2, 3]];

fn labels(shared_levels: &[usize]) -> Labels {
    Labels::new(DEPTH, shared_levels.iter().flat_map(|&level| PATHS[DEPTH - level]).collect()).unwrap()
}

fn init<C: BuildLoss>(config: &C) -> C::Loss {
    let classes = labels(&[3, 2, 1, 0]);
    config.init(&LossContext::new(&classes, 1, &Geometry::Cosine, 0, &Device::flex().autodiff())).unwrap()
}

fn tensor(values: Vec<f64>, rows: usize, dtype: DType) -> Tensor<2> {
    let columns = values.len() / rows;
    Tensor::from_data(TensorData::new(values, [rows, columns]), (&Device::flex().autodiff(), dtype))
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().convert::<f64>().try_into_vec().unwrap()
}

/// Value and ∂L/∂s of a loss on tensors, for one query against items. Query and items are vectors of one dimension, and
/// the query is 1, so that the score of an item is the item.
fn loss_on_tensors(
    forward: impl Fn(&Batch) -> Tensor<1>,
    items: &ScoredItems,
    dtype: DType,
) -> (f64, Vec<f64>) {
    let (query_labels, item_labels) = (labels(&[DEPTH]), labels(items.levels()));
    let scores = tensor(items.scores().to_vec(), items.scores().len(), dtype).require_grad();
    let reference = Reference { embeddings: scores.clone(), labels: &item_labels, own: None };
    let batch = Batch::new(tensor(vec![1.0], 1, dtype), &query_labels).with_reference(reference);
    let value = forward(&batch);
    let gradient = scores.grad(&value.backward()).map_or(vec![0.0; items.scores().len()], numbers);
    (numbers(value)[0], gradient)
}

/// Fails unless both are the same to `tolerance`, relative to the largest of them.
fn assert_near(name: &str, got: &[f64], expected: &[f64], tolerance: f64) {
    let scale = expected.iter().fold(1.0_f64, |largest, value| largest.max(value.abs()));
    for (got, expected) in got.iter().zip(expected) {
        assert!((got - expected).abs() <= tolerance * scale, "{name}: {got}, written out {expected}");
    }
}

/// Compares a form of the loss with the plain one in f64 and in f32.
fn compare(name: &str, forward: impl Fn(&Batch) -> Tensor<1>, items: &ScoredItems, plain: &QueryLoss) {
    for (dtype, tolerance) in [(DType::F64, 1e-10), (DType::F32, 1e-6)] {
        let (value, gradient) = loss_on_tensors(&forward, items, dtype);
        let name = format!("{name}, {dtype:?}");
        assert_near(&name, &[value], &[plain.value], tolerance);
        // A sigmoid of width 0.01 has slopes up to 25, with rounding errors in proportion.
        assert_near(&name, &gradient, &plain.gradient, 25.0 * tolerance);
    }
}

/// The losses of H-AP with sigmoids, of NDCG and of recall.
fn ndcg_and_recall(items: &ScoredItems, upper_step: &UpperStep) {
    let temperature = upper_step.temperature;
    let config = SmoothHapConfig { temperature, ..Default::default() };
    let (loss, plain) = (init(&config), smooth_hap(items, &config.checked(DEPTH).unwrap()));
    compare("smooth_hap", |batch| loss.forward(batch), items, &plain);
    compare("smooth_hap on tensors", |batch| loss.on_tensors(batch).unwrap(), items, &plain);
    let config = SmoothNdcgConfig { temperature };
    let (loss, plain) = (init(&config), smooth_ndcg(items, &config.checked().unwrap()));
    compare("smooth_ndcg", |batch| loss.forward(batch), items, &plain);
    compare("smooth_ndcg on tensors", |batch| loss.on_tensors(batch).unwrap(), items, &plain);
    let config = SupNdcgConfig { step: upper_step.clone() };
    let (loss, plain) = (init(&config), sup_ndcg(items, &config.checked().unwrap()));
    compare("sup_ndcg", |batch| loss.forward(batch), items, &plain);
    compare("sup_ndcg on tensors", |batch| loss.on_tensors(batch).unwrap(), items, &plain);
    for (cutoffs, cutoff_temperature) in [(vec![1, 2, 4, 8, 16], 1.0), (vec![2], 0.5)] {
        let config = SmoothRecallConfig { cutoffs: cutoffs.clone(), cutoff_temperature, temperature };
        let (loss, plain) = (init(&config), smooth_recall(items, &config.checked().unwrap()));
        compare("smooth_recall", |batch| loss.forward(batch), items, &plain);
        compare("smooth_recall on tensors", |batch| loss.on_tensors(batch).unwrap(), items, &plain);
        let config = SupRecallConfig { cutoffs, cutoff_temperature, step: upper_step.clone() };
        let (loss, plain) = (init(&config), sup_recall(items, &config.checked().unwrap()));
        compare("sup_recall", |batch| loss.forward(batch), items, &plain);
        compare("sup_recall on tensors", |batch| loss.on_tensors(batch).unwrap(), items, &plain);
    }
}

fn compare_all(items: &ScoredItems, upper_step: &UpperStep, lower_step: &LowerStep) {
    for temperature in [0.01, 0.1] {
        let config = SmoothApConfig { temperature };
        let (loss, plain) = (init(&config), smooth_ap(items, &config.checked().unwrap()));
        compare("smooth_ap", |batch| loss.forward(batch), items, &plain);
        compare("smooth_ap on tensors", |batch| loss.on_tensors(batch).unwrap(), items, &plain);
    }
    let config = SupApConfig { step: upper_step.clone() };
    let (loss, plain) = (init(&config), sup_ap(items, &config.checked().unwrap()));
    compare("sup_ap", |batch| loss.forward(batch), items, &plain);
    compare("sup_ap on tensors", |batch| loss.on_tensors(batch).unwrap(), items, &plain);
    ndcg_and_recall(items, upper_step);
    for mean in [PairMean::Queries, PairMean::QueriesWithSelf, PairMean::Active] {
        let config = CalibrationConfig { mean, ..Default::default() };
        let (loss, plain) = (init(&config), calibration(items, &config.checked().unwrap()));
        compare("calibration", |batch| loss.forward(batch), items, &plain);
    }
    let config = RoadmapConfig {
        lambda: 0.3,
        sup_ap: SupApConfig { step: upper_step.clone() },
        calibration: Default::default(),
    };
    let (loss, plain) = (init(&config), roadmap(items, &config.checked().unwrap()));
    compare("roadmap", |batch| loss.forward(batch), items, &plain);
    for smooth_rank in [true, false] {
        for order in [ItemOrder::Levels, ItemOrder::Relevances] {
            for relevance in [
                Relevance::HierarchicalAp { alpha: 1.0 },
                Relevance::WeightedAp { weights: vec![0.2, 0.0, 0.8] },
            ] {
                let config = HapSurrogateConfig {
                    relevance,
                    upper_step: upper_step.clone(),
                    lower_step: lower_step.clone(),
                    order,
                    smooth_rank,
                    stop_gradient: false,
                };
                let plain = hap_surrogate(items, &config.checked(DEPTH).unwrap());
                let (loss, name) = (init(&config), format!("{config:?}"));
                compare(&name, |batch| loss.forward(batch), items, &plain);
                compare(
                    &format!("{name} on tensors"),
                    |batch| loss.on_tensors(batch).unwrap(),
                    items,
                    &plain,
                );
            }
        }
    }
}

/// Items with scores that are exact in f32, and so are their differences. In half of the cases most are tied.
fn items() -> impl Strategy<Value = ScoredItems> {
    let item = |values: i32| (0..values, 0..=DEPTH);
    let list = |values: i32| prop::collection::vec(item(values), 1..9);
    prop_oneof![list(3), list(128)].prop_map(|list| {
        let scores = list.iter().map(|&(score, _)| f64::from(score) / 128.0).collect();
        ScoredItems::new(DEPTH, scores, list.into_iter().map(|(_, level)| level).collect()).unwrap()
    })
}

fn upper_steps() -> impl Strategy<Value = UpperStep> {
    let optional = |values: &[f64]| prop::option::of(prop::sample::select(values.to_vec()));
    let temperature = prop::sample::select(vec![0.01, 0.05]);
    (
        temperature,
        optional(&[0.0, 10.0, 100.0]),
        optional(&[0.0, 0.05]),
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
    fn both_forms_of_a_loss_agree(items in items(), upper in upper_steps(), lower in lower_steps()) {
        compare_all(&items, &upper, &lower);
    }

    #[test]
    fn both_forms_of_a_step_agree(upper in upper_steps(), lower in lower_steps()) {
        let points: Vec<f64> = (-64..=64).map(|t| f64::from(t) / 256.0).chain([-1e3, 1e3]).collect();
        let tensor = || Tensor::<1>::from_data(TensorData::from(points.as_slice()), (&Device::flex(), DType::F64));
        let (upper, lower) = (upper.checked().unwrap(), lower.checked().unwrap());
        let assert_same = |name: &str, tensors: Smooth<Tensor<1>>, number: &dyn Fn(f64) -> Smooth<f64>| {
            let plain: Vec<_> = points.iter().map(|&t| number(t)).collect();
            let of = |part: fn(&Smooth<f64>) -> f64| plain.iter().map(part).collect::<Vec<_>>();
            assert_near(name, &numbers(tensors.value), &of(|smooth| smooth.value), 1e-12);
            assert_near(name, &numbers(tensors.derivative), &of(|smooth| smooth.derivative), 1e-12);
        };
        assert_same("the upper step", upper.apply(tensor()), &|t| upper.at(t));
        assert_same("the lower step", lower.apply(tensor()), &|t| lower.at(t));
    }
}

#[test]
fn both_forms_agree_without_positives_and_with_one_item() {
    for (scores, levels) in [
        (vec![0.5, 0.25, 0.25], vec![0, 0, 0]),
        (vec![0.5, 0.25, 0.25], vec![1, 2, 2]),
        (vec![0.5, 0.25, 0.25], vec![3, 3, 3]),
        (vec![0.5], vec![3]),
        (vec![0.5], vec![0]),
        (vec![0.5; 5], vec![3, 2, 1, 0, 3]),
    ] {
        let items = ScoredItems::new(DEPTH, scores, levels).unwrap();
        compare_all(&items, &UpperStep::default(), &LowerStep::default());
    }
}

/// In a batch each item is a query, and ranks itself as one of its positives. The loss is the mean over the queries,
/// and the gradient of embedding x_i collects those of its scores, on both sides of s_ij = x_i·x_j.
#[test]
fn a_batch_is_the_mean_over_its_queries() {
    let shared_levels = [3, 3, 2, 1, 0, 0, 2];
    let rows: Vec<[f64; 2]> =
        (0..shared_levels.len()).map(|row| (row as f64 * 2.4).sin_cos().into()).collect();
    let batch_labels = labels(&shared_levels);
    let size = rows.len();
    let embeddings = tensor(rows.concat(), size, DType::F64).require_grad();

    let smooth = SmoothApConfig::default();
    let surrogate = HapSurrogateConfig::default();
    type Plain<'a> = &'a dyn Fn(&ScoredItems) -> QueryLoss;
    let compare = |name: &str, value: Tensor<1>, plain: Plain| {
        let (mut mean, mut gradient) = (0.0, vec![[0.0; 2]; size]);
        for query in 0..size {
            let dot = |row: &[f64; 2]| row[0] * rows[query][0] + row[1] * rows[query][1];
            let levels =
                (0..size).map(|item| shared_level(batch_labels.row(query), batch_labels.row(item))).collect();
            let items = ScoredItems::new(DEPTH, rows.iter().map(dot).collect(), levels).unwrap();
            let loss = plain(&items);
            mean += loss.value / size as f64;
            for (item, slope) in loss.gradient.iter().enumerate() {
                for axis in 0..2 {
                    gradient[query][axis] += slope * rows[item][axis] / size as f64;
                    gradient[item][axis] += slope * rows[query][axis] / size as f64;
                }
            }
        }
        let on_tensors = numbers(embeddings.grad(&value.backward()).unwrap());
        assert_near(name, &numbers(value), &[mean], 1e-10);
        assert_near(name, &on_tensors, &gradient.concat(), 1e-10);
    };
    let batch = Batch::new(embeddings.clone(), &batch_labels);
    let settings = smooth.checked().unwrap();
    compare("smooth_ap", init(&smooth).forward(&batch), &|items| smooth_ap(items, &settings));
    let settings = surrogate.checked(DEPTH).unwrap();
    compare("hap_surrogate", init(&surrogate).forward(&batch), &|items| hap_surrogate(items, &settings));
}
