//! The golden files of the smooth versions of average precision, H-AP, NDCG and recall, of calibration, ROADMAP and cross-batch memory.

use akin_core::losses::{
    Batch, BinTies, BlackboxApConfig, BuildLoss, CalibrationConfig, FastApConfig, HapSurrogateConfig,
    LossConfig, Objective, PairConfig, PairMean, Reference, SmoothApConfig, SmoothHapConfig,
    SmoothNdcgConfig, SmoothRecallConfig, SoftbinApConfig, SumConfig, SupApConfig, SupNdcgConfig,
    SupRecallConfig, Term,
};
use akin_core::relevance::Relevance;
use akin_core::steps::{LowerStep, UpperStep};
use akin_core::taxonomy::Labels;
use burn::tensor::Tensor;

use crate::support::{Case, EXACT, SINGLE, STEP, Verdict, init, labels, matrix, scalar, tensor, values};

/// The tolerance where the reference rounds 1/|P| to f32, as it does for SupAP within ROADMAP: one third is then off by
/// 3 · 10⁻⁸.
const ROUNDED: f64 = 1e-6;

/// The tolerance where the reference sums its gradient over pairs and bins in f32: over many seeds this differs from
/// the sum in f64 by up to 1.2 · 10⁻⁵ of the largest entry.
const SUMMED_SINGLE: f64 = 5e-5;

/// The inputs of most of these files: a batch, and sometimes a set to rank.
struct Inputs {
    embeddings: Tensor<2>,
    labels: Labels,
    reference: Option<(Tensor<2>, Labels)>,
}

impl Inputs {
    fn new(case: &Case) -> Self {
        let reference = case.find("inputs/ref_embeddings").map(|_| {
            (tensor(case, "inputs/ref_embeddings").require_grad(), labels(case, "inputs/ref_labels"))
        });
        let embeddings = tensor(case, "inputs/embeddings").require_grad();
        Self { embeddings, labels: labels(case, "inputs/labels"), reference }
    }

    fn batch(&self) -> Batch<'_> {
        let batch = Batch::new(self.embeddings.clone(), &self.labels);
        match &self.reference {
            None => batch,
            Some((embeddings, labels)) => {
                batch.with_reference(Reference { embeddings: embeddings.clone(), labels, own: None })
            }
        }
    }

    /// The loss, and its gradients times `scale`, named as in the files.
    fn run(&self, loss: &impl Objective, scale: f64) -> (Vec<f64>, Vec<(&'static str, Vec<f64>)>) {
        let value = loss.forward(&self.batch());
        let gradients = value.backward();
        let mut named = vec![("grad_embeddings", &self.embeddings)];
        named.extend(self.reference.as_ref().map(|(embeddings, _)| ("grad_ref_embeddings", embeddings)));
        let gradient = |(name, tensor): (&'static str, &Tensor<2>)| {
            let gradient = values(tensor.grad(&gradients).unwrap());
            (name, gradient.into_iter().map(|x| x * scale).collect())
        };
        (scalar(&value), named.into_iter().map(gradient).collect())
    }
}

/// Compares the loss of a case and all gradients that it records.
fn compare<S: BuildLoss>(case: &Case, verdict: &mut Verdict, config: &S) {
    let inputs = Inputs::new(case);
    let (value, gradients) = inputs.run(&init(config, &inputs.labels), 1.0);
    verdict.compare("loss", &case.numbers("outputs/loss"), &value, EXACT);
    for (name, gradient) in gradients {
        verdict.compare(name, &case.numbers(&format!("outputs/{name}")), &gradient, EXACT);
    }
}

/// As [`compare`], except where a query has no positive, which makes the reference's mean NaN. There the expected loss
/// is the mean over the other queries. The reference's gradients, of a sum divided by all queries, are scaled to match.
fn compare_defined<S: BuildLoss>(case: &Case, verdict: &mut Verdict, config: &S) {
    let losses = match case.find("outputs/one_minus_ap_per_query") {
        Some(_) => case.numbers("outputs/one_minus_ap_per_query"),
        None => case.numbers("outputs/ap_per_query_roadmap_impl").into_iter().map(|ap| 1.0 - ap).collect(),
    };
    let defined: Vec<f64> = losses.iter().copied().filter(|loss| !loss.is_nan()).collect();
    let inputs = Inputs::new(case);
    let loss = init(config, &inputs.labels);
    let (value, gradients) = inputs.run(&loss, defined.len() as f64 / losses.len() as f64);

    let mean = defined.iter().sum::<f64>() / defined.len() as f64;
    verdict.compare("mean over the defined queries", &[mean], &value, EXACT);
    if defined.len() == losses.len() {
        verdict.compare("loss", &case.numbers("outputs/loss"), &value, EXACT);
    }
    for (name, gradient) in gradients {
        verdict.compare(name, &case.numbers(&format!("outputs/{name}")), &gradient, EXACT);
    }
    for (i, expected) in losses.into_iter().enumerate() {
        let (row, row_labels) = (inputs.embeddings.clone().slice(i..i + 1), inputs.labels.select(&[i]));
        let items = Reference { own: inputs.reference.is_none().then_some(i), ..inputs.batch().items() };
        let one = loss.forward(&Batch::new(row, &row_labels).with_reference(items));
        let expected = if expected.is_nan() { 0.0 } else { expected };
        // The loss of a perfect query is 0 up to the rounding of 1, so 1 − loss is compared.
        verdict.compare("1 − loss of a query", &[1.0 - expected], &[1.0 - scalar(&one)[0]], EXACT);
    }
}

