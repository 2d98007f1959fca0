//! A gallery of one's own pictures: made, changed and checked through the `akin` binary.

mod workplace;

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;

use akin_core::embeddings::Rows;
use akin_gallery::{Gallery, Writer};
use serde_json::Value;
use workplace::{Workplace, copy, tiny};

/// Twenty-four creatures in folders of orders, families and species, and a run.
fn workplace() -> Workplace {
    let at = Workplace::with_classes(&tiny(&[("steps = 2", "steps = 1")]), "2,1,3", "4", "16");
    at.akin(&["train", "tiny.toml", "--out", "run"]).expect_code(0);
    fs::create_dir(at.path("photos")).unwrap();
    copy(&at.path("data/images"), &at.path("photos"));
    at
}

impl Workplace {
    fn gallery(&self) -> Gallery {
        self.akin(&["verify", "g"]).expect_code(0);
        Gallery::open(&self.path("g")).unwrap()
    }

    fn paths(&self) -> BTreeSet<String> {
        self.gallery().rows().iter().map(|row| row.path.clone()).collect()
    }

    fn index(&self, arguments: &[&str]) -> workplace::Answer {
        self.akin(&[&["index"], arguments].concat())
    }

    fn refuses(&self, arguments: &[&str], why: &str) {
        let before = fs::read(self.path("g/gallery.json")).ok();
        self.index(arguments).expect_code(1).expect_stderr(why).expect_stderr("hint: ");
        assert_eq!(fs::read(self.path("g/gallery.json")).ok(), before, "{arguments:?}");
    }
}

#[test]
fn a_gallery_has_the_embeddings_of_akin_embed_and_follows_its_folder() {
    let at = workplace();
    at.index(&["run", "photos", "--out", "g", "--levels", "order,family,species"]).expect_code(0);
    let gallery = at.gallery();
    assert_eq!(gallery.rows().len(), 24);
    assert_eq!(gallery.known().unwrap().taxonomy.level_names(), ["order", "family", "species"]);
    assert!(gallery.manifest().certainty.is_some());
    at.akin(&["embed", "run", "photos", "--out", "e.npy"]).expect_code(0);
    let embedded = at.bytes("e.npy");
    let mut values = vec![0.0; 24 * gallery.vectors().dimension()];
    gallery.vectors().read(0, &mut values).unwrap();
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    assert!(embedded.ends_with(&bytes), "the order and the numbers of `akin embed`");

    // New, changed, touched and vanished files.
    let paths: Vec<String> = at.paths().into_iter().collect();
    let [gone, changed, touched, other] = [0, 5, 10, 15].map(|place| at.path("photos").join(&paths[place]));
    fs::remove_file(&gone).unwrap();
    fs::copy(&other, &changed).unwrap();
    let same = fs::read(&touched).unwrap();
    fs::write(&touched, same).unwrap();
    fs::copy(&other, at.path("photos/new.png")).unwrap();
    at.index(&["g", "--refresh"]).expect_code(0).expect_stderr("2 pictures; 22 left as they are, 2 removed");
    let after = at.paths();
    assert!(!after.contains(&paths[0]) && after.contains("new.png") && after.contains(&paths[5]));
    assert_eq!(at.gallery().rows().last().unwrap().labels, Vec::<String>::new());
    at.index(&["g", "--refresh"]).expect_code(0).expect_stderr("0 pictures; 24 left as they are, 0 removed");

    at.index(&["g", "--remove", "photos/new.png", changed.to_str().unwrap()]).expect_code(0);
    at.index(&["g", "--compact"]).expect_code(0);
    assert_eq!(at.gallery().rows().len(), 22);
    at.index(&["g", "--add", "photos"]).expect_code(0).expect_stderr("2 pictures; 22 left as they are");

    // Labels from a table: those that it does not name have none.
    let rows =
        at.gallery().rows().iter().take(9).map(|row| format!("{},red\n", row.path)).collect::<String>();
    at.write("labels.csv", format!("path,colour\n{rows}"));
    at.index(&["g", "--relabel", "labels.csv", "--levels", "colour"]).expect_code(0).expect_stderr("9 of 24");
    assert_eq!(at.gallery().rows().iter().filter(|row| row.labels == ["red"]).count(), 9);
}

