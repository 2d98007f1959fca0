//! The body plans, one a file: how the same genes make a beetle, a fish, a worm …

use super::{body::Build, genome::Plan};

mod beetle;
mod bird;
mod crab;
mod fish;
mod medusa;
mod moth;
mod newt;
mod snail;
mod star;
mod worm;

/// How a creature is usually seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// From the side, so that up matters; may be mirrored.
    Side,
    /// From above, head towards the top of the picture, turned freely to both sides.
    Above,
}

/// Adds the parts of the creature, and says how it is seen.
pub(super) fn grow(build: &mut Build) -> View {
    match build.genome.plan {
        Plan::Beetle => beetle::grow(build),
        Plan::Fish => fish::grow(build),
        Plan::Worm => worm::grow(build),
        Plan::Snail => snail::grow(build),
        Plan::Medusa => medusa::grow(build),
        Plan::Moth => moth::grow(build),
        Plan::Star => star::grow(build),
        Plan::Crab => crab::grow(build),
        Plan::Bird => bird::grow(build),
        Plan::Newt => newt::grow(build),
    }
}
