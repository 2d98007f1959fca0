//! Embeddings in a column for each number, as pandas writes an array. They are read into memory, because a row is in as many
//! places of the file as it has numbers.

use std::io::{Read, Seek};
use std::ops::Range;

use akin_base::problem::problem;
use akin_core::embeddings::{Embeddings, Rows};
use anyhow::Result;

use super::lists::decode;
use super::{Cell, ParquetFile};
use crate::embedding_file::{Choice, choose, numbered};

impl<F: Read + Seek + std::fmt::Debug + Send + 'static> ParquetFile<F> {
    /// The embeddings in a column of lists or, if there is none, in columns that are called by a name and 0, 1, 2, … or
    /// 1, 2, 3, …
    ///
    /// # Errors
    ///
    /// No such columns or several, rows without a number, and a file that is damaged.
    pub fn embeddings(self, choice: &Choice) -> Result<Box<dyn Rows + Send>> {
        let numeric = self.columns().iter().enumerate().filter(|(_, column)| column.is_numeric());
        let groups = numbered(numeric.map(|(place, column)| (place, column.name.as_str())));
        let is_wide = match &choice.name {
            Some(name) => groups.iter().any(|(stem, _)| stem == name),
            None => self.columns().iter().all(|column| column.lists().is_none()),
        };
        if !is_wide || groups.is_empty() {
            return Ok(Box::new(self.lists(choice)?));
        }
        let stems: Vec<&str> = groups.iter().map(|(stem, _)| stem.as_str()).collect();
        let name = choose("column", &stems, choice)?;
        let columns = groups.into_iter().find(|(stem, _)| *stem == name).map_or(0..0, |(_, columns)| columns);
        Ok(Box::new(self.read_columns(columns)?))
    }

    fn read_columns(mut self, columns: Range<usize>) -> Result<Embeddings> {
        let (dimension, rows) = (columns.len(), self.rows());
        let place = self.path.display().to_string();
        self.footer.check_size(&place, rows.checked_mul(dimension as u64))?;
        // The product fits, because the file is nearly as long.
        let mut values = vec![0.0; rows as usize * dimension];
        for (number, column) in columns.enumerate() {
            let name = self.columns()[column].name.clone();
            // Without numbers the column would not be one of these.
            let Some(numbers) = self.columns()[column].numbers else { continue };
            let mut cells = self.begin(column, numbers.kind);
            for row in 0..rows as usize {
                match cells.next(&mut self)? {
                    Some(cell) if cell != Cell::Empty => {
                        decode(cell, numbers.element, &mut values[row * dimension + number..][..1]);
                    }
                    _ => {
                        return Err(problem(
                            format!("{place}: row {} has no number in the column `{name}`", row + 1),
                            "give every item as many numbers, or leave it out",
                        ));
                    }
                }
            }
        }
        Ok(Embeddings::new(dimension, values)?)
    }
}
