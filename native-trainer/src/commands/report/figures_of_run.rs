//! The figures of a report: of all runs together, and of each.

use std::collections::{BTreeMap, BTreeSet};

use akin_base::progress::Progress;
use akin_base::quantities::counted;
use akin_core::ancestors::Ancestors;
use akin_core::bundle::MapGeometry;
use akin_core::certainty::Outcome;
use akin_core::embeddings::Embeddings;
use akin_core::evaluate::Labelled;
use akin_core::metrics::Metric;
use akin_core::search::{Gallery, Hit};
use akin_core::similarity::Similarity;
use akin_core::taxonomy::{Labels, Taxonomy, UNKNOWN};
use akin_figures::bars::bars;
use akin_figures::heat_map::{HeatMap, heat_map};
use akin_figures::lines::{Axis, Line, lines};
use akin_figures::points::{Disk, Point, PointMap, map};
use akin_figures::rank_curves;
use akin_figures::sheet::{Row, Tile, sheet};
use akin_figures::{Drawing, Figure};
use anyhow::Result;
use rayon::prelude::*;

use crate::commands::export::tile;
use crate::data::Dataset;
use crate::evaluation::certainty::Certainty;
use crate::evaluation::class_means::ClassMeans;
use crate::evaluation::class_scores::class_scores;
use crate::evaluation::embedding::Evaluation;
use crate::evaluation::projection::{Method, project};
use crate::pictures::loader::Pictures;
use crate::runs::run_log::{Log, smoothed, thinned};

/// The most steps that a curve shows one by one.
const MOST_STEPS: usize = 600;
/// The most classes of a table of mistakes.
const MOST_CLASSES: usize = 60;
/// The most groups that have colours and names of their own on a map.
const MOST_GROUPS: usize = 28;
/// The results of a query on a sheet.
const RESULTS: usize = 8;
/// The side of a picture on a sheet, in pixels.
const TILE: u32 = 160;
/// The proxies whose neighbours are shown.
const PROXIES: usize = 6;

/// A run with all that its figures show.
pub struct Evaluated {
    /// The name in figures, which no other run has.
    pub name: String,
    pub log: Log,
    pub dataset: Dataset,
    pub pictures: Pictures,
    pub evaluation: Evaluation,
    pub similarity: Similarity,
    /// The learned ancestors of HIER in the Poincaré ball.
    pub ancestors: Option<Embeddings>,
    pub seed: u64,
    /// How far the answers hold; `None` for a gallery of fewer than two items, or one with junk.
    pub certainty: Option<Certainty>,
    /// The first results of every query, as items of the data set with their scores.
    pub results: Vec<Vec<(usize, f32)>>,
}

impl Evaluated {
    fn gallery_items(&self) -> &[usize] {
        let Evaluation { gallery, queries, .. } = &self.evaluation;
        gallery.as_ref().map_or(&queries.items, |gallery| &gallery.items)
    }

    fn gallery_embeddings(&self) -> &Embeddings {
        let Evaluation { gallery, queries, .. } = &self.evaluation;
        gallery.as_ref().map_or(&queries.embeddings, |gallery| &gallery.embeddings)
    }

    fn taxonomy(&self) -> &Taxonomy {
        &self.dataset.taxonomy
    }

    fn depth(&self) -> usize {
        self.taxonomy().depth()
    }

    /// The finest class of an item.
    fn class_name(&self, item: usize) -> String {
        self.taxonomy().finest_name(self.dataset.labels.row(item))
    }

    fn shared(&self, a: usize, b: usize) -> usize {
        self.dataset.labels.shared(a, &self.dataset.labels, b).least
    }

