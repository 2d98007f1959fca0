//! HPL against a plain transcription of its algorithm, and the laws that follow from it.

use akin_core::geometry::Geometry;
use akin_core::losses::hierarchical_proxy::Coarse;
use akin_core::losses::{
    Batch, BuildLoss, Draws, HierarchicalProxy, HierarchicalProxyConfig, LossConfig, LossContext, Objective,
};
use akin_core::random::{normal, stream};
use akin_core::taxonomy::Labels;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};

const DIMENSION: usize = 6;
const CLASSES: u32 = 12;

type Rows = Vec<Vec<f64>>;

/// Twelve fine classes, two by two in six, three by three of these in two.
fn labels(fine: &[u32]) -> Labels {
    Labels::new(3, fine.iter().flat_map(|&class| [class / 6, class / 2, class]).collect()).unwrap()
}

fn classes() -> Labels {
    labels(&(0..CLASSES).collect::<Vec<_>>())
}

fn device() -> Device {
    Device::flex().autodiff()
}

fn config(json: &str) -> HierarchicalProxyConfig {
    serde_json::from_str(json).unwrap()
}

fn init(config: &HierarchicalProxyConfig, seed: u64) -> HierarchicalProxy {
    config.init(&LossContext::new(&classes(), DIMENSION, &Geometry::Cosine, seed, &device())).unwrap()
}

fn rows(tensor: Tensor<2>) -> Rows {
    let width = tensor.dims()[1];
    let values: Vec<f64> = tensor.into_data().iter().collect();
    values.chunks(width).map(<[f64]>::to_vec).collect()
}

fn draw(seed: u64, count: usize) -> Tensor<2> {
    let values = normal(&mut stream(seed, "test", &[]), count * DIMENSION, 1.0);
    Tensor::from_data(TensorData::new(values, [count, DIMENSION]), &device())
}

fn batch_labels() -> Labels {
    labels(&[0, 0, 3, 5, 5, 7, 11, 2])
}

