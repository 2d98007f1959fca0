//! Runs of the training ground: what they repeat, what they share, and what the page's examples show.

use akin_core::losses::{CATALOGUE, LossConfig};
use akin_training_ground::{Creatures, Measures, Run, Settings, Space, offers};
use serde_json::json;

fn creatures() -> Creatures {
    Creatures::read(include_str!("../../../www/src/training/creatures.json")).unwrap()
}

fn loss(value: serde_json::Value) -> LossConfig {
    serde_json::from_value(value).unwrap()
}

fn named(name: &str) -> Settings {
    Settings { loss: LossConfig::named(name).unwrap(), ..Settings::default() }
}

/// The loss of each of these steps, and the scores after them.
fn train(creatures: &Creatures, settings: &Settings, steps: u64) -> (Vec<f64>, Measures) {
    let mut run = Run::new(creatures, settings).unwrap();
    let losses = (0..steps).map(|_| run.step()).collect();
    assert_eq!(run.steps(), steps);
    (losses, run.measure(creatures, &run.points()).unwrap())
}

#[test]
fn the_same_seed_gives_the_same_curve_and_another_seed_another() {
    let creatures = creatures();
    let settings = named("happier");
    let first = train(&creatures, &settings, 12);
    assert_eq!(first, train(&creatures, &settings, 12));
    assert_ne!(first, train(&creatures, &Settings { seed: 2, ..settings }, 12));
}

#[test]
fn two_losses_start_from_the_same_points() {
    let creatures = creatures();
    let points = |name| Run::new(&creatures, &named(name)).unwrap().points();
    assert_eq!(points("happier"), points("norm_softmax"));
}

#[test]
fn every_offer_trains_in_its_space() {
    let creatures = creatures();
    for space in [Space::Circle, Space::Sphere, Space::Disk] {
        let offers = offers(&creatures, space);
        assert!(offers.len() >= 3, "{space:?} has only {} losses", offers.len());
        for offer in offers {
            let settings = Settings { space, species: 8, loss: loss(offer.settings), ..Settings::default() };
            let mut run = Run::new(&creatures, &settings).unwrap();
            for _ in 0..2 {
                assert!(run.step().is_finite(), "{} on {space:?}", offer.name);
            }
            let points = run.points();
            assert_eq!(points.len(), creatures.len() * space.dimension());
            let length = |point: &[f32]| point.iter().map(|x| x * x).sum::<f32>().sqrt();
            for point in points.chunks(space.dimension()) {
                match space {
                    Space::Disk => assert!(length(point) < 1.0, "{}: {point:?}", offer.name),
                    _ => assert!((length(point) - 1.0).abs() < 1e-4, "{}: {point:?}", offer.name),
                }
            }
        }
    }
}

#[test]
fn the_sphere_has_every_loss_of_the_catalogue_that_compares_directions() {
    let offered: Vec<&str> =
        offers(&creatures(), Space::Sphere).into_iter().map(|offer| offer.name).collect();
    for entry in CATALOGUE.iter().filter(|entry| entry.complete) {
        let supports = LossConfig::named(entry.name).unwrap().supports(akin_core::geometry::Space::Cosine);
        assert_eq!(supports, offered.contains(&entry.name), "{}", entry.name);
    }
}

