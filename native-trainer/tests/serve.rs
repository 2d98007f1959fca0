//! `akin serve` as a process: what it needs, what it installs, and what it shows.

mod workplace;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use workplace::{Answer, Workplace};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// `akin serve` with the gallery of groceries, where nobody can be asked.
fn serve_command(at: &Workplace) -> Command {
    let galleries = root().join("www/galleries");
    let mut command = at.command(&["serve", galleries.to_str().unwrap(), "--port", "0"]);
    command.stdin(Stdio::null());
    command
}

fn serve(at: &Workplace, arguments: &[&str]) -> Answer {
    Answer::of(serve_command(at).args(arguments).output().unwrap())
}

/// A server, which ends with the test.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    /// Waits for the address that it prints.
    fn start(command: &mut Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address =
            line.trim().strip_prefix("http://").expect("an address").trim_end_matches('/').to_owned();
        Self { process, address }
    }

    /// Ends it. Returns what it said on stderr.
    fn end(mut self) -> String {
        self.process.kill().unwrap();
        let mut said = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        said
    }
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

#[cfg(all(unix, not(feature = "page")))]
mod in_a_source_tree {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A source tree in which nothing is built, with stand-ins for the programs that build: what they would install is
    /// missing, and each writes into `log` how it was called.
    fn source_tree() -> Workplace {
        let at = Workplace::empty();
        for folder in ["www", "web/engine", "programs"] {
            fs::create_dir_all(at.path(folder)).unwrap();
        }
        at.write("www/index.html", "");
        at.write("web/engine/Cargo.toml", "");
        at.write("www/package-lock.json", "{}");
        for (name, text) in [
            ("rustc", "echo /nowhere"),
            ("rustup", ""),
            ("npm", "mkdir -p node_modules && touch node_modules/.package-lock.json"),
            (
                "node",
                "[ $1 = --version ] && exec echo v20.15.0; mkdir dist-quick && echo built >dist-quick/index.html",
            ),
        ] {
            let path = at.path(&format!("programs/{name}"));
            let log = at.path("log");
            fs::write(&path, format!("#!/bin/sh\necho {name} $@ >>{}\n{text}\n", log.display())).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        at
    }

    /// These programs first.
    fn path(at: &Workplace) -> String {
        format!("{}:/usr/bin:/bin", at.path("programs").display())
    }

    #[test]
    fn it_says_what_it_installs_and_builds_the_page_without_asking() {
        let at = source_tree();
        let server = Server::start(serve_command(&at).env("PATH", path(&at)).stderr(Stdio::piped()));
        assert_eq!(get(&server, "/", ""), b"built\n");
        let installed = at.read("log");
        for call in ["rustup target add wasm32-unknown-unknown", "npm ci", "node scripts/page.mjs --quick"] {
            assert!(installed.contains(call), "no {call:?} in {installed}");
        }
        let said = server.end();
        let announced = said
            .find("First it installs the Rust target wasm32-unknown-unknown into the toolchain, with rustup");
        let began = said.find("running rustup target add");
        assert!(
            said.starts_with("Building the page of ") && announced.is_some() && announced < began,
            "{said}"
        );

        let again = Server::start(serve_command(&at).env("PATH", "").stderr(Stdio::piped()));
        assert_eq!(get(&again, "/", ""), b"built\n", "the page is up to date");
    }

    #[test]
    fn a_build_that_fails_is_an_error_with_its_program() {
        let at = source_tree();
        at.write("programs/npm", "#!/bin/sh\n[ $1 = --version ]\n");
        let answer = Answer::of(serve_command(&at).env("PATH", path(&at)).output().unwrap());
        answer.expect_code(1).expect_stderr("npm failed").expect_stderr("access to its registry");
    }

    #[test]
    fn an_old_node_is_refused_before_anything_is_installed() {
        let at = source_tree();
        at.write("programs/node", "#!/bin/sh\necho v18.19.0\n");
        let answer = Answer::of(serve_command(&at).env("PATH", path(&at)).output().unwrap());
        answer
            .expect_code(1)
            .expect_stderr("Node is v18.19.0, which is too old")
            .expect_stderr("install Node 20.15 or newer");
        assert!(!at.read("log").contains("rustup"), "{}", at.read("log"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn it_does_not_ask_on_a_terminal_either() {
        let at = source_tree();
        at.write("programs/node", "#!/bin/sh\n[ $1 = --version ] && echo v20.15.0\n");
        let (akin, galleries) = (env!("CARGO_BIN_EXE_akin"), root().join("www/galleries"));
        let line = format!("PATH={} exec {akin} serve {} --port 0", path(&at), galleries.display());
        // The input ends at once.
        at.on_a_terminal(&line, "")
            .expect_code(1)
            .expect_stdout("Building the page of ")
            .expect_stdout("running node scripts/page.mjs --quick")
            .expect_stdout("node failed");
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
#[test]
fn the_page_inside_needs_neither_node_nor_a_source_tree() {
    use std::fs;

    let at = Workplace::empty();
    let server = Server::start(serve_command(&at).env("PATH", ""));
    let dist = root().join("www/dist");
    for path in ["index.html", "akin-web_bg.wasm", "akin-web.js", "build/page.js", "build/mark.svg"] {
        let file = fs::read(dist.join(path)).unwrap();
        assert_eq!(get(&server, &format!("/{path}"), ""), file, "{path}");
    }
    assert_eq!(get(&server, "/", ""), fs::read(dist.join("index.html")).unwrap());
    let wasm = get(&server, "/akin-web_bg.wasm", "Accept-Encoding: gzip\r\n");
    assert_eq!(wasm, fs::read(dist.join("akin-web_bg.wasm.gz")).unwrap());
}
