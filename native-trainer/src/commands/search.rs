//! `akin search`: the items of a bundle that are nearest to an image.

use std::path::{Path, PathBuf};

use akin_base::problem::problem;
use akin_base::quantities::counted;
use akin_base::terminal;
use akin_base::text_table::align_words;
use akin_core::certainty::Promise;
use akin_core::image::Pixels;
use akin_core::search::Hit;
use akin_figures::terminal_picture;
use akin_figures::terminal_picture::PictureFormat;
use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use crate::commands::known_gallery::{Bundle, Found, KnownGallery, parse_promise};
use crate::config::DeviceName;
use crate::pictures::loader::Pictures;

/// Find the items of a bundle that are nearest to an image.
///
/// Embeds the image with an encoder of the bundle, and prints how far the answer of the nearest items holds, and the items:
/// their similarity and their path down the tree. A bundle holds no names of files: `item` is the place of a picture in the gallery, from 0. On a
/// terminal `--pictures` shows small pictures of the items.
#[derive(Debug, Args)]
pub struct SearchArgs {
    /// The folder that `akin export` wrote.
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// The image to search with: JPEG, PNG or WebP.
    #[arg(value_name = "IMAGE")]
    pub image: PathBuf,
    /// How many items to print.
    #[arg(long, short = 'k', value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub count: u32,
    /// The name of the encoder [default: that with the best H-AP, as on the page].
    #[arg(long, value_name = "NAME")]
    pub encoder: Option<String>,
    /// The answer says a class as sure only if at least this share of such answers is right, in percent: 50 to 99.9.
    #[arg(long, value_name = "PERCENT", default_value = "95", value_parser = parse_promise)]
    pub promise: Promise,
    /// Print the pictures of the items, too: with the terminal's own protocol where it says that it has one, or else in
    /// coloured characters. `--pictures=FORMAT` chooses. Without a terminal only a chosen format is printed.
    #[arg(long, value_enum, value_name = "FORMAT", num_args = 0..=1, require_equals = true,
          default_missing_value = "auto")]
    pub pictures: Option<PictureFormat>,
    /// Print the items as JSON.
    #[arg(long)]
    pub json: bool,
    /// The device to compute on.
    #[arg(long, value_enum, default_value_t)]
    pub device: DeviceName,
}

/// Columns of characters that a picture takes.
const COLUMNS: u32 = 24;

/// Embeds the image and prints the nearest items.
pub fn run(args: &SearchArgs) -> Result<()> {
    let bundle = Bundle::open(&args.bundle)?;
    let picture = read_picture(&args.image)?;
    let known = KnownGallery::of_bundle(&bundle, args.encoder.as_deref(), args.device)?;
    let embedding = known.encoder.embed(&[picture], &known.device)?;
    let Found { hits, unlike, answer } = known.ask(&embedding, args.count as usize, args.promise)?;

    if args.json {
        let item = |hit: &Hit| -> Value {
            json!({ "item": hit.item, "score": hit.score, "labels": known.path_of(hit.item) })
        };
        let items: Vec<Value> = hits.iter().map(item).collect();
        let all = json!({
            "encoder": known.name, "similarity": known.similarity,
            "levels": known.taxonomy.level_names(), "unlike_the_gallery": unlike,
            "answer": answer.map(|answer| known.answer_json(&answer, args.promise)), "items": items,
        });
        terminal::print(&serde_json::to_string_pretty(&all)?)?;
        return Ok(());
    }
    let row = |(rank, hit): (usize, &Hit)| {
        [
            vec![(rank + 1).to_string(), format!("{:.3}", hit.score), hit.item.to_string()],
            known.path_of(hit.item),
        ]
        .concat()
    };
    let rows: Vec<Vec<String>> = hits.iter().enumerate().map(row).collect();
    let levels = known.taxonomy.level_names().iter().map(String::as_str);
    let header: Vec<&str> = ["rank", "score", "item"].into_iter().chain(levels).collect();
    let table = align_words(&header, &rows, terminal::width());
    match &answer {
        Some(answer) => terminal::print(&format!("{}\n\n{table}", known.answer_text(answer)))?,
        None => terminal::print(&table)?,
    }
    if args.pictures == Some(PictureFormat::Auto) && !terminal::stdout_is_terminal() {
        terminal::warn(
            "--pictures shows pictures only on a terminal; --pictures=blocks writes their colour codes",
        );
    } else if let Some(format) = args.pictures {
        for (rank, hit) in hits.iter().enumerate() {
            let caption = format!("{}  {}", rank + 1, known.path_of(hit.item).join(" / "));
            let picture = terminal_picture::draw(&bundle.thumbnail(hit.item)?, format, COLUMNS)?;
            terminal::print_styled(&format!("\n{}\n{picture}", terminal::escape(&caption)))?;
        }
    }
    terminal::say(format_args!(
        "    Searched {} of {} with {}",
        counted(known.items(), "item", "items"),
        bundle.manifest.title,
        known.name
    ));
    match answer {
        None => terminal::say(
            "        Note the bundle has no calibration, so it is not known how far the answer holds; export it again with \
             this version of akin",
        ),
        Some(answer) if !answer.possible => {
            terminal::warn(known.impossible_text(args.promise));
        }
        Some(_) => {}
    }
    if unlike {
        terminal::warn(format_args!(
            "{} is unlike anything in the gallery: its best score is below that of 99 % of the gallery's own images",
            args.image.display()
        ));
    }
    Ok(())
}

/// The image to search with.
fn read_picture(image: &Path) -> Result<Pixels> {
    let pictures = Pictures::all_required(vec![image.to_owned()]);
    let picture = pictures.get(0);
    pictures.check()?;
    picture.map(|pixels| (*pixels).clone()).ok_or_else(|| {
        problem(format!("the image {} cannot be read", image.display()), "give a JPEG, PNG or WebP file")
    })
}
