//! The tree of classes.

use akin_core::taxonomy::{self, ClassIdentity, check_order};
use akin_core::{Error, Kind};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use serde_json::json;

use crate::errors::{OrRaise, exception};

/// The tree of classes, and the class ids of the rows that it was made of.
#[pyclass(frozen, module = "akin._akin")]
pub(crate) struct Taxonomy {
    pub(crate) taxonomy: taxonomy::Taxonomy,
    ids: Vec<u32>,
}

#[pymethods]
impl Taxonomy {
    /// `rows` are different label rows, coarse → fine; `names` say in errors what each is. With `qualify` a class is its
    /// whole label path.
    #[new]
    fn new(
        py: Python<'_>,
        levels: Vec<String>,
        rows: Vec<Vec<String>>,
        names: Vec<String>,
        qualify: bool,
    ) -> PyResult<Self> {
        let made = py.detach(|| {
            let identity = if qualify { ClassIdentity::Path } else { ClassIdentity::Name };
            if qualify {
                check_order(&levels, &rows)?;
            }
            let name = |row: usize| names.get(row).cloned().unwrap_or_else(|| format!("row {row}"));
            taxonomy::Taxonomy::from_named_rows(&levels, &rows, identity, &name)
        });
        let (taxonomy, labels) = made.or_raise(py)?;
        Ok(Self { taxonomy, ids: labels.ids().to_vec() })
    }

    /// The tree with these classes at each level, and their parents.
    #[staticmethod]
    fn from_tree(
        py: Python<'_>,
        levels: Vec<String>,
        classes: Vec<Vec<String>>,
        parents: Vec<Vec<u32>>,
    ) -> PyResult<Self> {
        let tree = json!({ "levels": levels, "classes": classes, "parents": parents });
        let taxonomy = serde_json::from_value(tree).map_err(|error| {
            let hint = "give the classes of each level, and the parent of each but those of level 1";
            exception(py, &Error::new(Kind::Taxonomy, error.to_string(), hint))
        })?;
        Ok(Self { taxonomy, ids: Vec::new() })
    }

    /// The class ids of the rows, [n, L].
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u32>>> {
        let depth = self.taxonomy.depth();
        PyArray1::from_slice(py, &self.ids).reshape([self.ids.len() / depth, depth])
    }

    /// The names of the levels, coarse → fine.
    #[getter]
    fn levels(&self) -> Vec<String> {
        self.taxonomy.level_names().to_vec()
    }

    /// The names of the classes at a level, 1 … L.
    fn classes(&self, level: usize) -> Vec<String> {
        let classes = 0..self.class_count(level) as u32;
        classes.map(|class| self.taxonomy.class_name(level, class).to_owned()).collect()
    }

    /// The name of a class at a level, 1 … L.
    fn class_name(&self, py: Python<'_>, level: usize, number: u32) -> PyResult<String> {
        if number as usize >= self.class_count(level) {
            let error = Error::new(
                Kind::Taxonomy,
                format!("level {level} has no class {number}"),
                "give one that it has",
            );
            return Err(exception(py, &error));
        }
        Ok(self.taxonomy.class_name(level, number).to_owned())
    }

    /// The parent of each class at a level, 2 … L; empty at level 1.
    fn parents(&self, level: usize) -> Vec<u32> {
        let classes = 0..self.class_count(level) as u32;
        classes.filter_map(|class| self.taxonomy.parent(level, class)).collect()
    }

    /// The names of the known classes of a row of class ids.
    fn path(&self, py: Python<'_>, ids: Vec<u32>) -> PyResult<Vec<String>> {
        let known = self.taxonomy.depth() == ids.len()
            && (1..)
                .zip(&ids)
                .all(|(level, &id)| id == taxonomy::UNKNOWN || (id as usize) < self.class_count(level));
        if !known {
            let error = Error::new(
                Kind::Taxonomy,
                format!("{ids:?} are not class ids of the taxonomy"),
                "give one class id per level",
            );
            return Err(exception(py, &error));
        }
        Ok(self.taxonomy.path_names(&ids).into_iter().map(str::to_owned).collect())
    }
}

impl Taxonomy {
    /// The number of classes at a level; 0 where there is no such level.
    pub(crate) fn class_count(&self, level: usize) -> usize {
        if (1..=self.taxonomy.depth()).contains(&level) { self.taxonomy.class_count(level) } else { 0 }
    }
}
