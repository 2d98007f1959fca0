//! Search in a gallery, and its nearly equal pictures.

mod workplace;

use akin_core::certainty::LeaveOneOut;
use akin_core::embeddings::Embeddings;
use akin_core::similarity::Similarity;
use akin_core::taxonomy::Labels;
use akin_gallery::{Certainty, EncoderNote, Numbers, Row, Settings, Writer};
use serde_json::Value;
use workplace::Workplace;

/// An item of a gallery: its path, its place on the unit circle in degrees, what its file holds, and its labels.
type Entry = (String, f32, String, Vec<String>);

/// Makes `gallery` of these items, whose labels have two levels.
fn gallery_of(entries: &[Entry]) -> Workplace {
    let at = Workplace::empty();
    let settings = Settings {
        encoder: EncoderNote { name: "circle".into(), digest: String::new(), files: Vec::new() },
        dimension: 2,
        similarity: Similarity::Cosine,
        numbers: Numbers::Float32,
        levels: vec!["group".into(), "family".into()],
    };
    let mut writer =
        Writer::create(&at.path("gallery"), settings, vec![("encoder.json", b"{}".to_vec())]).unwrap();
    let row = |(path, _, sha256, labels): &Entry| Row {
        path: path.clone(),
        source: "/photos".into(),
        sha256: sha256.clone(),
        labels: labels.clone(),
        ..Row::default()
    };
    writer.stage(&entries.iter().map(row).collect::<Vec<_>>(), embeddings(entries).values()).unwrap();
    writer.commit(&[]).unwrap();
    if entries.len() > 100 {
        writer.calibrate(certainty(entries)).unwrap();
    }
    writer.close();
    at
}

fn embeddings(entries: &[Entry]) -> Embeddings {
    let point = |(_, angle, ..): &Entry| [angle.to_radians().cos(), angle.to_radians().sin()];
    Embeddings::new(2, entries.iter().flat_map(point).collect()).unwrap()
}

/// What the items with labels say of themselves. Their classes are numbers.
fn certainty(entries: &[Entry]) -> Certainty {
    let labelled: Vec<Entry> = entries.iter().filter(|entry| !entry.3.is_empty()).cloned().collect();
    let ids = labelled.iter().flat_map(|entry| entry.3.iter().map(|label| label.parse().unwrap()));
    let labels = Labels::new(2, ids.collect()).unwrap();
    let own = LeaveOneOut::new(&embeddings(&labelled), &labels, Similarity::Cosine).unwrap();
    Certainty { calibration: own.calibration(), best_scores: own.best_scores() }
}

fn entry(path: &str, angle: f32, sha256: &str, labels: &[&str]) -> Entry {
    (path.into(), angle, sha256.into(), labels.iter().map(|&label| label.into()).collect())
}

/// Three owls and finches, a bee, a bird of no known family, and a picture without labels.
fn birds() -> Workplace {
    gallery_of(&[
        entry("owls/a.jpg", 0.0, "A", &["Birds", "Owls"]),
        entry("owls/b.jpg", 1.0, "B", &["Birds", "Owls"]),
        entry("finches/c.jpg", 10.0, "C", &["Birds", "Finches"]),
        entry("bees/d.jpg", 12.0, "D", &["Insects", "Bees"]),
        entry("unsorted/e.jpg", 13.0, "C", &[]),
        entry("birds/f.jpg", 20.0, "F", &["Birds"]),
    ])
}

/// The items that `akin search` finds, best first.
fn found(at: &Workplace, options: &[&str]) -> Vec<u64> {
    let answer =
        at.akin(&[&["search", "gallery", "--format", "json"], options].concat()).expect_code(0).stdout;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    answer["items"].as_array().unwrap().iter().map(|item| item["item"].as_u64().unwrap()).collect()
}

