//! Runs an ONNX file on numbers from a file, writes what it computes, and prints seconds and images per second. For
//! `tests/peers/onnx_engines.py`.
//!
//! ```sh
//! cargo run --release -p akin-onnx --example run -- model.onnx images.f32 BATCH outputs.f32 SECONDS
//! ```

use std::path::Path;
use std::time::{Duration, Instant};
use std::{env, fs};

use akin_onnx::{Choice, Network, OnnxFile};
use anyhow::{Context, Result};

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [model, images, batch, outputs, seconds] = arguments.as_slice() else {
        anyhow::bail!("usage: run MODEL IMAGES BATCH OUTPUTS SECONDS");
    };
    let (batch, seconds): (usize, f64) = (batch.parse()?, seconds.parse()?);
    let images: Vec<f32> =
        fs::read(images)?.as_chunks().0.iter().map(|&four| f32::from_le_bytes(four)).collect();
    let side = (images.len() / batch / 3).isqrt();
    let start = Instant::now();
    let network = Network::open(OnnxFile::read(Path::new(model))?, &Choice::default(), Some(side as u32))?;
    let opened = start.elapsed();
    let first = network.run(&images, batch, side)?;
    let bytes: Vec<u8> = first.values.iter().flat_map(|value| value.to_le_bytes()).collect();
    fs::write(outputs, bytes).context(outputs.clone())?;
    let mut fastest = Duration::MAX;
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < seconds {
        let start = Instant::now();
        network.run(&images, batch, side)?;
        fastest = fastest.min(start.elapsed());
    }
    println!("{:.3} {:.3}", opened.as_secs_f64(), batch as f64 / fastest.as_secs_f64());
    Ok(())
}
