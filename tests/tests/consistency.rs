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
fn wasm_bindgen_and_what_writes_its_javascript_have_the_same_version() {
    let dependencies = &toml("Cargo.toml")["workspace"]["dependencies"];
    let version = dependencies["wasm-bindgen"].as_str().expect("a version");
    assert!(version.starts_with('='), "it is pinned");
    assert_eq!(dependencies["wasm-bindgen-cli-support"].as_str(), Some(version));
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

#[test]
fn every_page_names_the_same_version_of_node() {
    for file in ["www/package.json", "tests/package.json"] {
        assert_eq!(npm(file)["engines"]["node"], ">=20.15", "{file}");
    }
    let build = "native-trainer/server/src/page/build.rs";
    for (file, words) in [
        ("README.md", "Node 20.15"),
        ("CONTRIBUTING.md", "Node 20.15"),
        ("tests/run", "NODE_NEEDED=20.15.0"),
        (build, "Node 20.15"),
    ] {
        assert!(read(file).contains(words), "{file} does not say `{words}`");
    }
}

#[test]
fn the_pages_count_the_recorded_cases_of_the_published_codes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files: Vec<String> = fs::read_dir(root.join("golden"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".json"))
        .collect();
    let count = |name: &String| npm(&format!("tests/golden/{name}"))["cases"].as_array().unwrap().len();
    let cases: usize = files.iter().map(count).sum();
    assert!(read("README.md").contains(&format!("agree with the published codes on {cases} recorded cases")));
    let row = format!("{cases} of {cases} cases in {} files", files.len());
    assert!(read("native-trainer/recipes/tables/README.md").contains(&row), "the row is not `{row}`");
}
