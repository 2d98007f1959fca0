//! The layouts that are found, and what is said of those that cannot be used.

use super::*;
use crate::data::fixtures::{files, refusal, tree};

#[test]
fn splits_may_be_written_in_capital_letters() {
    let images: Vec<String> = ["Train", "TEST"]
        .iter()
        .flat_map(|split| ["Owls/1.jpg", "Owls/2.jpg", "Hawks/1.jpg"].map(|image| format!("{split}/{image}")))
        .collect();
    let layout = found(&tree(&images.iter().map(String::as_str).collect::<Vec<_>>()));
    assert_eq!(layout.levels(), ["class"]);
    assert_eq!(
        [text(&layout, "train"), text(&layout, "test")],
        ["Train", "TEST"].map(|name| Some(name.into()))
    );
    assert!(text(&layout, "test_fraction").is_none());

    let csv = "path,class,Set\na.jpg,x,Train\nb.jpg,x,Train\nc.jpg,y,Test\nd.jpg,y,Test\n";
    let images = ["a.jpg", "b.jpg", "c.jpg", "d.jpg"].map(|name| (name, &b""[..]));
    let layout = found(&files(&[&[("labels.csv", csv.as_bytes())], &images[..]].concat()));
    assert_eq!(
        ["split_column", "train", "test"].map(|key| text(&layout, key).unwrap()),
        ["Set", "Train", "Test"]
    );
}

#[test]
fn the_only_column_of_labels_may_be_named_like_a_division() {
    let csv = "path,phase\na.jpg,solid\nb.jpg,solid\nc.jpg,liquid\nd.jpg,liquid\n";
    let images = ["a.jpg", "b.jpg", "c.jpg", "d.jpg"].map(|name| (name, &b""[..]));
    let layout = found(&files(&[&[("labels.csv", csv.as_bytes())], &images[..]].concat()));
    assert_eq!(layout.levels(), ["phase"]);
}

#[test]
fn a_second_division_of_the_images_is_no_level() {
    let csv = "path,character,split,official_split\na.jpg,x,train,background\nb.jpg,x,train,background\n\
                   c.jpg,y,test,background\nd.jpg,y,test,background\ne.jpg,z,test,evaluation\nf.jpg,z,test,evaluation\n";
    let images = ["a", "b", "c", "d", "e", "f"].map(|name| format!("{name}.jpg"));
    let images: Vec<(&str, &[u8])> = images.iter().map(|name| (name.as_str(), &b""[..])).collect();
    let layout = found(&files(&[&[("labels.csv", csv.as_bytes())], &images[..]].concat()));
    assert_eq!(layout.levels(), ["character"]);
}

#[test]
fn classes_are_held_out_where_there_is_only_one_split() {
    let csv = "path,class,split\na.jpg,x,train\nb.jpg,x,train\nc.jpg,y,train\nd.jpg,y,\n";
    let images = ["a.jpg", "b.jpg", "c.jpg", "d.jpg"].map(|name| (name, &b""[..]));
    let layout = found(&files(&[&[("labels.csv", csv.as_bytes())], &images[..]].concat()));
    assert_eq!(text(&layout, "test_fraction").as_deref(), Some("0.5"));
}

fn found(folder: &tempfile::TempDir) -> Layout {
    detect(folder.path()).unwrap()
}

/// The value of a key of `[data]`, of its table `splits`, or of `[split]`.
fn text(layout: &Layout, key: &str) -> Option<String> {
    let splits = layout.data.get("splits").and_then(Value::as_table);
    let value = layout.data.get(key).or(splits.and_then(|splits| splits.get(key)));
    let value = value.or(layout.split.get(key))?;
    Some(value.as_str().map_or(value.to_string(), str::to_owned))
}

/// A tree of empty images that can be read as a data set.
fn photos() -> tempfile::TempDir {
    let paths: Vec<String> = ["Birds/Owls", "Birds/Hawks", "Cats/Lions", "Cats/Lynxes"]
        .iter()
        .flat_map(|class| (0..3).map(move |number| format!("{class}/{number}.jpg")))
        .collect();
    tree(&paths.iter().map(String::as_str).collect::<Vec<_>>())
}

fn reads(layout: &Layout) -> Dataset {
    let (data, split) = (layout.data.clone(), layout.split.clone());
    let (data, split) = (data.try_into().unwrap(), split.try_into().unwrap());
    Dataset::load(&Selection { data, split, seed: 0 }).unwrap()
}

