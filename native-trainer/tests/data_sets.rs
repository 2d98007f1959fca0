//! Data sets on the command line: published counts, and junk that is left out of rankings.

mod workplace;

use std::fs;
use std::path::Path;

use serde_json::Value;
use workplace::{Answer, Workplace, tiny};

#[test]
fn a_copy_is_held_to_the_published_counts() {
    let at = Workplace::empty();
    let mut picture = std::io::Cursor::new(Vec::new());
    image::GrayImage::new(4, 4).write_to(&mut picture, image::ImageFormat::Png).unwrap();
    for image in ["images_background/Greek/character01/1.png", "images_evaluation/Angelic/character01/2.png"]
    {
        let path = at.path("omniglot").join(image);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, picture.get_ref()).unwrap();
    }
    at.akin(&["data", "verify", "omniglot", "omniglot"])
        .expect_code(1)
        .expect_stdout("19,280")
        .expect_stderr("6 counts are not the published ones: train: images; train: classes of character");
    at.akin(&["data", "check", "omniglot", "omniglot"]).expect_code(0).expect_stdout("alphabet");
    at.akin(&["data", "verify", "omniglott", "omniglot"])
        .expect_code(1)
        .expect_stderr("did you mean `omniglot`?");
    at.akin(&["data", "verify", "csv", "omniglot"]).expect_code(1).expect_stderr("needs more settings");
    at.write("own.toml", "data = { kind = 'folder', path = 'omniglot', levels = ['a'] }");
    at.akin(&["data", "verify", "own.toml"]).expect_code(1).expect_stderr("no published counts");
}

