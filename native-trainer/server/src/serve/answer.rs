//! The answer to one request: a file of the page or of a bundle, or the reason why there is none.

use std::convert::Infallible;
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::UNIX_EPOCH;

use akin_core::bundle::{INDEX, MANIFEST};
use http_body_util::{Either, Full};
use hyper::body::{Body, Bytes};
use hyper::header::{
    ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    IF_RANGE, IF_UNMODIFIED_SINCE, LOCATION, RANGE, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use hyper::{Method, Request, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use tower_http::services::ServeFile;
use tower_http::services::fs::ServeFileSystemResponseBody;

use super::hosts::Hosts;
use crate::api::{Api, Call, Failure, pairs};
use crate::bundles::Bundles;
use crate::onnxruntime::{FOLDER, OnnxRuntime};
use crate::page::{EmbeddedFile, Page};

const UNPOISONED: &str = "no thread panics while it holds the bundles";

/// An answer: a part of a file, or bytes.
type Response = hyper::Response<Either<ServeFileSystemResponseBody, Full<Bytes>>>;

/// What a server shows, and to whom.
#[derive(Debug)]
pub struct Site {
    page: Page,
    runtime: Option<OnnxRuntime>,
    bundles: RwLock<Arc<Bundles>>,
    hosts: Hosts,
    api: Option<Api>,
    /// The headers of every answer.
    headers: HeaderMap,
}

impl Site {
    /// # Errors
    ///
    /// A page whose `index.html` cannot be read.
    pub fn new(
        page: Page,
        runtime: Option<OnnxRuntime>,
        bundles: Bundles,
        hosts: Hosts,
    ) -> anyhow::Result<Self> {
        let headers = security_headers(page.policy()?.as_deref());
        Ok(Self { page, runtime, bundles: RwLock::new(Arc::new(bundles)), hosts, api: None, headers })
    }

    /// With what programs may ask.
    pub fn with_api(self, api: Option<Api>) -> Self {
        Self { api, ..self }
    }

    /// Shows other bundles from now on.
    pub fn show(&self, bundles: Bundles) {
        *self.bundles.write().expect(UNPOISONED) = Arc::new(bundles);
    }

    /// Answers a request. Never fails: what goes wrong is an answer, too.
    pub async fn answer<B: Body>(&self, request: Request<B>) -> Result<Response, Infallible>
    where
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let mut response = self.choose(request).await;
        for (name, value) in &self.headers {
            response.headers_mut().insert(name, value.clone());
        }
        Ok(response)
    }

    async fn choose<B: Body>(&self, request: Request<B>) -> Response
    where
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        if let Err((status, text)) = self.hosts.check(request.uri(), request.headers()) {
            return message(status, text);
        }
        let path = decode(request.uri().path());
        if let (Some(api), Some(path)) = (&self.api, &path)
            && api.has(path)
        {
            return called(api, path.clone(), request).await;
        }
        // What is left of a body would be taken for the next request.
        if !request.body().is_end_stream() {
            let mut refusal = message(StatusCode::PAYLOAD_TOO_LARGE, "akin serve takes no uploads.\n");
            refusal.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            return refusal;
        }
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let mut refusal = message(StatusCode::METHOD_NOT_ALLOWED, "akin serve only shows files.\n");
            refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refusal;
        }
        let Some(path) = path else { return nothing() };
        let bundles = Arc::clone(&self.bundles.read().expect(UNPOISONED));
        if path == INDEX && !bundles.json().is_empty() {
            if wants_other(request.headers(), &[]) {
                return other_version();
            }
            let json = Bytes::copy_from_slice(bundles.json());
            return with_caching(whole("application/json", json), "no-store");
        }
        for (folder, place) in bundles.places() {
            let Some(rest) = path.strip_prefix(place) else { continue };
            if !rest.is_empty() && !rest.starts_with('/') {
                continue;
            }
            let rest = rest.trim_start_matches('/');
            // It names all other files, so no browser may keep an old one.
            let caching = if rest == MANIFEST { "no-store" } else { "no-cache" };
            return with_caching(from_folder(folder, rest, request).await, caching);
        }
        if let (Some(runtime), Some(rest)) = (&self.runtime, path.strip_prefix(FOLDER)) {
            let answer = match (OnnxRuntime::own(&path), rest.strip_prefix('/')) {
                (Some(bytes), _) => {
                    let kind = mime_guess::from_path(&path).first_raw().unwrap_or("application/octet-stream");
                    whole(kind, Bytes::from_static(bytes))
                }
                (None, Some(rest)) => from_folder(runtime.folder(), rest, request).await,
                (None, None) => nothing(),
            };
            return with_caching(answer, "no-cache");
        }
        // Pages are rebuilt often, so a browser must ask each time whether a file has changed.
        let answer = match &self.page {
            Page::Folder(folder) => from_folder(folder, &path, request).await,
            Page::Embedded => from_program(&path, request.headers()),
            Page::Single(html) if path.is_empty() => whole("text/html; charset=utf-8", html.as_bytes()),
            Page::Single(_) => nothing(),
        };
        with_caching(answer, "no-cache")
    }
}

