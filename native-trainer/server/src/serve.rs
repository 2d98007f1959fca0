//! The local server: the page at `/`, its galleries at `/bundle/` and `/bundles/NAME/`, and their index at
//! `/bundles.json`.

mod answer;
mod connections;
mod hosts;

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use akin_base::problem::{Advise, problem};
use akin_base::terminal;
use akin_base::threads::RAISE_LIMIT;
use anyhow::Result;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Handle, Runtime};

use crate::api::Api;
use crate::bundles::Bundles;
use crate::onnxruntime::OnnxRuntime;
use crate::page::Page;

use self::connections::{Connections, Limits};

pub use self::answer::Site;
pub use self::hosts::{Host, Hosts};

/// Headers of a request in bytes. Those of browsers have about 1 kB.
const HEADER_BYTES: usize = 32 << 10;

/// Listens on a port. 0 chooses a free one. Without `--host`, other machines cannot reach it.
pub fn listen(hosts: &Hosts, port: u16) -> Result<TcpListener> {
    let address = hosts.address();
    TcpListener::bind((address, port)).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => problem(
            format!("port {port} is in use by another program"),
            format!("try `--port {}`, or `--port 0` for any free port", port.checked_add(1).unwrap_or(8080)),
        ),
        io::ErrorKind::AddrNotAvailable => problem(
            format!("{address} is not an address of this machine"),
            "give one of its addresses with `--host`, or `--host 0.0.0.0` for all of them",
        ),
        _ => problem(format!("port {port} cannot be used: {error}"), "try `--port 0` for any free port"),
    })
}

/// A server, which answers in threads of its own until the program ends.
#[derive(Debug)]
pub struct Server {
    runtime: Handle,
    site: Arc<Site>,
    address: String,
}

impl Server {
    /// Starts to answer. Prints the address on stdout and an explanation on stderr.
    pub fn start(
        listener: TcpListener,
        page: Page,
        onnxruntime: Option<OnnxRuntime>,
        bundles: Bundles,
        hosts: Hosts,
        api: Option<Api>,
    ) -> Result<Self> {
        let socket = listener.local_addr()?;
        let site = Arc::new(Site::new(page, onnxruntime, bundles, hosts)?.with_api(api));
        let runtime = runtime()?;
        let handle = runtime.handle().clone();
        let accepting = accept(asynchronous(&runtime, listener)?, Arc::clone(&site), Limits::default());
        let too_few = || "the thread that answers cannot be started".into();
        thread::Builder::new().spawn(move || runtime.block_on(accepting)).advise(too_few, RAISE_LIMIT)?;
        let address = match socket.ip().is_unspecified() {
            true => format!("http://localhost:{}/", socket.port()),
            false => format!("http://{socket}/"),
        };
        terminal::print(&address)?;
        if socket.ip().is_loopback() {
            terminal::say(
                "Open this address in a browser on this machine; other machines cannot reach it. Browsers allow WebGPU,\n\
                 which is fast, only for pages from localhost or over HTTPS. Press Ctrl-C to stop.",
            );
        } else {
            terminal::say(format_args!(
                "Everybody who can reach this machine at {} can open the page and see the galleries. Browsers on other\n\
                 machines compute on the CPU: they allow WebGPU only over HTTPS. Press Ctrl-C to stop.",
                socket.ip()
            ));
        }
        Ok(Self { runtime: handle, site, address })
    }

    /// The address of the page.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Shows these bundles from now on instead of the earlier ones.
    pub fn show(&self, bundles: Bundles) {
        self.site.show(bundles);
    }

    /// Waits for Ctrl-C.
    pub fn run(self) -> Result<()> {
        Ok(self.runtime.block_on(tokio::signal::ctrl_c())?)
    }
}

/// The listener in the form that a runtime uses.
fn asynchronous(runtime: &Runtime, listener: TcpListener) -> io::Result<tokio::net::TcpListener> {
    let _guard = runtime.enter();
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}