/// The training images have three levels, and each level has a test set of its own.
#[test]
fn a_copy_of_dyml_is_held_to_the_counts_of_all_levels_and_test_sets() {
    let at = Workplace::empty();
    let mut picture = std::io::Cursor::new(Vec::new());
    image::GrayImage::new(4, 4).write_to(&mut picture, image::ImageFormat::Png).unwrap();
    let write = |path: &str, bytes: &[u8]| {
        let path = at.path("dyml").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    let labels = b"fname, fine_id0.jpg, middle_id, coarse_id\na.jpg, 1, 2, 3\nb.jpg, 4, 5, 3\n";
    write("train/label.csv", labels);
    for image in ["a", "b"] {
        write(&format!("train/imgs/{image}.jpg"), picture.get_ref());
    }
    for (benchmark, classes) in [("coarse", 1), ("middle", 2), ("fine", 3)] {
        let rows: String = (0..classes).map(|class| format!("{class}.jpg, {class}\n")).collect();
        for (part, rows) in [("query", "0.jpg, 0\n"), ("gallery", &rows)] {
            let folder = format!("bmk_{benchmark}/{part}");
            write(&format!("{folder}.csv"), format!("fname, labels0.jpg\n{rows}").as_bytes());
            for image in rows.lines().map(|row| row.split(',').next().unwrap()) {
                write(&format!("{folder}/{image}"), picture.get_ref());
            }
        }
    }
    let verify = |data: &[&str]| -> Value {
        let answer = at.akin(&[&["data", "verify", "--json"], data].concat()).expect_code(1);
        serde_json::from_str(&answer.stdout).unwrap()
    };
    let answer = verify(&["dyml_animal", "dyml"]);
    let counts = &answer["counts"];
    let counts: Vec<(String, u64, u64)> = (0..10)
        .map(|place| {
            let number = |key: &str| counts[place][key].as_u64().unwrap();
            (counts[place]["what"].as_str().unwrap().to_owned(), number("found"), number("published"))
        })
        .collect();
    let expected = [
        ("train: images", 2, 407_800),
        ("train: classes of coarse", 1, 5),
        ("train: classes of middle", 2, 28),
        ("train: classes of fine", 2, 495),
        ("coarse: images", 1, 12_500),
        ("coarse: classes of coarse", 1, 5),
        ("middle: images", 2, 23_100),
        ("middle: classes of middle", 2, 17),
        ("fine: images", 3, 11_300),
        ("fine: classes of fine", 3, 162),
    ];
    assert_eq!(counts, expected.map(|(what, found, published)| (what.to_owned(), found, published)));
    assert_eq!(answer["unreadable"].as_array().unwrap().len(), 0);

    // Images of every test set are read, and a level that is left out is not compared.
    write("bmk_middle/gallery/1.jpg", b"no picture");
    at.write("animal.toml", "data = { kind = 'dyml_animal', path = 'dyml', levels = ['middle', 'fine'] }");
    let answer = verify(&["animal.toml"]);
    assert_eq!(answer["counts"].as_array().unwrap().len(), 7);
    assert!(answer["unreadable"][0]["path"].as_str().unwrap().ends_with("bmk_middle/gallery/1.jpg"));
}

/// Images inside Parquet files, from `init` to a bundle.
#[test]
fn every_command_takes_images_from_parquet_files() {
    let at = Workplace::empty();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet/hub");
    fs::create_dir(at.path("fruit")).unwrap();
    for file in fixtures.read_dir().unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), at.path("fruit").join(file.file_name())).unwrap();
    }
    at.akin(&["init", "fruit"])
        .expect_code(0)
        .expect_stderr("Found a folder of Parquet files with 36 images and the levels kind, variety")
        .expect_stderr("train 24 images of 4 classes, test 12 images of 4 classes");
    at.akin(&["data", "check", "fruit.toml"]).expect_code(0).expect_stdout("variety");
    at.akin(&["data", "stats", "fruit.toml"]).expect_code(0).expect_stdout("variety");
    at.akin(&["train", "fruit.toml", "--dry-run"]).expect_code(0).expect_stdout("24 images");
    at.akin(&["train", "fruit.toml", "--out", "run", "--set", "run.steps=2"]).expect_code(0);
    let loaded = at.akin(&["bench", "loader", "fruit.toml", "--images", "30", "--once"]).expect_code(0);
    let memory = loaded.stdout.trim().parse::<u64>();
    assert!(memory.is_ok_and(|bytes| bytes > 0) || !cfg!(target_os = "linux"), "{}", loaded.stdout);
    at.akin(&["eval", "run"]).expect_code(0).expect_stdout("variety");
    at.akin(&["report", "run", "--out", "report.html"]).expect_code(0);
    at.akin(&["export", "run", "--out", "bundle", "--no-maps", "--thumbnail", "16"]).expect_code(0);
    assert!(at.path("bundle/thumbnails-0.jpg").is_file());
    image::RgbImage::from_pixel(16, 16, image::Rgb([0, 120, 90])).save(at.path("gala.png")).unwrap();
    at.akin(&["search", "bundle", "gala.png"]).expect_code(0).expect_stdout("Gala");

    // Another file in the place of one is noticed.
    fs::copy(at.path("fruit/test-00000-of-00001.parquet"), at.path("fruit/train-00001-of-00002.parquet"))
        .unwrap();
    at.akin(&["eval", "run"]).expect_code(0).expect_stderr("have other names");
}

