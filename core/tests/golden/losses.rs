//! The golden files of losses: value, gradient and what else they record, in f64 on the CPU.

use akin_core::losses::{Batch, HapSurrogateConfig, NormSoftmaxConfig, Setting};
use akin_core::relevance::Relevance;
use akin_core::steps::{LowerStep, UpperStep};
use akin_core::taxonomy::Labels;
use burn::tensor::{DType, Device, Tensor, TensorData};

use crate::support::{Case, Verdict};

/// What the published code computes in f64, to rounding.
const EXACT: f64 = 1e-9;
/// Where its relevances are rounded to f32.
const RELEVANCE: f64 = 1e-6;

fn device() -> Device {
    Device::flex().autodiff()
}

/// `happier_hap_surrogate.json`.
pub(crate) fn hap_surrogate(case: &Case, verdict: &mut Verdict) {
    let config = surrogate_config(case);
    let mut labels = labels(case, "inputs/labels");
    if let Some(column) = case.find("params/hierarchy_level").and_then(|level| level.as_u64()) {
        // One level as its own tree: column 0 is the finest.
        labels = Labels::new(1, labels.column(labels.levels() - column as usize)).unwrap();
    }
    let embeddings = tensor(case, "inputs/embeddings").require_grad();
    let reference =
        case.find("inputs/ref_embeddings").map(|_| tensor(case, "inputs/ref_embeddings").require_grad());
    let loss = config.init(&setting(&labels, &device())).unwrap();
    let value = match &reference {
        None => loss.forward(&Batch { embeddings: embeddings.clone(), labels: &labels, reference: None }),
        // Queries and items are labelled apart there, which is no tree: the reference counts equal
        // columns, and its count is taken as the shared level.
        Some(reference) => {
            let shared: Vec<usize> =
                case.rows("outputs/level_matrix").concat().into_iter().map(|level| level as usize).collect();
            loss.forward_shared(embeddings.clone(), reference.clone(), labels.levels(), &shared)
        }
    };
    let gradients = value.backward();
    verdict.compare("loss", &case.numbers("outputs/loss"), &scalar(&value), RELEVANCE);
    let mut gradient = |name: &str, tensor: &Tensor<2>| {
        let expected = case.numbers(&format!("outputs/{name}"));
        verdict.compare(name, &expected, &numbers(tensor.grad(&gradients).unwrap()), RELEVANCE);
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
    let value = loss.forward(&Batch { embeddings: embeddings.clone(), labels: &labels, reference: None });
    let gradients = value.backward();
    verdict.compare("loss", &case.numbers("outputs/loss"), &scalar(&value), EXACT);
    for (name, tensor) in [("grad_embeddings", embeddings), ("grad_proxies", loss.proxies.val())] {
        let expected = case.numbers(&format!("outputs/{name}"));
        verdict.compare(name, &expected, &numbers(tensor.grad(&gradients).unwrap()), EXACT);
    }
}

/// `happier_total.json`.
pub(crate) fn happier(case: &Case, verdict: &mut Verdict) {
    let lambda = case.get("params/lam").as_f64().unwrap();
    let temperature = case.get("params/temperature").as_f64().unwrap();
    let embeddings = tensor(case, "inputs/embeddings").require_grad();
    let labels = labels(case, "inputs/labels");
    let surrogate = surrogate_config(case).init(&setting(&labels, &device())).unwrap();
    let clustering = NormSoftmaxConfig { temperature, ..NormSoftmaxConfig::default() }
        .with_proxies(tensor(case, "inputs/proxies"));
    let batch = Batch { embeddings: embeddings.clone(), labels: &labels, reference: None };
    let (hap, cluster) = (surrogate.forward(&batch), clustering.forward(&batch));
    let value = hap.clone() * (1.0 - lambda) + cluster.clone() * lambda;
    let gradients = value.backward();
    for (name, value) in [("hap", &hap), ("cluster", &cluster), ("loss", &value)] {
        verdict.compare(name, &case.numbers(&format!("outputs/{name}")), &scalar(value), RELEVANCE);
    }
    for (name, tensor) in [("grad_embeddings", embeddings), ("grad_proxies", clustering.proxies.val())] {
        let expected = case.numbers(&format!("outputs/{name}"));
        verdict.compare(name, &expected, &numbers(tensor.grad(&gradients).unwrap()), RELEVANCE);
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
        },
        lower_step: LowerStep {
            slope: number("beta").unwrap_or(25.0),
            start: number("gamma").unwrap_or(0.5),
            leak: number("leak").unwrap_or(10.0),
        },
        smooth_rank: case.get("params/config/with_hrank").as_bool().unwrap(),
        stop_gradient: case.find("params/stop_grad").is_some_and(|stop| stop == true),
    }
}

fn setting<'a>(labels: &Labels, device: &'a Device) -> Setting<'a> {
    // The surrogate only asks how many levels there are.
    const CLASSES: [usize; 8] = [0; 8];
    Setting { classes: &CLASSES[..labels.levels()], dimension: 0, seed: 0, device }
}

/// Labels of the golden files have the finest level first.
fn labels(case: &Case, path: &str) -> Labels {
    let rows: Vec<Vec<f64>> = if case.get(path)[0].is_array() {
        case.rows(path)
    } else {
        case.numbers(path).into_iter().map(|id| vec![id]).collect()
    };
    let ids = rows.iter().flat_map(|row| row.iter().rev().map(|&id| id as u32)).collect();
    Labels::new(rows[0].len(), ids).unwrap()
}

fn tensor(case: &Case, path: &str) -> Tensor<2> {
    let rows = case.rows(path);
    let shape = [rows.len(), rows[0].len()];
    Tensor::from_data(TensorData::new(rows.concat(), shape), (&device(), DType::F64))
}

fn scalar(value: &Tensor<1>) -> Vec<f64> {
    value.to_data().try_to_vec().unwrap()
}

fn numbers(value: Tensor<2>) -> Vec<f64> {
    value.into_data().try_to_vec().unwrap()
}