/// The answer of the API.
async fn called<B: Body>(api: &Api, path: String, request: Request<B>) -> Response
where
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    if ![Method::GET, Method::HEAD, Method::POST].contains(&parts.method) {
        let mut refusal = message(StatusCode::METHOD_NOT_ALLOWED, "GET and POST are answered here.\n");
        refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
        refusal.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        return refusal;
    }
    let content_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let call = Call {
        // The body of an answer to HEAD is left out when it is sent.
        method: if parts.method == Method::POST { "POST" } else { "GET" }.into(),
        path,
        query: pairs(parts.uri.query().unwrap_or_default()),
        content_type: content_type.unwrap_or_default().to_owned(),
        body: Vec::new(),
    };
    match api.answer(call, body).await {
        Ok(reply) => {
            let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let mut response = answer(status, reply.body);
            insert(&mut response, CONTENT_TYPE, reply.content_type);
            let caching = if reply.is_final { "private, max-age=31536000, immutable" } else { "no-store" };
            with_caching(response, caching)
        }
        Err(Failure::Body) => {
            let mut refusal = message(StatusCode::PAYLOAD_TOO_LARGE, "At most 64 MiB are taken.\n");
            refusal.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            refusal
        }
        Err(Failure::Handler) => message(StatusCode::INTERNAL_SERVER_ERROR, "There was no answer.\n"),
    }
}

/// The headers that keep other sites out and hold the page to its own policy.
///
/// The page's policy is that of its `<meta>` tag, which also holds where another server shows the page. Only a header
/// can say who may frame the page: pages of this server, such as one that a teacher puts beside it.
fn security_headers(policy: Option<&str>) -> HeaderMap {
    const FRAMES: &str = "frame-ancestors 'self'";
    let policy = policy.map_or(FRAMES.to_owned(), |policy| format!("{policy}; {FRAMES}"));
    let mut headers = HeaderMap::new();
    let policy = HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static(FRAMES));
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    for (name, value) in [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "SAMEORIGIN"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
}

/// The path of a file below a folder, with `/` between its parts and at its end if the address has one. None if a part is
/// hidden, leads upwards, or would be two parts on some system.
fn decode(path: &str) -> Option<String> {
    let path = percent_decode_str(path.strip_prefix('/')?).decode_utf8().ok()?;
    let parts = path.strip_suffix('/').unwrap_or(&path);
    let is_plain =
        |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains(['\\', ':', '\0']);
    (path.is_empty() || parts.split('/').all(is_plain)).then(|| path.into_owned())
}

/// A regular file that is served.
struct Found {
    path: PathBuf,
    tag: String,
    length: u64,
    /// Whether a compressed copy lies beside it.
    is_compressed: bool,
}

