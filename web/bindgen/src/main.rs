//! `akin-bindgen FOLDER NAME MODULE [--without-names]`: writes `NAME.js` and `NAME_bg.wasm` of a WebAssembly module into a
//! folder. Without the names of its functions, a module that is not optimised is a third smaller.
//!
//! It does what the program `wasm-bindgen` does. As a part of this workspace it always has the version of the crate, and
//! nobody has to install it.

use std::env;

use anyhow::{Result, bail};
use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (folder, name, module, without_names) = match &arguments[..] {
        [folder, name, module] => (folder, name, module, false),
        [folder, name, module, option] if option == "--without-names" => (folder, name, module, true),
        _ => bail!("usage: akin-bindgen FOLDER NAME MODULE [--without-names]"),
    };
    // The page asks for `NAME_bg.wasm` beside `NAME.js` without naming it.
    Bindgen::new()
        .input_path(module)
        .out_name(name)
        .web(true)?
        .omit_default_module_path(false)
        .remove_name_section(without_names)
        .generate(folder)
}
