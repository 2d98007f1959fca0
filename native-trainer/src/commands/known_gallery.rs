//! A gallery with labels that answers pictures: that of a bundle, or of a run.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use akin_base::directory::{self, Kind};
use akin_base::files::read_regular_file;
use akin_base::problem::{Advise, a_few, did_you_mean, problem};
use akin_base::progress::Progress;
use akin_core::bundle::{MANIFEST, Manifest};
use akin_core::certainty::{Answer, BestScores, Calibration, LeaveOneOut, Promise, VOTERS};
use akin_core::embeddings::{Embeddings, Rows};
use akin_core::encoder::{Encoder, EncoderConfig};
use akin_core::image::Pixels;
use akin_core::models::BackboneConfig;
use akin_core::nearest::{Ask, nearest};
use akin_core::neighbours::{Known, Neighbours};
use akin_core::search::Hit;
use akin_core::shortlist::{Shortlist, Shortlisted};
use akin_core::similarity::Similarity;
use akin_core::taxonomy::{Class, Filter, Labels, Taxonomy, UNKNOWN};
use anyhow::Result;
use burn::tensor::Device;
use serde_json::{Value, json};

use crate::commands::index::encoder::of_gallery;
use crate::config::DeviceName;
use crate::config::device;
use crate::config::onnx::attach_bundled;
use crate::data::Dataset;
use crate::evaluation::embedding::{Embedded, embed};
use crate::pictures::loader::Pictures;
use crate::runs::run::{Run, Which};

/// What stands for an unknown label in a table.
const UNKNOWN_NAME: &str = "–";

/// A gallery with its encoder, and what is known of its answers.
pub struct KnownGallery {
    /// What embeds a picture; none where it was not asked for.
    encoder: Option<(Encoder, Device)>,
    /// The name of the encoder.
    pub name: String,
    /// What embeddings are ranked by.
    pub similarity: Similarity,
    /// The label tree.
    pub taxonomy: Taxonomy,
    /// The labels of the items.
    pub labels: Labels,
    /// The files of the items; none in a bundle.
    pub paths: Vec<PathBuf>,
    stored: Stored,
    /// Codes of the items, with which many are excluded before their embeddings are read.
    shortlist: Option<Shortlist>,
    /// The row in `labels` of each item, if some items have no labels.
    rows: Option<Vec<Option<usize>>>,
    best_scores: Option<BestScores>,
    calibration: Option<Calibration>,
}

/// Where the embeddings of the items are.
enum Stored {
    Memory(Embeddings),
    Disk(Arc<akin_gallery::Gallery>),
}

/// What is asked of each query.
#[derive(Default)]
pub struct Question {
    /// The number of items to find.
    pub count: usize,
    /// The least share of right answers.
    pub promise: Promise,
    /// Which items take part.
    pub filter: Filter,
    /// The level of whose classes only the best item of each is found.
    pub group_by: Option<usize>,
    /// For each query its place in the gallery, if it is an item, which does not find itself. Empty if none is.
    pub itself: Vec<Option<usize>>,
    /// Whether all that the nearest items say is wanted.
    pub detailed: bool,
}

/// What a gallery says of one picture.
pub struct Found {
    /// The nearest items, best first.
    pub hits: Vec<Hit>,
    /// The number of items whose scores were computed to find them. Codes have excluded the others.
    pub scored: usize,
    /// Whether nothing in the gallery is like it.
    pub unlike: bool,
    /// The answer; `None` where the gallery has no calibration, and where not all items take part.
    pub answer: Option<Answer>,
    /// All that the nearest items say, if it is wanted. `None` where not all items take part.
    pub neighbours: Option<Neighbours>,
}

