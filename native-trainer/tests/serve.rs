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
    let (status, body) = ask(server, "GET", path, headers, &[]);
    assert_eq!(status, 200, "{path}");
    body
}

/// The status and the body of the answer to one request.
fn ask(server: &Server, method: &str, path: &str, headers: &str, body: &[u8]) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    // The server may refuse a body before it has read it.
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|part| part == b"\r\n\r\n").unwrap() + 4;
    let status = std::str::from_utf8(&answer[9..12]).unwrap().parse().unwrap();
    (status, answer.split_off(end))
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

/// A gallery of 24 creatures, with its run.
#[cfg(not(feature = "page"))]
mod a_gallery {
    use std::fs;
    use std::thread;
    use std::time::Duration;

    use akin_core::image::decode;
    use serde_json::{Value, json};
    use workplace::tiny;

    use super::*;

    fn gallery() -> Workplace {
        let at = Workplace::with_classes(&tiny(&[("steps = 2", "steps = 1")]), "2,1,3", "4", "32");
        at.akin(&["train", "tiny.toml", "--out", "run"]).expect_code(0);
        at.akin(&["index", "run", "data/images", "--out", "g", "--levels", "order,family,species"])
            .expect_code(0);
        at
    }

    fn serve(at: &Workplace, options: &[&str]) -> Server {
        let arguments = [&["serve", "g", "--port", "0"], options].concat();
        Server::start(at.command(&arguments).stdin(Stdio::null()).stderr(Stdio::piped()))
    }

    fn json_of(server: &Server, path: &str) -> Value {
        serde_json::from_slice(&get(server, path, "")).unwrap()
    }

    fn search(server: &Server, body: &Value) -> (u16, Value) {
        let body = body.to_string();
        let kind = "Content-Type: application/json\r\n";
        let (status, answer) = ask(server, "POST", "/search", kind, body.as_bytes());
        (status, serde_json::from_slice(&answer).unwrap())
    }

    /// What `akin search` prints, in the form of the server.
    fn printed(at: &Workplace, arguments: &[&str]) -> Value {
        let answer = at.akin(&[&["search", "g", "--json"], arguments].concat()).expect_code(0);
        without_places(serde_json::from_str(&answer.stdout).unwrap())
    }

    /// Without the paths and thumbnails of items, the name of a query, and the number of items that were scored.
    fn without_places(mut answer: Value) -> Value {
        match &mut answer {
            Value::Object(fields) => {
                for place in ["path", "thumbnail", "query", "scored"] {
                    fields.remove(place);
                }
                fields.values_mut().for_each(|value| *value = without_places(value.take()));
            }
            Value::Array(values) => values.iter_mut().for_each(|value| *value = without_places(value.take())),
            _ => {}
        }
        answer
    }

    #[test]
    fn programs_get_what_akin_search_finds() {
        let at = gallery();
        let server = serve(&at, &[]);
        let (status, found) = search(&server, &json!({ "item": 3, "count": 5 }));
        assert_eq!((status, without_places(found)), (200, printed(&at, &["--near", "3", "-k", "5"])));
        let filtered =
            json!({ "item": 3, "not": [found_class(&server)], "group_by": "species", "promise": 80 });
        let (status, found) = search(&server, &filtered);
        let options =
            ["--near", "3", "--not", &found_class(&server), "--group-by", "species", "--promise", "80"];
        assert_eq!((status, without_places(found)), (200, printed(&at, &options)));

        at.akin(&["embed", "g", "--out", "e.jsonl"]).expect_code(0);
        let rows: Vec<Value> = String::from_utf8(at.bytes("e.jsonl"))
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["embedding"].take())
            .collect();
        let (_, found) = search(&server, &json!({ "embeddings": rows, "count": 3 }));
        let of_file = printed(&at, &["--embeddings", "e.jsonl", "-k", "3"]);
        assert_eq!(without_places(found), of_file);

