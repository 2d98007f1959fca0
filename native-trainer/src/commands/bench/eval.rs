//! `akin bench eval`: the time and memory of an evaluation, beside a matrix product and the naive way.

use std::path::PathBuf;

use akin_base::directory;
use akin_base::files::{check_ending, check_output, write_atomic};
use akin_base::progress::Progress;
use akin_base::quantities::count;
use akin_core::embeddings::Embeddings;
use akin_core::evaluate::{Evaluation, EvaluationConfig, Execution, Labelled, QueryScores, Step};
use akin_core::pair_sums::PairSums;
use akin_core::random::{stream, uniform};
use akin_core::ranking::Ranking;
use akin_core::taxonomy::{Labels, shared_level};
use akin_figures::lines::{Axis, Line, lines};
use anyhow::{Context, Result};
use burn::tensor::{Device, Tensor, TensorData};
use clap::Args;
use rayon::prelude::*;

use super::measure::{Figure, Report, Row, median_seconds, peak_memory_with, print_peak_memory};
use crate::config::DeviceName;
use crate::config::device;

/// Measure evaluation: how its time and memory grow with the number of items, which all rank each other.
///
/// Beside each evaluation stand the matrix product of its scores, embeddings times embeddings transposed, and, for few
/// items, the naive way: each pair by itself, and every list sorted. They run in turns; times are medians. Embeddings
/// are random, at 3 levels: classes of about 5 items, 200 above them, and 12 above those. Memory is that of a process
/// that only evaluates, and includes the program and the embeddings.
#[derive(Debug, Args)]
pub struct BenchEvalArgs {
    /// The numbers of items.
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_values_t = [1000, 2000, 5000, 10_000, 20_000],
        value_parser = clap::value_parser!(u32).range(10..=1 << 24)
    )]
    pub items: Vec<u32>,
    /// The number of dimensions of an embedding.
    #[arg(
        long,
        value_name = "D",
        default_value_t = 512,
        value_parser = clap::value_parser!(u32).range(1..=1 << 20)
    )]
    pub dimension: u32,
    /// Where the scores are added up, and the matrix product is computed.
    #[arg(long, value_enum, default_value_t = DeviceName::Cpu)]
    pub device: DeviceName,
    /// The largest number of items for which the naive way is measured too. At 5000 this takes a minute.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub naive_up_to: u32,
    /// Draw how the times grow, as SVG.
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// Replace the file of `--plot` if it exists.
    #[arg(long, requires = "plot")]
    pub overwrite: bool,
    /// How to show progress.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Evaluate this many items once, and print the peak memory of the process.
    #[arg(long, value_name = "N", hide = true)]
    pub memory_of: Option<u32>,
}

const LEVELS: [&str; 3] = ["coarse", "middle", "fine"];

/// The times of one number of items, in seconds.
struct Times {
    items: u32,
    evaluation: f64,
    product: f64,
    naive: Option<f64>,
}

/// Measures every number of items, and prints a table or JSON.
pub fn run(args: BenchEvalArgs) -> Result<()> {
    if let Some(file) = &args.plot {
        check_ending("--plot", file, "svg")?;
        check_output(file, &[], args.overwrite)?;
        directory::refuse_own_file(file)?;
    }
    if let Some(items) = args.memory_of {
        Work::new(items, args.dimension)?
            .evaluate(device::open_pair_sums(args.device)?.as_deref(), Progress::None)?;
        return print_peak_memory();
    }
    let (device, pair_sums) = (device::open(args.device)?, device::open_pair_sums(args.device)?);
    let (mut rows, mut all) = (Vec::new(), Vec::new());
    for &items in &args.items {
        args.progress.say("Measuring", &format!("the evaluation of {} items", count(items as usize)));
        let memory = peak_memory_with(["--memory-of", &items.to_string()])?;
        let times = measure(&args, items, &device, pair_sums.as_deref())?;
        rows.push(Row {
            name: count(items as usize),
            figures: vec![
                Figure::Count(args.dimension as usize),
                Figure::Seconds(times.evaluation),
                Figure::Seconds(times.product),
                Figure::Ratio(times.evaluation / times.product),
                times.naive.map_or(Figure::Missing, Figure::Seconds),
                times.naive.map_or(Figure::Missing, |naive| Figure::Ratio(naive / times.evaluation)),
                Figure::bytes(memory),
            ],
        });
        all.push(times);
    }
    if let Some(file) = &args.plot {
        let svg = plot(&all, args.dimension)?;
        write_atomic(file, |out| out.write_all(svg.as_bytes()))?;
    }
    let columns = vec![
        ("d", "dimension"),
        ("time", "seconds"),
        ("product", "product_seconds"),
        ("÷ product", "per_product"),
        ("naive", "naive_seconds"),
        ("naive ÷", "naive_per_evaluation"),
        ("memory", "peak_memory"),
    ];
    Report { subject: "items", columns, rows }.print(args.json)
}

/// The embeddings and labels of an evaluation.
struct Work {
    embeddings: Embeddings,
    labels: Labels,
    config: EvaluationConfig,
}

