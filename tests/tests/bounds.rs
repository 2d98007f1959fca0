//! The H-AP surrogate is an upper bound of 1 − H-AP (HAPPIER, section 3.2), where nothing is tied
//! and the query belongs to its own list.

use akin_core::geometry::Geometry;
use akin_core::losses::{Batch, HapSurrogateConfig, LossSettings, Objective, Setting};
use akin_core::metrics::hierarchical_ap;
use akin_core::ranking::{Ranking, TiePolicy};
use akin_core::relevance::Relevance;
use akin_core::taxonomy::{Labels, shared_level};
use burn::tensor::{DType, Device, Tensor, TensorData};
use proptest::prelude::*;

const DIMENSION: usize = 3;

/// Rows of unit length with labels of three levels: the class, its half, and its quarter.
fn batch() -> impl Strategy<Value = (Vec<f64>, Labels)> {
    let row = (prop::array::uniform3(-1.0..1.0_f64), 0..8_u32);
    prop::collection::vec(row, 2..20).prop_map(|rows| {
        let values = rows.iter().flat_map(|(row, _)| {
            let length = row.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-3);
            row.map(|x| x / length)
        });
        let ids = rows.iter().flat_map(|&(_, class)| [class / 4, class / 2, class]).collect();
        (values.collect(), Labels::new(3, ids).unwrap())
    })
}

proptest! {
    #[test]
    fn the_surrogate_is_never_below_one_minus_h_ap(
        (values, labels) in batch(),
        alpha in 0.5..5.0_f64,
    ) {
        let size = labels.len();
        let relevance = Relevance::HierarchicalAp { alpha };
        let device = Device::flex();
        let rows = Tensor::from_data(TensorData::new(values.clone(), [size, DIMENSION]), (&device, DType::F64));
        let config =
            HapSurrogateConfig { relevance: relevance.clone(), smooth_rank: false, ..Default::default() };
        let classes = labels.classes();
        let setting = Setting::new(&classes, DIMENSION, &Geometry::Cosine, 0, &device);
        let surrogate = config.init(&setting).unwrap().forward(&Batch::new(rows, &labels));
        let surrogate = surrogate.into_data().try_to_vec::<f64>().unwrap()[0];

        let row = |i: usize| &values[i * DIMENSION..(i + 1) * DIMENSION];
        let score = |a: usize, b: usize| row(a).iter().zip(row(b)).map(|(x, y)| x * y).sum::<f64>() as f32;
        let mut h_ap = 0.0;
        for query in 0..size {
            let scores: Vec<f32> = (0..size).map(|item| score(query, item)).collect();
            let mut sorted = scores.clone();
            sorted.sort_by(f32::total_cmp);
            prop_assume!(sorted.windows(2).all(|pair| pair[1] - pair[0] > 1e-6));
            let items = (0..size)
                .map(|item| (scores[item], shared_level(labels.row(query), labels.row(item))));
            let ranking = Ranking::from_scores(3, TiePolicy::Stable, items);
            h_ap += hierarchical_ap(&ranking, &relevance).expect("a query is its own positive") / size as f64;
        }
        prop_assert!(surrogate >= 1.0 - h_ap - 1e-9, "{surrogate} < 1 − {h_ap}");
    }
}