impl KnownGallery {
    /// The gallery of a bundle with the encoder of this name, or else that with the best H-AP. Without a device no picture
    /// can be embedded.
    ///
    /// # Errors
    ///
    /// A bundle that is damaged, or has no such encoder.
    pub fn of_bundle(bundle: &Bundle, encoder: Option<&str>, device: Option<DeviceName>) -> Result<Self> {
        let number = encoder_number(&bundle.manifest, encoder)?;
        let entry = bundle.manifest.encoder(number)?;
        let load = |device| -> Result<(Encoder, Device)> {
            let config = EncoderConfig::of_bundle(entry)?;
            let device = device::open(device)?;
            let encoder = config.load(bundle.file(entry.weights.as_deref().unwrap_or_default())?, &device)?;
            let encoder = match (&entry.onnx, &config.backbone) {
                (Some(onnx), BackboneConfig::Onnx(backbone)) => {
                    attach_bundled(encoder, onnx, backbone, bundle.file(&onnx.file)?)?
                }
                _ => encoder,
            };
            Ok((encoder, device))
        };
        let embeddings =
            bundle.manifest.gallery_embeddings(number, &bundle.file(&entry.gallery_embeddings)?)?;
        // The queries of the bundle stand behind its gallery.
        let items: Vec<usize> = (0..embeddings.len()).collect();
        Ok(Self {
            encoder: device.map(load).transpose()?,
            name: entry.name.clone(),
            similarity: entry.report.config.similarity,
            taxonomy: bundle.manifest.taxonomy.clone(),
            labels: bundle.manifest.labels(&bundle.file(&bundle.manifest.labels)?)?.select(&items),
            paths: Vec::new(),
            stored: Stored::Memory(embeddings),
            shortlist: None,
            rows: None,
            best_scores: entry.best_scores.clone(),
            calibration: entry.calibration.clone(),
        })
    }

    /// The gallery in a folder. Without a device no picture can be embedded.
    ///
    /// # Errors
    ///
    /// An encoder that is damaged.
    pub fn of_gallery(gallery: &Arc<akin_gallery::Gallery>, device: Option<DeviceName>) -> Result<Self> {
        let akin_gallery::Known { taxonomy, labels, rows } = gallery.known()?;
        let settings = &gallery.manifest().settings;
        let certainty = gallery.manifest().certainty.clone();
        let load = |device| -> Result<(Encoder, Device)> {
            let device = device::open(device)?;
            Ok((of_gallery(gallery.folder(), &settings.encoder, &device)?, device))
        };
        Ok(Self {
            encoder: device.map(load).transpose()?,
            name: settings.encoder.name.clone(),
            similarity: settings.similarity,
            paths: gallery.rows().iter().map(akin_gallery::Row::file).collect(),
            taxonomy,
            labels,
            rows,
            best_scores: certainty.as_ref().and_then(|certainty| certainty.best_scores.clone()),
            calibration: certainty.and_then(|certainty| certainty.calibration),
            stored: Stored::Disk(gallery.clone()),
            shortlist: None,
        })
    }

    /// The gallery that a run is evaluated on, which is embedded.
    ///
    /// # Errors
    ///
    /// A run that is not finished, or whose data cannot be read or have changed.
    pub fn of_run(run: &Run, which: Which, device: Option<DeviceName>, progress: Progress) -> Result<Self> {
        let device = device::open(device.unwrap_or(run.config.run.device))?;
        let encoder = run.encoder(which, &device)?;
        let dataset = Dataset::load_to_evaluate(&run.config.selection())?;
        run.check_data(&dataset.digest())?;
        let splits = &dataset.splits;
        let items = if splits.leave_one_out() { &splits.query } else { &splits.gallery };
        let embedded = embed(&encoder, &Pictures::of(&dataset), items, &device, progress)?;
        let labels = dataset.labels.select(&embedded.items);
        let similarity = run.config.eval.similarity;
        let own = LeaveOneOut::new(&embedded.embeddings, &labels, similarity)?;
        Ok(Self {
            encoder: Some((encoder, device)),
            name: run.config.run.name.clone(),
            similarity,
            paths: embedded.items.iter().map(|&item| dataset.paths[item].clone()).collect(),
            taxonomy: dataset.taxonomy,
            labels,
            rows: None,
            best_scores: own.best_scores(),
            calibration: own.calibration(),
            stored: Stored::Memory(embedded.embeddings),
            shortlist: None,
        })
    }

