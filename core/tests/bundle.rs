//! Bundles: a reader gets back what was written, and finds damage before it uses anything.

#![cfg(feature = "image")]

use akin_core::bundle::{
    Affinity, BundleWriter, Contents, ElementType, EncoderEntry, INDEX, Index, IndexEntry, InputType,
    Int8Loss, ItemKinship, Items, Layout, MANIFEST, Manifest, Map, MapGeometry, MapMeans, MapProxies,
    NO_ANCESTOR, Parity, QueryColumn, QueryTable, Thumbnails, coordinate_bytes, embedding_bytes, label_bytes,
    number_bytes,
};
use akin_core::certainty::{BestScores, Calibration, Steps, Threshold};
use akin_core::encoder::EncoderConfig;
use akin_core::evaluate::{EvaluationConfig, Report};
use akin_core::image::{Normalisation, Preprocessing};
use akin_core::taxonomy::{ClassIdentity, Labels, Taxonomy};
use akin_core::{Error, Kind};
use proptest::prelude::*;
use serde_json::{Value, json};

const GALLERY: [[f32; 2]; 3] = [[1.0, 0.0], [0.6, 0.8], [-0.1, 0.3]];
const QUERY: [f32; 2] = [0.0, -1.0];
const PARITY: [f32; 4] = [0.1, -0.3, 0.5, 2.0];
const POINTS: [[f32; 2]; 3] = [[0.0, 0.5], [-3.0, 2.0], [7.0, -0.25]];

type Files = Vec<(String, Vec<u8>)>;

fn taxonomy() -> (Taxonomy, Labels) {
    let levels = ["kind", "variety"].map(String::from);
    let rows = [["apple", "gala"], ["apple", "fuji"], ["pear", "kaiser"], ["apple", "gala"]].map(Vec::from);
    Taxonomy::from_rows(&levels, &rows, ClassIdentity::Name).unwrap()
}

/// Three gallery items, one stored query, two encoders, of which the first has every optional part.
fn contents() -> Contents {
    let (taxonomy, _) = taxonomy();
    let evaluation_config = EvaluationConfig::default();
    let report =
        Report::new(taxonomy.level_names(), &evaluation_config.checked(taxonomy.depth()).unwrap(), 3, vec![]);
    let encoder = |name: &str| EncoderEntry {
        name: name.into(),
        description: "a test".into(),
        family: None,
        architecture: json!({"backbone": "none", "dropout": 0.1}),
        preprocessing: Some(Preprocessing::new(Normalisation::Imagenet, 32).unwrap()),
        dimension: 2,
        weights: Some(format!("{name}/weights.bpk")),
        gallery_embeddings: format!("{name}/gallery.f32"),
        query_embeddings: Some(format!("{name}/queries.f32")),
        element_type: ElementType::F32,
        parity: Some(Parity { embeddings: format!("{name}/parity.f32"), cosine: 0.9998 }),
        onnx: None,
        licence: None,
        report: report.clone(),
        maps: Vec::new(),
        best_scores: None,
        calibration: None,
        affinities: Vec::new(),
        query_scores: None,
    };
    let happier = EncoderEntry {
        maps: vec![Map {
            name: "PCA".into(),
            description: "the plane of the largest variance".into(),
            coordinates: "happier/map.f32".into(),
            geometry: MapGeometry::Plane,
            proxies: Some(MapProxies {
                count: 2,
                coordinates: "happier/proxies.f32".into(),
                per_proxy: 1,
                nearest: "happier/nearest.u32".into(),
                ancestors: "happier/ancestors.u32".into(),
            }),
            class_means: Some(MapMeans {
                description: "the plane of the largest variance of the means".into(),
                classes: vec![2, 0],
                coordinates: "happier/class-means.f32".into(),
            }),
        }],
        affinities: vec![Affinity { level: 1, classes: vec![1, 0], scores: "happier/affinity.f32".into() }],
        query_scores: Some(QueryTable {
            columns: vec![QueryColumn { metric: "h_ap".into(), level: 0 }],
            scores: "happier/scores.f32".into(),
        }),
        best_scores: BestScores::from_scores(vec![0.8, 0.25, 0.6]),
        calibration: Some(Calibration {
            items: 3,
            levels: vec![Steps { shares: vec![0.2, 0.9], certainties: vec![0.25, 0.8] }; 2],
            thresholds: vec![Threshold { certainty: 0.8, answered: 2, wrong: 1 }],
        }),
        ..encoder("happier")
    };
    Contents {
        title: "Früchte".into(),
        description: "fruit".into(),
        licence: "CC0-1.0".into(),
        model_card: "# Fruit\n\n\"Small\".".into(),
        taxonomy,
        gallery: Items { count: 3 },
        queries: Items { count: 1 },
        labels: "labels.bin".into(),
        kinship: None,
        thumbnails: Thumbnails {
            tile: 8,
            columns: 1,
            rows: 3,
            sheets: vec!["t-0.jpg".into(), "t-1.jpg".into()],
        },
        evaluation_config,
        parity_pictures: vec!["parity/0.png".into(), "parity/1.jpg".into()],
        encoders: vec![happier, encoder("baseline")],
    }
}

fn writer() -> BundleWriter {
    writer_of(&POINTS, &POINTS[1..])
}

