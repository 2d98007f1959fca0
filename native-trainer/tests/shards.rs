//! `akin eval --shard` and `--merge`: several machines share the queries of one evaluation.

mod workplace;

use workplace::{Answer, Workplace};

const ITEMS: usize = 23;

/// Embeddings and labels of 23 items, and of 7 of them as queries.
fn sets() -> Workplace {
    let workplace = Workplace::empty();
    let number = |item: usize, k: usize| (((item * 31 + k * 17) % 97) as f32 / 48.0 - 1.0).to_le_bytes();
    for (name, items) in [("g", 0..ITEMS), ("q", 3..10)] {
        let dict = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, 4), }}\n", items.len());
        let header = [b"\x93NUMPY\x01\x00", &(dict.len() as u16).to_le_bytes()[..], dict.as_bytes()].concat();
        let numbers = items.clone().flat_map(|item| (0..4).flat_map(move |k| number(item, k)));
        workplace.write(&format!("{name}.npy"), [header, numbers.collect()].concat());
        // The first items have classes of their own, so that the first shard has no positives.
        let row = |item: usize| match item {
            0..=4 => format!("alone {item},alone {item},{item}\n"),
            _ => format!("kind {},variety {},{item}\n", item % 3, item % 6),
        };
        let rows: String = items.map(row).collect();
        workplace.write(&format!("{name}.csv"), format!("kind,variety,file\n{rows}"));
    }
    workplace
}

const ALONE: [&str; 6] = ["--queries", "g.npy", "--query-labels", "g.csv", "--levels", "kind,variety"];
const AMONG: [&str; 12] = [
    "--queries",
    "q.npy",
    "--query-labels",
    "q.csv",
    "--levels",
    "kind,variety", //
    "--gallery",
    "g.npy",
    "--gallery-labels",
    "g.csv",
    "--path-column",
    "file",
];

fn eval(workplace: &Workplace, set: &[&str], more: &[&str]) -> Answer {
    workplace.akin(&[&["eval"], set, more].concat())
}

/// Writes the parts `1.json` … of this number of shards.
fn write_parts(workplace: &Workplace, set: &[&str], shards: usize, more: &[&str]) -> Vec<String> {
    let part = |number: usize| {
        let (shard, out) = (format!("{number}/{shards}"), format!("{number}.json"));
        let options = ["--shard", &shard, "--out", &out, "--overwrite"];
        eval(workplace, set, &[&options, more].concat()).expect_code(0);
        out
    };
    (1..=shards).map(part).collect()
}

fn merge(workplace: &Workplace, parts: &[String], more: &[&str]) -> Answer {
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    workplace.akin(&[&["eval"], more, &["--merge"], &parts].concat())
}