    /// The images that it is tested on, with their labels: first the queries, then the gallery.
    pub fn tested(&self) -> Vec<String> {
        let describe = |&item: &usize| {
            let labels = self.taxonomy().path_names(self.dataset.labels.row(item));
            let path = self.dataset.paths[item].file_name().unwrap_or_default().to_string_lossy();
            format!("{path} {}", labels.join("/"))
        };
        let [mut queries, mut gallery] = [&self.evaluation.queries.items, self.gallery_items()]
            .map(|items| items.iter().map(describe).collect::<Vec<_>>());
        queries.sort();
        gallery.sort();
        queries.into_iter().chain(["gallery".to_owned()]).chain(gallery).collect()
    }

    /// What shared levels are called, from 0.
    fn words(&self) -> Vec<String> {
        let same = self.taxonomy().level_names().iter().map(|level| format!("same {level}"));
        ["stranger".to_owned()].into_iter().chain(same).collect()
    }

    fn tile(&self, item: usize) -> Tile {
        let picture = self.pictures.get(item).and_then(|picture| tile(&picture, TILE).ok());
        let picture = picture.and_then(|tile| image::RgbImage::from_raw(TILE, TILE, tile.into_data()));
        Tile { picture, name: self.class_name(item) }
    }

    /// Finds [`Self::results`].
    ///
    /// # Errors
    ///
    /// Embeddings that the similarity is not defined for.
    pub fn find_results(&mut self) -> Result<()> {
        let gallery = Gallery::new(self.gallery_embeddings(), self.similarity)?;
        let items = self.gallery_items();
        let queries = &self.evaluation.queries;
        let itself = self.evaluation.gallery.is_none();
        let junk = &self.dataset.junk;
        let depth = self.depth();
        let results = |query: usize| -> Result<Vec<(usize, f32)>> {
            let most = if junk.is_empty() { RESULTS } else { items.len() };
            let hits = gallery.nearest(queries.embeddings.row(query), most, itself.then_some(query))?;
            let class = self.dataset.labels.row(queries.items[query])[depth - 1];
            let counts = |hit: &&Hit| !junk.get(items[hit.item]).is_some_and(|junk| junk.contains(&class));
            Ok(hits.iter().filter(counts).take(RESULTS).map(|hit| (items[hit.item], hit.score)).collect())
        };
        self.results = (0..queries.items.len()).into_par_iter().map(results).collect::<Result<_>>()?;
        Ok(())
    }
}

/// The figures of all runs together: of their trainings, and of the scores of those that are tested on the same images.
/// `tests` has the places of the runs of each test set.
pub fn shared_figures(runs: &[Evaluated], tests: &[Vec<usize>]) -> Result<Vec<Figure>> {
    let mut figures = training_figures(runs)?;
    for (number, places) in (1..).zip(tests) {
        let tested: Vec<(usize, &Evaluated)> = places.iter().map(|&place| (place, &runs[place])).collect();
        let mut scores = score_figures(&tested)?;
        if tests.len() > 1 {
            let names: Vec<&str> = tested.iter().map(|(_, run)| run.name.as_str()).collect();
            for figure in &mut scores {
                figure.name += &format!("-tests-{number}");
                figure.title += &format!(": {}", names.join(", "));
            }
        }
        figures.extend(scores);
    }
    Ok(figures)
}

fn training_figures(runs: &[Evaluated]) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let steps = Axis::counts("step");
    let mut losses = Vec::new();
    for (group, run) in runs.iter().enumerate() {
        let points = thinned(&run.log.losses, MOST_STEPS);
        losses.push(Line { faint: true, ..Line::new("", group, points.clone()) });
        losses.push(Line::new(&run.name, group, smoothed(&points)));
    }
    let loss = Axis::linear("loss");
    add(
        &mut figures,
        lines(steps, loss, &losses)?,
        "loss",
        "Training loss",
        "Faint: the loss of each batch. Strong: \
        its moving mean over a twentieth of the training. Losses of different kinds have different scales.",
    );
    if let [run] = runs {
        let rates = run.log.rates.iter().enumerate();
        let rates: Vec<Line> =
            rates.map(|(group, (name, rates))| Line::new(name, group, thinned(rates, MOST_STEPS))).collect();
        let axis = Axis::logarithmic("learning rate");
        add(
            &mut figures,
            lines(steps, axis, &rates)?,
            "learning-rates",
            "Learning rates",
            "Of the backbone, the head and what the loss learns. A rate of 0 is not drawn.",
        );
    }
    Ok(figures)
}

