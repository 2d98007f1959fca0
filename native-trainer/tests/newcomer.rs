//! The first minutes of a new user: from a folder of photos to a page, and the commands that explain and look.

mod workplace;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use workplace::Workplace;

/// Photos of eight classes in two groups.
fn photos() -> Workplace {
    let at = Workplace::empty();
    for class in 0..8_u8 {
        let folder = at.path(&format!("photos/group {}/class {class}", class % 2));
        fs::create_dir_all(&folder).unwrap();
        for image in 0..4_u8 {
            let colour = image::Rgb([class * 30, image * 40, 128]);
            image::RgbImage::from_pixel(60, 45, colour).save(folder.join(format!("{image}.png"))).unwrap();
        }
    }
    at
}

/// No file is written by hand: `init`, `train`, `serve`.
#[test]
fn three_commands_lead_from_photos_to_a_page() {
    let at = photos();
    at.akin(&["init", "photos"])
        .expect_code(0)
        .expect_stdout("photos.toml")
        .expect_stderr("Found a folder tree with 32 images in 8 folders, 2 levels deep")
        .expect_stderr("train 16 images of 4 classes, test 16 images of 4 classes")
        .expect_stderr("Next `akin train photos.toml`");
    let config = at.read("photos.toml");
    for part in
        ["path = \"photos\"", "levels = [\"group\", \"class\"]", "#best_by = ", "preprocessing.crop = 32"]
    {
        assert!(config.contains(part), "no {part:?} in {config}");
    }
    // Fewer steps than the config has, for a fast test.
    at.akin(&["train", "photos.toml", "--set", "run.steps=2"])
        .expect_code(0)
        .expect_stderr("`akin serve runs/photos` needs a page");

    fs::create_dir(at.path("page")).unwrap();
    at.write("page/index.html", "<!doctype html>");
    let serve = ["serve", "runs/photos", "--port", "0", "--page", "page"];
    for export in [true, false] {
        let mut child = at.command(&serve).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("http://")));
        child.kill().unwrap();
        let said = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
        assert!(address.is_some(), "{said}");
        assert_eq!(said.contains("Exported runs/photos.bundle"), export, "{said}");
    }
    let card = at.read("runs/photos.bundle/README.md");
    for part in ["# photos\n", "| class | 8 |", "HAPPIER", "| all levels | 16 |", "path = \"photos\""] {
        assert!(card.contains(part), "no {part:?} in {card}");
    }
    let row = card.lines().find(|line| line.starts_with("| all levels |")).unwrap();
    assert!(row.contains(" ["), "a score has an interval: {row}");
    assert!(!card.contains(at.folder().to_str().unwrap()), "the card names no folder of the machine: {card}");
    at.akin(&["verify", "runs/photos.bundle"]).expect_code(0);

    let export =
        ["export", "runs/photos", "--out", "runs/photos.bundle", "--overwrite", "--licence", "CC0-1.0"];
    at.akin(&export).expect_code(0);
    at.akin(&serve)
        .expect_code(1)
        .expect_stderr("the bundle runs/photos.bundle was exported with other options")
        .expect_stderr("`akin export runs/photos --out DIR`");
    assert!(at.read("runs/photos.bundle/README.md").contains("CC0-1.0"));
}