#[test]
fn an_item_finds_its_neighbours_and_not_itself() {
    let at = birds();
    assert_eq!(found(&at, &["--near", "0", "-k", "3"]), [1, 2, 3]);
    assert_eq!(found(&at, &["--near", "finches/c.jpg"]), [3, 4, 1, 0, 5]);
    let table = at.akin(&["search", "gallery", "--near", "/photos/owls/a.jpg", "-k", "5"]).expect_code(0);
    let lines: Vec<Vec<&str>> = table.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["rank", "score", "item", "path", "group", "family"]);
    assert_eq!(lines[1], ["1", "1.000", "1", "owls/b.jpg", "Birds", "Owls"]);
    assert_eq!(lines[4], ["4", "0.974", "4", "unsorted/e.jpg", "–", "–"]);
    assert_eq!(lines[5], ["5", "0.940", "5", "birds/f.jpg", "Birds", "–"]);
    table.expect_stderr("Searched 6 items of gallery with circle").expect_stderr("has no calibration");
}

#[test]
fn classes_choose_the_items_before_the_search() {
    let at = birds();
    let near = |options: &[&str]| found(&at, &[&["--near", "0"], options].concat());
    assert_eq!(near(&["--within", "Birds"]), [1, 2, 5]);
    assert_eq!(near(&["--within", "Birds/Owls"]), [1]);
    assert_eq!(near(&["--within", "Birds", "--not", "Finches"]), [1, 5]);
    assert_eq!(near(&["--within", "Owls", "--within", "Bees"]), [1, 3]);
    assert_eq!(near(&["--not", "Birds"]), [3, 4]);
    assert_eq!(near(&["--group-by", "group"]), [1, 3]);
    assert_eq!(near(&["--group-by", "family", "--within", "Birds", "-k", "9"]), [1, 2]);
}

#[test]
fn each_row_of_a_file_of_embeddings_is_a_query_of_one_table() {
    let at = birds();
    at.write("queries.csv", "0.98,0.2\n0.9,0.4\n");
    let search = ["search", "gallery", "--embeddings", "queries.csv", "-k", "2", "--within", "Birds"];
    let csv = at.akin(&[&search[..], &["--format", "csv"]].concat()).expect_code(0).stdout;
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "query,rank,score,item,path,group,family");
    assert!(lines[1].starts_with("0,1,0.99") && lines[1].ends_with(",2,/photos/finches/c.jpg,Birds,Finches"));
    assert!(lines[3].starts_with("1,1,") && lines[3].ends_with(",5,/photos/birds/f.jpg,Birds,"), "{csv}");
    assert_eq!(lines.len(), 5);
    let json: Value =
        serde_json::from_str(&at.akin(&[&search[..], &["--json"]].concat()).expect_code(0).stdout).unwrap();
    assert_eq!(json["queries"][1]["query"], "1");
    assert_eq!(json["queries"][1]["items"][0]["labels"], serde_json::json!(["Birds"]));
}

#[test]
fn a_mistaken_search_says_what_to_give_instead() {
    let at = birds();
    let refused = |options: &[&str], message: &str, hint: &str| {
        at.akin(&[&["search", "gallery"], options].concat())
            .expect_code(1)
            .expect_stderr(message)
            .expect_stderr(hint);
    };
    refused(&["--near", "0", "--within", "Owl"], "no class is called \"Owl\"", "did you mean `Birds/Owls`?");
    refused(
        &["--near", "0", "--within", "Owls", "--not", "Birds"],
        "no picture of the gallery",
        "other classes",
    );
    refused(&["--near", "0", "--group-by", "kind"], "no level is called \"kind\"", "are group, family");
    refused(&["--near", "6"], "has no item 6", "a number from 0 to 5");
    refused(&["--near", "owls/z.jpg"], "has no item \"owls/z.jpg\"", "did you mean `owls/");
    refused(&["--near", "0", "--encoder", "x"], "a gallery has one encoder", "remove it");
    refused(&["nothing.jpg"], "nothing.jpg does not exist", "check the path");
    at.write("long.jsonl", "{\"embedding\": [1, 2, 3]}\n");
    refused(&["--embeddings", "long.jsonl"], "the query has 3 numbers", "the encoder of the gallery");
    at.akin(&["search", "gallery", "--near", "0", "-k", "0"]).expect_code(2).expect_stderr("0 is not in 1..");
    at.akin(&["search", "gallery"]).expect_code(2).expect_stderr("required");
    at.akin(&["search", "nowhere", "--near", "0"]).expect_code(1).expect_stderr("nowhere");
}

