//! The page on this machine: its files, the bundles that it shows, a local server for both, and both as a site for any
//! other web server.
//!
//! [`api`] is what programs may ask beside it. [`serve`] and [`site`] stand above [`bundles`] and [`page`]; none of them knows how a bundle is made.

pub mod api;
pub mod bundles;
pub mod onnxruntime;
pub mod page;
pub mod serve;
pub mod site;
