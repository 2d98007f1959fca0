//! The training loop: batches in, an encoder out, and a run that can be continued at any time.
//!
//! Batches are a function of (seed, epoch, step), see [`crate::sampler`]; a checkpoint holds the
//! weights, the proxies, the optimisers and the step, so that a resumed run continues the very same
//! sequence.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use akin_core::encoder::Encoder;
use akin_core::evaluate::Report;
use akin_core::losses::{Batch, Draws, Loss, LossContext, Objective};
use akin_core::taxonomy::Labels;
use anyhow::{Context, Result};
use burn::tensor::{Device, Tensor, TensorData};
use serde_json::{Value, json};

use crate::checkpoint::Checkpoint;
use crate::columns::counted;
use crate::config::Config;
use crate::data::Dataset;
use crate::embedding::{Embedded, embed_items, evaluate_splits};
use crate::features::Features;
use crate::files::write_atomic;
use crate::loader::{Pictures, Position, TrainingBatch, Views};
use crate::machine;
use crate::optimizer::{Optimizers, Rates};
use crate::problem::{Advise, problem};
use crate::progress::Progress;
use crate::run::{Run, encoder_config, load_backbone};
use crate::sampler::Sampler;

/// Steps between two lines of the log.
const LOG_EVERY: u64 = 10;

/// How often Ctrl-C was pressed since the program began.
static INTERRUPTIONS: AtomicU32 = AtomicU32::new(0);

/// How a training ended.
pub enum Outcome {
    /// All steps are done; the report is over the evaluation splits.
    Done(Box<Report>),
    /// Ctrl-C: a checkpoint is on disk.
    Stopped {
        /// Steps done so far.
        step: u64,
    },
}

/// From now on the first Ctrl-C lets a training finish its step and save; a second one aborts.
///
/// # Errors
///
/// A system that has no such signals.
pub fn listen_to_ctrl_c() -> Result<()> {
    ctrlc::set_handler(|| {
        if INTERRUPTIONS.fetch_add(1, Ordering::SeqCst) > 0 {
            std::process::exit(130);
        }
        eprintln!("\n    Stopping after this step; press Ctrl-C again to abort at once");
    })
    .context("Ctrl-C cannot be listened to")
}

/// Whether Ctrl-C was pressed since the program began.
pub fn interrupted() -> bool {
    INTERRUPTIONS.load(Ordering::SeqCst) > 0
}

/// All of a training but its state.
struct Training<'a> {
    run: &'a Run,
    dataset: &'a Dataset,
    pictures: &'a Pictures,
    /// Of a frozen backbone: what is trained on instead of pictures.
    features: Option<Features>,
    sampler: Sampler,
    /// Class ids of the training split alone, dense at every level, a row for each of its items.
    labels: Labels,
    device: Device,
    progress: Progress,
    steps: u64,
    warmup: u64,
}

/// What changes from step to step.
struct State {
    step: u64,
    encoder: Encoder,
    loss: Loss,
    optimizers: Optimizers,
}

/// Where a training begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// With first weights, in a new run directory.
    New {
        /// Whether to replace a run that is there.
        overwrite: bool,
    },
    /// With the run's checkpoint.
    Checkpoint,
}

/// Trains as the run's config says. A run directory is made, or replaced, only when everything is
/// ready for the first step.
///
/// # Errors
///
/// A config that does not fit the data, a checkpoint that does not fit the config, a loss that is
/// not finite, a disk that is full.
pub fn train(
    run: &Run,
    dataset: &Dataset,
    pictures: &Pictures,
    device: &Device,
    beginning: Beginning,
    progress: Progress,
) -> Result<Outcome> {
    let mut training = Training::new(run, dataset, pictures, device, progress)?;
    let state = training.start(beginning)?;
    if run.config.model.freeze_backbone {
        let features = Features::load(&run.config, &state.encoder, dataset, pictures, device, progress)?;
        training.features = Some(features);
    }
    if let Beginning::New { overwrite } = beginning {
        run.create(overwrite)?;
    }
    training.go(state)
}

/// Checks that the encoder of a training can be made, with its weights.
///
/// # Errors
///
/// As [`train`] before its first step.
pub fn check_encoder(config: &Config, device: &Device) -> Result<()> {
    make_encoder(config, device).map(drop)
}

