//! The golden files of HAPPIER and NormSoftmax: values, gradients and per-query losses, in f64 on the CPU.

use akin_core::losses::{Batch, HapSurrogateConfig, ItemOrder, NormSoftmaxConfig, Objective};
use akin_core::relevance::Relevance;
use akin_core::steps::{LowerStep, UpperStep};
use akin_core::taxonomy::Labels;
use burn::tensor::Tensor;

use crate::support::{Case, EXACT, Verdict, init, labels, scalar, tensor, values};

/// The tolerance where the reference rounds relevances to f32.
const RELEVANCE: f64 = 1e-6;

/// `happier_hap_surrogate.json`.
pub(crate) fn hap_surrogate(case: &Case, verdict: &mut Verdict) {
    let config = surrogate_config(case);
    let mut labels = labels(case, "inputs/labels");
    if let Some(column) = case.find("params/hierarchy_level").and_then(|level| level.as_u64()) {
        // A taxonomy of one level: column 0 is the finest.
        labels = Labels::new(1, labels.column(labels.levels() - column as usize)).unwrap();
    }
    let embeddings = tensor(case, "inputs/embeddings").require_grad();
    let reference =
        case.find("inputs/ref_embeddings").map(|_| tensor(case, "inputs/ref_embeddings").require_grad());
    let loss = init(&config, &labels);
    // The rectangular case labels queries and items separately, which is no tree. The reference counts equal columns,
    // so its counts are used as the shared levels of every case.
    let shared = case.rows("outputs/level_matrix");
    let loss_of = |queries: Tensor<2>, shared: &[Vec<f64>]| {
        let items = reference.as_ref().unwrap_or(&embeddings).clone();
        let shared: Vec<usize> = shared.concat().into_iter().map(|level| level as usize).collect();
        loss.forward_shared(queries, items, labels.levels(), &shared)
    };
    let value = match &reference {
        None => loss.forward(&Batch::new(embeddings.clone(), &labels)),
        Some(_) => loss_of(embeddings.clone(), &shared),
    };
    for (i, expected) in case.numbers("outputs/one_minus_hap_per_query").into_iter().enumerate() {
        let got = scalar(&loss_of(embeddings.clone().slice(i..i + 1), &shared[i..i + 1]))[0];
        // Both are compared together, because the smaller one is rounded as coarsely as the larger one.
        let both = |loss: f64| [1.0 - loss, loss];
        verdict.compare("H-AP and loss of a query", &both(expected), &both(got), RELEVANCE);
    }
    let gradients = value.backward();
    verdict.compare("loss", &case.numbers("outputs/loss"), &scalar(&value), RELEVANCE);
    let mut gradient = |name: &str, tensor: &Tensor<2>| {
        let expected = case.numbers(&format!("outputs/{name}"));
        verdict.compare(name, &expected, &values(tensor.grad(&gradients).unwrap()), RELEVANCE);
    };
    gradient("grad_embeddings", &embeddings);
    if let Some(reference) = &reference {
        gradient("grad_ref_embeddings", reference);
    }
}

/// `happier_cluster_loss.json` and `norm_softmax.json`.
pub(crate) fn norm_softmax(case: &Case, verdict: &mut Verdict) {
    let config = NormSoftmaxConfig {
        temperature: case.get("params/temperature").as_f64().unwrap(),
        normalise_embeddings: case.find("params/impl").is_some_and(|name| name == "PML"),
    };
    let embeddings = tensor(case, "inputs/embeddings").require_grad();
    let loss = config.with_proxies(tensor(case, "inputs/proxies"));
    let labels = labels(case, "inputs/labels");
    let value = loss.forward(&Batch::new(embeddings.clone(), &labels));
    let gradients = value.backward();
    verdict.compare("loss", &case.numbers("outputs/loss"), &scalar(&value), EXACT);
    for (name, tensor) in [("grad_embeddings", embeddings), ("grad_proxies", loss.proxies.val())] {
        let expected = case.numbers(&format!("outputs/{name}"));
        verdict.compare(name, &expected, &values(tensor.grad(&gradients).unwrap()), EXACT);
    }
}

/// `happier_total.json`.
pub(crate) fn happier(case: &Case, verdict: &mut Verdict) {
    let lambda = case.get("params/lam").as_f64().unwrap();
    let temperature = case.get("params/temperature").as_f64().unwrap();
    let embeddings = tensor(case, "inputs/embeddings").require_grad();
    let labels = labels(case, "inputs/labels");
    let surrogate = init(&surrogate_config(case), &labels);
    let clustering = NormSoftmaxConfig { temperature, ..NormSoftmaxConfig::default() }
        .with_proxies(tensor(case, "inputs/proxies"));
    let batch = Batch::new(embeddings.clone(), &labels);
    let (hap, cluster) = (surrogate.forward(&batch), clustering.forward(&batch));
    let value = hap.clone() * (1.0 - lambda) + cluster.clone() * lambda;
    let gradients = value.backward();
    for (name, value) in [("hap", &hap), ("cluster", &cluster), ("loss", &value)] {
        verdict.compare(name, &case.numbers(&format!("outputs/{name}")), &scalar(value), RELEVANCE);
    }
    for (name, tensor) in [("grad_embeddings", embeddings), ("grad_proxies", clustering.proxies.val())] {
        let expected = case.numbers(&format!("outputs/{name}"));
        verdict.compare(name, &expected, &values(tensor.grad(&gradients).unwrap()), RELEVANCE);
    }
}

fn surrogate_config(case: &Case) -> HapSurrogateConfig {
    let number = |name: &str| case.find(&format!("params/config/{name}")).and_then(|value| value.as_f64());
    let relevance = match case.find("params/alpha") {
        Some(alpha) if alpha.is_array() => Relevance::WeightedAp { weights: case.numbers("params/alpha") },
        alpha => Relevance::HierarchicalAp { alpha: alpha.and_then(|alpha| alpha.as_f64()).unwrap_or(1.0) },
    };
    HapSurrogateConfig {
        relevance,
        upper_step: UpperStep {
            temperature: number("tau").unwrap(),
            slope: number("rho").filter(|&slope| slope > 0.0),
            threshold: number("delta"),
            offset: number("offset"),
            start: number("start").unwrap_or(0.5),
            start_at_zero: false,
        },
        lower_step: LowerStep {
            slope: number("beta").unwrap_or(25.0),
            start: number("gamma").unwrap_or(0.5),
            leak: number("leak").unwrap_or(10.0),
            start_at_zero: false,
        },
        order: ItemOrder::Levels,
        smooth_rank: case.get("params/config/with_hrank").as_bool().unwrap(),
        stop_gradient: case.find("params/stop_grad").is_some_and(|stop| stop == true),
    }
}
