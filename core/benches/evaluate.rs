//! Evaluates 20,000 random embeddings of 512 numbers at 3 levels, leave-one-out, and prints time and peak memory. Then
//! compares every metric of 200 queries with its naive formula. `akin bench eval` sets the time beside that of a matrix
//! product and shows how it grows.
//!
//! `cargo bench -p akin-core --features parallel --bench evaluate [-- ITEMS DIMENSION]`

#[path = "../tests/oracle/mod.rs"]
mod oracle;

use std::time::Instant;

use akin_core::embeddings::Embeddings;
use akin_core::evaluate::{EvaluationConfig, Labelled, QueryScores, evaluate};
use akin_core::random::stream;
use akin_core::search::Gallery;
use akin_core::similarity::Similarity;
use akin_core::taxonomy::{Labels, shared_level};
use rand::RngExt;

const CHECKED: usize = 200;

fn main() -> akin_core::Result<()> {
    let mut sizes = std::env::args().filter_map(|argument| argument.parse().ok());
    let (items, dimension) = (sizes.next().unwrap_or(20_000), sizes.next().unwrap_or(512));
    let levels = ["coarse", "middle", "fine"].map(String::from);

    let mut random = stream(0, "benchmark", &[]);
    let values = (0..items * dimension).map(|_| random.random_range(-1.0..1.0)).collect();
    let embeddings = Embeddings::new(dimension, values)?;
    // 12 coarse classes, 200 middle classes, and fine classes of about five items.
    let classes = (items / 5).max(1) as u32;
    let ids = (0..items).flat_map(|_| {
        let fine = random.random_range(0..classes);
        [fine % 200 % 12, fine % 200, fine]
    });
    let labels = Labels::new(levels.len(), ids.collect())?;

    let mut config = EvaluationConfig::default();
    config.metrics.push("recall@10".parse()?);
    let (start, processor) = (Instant::now(), processor_time());
    let report = evaluate(&levels, Labelled { embeddings: &embeddings, labels: &labels }, None, &config)?;
    let seconds = start.elapsed().as_secs_f64();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if cfg!(feature = "parallel") { threads } else { 1 };
    println!("{items} × {dimension}, {} levels, leave-one-out, {threads} threads", levels.len());
    println!("time         {seconds:.2} s");
    if let Some((before, after)) = processor.zip(processor_time()) {
        println!("processor    {:.2} s", after - before);
    }
    println!("peak memory  {}", peak_memory().unwrap_or_else(|| "unknown here".into()));

    let gallery = Gallery::new(&embeddings, Similarity::Cosine)?;
    let mut worst = 0f64;
    let mut compared = 0;
    for query in (0..items).step_by((items / CHECKED).max(1)).take(CHECKED) {
        let mut scores = gallery.scores(embeddings.row(query))?;
        let mut shared: Vec<usize> =
            (0..items).map(|i| shared_level(labels.row(query), labels.row(i))).collect();
        scores.remove(query);
        shared.remove(query);
        let expected = by_the_formulas(&scores, &shared, &config);
        let got = flatten(&report.per_query[query]);
        assert_eq!(got.len(), expected.len());
        for (got, expected) in got.iter().zip(&expected) {
            assert_eq!(got.is_some(), expected.is_some(), "query {query}");
            worst = worst.max((got.unwrap_or(0.0) - expected.unwrap_or(0.0)).abs());
            compared += 1;
        }
    }
    println!("oracle       {compared} values of {CHECKED} queries agree within {worst:.0e}");
    assert!(worst < 1e-12, "a metric differs from its formula by {worst:e}");
    Ok(())
}

fn flatten(row: &QueryScores) -> Vec<Option<f64>> {
    (0..=row.levels.len()).flat_map(|level| row.at(level).iter().map(|(_, value)| value)).collect()
}

fn by_the_formulas(scores: &[f32], shared: &[usize], config: &EvaluationConfig) -> Vec<Option<f64>> {
    let depth = 3;
    let ranked = oracle::ranked(scores, shared);
    // Falling scores in ranked order, for the formulas of H-AP and AP, which compare scores.
    let falling: Vec<f32> = (0..ranked.len()).map(|rank| -(rank as f32)).collect();
    let counts: Vec<usize> =
        (0..=depth).map(|level| shared.iter().filter(|&&l| l == level).count()).collect();
    let rel = config.relevance.checked(depth).expect("a relevance without weights").by_level(&counts);
    let mut values = vec![
        oracle::h_ap(&falling, &ranked, &rel),
        oracle::ndcg(&ranked, oracle::exponential, usize::MAX),
        oracle::asi(&ranked),
    ];
    for level in 1..=depth {
        values.push(oracle::ap(&falling, &ranked, level));
        values.push(oracle::map_at_r(&ranked, level));
        values.extend([1, 10].map(|k| oracle::recall(&ranked, level, k)));
    }
    values
}

/// The time that all threads have worked, in seconds, if the system reports it.
fn processor_time() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // User and system time are the 12th and 13th numbers behind the name, in hundredths of a second.
    let numbers: Vec<f64> = stat
        .rsplit(')')
        .next()?
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|number| number.parse().ok())
        .collect();
    Some(numbers.iter().sum::<f64>() / 100.0)
}

/// The largest resident size so far, if the system reports it.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(format!("{:.0} MB", kilobytes / 1024.0))
}
