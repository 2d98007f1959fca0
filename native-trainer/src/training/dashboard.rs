//! The dashboard of a training: a panel on the terminal with its loss, scores, speed, learning rates and memory.
//!
//! It is drawn below everything else that is printed, and stays as it last was when the training ends. In a terminal
//! that is too small for it, it is three lines.

use std::collections::VecDeque;
use std::panic;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};

use akin_core::evaluate::{EvaluationConfig, Report};
use akin_core::metrics::Metric;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Chart, Dataset, GraphType, LineGauge, Widget};

use akin_base::interrupt::stop_requested;
use akin_base::quantities::{count, duration, rounded_bytes};
use akin_base::terminal::PanelLine;
use akin_base::{machine, progress, terminal};
use serde_json::Value;

use super::loss_curve::LossCurve;
use super::timetable::Timetable;
use crate::evaluation::report::{displayed, is_better, score};
use crate::runs::run_log::{rates, smoothed};

/// How often the dashboard is drawn.
const INTERVAL: Duration = Duration::from_millis(500);

/// The least columns and rows of a terminal for the whole dashboard.
const LEAST_SIZE: (u16, u16) = (72, 22);

/// The most columns that it takes.
const WIDEST: u16 = 112;

/// The speed is that of this many steps.
const RECENT: usize = 20;

/// The column of the names of metrics and levels.
const NAME: usize = 12;
/// The least columns of a score: those of `100.00` and a space.
const SCORE: usize = 7;

const PLAIN: Style = Style::new();
const BOLD: Style = PLAIN.add_modifier(Modifier::BOLD);
const FAINT: Style = PLAIN.fg(Color::DarkGray);
const ACCENT: Style = PLAIN.fg(Color::Cyan);

/// What does not change while a training runs.
pub(super) struct Constants {
    /// The name of the run.
    pub(super) name: String,
    /// Its directory until it is complete, as a command names it.
    pub(super) directory: String,
    /// Its directory after that.
    pub(super) target: String,
    /// When it evaluates and saves.
    pub(super) timetable: Timetable,
    /// By which metric the best evaluation is chosen.
    pub(super) best_by: Metric,
    /// The images of a batch.
    pub(super) batch: usize,
    /// The steps that earlier sessions have done.
    pub(super) first_step: u64,
}

/// How far a training is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Between its first and last step.
    Training,
    /// Stopped by Ctrl-C.
    Stopped,
    /// Complete.
    Done,
    /// Ended by an error.
    Failed,
}

/// What the dashboard shows.
pub(super) struct State {
    constants: Constants,
    began: Instant,
    pub(super) stage: Stage,
    /// Whether Ctrl-C has been pressed.
    stops: bool,
    /// Steps done.
    pub(super) step: u64,
    pub(super) losses: LossCurve,
    pub(super) rates: Vec<(String, f64)>,
    evaluations: Vec<(u64, Report)>,
    /// The last checkpoint of this session: its step and time.
    pub(super) saved: Option<(u64, Instant)>,
    /// When the last steps ended.
    recent: VecDeque<(u64, Instant)>,
    /// The seconds of a step; none before the first.
    pace: Option<f64>,
    /// What the allocators of all devices hold, in bytes; none on the CPU.
    pub(super) device_memory: Option<u64>,
}

impl State {
    fn new(constants: Constants) -> Self {
        let (step, began) = (constants.first_step, Instant::now());
        Self {
            constants,
            began,
            stage: Stage::Training,
            stops: false,
            step,
            losses: LossCurve::default(),
            rates: Vec::new(),
            evaluations: Vec::new(),
            saved: None,
            recent: VecDeque::from([(step, began)]),
            pace: None,
            device_memory: None,
        }
    }

    /// Counts a step that has ended.
    pub(super) fn end_step(&mut self, step: u64) {
        self.step = step;
        self.recent.push_back((step, Instant::now()));
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        if let (Some(&(first, began)), Some(&(last, ended))) = (self.recent.front(), self.recent.back())
            && last > first
        {
            self.pace = Some((ended - began).as_secs_f64() / (last - first) as f64);
        }
    }

