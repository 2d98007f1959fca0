//! The golden files of losses: value, gradient and what else they record, in f64 on the CPU.

use akin_core::losses::{Batch, HapSurrogateConfig, LossConfig, NormSoftmaxConfig, Setting};
use akin_core::relevance::Relevance;
use akin_core::steps::{LowerStep, UpperStep};
use akin_core::taxonomy::Labels;
use burn::tensor::{DType, Device, Tensor, TensorData};
use serde_json::Value;

use super::Comparison;

/// What the published code computes in f64, to rounding.
const EXACT: f64 = 1e-9;
/// Where its relevances are rounded to f32.
const RELEVANCE: f64 = 1e-6;

/// The comparisons of one case of a file of losses, or none if the file is not one.
pub fn compare(file: &str, case: &Value) -> Option<Vec<Comparison>> {
    Some(match file {
        "happier_hap_surrogate" => hap_surrogate(case),
        "happier_cluster_loss" | "norm_softmax" => norm_softmax(case),
        "happier_total" => happier(case),
        _ => return None,
    })
}

fn device() -> Device {
    Device::flex().autodiff()
}

fn hap_surrogate(case: &Value) -> Vec<Comparison> {
    let (params, inputs) = (&case["params"], &case["inputs"]);
    let config = surrogate_config(params);
    let mut labels = labels(&inputs["labels"]);
    if let Some(column) = params["hierarchy_level"].as_u64() {
        // One level as its own tree: column 0 is the finest.
        labels = Labels::new(1, labels.column(labels.levels() - column as usize)).unwrap();
    }
    let embeddings = tensor(&inputs["embeddings"]).require_grad();
    let reference = inputs.get("ref_embeddings").map(|values| {
        (tensor(values).require_grad(), self::labels(&inputs["ref_labels"]))
    });
    let loss = config.init(&setting(&labels, 0, &device())).unwrap();
    let value = loss.forward(&Batch {
        embeddings: embeddings.clone(),
        labels: &labels,
        reference: reference.as_ref().map(|(embeddings, labels)| (embeddings.clone(), labels)),
    });
    let gradients = value.backward();
    let outputs = &case["outputs"];
    let mut comparisons = vec![
        Comparison::new("loss", &outputs["loss"], scalar(&value), RELEVANCE),
        Comparison::new(
            "grad_embeddings",
            &outputs["grad_embeddings"],
            numbers(embeddings.grad(&gradients).unwrap()),
            RELEVANCE,
        ),
    ];
    if let Some((embeddings, _)) = reference {
        comparisons.push(Comparison::new(
            "grad_ref_embeddings",
            &outputs["grad_ref_embeddings"],
            numbers(embeddings.grad(&gradients).unwrap()),
            RELEVANCE,
        ));
    }
    comparisons
}

fn surrogate_config(params: &Value) -> HapSurrogateConfig {
    let config = &params["config"];
    let slope = config["rho"].as_f64().filter(|&slope| slope > 0.0);
    let relevance = match &params["alpha"] {
        Value::Array(weights) => {
            Relevance::WeightedAp { weights: weights.iter().map(|weight| weight.as_f64().unwrap()).collect() }
        }
        alpha => Relevance::HierarchicalAp { alpha: alpha.as_f64().unwrap_or(1.0) },
    };
    HapSurrogateConfig {
        relevance,
        upper_step: UpperStep {
            temperature: config["tau"].as_f64().unwrap(),
            slope,
            threshold: config["delta"].as_f64(),
            offset: config["offset"].as_f64(),
            start: config["start"].as_f64().unwrap_or(0.5),
        },
        lower_step: LowerStep {
            slope: config["beta"].as_f64().unwrap_or(25.0),
            start: config["gamma"].as_f64().unwrap_or(0.5),
            leak: config["leak"].as_f64().unwrap_or(10.0),
        },
        smooth_rank: config["with_hrank"].as_bool().unwrap(),
        stop_gradient: params["stop_grad"].as_bool().unwrap_or(false),
    }
}

