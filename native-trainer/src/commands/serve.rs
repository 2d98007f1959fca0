//! `akin serve`: serves the page with bundles, and with runs and galleries, which it exports first, and a gallery to programs.

mod description;
mod service;
mod thumbnails;

use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use akin_base::directory::{self, Kind, MARK_FILE};
use akin_base::files::read_regular_file;
use akin_base::problem::{Advise, problem};
use akin_base::progress::Progress;
use akin_base::quantities::{count, counted};
use akin_base::{shell, terminal};
use akin_core::bundle::{ElementType, INDEX, MANIFEST, Manifest};
use akin_core::embeddings::Rows;
use akin_gallery::{Gallery, Row};
use akin_server::bundles::Bundles;
use akin_server::onnxruntime::OnnxRuntime;
use akin_server::page::{self, Page};
use akin_server::serve::{self, Server};
use anyhow::Result;
use clap::Args;

use crate::commands::arguments::ServerArgs;
use crate::commands::export::{Export, GalleryExport, NOTICE, TILE, check_licences, export, title_of};
use crate::commands::known_gallery::Bundle;
use crate::config::DeviceName;
use crate::runs::run::{CONFIG_FILE, Run};

/// Serve the page with one or more bundles or runs, or a gallery, by default on this machine only.
///
/// A run is first exported to a bundle beside it, as `akin export RUN --out RUN.bundle` does; a bundle that is newer than
/// its run is served as it is, and one that was exported with other options is refused. Checks the bundles first. Shows
/// the page that this program holds. A program without a page shows the page of the source tree around the current
/// directory, and builds it if it is not up to date. Without a bundle, serves the gallery of groceries in that tree.
/// Browsers allow WebGPU only for pages from localhost or over HTTPS, so opening the files directly does not work. To
/// publish, let `akin export --site` write the page and its bundles as one folder.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Run directories, folders that `akin export` wrote, or folders of such folders with a `bundles.json`. The page opens
    /// the first, and switches between them. One may be a gallery.
    #[arg(value_name = "BUNDLE|RUN|GALLERY")]
    pub bundles: Vec<PathBuf>,
    #[command(flatten)]
    pub server: ServerArgs,
    /// The folder of ONNX Runtime for the page, `dist` of the npm package onnxruntime-web, if a bundle has an ONNX file and
    /// the page comes without it.
    #[arg(long, value_name = "DIR")]
    pub onnxruntime: Option<PathBuf>,
    /// The most pictures of a gallery that the page holds. Of a larger gallery it holds an evenly spaced sample, and shows
    /// the sample on its map. It then searches all pictures through this server, and sends it only the embedding of your
    /// picture. It does the same for a gallery with pictures that have no labels.
    #[arg(long, value_name = "N", default_value_t = PAGE_PICTURES, value_parser = clap::value_parser!(u32).range(1..))]
    pub page_pictures: u32,
    /// Answer programs with the paths of pictures, too.
    #[arg(long)]
    pub show_paths: bool,
    /// The device that embeds the pictures that programs search with.
    #[arg(long, value_enum, default_value_t)]
    pub device: DeviceName,
    /// The licence of the pictures and weights of a gallery, as `akin export` takes it.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub licence: String,
    /// How to show progress while a run is exported.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
}