/// Checks everything that a training needs before its first step, except the encoder. Returns its loss.
///
/// # Errors
///
/// As [`train`] before its first step.
pub fn check_loss(run: &Run, dataset: &Dataset, pictures: &Pictures, device: &Device) -> Result<Loss> {
    Training::new(run, dataset, pictures, device, Progress::None)?.make_loss()
}

fn make_encoder(config: &Config, device: &Device) -> Result<Encoder> {
    let mut encoder = encoder_config(config).init(config.run.seed, device)?;
    if let Some(path) = &config.model.weights {
        load_backbone(&mut encoder, path)?;
    }
    Ok(encoder)
}

impl<'a> Training<'a> {
    fn new(
        run: &'a Run,
        dataset: &'a Dataset,
        pictures: &'a Pictures,
        device: &Device,
        progress: Progress,
    ) -> Result<Self> {
        let config = &run.config;
        let splits = &dataset.splits;
        config.eval.check_sets(splits.query.len(), !splits.leave_one_out())?;
        let labels = dense(&dataset.labels(&dataset.splits.train));
        let sampler = Sampler::new(
            &labels.column(labels.levels()),
            config.sampler.classes_per_batch,
            config.sampler.images_per_class,
            config.run.seed,
        )?;
        Ok(Self {
            steps: config.run.total_steps(sampler.steps_per_epoch()),
            warmup: config.schedule.total_warmup_steps(sampler.steps_per_epoch()),
            run,
            dataset,
            pictures,
            features: None,
            sampler,
            labels,
            device: device.clone().autodiff(),
            progress,
        })
    }

    fn start(&self, beginning: Beginning) -> Result<State> {
        let config = &self.run.config;
        let encoder = make_encoder(config, &self.device)?;
        let loss = self.make_loss()?;
        let optimizers = Optimizers::new(&config.optimizer);
        if beginning != Beginning::Checkpoint {
            return Ok(State { step: 0, encoder, loss, optimizers });
        }
        let checkpoint = Checkpoint::load(&self.run.file("checkpoint.akin"))?;
        let step = checkpoint.step as u64;
        let (encoder, loss, optimizers) = checkpoint.restore(encoder, loss, optimizers)?;
        self.progress.say("Resuming", &format!("after step {step} of {}", self.steps));
        Ok(State { step, encoder, loss, optimizers })
    }

    fn make_loss(&self) -> Result<Loss> {
        let config = &self.run.config;
        let encoder = encoder_config(config);
        let (classes, geometry) = (self.labels.classes(), encoder.geometry());
        let seed = config.run.seed;
        let context = LossContext::new(&classes, encoder.dimension(), &geometry, seed, &self.device);
        Ok(config.loss.init(&context)?)
    }

