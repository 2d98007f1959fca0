//! The training loop: batches in, an encoder out, and a run that can be continued at any time.
//!
//! Batches are a function of (seed, epoch, step), see [`crate::training::sampler`]. A checkpoint holds the
//! weights and their average, the proxies, the optimisers, the step, and how the evaluations before it went. A resumed
//! run therefore continues the very same sequence, and its log is that of a run that was never stopped.
//!
//! [`train`] prepares everything up to the first step. `run_steps` then does one step after another,
//! each followed by what [`timetable`] says is due, and `finish` saves and evaluates the encoder.

pub mod average;
pub mod checkpoint;
pub mod checks;
mod clipping;
mod dashboard;
pub mod dry_run;
mod gradients;
mod journal;
mod loss_curve;
pub mod loss_scale;
mod numbers;
pub mod optimizer;
pub mod sampler;
pub mod step_cost;
mod timetable;
pub mod trend;
mod view;
mod workers;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::slice::from_ref;
use std::sync::Arc;
use std::thread::Scope;
use std::time::Instant;

use akin_base::directory::{Draft, Kind};
use akin_base::interrupt::{CatchCtrlC, stop_requested};
use akin_base::problem::{Advise, a_few, problem};
use akin_base::progress::Progress;
use akin_base::quantities::{counted, rounded};
use akin_base::terminal;
use akin_core::digest::sha256;
use akin_core::embeddings::Embeddings;
use akin_core::encoder::{Encoder, Precision};
use akin_core::evaluate::Report;
use akin_core::geometry::Space;
use akin_core::losses::{Draws, Loss, LossContext, Objective};
use akin_core::models::DropPath;
use akin_core::taxonomy::{Labels, UNKNOWN};
use anyhow::{Context, Result};
use burn::tensor::{DType, Device, Tensor, TensorData};
use serde_json::json;

use crate::config::device::{is_cpu, plain_name};
use crate::config::{Config, Curve, DeviceName, Moment, Protocol, differences, setting_name};
use crate::data::Dataset;
use crate::evaluation::dyml_protocol;
use crate::evaluation::embedding::{Embedded, embed_items, evaluate_splits};
use crate::evaluation::report::{displayed, is_better, score};
use crate::pictures::features::Features;
use crate::pictures::loader::{Pictures, Position, TrainingBatch, Views};
use crate::runs::run::{Best, CONFIG_FILE, Run, Which, encoder_config, load_weights, warn_of_unused};
use crate::training::checkpoint::{Checkpoint, Origin, Trained};
use crate::training::checks::late_settings;
use crate::training::loss_scale::LossScale;
use crate::training::optimizer::{GradientMagnitudes, Rates};
use crate::training::sampler::Sampler;
use crate::training::trend::Trend;

use gradients::{Differentiated, Images};
use journal::Journal;
use numbers::StepNumbers;
use timetable::{Due, Timetable};
use view::View;
use workers::Workers;

/// How a training ended.
pub enum Outcome {
    /// All steps are done; the report is over the evaluation splits.
    Done(Box<Report>),
    /// Stopped by Ctrl-C, with a checkpoint on disk.
    Stopped {
        /// Steps done so far.
        step: u64,
    },
}

/// Where a training begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At initial weights, in a new run directory.
    New {
        /// Whether to replace an existing run.
        overwrite: bool,
    },
    /// At the run's checkpoint.
    Checkpoint,
}

/// Everything about a training that does not change from step to step.
struct Training<'a> {
    run: &'a Run,
    dataset: &'a Dataset,
    pictures: &'a Pictures,
    /// With a frozen backbone: its features, which replace the pictures.
    features: Option<Features>,
    sampler: Sampler,
    /// Labels of every item, in which the classes of the training split are numbered from 0.
    labels: Labels,
    workers: Workers,
    progress: Progress,
    timetable: Timetable,
    /// The steps during which the backbone is frozen.
    warmup: u64,
    /// What checkpoints say that the training was begun with.
    origin: Origin,
}

/// Keys that may change between the sessions of a training. No step depends on them, except on the number of steps: a
/// training can be made longer. `run.patience` says only when it ends. The digest of the data covers what is at its
/// paths.
///
/// Another device, and another number of `run.workers`, adds up the same numbers in another order, so that sums are
/// rounded otherwise. A training that is resumed with one of them computes the same steps up to that rounding, but not
/// bit for bit.
const MAY_CHANGE: [&str; 17] = [
    "run.name",
    "run.out",
    "run.log",
    "run.device",
    "run.workers",
    "run.steps",
    "run.epochs",
    "run.patience",
    "run.checkpoint_every",
    "data.path",
    "data.images",
    "data.hierarchy",
    "data.parents",
    "data.relevance_matrix",
    "model.weights",
    "model.feature_cache",
    "published",
];

