//! Batch normalisation is that of the formula, in 64 bits, and its gradients are its derivatives.

use akin_layers::BatchNorm;

const CHANNELS: usize = 3;
const POSITIONS: usize = 37;

fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (seed..seed + count).map(|i| ((i * 37 + 11) % 101) as f32 / 50.0 - 1.0).collect()
}

/// Σ weight · y, in 64 bits, with y the normalised and rectified numbers.
fn weighted_sum(x: &[f64], gamma: &[f64], beta: &[f64], weight: &[f32]) -> f64 {
    let mut sum = 0.0;
    for c in 0..CHANNELS {
        let own: Vec<usize> = (0..x.len()).filter(|i| i / POSITIONS % CHANNELS == c).collect();
        let count = own.len() as f64;
        let mean = own.iter().map(|&i| x[i]).sum::<f64>() / count;
        let variance = own.iter().map(|&i| (x[i] - mean).powi(2)).sum::<f64>() / count;
        for i in own {
            let y = gamma[c] * (x[i] - mean) / (variance + 1e-5).sqrt() + beta[c];
            sum += f64::from(weight[i]) * y.max(0.0);
        }
    }
    sum
}

#[test]
fn gradients_are_central_differences_of_the_formula() {
    let (x, weight) = (numbers(4 * CHANNELS * POSITIONS, 0), numbers(4 * CHANNELS * POSITIONS, 9));
    let (gamma, beta) = ([0.7, -1.3, 2.0], [0.3, 0.1, -0.4]);
    let layer = BatchNorm {
        gamma: &gamma,
        beta: &beta,
        epsilon: 1e-5,
        positions: POSITIONS,
        rectified: true,
        given: None,
    };
    let normalised = layer.forward(&x);
    let value: f64 = normalised.output.iter().zip(&weight).map(|(y, w)| f64::from(y * w)).sum();

    let [x_64, gamma_64, beta_64] = [&x[..], &gamma, &beta]
        .map(|numbers| numbers.iter().map(|&number| f64::from(number)).collect::<Vec<_>>());
    assert!((value - weighted_sum(&x_64, &gamma_64, &beta_64, &weight)).abs() < 1e-3);

    let mut by_x = weight.clone();
    let [by_gamma, by_beta] = layer.gradient(&x, normalised.moments.each_ref().map(Vec::as_slice), &mut by_x);
    let derivative = |part: usize, i: usize| {
        let at = |step: f64| {
            let mut parts = [x_64.clone(), gamma_64.clone(), beta_64.clone()];
            parts[part][i] += step;
            weighted_sum(&parts[0], &parts[1], &parts[2], &weight)
        };
        (at(1e-6) - at(-1e-6)) / 2e-6
    };
    for (part, computed) in [by_x, by_gamma, by_beta].iter().enumerate() {
        for (i, &computed) in computed.iter().enumerate() {
            let expected = derivative(part, i);
            let close = (f64::from(computed) - expected).abs() < 1e-4 * (1.0 + expected.abs());
            assert!(close, "part {part}, number {i}: {computed} instead of {expected}");
        }
    }
}

#[test]
fn a_channel_that_is_constant_has_its_shift_as_output_and_no_gradient() {
    let layer =
        BatchNorm { gamma: &[2.0], beta: &[0.5], epsilon: 1e-5, positions: 4, rectified: false, given: None };
    let x = [3.0; 8];
    let normalised = layer.forward(&x);
    assert_eq!(normalised.output, [0.5; 8]);
    let mut gradient = [1.0; 8];
    layer.gradient(&x, normalised.moments.each_ref().map(Vec::as_slice), &mut gradient);
    assert_eq!(gradient, [0.0; 8]);
}

#[test]
fn by_a_given_mean_and_variance_it_is_a_line_through_each_number() {
    let given = [&[1.0, -2.0][..], &[3.0, 0.5][..]];
    let layer = BatchNorm {
        gamma: &[2.0, -1.0],
        beta: &[0.5, 0.25],
        epsilon: 1.0,
        positions: 2,
        rectified: false,
        given: Some(given),
    };
    // √(3 + 1) = 2 and √(0.5 + 1) = 1.2247449
    let x = [1.0, 3.0, -2.0, 0.449_489_8];
    let output = layer.forward(&x).output;
    let mut gradient = [1.0, 2.0, 3.0, 4.0];
    let [by_gamma, by_beta] = layer.gradient(&x, given, &mut gradient);
    for (computed, expected) in [
        (&output[..], &[0.5, 2.5, 0.25, -1.75][..]),
        (&gradient, &[1.0, 2.0, -2.449_489_8, -3.265_986_3]),
        (&by_gamma, &[2.0, 8.0]),
        (&by_beta, &[3.0, 7.0]),
    ] {
        for (computed, expected) in computed.iter().zip(expected) {
            assert!((computed - expected).abs() < 1e-6, "{computed} instead of {expected}");
        }
    }
}
