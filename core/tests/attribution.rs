//! Where a picture carries its score: the parts of real networks add up to the scores that the encoder gives.

use akin_core::attribution::{Cells, Occlusion, ScoreParts};
use akin_core::embeddings::Embeddings;
use akin_core::encoder::{Encoder, EncoderConfig};
use akin_core::geometry::Geometry;
use akin_core::image::{Normalisation, Pixels, Preprocessing, self_test_pattern};
use akin_core::models::{BackboneConfig, HeadConfig, SmallResnetConfig, SqueezenetConfig};
use akin_core::random::{stream, uniform};
use akin_core::search::Gallery;
use akin_core::similarity::Similarity;
use burn::tensor::{Device, Tensor};

/// A future of a device on the CPU, which is ready at once.
fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("the CPU does not make callers wait"),
    }
}

fn pictures() -> [Pixels; 2] {
    let noise = uniform(&mut stream(3, "pixels", &[]), 3 * 90 * 70, 0.0, 255.0);
    let noise = Pixels::new(90, 70, noise.into_iter().map(|x| x as u8).collect()).unwrap();
    [self_test_pattern(80).unwrap(), noise]
}

fn encoder(backbone: BackboneConfig, head: Option<HeadConfig>) -> Encoder {
    let preprocessing = Preprocessing::new(Normalisation::Inception, 64).unwrap();
    EncoderConfig { backbone, pooling: None, head, preprocessing }.init(5, &Device::flex()).unwrap()
}

fn head(layer_norm: bool, geometry: Geometry) -> Option<HeadConfig> {
    Some(HeadConfig { dimension: 12, layer_norm, geometry, initial_weights: Default::default() })
}

/// Encoders of either backbone, with and without head and LayerNorm, in every geometry.
fn encoders() -> Vec<Encoder> {
    let small = || BackboneConfig::SmallResnet(SmallResnetConfig { width: 4 });
    vec![
        encoder(small(), None),
        encoder(small(), head(true, Geometry::Cosine)),
        encoder(small(), head(false, Geometry::Cosine)),
        encoder(small(), head(true, Geometry::poincare())),
        encoder(small(), head(true, Geometry::Binary)),
        encoder(BackboneConfig::Squeezenet(SqueezenetConfig::default()), head(true, Geometry::Cosine)),
    ]
}

fn cells(encoder: &Encoder, picture: &Pixels) -> Cells {
    let images = encoder.images(std::slice::from_ref(picture), &Device::flex()).unwrap();
    ready(encoder.cells_async(encoder.outputs(images).unwrap())).unwrap()
}

#[test]
fn the_parts_of_a_picture_add_up_to_its_embedding() {
    for encoder in encoders() {
        for picture in pictures() {
            let embedding = encoder.embed(std::slice::from_ref(&picture), &Device::flex()).unwrap();
            let cells = cells(&encoder, &picture);
            assert!(cells.rows() * cells.columns() > 1);
            for (sum, expected) in cells.embedding().iter().zip(&embedding) {
                assert!((sum - f64::from(*expected)).abs() < 1e-5, "{sum} {expected}");
            }
        }
    }
}

#[test]
fn the_parts_of_a_score_add_up_to_the_score() {
    for encoder in encoders() {
        let [query, item] = pictures();
        let embeddings = encoder.embed(&[query.clone(), item.clone()], &Device::flex()).unwrap();
        let (q, x) = embeddings.split_at(encoder.dimension());
        for similarity in [Similarity::Cosine, Similarity::Dot] {
            let gallery = Embeddings::new(encoder.dimension(), x.to_vec()).unwrap();
            let score = f64::from(Gallery::new(&gallery, similarity).unwrap().scores(q).unwrap()[0]);
            let parts = ScoreParts::new(similarity, &cells(&encoder, &query), &cells(&encoder, &item))
                .unwrap()
                .unwrap();
            for sum in
                [parts.score, parts.query.iter().sum(), parts.item.iter().sum(), parts.pairs.iter().sum()]
            {
                assert!((sum - score).abs() < 1e-5, "{similarity:?}: {sum} {score}");
            }
        }
    }
}

