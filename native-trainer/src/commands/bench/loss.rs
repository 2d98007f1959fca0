//! `akin bench loss`: the time and memory of losses, forward and backward, beside a matrix product.

use akin_base::problem::{did_you_mean, problem};
use akin_base::progress::Progress;
use akin_core::geometry::{Geometry, Space, normalise};
use akin_core::losses::{Batch, CATALOGUE, Loss, LossConfig, LossContext, Objective};
use akin_core::random::{stream, uniform};
use akin_core::taxonomy::Labels;
use anyhow::Result;
use burn::tensor::{Device, Tensor, TensorData};
use clap::Args;

use super::measure::{Figure, Report, Row, median_seconds, peak_memory_with, print_peak_memory};
use crate::config::DeviceName;
use crate::config::device;

/// Measure losses: the time of the value and its gradient for a batch of embeddings, and the peak memory.
///
/// Beside each loss stand the matrix product of its scores, embeddings times embeddings transposed, and, for small
/// batches, the same loss in tensor operations, as a GPU computes it. They run in turns; times are medians. Embeddings
/// are random, with 4 items in a fine class, 16 classes above the fine ones and 4 above those. Memory is that of a
/// process that computes only this loss, and includes the program.
///
/// Without options: the H-AP surrogate in both forms, Smooth-AP, ROADMAP, the losses with histograms, XBM with a full
/// memory, and HIER with 512 proxies.
#[derive(Debug, Args)]
pub struct BenchLossArgs {
    /// Measure these losses, which `akin list losses` explains, with their default settings.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub losses: Vec<String>,
    /// Measure only the row of this name, as the table prints it.
    #[arg(long, value_name = "ROW", conflicts_with = "losses")]
    pub only: Option<String>,
    /// The sizes of the batches [default: 256,1024 for losses that you name].
    #[arg(long, value_name = "B,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub batch: Vec<u32>,
    /// The number of dimensions of an embedding [default: 512, and 128 for HIER].
    #[arg(long, value_name = "D", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub dimension: Option<u32>,
    /// The largest batch for which the loss is also measured in tensor operations. At 1024 this takes a minute.
    #[arg(long, value_name = "B", default_value_t = 256)]
    pub tensors_up_to: usize,
    /// The device to compute on.
    #[arg(long, value_enum, default_value_t = DeviceName::Cpu)]
    pub device: DeviceName,
    /// How to show progress.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Compute case number N once, and print the peak memory of the process.
    #[arg(long, value_name = "N", hide = true)]
    pub memory_of_case: Option<usize>,
}

