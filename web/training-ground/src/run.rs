//! One run: a network, a loss, an optimiser, and where they stand.

use akin_core::embeddings::Embeddings;
use akin_core::evaluate::{Decomposability, EvaluationConfig, Labelled, evaluate};
use akin_core::geometry::Geometry;
use akin_core::losses::{Batch, Draws, Loss, LossConfig, LossContext, Objective};
use akin_core::metrics::Metric;
use akin_core::poincare::Curvature;
use akin_core::random::stream;
use akin_core::taxonomy::{ClassIdentity, Labels, Taxonomy};
use akin_core::{Error, Kind, Result};
use burn::module::{ModuleVisitor, Param};
use burn::tensor::{Device, Tensor, TensorData};
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use crate::Creatures;
use crate::adam::{Adam, numbers};
use crate::network::Network;

/// Where the points are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Space {
    /// Unit vectors of the plane.
    Circle,
    /// Unit vectors of space.
    Sphere,
    /// The Poincaré disk of radius 1: curvature −1.
    Disk,
}

impl Space {
    /// d, the dimension of a point.
    pub fn dimension(self) -> usize {
        if self == Self::Sphere { 3 } else { 2 }
    }

    fn geometry(self) -> Result<Geometry> {
        Ok(match self {
            Self::Circle | Self::Sphere => Geometry::Cosine,
            Self::Disk => Geometry::Poincare {
                curvature: Curvature::try_from(1.0)?,
                clip_radius: 2.3,
                riemannian: true,
            },
        })
    }
}

/// What a run follows from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Where the points are. Default: the circle.
    pub space: Space,
    /// The loss. Default: HAPPIER.
    #[cfg_attr(test, ts(as = "serde_json::Map<String, serde_json::Value>"))]
    pub loss: LossConfig,
    /// P, the number of species in a batch: at least 2. Default: 16.
    pub species: usize,
    /// K, the number of creatures of each: at least 2. Default: 4.
    pub creatures: usize,
    /// The learning rate of the network, above 0. Default: 0.005.
    pub rate: f64,
    /// The learning rate of what the loss learns (proxies), as a multiple of `rate`, above 0. Default: 4.
    pub proxy_rate: f64,
    /// The seed of weights, batches and draws. Default: 1.
    pub seed: u64,
}

impl Settings {
    /// B = P·K, the number of creatures in a batch.
    pub fn batch(&self) -> usize {
        self.species * self.creatures
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            space: Space::Circle,
            loss: LossConfig::named("happier").expect("HAPPIER is in the catalogue and has defaults"),
            species: 16,
            creatures: 4,
            rate: 0.005,
            proxy_rate: 4.0,
            seed: 1,
        }
    }
}

/// A network in training.
pub struct Run {
    settings: Settings,
    geometry: Geometry,
    device: Device,
    network: Network,
    loss: Loss,
    network_optimizer: Adam,
    loss_optimizer: Adam,
    /// [N, F] of all creatures.
    measurements: Tensor<2>,
    training: Vec<usize>,
    /// Labels of the training creatures, which count from 0 without gaps.
    training_labels: Labels,
    /// The training creatures of each fine class, by their place in `training`.
    species: Vec<Vec<usize>>,
    step: u64,
}

/// The scores of creatures that rank one another.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Scores {
    /// H-AP.
    pub h_ap: Option<f64>,
    /// AP at levels 1 … L.
    pub ap: Vec<Option<f64>>,
    /// The decomposability gap of AP at the finest level, in batches as large as those of training. Only for the
    /// creatures that the network learns from.
    pub gap: Option<f64>,
}

/// The scores of a run at one step.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Measures {
    /// The number of steps taken.
    pub step: u64,
    /// The creatures that the network learns from.
    pub training: Scores,
    /// Those of the held-out species.
    pub held_out: Scores,
}

/// Vectors that a loss has learned, as points of the space.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Group {
    /// Whether they are HIER's ancestors, which stand for no class.
    pub ancestors: bool,
    /// [n, d], row after row.
    pub points: Vec<f32>,
}

/// The lowest common ancestors of classes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Tree {
    /// At levels 1 … L, for each class of [`Creatures::taxonomy`], the ancestor ρ with the smallest max d(x, ρ) over the
    /// class's training creatures x, by its place in the group (HIER, eq. 6 and 7 without noise, for more than two
    /// items). None for a class whose species are all held out.
    pub classes: Vec<Vec<Option<usize>>>,
    /// In the disk, the mean distance of these ancestors from the centre, for each level.
    pub depth: Option<Vec<f64>>,
}

