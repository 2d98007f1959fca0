//! The golden file of losses that were recorded from pytorch-metric-learning, see `tests/golden/library.py`.

use akin_core::losses::{
    AngularConfig, ArcFaceConfig, Batch, CircleConfig, CosFaceConfig, LiftedStructureConfig, NPairsConfig,
    NtXentConfig, Objective, RankedListConfig, SphereFaceConfig, SupConConfig,
};
use burn::module::Param;
use burn::tensor::Tensor;

use crate::support::{Case, EXACT, Verdict, init, labels, scalar, tensor, values};

/// `library_losses.json`.
pub(crate) fn check(case: &Case, verdict: &mut Verdict) {
    let number = |name: &str| case.find(&format!("params/{name}")).and_then(|value| value.as_f64());
    let set = |name: &str| number(name).unwrap_or_else(|| panic!("the case sets {name}"));
    let labels = labels(case, "inputs/labels");
    let embeddings = tensor(case, "inputs/embeddings").require_grad();
    let batch = Batch::new(embeddings.clone(), &labels);
    let proxies = || Param::from_tensor(tensor(case, "inputs/proxies"));
    let mut learned = None;
    let value = match case.get("params/loss").as_str().unwrap() {
        "CosFaceLoss" => {
            let mut loss = init(&CosFaceConfig { scale: set("scale"), margin: set("margin") }, &labels);
            loss.proxies = proxies();
            learned = Some(loss.proxies.val());
            loss.forward(&batch)
        }
        "SubCenterArcFaceLoss" => {
            let config = ArcFaceConfig {
                scale: set("scale"),
                margin: set("margin").to_radians(),
                sub_centres: set("sub_centers") as usize,
                ..Default::default()
            };
            let mut loss = init(&config, &labels);
            loss.proxies = proxies();
            learned = Some(loss.proxies.val());
            loss.forward(&batch)
        }
        "NTXentLoss" => {
            let config = NtXentConfig { temperature: set("temperature"), ..Default::default() };
            init(&config, &labels).forward(&batch)
        }
        "SupConLoss" => {
            let config = SupConConfig { temperature: set("temperature"), ..Default::default() };
            init(&config, &labels).forward(&batch)
        }
        "CircleLoss" => {
            let config = CircleConfig { margin: set("m"), scale: set("gamma"), ..Default::default() };
            init(&config, &labels).forward(&batch)
        }
        "LiftedStructureLoss" => {
            let config = LiftedStructureConfig {
                positive_margin: set("pos_margin"),
                negative_margin: set("neg_margin"),
            };
            init(&config, &labels).forward(&batch)
        }
        "RankedListLoss" => {
            let config = RankedListConfig {
                margin: set("margin"),
                boundary: number("alpha"),
                positive_temperature: number("Tp").unwrap_or(0.0),
                negative_temperature: set("Tn"),
                balance: number("imbalance").unwrap_or(0.5),
            };
            init(&config, &labels).forward(&batch)
        }
        "NPairsLoss" => init(&NPairsConfig { scale: 1.0 }, &labels).forward(&batch),
        "AngularLoss" => init(&AngularConfig { angle: set("alpha").to_radians() }, &labels).forward(&batch),
        "SphereFaceLoss" => {
            let config = SphereFaceConfig { scale: set("scale"), margin: set("margin") as usize };
            let mut loss = init(&config, &labels);
            loss.proxies = proxies();
            learned = Some(loss.proxies.val());
            loss.forward(&batch)
        }
        other => panic!("{other} is no loss of this file"),
    };
    let gradients = value.backward();
    verdict.compare("loss", &case.numbers("outputs/loss"), &scalar(&value), EXACT);
    let mut compare = |name: &str, tensor: &Tensor<2>| {
        let got = values(tensor.grad(&gradients).unwrap());
        verdict.compare(name, &case.numbers(&format!("outputs/{name}")), &got, EXACT);
    };
    compare("grad_embeddings", &embeddings);
    if let Some(proxies) = learned {
        compare("grad_proxies", &proxies);
    }
}
