//! Losses that learn codes.

use akin_core::geometry::Geometry;
use akin_core::losses::{
    Batch, BuildLoss, CsqConfig, DcdhConfig, DcwhConfig, DpshConfig, DtshConfig, Hpdh, HpdhConfig,
    LossConfig, LossContext, Objective, Reference,
};
use akin_core::random::{normal, stream};
use akin_core::taxonomy::Labels;
use burn::tensor::{DType, Device, Tensor, TensorData};

use crate::support::{distance, dot, sigmoid};

/// K.
const BITS: usize = 6;

type Rows = Vec<Vec<f64>>;

/// Queries and the items that they are compared with; `own` is the row of query 0 among the items.
struct Sets {
    queries: Rows,
    query_classes: Vec<u32>,
    items: Rows,
    item_classes: Vec<u32>,
    own: usize,
}

impl Sets {
    /// A batch that is compared with itself, and rows 2 to 6 of a set against the whole of it.
    fn both() -> [Self; 2] {
        let (items, classes) = (outputs(1, 9), vec![0, 1, 0, 0, 1, 2, 1, 2, 0]);
        let part = |rows: std::ops::Range<usize>| Self {
            queries: items[rows.clone()].to_vec(),
            query_classes: classes[rows.clone()].to_vec(),
            items: items.clone(),
            item_classes: classes.clone(),
            own: rows.start,
        };
        [part(0..9), part(2..7)]
    }

    fn is_query(&self, query: usize, item: usize) -> bool {
        item == self.own + query
    }

    fn same_class(&self, query: usize, item: usize) -> bool {
        self.query_classes[query] == self.item_classes[item]
    }

    /// Θ = ½ r_i·r_j.
    fn theta(&self, query: usize, item: usize) -> f64 {
        dot(&self.queries[query], &self.items[item]) / 2.0
    }

    fn value(&self, config: &impl BuildLoss) -> f64 {
        let (labels, item_labels) = (fine(&self.query_classes), fine(&self.item_classes));
        let reference =
            Reference { embeddings: tensor(&self.items), labels: &item_labels, own: Some(self.own) };
        let batch = Batch::new(tensor(&self.queries), &labels).with_reference(reference);
        number(init(config, &item_labels).forward(&batch))
    }
}

/// Outputs of a head, some of them outside the cube.
fn outputs(seed: u64, count: usize) -> Rows {
    let values = normal(&mut stream(seed, "test", &[]), count * BITS, 1.0);
    values.chunks(BITS).map(|row| row.iter().map(|&x| f64::from(x)).collect()).collect()
}

fn tensor(rows: &Rows) -> Tensor<2> {
    let data = TensorData::new(rows.concat(), [rows.len(), BITS]);
    Tensor::from_data(data, (&Device::flex(), DType::F64))
}

fn rows(value: Tensor<2>) -> Rows {
    let values = value.into_data().convert::<f64>().try_to_vec::<f64>().unwrap();
    values.chunks(BITS).map(<[f64]>::to_vec).collect()
}

fn number(value: Tensor<1>) -> f64 {
    value.into_data().try_to_vec::<f64>().unwrap()[0]
}

fn init<C: BuildLoss>(config: &C, labels: &Labels) -> C::Loss {
    let classes = labels.classes();
    config.init(&LossContext::new(&classes, BITS, &Geometry::Binary, 0, &Device::flex())).unwrap()
}

fn fine(classes: &[u32]) -> Labels {
    Labels::new(1, classes.to_vec()).unwrap()
}

/// Σ_i ‖b_i − r_i‖² with b_i = sign r_i.
fn quantisation(rows: &Rows) -> f64 {
    let mut sum = 0.0;
    for r in rows {
        let b: Vec<f64> = r.iter().map(|x| x.signum()).collect();
        sum += distance(&b, r).powi(2);
    }
    sum
}

#[track_caller]
fn assert_close(value: f64, paper: f64) {
    assert!(
        (value - paper).abs() < 1e-9 * (1.0 + paper.abs()),
        "the loss is {value}, its equation gives {paper}"
    );
}

/// DPSH, eq. 4: minus the log likelihood of the labels of all pairs, plus η times the quantisation error. The loss is
/// this sum over the number of pairs.
#[test]
fn dpsh() {
    let eta = 3.0;
    for sets in Sets::both() {
        let (mut sum, mut pairs) = (0.0, 0.0);
        for i in 0..sets.queries.len() {
            for j in 0..sets.items.len() {
                if sets.is_query(i, j) {
                    continue;
                }
                let (s, theta) = (f64::from(u8::from(sets.same_class(i, j))), sets.theta(i, j));
                sum -= s * theta - (1.0 + theta.exp()).ln();
                pairs += 1.0;
            }
        }
        sum += eta * quantisation(&sets.queries);
        assert_close(sets.value(&DpshConfig { quantisation_weight: eta }) * pairs, sum);
    }
}

