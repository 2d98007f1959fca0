//! What a client sends to `akin serve`: addresses, `Host`, `Origin` and all else, as bytes.

#![no_main]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use akin_server::bundles::Bundles;
use akin_server::page::Page;
use akin_server::serve::{Hosts, Site, answer_all, http};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// What no answer holds: a text in files that are hidden, or outside of the folders that are served.
const SECRET: &[u8] = b"4f1c9e0d7ab2";

struct World {
    _folder: TempDir,
    site: Arc<Site>,
    runtime: tokio::runtime::Runtime,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |path: &str, bytes: &[u8]| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("it is in the folder")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    };
    for (path, bytes) in [
        (
            "page/index.html",
            &b"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'\">"[..],
        ),
        ("page/docs/index.html", b"the documentation"),
        ("page/script.js", b"script"),
        ("page/script.js.gz", b"compressed"),
        ("page/.hidden", SECRET),
        ("page/.stage/file", SECRET),
        ("secret", SECRET),
    ] {
        write(path, bytes);
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink("../secret", folder.path().join("page/link")).expect("a link");
    let gallery = Path::new(env!("CARGO_MANIFEST_DIR")).join("../www/galleries/groceries");
    let bundles = Bundles::open(&[PathBuf::from(gallery)]).expect("it is a bundle");
    let page = Page::Folder(folder.path().join("page"));
    let site = Arc::new(Site::new(page, None, bundles, Hosts::default()).expect("it has a page"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .expect("a runtime");
    World { _folder: folder, site, runtime }
});

fn holds_secret(bytes: &[u8]) -> bool {
    bytes.windows(SECRET.len()).any(|part| part == SECRET)
}

fuzz_target!(|bytes: &[u8]| {
    // An answer repeats a name that it refuses, and the fuzzer finds the secret in this program.
    if holds_secret(bytes) {
        return;
    }
    let World { site, runtime, .. } = &*WORLD;
    let answer = runtime.block_on(async {
        let (mut client, server) = tokio::io::duplex(1 << 16);
        let http = http(Duration::from_secs(60));
        let talk = async {
            // The server may end the connection before it has read all.
            let _ = client.write_all(bytes).await;
            let _ = client.shutdown().await;
            let mut answer = Vec::new();
            let _ = client.read_to_end(&mut answer).await;
            answer
        };
        tokio::join!(talk, answer_all(&http, Arc::clone(site), server)).0
    });
    assert!(!holds_secret(&answer), "a hidden file was sent");
    let head = answer.split(|&byte| byte == b'\n').next().unwrap_or_default();
    if head.starts_with(b"HTTP/1.1 20") || head.starts_with(b"HTTP/1.1 30") {
        let asked = bytes.to_ascii_lowercase();
        let names = [&b"localhost"[..], b"127.", b"[::"];
        let is_local = names.iter().any(|name| asked.windows(name.len()).any(|part| part == *name));
        assert!(is_local, "an answer under a foreign name");
    }
    if !answer.is_empty() && !head.starts_with(b"HTTP/1.1 400") && !head.starts_with(b"HTTP/1.1 431") {
        let text = answer.to_ascii_lowercase();
        let policy = b"content-security-policy: ";
        assert!(text.windows(policy.len()).any(|part| part == policy), "an answer without a policy");
    }
});