    fn go(&self, mut state: State) -> Result<Outcome> {
        let per_epoch = self.sampler.steps_per_epoch() as u64;
        let mut log = self.log()?;
        let mut note = |entry: Value| -> Result<()> {
            writeln!(log, "{entry}").advise(
                || "the log cannot be written".into(),
                "free some space; `akin resume RUN` continues from the last checkpoint",
            )
        };
        let views = Views {
            augment: self.run.config.augment.clone().unwrap_or_default(),
            preprocessing: state.encoder.preprocessing().clone(),
            seed: self.run.config.run.seed,
        };
        let bar = self.progress.bar("Training", self.steps);
        bar.start_at(state.step);
        let settings = &self.run.config.run;
        let first = state.step;
        if first > 0 {
            note(json!({ "event": "resumed", "step": first }))?;
        }
        let started = Instant::now();
        // Before the first evaluation, which may need more than training, whatever the loss.
        let mut peak_memory = None;
        let stopped = std::thread::scope(|scope| -> Result<bool> {
            let positions = (first..self.steps).map(|step| {
                let position = Position { epoch: step / per_epoch, step: (step % per_epoch) as usize };
                let rows = self.sampler.batch(position.epoch, position.step);
                (position, rows.into_iter().map(|row| self.dataset.splits.train[row]).collect())
            });
            let mut batches: Box<dyn Iterator<Item = TrainingBatch>> = match &self.features {
                None => Box::new(views.ahead(self.pictures, positions, scope).into_iter()),
                Some(features) => Box::new(positions.map(|(_, mut items): (_, Vec<usize>)| {
                    items.retain(|&item| features.has(item));
                    TrainingBatch { views: Vec::new(), items }
                })),
            };
            while state.step < self.steps {
                let batch = batches.next().context("the thread that reads images has ended")?;
                let before = state.step;
                if before.is_multiple_of(per_epoch) && state.loss.needs_training_set(before / per_epoch) {
                    self.show_training_set(&mut state)?;
                }
                let (loss, rates) = self.step(&mut state, batch)?;
                let last = state.step == self.steps;
                let stop = interrupted();
                let epoch_ended = state.step.is_multiple_of(per_epoch);
                let epoch = state.step / per_epoch;
                let due = |every: u64| epoch_ended && every > 0 && epoch.is_multiple_of(every);
                let save = last || stop || due(settings.checkpoint_every_epochs);
                // Also before a checkpoint, so that none is of a training that has failed.
                if state.step.is_multiple_of(LOG_EVERY) || save {
                    let value: f64 =
                        f64::from(loss.try_into_data()?.try_to_vec::<f32>().map_err(not_f32)?[0]);
                    if !value.is_finite() {
                        return Err(problem(
                            format!("the loss is {value} at step {}", state.step),
                            "lower the learning rates, or set optimizer.clip_norm, and check the numbers in [loss]",
                        ));
                    }
                    let seconds = started.elapsed().as_secs_f64();
                    note(json!({
                        "event": "step", "step": state.step, "epoch": before / per_epoch, "loss": value,
                        "lr_backbone": rates.backbone, "lr_head": rates.head, "lr_proxies": rates.proxies,
                        "seconds": seconds,
                    }))?;
                    let pace = seconds / (state.step - first) as f64;
                    let every = (self.steps / 20).next_multiple_of(LOG_EVERY).max(LOG_EVERY);
                    let mark = last || state.step.is_multiple_of(every);
                    bar.note(
                        &format!("step {}/{}  loss {value:.4}  {:.2} s a step", state.step, self.steps, pace),
                        mark,
                    );
                }
                bar.advance(1);
                if save {
                    self.save(&state)?;
                }
                if stop && !last {
                    return Ok(true);
                }
                if due(settings.evaluate_every_epochs) && !last {
                    peak_memory = peak_memory.or_else(machine::peak_memory);
                    let report = self.evaluate(&state.encoder)?;
                    note(json!({ "event": "evaluation", "step": state.step, "report": report }))?;
                }
            }
            Ok(false)
        })?;
        drop(bar);
        if stopped {
            note(json!({ "event": "stopped", "step": state.step }))?;
            return Ok(Outcome::Stopped { step: state.step });
        }
        let weights = state.encoder.to_bytes()?;
        write_atomic(&self.run.file("encoder.bpk"), |file| file.write_all(&weights))?;
        let seconds = started.elapsed().as_secs_f64();
        peak_memory = peak_memory.or_else(machine::peak_memory);
        let report = self.evaluate(&state.encoder)?;
        let unreadable = self.pictures.unreadable();
        note(json!({
            "event": "done", "step": state.step, "seconds": seconds, "report": report,
            "skipped_images": unreadable.keys().collect::<Vec<_>>(),
        }))?;
        self.run.write_json("report.json", &report)?;
        self.run.write_json(
            "run.json",
            &json!({
                "akin": env!("CARGO_PKG_VERSION"), "device": format!("{:?}", self.device.clone().without_autodiff()),
                "steps": self.steps, "training_seconds": seconds,
                "seconds_per_step": seconds / (self.steps - first).max(1) as f64,
                "peak_memory_bytes": peak_memory,
                "skipped_images": unreadable,
            }),
        )?;
        let steps = counted((self.steps - first) as usize, "step", "steps");
        self.progress.say("Trained", &format!("{steps} in {seconds:.0} s"));
        if !unreadable.is_empty() {
            let images = counted(unreadable.len(), "image", "images");
            self.progress.say("Skipped", &format!("{images} that cannot be read; see run.json"));
        }
        Ok(Outcome::Done(Box::new(report)))
    }

