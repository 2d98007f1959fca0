//! The kernels of the losses on slices, without embeddings and their products: ranks of all items of a batch from sorted
//! scores, with their gradient, beside the equations written out for the same scores, and HIER from distances. Times are
//! medians; `akin bench loss` measures whole losses.
//!
//! `cargo bench --workspace --bench losses [-- B …]`. The equations run for up to 512 items.

use std::hint::black_box;
use std::time::Instant;

use akin_core::common_ancestors::{AncestorLoss, Distances, Draw, TripletRules, Triplets, mutual_neighbours};
use akin_core::query_losses::{HapSurrogateConfig, ScoredItems, SmoothApConfig, hap_surrogate, smooth_ap};
use akin_core::random::{normal, stream, uniform};
use akin_core::relevance::Relevance;
use akin_core::smooth_ranks::{Places, RankSteps, SmoothRanks};
use akin_core::steps::UpperStep;

/// The scores of random unit vectors of 512 dimensions have this deviation.
const DEVIATION: f32 = 0.0442;
const DEPTH: usize = 3;

fn main() {
    let mut sizes: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![256, 512, 1024];
    }
    println!("{:<34}{:>6}{:>12}{:>14}{:>10}", "kernel", "B", "time", "equations", "ratio");
    for size in sizes {
        let scores = normal(&mut stream(0, "benchmark", &[]), size * size, DEVIATION);
        for smooth_rank in [false, true] {
            let config = HapSurrogateConfig {
                smooth_rank,
                relevance: Relevance::HierarchicalAp { alpha: 1.0 },
                ..Default::default()
            };
            let ranks = SmoothRanks::new(RankSteps::Bounds {
                upper: config.upper_step.checked().expect("the defaults are in range"),
                lower: smooth_rank.then(|| config.lower_step.checked().expect("the defaults are in range")),
            });
            let settings = config.checked(DEPTH).expect("the defaults are in range");
            let name = if smooth_rank { "H-AP, smooth H-rank" } else { "H-AP, constant H-rank" };
            let relevance = config.relevance.checked(DEPTH).expect("the defaults are in range");
            let places = |query: usize, places: &mut Places| {
                places.of_items.extend((0..size).map(|item| level(size, query, item) as u32));
                let mut counts = vec![0; DEPTH + 1];
                places.of_items.iter().for_each(|&level| counts[level as usize] += 1);
                places.relevances.extend(relevance.by_level(&counts));
            };
            print_row(name, &ranks, &scores, size, places, |items| hap_surrogate(items, &settings).value);
        }
        let settings = SmoothApConfig::default().checked().expect("the defaults are in range");
        let step = UpperStep { slope: None, temperature: settings.temperature, ..Default::default() };
        let step = step.checked().expect("the defaults are in range");
        let places = |query: usize, places: &mut Places| {
            places.of_items.extend((0..size).map(|item| u32::from(level(size, query, item) == DEPTH)));
            places.relevances.extend([0.0, 1.0]);
        };
        let ranks = SmoothRanks::new(RankSteps::Sigmoid { step });
        print_row("Smooth-AP, 4 items a class", &ranks, &scores, size, places, |items| {
            smooth_ap(items, &settings).value
        });
    }
    for draw in [Draw::Probability, Draw::Softmax { temperature: 0.1 }] {
        let loss = AncestorLoss { draw, margin: 0.1, equal_ancestors: false };
        let proxies = 512;
        let terms = [180, proxies].map(|items| {
            let mut rng = stream(0, "benchmark", &[items as u64]);
            let between = uniform(&mut rng, items * items, 3.0, 8.0);
            let mutual = mutual_neighbours(&between, 20, false, None);
            let rules = TripletRules { count: 50, fewest_neighbours: 1, anchor_as_unrelated: false };
            (uniform(&mut rng, items * proxies, 3.0, 8.0), Triplets::draw(&mutual, rules, &mut rng))
        });
        let seconds = median(|| {
            for (values, triplets) in &terms {
                let draws = stream(0, "draws", &[]);
                black_box(loss.mean(Distances { values, proxies }, triplets, &draws));
            }
        });
        let name = if draw == Draw::Probability { "HIER" } else { "HIER, public code" };
        println!("{name:<34}{:>6}{:>9.1} ms", 180, 1e3 * seconds);
    }
}

/// The shared level of two items: classes of four items, 16 classes above the fine ones, and 4 above those.
fn level(size: usize, query: usize, item: usize) -> usize {
    let class = |item: usize| item % size.div_ceil(4);
    let [query, item] = [class(query), class(item)];
    [query % 4 == item % 4, query % 16 == item % 16, query == item]
        .into_iter()
        .take_while(|&same| same)
        .count()
}

fn print_row(
    name: &str,
    ranks: &SmoothRanks,
    scores: &[f32],
    size: usize,
    places: impl Fn(usize, &mut Places) + Sync,
    equations: impl Fn(&ScoredItems) -> f64,
) {
    let mut gradient = vec![0.0; scores.len()];
    let mut loss = 0.0;
    let seconds = median(|| loss = ranks.batch(scores, size, &mut gradient, &places).sum());
    if size > 512 {
        return println!("{name:<34}{size:>6}{:>9.1} ms", 1e3 * seconds);
    }
    let start = Instant::now();
    let row = |(query, scores): (usize, &[f32])| {
        let levels = (0..size).map(|item| level(size, query, item)).collect();
        let scores = scores.iter().map(|&score| f64::from(score)).collect();
        equations(&ScoredItems::new(DEPTH, scores, levels).expect("the scores are finite"))
    };
    let expected: f64 = scores.chunks(size).enumerate().map(row).sum();
    let equations = start.elapsed().as_secs_f64();
    assert!((loss - expected).abs() < 1e-6 * expected.abs(), "{name}: {loss}, by the equations {expected}");
    println!(
        "{name:<34}{size:>6}{:>9.1} ms{:>11.0} ms{:>9.0}×",
        1e3 * seconds,
        1e3 * equations,
        equations / seconds
    );
}

/// The median time of several runs in seconds, after one that is not counted.
fn median(mut run: impl FnMut()) -> f64 {
    run();
    let mut seconds: Vec<f64> = (0..7)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
