//! The command line: what each command prints on stdout and stderr, and its exit code.

mod workplace;

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use workplace::{Answer, Workplace};

fn akin<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Answer {
    Answer::of(Command::new(env!("CARGO_BIN_EXE_akin")).args(arguments).output().expect("cargo has built it"))
}

fn in_folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    folder
}

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

fn png(grey: u8) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    image::GrayImage::from_pixel(1, 1, image::Luma([grey]))
        .write_to(&mut bytes, image::ImageFormat::Png)
        .unwrap();
    bytes.into_inner()
}

#[test]
fn wrong_usage_exits_with_2_and_suggests_a_command() {
    let answer = akin(["evla"]);
    assert_eq!(answer.code, Some(2));
    assert!(answer.stderr.contains("'eval'"), "{}", answer.stderr);
    assert_eq!(akin(["eval"]).code, Some(2));
    assert_eq!(akin::<&str>([]).code, Some(2));
}

#[test]
fn an_output_is_never_an_input() {
    let folder = in_folder(&[("l.csv", b"kind\na\na\n"), ("old.csv", b"mine")]);
    let queries = folder.path().join("q.npy");
    let dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }\n";
    let header = [b"\x93NUMPY\x01\x00", &(dict.len() as u16).to_le_bytes()[..], dict.as_bytes()].concat();
    std::fs::write(&queries, [header, vec![0, 0, 128, 63, 0, 0, 128, 63]].concat()).unwrap();
    let [queries, labels, old] =
        ["q.npy", "l.csv", "old.csv"].map(|name| folder.path().join(name).display().to_string());
    let eval = |more: &[&str]| {
        let files =
            ["eval", "--queries", &queries, "--query-labels", &labels, "--levels", "kind", "--per-query"];
        akin(files.iter().chain(more))
    };
    for more in [&[&*labels][..], &[&*labels, "--overwrite"], &[&*queries, "--overwrite"], &[&*old]] {
        let answer = eval(more);
        assert_eq!(answer.code, Some(1), "{more:?}: {}", answer.stderr);
    }
    assert_eq!(std::fs::read_to_string(&old).unwrap(), "mine");
    let answer = eval(&[&old, "--overwrite"]);
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
}

#[test]
fn an_error_prints_a_hint_on_stderr_and_exits_with_1() {
    let answer = akin(["data", "check", "nowhere.toml"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(1), ""));
    assert!(answer.stderr.starts_with("error: the config nowhere.toml cannot be read"), "{}", answer.stderr);
    assert!(answer.stderr.contains("\n  hint: "), "{}", answer.stderr);
}

