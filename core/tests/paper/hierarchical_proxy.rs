//! HPL: the sum over levels, the clustering and the updates. The equations are those of the module's page, because only
//! the supplementary material of the paper was available.

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

/// Three levels: two coarse classes of three middle ones each, and two fine classes in each middle one.
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

/// The group of each fine class at a coarser level.
fn group_of_class(loss: &HierarchicalProxy, level: usize) -> Vec<usize> {
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

/// k-means by cosine, beginning with these means.
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
            let size =
                |group: usize, groups: &[usize]| groups.iter().filter(|&&other| other == group).count();
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

/// Proxy-Anchor, α = 32 and δ = 0.1.
fn naive_proxy_anchor(items: &Rows, proxies: &Rows, own: &[usize]) -> f64 {
    scaled_proxy_anchor(items, proxies, own, [32.0, 0.1])
}

/// Proxy-Anchor with α and δ, where `own` is the proxy of each item.
fn scaled_proxy_anchor(items: &Rows, proxies: &Rows, own: &[usize], [alpha, delta]: [f64; 2]) -> f64 {
    let cosine = |item: usize, proxy: usize| dot(&unit(&items[item]), &unit(&proxies[proxy]));
    let (mut positive_sum, mut negative_sum, mut with_positives) = (0.0, 0.0, 0.0);
    for proxy in 0..proxies.len() {
        let (positives, negatives): (Vec<usize>, Vec<usize>) =
            (0..items.len()).partition(|&item| own[item] == proxy);
        positive_sum +=
            positives.iter().map(|&i| (-alpha * (cosine(i, proxy) - delta)).exp()).sum::<f64>().ln_1p();
        negative_sum +=
            negatives.iter().map(|&i| (alpha * (cosine(i, proxy) + delta)).exp()).sum::<f64>().ln_1p();
        with_positives += f64::from(u8::from(!positives.is_empty()));
    }
    positive_sum / with_positives + negative_sum / proxies.len() as f64
}

/// ProxyNCA++ at scale 9.
fn naive_proxy_nca(items: &Rows, proxies: &Rows, own: &[usize]) -> f64 {
    let distance = |item: &[f64], proxy: &[f64]| {
        unit(item).iter().zip(unit(proxy)).map(|(a, b)| (a - b).powi(2)).sum::<f64>()
    };
    let item_loss = |(item, &own): (&Vec<f64>, &usize)| {
        let all: f64 = proxies.iter().map(|proxy| (-9.0 * distance(item, proxy)).exp()).sum();
        -((-9.0 * distance(item, &proxies[own])).exp() / all).ln()
    };
    items.iter().zip(own).map(item_loss).sum::<f64>() / items.len() as f64
}

fn assert_close(got: f64, expected: f64) {
    assert!((got - expected).abs() < 1e-5 * expected.abs().max(1.0), "{got} is not {expected}");
}

#[test]
fn the_loss_is_the_weighted_sum_over_the_levels() {
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
            for (level, coarse) in loss.groups.iter().enumerate() {
                let groups = group_of_class(&loss, level);
                let own: Vec<usize> = fine.iter().map(|&class| groups[class]).collect();
                expected += weights[level] * naive(&items, &rows(coarse.proxies.val()), &own);
            }
            assert_close(value(&loss), expected);
        }
    }
}

/// The second protocol of the paper's supplement searches a scale and a margin for each level.
#[test]
fn each_level_has_the_scale_and_the_margin_that_it_is_given() {
    let json = r#"{ "coarse": { "kind": "taxonomy" }, "weights": [0.5, 1.0, 2.0],
        "scales": [8.0, 16.0, 32.0], "margins": [0.3, 0.2, 0.0] }"#;
    let loss = init(&config(json), 1);
    let items = rows(draw(5, 8));
    let fine: Vec<usize> = batch_labels().column(3).into_iter().map(|class| class as usize).collect();
    let mut expected = 2.0 * scaled_proxy_anchor(&items, &rows(loss.proxies.val()), &fine, [32.0, 0.0]);
    for (level, (weight, setting)) in [(0.5, [8.0, 0.3]), (1.0, [16.0, 0.2])].into_iter().enumerate() {
        let groups = group_of_class(&loss, level);
        let own: Vec<usize> = fine.iter().map(|&class| groups[class]).collect();
        let coarse = rows(loss.groups[level].proxies.val());
        expected += weight * scaled_proxy_anchor(&items, &coarse, &own, setting);
    }
    assert_close(value(&loss), expected);

    // Plain Proxy-NCA has a scale for each level and no margin: equal scales are the scale of the loss.
    let nca =
        r#"{ "loss": { "kind": "proxy_nca" }, "coarse": { "kind": "taxonomy" }, "scales": [3.0, 3.0, 3.0] }"#;
    let same = r#"{ "loss": { "kind": "proxy_nca", "scale": 3.0 }, "coarse": { "kind": "taxonomy" } }"#;
    assert_close(value(&init(&config(nca), 1)), value(&init(&config(same), 1)));
    let other = nca.replace("[3.0, 3.0, 3.0]", "[1.0, 3.0, 3.0]");
    assert!((value(&init(&config(&other), 1)) - value(&init(&config(same), 1))).abs() > 1e-3);
}