#[test]
fn settings_out_of_range_are_refused_with_a_hint() {
    let creatures = creatures();
    let good = Settings::default();
    for (bad, part) in [
        (Settings { species: 1, ..good.clone() }, "cannot have 1 of 48 species"),
        (Settings { species: 49, ..good.clone() }, "cannot have 49 of 48 species"),
        (Settings { creatures: 6, ..good.clone() }, "6 of 5 creatures"),
        (Settings { rate: 0.0, ..good.clone() }, "learning rate is 0"),
        (Settings { proxy_rate: f64::NAN, ..good.clone() }, "learning rate of proxies is NaN"),
        (Settings { loss: loss(json!({ "kind": "happier", "lambda": 2.0 })), ..good.clone() }, "lambda"),
        (Settings { space: Space::Disk, ..good.clone() }, "cannot compare poincare"),
    ] {
        let error = Run::new(&creatures, &bad).err().expect("it is refused").to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn damaged_files_are_refused() {
    let text = include_str!("../../../www/src/training/creatures.json");
    for damaged in
        [&text[..1000], "{}", &text.replacen("\"creatures_per_species\":5", "\"creatures_per_species\":4", 1)]
    {
        let error = Creatures::read(damaged).unwrap_err();
        assert!(error.message().contains("the file of creatures is damaged"), "{error}");
    }
}

/// The page's first example: a loss of species alone scatters families, a hierarchical loss keeps them together.
#[test]
fn a_loss_of_species_alone_scatters_families() {
    let creatures = creatures();
    let (_, fine) = train(&creatures, &named("norm_softmax"), 300);
    for hierarchical in ["happier", "sum_norm_softmax"] {
        let (_, both) = train(&creatures, &named(hierarchical), 300);
        let family = |measures: &Measures| measures.training.ap[1].unwrap();
        let h_ap = |measures: &Measures| measures.held_out.h_ap.unwrap();
        assert!(family(&both) > family(&fine) + 0.2, "{hierarchical}: {both:?} {fine:?}");
        assert!(h_ap(&both) > h_ap(&fine) + 0.05, "{hierarchical}: {both:?} {fine:?}");
    }
}

/// The second: a larger λ lowers the gap and the AP of families.
#[test]
fn lambda_trades_families_for_scores_that_compare() {
    let creatures = creatures();
    let [none, half] = [0.0, 0.5].map(|lambda| {
        let loss = loss(json!({ "kind": "happier", "lambda": lambda }));
        train(&creatures, &Settings { space: Space::Sphere, species: 8, loss, ..Settings::default() }, 300).1
    });
    let (none, half) = (none.training, half.training);
    assert!(half.gap.unwrap() < none.gap.unwrap() - 0.03, "{none:?} {half:?}");
    assert!(half.ap[1].unwrap() < none.ap[1].unwrap() - 0.2, "{none:?} {half:?}");
    assert!(half.ap[2].unwrap() > none.ap[2].unwrap() + 0.05, "{none:?} {half:?}");
}

/// The third: small batches hide most mistakes.
#[test]
fn small_batches_have_a_large_decomposability_gap() {
    let creatures = creatures();
    let [small, large] =
        [2, 16].map(|species| train(&creatures, &Settings { species, ..named("smooth_ap") }, 300).1.training);
    assert!(small.gap.unwrap() > large.gap.unwrap() + 0.2, "{small:?} {large:?}");
    assert!(small.ap[2].unwrap() < large.ap[2].unwrap() - 0.1, "{small:?} {large:?}");
}

/// The fourth: HIER's ancestors grow a tree whose coarse nodes are near the centre.
#[test]
fn ancestors_grow_a_tree() {
    let creatures = creatures();
    let hier = offers(&creatures, Space::Disk).into_iter().find(|offer| offer.name == "hier");
    let terms = json!([
        { "weight": 1.0, "loss": { "kind": "hyperbolic_cross_entropy" } },
        { "weight": 1.0, "loss": hier.unwrap().settings },
    ]);
    let loss = loss(json!({ "kind": "sum", "terms": terms }));
    let mut run =
        Run::new(&creatures, &Settings { space: Space::Disk, loss, ..Settings::default() }).unwrap();
    let spread = |run: &Run| {
        let depth = run.tree(&creatures, &run.points()).unwrap().depth.unwrap();
        depth[2] - depth[0]
    };
    let before = spread(&run);
    for _ in 0..150 {
        run.step();
    }
    assert!(spread(&run) > before + 0.5, "{before} {}", spread(&run));
    assert!(run.proxies().iter().filter(|group| group.ancestors).count() == 1);
}
