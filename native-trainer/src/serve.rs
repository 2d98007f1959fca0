//! The local server: the page at `/`, a bundle at `/bundle/`.

use std::io::{self, Write, stdout};
use std::net::TcpListener;
use std::path::Path;
use std::{fs, future};

use akin_core::bundle::{MANIFEST, Manifest};
use anyhow::Result;
use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use tower_http::services::{ServeDir, ServeFile};
use tower_http::set_header::SetResponseHeaderLayer;

use crate::problem::{Advise, problem};

/// Checks that a folder is a bundle of a version that akin reads, and that every file exists and has its length.
/// The browser checks the contents.
pub fn check_bundle(folder: &Path) -> Result<()> {
    const HINT: &str = "write one with `akin export RUN --out BUNDLE`, or `akin demo`";
    let bytes = fs::read(folder.join(MANIFEST))
        .advise(|| format!("{} is not a bundle: {MANIFEST} cannot be read", folder.display()), HINT)?;
    let manifest = Manifest::parse(&bytes)?;
    for file in manifest.files() {
        let length = fs::metadata(folder.join(&file.path)).map(|metadata| metadata.len()).ok();
        if length != Some(file.bytes) {
            let found = length.map_or("is missing".into(), |length| format!("has {length} bytes"));
            return Err(problem(
                format!("the file {} of the bundle {found}; it should have {} bytes", file.path, file.bytes),
                "export or copy the bundle again",
            ));
        }
    }
    Ok(())
}

/// Listens on a port of this machine, which other machines cannot reach. 0 chooses a free port.
pub fn listen(port: u16) -> Result<TcpListener> {
    TcpListener::bind(("127.0.0.1", port)).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => problem(
            format!("port {port} is in use by another program"),
            format!("try `--port {}`, or `--port 0` for any free port", port.checked_add(1).unwrap_or(8080)),
        ),
        _ => problem(format!("port {port} cannot be used: {error}"), "try `--port 0` for any free port"),
    })
}

/// Serves until Ctrl-C. Prints the address on stdout and an explanation on stderr.
pub fn serve(listener: TcpListener, page: &Path, bundle: &Path) -> Result<()> {
    let address = listener.local_addr()?;
    writeln!(stdout(), "http://{address}/")?;
    eprintln!(
        "Open this address in a browser on this machine; other machines cannot reach it. Browsers allow WebGPU,\n\
         which is fast, only for pages from localhost or over HTTPS. Press Ctrl-C to stop."
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        tokio::select! {
            served = future::IntoFuture::into_future(axum::serve(listener, router(page, bundle))) => served?,
            interrupted = tokio::signal::ctrl_c() => interrupted?,
        }
        Ok(())
    })
}

/// The page at `/`, the bundle at `/bundle/`.
///
/// Pages and bundles are rebuilt often, so browsers must ask each time whether a file has changed. They must not
/// cache the manifest, which names all other files.
fn router(page: &Path, bundle: &Path) -> Router {
    let header = |name, value| SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value));
    let manifest = Router::new()
        .route_service(&format!("/bundle/{MANIFEST}"), ServeFile::new(bundle.join(MANIFEST)))
        .layer(header(CACHE_CONTROL, "no-store"));
    Router::new()
        .merge(manifest)
        .nest_service("/bundle", ServeDir::new(bundle))
        .fallback_service(ServeDir::new(page))
        .layer(header(CACHE_CONTROL, "no-cache"))
        .layer(header(X_CONTENT_TYPE_OPTIONS, "nosniff"))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpStream;

    use super::*;

    /// The head and the body of the answer to one request.
    fn get(port: u16, path: &str) -> (String, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_lowercase(), body.to_owned())
    }

    #[test]
    fn only_the_page_and_the_bundle_are_served() {
        let folder = tempfile::tempdir().unwrap();
        let (page, bundle) = (folder.path().join("page"), folder.path().join("bundle"));
        for (file, text) in [
            (page.join("index.html"), "the page"),
            (page.join("akin-web_bg.wasm"), "wasm"),
            (page.join("akin-web.js"), "script"),
            (bundle.join("bundle.json"), "{}"),
            (bundle.join("happier/weights.bpk"), "weights"),
            (folder.path().join("secret"), "secret"),
        ] {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let listener = listen(0).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || serve(listener, &page, &bundle));

        let (head, body) = get(port, "/");
        assert!(
            head.contains("200 ok") && head.contains("text/html") && head.contains("cache-control: no-cache"),
            "{head}"
        );
        assert_eq!(body, "the page");
        assert!(get(port, "/akin-web_bg.wasm").0.contains("content-type: application/wasm"));
        assert!(get(port, "/akin-web.js").0.contains("content-type: text/javascript"));
        assert!(get(port, "/bundle/bundle.json").0.contains("cache-control: no-store"));
        assert_eq!(get(port, "/bundle/happier/weights.bpk").1, "weights");
        for path in ["/nothing", "/bundle/nothing", "/bundle/../../secret", "/bundle/%2e%2e/%2e%2e/secret"] {
            let (head, body) = get(port, path);
            assert!(head.contains("404") && !body.contains("secret"), "{path}: {head}");
        }
    }

    #[test]
    fn a_port_in_use_is_refused_with_another() {
        let taken = listen(0).unwrap();
        let port = taken.local_addr().unwrap().port();
        let (message, hint) = crate::problem::parts(&listen(port).unwrap_err());
        assert_eq!(message, format!("port {port} is in use by another program"));
        assert!(hint.unwrap().contains("--port 0"));
    }

    #[test]
    fn a_folder_without_a_bundle_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (message, hint) = crate::problem::parts(&check_bundle(folder.path()).unwrap_err());
        assert!(message.contains("is not a bundle"), "{message}");
        assert!(hint.unwrap().contains("akin export"));
        fs::write(folder.path().join("bundle.json"), "{").unwrap();
        assert!(check_bundle(folder.path()).is_err());
    }
}
