//! The losses of proxies in special cases: a single class, huge exponents, embeddings that are not of unit length.

use akin_core::geometry::Geometry;
use akin_core::losses::{Batch, BuildLoss, Csl, CslConfig, Loss, LossConfig, LossContext, Objective};
use akin_core::random::{normal, stream};
use akin_core::taxonomy::Labels;
use burn::tensor::{Device, Tensor, TensorData};

const DIMENSION: usize = 6;

fn context<'a>(classes: &'a Labels, device: &'a Device) -> LossContext<'a> {
    LossContext::new(classes, DIMENSION, &Geometry::Cosine, 1, device)
}

fn loss(json: &str, classes: &Labels) -> Loss {
    let config: LossConfig = serde_json::from_str(json).unwrap();
    config.init(&context(classes, &device())).unwrap()
}

fn device() -> Device {
    Device::flex().autodiff()
}

fn items(count: usize) -> Tensor<2> {
    let values = normal(&mut stream(1, "test", &[]), count * DIMENSION, 1.0);
    Tensor::from_data(TensorData::new(values, [count, DIMENSION]), &device())
}

fn number(value: Tensor<1>) -> f64 {
    value.into_data().iter().next().unwrap()
}

#[test]
fn with_a_single_class_proxy_nca_and_its_gradient_are_0() {
    let classes = Labels::new(1, vec![0]).unwrap();
    let labels = Labels::new(1, vec![0, 0, 0]).unwrap();
    for name in ["proxy_nca", "proxy_nca_plus_plus"] {
        let embeddings = items(3).require_grad();
        let loss = loss(&format!(r#"{{ "kind": "{name}" }}"#), &classes);
        let value = loss.forward(&Batch::new(embeddings.clone(), &labels));
        let gradient = embeddings.grad(&value.backward()).unwrap();
        assert_eq!(number(value), 0.0, "{name}");
        assert!(gradient.into_data().iter::<f64>().all(|x| x == 0.0), "{name}");
    }
}

#[test]
fn large_exponents_do_not_overflow() {
    let classes = Labels::new(1, vec![0, 1, 2]).unwrap();
    let labels = Labels::new(1, vec![0, 1, 1, 2]).unwrap();
    for json in [
        r#"{ "kind": "proxy_anchor", "alpha": 1e4 }"#,
        r#"{ "kind": "proxy_anchor_per_item", "alpha": 1e4 }"#,
        r#"{ "kind": "proxy_nca", "scale": 1e4 }"#,
        r#"{ "kind": "soft_triple", "lambda": 1e4, "gamma": 1e-4 }"#,
        r#"{ "kind": "csl", "scale": 1e4 }"#,
    ] {
        let embeddings = items(4).require_grad();
        let value = loss(json, &classes).forward(&Batch::new(embeddings.clone(), &labels));
        let gradient = embeddings.grad(&value.backward()).unwrap();
        assert!(number(value).is_finite(), "{json}");
        assert!(gradient.into_data().iter::<f64>().all(f64::is_finite), "{json}");
    }
}

#[test]
fn a_level_of_one_class_adds_nothing_to_csl() {
    let classes = Labels::new(2, vec![0, 0, 0, 1, 0, 2]).unwrap();
    let labels = Labels::new(2, vec![0, 0, 0, 1, 0, 2, 0, 2]).unwrap();
    let loss: Csl = CslConfig::default().init(&context(&classes, &device())).unwrap();
    let [coarse, fine] = <[_; 2]>::try_from(loss.levels(items(4), &labels)).unwrap().map(number);
    assert_eq!(coarse, 0.0);
    assert!(fine > 0.0);
}

#[test]
fn only_losses_that_do_not_normalise_depend_on_the_length_of_embeddings() {
    let classes = Labels::new(1, vec![0, 1, 2]).unwrap();
    let labels = Labels::new(1, vec![0, 1, 1, 2]).unwrap();
    for (name, depends_on_length) in [
        ("csl", true),
        ("hpl_proxy_anchor", false),
        ("norm_softmax", true),
        ("normalized_softmax", false),
        ("proxy_anchor", false),
        ("proxy_nca", false),
        ("soft_triple", true),
    ] {
        let loss = loss(&format!(r#"{{ "kind": "{name}" }}"#), &classes);
        let value = |length: f64| number(loss.forward(&Batch::new(items(4) * length, &labels)));
        let moved = (value(2.0) - value(1.0)).abs() > 1e-4 * value(1.0);
        assert_eq!(moved, depends_on_length, "{name}");
    }
}
