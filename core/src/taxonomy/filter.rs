//! Which items take part in a search, by their classes.

use super::{Labels, Taxonomy};
use crate::{Error, Kind, Result};

/// A class of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// 1 … L.
    pub level: usize,
    /// The class id at this level.
    pub class: u32,
}

/// The items of some classes, without those of others.
///
/// ```
/// use akin_core::taxonomy::{ClassIdentity, Filter, Taxonomy};
///
/// let levels = ["kind", "variety"].map(String::from);
/// let rows = [vec!["apple", "gala"], vec!["apple", "fuji"], vec!["pear", "kaiser"], vec!["apple", ""]];
/// let (taxonomy, labels) = Taxonomy::from_rows(&levels, &rows, ClassIdentity::Path)?;
///
/// let filter = Filter::new(&taxonomy, &["apple"], &["apple/gala"])?;
/// assert_eq!(filter.items(&labels), [1, 3]);
/// # Ok::<(), akin_core::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    within: Vec<Class>,
    not: Vec<Class>,
}

impl Filter {
    /// The items of the classes `within`, or of all classes if there are none, without those of the classes `not`.
    ///
    /// # Errors
    ///
    /// As [`Taxonomy::find_class`].
    pub fn new<S: AsRef<str>>(taxonomy: &Taxonomy, within: &[S], not: &[S]) -> Result<Self> {
        let find = |names: &[S]| -> Result<Vec<Class>> {
            names.iter().map(|name| taxonomy.find_class(name.as_ref())).collect()
        };
        Ok(Self { within: find(within)?, not: find(not)? })
    }

    /// Whether an item with these label paths takes part; an item without labels has none. An item whose label is unknown at
    /// the level of a class is not known to be of that class.
    pub fn keeps<'a>(&self, paths: impl IntoIterator<Item = &'a [u32]> + Clone) -> bool {
        let is_of = |classes: &[Class]| {
            paths
                .clone()
                .into_iter()
                .any(|path| classes.iter().any(|class| path.get(class.level - 1) == Some(&class.class)))
        };
        (self.within.is_empty() || is_of(&self.within)) && !is_of(&self.not)
    }

    /// Whether item `i` takes part.
    pub fn keeps_item(&self, labels: &Labels, i: usize) -> bool {
        // Most labels have one path, which needs no list.
        if labels.has_one_path() { self.keeps([labels.row(i)]) } else { self.keeps(labels.paths(i)) }
    }

    /// The items that take part, in their order.
    pub fn items(&self, labels: &Labels) -> Vec<usize> {
        (0..labels.len()).filter(|&item| self.keeps_item(labels, item)).collect()
    }

    /// Whether all items take part.
    pub fn keeps_all(&self) -> bool {
        self.within.is_empty() && self.not.is_empty()
    }
}

impl Taxonomy {
    /// The class that a text names: by its name, or by its label path or the end of that, with `/` between the labels:
    /// `Owls`, `Birds/Owls`. A whole path comes before the end of another.
    ///
    /// # Errors
    ///
    /// [`Kind::Taxonomy`] when no class has this name, with those of similar names; when several have it, with the paths of
    /// some.
    pub fn find_class(&self, text: &str) -> Result<Class> {
        let wanted = tidy(text);
        let mut found = Vec::new();
        for class in self.all_classes() {
            let path = self.path_of(class);
            let ends = (0..path.len()).map(|start| tidy(&path[start..].join("/")));
            match ends.into_iter().position(|end| end == wanted) {
                Some(0) => return Ok(class),
                Some(_) => found.push(class),
                None => {}
            }
        }
        let paths = |classes: &[Class]| {
            let names = classes.iter().take(3).map(|&class| format!("`{}`", self.path_of(class).join("/")));
            names.collect::<Vec<_>>().join(", ")
        };
        match found[..] {
            [class] => Ok(class),
            [] => {
                let near = self.similar_classes(&wanted);
                let hint = match near.is_empty() {
                    true => "give the name of a class, or its path such as `Birds/Owls`".into(),
                    false => format!("did you mean {}?", paths(&near)),
                };
                Err(Error::new(Kind::Taxonomy, format!("no class is called {text:?}"), hint))
            }
            _ => Err(Error::new(
                Kind::Taxonomy,
                format!("{} classes are called {text:?}", found.len()),
                format!("give the path of one, such as {}", paths(&found)),
            )),
        }
    }

    /// The level of this name, 1 … L.
    ///
    /// # Errors
    ///
    /// [`Kind::Taxonomy`], with the names of the levels.
    pub fn find_level(&self, name: &str) -> Result<usize> {
        let place = self.levels.iter().position(|level| level == name);
        place.map(|place| place + 1).ok_or_else(|| {
            Error::new(
                Kind::Taxonomy,
                format!("no level is called {name:?}"),
                format!("the levels are {}", self.levels.join(", ")),
            )
        })
    }

