//! Trains 24 free vectors on a toy taxonomy with HAPPIER's ranking loss and prints their H-AP before and after.
//!
//! H-AP starts below 0.5 and ends above 0.99; 1 is the best. Run it with
//!
//! ```text
//! cargo run -p akin-core --example train_a_loss
//! ```

use akin_core::embeddings::Embeddings;
use akin_core::evaluate::{EvaluationConfig, Labelled, evaluate};
use akin_core::losses;
use akin_core::metrics::Metric;
use akin_core::random::{normal, stream};
use akin_core::taxonomy::Labels;
use burn::module::{Module, Param};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Tensor, TensorData};

const ITEMS: usize = 24;
const DIMENSION: usize = 16;
const STEPS: usize = 200;

/// What is trained: one vector for each item, in place of a network.
#[derive(Module, Debug)]
struct Vectors {
    /// [ITEMS, DIMENSION].
    rows: Param<Tensor<2>>,
}

fn main() -> akin_core::Result<()> {
    let [before, after] = train()?;
    println!("H-AP before training: {before:.3}");
    println!("H-AP after {STEPS} steps: {after:.3}");
    Ok(())
}

/// H-AP before and after training.
pub(crate) fn train() -> akin_core::Result<[f64; 2]> {
    // Two departments of two kinds each, two varieties a kind, three items a variety.
    let label_path = |item: u32| [item / 12, item / 6, item / 3];
    let labels = Labels::new(3, (0..ITEMS as u32).flat_map(label_path).collect())?;

    let device = Device::flex().autodiff();
    let values = normal(&mut stream(0, "vectors", &[]), ITEMS * DIMENSION, 1.0);
    let rows = Tensor::from_data(TensorData::new(values, [ITEMS, DIMENSION]), &device);
    let mut vectors = Vectors { rows: Param::from_tensor(rows) };
    let before = h_ap(&vectors, &labels)?;

    let mut optimizer = AdamConfig::new().init();
    for _ in 0..STEPS {
        let loss = losses::happier(&vectors.rows.val(), &labels)?;
        let gradients = GradientsParams::from_module(&mut loss.backward(), &vectors);
        vectors = optimizer.step(0.05, vectors, gradients);
    }
    Ok([before, h_ap(&vectors, &labels)?])
}

/// The mean H-AP of all items, each of which ranks the others by cosine.
fn h_ap(vectors: &Vectors, labels: &Labels) -> akin_core::Result<f64> {
    let values = vectors.rows.val().into_data().try_into_vec().expect("the vectors are f32");
    let embeddings = Embeddings::new(DIMENSION, values)?;
    let levels = ["department", "kind", "variety"].map(String::from);
    let config = EvaluationConfig { metrics: vec![Metric::named("h_ap")], ..Default::default() };
    let report = evaluate(&levels, Labelled { embeddings: &embeddings, labels }, None, &config)?;
    Ok(report.overall.get(Metric::named("h_ap")).expect("every item has relatives"))
}