/// `smooth_ap.json`.
pub(crate) fn smooth_ap(case: &Case, verdict: &mut Verdict) {
    compare_defined(case, verdict, &SmoothApConfig { temperature: number(case, "tau") });
}

/// `sup_ap.json`.
pub(crate) fn sup_ap(case: &Case, verdict: &mut Verdict) {
    compare_defined(case, verdict, &sup_ap_config(case));
}

fn sup_ap_config(case: &Case) -> SupApConfig {
    SupApConfig { step: upper_step(case) }
}

fn upper_step(case: &Case) -> UpperStep {
    let optional = |name: &str| case.find(&format!("params/{name}")).and_then(|value| value.as_f64());
    UpperStep {
        temperature: number(case, "tau"),
        slope: optional("rho"),
        threshold: optional("delta"),
        offset: optional("offset"),
        start: optional("start").unwrap_or(0.5),
        start_at_zero: false,
    }
}

/// The slope of a loss as each row moves along its recorded gradient.
struct Slopes {
    /// From the record: the length of its gradient.
    recorded: Vec<f64>,
    /// From our gradient.
    ours: Vec<f64>,
    /// From central differences of our value.
    differences: Vec<f64>,
}

impl Slopes {
    fn new(case: &Case, inputs: &Inputs, loss: &impl Objective, gradient: &[f64]) -> Self {
        let places = case.rows("inputs/embeddings");
        let (mut recorded, mut ours, mut differences) = (Vec::new(), Vec::new(), Vec::new());
        for (i, row) in case.rows("outputs/grad_embeddings").into_iter().enumerate() {
            let length = dot(&row, &row).sqrt();
            let direction: Vec<f64> = row.iter().map(|x| x / length.max(f64::MIN_POSITIVE)).collect();
            let at = |shift: f64| {
                let mut moved = places.clone();
                moved[i].iter_mut().zip(&direction).for_each(|(x, direction)| *x += shift * direction);
                scalar(&loss.forward(&Batch::new(matrix(&moved), &inputs.labels)))[0]
            };
            recorded.push(length);
            ours.push(dot(&gradient[i * row.len()..(i + 1) * row.len()], &direction));
            differences.push((at(STEP) - at(-STEP)) / (2.0 * STEP));
        }
        Self { recorded, ours, differences }
    }
}

/// `suprank_ndcg.json`. The reference sums the ideal in f32: a perfect query has an NDCG of 1 + 2 · 10⁻⁸ there.
pub(crate) fn suprank_ndcg(case: &Case, verdict: &mut Verdict) {
    if is_smooth(case) {
        compare_queries(case, verdict, &SmoothNdcgConfig { temperature: number(case, "tau") }, ROUNDED);
    } else {
        compare_queries(case, verdict, &SupNdcgConfig { step: upper_step(case) }, ROUNDED);
    }
}

/// `suprank_recall.json`.
pub(crate) fn suprank_recall(case: &Case, verdict: &mut Verdict) {
    let cutoffs = case.numbers("params/at_k").into_iter().map(|cutoff| cutoff as usize).collect();
    let cutoff_temperature = number(case, "temp");
    if is_smooth(case) {
        let temperature = number(case, "tau");
        let config = SmoothRecallConfig { cutoffs, cutoff_temperature, temperature };
        compare_queries(case, verdict, &config, EXACT);
    } else {
        let config = SupRecallConfig { cutoffs, cutoff_temperature, step: upper_step(case) };
        compare_queries(case, verdict, &config, EXACT);
    }
}

