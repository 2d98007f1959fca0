//! Batches to compare on, and the arithmetic that several transcriptions need.

use akin_core::geometry::Geometry;
use akin_core::losses::{Batch, BuildLoss, Loss, LossConfig, LossContext, Objective, Reference};
use akin_core::random::{normal, stream};
use akin_core::taxonomy::{Labels, shared_level};
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{DType, Device, Tensor, TensorData};
use rand::RngExt;

/// The fine classes; classes 0 and 1 have one parent, 2 and 3 another.
pub(crate) const CLASSES: usize = 4;
/// d of the batches.
pub(crate) const DIMENSION: usize = 4;
const TOLERANCE: f64 = 1e-10;

/// Some items: unit vectors with their fine classes.
pub(crate) struct Items {
    pub rows: Vec<Vec<f64>>,
    pub classes: Vec<u32>,
}

/// Queries, and the items that they are compared with.
pub(crate) struct Case {
    name: String,
    pub queries: Items,
    /// None: the queries are the items.
    reference: Option<Items>,
    /// The item that is query 0, if the queries are among the items; the others follow it.
    own: Option<usize>,
}

impl Items {
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The labels at two levels.
    pub(crate) fn labels(&self) -> Labels {
        labels(&self.classes)
    }

    /// The rows, [rows, d].
    pub(crate) fn tensor(&self) -> Tensor<2> {
        tensor(&self.rows)
    }
}

impl Case {
    pub(crate) fn items(&self) -> &Items {
        self.reference.as_ref().unwrap_or(&self.queries)
    }

    /// s_ij = x_i·x_j.
    pub(crate) fn score(&self, query: usize, item: usize) -> f64 {
        dot(&self.queries.rows[query], &self.items().rows[item])
    }

    /// Whether the item is the query itself.
    pub(crate) fn is_query(&self, query: usize, item: usize) -> bool {
        self.own.is_some_and(|own| own + query == item)
    }

    /// The items of the query's fine class, the query itself among them.
    pub(crate) fn positives_with_query(&self, query: usize) -> Vec<usize> {
        let class = self.queries.classes[query];
        (0..self.items().len()).filter(|&item| self.items().classes[item] == class).collect()
    }

    /// P_i: the other items of the query's fine class.
    pub(crate) fn positives(&self, query: usize) -> Vec<usize> {
        self.positives_with_query(query).into_iter().filter(|&item| !self.is_query(query, item)).collect()
    }

    /// N_i: the items of other fine classes.
    pub(crate) fn negatives(&self, query: usize) -> Vec<usize> {
        let class = self.queries.classes[query];
        (0..self.items().len()).filter(|&item| self.items().classes[item] != class).collect()
    }

    /// l_ij: 0, 1 or 2.
    pub(crate) fn shared_level(&self, query: usize, item: usize) -> usize {
        shared_level(self.queries.labels().row(query), self.items().labels().row(item))
    }

    /// The value of the loss with these settings.
    pub(crate) fn value<C: BuildLoss>(&self, config: &C) -> f64 {
        self.value_of(&init(config))
    }

    /// The value of a loss.
    pub(crate) fn value_of(&self, loss: &impl Objective) -> f64 {
        let (query_labels, item_labels) = (self.queries.labels(), self.items().labels());
        let mut batch = Batch::new(self.queries.tensor(), &query_labels);
        if let Some(items) = &self.reference {
            batch = batch.with_reference(Reference {
                embeddings: items.tensor(),
                labels: &item_labels,
                own: self.own,
            });
        }
        loss.forward(&batch).into_data().try_to_vec::<f64>().unwrap()[0]
    }

    /// Fails unless the two values agree.
    pub(crate) fn assert_agree(&self, loss: &str, value: f64, paper: f64) {
        let near = (value - paper).abs() <= TOLERANCE * (1.0 + paper.abs());
        assert!(near, "{loss}, {}: the loss is {value}, its equation gives {paper}", self.name);
    }
}

/// Batches that are compared with themselves.
pub(crate) fn batches() -> Vec<Case> {
    let batch = |name: &str, seed: u64, rows: Vec<Vec<f64>>, classes: &[u32]| Case {
        name: format!("{name}, seed {seed}"),
        queries: Items { rows, classes: classes.to_vec() },
        reference: None,
        own: Some(0),
    };
    let mut batches = Vec::new();
    for seed in 0..4 {
        let classes = [0, 0, 0, 1, 1, 2, 2, 2, 3];
        batches.push(batch("random", seed, random_rows(seed, 9), &classes));
        batches.push(batch("ties", seed, tied_rows(seed, 9), &classes));
        batches.push(batch("every class once", seed, random_rows(seed, 4), &[0, 1, 2, 3]));
        batches.push(batch("one class", seed, tied_rows(seed, 4), &[2; 4]));
    }
    batches
}