/// Answers on one thread. Files are read in other threads, which stay: each keeps memory of its own, so that a few of
/// them hold it flat, and where the system starts no more of them, tokio makes do with those that there are.
///
/// # Errors
///
/// A system that starts no more threads.
fn runtime() -> Result<Runtime> {
    const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);
    let too_few = || "the thread that reads files cannot be started".into();
    // tokio would panic.
    let probe = thread::Builder::new().spawn(|| ()).advise(too_few, RAISE_LIMIT)?;
    let _ = probe.join();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.max_blocking_threads(8).thread_keep_alive(FOR_EVER).enable_all().build()?;
    drop(runtime.spawn_blocking(|| ()));
    Ok(runtime)
}

/// Takes connections and answers their requests, for ever.
async fn accept(listener: tokio::net::TcpListener, site: Arc<Site>, limits: Limits) {
    let http = http(limits.header);
    let connections = Connections::new(limits);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // The client has gone, or this process or the machine has no descriptor left for a while.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        connections.make_room().await;
        // Answers are short or large: waiting for more to send gains nothing.
        let _ = stream.set_nodelay(true);
        let (http, site) = (http.clone(), Arc::clone(&site));
        connections.start(stream, async move |stream| answer_all(&http, site, stream).await);
    }
}

/// The rules for reading requests: how long a client may take for the header of one, and how long a header may be.
pub fn http(time_for_header: Duration) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(time_for_header).max_buf_size(HEADER_BYTES);
    http
}

