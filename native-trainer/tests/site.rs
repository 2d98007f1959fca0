//! `akin export --site`: the page with bundles, ready for a web server.

mod workplace;

use std::fs;

use akin_core::bundle::{INDEX, Index, MANIFEST, Manifest};
use workplace::Workplace;

#[test]
fn a_site_is_the_page_with_whole_bundles_and_their_index() {
    let at = Workplace::tiny();
    at.akin(&["train", "tiny.toml", "--out", "run"]).expect_code(0);
    let bundle = ["export", "run", "--out", "bundle", "--title", "Creatures", "--no-maps"];
    at.akin(&bundle).expect_code(0);
    fs::create_dir_all(at.path("page/build")).unwrap();
    fs::create_dir_all(at.path("page/.stage")).unwrap();
    at.write("page/index.html", "<!doctype html>");
    at.write("page/build/page.js", "export {};");
    at.write("page/.stage/notes.txt", "of the build");
    let export = ["export", "run", "--out", "new", "--no-maps", "--page", "page", "--site", "site"];
    at.akin(&[&export[..], &["--with", "bundle"]].concat()).expect_code(0).expect_stderr("the site site");

    for path in ["index.html", "build/page.js"] {
        assert_eq!(at.read(&format!("site/{path}")), at.read(&format!("page/{path}")));
    }
    assert!(!at.path("site/.stage").exists());
    let index = Index::parse(&at.bytes(&format!("site/{INDEX}"))).unwrap();
    assert_eq!(index.bundles.len(), 2);
    for (entry, source) in index.bundles.iter().zip(["new", "bundle"]) {
        let read = |path: &str| at.bytes(&format!("site/{}/{path}", entry.path));
        let manifest = Manifest::parse(&read(MANIFEST)).unwrap();
        assert_eq!(manifest.title, entry.title);
        for file in manifest.files() {
            manifest.verify(&file.path, &read(&file.path)).unwrap();
            assert_eq!(read(&file.path), at.bytes(&format!("{source}/{}", file.path)));
        }
    }

    // It is replaced only when asked, and only where it is a site.
    let again = [&export[..], &["--overwrite"]].concat();
    at.akin(&export).expect_code(1);
    at.akin(&again).expect_code(0);
    assert!(!at.path("site/bundles").exists());
    at.write("site/notes.txt", "mine");
    at.akin(&again).expect_code(1).expect_stderr("notes.txt");
    assert_eq!(at.read("site/notes.txt"), "mine");
}