    /// With codes of the items in memory, for many searches one after another. Those of `before`, the gallery as it was, are
    /// taken for the items that it has at the same places.
    ///
    /// # Errors
    ///
    /// Embeddings that cannot be read.
    pub fn with_shortlist(self, before: Option<&Self>) -> Result<Self> {
        let is_longer = |before: &&Self| match (&before.stored, &self.stored) {
            (Stored::Disk(before), Stored::Disk(now)) => {
                let (old, new) = (&before.manifest().settings, &now.manifest().settings);
                (&old.encoder, old.numbers) == (&new.encoder, new.numbers)
                    && now.rows().get(..before.rows().len()) == Some(before.rows())
            }
            _ => false,
        };
        let shortlist = match before.filter(is_longer).and_then(|before| before.shortlist.as_ref()) {
            Some(before) => Some(before.extended(self.rows())?),
            None => Shortlist::new(self.rows(), self.similarity)?,
        };
        Ok(Self { shortlist, ..self })
    }

    /// The nearest items of each query, and how many items were scored for it.
    fn nearest(&self, queries: &Embeddings, ask: &Ask) -> Result<Shortlisted> {
        match &self.shortlist {
            Some(shortlist) => Ok(shortlist.nearest(self.rows(), queries, ask)?),
            None => {
                let hits = nearest(self.rows(), queries, self.similarity, ask)?;
                let scored = ask.items.map_or(self.items(), <[usize]>::len);
                Ok(Shortlisted { scored: vec![scored; hits.len()], hits })
            }
        }
    }

    /// The number of items.
    pub fn items(&self) -> usize {
        self.rows().len()
    }

    /// The embeddings of the items.
    pub fn rows(&self) -> &dyn Rows {
        match &self.stored {
            Stored::Memory(embeddings) => embeddings,
            Stored::Disk(gallery) => gallery.vectors(),
        }
    }

    /// Whether answers have certainties.
    pub fn is_calibrated(&self) -> bool {
        self.calibration.is_some()
    }

    /// Whether the gallery is large and easy enough to say anything at this promise.
    pub fn can_promise(&self, promise: Promise) -> bool {
        self.calibration.as_ref().is_some_and(|calibration| calibration.threshold(promise).is_some())
    }

    /// The embeddings of pictures.
    ///
    /// # Errors
    ///
    /// As [`embed`].
    pub fn embed(&self, pictures: &Pictures, progress: Progress) -> Result<Embedded> {
        let (encoder, device) =
            self.encoder.as_ref().ok_or_else(|| problem("no encoder was loaded", "give a device"))?;
        let items: Vec<usize> = (0..pictures.len()).collect();
        embed(encoder, pictures, &items, device, progress)
    }

    /// The embeddings of pictures in memory, [N · d].
    ///
    /// # Errors
    ///
    /// As [`embed`].
    pub fn embed_pixels(&self, pictures: &[Pixels]) -> Result<Vec<f32>> {
        if pictures.is_empty() {
            return Ok(Vec::new());
        }
        let (encoder, device) = self.encoder.as_ref().ok_or_else(|| {
            problem("the gallery keeps no encoder", "search with an embedding or with an item")
        })?;
        Ok(encoder.embed(pictures, device)?)
    }

    /// The items that a filter keeps, in their order.
    pub fn items_of(&self, filter: &Filter) -> Vec<usize> {
        self.known().items(filter)
    }

    /// What a gallery on disk knows of an item.
    pub fn row(&self, item: usize) -> Option<&akin_gallery::Row> {
        match &self.stored {
            Stored::Disk(gallery) => gallery.rows().get(item),
            Stored::Memory(_) => None,
        }
    }

