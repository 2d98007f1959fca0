//! Comparisons and frozen backbones, tested through the binary.

mod workplace;

use std::fs;
#[cfg(target_os = "linux")]
use std::{
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::Value;
use workplace::{Answer, Workplace, tiny};

/// What makes the config of a training a recipe.
const COMPARE: &str = r#"
[compare]
losses = ["norm_softmax", "happier"]
seeds = [0, 1]
"#;

impl Workplace {
    fn new() -> Self {
        Self::with("")
    }

    /// A workplace whose recipe ends with these lines.
    fn with(more: &str) -> Self {
        Self::drawn(&(tiny(&[]) + COMPARE + more), "16")
    }

    fn compare(&self, more: &[&str]) -> Answer {
        self.akin(&[&["compare", "tiny.toml", "--out", "out"], more].concat())
    }
}

#[test]
fn a_comparison_trains_each_run_once_and_writes_its_table_in_every_format() {
    let at = Workplace::new();
    let answer = at.compare(&[]).expect_code(0);
    assert_eq!(answer.trainings(), 4);
    for row in ["untrained", "fine-grained", "NormSoftmax", "hierarchical", "HAPPIER"] {
        assert!(answer.stdout.lines().any(|line| line.starts_with(row)), "{row} in {}", answer.stdout);
    }
    let table = at.json("out/table.json");
    let names: Vec<&Value> = table["lines"].as_array().unwrap().iter().map(|line| &line["name"]).collect();
    assert_eq!(names, ["norm_softmax", "happier"]);
    assert_eq!(table["columns"].as_array().unwrap().len(), 7, "R@1, AP at three levels, H-AP, ASI, NDCG");
    for line in table["lines"].as_array().unwrap() {
        assert_eq!(line["scores"][0]["values"].as_array().unwrap().len(), 2);
        assert!(line["seconds_per_step"]["mean"].as_f64().unwrap() > 0.0);
    }
    let in_report = at.json("out/happier/seed-1/report.json")["overall"]["h_ap"].clone();
    assert_eq!(table["lines"][1]["scores"][4]["values"][1], in_report);
    assert!(at.read("out/table.md").contains("- Command: `akin compare tiny.toml --out out`"));
    assert!(at.read("out/table.tex").contains("\\multicolumn{8}{l}{\\emph{hierarchical}}"));
    assert_eq!(at.read("out/table.csv").lines().filter(|line| !line.starts_with('#')).count(), 4);

    // A report takes the directory of a comparison for its trainings.
    at.akin(&["report", "out", "--bootstrap", "0", "--queries", "0"]).expect_code(0);
    let report = at.read("report.html");
    assert!(report.contains("<caption>Scores in percent</caption>"), "the table over all seeds");
    for run in
        ["out/norm_softmax/seed-0", "out/norm_softmax/seed-1", "out/happier/seed-0", "out/happier/seed-1"]
    {
        assert!(report.contains(run), "{run}");
    }
    // The run of a training that failed when it was begun again is an earlier one.
    at.write("out/happier/seed-1.outcome.json", "{}");
    at.akin(&["report", "out", "--bootstrap", "0", "--queries", "0", "--overwrite"])
        .expect_code(0)
        .expect_stderr("left out 1 training that is not finished, or failed: out/happier/seed-1");
    fs::remove_file(at.path("out/happier/seed-1.outcome.json")).unwrap();

    let again = at.compare(&["--format", "json"]).expect_code(0);
    assert_eq!(again.trainings(), 0);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(again["lines"], table["lines"]);

    fs::remove_dir_all(at.path("out/happier/seed-1")).unwrap();
    assert_eq!(at.compare(&[]).expect_code(0).expect_stderr("happier, seed 1").trainings(), 1);
    assert_eq!(at.json("out/table.json")["lines"][1]["scores"][4]["values"][1], in_report, "the same result");
}

#[test]
fn a_run_with_another_config_is_replaced_only_with_overwrite() {
    let at = Workplace::new();
    let one = ["--losses", "norm_softmax", "--seeds", "0"];
    at.compare(&one).expect_code(0);
    let changed = [&one[..], &["--set", "optimizer.lr_head=0.1"]].concat();
    at.compare(&changed)
        .expect_code(1)
        .expect_stderr("differs in optimizer.lr_head")
        .expect_stderr("--overwrite");
    let replaced = at.compare(&[&changed[..], &["--overwrite"]].concat()).expect_code(0);
    assert_eq!(replaced.trainings(), 1);
}

/// Two rates for every row, and a temperature for a row without proxies.
const TUNED: &str = r#"
tune = [
    { key = "optimizer.lr_head", values = [1e-3, 1e-2] },
    { key = "optimizer.lr_proxies", values = [1e-2, 1e-1] },
]
validation_fraction = 0.5

[compare.loss.smooth_ap]
tune = [{ key = "loss.temperature", values = [0.1, 0.01] }]
"#;

#[test]
fn settings_are_tuned_one_after_another_without_a_look_at_the_evaluation_splits() {
    let at = Workplace::with(TUNED);
    let arguments =
        ["--losses", "norm_softmax,smooth_ap", "--seeds", "0", "--set", "sampler.classes_per_batch=2"];
    let answer = at.compare(&arguments).expect_code(0);
    // Each row tries two values and then one more: the other one is the recipe's own.
    assert_eq!(answer.trainings(), 2 * (2 + 1) + 2);
    assert!(answer.stdout.contains("tuning runs"), "{}", answer.stdout);
    // Of two values whose scores differ each is an edge.
    answer.expect_stderr("at the edge of its grid for").expect_stderr("add values to `tune`");
    let table = at.json("out/table.json");
    let budget = table["budget"].as_str().unwrap();
    assert!(budget.contains("optimizer.lr_head (2 values)"), "{budget}");
    assert!(budget.contains("optimizer.lr_proxies (2 values, if the loss has proxies)"), "{budget}");
    assert!(budget.contains("settings of its own"), "{budget}");

    for (line, second) in table["lines"].as_array().unwrap().iter().zip(["norm_softmax", "smooth_ap"]) {
        assert_eq!(line["name"], second);
        let trials = line["trials"].as_array().unwrap();
        let score = |place: usize| trials[place]["score"].as_f64().unwrap();
        let setting = |settings: &Value| match second {
            "norm_softmax" => settings["optimizer"]["lr_proxies"].as_f64(),
            _ => settings["loss"]["temperature"].as_f64(),
        };
        let best_rate = usize::from(score(1) > score(0));
        let rate = [1e-3, 1e-2][best_rate];
        assert_eq!(line["chosen"]["optimizer"]["lr_head"], rate, "{line}");
        let at_edge =
            line["at_edge"].as_array().is_some_and(|keys| keys.contains(&"optimizer.lr_head".into()));
        assert_eq!(at_edge, score(0) != score(1), "{line}");
        assert_eq!(trials[2]["settings"]["optimizer"]["lr_head"], rate, "tried with the best rate: {line}");
        let other = if score(2) > score(best_rate) { [1e-1, 0.1] } else { [1e-2, 0.01] };
        assert_eq!(setting(&line["chosen"]), Some(other[usize::from(second == "smooth_ap")]), "{line}");
        assert_eq!(
            line["chosen"]["optimizer"].get("lr_proxies").is_some(),
            second == "norm_softmax",
            "{line}"
        );

        // Every trial has a run, on half of the training classes and with a seed of its own.
        let folders = fs::read_dir(at.path("out").join(second)).unwrap().map(|entry| entry.unwrap().path());
        let runs: Vec<_> = folders.filter(|path| path.join("report.json").is_file()).collect();
        let tuning: Vec<_> = runs.iter().filter(|path| !path.ends_with("seed-0")).collect();
        assert_eq!(tuning.len(), trials.len());
        for run in tuning {
            let config = fs::read_to_string(run.join("config.toml")).unwrap();
            assert!(config.contains("validation_fraction = 0.5") && config.contains("seed = 1"), "{config}");
            let report: Value =
                serde_json::from_str(&fs::read_to_string(run.join("report.json")).unwrap()).unwrap();
            let ap = &report["levels"][2]["ap"];
            assert!(trials.iter().any(|trial| trial["score"] == *ap), "{ap} in {trials:?}");
        }
    }

    assert_eq!(at.compare(&arguments).expect_code(0).trainings(), 0);
}

#[test]
fn settings_that_cannot_be_tuned_are_refused() {
    for (tune, why) in [
        ("[{ key = \"optimizer.lr_head\", values = [] }]", "gives `optimizer.lr_head` no values"),
        ("[{ key = \"data.path\", values = [\"a\"] }]", "`data.path`, which all rows share"),
        ("[{ key = \"loss.lamda\", values = [1] }]", "unknown key `lamda`"),
        (
            "[{ key = \"loss.lambda\", values = [0.1] }, { key = \"loss.lambda\", values = [0.2] }]",
            "tunes `loss.lambda` twice",
        ),
    ] {
        let at = Workplace::with(&format!("tune = {tune}"));
        let answer =
            at.compare(&["--losses", "happier"]).expect_code(1).expect_stderr(why).expect_stderr("hint: ");
        assert_eq!(answer.trainings(), 0, "{tune}");
    }
}

#[test]
fn a_training_that_fails_does_not_stop_the_others() {
    let at = Workplace::with(
        "
[compare.loss.wild]
label = \"Wild\"
config.loss.kind = \"norm_softmax\"
config.optimizer = { lr_backbone = 1e30, lr_head = 1e30 }
",
    );
    let answer = at.compare(&["--losses", "wild,happier", "--seeds", "0"]).expect_code(1);
    let answer = answer.expect_stderr("1 training failed: wild, seed 0: ");
    assert!(answer.stdout.lines().any(|line| line.starts_with("HAPPIER")), "{}", answer.stdout);
    assert!(answer.stdout.lines().any(|line| line.starts_with("Failed: Wild")), "{}", answer.stdout);
    let outcome = at.json("out/wild/seed-0.outcome.json");
    assert_eq!(outcome["outcome"], "failed");
    assert!(answer.stdout.contains(outcome["message"].as_str().unwrap()), "{outcome}");
    assert!(!at.path("out/happier/seed-0.outcome.json").exists(), "only failed trainings leave one");
}

#[test]
fn rows_that_cannot_be_trained_are_refused_before_any_training() {
    let at = Workplace::with(
        "
[compare.loss.zero]
config.loss = { kind = \"sum\", terms = [{ weight = 0, loss = { kind = \"happier\" } }] }
[compare.loss.cold]
config.loss = { kind = \"norm_softmax\", temperature = 0 }
[compare.loss.negative]
config.loss = { kind = \"hap_surrogate\", relevance = { kind = \"hierarchical_ap\", alpha = -1 } }
[compare.loss.level]
config.loss = { kind = \"levels\", loss = { kind = \"norm_softmax\" }, weights = [1, 1, 1, 1] }
[compare.loss.other_data]
config.loss.kind = \"happier\"
config.data.path = \"other.csv\"
",
    );
    for (losses, why) in [
        ("hapier", "did you mean `happier`?"),
        ("happier,happier", "the loss `happier` is named twice"),
        ("zero", "sum to 0"),
        ("cold", "temperature"),
        ("negative", "alpha of the relevance is -1"),
        ("level", "4 weights were given for a loss over"),
        ("other_data", "changes [data]"),
    ] {
        let answer =
            at.compare(&["--losses", losses]).expect_code(1).expect_stderr(why).expect_stderr("hint: ");
        assert_eq!(answer.trainings(), 0, "{losses}");
        assert!(!at.path("out").exists(), "{losses}");
    }
    at.compare(&["--seeds", "1,1"]).expect_code(1).expect_stderr("the seed `1` is named twice");
    let few = at.compare(&["--paired", "happier"]).expect_code(1);
    assert_eq!(few.expect_stderr("a paired test over 2 seeds says nothing").trainings(), 0);
    let unknown = at.compare(&["--paired", "hapier", "--seeds", "0,1,2"]).expect_code(1);
    unknown.expect_stderr("`--paired hapier` names no row").expect_stderr("did you mean `happier`?");
}

#[test]
fn the_features_of_a_frozen_backbone_are_computed_once() {
    let at = Workplace::new();
    let frozen = [
        "--set",
        "model.freeze_backbone=true",
        "--set",
        "model.feature_cache=features",
        "--set",
        "loss.kind=norm_softmax",
    ];
    let train = |run: &str, more: &[&str]| {
        at.akin(&[&["train", "tiny.toml", "--out", run], &frozen[..], more].concat())
    };
    train("one", &[]).expect_code(0).expect_stderr("Computed the features of 48 images");
    let again = train("two", &[]).expect_code(0);
    assert!(!again.stderr.contains("Computed"), "{}", again.stderr);
    assert_eq!(at.json("one/report.json"), at.json("two/report.json"));

    // Features of all classes serve a training on some of them, and stay in the file.
    let fewer = ["--set", "split.validation_fraction=0.5", "--set", "sampler.classes_per_batch=2"];
    for (run, more) in [("some", &fewer[..]), ("all", &[])] {
        let answer = train(run, more).expect_code(0);
        assert!(!answer.stderr.contains("Computed"), "{run}: {}", answer.stderr);
    }

    // A picture that has changed gets new features, even where its size is the same.
    let table = at.read("data/labels.csv");
    let picture = format!("data/{}", table.lines().nth(1).unwrap().split(',').next().unwrap());
    let kept = at.bytes(&picture);
    at.write(&picture, vec![0; kept.len()]);
    train("spoilt", &[]).expect_code(0).expect_stderr("Outdated features").expect_stderr("Skipped");
    // A picture that can be read again gets its features.
    at.write(&picture, &kept);
    train("mended", &[]).expect_code(0).expect_stderr("Computed the features of 48 images");
    let whole = at.bytes("features");
    at.write("features", &whole[..whole.len() - 4]);
    train("cut", &[]).expect_code(0).expect_stderr("Damaged features").expect_stderr("Computed the features");

    // Evaluation from the pictures gives the same scores: the backbone has not changed.
    let later = at.akin(&["eval", "one", "--json"]).expect_code(0).stdout;
    let later: Value = serde_json::from_str(&later).unwrap();
    let (now, then) = (&later["overall"]["h_ap"], &at.json("one/report.json")["overall"]["h_ap"]);
    assert!((now.as_f64().unwrap() - then.as_f64().unwrap()).abs() < 1e-6, "{now} {then}");

    let other = train("three", &["--seed", "1"]).expect_code(0);
    other.expect_stderr("Outdated features").expect_stderr("Computed the features");
    train("five", &["--set", "augment.flip=false"])
        .expect_code(0)
        .expect_stderr("warning: augment is set, but model.freeze_backbone is set");
    at.write("features", "no features");
    train("four", &[]).expect_code(1).expect_stderr("is not a feature cache");
}

#[test]
fn lists_show_losses_recipes_and_sources() {
    let at = Workplace::new();
    assert!(at.akin(&["list", "losses"]).expect_code(0).stdout.contains("\nhappier "));
    let recipes: Value =
        serde_json::from_str(&at.akin(&["list", "recipes", "--json"]).expect_code(0).stdout).unwrap();
    for recipe in recipes.as_array().unwrap() {
        let name = recipe["recipe"].as_str().unwrap();
        let shown = at.akin(&["list", "recipes", "--show", name]).expect_code(0).stdout;
        assert!(shown.contains("[data]"), "{name}");
    }
    assert!(
        at.akin(&["list", "sources", "--bibtex"]).expect_code(0).stdout.contains("@inproceedings{ramzi2022,")
    );
    // A built-in recipe is found by its name, and its data in the current directory.
    at.akin(&["data", "check", "biomorphs"]).expect_code(0);
}

/// The commands that `--cells` lists for a comparison in `folder`.
fn cells(at: &Workplace, folder: &str, more: &[&str]) -> Vec<String> {
    let listed = at.akin(&[&["compare", "tiny.toml", "--out", folder, "--cells"], more].concat());
    listed.expect_code(0).stdout.lines().map(str::to_owned).collect()
}

/// Runs a command that `--cells` listed.
fn run(at: &Workplace, command: &str) -> Answer {
    let words: Vec<&str> = command.split(' ').collect();
    assert_eq!(words[0], "akin");
    at.akin(&words[1..])
}

/// The rows of a table without what differs from machine to machine.
fn rows(at: &Workplace, folder: &str) -> Value {
    let mut rows = at.json(&format!("{folder}/table.json"))["lines"].take();
    for row in rows.as_array_mut().unwrap() {
        for measured in ["seconds_per_step", "peak_memory_bytes"] {
            row.as_object_mut().unwrap().remove(measured);
        }
    }
    rows
}

#[test]
fn cells_that_are_trained_one_by_one_give_the_same_table_digit_for_digit() {
    let at = Workplace::with(TUNED);
    let more =
        ["--losses", "norm_softmax,smooth_ap", "--seeds", "0,2", "--set", "sampler.classes_per_batch=2"];
    at.compare(&more).expect_code(0);

    let mut lists = Vec::new();
    loop {
        let commands = cells(&at, "parts", &more);
        if commands.is_empty() {
            break;
        }
        // The last first: nothing depends on the order.
        for command in commands.iter().rev() {
            assert_eq!(run(&at, command).expect_code(0).trainings(), 1, "{command}");
        }
        lists.push(commands.len());
    }
    // Two rates for each row, then the other setting with the best rate, of which one value is the recipe's own, and then
    // the seeds.
    assert_eq!(lists, [4, 2, 4]);
    let table = at.akin(&[&["compare", "tiny.toml", "--out", "parts"], &more[..]].concat()).expect_code(0);
    assert_eq!(table.trainings(), 0);
    assert_eq!(rows(&at, "parts"), rows(&at, "out"));

    let all = [&["compare", "tiny.toml", "--out", "parts", "--cells", "--json"], &more[..]].concat();
    let all: Value = serde_json::from_str(&at.akin(&all).expect_code(0).stdout).unwrap();
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), 2 * (2 + 2) + 2 * 2);
    assert!(all.iter().all(|cell| cell["state"] == "done"), "{all:?}");
    let again = run(&at, all[11]["command"].as_str().unwrap()).expect_code(0);
    assert_eq!(again.expect_stderr("smooth_ap, seed 2").trainings(), 0, "it is done");
}

#[test]
fn a_cell_waits_for_those_by_whose_results_its_settings_are_chosen() {
    let at = Workplace::with(TUNED);
    let more = ["--losses", "smooth_ap", "--seeds", "0", "--set", "sampler.classes_per_batch=2"];
    let cell = |number: &str| at.compare(&[&["--cell", number], &more[..]].concat());
    cell("3").expect_code(1).expect_stderr("waits for the cells 1, 2,");
    cell("5").expect_code(1).expect_stderr("waits for the cells 1, 2, 3, 4,");
    cell("6").expect_code(1).expect_stderr("there is no cell 6: this comparison has 5 cells");
    cell("1").expect_code(0);
    cell("3").expect_code(1).expect_stderr("waits for cell 2,");
}

#[cfg(target_os = "linux")]
#[test]
fn a_training_for_tuning_that_is_killed_chooses_no_settings() {
    let at = Workplace::with(TUNED);
    let command = |out: &'static str| {
        let more = ["--losses", "smooth_ap", "--seeds", "0", "--set", "sampler.classes_per_batch=2"];
        [&["compare", "tiny.toml", "--out", out], &more[..]].concat()
    };
    let stopped = at.with_a_killed_training(&command("out")).expect_code(1);
    assert_eq!(stopped.trainings(), 1);
    stopped.expect_stderr("failed: the process was killed").expect_stderr("run the same command again");
    assert!(!at.path("out/table.json").exists());
    at.akin(&command("out")).expect_code(0);
    at.akin(&command("straight")).expect_code(0);
    let [table, straight] = ["out", "straight"].map(|out| at.json(&format!("{out}/table.json")));
    assert_eq!(table["lines"][0]["scores"], straight["lines"][0]["scores"]);
}

#[test]
fn a_cell_that_fails_is_listed_again_and_holds_nothing_up() {
    let at = Workplace::with(
        "tune = [{ key = \"optimizer.lr_head\", values = [1e30, 1e-2] }]
validation_fraction = 0.5
[compare.loss.wild]
config.loss.kind = \"norm_softmax\"
config.optimizer.lr_backbone = 1e-2
",
    );
    let more = ["--losses", "wild", "--seeds", "0", "--set", "sampler.classes_per_batch=2"];
    let commands = cells(&at, "out", &more);
    assert_eq!(commands.len(), 2);
    run(&at, &commands[0]).expect_code(1).expect_stderr("error: cell 1 (wild, optimizer.lr_head = 1000");
    run(&at, &commands[1]).expect_code(0);
    let later = cells(&at, "out", &more);
    assert_eq!(later.len(), 2, "the failed one and the seed: {later:?}");
    assert_eq!(later[0], commands[0]);
    run(&at, &later[1]).expect_code(0);
    let table = at.compare(&more).expect_code(0);
    assert_eq!(table.trainings(), 1, "it is tried once more");
}

#[test]
fn two_processes_do_not_train_the_same_cell() {
    let at = Workplace::new();
    let commands = cells(&at, "out", &[]);
    assert_eq!(commands.len(), 4);
    run(&at, &commands[0]).expect_code(0);
    let lock = |name: &str| fs::File::create(at.path(name)).unwrap();

    let cell = lock("out/norm_softmax/seed-1.lock");
    cell.lock().unwrap();
    run(&at, &commands[1]).expect_code(1).expect_stderr("another process is writing to");
    assert_eq!(cells(&at, "out", &[]), commands[2..], "one is done and one is running");
    drop(cell);

    // While cells are trained, nobody collects, and the other way round.
    let folder = lock("out/.akin.lock");
    folder.lock_shared().unwrap();
    run(&at, &commands[1]).expect_code(0);
    at.compare(&[]).expect_code(1).expect_stderr("another process is writing to");
    folder.unlock().unwrap();
    folder.lock().unwrap();
    run(&at, &commands[2]).expect_code(1).expect_stderr("another process is writing to");
    drop(folder);
    assert_eq!(at.compare(&[]).expect_code(0).trainings(), 2);
    let left = |name: &str| at.path(name).exists();
    assert!(!left("out/norm_softmax/seed-1.lock") && !left("out/happier/seed-0.lock"));
}

#[test]
fn a_run_of_another_plan_or_of_other_data_is_refused() {
    let at = Workplace::new();
    let one = ["--losses", "happier", "--seeds", "0"];
    let commands = cells(&at, "out", &one);
    run(&at, &commands[0]).expect_code(0);
    let changed = [&one[..], &["--set", "optimizer.lr_head=0.1"]].concat();
    for more in [&["--cells"][..], &["--cell", "1"], &[]] {
        at.compare(&[&changed[..], more].concat())
            .expect_code(1)
            .expect_stderr("differs in optimizer.lr_head");
    }
    let table = at.compare(&one).expect_code(0).stdout;

    let picture =
        format!("data/{}", at.read("data/labels.csv").lines().nth(1).unwrap().split(',').next().unwrap());
    let kept = at.bytes(&picture);
    at.write(&picture, [&kept[..], &[0]].concat());
    for more in [&["--cells"][..], &["--cell", "1"], &[]] {
        at.compare(&[&one[..], more].concat())
            .expect_code(1)
            .expect_stderr("since then the data have changed: image files have other sizes");
    }
    assert_eq!(at.compare(&[&one[..], &["--overwrite"]].concat()).expect_code(0).trainings(), 1);
    at.write(&picture, kept);
    let again = at.compare(&[&one[..], &["--overwrite"]].concat()).expect_code(0);
    assert_eq!(again.trainings(), 1);
    assert_eq!(again.stdout.lines().count(), table.lines().count());
}

#[test]
fn settings_that_are_varied_have_a_figure_for_each_metric() {
    let at = Workplace::with(
        "vary = { \"loss.lambda\" = [0.1, 0.5], \"sampler.classes_per_batch\" = [2, 3, 6] }\ncolumns = [\"h_ap\", \"ap\"]\n",
    );
    let answer =
        at.compare(&["--losses", "happier"]).expect_code(0).expect_stderr("8 figures in out/figures");
    assert_eq!(answer.trainings(), 12);
    assert!(!answer.stdout.contains("bold"), "a pipe has no bold text: {}", answer.stdout);
    let figure = at.read("out/figures/sampler-classes-per-batch-h-ap.svg");
    for part in [">2<", ">3<", ">6<", "HAPPIER, lambda 0.1", "HAPPIER, lambda 0.5", "H-AP in %"] {
        assert!(figure.contains(part), "{part} is not in the figure");
    }
    let table = at.read("out/table.md");
    assert!(table.contains("](figures/loss-lambda-ap-species.svg)") && table.contains("the best in bold"));
    let row = &at.json("out/table.json")["lines"][0];
    assert_eq!(row["varied"]["sampler"]["classes_per_batch"], 2);
    let config = at.read(&format!("out/{}/seed-0/config.toml", row["name"].as_str().unwrap()));
    assert!(config.contains("classes_per_batch = 2"), "{config}");

    // A report of the comparison has the same figures.
    at.akin(&["report", "out", "--svg", "figures", "--bootstrap", "0"]).expect_code(0);
    assert_eq!(at.read("figures/sampler-classes-per-batch-h-ap.svg"), figure);

    // Figures that the new comparison lacks are not left beside its own. Files of the user stay.
    for name in ["mine.svg", "loss-lambda-ap-species.png", "notes.txt"] {
        at.write(&format!("out/figures/{name}"), "");
    }
    let columns = ["--losses", "happier", "--set", "compare.columns=['h_ap']"];
    for _ in 0..2 {
        assert_eq!(at.compare(&columns).expect_code(0).trainings(), 0);
        let files = fs::read_dir(at.path("out/figures")).unwrap();
        let mut names: Vec<String> =
            files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        let expected = [
            "loss-lambda-ap-species.png",
            "loss-lambda-h-ap.svg",
            "mine.svg",
            "notes.txt",
            "sampler-classes-per-batch-h-ap.svg",
        ];
        assert_eq!(names, expected);
    }
}

#[test]
fn what_the_recipe_reports_stands_beside_the_row_that_trains_it() {
    let published = "\n[published]\npaper = \"ramzi2022\"\n[[published.results]]\nplace = \"Table 1\"\nrow = \"HAPPIER\"\nscores = { h_ap = 59.4 }\n";
    let at = Workplace::with(published);
    let answer = at.compare(&["--seeds", "0"]).expect_code(0).expect_stdout("in the paper");
    let lines = answer.stdout.lines().filter(|line| line.contains("Table 1")).collect::<Vec<_>>();
    assert!(lines.len() == 1 && lines[0].starts_with("HAPPIER"), "{lines:?}");
}

#[test]
fn a_check_of_a_config_finds_what_would_stop_the_comparison() {
    let check = |more: &str, sets: &[&str]| {
        let at = Workplace::with(more);
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", *set]).collect();
        at.akin(&[&["config", "check", "tiny.toml"][..], &sets].concat())
    };
    for (more, why) in [
        (
            "vary = { \"model.hed.dimension\" = [4, 8] }",
            "tiny.toml, line 26: `vary` with model.hed.dimension = 4 in the row `norm_softmax-4`: unknown key `hed`",
        ),
        (
            "vary = { \"optimizer.lr_head\" = [-1, 2] }",
            "with optimizer.lr_head = -1 in the row `norm_softmax--1`",
        ),
        ("vary = { \"optimizer.lr_head\" = 0.1 }", "`compare.vary.optimizer.lr_head` is 0.1, not a list"),
        (
            "vary = { \"schedule.curve.gamma\" = [0.1, 0.5] }",
            "unknown key `gamma` in [schedule.curve]: it belongs to",
        ),
        (
            "tune = [{ key = \"loss.lamda\", values = [0.1] }]",
            "line 26: `tune` with loss.lamda = 0.1 in the row `norm_softmax`: unknown key `lamda` in [loss]",
        ),
        ("[compare.loss.happier]\nconfig.loss.lamda = 1", "line 26: the row `happier`: unknown key `lamda`"),
        ("[compare.loss.happier]\nconfig.loss.lambda = 3", "the row `happier`: the lambda of HAPPIER is 3"),
    ] {
        check(more, &[]).expect_code(1).expect_stderr(why).expect_stderr("hint: ");
    }
    let vary = "compare.vary={'optimizer.lr_haed'=[1,2]}";
    check("", &[vary])
        .expect_code(1)
        .expect_stderr(&format!("`--set {vary}`: `vary` with optimizer.lr_haed"));
    check("", &["loss.lambda=3"]).expect_code(1).expect_stderr("error: the lambda of HAPPIER is 3");
    let nowhere = check("", &["data.path=nowhere.csv"]).expect_code(1);
    nowhere
        .expect_stderr("`--set data.path=nowhere.csv`: data.path is ")
        .expect_stderr("which does not exist");
    check("", &[]).expect_code(0);
    let idle = "`vary` has optimizer.lr_proxies, which has no effect in the row `smooth_ap`: the loss smooth_ap has no";
    let rows = ["compare.vary={'optimizer.lr_proxies'=[0.1,0.5]}", "compare.losses=['happier','smooth_ap']"];
    check("", &rows).expect_code(0).expect_stderr(idle);
}

#[test]
fn a_program_is_told_how_far_the_comparison_is() {
    let at = Workplace::with(
        "
[compare.loss.wild]
config.loss.kind = \"norm_softmax\"
config.optimizer = { lr_backbone = 1e30, lr_head = 1e30 }
",
    );
    let compare = |losses: &str, code| {
        at.compare(&["--losses", losses, "--seeds", "0", "--progress", "json"]).expect_code(code).events()
    };
    compare("happier", 0);
    let events = compare("happier,wild,norm_softmax", 1);
    let of = |kind: &str| -> Vec<&Value> {
        events.iter().filter(|event| event["kind"] == kind && event["what"] == "Comparing").collect()
    };
    let counts =
        |event: &Value| ["done", "total", "failed", "remembered"].map(|key| event[key].as_u64().unwrap());
    let progress = of("progress");
    let expected = [[0, 3, 0, 0], [1, 3, 0, 1], [2, 3, 1, 1], [3, 3, 1, 1]];
    assert_eq!(progress.iter().map(|event| counts(event)).collect::<Vec<_>>(), expected);
    assert!(progress[1]["seconds_left"].is_null() && progress[2]["seconds_left"].is_f64());
    assert_eq!(progress[2]["training"], "wild, seed 0");
    assert!(progress[3]["directory"].as_str().unwrap().ends_with("out/norm_softmax/seed-0"));
    assert_eq!(of("done").into_iter().map(counts).collect::<Vec<_>>(), [[3, 3, 1, 1]]);
    assert!(events.iter().any(|event| event["what"] == "Checking" && event["total"] == 3));
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_is_told_where_ctrl_c_stopped_the_comparison() {
    let at = Workplace::new();
    let long = ["--set", "run.steps=1000000", "--set", "run.checkpoint_every_steps=1"];
    let command = ["compare", "tiny.toml", "--out", "out", "--losses", "happier", "--progress", "json"];
    let mut command = at.command(&[&command[..], &long].concat());
    let process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let checkpoint = at.path("out/happier/seed-0/checkpoint.akin");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !checkpoint.exists() && Instant::now() < deadline {
        sleep(Duration::from_millis(5));
    }
    // To the comparison alone, which passes it on.
    let process_id = process.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &process_id]).status().unwrap().success());
    let events = Answer::of(process.wait_with_output().unwrap()).expect_code(130).events();
    let stopped = events.iter().find(|event| event["kind"] == "stopped").unwrap();
    assert_eq!((&stopped["done"], &stopped["total"]), (&0.into(), &2.into()), "{stopped}");
    assert_eq!(stopped["training"], "happier, seed 0");
    assert!(stopped["directory"].as_str().unwrap().ends_with("out/happier/seed-0"), "{stopped}");
}
