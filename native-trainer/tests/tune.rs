//! `akin tune`, tested through the binary.

mod workplace;

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;
use workplace::{Answer, Workplace, tiny};

/// What a search needs besides. 12 of the 24 species are trained on.
const TUNE: &str = r#"
[eval]
metrics = ["h_ap", "recall@1"]

[tune]
folds = 2
trials = 3
first_trials = 2
reproductions = 2

[tune.ranges]
"loss.lambda" = { min = 0.0, max = 1.0 }
"optimizer.lr_head" = { min = 1e-4, max = 1e-1, scale = "log" }
"#;

impl Workplace {
    fn new() -> Self {
        Self::drawn(&(tiny(&[]) + TUNE), "16")
    }

    fn tune(&self, more: &[&str]) -> Answer {
        self.akin(&[&["tune", "tiny.toml", "--out", "out"], more].concat())
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

#[test]
fn settings_are_chosen_on_folds_and_their_models_evaluated_apart_and_as_one() {
    let at = Workplace::new();
    let answer = at.tune(&[]).expect_code(0);
    assert_eq!(answer.trainings(), (3 + 2) * 2);
    for word in [
        "trial",
        "lambda",
        "lr_head",
        "fold 2",
        "(best)",
        "separated",
        "concatenated",
        "an interval needs at least 3",
    ] {
        assert!(answer.stdout.contains(word), "no {word:?} in {}", answer.stdout);
    }

    let results = at.json("out/results.json");
    let trials = results["trials"].as_array().unwrap();
    assert_eq!((trials.len(), &results["metric"]), (3, &Value::from("h_ap")));
    let score = |trial: &Value| trial["score"].as_f64().unwrap();
    for trial in trials {
        let folds = numbers(&trial["folds"]);
        assert!((folds.iter().sum::<f64>() / 2.0 - score(trial)).abs() < 1e-12);
    }
    let best = &trials[results["best"].as_u64().unwrap() as usize - 1];
    assert!(trials.iter().all(|trial| score(trial) <= score(best)));
    assert_eq!(at.read("out/trials.csv").lines().count(), 4);
    let summary = at.read("out/results.md");
    assert!(summary.contains("| concatenated |"), "{summary}");

    // The folds of a trial hold out other classes, and all of them the test split.
    let runs = |folder: &str| -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(at.path(folder))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir())
            .map(|path| path.strip_prefix(at.folder()).unwrap().display().to_string())
            .collect();
        names.sort();
        names
    };
    let trial = &runs("out/trials")[0];
    let held_out: Vec<u64> = ["fold-1", "fold-2"]
        .map(|fold| {
            let config = at.read(&format!("{trial}/{fold}/config.toml"));
            assert!(config.contains("\nseed = 0") && config.contains("of = 2"), "{config}");
            at.json(&format!("{trial}/{fold}/report.json"))["overall"]["queries"].as_u64().unwrap()
        })
        .to_vec();
    let all = fs::read_to_string(at.path("data/labels.csv")).unwrap();
    let in_training = all.lines().filter(|line| line.ends_with(",train")).count() as u64;
    assert_eq!(held_out.iter().sum::<u64>(), in_training, "each training image is held out once");

    // The models have the best settings and seeds of their own, and are evaluated on the test split.
    let models = &runs("out/models")[0];
    assert_eq!(runs(models), [format!("{models}/seed-1"), format!("{models}/seed-2")]);
    let test = all.lines().filter(|line| line.ends_with(",test")).count() as u64;
    let rate = best["settings"]["optimizer"]["lr_head"].as_f64().unwrap();
    for seed in [1, 2] {
        let reports = at.json(&format!("{models}/seed-{seed}.json"));
        for report in reports["separated"].as_array().unwrap().iter().chain([&reports["concatenated"]]) {
            assert_eq!(report["overall"]["queries"].as_u64(), Some(test), "{report}");
        }
        let config = at.read(&format!("{models}/seed-{seed}/fold-1/config.toml"));
        assert!(config.contains(&format!("seed = {seed}")) && config.contains(&format!("lr_head = {rate}")));
    }
    let score_of_seed = |seed: usize, place: usize| {
        at.json(&format!("{models}/seed-{seed}.json"))["separated"][place]["overall"]["h_ap"]
            .as_f64()
            .unwrap()
    };
    for seed in [1, 2] {
        let folds = [0, 1].map(|place| format!("{:.2}", 100.0 * score_of_seed(seed, place)));
        assert!(summary.contains(&format!("| {seed} | {} |", folds.join(" | "))), "{summary}");
    }
    let separated = numbers(&results["separated"][0]["values"]);
    assert!((separated[0] - (score_of_seed(1, 0) + score_of_seed(1, 1)) / 2.0).abs() < 1e-12);