fn norm_softmax(case: &Value) -> Vec<Comparison> {
    let inputs = &case["inputs"];
    let config = NormSoftmaxConfig {
        temperature: case["params"]["temperature"].as_f64().unwrap(),
        normalise_embeddings: case["params"]["impl"] == "PML",
    };
    let embeddings = tensor(&inputs["embeddings"]).require_grad();
    let loss = config.with_proxies(tensor(&inputs["proxies"]));
    let labels = labels(&inputs["labels"]);
    let value =
        loss.forward(&Batch { embeddings: embeddings.clone(), labels: &labels, reference: None });
    let gradients = value.backward();
    let outputs = &case["outputs"];
    vec![
        Comparison::new("loss", &outputs["loss"], scalar(&value), EXACT),
        Comparison::new(
            "grad_embeddings",
            &outputs["grad_embeddings"],
            numbers(embeddings.grad(&gradients).unwrap()),
            EXACT,
        ),
        Comparison::new(
            "grad_proxies",
            &outputs["grad_proxies"],
            numbers(loss.proxies.val().grad(&gradients).unwrap()),
            EXACT,
        ),
    ]
}

fn happier(case: &Value) -> Vec<Comparison> {
    let (params, inputs) = (&case["params"], &case["inputs"]);
    let lambda = params["lam"].as_f64().unwrap();
    let embeddings = tensor(&inputs["embeddings"]).require_grad();
    let labels = labels(&inputs["labels"]);
    let surrogate = surrogate_config(params).init(&setting(&labels, 0, &device())).unwrap();
    let clustering =
        NormSoftmaxConfig { temperature: params["temperature"].as_f64().unwrap(), ..Default::default() }
            .with_proxies(tensor(&inputs["proxies"]));
    let batch = Batch { embeddings: embeddings.clone(), labels: &labels, reference: None };
    let (hap, cluster) = (surrogate.forward(&batch), clustering.forward(&batch));
    let value = hap.clone() * (1.0 - lambda) + cluster.clone() * lambda;
    let gradients = value.backward();
    let outputs = &case["outputs"];
    vec![
        Comparison::new("hap", &outputs["hap"], scalar(&hap), RELEVANCE),
        Comparison::new("cluster", &outputs["cluster"], scalar(&cluster), EXACT),
        Comparison::new("loss", &outputs["loss"], scalar(&value), RELEVANCE),
        Comparison::new(
            "grad_embeddings",
            &outputs["grad_embeddings"],
            numbers(embeddings.grad(&gradients).unwrap()),
            RELEVANCE,
        ),
        Comparison::new(
            "grad_proxies",
            &outputs["grad_proxies"],
            numbers(clustering.proxies.val().grad(&gradients).unwrap()),
            RELEVANCE,
        ),
    ]
}

fn setting<'a>(labels: &Labels, dimension: usize, device: &'a Device) -> Setting<'a> {
    // The surrogate only asks how many levels there are.
    const CLASSES: [usize; 8] = [0; 8];
    Setting { classes: &CLASSES[..labels.levels()], dimension, seed: 0, device }
}

/// Labels of the golden files have the finest level first.
fn labels(values: &Value) -> Labels {
    let rows = values.as_array().unwrap();
    let mut levels = 1;
    let mut ids = Vec::new();
    for row in rows {
        match row {
            Value::Array(row) => {
                levels = row.len();
                ids.extend(row.iter().rev().map(|id| id.as_u64().unwrap() as u32));
            }
            id => ids.push(id.as_u64().unwrap() as u32),
        }
    }
    Labels::new(levels, ids).unwrap()
}

fn tensor(values: &Value) -> Tensor<2> {
    let rows = values.as_array().unwrap();
    let width = rows[0].as_array().unwrap().len();
    let flat: Vec<f64> =
        rows.iter().flat_map(|row| row.as_array().unwrap()).map(|x| x.as_f64().unwrap()).collect();
    Tensor::from_data(TensorData::new(flat, [rows.len(), width]), (&device(), DType::F64))
}

fn scalar(value: &Tensor<1>) -> Vec<f64> {
    value.to_data().to_vec().unwrap()
}

fn numbers(value: Tensor<2>) -> Vec<f64> {
    value.into_data().to_vec().unwrap()
}
