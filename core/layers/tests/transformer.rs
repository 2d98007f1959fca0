//! The layers of transformers are those of their formulas, in 64 bits, and their gradients are its derivatives.

use akin_layers::{Attention, LayerNorm, Linear, gelu, gelu_gradient, gelu_in_place};
use proptest::prelude::*;

fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (seed..seed + count).map(|i| ((i * 37 + 11) % 101) as f32 / 50.0 - 1.0).collect()
}

fn wide(numbers: &[f32]) -> Vec<f64> {
    numbers.iter().map(|&number| f64::from(number)).collect()
}

/// A [n, k] · B [k, m], in 64 bits.
fn product(a: &[f64], b: &[f64], [n, k, m]: [usize; 3]) -> Vec<f64> {
    let sum = |i: usize| (0..k).map(|j| a[i / m * k + j] * b[j * m + i % m]).sum();
    (0..n * m).map(sum).collect()
}

fn transposed(a: &[f64], columns: usize) -> Vec<f64> {
    let rows = a.len() / columns;
    (0..a.len()).map(|i| a[i % rows * columns + i / rows]).collect()
}

fn assert_close(name: &str, computed: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(computed.len(), expected.len(), "{name}");
    for (i, (&computed, &expected)) in computed.iter().zip(expected).enumerate() {
        let close = (f64::from(computed) - expected).abs() <= tolerance * (1.0 + expected.abs());
        assert!(close, "{name} {i}: {computed} instead of {expected}");
    }
}