    // The chosen config trains on all training classes.
    at.akin(&["train", "out/best.toml"]).expect_code(0);
    let config = at.read("out/best/config.toml");
    assert!(config.contains(&format!("lr_head = {rate}")) && !config.contains("fold"), "{config}");

    // All of that is akin's, and what is in order takes few lines.
    let verified = at.akin(&["verify", "out"]).expect_code(0).expect_stdout("inside: 11 runs ok").stdout;
    assert!(!verified.contains("akin did not write it") && verified.lines().count() < 12, "{verified}");
    at.write("out/best/report.json", "{}");
    for number in 0..12 {
        at.write(&format!("out/note-{number}.txt"), "mine");
    }
    at.akin(&["verify", "out"])
        .expect_code(1)
        .expect_stdout("inside: 10 runs ok")
        .expect_stdout("run out/best")
        .expect_stdout("… and 2 more");
}

#[test]
fn a_search_that_is_stopped_goes_on_as_if_it_had_not_been() {
    let at = Workplace::new();
    let one = |out: &str, more: &[&str]| at.akin(&[&["tune", "tiny.toml", "--out", out], more].concat());
    let whole = one("whole", &["--json"]).expect_code(0);
    // With fewer trials first, and the last run of a trial lost.
    one("parts", &["--trials", "2"]).expect_code(0);
    let lost = fs::read_dir(at.path("parts/trials")).unwrap().next().unwrap().unwrap().path();
    fs::remove_dir_all(lost.join("fold-2")).unwrap();
    let again = one("parts", &["--json"]).expect_code(0);
    let [whole, again]: [Value; 2] =
        [&whole.stdout, &again.stdout].map(|text| serde_json::from_str(text).unwrap());
    for part in ["trials", "best", "separated", "concatenated"] {
        assert_eq!(whole[part], again[part], "{part}");
    }
    assert_eq!(one("parts", &[]).expect_code(0).trainings(), 0, "everything is done");
    // Another search or another config is not mixed with it.
    one("parts", &["--set", "run.steps=3"]).expect_code(1).expect_stderr("differs in run.steps");
}

#[test]
fn machines_can_share_the_trainings() {
    let at = Workplace::new();
    let cells = |more: &[&str]| at.tune(&[&["--cells"], more].concat()).expect_code(0);
    let list = |answer: &Answer| answer.stdout.lines().map(str::to_owned).collect::<Vec<_>>();
    // The first two trials look at no scores; the third and the models wait.
    let first = cells(&[]);
    assert_eq!(list(&first).len(), 4);
    assert!(first.stderr.contains("4 of 10 can begin, 6 waiting for others"), "{}", first.stderr);
    at.tune(&["--cell", "5"]).expect_code(1).expect_stderr("waits for the cells 1, 2, 3, 4");
    at.tune(&["--cell", "11"]).expect_code(1).expect_stderr("there is no cell 11");
    let mut trained = BTreeSet::new();
    loop {
        let ready = list(&cells(&[]));
        if ready.is_empty() {
            break;
        }
        for line in ready {
            let number = line.rsplit(' ').next().unwrap().to_owned();
            at.tune(&["--cell", &number]).expect_code(0);
            assert!(trained.insert(number), "a cell is trained once");
        }
    }
    assert_eq!(trained.len(), 10);
    let json: Value = serde_json::from_str(&cells(&["--json"]).stdout).unwrap();
    assert!(json.as_array().unwrap().iter().all(|cell| cell["state"] == "done"), "{json}");
    let together = at.tune(&["--json"]).expect_code(0);
    assert_eq!(together.trainings(), 0);
    let alone = at.akin(&["tune", "tiny.toml", "--out", "alone", "--json"]).expect_code(0);
    let [together, alone]: [Value; 2] =
        [&together.stdout, &alone.stdout].map(|text| serde_json::from_str(text).unwrap());
    assert_eq!(together["trials"], alone["trials"]);
    assert_eq!(together["concatenated"], alone["concatenated"]);
}