/// Keys that say which evaluations there are and how they are compared. They may change too, unless the curve is
/// `plateau`: evaluations make its learning rates fall.
const EVALUATION: [&str; 3] = ["run.best_by", "run.evaluate_every", "eval."];

/// The keys in which a config differs from the one that its training was begun with, without those that may change
/// between the sessions of a training.
pub fn changed_keys(begun: &Config, now: &Config) -> Vec<String> {
    let evaluation: &[&str] = match begun.schedule.curve {
        Curve::Plateau { .. } => &[],
        _ => &EVALUATION,
    };
    differences(begun, now, &[&MAY_CHANGE[..], evaluation].concat())
}

/// Everything that changes from step to step.
struct State {
    step: u64,
    trend: Trend,
    trained: Trained,
}

/// Where a session of a training is after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    /// It goes on.
    Continues,
    /// At its end: the last step, or an early one after evaluations that got no better.
    Ended,
    /// Stopped by Ctrl-C.
    Stopped,
}

/// Trains as the run's config says. Returns where the run is then: in its directory, or, if it was stopped while it
/// was to replace another run, beside it. The directory is made only when everything is ready for the first step, and
/// an older run is replaced only when the new one is complete. The `devices`, at least one, share the images of each batch.
///
/// # Errors
///
/// A config that does not fit the data, a checkpoint that does not fit the config, a loss that is not
/// finite, a full disk.
pub fn train(
    run: &Run,
    dataset: &Dataset,
    pictures: &Pictures,
    devices: &[Device],
    start: Start,
    progress: Progress,
) -> Result<(Outcome, PathBuf)> {
    let resumed = match start {
        Start::Checkpoint => Some(Draft::resume(Kind::Run, &run.directory)?),
        Start::New { .. } => None,
    };
    let mut training = Training::new(run, dataset, pictures, devices, progress)?;
    let data = dataset.digest_with_pictures(progress)?;
    training.origin = Origin { config: run.config.to_toml(), data };
    if start != Start::Checkpoint {
        late_settings(&run.config, dataset, training.sampler.steps_per_epoch())
            .iter()
            .for_each(terminal::warn);
    }
    let state = training.initial_state(start)?;
    progress.say("Model", &describe_model(&run.config, &state.trained.encoder));
    if devices.len() > 1 {
        let name = device_name(run, &devices[0]);
        progress.say("Workers", &format!("{} on `{name}`", devices.len()));
    }
    for remark in training.sampler.remarks(&run.config.sampler) {
        progress.say("Sampling", &remark);
    }
    if run.config.model.freeze_backbone {
        let encoder = &state.trained.encoder;
        let features = Features::load(&run.config, encoder, dataset, pictures, training.device(), progress)?;
        training.features = Some(features);
    } else if run.config.has_whole_set_batches() {
        training.keep_readable()?;
    }
    let draft = match start {
        Start::New { overwrite } => Draft::create(Kind::Run, &run.directory, overwrite)?,
        Start::Checkpoint => resumed.context("a resumed run has been opened")?,
    };
    let written = Run { directory: draft.directory().to_owned(), config: run.config.clone() };
    training.run = &written;
    if start != Start::Checkpoint {
        written.write_config()?;
    }
    let ctrl_c = CatchCtrlC::start();
    let evaluates_again = training.evaluates_again(state.step);
    let batch = training.sampler.batch_size();
    let view =
        View::begin(progress, &written, draft.target(), training.timetable, state.step, batch, devices);
    let mut journal = Journal::open(&written, state.step, evaluates_again, view)?;
    let (state, course) = training.run_steps(state, &mut journal)?;
    drop(ctrl_c);
    if course == Course::Stopped {
        journal.log(json!({ "event": "stopped", "step": state.step }))?;
        return Ok((Outcome::Stopped { step: state.step }, draft.directory().to_owned()));
    }
    let report = training.finish(&state, &mut journal)?;
    let directory = draft.target().to_owned();
    draft.complete()?;
    journal.view().show_completion();
    Ok((Outcome::Done(Box::new(report)), directory))
}

/// The error of a training that has no image to begin with.
pub(crate) fn no_readable_image() -> anyhow::Error {
    problem(
        "none of the images of the first batch can be read",
        "`akin data check CONFIG` lists every file that cannot be read, with the reason",
    )
}