    /// Adds an entry of the log, which has been written.
    pub(super) fn add_entry(&mut self, entry: &Value) {
        let Some(step) = entry["step"].as_u64() else { return };
        match entry["event"].as_str() {
            Some("step") => {
                entry["loss"].as_f64().into_iter().for_each(|loss| self.losses.add(step, loss));
                self.rates = rates(entry);
            }
            Some("stopped") => self.stage = Stage::Stopped,
            // The run is complete only when its other files are written too.
            _ => {}
        }
        if let Ok(report) = serde_json::from_value(entry["report"].clone()) {
            self.add_evaluation(step, report);
        }
    }

    /// Adds an evaluation.
    pub(super) fn add_evaluation(&mut self, step: u64, report: Report) {
        self.evaluations.retain(|(other, _)| *other != step);
        self.evaluations.push((step, report));
        // The time that it took is not that of a step.
        self.recent = VecDeque::from([(self.step, Instant::now())]);
    }

    /// The time left, if the rest takes as long as this session did for as many steps.
    fn left(&self) -> Option<Duration> {
        let done = self.step - self.constants.first_step;
        let left = self.constants.timetable.steps.saturating_sub(self.step);
        (done > 0).then(|| self.began.elapsed().mul_f64(left as f64 / done as f64))
    }

    fn share(&self) -> f64 {
        (self.step as f64 / self.constants.timetable.steps.max(1) as f64).min(1.0)
    }

    /// Where the training is: its step and epoch.
    fn place(&self) -> String {
        let Timetable { steps, steps_per_epoch, .. } = self.constants.timetable;
        let epoch = |step: u64| count(step.div_ceil(steps_per_epoch.max(1)).max(1) as usize);
        let [step_text, steps_text] = [self.step, steps].map(|number| count(number as usize));
        format!("step {step_text} of {steps_text} · epoch {} of {}", epoch(self.step), epoch(steps))
    }

    /// How long it has trained and has to train.
    fn times(&self) -> String {
        let trained = duration(self.began.elapsed());
        match self.left() {
            Some(left) if self.stage == Stage::Training => format!("{trained} · {} left", duration(left)),
            _ => trained,
        }
    }

    /// The speed.
    fn speed(&self) -> String {
        match self.pace {
            Some(pace) => {
                let images = self.constants.batch as f64 / pace;
                let images =
                    if images < 10.0 { format!("{images:.1}") } else { count(images.round() as usize) };
                format!("{images} images/s · {} a step", step_time(pace))
            }
            None => "–".into(),
        }
    }

    fn memory(&self) -> String {
        let process = machine::resident_memory().map(|bytes| match machine::memory() {
            Some((all, _)) => format!("{} of {}", rounded_bytes(bytes), rounded_bytes(all)),
            None => rounded_bytes(bytes),
        });
        let device = self.device_memory.map(|bytes| format!("{} on devices", rounded_bytes(bytes)));
        let parts: Vec<String> = process.into_iter().chain(device).collect();
        if parts.is_empty() { "–".into() } else { parts.join(" · ") }
    }

    fn rates_text(&self) -> String {
        let rates: Vec<String> =
            self.rates.iter().map(|(name, rate)| format!("{} {rate:.1e}", name.replace('_', " "))).collect();
        if rates.is_empty() { "–".into() } else { rates.join(" · ") }
    }

    /// What happens now, and what the user can do.
    fn now(&self) -> String {
        let Constants { directory, target, .. } = &self.constants;
        let step = count(self.step as usize);
        match self.stage {
            Stage::Done => format!("done; the run is in {target}"),
            Stage::Stopped => format!("stopped after step {step}; `akin resume {directory}` continues"),
            Stage::Failed => format!("ended after step {step} by an error"),
            Stage::Training if self.stops => "stops after this step, when it is saved".into(),
            Stage::Training => match progress::beside_dashboard() {
                Some((verb, done, all)) => {
                    format!("{verb} {} of {}", count(done as usize), count(all as usize))
                }
                None => {
                    let saved = self.saved.map(|(step, at)| {
                        format!("saved after step {}, {} ago; ", count(step as usize), duration(at.elapsed()))
                    });
                    format!("{}Ctrl-C saves and stops", saved.unwrap_or_default())
                }
            },
        }
    }

