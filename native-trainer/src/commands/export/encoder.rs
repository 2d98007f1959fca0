//! One encoder of a bundle: its weights, what it makes of the gallery, and its scores.

use akin_base::problem::problem;
use akin_core::ancestors::Ancestors;
use akin_core::bundle::{
    Affinity, BundleWriter, ElementType, EncoderEntry, Int8Loss, Map, MapMeans, MapProxies, NO_ANCESTOR,
    QueryTable, coordinate_bytes, embedding_bytes, number_bytes,
};
use akin_core::certainty::LeaveOneOut;
use akin_core::embeddings::Embeddings;
use akin_core::encoder::{Encoder, EncoderConfig};
use akin_core::evaluate::{EvaluationConfig, Labelled};
use akin_core::metrics::Metric;
use akin_core::models::BackboneConfig;
use akin_core::similarity::Similarity;
use anyhow::Result;
use burn::tensor::Device;
use rayon::prelude::*;
use serde_json::Value;

use super::parity::{add_parity, parity_pictures};
use super::{Export, onnx};
use crate::config::device;
use crate::config::onnx::WholeFile;
use crate::data::Dataset;
use crate::evaluation::class_means::ClassMeans;
use crate::evaluation::class_scores::{ClassScores, class_scores, first_shared_levels, query_table};
use crate::evaluation::embedding::{Embedded, Evaluation, evaluate_dataset, evaluate_splits};
use crate::evaluation::projection::{Method, Projection, project};
use crate::evaluation::report::score;
use crate::pictures::loader::Pictures;
use crate::runs::run::{Run, encoder_config};
use crate::training::learned_ancestors;

/// The number of nearest items stored for each proxy.
const NEAREST: usize = 8;

/// An encoder for a bundle.
pub struct Exported {
    /// Its name, which no other encoder of the bundle has.
    pub name: String,
    /// What it was trained with, or what it comes from.
    pub description: String,
    /// The encoder.
    pub encoder: Encoder,
    /// What it is made of.
    pub config: EncoderConfig,
    /// The ONNX file that is its backbone, under its path in the bundle.
    pub whole: Option<WholeFile>,
    /// The licence of its weights, if it is not that of the bundle.
    pub licence: Option<String>,
    /// Where it computes.
    pub device: Device,
    /// How it is evaluated.
    pub eval: EvaluationConfig,
    /// The seed of its maps.
    pub seed: u64,
    /// What it learned of the ancestors of the classes.
    pub proxies: Option<Embeddings>,
}

impl Exported {
    /// The encoder of a run, which is the bundle's encoder `number`.
    ///
    /// # Errors
    ///
    /// Weights or an ONNX file that cannot be read.
    pub fn of_run(
        run: &Run,
        export: &Export,
        name: String,
        number: usize,
        dataset: &Dataset,
        pictures: &Pictures,
    ) -> Result<Self> {
        let device = device::open(run.config.run.device)?;
        let proxies = if export.maps.contains(&Method::Poincare) {
            learned_ancestors(run, export.which, dataset, pictures, &device)?
        } else {
            None
        };
        Ok(Self {
            description: run.config.loss.describe(),
            encoder: run.encoder(export.which, &device)?,
            config: encoder_config(&run.config),
            whole: WholeFile::of(&run.config.model, &onnx_path(&name, number))?,
            licence: run.config.model.onnx().and_then(|onnx| onnx.licence.clone()),
            eval: run.config.eval.clone(),
            seed: run.config.run.seed,
            device,
            name,
            proxies,
        })
    }
}

/// The path of the ONNX file of an encoder in the bundle.
pub fn onnx_path(name: &str, number: usize) -> String {
    format!("{}/model.onnx", slug(name, number))
}