/// The parts of a cosine head with LayerNorm, number by number from the formula of the module's page.
#[test]
fn the_parts_equal_a_naive_transcription() {
    let encoder =
        encoder(BackboneConfig::SmallResnet(SmallResnetConfig { width: 4 }), head(true, Geometry::Cosine));
    let [picture, _] = pictures();
    let device = Device::flex();
    let maps = encoder
        .backbone
        .outputs(encoder.images(std::slice::from_ref(&picture), &device).unwrap())
        .unwrap()
        .maps;
    let [_, features, rows, columns] = maps.dims();
    let count = rows * columns;
    let maps: Vec<f32> = maps.into_data().try_to_vec().unwrap();
    let f = |p: usize, k: usize| f64::from(maps[k * count + p]);
    let mean_of = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;

    // W and b, read from what the head makes of the unit vectors and of 0: its cosine geometry only scales them.
    let plain = HeadConfig {
        dimension: 12,
        layer_norm: false,
        geometry: Geometry::Binary,
        initial_weights: Default::default(),
    };
    let same = EncoderConfig {
        pooling: None,
        backbone: BackboneConfig::SmallResnet(SmallResnetConfig { width: 4 }),
        head: Some(plain),
        preprocessing: encoder.preprocessing().clone(),
    };
    let same = same.init(5, &device).unwrap();
    let linear = |rows: Vec<f32>| -> Vec<f64> {
        let input = Tensor::<1>::from_data(&rows[..], &device).reshape([rows.len() / features, features]);
        let output: Vec<f32> = same.embed_features(input).into_data().try_to_vec().unwrap();
        output.into_iter().map(f64::from).collect()
    };
    let b = linear(vec![0.0; features]);
    let units: Vec<f32> = (0..features * features).map(|i| f32::from(i / features == i % features)).collect();
    let w: Vec<f64> = linear(units)
        .chunks(12)
        .flat_map(|row| row.iter().zip(&b).map(|(y, b)| y - b).collect::<Vec<_>>())
        .collect();

    let mean: Vec<f64> =
        (0..features).map(|k| mean_of(&(0..count).map(|p| f(p, k)).collect::<Vec<_>>())).collect();
    let centre = mean_of(&mean);
    let sigma = (mean_of(&mean.iter().map(|x| (x - centre).powi(2)).collect::<Vec<_>>()) + 1e-5).sqrt();
    let raw: Vec<Vec<f64>> = (0..count)
        .map(|p| {
            let own = mean_of(&(0..features).map(|k| f(p, k)).collect::<Vec<_>>());
            (0..12)
                .map(|j| {
                    let sum: f64 = (0..features).map(|k| w[k * 12 + j] * (f(p, k) - own) / sigma).sum();
                    (sum + b[j]) / count as f64
                })
                .collect()
        })
        .collect();
    let whole: Vec<f64> = (0..12).map(|j| raw.iter().map(|part| part[j]).sum()).collect();
    let length = whole.iter().map(|x| x * x).sum::<f64>().sqrt();

    let cells = cells(&encoder, &picture);
    for (p, raw) in raw.iter().enumerate() {
        for (part, raw) in cells.part(p).iter().zip(raw) {
            assert!((f64::from(*part) - raw / length).abs() < 1e-5);
        }
    }
}

#[test]
fn covering_a_patch_changes_the_score_as_embedding_the_covered_picture_does() {
    let encoder = encoder(
        BackboneConfig::SmallResnet(SmallResnetConfig { width: 4 }),
        head(true, Geometry::poincare()),
    );
    let device = Device::flex();
    let [query, item] = pictures();
    let similarity = Geometry::poincare().similarity();
    let embedding = encoder.embed(std::slice::from_ref(&query), &device).unwrap();
    let other = encoder.embed(&[item], &device).unwrap();
    let row = Occlusion::new(encoder.preprocessing().view(&query).unwrap()).row(2).unwrap();
    let outputs = encoder.outputs(encoder.batch(&row, &device)).unwrap();
    let covered = ready(encoder.embed_outputs_async(outputs)).unwrap();
    let falls = Occlusion::falls(similarity, &embedding, &covered, &other).unwrap();
    assert_eq!(falls.len(), Occlusion::SIDE);

    let view = encoder.preprocessing().view(&query).unwrap();
    let score = |embedding: &[f32]| {
        let gallery = Embeddings::new(12, other.clone()).unwrap();
        Gallery::new(&gallery, similarity).unwrap().scores(embedding).unwrap()[0]
    };
    for (fall, covered) in falls.iter().zip(Occlusion::new(view).row(2).unwrap()) {
        // A view has the encoder's size, and passes its preprocessing without a change.
        let after = score(&encoder.embed(&[covered], &device).unwrap());
        assert!((fall - (score(&embedding) - after)).abs() < 1e-5);
    }
    assert!(falls.iter().any(|fall| fall.abs() > 1e-4));
}

#[test]
fn the_region_is_the_central_square_that_the_backbone_sees() {
    let mut numbers = Preprocessing::new(Normalisation::Inception, 50).unwrap().numbers().clone();
    numbers.resize = 100;
    let preprocessing = Preprocessing::try_from(numbers).unwrap();
    let region =
        |w: u32, h: u32| preprocessing.region(&Pixels::new(w, h, vec![0; 3 * (w * h) as usize]).unwrap());
    assert_eq!(region(10, 10), [0.25, 0.25, 0.5, 0.5]);
    assert_eq!(region(20, 10), [0.375, 0.25, 0.25, 0.5]);
}