#[test]
fn an_update_continues_k_means_by_cosine_from_the_last_groups() {
    for seed in 0..20 {
        let mut loss = init(&config(r#"{ "coarse": { "kind": "clusters", "count": 4 } }"#), seed);
        for moved in 0..3 {
            loss.proxies = Param::from_tensor(draw(100 * seed + moved, CLASSES as usize));
            let (groups, means) =
                naive_clusters(&rows(loss.proxies.val()), rows(loss.groups[0].proxies.val()));
            loss.update();
            assert_eq!(group_of_class(&loss, 0), groups, "seed {seed}");
            let got = rows(loss.groups[0].proxies.val());
            got.concat().iter().zip(means.concat()).for_each(|(&got, mean)| assert_close(got, mean));
        }
    }
}

#[test]
fn the_groups_of_a_taxonomy_are_its_classes() {
    let mut loss = init(&config(r#"{ "coarse": { "kind": "taxonomy" } }"#), 3);
    loss.proxies = Param::from_tensor(draw(9, CLASSES as usize));
    loss.update();
    for (level, count) in [(1, 2), (2, 6)] {
        let groups: Vec<usize> = classes().column(level).into_iter().map(|class| class as usize).collect();
        assert_eq!(group_of_class(&loss, level - 1), groups);
        let means = naive_means(&rows(loss.proxies.val()), &groups, count);
        let got = rows(loss.groups[level - 1].proxies.val());
        got.concat().iter().zip(means.concat()).for_each(|(&got, mean)| assert_close(got, mean));
    }
}

#[test]
fn a_taxonomy_of_one_level_has_only_the_fine_loss() {
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
    assert_eq!(value("hpl_proxy_nca_gt"), value("proxy_nca"));
}

#[test]
fn with_one_cluster_per_class_the_loss_is_twice_the_fine_loss() {
    let twice =
        init(&config(r#"{ "coarse": { "kind": "clusters", "count": 12 }, "weights": [1.0, 1.0] }"#), 4);
    let fine =
        init(&config(r#"{ "coarse": { "kind": "clusters", "count": 12 }, "weights": [0.0, 1.0] }"#), 4);
    assert_eq!(group_of_class(&twice, 0), (0..12).collect::<Vec<_>>());
    assert_close(value(&twice), 2.0 * value(&fine));
}

#[test]
fn clusters_depend_on_the_seed_alone() {
    let config = config(r#"{ "coarse": { "kind": "clusters", "count": 4 } }"#);
    let mut loss = init(&config, 1);
    assert_eq!(group_of_class(&loss, 0), group_of_class(&init(&config, 1), 0));
    assert!((2..6).any(|seed| group_of_class(&loss, 0) != group_of_class(&init(&config, seed), 0)));
    let means = rows(loss.groups[0].proxies.val());
    loss.update();
    assert_eq!(rows(loss.groups[0].proxies.val()), means, "clusters that have converged stay");
}

#[test]
fn no_cluster_is_empty() {
    let mut loss = init(&config(r#"{ "coarse": { "kind": "clusters", "count": 5 } }"#), 1);
    let same = draw(7, 1).repeat_dim(0, CLASSES as usize);
    let few = Tensor::cat(vec![draw(7, 1).repeat_dim(0, 10), draw(8, 2)], 0);
    let none = same.zeros_like();
    for proxies in [same, few, none] {
        loss.proxies = Param::from_tensor(proxies);
        loss.update();
        let groups = group_of_class(&loss, 0);
        assert!((0..5).all(|group| groups.contains(&group)), "{groups:?}");
        assert!(value(&loss).is_finite());
    }
}

#[test]
fn fixed_coarse_proxies_move_only_in_updates() {
    let mut loss = init(&config(r#"{ "every": 10, "coarse": { "kind": "clusters", "count": 4 } }"#), 1);
    let gradients = loss.forward(&Batch::new(draw(5, 8), &batch_labels())).backward();
    assert!(loss.proxies.val().grad(&gradients).is_some());
    for fixed in [&loss.groups[0].members, &loss.groups[0].proxies] {
        assert!(!fixed.is_require_grad() && fixed.val().grad(&gradients).is_none());
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
fn a_checkpoint_holds_the_groups() {
    let config = config(r#"{ "coarse": { "kind": "clusters", "count": 4 } }"#);
    let mut loss = init(&config, 1);
    // The groups no longer follow from the fine proxies.
    loss.proxies = Param::from_tensor(draw(9, CLASSES as usize));
    let restored = init(&config, 2).try_load_record(loss.clone().into_record()).unwrap();
    assert_eq!(group_of_class(&restored, 0), group_of_class(&loss, 0));
    assert_eq!(value(&restored), value(&loss));
    assert!(!restored.groups[0].proxies.is_require_grad() && restored.proxies.is_require_grad());
}

#[test]
fn coarse_levels_weigh_a_tenth_of_the_finest_by_default() {
    for (coarse, weights) in [("clusters", "[0.1, 1.0]"), ("taxonomy", "[0.1, 0.1, 1.0]")] {
        let coarse = format!(r#""coarse": {{ "kind": "{coarse}" }}"#);
        let default = init(&config(&format!("{{ {coarse} }}")), 4);
        let given = init(&config(&format!(r#"{{ {coarse}, "weights": {weights} }}"#)), 4);
        assert_eq!(value(&default), value(&given));
    }
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

/// The gradient of the loss with respect to each coarse proxy, and to the fine proxies.
fn proxy_gradients(json: &str) -> (Option<Rows>, Rows) {
    let loss = init(&config(json), 1);
    let gradients = loss.forward(&Batch::new(draw(5, 8), &batch_labels())).backward();
    let gradient = |proxies: &Param<Tensor<2>>| proxies.val().grad(&gradients).map(rows);
    (gradient(&loss.groups[0].proxies), gradient(&loss.proxies).unwrap())
}

#[test]
fn learned_coarse_proxies_have_a_gradient_and_are_reset_by_updates_of_clusters_alone() {
    let clusters = r#"{ "coarse_proxies": "learned", "coarse": { "kind": "clusters", "count": 4 } }"#;
    let taxonomy = r#"{ "coarse_proxies": "learned", "coarse": { "kind": "taxonomy" } }"#;
    for (json, reset) in [(clusters, true), (taxonomy, false)] {
        assert!(proxy_gradients(json).0.is_some());
        let mut loss = init(&config(json), 1);
        let count = loss.groups[0].proxies.dims()[0];
        let moved = (loss.groups[0].proxies.val() + draw(3, count) * 0.01).detach();
        loss.groups[0].proxies = Param::from_tensor(moved.clone());
        loss.update();
        assert!(loss.groups[0].proxies.is_require_grad());
        assert_eq!(rows(loss.groups[0].proxies.val()) != rows(moved), reset);
    }
}

#[test]
fn coarse_means_follow_the_fine_proxies_in_every_step_and_pass_their_gradient_on() {
    let json = |proxies: &str, weights: &str| {
        format!(
            r#"{{ "coarse_proxies": "{proxies}", "weights": {weights},
                  "coarse": {{ "kind": "clusters", "count": 4 }} }}"#
        )
    };
    // With the coarse level alone, the fine proxies have a gradient only through the means.
    let size = |gradient: Rows| gradient.concat().iter().map(|x| x.abs()).sum::<f64>();
    let (coarse, fine) = proxy_gradients(&json("means", "[1.0, 0.0]"));
    assert!(coarse.is_none() && size(fine) > 0.0);
    assert_eq!(size(proxy_gradients(&json("fixed", "[1.0, 0.0]")).1), 0.0);

    let mut means = init(&config(&json("means", "[1.0, 1.0]")), 1);
    let mut fixed = init(&config(&json("fixed", "[1.0, 1.0]")), 1);
    assert_close(value(&means), value(&fixed));
    let moved = draw(9, CLASSES as usize);
    (means.proxies, fixed.proxies) = (Param::from_tensor(moved.clone()), Param::from_tensor(moved));
    // Without an update only the means have moved. With the means of the same groups, the two agree again.
    assert!((value(&means) - value(&fixed)).abs() > 1e-3);
    let groups = group_of_class(&fixed, 0);
    let proxies = naive_means(&rows(fixed.proxies.val()), &groups, 4);
    let proxies = TensorData::new(proxies.concat(), [4, DIMENSION]).convert::<f32>();
    fixed.groups[0].proxies = Param::from_tensor(Tensor::from_data(proxies, &device()));
    assert_close(value(&means), value(&fixed));
}
