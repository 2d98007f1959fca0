//! The local server: the page at `/`, its galleries at `/bundle/` and `/bundles/NAME/`, and their index at
//! `/bundles.json`.

use std::collections::HashSet;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::{fs, future};

use akin_core::bundle::{INDEX, Index, IndexEntry, MANIFEST, Manifest};
use anyhow::Result;
use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::routing::get;
use tower_http::services::{ServeDir, ServeFile};
use tower_http::set_header::SetResponseHeaderLayer;

use crate::problem::{Advise, problem};
use crate::terminal;

/// The bundles of a site, checked, each with its place there.
#[derive(Debug)]
pub struct Bundles {
    /// The folder of each bundle, in the order of the index.
    folders: Vec<PathBuf>,
    index: Index,
    /// The bytes of `bundles.json`.
    json: Vec<u8>,
}

impl Bundles {
    /// Checks bundles, and folders of bundles that have a `bundles.json`. The first bundle becomes `bundle`, which a page
    /// opens that knows no index; the others become `bundles/NAME`, by the names of their folders.
    ///
    /// # Errors
    ///
    /// A folder that is neither, a damaged manifest or index, a file that is missing or has another length, or a bundle
    /// given twice.
    pub fn open(folders: &[PathBuf]) -> Result<Self> {
        let mut found = Vec::new();
        for folder in folders {
            match fs::read(folder.join(INDEX)) {
                Ok(bytes) => {
                    found.extend(
                        Index::parse(&bytes)?
                            .bundles
                            .into_iter()
                            .map(|entry| (folder.join(&entry.path), Some(entry))),
                    );
                }
                Err(_) => found.push((folder.clone(), None)),
            }
        }
        let mut bundles: Vec<IndexEntry> = Vec::new();
        let mut seen = HashSet::new();
        for (folder, listed) in &found {
            let manifest = check_bundle(folder)?;
            if !seen.insert(fs::canonicalize(folder)?) {
                return Err(problem(
                    format!("the bundle {} is given twice", folder.display()),
                    "give it once",
                ));
            }
            let (title, description) = match listed {
                Some(entry) => (entry.title.clone(), entry.description.clone()),
                None => (manifest.title.clone(), manifest.description.clone()),
            };
            bundles.push(IndexEntry { path: place(folder, &bundles), title, description });
        }
        let index = Index { bundles };
        let json = index.to_bytes()?;
        Ok(Self { folders: found.into_iter().map(|(folder, _)| folder).collect(), index, json })
    }

    /// The folder of each bundle, with its place on the site.
    pub fn places(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.folders
            .iter()
            .map(PathBuf::as_path)
            .zip(self.index.bundles.iter().map(|entry| entry.path.as_str()))
    }

    /// The bytes of `bundles.json`.
    pub fn json(&self) -> &[u8] {
        &self.json
    }
}