/// The name of a device of a run, as a value of `run.device`. A GPU that `auto` found is `auto`.
fn device_name(run: &Run, device: &Device) -> String {
    setting_name(if is_cpu(device) { DeviceName::Cpu } else { run.config.run.device })
}

/// Checks that the encoder of a training can be made, with its weights.
///
/// # Errors
///
/// The errors of [`train`] that the model causes.
pub fn check_encoder(config: &Config, device: &Device) -> Result<()> {
    make_encoder(config, device).map(drop)
}

/// Checks everything that a training needs before its first step, except the encoder. Returns its loss.
///
/// # Errors
///
/// The errors of [`train`] before its first step.
pub fn check_loss(run: &Run, dataset: &Dataset, pictures: &Pictures, device: &Device) -> Result<Loss> {
    Training::new(run, dataset, pictures, from_ref(device), Progress::None)?.make_loss()
}

/// The proxies that a run has learned as ancestors of its items (HIER), as points of the Poincaré ball; none for other
/// losses and spaces. The best encoder has none, because a run keeps only the proxies of its last checkpoint.
///
/// # Errors
///
/// A checkpoint that is missing, damaged or of another config.
pub fn learned_ancestors(
    run: &Run,
    which: Which,
    dataset: &Dataset,
    pictures: &Pictures,
    device: &Device,
) -> Result<Option<Embeddings>> {
    let is_wanted =
        |loss: &Loss| loss.hierarchy().is_some_and(|hierarchy| hierarchy.space() == Space::Poincare);
    if which == Which::Best || encoder_config(&run.config).geometry().space() != Space::Poincare {
        return Ok(None);
    }
    let loss = check_loss(run, dataset, pictures, device)?;
    if !is_wanted(&loss) {
        return Ok(None);
    }
    let loss = Checkpoint::load(&run.file("checkpoint.akin"))?.restore_loss(loss)?;
    let dimension = encoder_config(&run.config).dimension();
    let points = loss.hierarchy().map(|hierarchy| hierarchy.points()).transpose()?;
    Ok(points.map(|points| Embeddings::new(dimension, points)).transpose()?)
}

/// The backbone, its size, and what an image costs.
pub fn describe_model(config: &Config, encoder: &Encoder) -> String {
    let side = config.model.preprocessing.side();
    if let Some(onnx) = config.model.onnx() {
        return format!(
            "{}: {} features of an image of {side}×{side} pixels, computed by another engine",
            config.model.backbone_title(),
            onnx.features()
        );
    }
    format!(
        "{}: {} parameters, {} multiply-adds for an image of {side}×{side} pixels",
        config.model.backbone.entry().title,
        rounded(encoder.backbone.parameters()),
        rounded(encoder.backbone.multiply_adds(side)),
    )
}

/// The encoder that a training begins with, and the tensors of `model.weights` that it does not use.
///
/// # Errors
///
/// A backbone that cannot be made, weights that cannot be read or do not fit.
pub fn make_encoder(config: &Config, device: &Device) -> Result<(Encoder, Vec<String>)> {
    with_weights(config, encoder_config(config).init(config.run.seed, device)?)
}

/// An encoder of the same form, whose weights are zero where no file gives them: drawing them takes seconds, and what a
/// step needs does not depend on them.
///
/// # Errors
///
/// As [`make_encoder`].
pub fn outline_encoder(config: &Config, device: &Device) -> Result<Encoder> {
    Ok(with_weights(config, encoder_config(config).absent(device)?)?.0)
}

fn with_weights(config: &Config, mut encoder: Encoder) -> Result<(Encoder, Vec<String>)> {
    let unused = load_weights(&mut encoder, &config.model)?.map(|loaded| loaded.unused);
    let encoder = encoder.freeze(config.model.frozen());
    let encoder = match &config.model.lora {
        Some(lora) if !config.model.freeze_backbone => encoder.adapt(lora, config.run.seed)?,
        _ => encoder,
    };
    Ok((encoder, unused.unwrap_or_default()))
}