    fn loss(&self) -> String {
        self.losses.last().map_or("–".into(), |(_, loss)| format!("{loss:.4}"))
    }

    /// The scores of the last evaluation and how they changed: those over all levels, those of each level.
    fn scores(&self, width: u16) -> Vec<Line<'static>> {
        let Some((step, report)) = self.evaluations.last() else {
            let after = match self.constants.timetable.next_evaluation(self.step) {
                Some(step) => format!("step {}", count(step as usize)),
                None => "the last step".into(),
            };
            return vec![Line::styled("scores", BOLD), faint(format!("first after {after}"))];
        };
        let before = self.evaluations.iter().rev().nth(1).map(|(_, report)| report);
        let at = |report: &Report, place: usize, metric: Metric| {
            report.at(place).get(metric).map(|value| displayed(metric, value))
        };
        let mut lines = vec![Line::from(vec![
            Span::styled("scores", BOLD),
            Span::styled(format!(" after step {}", count(*step as usize)), FAINT),
        ])];
        let metrics = |per_level: bool| -> Vec<Metric> {
            let metrics = report.config.metrics.iter().copied();
            metrics.filter(|metric| metric.entry().per_level == per_level).collect()
        };
        let best_by = self.constants.best_by;
        for metric in first_of(metrics(false), 4, best_by) {
            let Some(value) = at(report, 0, metric) else { continue };
            let mut spans = vec![Span::raw(format!("{:<NAME$}{value:>8.2}", metric.label()))];
            if let Some(old) = before.and_then(|before| at(before, 0, metric)) {
                let better = is_better(metric, value, old);
                let mark = if value == old {
                    ' '
                } else if better {
                    '▲'
                } else {
                    '▼'
                };
                let colour = if better { Color::Green } else { Color::Yellow };
                spans.push(Span::styled(format!("  {mark} {:.2}", (value - old).abs()), PLAIN.fg(colour)));
            }
            lines.push(Line::from(spans));
        }
        let fits = (usize::from(width).saturating_sub(NAME) / SCORE).max(1);
        let metrics = first_of(metrics(true), fits, best_by);
        if !metrics.is_empty() {
            lines.push(Line::default());
            let labels: String = metrics
                .iter()
                .map(|metric| format!("{:>SCORE$}", short(&metric.label(), SCORE - 1)))
                .collect();
            lines.push(faint(format!("{:<NAME$}{labels}", "level")));
            for (place, level) in (1..).zip(&report.levels) {
                let values: String = metrics
                    .iter()
                    .map(|&metric| {
                        at(report, place, metric).map_or("–".into(), |value| format!("{value:.2}"))
                    })
                    .map(|value| format!("{value:>SCORE$}"))
                    .collect();
                lines.push(Line::raw(format!(
                    "{:<NAME$}{values}",
                    short(&terminal::escape(&level.name), NAME - 1)
                )));
            }
        }
        lines.extend(self.best());
        lines
    }

    /// The best evaluation, if there were others.
    fn best(&self) -> Option<Line<'static>> {
        let metric = self.constants.best_by;
        let scores =
            self.evaluations.iter().filter_map(|(step, report)| Some((*step, score(report, metric, None)?)));
        let (step, best) =
            scores.reduce(|best, next| if is_better(metric, next.1, best.1) { next } else { best })?;
        let value = displayed(metric, best);
        (self.evaluations.len() > 1)
            .then(|| faint(format!("best {} {value:.2} after step {}", metric.label(), count(step as usize))))
    }
}