/// A bundle whose map has these points and class means.
fn writer_of(points: &[[f32; 2]], means: &[[f32; 2]]) -> BundleWriter {
    let mut bundle = BundleWriter::new();
    bundle.add("labels.bin", label_bytes(&taxonomy().1)).unwrap();
    bundle.add("t-0.jpg", b"a picture".to_vec()).unwrap();
    bundle.add("t-1.jpg", b"another".to_vec()).unwrap();
    bundle.add("happier/map.f32", coordinate_bytes(points)).unwrap();
    bundle.add("happier/class-means.f32", coordinate_bytes(means)).unwrap();
    bundle.add("happier/proxies.f32", coordinate_bytes(&points[..2])).unwrap();
    bundle.add("happier/nearest.u32", number_bytes(&[2, 0])).unwrap();
    bundle.add("happier/ancestors.u32", number_bytes(&[1, 0, NO_ANCESTOR, 1, 0, 0])).unwrap();
    bundle.add("happier/affinity.f32", embedding_bytes(&[1.0, 0.25, 0.25, 0.75], ElementType::F32)).unwrap();
    bundle.add("happier/scores.f32", embedding_bytes(&[-1.0], ElementType::F32)).unwrap();
    bundle.add("parity/0.png", b"a pattern".to_vec()).unwrap();
    bundle.add("parity/1.jpg", b"a pear".to_vec()).unwrap();
    for name in ["happier", "baseline"] {
        bundle.add(format!("{name}/weights.bpk"), vec![7; 9]).unwrap();
        bundle.add(format!("{name}/parity.f32"), embedding_bytes(&PARITY, ElementType::F32)).unwrap();
        bundle
            .add(format!("{name}/gallery.f32"), embedding_bytes(GALLERY.as_flattened(), ElementType::F32))
            .unwrap();
        bundle.add(format!("{name}/queries.f32"), embedding_bytes(&QUERY, ElementType::F32)).unwrap();
    }
    bundle
}

fn files() -> Files {
    writer().finish(&contents()).unwrap()
}

fn manifest_bytes() -> Vec<u8> {
    files().pop().unwrap().1
}

fn bytes_of<'a>(files: &'a Files, path: &str) -> &'a [u8] {
    &files.iter().find(|(name, _)| name == path).unwrap().1
}

/// Reads a whole bundle, as the browser does.
fn read(files: &Files) -> akin_core::Result<Manifest> {
    let manifest = Manifest::parse(bytes_of(files, MANIFEST))?;
    for (path, bytes) in files.iter().filter(|(path, _)| path != MANIFEST) {
        manifest.verify(path, bytes)?;
    }
    manifest.labels(bytes_of(files, &manifest.labels))?;
    for (encoder, entry) in manifest.encoders.iter().enumerate() {
        manifest.gallery_embeddings(encoder, bytes_of(files, &entry.gallery_embeddings))?;
        for (map, entry) in entry.maps.iter().enumerate() {
            manifest.map_points(encoder, map, bytes_of(files, &entry.coordinates))?;
        }
    }
    Ok(manifest)
}

/// A manifest with a change, and with the digest that then belongs to it.
fn altered(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut value: Value = serde_json::from_slice(&manifest_bytes()).unwrap();
    change(&mut value);
    with_digest(value)
}

/// The bytes of a manifest with the digest that belongs to it.
fn with_digest(mut value: Value) -> Vec<u8> {
    // The error about a wrong digest ends with the right one.
    let text = serde_json::to_vec(&value).unwrap();
    let digest = match Manifest::parse(&text) {
        Err(error) => error.message().rsplit(' ').next().unwrap().to_owned(),
        Ok(_) => return text,
    };
    value["digest"] = digest.into();
    serde_json::to_vec(&value).unwrap()
}

#[track_caller]
fn assert_refused(bytes: &[u8], words: &str) -> Error {
    let error = Manifest::parse(bytes).expect_err(words);
    assert_eq!(error.kind(), Kind::Bundle);
    assert!(error.message().contains(MANIFEST), "{error}");
    assert!(error.message().contains(words), "{error}");
    assert!(!error.hint().is_empty());
    error
}

#[test]
fn a_reader_gets_back_what_was_written() {
    let files = files();
    assert_eq!(files.last().unwrap().0, MANIFEST, "the manifest comes last");
    let manifest = read(&files).unwrap();
    assert_eq!(manifest.contents(), &contents());
    assert_eq!(manifest.files().len(), 20);
    assert_eq!(manifest.item_count(), 4);
    assert_eq!(manifest.labels(bytes_of(&files, "labels.bin")).unwrap(), taxonomy().1);
    let gallery = manifest.gallery_embeddings(1, bytes_of(&files, "baseline/gallery.f32")).unwrap();
    assert_eq!(gallery.row(1), GALLERY[1]);
    let queries = manifest.query_embeddings(0, bytes_of(&files, "happier/queries.f32")).unwrap();
    assert_eq!(queries.values(), QUERY);
    assert_eq!(manifest.map_points(0, 0, bytes_of(&files, "happier/map.f32")).unwrap(), POINTS);
    let means = manifest.map_class_means(0, 0, bytes_of(&files, "happier/class-means.f32")).unwrap();
    assert_eq!(means, POINTS[1..]);
    let affinity = manifest.affinity_scores(0, 0, bytes_of(&files, "happier/affinity.f32")).unwrap();
    assert_eq!(affinity.row(1), [0.25, 0.75]);
    let scores = manifest.query_scores(0, bytes_of(&files, "happier/scores.f32")).unwrap();
    assert_eq!(scores.values(), [-1.0]);
}

