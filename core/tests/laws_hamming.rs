//! Laws of the Hamming distance, on random codes.

use akin_core::embeddings::Embeddings;
use akin_core::hamming::Codes;
use akin_core::search::Gallery;
use akin_core::similarity::Similarity;
use proptest::prelude::*;

/// K and numbers [3, K] from a small grid, so that zeros and equal codes occur.
fn three() -> impl Strategy<Value = (usize, Vec<f32>)> {
    let number = (-2i8..=2).prop_map(|step| f32::from(step) / 2.0);
    (1..=150usize).prop_flat_map(move |bits| (Just(bits), prop::collection::vec(number.clone(), 3 * bits)))
}

proptest! {
    #[test]
    fn the_distance_is_a_metric_on_codes((bits, values) in three()) {
        let codes = Codes::from_signs(bits, &values);
        prop_assert_eq!((codes.len(), codes.bits()), (3, bits));
        for (i, j) in [(0, 0), (0, 1), (0, 2), (1, 2)] {
            prop_assert_eq!(codes.distance(i, j), codes.distance(j, i));
            prop_assert_eq!(codes.distance(i, j) == 0, codes.code(i) == codes.code(j));
            prop_assert!(codes.distance(i, j) <= bits as u32);
        }
        prop_assert!(codes.distance(0, 2) <= codes.distance(0, 1) + codes.distance(1, 2));
    }

    #[test]
    fn the_dot_product_of_signs_is_the_number_of_bits_minus_twice_the_distance((bits, values) in three()) {
        let codes = Codes::from_signs(bits, &values);
        let signs = |i: usize| values[i * bits..][..bits].iter().map(|&x| if x > 0.0 { 1i64 } else { -1 });
        let dot: i64 = signs(0).zip(signs(1)).map(|(a, b)| a * b).sum();
        prop_assert_eq!(dot, bits as i64 - 2 * i64::from(codes.distance(0, 1)));
    }

    #[test]
    fn a_search_scores_by_minus_the_distance((bits, values) in three()) {
        let codes = Codes::from_signs(bits, &values);
        let embeddings = Embeddings::new(bits, values).unwrap();
        let gallery = Gallery::new(&embeddings, Similarity::Hamming).unwrap();
        let expected: Vec<f32> = (0..3).map(|item| -(codes.distance(1, item) as f32)).collect();
        prop_assert_eq!(gallery.scores(embeddings.row(1)).unwrap(), expected);
    }

    #[test]
    fn only_the_signs_of_an_embedding_matter((bits, values) in three(), scale in 0.01f32..100.0) {
        let scaled: Vec<f32> = values.iter().map(|value| value * scale).collect();
        prop_assert_eq!(Codes::from_signs(bits, &scaled), Codes::from_signs(bits, &values));
    }
}
