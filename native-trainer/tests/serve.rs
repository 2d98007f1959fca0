//! `akin serve` as a process: what it needs, what it asks for, and what it shows.

mod workplace;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use workplace::{Answer, Workplace};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The answer of `akin serve` with the gallery of groceries, where nobody can be asked.
fn serve(at: &Workplace, arguments: &[&str]) -> Answer {
    let galleries = root().join("www/galleries");
    let mut command = at.command(&["serve", galleries.to_str().unwrap(), "--port", "0"]);
    command.args(arguments).stdin(Stdio::null()).env("AKIN_CACHE", at.path("cache"));
    Answer::of(command.output().unwrap())
}

#[cfg(not(feature = "page"))]
#[test]
fn without_a_page_and_a_source_tree_it_says_where_to_get_one() {
    let at = Workplace::empty();
    serve(&at, &[])
        .expect_code(1)
        .expect_stderr("built without the page, and the current directory is not in its source tree")
        .expect_stderr("native-trainer/install");
    assert!(at.folder().read_dir().unwrap().next().is_none(), "nothing is built or installed");
}

#[cfg(not(feature = "page"))]
#[test]
fn it_does_not_build_the_page_of_a_source_tree_without_being_asked() {
    let at = source_tree();
    serve(&at, &[])
        .expect_code(1)
        .expect_stderr("the page of www is not built yet; building it takes about 3 minutes")
        .expect_stderr("installs trunk 0.21.14 into")
        .expect_stderr("the page's packages into")
        .expect_stderr("run `akin page`");
    assert!(!at.path("cache").exists() && !at.path("www/node_modules").exists(), "nothing is installed");
}

/// A source tree in which nothing is built.
#[cfg(not(feature = "page"))]
fn source_tree() -> Workplace {
    let at = Workplace::empty();
    for folder in ["www", "web/engine"] {
        std::fs::create_dir_all(at.path(folder)).unwrap();
    }
    at.write("www/Trunk.toml", "");
    at.write("web/engine/Cargo.toml", "");
    at.write("www/package-lock.json", "{}");
    at
}

#[cfg(all(target_os = "linux", not(feature = "page")))]
mod on_a_terminal {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// What the user sees of `akin serve` on a terminal, and whether it began to install something. The user types
    /// `keys`, and then ends the input.
    fn answered(keys: &str) -> (Answer, bool) {
        let at = source_tree();
        let programs = at.path("programs");
        fs::create_dir(&programs).unwrap();
        let program = |name: &str, text: String| {
            let path = programs.join(name);
            fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        program("rustc", format!("echo {}", programs.display()));
        program("cargo", format!("echo \"$@\" >>{}; exit 1", at.path("cargo.log").display()));
        let line = format!(
            "PATH={} AKIN_CACHE={} exec {} serve {} --port 0",
            programs.display(),
            at.path("cache").display(),
            env!("CARGO_BIN_EXE_akin"),
            root().join("www/galleries").display()
        );
        let answer = at.on_a_terminal(&line, keys).expect_code(1);
        let log = fs::read_to_string(at.path("cargo.log")).unwrap_or_default();
        (answer, log.starts_with("install trunk"))
    }

    #[test]
    fn it_builds_the_page_if_the_user_agrees() {
        for keys in ["y\n", "Yes\n"] {
            let (answer, installs) = answered(keys);
            let answer = answer
                .expect_stdout("the page of www is not built yet; building it takes about 3 minutes")
                .expect_stdout("First it installs:")
                .expect_stdout("Build it now? Type y and press Enter; anything else ends akin.")
                .expect_stdout("installing trunk 0.21.14");
            assert!(installs, "{}", answer.stdout);
        }
    }

    #[test]
    fn it_ends_without_a_build_if_the_user_does_not_agree() {
        for keys in ["n\n", "\n", "", "yellow\n"] {
            let (answer, installs) = answered(keys);
            let answer = answer
                .expect_stdout("Build it now?")
                .expect_stdout("the page of www is not built yet")
                .expect_stdout("run `akin page`");
            assert!(!installs && !answer.stdout.contains("installing"), "{keys:?}: {}", answer.stdout);
        }
    }
}

#[test]
fn a_wrong_host_is_refused() {
    let at = Workplace::empty();
    let refuse = |host: &str| serve(&at, &["--host", host]).expect_code(1);
    refuse("http://lab").expect_stderr("`--host http://lab` is neither a name nor an address");
    // An address for documentation, which no machine has.
    refuse("192.0.2.1").expect_stderr("192.0.2.1 is not an address of this machine");
}

#[cfg(feature = "page")]
mod page_inside {
    use std::fs;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpStream;
    use std::process::Child;

    use super::*;

    struct Server {
        process: Child,
        address: String,
    }

    impl Drop for Server {
        fn drop(&mut self) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }

    /// The body of the answer to one request.
    fn get(server: &Server, path: &str, headers: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|part| part == b"\r\n\r\n").unwrap() + 4;
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer[..end]));
        answer.split_off(end)
    }

    #[test]
    fn it_needs_neither_node_nor_a_source_tree() {
        let at = Workplace::empty();
        let galleries = root().join("www/galleries");
        let mut command = at.command(&["serve", galleries.to_str().unwrap(), "--port", "0"]);
        let mut process = command.env("PATH", "").stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().trim_start_matches("http://").trim_end_matches('/').to_owned();
        let server = Server { process, address };

        let dist = root().join("www/dist");
        for path in ["index.html", "akin-web_bg.wasm", "akin-web.js", "build/page.js", "build/mark.svg"] {
            let file = fs::read(dist.join(path)).unwrap();
            assert_eq!(get(&server, &format!("/{path}"), ""), file, "{path}");
        }
        assert_eq!(get(&server, "/", ""), fs::read(dist.join("index.html")).unwrap());
        let wasm = get(&server, "/akin-web_bg.wasm", "Accept-Encoding: gzip\r\n");
        assert_eq!(wasm, fs::read(dist.join("akin-web_bg.wasm.gz")).unwrap());
    }
}