#[test]
fn the_answer_is_that_of_the_nearest_items_with_labels() {
    // Two families far apart; a query lies among pictures without labels.
    let labelled = (0..400).map(|item| {
        let class = (item % 2).to_string();
        let angle = (item % 2) as f32 * 80.0 + (item / 2) as f32 * 0.01;
        entry(&format!("{item}.jpg"), angle, &item.to_string(), &["0", &class])
    });
    let unlabelled = (400..430).map(|item| entry(&format!("{item}.jpg"), 0.0, &item.to_string(), &[]));
    let at = gallery_of(&labelled.chain(unlabelled).collect::<Vec<_>>());
    let search = ["search", "gallery", "--near", "420.jpg", "-k", "3"];
    let table = at.akin(&search).expect_code(0).stdout;
    assert!(table.starts_with("Surely 0 > 0\nCertainty: group 0 99"), "{table}");
    let json: Value =
        serde_json::from_str(&at.akin(&[&search[..], &["--json"]].concat()).expect_code(0).stdout).unwrap();
    assert_eq!(json["answer"]["reached"], 2);
    assert_eq!(json["items"].as_array().unwrap().len(), 3);
    // With a filter there is no answer.
    let some = at.akin(&[&search[..], &["--not", "0/1"]].concat()).expect_code(0);
    assert!(some.stdout.starts_with("rank"), "{}", some.stdout);
    some.expect_stderr("there is no answer, because its certainty was measured with all items");
}

#[test]
fn duplicates_are_groups_with_identical_files_first() {
    let at = birds();
    // The cosine of 1.5 degrees.
    let command = ["duplicates", "gallery", "--at-least", "0.99966"];
    let table = at.akin(&command).expect_code(0);
    let lines: Vec<Vec<&str>> = table.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["group", "score", "file", "item", "path", "labels"]);
    assert_eq!(lines[1][..5], ["1", "1.000", "identical", "2", "/photos/finches/c.jpg"]);
    assert_eq!(lines[2][..4], ["1", "1.000", "3", "/photos/bees/d.jpg"]);
    assert_eq!(lines[3][..5], ["1", "1.000", "identical", "4", "/photos/unsorted/e.jpg"]);
    assert_eq!(lines[4][..4], ["2", "1.000", "0", "/photos/owls/a.jpg"]);
    assert_eq!(lines.len(), 6);
    table.expect_stderr("Compared 6 pictures: 5 in 2 groups");

    let json: Value =
        serde_json::from_str(&at.akin(&[&command[..], &["--format", "json"]].concat()).expect_code(0).stdout)
            .unwrap();
    assert_eq!(json.as_array().unwrap().len(), 2);
    assert_eq!(json[1][1]["path"], "/photos/owls/b.jpg");
    let csv = at.akin(&[&command[..], &["--format", "csv"]].concat()).expect_code(0).stdout;
    assert_eq!(csv.lines().count(), 6);

    // Only the identical files are left.
    let few = at.akin(&["duplicates", "gallery", "--at-least", "1"]).expect_code(0);
    assert_eq!(few.stdout.lines().count(), 3);
    at.akin(&["duplicates", "gallery", "--at-least", "1.5"]).expect_code(2).expect_stderr("at most 1");
    at.akin(&["duplicates", "photos"]).expect_code(1).expect_stderr("is not a gallery");
}
