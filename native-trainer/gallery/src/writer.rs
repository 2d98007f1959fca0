//! Changes a gallery.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use akin_base::directory::{self, Kind, Lock, Mark};
use akin_base::files::{create_folder, remove_file, remove_folder};
use akin_base::problem::{Advise, problem};
use akin_core::digest::sha256;
use akin_core::embeddings::Rows as _;
use anyhow::Result;

use crate::manifest::{
    Certainty, EncoderNote, MANIFEST, Manifest, PENDING, Pending, Segment, Settings, seal,
};
use crate::rows::{Row, check_levels};
use crate::segment::{self, SEGMENTS, open_vectors, read_rows};

/// The folder of the encoders.
const ENCODER: &str = "encoder";
/// With more segments than this, the small ones are joined.
const MOST_SEGMENTS: usize = 64;
/// The bytes of a segment's embeddings in float32 up to which segments are joined.
const JOINED_BYTES: usize = 256 << 20;

/// A gallery that this process changes. No other process can change it meanwhile; readers can read it.
pub struct Writer {
    folder: PathBuf,
    lock: Lock,
    manifest: Manifest,
    pending: Pending,
}

impl Writer {
    /// Makes a gallery without rows. `files` are those of its encoder, whose note is completed here.
    ///
    /// # Errors
    ///
    /// A folder that is not empty; levels whose names cannot be columns; files that cannot be written.
    pub fn create(folder: &Path, settings: Settings, files: Vec<(&str, Vec<u8>)>) -> Result<Self> {
        check_levels(&settings.levels)?;
        // A process may have been killed before it wrote the manifest.
        let begun = Mark::read(folder)?.is_some_and(|mark| mark.kind == Kind::Gallery)
            && !folder.join(MANIFEST).exists();
        if !begun {
            directory::check(Kind::Gallery, folder, false)?;
        }
        create_folder(folder)?;
        let lock = Lock::acquire(folder)?;
        Mark::new(Kind::Gallery, false).write(folder)?;
        let mut writer = Self {
            folder: folder.to_owned(),
            lock,
            manifest: Manifest::new(settings),
            pending: Pending::default(),
        };
        let note = writer.write_encoder(writer.manifest.settings.encoder.name.clone(), files)?;
        writer.manifest.settings.encoder = note;
        writer.manifest.write(folder)?;
        Ok(writer)
    }

    /// Opens a gallery to change it, and removes what belongs to no segment.
    ///
    /// # Errors
    ///
    /// A folder that is no gallery; another process that changes it; files that cannot be read or removed.
    pub fn open(folder: &Path) -> Result<Self> {
        // Before a lock is written there.
        Manifest::read(folder)?;
        let lock = Lock::acquire(folder)?;
        let manifest = Manifest::read(folder)?;
        let mut pending = Pending::read(folder)
            .advise(|| format!("{PENDING} of {} cannot be read", folder.display()), "check the disk")?
            .filter(|pending| pending.encoder == manifest.settings.encoder.digest)
            .unwrap_or_default();
        // A process may have been killed after it had replaced the manifest: these rows belong to the gallery already.
        let is_committed = |staged: &Segment| manifest.segments.iter().any(|own| own.number == staged.number);
        pending.segments.retain(|staged| !is_committed(staged));
        let mut writer = Self { folder: folder.to_owned(), lock, manifest, pending };
        let used = writer.pending.segments.iter().map(|segment| segment.number + 1).max();
        writer.manifest.next = writer.manifest.next.max(used.unwrap_or_default());
        writer.remove_unused()?;
        Ok(writer)
    }

    /// What the gallery is, without the staged rows.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The rows of the gallery, with the place of each: the segment's number and the place in it.
    ///
    /// # Errors
    ///
    /// Files that cannot be read.
    pub fn rows(&self) -> Result<Vec<(Place, Row)>> {
        self.rows_of(&self.manifest.segments)
    }

    /// The rows that are staged, this time or by a change that was killed.
    ///
    /// # Errors
    ///
    /// Files that cannot be read.
    pub fn staged(&self) -> Result<Vec<(Place, Row)>> {
        self.rows_of(&self.pending.segments)
    }

    fn rows_of(&self, segments: &[Segment]) -> Result<Vec<(Place, Row)>> {
        let mut all = Vec::new();
        for segment in segments {
            let rows = read_rows(&self.folder, &self.manifest.settings, segment)?;
            let removed: BTreeSet<u32> = segment.removed.iter().copied().collect();
            let rows = (0..).zip(rows).filter(|(place, _)| !removed.contains(place));
            all.extend(rows.map(|(row, contents)| (Place { segment: segment.number, row }, contents)));
        }
        Ok(all)
    }

