//! The TypeScript of the objects that cross between a module and the page. The tests of the modules write it, so that
//! the page's types follow from the Rust types.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ts_rs::{Config, TS, TypeVisitor};

/// Types, and all types that they consist of, as TypeScript.
pub struct Declarations {
    config: Config,
    /// By name, in the order of the file.
    texts: BTreeMap<String, String>,
}

/// None yet. All integers are numbers, as JSON has them.
impl Default for Declarations {
    fn default() -> Self {
        Self { config: Config::new().with_large_int("number"), texts: BTreeMap::new() }
    }
}

impl Declarations {
    /// Adds a type.
    #[must_use]
    pub fn with<T: TS + 'static>(mut self) -> Self {
        self.visit::<T>();
        self
    }

    /// Compares the declarations with `www/src/messages/NAME.ts`. Where `AKIN_UPDATE` is set, it first writes the file.
    ///
    /// # Panics
    ///
    /// The file differs or cannot be written.
    pub fn check(self, name: &str) {
        let texts: Vec<String> = self.texts.into_values().collect();
        let text = format!(
            "// What crosses between the page and a wasm module. Made from Rust types, see web/bridge/src/typescript.rs.\n\n{}",
            texts.join("\n")
        );
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../www/src/messages").join(name);
        if std::env::var_os("AKIN_UPDATE").is_some() {
            fs::write(&file, &text).expect("the source tree can be written");
        }
        let recorded = fs::read_to_string(&file).unwrap_or_default();
        assert!(
            recorded == text,
            "{} differs from the Rust types; set AKIN_UPDATE=1 to write it",
            file.display()
        );
    }
}

impl TypeVisitor for Declarations {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        // A type without a path is one of TypeScript's own.
        if T::output_path().is_none() {
            return;
        }
        let comment = T::docs().unwrap_or_default();
        let text = format!("{comment}export {}\n", T::decl(&self.config))
            .replace("`None`", "null")
            .replace(" \n", "\n");
        let name = T::ident(&self.config);
        match self.texts.insert(name.clone(), text.clone()) {
            None => T::visit_dependencies(self),
            Some(known) => assert_eq!(known, text, "two types have the name {name}"),
        }
    }
}