/// Adds the files of an encoder, which is the bundle's encoder `number`. `embed` gives its embeddings of items.
pub fn add_encoder(
    bundle: &mut BundleWriter,
    export: &Export,
    exported: Exported,
    number: usize,
    dataset: &Dataset,
    pictures: &Pictures,
    embed: impl Fn(&[usize]) -> Result<Embedded>,
) -> Result<Added> {
    let Exported { name, encoder, mut config, device, mut eval, .. } = exported;
    // The model card has an interval with each result.
    eval.bootstrap.get_or_insert_default();
    let folder = slug(&name, number);
    let mut onnx = onnx::ship(exported.whole)?;
    let is_int8 = onnx.as_ref().is_some_and(|onnx| onnx.is_int8);
    let metric = Metric::named("h_ap");
    if is_int8 && !eval.metrics.contains(&metric) {
        eval.metrics.push(metric);
    }
    let evaluation = evaluate_splits(dataset, &eval, export.progress, embed)?;
    // The browser loads akin's own backbones in half precision. Beside an ONNX file there is only a head, which is small.
    let weights = if encoder.is_foreign() { encoder.to_bytes()? } else { encoder.to_half_bytes()? };
    check_size(&name, weights.len())?;
    let mut shipped = config.load(weights.clone(), &device)?;
    if let Some(onnx) = &mut onnx {
        shipped = onnx.attach(shipped)?;
        if is_int8 {
            let eval = EvaluationConfig { bootstrap: None, ..eval.clone() };
            let int8 = evaluate_dataset(&shipped, dataset, pictures, &eval, &device, export.progress)?.report;
            let h_ap = |report| score(report, metric, None).unwrap_or_default();
            let loss = Int8Loss { h_ap: h_ap(&evaluation.report), h_ap_int8: h_ap(&int8) };
            export.progress.say("Stored", &stored_in_int8(&onnx.bytes, loss));
            onnx.entry.int8 = Some(loss);
        }
        config.backbone = BackboneConfig::Onnx(onnx.backbone.clone());
    }
    let gallery = evaluation.gallery.as_ref().unwrap_or(&evaluation.queries);
    let parity = parity_pictures(pictures, &gallery.items)?;
    let parity = add_parity(bundle, &folder, &parity, [&encoder, &shipped], &device)?;
    let proxies = exported.proxies.as_ref();
    let mut added = add_items(bundle, export, dataset, evaluation, &folder, exported.seed, proxies)?;
    let path = format!("{folder}/weights.bpk");
    bundle.add(&path, weights)?;
    added.entry = EncoderEntry {
        name,
        description: exported.description,
        architecture: architecture(&config)?,
        preprocessing: Some(config.preprocessing),
        weights: Some(path),
        parity: Some(parity),
        onnx: onnx.as_ref().map(|onnx| onnx.entry.clone()),
        licence: exported.licence,
        ..added.entry
    };
    if let Some(onnx) = onnx {
        bundle.add(&onnx.entry.file, onnx.bytes)?;
    }
    Ok(added)
}

/// An entry of a bundle, and the items behind it.
pub struct Added {
    /// The entry.
    pub entry: EncoderEntry,
    /// The items of the gallery.
    pub gallery: Vec<usize>,
    /// Those of the queries, if they are a split of their own.
    pub queries: Vec<usize>,
}

