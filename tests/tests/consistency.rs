//! Facts that are written in two places are the same in both.

use std::fs;
use std::path::Path;

use toml::{Table, Value};

fn read(file: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is inside the workspace");
    fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn toml(file: &str) -> Table {
    read(file).parse().unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn npm(file: &str) -> serde_json::Value {
    serde_json::from_str(&read(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

#[test]
fn the_wasm_bindgen_crate_and_its_tool_have_the_same_version() {
    let dependency = toml("Cargo.toml")["workspace"]["dependencies"]["wasm-bindgen"].clone();
    let version = dependency.as_str().unwrap().strip_prefix('=').expect("the crate is pinned").to_owned();
    let trunk = toml("www/Trunk.toml")["tools"]["wasm_bindgen"].clone();
    assert_eq!(trunk.as_str(), Some(&*version), "www/Trunk.toml");
    let installed = format!("package: \"wasm-bindgen-cli\", version: \"{version}\"");
    assert!(
        read("native-trainer/server/src/page/build.rs").contains(&installed),
        "native-trainer/server/src/page/build.rs"
    );
}

#[test]
fn page_and_tests_use_the_same_versions_of_the_browser_tools() {
    let (www, tests) = (npm("www/package.json"), npm("tests/package.json"));
    for tool in ["axe-core", "playwright-core"] {
        assert_eq!(www["devDependencies"][tool], tests["devDependencies"][tool], "{tool}");
        assert!(tests["devDependencies"][tool].is_string(), "{tool} is pinned");
    }
}

/// A comparison of losses must not change anything else.
#[test]
fn the_recipes_of_a_comparison_differ_in_name_and_loss_only() {
    for data in ["biomorphs", "grocery"] {
        let [baseline, happier] = ["norm-softmax", "happier"].map(|loss| {
            let mut recipe = toml(&format!("native-trainer/recipes/{data}-{loss}.toml"));
            let loss = recipe.remove("loss").expect("a recipe has a loss");
            recipe["run"].as_table_mut().unwrap().insert("name".into(), Value::from(""));
            (recipe, loss)
        });
        assert_eq!(baseline.0, happier.0, "{data}");
        assert_ne!(baseline.1, happier.1, "{data}");
    }
}