/// `suprank_h_ap.json`. The reference rounds relevances to f32.
pub(crate) fn suprank_h_ap(case: &Case, verdict: &mut Verdict) {
    let relevance = Relevance::HierarchicalAp { alpha: number(case, "alpha") };
    if is_smooth(case) {
        let config = SmoothHapConfig { relevance, temperature: number(case, "tau") };
        return compare_queries(case, verdict, &config, ROUNDED);
    }
    let config = HapSurrogateConfig {
        relevance,
        upper_step: upper_step(case),
        lower_step: LowerStep {
            slope: number(case, "beta"),
            start: number(case, "gamma"),
            leak: number(case, "leak"),
            start_at_zero: false,
        },
        smooth_rank: case.get("params/with_hrank") == true,
        ..Default::default()
    };
    compare_queries(case, verdict, &config, ROUNDED);
}

fn is_smooth(case: &Case) -> bool {
    case.get("params/rank") == "smooth"
}

/// Compares the loss, that of each query, and the gradient.
fn compare_queries<S: BuildLoss>(case: &Case, verdict: &mut Verdict, config: &S, tolerance: f64) {
    let inputs = Inputs::new(case);
    let loss = init(config, &inputs.labels);
    let (value, gradients) = inputs.run(&loss, 1.0);
    verdict.compare("loss", &case.numbers("outputs/loss"), &value, tolerance);
    for (name, gradient) in gradients {
        verdict.compare(name, &case.numbers(&format!("outputs/{name}")), &gradient, tolerance);
    }
    let each = (0..inputs.labels.len()).map(|i| {
        let (row, row_labels) = (inputs.embeddings.clone().slice(i..i + 1), inputs.labels.select(&[i]));
        let items = Reference { own: Some(i), ..inputs.batch().items() };
        scalar(&loss.forward(&Batch::new(row, &row_labels).with_reference(items)))[0]
    });
    let each: Vec<f64> = each.collect();
    verdict.compare("the loss of each query", &case.numbers("outputs/loss_per_query"), &each, tolerance);
}

/// `fast_ap.json`. The published code writes its gradient by hand. The part of it that is orthogonal to each embedding
/// is the true one times half the number of counted queries. The part along the embedding is wrong for a function of
/// unit vectors.
pub(crate) fn fast_ap(case: &Case, verdict: &mut Verdict) {
    let bins = number(case, "num_bins") as usize;
    let config = FastApConfig { bins, normalise_embeddings: true };
    if case.get("params/impl").as_str().unwrap().starts_with("PML") {
        return compare(case, verdict, &config);
    }
    let inputs = Inputs::new(case);
    let classes = inputs.labels.column(inputs.labels.levels());
    let counted = classes.iter().filter(|&class| classes.iter().filter(|other| other == &class).count() > 1);
    let loss = init(&config, &inputs.labels);
    let (_, gradients) = inputs.run(&loss, 1.0);
    let slopes = Slopes::new(case, &inputs, &loss, &gradients[0].1);
    verdict.judge("grad_embeddings", &slopes.recorded, &slopes.ours, SUMMED_SINGLE, &slopes.differences);
    let (value, gradients) = inputs.run(&loss, counted.count() as f64 / 2.0);
    // The mean AP has the precision of f32; the loss of a nearly perfect batch is a small difference.
    let ap = |loss: f64| 1.0 - loss;
    verdict.compare("1 − loss", &[ap(case.numbers("outputs/loss")[0])], &[ap(value[0])], SINGLE);
    let expected = across(&case.rows("outputs/grad_embeddings"), &case.rows("inputs/embeddings"));
    verdict.compare("the tangent of grad_embeddings", &expected, &gradients[0].1, SUMMED_SINGLE);
}

