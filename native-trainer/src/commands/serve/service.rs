//! A gallery over HTTP, for programs: what it has, its items with thumbnails, and search.
//!
//! Searches wait in a queue. One thread takes all that wait there, so that many of them are one pass over the gallery. Codes of
//! all items stay in memory, so that few embeddings are read.
//! Other requests have threads of their own. The gallery is opened again when a writer has changed it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, SystemTime};

use akin_base::problem::{parts, problem};
use akin_base::terminal;
use akin_base::threads::RAISE_LIMIT;
use akin_core::certainty::Promise;
use akin_core::embeddings::Embeddings;
use akin_core::image::{Pixels, decode};
use akin_core::taxonomy::Filter;
use akin_gallery::{Gallery, MANIFEST, Row};
use akin_server::api::{Api, Call, Reply, Respond};
use anyhow::Result;
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::description::description;
use super::thumbnails::{Size, Thumbnails};
use crate::commands::index::pictures::storage;
use crate::commands::known_gallery::{Found, KnownGallery, Question};
use crate::config::DeviceName;
use crate::data::Storage;

/// The most searches that wait.
const QUEUE: usize = 512;
/// The most embeddings of one search, and the most searches that are answered together.
const BATCH: usize = 256;
/// The most items of one answer.
const MOST: usize = 1000;
/// How often it is looked whether a writer has changed the gallery.
const LOOK: Duration = Duration::from_secs(2);

/// Starts to answer for the gallery in a folder. Paths are in answers only with `show_paths`. The page holds the pictures of
/// `sample`, or all.
///
/// # Errors
///
/// A folder that is no gallery, an encoder that is damaged, and a system that starts no more threads.
pub fn start(folder: &Path, device: DeviceName, show_paths: bool, sample: Vec<Row>) -> Result<Api> {
    // Whole, so that it is found in messages, from which it is taken.
    let folder = &std::path::absolute(folder)?;
    let version = version(folder);
    let gallery = Arc::new(Gallery::open(folder)?);
    let service = Arc::new(Service {
        folder: folder.to_owned(),
        device,
        show_paths,
        opened: RwLock::new(Arc::new(Opened::new(&gallery, device, &sample, None)?)),
        sample,
        thumbnails: Thumbnails::default(),
    });
    let (searches, waiting) = sync_channel(QUEUE);
    let searching = Arc::clone(&service);
    start_thread(move || searching.search_for_ever(&waiting, version))?;
    let (others, calls) = sync_channel::<(Call, Respond)>(QUEUE);
    let calls = Arc::new(Mutex::new(calls));
    for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
        let (service, calls) = (Arc::clone(&service), Arc::clone(&calls));
        start_thread(move || service.answer_for_ever(&calls))?;
    }
    let handler = move |call: Call, respond: Respond| match (call.method.as_str(), call.path.as_str()) {
        ("POST", "search") => match Search::read(&call) {
            Ok(search) => wait(&searches, Job { search, respond }, |job| job.respond),
            Err(error) => respond(refusal(400, &error)),
        },
        ("GET", path) if path != "search" => wait(&others, (call, respond), |(_, respond)| respond),
        _ => {
            respond(refusal(405, &problem("a search is a POST, and all else is a GET", "see /openapi.json")))
        }
    };
    Ok(Api { names: &["gallery", "classes", "items", "search", "openapi.json"], handler: Box::new(handler) })
}

fn start_thread(work: impl FnOnce() + Send + 'static) -> Result<()> {
    thread::Builder::new()
        .spawn(work)
        .map(drop)
        .map_err(|error| problem(format!("the threads that answer cannot be started: {error}"), RAISE_LIMIT))
}

/// Puts a job into a queue, or refuses it.
fn wait<T>(queue: &SyncSender<T>, job: T, respond: impl Fn(T) -> Respond) {
    if let Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) = queue.try_send(job) {
        respond(job)(refusal(503, &problem("too many requests wait already", "try again in a moment")));
    }
}

/// When the gallery was last changed.
fn version(folder: &Path) -> Option<SystemTime> {
    folder.join(MANIFEST).metadata().and_then(|manifest| manifest.modified()).ok()
}

