use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::read::{UPDATE, bundle_error, check_format, is_safe_path, parse_json};
use super::{INDEX, VERSION};
use crate::Result;

const FORMAT: &str = "akin-bundles";

/// The index of several bundles that a page offers side by side: `bundles.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// The bundles, in the order in which a page shows them; at least one.
    pub bundles: Vec<IndexEntry>,
}

/// A bundle of an [`Index`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexEntry {
    /// The directory of the bundle, relative to the index.
    pub path: String,
    /// A short name for people.
    pub title: String,
    /// What the bundle holds, in a sentence.
    pub description: String,
    /// Whether its gallery is a sample of a larger one, which the server of the page searches.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sample: bool,
}

impl Index {
    /// Reads and checks the bytes of `bundles.json`.
    ///
    /// # Errors
    ///
    /// [`Kind::Bundle`](crate::Kind::Bundle): no JSON, another format, a newer version, a required feature that this
    /// reader does not know, a missing or wrong field, no bundle, an unsafe path, or a path listed twice.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        const WRITE_AGAIN: &str = "correct the file; the description of the bundle format has an example";
        let value = parse_json(INDEX, bytes, WRITE_AGAIN)?;
        check_format(INDEX, &value, FORMAT, WRITE_AGAIN)?;
        let index = Self::deserialize(&value)
            .map_err(|error| bundle_error(format!("{INDEX} is not valid: {error}"), UPDATE))?;
        if index.bundles.is_empty() {
            return Err(bundle_error(format!("{INDEX} lists no bundle"), "add the directory of a bundle"));
        }
        let mut seen = HashSet::new();
        for IndexEntry { path, .. } in &index.bundles {
            if !is_safe_path(path) {
                return Err(bundle_error(
                    format!("{INDEX} has the path {path:?}, which is not safe"),
                    "use relative paths of ASCII letters, digits, '-', '_' and '.', joined by '/'",
                ));
            }
            if !seen.insert(path.to_ascii_lowercase()) {
                return Err(bundle_error(
                    format!("{INDEX} lists the bundle {path:?} twice"),
                    "remove one of the two, or give each bundle a directory of its own",
                ));
            }
        }
        Ok(index)
    }

    /// The bytes of `bundles.json`.
    ///
    /// # Errors
    ///
    /// Those of [`parse`](Self::parse), which reads the result back.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let value: Value = json!({ "format": FORMAT, "version": VERSION, "bundles": self.bundles });
        let bytes = format!("{value:#}\n").into_bytes();
        Self::parse(&bytes)?;
        Ok(bytes)
    }
}