    fn known(&self) -> Known<'_> {
        Known {
            labels: Some(&self.labels),
            rows: self.rows.as_deref(),
            best_scores: self.best_scores.as_ref(),
            calibration: self.calibration.as_ref(),
        }
    }

    /// The names of the levels, coarse → fine; none where no item has labels.
    pub fn level_names(&self) -> &[String] {
        match &self.rows {
            Some(rows) if rows.iter().all(Option::is_none) => &[],
            _ => self.taxonomy.level_names(),
        }
    }

    /// What the gallery says of queries with these embeddings.
    ///
    /// # Errors
    ///
    /// An embedding that the similarity is not defined for; a filter that leaves no item.
    pub fn ask(&self, queries: &Embeddings, question: &Question) -> Result<Vec<Found>> {
        let Question { count, promise, filter, group_by, itself, detailed } = question;
        let known = self.known();
        let classes = group_by.map(|level| known.column(level));
        let is_whole = filter.keeps_all() && classes.is_none();
        let items: Option<Vec<usize>> = (!is_whole).then(|| {
            let mut items = known.items(filter);
            items.retain(|&item| classes.as_ref().is_none_or(|classes| classes[item] != UNKNOWN));
            items
        });
        if items.as_ref().is_some_and(Vec::is_empty) {
            return Err(problem(
                "no picture of the gallery is of these classes",
                "give other classes with `--within` and `--not`",
            ));
        }
        let asked = if is_whole { (*count).max(VOTERS) } else { *count };
        let ask = Ask { items: items.as_deref(), classes: classes.as_deref(), itself, ..Ask::new(asked) };
        let Shortlisted { hits: mut found, scored } = self.nearest(queries, &ask)?;
        if is_whole
            && self.is_calibrated()
            && let Some(rows) = &self.rows
        {
            // Items without labels may leave too few voters among the nearest.
            let labelled: Vec<usize> = (0..rows.len()).filter(|&item| rows[item].is_some()).collect();
            let ask = Ask { items: Some(&labelled), itself, ..Ask::new(VOTERS) };
            let voters = self.nearest(queries, &ask)?.hits;
            for (hits, voters) in found.iter_mut().zip(voters) {
                let others: Vec<Hit> = voters.into_iter().filter(|voter| !hits.contains(voter)).collect();
                hits.extend(others);
            }
        }
        let said = |(mut hits, scored): (Vec<Hit>, usize)| {
            let unlike = is_whole && known.is_unlike(&hits, *promise);
            let answer = if is_whole { known.answer(&hits, *promise) } else { None };
            let neighbours = (is_whole && *detailed).then(|| known.neighbours(&hits, *count, None));
            hits.truncate(*count);
            Found { hits, scored, unlike, answer: answer.map(|answered| answered.answer), neighbours }
        };
        Ok(found.into_iter().zip(scored).map(said).collect())
    }

    /// The labels of an item, coarse → fine.
    pub fn path_of(&self, item: usize) -> Vec<String> {
        let mut path = self.known_path_of(item);
        path.resize(self.level_names().len(), UNKNOWN_NAME.to_owned());
        path
    }

    /// The known labels of an item, coarse → fine. With several label paths, a level has the different labels of all.
    pub fn known_path_of(&self, item: usize) -> Vec<String> {
        let row = self.rows.as_ref().map_or(Some(item), |rows| rows[item]);
        let paths: Vec<Vec<&str>> = row
            .map(|row| {
                self.labels.paths(row).into_iter().map(|path| self.taxonomy.path_names(path)).collect()
            })
            .unwrap_or_default();
        let label = |level: usize| {
            let mut names: Vec<&str> = paths.iter().filter_map(|path| path.get(level).copied()).collect();
            let mut seen = HashSet::new();
            names.retain(|name| seen.insert(*name));
            names.join("; ")
        };
        (0..paths.iter().map(Vec::len).max().unwrap_or_default()).map(label).collect()
    }

    /// The path of the file of an item, from the folder that was indexed on in a gallery.
    pub fn short_path(&self, item: usize) -> String {
        match &self.stored {
            Stored::Disk(gallery) => gallery.rows()[item].path.clone(),
            Stored::Memory(_) => self.item_name(item),
        }
    }

    /// The name of an item: its file or, in a bundle, its place.
    pub fn item_name(&self, item: usize) -> String {
        self.paths.get(item).map_or_else(|| format!("item {item}"), |path| path.display().to_string())
    }

    /// The name of a class.
    pub fn class_name(&self, level: usize, class: u32) -> String {
        self.taxonomy.class_name(level, class).to_owned()
    }

    /// The classes that an answer says, coarse → fine.
    pub fn said(&self, answer: &Answer) -> Vec<String> {
        answer.levels[..answer.reached]
            .iter()
            .map(|certain| self.class_name(certain.level, certain.class))
            .collect()
    }

    /// An answer in words: what is sure, and what is probable.
    pub fn answer_text(&self, answer: &Answer) -> String {
        if answer.unlike {
            return "Nothing like it here".into();
        }
        let said = self.said(answer).join(" > ");
        let probable = answer.probable().map(|certain| {
            let name = self.class_name(certain.level, certain.class);
            format!("{name} ({})", percent(certain.certainty))
        });
        match (said.is_empty(), probable) {
            (false, None) => format!("Surely {said}"),
            (false, Some(probable)) => format!("Surely {said}; probably {probable}"),
            (true, Some(probable)) => format!("Nothing is sure; probably {probable}"),
            (true, None) => "Nothing is sure".into(),
        }
    }

    /// An answer for programs.
    pub fn answer_json(&self, answer: &Answer, promise: Promise) -> Value {
        let level = |certain: &akin_core::certainty::Certain| {
            json!({
                "level": self.taxonomy.level_names()[certain.level - 1],
                "class": self.class_name(certain.level, certain.class),
                "certainty": certain.certainty,
                "is_said": certain.level <= answer.reached,
            })
        };
        json!({
            "promise": promise.share(), "text": self.answer_text(answer), "reached": answer.reached,
            "certainty": answer.certainty(), "levels": answer.levels.iter().map(level).collect::<Vec<_>>(),
        })
    }

    /// What the nearest items of a query say, as the engine of the page says it, with the names of the classes that it
    /// mentions, from the coarsest level down.
    pub fn neighbours_json(&self, neighbours: &Neighbours) -> Value {
        let Neighbours { votes, answers, likeness, .. } = neighbours;
        let voted = votes.iter().flatten().map(|vote| (vote.level, vote.class));
        let answered = answers.iter().flatten().flat_map(|answered| &answered.answer.levels);
        let mentioned: BTreeSet<_> =
            voted.chain(answered.map(|certain| (certain.level, certain.class))).collect();
        let class = |(level, class)| {
            let names = self.taxonomy.path_of(Class { level, class });
            json!({ "level": level, "class": class, "names": names })
        };
        let classes: Vec<Value> = mentioned.into_iter().map(class).collect();
        json!({ "votes": votes, "answers": answers, "likeness": likeness, "classes": classes })
    }

    /// The encoder, similarity and levels for programs.
    pub fn about_json(&self) -> Value {
        json!({ "encoder": self.name, "similarity": self.similarity, "levels": self.level_names() })
    }

    /// An item for programs, with its path if there is one.
    pub fn item_json(&self, item: usize) -> Value {
        let mut value = json!({ "item": item, "labels": self.known_path_of(item) });
        if let Some(path) = self.paths.get(item) {
            value["path"] = path.display().to_string().into();
        }
        value
    }

    /// What was found, for programs.
    pub fn found_json(&self, found: &Found, promise: Promise) -> Value {
        let item = |hit: &Hit| {
            let mut item = self.item_json(hit.item);
            item["score"] = hit.score.into();
            item
        };
        let items: Vec<Value> = found.hits.iter().map(item).collect();
        let answer = found.answer.as_ref().map(|answer| self.answer_json(answer, promise));
        json!({
            "unlike_the_gallery": found.unlike, "answer": answer, "items": items, "scored": found.scored,
        })
    }

    /// Why nothing is sure at a promise.
    pub fn impossible_text(&self, promise: Promise) -> String {
        format!(
            "the gallery is too small or too hard to be sure of anything at {}: too few answers to its own {} items are \
             right",
            percent(promise.share()),
            self.items(),
        )
    }
}