struct Service {
    folder: PathBuf,
    device: DeviceName,
    show_paths: bool,
    opened: RwLock<Arc<Opened>>,
    /// The pictures that the page holds.
    sample: Vec<Row>,
    thumbnails: Thumbnails,
}

/// The gallery as it was when it was last opened.
struct Opened {
    /// With its encoder, if it keeps one, and codes of its items.
    known: KnownGallery,
    /// The item that each picture of the sample is; none if it is gone.
    sample: Vec<Option<usize>>,
    /// The place in the sample of each item that is there.
    places: HashMap<usize, usize>,
    /// Where pictures are that a Parquet file holds.
    storage: Storage,
}

impl Opened {
    /// Takes codes of items that `before` has.
    fn new(
        gallery: &Arc<Gallery>,
        device: DeviceName,
        sample: &[Row],
        before: Option<&Self>,
    ) -> Result<Self> {
        let has_encoder = !gallery.manifest().settings.encoder.files.is_empty();
        let known = KnownGallery::of_gallery(gallery, has_encoder.then_some(device))?
            .with_shortlist(before.map(|before| &before.known))?;
        // Hashes first: of a large gallery only the names of a few files are put together.
        let hashes: HashSet<&str> = sample.iter().map(|row| row.sha256.as_str()).collect();
        let wanted: HashMap<_, usize> =
            sample.iter().map(|row| (row.file(), row.sha256.as_str())).zip(0..).collect();
        let mut items = vec![None; sample.len()];
        for (item, row) in gallery.rows().iter().enumerate() {
            let hash = row.sha256.as_str();
            if hashes.contains(hash)
                && let Some(&place) = wanted.get(&(row.file(), hash))
            {
                items[place] = Some(item);
            }
        }
        let places = items.iter().zip(0..).filter_map(|(item, place)| Some(((*item)?, place))).collect();
        let storage = storage(gallery.rows()).unwrap_or_else(|error| {
            terminal::warn(format_args!("pictures inside Parquet files have no thumbnails: {error}"));
            Storage::default()
        });
        Ok(Self { known, sample: items, places, storage })
    }

    /// The item that a picture of the sample is; none if it is gone.
    fn sampled(&self, place: usize) -> Option<usize> {
        self.sample.get(place).copied().flatten()
    }
}

/// A search that waits.
struct Job {
    search: Search,
    respond: Respond,
}

/// What is searched with, and how.
struct Search {
    queries: Queries,
    count: usize,
    options: Options,
}

enum Queries {
    /// The bytes of a picture.
    Picture(Vec<u8>),
    One(Vec<f32>),
    Many(Vec<Vec<f32>>),
    /// An item, and how the SHA-256 of its picture begins, if that is known.
    Item(usize, Option<String>),
    /// A picture of the sample.
    Sample(usize),
}

/// What searches have to share to be answered together.
#[derive(Clone, PartialEq)]
struct Options {
    within: Vec<String>,
    not: Vec<String>,
    group_by: Option<String>,
    promise: Promise,
    detailed: bool,
}

/// The body of a search in JSON.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Body {
    embedding: Option<Vec<f32>>,
    embeddings: Option<Vec<Vec<f32>>>,
    item: Option<usize>,
    version: Option<String>,
    sample: Option<usize>,
    count: Option<usize>,
    within: Vec<String>,
    not: Vec<String>,
    group_by: Option<String>,
    promise: Option<f64>,
    detailed: bool,
}

