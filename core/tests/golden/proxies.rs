//! The golden files of losses with proxies.

use akin_core::losses::arc_face::Smoothing;
use akin_core::losses::proxy_anchor::Anchors;
use akin_core::losses::proxy_nca::Denominator;
use akin_core::losses::{
    ArcFaceConfig, Batch, CslConfig, Objective, ProxyAnchorConfig, ProxyNcaConfig, SoftTripleConfig,
};
use akin_core::taxonomy::Labels;
use burn::module::Param;
use burn::tensor::Tensor;

use crate::support::{Case, EXACT, Verdict, init, labels, scalar, tensor, values};

/// `arcface.json`.
pub(crate) fn arc_face(case: &Case, verdict: &mut Verdict) {
    let config = ArcFaceConfig {
        scale: number(case, "s"),
        margin: number(case, "m"),
        easy_margin: case.get("params/easy_margin") == true,
        label_smoothing: number(case, "label_smoothing"),
        smoothing: Smoothing::Logits,
        ..Default::default()
    };
    let mut loss = init(&config, &labels(case, "inputs/labels"));
    loss.proxies = proxies(case);
    compare(&loss, &loss.proxies, case, verdict);
}

/// `proxy_anchor.json`.
pub(crate) fn proxy_anchor(case: &Case, verdict: &mut Verdict) {
    let config = ProxyAnchorConfig {
        alpha: number(case, "alpha"),
        margin: number(case, "margin"),
        anchors: Anchors::Proxies,
    };
    anchored(&config, case, verdict);
}

/// `proxy_nca.json`.
pub(crate) fn proxy_nca(case: &Case, verdict: &mut Verdict) {
    let implementation = case.get("params/impl").as_str().unwrap();
    if implementation.contains("HIER") {
        let config = ProxyAnchorConfig {
            alpha: number(case, "alpha"),
            margin: number(case, "mrg"),
            anchors: Anchors::Items,
        };
        return anchored(&config, case, verdict);
    }
    // Only the name of the case tells the two forms of proxynca_pp apart.
    let classic = case.get("case").as_str().unwrap().contains("classic");
    let config = ProxyNcaConfig {
        // ProxyNCA++'s code scales both vectors.
        scale: match case.find("params/softmax_scale") {
            Some(scale) => scale.as_f64().unwrap(),
            None => number(case, "scale").powi(2),
        },
        denominator: if classic { Denominator::Others } else { Denominator::All },
        ..Default::default()
    };
    let mut loss = init(&config, &labels(case, "inputs/labels"));
    loss.proxies = proxies(case);
    compare(&loss, &loss.proxies, case, verdict);
}

/// `soft_triple.json`.
pub(crate) fn soft_triple(case: &Case, verdict: &mut Verdict) {
    let library = case.get("params/impl").as_str().unwrap().starts_with("PML");
    let config = SoftTripleConfig {
        centres: case.get("params/K").as_u64().unwrap() as usize,
        lambda: number(case, "la"),
        gamma: number(case, "gamma"),
        tau: if library { 0.0 } else { number(case, "tau") },
        margin: number(case, "margin"),
        normalise_embeddings: library,
    };
    let mut loss = init(&config, &labels(case, "inputs/labels"));
    loss.proxies = proxies(case);
    compare(&loss, &loss.proxies, case, verdict);
}

/// `csl.json`. PyTorch's softplus returns its argument above 20. The difference is added to the expected values.
pub(crate) fn csl(case: &Case, verdict: &mut Verdict) {
    let margins = case.numbers("params/margins").into_iter().rev().collect();
    let config = CslConfig {
        scale: number(case, "scale"),
        margins: Some(margins),
        average_levels: case.get("params/reduce_type") == "mean",
    };
    let mut loss = init(&config, &labels(case, "inputs/proxy_labels"));
    loss.proxies = proxies(case);
    let labels = labels(case, "inputs/labels");
    let embeddings = tensor(case, "inputs/embeddings").require_grad();
    let value = loss.forward(&Batch::new(embeddings.clone(), &labels));
    let gradients = value.backward();
    let levels = loss.levels(embeddings.clone(), &labels);

    let none = embeddings.clone().sum() * 0.0;
    let mut lost = vec![none; labels.levels()];
    for item in 0..labels.len() {
        let item_losses = loss.levels(embeddings.clone().slice(item..item + 1), &labels.select(&[item]));
        for (lost, item_loss) in lost.iter_mut().zip(item_losses) {
            if scalar(&item_loss)[0] > 20.0 {
                // log(1 + eᶻ) − z, from l = log(1 + eᶻ): −log(1 − e⁻ˡ).
                let difference = -(-(-item_loss).exp()).log1p();
                *lost = lost.clone() + difference * (1.0 / labels.len() as f64);
            }
        }
    }
    let level_differences: Vec<f64> = lost.iter().rev().flat_map(scalar).collect();
    let share = if config.average_levels { 1.0 / lost.len() as f64 } else { 1.0 };
    let lost = lost.into_iter().reduce(|sum, level| sum + level).expect("there is a level") * share;
    let lost_gradients = lost.backward();

    let mut compare = |name: &str, lost: &[f64], got: &[f64]| {
        let expected = case.numbers(&format!("outputs/{name}"));
        let expected: Vec<f64> = expected.iter().zip(lost).map(|(expected, lost)| expected + lost).collect();
        verdict.compare(name, &expected, got, EXACT);
    };
    compare("loss", &scalar(&lost), &scalar(&value));
    let got: Vec<f64> = levels.iter().rev().flat_map(scalar).collect();
    compare("loss_per_level", &level_differences, &got);
    for (name, tensor) in [("grad_embeddings", embeddings), ("grad_proxies", loss.proxies.val())] {
        let lost =
            tensor.grad(&lost_gradients).map_or_else(|| vec![0.0; tensor.shape().num_elements()], values);
        compare(name, &lost, &values(tensor.grad(&gradients).unwrap()));
    }
}

fn anchored(config: &ProxyAnchorConfig, case: &Case, verdict: &mut Verdict) {
    let mut loss = init(config, &labels(case, "inputs/labels"));
    loss.proxies = proxies(case);
    compare(&loss, &loss.proxies, case, verdict);
}

/// Compares the value and both gradients.
fn compare(loss: &impl Objective, proxies: &Param<Tensor<2>>, case: &Case, verdict: &mut Verdict) {
    let embeddings = tensor(case, "inputs/embeddings").require_grad();
    let labels: Labels = labels(case, "inputs/labels");
    let value = loss.forward(&Batch::new(embeddings.clone(), &labels));
    let gradients = value.backward();
    verdict.compare("loss", &case.numbers("outputs/loss"), &scalar(&value), EXACT);
    for (name, tensor) in [("grad_embeddings", embeddings), ("grad_proxies", proxies.val())] {
        let expected = case.numbers(&format!("outputs/{name}"));
        verdict.compare(name, &expected, &values(tensor.grad(&gradients).unwrap()), EXACT);
    }
}

fn proxies(case: &Case) -> Param<Tensor<2>> {
    Param::from_tensor(tensor(case, "inputs/proxies"))
}

fn number(case: &Case, name: &str) -> f64 {
    case.get(&format!("params/{name}")).as_f64().unwrap()
}