impl<'a> Training<'a> {
    fn new(
        run: &'a Run,
        dataset: &'a Dataset,
        pictures: &'a Pictures,
        devices: &[Device],
        progress: Progress,
    ) -> Result<Self> {
        let config = &run.config;
        let splits = &dataset.splits;
        config.eval.check_sets(splits.query.len(), !splits.leave_one_out())?;
        let levels = dataset.taxonomy.level_names();
        let sampler = Sampler::new(&splits.train, &dataset.labels, levels, &config.sampler, config.run.seed)?;
        let (workers, images) = (config.run.workers, sampler.batch_size());
        if workers > images {
            return Err(problem(
                format!(
                    "run.workers is {workers}, but a batch has only {}",
                    counted(images, "image", "images")
                ),
                "lower run.workers, or enlarge the batches of [sampler]",
            ));
        }
        if config.precision() == Precision::Half
            && let Some(device) = devices.iter().find(|device| !device.supports_dtype(DType::F16))
        {
            return Err(problem(
                format!(
                    "run.precision is half, but the device `{}` does not compute in it",
                    device_name(run, device)
                ),
                "set run.precision = \"single\", or choose another `--device`",
            ));
        }
        Ok(Self {
            timetable: Timetable::new(&config.run, sampler.steps_per_epoch()),
            warmup: config.schedule.total_warmup_steps(sampler.steps_per_epoch()),
            labels: number_classes(&dataset.labels, &splits.train),
            run,
            dataset,
            pictures,
            features: None,
            sampler,
            workers: Workers::new(devices)?,
            progress,
            origin: Origin::default(),
        })
    }

    /// Leaves the pictures that cannot be read out of the batches, before the first of them: the views of a whole set are
    /// made while it passes the network, when its images have to be known.
    fn keep_readable(&mut self) -> Result<()> {
        let train = &self.dataset.splits.train;
        let readable = self.pictures.readable(train, &self.progress.bar("Reading", train.len() as u64))?;
        if readable.is_empty() {
            return Err(no_readable_image());
        }
        let (config, levels) = (&self.run.config, self.dataset.taxonomy.level_names());
        self.sampler =
            Sampler::new(&readable, &self.dataset.labels, levels, &config.sampler, config.run.seed)?;
        Ok(())
    }

    /// The device of the weights, the loss and the optimisers, with gradients.
    fn device(&self) -> &Device {
        self.workers.first()
    }

    fn initial_state(&self, start: Start) -> Result<State> {
        let config = &self.run.config;
        let (encoder, unused) = make_encoder(config, self.device())?;
        if let (Start::New { .. }, Some(path)) = (start, &config.model.weights) {
            warn_of_unused(path, &unused);
        }
        let loss = self.make_loss()?;
        let trained = Trained::new(encoder, loss, &config.optimizer, config.precision());
        if start != Start::Checkpoint {
            return Ok(State { step: 0, trend: Trend::default(), trained });
        }
        let checkpoint = Checkpoint::load(&self.run.file("checkpoint.akin"))?;
        self.check_origin(&checkpoint.origin)?;
        let step = checkpoint.step as u64;
        if step > self.timetable.steps {
            return Err(problem(
                format!(
                    "the checkpoint is after step {step}, but the config trains {} steps",
                    self.timetable.steps
                ),
                "set run.steps or run.epochs in the run's config.toml to at least that",
            ));
        }
        let trend = checkpoint.trend;
        let trained = checkpoint.restore(trained)?;
        self.progress.say("Resuming", &format!("after step {step} of {}", self.timetable.steps));
        Ok(State { step, trend, trained })
    }

    /// Refuses to continue with another config or other data than the training was begun with.
    fn check_origin(&self, origin: &Origin) -> Result<()> {
        let file = self.run.directory.join(CONFIG_FILE);
        let begun: Config = toml::from_str(&origin.config).advise(
            || "the config in the checkpoint cannot be read".into(),
            "start the run again with `akin train`",
        )?;
        let changed = changed_keys(&begun, &self.run.config);
        if !changed.is_empty() {
            return Err(problem(
                format!("{} has changed since the checkpoint: {}", file.display(), a_few(&changed)),
                "set these back, or train a new run with them",
            ));
        }
        let changes = self.origin.data.changes(&origin.data);
        if !changes.is_empty() {
            return Err(problem(
                format!(
                    "the data in {} have changed since the checkpoint: {}",
                    self.run.config.data.path().display(),
                    changes.join(", ")
                ),
                "put the data back as they were, or train a new run on them",
            ));
        }
        Ok(())
    }

    /// Whether a session that begins after `step` steps first evaluates the encoder: in the middle of the training or at
    /// its end.
    fn evaluates_again(&self, step: u64) -> bool {
        self.timetable.evaluates(step) || step == self.timetable.steps
    }

    fn make_loss(&self) -> Result<Loss> {
        let config = &self.run.config;
        let encoder = encoder_config(config);
        let classes = self.labels.select(&self.dataset.splits.train).classes();
        let (dimension, geometry) = (encoder.dimension(), encoder.geometry());
        let context = LossContext::new(&classes, dimension, &geometry, config.run.seed, self.device());
        Ok(config.loss.init(&context)?)
    }

