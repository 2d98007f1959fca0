//! Lines over axes.

use std::fmt::Display;
use std::ops::Range;

use anyhow::{Result, anyhow};
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::drawing::{Drawing, FAINT_INK, FINENESS, FONT, HAIRLINE, INK};
use super::{Colour, colour_of_group, without_middle};

/// Width and height.
const SIZE: [f64; 2] = [720.0, 400.0];
const TEXT: i32 = 13;
/// The most characters of a name. Longer ones lose their middle, since names of runs often differ only at their ends.
const LONGEST_NAME: usize = 52;
/// The space above and below the lines, for the names of the axes.
const ABOVE: i32 = 40;
const BELOW: i32 = 52;
/// The least distance between two names.
const LINE_HEIGHT: i32 = 16;

/// A line.
pub struct Line {
    /// What stands at its right end.
    pub name: String,
    /// By rising x.
    pub points: Vec<[f64; 2]>,
    /// The number of its colour.
    pub group: usize,
    /// Whether it is faint and has no name.
    pub faint: bool,
    /// What its points may be off by, up and down, in their order; none draws no bars.
    pub deviations: Vec<Option<f64>>,
}

impl Line {
    /// A line with a name.
    pub fn new(name: impl Into<String>, group: usize, points: Vec<[f64; 2]>) -> Self {
        Self { name: name.into(), points, group, faint: false, deviations: Vec::new() }
    }
}

/// An axis.
#[derive(Clone, Copy)]
pub struct Axis<'a> {
    /// What stands beside it.
    pub name: &'a str,
    /// Whether equal steps are equal ratios.
    pub logarithmic: bool,
    /// Whether its numbers are counts, so that there are none between two of them.
    whole: bool,
    /// The numbers that it names; if there are none, round ones.
    named: &'a [f64],
}

impl<'a> Axis<'a> {
    /// An axis on which equal steps are equal differences.
    pub fn linear(name: &'a str) -> Self {
        Self { name, logarithmic: false, whole: false, named: &[] }
    }

    /// An axis on which equal steps are equal ratios.
    pub fn logarithmic(name: &'a str) -> Self {
        Self { logarithmic: true, ..Self::linear(name) }
    }

    /// An axis of counts.
    pub fn counts(name: &'a str) -> Self {
        Self { whole: true, ..Self::linear(name) }
    }

    /// The same axis, which names these numbers.
    pub fn naming(self, numbers: &'a [f64]) -> Self {
        Self { named: numbers, ..self }
    }

    /// What stands beside it, with its kind if equal steps are not equal differences.
    fn title(self) -> String {
        if self.logarithmic { format!("{} (logarithmic scale)", self.name) } else { self.name.to_owned() }
    }

    fn place(self, number: f64) -> Option<f64> {
        let place = if self.logarithmic { (number > 0.0).then(|| number.log10()) } else { Some(number) };
        place.filter(|place| place.is_finite())
    }

    /// The range of these places, with some room.
    fn range(self, places: impl Iterator<Item = f64>) -> Option<[f64; 2]> {
        let [mut low, mut high] = places
            .fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], place| [low.min(place), high.max(place)]);
        if !(low.is_finite() && high.is_finite()) {
            return None;
        }
        if high - low < 1e-9 {
            let room = if self.logarithmic { 0.5 } else { low.abs().max(1.0) / 2.0 };
            (low, high) = (low - room, high + room);
        }
        let room = 0.03 * (high - low);
        Some([low - room, high + room])
    }

    /// Round numbers in a range of places.
    fn ticks(self, [low, high]: [f64; 2], about: usize) -> Vec<f64> {
        if !self.named.is_empty() {
            // Texts closer than this would stand on each other.
            let apart = (high - low) / 12.0;
            let mut ticks: Vec<f64> = self.named.iter().filter_map(|&number| self.place(number)).collect();
            ticks.sort_by(f64::total_cmp);
            ticks.dedup_by(|next, last| *next - *last < apart);
            return ticks;
        }
        if self.logarithmic {
            let powers = low.floor() as i32..=high.ceil() as i32;
            let digits: &[f64] = match high - low {
                width if width > 4.0 => &[1.0],
                width if width > 1.5 => &[1.0, 3.0],
                _ => &[1.0, 2.0, 5.0],
            };
            return powers
                .flat_map(|power| digits.iter().map(move |digit| (digit * 10_f64.powi(power)).log10()))
                .filter(|place| (low..=high).contains(place))
                .collect();
        }
        let rough = (high - low) / about as f64;
        let power = 10_f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 2.5, 5.0, 10.0].map(|digit| digit * power).into_iter().find(|&step| step >= rough);
        let step = step.unwrap_or(rough).max(if self.whole { 1.0 } else { 0.0 });
        let first = (low / step).ceil() as i64;
        let last = (high / step).floor() as i64;
        (first..=last).map(|number| number as f64 * step).collect()
    }

    fn text(self, place: f64) -> String {
        let number = if self.logarithmic { 10_f64.powf(place) } else { place };
        match number.abs() {
            0.0 => "0".into(),
            size if size >= 10_000.0 => {
                let thousands = number / 1000.0;
                format!("{}k", (thousands * 10.0).round() / 10.0)
            }
            size if size < 0.001 => {
                let power = number.abs().log10().floor();
                format!("{}e{power}", (number / 10_f64.powf(power) * 10.0).round() / 10.0)
            }
            _ => format!("{}", (number * 10_000.0).round() / 10_000.0),
        }
    }
}