/// A share in percent: `71 %`, `99.5 %`.
pub fn percent(share: f64) -> String {
    let whole = (1000.0 * share).floor() / 10.0;
    if share < 0.99 { format!("{:.0} %", (100.0 * share).floor()) } else { format!("{whole} %") }
}

/// Reads a promise in percent.
pub fn parse_promise(text: &str) -> Result<Promise, String> {
    let share: f64 =
        text.trim().trim_end_matches('%').trim().parse().map_err(|_| format!("{text:?} is no number"))?;
    Promise::new(share / 100.0).map_err(|error| error.to_string())
}

/// The encoder of this name, or the one with the best H-AP.
pub fn encoder_number(manifest: &Manifest, name: Option<&str>) -> Result<usize> {
    let encoders = &manifest.contents().encoders;
    let Some(name) = name else {
        let score = |number: &usize| {
            let report = &encoders[*number].report;
            report.overall.get(akin_core::metrics::Metric::named("h_ap")).unwrap_or(f64::MIN)
        };
        // The first of equal scores.
        let best = (0..encoders.len()).rev().max_by(|a, b| score(a).total_cmp(&score(b)));
        return best.ok_or_else(|| problem("the bundle has no encoder", "export a run into it"));
    };
    encoders.iter().position(|encoder| encoder.name == name).ok_or_else(|| {
        let names: Vec<&str> = encoders.iter().map(|encoder| encoder.name.as_str()).collect();
        let near = did_you_mean(name, names.iter().copied());
        problem(format!("the bundle has no encoder {name:?}"), format!("{near}it has {}", a_few(&names)))
    })
}