#[test]
fn cells_with_the_settings_of_others_are_not_needed_before_those_are_done() {
    let at = Workplace::new();
    let sets = ["--set", "tune.ranges={'loss.lambda'={values=[0.1,0.9]}}", "--set", "tune.first_trials=3"];
    let cells = |more: &[&str]| at.tune(&[&sets[..], &["--set", "tune.reproductions=0"], more].concat());
    cells(&["--cells"])
        .expect_code(0)
        .expect_stderr("4 of 6 can begin, 2 not needed\n")
        .expect_stderr("tune.trials is 3, but the ranges have only 2 settings");
    cells(&["--cell", "5"]).expect_code(0).expect_stderr("which is not needed");
    assert!(!at.path("out").exists());
    cells(&[]).expect_code(0);
    cells(&["--cells"]).expect_code(0).expect_stderr("0 of 6 can begin, 6 done\n");
}

#[test]
fn a_trial_that_fails_has_no_score_and_is_not_tried_again() {
    let at = Workplace::new();
    // So high a rate makes the weights infinite.
    let ranges =
        "tune.ranges={'optimizer.lr_head'={values=[1e-3,1e38]},'optimizer.lr_backbone'={values=[1e-3,1e38]}}";
    let arguments =
        ["--set", ranges, "--set", "tune.reproductions=0", "--set", "run.steps=6", "--trials", "4"];
    let answer = at.tune(&arguments).expect_code(0).expect_stdout("failed; trials.csv says why");
    assert!(!answer.stdout.contains("separated"), "{}", answer.stdout);
    let results = at.json("out/results.json");
    let trials = results["trials"].as_array().unwrap();
    let best = &trials[results["best"].as_u64().unwrap() as usize - 1];
    assert_eq!((&best["settings"]["optimizer"]["lr_head"], best.get("failed")), (&Value::from(1e-3), None));
    for trial in trials.iter().filter(|trial| trial.get("failed").is_some()) {
        assert!(trial["score"].is_null());
    }
    // The tuning is finished without it.
    at.akin(&["verify", "out"]).expect_code(0).expect_stdout("its training failed");
    assert_eq!(at.tune(&arguments).expect_code(0).trainings(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_training_that_is_killed_ends_the_search_and_is_tried_again() {
    let at = Workplace::new();
    let command = ["tune", "tiny.toml", "--out", "out", "--set", "tune.reproductions=0"];
    let stopped = at.with_a_killed_training(&command).expect_code(1);
    assert_eq!(stopped.trainings(), 1, "the next settings may depend on the score that is missing");
    assert!(!at.path("out/best.toml").exists() && !at.path("out/results.json").exists());
    let stopped = stopped.expect_stderr("trial 1 of 3, fold 1 failed: the process was killed");
    stopped.expect_stderr("no best ones can be chosen").expect_stderr("run the same command again");
    at.akin(&[&command[..], &["--cells"]].concat()).expect_code(0).expect_stdout("--cell 1\n");

    assert_eq!(at.akin(&command).expect_code(0).trainings(), 6);
    at.akin(&[&["tune", "tiny.toml", "--out", "straight"], &command[4..]].concat()).expect_code(0);
    let [results, straight] = ["out", "straight"].map(|out| at.json(&format!("{out}/results.json")));
    for part in ["trials", "best"] {
        assert_eq!(results[part], straight[part], "{part}");
    }
}

#[test]
fn a_failure_with_another_config_does_not_count() {
    let at = Workplace::new();
    let tune = |rate: &str, more: &[&str]| {
        let rate = format!("optimizer.lr_backbone={rate}");
        let ranges = "tune.ranges={'loss.lambda'={values=[0.5,0.6]}}";
        let arguments =
            ["--set", ranges, "--set", "tune.reproductions=0", "--set", "run.steps=6", "--set", &rate];
        at.tune(&[&arguments[..], &["--trials", "1"][..], more].concat())
    };
    tune("1e38", &[]).expect_code(1).expect_stderr("no trial has a score");
    assert_eq!(tune("1e38", &[]).expect_code(1).trainings(), 0);
    assert_eq!(tune("1e-3", &["--overwrite"]).expect_code(0).trainings(), 2);
}

#[test]
fn bad_ranges_are_refused_before_any_training() {
    let at = Workplace::new();
    for (set, message) in [
        ("tune.ranges={}", "no ranges to tune"),
        ("tune.ranges={'loss.lamda'={min=0.0,max=1.0}}", "did you mean `lambda`?"),
        ("tune.ranges={'loss.lambda'={min=1.0,max=0.5}}", "goes from 1.0 to 0.5"),
        ("tune.ranges={'loss.lambda'={values=[0.5]}}", "has only the value 0.5"),
        (
            "tune.ranges={'schedule.curve.gamma'={min=0.1,max=0.5}}",
            "unknown key `gamma` in [schedule.curve]: it belongs to `steps`, `plateau`, not to `cosine`",
        ),
        (
            "tune.ranges={optimizer={lr_head={min=0.1,max=0.5}}}",
            "needs quotes, such as \"optimizer.lr_head\"",
        ),
        ("tune.ranges={'loss.lambda'={min=0.5,max=2.0}}", "with loss.lambda = 2.0"),
        ("tune.ranges={'loss.lambda'={values=['x']}}", "loss.lambda"),
        ("tune.ranges={'data.path'={values=['x']}}", "`data.path`, which cannot be tuned"),
        ("tune.folds=13", "too few for 13 folds"),
        ("tune.folds=1", "tune.folds is 1"),
        ("tune.trials=0", "tune.trials is 0"),
        ("run.seed=9223372036854775807", "leaves no seeds for 2 reproductions"),
        ("tune.trials=501", "too many for the search `bayesian`"),
        ("tune.fold=2", "did you mean `folds`?"),
        ("tune.metric=x", "unknown metric `x`"),
        ("split.validation_fraction=0.5", "holds out the folds itself"),
        ("split.protocol=dyml", "`dyml`"),
    ] {
        let answer = at.tune(&["--set", set]).expect_code(1).expect_stderr(message).expect_stderr("hint:");
        assert_eq!(answer.trainings(), 0, "{set}");
        assert!(!at.path("out").exists(), "{set}");
    }
    for (set, part) in [
        (
            "tune.ranges={'loss.lamda'={min=0.0,max=1.0}}",
            "`ranges` with loss.lamda = 0.0: unknown key `lamda`",
        ),
        (
            "tune.ranges={'loss.lambda'={min=0.5,max=2.0}}",
            "`ranges` with loss.lambda = 2.0: the lambda of HAPPIER",
        ),
    ] {
        let check = at.akin(&["config", "check", "tiny.toml", "--set", set]).expect_code(1);
        check.expect_stderr(&format!("`--set {set}`: {part}")).expect_stderr("hint:");
    }
    at.akin(&["config", "check", "tiny.toml"]).expect_code(0);
    let proxies = "tune.ranges={'optimizer.lr_proxies'={min=0.1,max=0.5}}";
    at.tune(&["--cells", "--set", proxies]).expect_code(0);
    at.tune(&["--cells", "--set", proxies, "--set", "loss.kind=smooth_ap"])
        .expect_code(1)
        .expect_stderr("optimizer.lr_proxies, which has no effect: the loss smooth_ap has no proxies");
}

#[test]
fn a_program_is_told_how_far_the_search_is_and_people_what_a_score_is_of() {
    let at = Workplace::new();
    let more = ["--set", "tune.reproductions=1", "--trials", "2"];
    let events = at.tune(&[&more[..], &["--progress", "json"]].concat()).expect_code(0).events();
    let of = |kind: &str| -> Vec<&Value> {
        events.iter().filter(|event| event["kind"] == kind && event["what"] == "Tuning").collect()
    };
    let counts =
        |event: &Value| ["done", "total", "failed", "remembered"].map(|key| event[key].as_u64().unwrap());
    let progress: Vec<[u64; 4]> = of("progress").into_iter().map(counts).collect();
    assert_eq!(progress[0], [0, 6, 0, 0]);
    assert_eq!(progress[6], [6, 6, 0, 0]);
    let done = of("done");
    assert_eq!((done.len(), counts(done[0])), (1, [6, 6, 0, 0]));
    assert!(done[0]["directory"].as_str().unwrap().ends_with("/out"), "{}", done[0]);
    let text = |event: &Value| event["text"].as_str().unwrap_or_default().to_owned();
    let said: Vec<String> = events.iter().map(text).collect();
    for part in
        ["fold 2: H-AP on the held-out fold ", "best settings, seed 1: H-AP on the evaluation splits "]
    {
        assert!(said.iter().any(|text| text.contains(part)), "{part} is not in {said:?}");
    }
    assert!(
        at.read("out/results.md").contains("H-AP of each trial on the fold that its training holds out:")
    );

    let again = at.tune(&[&more[..], &["--progress", "json"]].concat()).expect_code(0).events();
    let done = again.iter().find(|event| event["kind"] == "done").unwrap();
    assert_eq!(counts(done), [6, 6, 0, 6], "all of them are remembered");
}
