//! The body plans, one per file: how the genes become a beetle, a fish, a worm …

use crate::{body::Build, genome::Plan};

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

/// The direction from which a creature is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// From the side: up stays up, and the creature may be mirrored.
    Side,
    /// From above: the head points to the top of the picture, with a random rotation.
    Above,
}

/// Adds the parts of the creature and returns the direction from which it is seen.
pub(crate) fn grow(build: &mut Build) -> View {
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