#[test]
fn a_list_a_table_and_parts_from_elsewhere_give_the_same_gallery() {
    let at = workplace();
    at.index(&["run", "photos", "--out", "g"]).expect_code(0);
    let whole = at.paths();
    fs::rename(at.path("g"), at.path("whole")).unwrap();

    let files: String = whole.iter().map(|path| format!("photos/{path}\n")).collect();
    let mut command = at.command(&["index", "run", "-", "--out", "g", "--numbers", "int8"]);
    let mut process = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut process.stdin.take().unwrap(), files.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    assert!(
        output.status.success()
            && String::from_utf8_lossy(&output.stderr).contains("the cosine to each embedding")
    );
    assert_eq!(at.gallery().rows().len(), 24);
    fs::remove_dir_all(at.path("g")).unwrap();

    let rows: String = whole.iter().map(|path| format!("photos/{path},{}\n", &path[..3])).collect();
    at.write("table.csv", format!("path,kind\n{rows}"));
    at.index(&["run", "table.csv", "--out", "g"]).expect_code(0);
    assert_eq!(at.gallery().known().unwrap().taxonomy.level_names(), ["kind"]);
    fs::remove_dir_all(at.path("g")).unwrap();

    // Two halves, each made by itself.
    let orders: Vec<String> = {
        let names = fs::read_dir(at.path("photos")).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).collect()
    };
    for (place, order) in orders.iter().enumerate() {
        let part = format!("part{place}");
        at.index(&["run", &format!("photos/{order}"), "--out", &part]).expect_code(0);
    }
    fs::rename(at.path("part0"), at.path("g")).unwrap();
    at.index(&["g", "--collect", "part1"]).expect_code(0).expect_stderr("12 pictures of part1");
    assert_eq!(at.gallery().rows().len(), 24);
    at.index(&["g", "--collect", "part1"]).expect_code(0).expect_stderr("0 pictures of part1");

    // Another encoder makes all of them again.
    at.akin(&["train", "tiny.toml", "--set", "run.seed=7", "--out", "other"]).expect_code(0);
    let before = at.gallery().manifest().settings.encoder.digest.clone();
    at.index(&["g", "--reembed", "other"]).expect_code(0);
    assert_ne!(at.gallery().manifest().settings.encoder.digest, before);
    at.refuses(&["g", "--collect", "part1"], "made by another encoder");
}

#[test]
fn a_bundle_indexes_as_its_run_does_and_an_unreadable_picture_is_named() {
    let at = workplace();
    at.akin(&["export", "run", "--out", "bundle", "--no-maps"]).expect_code(0);
    at.write("photos/broken.png", "no picture");
    at.index(&["bundle", "photos", "--out", "g"])
        .expect_code(0)
        .expect_stderr("broken.png")
        .expect_stderr("Skipped 1 picture");
    assert_eq!(at.gallery().rows().len(), 24);
}

#[test]
fn what_cannot_be_done_is_refused_and_changes_nothing() {
    let at = workplace();
    at.refuses(&["run", "nowhere", "--out", "g"], "does not exist");
    at.refuses(&["nowhere", "photos", "--out", "g"], "does not exist");
    at.refuses(&["run", "photos", "--out", "data"], "is not a gallery");
    assert!(!at.path("g").exists());
    at.index(&["run", "photos", "--out", "g"]).expect_code(0);
    at.refuses(&["run", "photos", "--out", "g"], "already has a gallery");
    at.refuses(&["g"], "not said what to do");
    at.refuses(&["g", "--remove", "nowhere.png"], "no picture at nowhere.png");
    at.refuses(&["run", "--refresh"], "is not a gallery");
    at.refuses(&["g", "--relabel", "nowhere.csv", "--levels", "a"], "cannot be read");
    at.write("labels.csv", "path,size\nx.png,1\n");
    at.refuses(&["g", "--relabel", "labels.csv", "--levels", "size"], "none of the pictures");
    fs::create_dir_all(at.path("deep/a/b/c/d")).unwrap();
    fs::copy(at.path("photos").join(at.paths().first().unwrap()), at.path("deep/a/b/c/d/x.png")).unwrap();
    at.refuses(&["g", "--add", "deep"], "labels of 4 levels");
    fs::rename(at.path("photos"), at.path("elsewhere")).unwrap();
    at.refuses(&["g", "--refresh"], "mount it again");
    at.refuses(&["g", "--reembed", "run"], "are gone");

    // What is damaged is found, and not searched.
    let vectors = walkdir::WalkDir::new(at.path("g/segments")).into_iter().flatten();
    let vectors = vectors.map(|entry| entry.into_path()).find(|path| path.ends_with("vectors.npy")).unwrap();
    let mut bytes = fs::read(&vectors).unwrap();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(&vectors, &bytes).unwrap();
    at.akin(&["verify", "g"]).expect_code(1).expect_stdout("SHA-256");
    fs::write(&vectors, &bytes[..end - 4]).unwrap();
    at.akin(&["verify", "g"]).expect_code(1).expect_stdout("bytes instead of");
    assert!(Gallery::open(&at.path("g")).is_err());
    let manifest = at.read("g/gallery.json").replace("\"version\": 1", "\"version\": 9");
    at.write("g/gallery.json", manifest);
    at.refuses(&["g", "--compact"], "of version 9");
    let _: Value = at.json("g/gallery.json");
}