/// The first `room` of some metrics, in their order: the one that chooses the best evaluation, those that the user chose
/// beside the defaults, and R@k, which every paper has.
fn first_of(metrics: Vec<Metric>, room: usize, best_by: Metric) -> Vec<Metric> {
    let defaults = EvaluationConfig::default().metrics;
    let rank = |metric: &Metric| match metric {
        metric if *metric == best_by => 0,
        metric if !defaults.contains(metric) => 1,
        metric if metric.entry().name == "recall" => 2,
        _ => 3,
    };
    let mut kept = metrics.clone();
    kept.sort_by_key(rank);
    kept.truncate(room);
    metrics.into_iter().filter(|metric| kept.contains(metric)).collect()
}

/// See the [module](self). Dropping it draws it a last time and leaves it on the terminal.
pub(super) struct Dashboard {
    state: Arc<Mutex<State>>,
    /// Dropping it ends the thread that draws.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Dashboard {
    /// Draws a dashboard from now on.
    pub(super) fn begin(constants: Constants) -> Self {
        leave_at_panic();
        let state = Arc::new(Mutex::new(State::new(constants)));
        let (end, ended) = channel();
        draw(&state);
        let drawn = Arc::clone(&state);
        let draw_again = move || {
            while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                draw(&drawn);
            }
        };
        // Where the system starts no more threads, it is drawn at its beginning and at its end.
        let thread = Builder::new().spawn(draw_again).ok();
        Self { state, end: Some(end), thread }
    }

    /// What it shows, to be changed.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        self.end.take();
        let drawn = self.thread.take().map(JoinHandle::join);
        let mut state = lock(&self.state);
        if state.stage == Stage::Training {
            state.stage = Stage::Failed;
        }
        drop(state);
        if drawn.is_none_or(|drawn| drawn.is_ok()) && !thread::panicking() {
            draw(&self.state);
        }
        terminal::leave_panel();
    }
}

/// Keeps the message of a panic: without this, the dashboard would be drawn over it.
fn leave_at_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let say = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            terminal::leave_panel();
            say(panic);
        }));
    });
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn draw(state: &Mutex<State>) {
    let size = terminal::stderr_size().unwrap_or((80, 24));
    let mut state = lock(state);
    state.stops = stop_requested();
    let lines = panel(&picture(&state, size), terminal::stderr_has_colours());
    drop(state);
    terminal::show_panel(lines);
}

/// The dashboard for a terminal of this many columns and rows.
fn picture(state: &State, (columns, rows): (u16, u16)) -> Buffer {
    // Text in the last column would move the cursor of some terminals.
    let width = columns.saturating_sub(1).clamp(1, WIDEST);
    if columns < LEAST_SIZE.0 || rows < LEAST_SIZE.1 {
        return small_picture(state, width);
    }
    let [chart_width, gap] = [width * 6 / 11, 3];
    let scores = state.scores(width - chart_width - gap);
    let below = 5;
    let height = (scores.len() as u16).max(12).min(rows - 6 - below);
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, 5 + height + below));
    let [_, head, gauge, _, middle, _, foot, _] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(height),
        Constraint::Length(1),
        Constraint::Length(below - 1),
        Constraint::Length(1),
    ])
    .areas(buffer.area);
    let place = state.place();
    let name = short(
        &terminal::escape(&state.constants.name),
        usize::from(width).saturating_sub(place.chars().count() + 2),
    );
    Line::from(Span::styled(name, BOLD)).render(head, &mut buffer);
    Line::raw(place).right_aligned().render(head, &mut buffer);

    let times = state.times();
    let [bar, beside] =
        Layout::horizontal([Constraint::Min(10), Constraint::Length(times.chars().count() as u16 + 2)])
            .areas(gauge);
    LineGauge::default()
        .ratio(state.share())
        .label(format!("{:3.0} %", 100.0 * state.share()))
        .filled_symbol("━")
        .unfilled_symbol("─")
        .filled_style(PLAIN.fg(Color::Green))
        .unfilled_style(FAINT)
        .render(bar, &mut buffer);
    Line::raw(times).right_aligned().render(beside, &mut buffer);

    let [left, _, right] =
        Layout::horizontal([Constraint::Length(chart_width), Constraint::Length(gap), Constraint::Min(0)])
            .areas(middle);
    draw_losses(state, left, &mut buffer);
    for (line, row) in scores.iter().zip(right.rows()) {
        line.render(row, &mut buffer);
    }
    let facts = [
        ("speed", state.speed()),
        ("rates", state.rates_text()),
        ("memory", state.memory()),
        ("now", state.now()),
    ];
    for ((name, fact), row) in facts.into_iter().zip(foot.rows()) {
        let line = Line::from(vec![
            Span::styled(format!("{name:<8}"), FAINT),
            Span::raw(short(&fact, usize::from(width) - 8)),
        ]);
        line.render(row, &mut buffer);
    }
    buffer
}