/// What lies at a path.
enum Lookup {
    File(Found),
    /// A folder with an `index.html`, whose address lacks the `/` at its end.
    Folder,
    Nothing,
}

/// Looks for a file below a folder. A link may lead to another file below that folder, but not out of it.
fn look_up(folder: &Path, path: &str) -> io::Result<Lookup> {
    let root = fs::canonicalize(folder)?;
    let inside = |path: &Path| fs::canonicalize(path).ok().filter(|path| path.starts_with(&root));
    let at =
        if path.is_empty() || path.ends_with('/') { format!("{path}index.html") } else { path.to_owned() };
    let Some(path) = inside(&root.join(at)) else { return Ok(Lookup::Nothing) };
    let metadata = fs::metadata(&path)?;
    if metadata.is_dir() && inside(&path.join("index.html")).is_some_and(|index| index.is_file()) {
        return Ok(Lookup::Folder);
    }
    if !metadata.is_file() {
        return Ok(Lookup::Nothing);
    }
    let modified = metadata.modified()?;
    let mut compressed = path.clone().into_os_string();
    compressed.push(".gz");
    let compressed = PathBuf::from(compressed);
    // Without a file that is not what its name says: an old copy, or a link elsewhere.
    let is_compressed = fs::symlink_metadata(&compressed)
        .is_ok_and(|copy| copy.is_file() && copy.modified().is_ok_and(|time| time >= modified));
    let time = modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let length = metadata.len();
    Ok(Lookup::File(Found { path, tag: format!("\"{length:x}-{time:x}\""), length, is_compressed }))
}

/// The file at a path below a folder.
async fn from_folder<B>(folder: &Path, path: &str, request: Request<B>) -> Response {
    let (folder, wanted) = (folder.to_owned(), path.to_owned());
    let found = match tokio::task::spawn_blocking(move || look_up(&folder, &wanted)).await {
        Ok(Ok(Lookup::File(found))) => found,
        Ok(Ok(Lookup::Folder)) => return redirect(path),
        Ok(Ok(Lookup::Nothing)) => return nothing(),
        Ok(Err(error)) => return unreadable(&error),
        Err(_) => return unreadable(&io::Error::other("the server is ending")),
    };
    let (mut parts, _) = request.into_parts();
    let headers = &mut parts.headers;
    let compressed_tag = tag_of_copy(&found.tag);
    if wants_other(headers, &[&found.tag, &compressed_tag]) {
        return other_version();
    }
    // The tag decides where both are sent.
    if headers.contains_key(IF_MATCH) {
        headers.remove(IF_UNMODIFIED_SINCE);
    }
    if headers.contains_key(IF_NONE_MATCH) {
        for tag in [&found.tag, &compressed_tag] {
            if names(headers, IF_NONE_MATCH, tag) {
                return unchanged(tag);
            }
        }
        headers.remove(IF_MODIFIED_SINCE);
    }
    // A part of another version is of no use, and a range that is not understood is passed over.
    let is_of_other_version = headers.get(IF_RANGE).is_some_and(|tag| tag.as_bytes() != found.tag.as_bytes());
    let range = headers.remove(RANGE).filter(|_| parts.method == Method::GET && !is_of_other_version);
    let range = range.and_then(|range| range_in(range.to_str().ok()?, found.length));
    headers.extend(range.and_then(|range| HeaderValue::try_from(range).ok()).map(|range| (RANGE, range)));
    // A part is one of the file itself.
    let takes_copy = found.is_compressed && !headers.contains_key(RANGE);
    let mut file = ServeFile::new(&found.path);
    if takes_copy {
        file = file.precompressed_gzip();
    }
    let mut response = match file.try_call(Request::from_parts(parts, ())).await {
        Ok(response) => response.map(Either::Left),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return nothing(),
        Err(error) => return unreadable(&error),
    };
    let is_copy = response.headers().contains_key(CONTENT_ENCODING);
    insert(&mut response, ETAG, if is_copy { &compressed_tag } else { &found.tag });
    if found.is_compressed {
        insert(&mut response, VARY, "accept-encoding");
    }
    response
}

