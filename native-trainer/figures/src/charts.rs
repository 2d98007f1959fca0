//! Charts as SVG, for papers and pages: their size, fonts and colours, and lines on logarithmic axes.

use std::fmt::Display;

use anyhow::{Result, anyhow};
use plotters::coord::combinators::{BindKeyPoints, IntoLogRange};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Width and height.
const SIZE: (u32, u32) = (720, 440);
const FONT: &str = "system-ui, 'Helvetica Neue', Arial, sans-serif";
const TITLE: u32 = 17;
const TEXT: u32 = 13;
const INK: RGBColor = RGBColor(34, 34, 34);
const FAINT_INK: RGBColor = RGBColor(102, 102, 102);
const HAIRLINE: RGBColor = RGBColor(226, 226, 226);

/// Colours of Okabe and Ito, which colour-blind readers can tell apart. Each line has its own mark besides.
const COLOURS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(213, 94, 0), RGBColor(0, 158, 115), RGBColor(204, 121, 167)];

/// A line through points whose coordinates are above 0.
pub struct Line {
    /// What stands at its right end.
    pub name: String,
    /// By rising x.
    pub points: Vec<(f64, f64)>,
}

/// Lines on logarithmic axes, as SVG. `x` and `y` name the axes, and write their numbers.
///
/// # Errors
///
/// There is nothing to draw, or a coordinate is not above 0.
pub fn log_log(
    title: &str,
    (x_name, x_text): (&str, &dyn Fn(f64) -> String),
    (y_name, y_text): (&str, &dyn Fn(f64) -> String),
    lines: &[Line],
) -> Result<String> {
    let all = || lines.iter().flat_map(|line| &line.points);
    if all().next().is_none() || all().any(|&(x, y)| !(x > 0.0 && y > 0.0 && x.is_finite() && y.is_finite()))
    {
        return Err(anyhow!("a chart with logarithmic axes needs points, and numbers above 0"));
    }
    let range = |coordinate: fn(&(f64, f64)) -> f64| {
        let [low, high] = [f64::min, f64::max].map(|better| all().map(coordinate).reduce(better));
        // Some room, so that no mark touches a frame.
        (low.unwrap_or(1.0) / 1.25)..(high.unwrap_or(1.0) * 1.25)
    };
    let (x_range, y_range) = (range(|point| point.0), range(|point| point.1));
    let mut measured: Vec<f64> = all().map(|point| point.0).collect();
    measured.sort_by(f64::total_cmp);
    // A number closer to the last one would be printed over it.
    measured.dedup_by(|next, last| *next < *last * 1.35);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        let text = |size: u32, colour: &RGBColor| (FONT, size).into_font().color(colour);
        area.draw(&Text::new(title.to_owned(), (20, 18), text(TITLE, &INK))).map_err(failed)?;
        area.draw(&Text::new(y_name.to_owned(), (20, 48), text(TEXT, &FAINT_INK))).map_err(failed)?;
        let mut chart = ChartBuilder::on(&area)
            .margin_top(74)
            .margin_right(150)
            .margin_bottom(14)
            .margin_left(20)
            .x_label_area_size(42)
            .y_label_area_size(58)
            .build_cartesian_2d(x_range.log_scale().with_key_points(measured), y_range.log_scale())
            .map_err(failed)?;
        chart
            .configure_mesh()
            .x_desc(x_name)
            .axis_desc_style(text(TEXT, &FAINT_INK))
            .label_style(text(TEXT, &INK))
            .axis_style(FAINT_INK.stroke_width(1))
            .bold_line_style(HAIRLINE)
            .light_line_style(TRANSPARENT)
            .x_labels(14)
            .y_labels(8)
            .x_label_formatter(&|x| x_text(*x))
            .y_label_formatter(&|y| y_text(*y))
            .draw()
            .map_err(failed)?;
        let end = Pos::new(HPos::Left, VPos::Center);
        for (number, Line { name, points }) in lines.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let stroke = colour.stroke_width(2);
            chart.draw_series(LineSeries::new(points.iter().copied(), stroke)).map_err(failed)?;
            let mark = |&point: &(f64, f64)| {
                EmptyElement::at(point)
                    + match number % 4 {
                        0 => Circle::new((0, 0), 4, colour.filled()).into_dyn(),
                        1 => Rectangle::new([(-4, -4), (4, 4)], colour.filled()).into_dyn(),
                        2 => TriangleMarker::new((0, 0), 6, colour.filled()).into_dyn(),
                        _ => Cross::new((0, 0), 4, stroke).into_dyn(),
                    }
            };
            chart.draw_series(points.iter().map(mark)).map_err(failed)?;
            if let Some(&last) = points.last() {
                let label = Text::new(name.clone(), (12, 0), text(TEXT, &colour).pos(end));
                chart.draw_series([EmptyElement::at(last) + label]).map_err(failed)?;
            }
        }
        area.present().map_err(failed)?;
    }
    Ok(svg)
}

fn failed(error: impl Display) -> anyhow::Error {
    anyhow!("the chart cannot be drawn: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: &[(f64, f64)]) -> Result<String> {
        let line = |name: &str| Line { name: name.into(), points: points.to_vec() };
        let text = |number: f64| number.to_string();
        log_log("Time", ("items", &text), ("seconds", &text), &[line("evaluation"), line("product")])
    }

    #[test]
    fn a_chart_has_its_names_and_a_mark_for_each_point() {
        let svg = chart(&[(10.0, 0.1), (100.0, 10.0), (1000.0, 1000.0)]).unwrap();
        for text in ["Time", "items", "seconds", "evaluation", "product"] {
            assert!(svg.contains(text), "{text} is not in {svg}");
        }
        assert_eq!(svg.matches("<circle").count(), 3);
    }

    #[test]
    fn numbers_without_a_logarithm_and_no_numbers_are_refused() {
        for points in [&[][..], &[(0.0, 1.0)], &[(1.0, -1.0)], &[(1.0, f64::NAN)], &[(f64::INFINITY, 1.0)]] {
            assert!(chart(points).is_err(), "{points:?}");
        }
        assert!(chart(&[(5.0, 5.0)]).is_ok());
    }
}