/// The scores of runs that are tested on the same images, each with the number of its colour.
fn score_figures(runs: &[(usize, &Evaluated)]) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let on_the_way: Vec<Line> = runs
        .iter()
        .filter(|(_, run)| run.log.evaluations.len() > 1)
        .map(|&(group, run)| Line::new(&run.name, group, h_ap_by_step(&run.log)))
        .collect();
    add(
        &mut figures,
        lines(Axis::counts("step"), Axis::linear("H-AP in %"), &on_the_way)?,
        "h-ap-by-step",
        "H-AP during the training",
        "H-AP \
        of the evaluation splits at each evaluation.",
    );

    let rank = Axis::logarithmic("k, the number of ranked items");
    for (place, metric) in rank_curves::METRICS.into_iter().enumerate() {
        let line = |&(group, run): &(usize, &Evaluated)| {
            let points = rank_curves::points(&run.evaluation.report).into_iter();
            let points = points.filter_map(|(k, means)| Some([k as f64, 100.0 * means[place]?]));
            Line::new(&run.name, group, points.collect())
        };
        let curves: Vec<Line> = runs.iter().map(line).collect();
        let entry = rank_curves::metric(metric, 1).entry();
        let axis = format!("{} in %", entry.symbol);
        let caption = format!(
            "The mean over the queries of the {}: {}@k = {}.",
            entry.title, entry.symbol, entry.formula
        );
        let drawing = lines(rank, Axis::linear(&axis), &curves)?;
        add(&mut figures, drawing, &metric.replace('_', "-"), entry.symbol, &caption);
    }
    let line = |&(group, run): &(usize, &Evaluated)| {
        let points = rank_curves::points(&run.evaluation.report).into_iter();
        let points =
            points.filter_map(|(_, [precision, recall, _])| Some([100.0 * recall?, 100.0 * precision?]));
        Line::new(&run.name, group, points.collect())
    };
    let curves: Vec<Line> = runs.iter().map(line).collect();
    add(
        &mut figures,
        lines(Axis::linear("H-recall in %"), Axis::linear("H-precision in %"), &curves)?,
        "precision-recall",
        "H-precision and H-recall",
        "Each point is a number of ranked items: 1, 2, 5, 10 and so on from the left, up to all of them.",
    );

    let rows: Vec<(String, Vec<f64>)> =
        runs.iter().map(|(_, run)| (run.name.clone(), first_levels(run))).collect();
    let mut words = runs[0].1.words();
    if runs.iter().any(|(_, run)| run.words() != words) {
        // Names that are right for the levels of every run.
        words = (0..words.len()).map(|level| counted(level, "level", "levels")).collect();
    }
    if rows.iter().all(|(_, shares)| shares.len() == words.len()) {
        add(
            &mut figures,
            Some(bars(&rows, &words)),
            "first-results",
            "How near the first result is",
            "Each bar parts the queries \
            of a run by how near their first result is.",
        );
    }
    Ok(figures)
}

/// The figures of one run. Their files begin with `prefix`. `rows` is the number of queries on a sheet.
pub fn run_figures(run: &Evaluated, prefix: &str, rows: usize, progress: Progress) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    sheets(run, rows, &mut figures);
    certainty(run, &mut figures)?;
    confusions(run, &mut figures);
    affinities(run, &mut figures)?;
    maps(run, progress, &mut figures)?;
    for figure in &mut figures {
        figure.name = format!("{prefix}{}", figure.name);
    }
    Ok(figures)
}