impl Work {
    fn new(items: u32, dimension: u32) -> Result<Self> {
        let mut random = stream(0, "benchmark", &[]);
        let values = uniform(&mut random, items as usize * dimension as usize, -1.0, 1.0);
        let classes = f64::from((items / 5).max(1));
        let fine = uniform(&mut random, items as usize, 0.0, 1.0).into_iter();
        let ids = fine.map(|share| (f64::from(share) * classes) as u32);
        let ids = ids.flat_map(|fine| [fine % 200 % 12, fine % 200, fine]);
        Ok(Self {
            embeddings: Embeddings::new(dimension as usize, values)?,
            labels: Labels::new(LEVELS.len(), ids.collect())?,
            config: EvaluationConfig::default(),
        })
    }

    fn set(&self) -> Labelled<'_> {
        Labelled { embeddings: &self.embeddings, labels: &self.labels }
    }

    fn evaluate(&self, device: Option<&dyn PairSums>, progress: Progress) -> Result<()> {
        let bar = progress.bar("Ranking", self.labels.len() as u64);
        let levels = LEVELS.map(String::from);
        let evaluation = Evaluation {
            levels: &levels,
            queries: self.set().into(),
            gallery: None,
            places: None,
            config: &self.config,
            execution: Execution {
                progress: &|step| {
                    if let Step::Ranked(queries) = step {
                        bar.advance(queries as u64);
                    }
                },
                device,
                ..Execution::default()
            },
        };
        std::hint::black_box(evaluation.report()?);
        Ok(())
    }

    /// The matrix product of all scores, some rows at a time.
    fn product(&self, device: &Device) {
        const ROWS: usize = 512;
        let (items, dimension) = (self.embeddings.len(), self.embeddings.dimension());
        let tensor = |values: &[f32]| -> Tensor<2> {
            let data = TensorData::new(values.to_vec(), [values.len() / dimension, dimension]);
            Tensor::from_data(data, device)
        };
        let gallery = tensor(self.embeddings.values()).transpose();
        for first in (0..items).step_by(ROWS) {
            let rows = &self.embeddings.values()[first * dimension..items.min(first + ROWS) * dimension];
            std::hint::black_box(tensor(rows).matmul(gallery.clone()).into_data());
        }
    }

    /// Every pair by itself, every list sorted, and the same metrics.
    fn naive(&self) -> Result<()> {
        let checked = self.config.checked(LEVELS.len())?;
        let length = |row: &[f32]| row.iter().map(|x| x * x).sum::<f32>().sqrt();
        let scores = |query: usize| {
            let row = self.embeddings.row(query);
            let score = |item: usize| {
                let other = self.embeddings.row(item);
                let product: f32 = row.iter().zip(other).map(|(x, y)| x * y).sum();
                product / (length(row) * length(other))
            };
            let others = (0..self.labels.len()).filter(|&item| item != query);
            let mut list: Vec<(f32, usize)> = others.map(|item| (score(item), item)).collect();
            list.sort_by(|a, b| b.0.total_cmp(&a.0));
            let classes = self.labels.row(query);
            let level = |&(_, item): &(f32, usize)| shared_level(classes, self.labels.row(item));
            let levels: Vec<usize> = list.iter().map(level).collect();
            QueryScores::new(query, &Ranking::from_levels(LEVELS.len(), &levels), &checked)
        };
        let rows: Vec<QueryScores> = (0..self.labels.len()).into_par_iter().map(scores).collect();
        std::hint::black_box(rows);
        Ok(())
    }
}

fn measure(
    args: &BenchEvalArgs,
    items: u32,
    device: &Device,
    pair_sums: Option<&dyn PairSums>,
) -> Result<Times> {
    let work = Work::new(items, args.dimension)?;
    let mut evaluated = Ok(());
    let mut evaluate = || evaluated = work.evaluate(pair_sums, args.progress);
    let [evaluation, product] = median_seconds([&mut evaluate, &mut || work.product(device)]);
    evaluated?;
    let mut naive = None;
    if items <= args.naive_up_to {
        let mut ranked = Ok(());
        let [seconds] = median_seconds([&mut || ranked = work.naive()]);
        ranked?;
        naive = Some(seconds);
    }
    Ok(Times { items, evaluation, product, naive })
}

/// How the times grow, as SVG.
fn plot(times: &[Times], dimension: u32) -> Result<String> {
    let line = |name: &str, group: usize, seconds: &dyn Fn(&Times) -> Option<f64>| {
        let point = |times: &Times| Some([f64::from(times.items), seconds(times)?]);
        Line::new(name, group, times.iter().filter_map(point).collect())
    };
    let all = [
        line("akin", 0, &|times| Some(times.evaluation)),
        line("matrix product", 1, &|times| Some(times.product)),
        line("naive", 2, &|times| times.naive),
    ];
    let items: Vec<f64> = times.iter().map(|times| f64::from(times.items)).collect();
    let drawing = lines(Axis::logarithmic("items").naming(&items), Axis::logarithmic("seconds"), &all)?;
    let title = format!("Evaluation of items that rank each other, {} dimensions", count(dimension as usize));
    drawing.context("no time was measured")?.svg(&title)
}
