//! `akin data fetch` from a server on this machine that cuts downloads and changes files.

mod workplace;

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use workplace::Workplace;

/// A server of one file under every name.
#[derive(Clone)]
struct Server {
    address: String,
    state: Arc<Mutex<State>>,
    /// Passed once when an answer stalls, and once more before it goes on.
    gate: Arc<Barrier>,
}

struct State {
    content: Vec<u8>,
    tag: &'static str,
    framing: Framing,
    /// What the next answers to GET are; whole ones after them.
    faults: Vec<Fault>,
    /// The lines of every request.
    requests: Vec<Vec<String>>,
}

/// How a client knows where an answer ends.
#[derive(Clone, Copy)]
enum Framing {
    /// By its length.
    Length,
    /// By the last chunk.
    Chunks,
    /// By the end of the connection.
    Close,
}

#[derive(Clone, Copy)]
enum Fault {
    /// The answer stops in the middle, and goes on later.
    Stall,
    /// The connection is closed after this number of bytes.
    Cut(usize),
    /// The status 503.
    Busy,
}

impl Server {
    fn start(content: &[u8], faults: &[Fault]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let state = State {
            content: content.to_vec(),
            tag: "\"one\"",
            framing: Framing::Length,
            faults: faults.to_vec(),
            requests: vec![],
        };
        let server = Self { address, state: Arc::new(Mutex::new(state)), gate: Arc::new(Barrier::new(2)) };
        let answering = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let answering = answering.clone();
                thread::spawn(move || answering.answer(stream.unwrap()));
            }
        });
        server
    }

    fn answer(&self, mut stream: TcpStream) {
        let lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let request: Vec<String> = lines.map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
        if request.is_empty() {
            return;
        }
        let mut state = self.state.lock().unwrap();
        state.requests.push(request.clone());
        let header = |name: &str| {
            let prefix = format!("{name}: ");
            request.iter().find_map(|line| line.to_lowercase().strip_prefix(&prefix).map(str::to_owned))
        };
        let is_get = request[0].starts_with("GET");
        let fault = if is_get && !state.faults.is_empty() { Some(state.faults.remove(0)) } else { None };
        let (start, status) = match header("range")
            .filter(|_| header("if-range").as_deref() == Some(state.tag))
        {
            Some(range) => (range["bytes=".len()..range.len() - 1].parse().unwrap(), "206 Partial Content"),
            None => (0, "200 OK"),
        };
        let status = if matches!(fault, Some(Fault::Busy)) { "503 Busy" } else { status };
        let body = &state.content[start..];
        let (tag, all, length) = (state.tag, state.content.len(), body.len());
        let framing = match state.framing {
            Framing::Length => format!("Content-Length: {length}\r\n"),
            Framing::Chunks if is_get => "Transfer-Encoding: chunked\r\n".to_owned(),
            _ => String::new(),
        };
        let mut answer = format!(
            "HTTP/1.1 {status}\r\n{framing}ETag: {tag}\r\nConnection: close\r\n\
             Content-Range: bytes {start}-{}/{all}\r\n\r\n",
            all - 1
        )
        .into_bytes();
        let mut rest = Vec::new();
        if is_get {
            let is_chunked = matches!(state.framing, Framing::Chunks);
            if is_chunked {
                answer.extend_from_slice(format!("{length:x}\r\n").as_bytes());
            }
            let sent = match fault {
                Some(Fault::Cut(bytes)) => bytes.min(length),
                Some(Fault::Stall) => length / 2,
                _ => length,
            };
            answer.extend_from_slice(&body[..sent]);
            if matches!(fault, Some(Fault::Stall)) {
                rest.extend_from_slice(&body[sent..]);
            } else if is_chunked && sent == length {
                answer.extend_from_slice(b"\r\n0\r\n\r\n");
            }
        }
        drop(state);
        stream.write_all(&answer).unwrap();
        if !rest.is_empty() {
            self.gate.wait();
            self.gate.wait();
            stream.write_all(&rest).unwrap();
        }
    }

    /// The values of a header in all requests for the file itself.
    fn asked(&self, name: &str) -> Vec<String> {
        let state = self.state.lock().unwrap();
        let gets = state.requests.iter().filter(|request| request[0].starts_with("GET"));
        let value = |line: &String| Some(line.to_lowercase().strip_prefix(&format!("{name}: "))?.to_owned());
        gets.map(|request| request.iter().find_map(value).unwrap_or_default()).collect()
    }

    fn frame(&self, framing: Framing) {
        self.state.lock().unwrap().framing = framing;
    }

    fn replace(&self, content: &[u8]) {
        let mut state = self.state.lock().unwrap();
        (state.content, state.tag) = (content.to_vec(), "\"two\"");
    }
}

