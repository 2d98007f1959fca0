//! What holds for every crate of the workspace.

use std::fs;
use std::path::Path;

use toml::Table;

fn read(path: &Path) -> Table {
    fs::read_to_string(path).unwrap().parse().unwrap()
}

#[test]
fn every_crate_forbids_unsafe_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let workspace = read(&root.join("Cargo.toml"));
    let workspace = workspace["workspace"].as_table().unwrap();
    assert_eq!(workspace["lints"]["rust"]["unsafe_code"].as_str(), Some("forbid"));
    for member in workspace["members"].as_array().unwrap() {
        let member = member.as_str().unwrap();
        let manifest = read(&root.join(member).join("Cargo.toml"));
        let inherits = manifest.get("lints").and_then(|lints| lints.get("workspace")?.as_bool());
        assert_eq!(inherits, Some(true), "{member} does not inherit the lints of the workspace");
    }
}