impl Search {
    /// The search of a call: a picture with its options behind `?`, or JSON.
    fn read(call: &Call) -> Result<Self> {
        const HINT: &str =
            "give a picture, or JSON with `embedding`, `embeddings` or `item`; see /openapi.json";
        let (queries, body) = if call.content_type.starts_with("application/json") {
            let mut body: Body = serde_json::from_slice(&call.body)
                .map_err(|error| problem(format!("the body is no search: {error}"), HINT))?;
            let mut queries = [
                body.embedding.take().map(Queries::One),
                body.embeddings.take().map(Queries::Many),
                body.item.map(|item| Queries::Item(item, body.version.take())),
                body.sample.map(Queries::Sample),
            ]
            .into_iter()
            .flatten();
            let (Some(queries), None) = (queries.next(), queries.next()) else {
                return Err(problem("the search has not one kind of query", HINT));
            };
            if let Queries::Many(rows) = &queries
                && !(1..=BATCH).contains(&rows.len())
            {
                return Err(problem(format!("a search has 1 to {BATCH} embeddings"), "split it"));
            }
            (queries, body)
        } else if call.body.is_empty() {
            return Err(problem("the body is empty", HINT));
        } else {
            (Queries::Picture(call.body.clone()), Body::of_query(&call.query)?)
        };
        let count = count(body.count)?;
        let promise = body.promise.map(|percent| Promise::new(percent / 100.0)).transpose()?;
        let options = Options {
            within: body.within,
            not: body.not,
            group_by: body.group_by,
            promise: promise.unwrap_or_default(),
            detailed: body.detailed,
        };
        Ok(Self { queries, count, options })
    }
}

impl Body {
    fn of_query(query: &[(String, String)]) -> Result<Self> {
        let mut body = Self::default();
        for (name, value) in query {
            match name.as_str() {
                "count" => body.count = Some(number(name, value)?),
                "promise" => body.promise = Some(number(name, value)?),
                "within" => body.within.push(value.clone()),
                "not" => body.not.push(value.clone()),
                "group_by" => body.group_by = Some(value.clone()),
                _ => return Err(unknown(name)),
            }
        }
        Ok(body)
    }
}