impl Run {
    /// A network before its first step.
    ///
    /// # Errors
    ///
    /// A setting out of range, or a loss that cannot compare points of the space.
    pub fn new(creatures: &Creatures, settings: &Settings) -> Result<Self> {
        let refuse = |message: String, hint: &str| Err(Error::new(Kind::Config, message, hint));
        let training = creatures.part(false);
        let (_, training_labels) = training_taxonomy(creatures, &training)?;
        let depth = training_labels.levels();
        let classes = training_labels.classes();
        let mut species = vec![Vec::new(); classes.len()];
        for (place, class) in training_labels.column(depth).into_iter().enumerate() {
            species[class as usize].push(place);
        }
        let fewest = species.iter().map(Vec::len).min().unwrap_or(0);
        if !(2..=species.len()).contains(&settings.species) {
            return refuse(
                format!("a batch cannot have {} of {} species", settings.species, species.len()),
                "give a number from 2 to the number of training species",
            );
        }
        if !(2..=fewest).contains(&settings.creatures) {
            return refuse(
                format!("a batch cannot have {} of {fewest} creatures of a species", settings.creatures),
                "give a number from 2 to the number of creatures of a species",
            );
        }
        for (name, rate) in
            [("learning rate", settings.rate), ("learning rate of proxies", settings.proxy_rate)]
        {
            if !(rate > 0.0 && rate.is_finite()) {
                return refuse(format!("the {name} is {rate}"), "give a number above 0");
            }
        }
        let device = Device::flex().autodiff();
        let geometry = settings.space.geometry()?;
        let context =
            LossContext::new(&classes, settings.space.dimension(), &geometry, settings.seed, &device);
        let loss = settings.loss.init(&context)?;
        let network = Network::new(
            creatures.features(),
            settings.space.dimension(),
            geometry.clone(),
            settings.seed,
            &device,
        );
        let rows: Vec<f32> = (0..creatures.len()).flat_map(|i| creatures.row(i)).copied().collect();
        let measurements =
            Tensor::from_data(TensorData::new(rows, [creatures.len(), creatures.features()]), &device);
        Ok(Self {
            settings: settings.clone(),
            geometry,
            device,
            network,
            loss,
            network_optimizer: Adam::default(),
            loss_optimizer: Adam::default(),
            measurements,
            training,
            training_labels,
            species,
            step: 0,
        })
    }

    /// The number of steps taken.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// Takes a step. Returns the loss of its batch before the step.
    pub fn step(&mut self) -> f64 {
        let batches = (self.training.len() / self.settings.batch()).max(1) as u64;
        if self.step.is_multiple_of(batches) && self.loss.needs_training_set(self.step / batches) {
            let rows = self.select(&self.training);
            let points = self.network.forward(rows).detach();
            self.loss.before_epoch(points, &self.training_labels);
        }
        let draws = Draws { seed: self.settings.seed, step: self.step };
        self.loss.before_step(draws);
        let places = self.batch();
        let labels = self.training_labels.select(&places);
        let creatures: Vec<usize> = places.iter().map(|&place| self.training[place]).collect();
        let points = self.network.forward(self.select(&creatures));
        let value = self.loss.forward(&Batch::new(points.clone(), &labels).with_draws(draws));
        let gradients = value.backward();
        let Settings { rate, proxy_rate, .. } = self.settings;
        self.network = self.network_optimizer.step(self.network.clone(), &gradients, rate);
        self.loss = self.loss_optimizer.step(self.loss.clone(), &gradients, rate * proxy_rate);
        self.loss.after_step(points.detach(), &labels);
        self.step += 1;
        f64::from(numbers(value)[0])
    }

    /// The points of all creatures, [N, d].
    pub fn points(&self) -> Vec<f32> {
        numbers(self.network.forward(self.measurements.clone()))
    }

    /// What the loss has learned: its proxies, one group for each set of them.
    pub fn proxies(&self) -> Vec<Group> {
        let mut search = Proxies {
            geometry: &self.geometry,
            dimension: self.settings.space.dimension(),
            inside: vec![],
            groups: vec![],
        };
        burn::module::Module::visit(&self.loss, &mut search);
        search.groups
    }

    /// The tree that HIER's ancestors grow, for a loss with HIER.
    ///
    /// `points` are those of [`Self::points`].
    pub fn tree(&self, creatures: &Creatures, points: &[f32]) -> Option<Tree> {
        let ancestors = self.proxies().into_iter().find(|group| group.ancestors)?.points;
        let dimension = self.settings.space.dimension();
        let plain = Device::flex();
        let rows = |values: &[f32]| {
            let shape = [values.len() / dimension, dimension];
            Tensor::<2>::from_data(TensorData::new(values.to_vec(), shape), &plain)
        };
        let count = ancestors.len() / dimension;
        // Scores fall as distances rise.
        let scores = numbers(self.geometry.scores(rows(points), rows(&ancestors)));
        let centre = numbers(self.geometry.scores(rows(&ancestors), rows(&vec![0.0; dimension])));
        let (taxonomy, labels) = (creatures.taxonomy(), creatures.labels());
        let classes = (1..=taxonomy.depth()).map(|level| {
            let mut lowest = vec![vec![f32::INFINITY; count]; taxonomy.class_count(level)];
            for &i in &self.training {
                let class = &mut lowest[labels.row(i)[level - 1] as usize];
                class.iter_mut().zip(&scores[i * count..]).for_each(|(low, score)| *low = low.min(*score));
            }
            let best = |class: Vec<f32>| {
                let known = class.iter().all(|score| score.is_finite());
                (0..count).max_by(|&a, &b| class[a].total_cmp(&class[b])).filter(|_| known)
            };
            lowest.into_iter().map(best).collect()
        });
        let classes: Vec<Vec<Option<usize>>> = classes.collect();
        let depth = |level: &Vec<Option<usize>>| {
            let depths: Vec<f64> = level.iter().flatten().map(|&place| -f64::from(centre[place])).collect();
            depths.iter().sum::<f64>() / depths.len() as f64
        };
        let depth = (self.settings.space == Space::Disk).then(|| classes.iter().map(depth).collect());
        Some(Tree { classes, depth })
    }

