//! `akin data fetch` from a server on this machine that cuts downloads and changes files.

mod workplace;

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use workplace::Workplace;

/// A server of one file under every name.
#[derive(Clone)]
struct Server {
    address: String,
    state: Arc<Mutex<State>>,
}

struct State {
    content: Vec<u8>,
    tag: &'static str,
    /// What the next answers to GET are; whole ones after them.
    faults: Vec<Fault>,
    /// The lines of every request.
    requests: Vec<Vec<String>>,
}

#[derive(Clone, Copy)]
enum Fault {
    /// The connection is closed after this number of bytes.
    Cut(usize),
    /// The status 503.
    Busy,
}

impl Server {
    fn start(content: &[u8], faults: &[Fault]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let state =
            State { content: content.to_vec(), tag: "\"one\"", faults: faults.to_vec(), requests: vec![] };
        let server = Self { address, state: Arc::new(Mutex::new(state)) };
        let answering = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                answering.answer(stream.unwrap());
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
        let mut answer = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nETag: {tag}\r\nConnection: close\r\n\
             Content-Range: bytes {start}-{}/{all}\r\n\r\n",
            all - 1
        )
        .into_bytes();
        if is_get {
            let sent = if let Some(Fault::Cut(bytes)) = fault { bytes.min(length) } else { length };
            answer.extend_from_slice(&body[..sent]);
        }
        stream.write_all(&answer).unwrap();
    }

    /// The values of a header in all requests for the file itself.
    fn asked(&self, name: &str) -> Vec<String> {
        let state = self.state.lock().unwrap();
        let gets = state.requests.iter().filter(|request| request[0].starts_with("GET"));
        let value = |line: &String| Some(line.to_lowercase().strip_prefix(&format!("{name}: "))?.to_owned());
        gets.map(|request| request.iter().find_map(value).unwrap_or_default()).collect()
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
