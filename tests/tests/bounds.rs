//! Bounds that the papers prove: the smooth losses are upper bounds of their metrics, without ties and with the query in
//! its own list; and calibrated scores close the gap between AP over batches and AP over the whole set.

use akin_core::embeddings::Embeddings;
use akin_core::evaluate::{Decomposability, EvaluationConfig, Labelled, decomposability_gap};
use akin_core::geometry::Geometry;
use akin_core::losses::{
    Batch, BuildLoss, CalibrationConfig, HapSurrogateConfig, LossContext, Objective, SupApConfig,
};
use akin_core::metrics::{average_precision, hierarchical_ap};
use akin_core::ranking::{Ranking, TiePolicy};
use akin_core::relevance::Relevance;
use akin_core::taxonomy::{Labels, shared_level};
use burn::tensor::{DType, Device, Tensor, TensorData};
use proptest::prelude::*;

/// Rows of unit length with labels at three levels; each coarser level halves the number of classes.
fn batch() -> impl Strategy<Value = (Vec<f64>, Labels)> {
    let row = (prop::array::uniform3(-1.0..1.0_f64), 0..8_u32);
    prop::collection::vec(row, 2..20).prop_map(|rows| {
        let values = rows.iter().flat_map(|(row, _)| unit(row)).collect();
        (values, labels(&rows.iter().map(|&(_, class)| class).collect::<Vec<_>>()))
    })
}

/// Rows of unit length around one axis for each of four classes.
fn clusters() -> impl Strategy<Value = (Vec<f64>, Labels)> {
    let row = (prop::array::uniform4(-0.12..0.12_f64), 0..4_u32);
    prop::collection::vec(row, 2..20).prop_map(|rows| {
        let around_axis = |&(mut row, class): &([f64; 4], u32)| {
            row[class as usize] += 1.0;
            unit(&row)
        };
        let values = rows.iter().flat_map(around_axis).collect();
        (values, labels(&rows.iter().map(|&(_, class)| class).collect::<Vec<_>>()))
    })
}

fn unit(row: &[f64]) -> Vec<f64> {
    let length = row.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-3);
    row.iter().map(|x| x / length).collect()
}

fn labels(fine: &[u32]) -> Labels {
    Labels::new(3, fine.iter().flat_map(|class| [class / 4, class / 2, *class]).collect()).unwrap()
}

fn loss(config: &impl BuildLoss, values: &[f64], labels: &Labels) -> f64 {
    let (device, dimension) = (Device::flex(), values.len() / labels.len());
    let data = TensorData::new(values.to_vec(), [labels.len(), dimension]);
    let rows = Tensor::from_data(data, (&device, DType::F64));
    let classes = labels.classes();
    let context = LossContext::new(&classes, dimension, &Geometry::Cosine, 0, &device);
    let value = config.init(&context).unwrap().forward(&Batch::new(rows, labels));
    value.into_data().try_to_vec::<f64>().unwrap()[0]
}

/// The ranking of the batch by each of its items, itself included. None if any scores are tied.
fn rankings(values: &[f64], labels: &Labels) -> Option<Vec<Ranking>> {
    let rows: Vec<&[f64]> = values.chunks(values.len() / labels.len()).collect();
    let score = |a: usize, b: usize| rows[a].iter().zip(rows[b]).map(|(x, y)| x * y).sum::<f64>() as f32;
    let ranking = |query: usize| {
        let scores: Vec<f32> = (0..labels.len()).map(|item| score(query, item)).collect();
        let mut sorted = scores.clone();
        sorted.sort_by(f32::total_cmp);
        let apart = sorted.windows(2).all(|pair| pair[1] - pair[0] > 1e-6);
        let items = scores.into_iter().enumerate();
        let items = items.map(|(item, score)| (score, shared_level(labels.row(query), labels.row(item))));
        apart.then(|| Ranking::from_scores(3, TiePolicy::Stable, items))
    };
    (0..labels.len()).map(ranking).collect()
}