/// The file of the page inside this program.
fn from_program(path: &str, headers: &HeaderMap) -> Response {
    let at = if path.is_empty() { "index.html" } else { path };
    let Some(file) = EmbeddedFile::at(at) else { return nothing() };
    let tag = format!("\"{}\"", file.sha256());
    let compressed_tag = tag_of_copy(&tag);
    if wants_other(headers, &[&tag, &compressed_tag]) {
        return other_version();
    }
    for tag in [&tag, &compressed_tag] {
        if names(headers, IF_NONE_MATCH, tag) {
            return unchanged(tag);
        }
    }
    let kind = mime_guess::from_path(at).first_raw().unwrap_or("application/octet-stream");
    let mut response = match file.gzipped().filter(|_| takes_gzip(headers)) {
        Some(copy) => {
            let mut response = whole(kind, Bytes::from_static(copy));
            insert(&mut response, CONTENT_ENCODING, "gzip");
            insert(&mut response, ETAG, &compressed_tag);
            response
        }
        None => {
            let mut response = match file.bytes() {
                Ok(bytes) => whole(kind, bytes.into_owned()),
                Err(error) => return unreadable(&error),
            };
            insert(&mut response, ETAG, &tag);
            response
        }
    };
    insert(&mut response, VARY, "accept-encoding");
    response
}

/// The tag of the compressed copy of a file: other bytes, so another tag.
fn tag_of_copy(tag: &str) -> String {
    format!("{}-gzip\"", tag.trim_end_matches('"'))
}

/// Whether one of the tags in a header is this one. `If-None-Match` also takes a weak tag.
fn names(headers: &HeaderMap, header: HeaderName, tag: &str) -> bool {
    let is_it = |named: &str| {
        let strong = if header == IF_NONE_MATCH { named.trim_start_matches("W/") } else { named };
        named == "*" || strong == tag
    };
    let values = headers.get_all(&header);
    values
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|tags| tags.split(',').map(str::trim).any(is_it))
}

/// Whether a request is for another version than those with these tags.
fn wants_other(headers: &HeaderMap, tags: &[&str]) -> bool {
    // `*` is any version.
    headers.contains_key(IF_MATCH)
        && ![&[""][..], tags].concat().iter().any(|tag| names(headers, IF_MATCH, tag))
}

/// The one range of bytes that a value of `Range` asks for, `bytes=2-4`, `bytes=2-` or `bytes=-2`, inside a file of this
/// length. None for what RFC 9110 lets a server pass over: unknown units, a last byte before the first, several ranges.
fn range_in(value: &str, length: u64) -> Option<String> {
    let (unit, range) = value.split_once('=')?;
    let (first, last) = range.trim().split_once('-')?;
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if !unit.eq_ignore_ascii_case("bytes") || !is_number(first) || !is_number(last) {
        return None;
    }
    let number = |digits: &str| digits.parse::<u64>().unwrap_or(u64::MAX);
    match (first, last) {
        ("", "") => None,
        ("", "0") => Some("bytes=-0".into()),
        ("", count) => Some(format!("bytes={}-", length.saturating_sub(number(count)))),
        (first, "") => Some(format!("bytes={}-", number(first))),
        (first, last) => {
            let (first, last) = (number(first), number(last));
            let inside = last.min(length.saturating_sub(1)).max(first);
            (first <= last).then(|| format!("bytes={first}-{inside}"))
        }
    }
}

/// Whether the client takes gzip: it names it, and not with the quality 0.
fn takes_gzip(headers: &HeaderMap) -> bool {
    headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok()).any(|codings| {
        codings.split(',').any(|coding| {
            let (name, quality) = coding.split_once(';').unwrap_or((coding, "q=1"));
            let quality = quality.trim().trim_start_matches("q=").parse::<f32>();
            name.trim().eq_ignore_ascii_case("gzip") && quality.is_ok_and(|quality| quality > 0.0)
        })
    })
}