/// Serves the page and bundles until Ctrl-C.
pub fn run(args: ServeArgs) -> Result<()> {
    let folders = match args.bundles.clone() {
        none if none.is_empty() => vec![page::galleries().ok_or_else(|| {
            problem(
                "there is no bundle to serve",
                "name a run that `akin train` wrote or a folder that `akin export` wrote, or start `akin demo`",
            )
        })?],
        given => given,
    };
    let (galleries, folders): (Vec<PathBuf>, Vec<PathBuf>) =
        folders.into_iter().partition(|folder| is_gallery(folder));
    let gallery = match &galleries[..] {
        [] if args.show_paths || !args.licence.is_empty() => {
            return Err(problem(
                "`--show-paths` and `--licence` are for a gallery, and none is served",
                "remove them, or name a gallery that `akin index` wrote",
            ));
        }
        [] => None,
        [gallery] => Some(gallery),
        [_, other, ..] => {
            return Err(problem(
                format!("{} is a second gallery, and a server answers for one", other.display()),
                "serve each on a port of its own, with `--port`",
            ));
        }
    };
    let (runs, given): (Vec<PathBuf>, Vec<PathBuf>) =
        folders.iter().cloned().partition(|folder| is_run(folder));
    for folder in &given {
        refuse_other(folder)?;
    }
    OnnxRuntime::check(args.onnxruntime.as_deref())?;
    // Errors in a bundle, a run or the port are reported before a run is exported and the page is built.
    for run in &runs {
        check_run(run)?;
    }
    let bundles = if given.is_empty() { None } else { Some(Bundles::open(&given)?) };
    let hosts = args.server.hosts()?;
    let listener = serve::listen(&hosts, args.server.port)?;
    let shown = match gallery {
        Some(folder) => bundle_of_gallery(folder, &args)?,
        None => None,
    };
    let (shown, sample) = shown.map_or((None, Vec::new()), |Shown { bundle, sample }| (Some(bundle), sample));
    let is_sample = !sample.is_empty();
    let api =
        gallery.map(|folder| service::start(folder, args.device, args.show_paths, sample)).transpose()?;
    if shown.is_none() && folders.is_empty() {
        say_where_programs_ask(&listener)?;
        let page = Page::Single(description::PAGE);
        return Server::start(listener, page, None, Bundles::none(), hosts, api)?.run();
    }
    let page = page::plan(args.server.page.as_deref(), page::Build::Quick)?;
    let bundles = match bundles {
        Some(bundles) if runs.is_empty() && shown.is_none() => bundles,
        _ => {
            let bundle_of = |folder: PathBuf| match is_run(&folder) {
                true => export_run(&folder, args.progress),
                false => Ok(folder),
            };
            let folders = folders.into_iter().map(bundle_of);
            let bundles =
                Bundles::open(&shown.into_iter().map(Ok).chain(folders).collect::<Result<Vec<_>>>()?)?;
            if is_sample { bundles.first_is_sample()? } else { bundles }
        }
    };
    let page = page.carry_out()?;
    let runtime = OnnxRuntime::find(args.onnxruntime.as_deref(), &page, &bundles)?;
    if gallery.is_some() {
        say_where_programs_ask(&listener)?;
    }
    Server::start(listener, page, runtime, bundles, hosts, api)?.run()
}

fn say_where_programs_ask(listener: &TcpListener) -> Result<()> {
    let port = listener.local_addr()?.port();
    terminal::say(format_args!(
        "Programs search in the gallery at http://localhost:{port}/openapi.json and below."
    ));
    Ok(())
}

/// Whether a folder is a gallery that `akin index` wrote.
fn is_gallery(folder: &Path) -> bool {
    folder.join(akin_gallery::MANIFEST).is_file()
}

/// The most pictures of a gallery that the page holds.
const PAGE_PICTURES: u32 = 10_000;

/// What the page has of a gallery.
struct Shown {
    /// A bundle of its pictures, or of a sample of them.
    bundle: PathBuf,
    /// The pictures of the bundle if the server searches; none if the page searches by itself.
    sample: Vec<Row>,
}

/// The bundle of a gallery for the page, which is written now unless it is newer than the gallery; none where no
/// picture of it is there, and where there is no page. Why is said.
fn bundle_of_gallery(folder: &Path, args: &ServeArgs) -> Result<Option<Shown>> {
    let gallery = Gallery::open(folder)?;
    let items = GalleryExport::items(&gallery, args.page_pictures as usize);
    let lacks = if items.is_empty() {
        Some("none of its pictures is there")
    } else if args.server.page.is_none() && page::state() == page::State::None {
        Some("this akin was built without it, and `--page` does not name one")
    } else {
        None
    };
    if let Some(lacks) = lacks {
        terminal::warn(format_args!(
            "the page does not show the gallery, because {lacks}; programs search in it"
        ));
        return Ok(None);
    }
    let mut sample = Vec::new();
    // Pictures without labels have no place in a bundle that is searched by itself.
    if gallery.rows().len() > items.len() || gallery.labelled().is_empty() {
        sample = items.iter().map(|&item| gallery.rows()[item].clone()).collect();
        let all = counted(gallery.rows().len(), "picture", "pictures");
        args.progress.say(
            "Showing",
            &format!("{} of {all} in the page; this server searches all", count(items.len())),
        );
    }
    let bundle = place_beside(folder)?;
    let written = |path: &Path| fs::metadata(path).and_then(|mark| mark.modified()).ok();
    let is_complete = directory::is_complete(Kind::Bundle, &bundle)?
        && written(&bundle.join(MARK_FILE)) > written(&folder.join(akin_gallery::MANIFEST))
        && holds(&Bundle::open(&bundle)?, &gallery, &items)?;
    if !is_complete {
        let exported = GalleryExport::new(gallery, &items, args.device, &args.licence)?;
        let title = exported.title();
        exported.export(&Export {
            overwrite: true,
            licence: args.licence.clone(),
            ..Export::new(&[], &bundle, title, args.progress)
        })?;
    }
    Ok(Some(Shown { bundle, sample }))
}