/// An axis in plotters, with our own ticks.
struct Ticked {
    range: [f64; 2],
    ticks: Vec<f64>,
}

impl Ranged for Ticked {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (from, to): (i32, i32)) -> i32 {
        let [low, high] = self.range;
        from + ((place - low) / (high - low) * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // No lines between the ticks.
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.range[0]..self.range[1]
    }
}

/// Draws lines; none if there is no point to draw.
///
/// # Errors
///
/// A chart that the library cannot draw.
pub fn lines(x: Axis<'_>, y: Axis<'_>, lines: &[Line]) -> Result<Option<Drawing>> {
    let mut placed: Vec<(&Line, Vec<(f64, f64)>)> = lines
        .iter()
        .map(|line| {
            let points = line.points.iter().filter_map(|&[a, b]| Some((x.place(a)?, y.place(b)?))).collect();
            (line, points)
        })
        .collect();
    move_apart(&mut placed);
    let all = || placed.iter().flat_map(|(_, points)| points);
    let ends = || {
        lines.iter().flat_map(|line| {
            let ends = |(point, deviation): (&[f64; 2], &Option<f64>)| {
                let deviation = deviation.unwrap_or(0.0);
                [point[1] - deviation, point[1] + deviation]
            };
            line.points.iter().zip(&line.deviations).flat_map(ends)
        })
    };
    let (Some(x_range), Some(y_range)) = (
        x.range(all().map(|point| point.0)),
        y.range(all().map(|point| point.1).chain(ends().filter_map(|end| y.place(end)))),
    ) else {
        return Ok(None);
    };
    let fine = |units: i32| units * FINENESS;
    let named: Vec<String> = lines
        .iter()
        .filter(|line| !line.faint && !line.points.is_empty())
        .map(|line| without_middle(&line.name, LONGEST_NAME))
        .collect();
    let longest = named.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    // A character takes about 7 units.
    let beside = 7 * longest as i32 + 24;
    // High enough for a name under the other.
    let height = SIZE[1].max(f64::from(LINE_HEIGHT) * named.len() as f64 + f64::from(ABOVE + BELOW));
    let mut drawing = Drawing::new(SIZE[0].max(f64::from(beside) + 480.0), height);
    let width = drawing.width as i32;
    {
        let area = (&mut drawing).into_drawing_area();
        let text = |colour: Colour| (FONT, fine(TEXT)).into_font().color(&rgb(colour));
        area.draw(&Text::new(y.title(), (fine(16), fine(14)), text(FAINT_INK))).map_err(failed)?;
        let mut chart = ChartBuilder::on(&area)
            .margin_top(fine(ABOVE))
            .margin_right(fine(beside))
            .margin_bottom(fine(8))
            .margin_left(fine(12))
            .x_label_area_size(fine(44))
            .y_label_area_size(fine(52))
            .build_cartesian_2d(
                Ticked { range: x_range, ticks: x.ticks(x_range, 6) },
                Ticked { range: y_range, ticks: y.ticks(y_range, 5) },
            )
            .map_err(failed)?;
        chart
            .configure_mesh()
            .x_desc(x.title())
            .axis_desc_style(text(FAINT_INK))
            .label_style(text(INK))
            .axis_style(rgb(FAINT_INK).stroke_width(fine(1) as u32))
            .bold_line_style(rgb(HAIRLINE).stroke_width(fine(1) as u32))
            .light_line_style(TRANSPARENT)
            .set_all_tick_mark_size(fine(5))
            .x_labels(20)
            .y_labels(20)
            .x_label_formatter(&|place| x.text(*place))
            .y_label_formatter(&|place| y.text(*place))
            .draw()
            .map_err(failed)?;
        let mut names: Vec<(i32, &Line)> = Vec::new();
        for (line, points) in &placed {
            let colour = rgb(colour_of_group(line.group));
            let stroke = if line.faint {
                colour.mix(0.25).stroke_width(fine(1) as u32)
            } else {
                colour.mix(1.0).stroke_width(fine(2) as u32)
            };
            chart.draw_series(LineSeries::new(points.iter().copied(), stroke)).map_err(failed)?;
            for (&(place, value), deviation) in points.iter().zip(&line.deviations) {
                let Some(deviation) = deviation.filter(|deviation| *deviation > 0.0) else { continue };
                let ends = [value - deviation, value + deviation];
                let bar = ends.map(|end| (place, end));
                chart
                    .draw_series(LineSeries::new(bar, colour.stroke_width(fine(1) as u32)))
                    .map_err(failed)?;
                for end in ends {
                    let (column, row) = chart.backend_coord(&(place, end));
                    let cap = [-4, 4].map(|side| (column + fine(side), row));
                    area.draw(&PathElement::new(cap, colour.stroke_width(fine(1) as u32))).map_err(failed)?;
                }
            }
            // Few points are measurements, which marks show.
            if points.len() <= 30 && !line.faint {
                chart
                    .draw_series(points.iter().map(|&point| Circle::new(point, fine(3), colour.filled())))
                    .map_err(failed)?;
            }
            if let Some(&last) = points.last().filter(|_| !line.faint) {
                names.push((chart.backend_coord(&last).1, line));
            }
        }
        names.sort_by_key(|(place, _)| *place);
        let last = fine(height as i32 - BELOW);
        let places = spread(names.iter().map(|(place, _)| *place).collect(), fine(LINE_HEIGHT), last);
        for (place, (_, line)) in places.into_iter().zip(names) {
            let style = text(colour_of_group(line.group)).pos(Pos::new(HPos::Left, VPos::Center));
            let left = fine(width - beside + 10);
            let name = without_middle(&line.name, LONGEST_NAME);
            area.draw(&Text::new(name, (left, place), style)).map_err(failed)?;
        }
        area.present().map_err(failed)?;
    }
    Ok(Some(drawing))
}

