//! The pictures that a gallery is made of: those of a folder, of a table, or of a list.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use akin_base::problem::{Advise, problem};
use akin_base::quantities::counted;
use akin_base::terminal;
use akin_core::digest::sha256;
use akin_gallery::Row;
use anyhow::Result;

use crate::data::detect::detect;
use crate::data::folder::image_files;
use crate::data::listing::is_split_name;
use crate::data::{Dataset, Storage};
use crate::pictures::loader::Pictures;

/// Pictures with what is known of them.
#[derive(Default)]
pub struct Listed {
    /// A row for each, without size, time and hash.
    pub rows: Vec<Row>,
    /// Where they are inside larger files; each is a file of its own if there is none.
    pub storage: Option<Arc<Storage>>,
    /// The names of the levels, coarse to fine.
    pub levels: Vec<String>,
}

impl Listed {
    /// The pictures of these paths: folders, tables in CSV or Parquet, image files, or `-` for a list of files on standard
    /// input. `levels` gives the names of the levels of folders, and the columns of a table.
    ///
    /// # Errors
    ///
    /// A path that does not exist or has no pictures; paths with different levels; a table among other paths.
    pub fn read(paths: &[PathBuf], levels: &[String]) -> Result<Self> {
        let mut all = Self::default();
        for path in paths {
            let listed = Self::of(path, levels)?;
            if listed.rows.is_empty() {
                return Err(problem(
                    format!("{} has no pictures", path.display()),
                    "give a folder of photos",
                ));
            }
            all.append(listed)?;
        }
        let mut seen = HashSet::new();
        all.rows.retain(|row| seen.insert(row.file()));
        Ok(all)
    }

    fn append(&mut self, other: Self) -> Result<()> {
        if self.rows.is_empty() {
            *self = other;
            return Ok(());
        }
        if self.storage.is_some() || other.storage.is_some() {
            return Err(problem(
                "a Parquet file that holds its pictures is given with other pictures",
                "add it by itself: `akin index GALLERY --add FILE`",
            ));
        }
        // Pictures without labels go with any others.
        if self.levels.len() < other.levels.len() {
            self.levels = other.levels;
        }
        self.rows.extend(other.rows);
        Ok(())
    }

    fn of(path: &Path, levels: &[String]) -> Result<Self> {
        if path == Path::new("-") {
            let lines = io::stdin().lock().lines().collect::<io::Result<Vec<_>>>();
            let lines = lines.advise(
                || "the list on standard input cannot be read".into(),
                "write a path a line, in UTF-8",
            )?;
            let rows =
                lines.iter().filter(|line| !line.is_empty()).map(|line| row(Path::new(line), Path::new("")));
            return Ok(Self { rows: rows.collect::<Result<_>>()?, ..Self::default() });
        }
        let whole = fs::canonicalize(path)
            .advise(|| format!("{} does not exist", path.display()), "check the path")?;
        if whole.is_dir() {
            return Self::of_folder(&whole, levels);
        }
        let is_table = path.extension().is_some_and(|ending| {
            ["csv", "tsv", "parquet"].iter().any(|table| ending.eq_ignore_ascii_case(table))
        });
        if is_table {
            return Self::of_table(&whole, levels);
        }
        Ok(Self { rows: vec![row(&whole, whole.parent().unwrap_or(Path::new("")))?], ..Self::default() })
    }

    /// The pictures of a tree of folders. Folders that are called as splits are no labels.
    fn of_folder(folder: &Path, levels: &[String]) -> Result<Self> {
        let mut rows = Vec::new();
        for entry in image_files(folder)? {
            let mut row = row(entry.path(), folder)?;
            let between = Path::new(&row.path).parent().unwrap_or(Path::new(""));
            row.labels = between.iter().map(|name| name.to_string_lossy().into_owned()).collect();
            rows.push(row);
        }
        let labelled = || rows.iter().filter_map(|row: &Row| row.labels.first());
        if labelled().next().is_some() && labelled().all(|label| is_split_name(label)) {
            rows.iter_mut().filter(|row| !row.labels.is_empty()).for_each(|row| {
                row.labels.remove(0);
            });
        }
        let depth = rows.iter().map(|row| row.labels.len()).max().unwrap_or_default();
        let levels = match levels.len() {
            0 => crate::data::detect::level_names(depth),
            given if given == depth || depth == 0 => levels.to_vec(),
            given => {
                return Err(problem(
                    format!(
                        "`--levels` names {}, but the folders in {} are {} deep",
                        counted(given, "level", "levels"),
                        folder.display(),
                        counted(depth, "level", "levels")
                    ),
                    "give a name for each level of folders, coarse to fine",
                ));
            }
        };
        Ok(Self { rows, storage: None, levels: if depth == 0 { Vec::new() } else { levels } })
    }