/// Adds the files of an evaluation: the embeddings, their maps and their scores. Its entry has neither a name nor weights.
pub fn add_items(
    bundle: &mut BundleWriter,
    export: &Export,
    dataset: &Dataset,
    mut evaluation: Evaluation,
    folder: &str,
    seed: u64,
    proxies: Option<&Embeddings>,
) -> Result<Added> {
    let per_query = std::mem::take(&mut evaluation.report.per_query);
    let (gallery, queries) = match evaluation.gallery {
        Some(gallery) => (gallery, Some(evaluation.queries)),
        None => (evaluation.queries, None),
    };
    let similarity = evaluation.report.config.similarity;
    let element_type = match similarity {
        Similarity::Poincare { .. } => ElementType::F32,
        _ if export.half => ElementType::F16,
        _ => ElementType::F32,
    };
    let extension = match element_type {
        ElementType::F32 => "f32",
        ElementType::F16 => "f16",
    };
    let labels = dataset.labels.select(&gallery.items);
    let ranked = Labelled { embeddings: &gallery.embeddings, labels: &labels };
    let first_results = match &queries {
        Some(queries) => {
            let labels = &dataset.labels.select(&queries.items);
            let queries = Labelled { embeddings: &queries.embeddings, labels };
            first_shared_levels(queries, ranked, false, similarity)?
        }
        None => first_shared_levels(ranked, ranked, true, similarity)?,
    };
    // What a reader of the bundle computes from its rows.
    let own = LeaveOneOut::new(&rounded(&gallery.embeddings, element_type)?, &labels, similarity)?;
    let (columns, scores) = query_table(&per_query, &first_results);
    let entry = EncoderEntry {
        name: String::new(),
        description: String::new(),
        family: None,
        architecture: Value::Null,
        preprocessing: None,
        dimension: gallery.embeddings.dimension(),
        weights: None,
        gallery_embeddings: format!("{folder}/gallery.{extension}"),
        query_embeddings: queries.as_ref().map(|_| format!("{folder}/queries.{extension}")),
        element_type,
        parity: None,
        onnx: None,
        licence: None,
        maps: add_maps(bundle, folder, export, similarity, seed, ranked, proxies)?,
        best_scores: own.best_scores(),
        calibration: own.calibration(),
        affinities: add_affinities(bundle, folder, ranked, similarity)?,
        query_scores: Some(QueryTable { columns, scores: format!("{folder}/query-scores.f32") }),
        report: evaluation.report,
    };
    bundle.add(format!("{folder}/query-scores.f32"), embedding_bytes(&scores, ElementType::F32))?;
    bundle.add(&entry.gallery_embeddings, embedding_bytes(gallery.embeddings.values(), element_type))?;
    if let (Some(path), Some(queries)) = (&entry.query_embeddings, &queries) {
        bundle.add(path, embedding_bytes(queries.embeddings.values(), element_type))?;
    }
    let queries = queries.map(|queries| queries.items).unwrap_or_default();
    Ok(Added { entry, gallery: gallery.items, queries })
}

/// What weights of 8 bits save and cost.
fn stored_in_int8(bytes: &[u8], Int8Loss { h_ap, h_ap_int8 }: Int8Loss) -> String {
    format!(
        "the weights of the ONNX file in 8 bits, {:.1} MB: H-AP is {:.2} with them and {:.2} without",
        bytes.len() as f64 / 1e6,
        100.0 * h_ap_int8,
        100.0 * h_ap
    )
}

/// Adds the maps of the gallery. Each has a map of the class means, and on the Poincaré disk the run's proxies.
fn add_maps(
    bundle: &mut BundleWriter,
    folder: &str,
    export: &Export,
    similarity: Similarity,
    seed: u64,
    gallery: Labelled,
    proxies: Option<&Embeddings>,
) -> Result<Vec<Map>> {
    let projections = project(gallery.embeddings, similarity, proxies, export.maps, seed, export.progress)?;
    let mut maps = Vec::new();
    let means = ClassMeans::new(gallery)?;
    let mut mean_maps = means.project(similarity, export.maps, seed, export.progress)?;
    for Projection { method, description, geometry, points, proxies: proxy_points } in projections {
        let coordinates = format!("{folder}/{}", method.file_name());
        bundle.add(&coordinates, coordinate_bytes(&points))?;
        let proxies = match (proxies, proxy_points) {
            (Some(proxies), Some(points)) => {
                let ancestors = Ancestors::new(gallery.embeddings, gallery.labels, proxies, similarity)?;
                Some(add_proxies(bundle, folder, &ancestors, &points, gallery.embeddings.len())?)
            }
            _ => None,
        };
        // A small number of classes has no t-SNE and no UMAP.
        let place = mean_maps.iter().position(|map| map.method == method);
        let class_means = match place.map(|place| mean_maps.swap_remove(place)) {
            Some(map) => {
                let coordinates = format!("{folder}/{}", method.file_name().replace("map-", "class-means-"));
                bundle.add(&coordinates, coordinate_bytes(&map.points))?;
                let classes = means.labels.column(means.labels.levels());
                Some(MapMeans { description: map.description, classes, coordinates })
            }
            None => None,
        };
        maps.push(Map {
            name: method.name().into(),
            description,
            coordinates,
            geometry,
            proxies,
            class_means,
        });
    }
    Ok(maps)
}

