//! Published networks without training, end to end: CUB-200-2011 in its layout with drawn pictures, and random weights
//! in a file with timm's names.

mod workplace;

use std::path::Path;

use akin_core::digest::sha256;
use akin_core::embeddings::Rows;
use akin_formats::npy::Matrix;
use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use workplace::{Answer, Workplace, noise, weights};

const RECIPE: &str = "hier/pretrained/cub-deit";
const WEIGHTS: &str = "weights/deit_small_patch16_224-cd65a155.pth";

/// What timm's `deit_small_patch16_224` is made of.
const FIXTURE: &str = include_str!("../../core/tests/backbones/deit_s16.json");

/// A picture of a class: two colours, which differ less between classes than between pictures, with a disc and noise.
fn picture(class: u8, number: u64) -> Vec<u8> {
    let mut noise = noise(1_000 * u64::from(class) + number);
    let mut next = |size: f64| size * noise.next().unwrap();
    let (x0, y0, shift) = (150.0 + next(80.0), 120.0 + next(60.0), next(40.0));
    let image = RgbImage::from_fn(300, 240, |x, y| {
        let inside = (f64::from(x) - x0).hypot(f64::from(y) - y0) < 50.0;
        let base = if inside { [170 - 10 * class, 90, 10 * class] } else { [60, 90 + 8 * class, 120] };
        Rgb(base.map(|value| (f64::from(value) + shift + next(70.0)).clamp(0.0, 255.0) as u8))
    });
    let mut bytes = std::io::Cursor::new(Vec::new());
    DynamicImage::ImageRgb8(image).write_to(&mut bytes, ImageFormat::Jpeg).unwrap();
    bytes.into_inner()
}

/// The images of the test classes with their classes, in the order of `images.txt`.
fn test_images() -> Vec<(String, u8)> {
    let names = ["101.White_Pelican", "150.Sage_Thrasher", "199.Winter_Wren", "200.Common_Yellowthroat"];
    let images = (0..4).flat_map(|class| (0..3).map(move |number| (class, number)));
    images.map(|(class, number)| (format!("{0}/{0}_{number}.jpg", names[class as usize]), class)).collect()
}

fn draw_cub(workplace: &Workplace) {
    let (mut images, mut labels) = (String::new(), String::new());
    let train =
        [("001.Black_footed_Albatross/a.jpg".to_owned(), 0), ("100.Brown_Pelican/b.jpg".to_owned(), 1)];
    for (id, (path, class)) in (1..).zip(train.into_iter().chain(test_images())) {
        images += &format!("{id} {path}\n");
        labels += &format!("{id} {}\n", path[..3].parse::<u32>().unwrap());
        workplace.write(&format!("CUB_200_2011/images/{path}"), picture(class, id));
    }
    let classes = "1 001.Black_footed_Albatross\n100 100.Brown_Pelican\n101 101.White_Pelican\n\
        150 150.Sage_Thrasher\n199 199.Winter_Wren\n200 200.Common_Yellowthroat\n";
    workplace.write("CUB_200_2011/images.txt", images);
    workplace.write("CUB_200_2011/image_class_labels.txt", labels);
    workplace.write("CUB_200_2011/classes.txt", classes);
}

/// Runs `akin` with the data folder of the recipe.
fn akin(workplace: &Workplace, arguments: &[&str]) -> Answer {
    let mut command = workplace.command(arguments);
    Answer::of(command.env("AKIN_DATA", workplace.folder()).output().unwrap())
}

/// The share of queries with a positive among the first k others, in percent, from the embeddings.
fn recall(embeddings: &[Vec<f64>], classes: &[u8], k: usize) -> f64 {
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let cosine = |a: &[f64], b: &[f64]| product(a, b) / (product(a, a) * product(b, b)).sqrt();
    let hit = |&query: &usize| {
        let mut others: Vec<usize> = (0..classes.len()).filter(|&item| item != query).collect();
        let score = |item: usize| cosine(&embeddings[query], &embeddings[item]);
        others.sort_by(|&a, &b| score(b).total_cmp(&score(a)));
        others[..k].iter().any(|&item| classes[item] == classes[query])
    };
    100.0 * (0..classes.len()).filter(hit).count() as f64 / classes.len() as f64
}