/// The dashboard as three lines.
fn small_picture(state: &State, width: u16) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, 3));
    let steps =
        format!("step {} of {}", count(state.step as usize), count(state.constants.timetable.steps as usize));
    let lines = [
        format!("{steps} · {}", state.times()),
        format!("loss {} · {}", state.loss(), state.speed()),
        state.now(),
    ];
    for ((line, row), style) in lines.into_iter().zip(buffer.area.rows()).zip([BOLD, PLAIN, FAINT]) {
        Line::styled(short(&line, usize::from(width)), style).render(row, &mut buffer);
    }
    buffer
}

/// The loss of each step, faint, and its mean over some steps.
fn draw_losses(state: &State, area: Rect, buffer: &mut Buffer) {
    let [head, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    Line::from(vec![Span::styled("loss", BOLD), Span::raw(format!(" {}", state.loss()))])
        .render(head, buffer);
    let points = state.losses.points(2 * usize::from(area.width));
    let (Some(first), Some((last, _))) = (state.losses.first_step(), state.losses.last()) else { return };
    let pairs = |points: &[[f64; 2]]| points.iter().map(|&[step, loss]| (step, loss)).collect::<Vec<_>>();
    let [all, mean] = [pairs(&points), pairs(&smoothed(&points))];
    let [low, high] = loss_range(&all);
    let [from, to] = [first as f64, last.max(first + 1) as f64];
    // Three labels that differ.
    let decimals = (1.0 - (high - low).log10().floor()).clamp(0.0, 6.0) as usize;
    let number = |loss: f64| format!("{loss:.decimals$}");
    let steps = |step: f64| count(step.round() as usize);
    let line = |points, style| {
        Dataset::default().data(points).marker(Marker::Braille).graph_type(GraphType::Line).style(style)
    };
    Chart::new(vec![line(&all, FAINT), line(&mean, ACCENT)])
        .x_axis(Axis::default().bounds([from, to]).labels([steps(from), steps(to)]).style(FAINT))
        .y_axis(
            Axis::default()
                .bounds([low, high])
                .labels([number(low), number((low + high) / 2.0), number(high)])
                .style(FAINT),
        )
        .legend_position(None)
        .render(body, buffer);
}

/// The range of losses, without a few that stand out, such as those of the first steps.
fn loss_range(points: &[(f64, f64)]) -> [f64; 2] {
    let mut losses: Vec<f64> = points.iter().map(|point| point.1).collect();
    losses.sort_by(f64::total_cmp);
    let at = |share: f64| losses[((losses.len() - 1) as f64 * share).round() as usize];
    let [low, high] = [losses[0], at(0.98)];
    let room = (0.04 * (high - low)).max(1e-3 * high.abs()).max(1e-6);
    [low - room, high + room]
}

/// The rows of a buffer as lines of the terminal.
fn panel(buffer: &Buffer, colours: bool) -> Vec<PanelLine> {
    let line = |row: u16| {
        let cells = (0..buffer.area.width).map(|column| &buffer[(column, row)]);
        let width = cells.clone().rposition(|cell| cell.symbol() != " ").map_or(0, |column| column + 1);
        let mut text = String::new();
        let mut now = (Color::Reset, Modifier::empty());
        let mut covered = 0;
        for cell in cells.take(width) {
            // A wide character covers the cells after it.
            if covered > 0 {
                covered -= 1;
                continue;
            }
            let style = (if colours { cell.fg } else { Color::Reset }, cell.modifier);
            if style != now {
                text += &codes(style);
                now = style;
            }
            text += cell.symbol();
            covered = Span::raw(cell.symbol()).width().saturating_sub(1);
        }
        if now != (Color::Reset, Modifier::empty()) {
            text += "\x1b[0m";
        }
        PanelLine { text, width: width as u16 }
    };
    (0..buffer.area.height).map(line).collect()
}

/// The codes of a style of the dashboard, for a terminal.
fn codes((colour, modifier): (Color, Modifier)) -> String {
    let bold = if modifier.contains(Modifier::BOLD) { ";1" } else { "" };
    let colour = match colour {
        Color::Green => ";32",
        Color::Yellow => ";33",
        Color::Cyan => ";36",
        Color::DarkGray => ";90",
        _ => "",
    };
    format!("\x1b[0{bold}{colour}m")
}

fn faint(text: impl Into<String>) -> Line<'static> {
    Line::styled(text.into(), FAINT)
}

