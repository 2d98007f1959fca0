//! The objects that JavaScript receives, beside those of [`run`](crate::run) and [`offers`](mod@crate::offers). The
//! page's types are made from them: the test below writes `www/src/messages/training.ts`.

use serde::Serialize;

use crate::{Group, Measures, Tree};

/// Names and labels of the creatures. Levels run coarse to fine.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Description<'a> {
    /// The names of the levels.
    pub levels: &'a [String],
    /// The names of the classes at each level.
    pub classes: Vec<Vec<&'a str>>,
    /// [N, L], row after row.
    pub labels: &'a [u32],
    /// Whether the species of a creature is held out.
    pub held_out: Vec<bool>,
    /// The number of measurements of each creature.
    pub features: usize,
}

/// Where a run stands.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct State {
    /// The number of steps taken.
    pub step: u64,
    /// [N, d], row after row.
    pub points: Vec<f32>,
    /// What the loss has learned.
    pub proxies: Vec<Group>,
    /// For a loss with HIER.
    pub tree: Option<Tree>,
    /// The scores, if they were asked for.
    pub measures: Option<Measures>,
}

#[cfg(test)]
mod tests {
    use akin_bridge::typescript::Declarations;

    use super::*;

    #[test]
    fn the_page_has_the_types_of_the_module() {
        Declarations::default()
            .with::<Description<'static>>()
            .with::<crate::Offer>()
            .with::<crate::Settings>()
            .with::<State>()
            .check("training.ts");
    }
}