    /// One step; the loss is left on the device, so that not every step waits for it.
    fn step(&self, state: &mut State, batch: TrainingBatch) -> Result<(Tensor<1>, Rates)> {
        let config = &self.run.config;
        let factor = config.schedule.factor(state.step, self.steps);
        let learns = self.features.is_none() && state.step >= self.warmup;
        let rates = Rates {
            backbone: learns.then_some(config.optimizer.lr_backbone * factor),
            head: config.optimizer.lr_head * factor,
            proxies: config.optimizer.lr_proxies * factor,
        };
        state.step += 1;
        if batch.items.is_empty() {
            if state.step == 1 {
                return Err(problem(
                    "none of the images of the first batch can be read",
                    "`akin data check CONFIG` lists every file that cannot be read, with the reason",
                ));
            }
            return Ok((Tensor::zeros([1], &self.device), rates));
        }
        let rows: Vec<usize> = batch.items.iter().map(|item| self.row_of(*item)).collect();
        let labels = self.labels.select(&rows);
        let images = || state.encoder.batch(&batch.views, &self.device);
        let embeddings = match &self.features {
            Some(features) => state.encoder.embed_features(features.batch(&batch.items, &self.device)),
            None if learns => state.encoder.forward(images()),
            None => state.encoder.forward_frozen(images()),
        };
        let draws = Draws { seed: config.run.seed, step: state.step - 1 };
        state.loss.before_step(draws);
        let loss = state.loss.forward(&Batch::new(embeddings.clone(), &labels).with_draws(draws));
        let gradients = loss.backward();
        let (encoder, learned) =
            state.optimizers.step(state.encoder.clone(), state.loss.clone(), gradients, rates);
        (state.encoder, state.loss) = (encoder, learned);
        state.loss.after_step(embeddings.without_autodiff(), &labels);
        Ok((loss.without_autodiff(), rates))
    }

    /// Shows the loss the embeddings of the whole training split.
    fn show_training_set(&self, state: &mut State) -> Result<()> {
        let embedded = self.embed(&state.encoder, &self.dataset.splits.train)?;
        let rows: Vec<usize> = embedded.items.iter().map(|&item| self.row_of(item)).collect();
        let shape = [rows.len(), embedded.embeddings.dimension()];
        let values = TensorData::new(embedded.embeddings.values().to_vec(), shape);
        let device = self.device.clone().without_autodiff();
        state.loss.before_epoch(Tensor::from_data(values, &device), &self.labels.select(&rows));
        Ok(())
    }

    /// The place of an item in the training split, which is sorted.
    fn row_of(&self, item: usize) -> usize {
        self.dataset.splits.train.partition_point(|&other| other < item)
    }

    fn save(&self, state: &State) -> Result<()> {
        Checkpoint::take(state.step as usize, &state.encoder, &state.loss, &state.optimizers)?
            .save(&self.run.file("checkpoint.akin"))
    }

    fn evaluate(&self, encoder: &Encoder) -> Result<Report> {
        let embed = |items: &[usize]| self.embed(encoder, items);
        let mut report = evaluate_splits(self.dataset, &self.run.config.eval, embed)?.report;
        report.per_query.clear();
        Ok(report)
    }

    fn embed(&self, encoder: &Encoder, items: &[usize]) -> Result<Embedded> {
        embed_items(encoder, self.pictures, self.features.as_ref(), items, &self.device, self.progress)
    }

    fn log(&self) -> Result<File> {
        let path = self.run.file("log.jsonl");
        OpenOptions::new().create(true).append(true).open(&path).advise(
            || format!("the log {} cannot be written", path.display()),
            "check the permissions of the run directory",
        )
    }
}

/// The same labels with class ids that count from 0 without a gap at every level.
fn dense(labels: &Labels) -> Labels {
    let levels = labels.levels();
    let mut ids = labels.ids().to_vec();
    for level in 0..levels {
        let mut classes: Vec<u32> = ids[level..].iter().step_by(levels).copied().collect();
        classes.sort_unstable();
        classes.dedup();
        for id in ids[level..].iter_mut().step_by(levels) {
            *id = classes.partition_point(|class| class < id) as u32;
        }
    }
    Labels::new(levels, ids).expect("as many ids as there were")
}

fn not_f32(error: impl std::fmt::Debug) -> anyhow::Error {
    anyhow::anyhow!("the loss is not of type f32: {error:?}")
}