#[test]
fn a_published_row_is_measured_from_the_files_alone() {
    let workplace = Workplace::empty();
    draw_cub(&workplace);
    let weights = weights(FIXTURE, "", &[]);
    workplace.write(WEIGHTS, &weights);

    // Not the published weights.
    let hash = sha256(&weights);
    akin(&workplace, &["eval", RECIPE])
        .expect_code(1)
        .expect_stderr(&format!("have the SHA-256 {hash}, but model.weights_sha256 is cd65a155"))
        .expect_stderr("remove it and download it again");

    let own = format!("model.weights_sha256=\"{hash}\"");
    let answer = akin(&workplace, &["eval", RECIPE, "--set", &own, "--device", "cpu"]).expect_code(0);
    assert!(answer.stderr.contains(&format!("SHA-256 {hash}, the published one")), "{}", answer.stderr);

    // The same from the embeddings, in plain loops.
    let images = test_images();
    let mut arguments = vec!["embed".to_owned(), RECIPE.to_owned()];
    let path = |(name, _): &(String, u8)| workplace.path("CUB_200_2011/images").join(name);
    arguments.extend(images.iter().map(|image| path(image).display().to_string()));
    arguments.extend(["--out", "birds.npy", "--set", &own, "--device", "cpu"].map(str::to_owned));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    akin(&workplace, &arguments).expect_code(0);
    let embeddings = read_npy(&workplace.path("birds.npy"));
    assert_eq!((embeddings.len(), embeddings[0].len()), (12, 384));
    let classes: Vec<u8> = images.iter().map(|(_, class)| *class).collect();
    let mut differences = 0;
    for (k, published) in [(1, 70.6), (2, 81.3), (4, 88.7)] {
        let measured = recall(&embeddings, &classes, k);
        let difference = format!("{:+.2}", measured - published).replace('-', "−");
        let line =
            answer.stdout.lines().find(|line| line.contains(&format!(" R@{k} ")) && line.contains("DeiT-S"));
        let words: Vec<&str> =
            line.unwrap_or_else(|| panic!("{}", answer.stdout)).split_whitespace().collect();
        let expected = [&published.to_string(), &format!("{measured:.2}"), &difference, "no", "(±0.05)"];
        assert!(words.ends_with(&expected), "{words:?} instead of {expected:?}");
        differences += usize::from(measured < 100.0);
    }
    assert!(differences > 0, "pictures that every network tells apart show nothing");
}

fn read_npy(path: &Path) -> Vec<Vec<f64>> {
    let matrix = Matrix::open(path, false).unwrap();
    let mut values = vec![0.0; matrix.rows() * matrix.dimension()];
    matrix.read(0, &mut values).unwrap();
    values.chunks(matrix.dimension()).map(|row| row.iter().map(|&x| f64::from(x)).collect()).collect()
}

#[test]
fn what_is_missing_is_named_with_its_source_and_its_place() {
    let workplace = Workplace::empty();
    let folder = workplace.folder().display();
    akin(&workplace, &["eval", RECIPE])
        .expect_code(1)
        .expect_stderr(&format!("the weights {folder}/{WEIGHTS} are not there"))
        .expect_stderr(&format!("CUB-200-2011 is not at {folder}/CUB_200_2011"))
        .expect_stderr("download https://dl.fbaipublicfiles.com/deit/deit_small_patch16_224-cd65a155.pth to")
        .expect_stderr("put a copy of CUB-200-2011 there")
        .expect_stderr("or pass `--yes` and akin downloads it");
    draw_cub(&workplace);
    let answer = akin(&workplace, &["eval", RECIPE]).expect_code(1);
    assert!(!answer.stderr.contains("CUB-200-2011"), "{}", answer.stderr);

    // A data set with terms to accept.
    akin(&workplace, &["eval", "hier/pretrained/inshop-dino"])
        .expect_code(1)
        .expect_stderr("InShopRetrieval.html (licence:")
        .expect_stderr("dino_deitsmall16_pretrain.pth are not there");
}

#[test]
fn a_config_and_a_run_have_options_of_their_own() {
    let workplace = Workplace::empty();
    akin(&workplace, &["train", RECIPE])
        .expect_code(1)
        .expect_stderr("has no training")
        .expect_stderr(&format!("use `akin eval {RECIPE}`"));
    for option in [&["--untrained"][..], &["--which", "best"], &["--dyml"]] {
        akin(&workplace, &[&["eval", RECIPE], option].concat())
            .expect_code(1)
            .expect_stderr(&format!("`{}` is for a run", option[0]));
    }
    akin(&workplace, &["embed", RECIPE, ".", "--out", "x.npy", "--which", "best"])
        .expect_code(1)
        .expect_stderr("`--which` is for a run");
    workplace.write("run/config.toml", "");
    for option in [&["--yes"][..], &["--set", "data.path=x"]] {
        akin(&workplace, &[&["eval", "run"], option].concat())
            .expect_code(1)
            .expect_stderr(&format!("`{}` is for a config", option[0]));
    }
    let random = "[data]\nkind = 'cub200'\npath = 'x'\n[model]\nbackbone = { kind = 'resnet18' }\n";
    workplace.write("random.toml", random);
    akin(&workplace, &["eval", "random.toml"])
        .expect_code(1)
        .expect_stderr("the config has no model.weights");
}