/// Whether a bundle has the pictures of a gallery at these places, by their embeddings. Which are there may have changed since
/// it was written.
fn holds(bundle: &Bundle, gallery: &Gallery, items: &[usize]) -> Result<bool> {
    let entry = bundle.manifest.encoder(0)?;
    let own = bundle.manifest.gallery_embeddings(0, &bundle.file(&entry.gallery_embeddings)?)?;
    let mut row = vec![0.0; gallery.vectors().dimension()];
    let mut is_same = own.len() == items.len();
    for (place, &item) in items.iter().enumerate().take(own.len()) {
        gallery.vectors().read(item, &mut row)?;
        is_same &= own.row(place) == row;
    }
    Ok(is_same)
}

/// Refuses a folder that akin wrote and that is neither a run nor a bundle, nor has an index of bundles.
fn refuse_other(folder: &Path) -> Result<()> {
    const HINT: &str = "name a run that `akin train` wrote or a folder that `akin export` wrote";
    let has = |name: &str| folder.join(name).is_file();
    match directory::other_kind(folder, &[Kind::Bundle, Kind::Run], HINT) {
        Some(error) if !has(MANIFEST) && !has(INDEX) => Err(error),
        _ => Ok(()),
    }
}

/// Whether a folder is a run, and no bundle.
fn is_run(folder: &Path) -> bool {
    folder.join(CONFIG_FILE).is_file() && !folder.join(MANIFEST).is_file()
}

/// Refuses a run that is not finished, and one beside which another bundle stands.
fn check_run(folder: &Path) -> Result<()> {
    let run = Run::open(folder)?;
    if !directory::is_complete(Kind::Run, folder)? {
        return Err(problem(
            format!("the training of the run {} is not finished", folder.display()),
            format!("finish it with `akin resume {}`", shell::path(folder)),
        ));
    }
    let out = place_beside(folder)?;
    check_bundle(&run, &out)?;
    let title = title_of(&run.config.data);
    check_licences(&Export::new(&[run], &out, title, Progress::None))
}

/// The place of the bundle of a run, beside the run.
fn place_beside(folder: &Path) -> Result<PathBuf> {
    let whole = fs::canonicalize(folder)?;
    let name =
        [whole.file_name().unwrap_or_default(), ".bundle".as_ref()].iter().copied().collect::<OsString>();
    let out = folder.parent().unwrap_or(Path::new("")).join(name);
    directory::recover(&out)?;
    Ok(out)
}

/// Refuses to replace a bundle that [`export_run`] did not write. It could hold other runs, a title or a licence that
/// would be lost.
fn check_bundle(run: &Run, out: &Path) -> Result<()> {
    if !directory::is_complete(Kind::Bundle, out)? {
        return Ok(());
    }
    let (place, folder) = (shell::path(out), shell::path(&run.directory));
    let hint = format!("write another with `akin export {folder} --out DIR`, and serve that");
    let bytes = read_regular_file(&out.join(MANIFEST))
        .advise(|| format!("{MANIFEST} of the bundle {place} cannot be read"), &hint)?;
    let manifest = Manifest::parse(&bytes)?;
    let contents = manifest.contents();
    let name = &run.config.run.name;
    let is_of_run = matches!(&contents.encoders[..], [encoder] if encoder.name == *name);
    let has_defaults = contents.title == title_of(&run.config.data)
        && contents.description.is_empty()
        && contents.licence.is_empty()
        && contents.thumbnails.tile == TILE
        && manifest.files().iter().all(|file| file.path != NOTICE)
        && contents.encoders.iter().all(|encoder| encoder.element_type == ElementType::F32);
    let fault = match (is_of_run, has_defaults) {
        (true, true) => return Ok(()),
        (false, _) => format!("does not hold the run {name} alone"),
        (true, false) => "was exported with other options".to_owned(),
    };
    Err(problem(format!("the bundle {place} {fault}, and `akin serve {folder}` would use its place"), hint))
}

/// The bundle of a run, which is written now unless it is newer than the run.
fn export_run(folder: &Path, progress: Progress) -> Result<PathBuf> {
    let run = Run::open(folder)?;
    let out = place_beside(folder)?;
    let written = |folder: &Path| fs::metadata(folder.join(MARK_FILE)).and_then(|mark| mark.modified()).ok();
    if directory::is_complete(Kind::Bundle, &out)? && written(&out) > written(folder) {
        return Ok(out);
    }
    let title = title_of(&run.config.data);
    export(&Export { overwrite: true, ..Export::new(&[run], &out, title, progress) })?;
    Ok(out)
}