/// Adds how alike the classes of each level are.
fn add_affinities(
    bundle: &mut BundleWriter,
    folder: &str,
    gallery: Labelled,
    similarity: Similarity,
) -> Result<Vec<Affinity>> {
    let tables = class_scores(gallery.embeddings, gallery.labels, similarity)?;
    let add = |ClassScores { level, classes, scores }| {
        let path = format!("{folder}/affinity-{level}.f32");
        bundle.add(&path, embedding_bytes(&scores, ElementType::F32))?;
        Ok(Affinity { level, classes, scores: path })
    };
    tables.into_iter().map(add).collect()
}

/// The parts of an encoder, as the engine of the page reads them.
fn architecture(config: &EncoderConfig) -> Result<Value> {
    let mut parts = serde_json::to_value(config)?;
    // Has an entry of its own.
    parts.as_object_mut().map(|parts| parts.remove("preprocessing"));
    Ok(parts)
}

/// Adds the files of a map's proxies.
fn add_proxies(
    bundle: &mut BundleWriter,
    folder: &str,
    ancestors: &Ancestors,
    points: &[[f32; 2]],
    items: usize,
) -> Result<MapProxies> {
    let per_proxy = NEAREST.min(items);
    let nearest: Vec<Vec<usize>> = (0..points.len())
        .into_par_iter()
        .map(|proxy| ancestors.nearest(proxy, per_proxy))
        .collect::<akin_core::Result<_>>()?;
    let lines: Vec<Vec<Option<usize>>> =
        (0..items).into_par_iter().map(|item| ancestors.line(item)).collect::<akin_core::Result<_>>()?;
    let numbers: Vec<u32> = nearest.into_iter().flatten().map(|item| item as u32).collect();
    let line_numbers: Vec<u32> =
        lines.into_iter().flatten().map(|proxy| proxy.map_or(NO_ANCESTOR, |proxy| proxy as u32)).collect();
    let proxies = MapProxies {
        count: points.len(),
        coordinates: format!("{folder}/proxies.f32"),
        per_proxy,
        nearest: format!("{folder}/proxies-nearest.u32"),
        ancestors: format!("{folder}/ancestors.u32"),
    };
    bundle.add(&proxies.coordinates, coordinate_bytes(points))?;
    bundle.add(&proxies.nearest, number_bytes(&numbers))?;
    bundle.add(&proxies.ancestors, number_bytes(&line_numbers))?;
    Ok(proxies)
}

/// The embeddings as a reader of the bundle gets them.
fn rounded(embeddings: &Embeddings, element_type: ElementType) -> akin_core::Result<Embeddings> {
    let values = embeddings.values().iter().map(|&number| element_type.round(number)).collect();
    Embeddings::new(embeddings.dimension(), values)
}

/// A folder name of ASCII letters, digits and dashes.
pub fn slug(name: &str, number: usize) -> String {
    let plain: String = name
        .to_lowercase()
        .chars()
        .map(|character| if character.is_ascii_alphanumeric() { character } else { '-' })
        .collect();
    format!("{number}-{}", plain.trim_matches('-'))
}

/// The largest encoder that is exported, in bytes. A phone downloads and holds it.
const LARGEST_ENCODER: usize = 60_000_000;

/// Refuses an encoder that is too large for a browser.
fn check_size(name: &str, bytes: usize) -> Result<()> {
    if bytes <= LARGEST_ENCODER {
        return Ok(());
    }
    Err(problem(
        format!(
            "the encoder {name} has {:.1} MB in half precision, and a browser loads at most 60 MB",
            bytes as f64 / 1e6
        ),
        "train a smaller backbone; `akin list backbones` shows their sizes",
    ))
}

#[cfg(test)]
mod tests {
    use akin_core::image::{Normalisation, Preprocessing};
    use akin_core::models::{BackboneConfig, Pooling};
    use serde_json::json;

    use super::*;

    /// An encoder that the page pools otherwise gives other embeddings.
    #[test]
    fn the_architecture_has_the_pooling() {
        let mut config = EncoderConfig {
            backbone: BackboneConfig::named("squeezenet").unwrap(),
            pooling: None,
            head: None,
            preprocessing: Preprocessing::new(Normalisation::Imagenet, 64).unwrap(),
        };
        assert_eq!(
            architecture(&config).unwrap(),
            json!({ "backbone": { "kind": "squeezenet" }, "head": null })
        );
        config.pooling = Some(Pooling::Max);
        assert_eq!(architecture(&config).unwrap()["pooling"], "max");
    }
}
