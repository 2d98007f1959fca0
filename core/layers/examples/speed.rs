//! Multiply-adds a second of some layers of known networks, in each direction: `cargo run --release --example speed`.

use std::time::Instant;

use akin_layers::{Convolution, Epilogue, Linear};

fn main() {
    println!(
        "{:<44} {:>8} {:>8} {:>8}  billion multiply-adds a second",
        "layer", "output", "input", "weights"
    );
    for (name, side, channels, outputs, size, stride, padding, batch) in [
        ("SqueezeNet stem 3→64, 3×3/2, 128", 128, 3, 64, 3, 2, 0, 16),
        ("SqueezeNet squeeze 128→16, 1×1, 31", 31, 128, 16, 1, 1, 0, 16),
        ("SqueezeNet expand 16→64, 1×1, 31", 31, 16, 64, 1, 1, 0, 16),
        ("SqueezeNet expand 16→64, 3×3, 31", 31, 16, 64, 3, 1, 1, 16),
        ("SqueezeNet expand 64→256, 3×3, 7", 7, 64, 256, 3, 1, 1, 16),
        ("ResNet stem 3→64, 7×7/2, 224", 224, 3, 64, 7, 2, 3, 16),
        ("ResNet 64→64, 3×3, 56", 56, 64, 64, 3, 1, 1, 16),
        ("ResNet 256→64, 1×1, 56", 56, 256, 64, 1, 1, 0, 16),
        ("ResNet 128→128, 3×3/2, 56", 56, 128, 128, 3, 2, 1, 16),
        ("ResNet 256→1024, 1×1, 14", 14, 256, 1024, 1, 1, 0, 16),
        ("ResNet 1024→256, 1×1, 14", 14, 1024, 256, 1, 1, 0, 16),
        ("ResNet 256→256, 3×3, 14", 14, 256, 256, 3, 1, 1, 16),
        ("ResNet 512→512, 3×3, 7", 7, 512, 512, 3, 1, 1, 16),
        ("ViT patches 3→384, 16×16/16, 224", 224, 3, 384, 16, 16, 0, 16),
    ] {
        let layer = Convolution {
            size: [size; 2],
            stride: [stride; 2],
            padding: [padding; 2],
            ..Convolution::new([channels, side, side], outputs)
        };
        let x: Vec<_> = (0..batch * channels * side * side).map(|i| (i % 13) as f32 - 6.0).collect();
        let weight: Vec<_> = (0..layer.weights()).map(|i| (i % 7) as f32 - 3.0).collect();
        let output = layer.forward(&x, &weight, Epilogue::default());
        let count = (output.len() / outputs * layer.weights()) as f64 / 1e9;
        println!(
            "{name:<44} {:8.1} {:8.1} {:8.1}",
            count / seconds(|| layer.forward(&x, &weight, Epilogue::default())),
            count / seconds(|| layer.input_gradient(&output, &weight)),
            count / seconds(|| layer.weight_gradient(&x, &output)),
        );
    }
    for (name, rows, inputs, outputs) in [
        ("ViT queries, keys and values 384→1152", 3152, 384, 1152),
        ("ViT projection 384→384", 3152, 384, 384),
        ("ViT first of the MLP 384→1536", 3152, 384, 1536),
        ("ViT second of the MLP 1536→384", 3152, 1536, 384),
    ] {
        let layer = Linear { inputs, outputs };
        let x: Vec<_> = (0..rows * inputs).map(|i| (i % 13) as f32 - 6.0).collect();
        let weight: Vec<_> = (0..inputs * outputs).map(|i| (i % 7) as f32 - 3.0).collect();
        let output = layer.forward(&x, &weight, None);
        let count = (rows * inputs * outputs) as f64 / 1e9;
        println!(
            "{name:<44} {:8.1} {:8.1} {:8.1}",
            count / seconds(|| layer.forward(&x, &weight, None)),
            count / seconds(|| layer.input_gradient(&output, &weight)),
            count / seconds(|| layer.weight_gradient(&x, &output)),
        );
    }
}

/// The shortest of some times.
fn seconds(work: impl Fn() -> Vec<f32>) -> f64 {
    let time = || {
        let start = Instant::now();
        std::hint::black_box(work());
        start.elapsed().as_secs_f64()
    };
    (0..7).map(|_| time()).fold(f64::INFINITY, f64::min)
}