/// The place of a bundle on the site, relative to the page, which no other bundle has.
fn place(folder: &Path, others: &[IndexEntry]) -> String {
    if others.is_empty() {
        return "bundle".into();
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let place = format!(
        "bundles/{}",
        if plain.trim_matches('-').is_empty() { "gallery" } else { plain.trim_matches('-') }
    );
    let taken = |place: &str| others.iter().any(|other| other.path == place);
    if !taken(&place) {
        return place;
    }
    let numbered = (2..).map(|number| format!("{place}-{number}"));
    numbered.into_iter().find(|place| !taken(place)).expect("there is always a larger number")
}

/// Checks that a folder is a bundle of a version that akin reads, and that every file exists and has its length.
/// The browser checks the contents.
fn check_bundle(folder: &Path) -> Result<Manifest> {
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
    Ok(manifest)
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
pub fn serve(listener: TcpListener, page: &Path, bundles: &Bundles) -> Result<()> {
    let address = listener.local_addr()?;
    terminal::print(&format!("http://{address}/"))?;
    terminal::say(
        "Open this address in a browser on this machine; other machines cannot reach it. Browsers allow WebGPU,\n\
         which is fast, only for pages from localhost or over HTTPS. Press Ctrl-C to stop.",
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        tokio::select! {
            served = future::IntoFuture::into_future(axum::serve(listener, router(page, bundles))) => served?,
            interrupted = tokio::signal::ctrl_c() => interrupted?,
        }
        Ok(())
    })
}

/// The page at `/`, every bundle at its place, and the index of the bundles.
///
/// Pages and bundles are rebuilt often, so browsers must ask each time whether a file has changed. They must not
/// cache index and manifests, which name all other files.
fn router(page: &Path, bundles: &Bundles) -> Router {
    let header = |name, value| SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value));
    let json = bundles.json.clone();
    let mut names = Router::new().route(
        &format!("/{INDEX}"),
        get(async move || ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], json)),
    );
    let mut files = Router::new();
    for (folder, IndexEntry { path, .. }) in bundles.folders.iter().zip(&bundles.index.bundles) {
        names = names.route_service(&format!("/{path}/{MANIFEST}"), ServeFile::new(folder.join(MANIFEST)));
        files = files.nest_service(&format!("/{path}"), ServeDir::new(folder));
    }
    Router::new()
        .merge(names.layer(header(CACHE_CONTROL, "no-store")))
        .merge(files)
        .fallback_service(ServeDir::new(page))
        .layer(header(CACHE_CONTROL, "no-cache"))
        .layer(header(X_CONTENT_TYPE_OPTIONS, "nosniff"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use akin_core::bundle::{
        BundleWriter, Contents, ElementType, EncoderEntry, Items, Thumbnails, embedding_bytes, label_bytes,
    };
    use akin_core::evaluate::{EvaluationConfig, Report};
    use akin_core::image::{Normalisation, Preprocessing};
    use akin_core::taxonomy::{ClassIdentity, Taxonomy};

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
        let page = folder.path().join("page");
        let galleries = ["fruit", "Other fruit"].map(|name| folder.path().join(name));
        galleries.iter().for_each(|gallery| write_fruit(gallery));
        for (file, text) in [
            (page.join("index.html"), "the page"),
            (page.join("akin-web_bg.wasm"), "wasm"),
            (page.join("akin-web.js"), "script"),
            (folder.path().join("secret"), "secret"),
        ] {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let bundles = Bundles::open(&galleries).unwrap();
        let listener = listen(0).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || serve(listener, &page, &bundles));

        let (head, body) = get(port, "/");
        assert!(
            head.contains("200 ok") && head.contains("text/html") && head.contains("cache-control: no-cache"),
            "{head}"
        );
        assert_eq!(body, "the page");
        assert!(get(port, "/akin-web_bg.wasm").0.contains("content-type: application/wasm"));
        assert!(get(port, "/akin-web.js").0.contains("content-type: text/javascript"));
        for gallery in ["bundle", "bundles/other-fruit"] {
            assert!(get(port, &format!("/{gallery}/bundle.json")).0.contains("cache-control: no-store"));
            assert_eq!(get(port, &format!("/{gallery}/weights.bpk")).1, "weights");
        }
        let (head, body) = get(port, "/bundles.json");
        assert!(head.contains("application/json") && head.contains("cache-control: no-store"), "{head}");
        let paths: Vec<String> =
            Index::parse(body.as_bytes()).unwrap().bundles.into_iter().map(|entry| entry.path).collect();
        assert_eq!(paths, ["bundle", "bundles/other-fruit"]);
        for path in ["/nothing", "/bundle/nothing", "/bundle/../../secret", "/bundle/%2e%2e/%2e%2e/secret"] {
            let (head, body) = get(port, path);
            assert!(head.contains("404") && !body.contains("secret"), "{path}: {head}");
        }
    }

    /// The files of a small bundle.
    fn fruit() -> Vec<(String, Vec<u8>)> {
        let levels = ["kind".to_owned()];
        let rows = [vec!["apple"], vec!["pear"]];
        let (taxonomy, labels) = Taxonomy::from_rows(&levels, &rows, ClassIdentity::Name).unwrap();
        let config = EvaluationConfig::default();
        let encoder = EncoderEntry {
            name: "Test".into(),
            description: String::new(),
            family: None,
            architecture: serde_json::Value::Null,
            preprocessing: Preprocessing::new(Normalisation::Imagenet, 32).unwrap(),
            dimension: 1,
            weights: "weights.bpk".into(),
            gallery_embeddings: "gallery.f32".into(),
            query_embeddings: None,
            element_type: ElementType::F32,
            self_test: vec![1.0],
            report: Report::new(&levels, &config.checked(1).unwrap(), 2, vec![]),
            maps: vec![],
            best_scores: None,
            affinities: Vec::new(),
            query_scores: None,
        };
        let contents = Contents {
            title: "Fruit".into(),
            description: "Two.".into(),
            licence: String::new(),
            model_card: String::new(),
            taxonomy,
            gallery: Items { count: 2 },
            queries: Items { count: 0 },
            labels: "labels.bin".into(),
            thumbnails: Thumbnails { tile: 8, columns: 2, rows: 1, sheets: vec!["sheet.png".into()] },
            evaluation_config: config,
            encoders: vec![encoder],
        };
        let mut bundle = BundleWriter::new();
        bundle.add("labels.bin", label_bytes(&labels)).unwrap();
        bundle.add("sheet.png", b"a picture".to_vec()).unwrap();
        bundle.add("weights.bpk", b"weights".to_vec()).unwrap();
        bundle.add("gallery.f32", embedding_bytes(&[1.0, 2.0], ElementType::F32)).unwrap();
        bundle.finish(&contents).unwrap()
    }

    fn write_fruit(folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        for (path, bytes) in fruit() {
            fs::write(folder.join(path), bytes).unwrap();
        }
    }

    #[test]
    fn a_folder_with_an_index_stands_for_its_bundles() {
        let folder = tempfile::tempdir().unwrap();
        let (own, shipped) = (folder.path().join("fruit"), folder.path().join("galleries"));
        write_fruit(&own);
        write_fruit(&shipped.join("fruit"));
        let entry = IndexEntry { path: "fruit".into(), title: "Shipped".into(), description: "Both.".into() };
        fs::write(shipped.join(INDEX), Index { bundles: vec![entry] }.to_bytes().unwrap()).unwrap();

        let bundles = Bundles::open(&[own.clone(), shipped.clone()]).unwrap();
        let shown: Vec<(&str, &str)> =
            bundles.index.bundles.iter().map(|entry| (&*entry.path, &*entry.title)).collect();
        assert_eq!(shown, [("bundle", "Fruit"), ("bundles/fruit", "Shipped")]);
        assert_eq!(Index::parse(&bundles.json).unwrap(), bundles.index);

        let third = folder.path().join("more/Fruit");
        write_fruit(&third);
        let bundles = Bundles::open(&[own.clone(), shipped.clone(), third]).unwrap();
        assert_eq!(bundles.index.bundles[2].path, "bundles/fruit-2");
        let twice = Bundles::open(&[shipped.join("fruit"), shipped.clone()]).unwrap_err();
        assert!(twice.to_string().contains("given twice"), "{twice}");
        fs::write(shipped.join("fruit/weights.bpk"), "short").unwrap();
        let damaged = Bundles::open(&[own, shipped]).unwrap_err();
        assert!(damaged.to_string().contains("weights.bpk of the bundle has 5 bytes"), "{damaged}");
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
        let open = || Bundles::open(&[folder.path().to_owned()]);
        let (message, hint) = crate::problem::parts(&open().unwrap_err());
        assert!(message.contains("is not a bundle"), "{message}");
        assert!(hint.unwrap().contains("akin export"));
        fs::write(folder.path().join("bundle.json"), "{").unwrap();
        assert!(open().is_err());
    }
}