/// How deep the answers go as the promise grows, and how many of them are right.
fn certainty(run: &Evaluated, figures: &mut Vec<Figure>) -> Result<()> {
    let Some(certainty) = &run.certainty else { return Ok(()) };
    let curve = certainty.curve()?;
    let line = |name: String, group: usize, value: &dyn Fn(&Outcome) -> Option<f64>| {
        let point = |(promise, outcome): &(f64, Outcome)| Some([*promise, 100.0 * value(outcome)?]);
        Line::new(name, group, curve.iter().filter_map(point).collect())
    };
    let levels = run.taxonomy().level_names();
    let mut curves: Vec<Line> = (1..=levels.len())
        .map(|level| {
            line(format!("at least {}", levels[level - 1]), level - 1, &|outcome| {
                Some(outcome.coverage(level))
            })
        })
        .collect();
    curves.push(line("right answers".into(), levels.len(), &|outcome| outcome.right_share()));
    add(
        figures,
        lines(Axis::linear("promise in %"), Axis::linear("share in %"), &curves)?,
        "certainty",
        "How deep the answers go",
        "The nearest images answer each query down to the level at which the answers together keep the promise, the least \
        share of right answers. Shown are the share of the queries whose answer goes at least to each level, and the share \
        of the answers that are right.",
    );
    Ok(())
}

fn add(figures: &mut Vec<Figure>, drawing: Option<Drawing>, name: &str, title: &str, caption: &str) {
    let [name, title, caption] = [name, title, caption].map(str::to_owned);
    figures.extend(drawing.map(|drawing| Figure { name, title, caption, drawing }));
}

/// H-AP at each evaluation of a log, in percent.
fn h_ap_by_step(log: &Log) -> Vec<[f64; 2]> {
    let h_ap = Metric::named("h_ap");
    let point = |(&step, report): (&u64, &akin_core::evaluate::Report)| {
        Some([step as f64, 100.0 * report.overall.get(h_ap)?])
    };
    log.evaluations.iter().filter_map(point).collect()
}

/// The share of the queries by the shared level of their first result, 0 … L.
fn first_levels(run: &Evaluated) -> Vec<f64> {
    let mut counts = vec![0.0; run.depth() + 1];
    for (&query, results) in run.evaluation.queries.items.iter().zip(&run.results) {
        if let Some((first, _)) = results.first() {
            counts[run.shared(query, *first)] += 1.0;
        }
    }
    let all: f64 = counts.iter().sum();
    counts.into_iter().map(|count| count / all.max(1.0)).collect()
}

// --- Sheets -----------------------------------------------------------------------------------------

fn sheets(run: &Evaluated, rows: usize, figures: &mut Vec<Figure>) {
    let results = &run.results;
    let queries = &run.evaluation.queries.items;
    let report = &run.evaluation.report;
    let h_ap = Metric::named("h_ap");
    let scores: Vec<(usize, f64)> =
        report.per_query.iter().filter_map(|row| Some((row.query, row.overall.get(h_ap)?))).collect();
    let note = |query: usize| {
        let score = report.per_query.get(query).and_then(|row| row.overall.get(h_ap));
        score.map_or(String::new(), |score| format!("H-AP {:.1}", 100.0 * score))
    };
    let row_of = |query: usize| Row {
        query: run.tile(queries[query]),
        note: note(query),
        results: results[query]
            .iter()
            .map(|&(item, _)| (run.shared(queries[query], item), run.tile(item)))
            .collect(),
    };
    let chosen = |mut order: Vec<(usize, f64)>| -> Vec<Row> {
        // The sort is stable: equal queries stay in their order.
        order.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut seen = BTreeSet::new();
        // Two classes may have one name under different parents.
        let new = |&(query, _): &(usize, f64)| seen.insert(run.dataset.labels.row(queries[query]).to_vec());
        order.into_iter().filter(new).take(rows).map(|(query, _)| row_of(query)).collect()
    };
    let best = chosen(scores.iter().map(|&(query, score)| (query, -score)).collect());
    let worst = chosen(scores.clone());
    let severe = scores.iter().filter_map(|&(query, _)| {
        let (first, score) = *results[query].first()?;
        let level = run.shared(queries[query], first);
        // By level, and at one level by the score of the mistake.
        (level < run.depth()).then(|| (query, level as f64 * 1e6 - f64::from(score)))
    });
    let severe = chosen(severe.collect());
    let about = "The query stands at the left, and its first results follow. The border and the number below a result \
                 say how many levels it shares with the query. Each finest class has at most one query.";
    for (rows, name, title, which) in [
        (best, "best", "Best queries", "Queries with the highest H-AP."),
        (worst, "worst", "Worst queries", "Queries with the lowest H-AP."),
        (
            severe,
            "severe",
            "Most severe mistakes",
            "Queries whose first result is least related to them. Among equally related ones, the most similar come first.",
        ),
    ] {
        if !rows.is_empty() {
            add(figures, Some(sheet(&rows, &run.words())), name, title, &format!("{which} {about}"));
        }
    }
}

