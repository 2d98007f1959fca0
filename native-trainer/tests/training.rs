//! Trainings that are stopped, resumed, or fail, run through the `akin` binary.
#![cfg(unix)]

mod workplace;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use akin_core::embeddings::Rows;
use akin_formats::embedding_file::{Choice, EmbeddingFile};
use serde_json::Value;
use workplace::{Answer, Workplace, tiny};

const STEPS: u64 = 60;

/// A config whose training takes a few seconds.
fn config() -> String {
    let config = tiny(&[
        ("steps = 2", "steps = 60"),
        ("width = 2", "width = 4"),
        ("resize = 16, crop = 16", "resize = 32, crop = 32"),
        ("classes_per_batch = 3", "classes_per_batch = 4"),
        ("images_per_class = 2", "images_per_class = 4"),
    ]);
    config + "[optimizer]\nclip_norm = 1.0\n[schedule]\nwarmup_steps = 2\n"
}

impl Workplace {
    fn new() -> Self {
        Self::drawn(&config(), "32")
    }

    /// Replaces the loss and the head of the config.
    fn set_loss(&self, loss: &str, head: &str) {
        let config = config().replace("kind = \"happier\"", loss).replace("{ dimension = 8 }", head);
        self.write("tiny.toml", config);
    }

    fn train(&self, run: &str) -> Answer {
        self.akin(&["train", "tiny.toml", "--out", run])
    }

    /// Trains on a terminal of this size. Returns everything that it wrote.
    fn train_on_a_terminal(&self, [columns, rows]: [u16; 2], environment: &str, options: &str) -> String {
        let akin = env!("CARGO_BIN_EXE_akin");
        let line = format!(
            "stty cols {columns} rows {rows}; {environment} exec {akin} train tiny.toml --out run --overwrite {options}"
        );
        self.on_a_terminal(&line, "").expect_code(0).stdout
    }

    fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Trains until there is a checkpoint, then presses Ctrl-C.
    fn interrupt(&self, run: &str) -> Answer {
        let training = self.spawn(&["train", "tiny.toml", "--out", run]);
        self.stop(training, run, "-INT")
    }

    /// Waits until a training has a checkpoint in `run`, then sends it a signal.
    fn stop(&self, training: Child, run: &str, signal: &str) -> Answer {
        let checkpoint = self.path(run).join("checkpoint.akin");
        let deadline = Instant::now() + Duration::from_secs(60);
        while !checkpoint.exists() && Instant::now() < deadline {
            sleep(Duration::from_millis(5));
        }
        let sent = Command::new("kill").args([signal, &training.id().to_string()]).status().unwrap();
        assert!(sent.success(), "the training has ended already");
        Answer::of(training.wait_with_output().unwrap())
    }

    /// The weights of a trained encoder. Equal trainings write equal bytes.
    fn weights(&self, run: &str) -> Vec<u8> {
        self.bytes(&format!("{run}/encoder.bpk"))
    }

    /// The log without times, and without the step at which a session was stopped: the others are even.
    fn history(&self, run: &str) -> Vec<Value> {
        let log = self.read(&format!("{run}/log.jsonl"));
        let entries = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let kept = entries.filter(|entry| {
            let stopped = entry["event"] == "step" && entry["step"].as_u64().unwrap() % 2 == 1;
            !stopped && entry["event"] != "resumed" && entry["event"] != "stopped"
        });
        kept.map(|mut entry| {
            entry.as_object_mut().unwrap().remove("seconds");
            entry
        })
        .collect()
    }

    /// The steps of the log entries of this kind.
    fn logged_steps(&self, run: &str, event: &str) -> Vec<u64> {
        let log = self.read(&format!("{run}/log.jsonl"));
        let entries = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        entries.filter(|entry| entry["event"] == event).map(|entry| entry["step"].as_u64().unwrap()).collect()
    }
}

/// The temporary files that an unfinished write has left.
fn temporary_files(run: &Path) -> Vec<String> {
    let names = fs::read_dir(run).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".part")).collect()
}

#[test]
fn a_training_stopped_by_ctrl_c_and_resumed_gives_the_very_same_encoder() {
    let at = Workplace::new();
    let answer = at.train("straight").expect_code(0).expect_stderr("Finished the run is in straight");
    answer.expect_stderr("Next `akin export straight --out bundle`");

    at.interrupt("stopped").expect_code(130).expect_stderr("continue with `akin resume ");
    let [step] = at.logged_steps("stopped", "stopped")[..] else { panic!("the log needs exactly one stop") };
    assert!((1..STEPS).contains(&step), "stopped after step {step} of {STEPS}");
    assert!(!at.path("stopped/encoder.bpk").exists(), "an unfinished training has no encoder");
    at.akin(&["eval", "stopped"]).expect_code(1).expect_stderr("akin resume");

    at.akin(&["resume", "stopped"]).expect_code(0).expect_stderr(&format!("after step {step} of {STEPS}"));
    assert_eq!(at.logged_steps("stopped", "resumed"), [step]);
    assert!(at.weights("stopped") == at.weights("straight"), "other weights after a stop");
    assert_eq!(at.json("stopped/report.json"), at.json("straight/report.json"));

    at.akin(&["resume", "stopped"]).expect_code(1).expect_stderr("there is nothing to resume");
    fs::remove_file(at.path("stopped/report.json")).unwrap();
    at.akin(&["resume", "stopped"]).expect_code(0);
    assert_eq!(at.json("stopped/report.json"), at.json("straight/report.json"));
    assert_eq!(at.json("stopped/run.json")["seconds_per_step"], Value::Null, "no step was left");
    let seconds = |key: &str| at.json("straight/run.json")[key].as_f64().unwrap();
    let waiting = seconds("waiting_seconds");
    assert!(waiting > 0.0 && waiting < seconds("training_seconds"), "{waiting}");
}

/// The centres of HPDH, the clusters of HPL and a memory of embeddings depend on all steps so far.
#[test]
fn the_state_of_a_loss_survives_a_stop() {
    let at = Workplace::new();
    let memory = "kind = 'cross_batch_memory'\nloss = { kind = 'contrastive' }\nsize = 100\nstart = 1";
    let clusters = "kind = 'hpl_proxy_nca'\nevery = 7\ncoarse = { kind = 'clusters', count = 3 }";
    for (name, loss, geometry) in [
        ("centres", "kind = 'hpdh'", "binary"),
        ("clusters", clusters, "cosine"),
        ("memory", memory, "cosine"),
    ] {
        at.set_loss(loss, &format!("{{ dimension = 8, geometry = {{ kind = '{geometry}' }} }}"));
        let [straight, stopped] = ["straight", "stopped"].map(|run| format!("{name}-{run}"));
        at.train(&straight).expect_code(0);
        at.interrupt(&stopped).expect_code(130);
        at.akin(&["resume", &stopped]).expect_code(0);
        assert!(at.weights(&stopped) == at.weights(&straight), "{name}: other weights after a stop");
        assert_eq!(at.json(&format!("{stopped}/report.json")), at.json(&format!("{straight}/report.json")));
    }
}

