//! Every result is that of the formula, on shapes of all kinds.

use akin_layers::{Convolution, Epilogue};
use proptest::prelude::*;

/// The terms of a convolution: the numbers of the output, of the input and of the weights that belong together.
fn each_term(layer: &Convolution, batch: usize, mut term: impl FnMut(usize, usize, usize)) {
    let ([channels, height, width], [rows, columns]) = (layer.input, layer.output());
    let (inputs, outputs) = (channels / layer.groups, layer.outputs / layer.groups);
    for b in 0..batch {
        for o in 0..layer.outputs {
            for (v, u) in (0..rows).flat_map(|v| (0..columns).map(move |u| (v, u))) {
                for c in 0..inputs {
                    for (i, j) in (0..layer.size[0]).flat_map(|i| (0..layer.size[1]).map(move |j| (i, j))) {
                        let y = v * layer.stride[0] + i * layer.dilation[0];
                        let x = u * layer.stride[1] + j * layer.dilation[1];
                        let (Some(y), Some(x)) =
                            (y.checked_sub(layer.padding[0]), x.checked_sub(layer.padding[1]))
                        else {
                            continue;
                        };
                        if y < height && x < width {
                            let channel = o / outputs * inputs + c;
                            term(
                                ((b * layer.outputs + o) * rows + v) * columns + u,
                                ((b * channels + channel) * height + y) * width + x,
                                ((o * inputs + c) * layer.size[0] + i) * layer.size[1] + j,
                            );
                        }
                    }
                }
            }
        }
    }
}

fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (seed..seed + count).map(|i| ((i * 37 + 11) % 101) as f32 / 50.0 - 1.0).collect()
}

/// A sum and the sum of its terms' sizes, which bounds what rounding may change.
type Sum = [f64; 2];

fn assert_close(name: &str, computed: &[f32], expected: &[Sum]) {
    assert_eq!(computed.len(), expected.len());
    for (i, (&computed, &[expected, size])) in computed.iter().zip(expected).enumerate() {
        let close = (f64::from(computed) - expected).abs() <= 1e-6 * (1.0 + size);
        assert!(close, "{name} {i}: {computed} instead of {expected}");
    }
}

fn agrees(layer: &Convolution, batch: usize) {
    let [rows, columns] = layer.output();
    let input = batch * layer.input.iter().product::<usize>();
    let output = batch * layer.outputs * rows * columns;
    let (x, weight, gradient) = (numbers(input, 3), numbers(layer.weights(), 7), numbers(output, 5));
    let bias = numbers(layer.outputs, 1);
    let [mut forward, mut backward, mut weights] =
        [output, input, layer.weights()].map(|count| vec![[0.0; 2]; count]);
    let add = |[sum, size]: &mut Sum, x: f32, y: f32| {
        let term = f64::from(x) * f64::from(y);
        *sum += term;
        *size += term.abs();
    };
    each_term(layer, batch, |o, i, w| {
        add(&mut forward[o], x[i], weight[w]);
        add(&mut backward[i], gradient[o], weight[w]);
        add(&mut weights[w], gradient[o], x[i]);
    });
    assert_close("output", &layer.forward(&x, &weight, Epilogue::default()), &forward);
    assert_close("gradient of the input", &layer.input_gradient(&gradient, &weight), &backward);
    assert_close("gradient of the weights", &layer.weight_gradient(&x, &gradient), &weights);
    let mut biases = vec![[0.0; 2]; layer.outputs];
    for (i, &gradient) in gradient.iter().enumerate() {
        add(&mut biases[i / (rows * columns) % layer.outputs], gradient, 1.0);
    }
    assert_close("gradient of the bias", &layer.bias_gradient(&gradient), &biases);
    for (i, [sum, _]) in forward.iter_mut().enumerate() {
        *sum += f64::from(bias[i / (rows * columns) % layer.outputs]);
    }
    let rectified = |forward: &[Sum], added: &[f32]| -> Vec<Sum> {
        let sums = forward.iter().zip(added);
        sums.map(|([sum, size], &added)| [(sum + f64::from(added)).max(0.0), *size]).collect()
    };
    let epilogue = Epilogue { shift: Some(&bias), rectified: true, ..Epilogue::default() };
    let expected = rectified(&forward, &vec![0.0; output]);
    assert_close("rectified output", &layer.forward(&x, &weight, epilogue), &expected);
    let mut sum = gradient.clone();
    layer.forward_onto(&x, &weight, epilogue, &mut sum);
    assert_close("rectified sum", &sum, &rectified(&forward, &gradient));
}

fn layers() -> impl Strategy<Value = (Convolution, usize)> {
    let pair = |range: std::ops::Range<usize>| [range.clone(), range];
    let channels = prop_oneof![
        (1..5_usize).prop_flat_map(|groups| (Just(groups), 1..5_usize, 1..5_usize)),
        (Just(1_usize), 1..40_usize, 1..40_usize),
        (1..20_usize, Just(1_usize), Just(1_usize)),
    ];
    (channels, pair(1..12), pair(1..5), pair(1..4), pair(0..4), pair(1..4), 1..5_usize)
        .prop_map(|((groups, inputs, outputs), side, size, stride, padding, dilation, batch)| {
            let input = [groups * inputs, side[0], side[1]];
            let outputs = groups * outputs;
            let layer =
                Convolution { size, stride, padding, dilation, groups, ..Convolution::new(input, outputs) };
            (layer, batch)
        })
        .prop_filter("a window within the picture", |(layer, _)| layer.output().iter().all(|&side| side > 0))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_direction_is_that_of_the_formula((layer, batch) in layers()) {
        agrees(&layer, batch);
    }
}