// --- Classes ----------------------------------------------------------------------------------------

/// How many of `classes`, in their order, have each coarsest class. There are no groups at the coarsest level.
fn groups(run: &Evaluated, level: usize, classes: &[u32]) -> Vec<(String, usize)> {
    if level == 1 {
        return Vec::new();
    }
    let mut groups: Vec<(u32, usize)> = Vec::new();
    for &class in classes {
        let top = coarsest(run.taxonomy(), level, class);
        match groups.last_mut() {
            Some((last, size)) if *last == top => *size += 1,
            _ => groups.push((top, 1)),
        }
    }
    groups.into_iter().map(|(class, size)| (run.taxonomy().class_name(1, class).to_owned(), size)).collect()
}

fn coarsest(taxonomy: &Taxonomy, level: usize, mut class: u32) -> u32 {
    for level in (2..=level).rev() {
        class = taxonomy.parent(level, class).unwrap_or(class);
    }
    class
}

/// A table of the classes of queries and of their first results, for each level with few classes.
fn confusions(run: &Evaluated, figures: &mut Vec<Figure>) {
    let labels = &run.dataset.labels;
    let queries = &run.evaluation.queries.items;
    for (level, level_name) in (1..).zip(run.taxonomy().level_names()) {
        let class_of = |item: usize| labels.row(item)[level - 1];
        // In the order of the tree.
        let mut paths: Vec<&[u32]> =
            queries.iter().chain(run.gallery_items()).map(|&item| &labels.row(item)[..level]).collect();
        paths.sort_unstable();
        paths.dedup();
        let classes: Vec<u32> =
            paths.iter().map(|path| path[level - 1]).filter(|&class| class != UNKNOWN).collect();
        if !(2..=MOST_CLASSES).contains(&classes.len()) {
            continue;
        }
        let place: BTreeMap<u32, usize> =
            classes.iter().enumerate().map(|(place, &class)| (class, place)).collect();
        let count = classes.len();
        let mut values = vec![0.0; count * count];
        for (&query, results) in queries.iter().zip(&run.results) {
            let Some((first, _)) = results.first() else { continue };
            if let [Some(row), Some(column)] = [query, *first].map(|item| place.get(&class_of(item))) {
                values[row * count + column] += 1.0;
            }
        }
        for row in values.chunks_mut(count) {
            let all: f64 = row.iter().sum();
            row.iter_mut().for_each(|value| *value /= all.max(1.0));
        }
        let names: Vec<String> =
            classes.iter().map(|&class| run.taxonomy().class_name(level, class).to_owned()).collect();
        let picture = heat_map(&HeatMap {
            names: &names,
            values: &values,
            range: [0.0, values.iter().copied().fold(0.0, f64::max)],
            unit: "share of row",
            groups: &groups(run, level, &classes),
            axes: ["class of the query", "class of its first result"],
        });
        let caption = "Each row is the class of some queries. Its cells say how many of them have a first result of the \
                       column's class, as shares of the row. Lines part the coarsest classes.";
        let (name, title) = (format!("confusion-{level}"), format!("Confusion of {level_name}"));
        add(figures, Some(picture), &name, &title, caption);
    }
}