    fn all_classes(&self) -> impl Iterator<Item = Class> {
        (1..=self.depth())
            .flat_map(|level| (0..self.class_count(level) as u32).map(move |class| Class { level, class }))
    }

    /// The names of a class and of those above it, coarse → fine.
    ///
    /// # Panics
    ///
    /// When the tree has no such class.
    pub fn path_of(&self, Class { level, class }: Class) -> Vec<&str> {
        let above = std::iter::successors(Some((level, class)), |&(level, class)| {
            Some((level - 1, self.parent(level, class)?))
        });
        let mut path: Vec<&str> = above.map(|(level, class)| self.class_name(level, class)).collect();
        path.reverse();
        path
    }

    /// The classes whose name or path is written much as `wanted`, the most similar first.
    fn similar_classes(&self, wanted: &str) -> Vec<Class> {
        /// Below this, names are not alike.
        const ALIKE: f64 = 0.8;
        let wanted = wanted.to_lowercase();
        let likeness = |name: &str| strsim::jaro_winkler(&name.to_lowercase(), &wanted);
        let mut classes: Vec<(f64, Class)> = self
            .all_classes()
            .map(|class| {
                let path = self.path_of(class);
                let name = path.last().map_or(0.0, |name| likeness(name));
                (name.max(likeness(&path.join("/"))), class)
            })
            .filter(|(likeness, _)| *likeness > ALIKE)
            .collect();
        classes.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        classes.into_iter().map(|(_, class)| class).collect()
    }
}

/// A path without the spaces beside its separators.
fn tidy(path: &str) -> String {
    path.split('/').map(str::trim).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taxonomy::ClassIdentity;

    fn tree() -> (Taxonomy, Labels) {
        let levels = ["group", "family", "species"].map(String::from);
        let rows = [
            ["Birds", "Owls", "Tawny owl"],
            ["Birds", "Owls", "other"],
            ["Birds", "Owls", ""],
            ["Birds", "", ""],
            ["Insects", "Bees", "other"],
            ["Insects", "Insects", "fly / moth"],
        ];
        Taxonomy::from_rows(&levels, &rows.map(|row| row.to_vec()), ClassIdentity::Path).unwrap()
    }

    fn kept(within: &[&str], not: &[&str]) -> Vec<usize> {
        let (taxonomy, labels) = tree();
        Filter::new(&taxonomy, within, not).unwrap().items(&labels)
    }

    #[test]
    fn a_class_has_the_items_that_are_known_to_be_of_it() {
        assert_eq!(kept(&["Birds"], &[]), [0, 1, 2, 3]);
        assert_eq!(kept(&["Birds/Owls"], &[]), [0, 1, 2]);
        assert_eq!(kept(&["Owls", "Bees"], &["Tawny owl"]), [1, 2, 4]);
        assert_eq!(kept(&[], &["Owls"]), [3, 4, 5]);
        assert_eq!(kept(&[], &[]), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_class_is_found_by_its_path_or_the_end_of_it() {
        let (taxonomy, _) = tree();
        let find = |text| taxonomy.find_class(text).unwrap();
        assert_eq!(find("Owls/other"), Class { level: 3, class: 1 });
        assert_eq!(find("Birds / Owls / other"), find("Owls/other"));
        // A whole path comes first, and a name may have a slash.
        assert_eq!(find("Insects"), Class { level: 1, class: 1 });
        assert_eq!(find("Insects/Insects"), Class { level: 2, class: 2 });
        assert_eq!(find("fly/moth").level, 3);
    }

    #[test]
    fn a_class_that_is_not_there_or_not_the_only_one_is_an_error_with_names() {
        let (taxonomy, _) = tree();
        let error = |text| taxonomy.find_class(text).unwrap_err().to_string();
        assert_eq!(error("Owlz"), r#"no class is called "Owlz"; did you mean `Birds/Owls`?"#);
        assert!(error("birds/owls").contains("did you mean `Birds/Owls`"), "{}", error("birds/owls"));
        assert!(error("zzz").contains("give the name of a class"));
        assert_eq!(
            error("other"),
            r#"2 classes are called "other"; give the path of one, such as `Birds/Owls/other`, `Insects/Bees/other`"#
        );
        assert_eq!(taxonomy.find_level("family"), Ok(2));
        let level = taxonomy.find_level("Owls").unwrap_err().to_string();
        assert_eq!(level, r#"no level is called "Owls"; the levels are group, family, species"#);
    }
}
