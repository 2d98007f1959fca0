//! Exports the function that runs the constructors of all crates, so that the page's worker can run them once. Without it
//! the linker runs them again in every exported function.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|architecture| architecture == "wasm32") {
        println!("cargo::rustc-link-arg-cdylib=--export=__wasm_call_ctors");
    }
}