fn unchanged(tag: &str) -> Response {
    let mut response = answer(StatusCode::NOT_MODIFIED, Bytes::new());
    insert(&mut response, ETAG, tag);
    response
}

/// The answer to a client that asks for another version of the file.
fn other_version() -> Response {
    message(StatusCode::PRECONDITION_FAILED, "The file has changed.\n")
}

/// To the same folder with `/` at its end, from which the links of its page start.
fn redirect(path: &str) -> Response {
    let name = path.rsplit('/').next().unwrap_or_default();
    let mut response = message(StatusCode::PERMANENT_REDIRECT, "The address of a folder ends with /.\n");
    // Relative, so that it is right behind a proxy that adds folders.
    insert(&mut response, LOCATION, &format!("./{}/", utf8_percent_encode(name, NON_ALPHANUMERIC)));
    response
}

fn nothing() -> Response {
    message(
        StatusCode::NOT_FOUND,
        "There is nothing here. The page is at the address that akin serve has printed.\n",
    )
}

fn unreadable(error: &io::Error) -> Response {
    message(StatusCode::INTERNAL_SERVER_ERROR, format!("The file cannot be read: {error}.\n"))
}

/// A text as the answer, which browsers do not keep.
fn message(status: StatusCode, text: impl Into<String>) -> Response {
    let mut response = answer(status, text.into());
    insert(&mut response, CONTENT_TYPE, "text/plain; charset=utf-8");
    with_caching(response, "no-store")
}

/// A whole file of this MIME type.
fn whole(kind: &str, bytes: impl Into<Bytes>) -> Response {
    let mut response = answer(StatusCode::OK, bytes);
    insert(&mut response, CONTENT_TYPE, kind);
    response
}

fn answer(status: StatusCode, bytes: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Either::Right(Full::new(bytes.into())));
    *response.status_mut() = status;
    response
}

/// Adds how long a browser may keep an answer, unless it says so already.
fn with_caching(mut response: Response, caching: &'static str) -> Response {
    response.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static(caching));
    response
}

/// Sets a header. A value with characters that no header has is left out.
fn insert(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_below_its_folder_and_shows_nothing_hidden() {
        for path in [
            "/a/../b",
            "/..",
            "/%2e%2e/b",
            "/a//b",
            "//b",
            "/.akin.json",
            "/a\\b",
            "/c:",
            "/%00",
            "/%ff",
            "a",
        ] {
            assert_eq!(decode(path), None, "{path}");
        }
        assert_eq!(decode("/").unwrap(), "");
        assert_eq!(decode("/a%20b/c").unwrap(), "a b/c");
        assert_eq!(decode("/a/").unwrap(), "a/");
    }

    #[test]
    fn a_range_is_one_of_bytes_inside_the_file() {
        for (asked, inside) in [
            ("bytes=2-4", Some("bytes=2-4")),
            ("Bytes=2-", Some("bytes=2-")),
            ("bytes=5-99", Some("bytes=5-6")),
            ("bytes=5-99999999999999999999", Some("bytes=5-6")),
            ("bytes=-2", Some("bytes=5-")),
            ("bytes=-99", Some("bytes=0-")),
            ("bytes=9-12", Some("bytes=9-9")),
            ("bytes=5-1", None),
            ("bytes=0-1,3-4", None),
            ("bytes=-", None),
            ("bytes=a-b", None),
            ("bytes 2-4", None),
            ("items=0-1", None),
        ] {
            assert_eq!(range_in(asked, 7).as_deref(), inside, "{asked}");
        }
    }

    #[test]
    fn gzip_is_sent_only_to_those_who_take_it() {
        let takes = |value: &str| {
            takes_gzip(&HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_str(value).unwrap())]))
        };
        assert!(takes("br, gzip") && takes("GZIP;q=0.5, br"));
        assert!(!takes("br") && !takes("gzip;q=0") && !takes("identity, x-gzip"));
    }
}