/// The mean similarity of classes, at the finest level that is not too large.
fn affinities(run: &Evaluated, figures: &mut Vec<Figure>) -> Result<()> {
    let labels = run.dataset.labels.select(run.gallery_items());
    let Some(scores) = class_scores(run.gallery_embeddings(), &labels, run.similarity)?.pop() else {
        return Ok(());
    };
    let level = scores.level;
    let names: Vec<String> =
        scores.classes.iter().map(|&class| run.taxonomy().class_name(level, class).to_owned()).collect();
    let values: Vec<f64> = scores.scores.iter().map(|&score| f64::from(score)).collect();
    let range =
        values.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], &v| [low.min(v), high.max(v)]);
    let picture = heat_map(&HeatMap {
        names: &names,
        values: &values,
        range,
        unit: "mean similarity",
        groups: &groups(run, level, &scores.classes),
        axes: ["", "classes in the order of the tree"],
    });
    let level_name = &run.taxonomy().level_names()[level - 1];
    add(
        figures,
        Some(picture),
        "affinity",
        &format!("Affinity of {level_name}"),
        "Each cell is the mean similarity of the images of two classes. An image is not compared with itself. An encoder \
         that knows the tree has blocks along the diagonal. Lines part the coarsest classes.",
    );
    Ok(())
}

// --- Maps -------------------------------------------------------------------------------------------

/// The coarsest classes of items, as groups of points: the group of each item, and their names.
fn point_groups(run: &Evaluated, labels: &Labels) -> (Vec<usize>, Vec<String>) {
    let column = labels.column(1);
    let classes: BTreeSet<u32> = column.iter().copied().collect();
    if classes.len() > MOST_GROUPS {
        return (vec![0; column.len()], Vec::new());
    }
    let place: BTreeMap<u32, usize> =
        classes.iter().enumerate().map(|(place, &class)| (class, place)).collect();
    let names = classes.iter().map(|&class| run.taxonomy().class_name(1, class).to_owned()).collect();
    (column.iter().map(|class| place[class]).collect(), names)
}

fn maps(run: &Evaluated, progress: Progress, figures: &mut Vec<Figure>) -> Result<()> {
    let depth = run.depth();
    let items = run.dataset.labels.select(run.gallery_items());
    let means = ClassMeans::new(Labelled { embeddings: run.gallery_embeddings(), labels: &items })?;
    let labels = &means.labels;
    let methods = [Method::Tsne, Method::Pca];
    if let Some(found) = means.project(run.similarity, &methods, run.seed, progress)?.into_iter().next() {
        let (group, names) = point_groups(run, labels);
        let points: Vec<Point> = found
            .points
            .iter()
            .enumerate()
            .map(|(row, &place)| Point {
                place,
                group: group[row],
                name: run.taxonomy().finest_name(labels.row(row)),
            })
            .collect();
        let picture = map(&PointMap { points: &points, groups: &names, names: true, disk: None });
        let level = &run.taxonomy().level_names()[depth - 1];
        let title = format!("Means of {level}, by {}", found.method.name());
        let caption = format!(
            "The mean embedding of each {level}. Colours are coarsest classes. {}",
            found.description
        );
        add(figures, Some(picture), "class-means", &title, &caption);
    }

    let gallery = run.gallery_embeddings();
    let methods = [Method::Poincare, Method::Umap];
    let proxies = run.ancestors.as_ref();
    let found = project(gallery, run.similarity, proxies, &methods, run.seed, progress)?.into_iter().next();
    let ancestors =
        proxies.map(|proxies| Ancestors::new(gallery, &items, proxies, run.similarity)).transpose()?;
    let lines_of: Vec<Vec<Option<usize>>> = match &ancestors {
        Some(ancestors) => (0..gallery.len())
            .into_par_iter()
            .map(|item| ancestors.line(item))
            .collect::<akin_core::Result<_>>()?,
        None => Vec::new(),
    };
    if let Some(found) = found {
        let (group, names) = point_groups(run, &items);
        let point = |(row, &place): (usize, &[f32; 2])| Point {
            place,
            group: group[row],
            name: run.class_name(run.gallery_items()[row]),
        };
        let points: Vec<Point> = found.points.iter().enumerate().map(point).collect();
        let disk = (found.geometry == MapGeometry::PoincareDisk)
            .then(|| disk(&found.points, found.proxies, &lines_of));
        let has_proxies = disk.as_ref().is_some_and(|disk| !disk.proxies.is_empty());
        let picture = map(&PointMap { points: &points, groups: &names, names: false, disk });
        let (title, more) = match has_proxies {
            true => (
                "The gallery and its ancestors on the Poincaré disk".to_owned(),
                " Diamonds are the ancestors that images have; lines lead from images to theirs, and on to the next \
                 coarser one.",
            ),
            false => (format!("The gallery, by {}", found.method.name()), ""),
        };
        let caption =
            format!("Each point is an image; colours are coarsest classes. {}{more}", found.description);
        add(figures, Some(picture), "gallery", &title, &caption);
    }
    if let Some(ancestors) = &ancestors {
        proxy_sheet(run, ancestors, &lines_of, figures)?;
    }
    Ok(())
}