fn value(loss: &impl Objective) -> f64 {
    loss.forward(&Batch::new(draw(5, 8), &batch_labels())).into_data().iter().next().unwrap()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn unit(row: &[f64]) -> Vec<f64> {
    row.iter().map(|x| x / dot(row, row).sqrt()).collect()
}

/// The group of each fine class.
fn groups_of(loss: &HierarchicalProxy, level: usize) -> Vec<usize> {
    let members = rows(loss.groups[level].members.val());
    members.iter().map(|row| row.iter().position(|&member| member == 1.0).unwrap()).collect()
}

/// The mean direction of each group.
fn naive_means(proxies: &Rows, groups: &[usize], count: usize) -> Rows {
    let mean = |group: usize| {
        let mut sum = vec![0.0; DIMENSION];
        for (proxy, _) in proxies.iter().zip(groups).filter(|&(_, &other)| other == group) {
            sum.iter_mut().zip(unit(proxy)).for_each(|(sum, x)| *sum += x);
        }
        unit(&sum)
    };
    (0..count).map(mean).collect()
}

/// k-means by cosine, from these means on.
fn naive_clusters(proxies: &Rows, mut means: Rows) -> (Vec<usize>, Rows) {
    let mut groups = Vec::new();
    for _ in 0..10 {
        let fit = |class: usize, group: usize| dot(&unit(&proxies[class]), &means[group]);
        let mut next = Vec::new();
        for class in 0..proxies.len() {
            let best = (0..means.len())
                .fold(0, |best, group| if fit(class, group) > fit(class, best) { group } else { best });
            next.push(best);
        }
        let nearest = next.clone();
        for empty in 0..means.len() {
            let size = |group: usize, groups: &[usize]| groups.iter().filter(|&&of| of == group).count();
            if size(empty, &next) == 0 {
                let mut candidates: Vec<usize> =
                    (0..next.len()).filter(|&class| size(next[class], &next) > 1).collect();
                candidates.sort_by(|&a, &b| fit(a, nearest[a]).total_cmp(&fit(b, nearest[b])));
                next[candidates[0]] = empty;
            }
        }
        if next == groups {
            break;
        }
        means = naive_means(proxies, &next, means.len());
        groups = next;
    }
    (groups, means)
}

/// Proxy-Anchor, α = 32 and δ = 0.1, where `own` is the proxy of each item.
fn naive_proxy_anchor(items: &Rows, proxies: &Rows, own: &[usize]) -> f64 {
    let cosine = |item: usize, proxy: usize| dot(&unit(&items[item]), &unit(&proxies[proxy]));
    let (mut drawn, mut pushed, mut with_positives) = (0.0, 0.0, 0.0);
    for proxy in 0..proxies.len() {
        let (of, not): (Vec<usize>, Vec<usize>) = (0..items.len()).partition(|&item| own[item] == proxy);
        drawn += of.iter().map(|&i| (-32.0 * (cosine(i, proxy) - 0.1)).exp()).sum::<f64>().ln_1p();
        pushed += not.iter().map(|&i| (32.0 * (cosine(i, proxy) + 0.1)).exp()).sum::<f64>().ln_1p();
        with_positives += f64::from(u8::from(!of.is_empty()));
    }
    drawn / with_positives + pushed / proxies.len() as f64
}

/// ProxyNCA++ at scale 9.
fn naive_proxy_nca(items: &Rows, proxies: &Rows, own: &[usize]) -> f64 {
    let distance = |item: &[f64], proxy: &[f64]| {
        unit(item).iter().zip(unit(proxy)).map(|(a, b)| (a - b).powi(2)).sum::<f64>()
    };
    let of_item = |(item, &own): (&Vec<f64>, &usize)| {
        let all: f64 = proxies.iter().map(|proxy| (-9.0 * distance(item, proxy)).exp()).sum();
        -((-9.0 * distance(item, &proxies[own])).exp() / all).ln()
    };
    items.iter().zip(own).map(of_item).sum::<f64>() / items.len() as f64
}

fn assert_close(got: f64, expected: f64) {
    assert!((got - expected).abs() < 1e-5 * expected.abs().max(1.0), "{got} is not {expected}");
}

#[test]
fn the_loss_is_the_weighted_sum_of_that_of_every_level() {
    type Naive = fn(&Rows, &Rows, &[usize]) -> f64;
    let nca = r#"{ "kind": "proxy_nca", "scale": 9.0, "denominator": "all" }"#;
    for (loss, naive) in
        [(r#"{ "kind": "proxy_anchor" }"#, naive_proxy_anchor as Naive), (nca, naive_proxy_nca as Naive)]
    {
        for (coarse, weights) in [
            (r#"{ "kind": "clusters", "count": 4 }"#, &[0.5, 2.0][..]),
            (r#"{ "kind": "taxonomy" }"#, &[0.5, 0.0, 2.0][..]),
        ] {
            let json = format!(r#"{{ "loss": {loss}, "coarse": {coarse}, "weights": {weights:?} }}"#);
            let loss = init(&config(&json), 1);
            let items = rows(draw(5, 8));
            let fine: Vec<usize> = batch_labels().column(3).into_iter().map(|class| class as usize).collect();
            let mut expected = weights.last().unwrap() * naive(&items, &rows(loss.proxies.val()), &fine);
            for (level, groups) in loss.groups.iter().enumerate() {
                let of_classes = groups_of(&loss, level);
                let own: Vec<usize> = fine.iter().map(|&class| of_classes[class]).collect();
                expected += weights[level] * naive(&items, &rows(groups.proxies.val()), &own);
            }
            assert_close(value(&loss), expected);
        }
    }
}

#[test]
fn an_update_is_k_means_by_cosine_from_the_last_groups_on() {
    for seed in 0..20 {
        let mut loss = init(&config(r#"{ "coarse": { "kind": "clusters", "count": 4 } }"#), seed);
        for moved in 0..3 {
            loss.proxies = Param::from_tensor(draw(100 * seed + moved, CLASSES as usize));
            let (groups, means) =
                naive_clusters(&rows(loss.proxies.val()), rows(loss.groups[0].proxies.val()));
            loss.update();
            assert_eq!(groups_of(&loss, 0), groups, "seed {seed}");
            let got = rows(loss.groups[0].proxies.val());
            got.concat().iter().zip(means.concat()).for_each(|(&got, mean)| assert_close(got, mean));
        }
    }
}

#[test]
fn the_groups_of_a_taxonomy_are_its_classes_and_their_means_follow() {
    let mut loss = init(&config(r#"{ "coarse": { "kind": "taxonomy" } }"#), 3);
    loss.proxies = Param::from_tensor(draw(9, CLASSES as usize));
    loss.update();
    for (level, count) in [(1, 2), (2, 6)] {
        let groups: Vec<usize> = classes().column(level).into_iter().map(|class| class as usize).collect();
        assert_eq!(groups_of(&loss, level - 1), groups);
        let means = naive_means(&rows(loss.proxies.val()), &groups, count);
        let got = rows(loss.groups[level - 1].proxies.val());
        got.concat().iter().zip(means.concat()).for_each(|(&got, mean)| assert_close(got, mean));
    }
}

#[test]
fn a_taxonomy_of_one_level_has_the_fine_loss_alone() {
    let flat = Labels::new(1, (0..CLASSES).collect()).unwrap();
    let device = device();
    let context = LossContext::new(&flat, DIMENSION, &Geometry::Cosine, 4, &device);
    let value = |name: &str| -> f64 {
        let loss = LossConfig::named(name).unwrap().init(&context).unwrap();
        let labels = batch_labels();
        let labels = Labels::new(1, labels.column(3)).unwrap();
        loss.forward(&Batch::new(draw(5, 8), &labels)).into_data().iter().next().unwrap()
    };
    assert_eq!(value("hpl_proxy_anchor_gt"), value("proxy_anchor"));
    assert_eq!(value("hpl_proxy_nca_gt"), value("proxy_nca_plus_plus"));
}

#[test]
fn with_one_cluster_a_class_it_is_twice_the_fine_loss() {
    let twice = init(&config(r#"{ "coarse": { "kind": "clusters", "count": 12 } }"#), 4);
    let fine =
        init(&config(r#"{ "coarse": { "kind": "clusters", "count": 12 }, "weights": [0.0, 1.0] }"#), 4);
    assert_eq!(groups_of(&twice, 0), (0..12).collect::<Vec<_>>());
    assert_close(value(&twice), 2.0 * value(&fine));
}

#[test]
fn clusters_are_the_same_from_the_same_seed_and_others_from_another() {
    let config = config(r#"{ "coarse": { "kind": "clusters", "count": 4 } }"#);
    let mut loss = init(&config, 1);
    assert_eq!(groups_of(&loss, 0), groups_of(&init(&config, 1), 0));
    assert!((2..6).any(|seed| groups_of(&loss, 0) != groups_of(&init(&config, seed), 0)));
    let means = rows(loss.groups[0].proxies.val());
    loss.update();
    assert_eq!(rows(loss.groups[0].proxies.val()), means, "clusters at rest stay");
}

#[test]
fn no_cluster_is_ever_empty() {
    let mut loss = init(&config(r#"{ "coarse": { "kind": "clusters", "count": 5 } }"#), 1);
    let same = draw(7, 1).repeat_dim(0, CLASSES as usize);
    let few = Tensor::cat(vec![draw(7, 1).repeat_dim(0, 10), draw(8, 2)], 0);
    let none = same.zeros_like();
    for proxies in [same, few, none] {
        loss.proxies = Param::from_tensor(proxies);
        loss.update();
        let groups = groups_of(&loss, 0);
        assert!((0..5).all(|group| groups.contains(&group)), "{groups:?}");
        assert!(value(&loss).is_finite());
    }
}

#[test]
fn coarse_proxies_follow_every_few_steps_and_never_by_gradient() {
    let mut loss = init(&config(r#"{ "every": 10, "coarse": { "kind": "clusters", "count": 4 } }"#), 1);
    let gradients = loss.forward(&Batch::new(draw(5, 8), &batch_labels())).backward();
    assert!(loss.proxies.val().grad(&gradients).is_some());
    for kept in [&loss.groups[0].members, &loss.groups[0].proxies] {
        assert!(!kept.is_require_grad() && kept.val().grad(&gradients).is_none());
    }
    let before = rows(loss.groups[0].proxies.val());
    loss.proxies = Param::from_tensor(draw(9, CLASSES as usize));
    loss.before_step(Draws { seed: 1, step: 29 });
    assert_eq!(rows(loss.groups[0].proxies.val()), before);
    loss.before_step(Draws { seed: 1, step: 30 });
    assert_ne!(rows(loss.groups[0].proxies.val()), before);
    assert!(loss.groups.iter().all(|groups| !groups.members.is_require_grad()));
}

#[test]
fn a_checkpoint_has_the_groups() {
    let config = config(r#"{ "coarse": { "kind": "clusters", "count": 4 } }"#);
    let mut loss = init(&config, 1);
    // Groups that lag behind the fine proxies cannot be had from these.
    loss.proxies = Param::from_tensor(draw(9, CLASSES as usize));
    let restored = init(&config, 2).try_load_record(loss.clone().into_record()).unwrap();
    assert_eq!(groups_of(&restored, 0), groups_of(&loss, 0));
    assert_eq!(value(&restored), value(&loss));
    assert!(!restored.groups[0].proxies.is_require_grad() && restored.proxies.is_require_grad());
}

#[test]
fn clusters_default_to_a_tenth_of_the_classes() {
    let config = HierarchicalProxyConfig::default();
    assert_eq!(config.coarse, Coarse::Clusters { count: None });
    let device = device();
    for (count, expected) in [(1, 1), (4, 2), (100, 10)] {
        let classes = Labels::new(1, (0..count).collect()).unwrap();
        let loss =
            config.init(&LossContext::new(&classes, DIMENSION, &Geometry::Cosine, 0, &device)).unwrap();
        assert_eq!(loss.groups[0].proxies.dims(), [expected, DIMENSION]);
    }
}