/// DTSH, eq. 6: minus the log likelihood of all triplets, plus λ times the quantisation error. The loss is this sum
/// over the number of triplets.
#[test]
fn dtsh() {
    let (alpha, lambda) = (BITS as f64 / 2.0, 3.0);
    for sets in Sets::both() {
        let (mut sum, mut triplets) = (0.0, 0.0);
        for q in 0..sets.queries.len() {
            for p in 0..sets.items.len() {
                for n in 0..sets.items.len() {
                    if sets.is_query(q, p) || !sets.same_class(q, p) || sets.same_class(q, n) {
                        continue;
                    }
                    let lead = sets.theta(q, p) - sets.theta(q, n) - alpha;
                    sum -= lead - (1.0 + lead.exp()).ln();
                    triplets += 1.0;
                }
            }
        }
        sum += lambda * quantisation(&sets.queries);
        let config = DtshConfig { margin: None, quantisation_weight: lambda };
        assert_close(sets.value(&config) * triplets, sum);
    }
}

/// CSQ: the cross-entropy of each bit to that of the class's centre, plus λ times log cosh(|2h − 1| − 1), with h in
/// (0, 1). Both are means over items and bits.
#[test]
fn csq() {
    let (outputs, labels) = (outputs(3, 7), fine(&[0, 1, 2, 0, 1, 2, 2]));
    let lambda = 0.3;
    let mut loss = init(&CsqConfig { quantisation_weight: lambda, ..Default::default() }, &labels);
    loss.centres = loss.centres.clone().map(|centres| centres.cast(DType::F64));
    let centres = rows(loss.centres.val());
    let mut sum = 0.0;
    for (i, outputs) in outputs.iter().enumerate() {
        for (r, c) in outputs.iter().zip(&centres[labels.row(i)[0] as usize]) {
            let (h, target) = (sigmoid(2.0 * r), (1.0 + c) / 2.0);
            sum -= target * h.ln() + (1.0 - target) * (1.0 - h).ln();
            sum += lambda * ((2.0 * h - 1.0).abs() - 1.0).cosh().ln();
        }
    }
    let value = number(loss.forward(&Batch::new(tensor(&outputs), &labels)));
    assert_close(value, sum / (outputs.len() * BITS) as f64);
}

/// DCWH in the form of its public code: Gaussians around centres, a cube whose lower side weighs more by the number of
/// items, and the distance of each output from its sign.
#[test]
fn dcwh() {
    let classes = [0, 1, 2, 0, 1, 2, 2, 0];
    let (outputs, labels) = (outputs(3, classes.len()), fine(&classes));
    let (sigma, floor, eta1, rho, eta2): (f64, _, _, _, _) = (1.5, 1e-3, 2.0, 0.6, 0.3);
    let config = DcwhConfig {
        deviation: sigma,
        floor,
        range_weight: eta1,
        range: rho,
        quantisation_weight: eta2,
        ..Default::default()
    };
    let mut loss = init(&config, &labels);
    loss.centres = loss.centres.clone().map(|centres| centres.cast(DType::F64));
    let centres = rows(loss.centres.val());
    let count = outputs.len() as f64;
    let mut sum = 0.0;
    for (r, &class) in outputs.iter().zip(&classes) {
        let density = |mu: &Vec<f64>| (-distance(r, mu).powi(2) / (2.0 * sigma.powi(2))).exp();
        let all: f64 = centres.iter().map(density).sum();
        sum -= (density(&centres[class as usize]) / (all + floor) + floor).ln();
        for &output in r {
            sum += eta1 * ((-rho - output).max(0.0) + (output - rho).max(0.0) / count);
            sum += eta2 * (output.signum() - output).powi(2) / count;
        }
    }
    let value = number(loss.forward(&Batch::new(tensor(&outputs), &labels)));
    assert_close(value, sum / count);
}

/// DCDH: Gaussians around learned centres, the likelihood that any two centres differ, and the distance of each output
/// from the bits of the majority of its class.
#[test]
fn dcdh() {
    let classes = [0, 1, 2, 0, 1, 2, 2, 0];
    let (outputs, labels) = (outputs(3, classes.len()), fine(&classes));
    let (sigma, lambda, eta): (f64, _, _) = (1.5, 0.4, 0.3);
    let mut loss =
        init(&DcdhConfig { deviation: sigma, centre_weight: lambda, quantisation_weight: eta }, &labels);
    loss.centres = loss.centres.clone().map(|centres| centres.cast(DType::F64));
    let centres = rows(loss.centres.val());
    let mut items = 0.0;
    for (r, &class) in outputs.iter().zip(&classes) {
        let density = |mu: &Vec<f64>| (-distance(r, mu).powi(2) / (2.0 * sigma.powi(2))).exp();
        let all: f64 = centres.iter().map(density).sum();
        items -= (density(&centres[class as usize]) / all).ln();
        for (bit, output) in r.iter().enumerate() {
            let of_class = outputs.iter().zip(&classes).filter(|(_, other)| **other == class);
            let signs: Vec<f64> = of_class.map(|(r, _)| r[bit].signum()).collect();
            let majority = signs.iter().sum::<f64>() / signs.len() as f64;
            items += eta * ((majority + eta * output).signum() - output).powi(2);
        }
    }
    let (mut pairs, mut count) = (0.0, 0.0);
    for (i, mu) in centres.iter().enumerate() {
        for (j, other) in centres.iter().enumerate() {
            if i != j {
                let cosine = dot(mu, other) / (dot(mu, mu) * dot(other, other)).sqrt();
                pairs += (1.0 + (BITS as f64 / 2.0 * cosine).exp()).ln();
                count += 1.0;
            }
        }
    }
    let value = number(loss.forward(&Batch::new(tensor(&outputs), &labels)));
    assert_close(value, items / outputs.len() as f64 + lambda * pairs / count);
}

