//! The losses by name.

use crate::config::Config;

/// A loss that can be asked for by its name.
pub struct Known {
    pub name: String,
    pub title: String,
    pub family: String,
    pub optimises: String,
}

const LOSSES: [[&str; 4]; 3] = [
    ["norm_softmax", "NormSoftmax", "fine-grained", "ap"],
    ["hap_surrogate", "H-AP surrogate", "hierarchical", "h_ap"],
    ["happier", "HAPPIER", "hierarchical", "h_ap"],
];

pub fn names() -> Vec<String> {
    LOSSES.iter().map(|[name, ..]| (*name).to_owned()).collect()
}

pub fn find(wanted: &str) -> Option<Known> {
    let found = LOSSES.into_iter().find(|[name, ..]| *name == wanted)?;
    let [name, title, family, optimises] = found.map(str::to_owned);
    Some(Known { name, title, family, optimises })
}

pub fn all(_: &Config) -> Vec<Known> {
    names().iter().filter_map(|name| find(name)).collect()
}