#[test]
fn folders_without_splits_hold_out_half_of_the_classes() {
    let photos = photos();
    let layout = found(&photos);
    assert_eq!(layout.levels(), ["group", "class"]);
    assert_eq!(text(&layout, "test_fraction").as_deref(), Some("0.5"));
    let dataset = reads(&layout);
    assert_eq!(
        sizes(&dataset),
        "train 6 images of 2 classes, test 6 images of 2 classes; 2 → 4 classes by level"
    );
}

#[test]
fn folders_of_splits_are_recognised_by_common_names() {
    let layout = found(&tree(&["training/a/1.jpg", "training/b/1.jpg", "val/c/1.jpg", "val/c/2.jpg"]));
    assert_eq!(
        (text(&layout, "train").as_deref(), text(&layout, "test").as_deref()),
        (Some("training"), Some("val"))
    );
    assert_eq!((layout.levels(), text(&layout, "test_fraction")), (vec!["class".to_owned()], None));
    let layout = found(&tree(&["train/a/1.jpg", "query/b/1.jpg", "gallery/b/2.jpg"]));
    assert_eq!(text(&layout, "query"), None, "the names of akin need no setting");
}

#[test]
fn folders_of_splits_that_are_not_used_are_named() {
    let images = ["train/a/1.jpg", "test/b/1.jpg", "test/b/2.jpg", "val/c/1.jpg"];
    let layout = found(&tree(&images));
    assert!(layout.found.ends_with(" (the folder val is not used)"), "{}", layout.found);
    assert!(!found(&tree(&images[..3])).found.contains("not used"));
    let more = [&images[..], &["query/d/1.jpg"]].concat();
    assert!(found(&tree(&more)).found.ends_with(" (the folders val, query are not used)"));
}