/// A data set as it is downloaded from the hub: all splits in a folder `data`, one of them not used.
#[test]
fn a_data_set_of_the_hub_needs_no_file_moved() {
    let at = Workplace::empty();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet/hub");
    fs::create_dir_all(at.path("fruit/data")).unwrap();
    at.write("fruit/README.md", "# Fruit");
    for (part, split) in [
        ("train-00000-of-00002", "train"),
        ("train-00001-of-00002", "validation"),
        ("test-00000-of-00001", "test"),
    ] {
        let copy = at.path(&format!("fruit/data/{split}-00000-of-00001.parquet"));
        fs::copy(fixtures.join(format!("{part}.parquet")), copy).unwrap();
    }
    at.akin(&["init", "fruit"])
        .expect_code(0)
        .expect_stderr("with 24 images and the levels kind, variety (the split validation is not used)")
        .expect_stderr("train 12 images of 4 classes, test 12 images of 4 classes")
        .expect_stderr("`akin data check fruit.toml`");
    let config = at.read("fruit.toml");
    assert!(
        config.contains("\nsplits.test = \"test\"\n"),
        "the config says which split is evaluated: {config}"
    );
    assert!(config.contains("the split validation is not used"), "{config}");
    at.akin(&["train", "fruit.toml", "--out", "run", "--set", "run.steps=1"]).expect_code(0);
    at.akin(&["export", "run", "--out", "bundle", "--no-maps", "--thumbnail", "16"]).expect_code(0);
    assert_eq!(at.json("bundle/bundle.json")["title"], "fruit");
    let validated = ["data", "check", "fruit.toml", "--set", "data.splits.test=validation"];
    at.akin(&validated).expect_code(0).expect_stdout("12");

    // The folder of the files may be named, too, and lack a split.
    at.akin(&["init", "fruit/data", "--out", "inner.toml"]).expect_code(0);
    at.akin(&["train", "inner.toml", "--out", "inner", "--set", "run.steps=1"]).expect_code(0);
    at.akin(&["export", "inner", "--out", "other", "--no-maps", "--thumbnail", "16"]).expect_code(0);
    assert_eq!(at.json("other/bundle.json")["title"], "fruit");
    fs::remove_file(at.path("fruit/data/test-00000-of-00001.parquet")).unwrap();
    at.akin(&["data", "check", "fruit.toml"])
        .expect_code(1)
        .expect_stderr("has no file of the split `test`; its files are called after `validation`")
        .expect_stderr("data.splits.test = \"validation\"");
    at.akin(&["init", "fruit", "--overwrite"]).expect_code(0);
    assert!(at.read("fruit.toml").contains("\nsplits.test = \"validation\"\n"));
    at.akin(&["data", "verify", "fruit.toml"]).expect_code(1).expect_stderr("`akin data check fruit.toml`");
    at.akin(&["data", "check", "fruit"]).expect_code(1).expect_stderr("`akin init fruit`");
    at.akin(&["train", "run"]).expect_code(1).expect_stderr("its config is run/config.toml");
    at.akin(&["data", "verify", "parquet", "fruit"]).expect_code(1).expect_stderr("`akin init PATH`");
}