        // A picture, alone and among others.
        let picture = at.path(&format!("data/images/{}", first_path(&at)));
        let bytes = fs::read(&picture).unwrap();
        let of_picture = printed(&at, &[picture.to_str().unwrap(), "-k", "4"]);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let (status, found) =
                        ask(&server, "POST", "/search?count=4", "Content-Type: image/png\r\n", &bytes);
                    let found: Value = serde_json::from_slice(&found).unwrap();
                    assert_eq!(status, 200, "{found}");
                    let items = |answer: &Value| -> Vec<Value> {
                        answer["items"].as_array().unwrap().iter().map(|item| item["item"].clone()).collect()
                    };
                    assert_eq!(items(&found), items(&of_picture));
                });
            }
        });
    }

    /// A class of the finest level.
    fn found_class(server: &Server) -> String {
        json_of(server, "/items/3")["labels"][2].as_str().unwrap().to_owned()
    }

    fn first_path(at: &Workplace) -> String {
        path_of(at, 0)
    }

    /// The path of an item that is not the second.
    fn path_of(at: &Workplace, number: usize) -> String {
        let answer = at.akin(&["search", "g", "--near", "1", "-k", "24", "--json"]).expect_code(0);
        let found: Value = serde_json::from_str(&answer.stdout).unwrap();
        let items = found["items"].as_array().unwrap();
        let item = items.iter().find(|item| item["item"] == number).unwrap();
        item["path"].as_str().unwrap().rsplit_once("data/images/").unwrap().1.to_owned()
    }

    #[test]
    fn items_come_page_by_page_with_thumbnails_of_what_was_indexed() {
        let at = gallery();
        let server = serve(&at, &[]);
        let about = json_of(&server, "/gallery");
        assert_eq!(
            (&about["name"], &about["items"], &about["levels"][2]["classes"]),
            (&json!("g"), &json!(24), &json!(6))
        );
        let classes = json_of(&server, "/classes");
        let of = |classes: &Value| -> u64 {
            let finest =
                classes["classes"].as_array().unwrap().iter().filter(|class| class["level"] == "species");
            finest.map(|class| class["items"].as_u64().unwrap()).sum()
        };
        assert_eq!(of(&classes), 24);
        let class = found_class(&server);
        let within = json_of(&server, &format!("/items?within={class}&count=3&first=2"));
        assert_eq!((&within["all"], within["items"].as_array().unwrap().len()), (&json!(4), 2));
        assert!(within["items"].as_array().unwrap().iter().all(|item| item["labels"][2] == *class));
        let all = json_of(&server, "/items");
        assert_eq!(all["items"].as_array().unwrap().len(), 24);
        assert_eq!(all["items"][0], json_of(&server, "/items/0"));

        let place = all["items"][0]["thumbnail"].as_str().unwrap();
        let thumbnail = decode(&get(&server, &format!("/{place}&side=16"), "")).unwrap();
        assert_eq!((thumbnail.width(), thumbnail.height()), (16, 16));
        let text = String::from_utf8(get(&server, "/items", "")).unwrap();
        let (_, found) = search(&server, &json!({ "item": 0 }));
        assert!(!text.contains(".png") && !found.to_string().contains(".png"), "a path is told");

        // Another picture in its place is not shown.
        let file = at.path("data/images").join(first_path(&at));
        fs::write(&file, fs::read(at.path("data/labels.csv")).unwrap()).unwrap();
        assert_eq!(ask(&server, "GET", "/items/0/thumbnail?side=17", "", &[]).0, 404);
        drop(server);
        let server = serve(&at, &["--show-paths"]);
        assert!(json_of(&server, "/items/0")["path"].as_str().unwrap().ends_with(".png"));
    }

    #[test]
    fn the_page_holds_a_sample_of_a_larger_gallery() {
        let at = gallery();
        at.write("page/index.html", "<p>A page.");
        let page = at.path("page");
        let part =
            |pictures: &str| serve(&at, &["--page", page.to_str().unwrap(), "--page-pictures", pictures]);
        let server = part("24");
        assert_eq!(json_of(&server, "/bundles.json")["bundles"][0]["sample"], json!(null));
        drop(server);

        let server = part("8");
        assert_eq!(json_of(&server, "/bundles.json")["bundles"][0]["sample"], json!(true));
        let bundle = json_of(&server, "/bundle/bundle.json");
        assert_eq!(bundle["gallery"]["count"], 8);
        assert_eq!(bundle["taxonomy"]["classes"][2].as_array().unwrap().len(), 6, "classes of all pictures");
        // The sample has each third picture.
        let (_, found) = search(&server, &json!({ "sample": 2, "count": 23, "detailed": true }));
        let (_, plain) = search(&server, &json!({ "item": 6, "count": 23 }));
        let items = |found: &Value| -> Vec<u64> {
            found["items"].as_array().unwrap().iter().map(|item| item["item"].as_u64().unwrap()).collect()
        };
        assert_eq!(items(&found), items(&plain));
        for item in found["items"].as_array().unwrap() {
            let number = item["item"].as_u64().unwrap();
            assert_eq!(item["sample"].as_u64(), (number % 3 == 0).then_some(number / 3));
        }
        assert!(plain.get("neighbours").is_none() && plain["items"][0].get("sample").is_none());
        let said = &found["neighbours"];
        let vote = &said["votes"][2];
        let class = said["classes"]
            .as_array()
            .unwrap()
            .iter()
            .find(|class| (&class["level"], &class["class"]) == (&vote["level"], &vote["class"]));
        assert_eq!(class.unwrap()["names"].as_array().unwrap().len(), 3);
        let (_, within) =
            search(&server, &json!({ "sample": 2, "within": [found_class(&server)], "detailed": true }));
        assert_eq!(within["neighbours"], json!(null), "of some classes no votes are told");

        let place = plain["items"][0]["thumbnail"].as_str().unwrap();
        let square = decode(&get(&server, &format!("/{place}&side=20&square=true"), "")).unwrap();
        assert_eq!((square.width(), square.height()), (20, 20));
        let version = place.split_once("version=").unwrap().1;
        let named = json!({ "item": plain["items"][0]["item"], "version": version });
        assert_eq!(search(&server, &named).0, 200);
        for gone in [json!({ "item": 6, "version": version }), json!({ "item": 6, "version": "" })] {
            let (status, answer) = search(&server, &gone);
            assert!(status == 400 && answer["error"].as_str().unwrap().contains("no longer"), "{answer}");
        }

        // Pictures that leave the gallery leave the sample, and the others keep their places.
        at.akin(&["index", "g", "--remove", first_path(&at).as_str()]).expect_code(0);
        let shrunk = (0..200).any(|_| {
            thread::sleep(Duration::from_millis(100));
            json_of(&server, "/gallery")["items"] == 23
        });
        assert!(shrunk, "the server shows the gallery as it was");
        let (status, answer) = search(&server, &json!({ "sample": 0 }));
        assert!(status == 400 && answer["error"].as_str().unwrap().contains("no longer"), "{answer}");
        let (_, again) = search(&server, &json!({ "sample": 2, "count": 22 }));
        let before: Vec<u64> =
            items(&found).into_iter().filter(|&item| item != 0).map(|item| item - 1).collect();
        assert_eq!(items(&again), before);
    }

    #[test]
    fn pictures_that_are_gone_keep_no_gallery_from_being_served() {
        let at = gallery();
        at.write("page/index.html", "<p>A page.");
        let page = at.path("page");
        let serve = || serve(&at, &["--page", page.to_str().unwrap()]);
        let first = at.path("data/images").join(first_path(&at));
        let bytes = fs::read(&first).unwrap();
        fs::remove_file(&first).unwrap();
        let server = serve();
        assert_eq!(json_of(&server, "/bundle/bundle.json")["gallery"]["count"], 23);
        assert_eq!(json_of(&server, "/bundles.json")["bundles"][0]["sample"], json!(true));
        let (_, found) = search(&server, &json!({ "item": 1, "count": 23, "detailed": true }));
        let gone = found["items"].as_array().unwrap().iter().find(|item| item["item"] == 0).unwrap();
        assert!(gone.get("sample").is_none(), "it is found, and not in the page");
        let digest = |server: &Server| json_of(server, "/bundle/bundle.json")["digest"].clone();
        let before = digest(&server);
        drop(server);

        // As many pictures are there, but others.
        let place = |item: usize| at.path("data/images").join(path_of(&at, item));
        fs::remove_file(place(5)).unwrap();
        fs::write(&first, &bytes).unwrap();
        let server = serve();
        assert_eq!(json_of(&server, "/bundle/bundle.json")["gallery"]["count"], 23);
        assert_ne!(digest(&server), before);
        drop(server);

        fs::remove_dir_all(at.path("data/images")).unwrap();
        let server = serve();
        assert_eq!(json_of(&server, "/gallery")["items"], 24);
        let said = server.end();
        assert!(said.contains("none of its pictures is there"), "{said}");
    }

    #[test]
    fn a_gallery_that_grows_is_seen() {
        let at = gallery();
        let server = serve(&at, &[]);
        fs::copy(at.path("data/images").join(first_path(&at)), at.path("new.png")).unwrap();
        at.akin(&["index", "g", "--add", "new.png"]).expect_code(0);
        let grown = (0..200).any(|_| {
            thread::sleep(Duration::from_millis(100));
            json_of(&server, "/gallery")["items"] == 25
        });
        assert!(grown, "the server shows the gallery as it was");
        let (_, found) = search(&server, &json!({ "item": 24, "count": 1 }));
        assert_eq!(found["items"][0]["item"], 0);
        assert_eq!(json_of(&server, "/items/24")["labels"], json!([]));
    }

    #[test]
    fn what_cannot_be_answered_says_why_and_tells_no_place() {
        let at = gallery();
        let server = serve(&at, &[]);
        for (body, why) in [
            (json!({ "embedding": [1.0] }), "an embedding has 1 numbers"),
            (json!({ "embeddings": [] }), "1 to 256 embeddings"),
            (json!({ "item": 24 }), "no item 24"),
            (json!({}), "not one kind of query"),
            (json!({ "item": 1, "embedding": [1.0] }), "not one kind of query"),
            (json!({ "item": 1, "within": ["Dragons"] }), "no class is called"),
            (json!({ "item": 1, "group_by": "genus" }), "genus"),
            (json!({ "sample": 0 }), "no longer in the gallery"),
            (json!({ "sample": 0, "item": 0 }), "not one kind of query"),
            (json!({ "item": 1, "count": 0 }), "0 items are asked for"),
            (json!({ "item": 1, "count": 1001 }), "1001 items are asked for"),
            (json!({ "item": 1, "promise": 3 }), "the promise is 3 %"),
            (json!({ "item": 1, "nonsense": 3 }), "unknown field `nonsense`"),
            (json!({ "item": -1 }), "the body is no search"),
        ] {
            let (status, answer) = search(&server, &body);
            let error = answer["error"].as_str().unwrap();
            assert!(status == 400 && error.contains(why), "{body}: {status} {answer}");
            assert!(!answer["hint"].as_str().unwrap().is_empty(), "{body}: {answer}");
        }
        let folder = at.folder().to_str().unwrap().to_owned();
        for (method, path, body, expected) in [
            ("POST", "/search", "no picture", 400),
            ("POST", "/search", "", 400),
            ("POST", "/search?nonsense=1", "x", 400),
            ("GET", "/search", "", 405),
            ("POST", "/items", "", 405),
            ("PUT", "/search", "x", 405),
            ("GET", "/items/24", "", 404),
            ("GET", "/items/x", "", 404),
            ("GET", "/items/0/thumbnail?side=5", "", 400),
            ("GET", "/items?count=x", "", 400),
            ("GET", "/items?within=Dragons", "", 400),
            ("GET", "/items/../g/gallery.json", "", 404),
            ("GET", "/gallery.json", "", 404),
            ("GET", "/bundles.json", "", 404),
        ] {
            let (status, answer) = ask(&server, method, path, "", body.as_bytes());
            let answer = String::from_utf8(answer).unwrap();
            assert_eq!(status, expected, "{method} {path}: {answer}");
            assert!(!answer.contains(&folder), "{method} {path}: {answer}");
        }
        let foreign = "Origin: https://evil.example.com\r\n";
        assert_eq!(ask(&server, "POST", "/search", foreign, b"x").0, 403);
        assert!(String::from_utf8(get(&server, "/", "")).unwrap().contains("openapi.json"));
        let described = json_of(&server, "/openapi.json");
        assert!(described["paths"]["/search"]["post"].is_object());
        drop(server);

        at.akin(&["serve", "run", "--show-paths"]).expect_code(1).expect_stderr("are for a gallery");
        at.akin(&["serve", "g", "g"]).expect_code(1).expect_stderr("second gallery");
    }
}
