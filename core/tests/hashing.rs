//! Reference sets and empty batches of the losses that learn codes, and evaluation by Hamming distance against a naive
//! ranking. Their equations are in `paper/hashing.rs`.

use akin_core::embeddings::Embeddings;
use akin_core::evaluate::{EvaluationConfig, Labelled, QueryScores, evaluate};
use akin_core::geometry::Geometry;
use akin_core::losses::{Batch, BuildLoss, DpshConfig, DtshConfig, LossContext, Objective, Reference};
use akin_core::random::{normal, stream};
use akin_core::ranking::Ranking;
use akin_core::similarity::Similarity;
use akin_core::taxonomy::{Labels, shared_level};
use burn::tensor::{DType, Device, Tensor, TensorData};

const BITS: usize = 6;

type Rows = Vec<Vec<f64>>;

fn rows(seed: u64, count: usize) -> Rows {
    let values = normal(&mut stream(seed, "test", &[]), count * BITS, 1.0);
    values.chunks(BITS).map(|row| row.iter().map(|&x| f64::from(x)).collect()).collect()
}

fn tensor(rows: &Rows) -> Tensor<2> {
    let data = TensorData::new(rows.concat(), [rows.len(), BITS]);
    Tensor::from_data(data, (&Device::flex().autodiff(), DType::F64))
}

fn plain(value: Tensor<2>) -> Rows {
    let values = value.into_data().convert::<f64>().try_to_vec::<f64>().unwrap();
    values.chunks(BITS).map(<[f64]>::to_vec).collect()
}

fn number(value: Tensor<1>) -> f64 {
    value.into_data().try_to_vec::<f64>().unwrap()[0]
}

fn init<S: BuildLoss>(config: &S, labels: &Labels) -> S::Loss {
    let (classes, device) = (labels.classes(), Device::flex().autodiff());
    config.init(&LossContext::new(&classes, BITS, &Geometry::Binary, 0, &device)).unwrap()
}

fn fine(ids: &[u32]) -> Labels {
    Labels::new(1, ids.to_vec()).unwrap()
}

#[test]
fn the_gradient_reaches_the_items_of_a_reference_set() {
    // The queries are rows 2 to 6 of the items.
    let (items, item_labels) = (rows(1, 9), fine(&[0, 1, 0, 0, 1, 2, 1, 2, 0]));
    let (queries, labels) = (items[2..7].to_vec(), item_labels.select(&[2, 3, 4, 5, 6]));
    let losses: [&dyn Fn(&Batch) -> Tensor<1>; 2] =
        [&|batch| init(&DpshConfig::default(), &item_labels).forward(batch), &|batch| {
            init(&DtshConfig::default(), &item_labels).forward(batch)
        }];
    for loss in losses {
        let batch = |items: Tensor<2>| {
            let reference = Reference { embeddings: items, labels: &item_labels, own: Some(2) };
            Batch::new(tensor(&queries), &labels).with_reference(reference)
        };
        let variable = tensor(&items).require_grad();
        let gradient = plain(variable.grad(&loss(&batch(variable.clone())).backward()).unwrap());
        for (item, bit) in [(0, 0), (3, 2), (7, 5)] {
            let value = |shift: f64| {
                let mut items = items.clone();
                items[item][bit] += shift;
                number(loss(&batch(tensor(&items))))
            };
            let (slope, expected) = (gradient[item][bit], (value(1e-6) - value(-1e-6)) / 2e-6);
            assert!((slope - expected).abs() < 1e-7, "{slope} is not {expected}");
        }
    }
}

#[test]
fn a_batch_without_pairs_or_triplets_has_no_loss() {
    let one = rows(2, 1);
    let labels = fine(&[0]);
    let batch = Batch::new(tensor(&one), &labels);
    assert_eq!(number(init(&DpshConfig::default(), &labels).forward(&batch)), 0.0);
    let (items, labels) = (rows(2, 3), fine(&[0, 1, 2]));
    let batch = Batch::new(tensor(&items), &labels);
    assert_eq!(number(init(&DtshConfig::default(), &labels).forward(&batch)), 0.0);
}

/// Whole numbers, 0 among them, so that many codes are equal; the first two rows are all zero.
fn rounded(seed: u64, count: usize, bits: usize) -> Embeddings {
    let mut values = normal(&mut stream(seed, "test", &[]), count * bits, 1.0);
    values.iter_mut().for_each(|value| *value = value.round());
    values[..2 * bits].fill(0.0);
    Embeddings::new(bits, values).unwrap()
}

#[test]
fn evaluation_by_hamming_distance_breaks_ties_by_gallery_order() {
    let levels = ["kind", "variety"].map(String::from);
    for bits in [3, 64, 70] {
        let labels = |count: u32| {
            Labels::new(2, (0..count).flat_map(|i| [i * 7 % 12 / 6, i * 7 % 12 / 3]).collect()).unwrap()
        };
        let (queries, query_labels) = (rounded(1, 20, bits), labels(20));
        let (items, item_labels) = (rounded(2, 30, bits), labels(30));
        let config = EvaluationConfig { similarity: Similarity::Hamming, ..EvaluationConfig::default() };
        let checked = config.checked(2).unwrap();
        let asked = Labelled { embeddings: &queries, labels: &query_labels };
        for gallery in [None, Some(Labelled { embeddings: &items, labels: &item_labels })] {
            let ranked = gallery.unwrap_or(asked);
            let naive = |query: usize| {
                let distance = |item: usize| {
                    let pair = queries.row(query).iter().zip(ranked.embeddings.row(item));
                    pair.filter(|&(&a, &b)| (a > 0.0) != (b > 0.0)).count()
                };
                let others = (0..ranked.labels.len()).filter(|&item| gallery.is_some() || item != query);
                let mut order: Vec<usize> = others.collect();
                order.sort_by_key(|&item| (distance(item), item));
                let level = |&item: &usize| shared_level(query_labels.row(query), ranked.labels.row(item));
                let ranking = Ranking::from_levels(2, &order.iter().map(level).collect::<Vec<_>>());
                QueryScores::new(query, &ranking, &checked)
            };
            let expected: Vec<QueryScores> = (0..20).map(naive).collect();
            for block in [1, 7, 64] {
                let config = EvaluationConfig { block, ..config.clone() };
                let report = evaluate(&levels, asked, gallery, &config).unwrap();
                assert_eq!(report.per_query, expected, "{bits} bits, blocks of {block}");
            }
        }
    }
}