/// Answers the requests of a connection until it ends.
pub async fn answer_all<S>(http: &http1::Builder, site: Arc<Site>, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let answer = service_fn(move |request| {
        let site = Arc::clone(&site);
        async move { site.answer(request).await }
    });
    // An error is one of the client, who has gone or sent no HTTP.
    let _ = http.serve_connection(TokioIo::new(stream), answer).await;
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpStream;
    use std::path::PathBuf;
    use std::time::SystemTime;

    use akin_core::bundle::Index;
    use tempfile::TempDir;

    use super::*;
    use crate::bundles::fixture::write_fruit;

    const POLICY: &str = "default-src 'none'; script-src 'self'";

    /// A server of a page and two bundles, which ends with the test.
    struct Server {
        folder: TempDir,
        port: u16,
        site: Arc<Site>,
    }

    fn write(folder: &TempDir, path: &str, text: &str) {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// An answer: its head in lower case, and its body.
    struct Answer {
        head: String,
        body: Vec<u8>,
    }

    impl Server {
        fn start() -> Self {
            Self::with(Limits::default(), &[])
        }

        fn with(limits: Limits, hosts: &[&str]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let page = folder.path().join("page");
            let galleries = ["fruit", "Other fruit"].map(|name| folder.path().join(name));
            galleries.iter().for_each(|gallery| write_fruit(gallery));
            let html = format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">the page");
            for (path, text) in [
                ("page/index.html", &*html),
                ("page/docs/index.html", "the documentation"),
                ("page/akin-web_bg.wasm", "wasm"),
                ("page/akin-web.js", "script"),
                ("page/.stage/hidden", "secret"),
                ("fruit/.akin.json", "secret"),
                ("secret", "secret"),
            ] {
                write(&folder, path, text);
            }
            let hosts = Hosts::new(hosts.iter().map(|host| host.parse().unwrap()).collect()).unwrap();
            let listener = listen(&Hosts::default(), 0).unwrap();
            let port = listener.local_addr().unwrap().port();
            let site =
                Site::new(Page::Folder(page), None, Bundles::open(&galleries).unwrap(), hosts).unwrap();
            let site = Arc::new(site);
            let server = Self { folder, port, site: Arc::clone(&site) };
            thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                let listener = asynchronous(&runtime, listener).unwrap();
                runtime.block_on(accept(listener, site, limits));
            });
            server
        }

        fn path(&self, path: &str) -> PathBuf {
            self.folder.path().join(path)
        }

        fn write(&self, path: &str, text: &str) {
            write(&self.folder, path, text);
        }

        fn connect(&self) -> TcpStream {
            TcpStream::connect(("127.0.0.1", self.port)).unwrap()
        }

        fn get(&self, path: &str) -> Answer {
            self.ask("GET", path, "")
        }

        /// With more headers, each ended by a line break.
        fn get_with(&self, path: &str, headers: &str) -> Answer {
            self.ask("GET", path, headers)
        }

        fn ask(&self, method: &str, path: &str, headers: &str) -> Answer {
            let host = if headers.starts_with("Host:") { "" } else { "Host: localhost\r\n" };
            self.send(&format!("{method} {path} HTTP/1.1\r\n{host}Connection: close\r\n{headers}\r\n"))
        }

        fn send(&self, request: &str) -> Answer {
            let mut stream = self.connect();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).unwrap();
            let end = answer.windows(4).position(|part| part == b"\r\n\r\n").unwrap() + 4;
            let head = String::from_utf8(answer[..end].to_vec()).unwrap().to_lowercase();
            Answer { head, body: answer[end..].to_vec() }
        }
    }

    impl Answer {
        fn status(&self) -> u16 {
            self.head[9..12].parse().unwrap()
        }

        /// The value of a header, or nothing.
        fn header(&self, name: &str) -> &str {
            let line = self.head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
            line.unwrap_or_default()
        }

        fn text(&self) -> &str {
            std::str::from_utf8(&self.body).unwrap()
        }
    }

    #[test]
    fn only_the_page_and_the_bundles_are_served() {
        let server = Server::start();
        let page = server.get("/");
        assert_eq!((page.status(), page.header("cache-control")), (200, "no-cache"));
        assert!(page.header("content-type").contains("text/html") && page.text().ends_with("the page"));
        assert_eq!(server.get("/akin-web_bg.wasm").header("content-type"), "application/wasm");
        assert_eq!(server.get("/akin-web.js").header("content-type"), "text/javascript");
        for gallery in ["bundle", "bundles/other-fruit"] {
            let manifest = server.get(&format!("/{gallery}/bundle.json"));
            assert_eq!((manifest.status(), manifest.header("cache-control")), (200, "no-store"));
            assert_eq!(server.get(&format!("/{gallery}/0-test/weights.bpk")).text(), "weights");
        }
        let index = server.get("/bundles.json");
        assert_eq!(index.header("content-type"), "application/json");
        assert_eq!(index.header("cache-control"), "no-store");
        let bundles = Index::parse(&index.body).unwrap().bundles;
        let paths: Vec<&str> = bundles.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(paths, ["bundle", "bundles/other-fruit"]);
        for path in [
            "/nothing",
            "/bundle/nothing",
            "/bundle/../../secret",
            "/bundle/%2e%2e/%2e%2e/secret",
            "/bundle/..%2f..%2fsecret",
            "/bundle//../../secret",
            "/.stage/hidden",
            "/bundle/.akin.json",
            "/bundle/%2eakin.json",
            "/bundles/fruit/bundle.json",
            "//localhost/",
        ] {
            let answer = server.get(path);
            assert_eq!(answer.status(), 404, "{path}");
            assert!(!answer.text().contains("secret"), "{path}");
        }
        assert_eq!(server.ask("HEAD", "/", "").body, b"");
        assert_eq!(server.ask("HEAD", "/", "").header("content-length"), page.body.len().to_string());
    }

    #[test]
    fn bundles_that_come_later_replace_those_that_are_shown() {
        let server = Server::start();
        server.site.show(Bundles::open(&[server.path("Other fruit")]).unwrap());
        let index = Index::parse(&server.get("/bundles.json").body).unwrap();
        assert_eq!(index.bundles.len(), 1);
        assert_eq!(server.get("/bundle/bundle.json").status(), 200);
        assert_eq!(server.get("/bundles/other-fruit/bundle.json").status(), 404);
    }

    #[test]
    fn a_folder_without_a_page_is_not_redirected() {
        let server = Server::start();
        for path in ["/bundle/0-test", "/bundle/0-test/", "/bundle", "/bundle/", "/bundles"] {
            let answer = server.get(path);
            assert_eq!((answer.status(), answer.header("location")), (404, ""), "{path}");
        }
        let answer = server.get("/docs?view=map");
        assert_eq!((answer.status(), answer.header("location")), (308, "./docs/"));
        assert_eq!(server.get("/docs/").text(), "the documentation");
    }

    #[test]
    fn every_answer_keeps_other_sites_out() {
        let server = Server::start();
        let tag = server.get("/akin-web.js").header("etag").to_owned();
        for (status, answer) in [
            (200, server.get("/")),
            (200, server.get("/bundles.json")),
            (206, server.get_with("/bundle/0-test/weights.bpk", "Range: bytes=0-1\r\n")),
            (304, server.get_with("/akin-web.js", &format!("If-None-Match: {tag}\r\n"))),
            (308, server.get("/docs")),
            (403, server.get_with("/", "Origin: https://evil.example.com\r\n")),
            (404, server.get("/nothing")),
            (405, server.ask("DELETE", "/", "")),
            (413, server.ask("POST", "/", "Content-Length: 5\r\n")),
            (421, server.get_with("/", "Host: evil.example.com\r\n")),
        ] {
            assert_eq!(answer.status(), status);
            let policy = answer.header("content-security-policy");
            assert_eq!(policy, format!("{POLICY}; frame-ancestors 'self'"), "{status}");
            assert_eq!(answer.header("x-content-type-options"), "nosniff", "{status}");
            assert_eq!(answer.header("x-frame-options"), "sameorigin", "{status}");
            assert_eq!(answer.header("referrer-policy"), "no-referrer", "{status}");
            assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin", "{status}");
            assert_eq!(answer.header("access-control-allow-origin"), "", "{status}");
        }
    }

    #[test]
    fn another_name_reads_no_gallery_and_learns_how_to_be_allowed() {
        let server = Server::start();
        let answer = server.get_with("/bundle/bundle.json", "Host: evil.example.com\r\n");
        assert_eq!((answer.status(), answer.header("content-type")), (421, "text/plain; charset=utf-8"));
        assert!(answer.text().contains("--host evil.example.com") && !answer.text().contains("sha256"));
        let http_1_0 = server.send("GET /bundle/bundle.json HTTP/1.0\r\n\r\n");
        assert_eq!(http_1_0.status(), 421, "without a name");

        let named = Server::with(Limits::default(), &["akin.example.org"]);
        let answer = named.get_with("/bundle/bundle.json", "Host: akin.example.org\r\n");
        assert_eq!(answer.status(), 200);
        assert_eq!(named.get_with("/", "Host: evil.example.com\r\n").status(), 421);
    }

    #[cfg(unix)]
    #[test]
    fn nothing_outside_of_a_folder_is_served_through_a_link() {
        use std::os::unix::fs::symlink;
        let server = Server::start();
        symlink("../secret", server.path("fruit/link")).unwrap();
        symlink("..", server.path("fruit/up")).unwrap();
        symlink("../secret", server.path("page/link")).unwrap();
        symlink("/dev/zero", server.path("fruit/endless")).unwrap();
        symlink("0-test", server.path("fruit/inside")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(server.path("fruit/pipe")).status().unwrap();
        assert!(made.success());
        for path in ["/bundle/link", "/bundle/up/secret", "/link", "/bundle/endless", "/bundle/pipe"] {
            assert_eq!(server.get(path).status(), 404, "{path}");
        }
        assert_eq!(server.get("/bundle/inside/weights.bpk").text(), "weights");
        // A compressed copy is a file of its own.
        server.write("copy", "secret");
        symlink("../copy", server.path("page/akin-web.js.gz")).unwrap();
        assert_eq!(server.get_with("/akin-web.js", "Accept-Encoding: gzip\r\n").text(), "script");
    }

    #[test]
    fn a_part_is_sent_only_of_the_version_that_it_is_asked_of() {
        let server = Server::start();
        let path = "/bundle/0-test/weights.bpk";
        let whole = server.get(path);
        let tag = whole.header("etag");
        assert_eq!(whole.header("accept-ranges"), "bytes");
        let part = server.get_with(path, &format!("Range: bytes=2-4\r\nIf-Range: {tag}\r\n"));
        assert_eq!((part.status(), part.text()), (206, "igh"));
        assert_eq!(part.header("content-range"), "bytes 2-4/7");
        assert_eq!(part.header("etag"), tag);
        let other = server.get_with(path, "Range: bytes=2-4\r\nIf-Range: \"other\"\r\n");
        assert_eq!((other.status(), other.text()), (200, "weights"));
        assert_eq!(server.get_with(path, "Range: bytes=9-\r\n").status(), 416);
        assert_eq!(server.get_with(path, "Range: bytes=-0\r\n").status(), 416);
        assert_eq!(server.get_with(path, "Range: bytes=-99\r\n").header("content-range"), "bytes 0-6/7");
        for passed_over in ["bytes=5-1", "items=0-1", "bytes=0-1,3-4", "bytes=x"] {
            let answer = server.get_with(path, &format!("Range: {passed_over}\r\n"));
            assert_eq!((answer.status(), answer.text()), (200, "weights"), "{passed_over}");
        }
        assert_eq!(server.ask("HEAD", path, "Range: bytes=0-1\r\n").status(), 200);

        let only = |path: &str, tag: &str| server.get_with(path, &format!("If-Match: {tag}\r\n")).status();
        assert_eq!([only(path, tag), only(path, "*"), only(path, &format!("\"a\", {tag}"))], [200; 3]);
        assert_eq!([only(path, "\"other\""), only(path, &format!("W/{tag}"))], [412; 2]);
        assert_eq!([only("/bundles.json", "*"), only("/bundles.json", "\"other\"")], [200, 412]);

        let known = |tag: &str| server.get_with(path, &format!("If-None-Match: \"a\", {tag}\r\n"));
        assert_eq!((known(tag).status(), known(tag).body.len()), (304, 0));
        assert_eq!(known(&format!("W/{tag}")).status(), 304);
        let file = fs::File::options().append(true).open(server.path("fruit/0-test/weights.bpk")).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(known(tag).status(), 200, "the file has changed");
    }

    #[test]
    fn a_compressed_copy_is_sent_to_those_who_take_it() {
        let server = Server::start();
        server.write("page/akin-web.js.gz", "compressed");
        let copy = server.get_with("/akin-web.js", "Accept-Encoding: br, gzip\r\n");
        assert_eq!((copy.text(), copy.header("content-encoding")), ("compressed", "gzip"));
        assert_eq!(copy.header("content-type"), "text/javascript");
        assert_eq!(copy.header("vary"), "accept-encoding");
        let plain = server.get("/akin-web.js");
        assert_eq!((plain.text(), plain.header("content-encoding")), ("script", ""));
        assert_eq!(plain.header("vary"), "accept-encoding");
        assert_ne!(copy.header("etag"), plain.header("etag"));
        let again = server.get_with(
            "/akin-web.js",
            &format!("Accept-Encoding: gzip\r\nIf-None-Match: {}\r\n", copy.header("etag")),
        );
        assert_eq!(again.status(), 304);
        let part = server.get_with("/akin-web.js", "Accept-Encoding: gzip\r\nRange: bytes=0-1\r\n");
        assert_eq!((part.text(), part.header("content-encoding")), ("sc", ""));

        let copy = fs::File::options().append(true).open(server.path("page/akin-web.js.gz")).unwrap();
        copy.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(
            server.get_with("/akin-web.js", "Accept-Encoding: gzip\r\n").text(),
            "script",
            "it is old"
        );
    }

    fn limits() -> Limits {
        let long = Duration::from_secs(3600);
        Limits { connections: 4, header: long, silence: long, in_use: Duration::from_millis(20) }
    }

    /// Waits until the server has closed a connection.
    fn expect_closed(mut stream: TcpStream) {
        let mut rest = Vec::new();
        // It is closed with or without a reset.
        let _ = stream.read_to_end(&mut rest);
    }

    #[test]
    fn half_open_connections_make_room_for_a_request() {
        let server = Server::with(limits(), &[]);
        let half_open: Vec<TcpStream> = (0..40)
            .map(|_| {
                let mut stream = server.connect();
                stream.write_all(b"GET / HTTP/1.1\r\nHost: loc").unwrap();
                stream
            })
            .collect();
        assert_eq!(server.get("/").status(), 200);
        // At most four are left, and the oldest have ended first.
        half_open.into_iter().take(32).for_each(expect_closed);
    }

    #[test]
    fn a_connection_in_use_stays_and_a_silent_one_ends() {
        let server = Server::with(Limits { connections: 2, ..limits() }, &[]);
        let ask = |stream: &mut BufReader<TcpStream>| {
            stream.get_mut().write_all(b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            let mut line = String::new();
            while line != "\r\n" {
                line.clear();
                assert_ne!(stream.read_line(&mut line).unwrap(), 0, "the server has ended the connection");
            }
        };
        let silent = server.connect();
        let mut used = BufReader::new(server.connect());
        for _ in 0..3 {
            ask(&mut used);
        }
        let third = server.get("/");
        assert_eq!(third.status(), 200);
        expect_closed(silent);
        ask(&mut used);
    }

    #[test]
    fn clients_that_ask_all_the_time_keep_no_other_out() {
        let in_use = Duration::from_millis(200);
        let server = Server::with(Limits { connections: 2, in_use, ..limits() }, &[]);
        let (port, ended) = (server.port, Arc::new(std::sync::atomic::AtomicBool::new(false)));
        let ask = move || -> io::Result<()> {
            let mut stream = BufReader::new(TcpStream::connect(("127.0.0.1", port))?);
            loop {
                stream.get_mut().write_all(b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
                let mut line = String::new();
                while line != "\r\n" {
                    line.clear();
                    if stream.read_line(&mut line)? == 0 {
                        return Ok(());
                    }
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        for _ in 0..3 {
            let ended = Arc::clone(&ended);
            thread::spawn(move || {
                while !ended.load(std::sync::atomic::Ordering::SeqCst) {
                    let _ = ask();
                }
            });
        }
        for _ in 0..3 {
            assert_eq!(server.get("/").status(), 200);
        }
        ended.store(true, std::sync::atomic::Ordering::SeqCst);
    }

    #[test]
    fn a_header_that_does_not_end_loses_its_connection() {
        let server = Server::with(Limits { header: Duration::from_millis(50), ..limits() }, &[]);
        let mut slow = server.connect();
        slow.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        expect_closed(slow);
    }

    #[test]
    fn a_body_and_a_large_header_are_refused() {
        let server = Server::start();
        let answer = server.send("PUT /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert_eq!((answer.status(), answer.header("connection")), (413, "close"));
        let large = format!("X-Large: {}\r\n", "a".repeat(2 * HEADER_BYTES));
        let mut stream = server.connect();
        // The server may close the connection while it is still written to.
        let _ = stream.write_all(format!("GET / HTTP/1.1\r\nHost: localhost\r\n{large}\r\n").as_bytes());
        expect_closed(stream);
        assert_eq!(server.get("/").status(), 200);
    }

    #[test]
    fn a_port_in_use_is_refused_with_another() {
        let taken = listen(&Hosts::default(), 0).unwrap();
        let port = taken.local_addr().unwrap().port();
        let (message, hint) = akin_base::problem::parts(&listen(&Hosts::default(), port).unwrap_err());
        assert_eq!(message, format!("port {port} is in use by another program"));
        assert!(hint.unwrap().contains("--port 0"));
    }

    #[test]
    fn a_folder_without_a_bundle_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Bundles::open(&[folder.path().to_owned()]);
        let (message, hint) = akin_base::problem::parts(&open().unwrap_err());
        assert!(message.contains("is not a bundle"), "{message}");
        assert!(hint.unwrap().contains("akin export"));
        fs::write(folder.path().join("bundle.json"), "{").unwrap();
        assert!(open().is_err());
    }
}