    /// The pictures that a table names or holds. Without names, its levels are those that its columns seem to be.
    fn of_table(table: &Path, levels: &[String]) -> Result<Self> {
        let mut layout = detect(table)?;
        if levels.is_empty() {
            for note in &layout.notes {
                terminal::say(format_args!("        Note {note}"));
            }
        } else {
            layout.name_levels(levels)?;
        }
        let fault = || format!("the layout of {} is not known", table.display());
        let data = layout.data.clone().try_into().advise(fault, "give a table with a column of paths")?;
        let dataset = Dataset::load_all(data)?;
        let is_inside = |item: usize| dataset.storage.file(item, &dataset.paths[item]) != dataset.paths[item];
        let holds = (0..dataset.paths.len()).any(is_inside);
        let source = if holds { table } else { table.parent().unwrap_or(Path::new("")) };
        let rows = dataset.paths.iter().enumerate().map(|(item, path)| {
            let path = if holds { path.clone() } else { absolute(path)? };
            let names = dataset.taxonomy.path_names(dataset.labels.row(item)).into_iter();
            Ok(Row { labels: names.map(str::to_owned).collect(), ..row(&path, source)? })
        });
        Ok(Self {
            rows: rows.collect::<Result<_>>()?,
            storage: holds.then(|| dataset.storage.clone()),
            levels: dataset.taxonomy.level_names().to_vec(),
        })
    }

    /// The pictures, to be read. One that cannot be read is skipped with a warning.
    pub fn pictures(&self) -> Pictures {
        let pictures = Pictures::new(self.rows.iter().map(Row::file).collect()).without_cache();
        match &self.storage {
            Some(storage) => pictures.in_storage(storage.clone()),
            None => pictures,
        }
    }

    /// What a file is now: its row with size, time and hash. `known` is the row that a gallery has of it, whose hash is
    /// taken where size and time are the same.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn stat(&self, item: usize, known: Option<&Row>) -> io::Result<Row> {
        let row = &self.rows[item];
        let file = row.file();
        let place = if self.storage.is_some() { Path::new(&row.source) } else { &file };
        let metadata = fs::metadata(place)?;
        let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as i64;
        let size = self.storage.as_ref().map_or(metadata.len(), |storage| storage.length(item, &file));
        let same = known.filter(|known| (known.size, known.modified) == (size, modified));
        let sha256 = match (same, &self.storage) {
            (Some(known), _) => known.sha256.clone(),
            (None, Some(storage)) => sha256(&storage.bytes(item, &file)?),
            (None, None) => sha256(&akin_base::files::read_regular_file(&file)?),
        };
        Ok(Row { size, modified, sha256, ..row.clone() })
    }
}

/// The row of a file, without what it holds.
fn row(file: &Path, source: &Path) -> Result<Row> {
    let path = file.strip_prefix(source).unwrap_or(file);
    let text = |path: &Path| {
        path.to_str().map(str::to_owned).ok_or_else(|| {
            problem(
                format!("the path {} is not UTF-8, so a table of paths cannot hold it", path.display()),
                "rename the file or its folder",
            )
        })
    };
    Ok(Row { path: text(path)?, source: text(source)?, ..Row::default() })
}

/// Where the pictures of a gallery are that a Parquet file holds.
///
/// # Errors
///
/// Pictures of several such files, or of one and of folders; a file that has changed.
pub fn storage(rows: &[Row]) -> Result<Storage> {
    let sources: BTreeSet<&str> = rows.iter().map(|row| row.source.as_str()).collect();
    let sources: Vec<&Path> = sources.into_iter().map(Path::new).collect();
    if sources.iter().all(|source| !source.is_file()) {
        return Ok(Storage::default());
    }
    let [source] = sources[..] else {
        return Err(problem(
            "some pictures of the gallery are inside a Parquet file, and others are not",
            "make a gallery of each, and export them to separate bundles",
        ));
    };
    let listed = Listed::read(&[source.to_owned()], &[])?;
    let places: HashMap<PathBuf, usize> = listed.rows.iter().map(Row::file).zip(0..).collect();
    let place = |row: &Row| {
        places.get(&row.file()).copied().ok_or_else(|| {
            problem(
                format!("{} is no longer in {}", row.path, source.display()),
                "follow the file with `akin index GALLERY --refresh`",
            )
        })
    };
    let items = rows.iter().map(place).collect::<Result<Vec<_>>>()?;
    Ok(listed.storage.map(|storage| storage.select(&items)).unwrap_or_default())
}

/// A path from the root.
pub fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).advise(|| format!("{} has no absolute path", path.display()), "check the path")
}