#[test]
fn a_gallery_is_evaluated_written_and_exported_as_the_files_of_its_embeddings_are() {
    let at = workplace();
    at.index(&["run", "photos", "--out", "g", "--levels", "order,family,species"]).expect_code(0);
    let of_gallery = at.akin(&["eval", "g", "--json"]).expect_code(0).stdout;
    for file in ["all.parquet", "all.jsonl", "all.npy"] {
        at.akin(&["embed", "g", "--out", file]).expect_code(0).expect_stderr("24 pictures");
        let mut command =
            vec!["eval", "--queries", file, "--levels", "order,family,species", "--qualify", "--json"];
        command.extend(file.ends_with("npy").then_some(["--query-labels", "all.csv"]).iter().flatten());
        assert_eq!(at.akin(&command).expect_code(0).stdout, of_gallery, "{file}");
    }
    let header = String::from_utf8(at.bytes("all.csv")).unwrap();
    assert!(header.starts_with("path,source,size,modified,sha256,order,family,species\n"), "{header}");
    at.akin(&["eval", "g", "--levels", "species", "--per-query", "q.csv"]).expect_code(0);
    assert!(String::from_utf8(at.bytes("q.csv")).unwrap().lines().nth(1).unwrap().contains(".png"));

    // Each picture finds itself, but where the path says which item it is.
    let twice = ["eval", "g", "--queries", "g", "--json"];
    at.akin(&twice).expect_code(0).expect_stderr("would find itself first");
    let alone = at.akin(&[&twice[..], &["--path-column", "path"]].concat()).expect_code(0);
    assert_eq!(alone.stdout, of_gallery);

    // The encoder of the gallery embeds as that of the run.
    at.akin(&["embed", "g", "photos", "--out", "g.npy"]).expect_code(0);
    assert!(at.bytes("g.npy") == at.bytes("all.npy"));

    at.akin(&["export", "g", "--out", "bundle", "--no-maps"]).expect_code(0);
    at.akin(&["verify", "bundle"]).expect_code(0).expect_stdout("24 items").expect_stdout("cosine 0.9999");
    let picture = at.path("photos").join(at.paths().first().unwrap());
    let search = |place: &str| -> Vec<u64> {
        let answer = at.akin(&["search", place, picture.to_str().unwrap(), "--json"]).expect_code(0);
        let found: Value = serde_json::from_str(&answer.stdout).unwrap();
        found["items"].as_array().unwrap().iter().map(|item| item["item"].as_u64().unwrap()).collect()
    };
    // The encoder of the bundle has half precision.
    assert_eq!(search("bundle")[0], search("g")[0]);

    // Pictures without a label are left out, and said.
    fs::copy(&picture, at.path("photos/new.png")).unwrap();
    at.index(&["g", "--add", "photos/new.png"]).expect_code(0);
    let left_out = at.akin(&["eval", "g", "--json", "--device", "auto"]).expect_code(0);
    let left_out = left_out.expect_stderr("1 picture of g without a label is");
    assert_eq!(left_out.stdout, of_gallery);
    at.akin(&["export", "g", "--out", "bundle", "--no-maps", "--overwrite"]).expect_code(0);
    at.akin(&["verify", "bundle"]).expect_code(0).expect_stdout("24 items");

    let refuses = |arguments: &[&str], why: &str| {
        at.akin(arguments).expect_code(1).expect_stderr(why).expect_stderr("hint: ");
    };
    refuses(&["eval", "g", "--untrained"], "`--untrained` is for a run, but g is a gallery");
    refuses(
        &["eval", "run", "--queries", "all.npy", "--levels", "order"],
        "`--queries` is for galleries and files",
    );
    refuses(&["eval", "--queries", "all.npy"], "`--levels` is missing");
    refuses(&["eval", "g", "--levels", "genus"], "has no column `genus`");
    refuses(
        &["eval", "--queries", "g", "--query-labels", "all.csv"],
        "has labels, and all.csv is given, too",
    );
    refuses(&["export", "g", "--to", "onnx", "--out", "new"], "g is a gallery");
    refuses(&["export", "g", "run", "--out", "new"], "g");
    refuses(&["export", "g", "--out", "new", "--which", "best"], "are for runs");
    refuses(&["embed", "g", "--out", "new.npy", "--onnx", "x.onnx"], "");
    fs::remove_file(&picture).unwrap();
    refuses(&["export", "g", "--out", "new"], "1 picture is gone");
    at.write("none.csv", "path,kind\nphotos/new.png,\n");
    at.index(&["g", "--relabel", "none.csv", "--levels", "kind"]).expect_code(0);
    refuses(&["eval", "g"], "no picture of the gallery g has a label");
    refuses(&["export", "g", "--out", "new"], "no picture of the gallery g has a label");
}

#[test]
fn a_collection_that_was_killed_is_made_once() {
    let at = workplace();
    let mut orders = fs::read_dir(at.path("photos")).unwrap();
    let mut order = || format!("photos/{}", orders.next().unwrap().unwrap().file_name().to_str().unwrap());
    at.index(&["run", &order(), "--out", "g"]).expect_code(0);
    at.index(&["run", &order(), "--out", "other"]).expect_code(0);
    let other = Gallery::open(&at.path("other")).unwrap();
    let mut values = vec![0.0; other.rows().len() * other.vectors().dimension()];
    other.vectors().read(0, &mut values).unwrap();
    let mut killed = Writer::open(&at.path("g")).unwrap();
    killed.stage(other.rows(), &values).unwrap();
    killed.close();
    let before = at.paths().len();
    at.index(&["g", "--collect", "other"]).expect_code(0);
    assert_eq!(at.gallery().rows().len(), before + other.rows().len());
}