/// The text, or its beginning and an ellipsis if it takes more columns.
fn short(text: &str, columns: usize) -> String {
    if Span::raw(text).width() <= columns {
        return text.to_owned();
    }
    let mut start = String::new();
    for c in text.chars() {
        if Span::raw(format!("{start}{c}…")).width() > columns {
            break;
        }
        start.push(c);
    }
    if columns > 0 { start + "…" } else { start }
}

fn step_time(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.0} ms", 1000.0 * seconds) } else { format!("{seconds:.1} s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        let timetable = Timetable::without_evaluations(4_000, 100);
        let mut state = State::new(Constants {
            name: "groceries".into(),
            directory: "runs/groceries".into(),
            target: "runs/groceries".into(),
            timetable,
            best_by: Metric::named("h_ap"),
            batch: 64,
            first_step: 0,
        });
        (1..=1_240).for_each(|step| state.losses.add(step, 1.0 + 1.0 / step as f64));
        state.step = 1_240;
        state
    }

    fn text(buffer: &Buffer) -> String {
        let row =
            |row| (0..buffer.area.width).map(|column| buffer[(column, row)].symbol()).collect::<String>();
        (0..buffer.area.height).map(|number| row(number) + "\n").collect()
    }

    fn holds(text: &str, parts: &[&str]) {
        parts.iter().for_each(|part| assert!(text.contains(part), "no {part:?} in\n{text}"));
    }

    #[test]
    fn a_terminal_shows_the_loss_the_place_and_the_speed() {
        let mut state = state();
        state.pace = Some(0.5);
        state.rates = vec![("lr_head".into(), 1e-3)];
        let picture = picture(&state, (100, 30));
        holds(
            &text(&picture),
            &[
                "groceries",
                "step 1,240 of 4,000 · epoch 13 of 40",
                "31 %",
                "loss 1.0008",
                "first after the last step",
                "128 images/s · 500 ms a step",
                "lr head 1.0e-3",
                "Ctrl-C saves and stops",
            ],
        );
        assert!(text(&picture).contains('⠤') || text(&picture).contains('⣀'), "the curve is drawn");
    }

    #[test]
    fn a_training_is_done_only_when_its_run_is_complete() {
        let mut state = state();
        state.add_entry(&serde_json::json!({ "event": "done", "step": 4_000 }));
        assert!(!text(&picture(&state, (100, 30))).contains("done"), "its files are not written yet");
        state.stage = Stage::Done;
        holds(&text(&picture(&state, (100, 30))), &["done; the run is in runs/groceries"]);
    }

    #[test]
    fn a_small_terminal_has_three_short_lines() {
        for size in [(40, 10), (71, 30), (100, 21), (8, 2), (1, 1), (0, 0)] {
            let lines = panel(&picture(&state(), size), true);
            assert_eq!(lines.len(), 3);
            assert!(lines.iter().all(|line| line.width < size.0.max(2)), "{size:?}");
        }
        holds(&text(&picture(&state(), (40, 10))), &["step 1,240 of 4,000", "loss 1.0008", "Ctrl-C"]);
    }

    #[test]
    fn every_size_is_drawn_within_it() {
        let mut state = state();
        state.constants.name = "猫 with a very long name ".repeat(9);
        for columns in (0..200).step_by(7) {
            for rows in (0..60).step_by(3) {
                let lines = panel(&picture(&state, (columns, rows)), true);
                assert!(lines.iter().all(|line| line.width < columns.max(2)), "{columns} × {rows}");
                assert!(lines.len() <= usize::from(rows.max(3)), "{columns} × {rows}");
            }
        }
    }

    #[test]
    fn scores_say_how_they_changed_and_which_was_the_best() {
        let report = |ap: f64| -> Report {
            let means = |name: &str| format!("\"queries\":5,\"{name}\":{ap}");
            serde_json::from_str(&format!(
                "{{\"config\":{},\"queries\":5,\"ranked\":9,\"overall\":{{{}}},\"levels\":[{{\"name\":\"kind\",{}}}],\"per_query\":[]}}",
                serde_json::to_string(&EvaluationConfig::default()).unwrap(), means("h_ap"), means("ap")
            )).unwrap()
        };
        let mut state = state();
        state.add_evaluation(100, report(0.5));
        state.add_evaluation(200, report(0.4));
        holds(
            &text(&picture(&state, (100, 30))),
            &["scores after step 200", "40.00  ▼ 10.00", "kind", "best H-AP 50.00 after step 100"],
        );
    }

    #[test]
    fn where_there_is_little_room_the_metrics_of_the_user_stay() {
        let metrics = |names: &[&str]| names.iter().map(|name| Metric::named(name)).collect::<Vec<_>>();
        let kept = |names: &[&str], room| first_of(metrics(names), room, Metric::named("ap"));
        assert_eq!(kept(&["ap", "map_at_r", "recall@1"], 2), metrics(&["ap", "recall@1"]));
        assert_eq!(kept(&["map_at_r", "recall@1", "recall@10"], 2), metrics(&["recall@1", "recall@10"]));
        assert_eq!(kept(&["map_at_r", "recall@1", "mrr"], 1), metrics(&["mrr"]));
        assert_eq!(kept(&["ap", "recall@1"], 9), metrics(&["ap", "recall@1"]));
    }

    #[test]
    fn eighty_columns_hold_the_metrics_of_a_config_that_names_none() {
        let means = "\"queries\":5,\"h_ap\":0.5,\"ap\":1.0,\"map_at_r\":0.25,\"recall@1\":0.75";
        let report = serde_json::from_str(&format!(
            "{{\"config\":{},\"queries\":5,\"ranked\":9,\"overall\":{{{means}}},\"levels\":[{{\"name\":\"kind\",{means}}}],\"per_query\":[]}}",
            serde_json::to_string(&EvaluationConfig::default()).unwrap()
        ));
        let mut state = state();
        state.add_evaluation(100, report.unwrap());
        holds(&text(&picture(&state, (80, 24))), &["AP  mAP@R    R@1", "100.00  25.00  75.00"]);
    }

    #[test]
    fn colours_are_left_out_where_they_are_not_wanted() {
        let coloured = |colours| {
            panel(&picture(&state(), (100, 30)), colours)
                .iter()
                .map(|line| line.text.clone())
                .collect::<String>()
        };
        assert!(coloured(true).contains("\x1b[0;32m"));
        let plain = coloured(false);
        assert!(plain.contains("\x1b[0;1m") && !plain.contains("\x1b[0;3"), "{plain:?}");
    }
}