/// The proxies that are ancestors of images, and lines from images to them and between them.
fn disk(points: &[[f32; 2]], proxies: Option<Vec<[f32; 2]>>, lines_of: &[Vec<Option<usize>>]) -> Disk {
    let Some(places) = proxies else { return Disk::default() };
    let mut used = BTreeSet::new();
    let mut between = BTreeSet::new();
    let mut lines = Vec::new();
    for (point, line) in points.iter().zip(lines_of) {
        // From the finest to the coarsest.
        let known: Vec<usize> = line.iter().rev().flatten().copied().collect();
        used.extend(known.iter().copied());
        lines.extend(known.first().map(|&first| [*point, places[first]]));
        between.extend(known.windows(2).map(|pair| (pair[0], pair[1])));
    }
    lines.extend(between.into_iter().map(|(a, b)| [places[a], places[b]]));
    Disk { proxies: used.into_iter().map(|proxy| places[proxy]).collect(), lines }
}

/// The images nearest to the proxies that are ancestors of most images.
fn proxy_sheet(
    run: &Evaluated,
    ancestors: &Ancestors<'_>,
    lines_of: &[Vec<Option<usize>>],
    figures: &mut Vec<Figure>,
) -> Result<()> {
    let mut uses: BTreeMap<usize, usize> = BTreeMap::new();
    for proxy in lines_of.iter().flatten().flatten() {
        *uses.entry(*proxy).or_default() += 1;
    }
    let mut order: Vec<(usize, usize)> = uses.into_iter().collect();
    order.sort_by_key(|&(proxy, uses)| (std::cmp::Reverse(uses), proxy));
    let items = run.gallery_items();
    let row = |&(proxy, uses): &(usize, usize)| -> Result<Row> {
        let nearest = ancestors.nearest(proxy, (RESULTS + 1).min(items.len()))?;
        let (first, others) = nearest.split_first().unwrap_or((&0, &[]));
        let result = |&other: &usize| (run.shared(items[*first], items[other]), run.tile(items[other]));
        Ok(Row {
            query: run.tile(items[*first]),
            note: format!("proxy {proxy}: {uses}"),
            results: others.iter().map(result).collect(),
        })
    };
    let rows: Vec<Row> = order.iter().take(PROXIES).map(row).collect::<Result<_>>()?;
    if !rows.is_empty() {
        add(
            figures,
            Some(sheet(&rows, &run.words())),
            "proxies",
            "Neighbours of proxies",
            "Each row shows the images nearest to a proxy, nearest first. The rows are the proxies that are ancestors of \
             the most images, and the number says of how many. Borders say how many levels an image shares with the first \
             of its row.",
        );
    }
    Ok(())
}