#[test]
fn layers_of_known_networks_are_that_of_the_formula() {
    let square = |input, outputs, side: usize, stride, padding| Convolution {
        size: [side; 2],
        stride: [stride; 2],
        padding: [padding; 2],
        ..Convolution::new(input, outputs)
    };
    for (layer, batch) in [
        (square([3, 63, 65], 64, 3, 2, 0), 2),
        (square([3, 40, 40], 64, 7, 2, 3), 1),
        (square([64, 7, 7], 33, 3, 1, 1), 9),
        (square([70, 14, 14], 128, 1, 1, 0), 3),
        (square([300, 9, 9], 40, 1, 2, 0), 2),
        (square([3, 32, 32], 24, 16, 16, 0), 5),
    ] {
        agrees(&layer, batch);
    }
}

#[test]
fn a_window_of_one_column_without_padding_is_that_of_the_formula() {
    agrees(&Convolution { size: [2, 1], ..Convolution::new([1, 3, 1], 3) }, 1);
    agrees(&Convolution { size: [3, 1], ..Convolution::new([2, 7, 4], 9) }, 2);
}

#[test]
fn beside_other_layers_each_direction_is_as_alone() {
    for groups in [1, 3] {
        for (batch, side) in [(1, 20), (4, 5)] {
            let alone =
                Convolution { size: [3, 3], padding: [1, 1], groups, ..Convolution::new([6, side, side], 9) };
            let beside = Convolution { beside: [4, 2], ..alone };
            let (positions, x) = (side * side, numbers(batch * 6 * side * side, 1));
            let weight = numbers(alone.weights(), 2);
            let is_own = |i: &usize| (4..13).contains(&(i / positions % 15));
            let own = |numbers: &[f32]| -> Vec<f32> {
                (0..numbers.len()).filter(is_own).map(|i| numbers[i]).collect()
            };
            let others = |numbers: &[f32]| -> Vec<f32> {
                (0..numbers.len()).filter(|i| !is_own(i)).map(|i| numbers[i]).collect()
            };
            let mut output = numbers(batch * 15 * positions, 3);
            let before = output.clone();
            beside.forward_into(&x, &weight, Epilogue::default(), &mut output);
            assert_eq!(own(&output), alone.forward(&x, &weight, Epilogue::default()));
            assert_eq!(others(&output), others(&before));
            let gradient = own(&output);
            assert_eq!(beside.input_gradient(&output, &weight), alone.input_gradient(&gradient, &weight));
            assert_eq!(beside.weight_gradient(&x, &output), alone.weight_gradient(&x, &gradient));
            assert_eq!(beside.bias_gradient(&output), alone.bias_gradient(&gradient));
        }
    }
}

#[test]
fn a_picture_has_the_same_numbers_alone_and_among_others() {
    let layer = Convolution { size: [3, 3], padding: [1, 1], ..Convolution::new([20, 9, 7], 30) };
    let (x, weight) = (numbers(6 * 20 * 63, 0), numbers(layer.weights(), 4));
    let together = layer.forward(&x, &weight, Epilogue::default());
    let gradient = layer.input_gradient(&together, &weight);
    for (b, x) in x.chunks_exact(20 * 63).enumerate() {
        let alone = layer.forward(x, &weight, Epilogue::default());
        assert_eq!(alone, together[b * alone.len()..][..alone.len()]);
        let alone = layer.input_gradient(&alone, &weight);
        assert_eq!(alone, gradient[b * alone.len()..][..alone.len()]);
    }
}

#[test]
fn what_is_not_a_number_stays_so_behind_a_rectifier() {
    let layer = Convolution::new([1, 1, 2], 1);
    let output = layer.forward(
        &[f32::NAN, f32::INFINITY],
        &[1.0],
        Epilogue { rectified: true, ..Epilogue::default() },
    );
    assert!(output[0].is_nan());
    assert_eq!(output[1], f32::INFINITY);
}

#[cfg(feature = "parallel")]
#[test]
fn every_number_of_threads_gives_the_same_bits() {
    let layer =
        Convolution { size: [3, 3], stride: [2, 1], padding: [1, 1], ..Convolution::new([20, 9, 7], 44) };
    let (x, weight) = (numbers(5 * 20 * 63, 0), numbers(layer.weights(), 4));
    let directions = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let output = layer.forward(&x, &weight, Epilogue::default());
            [
                layer.input_gradient(&output, &weight),
                layer.weight_gradient(&x, &output),
                layer.bias_gradient(&output),
                layer.forward(&x[..20 * 63], &weight, Epilogue::default()),
                output,
            ]
        })
    };
    let alone = directions(1);
    for threads in [2, 3, 16] {
        assert_eq!(directions(threads), alone, "{threads} threads");
    }
}