/// The text of a part, with the checksum that its contents have.
fn sealed(part: &str) -> String {
    let (contents, _) = part.rsplit_once(r#""sha256":""#).expect("a part ends with its checksum");
    let checksum = akin_core::digest::sha256(format!(r#"{contents}"sha256":""}}"#).as_bytes());
    format!(r#"{contents}"sha256":"{checksum}"}}"#)
}

#[test]
fn merged_shards_give_the_report_of_the_whole_digit_for_digit() {
    let workplace = sets();
    let metrics = ["--metrics", "h_ap,ndcg,ap,recall@1", "--bootstrap", "50"];
    for set in [&ALONE[..], &AMONG[..]] {
        let whole = eval(&workplace, set, &[&metrics[..], &["--json"]].concat()).expect_code(0).stdout;
        let rows = ["--per-query", "whole.csv", "--overwrite"];
        eval(&workplace, set, &[&metrics[..], &rows].concat()).expect_code(0);
        for shards in [1, 3, 7] {
            let mut parts = write_parts(&workplace, set, shards, &metrics);
            parts.reverse();
            assert_eq!(merge(&workplace, &parts, &["--json"]).expect_code(0).stdout, whole);
            merge(&workplace, &parts, &["--per-query", "merged.csv", "--overwrite"]).expect_code(0);
            assert_eq!(workplace.read("merged.csv"), workplace.read("whole.csv"));
        }
    }
}

#[test]
fn parts_that_do_not_fit_each_other_are_refused() {
    let workplace = sets();
    let parts = write_parts(&workplace, &ALONE, 3, &[]);
    let refused = |parts: &[&str], message: &str| {
        let parts: Vec<String> = parts.iter().map(|&part| part.to_owned()).collect();
        merge(&workplace, &parts, &[]).expect_code(1).expect_stderr(message);
    };
    refused(&["1.json", "3.json"], "of 3 shards these are missing: 2");
    std::fs::copy(workplace.path("1.json"), workplace.path("copy.json")).unwrap();
    refused(&["1.json", "2.json", "3.json", "copy.json"], "are both the shard 1/3");
    refused(&["1.json", "nowhere.json"], "nowhere.json cannot be read");
    refused(&["1.json", "g.csv"], "g.csv is not a part of an evaluation");

    let text = workplace.read("2.json");
    let damaged = |from: &str, to: &str| {
        assert!(text.contains(from), "{from} is not in {text}");
        workplace.write("damaged.json", sealed(&text.replacen(from, to, 1)));
    };
    workplace.write("damaged.json", text.replacen(r#""query":7"#, r#""query":8"#, 1));
    refused(&["1.json", "damaged.json", "3.json"], "damaged.json is damaged: its SHA-256 is not the one");
    damaged(r#""shard":"2/3""#, r#""shard":"4/3""#);
    refused(&["1.json", "damaged.json", "3.json"], "damaged.json is not a part of an evaluation");
    damaged(r#""query":7"#, r#""query":8"#);
    refused(&["1.json", "damaged.json", "3.json"], "damaged.json does not hold the scores of its");
    damaged(r#""akin":""#, r#""akin":"9."#);
    refused(&["1.json", "damaged.json", "3.json"], "another version of akin");

    let other = |more: &[&str], set: &[&str], message: &str| {
        let options = ["--shard", "2/3", "--out", "other.json", "--overwrite"];
        eval(&workplace, set, &[&options, more].concat()).expect_code(0);
        refused(&["1.json", "other.json", "3.json"], message);
    };
    other(&["--metrics", "ap"], &ALONE, "other settings");
    other(&[], &[&ALONE[..4], &["--levels", "kind"]].concat(), "other data");
    let (labels, embeddings) = (workplace.read("g.csv"), workplace.bytes("g.npy"));
    workplace.write("g.csv", labels.replace("variety 5", "variety 6"));
    other(&[], &ALONE, "other data");
    workplace.write("g.csv", labels);
    let mut changed = embeddings;
    *changed.last_mut().unwrap() ^= 1;
    workplace.write("g.npy", changed);
    other(&[], &ALONE, "other data");
    // Queries 5 … 10 stand in two of these parts.
    let options = ["--shard", "1/2", "--out", "half.json", "--overwrite"];
    eval(&workplace, &ALONE, &options).expect_code(0);
    other(&[], &ALONE, "other data");
    refused(&["half.json", "other.json"], "another number of shards");

    for part in &parts {
        workplace.write(part, sealed(&workplace.read(part).replacen(r#""akin":""#, r#""akin":"9."#, 1)));
    }
    refused(&["1.json", "2.json", "3.json"], "the parts were made by akin 9.");
}

#[test]
fn a_part_is_kept_by_its_own_evaluation_and_refused_by_another() {
    let workplace = sets();
    let [part, ..] = &write_parts(&workplace, &ALONE, 3, &[])[..] else { unreachable!("there are 3 parts") };
    let scores = workplace.read(part);
    let again = |set: &[&str], options: &[&str]| {
        let options = [&["--shard", "1/3", "--out", part], options].concat();
        eval(&workplace, set, &options)
    };
    again(&ALONE, &[]).expect_code(0).expect_stderr("Kept 1.json, which has the scores of the shard 1/3");
    again(&ALONE, &["--metrics", "ap"]).expect_code(1).expect_stderr("another evaluation: other settings");
    again(&AMONG, &[]).expect_code(1).expect_stderr("another evaluation: other data");
    let second = ["--shard", "2/3", "--out", part];
    eval(&workplace, &ALONE, &second).expect_code(1).expect_stderr("another evaluation: another shard");
    assert_eq!(workplace.read(part), scores);
    again(&AMONG, &["--overwrite"]).expect_code(0);
    assert_ne!(workplace.read(part), scores);

    workplace.write(part, &scores[..scores.len() / 2]);
    again(&ALONE, &[]).expect_code(1).expect_stderr("already exists");
}

#[test]
fn a_shard_that_cannot_be_is_refused_before_anything_is_scored() {
    let workplace = sets();
    let shard = |shard: &str| eval(&workplace, &ALONE, &["--shard", shard, "--out", "part.json"]);
    shard("4/3").expect_code(2).expect_stderr("such as 3/16");
    shard("1/24").expect_code(1).expect_stderr("there are 24 shards and only 23 queries");
    eval(&workplace, &ALONE, &["--shard", "1/3", "--out", "g.npy", "--overwrite"]).expect_code(1);
    eval(&workplace, &ALONE, &["--shard", "1/3"]).expect_code(2);
    assert!(!workplace.path("part.json").exists());
}

#[test]
fn bad_rows_and_empty_sets_are_refused_in_every_shard_and_named_by_their_row_in_the_file() {
    let workplace = sets();
    let embeddings = workplace.bytes("g.npy");
    let with_row = |row: usize, numbers: [f32; 4]| {
        let mut changed = embeddings.clone();
        let start = changed.len() - (ITEMS - row) * 16;
        changed[start..start + 16].copy_from_slice(&numbers.map(f32::to_le_bytes).concat());
        workplace.write("g.npy", changed);
    };
    let refused = |set: &[&str], shard: &str, message: &str| {
        let options = ["--shard", shard, "--out", "part.json"];
        eval(&workplace, set, &options).expect_code(1).expect_stderr(message);
        assert!(!workplace.path("part.json").exists());
    };
    with_row(20, [1.0, f32::NAN, 0.0, 0.0]);
    refused(&ALONE, "1/3", "the query embedding in row 20 has NaN in column 1");
    refused(&AMONG, "2/2", "the gallery embedding in row 20 has NaN in column 1");
    with_row(21, [0.0; 4]);
    refused(&AMONG, "2/2", "the gallery embedding in row 21 is all zero");

    let empty = b"\x93NUMPY\x01\x00\x3c\x00{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4), }\n";
    workplace.write("g.npy", empty);
    workplace.write("g.csv", "kind,variety,file\n");
    refused(&ALONE, "1/1", "1 shard and only 0 queries");
    eval(&workplace, &ALONE, &[]).expect_code(1).expect_stderr("there are no labels");
}

#[test]
fn the_memory_for_rankings_changes_no_digit() {
    let workplace = sets();
    for set in [&ALONE[..], &AMONG[..]] {
        let whole = eval(&workplace, set, &["--json"]).expect_code(0).stdout;
        assert_eq!(eval(&workplace, set, &["--json", "--memory", "0"]).expect_code(0).stdout, whole);
    }
}

#[test]
fn the_device_for_scores_changes_no_digit_and_one_that_is_not_built_in_is_refused() {
    let workplace = sets();
    let whole = eval(&workplace, &ALONE, &["--json"]).expect_code(0).stdout;
    for device in ["cpu", "auto"] {
        assert_eq!(eval(&workplace, &ALONE, &["--json", "--device", device]).expect_code(0).stdout, whole);
    }
    if !cfg!(feature = "cuda") {
        let refused = eval(&workplace, &ALONE, &["--device", "cuda"]).expect_code(1).stderr;
        assert!(refused.contains("no back end for `--device cuda`"), "{refused}");
    }
}