/// The average of the weights, the evaluations so far, the moments of RMSprop, and what two terms learn at two rates.
#[test]
fn the_state_of_every_setting_survives_a_stop() {
    let at = Workplace::new();
    let terms = "loss={kind='sum',terms=[{weight=1,loss={kind='norm_softmax'}},{weight=1,loss={kind='proxy_anchor'}}]}";
    let settings = [
        terms,
        "model.batch_norm=frozen",
        "run.workers=2",
        "run.precision=half",
        "optimizer={rule={kind='rmsprop',momentum=0.5},lr_terms=[0.01,0.1],ema_decay=0.9,chunk=5,clip_value=0.1}",
        "schedule={curve={kind='plateau',patience=0,gamma=0.5},lr_warmup_steps=9}",
        "run.evaluate_every_epochs=2",
    ];
    let sets = settings.iter().flat_map(|set| ["--set", set]).collect::<Vec<_>>();
    let train = |run: &'static str| [&["train", "tiny.toml", "--out", run][..], &sets].concat();
    at.akin(&train("straight")).expect_code(0);
    let training = at.spawn(&train("stopped"));
    at.stop(training, "stopped", "-INT").expect_code(130);
    // Evaluations make the rates fall, so they may not change either.
    let config = at.read("stopped/config.toml");
    at.write("stopped/config.toml", config.replace("evaluate_every_epochs = 2", "evaluate_every_epochs = 1"));
    at.akin(&["resume", "stopped"])
        .expect_code(1)
        .expect_stderr("config.toml has changed since the checkpoint: run.evaluate_every_epochs");
    at.write("stopped/config.toml", config);
    at.akin(&["resume", "stopped"]).expect_code(0);
    assert!(at.weights("stopped") == at.weights("straight"), "other weights after a stop");

    let history = at.history("straight");
    assert_eq!(at.history("stopped"), history);
    let rates = |key: &str| -> Vec<Value> {
        history.iter().filter(|entry| entry["event"] == "step").map(|entry| entry[key].clone()).collect()
    };
    let head: Vec<f64> = rates("lr_head").iter().map(|rate| rate.as_f64().unwrap()).collect();
    assert!(head[0] < head[3], "the rates rise: {head:?}");
    assert!(head.last().unwrap() < &head[4], "the rates fall: {head:?}");
    let [first, second] = [0, 1].map(|term| rates("lr_terms")[4][term].as_f64().unwrap());
    assert!((second - 10.0 * first).abs() < 1e-12, "{first} and {second}");

    // What is saved is the average, and the report is about it.
    at.akin(&["eval", "straight"]).expect_code(0);
    let output = at.command(&["eval", "straight", "--json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["overall"], at.json("straight/report.json")["overall"]);
    let without = [&train("plain")[..], &["--set", "optimizer.ema_decay=1e-9"]].concat();
    at.akin(&without).expect_code(0);
    assert!(at.weights("plain") != at.weights("straight"), "the average is another encoder");
}

/// What drop path leaves out after a stop is what it would have left out without one.
#[test]
fn drop_path_and_rates_by_depth_survive_a_stop() {
    let at = Workplace::new();
    let train = |run: &'static str, drop_path: &'static str| {
        let sets = [
            "model.backbone={kind='vit_s16'}",
            "model.preprocessing={name='inception',crop=32}",
            "optimizer={layer_decay=0.7,rule={kind='sgd'}}",
            "schedule.warmup_steps=0",
            "run.steps=4",
            drop_path,
        ];
        let sets = sets.into_iter().flat_map(|set| ["--set", set]).collect::<Vec<_>>();
        [&["train", "tiny.toml", "--out", run][..], &sets].concat()
    };
    at.akin(&train("straight", "model.drop_path=0.5")).expect_code(0);
    let training = at.spawn(&train("stopped", "model.drop_path=0.5"));
    at.stop(training, "stopped", "-INT").expect_code(130);
    at.akin(&["resume", "stopped"]).expect_code(0);
    assert!(at.weights("stopped") == at.weights("straight"), "other weights after a stop");
    at.akin(&train("plain", "model.drop_path=0")).expect_code(0);
    assert!(at.weights("plain") != at.weights("straight"), "drop path changes the training");
}

#[test]
fn several_workers_train_as_one_does() {
    let at = Workplace::new();
    let train = |run: &str, sets: &[&str]| {
        let settings =
            [&["model.batch_norm=frozen", "run.steps=20", "run.evaluate_every_epochs=5"], sets].concat();
        let sets: Vec<&str> = settings.iter().flat_map(|set| ["--set", *set]).collect();
        at.akin(&[&["train", "tiny.toml", "--out", run][..], &sets].concat())
    };
    train("one", &[]).expect_code(0);
    let numbers = |run: &str| -> Vec<(Value, f64)> {
        let history = at.history(run).into_iter().filter(|entry| entry["event"] == "step");
        history.map(|entry| (entry["step"].clone(), entry["loss"].as_f64().unwrap())).collect()
    };
    let expected = numbers("one");
    assert_eq!(expected.len(), 10, "every tenth step and every epoch of two steps");
    let h_ap = |run: &str| at.json(&format!("{run}/report.json"))["overall"]["h_ap"].as_f64().unwrap();
    for sets in [
        &["run.workers=2"][..],
        &["run.workers=3"],
        &["run.workers=2", "optimizer.chunk=3"],
        &["run.workers=3", "optimizer.chunk=3"],
    ] {
        let run = sets.concat();
        train(&run, sets).expect_code(0);
        for ((step, loss), (expected_step, expected_loss)) in numbers(&run).iter().zip(&expected) {
            assert_eq!(step, expected_step);
            assert!(
                (loss - expected_loss).abs() < 1e-4,
                "{run}: {loss} for {expected_loss} after step {step}"
            );
        }
        assert_eq!(numbers(&run).len(), expected.len(), "{run}");
        assert!((h_ap(&run) - h_ap("one")).abs() < 1e-3, "{run}");
    }
    train("many", &["run.workers=17"])
        .expect_code(1)
        .expect_stderr("run.workers is 17, but a batch has only 16 images");
    assert!(!at.path("many").exists());
}

/// The images of a whole set are read while they pass the network. Random batches of all images are read before.
#[test]
fn a_whole_set_trains_as_a_random_batch_of_all_images_and_continues_after_a_stop() {
    let at = Workplace::new();
    let whole = "sampler={kind='whole_set'}";
    let random = "sampler={kind='random',batch_size=32}";
    let settings = |sampler: &'static str, more: &'static [&'static str]| {
        let frozen = "model.batch_norm=frozen";
        let sets = [&[sampler, frozen, "run.steps=12"], more].concat();
        sets.into_iter().flat_map(|set| ["--set", set]).collect::<Vec<_>>()
    };
    let train = |run: &str, sampler: &'static str, more: &'static [&'static str]| {
        at.akin(&[&["train", "tiny.toml", "--out", run][..], &settings(sampler, more)].concat())
            .expect_code(0);
        at.weights(run)
    };
    const BINARY: &str = "model.head={dimension=8,geometry={kind='binary'}}";
    const POINCARE: &str = "model.head={dimension=8,geometry={kind='poincare'}}";
    for (name, more) in [
        ("chunks", &["optimizer.chunk=5"][..]),
        ("workers", &["optimizer.chunk=5", "run.workers=3"]),
        ("half", &["optimizer.chunk=5", "run.precision=half"]),
        ("features", &["optimizer.chunk=5", "model.freeze_backbone=true"]),
        ("hash", &["optimizer.chunk=5", BINARY, "loss={kind='hpdh'}"]),
        ("ball", &["optimizer.chunk=5", POINCARE, "loss={kind='hyperbolic_cross_entropy'}"]),
    ] {
        let [one, other] =
            [whole, random].map(|sampler| train(&format!("{name}-{}", &sampler[15..20]), sampler, more));
        assert!(one == other, "{name}: other weights");
    }
    assert_eq!(at.json("chunks-whole/run.json")["images_per_batch"], 32);

    // All images at once: the same losses, rounded otherwise.
    train("at-once", random, &[]);
    let losses = |run: &str| -> Vec<f64> {
        let steps = at.history(run).into_iter().filter(|entry| entry["event"] == "step");
        steps.map(|entry| entry["loss"].as_f64().unwrap()).collect()
    };
    let [at_once, chunks] = ["at-once", "chunks-whole"].map(losses);
    assert_eq!(at_once.len(), chunks.len());
    assert!(at_once.first() > at_once.last(), "{at_once:?}");
    for (one, other) in at_once.iter().zip(&chunks) {
        assert!((one - other).abs() < 1e-4, "{at_once:?} and {chunks:?}");
    }

    let more = &["optimizer.chunk=5", "run.steps=60"];
    let straight = train("straight", whole, more);
    let training =
        at.spawn(&[&["train", "tiny.toml", "--out", "stopped"][..], &settings(whole, more)].concat());
    at.stop(training, "stopped", "-INT").expect_code(130);
    at.akin(&["resume", "stopped"]).expect_code(0);
    assert!(at.weights("stopped") == straight, "other weights after a stop");
    assert_eq!(at.history("stopped"), at.history("straight"));
}

#[test]
fn a_whole_set_leaves_out_unreadable_images_and_its_plan_has_the_memory_of_all_pairs() {
    let at = Workplace::with_classes(&config(), "2,2,3", "60", "16");
    let sets = [
        "sampler={kind='whole_set'}",
        "model.batch_norm=frozen",
        "run.steps=1",
        "loss={kind='norm_softmax'}",
    ];
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", *set]).collect();
    let plan = |more: &[&str]| {
        let plan = ["train", "tiny.toml", "--dry-run", "--overwrite"];
        at.akin(&[&plan[..], &sets, more].concat()).expect_code(0).stdout
    };
    // Two orders with four trained species of 60 images.
    let text = plan(&[]);
    assert!(text.contains("480 images: the whole training split, in chunks of 64"), "{text}");
    assert!(text.contains("1 step"), "{text}");
    assert!(!text.contains("for the pairs"), "a proxy for each class: {text}");
    // 2 × 4 × 480² bytes.
    let text = plan(&["--set", "loss={kind='contrastive'}"]);
    assert!(text.contains("at least 1.84 MB for the pairs of 480 images"), "{text}");

    let table = at.read("data/labels.csv");
    let training = training_images(&table);
    at.write(&format!("data/{}", training[3]), "no picture");
    let train = |run: &str| at.akin(&[&["train", "tiny.toml", "--out", run][..], &sets].concat());
    train("run").expect_code(0).expect_stderr("Skipped 1 image").expect_stderr(training[3]);
    assert_eq!(at.json("run/run.json")["images_per_batch"], training.len() - 1);

    for image in training {
        at.write(&format!("data/{image}"), "no picture");
    }
    train("nothing").expect_code(1).expect_stderr("none of the images of the first batch can be read");
    assert!(!at.path("nothing").exists());
}

#[test]
fn a_training_in_half_precision_skips_the_steps_that_overflow_and_learns_by_the_others() {
    let at = Workplace::new();
    let train = |run: &str, sets: &[&str]| {
        let settings = [&["run.steps=20", "schedule.warmup_steps=0"], sets].concat();
        let sets: Vec<&str> = settings.iter().flat_map(|set| ["--set", *set]).collect();
        at.akin(&[&["train", "tiny.toml", "--out", run][..], &sets].concat()).expect_code(0);
        let steps = at.history(run).into_iter().filter(|entry| entry["event"] == "step");
        steps.collect::<Vec<Value>>()
    };
    let number = |entry: &Value, key: &str| entry[key].as_f64().unwrap();
    let single = train("single", &[]);
    let half = train("half", &["run.precision=half"]);
    assert_eq!(single[0]["loss_scale"], Value::Null);
    assert_eq!(half.len(), single.len());
    for half in &half {
        assert_eq!(number(half, "loss_scale"), 65_536.0 / 2_f64.powf(number(half, "skipped_steps")));
    }
    // The first step begins at the same weights, and later ones drift apart.
    let first = |run: &str, sets: &[&str]| {
        train(run, &[&["run.steps=1"], sets].concat());
        let log = at.read(&format!("{run}/log.jsonl"));
        number(&serde_json::from_str(log.lines().next().unwrap()).unwrap(), "loss")
    };
    let [single, half] = [first("first", &[]), first("first-half", &["run.precision=half"])];
    assert!((single - half).abs() < 2e-3 * single, "{half} in half precision, {single} in single");
    assert_ne!(single, half);

    // Gradients so large that the scale is too large at first.
    let heavy = [
        "run.precision=half",
        "loss={kind='sum',terms=[{weight=100,loss={kind='norm_softmax'}}]}",
        "model.batch_norm=frozen",
    ];
    let all_skipped = [1, 2].map(|steps| {
        let run = format!("skipped-{steps}");
        train(&run, &[&heavy[..], &[&format!("run.steps={steps}")]].concat());
        assert_eq!(at.json(&format!("{run}/run.json"))["skipped_steps"], steps);
        at.weights(&run)
    });
    assert!(all_skipped[0] == all_skipped[1], "a skipped step moves no weight");
    let steps = train("heavy", &heavy);
    let last = steps.last().unwrap();
    let skipped = number(last, "skipped_steps");
    assert!((3.0..18.0).contains(&skipped), "{skipped} of 20 steps are skipped");
    assert_eq!(number(last, "loss_scale"), 65_536.0 / 2_f64.powf(skipped));
    assert_eq!(at.json("heavy/run.json")["skipped_steps"], skipped);
    assert!(at.weights("heavy") != all_skipped[0], "the others move the weights");
}

#[test]
fn a_dry_run_says_that_a_gpu_has_too_little_memory_and_what_to_lower() {
    let at = Workplace::new();
    fs::create_dir(at.path("bin")).unwrap();
    let plan = |megabytes: &str, workers: &str| {
        at.write("bin/nvidia-smi", format!("#!/bin/sh\nprintf '{megabytes}\n'\n"));
        fs::set_permissions(at.path("bin/nvidia-smi"), fs::Permissions::from_mode(0o755)).unwrap();
        let sets = ["model.batch_norm=frozen", &format!("run.workers={workers}")];
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", *set]).collect();
        let plan = ["train", "tiny.toml", "--dry-run", "--overwrite", "--device", "cuda"];
        let path = format!("{}:{}", at.path("bin").display(), std::env::var("PATH").unwrap());
        Answer::of(
            at.command(&[&plan[..], &sets].concat())
                .env("PATH", path)
                .env_remove("CUDA_VISIBLE_DEVICES")
                .output()
                .unwrap(),
        )
    };
    plan("80000", "1").expect_code(0);
    plan("0", "1")
        .expect_code(1)
        .expect_stderr("the training lacks memory on a GPU: about ")
        .expect_stderr("0.00 kB are free\n  hint: lower sampler.classes_per_batch, ");
    // The GPUs after the workers do not count.
    plan("80000\\n80000\\n0", "2").expect_code(0).expect_stdout("on the first of 2 devices");
    plan("80000\\n80000\\n0", "3").expect_code(1).expect_stderr("memory on a GPU");
}

#[cfg(target_os = "linux")]
#[test]
fn a_training_without_the_memory_for_a_step_is_refused_before_it_begins() {
    let at = Workplace::new();
    let train = |images: &str| {
        let sets = format!("--set run.steps=1 --set sampler.images_per_class={images}");
        let limited = format!(
            "ulimit -v 3000000; exec {} train tiny.toml --out run {sets}",
            env!("CARGO_BIN_EXE_akin")
        );
        Answer::of(Command::new("sh").args(["-c", &limited]).current_dir(at.folder()).output().unwrap())
    };
    train("16000")
        .expect_code(1)
        .expect_stderr("the training lacks memory: about ")
        .expect_stderr("hint: lower sampler.classes_per_batch, ");
    assert!(!at.path("run").exists());
    train("4").expect_code(0);
}

#[test]
fn a_dry_run_counts_only_the_gpus_that_cuda_sees() {
    let at = Workplace::new();
    fs::create_dir(at.path("bin")).unwrap();
    // The first GPU is full, and the second is free.
    at.write(
        "bin/nvidia-smi",
        "#!/bin/sh\ncase \"$*\" in *\" -i 1\") echo 80000 ;; *) echo 0; echo 80000 ;; esac\n",
    );
    fs::set_permissions(at.path("bin/nvidia-smi"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", at.path("bin").display(), std::env::var("PATH").unwrap());
    let mut plan = at.command(&["train", "tiny.toml", "--dry-run", "--overwrite", "--device", "cuda"]);
    plan.env("PATH", path).env_remove("CUDA_VISIBLE_DEVICES");
    Answer::of(plan.output().unwrap()).expect_code(1).expect_stderr("memory on a GPU");
    Answer::of(plan.env("CUDA_VISIBLE_DEVICES", "1").output().unwrap()).expect_code(0);
}

#[test]
fn a_dry_run_of_several_workers_without_a_gpu_is_one_of_the_cpu() {
    let at = Workplace::new();
    let plan = |device: &str| {
        let sets = ["--set", "model.batch_norm=frozen", "--set", "run.workers=2", "--device", device];
        let plan = [&["train", "tiny.toml", "--dry-run", "--overwrite"][..], &sets].concat();
        String::from_utf8(at.command(&plan).output().unwrap().stdout).unwrap()
    };
    let memory = |text: String| text.contains("for a step of 2 workers");
    assert!(memory(plan("cpu")));
    // A build for GPUs has their plan.
    assert!(memory(plan("auto")) || cfg!(any(feature = "cuda", feature = "vulkan", feature = "wgpu")));
}

#[test]
fn a_training_ends_early_when_evaluations_get_no_better() {
    let at = Workplace::new();
    // Without learning, every evaluation is as good as the first.
    let settings = [
        "optimizer.lr_backbone=0",
        "optimizer.lr_head=0",
        "model.batch_norm=frozen",
        "run.evaluate_every_epochs=1",
        "run.patience=2",
        "run.checkpoint_every_epochs=100",
    ];
    let sets = settings.iter().flat_map(|set| ["--set", set]).collect::<Vec<_>>();
    at.akin(&[&["train", "tiny.toml", "--out", "run"][..], &sets].concat())
        .expect_code(0)
        .expect_stderr("2 evaluations in a row had no better H-AP than ");
    let ended = |at: &Workplace| {
        assert_eq!(at.json("run/run.json")["steps"], 6, "three epochs of two steps");
        assert_eq!(at.logged_steps("run", "evaluation"), [2, 4, 6]);
        assert_eq!(at.json("run/run.json")["best"]["step"], 2);
        at.akin(&["verify", "run"]).expect_code(0).expect_stdout("after step 6");
    };
    ended(&at);
    at.akin(&["resume", "run"]).expect_code(1).expect_stderr("there is nothing to resume");
    // As if it had been killed after its last evaluation.
    fs::remove_file(at.path("run/report.json")).unwrap();
    at.akin(&["resume", "run"]).expect_code(0);
    ended(&at);
}

#[test]
fn a_second_ctrl_c_aborts_at_once() {
    let at = Workplace::new();
    // Steps of many seconds: a batch of 2,000 images, each of which ranks all others.
    let slow = ["train", "tiny.toml", "--out", "run", "--set", "sampler.images_per_class=500"];
    let training = at.spawn(&slow);
    let deadline = Instant::now() + Duration::from_secs(60);
    while !at.path("run/log.jsonl").exists() && Instant::now() < deadline {
        sleep(Duration::from_millis(5));
    }
    for _ in 0..2 {
        assert!(Command::new("kill").args(["-INT", &training.id().to_string()]).status().unwrap().success());
        sleep(Duration::from_millis(300));
    }
    let answer =
        Answer::of(training.wait_with_output().unwrap()).expect_code(130).expect_stderr("press Ctrl-C again");
    assert!(!answer.stderr.contains("Stopped after step"), "{}", answer.stderr);
    assert!(!at.path("run/checkpoint.akin").exists(), "it did not wait for the step to end");
}

#[test]
fn eval_gives_the_scores_that_the_training_reported() {
    let at = Workplace::new();
    at.train("run").expect_code(0);
    let output = at.command(&["eval", "run", "--json"]).stdout(Stdio::piped()).output().unwrap();
    let later: Value = serde_json::from_slice(&output.stdout).unwrap();
    let then = at.json("run/report.json");
    assert_eq!((&later["overall"], &later["levels"]), (&then["overall"], &then["levels"]));

    // In DyML's protocol every level is a label set.
    let output =
        at.command(&["eval", "run", "--dyml", "--json", "--metrics", "ap"]).stdout(Stdio::piped()).output();
    let dyml: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    let array = |value: &Value| value.as_array().unwrap().clone();
    let [sets, levels] = [array(&dyml["sets"]), array(&then["levels"])];
    let aps: Vec<f64> = sets.iter().map(|set| set["levels"][0]["ap"].as_f64().unwrap()).collect();
    assert_eq!(aps, levels.iter().map(|level| level["ap"].as_f64().unwrap()).collect::<Vec<_>>());
    let average = aps.iter().sum::<f64>() / aps.len() as f64;
    assert!((dyml["average"]["ap"].as_f64().unwrap() - average).abs() < 1e-12);
}

#[test]
fn two_runs_are_compared_over_the_same_queries() {
    let at = Workplace::new();
    at.train("run").expect_code(0);
    let compare = |arguments: &[&str]| -> Vec<Value> {
        let arguments = [&["eval", "run", "--against", "run", "--json"], arguments].concat();
        let output = at.command(&arguments).stdout(Stdio::piped()).output().unwrap();
        let all: Value = serde_json::from_slice(&output.stdout).unwrap();
        all["comparison"].as_array().unwrap().clone()
    };
    let same = compare(&["--metrics", "h_ap,recall@1"]);
    assert_eq!(same.len(), 1 + 3);
    assert!(same.iter().all(|row| row["difference"] == 0.0 && row["p"] == 1.0), "{same:?}");
    let untrained = compare(&["--metrics", "h_ap", "--untrained"]);
    assert_ne!(untrained[0]["difference"], 0.0);
    assert_eq!(untrained[0]["second"], same[0]["second"]);

    at.akin(&["biomorphs", "others", "--branching", "2,2,3", "--images-per-class", "3", "--side", "32"])
        .expect_code(0);
    let others = ["train", "tiny.toml", "--set", "data.path=others/labels.csv", "--out", "other"];
    at.akin(&others).expect_code(0);
    at.akin(&["eval", "run", "--against", "other"]).expect_code(1).expect_stderr("other has other queries");
}

#[test]
fn a_checkpoint_that_cannot_be_written_leaves_the_previous_one() {
    let at = Workplace::new();
    at.train("straight").expect_code(0);
    at.interrupt("full").expect_code(130);
    let before = at.bytes("full/checkpoint.akin");

    // No file may grow beyond half a checkpoint. bash counts in blocks of 1,024 bytes.
    let blocks = before.len() / 2048;
    let resume = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" resume full");
    let mut limited = Command::new("bash");
    limited.args(["-c", &resume, env!("CARGO_BIN_EXE_akin")]).current_dir(at.folder());
    Answer::of(limited.output().unwrap())
        .expect_code(1)
        .expect_stderr("checkpoint.akin")
        .expect_stderr("the previous version is unchanged");
    assert!(at.bytes("full/checkpoint.akin") == before, "the previous checkpoint was touched");
    assert_eq!(temporary_files(&at.path("full")), [""; 0]);

    at.akin(&["resume", "full"]).expect_code(0);
    assert!(at.weights("full") == at.weights("straight"), "other weights after a full disk");
}

#[test]
fn a_damaged_checkpoint_is_refused() {
    let at = Workplace::new();
    at.interrupt("run").expect_code(130);
    let mut bytes = at.bytes("run/checkpoint.akin");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    at.write("run/checkpoint.akin", &bytes);
    at.akin(&["resume", "run"]).expect_code(1).expect_stderr("checkpoint.akin is damaged");
    at.write("run/checkpoint.akin", &bytes[..middle]);
    at.akin(&["resume", "run"]).expect_code(1).expect_stderr("checkpoint.akin is damaged");
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
    let at = Workplace::new();
    at.interrupt("run").expect_code(130);
    let make_pipe = |name: &str| {
        assert!(Command::new("mkfifo").arg(at.path(name)).status().unwrap().success());
    };
    for name in ["run/report.json", "run/run.json", "run/encoder.bpk", "run/log.jsonl", "run/checkpoint.akin"]
    {
        let before = fs::read(at.path(name));
        let _ = fs::remove_file(at.path(name));
        make_pipe(name);
        let refusal = at.akin(&["resume", "run"]).expect_code(1);
        refusal.expect_stderr(&format!("{name} is not a regular file"));
        fs::remove_file(at.path(name)).unwrap();
        if let Ok(bytes) = before {
            at.write(name, bytes);
        }
    }
    at.akin(&["resume", "run"]).expect_code(0);

    // Nor among the inputs of a command whose output exists.
    make_pipe("labels.csv");
    at.write("scores.csv", "");
    let eval = ["eval", "--queries", "run/encoder.bpk", "--query-labels", "labels.csv", "--levels", "order"];
    at.akin(&[&eval[..], &["--per-query", "scores.csv", "--overwrite"]].concat()).expect_code(1);
}

#[test]
fn a_loss_that_is_not_finite_stops_the_training_before_a_checkpoint_is_written() {
    let at = Workplace::new();
    // An epoch has two steps, so its checkpoint comes before the tenth step, the first regular log entry.
    let wild =
        ["train", "tiny.toml", "--set", "optimizer.lr_backbone=1e30", "--set", "schedule.warmup_steps=0"];
    at.akin(&[&wild[..], &["--out", "run"]].concat())
        .expect_code(1)
        .expect_stderr("the loss is ")
        .expect_stderr("at step 2\n    NaN or infinite: the embeddings of 16 of 16 pictures, ")
        .expect_stderr("pictures of the step:\n    /")
        .expect_stderr(".png\n    and 13 more\n")
        .expect_stderr("learning rates");
    assert!(!at.path("run/checkpoint.akin").exists());
    // The weights are infinite after the first step, whose loss is finite.
    let wilder =
        ["train", "tiny.toml", "--set", "optimizer.lr_backbone=1e38", "--set", "schedule.warmup_steps=0"];
    at.akin(&[&wilder[..], &["--set", "run.steps=1", "--out", "wilder"]].concat())
        .expect_code(1)
        .expect_stderr("at step 1\n    NaN or infinite: the weights of the backbone")
        .expect_stderr("lower the learning rates");
    at.akin(&["resume", "run"])
        .expect_code(1)
        .expect_stderr("hint: if the run was stopped before its first checkpoint");
}

/// A gradient that overflows is skipped; weights that do are not.
#[test]
fn a_loss_that_is_not_finite_stops_a_training_in_half_precision_too() {
    let at = Workplace::new();
    let sets = ["optimizer.lr_backbone=1e30", "schedule.warmup_steps=0", "run.precision=half"];
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", *set]).collect();
    at.akin(&[&["train", "tiny.toml", "--out", "run"][..], &sets].concat())
        .expect_code(1)
        .expect_stderr("NaN or infinite: the embeddings of 16 of 16 pictures, ")
        .expect_stderr("or set run.precision to single");
}

#[test]
fn a_training_is_not_continued_with_another_config_or_other_data() {
    let at = Workplace::new();
    at.interrupt("run").expect_code(130);
    let config = at.read("run/config.toml");
    let changes = [
        ("width = 4", "width = 8", "model.backbone.width"),
        ("dimension = 8", "dimension = 16", "model.head.dimension"),
        ("seed = 0", "seed = 1", "run.seed"),
    ];
    for (from, to, key) in changes {
        assert!(config.contains(from), "{config}");
        at.write("run/config.toml", config.replace(from, to));
        let why = format!("config.toml has changed since the checkpoint: {key}");
        at.akin(&["resume", "run"]).expect_code(1).expect_stderr(&why);
    }
    at.write("run/config.toml", config);
    let table = at.read("data/labels.csv");
    let picture = table.lines().nth(1).unwrap().split(',').next().unwrap();
    let picture = format!("data/{picture}");
    let before = at.bytes(&picture);
    at.write(&picture, [&before[..], b"x"].concat());
    at.akin(&["resume", "run"])
        .expect_code(1)
        .expect_stderr("have changed since the checkpoint: image files have other sizes");
    let mut other = before.clone();
    *other.last_mut().unwrap() ^= 1;
    at.write(&picture, other);
    at.akin(&["resume", "run"])
        .expect_code(1)
        .expect_stderr("have changed since the checkpoint: images differ");
    at.write(&picture, before);
    // A suffix leaves the order of the classes, and thus every label, as it was.
    let species = table.lines().nth(1).unwrap().split(',').nth(3).unwrap();
    at.write("data/labels.csv", table.replace(species, &format!("{species}s")));
    at.akin(&["resume", "run"])
        .expect_code(1)
        .expect_stderr("have changed since the checkpoint: classes have other names");
    at.write("data/labels.csv", table);
    // The data may be elsewhere, and steps do not depend on the log and the evaluations.
    fs::rename(at.path("data"), at.path("moved")).unwrap();
    let config = at.read("run/config.toml");
    let may_change = [
        ("/data/labels.csv", "/moved/labels.csv"),
        ("seed = 0", "seed = 0\nlog = \"tensorboard\""),
        ("evaluate_every_epochs = 0", "evaluate_every_epochs = 3"),
    ];
    let changed = may_change.iter().fold(config, |config, (from, to)| {
        assert!(config.contains(from), "{config}");
        config.replace(from, to)
    });
    at.write("run/config.toml", changed);
    at.akin(&["resume", "run"]).expect_code(0);
}

#[test]
fn damaged_weights_are_not_evaluated() {
    let at = Workplace::new();
    at.akin(&["train", "tiny.toml", "--set", "run.steps=1", "--out", "run"]).expect_code(0);
    let mut weights = at.bytes("run/encoder.bpk");
    let end = weights.len();
    weights[end - 200..].fill(0);
    at.write("run/encoder.bpk", &weights);
    at.akin(&["eval", "run"]).expect_code(1).expect_stderr("encoder.bpk is damaged");
}

#[test]
fn an_encoder_that_was_not_trained_so_is_not_evaluated() {
    let at = Workplace::new();
    at.akin(&["train", "tiny.toml", "--set", "run.steps=1", "--out", "run"]).expect_code(0);
    let config = at.read("run/config.toml");
    assert!(config.contains("crop = 32"), "{config}");
    at.write("run/config.toml", config.replace("crop = 32", "crop = 16"));
    for command in [&["eval", "run"][..], &["export", "run", "--out", "bundle"], &["report", "run"]] {
        let answer = at.akin(command).expect_code(1);
        answer.expect_stderr("config.toml has changed since the training: model.preprocessing");
    }
}

#[test]
fn a_checkpoint_survives_the_divergence_after_it() {
    let at = Workplace::new();
    let diverge = ["--set", "optimizer.lr_backbone=1e30", "--set", "schedule.warmup_steps=3"];
    let train = ["train", "tiny.toml", "--out", "run", "--set", "run.checkpoint_every_steps=1"];
    at.akin(&[&train[..], &diverge].concat())
        .expect_code(1)
        .expect_stderr("at step 5\n    NaN or infinite: ")
        .expect_stderr("; the checkpoint after step 4 is kept");
    let answer = at.akin(&["verify", "run"]).expect_code(1).expect_stderr("the run run is not finished");
    let answer = answer.expect_stdout("after step 4");
    assert!(!answer.stdout.contains("FAULTY"), "{}", answer.stdout);
}

#[cfg(debug_assertions)]
#[test]
fn the_best_encoder_and_the_last_one_are_both_kept() {
    let at = Workplace::new();
    let train = ["train", "tiny.toml", "--set", "run.evaluate_every_epochs=3"];
    let said = at.akin(&[&train[..], &["--out", "run"]].concat()).expect_code(0);
    let log = at.read("run/log.jsonl");
    let evaluations = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let evaluations: Vec<(u64, f64)> = evaluations
        .filter(|entry| entry["event"] == "evaluation" || entry["event"] == "done")
        .map(|entry| (entry["step"].as_u64().unwrap(), entry["report"]["overall"]["h_ap"].as_f64().unwrap()))
        .collect();
    assert!(evaluations.len() > 5, "{evaluations:?}");
    let highest = evaluations.iter().map(|&(_, score)| score).fold(0.0, f64::max);
    let first = evaluations.iter().find(|&&(_, score)| score == highest).unwrap();
    let best = at.json("run/run.json")["best"].clone();
    assert_eq!((best["step"].as_u64().unwrap(), best["score"].as_f64().unwrap()), *first);
    if first.0 < evaluations.last().unwrap().0 {
        said.expect_stderr(&format!(
            "Best H-AP {:.2} after step {}, whose encoder",
            100.0 * first.1,
            first.0
        ));
    }
    assert_eq!(at.json("run/run.json")["device"], "CPU");
    let score = |which: &str| {
        let output = at.command(&["eval", "run", "--which", which, "--json"]).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["overall"]["h_ap"].as_f64().unwrap()
    };
    assert_eq!((score("best"), score("last")), (highest, evaluations.last().unwrap().1));
    at.akin(&["export", "run", "--which", "best", "--out", "bundle", "--no-maps"]).expect_code(0);
    let bundle = at.json("bundle/bundle.json");
    assert_eq!(bundle["encoders"][0]["report"]["overall"]["h_ap"].as_f64(), Some(highest));

    // A training that was stopped knows the best evaluation when it goes on.
    let stopped = (200..).step_by(20).find(|operation| {
        if at.path("stopped").exists() {
            fs::remove_dir_all(at.path("stopped")).unwrap();
        }
        let mut command = at.command(&[&train[..], &["--out", "stopped"]].concat());
        command.env("AKIN_FAULT", format!("terminated {operation}")).output().unwrap();
        at.path("stopped/best.akin").exists()
    });
    assert!(!at.path("stopped/encoder.bpk").exists(), "operation {stopped:?} was too late for a stop");
    at.akin(&["resume", "stopped"]).expect_code(0);
    assert_eq!(at.json("stopped/run.json")["best"], best);
    assert!(at.bytes("stopped/best.akin") == at.bytes("run/best.akin"));

    at.akin(&["train", "tiny.toml", "--set", "run.steps=1", "--out", "short"]).expect_code(0);
    at.akin(&["eval", "short", "--which", "best"]).expect_code(1).expect_stderr("evaluate_every_epochs");
    at.akin(&[&train[..], &["--set", "run.best_by=mrr", "--out", "none"]].concat())
        .expect_code(1)
        .expect_stderr("run.best_by is mrr, but eval.metrics does not have it");
}

#[test]
fn a_run_is_overwritten_only_on_request() {
    let at = Workplace::new();
    let short = |more: &[&str]| {
        let arguments = ["train", "tiny.toml", "--set", "run.steps=1", "--out", "run"];
        at.akin(&[&arguments, more].concat())
    };
    short(&[]).expect_code(0);
    let before = at.read("run/run.json");
    short(&["--seed", "1"]).expect_code(1).expect_stderr("--overwrite");
    assert_eq!(at.read("run/run.json"), before);
    short(&["--seed", "1", "--overwrite"]).expect_code(0);
    assert_ne!(at.read("run/run.json"), before);

    fs::create_dir(at.path("holiday")).unwrap();
    at.write("holiday/beach.jpg", "");
    at.akin(&["train", "tiny.toml", "--out", "holiday", "--overwrite"])
        .expect_code(1)
        .expect_stderr("is not a run");
    assert!(at.path("holiday/beach.jpg").exists());

    // A folder with a config of someone else is no run either.
    fs::create_dir(at.path("s")).unwrap();
    at.write("s/config.toml", "");
    at.write("s/thesis", "x");
    at.akin(&["train", "tiny.toml", "--out", "s", "--overwrite"])
        .expect_code(1)
        .expect_stderr("is not a run");
    assert!(at.path("s/thesis").exists());
    at.write("run/thesis", "x");
    short(&["--overwrite"]).expect_code(1).expect_stderr("akin did not write thesis");
}

#[test]
fn an_old_run_stays_when_the_new_one_fails_or_is_stopped() {
    let at = Workplace::new();
    at.akin(&["train", "tiny.toml", "--set", "run.steps=1", "--out", "run"]).expect_code(0);
    let before = at.bytes("run/encoder.bpk");
    let train =
        |more: &[&str]| at.akin(&[&["train", "tiny.toml", "--out", "run", "--overwrite"], more].concat());
    let diverging = ["--set", "optimizer.lr_backbone=1e30", "--set", "schedule.warmup_steps=0"];
    train(&diverging).expect_code(1).expect_stderr("at step");
    assert_eq!(at.bytes("run/encoder.bpk"), before);

    // The draft is no obstacle, and can be continued.
    let training = at.spawn(&["train", "tiny.toml", "--out", "run", "--overwrite"]);
    at.stop(training, "run.new", "-TERM").expect_code(130).expect_stderr("akin resume run.new");
    assert_eq!(at.bytes("run/encoder.bpk"), before);
    at.akin(&["resume", "run.new"]).expect_code(0);
    assert_ne!(at.bytes("run/encoder.bpk"), before);
    assert!(!at.path("run.new").exists() && !at.path("run.akin-old").exists());

    // The terminal of a training that is closed sends SIGHUP. The tests may run under `nohup`, the training must not.
    let akin = at.command(&["train", "tiny.toml", "--out", "closed"]);
    let mut training = Command::new("env");
    if cfg!(target_os = "linux") {
        training.arg("--default-signal=HUP");
    }
    training.arg(akin.get_program()).args(akin.get_args());
    training.current_dir(at.folder()).stdout(Stdio::piped()).stderr(Stdio::piped());
    at.stop(training.spawn().unwrap(), "closed", "-HUP").expect_code(130).expect_stderr("akin resume closed");
    at.akin(&["resume", "closed"]).expect_code(0);
    assert_eq!(at.weights("closed"), at.weights("run"));
    train(&["--set", "run.steps=1"]).expect_code(0);
}

#[test]
fn a_run_behind_a_link_is_replaced_where_it_is() {
    let at = Workplace::new();
    std::fs::create_dir(at.path("disk")).unwrap();
    at.akin(&["train", "tiny.toml", "--set", "run.steps=1", "--out", "disk/run"]).expect_code(0);
    std::os::unix::fs::symlink("disk/run", at.path("run")).unwrap();
    for steps in ["run.steps=2", "run.steps=3"] {
        at.akin(&["train", "tiny.toml", "--out", "run", "--overwrite", "--set", steps]).expect_code(0);
    }
    assert!(at.path("run").is_symlink());
    assert!(at.read("disk/run/run.json").contains(r#""steps": 3"#), "{}", at.read("disk/run/run.json"));
    at.akin(&["verify", "run"]).expect_code(0);

    std::os::unix::fs::symlink("nowhere", at.path("dangling")).unwrap();
    at.akin(&["train", "tiny.toml", "--out", "dangling"]).expect_code(1).expect_stderr("leads nowhere");
}

#[test]
fn a_training_under_nohup_outlives_its_terminal() {
    let at = Workplace::new();
    let akin = at.command(&["train", "tiny.toml", "--out", "run"]);
    let mut nohup = Command::new("sh");
    nohup.args(["-c", r#"trap "" HUP; exec "$0" "$@""#]).arg(akin.get_program()).args(akin.get_args());
    nohup.current_dir(akin.get_current_dir().expect("commands run in the workplace"));
    nohup.stdout(Stdio::piped()).stderr(Stdio::piped());
    at.stop(nohup.spawn().unwrap(), "run", "-HUP").expect_code(0);
}

#[test]
fn two_trainings_do_not_write_the_same_run() {
    let at = Workplace::new();
    let first = at.spawn(&["train", "tiny.toml", "--out", "run"]);
    while !at.path("run/log.jsonl").exists() {
        sleep(Duration::from_millis(5));
    }
    for arguments in [&["train", "tiny.toml", "--out", "run", "--overwrite"][..], &["resume", "run"]] {
        at.akin(arguments).expect_code(1).expect_stderr(&format!("process {} on", first.id()));
    }
    Answer::of(first.wait_with_output().unwrap()).expect_code(0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_fault_of_the_system_is_not_taken_for_a_damaged_picture() {
    let at = Workplace::new();
    at.akin(&["train", "tiny.toml", "--set", "run.steps=1", "--out", "run"]).expect_code(0);
    // A picture that is damaged is not called skipped where none may be.
    at.write("damaged.png", "no picture");
    let answer = at.akin(&["embed", "run", "damaged.png", "--out", "e.npy"]).expect_code(1);
    let answer = answer.expect_stderr("leave it out with `--skip`");
    assert!(!answer.stderr.contains("warning: skipped"), "{}", answer.stderr);

    // The training needs some files besides pictures; with one of these limits it gets no further than these.
    let refused = (4..40).any(|files| {
        let akin = env!("CARGO_BIN_EXE_akin");
        let line =
            format!("ulimit -n {files}; exec {akin} train tiny.toml --out run-{files} --set run.steps=2");
        let output = Command::new("sh").args(["-c", &line]).current_dir(at.folder()).output().unwrap();
        let answer = Answer::of(output);
        for wrong in ["warning: skipped", "panicked"] {
            assert!(!answer.stderr.contains(wrong), "{files}: {}", answer.stderr);
        }
        answer.code != Some(0) && answer.stderr.contains("the system cannot read")
    });
    assert!(refused, "no limit was low enough for a picture and high enough for the rest");
}

#[cfg(debug_assertions)]
#[test]
fn a_fault_of_the_system_is_not_counted_as_an_unreadable_image() {
    let at = Workplace::new();
    for fault in 1.. {
        let mut command = at.command(&["data", "check", "tiny.toml"]);
        command.env("AKIN_FAULT", format!("io {fault}")).env("RAYON_NUM_THREADS", "1");
        let answer = Answer::of(command.output().unwrap());
        if !answer.stderr.contains("fault: Io") {
            assert!(fault > 16, "only {fault} operations were made to fail");
            break;
        }
        let answer = answer.expect_code(1);
        assert!(!answer.stdout.contains("cannot be read"), "{fault}: {}", answer.stdout);
    }
}

#[test]
fn a_training_that_cannot_start_neither_makes_nor_replaces_a_run() {
    let at = Workplace::new();
    let refused = |set: &str, run: &str, more: &[&str], why: &str| {
        let arguments = ["train", "tiny.toml", "--set", set, "--out", run];
        at.akin(&[&arguments, more].concat()).expect_code(1).expect_stderr(why);
    };
    let faults = [
        (
            "sampler.classes_per_batch=100",
            "classes_per_batch is 100, but the training split has 8 finest classes",
        ),
        ("loss.lambda=2", "the lambda of HAPPIER is 2"),
        ("model.weights=nowhere.safetensors", "nowhere.safetensors cannot be read"),
    ];
    for (set, why) in faults {
        refused(set, "new", &[], why);
        assert!(!at.path("new").exists(), "{set}");
    }
    at.akin(&["train", "tiny.toml", "--set", "run.steps=1", "--out", "old"]).expect_code(0);
    for (set, why) in faults {
        refused(set, "old", &["--overwrite"], why);
        assert!(at.path("old/encoder.bpk").exists(), "{set}");
    }
}

/// A folder of photos as a user may have it: few classes, some with few images.
#[test]
fn a_batch_takes_as_many_classes_as_a_small_data_set_has() {
    let at = Workplace::empty();
    for class in 0..14 {
        let images = if class == 0 { 3 } else { 14 };
        for split in ["train", "test"] {
            let folder = format!("photos/{split}/kind-{}/class-{class}", class % 4);
            fs::create_dir_all(at.path(&folder)).unwrap();
            for image in 0..images {
                let grey = image::Luma([(class * 16 + image) as u8]);
                let path = at.path(&format!("{folder}/{image}.png"));
                image::GrayImage::from_pixel(32, 32, grey).save(path).unwrap();
            }
        }
    }
    let csv = "kind = \"csv\"\npath = \"data/labels.csv\"\nlevels = [\"order\", \"family\", \"species\"]";
    let folder = "kind = \"folder\"\npath = \"photos\"\nlevels = [\"kind\", \"class\"]";
    let set = "classes_per_batch = 4\nimages_per_class = 4\n";
    at.write("tiny.toml", config().replace(csv, folder).replace(set, ""));

    at.akin(&["train", "tiny.toml", "--set", "run.steps=2", "--out", "run"])
        .expect_code(0)
        .expect_stderr("14 classes × 4 images a batch, not 16 × 4: the training split has 14 finest classes")
        .expect_stderr("with repeats: 1 of 14 classes has fewer than 4 images");
    assert_eq!(at.json("run/run.json")["classes_per_batch"], 14);

    at.akin(&["train", "tiny.toml", "--set", "sampler.classes_per_batch=16", "--out", "other"])
        .expect_code(1)
        .expect_stderr("sampler.classes_per_batch is 16, but the training split has 14 finest classes")
        .expect_stderr("at most 14");
}

#[test]
fn a_bundle_and_its_site_have_places_of_their_own() {
    let at = Workplace::new();
    at.train("run").expect_code(0);
    at.write("page/index.html", "<!doctype html>");
    for (bundle, site) in [("same", "same"), ("site/bundle", "site"), ("bundle", "./bundle/site")] {
        let export = ["export", "run", "--out", bundle, "--site", site, "--page", "page"];
        at.akin(&export).expect_code(1).expect_stderr("are in each other's place");
        assert!(!at.path(bundle).exists() && !at.path(site).exists());
    }
    let export = ["export", "run", "--out", "bundle", "--site", "site", "--with", "bundle", "--page", "page"];
    at.akin(&export).expect_code(1).expect_stderr("`--with bundle` is the bundle of `--out`");
}

#[test]
fn a_bundle_is_replaced_only_when_the_new_one_is_ready() {
    let at = Workplace::new();
    at.akin(&["train", "tiny.toml", "--set", "run.steps=1", "--out", "run"]).expect_code(0);
    at.akin(&["export", "run", "./run", "--out", "bundle"])
        .expect_code(1)
        .expect_stderr("run is given twice");
    at.akin(&["export", "run", "--out", "bundle"]).expect_code(0);
    fs::remove_file(at.path("run/encoder.bpk")).unwrap();
    at.akin(&["export", "run", "--out", "bundle", "--overwrite"]).expect_code(1).expect_stderr("encoder.bpk");
    assert!(at.path("bundle/bundle.json").exists());
}

#[test]
fn a_bundle_holds_encoders_of_every_geometry_each_with_its_own_similarity() {
    let at = Workplace::new();
    let runs = [
        ("flat", "kind = \"happier\"", "{ dimension = 8 }"),
        (
            "ball",
            "kind = \"hyperbolic_cross_entropy\"",
            "{ dimension = 8, geometry = { kind = \"poincare\", curvature = 0.5 } }",
        ),
        ("code", "kind = \"hpdh\"", "{ dimension = 16, geometry = { kind = \"binary\" } }"),
    ];
    for (run, loss, head) in runs {
        at.set_loss(loss, head);
        at.akin(&["train", "tiny.toml", "--set", "run.steps=1", "--out", run]).expect_code(0);
    }
    at.akin(&["export", "flat", "ball", "code", "--out", "bundle"]).expect_code(0);
    let bundle = at.json("bundle/bundle.json");
    let card = bundle["model_card"].as_str().unwrap();
    assert!(card.contains("- train: 32 images in 8 classes of the level *species*"), "{card}");
    let similarity = |encoder: usize| bundle["encoders"][encoder]["report"]["config"]["similarity"].clone();
    assert_eq!(similarity(0), "cosine");
    assert_eq!(similarity(1)["poincare"]["curvature"], 0.5);
    assert_eq!(similarity(2), "hamming");

    at.write("notice.md", "## Credit\n\nThe pictures are **ours**.\n");
    at.akin(&[
        "export",
        "flat",
        "ball",
        "--out",
        "small",
        "--no-maps",
        "--half",
        "--thumbnail",
        "16",
        "--notice",
        "notice.md",
    ])
    .expect_code(0);
    let small = at.json("small/bundle.json");
    assert_eq!(small["requires"], serde_json::json!(["f16", "parity"]));
    assert_eq!(small["encoders"][0]["element_type"], "f16");
    let embeddings = |bundle: &str, json: &serde_json::Value| {
        at.bytes(&format!("{bundle}/{}", json["encoders"][0]["gallery_embeddings"].as_str().unwrap())).len()
    };
    assert_eq!(2 * embeddings("small", &small), embeddings("bundle", &bundle));
    assert!(
        small["encoders"][1].get("element_type").is_none(),
        "a point of the ball could leave it by rounding"
    );
    assert_eq!(small["thumbnails"]["tile"], 16);
    assert_eq!(at.read("small/NOTICE.md"), at.read("notice.md"));
    assert!(small["model_card"].as_str().unwrap().ends_with("The pictures are **ours**.\n"));
    at.akin(&["export", "flat", "--out", "none", "--notice", "nowhere.md"])
        .expect_code(1)
        .expect_stderr("--notice");
    at.akin(&["export", "flat", "--out", "none", "--thumbnail", "4"]).expect_code(2);
}

#[test]
fn embeddings_stand_beside_the_names_of_their_images_and_no_image_is_skipped_unasked() {
    let at = Workplace::new();
    at.akin(&["train", "tiny.toml", "--out", "run", "--set", "run.steps=1"]).expect_code(0);
    let embed = |out: &str| at.akin(&["embed", "run", "data/images", "--out", out]);
    embed("e.npy").expect_code(0).expect_stderr("Embedded 48 images into e.npy").expect_stderr("e.csv");
    let names = at.read("e.csv");
    let mut lines = names.lines();
    assert_eq!(lines.next(), Some("path"));
    let paths: Vec<&str> = lines.collect();
    assert_eq!(paths.len(), 48);
    assert!(paths.is_sorted() && paths.iter().all(|path| at.path(path).is_file()), "{names}");

    embed("e.npy").expect_code(1).expect_stderr("e.npy already exists");
    at.write("f.csv", "mine");
    embed("f.npy").expect_code(1).expect_stderr("f.csv already exists");
    assert_eq!((at.read("f.csv").as_str(), at.path("f.npy").exists()), ("mine", false));

    at.write(paths[7], "no picture");
    let answer =
        embed("g.npy").expect_code(1).expect_stderr(paths[7]).expect_stderr("leave it out with `--skip`");
    assert!(!answer.stderr.contains("warning: skipped"), "{}", answer.stderr);
    assert!(!at.path("g.npy").exists() && !at.path("g.csv").exists());

    let skip = ["embed", "run", "data/images", "--out", "g.parquet", "--skip"];
    let answer = at.akin(&skip).expect_code(0).expect_stderr("Embedded 47 images into g.parquet");
    answer
        .expect_stderr(&format!("skipped {}", paths[7]))
        .expect_stderr("Skipped 1 image that cannot be read");
    let file = EmbeddingFile::open(&at.path("g.parquet"), &Choice::default()).unwrap();
    let mut read = Vec::new();
    let add = |_: u64, cells: &[&str]| {
        read.push(cells[0].to_owned());
        Ok(())
    };
    file.table().unwrap().read(&[("path", "…")], add).unwrap();
    let readable = paths.iter().filter(|path| **path != paths[7]);
    assert!(file.len() == 47 && read.iter().eq(readable), "{read:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_image_of_a_folder_that_cannot_be_embedded_is_not_passed_over() {
    use std::os::unix::ffi::OsStrExt;
    let at = Workplace::new();
    at.akin(&["train", "tiny.toml", "--out", "run", "--set", "run.steps=1"]).expect_code(0);
    let embed = || at.akin(&["embed", "run", "data/images", "--out", "e.npy"]).expect_code(1);
    let folder = at.path("data/images");

    assert!(Command::new("mkfifo").arg(folder.join("pipe.png")).status().unwrap().success());
    embed().expect_stderr("pipe.png cannot be read: it is not a regular file");
    fs::remove_file(folder.join("pipe.png")).unwrap();

    std::os::unix::fs::symlink("nowhere.png", folder.join("link.png")).unwrap();
    embed().expect_stderr("link.png leads nowhere");
    fs::remove_file(folder.join("link.png")).unwrap();

    fs::write(folder.join(std::ffi::OsStr::from_bytes(b"\xff.png")), "").unwrap();
    embed().expect_stderr("is not UTF-8");
}

#[test]
fn the_ancestors_that_hier_has_learned_are_exported_with_the_disk() {
    let at = Workplace::new();
    let sum = r#"kind = "sum"
        terms = [
            { weight = 1.0, loss = { kind = "hyperbolic_cross_entropy" } },
            { weight = 1.0, loss = { kind = "hier", proxies = 6 } },
        ]"#;
    at.set_loss(sum, "{ dimension = 2, geometry = { kind = \"poincare\", curvature = 0.5 } }");
    let evaluated = ["--set", "run.evaluate_every_epochs=1"];
    at.akin(&[&["train", "tiny.toml", "--set", "run.steps=4", "--out", "run"], &evaluated[..]].concat())
        .expect_code(0);
    at.akin(&["export", "run", "--out", "bundle", "--maps", "pca,poincare"]).expect_code(0);
    let bundle = at.json("bundle/bundle.json");
    let maps = &bundle["encoders"][0]["maps"];
    assert!(maps[0].get("proxies").is_none(), "PCA has no place for points of the ball");
    let items = bundle["gallery"]["count"].as_u64().unwrap();
    let labels = at.bytes("bundle/labels.bin");
    let labels: Vec<u32> = labels.as_chunks().0.iter().copied().map(u32::from_le_bytes).collect();
    let in_gallery: BTreeSet<u64> =
        labels.chunks(3).take(items as usize).map(|path| u64::from(path[2])).collect();
    for map in maps.as_array().unwrap() {
        let means = &map["class_means"];
        let classes: Vec<u64> =
            means["classes"].as_array().unwrap().iter().map(|class| class.as_u64().unwrap()).collect();
        assert_eq!(classes.iter().copied().collect::<BTreeSet<_>>(), in_gallery);
        let points = at.bytes(&format!("bundle/{}", means["coordinates"].as_str().unwrap()));
        assert_eq!(points.len(), classes.len() * 2 * 4);
    }
    let proxies = &maps[1]["proxies"];
    assert_eq!((proxies["count"].as_u64(), proxies["per_proxy"].as_u64()), (Some(6), Some(8)));
    let numbers = |file: &str| -> Vec<u32> {
        let bytes = at.bytes(&format!("bundle/{}", proxies[file].as_str().unwrap()));
        bytes.as_chunks().0.iter().copied().map(u32::from_le_bytes).collect()
    };
    let ancestors = numbers("ancestors");
    assert_eq!(ancestors.len() as u64, 3 * items);
    assert!(ancestors.iter().all(|&proxy| proxy < 6 || proxy == u32::MAX));
    assert!(ancestors.iter().any(|&proxy| proxy < 6));
    assert_eq!(numbers("nearest").len(), 6 * 8);
    assert_eq!(numbers("coordinates").len(), 6 * 2);

    fs::remove_file(at.path("run/checkpoint.akin")).unwrap();
    at.akin(&["export", "run", "--out", "other"]).expect_code(1).expect_stderr("checkpoint.akin");
    at.akin(&["export", "run", "--out", "other", "--maps", "pca"]).expect_code(0);
    // The checkpoint has no proxies of the best encoder.
    at.akin(&["export", "run", "--out", "best", "--maps", "poincare", "--which", "best"]).expect_code(0);
    let map = &at.json("best/bundle.json")["encoders"][0]["maps"][0];
    assert!(map["coordinates"].is_string() && map.get("proxies").is_none(), "{map}");
}

#[test]
fn hash_runs_that_differ_in_bits_are_exported_as_a_family() {
    let at = Workplace::new();
    for bits in ["8", "16"] {
        at.set_loss(
            "kind = \"hpdh\"",
            &format!("{{ dimension = {bits}, geometry = {{ kind = \"binary\" }} }}"),
        );
        at.akin(&["train", "tiny.toml", "--set", "run.steps=1", "--out", bits]).expect_code(0);
    }
    at.akin(&["export", "8", "16", "--out", "bundle", "--group-bits", "--no-maps"]).expect_code(0);
    let bundle = at.json("bundle/bundle.json");
    let encoders: Vec<_> = bundle["encoders"].as_array().unwrap().iter().collect();
    let families = encoders.iter().map(|encoder| (encoder["family"].as_str(), encoder["dimension"].as_u64()));
    assert_eq!(families.collect::<Vec<_>>(), [(Some("HPDH"), Some(8)), (Some("HPDH"), Some(16))]);

    at.akin(&["export", "8", "--out", "lone", "--group-bits"]).expect_code(1).expect_stderr("--group-bits");
    assert!(!at.path("lone").exists());
}

/// The paths of the training images in a table of labels.
fn training_images(table: &str) -> Vec<&str> {
    let training = table.lines().filter(|line| line.ends_with(",train"));
    training.map(|line| line.split_once(',').unwrap().0).collect()
}

#[test]
fn unreadable_images_are_skipped_counted_and_named() {
    let at = Workplace::new();
    let table = at.read("data/labels.csv");
    let training = training_images(&table);
    let (cut, text) = (format!("data/{}", training[0]), format!("data/{}", training[5]));
    let bytes = at.bytes(&cut);
    at.write(&cut, &bytes[..bytes.len() / 2]);
    at.write(&text, "no picture");

    at.train("run").expect_code(0).expect_stderr("Skipped 2 images").expect_stderr(&cut).expect_stderr(&text);
    let skipped = at.json("run/run.json")["skipped_images"].clone();
    let paths: Vec<&String> = skipped.as_object().unwrap().keys().collect();
    assert_eq!(paths.len(), 2, "{skipped}");
    for path in [&cut, &text] {
        assert!(paths.iter().any(|skipped| skipped.ends_with(path.as_str())), "{path} in {skipped}");
    }

    for image in training {
        at.write(&format!("data/{image}"), "no picture");
    }
    at.train("nothing").expect_code(1).expect_stderr("none of the images of the first batch can be read");
}

#[test]
fn a_run_is_not_evaluated_on_classes_that_are_drawn_again() {
    let at = Workplace::drawn(&config(), "16");
    let folder = r#"
kind = "folder"
path = "data/images"
levels"#;
    let csv = "\nkind = \"csv\"\npath = \"data/labels.csv\"\nlevels";
    assert!(config().contains(csv));
    let split = "\n[split]\ntest_fraction = 0.4\n";
    at.write("folder.toml", config().replace(csv, folder) + split);
    at.akin(&["train", "folder.toml", "--out", "drawn"]).expect_code(0);
    at.akin(&["train", "tiny.toml", "--out", "given"]).expect_code(0);

    let family =
        fs::read_dir(at.path("data/images")).unwrap().next().unwrap().unwrap().path().join("New_family");
    let pictures = walkdir::WalkDir::new(at.path("data/images")).into_iter().map(Result::unwrap);
    let picture = pictures.map(walkdir::DirEntry::into_path).find(|path| path.is_file()).unwrap();
    fs::create_dir_all(family.join("New_species")).unwrap();
    for name in ["a.png", "b.png"] {
        fs::copy(&picture, family.join("New_species").join(name)).unwrap();
    }
    for command in
        [&["eval", "drawn"][..], &["export", "drawn", "--out", "b"], &["report", "drawn", "--out", "r.html"]]
    {
        at.akin(command).expect_code(1).expect_stderr("would be drawn again");
    }

    // The splits of the table are given, so that a change is only told.
    let table = at.read("data/labels.csv");
    at.write("data/labels.csv", table.lines().take(table.lines().count() - 1).collect::<Vec<_>>().join("\n"));
    at.akin(&["eval", "given"]).expect_code(0).expect_stderr("have changed since the training");
}

#[test]
fn trainings_with_other_seeds_are_tested_on_the_same_classes_if_the_split_has_a_seed() {
    let at = Workplace::drawn(&config(), "16");
    let csv = "\nkind = \"csv\"\npath = \"data/labels.csv\"\nlevels";
    let folder = "\nkind = \"folder\"\npath = \"data/images\"\nlevels";
    at.write("folder.toml", config().replace(csv, folder) + "\n[split]\ntest_fraction = 0.4\nseed = 3\n");
    for seed in ["0", "1"] {
        at.akin(&["train", "folder.toml", "--seed", seed, "--out", seed]).expect_code(0);
    }
    at.akin(&["eval", "0", "--against", "1"]).expect_code(0);
    at.akin(&["export", "0", "1", "--out", "both", "--maps", "pca"]).expect_code(0);
    at.write("given.toml", config() + "\n[split]\nseed = 3\n");
    at.akin(&["train", "given.toml", "--out", "2"]).expect_code(1).expect_stderr("split.seed is set, but");
}

#[test]
fn a_terminal_has_a_dashboard_and_its_last_picture_says_where_the_run_is() {
    let at = Workplace::new();
    let text = at.train_on_a_terminal([100, 30], "TERM=xterm", "--set run.evaluate_every_epochs=4");
    // The panel moves the cursor up to its first row before it is drawn again.
    let (_, last) = text.rsplit_once("\x1b[J").expect("the panel is drawn more than once");
    for part in ["step 60 of 60", "100 %", "scores", "after step 60", "images/s", "done; the run is in run"] {
        assert!(last.contains(part), "no {part:?} in {last}");
    }
    let [panel, report] = ["done; the run is in run", "all levels"].map(|part| last.find(part).unwrap());
    assert!(panel < report, "the report comes after the dashboard");
}

#[test]
fn small_terminals_and_those_that_cannot_redraw_have_lines() {
    let at = Workplace::new();
    let small = at.train_on_a_terminal([40, 10], "TERM=xterm", "");
    let (_, last) = small.rsplit_once("\x1b[J").unwrap();
    assert!(last.contains("step 60 of 60") && last.contains("done;") && !last.contains("scores"), "{last}");
    for (environment, options) in [("TERM=dumb", ""), ("TERM=xterm", "--progress plain")] {
        let lines = at.train_on_a_terminal([100, 30], environment, options);
        assert!(lines.contains("Training step 60/60  loss") && !lines.contains('\x1b'), "{lines}");
    }
    let plain = at.train_on_a_terminal([100, 30], "TERM=xterm NO_COLOR=1", "");
    assert!(plain.contains("\x1b[0;1m") && !plain.contains("\x1b[0;32m"), "bold, but not green: {plain}");
}

#[test]
fn a_training_that_is_stopped_on_a_terminal_says_how_to_go_on() {
    let at = Workplace::new();
    let akin = env!("CARGO_BIN_EXE_akin");
    // The shell sends Ctrl-C when there is a checkpoint.
    let line = format!(
        "stty cols 100 rows 30; TERM=xterm {akin} train tiny.toml --out run --set run.checkpoint_every_steps=1 \
         --set run.steps=100000 & while [ ! -e run/checkpoint.akin ]; do sleep 0.05; done; kill -INT $!; wait $!"
    );
    let text = at.on_a_terminal(&line, "").expect_code(130).stdout;
    let (_, last) = text.rsplit_once("\x1b[J").unwrap();
    assert!(last.contains("`akin resume run` continues"), "{last}");
    assert!(text.contains("Stopping after this step"), "{text}");
}

#[test]
fn a_dry_run_can_be_repeated_and_states_the_pictures_that_there_are() {
    let at = Workplace::new();
    for _ in 0..2 {
        let plan = at.akin(&["train", "tiny.toml", "--dry-run"]).expect_code(0);
        // 48 pictures of 32 × 32 pixels.
        assert!(plan.stdout.contains("up to 147 kB for decoded pictures"), "{}", plan.stdout);
    }
    at.akin(&["train", "tiny.toml", "--dry-run", "--sheet", "x.jpg"])
        .expect_code(1)
        .expect_stderr("`--sheet x.jpg` does not end in .png");
    let own = at.bytes("tiny-first-batch.png");
    image::load_from_memory(&own).unwrap();
    // A picture that the user saved again no longer says that a dry run drew it.
    let mut saved = std::io::Cursor::new(Vec::new());
    image::load_from_memory(&own).unwrap().write_to(&mut saved, image::ImageFormat::Png).unwrap();
    for file in ["kept.png", "tiny-first-batch.png"] {
        at.write(file, saved.get_ref());
        let plan = ["train", "tiny.toml", "--dry-run", "--sheet", file];
        at.akin(if file == "kept.png" { &plan } else { &plan[..3] })
            .expect_code(1)
            .expect_stderr(&format!("{file} already exists"));
        assert_eq!(at.bytes(file), *saved.get_ref());
    }
}

#[test]
fn a_dry_run_says_that_the_training_will_refuse_its_directory() {
    let at = Workplace::new();
    at.write("notes/thesis.txt", "mine");
    let plan = |out: &str, more: &[&str]| {
        let dry_run = ["train", "tiny.toml", "--dry-run", "--sheet", "sheet.png", "--out", out];
        at.akin(&[&dry_run[..], more].concat())
    };
    plan("new", &[]).expect_code(0);
    plan("notes", &[])
        .expect_code(1)
        .expect_stdout("60 steps")
        .expect_stderr("the training lacks a directory: ")
        .expect_stderr("notes is not empty and is not a run")
        .expect_stderr("choose another directory with `--out DIR`");
    at.train("run").expect_code(0);
    plan("run", &[]).expect_code(1).expect_stderr("run already has a run");
    plan("run", &["--overwrite"]).expect_code(0);
}

#[test]
fn progress_in_json_is_an_object_on_each_line() {
    let at = Workplace::new();
    let events = |arguments: &[&str], code| -> Vec<Value> {
        at.akin(&[arguments, &["--progress", "json"]].concat()).expect_code(code).events()
    };
    let of = |events: &[Value], kind: &str| -> Vec<Value> {
        events.iter().filter(|event| event["kind"] == kind).cloned().collect()
    };
    let sets = ["--set", "run.evaluate_every_epochs=20", "--set", "optimizer.lr_terms=[0.5]"];
    let said = events(&[&["train", "tiny.toml", "--out", "run"][..], &sets].concat(), 0);
    let steps: Vec<Value> =
        of(&said, "progress").into_iter().filter(|event| event["what"] == "Training").collect();
    assert_eq!(steps.last().unwrap()["done"], STEPS);
    for step in &steps {
        assert!(step["loss"].is_f64() && step["seconds_left"].is_f64() && step["total"] == STEPS, "{step}");
    }
    let evaluation = &of(&said, "evaluation")[0];
    assert!(evaluation["metrics"]["h_ap"].is_f64() && evaluation["levels"][2]["ap"].is_f64(), "{evaluation}");
    let done = &of(&said, "done")[0];
    assert!(done["metrics"]["h_ap"].is_f64());
    assert_eq!(done["directory"].as_str().unwrap(), at.path("run").canonicalize().unwrap().to_str().unwrap());
    let text = |event: &Value| event["text"].as_str().unwrap().to_owned();
    assert!(of(&said, "message").iter().any(|event| text(event).starts_with("Finished the run is in run")));
    assert!(text(&of(&said, "warning")[0]).starts_with("optimizer.lr_terms is [0.5]"));
    let said = events(&["eval", "run"], 0);
    let mut phases: Vec<Value> = of(&said, "progress").iter().map(|event| event["what"].clone()).collect();
    phases.dedup();
    assert_eq!(phases, ["Embedding", "Checking", "Ranking"]);
    let said = events(&["eval", "nowhere"], 1);
    assert!(text(&said[0]).contains("nowhere") && said[0]["kind"] == "error" && said[0]["hint"].is_string());
    assert_eq!(said[0]["code"], "other");
}

#[test]
fn the_plan_of_pairs_has_the_largest_batch_of_the_data() {
    let at = Workplace::new();
    // Two orders with four trained species each, of which a half takes at most 16.
    at.write(
        "tiny.toml",
        config().replace("classes_per_batch = 4", "kind = \"class_pairs\"\nclasses_per_batch = 32"),
    );
    let plan = at.akin(&["train", "tiny.toml", "--dry-run"]).expect_code(0);
    assert!(
        plan.stdout.contains("Batch   at most 32 images: up to 32 classes × 4 images"),
        "{}",
        plan.stdout
    );
}

#[test]
fn no_output_replaces_the_data_or_the_config() {
    let at = Workplace::new();
    for run in ["run", "other"] {
        at.train(run).expect_code(0);
    }
    let (config, table) = ("tiny.toml", "data/labels.csv");
    let image = at.read(table).lines().nth(1).unwrap().split(',').next().unwrap().to_owned();
    let image = format!("data/{image}");
    let before = [config, table, &image].map(|file| at.bytes(file));
    let train = ["train", config, "--dry-run", "--sheet"];
    let stats = ["data", "stats", config];
    let commands = [
        [&train[..], &[&image]].concat(),
        [&stats[..], &["--svg", table]].concat(),
        [&stats[..], &["--svg", config]].concat(),
        [&stats[..], &["--png", &image]].concat(),
        vec!["eval", "run", "--per-query", table],
        vec!["eval", "run", "--per-query", &image],
        vec!["eval", "run", "--curves", &image],
        // The paths go into a table beside the embeddings.
        vec!["embed", "run", "data/images", "--out", "data/labels.npy"],
        vec!["embed", "run", &image, "--out", table],
        vec!["eval", "run", "--per-query", "run/.akin.json"],
        vec!["eval", "run", "--curves", "other/run.json"],
        vec!["init", "data/labels.csv", "--levels", "order,species", "--out", "other/config.toml"],
    ];
    for command in commands {
        let answer = at.akin(&[&command[..], &["--overwrite"]].concat()).expect_code(1);
        let reasons = ["of the input", "is the input", "is a file of the run"];
        assert!(reasons.iter().any(|reason| answer.stderr.contains(reason)), "{}", answer.stderr);
        assert_eq!([config, table, &image].map(|file| at.bytes(file)), before, "{command:?}");
    }
    let twice = at.akin(&["data", "stats", config, "--svg", "same.svg", "--png", "same.svg"]).expect_code(1);
    twice.expect_stderr("`--png same.svg` does not end in .png");
    // Nor does it take the place of a file of another format.
    let photos = at.read(config);
    at.write("photos.toml", &photos);
    for command in [
        &["eval", "run", "--per-query", "photos.toml"][..],
        &["eval", "run", "--curves", "photos.toml"],
        &["embed", "run", "data/images", "--out", "photos.toml"],
    ] {
        let answer = at.akin(&[command, &["--overwrite"]].concat()).expect_code(1);
        let reasons = ["photos.toml` does not end in .", "whose ending names no format of embeddings"];
        assert!(reasons.iter().any(|reason| answer.stderr.contains(reason)), "{}", answer.stderr);
        assert_eq!(at.read("photos.toml"), photos, "{command:?}");
    }

    // As a folder tree every image in it is read.
    let folder = at.read(config).replace("kind = \"csv\"", "kind = \"folder\"");
    let split = "\n[split]\ntest_fraction = 0.5\n";
    at.write("tree.toml", folder.replace("data/labels.csv", "data/images") + split);
    at.akin(&["train", "tree.toml", "--out", "tree", "--set", "run.steps=1"]).expect_code(0);
    at.akin(&["report", "tree", "--out", "report.html", "--png", "data/images/figures"]).expect_code(1);
    assert!(!at.path("data/images/figures").exists());
}