#[test]
fn a_point_outside_the_poincare_disk_is_refused() {
    let mut contents = contents();
    contents.encoders[0].maps[0].geometry = MapGeometry::PoincareDisk;
    let error = writer().finish(&contents).unwrap_err();
    assert!(error.message().contains("point 1 lies outside"), "{error}");
    // A class mean is held to the same.
    let inside = [[0.1, 0.2], [0.0, -0.5], [0.3, 0.3]];
    writer_of(&inside, &inside[..2]).finish(&contents).unwrap();
    let error = writer_of(&inside, &[[0.1, 0.2], [0.9, 0.9]]).finish(&contents).unwrap_err();
    assert!(error.message().contains("point 1 lies outside"), "{error}");
}

#[test]
fn the_layout_of_the_manifest_does_not_matter() {
    let value: Value = serde_json::from_slice(&manifest_bytes()).unwrap();
    let tight = Manifest::parse(&serde_json::to_vec(&value).unwrap()).unwrap();
    assert_eq!(tight, Manifest::parse(&manifest_bytes()).unwrap());
}

#[test]
fn short_floats_stay_short() {
    let text = String::from_utf8(manifest_bytes()).unwrap();
    assert!(text.contains("0.485") && !text.contains("0.4850"), "{text}");
}

#[test]
fn every_changed_byte_of_every_file_is_found() {
    let whole = files();
    let parsed: Value = serde_json::from_slice(bytes_of(&whole, MANIFEST)).unwrap();
    for file in 0..whole.len() {
        for position in 0..whole[file].1.len() {
            for change in [0x01, 0x02, 0x10, 0x20, 0x80] {
                let mut damaged = whole.clone();
                damaged[file].1[position] ^= change;
                let (path, bytes) = &damaged[file];
                // One space may become another, and one spelling of a number another.
                let same = path == MANIFEST
                    && serde_json::from_slice::<Value>(bytes).is_ok_and(|value| value == parsed);
                match read(&damaged) {
                    Ok(_) => assert!(same, "{path}, byte {position} ^ {change:#x}"),
                    Err(error) => {
                        assert!(!same && error.kind() == Kind::Bundle, "{error}");
                        assert!(error.message().contains(path.as_str()), "{path}: {error}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_file_cut_short_or_made_longer_is_refused_by_name() {
    let files = files();
    let manifest = read(&files).unwrap();
    for (path, bytes) in &files[..files.len() - 1] {
        for length in 0..bytes.len() {
            let error = manifest.verify(path, &bytes[..length]).unwrap_err();
            assert!(error.message().contains(path) && error.message().contains("cut short"), "{error}");
        }
        assert!(
            manifest.verify(path, &[&bytes[..], b"x"].concat()).unwrap_err().message().contains("too long")
        );
    }
    let text = manifest_bytes();
    for length in 0..text.len() {
        assert_refused(&text[..length], "damaged or cut short");
    }
}

#[test]
fn a_newer_bundle_asks_for_a_newer_akin() {
    for newer in [altered(|m| m["version"] = 2.into()), altered(|m| m["requires"] = json!(["volumes"]))] {
        let error = assert_refused(&newer, "this bundle needs a newer akin");
        assert!(error.hint().contains("update akin"), "{error}");
    }
    assert_refused(&altered(|m| m["requires"] = json!(["volumes"])), "\"volumes\"");
}

#[test]
fn other_formats_and_versions_are_refused() {
    assert_refused(b"{}", "has the format null");
    assert_refused(b"[1, 2]", "has the format null");
    assert_refused(b"\"akin-bundle\"", "has the format null");
    assert_refused(&altered(|m| m["format"] = "other".into()), "has the format \"other\"");
    for version in [json!(0), json!("1"), json!(1.5), Value::Null] {
        assert_refused(&altered(|m| m["version"] = version), "which does not exist");
    }
}

#[test]
fn a_manifest_that_was_edited_without_its_digest_is_refused() {
    let text = String::from_utf8(manifest_bytes()).unwrap().replace("CC0-1.0", "CC0-2.0");
    assert_refused(text.as_bytes(), "was changed");
    assert_refused(&altered(|m| drop(m.as_object_mut().unwrap().remove("title"))), "missing field `title`");
}

/// Adds a field to every object outside those in which an unknown field changes embeddings or scores.
fn add_unknown_fields(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                if !["architecture", "preprocessing", "evaluation_config", "config", "overall", "report"]
                    .contains(&key.as_str())
                {
                    add_unknown_fields(value);
                }
            }
            fields.insert("unknown".into(), json!({ "any": ["value"] }));
        }
        Value::Array(values) => values.iter_mut().for_each(add_unknown_fields),
        _ => {}
    }
}

#[test]
fn unknown_fields_are_ignored_unless_they_change_embeddings_or_scores() {
    let newer = Manifest::parse(&altered(add_unknown_fields)).unwrap();
    assert_eq!(newer.contents(), &contents());
    assert!(Manifest::parse(&altered(|m| m["encoders"][0]["report"]["unknown"] = 1.into())).is_ok());
    for at in ["/encoders/0/preprocessing", "/encoders/0/report/config", "/evaluation_config"] {
        let error = assert_refused(&altered(|m| m.pointer_mut(at).unwrap()["gamma"] = 2.into()), "gamma");
        assert!(error.hint().contains("update akin"), "{error}");
    }
}

#[test]
fn optional_fields_may_be_absent() {
    let alone = altered(|m| {
        let encoder = m["encoders"][0].as_object_mut().unwrap();
        encoder.remove("maps").unwrap();
        for field in ["best_scores", "calibration", "affinities", "query_scores"] {
            encoder.remove(field).unwrap();
        }
    });
    let manifest = Manifest::parse(&alone).unwrap();
    assert!(manifest.encoders[0].maps.is_empty() && manifest.encoders[0].best_scores.is_none());
    assert!(manifest.encoders[0].calibration.is_none());
    let error = manifest.map_points(0, 0, b"").unwrap_err();
    assert!(error.message().contains("no map 0"), "{error}");
    assert!(manifest.affinity_scores(0, 0, b"").unwrap_err().message().contains("no affinity 0"));
    assert!(manifest.query_scores(0, b"").unwrap_err().message().contains("no scores of each query"));
    // An empty list of requirements is as good as none.
    assert!(Manifest::parse(&altered(|m| m["requires"] = json!(["parity", "f16"]))).is_ok());
    assert_refused(&altered(|m| m["requires"] = json!("maps")), "invalid list `requires`");
}

fn index() -> Index {
    let entry = |path: &str| IndexEntry {
        path: path.into(),
        title: format!("Title of {path}"),
        description: "Früchte".into(),
        sample: path == "grocery",
    };
    Index { bundles: vec![entry("grocery"), entry("sets/creatures")] }
}

fn altered_index(change: impl FnOnce(&mut Value)) -> akin_core::Result<Index> {
    let mut value: Value = serde_json::from_slice(&index().to_bytes().unwrap()).unwrap();
    change(&mut value);
    Index::parse(&serde_json::to_vec(&value).unwrap())
}

#[test]
fn an_index_is_read_as_it_was_written() {
    assert_eq!(Index::parse(&index().to_bytes().unwrap()).unwrap(), index());
    assert_eq!(altered_index(add_unknown_fields).unwrap(), index());
}

#[test]
fn a_wrong_index_is_refused_by_name() {
    let refused = |change: &dyn Fn(&mut Value), words: &str| {
        let error = altered_index(|index| change(index)).expect_err(words);
        assert_eq!(error.kind(), Kind::Bundle);
        assert!(error.message().contains(INDEX) && error.message().contains(words), "{error}");
        assert!(!error.hint().is_empty());
    };
    refused(&|m| m["format"] = "akin-bundle".into(), "has the format \"akin-bundle\"");
    refused(&|m| m["version"] = 2.into(), "needs a newer akin");
    refused(&|m| m["requires"] = json!(["search"]), "needs a newer akin");
    refused(&|m| m["bundles"] = json!([]), "lists no bundle");
    refused(&|m| drop(m["bundles"][0].as_object_mut().unwrap().remove("title")), "missing field `title`");
    refused(&|m| m["bundles"][1]["path"] = "Grocery".into(), "twice");
    for path in ["../grocery", "/grocery", "https://example.org/grocery", "", "a//b", "a/"] {
        refused(&|m| m["bundles"][0]["path"] = path.into(), "not safe");
    }
    let bytes = index().to_bytes().unwrap();
    let error = Index::parse(&bytes[..bytes.len() - 3]).unwrap_err();
    assert!(error.message().contains("bundles.json is damaged or cut short"), "{error}");
}

#[test]
fn paths_that_could_leave_the_bundle_are_refused() {
    for path in [
        "../labels.bin",
        "/labels.bin",
        "a/../../b",
        "a/./b",
        "a//b",
        "a/",
        "",
        ".",
        "..",
        "a\\b",
        "C:b",
        "%2e%2e/b",
        "b?c",
        "b#c",
        "https://example.org/b",
        ".git",
        "a b",
        "ä.bin",
        "nul\0",
        "bundle.json",
        "Bundle.JSON",
    ] {
        assert_refused(&altered(|m| m["files"][0]["path"] = path.into()), "not safe");
        let error = BundleWriter::new().add(path, vec![]).unwrap_err();
        assert!(error.message().contains("not safe"), "{error}");
    }
}

#[test]
fn a_path_twice_is_refused_even_in_another_case() {
    for path in ["t-1.jpg", "T-1.JPG"] {
        assert_refused(&altered(|m| m["files"][1]["path"] = path.into()), "listed twice");
    }
    assert!(writer().add("Labels.bin", vec![]).unwrap_err().message().contains("already has"));
}

#[test]
fn a_file_that_is_not_listed_is_named() {
    for (at, path) in [
        ("/labels", "no-labels.bin"),
        ("/thumbnails/sheets/1", "no-sheet.jpg"),
        ("/encoders/0/weights", "no-weights.bpk"),
        ("/encoders/1/gallery_embeddings", "no-gallery.f32"),
        ("/encoders/1/query_embeddings", "no-queries.f32"),
    ] {
        assert_refused(&altered(|m| *m.pointer_mut(at).unwrap() = path.into()), path);
    }
    let manifest = Manifest::parse(&manifest_bytes()).unwrap();
    assert!(manifest.verify("other.bin", b"").unwrap_err().message().contains("other.bin"));
    assert!(manifest.gallery_embeddings(2, b"").unwrap_err().message().contains("no encoder 2"));
}

#[test]
fn counts_and_lengths_that_do_not_fit_each_other_are_refused() {
    let huge = json!(u64::MAX);
    for (at, value, words) in [
        ("/gallery/count", json!(4), "labels.bin is listed with 32 bytes instead of 5 × 2 × 4"),
        ("/gallery/count", json!(0), "gallery is empty"),
        ("/gallery/count", huge.clone(), "more items than can be counted"),
        ("/gallery/count", json!(-1), "invalid value"),
        ("/queries/count", json!(0), "labels.bin"),
        ("/thumbnails/rows", json!(1), "need 4 sheets"),
        ("/thumbnails/columns", json!(0), "tiles"),
        ("/thumbnails/tile", json!(0), "tiles"),
        ("/thumbnails/sheets", json!(["t-0.jpg"]), "need 2 sheets"),
        ("/encoders", json!([]), "no encoder"),
        ("/encoders/1/name", json!("happier"), "not unique"),
        ("/encoders/0/dimension", json!(0), "0 dimensions"),
        ("/encoders/0/dimension", json!(100_000), "100000 dimensions"),
        (
            "/encoders/0/dimension",
            json!(3),
            "happier/parity.f32 is listed with 16 bytes instead of 2 × 3 × 4",
        ),
        ("/encoders/0/parity/cosine", json!(1.5), "must be -1 to 1"),
        ("/encoders/0/parity/cosine", json!(null), "is not valid"),
        ("/encoders/0/parity", Value::Null, "but no parity check"),
        ("/encoders/0/parity/embeddings", json!("no.f32"), "no.f32"),
        ("/parity_pictures", json!([]), "but there are none"),
        ("/parity_pictures", json!(["parity/2.jpg"]), "parity/2.jpg"),
        ("/parity_pictures", json!(vec!["parity/0.png"; 65]), "at most 64"),
        ("/encoders/0/architecture", json!({"backbone": {"kind": "onnx"}}), "the bundle names none"),
        ("/encoders/0/query_embeddings", Value::Null, "no embeddings of the 1 stored queries"),
        ("/encoders/0/query_embeddings", json!("happier/gallery.f32"), "24 bytes"),
        ("/encoders/0/maps/0/name", json!(" "), "not unique"),
        ("/encoders/0/maps/0/coordinates", json!("no-map.f32"), "no-map.f32"),
        ("/encoders/0/maps/0/coordinates", json!("happier/queries.f32"), "8 bytes instead of 3 × 2 × 4"),
        ("/encoders/0/maps/0/proxies/count", json!(0), "no proxies"),
        ("/encoders/0/maps/0/proxies/count", json!(3), "16 bytes instead of 3 × 2 × 4"),
        ("/encoders/0/maps/0/proxies/per_proxy", json!(2), "8 bytes instead of 2 × 2 × 4"),
        (
            "/encoders/0/maps/0/proxies/ancestors",
            json!("happier/nearest.u32"),
            "8 bytes instead of 3 × 2 × 4",
        ),
        ("/encoders/0/maps/0/class_means/classes", json!([]), "no class"),
        ("/encoders/0/maps/0/class_means/classes", json!([0, 0]), "different classes"),
        ("/encoders/0/maps/0/class_means/classes", json!([0, 9]), "different classes"),
        ("/encoders/0/maps/0/class_means/classes", json!([0]), "16 bytes instead of 1 × 2 × 4"),
        ("/encoders/0/affinities/0/level", json!(3), "one level"),
        ("/encoders/0/affinities/0/classes", json!([0, 0]), "different classes"),
        ("/encoders/0/affinities/0/classes", json!([0]), "16 bytes instead of 1 × 1 × 4"),
        ("/encoders/0/query_scores/columns", json!([]), "no column"),
        ("/encoders/0/query_scores/columns/0/level", json!(9), "level that does not exist"),
        ("/encoders/0/query_scores/scores", json!("happier/map.f32"), "24 bytes instead of 1 × 1 × 4"),
        ("/encoders/0/best_scores/quantiles", json!([0.1, 0.2]), "101 finite numbers"),
        ("/encoders/0/best_scores/quantiles", json!(vec![1e300; 101]), "101 finite numbers"),
        ("/encoders/0/best_scores/quantiles/3", json!(9.0), "ascending order"),
        ("/encoders/0/calibration/levels", json!([]), "another number of levels than the taxonomy"),
        ("/encoders/0/calibration/levels/1/shares", json!([0.5]), "another number of shares"),
        ("/encoders/0/calibration/levels/0/shares", json!([0.9, 0.2]), "that ascend"),
        ("/encoders/0/calibration/levels/0/certainties/1", json!(1.5), "from 0 to 1"),
        ("/encoders/0/calibration/thresholds/0/certainty", json!(-0.5), "from 1 to 0"),
        ("/encoders/0/calibration/thresholds/0/wrong", json!(3), "more wrong answers than answers"),
        ("/encoders/0/calibration/items", json!(1), "more answers than items"),
        ("/encoders/0/preprocessing/crop", json!(0), "crops to 0"),
        ("/encoders/0/report/levels", json!([]), "report"),
        ("/evaluation_config/block", json!(0), "evaluation_config"),
        ("/taxonomy/parents/1", json!([0, 0, 9]), "parent 9"),
        ("/files/0/sha256", json!("00"), "64 lower-case hexadecimal digits"),
        ("/files/0/bytes", json!(31), "31 bytes"),
    ] {
        assert_refused(&altered(|m| *m.pointer_mut(at).expect(at) = value), words);
    }
}

#[test]
fn without_stored_queries_there_are_no_query_embeddings() {
    let mut alone = contents();
    alone.queries.count = 0;
    alone.thumbnails.rows = 2;
    let (taxonomy, labels) = taxonomy();
    let labels = labels.select(&[0, 1, 2]);
    let bundle = |contents: &Contents| {
        let mut bundle = BundleWriter::new();
        bundle.add("labels.bin", label_bytes(&labels)).unwrap();
        for (path, bytes) in writer().finish(&self::contents()).unwrap() {
            if path != "labels.bin" && path != MANIFEST {
                bundle.add(path, bytes).unwrap();
            }
        }
        bundle.finish(contents)
    };
    assert!(bundle(&alone).unwrap_err().message().contains("no stored queries"));
    alone.encoders.iter_mut().for_each(|encoder| encoder.query_embeddings = None);
    // One row per gallery item, and not per stored query.
    assert!(bundle(&alone).unwrap_err().message().contains("4 bytes instead of 3 × 1 × 4"));
    alone.encoders[0].query_scores = None;
    let files = bundle(&alone).unwrap();
    let manifest = read(&files).unwrap();
    assert_eq!(manifest.taxonomy, taxonomy);
    assert!(manifest.query_embeddings(0, b"").unwrap_err().hint().contains("gallery"));
}

#[test]
fn encoders_of_a_family_have_different_numbers_of_bits() {
    let family = |m: &mut Value, encoder: usize| {
        m["encoders"][encoder]["family"] = json!("HPDH");
        m["encoders"][encoder]["report"]["config"]["similarity"] = json!("hamming");
    };
    let one = Manifest::parse(&altered(|m| family(m, 0))).unwrap();
    assert_eq!(one.encoders[0].family.as_deref(), Some("HPDH"));
    let two = altered(|m| {
        family(m, 0);
        family(m, 1);
    });
    assert_refused(&two, "as many bits as another");
    assert_refused(&altered(|m| m["encoders"][0]["family"] = json!("HPDH")), "has no codes");
}

#[test]
fn non_finite_numbers_and_unknown_classes_are_refused_by_file() {
    let replaced = |path: &str, bytes: Vec<u8>| {
        let mut bundle = BundleWriter::new();
        for (name, old) in files() {
            if name != MANIFEST {
                bundle.add(name.clone(), if name == path { bytes.clone() } else { old }).unwrap();
            }
        }
        bundle.finish(&contents()).unwrap_err()
    };
    for number in [f32::NAN, f32::INFINITY] {
        let numbers = [1.0, 0.0, number, 0.0, 1.0, 0.0];
        let error = replaced("baseline/gallery.f32", embedding_bytes(&numbers, ElementType::F32));
        assert_eq!(error.kind(), Kind::Bundle);
        assert!(
            error.message().contains("baseline/gallery.f32") && error.message().contains("row 1"),
            "{error}"
        );
    }
    for number in [f32::NAN, f32::NEG_INFINITY] {
        let error = replaced("happier/map.f32", coordinate_bytes(&[[0.0, 0.0], [0.0, 0.0], [0.0, number]]));
        assert!(error.message().contains("happier/map.f32") && error.message().contains("row 2"), "{error}");
    }
    // Variety 9 does not exist; kaiser (2) is not an apple (0).
    for ids in [[0, 0, 0, 1, 1, 9, 0, 0], [0, 0, 0, 1, 0, 2, 0, 0]] {
        let error = replaced("labels.bin", label_bytes(&Labels::new(2, ids.to_vec()).unwrap()));
        assert!(error.message().contains("labels.bin: item 2 has the labels"), "{error}");
    }
}

#[test]
fn several_label_paths_are_read_as_they_were_written_and_required_of_the_reader() {
    let several = |kinds: &[u32], paths: Value| {
        let kinship = serde_json::from_value(json!({ "paths": paths })).unwrap();
        let mut contents = contents();
        contents.kinship = Some(ItemKinship { kinds: kinds.to_vec(), kinship });
        writer().finish(&contents)
    };
    let paths = json!([[[0, 0], [1, 2]], [[0, 1]], [[1, 2]]]);
    let files = several(&[0, 1, 2, 0], paths.clone()).unwrap();
    let manifest = read(&files).unwrap();
    let labels = manifest.labels(bytes_of(&files, "labels.bin")).unwrap();
    assert_eq!((labels.shared(0, &labels, 2).least, labels.shared(1, &labels, 2).least), (2, 0));
    let json: Value = serde_json::from_slice(bytes_of(&files, MANIFEST)).unwrap();
    assert_eq!(json["requires"], json!(["kinship", "parity"]));

    for (kinds, paths, words) in [
        (vec![0, 1, 2], paths.clone(), "does not fit 4 items"),
        (vec![0, 1, 2, 3], paths, "does not fit 4 items"),
        (vec![0; 4], json!([[[0, 0], [1, 1]]]), "the taxonomy has no such path"),
        (vec![0; 4], json!([[[0], [1]]]), "at 1 levels does not fit 4 items with labels of 2 levels"),
    ] {
        let error = several(&kinds, paths).unwrap_err();
        assert!(error.message().contains(words), "{error}");
    }
}

/// The bundle with the second encoder's embeddings in half precision.
fn half_precision_files(gallery: &[f32]) -> akin_core::Result<Files> {
    let mut contents = contents();
    contents.encoders[1].element_type = ElementType::F16;
    let mut bundle = BundleWriter::new();
    for (path, bytes) in files().into_iter().filter(|(path, _)| path != MANIFEST) {
        let bytes = match path.as_str() {
            "baseline/gallery.f32" => embedding_bytes(gallery, ElementType::F16),
            "baseline/queries.f32" => embedding_bytes(&QUERY, ElementType::F16),
            _ => bytes,
        };
        bundle.add(path, bytes)?;
    }
    bundle.finish(&contents)
}

#[test]
fn half_precision_takes_half_the_space_and_is_required_of_the_reader() {
    let files = half_precision_files(GALLERY.as_flattened()).unwrap();
    let manifest = read(&files).unwrap();
    assert_eq!(bytes_of(&files, "baseline/gallery.f32").len(), 3 * 2 * 2);
    let queries = manifest.query_embeddings(1, bytes_of(&files, "baseline/queries.f32")).unwrap();
    assert_eq!(queries.values(), QUERY);
    // A reader from before half precision refuses what it must know by name.
    let value: Value = serde_json::from_slice(bytes_of(&files, MANIFEST)).unwrap();
    assert_eq!(value["requires"], json!(["f16", "parity"]));
    assert!(value["encoders"][0].get("element_type").is_none());
    let full: Value = serde_json::from_slice(&manifest_bytes()).unwrap();
    assert_eq!(full["requires"], json!(["parity"]));
}

fn onnx() -> Value {
    json!({ "file": "t-0.jpg", "input": "pixel_values", "output": "tokens" })
}

/// The bundle with an ONNX file in the second encoder, for which the picture of a sheet stands here.
fn onnx_contents() -> Contents {
    let mut contents = contents();
    let encoder = &mut contents.encoders[1];
    encoder.onnx = Some(serde_json::from_value(onnx()).unwrap());
    encoder.architecture = json!({ "backbone": { "kind": "onnx", "path": "t-0.jpg", "features": 2 } });
    encoder.licence = Some("Apache-2.0".into());
    contents
}

#[test]
fn an_onnx_file_is_required_of_the_reader_and_belongs_to_its_architecture() {
    let files = writer().finish(&onnx_contents()).unwrap();
    let manifest = read(&files).unwrap();
    assert_eq!(manifest.contents(), &onnx_contents());
    let entry = manifest.encoders[1].onnx.clone().unwrap();
    assert_eq!((entry.layout, entry.element_type), (Layout::ChannelsFirst, InputType::F32));
    let value: Value = serde_json::from_slice(bytes_of(&files, MANIFEST)).unwrap();
    assert_eq!(value["requires"], json!(["onnx", "parity"]));

    let altered = |at: &str, new: Value| {
        let mut value = value.clone();
        *value.pointer_mut(at).expect(at) = new;
        with_digest(value)
    };
    for (at, new, words) in [
        ("/requires", json!(["parity"]), "does not name \"onnx\""),
        ("/encoders/1/onnx/file", json!("model.onnx"), "model.onnx"),
        ("/encoders/1/onnx/file", json!("../model.onnx"), "../model.onnx"),
        ("/encoders/1/onnx/layout", json!("sideways"), "is not valid"),
        ("/encoders/1/onnx", Value::Null, "the bundle names none"),
        (
            "/encoders/1/architecture/backbone",
            json!({ "kind": "onnx", "sha256": "00" }),
            "the architecture of encoder \"baseline\" names \"00\"",
        ),
    ] {
        assert_refused(&altered(at, new), words);
    }
    let mut contents = onnx_contents();
    contents.encoders[1].architecture = json!({ "backbone": { "kind": "resnet18" } });
    assert!(writer().finish(&contents).unwrap_err().message().contains("another backbone"));
    let mut contents = onnx_contents();
    contents.encoders[1].onnx.as_mut().unwrap().int8 = Some(Int8Loss { h_ap: 0.5, h_ap_int8: 1.5 });
    assert!(writer().finish(&contents).unwrap_err().message().contains("not from 0 to 1"));
}

/// The bundle with an encoder of another program: its embeddings of the items alone.
fn contents_without_weights() -> Contents {
    let mut contents = contents();
    let encoder = &mut contents.encoders[1];
    encoder.weights = None;
    encoder.preprocessing = None;
    encoder.architecture = Value::Null;
    encoder.parity = None;
    contents
}

#[test]
fn an_encoder_without_weights_has_embeddings_alone() {
    let contents = contents_without_weights();
    let manifest = read(&writer().finish(&contents).unwrap()).unwrap();
    assert_eq!(manifest.contents(), &contents);
    let error = manifest.parity_embeddings(1, &[]).unwrap_err();
    assert!(error.message().contains("has no parity check"), "{error}");
    let error = EncoderConfig::of_bundle(&manifest.encoders[1]).unwrap_err();
    assert!(error.message().contains("no weights that embed a picture"), "{error}");
}

#[test]
fn a_wrong_encoder_without_weights_is_refused() {
    let files = writer().finish(&contents_without_weights()).unwrap();
    let value: Value = serde_json::from_slice(bytes_of(&files, MANIFEST)).unwrap();
    assert_eq!(value["requires"], json!(["parity", "without_weights"]));
    let some = "has some of weights, architecture, preprocessing and parity check, and not the others";
    let happier = &value["encoders"][0];
    for (path, change, message) in [
        ("/requires", json!(["parity"]), "does not name \"without_weights\""),
        ("/encoders/1/weights", happier["weights"].clone(), "but no parity check"),
        ("/encoders/1/preprocessing", happier["preprocessing"].clone(), some),
        ("/encoders/1/architecture", json!({ "backbone": "none" }), some),
        ("/encoders/1/parity", happier["parity"].clone(), some),
    ] {
        let mut wrong = value.clone();
        let (parent, field) = path.rsplit_once('/').unwrap();
        wrong.pointer_mut(parent).unwrap()[field] = change;
        assert_refused(&with_digest(wrong), message);
    }
}

#[test]
fn the_smallest_cosine_is_that_of_the_worst_picture() {
    let trainers = [1.0, 0.0, 0.0, 2.0];
    for (own, cosine) in
        [([3.0, 0.0, 0.0, 1.0], 1.0), ([1.0, 0.0, 3.0, 4.0], 0.8), ([-1.0, 0.0, 0.0, 1.0], -1.0)]
    {
        assert!((Parity::smallest_cosine(&own, &trainers, 2) - cosine).abs() < 1e-12);
    }
    assert!(Parity::smallest_cosine(&[0.0, 0.0, 0.0, 1.0], &trainers, 2).is_nan());
}

#[test]
fn channels_come_last_where_the_network_has_them_last() {
    let images: Vec<f32> = (0..24).map(|number| number as f32).collect();
    assert_eq!(Layout::ChannelsFirst.arrange(images.clone(), 2), images);
    assert_eq!(
        Layout::ChannelsLast.arrange(images, 2),
        [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11, 12, 16, 20, 13, 17, 21, 14, 18, 22, 15, 19, 23]
            .map(|i| i as f32)
    );
}

#[test]
fn wrong_half_precision_is_refused() {
    let half = |requires: Value| {
        altered(|m| {
            m["encoders"][1]["element_type"] = "f16".into();
            m["requires"] = requires;
        })
    };
    assert_refused(
        &half(json!(["f16"])),
        "baseline/gallery.f32 is listed with 24 bytes instead of 3 × 2 × 2",
    );
    assert_refused(&altered(|m| m["encoders"][0]["element_type"] = "f64".into()), "unknown variant `f64`");
    let mut value: Value =
        serde_json::from_slice(bytes_of(&half_precision_files(GALLERY.as_flattened()).unwrap(), MANIFEST))
            .unwrap();
    value["requires"] = json!(["parity"]);
    assert_refused(&with_digest(value), "`requires` does not name \"f16\"");
    // 65,520 is the smallest number that half precision rounds to infinity.
    let error = half_precision_files(&[1.0, 0.0, 65_520.0, 0.0, 1.0, 0.0]).unwrap_err();
    assert!(error.message().contains("baseline/gallery.f32") && error.message().contains("row 1"), "{error}");
}

proptest! {
    #[test]
    fn half_precision_is_read_as_it_was_rounded(numbers in prop::array::uniform6(-65_504.0f32..=65_504.0)) {
        let files = half_precision_files(&numbers).unwrap();
        let manifest = read(&files).unwrap();
        let gallery = manifest.gallery_embeddings(1, bytes_of(&files, "baseline/gallery.f32")).unwrap();
        prop_assert_eq!(gallery.values(), numbers.map(|number| ElementType::F16.round(number)));
        for (number, rounded) in numbers.iter().zip(gallery.values()) {
            // Half of the last of 11 significant bits; 2⁻²⁵ where the number has fewer.
            prop_assert!((number - rounded).abs() <= (number.abs() / 2048.0).max(2f32.powi(-25)));
        }
    }

    /// The digest covers numbers as they are read, so each must be the same after writing and reading.
    #[test]
    fn any_finite_numbers_survive(
        parity in -1.0f64..=1.0,
        scale in any::<f32>(),
        dropout in any::<f64>(),
        description in any::<String>(),
    ) {
        prop_assume!(scale.is_finite() && scale != 0.0 && dropout.is_finite());
        let mut contents = contents();
        let encoder = &mut contents.encoders[0];
        encoder.parity.as_mut().unwrap().cosine = parity;
        encoder.architecture = json!({ "dropout": dropout });
        encoder.description = description;
        let mut settings = encoder.preprocessing.as_ref().unwrap().numbers().clone();
        settings.scale = scale;
        encoder.preprocessing = Some(settings.try_into().unwrap());
        let manifest = read(&writer().finish(&contents).unwrap()).unwrap();
        prop_assert_eq!(manifest.contents(), &contents);
    }
}