    /// Writes rows with their embeddings, [N, d]. They belong to the gallery after [`Writer::commit`].
    ///
    /// # Errors
    ///
    /// Files that cannot be written.
    pub fn stage(&mut self, rows: &[Row], values: &[f32]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let segment = self.write_segment(rows, values)?;
        self.pending.segments.push(segment);
        self.pending.encoder.clone_from(&self.manifest.settings.encoder.digest);
        seal(&self.folder.join(PENDING), &self.pending)
    }

    fn write_segment(&mut self, rows: &[Row], values: &[f32]) -> Result<Segment> {
        let number = self.manifest.next;
        self.manifest.next += 1;
        segment::write(&self.folder, &self.manifest.settings, number, rows, values)
    }

    /// Makes the staged rows a part of the gallery, and leaves out the rows at these places, staged or not: all at once.
    ///
    /// # Errors
    ///
    /// Files that cannot be read or written. The gallery is then as it was.
    pub fn commit(&mut self, removed: &[Place]) -> Result<()> {
        let mut manifest = self.manifest.clone();
        manifest.segments.extend(self.pending.segments.iter().cloned());
        for segment in &mut manifest.segments {
            let here = removed.iter().filter(|place| place.segment == segment.number).map(|place| place.row);
            let places: BTreeSet<u32> = segment.removed.iter().copied().chain(here).collect();
            segment.removed = places.into_iter().collect();
        }
        manifest.segments.retain(|segment| segment.kept() > 0);
        manifest.certainty = None;
        if manifest.segments.len() > MOST_SEGMENTS {
            manifest = self.joined(manifest)?;
        }
        self.replace(manifest)
    }

    /// Joins small segments, and drops the rows that were removed.
    ///
    /// # Errors
    ///
    /// As [`Writer::commit`].
    pub fn compact(&mut self) -> Result<()> {
        let certainty = self.manifest.certainty.clone();
        let mut manifest = self.joined(self.manifest.clone())?;
        manifest.certainty = certainty;
        self.replace(manifest)
    }

    /// A manifest whose small segments, and those with removed rows, are joined. The rows stay in their order.
    fn joined(&mut self, mut manifest: Manifest) -> Result<Manifest> {
        let limit = (JOINED_BYTES / (4 * manifest.settings.dimension)).max(1);
        let old = std::mem::take(&mut manifest.segments);
        let mut group: Vec<Segment> = Vec::new();
        let mut size = 0;
        for segment in old {
            if size + segment.kept() > limit && !group.is_empty() {
                let joined = self.join(std::mem::take(&mut group))?;
                manifest.segments.push(joined);
                size = 0;
            }
            size += segment.kept();
            group.push(segment);
        }
        if !group.is_empty() {
            let joined = self.join(group)?;
            manifest.segments.push(joined);
        }
        manifest.next = self.manifest.next;
        Ok(manifest)
    }

    fn join(&mut self, group: Vec<Segment>) -> Result<Segment> {
        if let [one] = &group[..]
            && one.removed.is_empty()
        {
            return Ok(one.clone());
        }
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        for segment in &group {
            let (settings, folder) = (&self.manifest.settings, &self.folder);
            let matrix = open_vectors(folder, settings, segment)?;
            let mut all = vec![0.0; matrix.rows() * settings.dimension];
            matrix.read(0, &mut all)?;
            let kept = crate::gallery::kept(segment);
            match &kept {
                None => values.extend_from_slice(&all),
                Some(places) => {
                    let row =
                        |&place: &u32| &all[place as usize * settings.dimension..][..settings.dimension];
                    values.extend(places.iter().flat_map(|place| row(place).iter().copied()));
                }
            }
            rows.extend(crate::gallery::select(read_rows(folder, settings, segment)?, kept.as_deref()));
        }
        let worst = group.iter().filter_map(|segment| segment.worst_cosine).min_by(f32::total_cmp);
        // What is stored in fewer bits is stored the same again.
        Ok(Segment { worst_cosine: worst, ..self.write_segment(&rows, &values)? })
    }

    /// Replaces the labels of all rows, and the names of the levels. The embeddings stay.
    ///
    /// # Errors
    ///
    /// As [`Writer::commit`].
    pub fn relabel(&mut self, levels: Vec<String>, label: impl Fn(&Row) -> Vec<String>) -> Result<()> {
        check_levels(&levels)?;
        let mut manifest = self.manifest.clone();
        manifest.settings.levels.clone_from(&levels);
        for segment in &mut manifest.segments {
            let mut rows = read_rows(&self.folder, &self.manifest.settings, segment)?;
            for row in &mut rows {
                row.labels = label(row);
            }
            let number = self.manifest.next;
            self.manifest.next += 1;
            *segment = segment::relabelled(&self.folder, &manifest.settings, segment, number, &rows)?;
        }
        manifest.next = self.manifest.next;
        manifest.certainty = None;
        self.replace(manifest)
    }

