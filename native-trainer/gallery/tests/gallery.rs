//! What a gallery on disk promises: rows and embeddings as they were written, changes that are whole, and readers that keep
//! what they opened.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use akin_core::embeddings::Rows;
use akin_core::similarity::Similarity;
use akin_gallery::{EncoderNote, Gallery, MANIFEST, Numbers, Place, Row, Settings, Writer};

fn settings(numbers: Numbers) -> Settings {
    Settings {
        encoder: EncoderNote { name: "test".into(), digest: String::new(), files: Vec::new() },
        dimension: 2,
        similarity: Similarity::Cosine,
        numbers,
        levels: vec!["kind".into(), "variety".into()],
    }
}

fn create(folder: &Path) -> Writer {
    Writer::create(folder, settings(Numbers::Float32), vec![("encoder.json", b"{}".to_vec())]).unwrap()
}

/// A row and an embedding that tell which they are.
fn row(number: u32) -> (Row, [f32; 2]) {
    let labels = ["Apple", "Gala"].iter().take(number as usize % 3).map(|&label| label.to_owned()).collect();
    let row = Row { path: format!("{number}.jpg"), source: "/photos".into(), labels, ..Row::default() };
    (row, [number as f32, 1.0])
}

fn stage(writer: &mut Writer, numbers: impl IntoIterator<Item = u32>) {
    let (rows, values): (Vec<Row>, Vec<[f32; 2]>) = numbers.into_iter().map(row).unzip();
    writer.stage(&rows, values.as_flattened()).unwrap();
}

fn add(writer: &mut Writer, numbers: impl IntoIterator<Item = u32>) {
    stage(writer, numbers);
    writer.commit(&[]).unwrap();
}

/// The numbers of the rows of a gallery, which its embeddings have too.
fn numbers(gallery: &Gallery) -> Vec<u32> {
    let vectors = gallery.vectors();
    let mut all = vec![0.0; 2 * vectors.len()];
    vectors.read(0, &mut all).unwrap();
    let numbers: Vec<u32> = all.as_chunks::<2>().0.iter().map(|row| row[0] as u32).collect();
    let named: Vec<String> = numbers.iter().map(|number| format!("{number}.jpg")).collect();
    assert_eq!(gallery.rows().iter().map(|row| row.path.clone()).collect::<Vec<_>>(), named);
    // Each by itself, too.
    for (place, &number) in numbers.iter().enumerate() {
        let mut one = [0.0; 2];
        vectors.read(place, &mut one).unwrap();
        assert_eq!(one, [number as f32, 1.0]);
    }
    numbers
}

fn places(writer: &Writer, gone: &[u32]) -> Vec<Place> {
    let names: Vec<String> = gone.iter().map(|number| format!("{number}.jpg")).collect();
    let rows = writer.rows().unwrap().into_iter();
    rows.filter(|(_, row)| names.contains(&row.path)).map(|(place, _)| place).collect()
}

#[test]
fn rows_are_added_removed_and_joined_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gallery");
    let mut writer = create(&path);
    assert!(numbers(&Gallery::open(&path).unwrap()).is_empty());
    add(&mut writer, 0..5);
    add(&mut writer, 5..7);
    assert_eq!(numbers(&Gallery::open(&path).unwrap()), [0, 1, 2, 3, 4, 5, 6]);
    // A change adds and removes at once.
    stage(&mut writer, [7, 8]);
    assert_eq!(Gallery::open(&path).unwrap().rows().len(), 7, "what is staged is not seen");
    let gone = places(&writer, &[0, 3, 6]);
    writer.commit(&gone).unwrap();
    assert_eq!(numbers(&Gallery::open(&path).unwrap()), [1, 2, 4, 5, 7, 8]);
    writer.compact().unwrap();
    let gallery = Gallery::open(&path).unwrap();
    assert_eq!((numbers(&gallery), gallery.manifest().segment_count()), (vec![1, 2, 4, 5, 7, 8], 1));
    let gone = places(&writer, &[1, 2, 4, 5, 7, 8]);
    writer.commit(&gone).unwrap();
    assert!(numbers(&Gallery::open(&path).unwrap()).is_empty());
    assert_eq!(
        fs::read_dir(path.join("segments")).unwrap().count(),
        0,
        "nothing is left of what was removed"
    );
}

#[test]
fn a_thousand_adds_of_one_row_stay_few_segments() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = create(folder.path());
    for number in 0..1000 {
        add(&mut writer, [number]);
    }
    let gallery = Gallery::open(folder.path()).unwrap();
    assert_eq!(numbers(&gallery), (0..1000).collect::<Vec<_>>());
    assert!(gallery.manifest().segment_count() <= 64);
}

#[test]
fn a_change_that_was_killed_is_continued_and_is_not_seen_before() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = create(folder.path());
    add(&mut writer, [0]);
    stage(&mut writer, [1, 2]);
    stage(&mut writer, [3]);
    // As a killed process leaves them: a segment in no list, and a part of a file.
    fs::create_dir(folder.path().join("segments/000099")).unwrap();
    fs::write(folder.path().join("segments/000099/.akin-new-vectors.npy.1.part"), "x").unwrap();
    drop(writer);
    assert_eq!(numbers(&Gallery::open(folder.path()).unwrap()), [0]);
    let mut writer = Writer::open(folder.path()).unwrap();
    assert!(!folder.path().join("segments/000099").exists());
    let staged: Vec<String> = writer.staged().unwrap().into_iter().map(|(_, row)| row.path).collect();
    assert_eq!(staged, ["1.jpg", "2.jpg", "3.jpg"]);
    // Not all of them may be wanted any more.
    let unwanted: Vec<Place> = writer.staged().unwrap().into_iter().take(1).map(|(place, _)| place).collect();
    stage(&mut writer, [4]);
    writer.commit(&unwanted).unwrap();
    assert_eq!(numbers(&Gallery::open(folder.path()).unwrap()), [0, 2, 3, 4]);
}

