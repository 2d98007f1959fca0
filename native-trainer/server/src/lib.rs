//! The page on this machine: its files, the bundles that it shows, a local server for both, and both as a site for any
//! other web server.
//!
//! [`serve`] and [`site`] stand above [`bundles`] and [`page`]; none of them knows how a bundle is made.

pub mod bundles;
pub mod onnxruntime;
pub mod page;
pub mod serve;
pub mod site;