/// A bundle on disk.
pub struct Bundle {
    folder: PathBuf,
    /// What it says.
    pub manifest: Manifest,
}

impl Bundle {
    /// Opens a bundle.
    ///
    /// # Errors
    ///
    /// A directory that is no bundle.
    pub fn open(folder: &Path) -> Result<Self> {
        const HINT: &str = "write one with `akin export RUN --out BUNDLE`, or `akin demo`";
        directory::recover(folder)?;
        let manifest = folder.join(MANIFEST);
        if !manifest.is_file()
            && let Some(error) = directory::other_kind(folder, &[Kind::Bundle], HINT)
        {
            return Err(error);
        }
        let bytes = read_regular_file(&manifest)
            .advise(|| format!("{} is not a bundle: {MANIFEST} cannot be read", folder.display()), HINT)?;
        Ok(Self { folder: folder.to_owned(), manifest: Manifest::parse(&bytes)? })
    }

    /// The bytes of a file, checked.
    ///
    /// # Errors
    ///
    /// A file that is missing or damaged.
    pub fn file(&self, path: &str) -> Result<Vec<u8>> {
        let whole = self.folder.join(path);
        let bytes = read_regular_file(&whole)
            .advise(|| format!("{} cannot be read", whole.display()), "export or copy the bundle again")?;
        self.manifest.verify(path, &bytes)?;
        Ok(bytes)
    }

    /// The thumbnail of a gallery item.
    ///
    /// # Errors
    ///
    /// As [`file`](Self::file).
    pub fn thumbnail(&self, item: usize) -> Result<image::RgbImage> {
        let thumbnails = &self.manifest.contents().thumbnails;
        let per_sheet = (thumbnails.columns * thumbnails.rows) as usize;
        let Some(path) = thumbnails.sheets.get(item / per_sheet) else {
            return Err(problem(format!("item {item} has no thumbnail"), "export the bundle again"));
        };
        let sheet = image::load_from_memory(&self.file(path)?)
            .advise(|| format!("{path} is damaged"), "export or copy the bundle again")?;
        let (place, side) = ((item % per_sheet) as u32, thumbnails.tile);
        let (x, y) = (place % thumbnails.columns * side, place / thumbnails.columns * side);
        Ok(sheet.crop_imm(x, y, side, side).to_rgb8())
    }
}