/// A data set without a published checksum.
const AIRCRAFT: [&str; 4] = ["data", "fetch", "aircraft", "--yes"];
const FILE: &str = "data/aircraft/fgvc-aircraft-2013b.tar.gz";

fn content(seed: usize) -> Vec<u8> {
    (0..300_000).map(|byte| (byte * seed % 251) as u8).collect()
}

fn fetch(at: &Workplace, server: &Server) -> workplace::Answer {
    at.akin(&[&AIRCRAFT[..], &["--from", &server.address]].concat())
}

/// The files in the folder of the data set.
fn files(at: &Workplace, name: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(at.path("data").join(name)) else { return vec![] };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_data_set_is_downloaded_after_its_size_is_said() {
    let (at, server) = (Workplace::empty(), Server::start(&content(7), &[]));
    at.akin(&["data", "fetch", "aircraft", "--from", &server.address])
        .expect_code(1)
        .expect_stderr("1 file of 300 kB to download")
        .expect_stderr("pass `--yes`");
    assert_eq!(files(&at, "aircraft"), Vec::<String>::new());
    fetch(&at, &server).expect_code(0).expect_stderr("tar -xzf fgvc-aircraft-2013b.tar.gz");
    assert!(at.bytes(FILE) == content(7));
    assert_eq!(files(&at, "aircraft").len(), 1, "no part is left");
    fetch(&at, &server).expect_code(0).expect_stderr("Found");
    assert_eq!(server.asked("range").len(), 1, "what is there is not downloaded again");
}

#[test]
fn a_download_that_is_cut_continues_where_it_was() {
    let (at, server) = (Workplace::empty(), Server::start(&content(7), &[Fault::Cut(100_000)]));
    fetch(&at, &server).expect_code(0).expect_stderr("the download was cut");
    assert!(at.bytes(FILE) == content(7));
    assert_eq!(server.asked("range"), ["", "bytes=100000-"]);
    assert_eq!(server.asked("if-range"), ["", "\"one\""]);
}

#[test]
fn two_commands_do_not_download_the_same_file_at_once() {
    let (at, server) = (Workplace::empty(), Server::start(&content(7), &[Fault::Stall]));
    let mut first = at.command(&[&AIRCRAFT[..], &["--from", &server.address]].concat());
    let first = first.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    server.gate.wait();
    fetch(&at, &server).expect_code(1).expect_stderr("is writing to data/aircraft").expect_stderr("hint: ");
    server.gate.wait();
    workplace::Answer::of(first.wait_with_output().unwrap()).expect_code(0);
    assert!(at.bytes(FILE) == content(7));
    assert_eq!(server.asked("range"), [""], "it was downloaded once");
    assert_eq!(std::fs::read_dir(at.path("data")).unwrap().count(), 1, "the lock is gone");
}

#[test]
fn an_answer_of_unknown_length_is_whole_only_if_its_end_is_marked() {
    let (at, server) = (Workplace::empty(), Server::start(&content(7), &[Fault::Cut(100_000)]));
    server.frame(Framing::Close);
    fetch(&at, &server).expect_code(1).expect_stderr("does not say how large the file is");
    assert!(!at.path(FILE).exists());

    let (at, server) = (Workplace::empty(), Server::start(&content(7), &[Fault::Cut(100_000)]));
    server.frame(Framing::Chunks);
    fetch(&at, &server).expect_code(0).expect_stderr("the download was cut");
    assert!(at.bytes(FILE) == content(7));
}

/// Makes operations on files fail, one in each download, and tries again.
#[cfg(all(unix, debug_assertions))]
fn survive_faults(every: bool) {
    let kinds = ["interrupted", "short", "full", "io", "denied", "terminated", "killed"];
    let server = Server::start(&content(7), &[]);
    let mut injected = 0;
    for operation in 1.. {
        let kinds = if every { &kinds[..] } else { &kinds[operation % kinds.len()..][..1] };
        let mut reached = 0;
        for kind in kinds {
            let at = Workplace::empty();
            let mut command = at.command(&[&AIRCRAFT[..], &["--from", &server.address]].concat());
            let output = command.env("AKIN_FAULT", format!("{kind} {operation}")).output().unwrap();
            let answer = workplace::Answer::of(output);
            reached += usize::from(answer.stderr.contains("fault: "));
            if answer.code == Some(0) {
                assert!(at.bytes(FILE) == content(7), "{kind} {operation}");
            } else if answer.code == Some(1) {
                assert!(answer.stderr.contains("hint: "), "{}", answer.stderr);
            }
            fetch(&at, &server).expect_code(0);
            assert!(at.bytes(FILE) == content(7), "{kind} {operation}");
        }
        injected += reached;
        if reached == 0 {
            break;
        }
    }
    assert!(injected > 7, "only {injected}");
    println!("figure: faults in `akin data fetch`, injected and survived: {injected}");
}

#[cfg(all(unix, debug_assertions))]
#[test]
fn a_download_survives_faults() {
    survive_faults(false);
}

#[cfg(all(unix, debug_assertions))]
#[test]
#[ignore = "takes long; tests/full runs it"]
fn a_download_survives_every_fault() {
    survive_faults(true);
}

#[test]
fn a_later_command_continues_a_download() {
    let (at, server) = (Workplace::empty(), Server::start(&content(7), &[Fault::Cut(100_000), Fault::Busy]));
    fetch(&at, &server).expect_code(1).expect_stderr("the status 503");
    assert!(!files(&at, "aircraft").contains(&"fgvc-aircraft-2013b.tar.gz".to_owned()));
    fetch(&at, &server).expect_code(0);
    assert!(at.bytes(FILE) == content(7));
    assert_eq!(server.asked("range").last().unwrap(), "bytes=100000-");
}

#[test]
fn a_file_that_has_changed_on_the_server_is_downloaded_again() {
    let (at, server) = (Workplace::empty(), Server::start(&content(7), &[Fault::Cut(100_000), Fault::Busy]));
    fetch(&at, &server).expect_code(1);
    server.replace(&content(11));
    fetch(&at, &server).expect_code(0).expect_stderr("has changed on the server; starting again");
    assert!(at.bytes(FILE) == content(11));
}

#[test]
fn a_file_with_another_checksum_than_the_published_one_is_refused() {
    let (at, server) = (Workplace::empty(), Server::start(&content(7), &[]));
    at.akin(&["data", "fetch", "omniglot", "--yes", "--from", &server.address])
        .expect_code(1)
        .expect_stderr("and not 68d2efa1b9178cc56df9314c21c6e718 as published");
    assert_eq!(files(&at, "omniglot"), Vec::<String>::new());
}

#[test]
fn a_data_set_with_terms_to_accept_is_refused_with_its_page() {
    let at = Workplace::empty();
    at.akin(&["data", "fetch", "nabirds"])
        .expect_code(1)
        .expect_stderr("the terms of the Cornell Lab")
        .expect_stderr("https://dl.allaboutbirds.org/nabirds");
    at.akin(&["data", "fetch", "csv"]).expect_code(1).expect_stderr("your own data");
    at.akin(&["data", "fetch", "air"]).expect_code(1).expect_stderr("did you mean `aircraft`?");
    at.akin(&["data", "fetch", "aircraft", "--from", "ftp://x"])
        .expect_code(1)
        .expect_stderr("is not an address");
    at.akin(&["data", "fetch", "aircraft", "--from", "http://127.0.0.1:9"])
        .expect_code(1)
        .expect_stderr("cannot be reached");
}