    /// Says how certain the answers of the gallery are.
    ///
    /// # Errors
    ///
    /// A manifest that cannot be written.
    pub fn calibrate(&mut self, certainty: Certainty) -> Result<()> {
        let manifest = Manifest { certainty: Some(certainty), ..self.manifest.clone() };
        self.replace_keeping_staged(manifest)
    }

    /// Puts another encoder with embeddings of its own into the place of the first. `embed` gives all rows, in parts, with
    /// their embeddings. Until it is complete, the gallery stays as it was.
    ///
    /// # Errors
    ///
    /// As [`Writer::commit`], and those of `embed`.
    pub fn reembed(
        &mut self,
        settings: Settings,
        files: Vec<(&str, Vec<u8>)>,
        parts: impl Iterator<Item = Result<(Vec<Row>, Vec<f32>)>>,
    ) -> Result<()> {
        let (before, name) = (self.manifest.settings.clone(), settings.encoder.name.clone());
        let encoder = self.write_encoder(name, files)?;
        let settings = Settings { encoder, ..settings };
        let mut segments = Vec::new();
        for part in parts {
            let (rows, values) = part?;
            let number = self.manifest.next;
            self.manifest.next += 1;
            segments.push(segment::write(&self.folder, &settings, number, &rows, &values)?);
        }
        debug_assert_eq!(before, self.manifest.settings);
        let manifest = Manifest { settings, segments, certainty: None, ..self.manifest.clone() };
        self.replace(manifest)
    }

    /// Writes the files of an encoder. The digest is that of its files.
    fn write_encoder(&mut self, name: String, files: Vec<(&str, Vec<u8>)>) -> Result<EncoderNote> {
        let digest = digest(&files);
        let folder = format!("{ENCODER}/{:06}", self.manifest.next);
        self.manifest.next += 1;
        let files = segment::write_files(&self.folder, &folder, files)?;
        Ok(EncoderNote { name, digest, files })
    }

    fn replace(&mut self, manifest: Manifest) -> Result<()> {
        self.replace_keeping_staged(manifest)?;
        self.pending = Pending::default();
        let path = self.folder.join(PENDING);
        remove_file(&path)
            .advise(|| format!("{} cannot be removed", path.display()), "remove it yourself")?;
        self.remove_unused()
    }

    fn replace_keeping_staged(&mut self, manifest: Manifest) -> Result<()> {
        manifest.write(&self.folder)?;
        self.manifest = manifest;
        Ok(())
    }

    /// Removes the folders of segments and encoders that the gallery does not have.
    fn remove_unused(&self) -> Result<()> {
        let segments = self.manifest.segments.iter().chain(&self.pending.segments);
        let mut used: BTreeSet<String> = segments.map(|segment| segment::name(segment.number)).collect();
        let encoder = self.manifest.settings.encoder.files.iter();
        used.extend(encoder.filter_map(|file| Some(file.path.rsplit_once('/')?.0.to_owned())));
        for kind in [SEGMENTS, ENCODER] {
            let Ok(entries) = fs::read_dir(self.folder.join(kind)) else { continue };
            for name in entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()) {
                let is_ours = name.len() >= 6 && name.bytes().all(|byte| byte.is_ascii_digit());
                let path = self.folder.join(kind).join(&name);
                if is_ours && !used.contains(&format!("{kind}/{name}")) {
                    remove_folder(&path, "rows.parquet")
                        .advise(|| format!("{} cannot be removed", path.display()), "remove it yourself")?;
                }
            }
        }
        Ok(())
    }

    /// Ends the change.
    pub fn close(self) {
        self.lock.release();
    }
}

/// The digest of an encoder with these files.
pub fn digest(files: &[(&str, Vec<u8>)]) -> String {
    let lines: Vec<String> =
        files.iter().map(|(name, bytes)| format!("{name} {}\n", sha256(bytes))).collect();
    sha256(lines.concat().as_bytes())
}

/// Where a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    segment: u64,
    row: u32,
}

/// Refuses an encoder that did not make the embeddings of a gallery.
///
/// # Errors
///
/// As above.
pub fn check_encoder(manifest: &Manifest, digest: &str) -> Result<()> {
    if manifest.settings.encoder.digest == digest {
        return Ok(());
    }
    Err(problem(
        format!(
            "the gallery was made by another encoder, {}: embeddings of two encoders cannot be compared",
            manifest.settings.encoder.name
        ),
        "index with that encoder, or let `--reembed MODEL` make all embeddings again",
    ))
}
