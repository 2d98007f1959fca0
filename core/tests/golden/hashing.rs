//! The golden files of losses that learn codes.

use akin_core::losses::csq::Quantisation;
use akin_core::losses::{
    Batch, CsqConfig, DcdhConfig, DcwhConfig, DpshConfig, DtshConfig, HpdhConfig, Objective, Reference,
};
use akin_core::taxonomy::Labels;
use burn::module::Param;
use burn::tensor::{Tensor, TensorData};
use serde_json::Value;

use crate::support::{
    Case, EXACT, SINGLE, Verdict, device, dtype, init, labels, numbers, scalar, tensor, values,
};

/// `dcdh.json`, whose loss counts the pairs of a centre with itself.
pub(crate) fn dcdh(case: &Case, verdict: &mut Verdict) {
    let number = |name: &str| case.get(&format!("params/{name}")).as_f64().unwrap();
    let labels = labels(case, "inputs/labels");
    let config = DcdhConfig {
        deviation: number("sigma").sqrt().recip(),
        centre_weight: number("inner_param"),
        quantisation_weight: number("eta"),
    };
    let mut loss = init(&config, &labels);
    loss.centres = Param::from_tensor(tensor(case, "inputs/centers"));

    let features = tensor(case, "inputs/features").require_grad();
    let value = loss.forward(&Batch::new(features.clone(), &labels));
    let gradients = value.backward();
    let classes = loss.centres.dims()[0];
    let of_centres_with_themselves = config.centre_weight * 2f64.ln() / (classes - 1) as f64;
    let counted: Vec<f64> = scalar(&value).iter().map(|value| value + of_centres_with_themselves).collect();
    verdict.compare("loss", &case.numbers("outputs/loss"), &counted, EXACT);
    let gradient = values(features.grad(&gradients).unwrap());
    verdict.compare("grad_features", &case.numbers("outputs/grad_features"), &gradient, EXACT);
    let gradient = values(loss.centres.val().grad(&gradients).unwrap());
    verdict.compare("grad_centers", &case.numbers("outputs/grad_centers"), &gradient, EXACT);
}

/// `dcwh.json`.
pub(crate) fn dcwh(case: &Case, verdict: &mut Verdict) {
    let items = labels(case, "inputs/labels");
    if case.name() == "centers" {
        let mut loss = init(&DcwhConfig::default(), &items);
        loss.before_epoch(tensor(case, "inputs/features"), &items);
        return verdict.compare(
            "centers",
            &case.numbers("outputs/centers"),
            &values(loss.centres.val()),
            SINGLE,
        );
    }
    let number = |name: &str| case.get(&format!("params/{name}")).as_f64().unwrap();
    let config = DcwhConfig {
        deviation: number("inv_var").sqrt().recip(),
        floor: number("floor"),
        range_weight: number("weight_cubic"),
        range: number("cube"),
        quantisation_weight: number("weight_vertex"),
        ..DcwhConfig::default()
    };
    let mut loss = init(&config, &items);
    loss.centres = centre_parameter(case.get("inputs/centers"));

    let features = tensor(case, "inputs/features").require_grad();
    let value = loss.forward(&Batch::new(features.clone(), &items));
    compare_value_and_gradient(&features, &value, case, verdict);
}

/// `dpsh.json`. The first rows are compared with all rows, themselves included, which have no gradient.
pub(crate) fn dpsh(case: &Case, verdict: &mut Verdict) {
    let number = |name: &str| case.find(&format!("params/{name}")).and_then(Value::as_f64);
    let all = tensor(case, "inputs/features");
    let [count, bits] = all.dims();
    let item_labels = labels(case, "inputs/labels");
    let rows = case.get("inputs/batch").as_u64().unwrap() as usize;
    let query_labels = Labels::new(1, item_labels.ids()[..rows].to_vec()).unwrap();
    // The collection takes the mean of the quantisation error over items and bits, the loss that over pairs.
    let quantisation_weight =
        number("lambda").unwrap_or_else(|| number("alpha").unwrap() * count as f64 / bits as f64);
    let loss = init(&DpshConfig { quantisation_weight }, &item_labels);

    let queries = all.clone().slice([0..rows, 0..bits]).require_grad();
    let reference = Reference { embeddings: all, labels: &item_labels, own: None };
    let value = loss.forward(&Batch::new(queries.clone(), &query_labels).with_reference(reference));
    compare_value_and_gradient(&queries, &value, case, verdict);
}