    /// Trains until the end, or until Ctrl-C asks for a stop. Also returns which of them it was.
    fn run_steps(&self, mut state: State, journal: &mut Journal) -> Result<(State, Course)> {
        // A checkpoint is written before the evaluation of its step, which has to come first then.
        if state.step > 0
            && self.timetable.evaluates(state.step)
            && self.evaluate_on_the_way(&mut state, journal)? == Course::Ended
        {
            return Ok((state, Course::Ended));
        }
        std::thread::scope(|scope| {
            let mut batches = self.batches(&state, scope)?;
            let mut saved = Instant::now();
            let mut saved_step = (state.step > 0).then_some(state.step);
            let mut unread: Option<StepNumbers> = None;
            let precision = self.run.config.precision();
            while state.step < self.timetable.steps {
                let batch =
                    journal.wait_for(|| batches.next()).context("the thread that reads images has ended")?;
                self.pictures.check()?;
                self.prepare_epoch_of_loss(&mut state)?;
                let (next, numbers, rates) = self.step(state, batch)?;
                state = next;
                // The device works on this step while the numbers of the one before are read.
                if let Some(previous) = unread.take() {
                    let loss = previous.check(self.pictures, precision, saved_step)?;
                    journal.view().show_loss(state.step - 1, loss);
                }
                let due = self.timetable.due(state.step, saved.elapsed(), stop_requested());
                if due.log || due.evaluation {
                    // A checkpoint is logged first, so that none has a number that is not finite.
                    let loss = numbers.check(self.pictures, precision, saved_step)?;
                    let line = self.log_step(&state, loss, rates, journal)?;
                    journal.view().note(&line, due.progress_line);
                } else {
                    unread = Some(numbers);
                }
                journal.view().end_step(state.step);
                let course = self.follow_step(&mut state, due, journal)?;
                if due.checkpoint {
                    (saved, saved_step) = (Instant::now(), Some(state.step));
                }
                if course != Course::Continues {
                    return Ok((state, course));
                }
            }
            Ok((state, Course::Ended))
        })
    }