fn relevance() -> impl Strategy<Value = Relevance> {
    let alpha = || 0.0..5.0_f64;
    let weights = prop::collection::vec(0.01..1.0_f64, 3);
    prop_oneof![
        alpha().prop_map(|alpha| Relevance::HierarchicalAp { alpha }),
        alpha().prop_map(|alpha| Relevance::Plain { alpha }),
        weights.prop_map(|weights| Relevance::WeightedAp { weights }),
    ]
}

/// The decomposability gap of the finest level, in balanced batches of this size.
fn gap(values: &[f64], labels: &Labels, batch: usize, seed: u64) -> Option<f64> {
    let row_values = values.iter().map(|&x| x as f32).collect();
    let embeddings = Embeddings::new(values.len() / labels.len(), row_values).unwrap();
    let set = Labelled { embeddings: &embeddings, labels };
    let settings = Decomposability { batch, seed };
    let gap = decomposability_gap(set, &EvaluationConfig::default(), settings).unwrap();
    gap.levels[labels.levels() - 1]
}

proptest! {
    /// HAPPIER, section 3.2.
    #[test]
    fn the_surrogate_is_never_below_one_minus_h_ap(
        (values, labels) in batch(),
        relevance in relevance(),
        smooth_rank: bool,
    ) {
        let config = HapSurrogateConfig { relevance: relevance.clone(), smooth_rank, ..Default::default() };
        let surrogate = loss(&config, &values, &labels);
        let rankings = rankings(&values, &labels);
        prop_assume!(rankings.is_some());
        let checked = relevance.checked(labels.levels()).unwrap();
        let h_ap = |ranking| hierarchical_ap(&ranking, &checked).expect("a query is its own positive");
        let h_ap = rankings.into_iter().flatten().map(h_ap).sum::<f64>() / labels.len() as f64;
        prop_assert!(surrogate >= 1.0 - h_ap - 1e-9, "{surrogate} < 1 − {h_ap}");
    }

    /// ROADMAP, section 3.1.
    #[test]
    fn sup_ap_is_never_below_one_minus_ap((values, labels) in batch()) {
        let sup_ap = loss(&SupApConfig::default(), &values, &labels);
        let rankings = rankings(&values, &labels);
        prop_assume!(rankings.is_some());
        let ap = |ranking| average_precision(&ranking, 3).expect("a query is its own positive");
        let ap = rankings.into_iter().flatten().map(ap).sum::<f64>() / labels.len() as f64;
        prop_assert!(sup_ap >= 1.0 - ap - 1e-9, "{sup_ap} < 1 − {ap}");
    }

    /// ROADMAP, section 3.2.
    #[test]
    fn where_calibration_is_zero_ap_over_batches_is_ap_over_the_whole(
        (values, labels) in clusters(),
        batch in any::<prop::sample::Index>(),
        seed: u64,
    ) {
        prop_assume!(loss(&CalibrationConfig::default(), &values, &labels) == 0.0);
        let batch = 2 + batch.index(labels.len() - 1);
        prop_assert!(gap(&values, &labels, batch, seed).is_none_or(|gap| gap == 0.0));
    }
}

#[test]
fn correct_rankings_at_different_scales_have_a_gap() {
    // Some pairs of one class are 50° apart, while items of different classes are 10° apart.
    let at = |degrees: f64| [degrees.to_radians().cos(), degrees.to_radians().sin()];
    let values: Vec<f64> =
        [0.0, 50.0, 160.0, 210.0, 20.0, 21.0, 30.0, 31.0].into_iter().flat_map(at).collect();
    let labels = labels(&[0, 0, 1, 1, 0, 0, 1, 1]);
    let gaps: Vec<f64> = (0..20).filter_map(|seed| gap(&values, &labels, 4, seed)).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    assert!(mean > 0.02, "{mean}");
    assert!(loss(&CalibrationConfig::default(), &values, &labels) > 0.0);
}