#[test]
fn data_check_counts_images_and_lists_mistakes() {
    let folder = in_folder(&[
        ("data.toml", b"[data]\nkind = 'folder'\npath = 'images'\nlevels = ['kind', 'variety']\n"),
        ("images/train/Apple/Gala/1.png", &png(1)),
        ("images/train/Apple/Gala/2.png", &png(2)),
        ("images/test/Apple/Fuji/1.png", &png(3)),
        ("images/test/Apple/Fuji/2.png", &png(4)),
    ]);
    let answer = akin(["data", "check", &path(&folder, "data.toml")]);
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    assert!(answer.stdout.contains("train       2     1        1"), "{}", answer.stdout);

    fs::write(folder.path().join("images/test/Apple/Fuji/3.png"), &png(5)[..30]).unwrap();
    fs::write(folder.path().join("images/test/Apple/Fuji/4.heic"), b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")
        .unwrap();
    fs::write(folder.path().join("images/test/Apple/Fuji/5.png"), png(1)).unwrap();
    fs::write(folder.path().join("images/test/Apple/Fuji/6.png"), png(4)).unwrap();
    let answer = akin(["data", "check", &path(&folder, "data.toml")]);
    assert_eq!(answer.code, Some(1));
    for part in [
        "2 images cannot be read",
        "3.png: ",
        "4.heic: ",
        "HEIC",
        "in more than one split",
        "in one split more than once",
    ] {
        assert!(answer.stdout.contains(part), "{part} in {}", answer.stdout);
    }
    assert!(answer.stderr.starts_with("error: 2 images cannot be read"), "{}", answer.stderr);

    let json = akin(["data", "check", "--json", &path(&folder, "data.toml")]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["unreadable"].as_array().unwrap().len(), 2);
    assert_eq!(json["repeated"][0][1]["path"].as_str().unwrap().rsplit('/').next(), Some("6.png"));
}

/// Names of files come from anywhere, and terminals obey control characters.
#[cfg(unix)]
#[test]
fn control_characters_in_names_are_printed_as_their_codes() {
    let folder = in_folder(&[
        ("data.toml", b"[data]\nkind = 'folder'\npath = 'images'\nlevels = ['kind', 'variety']\n"),
        ("images/train/Apple/Gala/\u{1b}[2J\u{9b}31m.png", b"damaged"),
        ("images/test/Apple/Fuji/1.png", &png(3)),
    ]);
    let is_unsafe = |text: &str| text.contains(|c: char| c.is_control() && c != '\n');
    for format in [&[][..], &["--json"]] {
        let answer = akin(["data", "check", &path(&folder, "data.toml")].iter().chain(format));
        assert!(answer.stdout.contains("\\u001b[2J\\u009b31m.png"), "{}", answer.stdout);
        assert!(!is_unsafe(&answer.stdout) && !is_unsafe(&answer.stderr));
    }
    let answer = akin(["train", "\u{1b}[2J.toml"]);
    assert!(answer.stderr.contains("\\u001b[2J") && !is_unsafe(&answer.stderr), "{}", answer.stderr);
    let answer = akin(["train", "--\u{9b}2J"]);
    assert!(answer.stderr.contains("\\u009b2J") && !is_unsafe(&answer.stderr), "{}", answer.stderr);
}

/// A name may hold a line end, too. It begins no line that looks like one of akin.
#[cfg(unix)]
#[test]
fn a_line_end_in_a_name_forges_no_message() {
    let answer = akin(["train", "x\nerror: forged\n  hint: forged.toml"]);
    let lines = |start: &str| answer.stderr.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!(answer.code, Some(1));
    assert_eq!((lines("error: "), lines("  hint: ")), (1, 1), "{}", answer.stderr);
    assert!(answer.stderr.contains("\n    error: forged"), "{}", answer.stderr);
}

#[cfg(unix)]
#[test]
fn a_line_end_in_the_name_of_a_picture_begins_no_line() {
    let folder = in_folder(&[
        ("data.toml", b"[data]\nkind = 'folder'\npath = 'images'\nlevels = ['kind', 'variety']\n"),
        ("images/train/Apple/Gala/a\nerror: b.png", b"damaged"),
        ("images/train/Apple/Gala/c\nerror: d.png", &png(3)),
        ("images/test/Apple/Fuji/e\nerror: f.png", &png(3)),
    ]);
    let answer = akin(["data", "check", &path(&folder, "data.toml")]);
    assert!(!answer.stdout.lines().any(|line| line.starts_with("error")), "{}", answer.stdout);
    for name in ["a\\u000aerror: b.png: ", "c\\u000aerror: d.png (train)"] {
        assert!(answer.stdout.contains(name), "{}", answer.stdout);
    }
}

#[cfg(unix)]
#[test]
fn a_config_is_not_named_with_control_characters_and_quotes_none() {
    let folder = in_folder(&[]);
    let draw = ["biomorphs", &path(&folder, "a\u{1b}\nb"), "--branching", "4,1", "--images-per-class", "2"];
    assert_eq!(akin(draw).code, Some(0));
    let init =
        |out: &str| akin(["init", &path(&folder, "a\u{1b}\nb"), "--yes", "--out", &path(&folder, out)]);
    let refused = init("x\u{1b}.toml");
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("has a control character"), "{}", refused.stderr);
    let written = init("x.toml");
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    let config = fs::read_to_string(folder.path().join("x.toml")).unwrap();
    assert!(!config.contains(|c: char| c.is_control() && c != '\n'), "{config}");
    assert_eq!(akin(["config", "check", &path(&folder, "x.toml")]).code, Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_an_error_with_a_hint() {
    for arguments in [&["list", "metrics"][..], &["--help"], &["--version"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let answer = Command::new(env!("CARGO_BIN_EXE_akin")).args(arguments).stdout(full).output().unwrap();
        let stderr = String::from_utf8(answer.stderr).unwrap();
        assert_eq!(answer.status.code(), Some(1), "{arguments:?}: {stderr}");
        assert!(stderr.starts_with("error: the output cannot be written: No space left"), "{stderr}");
        assert!(stderr.contains("  hint: "), "{stderr}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_grows_beyond_the_limit_of_the_shell_is_an_error() {
    let folder = in_folder(&[]);
    let line = format!(
        "ulimit -f 1; exec {} biomorphs {} --branching 1,1 --images-per-class 1 --side 256",
        env!("CARGO_BIN_EXE_akin"),
        path(&folder, "data")
    );
    let answer = Command::new("sh").args(["-c", &line]).output().unwrap();
    let stderr = String::from_utf8(answer.stderr).unwrap();
    assert_eq!(answer.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("was not written: File too large") && stderr.contains("  hint: "), "{stderr}");
}

#[test]
fn a_closed_stderr_stops_no_command() {
    let folder = in_folder(&[]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_akin"))
        .args(["biomorphs", &path(&folder, "data"), "--branching", "1,2", "--images-per-class", "2"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Images of unusual formats are neither refused nor counted as damaged.
#[test]
fn unusual_images_are_read() {
    let encode = |image: image::DynamicImage| {
        let mut bytes = std::io::Cursor::new(Vec::new());
        image.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
        bytes.into_inner()
    };
    let cmyk = include_bytes!("../../core/tests/images/cmyk-adobe.jpg");
    let folder = in_folder(&[
        ("data.toml", b"[data]\nkind = 'folder'\npath = 'images'\nlevels = ['kind', 'variety']\n"),
        ("images/train/Apple/Gala/cmyk.jpg", cmyk),
        ("images/train/Apple/Gala/pixel.png", &png(1)),
        ("images/test/Apple/Fuji/deep.png", &encode(image::DynamicImage::new_rgb16(5, 4))),
        ("images/test/Apple/Fuji/alpha.png", &encode(image::DynamicImage::new_rgba8(5, 4))),
    ]);
    let answer = akin(["data", "check", &path(&folder, "data.toml")]);
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    assert!(!answer.stdout.contains("cannot be read"), "{}", answer.stdout);
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_evaluation() {
    let folder = in_folder(&[]);
    let scores = path(&folder, "nowhere/scores.csv");
    let files = ["--queries", "none.npy", "--query-labels", "none.csv", "--levels", "kind"];
    let answer = akin(["eval", "--per-query", &scores].into_iter().chain(files));
    assert!(answer.stderr.contains("scores.csv cannot be written: the folder"), "{}", answer.stderr);
}

#[test]
fn a_mistyped_recipe_is_suggested() {
    let answer = akin(["train", "grocery-hapier"]);
    assert_eq!(answer.code, Some(1));
    assert!(answer.stderr.contains("hint: did you mean `grocery-happier`?"), "{}", answer.stderr);
}

#[test]
fn an_unknown_metric_in_a_config_is_one_message_and_one_hint() {
    let folder = in_folder(&[("config.toml", CONFIG)]);
    let config = path(&folder, "config.toml");
    for (metrics, message) in [
        ("['recal@1']", "`eval.metrics`: unknown metric `recal@1`\n  hint: did you mean recall@k"),
        ("['recall']", "it needs a cut-off\n  hint: write recall@k"),
        ("['recall@0']", "a whole number of at least 1\n  hint: write recall@k"),
        ("['mrr@10']", "`mrr@10` does not name a metric: it takes no cut-off\n  hint: write mrr\n"),
    ] {
        let answer = akin(["train", &config, "--set", &format!("eval.metrics={metrics}")]);
        assert!(answer.stderr.contains(message), "{}", answer.stderr);
    }
}

/// A complete config for training; the data are in `labels.csv`.
const CONFIG: &[u8] = b"
run = { steps = 1, device = 'cpu' }
data = { kind = 'csv', path = 'labels.csv', levels = ['kind', 'variety'] }
loss = { kind = 'norm_softmax' }
sampler = { classes_per_batch = 1, images_per_class = 1 }
[model]
backbone = { kind = 'small_resnet', width = 4 }
preprocessing = { resize = 16, crop = 16, filter = 'bilinear', channels = 'rgb', scale = 0.004, mean = [0.5, 0.5, 0.5], deviation = [0.5, 0.5, 0.5] }
";

#[test]
fn bad_data_sets_are_refused_before_a_run_is_created() {
    const GOOD: &str =
        "path,kind,variety,split\na.png,Apple,Gala,train\nb.png,Apple,Fuji,test\nb.png,Apple,Fuji,test\n";
    let image = png(1);
    let refused = |from: &str, to: &str| {
        let labels = GOOD.replacen(from, to, 1);
        let folder = in_folder(&[
            ("config.toml", CONFIG),
            ("labels.csv", labels.as_bytes()),
            ("a.png", &image),
            ("b.png", &image),
        ]);
        let answer = akin(["train", &path(&folder, "config.toml"), "--out", &path(&folder, "run")]);
        assert_eq!((answer.code, answer.stdout.as_str()), (Some(1), ""), "{}", answer.stderr);
        assert!(answer.stderr.contains("\n  hint: "), "{}", answer.stderr);
        assert!(answer.stderr.contains("labels.csv") || answer.stderr.contains("png"), "{}", answer.stderr);
        assert!(!folder.path().join("run").exists());
        answer.stderr
    };
    assert!(refused("variety", "vareity").contains("no column `variety`"));
    assert!(refused("a.png", "nowhere.png").contains("1 image does not exist"));
    assert!(refused("Apple,Fuji", "Pear,Gala").contains("a class has two parents"));
    assert!(refused("b.png,Apple,Fuji,test", "b.png,Pear,Conference,test").contains("shares a label"));
    assert!(refused("Apple,Gala", ",").contains("row 2: the label `kind` is missing"));
    assert!(refused(",train", ",test").contains("the split `train`"));
}

#[test]
fn invalid_settings_are_refused_before_a_run_is_created() {
    let image = png(1);
    let labels =
        b"path,kind,variety,split\na.png,Apple,Gala,train\nb.png,Apple,Fuji,test\nb.png,Apple,Fuji,test\n";
    let folder =
        in_folder(&[("config.toml", CONFIG), ("labels.csv", labels), ("a.png", &image), ("b.png", &image)]);
    let refused = |sets: &[&str], why: &str| {
        let (config, run) = (path(&folder, "config.toml"), path(&folder, "run"));
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        let answer = akin(["train", &config, "--out", &run].into_iter().chain(sets));
        assert_eq!(answer.code, Some(1), "{why}: {}", answer.stderr);
        assert!(
            answer.stderr.contains(why) && answer.stderr.contains("\n  hint: "),
            "{why}: {}",
            answer.stderr
        );
        assert!(!folder.path().join("run").exists(), "{why}");
    };
    for (loss, why) in [
        ("{kind='norm_sofmax'}", "did you mean `norm_softmax`?"),
        ("{kind='levels',loss={kind='norm_sofmax'}}", "unknown loss `norm_sofmax` in `loss.loss.kind`"),
        ("{kind='norm_softmax',temprature=1}", "unknown key `temprature` in [loss]"),
        ("{kind='norm_softmax',temperature='hot'}", "`loss.temperature` is \"hot\", not a number"),
        ("{kind='norm_softmax',temperature=0}", "the temperature of norm_softmax is 0"),
        ("{kind='smooth_ap',temperature=0}", "the temperature of smooth_ap is 0"),
        ("{kind='roadmap',sup_ap={step={temperature=0}}}", "temperature of the upper step is 0"),
        ("{kind='hap_surrogate',upper_step={temperature=0}}", "temperature of the upper step is 0"),
        ("{kind='happier',lambda=2}", "the lambda of HAPPIER is 2"),
        ("{kind='hap_surrogate',relevance={kind='plain',alpha=-1}}", "alpha of the relevance is -1"),
        ("{kind='hap_surrogate',relevance={kind='weighted_ap',weights=[1]}}", "the relevance has 1 weight"),
        ("{kind='hap_surrogate',upper_step={threshold=-1}}", "threshold of the upper step is -1"),
        (
            "{kind='hap_surrogate',upper_step={slope=nan}}",
            "`loss.upper_step.slope` is nan, not a finite number",
        ),
        (
            "{kind='hap_surrogate',lower_step={leak=inf}}",
            "`loss.lower_step.leak` is inf, not a finite number",
        ),
        ("{kind='sum',terms=[]}", "sum to 0"),
        (
            "{kind='sum',terms=[{weight=1,loss={kind='fast_ap'}},{weight=-1,loss={kind='smooth_ap'}}]}",
            "[1.0, -1.0], which sum to 0",
        ),
        (
            "{kind='levels',loss={kind='fast_ap'},weights=[1,1,1]}",
            "3 weights were given for a loss over 2 levels",
        ),
        ("{kind='levels',loss={kind='fast_ap'},weights=[0,0]}", "weights of the levels are [0.0, 0.0]"),
        ("{kind='csl',margins=[0.1,0.1,0.1]}", "but there are 2 levels"),
        ("{kind='hierarchical_proxy',coarse={kind='clusters',count=5}}", "5 clusters for 1 fine class"),
        ("{kind='contrastive',miner={kind='batch_hrad_miner'}}", "did you mean `batch_hard_miner`?"),
        ("{kind='cross_batch_memory',loss={kind='norm_softmax'}}", "compares no pairs of items"),
        ("{kind='hpdh'}", "the loss hpdh cannot compare cosine embeddings"),
    ] {
        refused(&[&format!("loss={loss}")], why);
    }
    for (loss, bits, why) in [
        ("roadmap", 8, "the loss roadmap cannot compare binary embeddings"),
        ("hpdh", 1, "codes of 1 bit"),
        ("csq", 1, "codes of 1 bit"),
        ("hpdh", 64, "codes of 64 bits, but the backbone has only 32 features"),
    ] {
        let head = format!("model.head={{dimension={bits},geometry={{kind='binary'}}}}");
        refused(&[&head, &format!("loss={{kind='{loss}'}}")], why);
    }
    let ball = "model.head={dimension=8,geometry={kind='poincare'}}";
    refused(&[ball, "loss={kind='roadmap'}"], "the loss roadmap cannot compare poincare embeddings");
    for (set, why) in [
        ("eval.metrics=['recal@1']", "unknown metric `recal@1`\n  hint: did you mean recall@k"),
        ("eval.relevance={kind='weighted_ap',weights=[1,1,1]}", "the relevance has 3 weights for 2 levels"),
        ("eval.similarity={poincare={curvature=0}}", "the curvature of the Poincaré ball is 0"),
        ("eval.bootstrap={resamples=0}", "the bootstrap has 0 resamples"),
        ("eval.bootstrap={resamples=4294967295}", "the bootstrap has 4294967295 resamples, which would take"),
        ("eval.decomposability_gap={batch=1}", "in batches of 1 from a set of 2 items"),
        ("eval.decomposability_gap={batch=3}", "in batches of 3 from a set of 2 items"),
        ("eval.hyperbolicity={points=3}", "the hyperbolicity has draws of 3 points"),
        ("eval.hyperbolicity={points=9,draws=0}", "the hyperbolicity has 0 draws"),
    ] {
        refused(&[set], why);
    }
}

#[test]
fn a_message_blames_what_is_wrong_and_nothing_else() {
    let folder = in_folder(&[
        ("config.toml", CONFIG),
        ("labels.csv", b"path,kind,variety,split\n1.png,Apple,Gala,train\n2.png,Apple,Fuji,train\n3.png,Pear,Conference,test\n"),
    ]);
    for (set, told, not_told) in [
        ("model.preprocessing={name='imagenet',crop='x'}", "`model.preprocessing.crop` is \"x\"", "channels"),
        (
            "model.preprocessing={name='imagenet',crop=5000}",
            "crops to 5000 pixels\n  hint: choose sizes",
            "channels",
        ),
        (
            "model.preprocessing={crop=16,scale=0.004}",
            "preprocessing has scale but not channels, mean, deviation",
            "did you mean",
        ),
        ("data.levels=['variety','kind']", "from coarse to fine they are kind, variety", "qualify"),
    ] {
        let answer = akin(["train", &path(&folder, "config.toml"), "--set", set]);
        assert_eq!(answer.code, Some(1), "{set}");
        assert!(answer.stderr.contains(told), "{set}: {}", answer.stderr);
        assert!(!answer.stderr.contains(not_told), "{set}: {}", answer.stderr);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_evaluation_of_embeddings_shows_how_far_it_is() {
    let rows = 2_000;
    let embeddings: Vec<[f32; 2]> = (0..rows).map(|row| [1.0, row as f32]).collect();
    let labels: String = (0..rows).map(|row| format!("{}\n", row % 40)).collect();
    let labels = format!("kind\n{labels}");
    let folder = in_folder(&[("q.npy", &floats(&embeddings)), ("q.csv", labels.as_bytes())]);
    let line = format!(
        "{} eval --queries q.npy --query-labels q.csv --levels kind --metrics recall@1",
        env!("CARGO_BIN_EXE_akin")
    );
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(&folder);
    let output =
        command.env("SHELL", "/bin/sh").env("TERM", "xterm").stdin(std::process::Stdio::null()).output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    for part in ["Checking", "Ranking", "/2000  ", " left"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

#[test]
fn a_port_in_use_is_refused() {
    let folder = in_folder(&[]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let answer = akin(["demo", "--port", &port, "--out", &path(&folder, "demo")]);
    assert_eq!(answer.code, Some(1));
    assert!(answer.stderr.contains(&format!("port {port} is in use")), "{}", answer.stderr);
    assert!(!folder.path().join("demo").exists(), "the port is tried before the creatures are drawn");
}

#[test]
fn a_mistyped_key_is_reported_with_its_line() {
    let folder =
        in_folder(&[("c.toml", b"[data]\nkind = 'csv'\npath = 'x.csv'\nlevles = ['a']\nlevels = ['b']\n")]);
    let answer = akin(["data", "check", &path(&folder, "c.toml")]);
    assert!(answer.stderr.contains("c.toml, line 4: unknown key `levles` in [data]"), "{}", answer.stderr);
    assert!(answer.stderr.contains("hint: did you mean `levels`?"), "{}", answer.stderr);
}

#[test]
fn a_folder_without_a_bundle_is_refused_before_the_page_is_built() {
    let folder = in_folder(&[]);
    let answer = akin(["serve", folder.path().to_str().unwrap(), "--port", "0"]);
    assert_eq!(answer.code, Some(1));
    assert!(answer.stderr.contains("is not a bundle"), "{}", answer.stderr);
    assert!(Path::new(folder.path()).read_dir().unwrap().next().is_none());
}

/// A .npy file of this type and shape.
fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    [b"\x93NUMPY\x01\x00", &(dict.len() as u16).to_le_bytes()[..], dict.as_bytes(), data].concat()
}

fn floats(rows: &[[f32; 2]]) -> Vec<u8> {
    let data: Vec<u8> = rows.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
    npy("<f4", &format!("({}, 2)", rows.len()), &data)
}

const LABELS: &[u8] = b"variety,kind\nGala,Apple\nGala,Apple\nFuji,Apple\nConference,Pear\nConference,Pear\n";

/// Runs `akin eval` on five embeddings, with these files and arguments added or replaced.
fn eval(files: &[(&str, &[u8])], arguments: &[&str]) -> Answer {
    let embeddings = floats(&[[1.0, 0.0], [0.9, 0.1], [0.8, 0.4], [0.0, 1.0], [0.1, 0.9]]);
    let folder = in_folder(&[("q.npy", &embeddings), ("q.csv", LABELS)]);
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let arguments: Vec<String> =
        arguments.iter().map(|text| text.replace("DIR", folder.path().to_str().unwrap())).collect();
    let (queries, labels) = (path(&folder, "q.npy"), path(&folder, "q.csv"));
    let fixed = ["eval", "--queries", &queries, "--query-labels", &labels, "--levels", "kind,variety"];
    let mut answer = akin(fixed.iter().map(|text| (*text).to_owned()).chain(arguments));
    if let Ok(rows) = fs::read_to_string(folder.path().join("rows.csv")) {
        answer.stdout += &rows;
    }
    answer
}

#[test]
fn embeddings_from_files_are_evaluated() {
    let answer = eval(&[], &[]);
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    let lines: Vec<&str> = answer.stdout.lines().collect();
    assert_eq!(lines[0], "level    queries      AP   mAP@R     R@1");
    assert_eq!(lines[1], "kind           5  100.00  100.00  100.00");
    assert_eq!(lines[2], "variety        4  100.00  100.00  100.00");
    assert!(lines.last().unwrap().starts_with("5 queries, each ranking 4 items by cosine; ties stable"));

    let json = eval(&[], &["--json", "--ties", "strict", "--count-query", "--relevance", "plain:2"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["overall"]["h_ap"], 1.0);
    assert_eq!(json["config"]["relevance"]["kind"], "plain");
    assert_eq!(json["config"]["count_query"], true);

    let answer = eval(&[], &["--json", "--per-query", "DIR/rows.csv"]);
    assert!(answer.stdout.contains("query,h_ap,ndcg,asi,kind_ap,kind_map_at_r,kind_recall@1,variety_ap"));
    assert!(answer.stdout.contains("\n2,1,1,1,1,1,1,,,\n"), "no positive, no score: {}", answer.stdout);
}

#[test]
fn the_curves_of_hierarchical_precision_and_recall_are_a_table_and_a_file() {
    let answer = eval(&[], &["--metrics", "h_ap", "--curves", "DIR/rows.csv"]);
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    let lines: Vec<&str> = answer.stdout.lines().map(str::trim_start).collect();
    assert!(lines[0].ends_with("queries    H-AP"), "the curves are no part of the table: {}", answer.stdout);
    let table = lines.iter().position(|line| line.starts_with("k  ")).expect("a table of the curves");
    assert_eq!(lines[table].split_whitespace().collect::<Vec<_>>(), ["k", "H-P@k", "H-R@k", "mAHP@k"]);
    // Each query ranks four items, so the curves end at 4.
    assert!(lines[table + 1].starts_with("1  100.00") && lines[table + 3].starts_with("4  "));
    let file: Vec<&str> = lines.iter().copied().skip_while(|line| !line.starts_with("k,")).collect();
    assert_eq!((file[0], file.len()), ("k,h_precision,h_recall,mahp", 4), "{}", answer.stdout);

    let metrics = "h_precision@4,h_recall@4,mahp@4";
    let json = eval(&[], &["--json", "--metrics", metrics]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let row: Vec<f64> = file[3].split(',').map(|cell| cell.parse().unwrap()).collect();
    let expected: Vec<f64> = metrics.split(',').map(|name| json["overall"][name].as_f64().unwrap()).collect();
    assert_eq!(row[1..], expected[..]);

    let answer = eval(&[], &["--curves", "DIR/q.csv"]);
    assert_eq!(answer.code, Some(1), "an input is not replaced");
    let answer = eval(&[], &["--curves", "DIR/c.csv", "--dyml"]);
    assert_eq!(answer.code, Some(2), "{}", answer.stderr);
}

/// The example prints what its comment says.
#[cfg(unix)]
#[test]
fn the_example_of_npy_files_prints_what_its_comment_promises() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/evaluate_npy.sh");
    let text = fs::read_to_string(script).unwrap();
    let lines = text.lines().skip_while(|line| !line.starts_with("# level"));
    let promised: Vec<&str> = lines.map_while(|line| line.strip_prefix('#')).map(str::trim).collect();
    let output = Command::new("sh").arg(script).env("AKIN", env!("CARGO_BIN_EXE_akin")).output().unwrap();
    let answer = Answer::of(output).expect_code(0);
    let printed: Vec<&str> = answer.stdout.lines().map(str::trim).collect();
    assert_eq!(printed, promised);
}

#[test]
fn a_loss_is_shown_with_its_settings() {
    let answer = akin(["list", "losses", "--show", "happier"]);
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    assert!(answer.stdout.starts_with("HAPPIER: "), "{}", answer.stdout);
    let rows = cells(&answer.stdout);
    assert!(rows.iter().any(|row| row.starts_with(&["lambda", "number", "0.1"])), "{}", answer.stdout);
    let json = akin(["list", "losses", "--show", "happier", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["setting"], "lambda");

    let answer = akin(["list", "losses", "--show", "hapier"]);
    assert_eq!(answer.code, Some(1));
    for part in ["unknown loss `hapier`", "did you mean `happier`?"] {
        assert!(answer.stderr.contains(part), "{}", answer.stderr);
    }
    assert!(akin(["list", "miners", "--show", "batch_hard_miner"]).stdout.starts_with("Batch hard: "));
}

#[test]
fn metrics_and_intervals_can_be_chosen() {
    let answer = eval(&[], &["--metrics", "mrr,ndcg@3,mistake_severity,recall@2", "--bootstrap", "50"]);
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    let lines: Vec<&str> = answer.stdout.lines().collect();
    assert_eq!(lines[0], "level    queries                      MRR                      R@2");
    assert_eq!(lines[1], "kind           5  100.00 [100.00, 100.00]  100.00 [100.00, 100.00]");
    assert!(lines[4].ends_with("NDCG@3           severity"), "{}", lines[4]);
    assert!(answer.stdout.contains("50 resamples"), "{}", answer.stdout);

    let json = eval(&[], &["--json", "--bootstrap", "50", "--decomposability-gap", "2"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["overall"]["interval"]["h_ap"], serde_json::json!([1.0, 1.0]));
    assert_eq!(json["decomposability_gap"]["batches"], 2);
    assert_eq!(json["decomposability_gap"]["interval"][0], serde_json::json!([0.0, 0.0]));
    let answer = eval(&[], &["--bootstrap", "50", "--decomposability-gap", "5"]);
    assert!(answer.stdout.contains("\nvariety  +0.00 [+0.00, +0.00]\n"), "{}", answer.stdout);

    let json = eval(&[], &["--json", "--hyperbolicity", "5"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["hyperbolicity"]["points"], &json["hyperbolicity"]["draws"]), (&5.into(), &10.into()));
    let relative = json["hyperbolicity"]["relative"].as_f64().unwrap();
    let answer = eval(&[], &["--hyperbolicity", "5"]);
    let line = format!("relative δ-hyperbolicity {relative:.3} ± ");
    assert!(
        answer.stdout.contains(&line) && answer.stdout.contains("in 10 draws of 5 items"),
        "{}",
        answer.stdout
    );
    let answer = eval(&[], &["--hyperbolicity", "5", "--similarity", "dot"]);
    assert!(answer.stderr.contains("the dot product, by which items are ranked"), "{}", answer.stderr);

    let answer = eval(&[], &["--metrics", "recal@1"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(2), ""));
    assert!(answer.stderr.contains("unknown metric `recal@1`; did you mean recall@k"), "{}", answer.stderr);
    assert_eq!(eval(&[], &["--metrics", "ap,ap"]).code, Some(1));
}

#[test]
fn published_results_are_listed_with_their_recipes() {
    let answer = akin(["recipes", "--paper", "ramzi2022"]);
    assert!(answer.stdout.starts_with("Hierarchical Average Precision Training"), "{}", answer.stdout);
    let row = answer.stdout.lines().find(|line| line.ends_with("happier/sop/happier")).unwrap();
    for part in ["Table 1", "HAPPIER", "H-AP 59.4", "NDCG 91.5"] {
        assert!(row.contains(part), "{row}");
    }
    let json: serde_json::Value = serde_json::from_str(&akin(["recipes", "--json"]).stdout).unwrap();
    let papers: std::collections::BTreeSet<_> =
        json.as_array().unwrap().iter().map(|entry| entry["paper"].as_str().unwrap()).collect();
    let all = ["kim2023", "ramzi2021", "ramzi2022", "ramzi2025", "yang2022", "zhang2019"];
    assert_eq!(Vec::from_iter(papers), all);
    let answer = akin(["recipes", "--paper", "zhang2019"]);
    let row = answer.stdout.lines().find(|line| line.contains("SHDH")).unwrap();
    assert!(row.starts_with("Table 1"), "{row}");
    let answer = akin(["recipes", "--paper", "ramzi2025"]);
    let row = answer.stdout.lines().find(|line| line.ends_with("suprank/sop/roadratk")).unwrap();
    assert!(row.contains("its numbers are not in any text at hand"), "{row}");
    let answer = akin(["recipes", "--paper", "ramzi2021"]);
    let row = |start: &str, end: &str| {
        let mut lines = answer.stdout.lines();
        lines.find(|line| line.starts_with(start) && line.ends_with(end)).unwrap_or_default()
    };
    let elsewhere = row("Table 9", "roadmap/sfm120k/roadmap");
    assert!(elsewhere.contains("roxford5k, medium: trapezoid AP 38.9"), "{}", answer.stdout);
    let drawn = row("Figure 4", "roadmap/inat-lambda/roadmap");
    assert!(drawn.contains("the paper prints no score of its own"), "{}", answer.stdout);
    let answer = akin(["recipes", "--paper", "ramzi2023"]);
    assert_eq!(answer.code, Some(1));
    assert!(answer.stderr.contains("did you mean `ramzi202"), "{}", answer.stderr);
    let answer = akin(["train", "happier/sop/hapier"]);
    assert!(answer.stderr.contains("did you mean `happier/sop/happier`?"), "{}", answer.stderr);
}

#[test]
fn metrics_and_losses_are_listed_with_their_sources() {
    let answer = akin(["list", "metrics"]);
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    for part in ["ndcg[@k]", "recall@k", "0 … L", "ramzi2022"] {
        assert!(answer.stdout.contains(part), "{part} in {}", answer.stdout);
    }
    let json: serde_json::Value = serde_json::from_str(&akin(["list", "metrics", "--json"]).stdout).unwrap();
    assert_eq!(json[0]["metric"], "h_ap");
    let recall = json.as_array().unwrap().iter().find(|entry| entry["metric"] == "recall@k").unwrap();
    assert!(recall["elsewhere"].as_str().unwrap().contains("true_recall@k"), "{recall}");
    let losses: serde_json::Value = serde_json::from_str(&akin(["list", "losses", "--json"]).stdout).unwrap();
    let happier = losses.as_array().unwrap().iter().find(|entry| entry["name"] == "happier").unwrap();
    assert_eq!((&happier["family"], &happier["sources"][0]), (&"hierarchical".into(), &"ramzi2022".into()));
}

#[test]
fn a_query_leaves_its_own_group_out_of_its_ranking() {
    let labels = b"kind,variety,burst\nApple,Gala,1\nApple,Gala,1\nApple,Fuji,2\nPear,Conference,3\nPear,Conference,4\n";
    let files: [(&str, &[u8]); 1] = [("q.csv", labels)];
    let more = ["--metrics", "recall@1,true_recall@1,ap", "--per-query", "DIR/rows.csv", "--group-column"];
    let answer = eval(&files, &[&more[..], &["burst"]].concat());
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    // The Galas of one burst have only the Fuji left, at rank 1; the Fuji has two positives, the Pears one each.
    let rows: Vec<&str> = answer.stdout.lines().skip_while(|line| !line.starts_with("query,")).collect();
    assert_eq!(rows[1], "0,1,1,1,,,");
    assert_eq!(rows[3], "2,1,0.5,1,,,");
    assert_eq!(rows[4], "3,1,1,1,1,1,1");
    // Groups of one item leave out only the query itself.
    let alone = labels.replacen(b"Gala,1\nApple", b"Gala,5\nApple");
    let with_groups = eval(&[("q.csv", &alone)], &["--json", "--group-column", "burst"]).stdout;
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let (with_groups, without) = (json(&with_groups), json(&eval(&[("q.csv", &alone)], &["--json"]).stdout));
    assert_eq!(with_groups["levels"], without["levels"]);
    assert_eq!(with_groups["overall"], without["overall"]);
    let empty = eval(&[("q.csv", &labels.replacen(b"Fuji,2", b"Fuji,"))], &["--group-column", "burst"]);
    assert!(empty.stderr.contains("row 4: the group `burst` is empty"), "{}", empty.stderr);
}

#[test]
fn classes_are_scored_by_themselves_and_averaged() {
    let labels = b"kind,variety\nApple,Gala\nApple,Gala\nPear,Gala\nApple,Gala\nPear,Gala\n";
    let files: [(&str, &[u8]); 1] = [("q.csv", labels)];
    let more = ["--qualify", "--metrics", "ap,h_ap", "--by-class", "variety"];
    let text = eval(&files, &more);
    assert_eq!(text.code, Some(0), "{}", text.stderr);
    let rows =
        text.stdout.lines().skip_while(|line| !line.starts_with("variety  ") || !line.contains("H-AP"));
    let rows: Vec<&str> = rows.take(4).collect();
    assert!(rows[1].starts_with("macro average"), "{}", text.stdout);
    // Two classes of one name need their paths.
    let is_pear = |row: &str| {
        row.strip_prefix("Pear > Gala").is_some_and(|row| row.split_whitespace().next() == Some("2"))
    };
    assert!(rows[2..].iter().any(|row| is_pear(row)), "{}", text.stdout);
    let json: serde_json::Value =
        serde_json::from_str(&eval(&files, &[&more[..], &["--json"]].concat()).stdout).unwrap();
    let by_class = &json["by_class"];
    let ap = |scores: &serde_json::Value| scores["ap"].as_f64().unwrap();
    let [worst, best] = [0, 1].map(|place| ap(&by_class["classes"][place]));
    assert!(worst < best && (ap(&by_class["macro_average"]) - (worst + best) / 2.0).abs() < 1e-12);
    let wrong = eval(&files, &["--by-class", "varieties"]);
    assert!(wrong.stderr.contains("did you mean `variety`?"), "{}", wrong.stderr);
}

/// A file that another program wrote.
fn of_peers(name: &str) -> String {
    format!("{}/formats/tests/files/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn one_file_with_embeddings_and_labels_gives_the_report_of_two() {
    let levels = ["--levels", "kind,variety", "--json"];
    let report = |arguments: &[&str]| {
        let answer = akin([&["eval"][..], arguments, &levels].concat());
        assert_eq!(answer.code, Some(0), "{arguments:?}: {}", answer.stderr);
        serde_json::from_str::<serde_json::Value>(&answer.stdout).unwrap()
    };
    let [embeddings, labels] = ["float32.npy", "lists.csv"].map(of_peers);
    let two = report(&["--queries", &embeddings, "--query-labels", &labels]);
    for name in [
        "pandas.parquet",
        "polars.parquet",
        "duckdb-array.parquet",
        "pandas-wide.parquet",
        "utf16.tsv",
        "semicolons.csv",
        "tabs.tsv",
        "duckdb.jsonl",
    ] {
        assert_eq!(report(&["--queries", &of_peers(name)]), two, "{name}");
        // The queries are in the gallery, which a column tells.
        let gallery = ["--queries", &embeddings, "--query-labels", &labels, "--gallery", &of_peers(name)];
        assert_eq!(report(&gallery)["ranked"], 20, "{name}");
    }
    let [bits, bools] = ["bits.npy", "bool.npy"].map(of_peers);
    let hamming =
        |file: &str| report(&["--queries", file, "--query-labels", &labels, "--similarity", "hamming"]);
    assert_eq!(hamming(&bits), hamming(&bools));
    assert_eq!(hamming(&bits), hamming(&embeddings));
    let refused = akin([&["eval", "--queries", &embeddings][..], &levels].concat());
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("no columns with labels"), "{}", refused.stderr);
}

#[test]
fn embeddings_are_read_from_standard_input() {
    let evaluate = |name: &str, more: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_akin"))
            .args([&["eval", "--queries", "-", "--levels", "kind"][..], more].concat())
            .stdin(fs::File::open(of_peers(name)).unwrap())
            .output()
            .unwrap()
    };
    let expected = evaluate("pandas.parquet", &[]);
    assert!(expected.status.success(), "{}", String::from_utf8_lossy(&expected.stderr));
    for name in ["pandas.jsonl", "semicolons.csv", "lists.csv"] {
        assert_eq!(evaluate(name, &[]).stdout, expected.stdout, "{name}");
    }
    assert_eq!(evaluate("stored.npz", &["--query-labels", &of_peers("tabs.tsv")]).stdout, expected.stdout);
    let twice = evaluate("lists.csv", &["--query-labels", "-"]);
    assert!(String::from_utf8_lossy(&twice.stderr).contains("standard input can be read once"));
}

#[test]
fn a_gallery_shares_the_taxonomy_of_its_queries() {
    let gallery = floats(&[[0.0, 1.0], [1.0, 0.0]]);
    // The classes are in another order in the gallery.
    let files: [(&str, &[u8]); 2] =
        [("g.npy", &gallery), ("g.csv", b"kind,variety\nPear,Conference\nApple,Gala\n")];
    let arguments = ["--gallery", "DIR/g.npy", "--gallery-labels", "DIR/g.csv", "--json"];
    let json: serde_json::Value = serde_json::from_str(&eval(&files, &arguments).stdout).unwrap();
    assert_eq!((&json["ranked"], &json["levels"][1]["recall@1"]), (&2.into(), &1.0.into()));
}

#[test]
fn a_query_in_the_gallery_does_not_rank_itself() {
    let gallery = floats(&[[0.0, 1.0], [1.0, 0.0], [0.9, 0.1]]);
    let labels = b"file,variety,kind\nc,Conference,Pear\na,Gala,Apple\nb,Gala,Apple\n";
    let queries = floats(&[[0.9, 0.1], [1.0, 0.0]]);
    let query_labels = b"kind,variety,file\nApple,Gala,b\nApple,Gala,a\n";
    let files: [(&str, &[u8]); 4] =
        [("g.npy", &gallery), ("g.csv", labels), ("q.npy", &queries), ("q.csv", query_labels)];
    let arguments = ["--gallery", "DIR/g.npy", "--gallery-labels", "DIR/g.csv", "--path-column", "file"];
    let answer = eval(&files, &[&arguments[..], &["--per-query", "DIR/rows.csv"]].concat());
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    assert!(answer.stdout.contains("2 queries, each ranking 2 items by cosine"), "{}", answer.stdout);
    assert!(answer.stdout.contains("\n0,b,1,"), "{}", answer.stdout);

    let refused = |name: &str, bytes: &[u8], part: &str| {
        let files = [&files[..], &[(name, bytes)]].concat();
        let answer = eval(&files, &arguments);
        assert_eq!((answer.code, answer.stdout.as_str()), (Some(1), ""));
        assert!(answer.stderr.contains(part) && answer.stderr.contains("\n  hint: "), "{}", answer.stderr);
    };
    refused("q.csv", &query_labels.replacen(b"Gala,a", b"Gala,z"), "the query `z` is not in the gallery");
    refused("g.csv", &labels.replacen(b"c,Con", b"a,Con"), "has `a` twice");
    refused("q.csv", &query_labels.replacen(b"Gala,b", b"Fuji,b"), "the query `b` has other labels in");
    refused("g.csv", &labels.replacen(b"file", b"name"), "no column `file`");

    let twins = eval(&files, &arguments[..4]);
    assert_eq!(twins.code, Some(0), "{}", twins.stderr);
    for part in ["warning: 2 queries have the embedding and the labels of a gallery item", "--path-column"] {
        assert!(twins.stderr.contains(part), "{}", twins.stderr);
    }
    let queries = floats(&[[0.9, 0.1], [1.0, 0.1]]);
    let one_twin = eval(&[&files[..], &[("q.npy", &queries)]].concat(), &arguments[..4]);
    assert_eq!(one_twin.code, Some(0), "{}", one_twin.stderr);
    assert!(one_twin.stderr.contains("warning: 1 query has the embedding"), "{}", one_twin.stderr);
}

/// The rows of a table, each by its cells.
fn cells(table: &str) -> Vec<Vec<&str>> {
    table.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn dyml_evaluates_each_column_of_one_set() {
    // The columns form no tree: apples and pears have both colours.
    let labels = b"kind,variety\nApple,red\nApple,green\nApple,red\nPear,green\nPear,red\n";
    let files: [(&str, &[u8]); 1] = [("q.csv", labels)];
    assert!(eval(&files, &[]).stderr.contains("has two parents"));
    let answer = eval(&files, &["--dyml", "--metrics", "recall@1,ap"]);
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    let rows = cells(&answer.stdout);
    assert_eq!(rows[0], ["label", "set", "queries", "items", "R@1", "AP"]);
    assert_eq!(rows[1], ["kind", "5", "4", "100.00", "100.00"]);
    assert_eq!(rows[2][..4], ["variety", "5", "4", "0.00"]);
    assert_eq!(rows[3][..2], ["average", "50.00"]);
    assert!(answer.stdout.ends_with("ranked by cosine; ties stable; the query itself not counted\n"));

    let json = eval(&files, &["--dyml", "--json", "--bootstrap", "50"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let [kind, variety] = [0, 1].map(|set| json["sets"][set]["levels"][0]["ap"].as_f64().unwrap());
    assert_eq!(json["average"]["ap"], (kind + variety) / 2.0);
    assert_eq!(json["sets"][0]["overall"]["asi"], 1.0);
    assert_eq!(json["average"]["recall@20"], 1.0);
    let interval = &json["average"]["interval"]["ap"];
    assert!(interval[0].as_f64() <= json["average"]["ap"].as_f64(), "{interval}");
    assert!(json["average"]["ap"].as_f64() <= interval[1].as_f64(), "{interval}");
}

/// Runs `akin eval --dyml` on two label sets whose queries are in their galleries.
fn dyml_of_two_sets(levels: &str, arguments: &[&str]) -> Answer {
    let gallery = floats(&[[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]);
    let queries = floats(&[[1.0, 0.0], [0.1, 0.9]]);
    let folder = in_folder(&[
        ("g.npy", &gallery),
        ("q.npy", &queries),
        // As in DyML's files, a space precedes the name of a column.
        ("fine-g.csv", b"file, fine, labels\na,1,1\nb,1,1\nc,2,2\nd,2,2\n"),
        ("fine-q.csv", b"file, fine, labels\na,1,1\nd,2,2\n"),
        ("coarse-g.csv", b"file, coarse, labels\na,1,1\nb,2,2\nc,1,1\nd,1,1\n"),
        ("coarse-q.csv", b"file, coarse, labels\na,1,1\nd,1,1\n"),
    ]);
    let mut all: Vec<String> = ["eval", "--dyml", "--levels", levels].map(String::from).to_vec();
    for set in ["fine", "coarse"] {
        let files = [("queries", "q.npy".into()), ("query-labels", format!("{set}-q.csv"))];
        let gallery = [("gallery", "g.npy".into()), ("gallery-labels", format!("{set}-g.csv"))];
        for (option, file) in files.into_iter().chain(gallery) {
            all.extend([format!("--{option}"), path(&folder, &file)]);
        }
    }
    all.extend(arguments.iter().map(|&text| text.to_owned()));
    akin(all)
}

#[test]
fn dyml_averages_over_several_sets() {
    let answer = dyml_of_two_sets("fine,coarse", &["--path-column", "file", "--metrics", "ap,recall@1"]);
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    let rows = cells(&answer.stdout);
    assert_eq!(rows[1], ["fine", "2", "3", "100.00", "100.00"]);
    // The first query ranks a stranger, then both items of its class. The second ranks one item of its class, a
    // stranger, and the other item.
    let coarse = (7.0 / 12.0 + 5.0 / 6.0) / 2.0;
    assert_eq!(rows[2], ["coarse", "2", "3", &format!("{:.2}", 100.0 * coarse), "50.00"]);
    assert_eq!(rows[3], ["average", &format!("{:.2}", 50.0 * (1.0 + coarse)), "75.00"]);

    let answer = dyml_of_two_sets("labels", &["--path-column", "file", "--bootstrap", "50"]);
    assert!(answer.stdout.lines().nth(1).unwrap().contains("q.npy "), "{}", answer.stdout);
    assert!(answer.stdout.contains("intervals of 50 resamples"), "{}", answer.stdout);
    // Without `--path-column` a query finds itself.
    let answer = dyml_of_two_sets("labels", &["--metrics", "recall@1"]);
    assert_eq!(cells(&answer.stdout)[3], ["average", "100.00"]);
    assert!(answer.stdout.contains("no query is left out of its own ranking"), "{}", answer.stdout);
}

#[test]
fn incomplete_label_sets_are_refused() {
    let refused = |levels: &str, arguments: &[&str], code: i32, part: &str| {
        let answer = dyml_of_two_sets(levels, arguments);
        assert_eq!((answer.code, answer.stdout.as_str()), (Some(code), ""));
        assert!(answer.stderr.contains(part), "{part}: {}", answer.stderr);
    };
    refused("a,b,c", &[], 1, "`--queries` is given 2 times, but `--levels` names 3 columns");
    refused("coarse", &[], 1, "fine-q.csv has no column `coarse`");
    refused(
        "labels",
        &["--query-labels", "x"],
        1,
        "`--query-labels` is given 3 times, but `--queries` is given 2",
    );
    refused("labels", &["--gallery", "x"], 1, "`--gallery` is given 3 times");
    refused("labels", &["--gallery-labels", "x"], 1, "`--gallery-labels` is given 3 times");
    refused("labels", &["--path-column", "labels"], 1, "has `1` twice");
    for option in [["--decomposability-gap", "2"], ["--relevance", "plain"], ["--per-query", "x"]] {
        refused("labels", &option, 2, "cannot be used with");
    }
    assert!(eval(&[], &["--dyml", "--levels", "kind"]).stderr.contains("`--levels` names kind twice"));

    let both = eval(&[], &["--queries", "x"]);
    assert_eq!(both.code, Some(1));
    assert!(both.stderr.contains("`--queries` is given 2 times"), "{}", both.stderr);
    assert!(both.stderr.contains("add `--dyml`"), "{}", both.stderr);
}

#[test]
fn bad_embeddings_are_refused() {
    let with = |name: &str, bytes: &[u8]| {
        let answer = eval(&[(name, bytes)], &[]);
        assert_eq!((answer.code, answer.stdout.as_str()), (Some(1), ""));
        assert!(answer.stderr.contains("\n  hint: "), "{}", answer.stderr);
        answer.stderr
    };
    let mut rows = [[1.0, 0.0]; 5];
    rows[3] = [0.0, f32::NAN];
    assert!(with("q.npy", &floats(&rows)).contains("row 3 has NaN"));
    rows[3] = [0.0, 0.0];
    assert!(with("q.npy", &floats(&rows)).contains("row 3 is all zero"));
    assert!(with("q.npy", &npy("<i4", "(5, 2)", &[0; 40])).contains("type \"<i4\""));
    assert!(with("q.npy", &npy("<f4", "(10,)", &[0; 40])).contains("shape (10,)"));
    assert!(with("q.npy", &npy("<f4", "(5, 2)", &[0; 39])).contains("but 39 bytes follow"));
    assert!(with("q.npy", &floats(&rows[..4])).contains("has 4 rows of embeddings, but"));
    assert!(with("q.csv", b"variety,knid\nGala,Apple\n").contains("no column `kind`"));
    assert!(with("q.csv", &LABELS.replacen(b"Fuji,Apple", b"Gala,Pear")).contains("Gala"));
    assert!(with("q.csv", &LABELS.replacen(b"Fuji,Apple", b",")).contains("row 4: the item has no label"));
}

#[test]
fn embeddings_that_are_all_equal_are_evaluated_with_a_warning() {
    let equal = floats(&[[1.0, 0.5]; 5]);
    for more in [&[][..], &["--ties", "strict"]] {
        let answer = eval(&[("q.npy", &equal)], more);
        assert_eq!(answer.code, Some(0), "{}", answer.stderr);
        assert!(
            answer.stderr.contains("warning: all 5 embeddings that are ranked are equal"),
            "{}",
            answer.stderr
        );
    }
    assert!(!eval(&[], &[]).stderr.contains("are equal"));
}

#[test]
fn a_query_set_without_positives_is_refused() {
    let labels = b"variety,kind\na,1\nb,2\nc,3\nd,4\ne,5\n";
    let answer = eval(&[("q.csv", labels)], &[]);
    assert_eq!(answer.code, Some(1));
    assert!(answer.stderr.contains("none of the 5 queries"), "{}", answer.stderr);
}

/// `replacen` for bytes that are text.
trait Replace {
    fn replacen(&self, from: &[u8], to: &[u8]) -> Vec<u8>;
}

impl Replace for [u8] {
    fn replacen(&self, from: &[u8], to: &[u8]) -> Vec<u8> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        text(self).replacen(&text(from), &text(to), 1).into_bytes()
    }
}

/// As the revisited sets have it: the images of one landmark are junk for the queries of another.
#[test]
fn junk_is_left_out_of_the_rankings_of_embeddings_made_elsewhere() {
    let at = Workplace::empty();
    let npy = |rows: &[[f32; 2]]| {
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, 2), }}", rows.len());
        let header = format!("{header:<117}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.bytes());
        bytes.extend(rows.iter().flatten().flat_map(|value| value.to_le_bytes()));
        bytes
    };
    at.write("q.npy", npy(&[[1.0, 0.0], [0.0, 1.0]]));
    at.write("q.csv", "landmark\ntower\nbridge\n");
    // The first two items are nearest to the tower; the second is a bridge that hardly shows it.
    at.write("g.npy", npy(&[[0.9, 0.1], [1.0, 0.05], [0.8, 0.3], [0.1, 0.9]]));
    at.write("g.csv", "landmark,junk\ntower,\nbridge,tower\nbridge,tower; bridge\nbridge,\n");
    let files = ["eval", "--queries", "q.npy", "--query-labels", "q.csv", "--gallery", "g.npy"];
    let more = ["--gallery-labels", "g.csv", "--levels", "landmark", "--metrics", "ap", "--json"];
    let eval = |junk: &[&str]| at.akin(&[&files, &more[..], junk].concat());
    let ap = |junk: &[&str]| {
        let report: serde_json::Value = serde_json::from_str(&eval(junk).expect_code(0).stdout).unwrap();
        report["levels"][0]["ap"].as_f64().unwrap()
    };
    // The tower ranks items 1 and 2 in the order 2, 1 with the junk. The bridge ranks 4, 3, 1, 2 with it, and 4, 1, 2
    // without item 3.
    let with_junk = (1.0 / 2.0 + (1.0 + 1.0 + 3.0 / 4.0) / 3.0) / 2.0;
    let without = (1.0 + (1.0 + 2.0 / 3.0) / 2.0) / 2.0;
    assert!((ap(&[]) - with_junk).abs() < 1e-9, "{} and {with_junk}", ap(&[]));
    assert!((ap(&["--junk-column", "junk"]) - without).abs() < 1e-9, "{}", ap(&["--junk-column", "junk"]));
    at.write("g.csv", "landmark,junk\ntower,\nbridge,towre\nbridge,\nbridge,\n");
    eval(&["--junk-column", "junk"])
        .expect_code(1)
        .expect_stderr("it is junk for `towre`, which is no landmark");
    eval(&["--junk-column", "jnk"]).expect_code(1).expect_stderr("correct `--junk-column`");
}