/// `dtsh.json`, where Θ has no ½, a query is one of its positives, and the quantisation error is a mean over bits.
pub(crate) fn dtsh(case: &Case, verdict: &mut Verdict) {
    let number = |name: &str| case.get(&format!("params/{name}")).as_f64().unwrap();
    let items = labels(case, "inputs/labels");
    let features = tensor(case, "inputs/features").require_grad();
    let [count, bits] = features.dims();
    let loss = |rows: Tensor<2>, quantisation_weight: f64| {
        let config = DtshConfig { margin: Some(number("alpha")), quantisation_weight };
        let reference = Reference { embeddings: rows.clone(), labels: &items, own: None };
        init(&config, &items).forward(&Batch::new(rows, &items).with_reference(reference))
    };
    let of_class = |class: u32| items.ids().iter().filter(|&&other| other == class).count();
    let triplets: usize = items.ids().iter().map(|&class| of_class(class) * (count - of_class(class))).sum();
    let weight = number("lambda") * triplets as f64 / (count * bits) as f64;
    let quantisation = loss(features.clone(), weight) - loss(features.clone(), 0.0);
    let value = loss(features.clone() * 2f64.sqrt(), 0.0) + quantisation;
    compare_value_and_gradient(&features, &value, case, verdict);
}

/// `csq.json`. The authors' cases have pairs beside the central similarity.
pub(crate) fn csq(case: &Case, verdict: &mut Verdict) {
    let number = |name: &str| case.get(&format!("params/{name}")).as_f64().unwrap();
    let items = labels(case, "inputs/labels");
    let config = CsqConfig {
        quantisation_weight: number("lambda2"),
        quantisation: Quantisation::Squared,
        pair_weight: number("lambda1"),
    };
    let mut loss = init(&config, &items);
    if !case.name().starts_with("yuanli") {
        // The centres of both are the first rows of the Hadamard matrix.
        verdict.compare("centers", &case.numbers("inputs/centers"), &values(loss.centres.val()), 0.0);
    }
    loss.centres = centre_parameter(case.get("inputs/centers"));

    let features = tensor(case, "inputs/features").require_grad();
    let value = loss.forward(&Batch::new(features.clone(), &items));
    compare_value_and_gradient(&features, &value, case, verdict);
}

/// `hpdh_loss.json`, which has the finest level first.
pub(crate) fn hpdh(case: &Case, verdict: &mut Verdict) {
    let number = |name: &str| case.get(&format!("params/{name}")).as_f64().unwrap();
    let labels = labels(case, "inputs/labels");
    let precisions = case.numbers("params/inv_var");
    let config = HpdhConfig {
        deviations: Some(precisions.iter().rev().map(|precision| 1.0 / precision).collect()),
        squared: true,
        floor: 1e-8,
        mean_over_bits: true,
        range_weight: number("weight_cubic"),
        range: number("cube"),
        quantisation_weight: number("weight_vertex"),
        ..HpdhConfig::default()
    };
    let mut loss = init(&config, &labels);
    let centres = case.get("inputs/centers").as_array().unwrap();
    loss.centres = centres.iter().rev().map(centre_parameter).collect();

    let features = tensor(case, "inputs/features").require_grad();
    let batch = Batch::new(features.clone(), &labels);
    let levels: Vec<f64> = loss.level_losses(&batch).iter().rev().flat_map(scalar).collect();
    let value = loss.forward(&batch);
    let gradients = value.backward();
    verdict.compare("loss_per_level", &case.numbers("outputs/loss_per_level"), &levels, EXACT);
    verdict.compare("loss", &case.numbers("outputs/loss"), &scalar(&value), EXACT);
    let gradient = values(features.grad(&gradients).unwrap());
    verdict.compare("grad_features", &case.numbers("outputs/grad_features"), &gradient, EXACT);
}

/// `hpdh_centers.json`, which has the finest level first.
pub(crate) fn hpdh_centres(case: &Case, verdict: &mut Verdict) {
    let labels = labels(case, "inputs/labels");
    let mut loss = init(&HpdhConfig::default(), &labels);
    loss.before_epoch(tensor(case, "inputs/features"), &labels);
    let expected = case.get("outputs/centers").as_array().unwrap();
    for (expected, centres) in expected.iter().rev().zip(&loss.centres) {
        let centres = values(centres.val());
        verdict.compare("centers", &numbers(expected), &centres, SINGLE);
    }
}

/// Centres of one level, not learned.
fn centre_parameter(rows: &Value) -> Param<Tensor<2>> {
    let shape = [rows.as_array().unwrap().len(), rows[0].as_array().unwrap().len()];
    let data = TensorData::new(numbers(rows), shape);
    Param::from_tensor(Tensor::from_data(data, (&device(), dtype()))).set_require_grad(false)
}

/// Compares a loss, and its gradient with respect to the features, with the recorded ones.
fn compare_value_and_gradient(features: &Tensor<2>, value: &Tensor<1>, case: &Case, verdict: &mut Verdict) {
    let gradient = values(features.grad(&value.backward()).unwrap());
    verdict.compare("loss", &case.numbers("outputs/loss"), &scalar(value), EXACT);
    verdict.compare("grad_features", &case.numbers("outputs/grad_features"), &gradient, EXACT);
}
