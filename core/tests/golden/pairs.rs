//! The golden files of pairs and triplets: values, gradients, and the choices of their miners.

use akin_core::losses::contrastive::Measure;
use akin_core::losses::{
    Batch, ContrastiveConfig, MarginConfig, MultiSimilarityConfig, Objective, TripletMarginConfig,
};
use akin_core::miners::{
    DistanceWeightedMiner, Mined, Miner, MultiSimilarityMiner, Triplet, TripletMarginMiner,
};
use burn::tensor::Tensor;

use crate::support::{Case, EXACT, Verdict, init, labels, numbers, scalar, tensor, values};

/// `contrastive.json`.
pub(crate) fn contrastive(case: &Case, verdict: &mut Verdict) {
    let default = ContrastiveConfig::default();
    let config = ContrastiveConfig {
        positive_margin: number(case, "pos_margin").unwrap_or(default.positive_margin),
        negative_margin: number(case, "neg_margin").unwrap(),
        measure: match case.get("params/distance").as_str().unwrap() {
            "cos" => Measure::Cosine,
            _ => Measure::Euclidean,
        },
        ..default
    };
    check(case, verdict, |batch| init(&config, batch.labels).forward(batch));
}

/// `multi_similarity.json`.
pub(crate) fn multi_similarity(case: &Case, verdict: &mut Verdict) {
    let miner = match number(case, "epsilon") {
        Some(epsilon) => Miner::MultiSimilarityMiner(MultiSimilarityMiner { epsilon }),
        None => Miner::default(),
    };
    let config = MultiSimilarityConfig {
        alpha: number(case, "alpha").unwrap(),
        beta: number(case, "beta").unwrap(),
        base: number(case, "base").unwrap(),
        miner: miner.clone(),
    };
    check(case, verdict, |batch| init(&config, batch.labels).forward(batch));
    if case.find("outputs/mined_pairs").is_some() {
        let mined = mine(case, &miner);
        let column = |name: &str| case.numbers(&format!("outputs/mined_pairs/{name}"));
        let expected = [column("a1"), column("p"), column("a2"), column("n")];
        let pairs = |queries: &[f64], items: &[f64]| sorted(queries.iter().zip(items).map(|(&a, &b)| [a, b]));
        let got = |pairs: Box<dyn Iterator<Item = (usize, usize)> + '_>| {
            sorted(pairs.map(|(query, item)| [query as f64, item as f64]))
        };
        verdict.compare("positives", &pairs(&expected[0], &expected[1]), &got(mined.positives()), 0.0);
        verdict.compare("negatives", &pairs(&expected[2], &expected[3]), &got(mined.negatives()), 0.0);
    }
}

/// `triplet.json`.
pub(crate) fn triplet(case: &Case, verdict: &mut Verdict) {
    let recorded = case.find("outputs/triplets").map(|columns| {
        let column = |name: &str| numbers(&columns[name]);
        let (queries, positives, negatives) = (column("a"), column("p"), column("n"));
        let triplet = |i: usize| Triplet {
            query: queries[i] as usize,
            positive: positives[i] as usize,
            negative: negatives[i] as usize,
        };
        (0..queries.len()).map(triplet).collect::<Vec<_>>()
    });
    let margin = number(case, "margin").unwrap();
    if let Some(beta) = number(case, "beta") {
        let config = MarginConfig { margin, beta, ..MarginConfig::default() };
        let drawn = Mined::Triplets(recorded.expect("they were drawn"));
        return check(case, verdict, |batch| init(&config, batch.labels).forward_mined(batch, &drawn));
    }
    let flag = |name: &str| case.find(&format!("params/{name}")).is_some_and(|flag| flag == true);
    let mut config =
        TripletMarginConfig { margin, swap: flag("swap"), smooth: flag("smooth"), miner: Miner::default() };
    if let Some(cutoff) = number(case, "cutoff") {
        let nonzero_loss_cutoff = number(case, "nonzero_loss_cutoff").unwrap();
        let miner = DistanceWeightedMiner { cutoff, nonzero_loss_cutoff };
        let labels = labels(case, "inputs/labels");
        let candidates = Batch::new(tensor(case, "inputs/embeddings"), &labels).candidates();
        // In the reference, a query without a negative to draw has weights of 0/0.
        let mut expected = case.numbers("outputs/sampling_weights");
        expected.iter_mut().filter(|weight| weight.is_nan()).for_each(|weight| *weight = 0.0);
        verdict.compare("sampling_weights", &expected, &miner.sampling_weights(&candidates), EXACT);
        let drawn = Mined::Triplets(recorded.expect("they were drawn"));
        return check(case, verdict, |batch| init(&config, batch.labels).forward_mined(batch, &drawn));
    }
    if let Some(type_of_triplets) = case.find("params/type_of_triplets") {
        let type_of_triplets = serde_json::from_value(type_of_triplets.clone()).unwrap();
        config.miner = Miner::TripletMarginMiner(TripletMarginMiner { type_of_triplets, margin });
        let rows = |triplets: &mut dyn Iterator<Item = Triplet>| {
            sorted(triplets.map(|Triplet { query, positive, negative }| {
                [query as f64, positive as f64, negative as f64]
            }))
        };
        let expected = recorded.expect("they were mined");
        let mined = mine(case, &config.miner);
        let (expected, got) = (rows(&mut expected.into_iter()), rows(&mut mined.triplets()));
        verdict.compare("triplets", &expected, &got, 0.0);
    }
    check(case, verdict, |batch| init(&config, batch.labels).forward(batch));
}

/// Compares value and gradient.
fn check(case: &Case, verdict: &mut Verdict, loss: impl Fn(&Batch) -> Tensor<1>) {
    let embeddings = tensor(case, "inputs/embeddings").require_grad();
    let labels = labels(case, "inputs/labels");
    let value = loss(&Batch::new(embeddings.clone(), &labels));
    let gradient = embeddings.grad(&value.backward()).unwrap();
    verdict.compare("loss", &case.numbers("outputs/loss"), &scalar(&value), EXACT);
    let expected = case.numbers("outputs/grad_embeddings");
    verdict.compare("grad_embeddings", &expected, &values(gradient), EXACT);
}

fn mine(case: &Case, miner: &Miner) -> Mined {
    let labels = labels(case, "inputs/labels");
    Batch::new(tensor(case, "inputs/embeddings"), &labels).mine(&miner.checked().unwrap())
}

fn number(case: &Case, name: &str) -> Option<f64> {
    case.find(&format!("params/{name}")).and_then(|value| value.as_f64())
}

/// The rows in order, concatenated.
fn sorted<const N: usize>(rows: impl Iterator<Item = [f64; N]>) -> Vec<f64> {
    let mut rows: Vec<[f64; N]> = rows.collect();
    rows.sort_by(|a, b| a.partial_cmp(b).expect("indices are numbers"));
    rows.concat()
}