/// The part of each row of a gradient that is orthogonal to the embedding.
fn across(gradient: &[Vec<f64>], embeddings: &[Vec<f64>]) -> Vec<f64> {
    let row = |(g, x): (&Vec<f64>, &Vec<f64>)| {
        let along = dot(g, x) / dot(x, x);
        g.iter().zip(x).map(|(g, x)| g - along * x).collect::<Vec<_>>()
    };
    gradient.iter().zip(embeddings).flat_map(row).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `softbin_ap.json`. A query's score with itself lies at the end of the range, where rounding decides in the
/// reference whether it has a gradient; here it has none, so gradients agree across each embedding, and central
/// differences show that ours is right along it.
pub(crate) fn softbin_ap(case: &Case, verdict: &mut Verdict) {
    let ties = match case.name() {
        "naver_TAP" => BinTies::Mean,
        "naver_TAP_simplified" => BinTies::Middle,
        _ => BinTies::End,
    };
    let config = SoftbinApConfig { bins: number(case, "nq") as usize, lowest: number(case, "min"), ties };
    let inputs = Inputs::new(case);
    let loss = init(&config, &inputs.labels);
    let (value, gradients) = inputs.run(&loss, 1.0);
    verdict.compare("loss", &case.numbers("outputs/loss"), &value, EXACT);
    let slopes = Slopes::new(case, &inputs, &loss, &gradients[0].1);
    if ties == BinTies::Mean {
        return verdict.judge("grad_embeddings", &slopes.recorded, &slopes.ours, EXACT, &slopes.differences);
    }
    verdict.compare_slopes("grad_embeddings", &slopes.differences, &slopes.ours);
    let rows = case.rows("inputs/embeddings");
    let got: Vec<Vec<f64>> = gradients[0].1.chunks(rows[0].len()).map(<[f64]>::to_vec).collect();
    let expected = across(&case.rows("outputs/grad_embeddings"), &rows);
    verdict.compare("the tangent of grad_embeddings", &expected, &across(&got, &rows), EXACT);
}

/// `blackbox_ap.json`. The reference divides by |P| + 10⁻⁵, ours by |P|.
pub(crate) fn blackbox_ap(case: &Case, verdict: &mut Verdict) {
    let config = BlackboxApConfig {
        lambda: number(case, "lambda_val"),
        margin: number(case, "margin"),
        random_margin: true,
    };
    let inputs = Inputs::new(case);
    let loss = init(&config, &inputs.labels);
    let noise = case.rows("inputs/noise");
    let gradients = loss.forward_with_noise(&inputs.batch(), &noise.concat()).backward();
    let gradient = values(inputs.embeddings.grad(&gradients).unwrap());
    verdict.compare("grad_embeddings", &case.numbers("outputs/grad_embeddings"), &gradient, SINGLE);

    let classes = inputs.labels.column(inputs.labels.levels());
    let shortened = (0..classes.len()).map(|i| {
        let items = Reference { own: Some(i), ..inputs.batch().items() };
        let (row, row_labels) = (inputs.embeddings.clone().slice(i..i + 1), inputs.labels.select(&[i]));
        let batch = Batch::new(row, &row_labels).with_reference(items);
        let ap = 1.0 - scalar(&loss.forward_with_noise(&batch, &noise[i]))[0];
        let positives = classes.iter().filter(|&&class| class == classes[i]).count() as f64;
        ap * positives / (positives + 1e-5)
    });
    let value = 1.0 - shortened.sum::<f64>() / classes.len() as f64;
    verdict.compare("loss", &case.numbers("outputs/loss"), &[value], 1e-6);
}

/// `calibration.json`.
pub(crate) fn calibration(case: &Case, verdict: &mut Verdict) {
    compare(case, verdict, &calibration_config(case));
}

fn calibration_config(case: &Case) -> CalibrationConfig {
    CalibrationConfig {
        positive: number(case, "pos_margin"),
        negative: number(case, "neg_margin"),
        mean: PairMean::Active,
        normalise_embeddings: true,
    }
}

/// `roadmap_total.json`.
pub(crate) fn roadmap(case: &Case, verdict: &mut Verdict) {
    let (sup_ap, calibration) = (sup_ap_config(case), calibration_config(case));
    let inputs = Inputs::new(case);
    let parts = [
        ("supap", init(&sup_ap, &inputs.labels).forward(&inputs.batch()), ROUNDED),
        ("calibration", init(&calibration, &inputs.labels).forward(&inputs.batch()), EXACT),
    ];
    for (name, value, tolerance) in parts {
        verdict.compare(name, &case.numbers(&format!("outputs/{name}")), &scalar(&value), tolerance);
    }
    let term = |weight: &str, loss| Term { weight: number(case, weight), loss };
    let terms = vec![
        term("weight_supap", LossConfig::SupAp(sup_ap)),
        term("weight_calibration", LossConfig::Calibration(calibration)),
    ];
    let (value, gradients) = inputs.run(&init(&SumConfig { terms }, &inputs.labels), 1.0);
    verdict.compare("loss", &case.numbers("outputs/loss"), &value, ROUNDED);
    verdict.compare("grad_embeddings", &case.numbers("outputs/grad_embeddings"), &gradients[0].1, ROUNDED);
}

/// `xbm_pair_loss.json`.
pub(crate) fn pair(case: &Case, verdict: &mut Verdict) {
    compare(case, verdict, &PairConfig { margin: number(case, "margin") });
}

fn number(case: &Case, name: &str) -> f64 {
    case.get(&format!("params/{name}")).as_f64().unwrap()
}