/// Asserts that gradients are the central differences of Σ weight · output, in 64 bits.
fn assert_derivatives(
    output: impl Fn(&[Vec<f64>]) -> Vec<f64>,
    parts: &[&[f32]],
    weight: &[f32],
    gradients: &[&[f32]],
) {
    let parts: Vec<_> = parts.iter().map(|part| wide(part)).collect();
    let value = |parts: &[Vec<f64>]| -> f64 {
        output(parts).iter().zip(weight).map(|(y, &weight)| y * f64::from(weight)).sum()
    };
    for (part, gradient) in gradients.iter().enumerate() {
        let derivative = |i: usize| {
            let at = |step: f64| {
                let mut parts = parts.clone();
                parts[part][i] += step;
                value(&parts)
            };
            (at(1e-5) - at(-1e-5)) / 2e-5
        };
        let expected: Vec<_> = (0..gradient.len()).map(derivative).collect();
        assert_close(&format!("gradient of part {part}"), gradient, &expected, 2e-4);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_direction_of_a_linear_map_is_that_of_the_formula(
        rows in prop_oneof![1..40_usize, 500..600_usize],
        inputs in prop_oneof![1..40_usize, 250..300_usize],
        outputs in prop_oneof![1..70_usize, 250..300_usize],
    ) {
        let layer = Linear { inputs, outputs };
        let (x, weight, bias) = (numbers(rows * inputs, 1), numbers(inputs * outputs, 2), numbers(outputs, 3));
        let gradient = numbers(rows * outputs, 4);
        let mut expected = product(&wide(&x), &wide(&weight), [rows, inputs, outputs]);
        assert_close("output", &layer.forward(&x, &weight, None), &expected, 1e-4);
        expected.iter_mut().enumerate().for_each(|(i, y)| *y += f64::from(bias[i % outputs]));
        assert_close("output with bias", &layer.forward(&x, &weight, Some(&bias)), &expected, 1e-4);
        let mut sum = gradient.clone();
        layer.add_to(&x, &weight, Some(&bias), &mut sum);
        let expected: Vec<_> = expected.iter().zip(&gradient).map(|(y, &x)| y + f64::from(x)).collect();
        assert_close("sum", &sum, &expected, 1e-4);
        let by_x = product(&wide(&gradient), &transposed(&wide(&weight), outputs), [rows, outputs, inputs]);
        assert_close("gradient of the input", &layer.input_gradient(&gradient, &weight), &by_x, 1e-4);
        let by_weight = product(&transposed(&wide(&x), inputs), &wide(&gradient), [inputs, rows, outputs]);
        assert_close("gradient of the weights", &layer.weight_gradient(&x, &gradient), &by_weight, 1e-4);
        let by_bias = product(&vec![1.0; rows], &wide(&gradient), [1, rows, outputs]);
        assert_close("gradient of the bias", &layer.bias_gradient(&gradient), &by_bias, 1e-4);
    }
}

/// Φ(x), by the series of the error function.
fn distribution(x: f64) -> f64 {
    let mut term = x;
    let mut sum = x;
    for n in 1..200 {
        term *= x * x / f64::from(2 * n + 1);
        sum += term;
    }
    0.5 + sum * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

#[test]
fn gelu_and_its_gradient_are_those_of_the_formula() {
    let x: Vec<_> = (-6000..6000).map(|i| i as f32 / 1e3).collect();
    let expected: Vec<_> = x.iter().map(|&x| f64::from(x) * distribution(f64::from(x))).collect();
    assert_close("GELU", &gelu(&x), &expected, 3e-7);
    let mut in_place = x.clone();
    gelu_in_place(&mut in_place);
    assert_eq!(in_place, gelu(&x));
    let mut gradient = vec![2.0; x.len()];
    gelu_gradient(&x, &mut gradient);
    let density = |x: f64| (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let slope = |&x: &f32| 2.0 * (distribution(f64::from(x)) + f64::from(x) * density(f64::from(x)));
    assert_close("gradient", &gradient, &x.iter().map(slope).collect::<Vec<_>>(), 1e-6);
}

#[test]
fn gelu_of_what_is_not_finite_is_that_of_the_products() {
    let x = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    let y = gelu(&x);
    assert!(y[0] == f32::INFINITY && y[1].is_nan() && y[2].is_nan(), "{y:?}");
    let mut gradient = [1.0; 3];
    gelu_gradient(&x, &mut gradient);
    assert!(gradient.iter().all(|gradient| gradient.is_nan()), "{gradient:?}");
}

#[test]
fn layer_normalisation_and_its_gradients_are_those_of_the_formula() {
    for (rows, features) in [(1, 1), (3, 7), (130, 5), (2, 70)] {
        let normalise = |parts: &[Vec<f64>]| -> Vec<f64> {
            let rows = parts[0].chunks_exact(features).flat_map(|row| {
                let mean = row.iter().sum::<f64>() / features as f64;
                let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / features as f64;
                let weights = parts[1].iter().zip(&parts[2]);
                row.iter()
                    .zip(weights)
                    .map(move |(x, (gamma, beta))| (x - mean) / (variance + 0.1).sqrt() * gamma + beta)
            });
            rows.collect()
        };
        let (x, gamma, beta) = (numbers(rows * features, 1), numbers(features, 2), numbers(features, 3));
        let layer = LayerNorm { gamma: &gamma, beta: &beta, epsilon: 0.1 };
        let parts: [&[f32]; 3] = [&x, &gamma, &beta];
        assert_close("output", &layer.forward(&x), &normalise(&parts.map(wide)), 1e-5);
        let weight = numbers(x.len(), 4);
        let mut by_x = weight.clone();
        let [by_gamma, by_beta] = layer.gradient(&x, &mut by_x);
        assert_derivatives(normalise, &parts, &weight, &[&by_x, &by_gamma, &by_beta]);
    }
}

/// The output of attention in 64 bits.
fn attention(shape: Attention, projections: &[f64]) -> Vec<f64> {
    let Attention { tokens, heads, width } = shape;
    let features = heads * width;
    let mut output = vec![0.0; projections.len() / 3];
    for (picture, output) in
        projections.chunks_exact(3 * tokens * features).zip(output.chunks_exact_mut(tokens * features))
    {
        for head in 0..heads {
            let at = |token: usize, part: usize, d: usize| {
                picture[(token * 3 + part) * features + head * width + d]
            };
            for query in 0..tokens {
                let score = |key| {
                    (0..width).map(|d| at(query, 0, d) * at(key, 1, d)).sum::<f64>() / (width as f64).sqrt()
                };
                let weights: Vec<_> = (0..tokens).map(|key| score(key).exp()).collect();
                let sum: f64 = weights.iter().sum();
                for d in 0..width {
                    let mean =
                        weights.iter().enumerate().map(|(key, weight)| weight * at(key, 2, d)).sum::<f64>()
                            / sum;
                    output[query * features + head * width + d] = mean;
                }
            }
        }
    }
    output
}

#[test]
fn attention_and_its_gradient_are_those_of_the_formula() {
    for (pictures, tokens, heads, width) in [(1, 1, 1, 1), (2, 5, 3, 2), (1, 37, 2, 4)] {
        let shape = Attention { tokens, heads, width };
        let projections = numbers(pictures * tokens * 3 * heads * width, 1);
        assert_close("output", &shape.forward(&projections), &attention(shape, &wide(&projections)), 1e-5);
        let weight = numbers(projections.len() / 3, 4);
        let gradient = shape.gradient(&projections, &weight);
        assert_derivatives(|parts| attention(shape, &parts[0]), &[&projections], &weight, &[&gradient]);
    }
}

#[test]
fn attention_of_more_tokens_than_a_block_is_that_of_the_formula() {
    let shape = Attention { tokens: 300, heads: 2, width: 33 };
    let projections: Vec<_> = numbers(2 * 300 * 3 * 66, 1).iter().map(|x| 2.0 * x).collect();
    assert_close("output", &shape.forward(&projections), &attention(shape, &wide(&projections)), 1e-5);
    let weight = numbers(projections.len() / 3, 4);
    let gradient = shape.gradient(&projections, &weight);
    let projections = wide(&projections);
    let value = |projections: &[f64]| -> f64 {
        attention(shape, projections).iter().zip(&weight).map(|(y, &weight)| y * f64::from(weight)).sum()
    };
    // A query, a key and a value behind the first block, in the second picture.
    for i in [300 * 198 + 198 * 250 + 40, 300 * 198 + 198 * 140 + 66 + 3, 300 * 198 + 198 * 299 + 132 + 65] {
        let at = |step: f64| {
            let mut projections = projections.clone();
            projections[i] += step;
            value(&projections)
        };
        let expected = (at(1e-5) - at(-1e-5)) / 2e-5;
        assert_close(&format!("gradient {i}"), &gradient[i..=i], &[expected], 2e-4);
    }
}

#[cfg(feature = "parallel")]
#[test]
fn every_number_of_threads_gives_the_same_bits() {
    let shape = Attention { tokens: 150, heads: 2, width: 16 };
    let linear = Linear { inputs: 96, outputs: 40 };
    let projections = numbers(3 * 150 * 96, 1);
    let (weight, ones) = (numbers(96 * 40, 2), numbers(3 * 150 * 32, 3));
    let norm = LayerNorm { gamma: &numbers(96, 5), beta: &numbers(96, 6), epsilon: 1e-6 };
    let results = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let output = linear.forward(&projections, &weight, None);
            let mut by_x = projections.clone();
            let [by_gamma, by_beta] = norm.gradient(&projections, &mut by_x);
            [
                shape.forward(&projections),
                shape.gradient(&projections, &ones),
                linear.input_gradient(&output, &weight),
                linear.weight_gradient(&projections, &output),
                linear.bias_gradient(&output),
                gelu(&output),
                output,
                norm.forward(&projections),
                by_x,
                by_gamma,
                by_beta,
            ]
        })
    };
    let alone = results(1);
    for threads in [2, 3, 16] {
        assert_eq!(results(threads), alone, "{threads} threads");
    }
}