    /// The scores of the training creatures, which rank one another, and of the held-out ones.
    ///
    /// `points` are those of [`Self::points`].
    ///
    /// # Errors
    ///
    /// Points that are not numbers, because the learning rate was too high.
    pub fn measure(&self, creatures: &Creatures, points: &[f32]) -> Result<Measures> {
        let metrics = ["h_ap", "ap"].map(Metric::named);
        let config = EvaluationConfig {
            metrics: metrics.to_vec(),
            similarity: self.geometry.similarity(),
            decomposability_gap: Some(Decomposability { batch: self.settings.batch(), seed: 0 }),
            ..EvaluationConfig::default()
        };
        let dimension = self.settings.space.dimension();
        let scores = |held_out: bool| -> Result<Scores> {
            // The held-out creatures are too few for batches.
            let config = EvaluationConfig {
                decomposability_gap: config.decomposability_gap.filter(|_| !held_out),
                ..config.clone()
            };
            let part = creatures.part(held_out);
            let rows = part.iter().flat_map(|&i| &points[i * dimension..][..dimension]).copied().collect();
            let embeddings = Embeddings::new(dimension, rows)?;
            let labels = creatures.labels().select(&part);
            let set = Labelled { embeddings: &embeddings, labels: &labels };
            let report = evaluate(creatures.taxonomy().level_names(), set, None, &config)?;
            Ok(Scores {
                h_ap: report.overall.get(metrics[0]),
                ap: report.levels.iter().map(|level| level.means.get(metrics[1])).collect(),
                gap: report.decomposability_gap.and_then(|gap| gap.levels.last().copied().flatten()),
            })
        };
        Ok(Measures { step: self.step, training: scores(false)?, held_out: scores(true)? })
    }

    /// The batch of this step: places in the training set. A round shuffles the species and deals them, P to a batch;
    /// the rest of a round is left out.
    fn batch(&self) -> Vec<usize> {
        let Settings { species, creatures, seed, .. } = self.settings;
        let batches = (self.species.len() / species) as u64;
        let mut order: Vec<usize> = (0..self.species.len()).collect();
        order.shuffle(&mut stream(seed, "sampler/species", &[self.step / batches]));
        let first = (self.step % batches) as usize * species;
        let mut rng = stream(seed, "sampler/creatures", &[self.step]);
        let chosen = &order[first..][..species];
        chosen
            .iter()
            .flat_map(|&class| {
                let mut members = self.species[class].clone();
                members.shuffle(&mut rng);
                members.truncate(creatures);
                members
            })
            .collect()
    }

    /// The measurements of these creatures.
    fn select(&self, creatures: &[usize]) -> Tensor<2> {
        let items: Vec<i64> = creatures.iter().map(|&i| i as i64).collect();
        let count = items.len();
        self.measurements.clone().select(0, Tensor::from_data(TensorData::new(items, [count]), &self.device))
    }
}

/// The taxonomy of the training species alone, whose classes count from 0 without gaps.
fn training_taxonomy(creatures: &Creatures, training: &[usize]) -> Result<(Taxonomy, Labels)> {
    let taxonomy = creatures.taxonomy();
    let name = |(level, &class): (usize, &u32)| taxonomy.class_name(level + 1, class);
    let rows: Vec<Vec<&str>> =
        training.iter().map(|&i| creatures.labels().row(i).iter().enumerate().map(name).collect()).collect();
    Taxonomy::from_rows(taxonomy.level_names(), &rows, ClassIdentity::Path)
}

/// Collects the trained vectors [n, d] of a loss.
struct Proxies<'a> {
    geometry: &'a Geometry,
    dimension: usize,
    /// The modules that contain the current one, outermost first.
    inside: Vec<String>,
    groups: Vec<Group>,
}

impl ModuleVisitor for Proxies<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = param.val();
        // What is not a table of points, such as a learned scale, is not drawn.
        if D != 2 || !param.is_require_grad() || tensor.dims()[1] != self.dimension {
            return;
        }
        let rows = tensor.dims()[0];
        let points = self.geometry.embed(tensor.reshape([rows, self.dimension]));
        let ancestors = self.inside.iter().any(|module| module == "Struct:Hier");
        self.groups.push(Group { ancestors, points: numbers(points) });
    }

    fn enter_module(&mut self, _name: &str, container_type: &str) {
        self.inside.push(container_type.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.inside.pop();
    }
}
