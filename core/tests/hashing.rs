//! The losses that learn codes against naive transcriptions of their equations, and evaluation by Hamming distance
//! against a naive ranking.

use akin_core::embeddings::Embeddings;
use akin_core::evaluate::{EvaluationConfig, Labelled, QueryScores, evaluate};
use akin_core::geometry::Geometry;
use akin_core::losses::{
    Batch, BuildLoss, CsqConfig, DpshConfig, DtshConfig, HpdhConfig, LossContext, Objective, Reference,
};
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

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Σ ‖sign r − r‖².
fn to_corners(rows: &Rows) -> f64 {
    rows.iter().flatten().map(|r| (r.signum() - r).powi(2)).sum()
}

#[track_caller]
fn assert_close(got: f64, expected: f64) {
    assert!((got - expected).abs() < 1e-9 * (1.0 + expected.abs()), "{got} is not {expected}");
}

/// The batch against itself, and against a set of which it is rows 2 to 6.
fn settings() -> [(Rows, Labels, Rows, Labels, usize); 2] {
    let (items, of_items) = (rows(1, 9), fine(&[0, 1, 0, 0, 1, 2, 1, 2, 0]));
    let queries = items[2..7].to_vec();
    let of_queries = of_items.select(&[2, 3, 4, 5, 6]);
    [
        (items.clone(), of_items.clone(), items.clone(), of_items.clone(), 0),
        (queries, of_queries, items, of_items, 2),
    ]
}

#[test]
fn dpsh_is_the_likelihood_of_its_pairs() {
    let config = DpshConfig { quantisation_weight: 3.0 };
    for (queries, labels, items, of_items, own) in settings() {
        let (mut sum, mut count) = (0.0, 0.0);
        for (i, query) in queries.iter().enumerate() {
            for (j, item) in items.iter().enumerate().filter(|&(j, _)| j != own + i) {
                let theta = dot(query, item) / 2.0;
                let alike = f64::from(u8::from(labels.row(i) == of_items.row(j)));
                sum -= alike * theta - (1.0 + theta.exp()).ln();
                count += 1.0;
            }
        }
        let reference = Reference { embeddings: tensor(&items), labels: &of_items, own: Some(own) };
        let batch = Batch::new(tensor(&queries), &labels).with_reference(reference);
        let expected = (sum + 3.0 * to_corners(&queries)) / count;
        assert_close(number(init(&config, &of_items).forward(&batch)), expected);
    }
}

#[test]
fn dtsh_is_the_likelihood_of_its_triplets() {
    let config = DtshConfig { margin: None, quantisation_weight: 3.0 };
    for (queries, labels, items, of_items, own) in settings() {
        let (mut sum, mut count) = (0.0, 0.0);
        for (q, query) in queries.iter().enumerate() {
            let alike = |item: usize| labels.row(q) == of_items.row(item);
            for p in (0..items.len()).filter(|&p| p != own + q && alike(p)) {
                for n in (0..items.len()).filter(|&n| !alike(n)) {
                    let lead = dot(query, &items[p]) / 2.0 - dot(query, &items[n]) / 2.0 - BITS as f64 / 2.0;
                    sum -= lead - (1.0 + lead.exp()).ln();
                    count += 1.0;
                }
            }
        }
        let reference = Reference { embeddings: tensor(&items), labels: &of_items, own: Some(own) };
        let batch = Batch::new(tensor(&queries), &labels).with_reference(reference);
        let expected = (sum + 3.0 * to_corners(&queries)) / count;
        assert_close(number(init(&config, &of_items).forward(&batch)), expected);
    }
}

#[test]
fn the_gradient_reaches_the_items_of_a_reference_set() {
    let [_, (queries, labels, items, of_items, own)] = settings();
    let losses: [&dyn Fn(&Batch) -> Tensor<1>; 2] =
        [&|batch| init(&DpshConfig::default(), &of_items).forward(batch), &|batch| {
            init(&DtshConfig::default(), &of_items).forward(batch)
        }];
    for loss in losses {
        let batch = |items: Tensor<2>| {
            let reference = Reference { embeddings: items, labels: &of_items, own: Some(own) };
            Batch::new(tensor(&queries), &labels).with_reference(reference)
        };
        let moved = tensor(&items).require_grad();
        let gradient = plain(moved.grad(&loss(&batch(moved.clone())).backward()).unwrap());
        for (item, bit) in [(0, 0), (3, 2), (7, 5)] {
            let at = |shift: f64| {
                let mut items = items.clone();
                items[item][bit] += shift;
                number(loss(&batch(tensor(&items))))
            };
            let expected = (at(1e-6) - at(-1e-6)) / 2e-6;
            assert!(
                (gradient[item][bit] - expected).abs() < 1e-7,
                "{} is not {expected}",
                gradient[item][bit]
            );
        }
    }
}