    /// The batches of the steps that are left. Views of pictures are made in a thread of the scope.
    fn batches<'scope>(
        &'scope self,
        state: &State,
        scope: &'scope Scope<'scope, '_>,
    ) -> Result<Box<dyn Iterator<Item = TrainingBatch> + 'scope>> {
        let Timetable { steps, steps_per_epoch, .. } = self.timetable;
        let sampler = &self.sampler;
        let positions = (state.step..steps).map(move |step| {
            let position =
                Position { epoch: step / steps_per_epoch, step: (step % steps_per_epoch) as usize };
            (position, sampler.batch(position.epoch, position.step))
        });
        Ok(match &self.features {
            Some(features) => Box::new(positions.map(|(position, mut items)| {
                items.retain(|&item| features.contains(item));
                TrainingBatch { views: Vec::new(), items, position }
            })),
            None if self.run.config.has_whole_set_batches() => {
                Box::new(positions.map(|(position, items)| TrainingBatch {
                    views: Vec::new(),
                    items,
                    position,
                }))
            }
            None => {
                let views = self.views(&state.trained.encoder);
                Box::new(views.make_batches_ahead(self.pictures, positions, scope)?.into_iter())
            }
        })
    }

    /// How a picture becomes a view for this encoder.
    fn views(&self, encoder: &Encoder) -> Views {
        Views {
            augment: self.run.config.augment.clone().unwrap_or_default(),
            preprocessing: encoder.preprocessing().clone(),
            seed: self.run.config.run.seed,
        }
    }

    /// Gives the loss the embeddings of the whole training split, if it needs them before the coming epoch.
    fn prepare_epoch_of_loss(&self, state: &mut State) -> Result<()> {
        let per_epoch = self.timetable.steps_per_epoch;
        let epoch_starts = state.step.is_multiple_of(per_epoch);
        let Trained { encoder, loss, .. } = &mut state.trained;
        if !epoch_starts || !loss.needs_training_set(state.step / per_epoch) {
            return Ok(());
        }
        let Embedded { items, embeddings } = self.embed(encoder, &self.dataset.splits.train)?;
        let shape = [items.len(), embeddings.dimension()];
        let values = TensorData::new(embeddings.values().to_vec(), shape);
        let device = self.device().clone().without_autodiff();
        loss.before_epoch(Tensor::from_data(values, &device), &self.labels.select(&items));
        Ok(())
    }

    /// Does one step. Its numbers stay on the device, because reading them waits for the step to end. The state is
    /// passed by value, so that nothing else holds the weights and the optimisers change them where they are.
    fn step(&self, mut state: State, batch: TrainingBatch) -> Result<(State, StepNumbers, Rates)> {
        let rates = self.rates(&state);
        state.step += 1;
        if batch.items.is_empty() {
            if state.step == 1 {
                return Err(no_readable_image());
            }
            let device = self.device().clone().without_autodiff();
            let numbers = StepNumbers::none(state.step, &device);
            return Ok((state, numbers, rates));
        }
        let Trained { encoder, mut loss, mut optimizers, average, loss_scale } = state.trained;
        let labels = self.labels.select(&batch.items);
        let draws = Draws { seed: self.run.config.run.seed, step: state.step - 1 };
        loss.before_step(draws);
        let images = Images {
            labels: &labels,
            draws,
            chunk: self.run.config.chunk().unwrap_or(usize::MAX),
            loss_scale: loss_scale.map(|scale| scale.factor()),
            workers: &self.workers,
            embed: |encoder: &Encoder, range: Range<usize>, device: &Device| {
                self.embed_batch(encoder, &batch, range, device, rates.backbone.is_some().then_some(draws))
            },
        };
        let differentiated = images.differentiate(&encoder, &loss)?;
        // A picture may have become unreadable since its view was to be made.
        self.pictures.check()?;
        let mut magnitudes = differentiated.gradients.magnitudes(&encoder, &loss);
        let smaller_scale = match loss_scale {
            Some(scale) if differentiated.overflows(&magnitudes)? => scale.after_overflow(),
            _ => None,
        };
        let Differentiated { embeddings, loss: value, gradients, .. } = differentiated;
        let (encoder, mut loss, average) = if smaller_scale.is_some() {
            // The step is skipped: no weight moves, and its gradients are not held against it.
            magnitudes = GradientMagnitudes::default();
            (encoder, loss, average)
        } else {
            let (encoder, loss) = optimizers.step(encoder, loss, gradients, &rates);
            let average = average.map(|average| average.follow(&encoder));
            (encoder, loss, average)
        };
        let loss_scale = smaller_scale.or(loss_scale.map(LossScale::after_step));
        loss.after_step(embeddings.clone(), &labels);
        let numbers =
            StepNumbers::new(state.step, batch.items, embeddings, value, magnitudes, &encoder, &loss);
        state.trained = Trained { encoder, loss, optimizers, average, loss_scale };
        Ok((state, numbers, rates))
    }

    /// The learning rates of the next step.
    fn rates(&self, state: &State) -> Rates {
        let config = &self.run.config;
        let factor = config.schedule.factor(Moment {
            step: state.step,
            steps: self.timetable.steps,
            steps_per_epoch: self.timetable.steps_per_epoch,
            falls: state.trend.falls(),
        });
        let backbone_learns = self.features.is_none() && state.step >= self.warmup;
        Rates {
            backbone: backbone_learns.then_some(config.optimizer.lr_backbone * factor),
            head: config.optimizer.lr_head * factor,
            proxies: config.optimizer.lr_proxies * factor,
            terms: config.lr_terms().iter().map(|rate| rate * factor).collect(),
        }
    }

    /// The embeddings of some images of a batch, with gradients if the device has them. The `draws` are those of a backbone
    /// that learns.
    fn embed_batch(
        &self,
        encoder: &Encoder,
        batch: &TrainingBatch,
        range: Range<usize>,
        device: &Device,
        draws: Option<Draws>,
    ) -> Result<Tensor<2>> {
        match &self.features {
            Some(features) => Ok(encoder.embed_features(features.batch(&batch.items[range], device))),
            None => {
                let half;
                let encoder = match self.run.config.precision() {
                    Precision::Single => encoder,
                    Precision::Half => {
                        half = encoder.in_half_precision();
                        &half
                    }
                };
                let dropping;
                let encoder = match (draws, self.run.config.model.drop_path) {
                    (Some(Draws { seed, step }), rate) if rate > 0.0 => {
                        dropping = encoder.with_drop_path(DropPath { rate, seed, step, first: range.start });
                        &dropping
                    }
                    _ => encoder,
                };
                let views = match batch.views.get(range.clone()) {
                    Some(views) => Cow::Borrowed(views),
                    None => Cow::Owned(self.views(encoder).part(self.pictures, batch, range)),
                };
                let images = encoder.batch(&views, device);
                let embeddings = if draws.is_some() || !device.is_autodiff() {
                    encoder.forward(images)
                } else {
                    encoder.forward_frozen(images)
                };
                Ok(embeddings?)
            }
        }
    }

    /// Logs the loss of a step. Returns a line about it for the terminal.
    fn log_step(&self, state: &State, loss: f64, rates: Rates, journal: &mut Journal) -> Result<String> {
        let step = state.step;
        let seconds = journal.seconds();
        let mut entry = json!({
            "event": "step", "step": step, "epoch": (step - 1) / self.timetable.steps_per_epoch, "loss": loss,
            "lr_backbone": rates.backbone, "lr_head": rates.head,
            "lr_proxies": rates.terms.is_empty().then_some(rates.proxies),
            "seconds": seconds,
        });
        if !rates.terms.is_empty() {
            entry["lr_terms"] = rates.terms.into();
        }
        if let Some(scale) = state.trained.loss_scale {
            entry["loss_scale"] = scale.factor().into();
            entry["skipped_steps"] = scale.skipped().into();
        }
        journal.log(entry)?;
        let pace = seconds / journal.steps_done(step) as f64;
        Ok(format!("step {step}/{}  loss {loss:.4}  {pace:.2} s a step", self.timetable.steps))
    }

    /// Does what is due after a step, apart from the log.
    fn follow_step(&self, state: &mut State, due: Due, journal: &mut Journal) -> Result<Course> {
        if due.checkpoint {
            self.save_checkpoint(state)?;
            journal.view().saved(state.step);
        }
        let course =
            if due.evaluation { self.evaluate_on_the_way(state, journal)? } else { Course::Continues };
        Ok(if due.stop { Course::Stopped } else { course })
    }

    /// Evaluates a training before its last step. Says whether that ends it.
    fn evaluate_on_the_way(&self, state: &mut State, journal: &mut Journal) -> Result<Course> {
        journal.measure_memory();
        let report = self.evaluate(&state.trained.result())?;
        self.keep_best(state, &report)?;
        journal.log(json!({ "event": "evaluation", "step": state.step, "report": report }))?;
        let Config { run, schedule, .. } = &self.run.config;
        if let Some(score) = score(&report, run.best_by, None) {
            state.trend.add(run.best_by, score, schedule.patience());
        }
        let since = state.trend.since_best();
        if run.patience.is_none_or(|patience| since < patience) {
            return Ok(Course::Continues);
        }
        let evaluations = counted(since as usize, "evaluation", "evaluations");
        let metric = run.best_by;
        let best = match self.run.best()?.map(|(best, _)| best).filter(|best| best.metric == metric) {
            Some(Best { step, score, .. }) => {
                format!(" than {:.2} at step {step}, whose encoder is kept", displayed(metric, score))
            }
            None => String::new(),
        };
        self.progress.say(
            "Ending",
            &format!(
                "after step {} of {}: {evaluations} in a row had no better {}{best}",
                state.step,
                self.timetable.steps,
                metric.label()
            ),
        );
        Ok(Course::Ended)
    }

    /// Keeps the encoder if its evaluation is the best so far. With several equally good ones the first is kept.
    fn keep_best(&self, state: &State, report: &Report) -> Result<()> {
        let metric = self.run.config.run.best_by;
        let Some(score) = score(report, metric, None) else { return Ok(()) };
        let best = self.run.best()?.map(|(best, _)| best).filter(|best| best.metric == metric);
        if best.is_none_or(|best| is_better(metric, score, best.score)) {
            let weights = state.trained.result().to_bytes()?;
            self.run.write_best(&Best { step: state.step, metric, score }, &weights)?;
        }
        Ok(())
    }

    fn save_checkpoint(&self, state: &State) -> Result<()> {
        Checkpoint::new(state.step as usize, self.origin.clone(), state.trend, &state.trained)?
            .save(&self.run.file("checkpoint.akin"))
    }

    /// Saves the trained encoder, evaluates it, and writes the report and the summary of the run.
    fn finish(&self, state: &State, journal: &mut Journal) -> Result<Report> {
        journal.view().end_steps();
        let weights = state.trained.result().to_bytes()?;
        self.run.write_weights(&weights)?;
        let (seconds, waiting) = (journal.seconds(), journal.waiting_seconds());
        journal.measure_memory();
        let report = self.evaluate(&state.trained.result())?;
        if self.run.config.run.evaluate_every_epochs > 0 {
            self.keep_best(state, &report)?;
        }
        let best = self.run.best()?.map(|(best, _)| best);
        let unreadable = self.pictures.unreadable();
        journal.log(json!({
            "event": "done", "step": state.step, "seconds": seconds, "report": report,
            "skipped_images": unreadable.keys().collect::<Vec<_>>(),
        }))?;
        self.run.write_json("report.json", &report)?;
        let steps_done = journal.steps_done(state.step);
        let device = self.device().clone().without_autodiff();
        self.run.write_json(
            "run.json",
            &json!({
                "akin": env!("CARGO_PKG_VERSION"), "data": self.origin.data, "encoder_sha256": sha256(&weights), "encoder": encoder_config(&self.run.config), "device": plain_name(&device),
                "steps": state.step, "best": best, "training_seconds": seconds,
                "waiting_seconds": waiting,
                "seconds_per_step": (steps_done > 0).then(|| seconds / steps_done as f64),
                "images_per_batch": self.sampler.batch_size(),
                "classes_per_batch": self.sampler.classes_and_images().map(|(classes, _)| classes),
                "images_per_class": self.sampler.classes_and_images().map(|(_, images)| images),
                "peak_memory_bytes": journal.peak_memory(),
                "skipped_images": unreadable,
                "skipped_steps": state.trained.loss_scale.map(|scale| scale.skipped()),
            }),
        )?;
        let steps = counted(steps_done as usize, "step", "steps");
        self.progress
            .say("Trained", &format!("{steps} in {seconds:.0} s, {waiting:.0} s of them waiting for images"));
        if let Some(Best { step, metric, score }) = best.filter(|best| best.step != state.step) {
            let score = displayed(metric, score);
            self.progress.say(
                "Best",
                &format!("{} {score:.2} after step {step}, whose encoder is in best.akin", metric.label()),
            );
        }
        if !unreadable.is_empty() {
            let images = counted(unreadable.len(), "image", "images");
            self.progress.say("Skipped", &format!("{images} that cannot be read; see run.json"));
        }
        Ok(report)
    }

    /// The report over the evaluation splits, without the scores of single queries.
    fn evaluate(&self, encoder: &Encoder) -> Result<Report> {
        let config = &self.run.config;
        if config.split.protocol == Protocol::Dyml {
            return dyml_protocol::report(encoder, config, self.device(), self.progress);
        }
        let embed = |items: &[usize]| self.embed(encoder, items);
        let mut report = evaluate_splits(self.dataset, &self.run.config.eval, self.progress, embed)?.report;
        report.per_query.clear();
        Ok(report)
    }

    fn embed(&self, encoder: &Encoder, items: &[usize]) -> Result<Embedded> {
        embed_items(encoder, self.pictures, self.features.as_ref(), items, self.device(), self.progress)
    }
}

