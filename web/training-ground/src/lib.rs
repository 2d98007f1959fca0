//! The training ground of the page: a small network that learns, step by step, to embed drawn creatures on the circle,
//! on the sphere or in the Poincaré disk.
//!
//! [`Creatures`] is the file of measurements and labels. A [`Run`] trains one network with one loss; it is a function of
//! its [`Settings`], so that two runs with the same seed start alike and see the same batches, and a run that starts
//! again repeats its numbers. [`offers()`] lists the losses of the catalogue that fit a space.
//!
//! All of it runs natively too, and is tested there. `face` is what JavaScript calls.

// `expect` says why a failure is impossible; `unwrap` does not.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod adam;
pub mod creatures;
#[cfg(target_arch = "wasm32")]
mod face;
pub mod messages;
mod network;
pub mod offers;
pub mod run;

pub use creatures::Creatures;
pub use offers::{Offer, offers};
pub use run::{Group, Measures, Run, Scores, Settings, Space, Tree};
