//! The bundles of a site, checked before they are shown.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use akin_base::directory;
use akin_base::files::read_regular_file;
use akin_base::problem::{Advise, problem};
use akin_core::bundle::{FileEntry, INDEX, Index, IndexEntry, MANIFEST, Manifest};
use anyhow::{Context, Result};
use rayon::prelude::*;

/// The bundles of a site, checked, each with its place there.
#[derive(Clone, Debug)]
pub struct Bundles {
    /// The folder of each bundle, in the order of the index.
    folders: Vec<PathBuf>,
    index: Index,
    /// The bytes of `bundles.json`.
    json: Vec<u8>,
    /// The title of a bundle with an encoder that is an ONNX file.
    with_onnx: Option<String>,
}

impl Bundles {
    /// Checks bundles, and folders of bundles that have a `bundles.json`. The first bundle becomes `bundle`, which a page
    /// opens that knows no index; the others become `bundles/NAME`, by the names of their folders.
    ///
    /// # Errors
    ///
    /// A folder that is neither, a damaged manifest or index, a file that is missing, has other contents than the manifest
    /// says or lies outside of the bundle, or a bundle given twice.
    pub fn open(folders: &[PathBuf]) -> Result<Self> {
        let mut found = Vec::new();
        for folder in folders {
            match read_regular_file(&folder.join(INDEX)) {
                Ok(bytes) => {
                    found.extend(
                        Index::parse(&bytes)?
                            .bundles
                            .into_iter()
                            .map(|entry| (folder.join(&entry.path), Some(entry))),
                    );
                }
                Err(_) => found.push((folder.clone(), None)),
            }
        }
        let mut bundles: Vec<IndexEntry> = Vec::new();
        let mut seen = HashSet::new();
        let mut with_onnx = None;
        for (folder, listed) in &found {
            let manifest = check_bundle(folder)?;
            if !seen.insert(fs::canonicalize(folder)?) {
                return Err(problem(
                    format!("the bundle {} is given twice", folder.display()),
                    "give it once",
                ));
            }
            let (title, description) = match listed {
                Some(entry) => (entry.title.clone(), entry.description.clone()),
                None => (manifest.title.clone(), manifest.description.clone()),
            };
            if manifest.encoders.iter().any(|entry| entry.onnx.is_some()) {
                with_onnx.get_or_insert(title.clone());
            }
            bundles.push(IndexEntry { path: place(folder, &bundles), title, description, sample: false });
        }
        let index = Index { bundles };
        let json = index.to_bytes()?;
        Ok(Self { folders: found.into_iter().map(|(folder, _)| folder).collect(), index, json, with_onnx })
    }

    /// With the gallery of the first bundle as a sample of a larger one, in which the page searches through the server.
    ///
    /// # Errors
    ///
    /// Those of [`Index::to_bytes`].
    pub fn first_is_sample(mut self) -> Result<Self> {
        self.index.bundles.iter_mut().take(1).for_each(|entry| entry.sample = true);
        self.json = self.index.to_bytes()?;
        Ok(self)
    }

    /// No bundles, and no index of them.
    pub fn none() -> Self {
        Self { folders: Vec::new(), index: Index { bundles: Vec::new() }, json: Vec::new(), with_onnx: None }
    }

    /// The folder of each bundle, with its place on the site.
    pub fn places(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.folders
            .iter()
            .map(PathBuf::as_path)
            .zip(self.index.bundles.iter().map(|entry| entry.path.as_str()))
    }

    /// The title of a bundle with an encoder that is an ONNX file, if there is one.
    pub fn with_onnx(&self) -> Option<&str> {
        self.with_onnx.as_deref()
    }

    /// The bytes of `bundles.json`.
    pub fn json(&self) -> &[u8] {
        &self.json
    }
}