/// Moves the points of lines with bars a little sideways, so that bars at the same place do not cover each other: all
/// together by a fifth of the least distance between two places.
fn move_apart(lines: &mut [(&Line, Vec<(f64, f64)>)]) {
    let has_bars = |line: &Line| line.deviations.iter().flatten().any(|&deviation| deviation > 0.0);
    let count = lines.iter().filter(|(line, _)| has_bars(line)).count();
    let mut places: Vec<f64> =
        lines.iter().flat_map(|(_, points)| points.iter().map(|point| point.0)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let least = places.windows(2).map(|pair| pair[1] - pair[0]).reduce(f64::min);
    let (Some(least), 2..) = (least, count) else { return };
    let with_bars = lines.iter_mut().filter(|(line, _)| has_bars(line));
    for (number, (_, points)) in with_bars.enumerate() {
        let shift = 0.2 * least * (number as f64 / (count - 1) as f64 - 0.5);
        points.iter_mut().for_each(|point| point.0 += shift);
    }
}

/// Rising places, moved so that each is `apart` from the one before and the last is no further than `last`.
fn spread(mut places: Vec<i32>, apart: i32, last: i32) -> Vec<i32> {
    let mut least = i32::MIN;
    for place in &mut places {
        *place = (*place).max(least);
        least = *place + apart;
    }
    let mut most = last;
    for place in places.iter_mut().rev() {
        *place = (*place).min(most);
        most = *place - apart;
    }
    places
}

fn rgb([r, g, b]: Colour) -> RGBColor {
    RGBColor(r, g, b)
}

fn failed(error: impl Display) -> anyhow::Error {
    anyhow!("the chart cannot be drawn: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Axis<'_> = Axis { name: "step", logarithmic: false, whole: false, named: &[] };

    #[test]
    fn ticks_are_round_numbers_in_the_range() {
        assert_eq!(PLAIN.ticks([0.0, 1.0], 5), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(PLAIN.ticks([-3.0, 17.0], 5), [0.0, 5.0, 10.0, 15.0]);
        let logarithmic = Axis { logarithmic: true, ..PLAIN };
        let texts: Vec<String> =
            logarithmic.ticks([0.0, 3.0], 5).into_iter().map(|place| logarithmic.text(place)).collect();
        assert_eq!(texts, ["1", "3", "10", "30", "100", "300", "1000"]);
        assert_eq!(
            (PLAIN.text(0.1 + 0.2), PLAIN.text(25_000.0), PLAIN.text(0.00012)),
            ("0.3".into(), "25k".into(), "1.2e-4".into())
        );
    }

    #[test]
    fn counts_have_no_ticks_between_them() {
        let counts = Axis { whole: true, ..PLAIN };
        assert_eq!(counts.ticks([0.9, 2.1], 6), [1.0, 2.0]);
        assert_eq!(counts.ticks([0.0, 60.0], 6), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
    }

    #[test]
    fn an_axis_names_the_numbers_that_it_is_given_unless_they_are_too_close() {
        let axis = Axis { logarithmic: true, ..PLAIN }.naming(&[16.0, 128.0, 64.0, 63.0, 32.0]);
        let texts: Vec<String> =
            axis.ticks([1.0, 2.2], 6).into_iter().map(|place| axis.text(place)).collect();
        assert_eq!(texts, ["16", "32", "63", "128"]);
    }

    #[test]
    fn bars_at_one_place_do_not_cover_each_other() {
        let line = |deviations: &[Option<f64>]| Line {
            deviations: deviations.to_vec(),
            ..Line::new("", 0, vec![[1.0, 2.0], [2.0, 2.0]])
        };
        let moved = |lines: &[Line]| -> Vec<f64> {
            let points = |line: &Line| line.points.iter().map(|&[x, y]| (x, y)).collect();
            let mut placed: Vec<_> = lines.iter().map(|line| (line, points(line))).collect();
            move_apart(&mut placed);
            placed.iter().map(|(_, points)| (1000.0 * points[0].0).round() / 1000.0).collect()
        };
        let [bars, none] = [line(&[Some(0.1), None]), line(&[])];
        let three = [line(&[Some(0.1)]), line(&[]), line(&[None, Some(0.1)])];
        assert_eq!(moved(&three), [0.9, 1.0, 1.1]);
        assert_eq!(moved(&[bars, none]), [1.0, 1.0], "one line has nothing to cover");
    }

    #[test]
    fn an_axis_of_ratios_says_so() {
        let drawing =
            lines(Axis::logarithmic("lambda"), PLAIN, &[Line::new("a", 0, vec![[1.0, 2.0], [10.0, 2.0]])]);
        assert!(drawing.unwrap().unwrap().svg("").unwrap().contains(">lambda (logarithmic scale)<"));
    }

    #[test]
    fn names_stay_in_the_figure_and_apart() {
        assert_eq!(spread(vec![10, 12, 90, 95], 16, 100), [10, 26, 84, 100]);
        assert_eq!(spread(vec![98, 99, 100], 16, 100), [68, 84, 100]);
        let points = vec![[1.0, 2.0], [2.0, 2.0]];
        let many: Vec<Line> =
            (0..40).map(|number| Line::new(format!("run {number}"), number, points.clone())).collect();
        let drawing = lines(PLAIN, PLAIN, &many).unwrap().unwrap();
        assert!(drawing.height > 40.0 * 16.0);
        assert!((0..40).all(|number| drawing.svg("").unwrap().contains(&format!(">run {number}<"))));
    }

    #[test]
    fn names_are_text_and_lines_without_points_are_no_fault() {
        let line = |points: &[[f64; 2]]| Line::new("a<b>", 0, points.to_vec());
        let drawing = lines(PLAIN, PLAIN, &[line(&[[1.0, 2.0], [2.0, 2.0]]), line(&[])]).unwrap().unwrap();
        let svg = drawing.svg("<t>").unwrap();
        assert!(svg.contains("a&lt;b&gt;") && svg.contains("&lt;t&gt;") && !svg.contains("<b>"), "{svg}");
        for nothing in [&[][..], &[[f64::NAN, 1.0]], &[[1.0, f64::INFINITY]]] {
            assert!(lines(PLAIN, PLAIN, &[line(nothing)]).unwrap().is_none());
        }
        let logarithmic = Axis { logarithmic: true, ..PLAIN };
        assert!(lines(logarithmic, PLAIN, &[line(&[[0.0, 1.0]])]).unwrap().is_none());
    }
}
