//! The golden files of losses against proxies.

use akin_core::losses::proxy_anchor::Anchors;
use akin_core::losses::proxy_nca::Denominator;
use akin_core::losses::{Batch, CslConfig, Objective, ProxyAnchorConfig, ProxyNcaConfig, SoftTripleConfig};
use akin_core::taxonomy::Labels;
use burn::module::Param;
use burn::tensor::Tensor;

use crate::support::{Case, EXACT, Verdict, init, labels, scalar, tensor, values};

/// PyTorch's softplus is its argument itself above 20, so that value and slope are off by e⁻²⁰ = 2.1 · 10⁻⁹ there.
const SOFTPLUS: f64 = 3e-9;

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
    // Only the name says which of the two forms of proxynca_pp it is.
    let classic = case.get("case").as_str().unwrap().contains("classic");
    let config = ProxyNcaConfig {
        // The code of ProxyNCA++ stretches both vectors.
        scale: match case.find("params/softmax_scale") {
            Some(scale) => scale.as_f64().unwrap(),
            None => number(case, "scale").powi(2),
        },
        denominator: if classic { Denominator::Others } else { Denominator::All },
        ..Default::default()
    };
    let mut loss = init(&config, &labels(case, "inputs/labels"));
    loss.proxies = proxies(case);
    compare(&loss, &loss.proxies, case, verdict, EXACT);
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
    compare(&loss, &loss.proxies, case, verdict, EXACT);
}

/// `csl.json`.
pub(crate) fn csl(case: &Case, verdict: &mut Verdict) {
    let margins = case.numbers("params/margins").into_iter().rev().collect();
    let config = CslConfig {
        scale: number(case, "scale"),
        margins: Some(margins),
        average_levels: case.get("params/reduce_type") == "mean",
    };
    let mut loss = init(&config, &labels(case, "inputs/proxy_labels"));
    loss.proxies = proxies(case);
    compare(&loss, &loss.proxies, case, verdict, SOFTPLUS);
    let embeddings = tensor(case, "inputs/embeddings");
    let levels = loss.levels(embeddings, &labels(case, "inputs/labels"));
    let got: Vec<f64> = levels.iter().rev().flat_map(scalar).collect();
    verdict.compare("loss_per_level", &case.numbers("outputs/loss_per_level"), &got, SOFTPLUS);
}

fn anchored(config: &ProxyAnchorConfig, case: &Case, verdict: &mut Verdict) {
    let mut loss = init(config, &labels(case, "inputs/labels"));
    loss.proxies = proxies(case);
    compare(&loss, &loss.proxies, case, verdict, EXACT);
}

/// Value and both gradients.
fn compare(
    loss: &impl Objective,
    proxies: &Param<Tensor<2>>,
    case: &Case,
    verdict: &mut Verdict,
    tolerance: f64,
) {
    let embeddings = tensor(case, "inputs/embeddings").require_grad();
    let labels: Labels = labels(case, "inputs/labels");
    let value = loss.forward(&Batch::new(embeddings.clone(), &labels));
    let gradients = value.backward();
    verdict.compare("loss", &case.numbers("outputs/loss"), &scalar(&value), tolerance);
    for (name, tensor) in [("grad_embeddings", embeddings), ("grad_proxies", proxies.val())] {
        let expected = case.numbers(&format!("outputs/{name}"));
        verdict.compare(name, &expected, &values(tensor.grad(&gradients).unwrap()), tolerance);
    }
}

fn proxies(case: &Case) -> Param<Tensor<2>> {
    Param::from_tensor(tensor(case, "inputs/proxies"))
}

fn number(case: &Case, name: &str) -> f64 {
    case.get(&format!("params/{name}")).as_f64().unwrap()
}