/// The place of a bundle on the site, relative to the page, which no other bundle has.
fn place(folder: &Path, others: &[IndexEntry]) -> String {
    if others.is_empty() {
        return "bundle".into();
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let place = format!(
        "bundles/{}",
        if plain.trim_matches('-').is_empty() { "gallery" } else { plain.trim_matches('-') }
    );
    let taken = |place: &str| others.iter().any(|other| other.path == place);
    if !taken(&place) {
        return place;
    }
    let numbered = (2..).map(|number| format!("{place}-{number}"));
    numbered.into_iter().find(|place| !taken(place)).expect("there is always a larger number")
}

/// Checks that a folder is a bundle of a version that akin reads, and every file of it.
fn check_bundle(folder: &Path) -> Result<Manifest> {
    const HINT: &str = "write one with `akin export RUN --out BUNDLE`, or `akin demo`";
    directory::recover(folder)?;
    let bytes = read_regular_file(&folder.join(MANIFEST))
        .advise(|| format!("{} is not a bundle: {MANIFEST} cannot be read", folder.display()), HINT)?;
    let manifest = Manifest::parse(&bytes)?;
    let root = fs::canonicalize(folder)?;
    // Of several damaged files, the error names the same one each time.
    let checked: Vec<Result<()>> =
        manifest.files().par_iter().map(|file| check_file(&manifest, folder, &root, file)).collect();
    checked.into_iter().collect::<Result<()>>()?;
    Ok(manifest)
}

/// Checks that a file lies in the bundle and has the length and the SHA-256 that the manifest gives.
fn check_file(manifest: &Manifest, folder: &Path, root: &Path, file: &FileEntry) -> Result<()> {
    const HINT: &str = "export or copy the bundle again";
    let name = || format!("{}: the file {} of the bundle", folder.display(), file.path);
    let path = folder.join(&file.path);
    let length = fs::metadata(&path).map(|metadata| metadata.len()).ok();
    if length != Some(file.bytes) {
        let found = length.map_or("is missing".into(), |length| format!("has {length} bytes"));
        return Err(problem(format!("{} {found}; it should have {} bytes", name(), file.bytes), HINT));
    }
    if !fs::canonicalize(&path)?.starts_with(root) {
        return Err(problem(
            format!("{} is a link to a file outside of the bundle", name()),
            "copy the file into the bundle; `cp -rL` does so for all links",
        ));
    }
    let bytes = read_regular_file(&path).advise(|| format!("{} cannot be read", name()), HINT)?;
    manifest
        .verify(&file.path, &bytes)
        .with_context(|| format!("the bundle {} is damaged", folder.display()))?;
    Ok(())
}

/// A small bundle, for tests.
#[cfg(test)]
pub mod fixture {
    use std::fs;
    use std::path::Path;

    use akin_core::bundle::{
        BundleWriter, Contents, ElementType, EncoderEntry, Items, Parity, Thumbnails, embedding_bytes,
        label_bytes,
    };
    use akin_core::evaluate::{EvaluationConfig, Report};
    use akin_core::image::{Normalisation, Preprocessing};
    use akin_core::taxonomy::{ClassIdentity, Taxonomy};

    /// The files of a small bundle.
    fn fruit() -> Vec<(String, Vec<u8>)> {
        let levels = ["kind".to_owned()];
        let rows = [vec!["apple"], vec!["pear"]];
        let (taxonomy, labels) = Taxonomy::from_rows(&levels, &rows, ClassIdentity::Name).unwrap();
        let config = EvaluationConfig::default();
        let encoder = EncoderEntry {
            name: "Test".into(),
            description: String::new(),
            family: None,
            architecture: serde_json::json!({ "backbone": "none" }),
            preprocessing: Some(Preprocessing::new(Normalisation::Imagenet, 32).unwrap()),
            dimension: 1,
            weights: Some("0-test/weights.bpk".into()),
            gallery_embeddings: "gallery.f32".into(),
            query_embeddings: None,
            element_type: ElementType::F32,
            parity: Some(Parity { embeddings: "0-test/parity.f32".into(), cosine: 1.0 }),
            onnx: None,
            licence: None,
            report: Report::new(&levels, &config.checked(1).unwrap(), 2, vec![]),
            maps: vec![],
            best_scores: None,
            calibration: None,
            affinities: Vec::new(),
            query_scores: None,
        };
        let contents = Contents {
            title: "Fruit".into(),
            description: "Two.".into(),
            licence: String::new(),
            model_card: String::new(),
            taxonomy,
            gallery: Items { count: 2 },
            queries: Items { count: 0 },
            labels: "labels.bin".into(),
            kinship: None,
            thumbnails: Thumbnails { tile: 8, columns: 2, rows: 1, sheets: vec!["sheet.png".into()] },
            evaluation_config: config,
            parity_pictures: vec!["sheet.png".into()],
            encoders: vec![encoder],
        };
        let mut bundle = BundleWriter::new();
        bundle.add("labels.bin", label_bytes(&labels)).unwrap();
        bundle.add("sheet.png", b"a picture".to_vec()).unwrap();
        bundle.add("0-test/weights.bpk", b"weights".to_vec()).unwrap();
        bundle.add("0-test/parity.f32", embedding_bytes(&[1.0], ElementType::F32)).unwrap();
        bundle.add("gallery.f32", embedding_bytes(&[1.0, 2.0], ElementType::F32)).unwrap();
        bundle.finish(&contents).unwrap()
    }

    /// Writes it into a folder.
    pub fn write_fruit(folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        for (path, bytes) in fruit() {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::write_fruit;
    use super::*;

    #[test]
    fn a_folder_with_an_index_stands_for_its_bundles() {
        let folder = tempfile::tempdir().unwrap();
        let (own, shipped) = (folder.path().join("fruit"), folder.path().join("galleries"));
        write_fruit(&own);
        write_fruit(&shipped.join("fruit"));
        let entry = IndexEntry {
            path: "fruit".into(),
            title: "Shipped".into(),
            description: "Both.".into(),
            sample: false,
        };
        fs::write(shipped.join(INDEX), Index { bundles: vec![entry] }.to_bytes().unwrap()).unwrap();

        let bundles = Bundles::open(&[own.clone(), shipped.clone()]).unwrap();
        let shown: Vec<(&str, &str)> =
            bundles.index.bundles.iter().map(|entry| (&*entry.path, &*entry.title)).collect();
        assert_eq!(shown, [("bundle", "Fruit"), ("bundles/fruit", "Shipped")]);
        assert_eq!(Index::parse(&bundles.json).unwrap(), bundles.index);

        let third = folder.path().join("more/Fruit");
        write_fruit(&third);
        let bundles = Bundles::open(&[own.clone(), shipped.clone(), third]).unwrap();
        assert_eq!(bundles.index.bundles[2].path, "bundles/fruit-2");
        let twice = Bundles::open(&[shipped.join("fruit"), shipped.clone()]).unwrap_err();
        assert!(twice.to_string().contains("given twice"), "{twice}");
        fs::write(shipped.join("fruit/0-test/weights.bpk"), "short").unwrap();
        let damaged = Bundles::open(&[own, shipped]).unwrap_err();
        assert!(damaged.to_string().contains("weights.bpk of the bundle"), "{damaged}");
        assert!(damaged.to_string().contains("has 5 bytes"), "{damaged}");
    }

    #[test]
    fn a_file_with_other_bytes_of_the_same_length_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        write_fruit(folder.path());
        Bundles::open(&[folder.path().to_owned()]).unwrap();
        fs::write(folder.path().join("0-test/weights.bpk"), "weightz").unwrap();
        let error = Bundles::open(&[folder.path().to_owned()]).unwrap_err();
        let (error, _) = akin_base::problem::parts(&error);
        assert!(
            error.contains("0-test/weights.bpk was changed after the bundle was written: its SHA-256 is"),
            "{error}"
        );
        fs::remove_file(folder.path().join("0-test/weights.bpk")).unwrap();
        let error = Bundles::open(&[folder.path().to_owned()]).unwrap_err().to_string();
        assert!(error.contains("weights.bpk of the bundle is missing; it should have 7 bytes"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_bundle_is_refused() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let bundle = folder.path().join("bundle");
        write_fruit(&bundle);
        let weights = bundle.join("0-test/weights.bpk");
        fs::rename(&weights, folder.path().join("weights.bpk")).unwrap();
        symlink("../../weights.bpk", &weights).unwrap();
        let error = Bundles::open(std::slice::from_ref(&bundle)).unwrap_err().to_string();
        assert!(error.contains("is a link to a file outside of the bundle"), "{error}");

        // A link inside of the bundle is one of its files, and the bundle itself may be a link.
        fs::rename(folder.path().join("weights.bpk"), bundle.join("kept.bpk")).unwrap();
        fs::remove_file(&weights).unwrap();
        symlink("../kept.bpk", &weights).unwrap();
        let link = folder.path().join("latest");
        symlink("bundle", &link).unwrap();
        Bundles::open(&[link]).unwrap();
    }
}