/// The same labels with other class ids: at every level the classes of the items `first` are numbered
/// from 0 without a gap, and the other classes come after them. Proxies have these numbers. What is unknown stays so.
fn number_classes(labels: &Labels, first: &[usize]) -> Labels {
    let levels = labels.levels();
    let first = labels.select(first);
    let mut ids = labels.ids().to_vec();
    for level in 1..=levels {
        let mut number = HashMap::new();
        let [mut classes, mut others] = [first.column(level), labels.column(level)];
        classes.sort_unstable();
        others.sort_unstable();
        for class in classes.into_iter().chain(others).filter(|&class| class != UNKNOWN) {
            let next = number.len() as u32;
            number.entry(class).or_insert(next);
        }
        for id in ids[level - 1..].iter_mut().step_by(levels) {
            *id = number.get(id).copied().unwrap_or(UNKNOWN);
        }
    }
    let numbered = Labels::new(levels, ids).expect("the shape is that of the labels given");
    match labels.kinship() {
        Some((kinship, kinds)) => numbered
            .with_kinship(Arc::clone(kinship), kinds.to_vec())
            .expect("the items are those of the labels given"),
        None => numbered,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classes_of_the_training_split_are_numbered_first() {
        // Levels: order, species. Items 1 and 3 are trained on.
        let labels = Labels::new(2, vec![0, 0, 1, 4, 0, 1, 2, 3, 1, 2]).unwrap();
        let numbered = number_classes(&labels, &[1, 3]);
        assert_eq!(numbered.select(&[1, 3]).ids(), [0, 1, 1, 0]);
        assert_eq!(numbered.ids(), [2, 2, 0, 1, 2, 3, 1, 0, 0, 4]);
        assert_eq!(numbered.select(&[1, 3]).classes().ids(), [1, 0, 0, 1]);
        let labels = Labels::new(2, vec![0, UNKNOWN, 2, 4, 1, UNKNOWN]).unwrap();
        assert_eq!(number_classes(&labels, &[1, 2]).ids(), [2, UNKNOWN, 1, 0, 0, UNKNOWN]);
    }
}