#[test]
fn a_change_that_was_killed_after_it_was_made_is_not_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = create(folder.path());
    stage(&mut writer, [0, 1]);
    // A process that is killed right after the commit leaves the list of staged rows behind.
    let list = folder.path().join("pending.json");
    let staged = fs::read(&list).unwrap();
    writer.commit(&[]).unwrap();
    drop(writer);
    fs::write(&list, staged).unwrap();
    let mut writer = Writer::open(folder.path()).unwrap();
    assert!(writer.staged().unwrap().is_empty());
    add(&mut writer, [2]);
    assert_eq!(numbers(&Gallery::open(folder.path()).unwrap()), [0, 1, 2]);
}

#[test]
fn a_reader_keeps_what_it_opened() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = create(folder.path());
    add(&mut writer, 0..3);
    add(&mut writer, 3..6);
    let before = Gallery::open(folder.path()).unwrap();
    let gone = places(&writer, &[1]);
    writer.commit(&gone).unwrap();
    writer.compact().unwrap();
    add(&mut writer, [6]);
    if cfg!(unix) {
        assert_eq!(numbers(&before), [0, 1, 2, 3, 4, 5]);
    }
    assert_eq!(numbers(&Gallery::open(folder.path()).unwrap()), [0, 2, 3, 4, 5, 6]);
}

/// Each change replaces all rows by three others. A reader meets the three of one change, whatever the writer does meanwhile.
#[test]
fn readers_under_a_writer_get_one_consistent_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gallery");
    let mut writer = create(&path);
    add(&mut writer, 0..3);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let read = || {
            let mut seen = HashSet::new();
            while !is_over.load(Ordering::Relaxed) {
                let found = numbers(&Gallery::open(&path).unwrap());
                assert_eq!(found, [found[0], found[0] + 1, found[0] + 2]);
                seen.insert(found[0]);
            }
            seen.len()
        };
        let readers = [scope.spawn(read), scope.spawn(read)];
        for change in 1..100 {
            let gone = writer.rows().unwrap();
            stage(&mut writer, 3 * change..3 * change + 3);
            writer.commit(&gone.iter().map(|(place, _)| *place).collect::<Vec<_>>()).unwrap();
            if change % 7 == 0 {
                writer.compact().unwrap();
            }
        }
        is_over.store(true, Ordering::Relaxed);
        let seen = readers.map(|reader| reader.join().unwrap());
        assert!(seen.iter().all(|&seen| seen > 1), "{seen:?}");
    });
}

#[test]
fn labels_form_a_tree_as_far_as_they_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = create(folder.path());
    let known = || Gallery::open(folder.path()).unwrap().known().unwrap();
    add(&mut writer, [0, 3]);
    assert_eq!((known().taxonomy.depth(), known().rows), (1, Some(vec![None, None])));
    add(&mut writer, [1, 2]);
    assert_eq!(known().taxonomy.level_names(), ["kind", "variety"]);
    assert_eq!(known().rows, Some(vec![None, None, Some(0), Some(1)]));
    assert_eq!([0, 1].map(|row| known().labels.known(row)), [1, 2]);
    let colour = |row: &Row| vec![if row.path == "2.jpg" { "red" } else { "green" }.to_owned()];
    writer.relabel(vec!["colour".into()], colour).unwrap();
    assert_eq!(known().rows, None);
    let classes =
        known().labels.column(1).into_iter().map(|class| known().taxonomy.class_name(1, class).to_owned());
    assert_eq!(classes.collect::<Vec<_>>(), ["green", "green", "green", "red"]);
    let gallery = Gallery::open(folder.path()).unwrap();
    assert_eq!(numbers(&gallery), [0, 3, 1, 2]);
}

#[test]
fn two_writers_do_not_change_one_gallery() {
    let folder = tempfile::tempdir().unwrap();
    let writer = create(folder.path());
    let error = Writer::open(folder.path()).err().unwrap().to_string();
    assert!(error.contains("is writing to"), "{error}");
    writer.close();
    Writer::open(folder.path()).unwrap().close();
}

#[test]
fn what_is_damaged_is_refused_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = create(folder.path());
    add(&mut writer, 0..3);
    let refusal = || Gallery::open(folder.path()).unwrap_err().to_string();
    for name in [MANIFEST, "segments/000002/rows.parquet", "segments/000002/vectors.npy"] {
        let path = folder.path().join(name);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        assert!(refusal().contains(name.rsplit('/').next().unwrap()), "{name}: {}", refusal());
        fs::remove_file(&path).unwrap();
        assert!(refusal().contains(name.rsplit('/').next().unwrap()), "{name}: {}", refusal());
        fs::write(&path, whole).unwrap();
    }
    let manifest = folder.path().join(MANIFEST);
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("\"version\": 1", "\"version\": 2")).unwrap();
    assert!(refusal().contains("version 2"), "{}", refusal());
    fs::write(&manifest, text.replace("\"rows\": 3", "\"rows\": 4")).unwrap();
    assert!(refusal().contains("damaged"), "{}", refusal());
    fs::write(&manifest, "{}").unwrap();
    assert!(refusal().contains("not the manifest of a gallery"), "{}", refusal());
    assert!(
        Gallery::open(&folder.path().join("nowhere")).unwrap_err().to_string().contains("is not a gallery")
    );
}