/// Six items of four fine classes in two coarse ones.
fn two_levels() -> (Rows, Labels) {
    (outputs(4, 6), Labels::new(2, vec![0, 0, 0, 1, 1, 2, 1, 3, 0, 0, 1, 3]).unwrap())
}

/// The settings of the paper's text.
fn hpdh_text() -> HpdhConfig {
    let LossConfig::Hpdh(config) = LossConfig::named("hpdh_text").unwrap() else {
        panic!("hpdh_text is a preset of hpdh");
    };
    config
}

/// HPDH with its centres in f64, coarse → fine.
fn hpdh(config: &HpdhConfig, labels: &Labels) -> (Hpdh, Vec<Rows>) {
    let mut loss = init(config, labels);
    loss.centres = loss.centres.iter().map(|centres| centres.clone().map(|x| x.cast(DType::F64))).collect();
    let centres = loss.centres.iter().map(|centres| rows(centres.val())).collect();
    (loss, centres)
}

/// HPDH, eq. 2 and 5, summed over the N items; `regularisers` multiplies the terms of η₁ and η₂.
fn paper_hpdh(outputs: &Rows, labels: &Labels, centres: &[Rows], regularisers: f64) -> f64 {
    let (sigma, eta1, eta2, alpha): ([f64; 2], _, _, _) = ([2.0, 1.0], 10.0, 0.1, 1.1);
    let mut sum = 0.0;
    for (i, r) in outputs.iter().enumerate() {
        for k in 0..2 {
            let power = |mu: &Vec<f64>| (-distance(r, mu) / (2.0 * sigma[k].powi(2))).exp();
            let all: f64 = centres[k].iter().map(power).sum();
            sum -= (power(&centres[k][labels.row(i)[k] as usize]) / all).ln();
        }
        for &bit in r {
            sum += regularisers * eta1 * ((-alpha - bit).max(0.0) + (bit - alpha).max(0.0));
        }
    }
    sum + regularisers * eta2 * quantisation(outputs)
}

#[test]
fn hpdh_is_eq_5_over_the_number_of_items() {
    let (outputs, labels) = two_levels();
    for (mean_over_bits, regularisers) in [(false, 1.0), (true, 1.0 / BITS as f64)] {
        let (loss, centres) = hpdh(&HpdhConfig { mean_over_bits, ..hpdh_text() }, &labels);
        let value = number(loss.forward(&Batch::new(tensor(&outputs), &labels)));
        assert_close(value * outputs.len() as f64, paper_hpdh(&outputs, &labels, &centres, regularisers));
    }
}

/// HPDH, Algorithm 1: fine centres by eq. 3, then coarse ones by eq. 4, then the loss; also in the first epoch.
#[test]
fn hpdh_computes_its_centres_before_its_first_loss() {
    let (outputs, labels) = two_levels();
    let (mut loss, _) = hpdh(&hpdh_text(), &labels);
    assert!(loss.needs_training_set(0));
    loss.before_epoch(tensor(&outputs), &labels);
    // The mean of the items of each fine class, and of the fine centres of each coarse class.
    let mean = |members: Vec<&Vec<f64>>| -> Vec<f64> {
        (0..BITS).map(|k| members.iter().map(|r| r[k]).sum::<f64>() / members.len() as f64).collect()
    };
    let items = |class: u32| (0..6).filter(move |&i| [0, 1, 2, 3, 0, 3][i] == class);
    let fine: Rows = (0..4).map(|class| mean(items(class).map(|i| &outputs[i]).collect())).collect();
    let coarse: Rows = vec![mean(vec![&fine[0], &fine[1]]), mean(vec![&fine[2], &fine[3]])];
    for (centres, paper) in loss.centres.iter().zip([&coarse, &fine]) {
        for (row, paper) in rows(centres.val()).iter().zip(paper) {
            assert!(distance(row, paper) < 1e-9, "{row:?} is not {paper:?}");
        }
    }
    let value = number(loss.forward(&Batch::new(tensor(&outputs), &labels)));
    assert_close(value * 6.0, paper_hpdh(&outputs, &labels, &[coarse, fine], 1.0));
}