#[test]
fn init_overwrites_nothing_and_asks_nobody_without_a_terminal() {
    let at = photos();
    at.akin(&["init"]).expect_code(1).expect_stderr("there is no terminal to ask on");
    at.akin(&["init", "--yes"]).expect_code(1).expect_stderr("`--yes` asks nothing");
    at.write("photos.toml", "mine");
    at.akin(&["init", "photos"]).expect_code(1).expect_stderr("photos.toml already exists");
    assert_eq!(at.read("photos.toml"), "mine");
    at.akin(&["init", "photos", "--overwrite", "--levels", "colour,shade"]).expect_code(0);
    assert!(at.read("photos.toml").contains("levels = [\"colour\", \"shade\"]"));
    at.akin(&["init", "photos", "--out", "other.toml", "--levels", "colour"])
        .expect_code(1)
        .expect_stderr("1 level is given, but the images are 2 folders deep");
    assert!(!at.path("other.toml").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn init_asks_on_a_terminal() {
    let at = photos();
    let line = format!("exec {} init", env!("CARGO_BIN_EXE_akin"));
    at.on_a_terminal(&line, "photos\ncolour, shade\n")
        .expect_code(0)
        .expect_stdout("Which folder holds the images? [.]: ")
        .expect_stdout("What do you call the levels, coarse to fine? [group, class]: ");
    assert!(at.read("photos.toml").contains("levels = [\"colour\", \"shade\"]"));
}

#[test]
fn weights_of_another_backbone_are_refused_before_a_config_is_written() {
    let at = photos();
    let weights = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/backbones/tensors.safetensors");
    let weights = weights.to_str().unwrap();
    at.akin(&["init", "photos", "--backbone", "resnet18", "--weights", weights])
        .expect_code(1)
        .expect_stderr("the weights do not fit");
    assert!(!at.path("photos.toml").exists());
    at.akin(&["init", "photos", "--backbone", "resnet18"]).expect_code(0);
    let config = at.read("photos.toml");
    assert!(config.contains("Raise run.epochs for better results") && !config.contains("images are small"));
    let set = format!("model.weights='{weights}'");
    at.akin(&["config", "check", "photos.toml", "--set", &set])
        .expect_code(1)
        .expect_stderr("the weights do not fit");
}

/// A .safetensors file of a backbone, with NaN for every number.
fn damaged_weights(backbone: &str) -> Vec<u8> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/backbones");
    let fixture = std::fs::read_to_string(fixtures.join(format!("{backbone}.json"))).unwrap();
    let fixture: serde_json::Value = serde_json::from_str(&fixture).unwrap();
    let (mut header, mut end) = (serde_json::Map::new(), 0);
    for (name, shape) in fixture["weights"].as_object().unwrap() {
        let numbers: u64 = shape.as_array().unwrap().iter().map(|side| side.as_u64().unwrap()).product();
        let offsets = [end, end + 4 * numbers];
        header.insert(
            name.clone(),
            serde_json::json!({ "dtype": "F32", "shape": shape, "data_offsets": offsets }),
        );
        end = offsets[1];
    }
    let header = serde_json::to_vec(&header).unwrap();
    let numbers = f32::NAN.to_le_bytes().repeat(end as usize / 4);
    [&(header.len() as u64).to_le_bytes()[..], &header, &numbers].concat()
}

#[test]
fn weights_that_are_not_finite_are_blamed_and_not_the_learning_rate() {
    let at = photos();
    at.write("damaged.safetensors", damaged_weights("mobilenet_v1_quarter"));
    let init = ["init", "photos", "--backbone", "mobilenet_v1_quarter", "--weights", "damaged.safetensors"];
    let answer = at.akin(&init).expect_code(1).expect_stderr("are not all finite numbers");
    let answer = answer.expect_stderr("hint: the file is damaged");
    assert!(!answer.stderr.contains("rate"), "{}", answer.stderr);
}

#[test]
fn config_show_has_the_defaults_of_the_kinds_that_are_chosen() {
    let at = photos();
    at.akin(&["init", "photos"]).expect_code(0);
    let shown = at.akin(&["config", "show", "photos.toml"]).expect_code(0).stdout;
    for setting in [
        "images_per_class = 4\nkind = \"classes\"",
        "crop = \"area\"",
        "protocol = \"whole\"",
        "train_is_gallery = false",
        "rule.beta_2 = 0.999",
    ] {
        let lines: Vec<String> =
            shown.lines().map(|line| line.split("  # ").next().unwrap().trim_end().into()).collect();
        assert!(lines.join("\n").contains(setting), "no {setting:?} in {shown}");
    }
    let steps = ["config", "show", "photos.toml", "--set", "schedule.curve={kind='steps',milestones=[2]}"];
    at.akin(&steps).expect_code(0).expect_stdout("curve.gamma = 0.1");
    let changed = at.akin(&["config", "show", "photos.toml", "--changed"]).expect_code(0).stdout;
    assert!(!changed.contains("default") && !changed.contains("protocol"), "{changed}");
}

#[test]
fn settings_that_never_take_effect_are_a_warning() {
    let at = photos();
    at.akin(&["init", "photos"]).expect_code(0);
    let sets = ["--set", "run.epochs=3", "--set", "schedule.curve={kind='steps',milestones=[2, 5]}"];
    let warning =
        "warning: the last of schedule.curve.milestones is 5 epochs, but the training ends after 3 epochs";
    at.akin(&[&["config", "check", "photos.toml"][..], &sets].concat()).expect_code(0).expect_stderr(warning);
    at.akin(&[&["train", "photos.toml", "--dry-run"][..], &sets].concat())
        .expect_code(0)
        .expect_stderr(warning);
}

#[test]
fn missing_data_and_missing_weights_are_named_together() {
    let at = photos();
    at.akin(&["init", "photos"]).expect_code(0);
    let missing = ["--set", "data.path=nowhere", "--set", "model.weights=neither.pth"];
    for more in [&[][..], &["--dry-run"]] {
        at.akin(&[&["train", "photos.toml"][..], &missing, more].concat())
            .expect_code(1)
            .expect_stderr("nowhere")
            .expect_stderr("neither.pth");
    }
}

#[test]
fn init_of_a_csv_file_finds_its_levels() {
    let at = Workplace::empty();
    let labels = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/data/labels.csv");
    at.akin(&["init", labels, "--out", "birds.toml"])
        .expect_code(0)
        .expect_stderr("Found a CSV file with 12 images");
    at.akin(&["config", "check", "birds.toml"]).expect_code(0).expect_stdout("family, species");
    at.akin(&["config", "check", "birds.toml", "--set", "data.levels=['familly','species']"])
        .expect_code(1)
        .expect_stderr("has no column `familly`")
        .expect_stderr("did you mean `family`?");
}

#[test]
fn init_says_what_it_leaves_out_and_refuses_a_split_that_cannot_be_evaluated() {
    let at = photos();
    let images: Vec<String> = (0..32)
        .map(|number| (number / 4, number % 4))
        .map(|(class, image)| format!("photos/group {}/class {class}/{image}.png", class % 2))
        .collect();
    let table = |classes: &[&str]| -> String {
        let rows = images
            .iter()
            .enumerate()
            .map(|(number, image)| format!("{image},{},Earth,{number}\n", classes[number % classes.len()]));
        "path,class,planet,number\n".to_owned() + &rows.collect::<String>()
    };
    at.write("four.csv", table(&["a", "b", "c", "d"]));
    at.akin(&["init", "four.csv"]).expect_code(0).expect_stderr(
        "Note left out the columns `planet` (one value), `number` (another value for each image)",
    );
    // A label that is missing, and a column that says the same as another.
    let gaps = table(&["a", "b", "c", "d"]).replacen("Earth", "", 2).replacen("planet", "variety", 1);
    at.write("gaps.csv", gaps);
    at.akin(&["init", "gaps.csv"])
        .expect_code(0)
        .expect_stderr("`variety` (2 of 32 cells are without a label, the first in gaps.csv, row 2)");
    let same = |line: &str| format!("{line},{}\n", line.split(',').nth(1).unwrap().to_uppercase());
    let same: String = table(&["a", "b", "c", "d"]).lines().map(same).collect();
    at.write("same.csv", same);
    at.akin(&["init", "same.csv"])
        .expect_code(0)
        .expect_stderr("`CLASS` (the same classes as `class`, one for one)");
    at.write("three.csv", table(&["a", "b", "c"]));
    at.akin(&["init", "three.csv"])
        .expect_code(1)
        .expect_stderr("have only 1 class")
        .expect_stderr("at least 4 classes");
    assert!(!at.path("three.toml").exists());

    // An image that is less deep than the others.
    fs::create_dir(at.path("photos/alone")).unwrap();
    fs::copy(at.path(&images[0]), at.path("photos/alone/0.png")).unwrap();
    at.akin(&["init", "photos", "--out", "deep.toml"])
        .expect_code(0)
        .expect_stderr("Note 1 image is 1 folder deep, and the classes below are unknown: data.missing");
}

#[test]
fn init_says_which_labels_are_missing_and_fills_or_qualifies_them_if_asked() {
    let at = photos();
    let images: Vec<_> = walkdir::WalkDir::new(at.path("photos"))
        .sort_by_file_name()
        .into_iter()
        .filter_map(|entry| entry.ok().filter(|entry| entry.path().is_file()))
        .map(|entry| entry.path().strip_prefix(at.folder()).unwrap().display().to_string())
        .collect();
    let table = |labels: [&str; 8]| {
        let rows = images.iter().zip(labels).map(|(image, labels)| format!("{image},{labels}\n"));
        format!("path,kind,variety,split\n{}", rows.collect::<String>())
    };
    let good =
        ["Apple,Gala", "Apple,Fuji", "Pear,Gala", "Pear,Anjou"].map(|labels| format!("{labels},train"));
    let init = |labels: [&str; 4], more: &[&str]| {
        let test = labels.map(|labels| format!("{labels},test"));
        let rows: Vec<&str> = good.iter().chain(&test).map(String::as_str).collect();
        at.write("labels.csv", table(rows.try_into().unwrap()));
        let init = ["init", "labels.csv", "--levels", "kind,variety", "--overwrite"];
        at.akin(&[&init[..], more].concat())
    };
    let whole = ["Plum,Opal", "Plum,Opal", "Plum,Avalon", "Plum,Avalon"];
    init(whole, &[]).expect_code(1).expect_stderr("`akin init --qualify` does");
    init(whole, &["--qualify"]).expect_code(0);
    assert!(at.read("labels.toml").contains("\nqualify = true\n"));
    let missing = ["Plum,", "Plum,Opal", "Plum,Avalon", "Plum,Avalon"];
    init(missing, &["--qualify"]).expect_code(0).expect_stderr("Note 1 image has no known variety");
    init(missing, &["--qualify", "--missing", "refuse"])
        .expect_code(1)
        .expect_stderr("`akin init --missing unknown` does");
    init(missing, &["--qualify", "--missing", "parent"]).expect_code(0);
    assert!(at.read("labels.toml").contains("\nmissing = \"parent\"\n"));
    at.akin(&["init", "photos", "--qualify"]).expect_code(1).expect_stderr("is for a CSV or Parquet file");
}

#[test]
fn config_show_says_where_each_value_comes_from() {
    let at = photos();
    at.write("c.toml", CONFIG);
    let answer = at.akin(&["config", "show", "c.toml", "--set", "optimizer.lr_head=0.25"]).expect_code(0);
    for (setting, origin) in [
        ("epochs = 3", "line 2"),
        ("lr_head = 0.25", "--set"),
        ("lambda = 0.5", "line 14"),
        ("seed = 0", "default"),
        ("images_per_class = 4", "default"),
    ] {
        let line = answer.stdout.lines().find(|line| line.starts_with(setting)).expect(setting);
        assert!(line.ends_with(&format!("# {origin}")), "{line}");
    }
    // What is shown is a config itself.
    at.write("shown.toml", &answer.stdout);
    let again = at.akin(&["config", "show", "shown.toml", "--json"]).expect_code(0);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(
        (&again["optimizer.lr_head"]["value"], &again["optimizer.lr_head"]["from"]),
        (&0.25.into(), &"file".into())
    );
    let changed = at.akin(&["config", "show", "c.toml", "--changed"]).expect_code(0).stdout;
    assert!(changed.contains("epochs") && !changed.contains("default"), "{changed}");
    let published = "[published]\npaper = 'ramzi2022'\nresults = [{ place = 'Table 1', row = 'HAPPIER', scores = { h_ap = 42.8 } }]\n";
    at.write("c.toml", CONFIG.to_owned() + published);
    let shown = at.akin(&["config", "show", "c.toml"]).expect_code(0).stdout;
    assert!(shown.starts_with("[run]") && shown.find("[published]") > shown.find("[eval]"), "{shown}");
}

const CONFIG: &str = "[run]
epochs = 3
[data]
kind = 'folder'
path = 'photos'
levels = ['group', 'class']
[split]
test_fraction = 0.5
[model]
backbone = { kind = 'small_resnet' }
head = { dimension = 8 }
[loss]
kind = 'happier'
lambda = 0.5
";

#[test]
fn config_check_finds_what_is_missing_before_the_training() {
    let at = photos();
    at.write("c.toml", CONFIG);
    at.akin(&["config", "check", "c.toml"]).expect_code(0).expect_stdout("8 dimensions, cosine");
    for (set, message) in [
        ("data.path=nowhere", "data.path is "),
        ("model.weights=nowhere.pth", "model.weights is "),
        ("model.preprocessing.crop=1", "images of at least"),
        ("run.epoch=1", "unknown key"),
    ] {
        at.akin(&["config", "check", "c.toml", "--set", set]).expect_code(1).expect_stderr(message);
    }
}

#[test]
fn search_finds_the_picture_itself_first() {
    let at = photos();
    at.write("tiny.toml", CONFIG);
    at.akin(&["train", "tiny.toml", "--set", "run.steps=1", "--out", "run"]).expect_code(0);
    at.akin(&["export", "run", "--out", "bundle", "--no-maps"]).expect_code(0);
    let (bundle, image) = ("bundle", "photos/group 0/class 0/0.png");
    let answer = at.akin(&["search", bundle, image, "--json", "-k", "3"]).expect_code(0);
    let found: Value = serde_json::from_str(&answer.stdout).unwrap();
    let scores: Vec<f64> =
        found["items"].as_array().unwrap().iter().map(|item| item["score"].as_f64().unwrap()).collect();
    assert_eq!(scores.len(), 3);
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    assert_eq!(found["levels"], serde_json::json!(["group", "class"]));
    let answer = at.akin(&["search", bundle, image, "--pictures"]).expect_code(0);
    assert!(!answer.stdout.contains('\u{1b}'), "a pipe gets no codes unless they are asked for");
    let answer = answer.expect_stderr("--pictures=blocks writes their colour codes");
    assert!(answer.stdout.contains("\nrank"), "{}", answer.stdout);
    // A few pictures of random labels promise nothing.
    assert!(answer.stdout.starts_with("Nothing is sure; probably "), "{}", answer.stdout);
    assert!(
        answer.stderr.contains("too small or too hard to be sure of anything at 95 %"),
        "{}",
        answer.stderr
    );
    let answer = at.akin(&["search", bundle, image, "--pictures=blocks"]).expect_code(0);
    assert!(answer.stdout.contains("\nrank"), "{}", answer.stdout);
    assert!(answer.stdout.contains("\u{1b}[38;2;"), "{}", answer.stdout);
    at.akin(&["search", bundle, image, "--encoder", "tni"])
        .expect_code(1)
        .expect_stderr("did you mean `tiny`?");
}

#[test]
fn classify_says_what_many_images_show_by_run_and_by_bundle() {
    let at = photos();
    at.write("tiny.toml", CONFIG);
    at.akin(&["train", "tiny.toml", "--set", "run.steps=1", "--out", "run"]).expect_code(0);
    at.akin(&["export", "run", "--out", "bundle", "--no-maps"]).expect_code(0);
    at.write("broken/a.png", "no picture");
    let folder = "photos/group 0";
    let json = |model: &str, more: &[&str]| -> Vec<Value> {
        let args = [&["classify", model, folder, "--format", "json"], more].concat();
        serde_json::from_str(&at.akin(&args).expect_code(0).stdout).unwrap()
    };
    let (by_run, by_bundle) = (json("run", &[]), json("bundle", &[]));
    assert_eq!(by_run.len(), by_bundle.len());
    for (row, other) in by_run.iter().zip(&by_bundle) {
        assert_eq!(row["path"], other["path"]);
        let levels = row["answer"]["levels"].as_array().unwrap();
        let certainties: Vec<f64> = levels.iter().map(|level| level["certainty"].as_f64().unwrap()).collect();
        assert!(certainties.is_sorted_by(|a, b| a >= b), "{certainties:?}");
        assert_eq!(row["answer"]["levels"], other["answer"]["levels"], "both measure the same gallery");
        assert!(row["nearest"]["name"].as_str().unwrap().ends_with(".png"));
    }
    let text = at.akin(&["classify", "bundle", folder, "--format", "csv"]).expect_code(0).stdout;
    assert_eq!(csv::Reader::from_reader(text.as_bytes()).records().count(), by_run.len());
    at.akin(&["classify", "bundle", folder, "--promise", "50"]).expect_code(0).expect_stderr("Classified");

    at.akin(&["classify", "run", folder, "broken"]).expect_code(1).expect_stderr("a.png");
    let answer = at.akin(&["classify", "run", folder, "broken", "--skip", "--format", "json"]).expect_code(0);
    let rows: Vec<Value> = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(rows.len(), by_run.len());
    answer.expect_stderr("skipped").expect_stderr("1 image could not be read");
    at.akin(&["classify", "run", folder, "--encoder", "tiny"])
        .expect_code(1)
        .expect_stderr("`--encoder` is for a bundle");
    at.akin(&["classify", "run", folder, "--promise", "99.9"]).expect_code(0);
    at.akin(&["classify", "run", folder, "--promise", "100"]).expect_code(2).expect_stderr("50 to 99.9 %");
}

#[test]
fn eval_measures_how_far_the_answers_hold() {
    let at = photos();
    at.write("tiny.toml", CONFIG);
    at.akin(&["train", "tiny.toml", "--set", "run.steps=1", "--out", "run"]).expect_code(0);
    let answer = at.akin(&["eval", "run", "--certainty", "--json"]).expect_code(0);
    let found: Value = serde_json::from_str(&answer.stdout).unwrap();
    let rows = found["certainty"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 12, "three ways at four promises");
    for row in rows {
        let reached: u64 =
            row["reached"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).sum();
        assert_eq!(reached, row["queries"].as_u64().unwrap());
    }
    at.akin(&["eval", "run", "--certainty"])
        .expect_code(0)
        .expect_stdout("answers by")
        .expect_stdout("mean level");
}

#[test]
fn the_doctor_finds_a_device_and_exits_with_0() {
    let at = Workplace::empty();
    let answer = at.akin(&["doctor", "--json"]).expect_code(0);
    let findings: Value = serde_json::from_str(&answer.stdout).unwrap();
    let state = |name: &str| {
        let of = |finding: &&Value| finding["name"] == name;
        findings.as_array().unwrap().iter().find(of).expect(name)["state"].clone()
    };
    assert_eq!((state("device cpu"), state("akin")), ("ok".into(), "ok".into()));
    at.akin(&["doctor"]).expect_code(0).expect_stdout("device cpu");
}

/// Records are framed by their lengths, which end where the file ends.
#[test]
fn a_training_writes_event_files_on_request() {
    let at = photos();
    at.write("c.toml", CONFIG);
    at.akin(&["train", "c.toml", "--set", "run.steps=12", "--log", "tensorboard", "--out", "run"])
        .expect_code(0);
    let files =
        fs::read_dir(at.path("run")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let events: Vec<String> = files.filter(|name| name.contains("tfevents")).collect();
    assert_eq!(events.len(), 1, "{events:?}");
    let bytes = at.bytes(&format!("run/{}", events[0]));
    let (mut place, mut records) = (0, 0);
    while place < bytes.len() {
        let length = u64::from_le_bytes(bytes[place..place + 8].try_into().unwrap()) as usize;
        place += 8 + 4 + length + 4;
        records += 1;
    }
    assert_eq!(place, bytes.len());
    // The version, some steps and the evaluation at the end.
    assert!(records >= 3, "{records} records");
    let has = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("brain.Event:2") && has("train/loss") && has("evaluation/class/ap"));
    assert!(at.read("run/config.toml").contains("log = \"tensorboard\""));
    at.akin(&["verify", "run"]).expect_code(0);
}

#[test]
fn shells_and_manual_pages_know_every_command() {
    let at = Workplace::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        at.akin(&["completions", shell]).expect_code(0).expect_stdout("biomorphs");
    }
    at.akin(&["man", "man1"]).expect_code(0);
    for page in ["akin.1", "akin-train.1", "akin-data-check.1"] {
        assert!(at.read(&format!("man1/{page}")).contains(".TH"), "{page}");
    }
    assert!(!at.path("man1/akin-help.1").exists());
    at.akin(&["man", "man1"]).expect_code(1).expect_stderr("already exists");
    at.akin(&["man", "man1", "--overwrite"]).expect_code(0);
}