#[test]
fn a_tree_of_uneven_depth_has_unknown_classes() {
    let uneven = tree(&["a/1.jpg", "b/x/1.jpg", "b/y/1.jpg", "c/z/1.jpg"]);
    let layout = found(&uneven);
    assert_eq!((text(&layout, "missing").as_deref(), layout.levels().len()), (Some("unknown"), 2));
    assert!(layout.notes[0].starts_with("1 image is 1 folder deep"), "{:?}", layout.notes);

    let photos =
        tree(&["a/x/1.jpg", "a/y/1.jpg", "a/Unknown/1.jpg", "b/z/1.jpg", "b/z/2.jpg", "b/b sp./1.jpg"]);
    let layout = found(&photos);
    assert_eq!(text(&layout, "unknown_words").as_deref(), Some(r#"["unknown", "sp."]"#));
    let (data, split) = (layout.data.try_into().unwrap(), layout.split.try_into().unwrap());
    let dataset = Dataset::read(&Selection { data, split, seed: 0 }).unwrap();
    assert_eq!(dataset.labels.known_counts(), [6, 4]);
}

#[test]
fn folders_that_cannot_be_used_are_refused_with_a_reason() {
    for (images, message) in [
        (&["notes.txt"][..], "has no images"),
        (&["1.jpg", "2.jpg"], "has 2 images, but no folders of classes"),
        (&["1.jpg", "a/1.jpg", "b/1.jpg"], "1 image is in no folder of a class: "),
        (&["a/1.jpg", "b/1.jpg"], "has 2 folders of images, and half"),
    ] {
        let (found, hint) = refusal(detect(tree(images).path()));
        assert!(found.contains(message) && !hint.is_empty(), "{found}");
    }
    assert!(refusal(detect(Path::new("/nowhere"))).0.contains("cannot be read"));
}

#[test]
fn levels_can_be_named() {
    let photos = photos();
    let mut layout = found(&photos);
    layout.name_levels(&["order".into(), "species".into()]).unwrap();
    assert_eq!(reads(&layout).taxonomy.level_names(), ["order", "species"]);
    assert!(refusal(layout.name_levels(&["species".into()])).0.contains("1 level is given"));
}

const TABLE: &str = "id,file,species_id,species,family,colour,set
0,img/a.jpg,7,Barn owl,Owls,white,train
1,img/b.jpg,7,Barn owl,Owls,brown,train
2,img/c.jpg,8,Tawny owl,Owls,brown,val
3,img/d.jpg,9,Kestrel,Hawks,brown,val
4,img/e.jpg,9,Kestrel,Hawks,white,val
";

#[test]
fn a_csv_file_is_read_for_its_paths_splits_and_levels() {
    let images = ["img/a.jpg", "img/b.jpg", "img/c.jpg", "img/d.jpg", "img/e.jpg"];
    let mut all = vec![("birds.csv", TABLE.as_bytes())];
    all.extend(images.iter().map(|&image| (image, &b""[..])));
    let folder = files(&all);
    let layout = found(&folder);
    assert_eq!(layout.levels(), ["family", "species"], "the numbers of classes are no level");
    let expected = [("kind", "csv"), ("path_column", "file"), ("split_column", "set"), ("test", "val")];
    for (key, value) in expected {
        assert_eq!(text(&layout, key).as_deref(), Some(value));
    }
    assert_eq!(reads(&layout).splits.train.len(), 2);
}

#[test]
fn a_csv_file_without_paths_or_labels_is_refused() {
    let folder = files(&[("a.csv", b"x,y\n1,2\n"), ("b.csv", b"path\na.jpg\n"), ("a.jpg", b"")]);
    assert!(refusal(detect(&folder.path().join("a.csv"))).0.contains("no column of"));
    assert!(refusal(detect(&folder.path().join("b.csv"))).0.contains("no column of labels"));
}

/// `birds.csv` with other names of splits, and its images.
fn birds(table: &str) -> tempfile::TempDir {
    let images = ["img/a.jpg", "img/b.jpg", "img/c.jpg", "img/d.jpg", "img/e.jpg"];
    let images = images.iter().map(|&image| (image, &b""[..]));
    files(&[("birds.csv", table.as_bytes())].into_iter().chain(images).collect::<Vec<_>>())
}

#[test]
fn a_csv_file_with_two_names_of_a_split_is_refused() {
    for (table, names) in [
        (TABLE.replacen(",train", ",training", 1), ["train", "training"]),
        (TABLE.replacen(",val", ",Val", 1), ["Val", "val"]),
        (TABLE.replacen(",val", ",Val", 1).replacen(",train", ",test", 1), ["Val", "val"]),
    ] {
        let (message, hint) = refusal(detect(&birds(&table).path().join("birds.csv")));
        let both = format!("both `{}` and `{}`", names[0], names[1]);
        assert!(message.contains("the column `set` of ") && message.contains(&both), "{message}");
        assert_eq!(hint, format!("rename the cells of `{}` to `{}`, or empty them", names[1], names[0]));
    }
}

#[test]
fn a_column_with_two_evaluation_splits_uses_one() {
    let table = TABLE.replace("Hawks,brown,val", "Hawks,brown,test").replace("white,val", "white,test");
    let folder = birds(&table);
    let layout = found(&folder);
    assert!(layout.found.contains("with 4 images"), "{}", layout.found);
    assert!(layout.found.ends_with("(the split val is not used)"), "{}", layout.found);
    assert_eq!(text(&layout, "test").as_deref(), Some("test"));
    assert_eq!(reads(&layout).paths.len(), 4);

    let unpublished = table.replace("9,Kestrel,Hawks", ",,");
    let layout = found(&birds(&unpublished));
    assert_eq!(text(&layout, "test").as_deref(), Some("val"));
    let note = "no image of the split test has a label in the column `species_id`";
    assert_eq!(layout.notes[0], note);
    assert_eq!(layout.levels(), ["species"]);
}

#[test]
fn a_folder_says_why_its_csv_file_cannot_be_used() {
    let folder = files(&[("labels.csv", b"file,kind\n1.jpg,a\n3.jpg,b\n"), ("1.jpg", b""), ("2.jpg", b"")]);
    let (message, hint) = refusal(detect(folder.path()));
    assert!(message.contains("no column of ") && message.contains("labels.csv"), "{message}");
    assert!(!message.contains("folders of classes"), "one error at a time: {message}");
    assert!(hint.contains("in a column `path`") && hint.contains("sort the images"), "{hint}");
    // With folders of classes, the table is something else.
    let folder = files(&[("notes.csv", b"x,y\n1,2\n"), ("a/1.jpg", b""), ("b/2.jpg", b"")]);
    let (message, hint) = refusal(detect(folder.path()));
    assert!(message.contains("has 2 folders of images") && !hint.contains("column"), "{message}; {hint}");
}

#[test]
fn parquet_files_are_read_for_their_images_splits_and_levels() {
    let hub = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet/hub");
    let layout = detect(&hub).unwrap();
    assert_eq!(layout.found, "a folder of Parquet files with 36 images and the levels kind, variety");
    assert_eq!(text(&layout, "path_column").as_deref(), Some("image"));
    assert_eq!((text(&layout, "split_column"), text(&layout, "test_fraction")), (None, None));
    assert_eq!(reads(&layout).splits.train.len(), 24);

    let one = detect(&hub.join("test-00000-of-00001.parquet")).unwrap();
    assert_eq!(text(&one, "test_fraction").as_deref(), Some("0.5"), "one split leaves nothing to train on");
    assert_eq!(reads(&one).splits.train.len(), 6);
    let table = detect(&hub.join("../table-snappy.parquet")).unwrap();
    assert_eq!(
        (text(&table, "path_column").as_deref(), table.levels()),
        (Some("picture"), vec!["kind".into(), "variety".into()])
    );
}

#[test]
fn a_column_that_lacks_a_label_is_a_level_and_one_that_lacks_most_is_left_out_with_its_row() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet/table-snappy.parquet");
    let layout = detect(&table).unwrap();
    assert_eq!(layout.levels(), ["kind", "variety"]);
    assert_eq!(text(&layout, "missing").as_deref(), Some("unknown"));

    let sparse = TABLE.replace("Barn owl", "").replace("Tawny owl", "n/a");
    let notes = found(&birds(&sparse)).notes.join("; ");
    assert!(notes.contains("`species` (3 of 5 cells are without a label, the first in "), "{notes}");
    assert!(notes.ends_with("; `--levels` chooses other columns"), "{notes}");

    // The rows of a file that is not used are not counted.
    let hub = |name: &str| fs::read(table.with_file_name("hub").join(name)).unwrap();
    let folder = files(&[
        ("train-00000-of-00001.parquet", &hub("train-00000-of-00002.parquet")),
        ("extra-00000-of-00001.parquet", &hub("train-00001-of-00002.parquet")),
        ("test-00000-of-00001.parquet", &hub("test-00000-of-00001.parquet")),
    ]);
    let layout = found(&folder);
    assert_eq!(
        layout.found,
        "a folder of Parquet files with 24 images and the levels kind, variety (the split extra is not used)"
    );
    assert_eq!(text(&layout, "test").as_deref(), Some("test"));
    assert_eq!(reads(&layout).paths.len(), 24);
}

#[test]
fn parquet_files_may_be_in_a_folder_for_each_split() {
    let hub = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet/hub");
    let [train, more, test] = ["train-00000-of-00002", "train-00001-of-00002", "test-00000-of-00001"]
        .map(|name| fs::read(hub.join(name).with_extension("parquet")).unwrap());
    let folder = files(&[
        ("train/0000.parquet", &train[..]),
        ("train/0001.parquet", &more),
        ("validation/0000.parquet", &test),
        ("test/0000.parquet", UNLABELLED),
    ]);
    let layout = found(&folder);
    assert!(layout.found.contains("with 36 images"), "{}", layout.found);
    assert_eq!(text(&layout, "test").as_deref(), Some("validation"));
    assert_eq!(reads(&layout).splits.train.len(), 24);
}

#[test]
fn folders_with_parquet_files_are_named_if_their_parent_is_given() {
    let train =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet/hub/train-00000-of-00002.parquet");
    let train = fs::read(train).unwrap();
    let folder =
        files(&[("fine/train-1.parquet", &train[..]), ("coarse/data/train-1.parquet", &train), ("x/y", b"")]);
    let (message, hint) = refusal(detect(folder.path()));
    let inside = ["coarse", "fine"].map(|name| folder.path().join(name).display().to_string()).join(", ");
    assert!(message.ends_with(&format!("but there are Parquet files in {inside}")), "{message}");
    assert!(hint.contains("one of these folders"), "{hint}");
}

/// The class of every image is -1, as where labels are not published.
const UNLABELLED: &[u8] = include_bytes!("../../../tests/fixtures/parquet/unlabelled.parquet");

#[test]
fn a_split_without_labels_is_not_used_if_there_is_another() {
    let hub = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet/hub");
    let train = fs::read(hub.join("train-00000-of-00002.parquet")).unwrap();
    let validation = fs::read(hub.join("test-00000-of-00001.parquet")).unwrap();
    let all =
        [("train-1.parquet", &train[..]), ("val-1.parquet", &validation), ("test-1.parquet", UNLABELLED)];
    let layout = found(&files(&all));
    assert_eq!((text(&layout, "test").as_deref(), layout.levels().len()), (Some("val"), 2));
    assert_eq!(layout.notes, ["no image of the split test has a label in the column `kind`"]);
    let only = [all[0], all[2]];
    let folder = files(&only);
    let layout = found(&folder);
    assert_eq!(layout.levels(), ["kind", "variety"], "the varieties that were trained on say the kinds");
    assert!(reads(&layout).labels.are_known());
}

#[test]
fn a_column_that_crosses_a_level_is_left_out_and_names_it() {
    let images = ["img/a.jpg", "img/b.jpg", "img/c.jpg", "img/d.jpg", "img/e.jpg"];
    let mut all = vec![("birds.csv", TABLE.as_bytes())];
    all.extend(images.iter().map(|&image| (image, &b""[..])));
    let notes = found(&files(&all)).notes.join("; ");
    assert!(notes.contains("`species_id` (the same classes as `species`, one for one)"), "{notes}");
    assert!(
        notes.contains("`colour` (its classes are neither above nor below those of `family`)"),
        "{notes}"
    );
}

#[test]
fn a_column_that_cannot_be_read_is_left_out_with_a_note() {
    // The footer has the name of a column and then, as number, the kind of compression: 1 is Snappy, and 3 is LZO.
    let mut table = include_bytes!("../../../tests/fixtures/parquet/table-snappy.parquet").to_vec();
    let place = table.windows(7).position(|bytes| bytes == b"\x04path\x15\x02").unwrap();
    table[place + 6] = 6;
    let folder = files(&[("table.parquet", &table)]);
    let foreign = detect(&folder.path().join("table.parquet")).unwrap().notes.join("; ");
    assert!(foreign.contains("`path` (written in a way that akin does not read)"), "{foreign}");
    let long = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet/table-long.parquet");
    assert_eq!(detect(&long).unwrap().notes.join("; "), "left out the column `caption` (long texts)");
}

#[test]
fn a_name_under_several_parents_keeps_its_level_and_words_for_unknown_are_named() {
    let table = "path,kind,variety\na.jpg,apple,Gala\nb.jpg,apple,Gala\nc.jpg,apple,Other\nd.jpg,pear,Other\n\
                 e.jpg,pear,Other\nf.jpg,pear,Unknown\ng.jpg,plum,unknown\nh.jpg,plum,Reine\ni.jpg,plum,Reine\n\
                 j.jpg,fig,Violet\nk.jpg,fig,Violet\nl.jpg,fig,Brown\nm.jpg,fig,Brown\n";
    let names: Vec<String> = ('a'..='m').map(|letter| format!("{letter}.jpg")).collect();
    let images = names.iter().map(|name| (name.as_str(), &b""[..]));
    let folder = files(&[("labels.csv", table.as_bytes())].into_iter().chain(images).collect::<Vec<_>>());
    let layout = found(&folder);
    assert_eq!(layout.levels(), ["kind", "variety"]);
    assert_eq!(text(&layout, "qualify").as_deref(), Some("true"));
    assert_eq!(text(&layout, "unknown_words").as_deref(), Some(r#"["unknown"]"#));
    let notes = layout.notes.join("; ");
    assert!(notes.contains(r#"the variety "Other" stands under more than one kind"#), "{notes}");
    assert!(notes.contains("unknown stands for an unknown label: data.unknown_words"), "{notes}");
    let dataset = reads(&layout);
    assert_eq!(dataset.labels.known_counts(), [13, 11]);
    assert_eq!(dataset.taxonomy.class_count(2), 6);
}

#[test]
fn a_published_data_set_is_known_by_its_files() {
    let folder = files(&[
        ("images_background/Latin/character01/1.png", b""),
        ("images_background/Latin/character02/1.png", b""),
        ("images_evaluation/Tengwar/character01/1.png", b""),
        ("images_evaluation/Tengwar/character01/2.png", b""),
    ]);
    let layout = found(&folder);
    assert_eq!(text(&layout, "kind").as_deref(), Some("omniglot"));
    assert!(layout.found.contains("Omniglot"), "{}", layout.found);
}
