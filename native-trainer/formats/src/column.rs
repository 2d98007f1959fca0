//! A column of texts or whole numbers: of a table, or beside embeddings.

use serde_json::{Value, json};

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its cells, one for each row.
    pub cells: Cells,
}

/// The cells of a column.
#[derive(Clone, Debug)]
pub enum Cells {
    /// Texts, which may be missing.
    Texts(Vec<Option<String>>),
    /// Whole numbers.
    Numbers(Vec<i64>),
}

impl Column {
    /// A column of texts, none of which is missing.
    pub fn texts(name: &str, texts: impl IntoIterator<Item = String>) -> Self {
        Self { name: name.into(), cells: Cells::Texts(texts.into_iter().map(Some).collect()) }
    }

    /// The number of cells.
    pub(crate) fn len(&self) -> usize {
        match &self.cells {
            Cells::Texts(cells) => cells.len(),
            Cells::Numbers(cells) => cells.len(),
        }
    }

    /// A cell in a table of texts, where a missing text is empty.
    pub fn text(&self, row: usize) -> String {
        match &self.cells {
            Cells::Texts(cells) => cells[row].clone().unwrap_or_default(),
            Cells::Numbers(cells) => cells[row].to_string(),
        }
    }

    /// A cell in JSON, where a missing text is `null`.
    pub(crate) fn json(&self, row: usize) -> Value {
        match &self.cells {
            Cells::Texts(cells) => json!(cells[row]),
            Cells::Numbers(cells) => json!(cells[row]),
        }
    }
}