fn unknown(name: &str) -> anyhow::Error {
    problem(format!("there is no parameter {name:?} here"), "see /openapi.json")
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T> {
    value.parse().map_err(|_| problem(format!("{name}={value} is no such number"), "see /openapi.json"))
}

fn count(given: Option<usize>) -> Result<usize> {
    match given.unwrap_or(10) {
        count if (1..=MOST).contains(&count) => Ok(count),
        count => Err(problem(format!("{count} items are asked for"), format!("ask for 1 to {MOST}"))),
    }
}

impl Service {
    fn opened(&self) -> Arc<Opened> {
        Arc::clone(&self.opened.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Answers the searches that wait, all at once, and opens the gallery again when it has changed.
    fn search_for_ever(&self, waiting: &Receiver<Job>, mut version: Option<SystemTime>) {
        loop {
            let first = match waiting.recv_timeout(LOOK) {
                Ok(job) => Some(job),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let now = self::version(&self.folder);
            if now.is_some() && now != version {
                version = now;
                self.open_again();
            }
            let Some(first) = first else { continue };
            let jobs: Vec<Job> = std::iter::once(first).chain(waiting.try_iter().take(BATCH - 1)).collect();
            let (searches, responses): (Vec<Search>, Vec<Respond>) =
                jobs.into_iter().map(|job| (job.search, job.respond)).unzip();
            let replies = catch_unwind(AssertUnwindSafe(|| self.search(searches))).unwrap_or_default();
            // Without a reply the server says that there is none.
            responses.into_iter().zip(replies).for_each(|(respond, reply)| respond(reply));
        }
    }

    fn open_again(&self) {
        let open = || {
            let gallery = Arc::new(Gallery::open(&self.folder)?);
            Opened::new(&gallery, self.device, &self.sample, Some(&self.opened()))
        };
        match open() {
            Ok(opened) => *self.opened.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(opened),
            Err(error) => terminal::warn(format_args!("the gallery as it was is served on: {error}")),
        }
    }

    /// The replies to searches.
    fn search(&self, searches: Vec<Search>) -> Vec<Reply> {
        let opened = self.opened();
        let rows = rows(&opened, &searches);
        let mut replies: Vec<Option<Reply>> =
            rows.iter().map(|rows| rows.as_ref().err().map(|error| self.refusal(400, error))).collect();
        while let Some(first) = replies.iter().position(Option::is_none) {
            // All that ask the same as the first without a reply.
            let options = &searches[first].options;
            let together: Vec<usize> = (first..searches.len())
                .filter(|&place| replies[place].is_none() && searches[place].options == *options)
                .collect();
            let asked = |places: &[usize]| self.ask(&opened, &searches, &rows, places);
            match asked(&together) {
                Ok(answers) => {
                    together.iter().zip(answers).for_each(|(&place, reply)| replies[place] = Some(reply));
                }
                // The flaw may be in one of them.
                Err(_) => {
                    for &place in &together {
                        let reply = asked(&[place]).map(|mut answers| answers.remove(0));
                        replies[place] = Some(reply.unwrap_or_else(|error| self.refusal(400, &error)));
                    }
                }
            }
        }
        replies.into_iter().flatten().collect()
    }

    /// The replies to the searches at these places, which have the same options.
    fn ask(
        &self,
        opened: &Opened,
        searches: &[Search],
        rows: &[Result<Vec<Vec<f32>>>],
        places: &[usize],
    ) -> Result<Vec<Reply>> {
        let known = &opened.known;
        let Options { within, not, group_by, promise, detailed } = &searches[places[0]].options;
        let rows = |place: usize| rows[place].iter().flatten();
        let itself = places.iter().flat_map(|&place| {
            let item = match searches[place].queries {
                Queries::Item(item, _) => Some(item),
                Queries::Sample(place) => opened.sampled(place),
                _ => None,
            };
            rows(place).map(move |_| item)
        });
        let question = Question {
            count: places.iter().map(|&place| searches[place].count).max().unwrap_or_default(),
            promise: *promise,
            filter: Filter::new(&known.taxonomy, within, not)?,
            group_by: group_by.as_ref().map(|level| known.taxonomy.find_level(level)).transpose()?,
            itself: itself.collect(),
            detailed: *detailed,
        };
        let values = places.iter().flat_map(|&place| rows(place)).flatten().copied().collect();
        let mut found =
            known.ask(&Embeddings::new(known.rows().dimension(), values)?, &question)?.into_iter();
        let mut replies = Vec::with_capacity(places.len());
        for &place in places {
            let answers: Vec<Value> = found
                .by_ref()
                .take(rows(place).count())
                .map(|mut found| {
                    found.hits.truncate(searches[place].count);
                    self.found_json(opened, &found, *promise, *detailed)
                })
                .collect();
            let mut reply = known.about_json();
            match (&searches[place].queries, &answers[..]) {
                (Queries::Many(_), _) => reply["queries"] = answers.into(),
                (_, [Value::Object(answer)]) => {
                    reply.as_object_mut().into_iter().for_each(|reply| reply.extend(answer.clone()));
                }
                _ => {}
            }
            replies.push(json_reply(&reply));
        }
        Ok(replies)
    }

    fn found_json(&self, opened: &Opened, found: &Found, promise: Promise, detailed: bool) -> Value {
        let known = &opened.known;
        let mut answer = known.found_json(found, promise);
        if detailed {
            answer["neighbours"] =
                found.neighbours.as_ref().map(|neighbours| known.neighbours_json(neighbours)).into();
        }
        for (item, hit) in answer["items"].as_array_mut().into_iter().flatten().zip(&found.hits) {
            self.dress(known, hit.item, item);
            if let Some(place) = opened.places.get(&hit.item).filter(|_| detailed) {
                item["sample"] = (*place).into();
            }
        }
        answer
    }

    /// Adds where the thumbnail of an item is, and takes away its path unless paths are shown.
    fn dress(&self, known: &KnownGallery, number: usize, item: &mut Value) {
        if let Some(row) = known.row(number) {
            item["thumbnail"] =
                format!("items/{number}/thumbnail?version={}", row.sha256.get(..16).unwrap_or_default())
                    .into();
        }
        if !self.show_paths {
            item.as_object_mut().map(|item| item.remove("path"));
        }
    }

    fn item(&self, known: &KnownGallery, number: usize) -> Value {
        let mut item = known.item_json(number);
        self.dress(known, number, &mut item);
        item
    }

    fn answer_for_ever(&self, calls: &Mutex<Receiver<(Call, Respond)>>) {
        loop {
            let next = calls.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok((call, respond)) = next else { return };
            // Without a reply the server says that there is none.
            if let Ok(reply) = catch_unwind(AssertUnwindSafe(|| self.answer(&call))) {
                respond(reply);
            }
        }
    }

    fn answer(&self, call: &Call) -> Reply {
        let opened = self.opened();
        let known = &opened.known;
        let path: Vec<&str> = call.path.split('/').collect();
        let item = |text: &str| text.parse().ok().filter(|&item: &usize| item < known.items());
        let reply = match path[..] {
            ["openapi.json"] => Ok(json_reply(&description())),
            ["gallery"] => Ok(json_reply(&self.gallery(known))),
            ["classes"] => Ok(json_reply(&classes(known))),
            ["items"] => self.items(known, &call.query).map(|items| json_reply(&items)),
            ["items", number] if item(number).is_some() => {
                Ok(json_reply(&self.item(known, item(number).unwrap_or_default())))
            }
            ["items", number, "thumbnail"] if item(number).is_some() => {
                return self.thumbnail(&opened, item(number).unwrap_or_default(), &call.query);
            }
            _ => {
                let (text, items) = (&call.path, known.items());
                let error = problem(
                    format!("there is nothing at /{text}"),
                    format!(
                        "see /openapi.json; the items of the gallery are 0 to {}",
                        items.saturating_sub(1)
                    ),
                );
                return refusal(404, &error);
            }
        };
        reply.unwrap_or_else(|error| self.refusal(400, &error))
    }

    fn gallery(&self, known: &KnownGallery) -> Value {
        let levels: Vec<Value> = (1..)
            .zip(known.level_names())
            .map(|(level, name)| json!({ "name": name, "classes": known.taxonomy.class_count(level) }))
            .collect();
        json!({
            "name": self.folder.file_name().unwrap_or_default().to_string_lossy(),
            "items": known.items(), "encoder": known.name, "dimension": known.rows().dimension(),
            "similarity": known.similarity, "levels": levels, "is_calibrated": known.is_calibrated(),
        })
    }

    /// A page of the items that a filter keeps.
    fn items(&self, known: &KnownGallery, query: &[(String, String)]) -> Result<Value> {
        let (mut first, mut limit) = (0, None);
        let (mut within, mut not) = (Vec::new(), Vec::new());
        for (name, value) in query {
            match name.as_str() {
                "first" => first = number(name, value)?,
                "count" => limit = Some(number(name, value)?),
                "within" => within.push(value),
                "not" => not.push(value),
                _ => return Err(unknown(name)),
            }
        }
        let filter = Filter::new(&known.taxonomy, &within, &not)?;
        let kept = (!filter.keeps_all()).then(|| known.items_of(&filter));
        let all = kept.as_ref().map_or(known.items(), Vec::len);
        let places = first.min(all)..all.min(first.saturating_add(count(limit.or(Some(100)))?));
        let items: Vec<Value> =
            places.map(|place| self.item(known, kept.as_ref().map_or(place, |kept| kept[place]))).collect();
        Ok(json!({ "all": all, "first": first, "items": items }))
    }

    fn thumbnail(&self, opened: &Opened, item: usize, query: &[(String, String)]) -> Reply {
        let (mut size, mut is_final) = (Size { side: 192, is_square: false }, false);
        let Some(row) = opened.known.row(item) else {
            return refusal(404, &problem("it has no file", ""));
        };
        for (name, value) in query {
            match (name.as_str(), value.parse()) {
                ("side", Ok(side @ 16..=1024)) => size.side = side,
                ("side", _) => {
                    return refusal(400, &problem(format!("side={value}"), "give 16 to 1024 pixels"));
                }
                ("square", _) => size.is_square = value != "false",
                ("version", _) => is_final = !value.is_empty() && row.sha256.starts_with(value.as_str()),
                _ => return refusal(400, &unknown(name)),
            }
        }
        let read = || opened.storage.bytes(item, &row.file()).ok();
        match self.thumbnails.get(&row.sha256, size, read) {
            Some(jpeg) => {
                Reply { status: 200, content_type: "image/jpeg", is_final, body: jpeg.as_ref().clone() }
            }
            None => refusal(
                404,
                &problem(
                    format!("the picture of item {item} is gone, has changed, or cannot be read"),
                    "`akin index GALLERY --refresh` follows the files",
                ),
            ),
        }
    }

    /// A refusal without the place of the gallery.
    fn refusal(&self, status: u16, error: &anyhow::Error) -> Reply {
        let (message, hint) = parts(error);
        let plain = |text: &str| text.replace(&*self.folder.to_string_lossy(), "the gallery");
        refusal(status, &problem(plain(&message), plain(&hint.unwrap_or_default())))
    }
}

/// The embeddings of searches, or why one has none. All pictures are embedded at once.
fn rows(opened: &Opened, searches: &[Search]) -> Vec<Result<Vec<Vec<f32>>>> {
    let known = &opened.known;
    let d = known.rows().dimension();
    let decoded: Vec<Option<akin_core::Result<Pixels>>> = searches
        .par_iter()
        .map(|search| match &search.queries {
            Queries::Picture(bytes) => Some(decode(bytes)),
            _ => None,
        })
        .collect();
    let pictures: Vec<Pixels> = decoded.iter().flatten().flatten().cloned().collect();
    let embedded = known.embed_pixels(&pictures).map_err(|error| error.to_string());
    let mut embedded = embedded.as_ref().map(|values| values.chunks(d));
    let row_of = |item: usize| -> Result<Vec<f32>> {
        if item >= known.items() {
            return Err(problem(
                format!("the gallery has no item {item}"),
                format!("give a number from 0 to {}", known.items().saturating_sub(1)),
            ));
        }
        let mut row = vec![0.0; d];
        known.rows().read(item, &mut row)?;
        Ok(row)
    };
    let is_version = |item: usize, version: &str| {
        known.row(item).is_some_and(|row| !version.is_empty() && row.sha256.starts_with(version))
    };
    let gone = || problem("the picture is no longer in the gallery", "search with another");
    let check = |rows: &[Vec<f32>]| match rows.iter().find(|row| row.len() != d) {
        Some(row) => Err(problem(
            format!("an embedding has {} numbers, but those of the gallery have {d}", row.len()),
            "embed with the encoder of the gallery",
        )),
        None => Ok(rows.to_vec()),
    };
    searches
        .iter()
        .zip(decoded)
        .map(|(search, decoded)| match (&search.queries, decoded) {
            (Queries::One(row), _) => check(std::slice::from_ref(row)),
            (Queries::Many(rows), _) => check(rows),
            (Queries::Item(item, Some(version)), _) if !is_version(*item, version) => Err(gone()),
            (Queries::Item(item, _), _) => Ok(vec![row_of(*item)?]),
            (Queries::Sample(place), _) => Ok(vec![row_of(opened.sampled(*place).ok_or_else(gone)?)?]),
            (Queries::Picture(_), Some(Err(error))) => Err(error.into()),
            (Queries::Picture(_), _) => match &mut embedded {
                Ok(rows) => Ok(rows.next().map(<[f32]>::to_vec).into_iter().collect()),
                Err(error) => Err(problem((*error).clone(), "try again")),
            },
        })
        .collect()
}

/// The classes of all levels with the number of their items, coarse → fine.
fn classes(known: &KnownGallery) -> Value {
    let mut counts: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for item in 0..known.items() {
        let path = known.known_path_of(item);
        for level in 1..=path.len() {
            *counts.entry(path[..level].to_vec()).or_default() += 1;
        }
    }
    let levels = known.level_names();
    let class = |(path, items): (&Vec<String>, &usize)| json!({ "level": levels.get(path.len() - 1), "path": path, "items": items });
    json!({ "classes": counts.iter().map(class).collect::<Vec<_>>() })
}

fn json_reply(value: &Value) -> Reply {
    Reply { status: 200, content_type: "application/json", is_final: false, body: value.to_string().into() }
}

/// An error for programs.
fn refusal(status: u16, error: &anyhow::Error) -> Reply {
    let (message, hint) = parts(error);
    Reply { status, ..json_reply(&json!({ "error": message, "hint": hint })) }
}
