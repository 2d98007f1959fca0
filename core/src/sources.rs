//! The publications of losses, miners and metrics: the BibTeX entries of `references.bib`. The catalogues name their
//! keys.

use std::sync::LazyLock;

/// A publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its BibTeX key, which the catalogues name.
    pub key: &'static str,
    /// The BibTeX entry.
    pub bibtex: &'static str,
}

/// Every publication, ordered by key.
pub static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(|| {
    let entries =
        include_str!("references.bib").split("\n\n").map(str::trim).filter(|entry| !entry.is_empty());
    let key = |bibtex: &'static str| bibtex.split(['{', ',']).nth(1).unwrap_or_default();
    entries.map(|bibtex| Source { key: key(bibtex), bibtex }).collect()
});

/// The publication with this key.
pub fn source(key: &str) -> Option<&'static Source> {
    SOURCES.iter().find(|source| source.key == key)
}

impl Source {
    /// Its title, without the braces that protect letters.
    pub fn title(&self) -> String {
        let line =
            self.bibtex.lines().find_map(|line| line.trim().strip_prefix("title = {")).unwrap_or_default();
        line.trim_end_matches(',').trim_end_matches('}').replace(['{', '}'], "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_complete_and_in_the_order_of_the_keys() {
        assert!(SOURCES.windows(2).all(|pair| pair[0].key < pair[1].key), "sort the entries by key");
        for source in SOURCES.iter() {
            assert!(source.bibtex.starts_with('@') && source.bibtex.ends_with("\n}"), "{}", source.bibtex);
            assert!(!source.title().is_empty() && source.bibtex.contains("year = "), "{}", source.bibtex);
        }
        assert!(source("ramzi2022").unwrap().title().starts_with("Hierarchical Average Precision"));
        assert_eq!(source("nobody1900"), None);
    }
}