#[test]
fn a_run_is_evaluated_on_another_data_set_without_its_junk() {
    let published = "[published]\npaper = 'ramzi2021'\nresults = [\n\
                     { place = 'Table 1', row = 'here', scores = { h_ap = 50.0 } },\n\
                     { place = 'Table 9', row = 'there', on = { kind = 'csv' }, scores = { h_ap = 50.0 } },\n]\n";
    let at = Workplace::drawn(&[&tiny(&[]), published].join("\n"), "16");
    let line = |answer: &Answer, row: &str| -> Option<String> {
        answer.stdout.lines().find(|line| line.contains(row)).map(str::to_owned)
    };
    let trained = at.akin(&["train", "tiny.toml", "--out", "run"]).expect_code(0);
    assert!(line(&trained, "Table 1, here").unwrap().contains(" (±"), "{}", trained.stdout);
    let elsewhere = line(&trained, "Table 9, there").unwrap();
    assert!(elsewhere.contains("H-AP on csv") && !elsewhere.contains(" (±"), "{elsewhere}");
    // The evaluated images, in turn a query and a gallery image. Every gallery image is junk for the other species.
    let text = at.read("data/labels.csv");
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let rows: Vec<&Vec<&str>> = rows.iter().filter(|row| row[4] == "test").collect();
    let mut species: Vec<&str> = rows.iter().map(|row| row[3]).collect();
    species.sort_unstable();
    species.dedup();
    assert!(species.len() > 1);
    let mut table = "path,order,family,species,split,junk\n".to_owned();
    for (number, row) in rows.iter().enumerate() {
        let others: Vec<&str> = species.iter().copied().filter(|&other| other != row[3]).collect();
        let (split, junk) =
            if number % 2 == 0 { ("query", String::new()) } else { ("gallery", others.join("; ")) };
        table += &format!("{},{split},{junk}\n", row[..4].join(","));
    }
    at.write("data/other.csv", table);
    let config = |more: &str| {
        let levels = "levels = ['order', 'family', 'species']";
        format!("data = {{ kind = 'csv', path = 'data/other.csv', {levels}{more} }}")
    };
    at.write("with.toml", config(""));
    at.write("without.toml", config(", junk_column = 'junk'"));
    let ap = |config: &str| {
        let answer =
            at.akin(&["eval", "run", "--data", config, "--json", "--metrics", "h_ap,ap"]).expect_code(0);
        let report: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
        report["levels"][2]["ap"].as_f64().unwrap()
    };
    assert!(ap("with.toml") < 1.0);
    let evaluated = at.akin(&["eval", "run", "--data", "with.toml"]).expect_code(0);
    assert_eq!(line(&evaluated, "Table 1, here"), None, "the paper says nothing about these data");
    assert!(line(&evaluated, "Table 9, there").unwrap().contains(" (±"), "{}", evaluated.stdout);
    assert_eq!(ap("without.toml"), 1.0, "only positives are left in every ranking");
    at.write("unknown.toml", config(", junk_column = 'split'"));
    at.akin(&["eval", "run", "--data", "unknown.toml"])
        .expect_code(1)
        .expect_stderr("is junk for `query`, which is no species");
}

#[test]
fn training_and_comparison_follow_the_protocol_of_dyml() {
    let at = Workplace::tiny();
    at.write("dyml.toml", tiny(&[]) + "\n[split]\nprotocol = \"dyml\"\n");
    let metrics = ["--set", "eval.metrics=['ap', 'asi', 'recall@1', 'h_ap']"];
    at.akin(&[&["train", "dyml.toml", "--out", "run"], &metrics[..]].concat())
        .expect_code(0)
        .expect_stdout("label set")
        .expect_stdout("average");
    let report = at.json("run/report.json");
    let answer = at.akin(&["eval", "run", "--dyml", "--json"]).expect_code(0);
    let evaluated: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    for metric in ["ap", "asi", "recall@1"] {
        assert_eq!(report["overall"][metric], evaluated["average"][metric], "{metric}");
        let by_level: Vec<f64> =
            (0..3).map(|level| report["levels"][level][metric].as_f64().unwrap()).collect();
        let mean = by_level.iter().sum::<f64>() / 3.0;
        assert!((report["overall"][metric].as_f64().unwrap() - mean).abs() < 1e-12, "{metric}");
    }
    // The run's own config asks for the protocol and its metrics; other options ask for what it does not have.
    let answer = at.akin(&["eval", "run", "--json"]).expect_code(0);
    let own: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    for metric in ["ap", "asi", "recall@1", "h_ap"] {
        assert!(own["average"][metric].is_number(), "{metric}");
        assert_eq!(report["overall"][metric], own["average"][metric], "{metric}");
    }
    assert!(evaluated["average"]["recall@10"].is_number());
    assert!(own["average"]["recall@10"].is_null());
    at.akin(&["eval", "run"]).expect_code(0).expect_stdout("label set").expect_stdout("average");
    at.akin(&["eval", "run", "--relevance", "plain"]).expect_code(0).expect_stdout("all levels");
    let more = ["--losses", "norm_softmax", "--seeds", "0", "--out", "table"];
    at.akin(&[&["compare", "dyml.toml"], &more[..], &metrics[..]].concat())
        .expect_code(0)
        .expect_stdout("average");
    let table = at.json("table/table.json");
    assert_eq!(table["columns"][0]["level"], "average");
    assert!(table["lines"][0]["scores"][0]["mean"].is_number());
}