/// The cases without options: the loss, its settings, and the sizes of its batches.
const CASES: &[(&str, &str, &[u32])] = &[
    ("H-AP surrogate, constant H-rank", r#"{ "kind": "hap_surrogate", "smooth_rank": false }"#, SIZES),
    ("H-AP surrogate, smooth H-rank", r#"{ "kind": "hap_surrogate", "smooth_rank": true }"#, SIZES),
    ("Smooth-AP", r#"{ "kind": "smooth_ap" }"#, &[256, 1024]),
    ("ROADMAP", r#"{ "kind": "roadmap" }"#, &[256, 1024]),
    ("FastAP", r#"{ "kind": "fast_ap" }"#, &[256, 1024]),
    ("SoftBin-AP", r#"{ "kind": "softbin_ap" }"#, &[256, 1024]),
    ("XBM, 8192 items", r#"{ "kind": "cross_batch_memory_text", "size": 8192, "start": 0 }"#, &[256, 1024]),
    ("HIER", r#"{ "kind": "hier" }"#, &[180]),
    ("HIER, text", r#"{ "kind": "hier_text" }"#, &[180]),
];
const SIZES: &[u32] = &[256, 512, 1024, 4096];

/// One loss with the size of its batch.
struct Case {
    name: String,
    config: LossConfig,
    batch: usize,
    dimension: usize,
}

/// Measures every case, and prints a table or JSON.
pub fn run(args: BenchLossArgs) -> Result<()> {
    let cases = cases(&args)?;
    let device = device::open(args.device)?.autodiff();
    if let Some(case) = args.memory_of_case.and_then(|number| cases.get(number)) {
        Work::new(case, &device)?.step(&Loss::forward);
        return print_peak_memory();
    }
    let mut rows = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        args.progress.say("Measuring", &format!("{}, a batch of {}", case.name, case.batch));
        // Memory first, while this process is small.
        let memory = peak_memory_with(["--memory-of-case", &number.to_string()])?;
        rows.push(measure(case, &device, args.tensors_up_to, Figure::bytes(memory))?);
    }
    let columns = vec![
        ("B", "batch"),
        ("d", "dimension"),
        ("time", "seconds"),
        ("product", "product_seconds"),
        ("÷ product", "per_product"),
        ("tensors", "tensors_seconds"),
        ("tensors ÷", "tensors_per_loss"),
        ("memory", "peak_memory"),
    ];
    Report { subject: "loss", columns, rows }.print(args.json)
}

fn cases(args: &BenchLossArgs) -> Result<Vec<Case>> {
    let case = |name: &str, config: &LossConfig, &batch: &u32| {
        let dimension = if matches!(config, LossConfig::Hier(_)) { 128 } else { 512 };
        let dimension = args.dimension.unwrap_or(dimension) as usize;
        Case { name: name.to_owned(), config: config.clone(), batch: batch as usize, dimension }
    };
    let sizes =
        |default: &'static [u32]| if args.batch.is_empty() { default.to_vec() } else { args.batch.clone() };
    let mut cases = Vec::new();
    if args.losses.is_empty() {
        let chosen = |name: &str| args.only.as_deref().is_none_or(|only| only == name);
        if !CASES.iter().any(|(name, ..)| chosen(name)) {
            let names: Vec<&str> = CASES.iter().map(|(name, ..)| *name).collect();
            let message = format!("no row is named `{}`", args.only.as_deref().unwrap_or_default());
            return Err(problem(message, format!("the rows are {}", names.join("; "))));
        }
        for &(name, settings, batches) in CASES.iter().filter(|(name, ..)| chosen(name)) {
            let config: LossConfig = serde_json::from_str(settings)?;
            cases.extend(sizes(batches).iter().map(|batch| case(name, &config, batch)));
        }
    }
    for name in &args.losses {
        let Some(entry) = CATALOGUE.iter().find(|entry| entry.name == name) else {
            let near = did_you_mean(name, CATALOGUE.iter().map(|entry| entry.name));
            let hint = format!("{near}`akin list losses` lists all of them");
            return Err(problem(format!("unknown loss `{name}`"), hint));
        };
        let config = LossConfig::named(name)?;
        cases.extend(sizes(&[256, 1024]).iter().map(|batch| case(entry.title, &config, batch)));
    }
    Ok(cases)
}

/// The loss of a case with its batch.
struct Work {
    loss: Loss,
    embeddings: Tensor<2>,
    labels: Labels,
    /// What the embeddings are compared with: themselves, and the memory of XBM; or the proxies of HIER.
    reference: Tensor<2>,
}

impl Work {
    fn new(case: &Case, device: &Device) -> Result<Self> {
        let supports = |space| case.config.supports(space);
        let hyperbolic = matches!(case.config, LossConfig::Hier(_)) || !supports(Space::Cosine);
        let geometry = match hyperbolic {
            true if supports(Space::Poincare) => Geometry::poincare(),
            true => Geometry::Binary,
            false => Geometry::Cosine,
        };
        let labels = labels(case.batch)?;
        let values = uniform(&mut stream(0, "benchmark", &[]), case.batch * case.dimension, -1.0, 1.0);
        let embeddings = Tensor::from_data(TensorData::new(values, [case.batch, case.dimension]), device);
        let classes = labels.classes();
        let context = LossContext::new(&classes, case.dimension, &geometry, 0, device);
        let mut loss = case.config.init(&context)?;
        let embeddings = geometry.embed(normalise(embeddings));
        let plain = embeddings.clone().without_autodiff();
        let reference = match (&mut loss, &case.config) {
            (Loss::Hier(hier), _) => geometry.embed(hier.proxies.val().without_autodiff()),
            (Loss::CrossBatchMemory(memory), LossConfig::CrossBatchMemory(config)) => {
                let batches = config.size.div_ceil(case.batch);
                (0..batches).for_each(|_| memory.after_step(plain.clone(), &labels));
                Tensor::cat(vec![plain; batches + 1], 0).slice(0..case.batch + config.size)
            }
            _ => plain,
        };
        Ok(Self { loss, embeddings, labels, reference })
    }

    /// The value and the gradient with respect to the embeddings, read from the device.
    fn step(&self, forward: &dyn Fn(&Loss, &Batch) -> Tensor<1>) {
        let embeddings = self.embeddings.clone().detach().require_grad();
        let value = forward(&self.loss, &Batch::new(embeddings.clone(), &self.labels));
        let gradients = value.backward();
        let gradient = embeddings.grad(&gradients).map(Tensor::into_data);
        std::hint::black_box((value.into_data(), gradient));
    }

    /// The matrix product of the scores.
    fn product(&self) {
        let embeddings = self.embeddings.clone().without_autodiff();
        std::hint::black_box(embeddings.matmul(self.reference.clone().transpose()).into_data());
    }
}

/// Labels at three levels: classes of 4 items, 16 classes above, and 4 above those.
fn labels(batch: usize) -> Result<Labels> {
    let classes = batch.div_ceil(4) as u32;
    let ids = (0..batch as u32).map(|item| item % classes).flat_map(|class| [class % 4, class % 16, class]);
    Ok(Labels::new(3, ids.collect())?)
}

fn measure(case: &Case, device: &Device, tensors_up_to: usize, memory: Figure) -> Result<Row> {
    let work = Work::new(case, device)?;
    let [seconds, product] = median_seconds([&mut || work.step(&Loss::forward), &mut || work.product()]);
    let has_tensors = || work.loss.on_tensors(&Batch::new(work.embeddings.clone(), &work.labels)).is_some();
    let tensors = (case.batch <= tensors_up_to && has_tensors()).then(|| {
        let forward = |loss: &Loss, batch: &Batch| loss.on_tensors(batch).expect("it has just been there");
        let [seconds] = median_seconds([&mut || work.step(&forward)]);
        seconds
    });
    let or_missing = |figure: Option<Figure>| figure.unwrap_or(Figure::Missing);
    Ok(Row {
        name: case.name.clone(),
        figures: vec![
            Figure::Count(case.batch),
            Figure::Count(case.dimension),
            Figure::Seconds(seconds),
            Figure::Seconds(product),
            Figure::Ratio(seconds / product),
            or_missing(tensors.map(Figure::Seconds)),
            or_missing(tensors.map(|tensors| Figure::Ratio(tensors / seconds))),
            memory,
        ],
    })
}