/// The batches above; batches against other items, none of class 3, to which two queries belong; and parts of a larger
/// set against the whole.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = batches();
    for seed in 0..4 {
        for (name, rows) in [("random", random_rows as fn(u64, usize) -> _), ("ties", tied_rows)] {
            let items = Items { rows: rows(seed + 10, 7), classes: vec![2, 0, 0, 1, 2, 1, 0] };
            cases.push(Case {
                name: format!("{name} against other items, seed {seed}"),
                queries: Items { rows: rows(seed, 5), classes: vec![0, 3, 1, 2, 3] },
                reference: Some(Items { rows: items.rows.clone(), classes: items.classes.clone() }),
                own: None,
            });
            cases.push(Case {
                name: format!("{name}, part of a larger set, seed {seed}"),
                queries: Items { rows: items.rows[2..5].to_vec(), classes: items.classes[2..5].to_vec() },
                reference: Some(items),
                own: Some(2),
            });
        }
    }
    cases
}

/// Random unit vectors.
pub(crate) fn random_rows(seed: u64, count: usize) -> Vec<Vec<f64>> {
    let values = normal(&mut stream(seed, "paper", &[]), count * DIMENSION, 1.0);
    values.chunks(DIMENSION).map(|row| unit(&row.iter().map(|&x| f64::from(x)).collect::<Vec<_>>())).collect()
}

/// Unit vectors whose scores are −1, −½, 0, ½ or 1 without rounding, so that many are equal: ±e_i and ½(±1, …, ±1).
fn tied_rows(seed: u64, count: usize) -> Vec<Vec<f64>> {
    let mut rng = stream(seed, "paper ties", &[]);
    let mut row = || -> Vec<f64> {
        let number: usize = rng.random_range(0..24);
        let sign = |bit: usize| if number >> bit & 1 == 0 { 1.0 } else { -1.0 };
        if number < 16 {
            return (0..DIMENSION).map(|bit| 0.5 * sign(bit)).collect();
        }
        (0..DIMENSION).map(|i| if i == number / 2 % 4 { sign(0) } else { 0.0 }).collect()
    };
    (0..count).map(|_| row()).collect()
}

/// The labels of fine classes at two levels.
pub(crate) fn labels(classes: &[u32]) -> Labels {
    Labels::new(2, classes.iter().flat_map(|&class| [class / 2, class]).collect()).unwrap()
}

/// A loss for the classes above.
pub(crate) fn init<C: BuildLoss>(config: &C) -> C::Loss {
    config.init(&LossContext::new(&all_classes(), DIMENSION, &Geometry::Cosine, 0, &Device::flex())).unwrap()
}

/// The same for a loss of the catalogue.
pub(crate) fn init_named(config: &LossConfig) -> Loss {
    config.init(&LossContext::new(&all_classes(), DIMENSION, &Geometry::Cosine, 0, &Device::flex())).unwrap()
}

fn all_classes() -> Labels {
    labels(&[0, 1, 2, 3])
}

/// A loss with the proxies that it drew, both in f64.
pub(crate) fn with_drawn_proxies<C: BuildLoss>(config: &C) -> (C::Loss, Vec<Vec<f64>>) {
    struct ToF64(Vec<f64>);
    impl ModuleMapper for ToF64 {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            param.map(|tensor| {
                let tensor = tensor.cast(DType::F64);
                self.0.extend(tensor.to_data().try_into_vec::<f64>().unwrap());
                tensor
            })
        }
    }
    let mut mapper = ToF64(Vec::new());
    let loss = init(config).map(&mut mapper);
    (loss, mapper.0.chunks(DIMENSION).map(<[f64]>::to_vec).collect())
}

/// Rows as a parameter of a loss.
pub(crate) fn parameter(rows: &[Vec<f64>]) -> Param<Tensor<2>> {
    Param::from_tensor(tensor(rows))
}

fn tensor(rows: &[Vec<f64>]) -> Tensor<2> {
    Tensor::from_data(
        TensorData::new(rows.concat(), [rows.len(), rows[0].len()]),
        (&Device::flex(), DType::F64),
    )
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub(crate) fn unit(row: &[f64]) -> Vec<f64> {
    let length = dot(row, row).sqrt();
    row.iter().map(|x| x / length).collect()
}

pub(crate) fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

/// The mean; 0 without values.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The logistic function.
pub(crate) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}