#[test]
fn a_batch_without_pairs_or_triplets_has_no_loss() {
    let one = rows(2, 1);
    let labels = fine(&[0]);
    let batch = Batch::new(tensor(&one), &labels);
    assert_eq!(number(init(&DpshConfig::default(), &labels).forward(&batch)), 0.0);
    let (strangers, labels) = (rows(2, 3), fine(&[0, 1, 2]));
    let batch = Batch::new(tensor(&strangers), &labels);
    assert_eq!(number(init(&DtshConfig::default(), &labels).forward(&batch)), 0.0);
}

#[test]
fn csq_is_the_cross_entropy_of_each_bit_to_the_code_of_the_class() {
    let (numbers, labels) = (rows(3, 7), fine(&[0, 1, 2, 0, 1, 2, 2]));
    let weight = 0.3;
    let mut loss = init(&CsqConfig { quantisation_weight: weight }, &labels);
    loss.centres = loss.centres.clone().map(|centres| centres.cast(DType::F64));
    let centres = plain(loss.centres.val());
    let mut sum = 0.0;
    for (item, row) in numbers.iter().enumerate() {
        for (r, centre) in row.iter().zip(&centres[labels.row(item)[0] as usize]) {
            let (h, target) = ((1.0 + r.tanh()) / 2.0, (1.0 + centre) / 2.0);
            sum -= target * h.ln() + (1.0 - target) * (1.0 - h).ln();
            sum += weight * ((2.0 * h - 1.0).abs() - 1.0).cosh().ln();
        }
    }
    let value = loss.forward(&Batch::new(tensor(&numbers), &labels));
    assert_close(number(value), sum / (numbers.len() * BITS) as f64);
}

#[test]
fn hpdh_is_the_likelihood_of_the_classes_of_every_level_in_a_cube() {
    let numbers = rows(4, 6);
    let labels = Labels::new(2, vec![0, 0, 0, 1, 1, 2, 1, 3, 0, 0, 1, 3]).unwrap();
    let mut loss = init(&HpdhConfig::default(), &labels);
    loss.centres = loss.centres.iter().map(|kept| kept.clone().map(|kept| kept.cast(DType::F64))).collect();
    let (count, mut expected) = (numbers.len() as f64, 0.0);
    for (level, deviation) in [(1, 2.0f64), (2, 1.0)] {
        let centres = plain(loss.centres[level - 1].val());
        for (row, class) in numbers.iter().zip(labels.column(level)) {
            let density = |centre: &Vec<f64>| {
                let square: f64 = row.iter().zip(centre).map(|(r, c)| (r - c).powi(2)).sum();
                (-square.sqrt() / (2.0 * deviation.powi(2))).exp()
            };
            let all: f64 = centres.iter().map(density).sum();
            expected -= (density(&centres[class as usize]) / all).ln() / count;
        }
    }
    let outside: f64 = numbers.iter().flatten().map(|r| (r.abs() - 1.1).max(0.0)).sum();
    expected += (10.0 * outside + 0.1 * to_corners(&numbers)) / count;
    let value = number(loss.forward(&Batch::new(tensor(&numbers), &labels)));
    assert_close(value, expected);
}

/// Numbers of few values, 0 among them, so that many codes are equal; the first two rows are all zero.
fn coarse(seed: u64, count: usize, bits: usize) -> Embeddings {
    let mut values = normal(&mut stream(seed, "test", &[]), count * bits, 1.0);
    values.iter_mut().for_each(|value| *value = value.round());
    values[..2 * bits].fill(0.0);
    Embeddings::new(bits, values).unwrap()
}

#[test]
fn evaluation_by_hamming_distance_ranks_codes_and_then_places() {
    let levels = ["kind", "variety"].map(String::from);
    for bits in [3, 64, 70] {
        let labels = |count: u32| {
            Labels::new(2, (0..count).flat_map(|i| [i * 7 % 12 / 6, i * 7 % 12 / 3]).collect()).unwrap()
        };
        let (queries, of_queries) = (coarse(1, 20, bits), labels(20));
        let (items, of_items) = (coarse(2, 30, bits), labels(30));
        let config = EvaluationConfig { similarity: Similarity::Hamming, ..EvaluationConfig::default() };
        let checked = config.checked(2).unwrap();
        let asked = Labelled { embeddings: &queries, labels: &of_queries };
        for gallery in [None, Some(Labelled { embeddings: &items, labels: &of_items })] {
            let ranked = gallery.unwrap_or(asked);
            let naive = |query: usize| {
                let distance = |item: usize| {
                    let pair = queries.row(query).iter().zip(ranked.embeddings.row(item));
                    pair.filter(|&(&a, &b)| (a > 0.0) != (b > 0.0)).count()
                };
                let others = (0..ranked.labels.len()).filter(|&item| gallery.is_some() || item != query);
                let mut order: Vec<usize> = others.collect();
                order.sort_by_key(|&item| (distance(item), item));
                let level = |&item: &usize| shared_level(of_queries.row(query), ranked.labels.row(item));
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
