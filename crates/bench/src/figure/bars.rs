//! Normalised run time: a group of bars a workload, a bar a system, whiskers from p10 to p90. The
//! form of the fence-free paper's Figure 10.

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use super::{COLOURS, baseline, distinct};
use crate::{Better, Document, Row};

/// The height of a bar, and its whiskers: multiples of the baseline's median.
struct Bar {
    at: f64,
    height: f64,
    low: f64,
    high: f64,
    colour: RGBColor,
}

const GROUP: f64 = 1.0;
/// The share of a group's width that its bars fill.
const FILLED: f64 = 0.84;

/// The figure, or `None` if nothing ran with so many workers beside the baseline.
pub(super) fn draw(document: &Document, suite: &str, workers: usize) -> Result<Option<String>> {
    let base = |row: &Row| baseline(document, row).filter(|base| base.median > 0.0);
    let here = |row: &&Row| row.suite == suite && row.workers == workers;
    let Some(first) = document.rows.iter().find(here) else { return Ok(None) };
    let name = base(first).map_or("the baseline", |base| base.system.as_str());
    let axis = match first.better {
        Better::Lower => format!("time, as a multiple of {name} (lower is better)"),
        Better::Higher => format!("rate, as a multiple of {name} (higher is better)"),
    };
    let values = |row: &Row| {
        let base = base(row)?.median;
        Some([row.p10 / base, row.median / base, row.p90 / base])
    };
    draw_values(document, suite, workers, suite, &axis, &values)
}

/// A figure of what `values` says of each row: the lower end of its whisker, its height, and the upper
/// end. `None` if that is nothing.
pub(super) fn draw_values(
    document: &Document,
    suite: &str,
    workers: usize,
    title: &str,
    axis: &str,
    values: &dyn Fn(&Row) -> Option<[f64; 3]>,
) -> Result<Option<String>> {
    let rows: Vec<(&Row, [f64; 3])> = document
        .rows
        .iter()
        .filter(|row| row.suite == suite && row.workers == workers)
        .filter_map(|row| Some((row, values(row)?)))
        .collect();
    let systems = distinct(rows.iter().map(|(row, _)| row.system.as_str()));
    let workloads = distinct(rows.iter().map(|(row, _)| row.workload.as_str()));
    if systems.is_empty() || systems == ["sequential"] {
        return Ok(None);
    }
    let width = FILLED * GROUP / systems.len() as f64;
    let bars: Vec<Bar> = rows
        .iter()
        .map(|(row, [low, height, high])| {
            let system = systems.iter().position(|name| *name == row.system).unwrap_or(0);
            let group = workloads.iter().position(|name| *name == row.workload).unwrap_or(0);
            Bar {
                at: group as f64 * GROUP + (1.0 - FILLED) / 2.0 + system as f64 * width,
                height: *height,
                low: *low,
                high: *high,
                colour: COLOURS[system % COLOURS.len()],
            }
        })
        .collect();
    let oversubscribed = rows.iter().any(|(row, _)| row.oversubscribed);
    let caption = caption(document, title, workers, oversubscribed);
    let svg = paint(&caption, axis, &workloads, &systems, &bars, width);
    svg.map(Some).map_err(|error| anyhow!("the figure of {suite} could not be drawn: {error}"))
}

fn caption(document: &Document, title: &str, workers: usize, oversubscribed: bool) -> String {
    let plural = if workers == 1 { "" } else { "s" };
    let warning = if oversubscribed {
        format!(" (more than the {} processors)", document.machine.cores)
    } else {
        String::new()
    };
    format!("{title}, {workers} worker{plural}{warning}")
}

fn paint(
    caption: &str,
    axis: &str,
    workloads: &[&str],
    systems: &[&str],
    bars: &[Bar],
    width: f64,
) -> Result<String, Box<dyn std::error::Error>> {
    let mut svg = String::new();
    let columns = workloads.len() as f64 * GROUP;
    let pixels = 220 + 24 * (workloads.len() * systems.len().max(3)) as u32;
    let top = bars.iter().map(|bar| bar.high.max(bar.height)).fold(1.0, f64::max) * 1.05;
    {
        let area = SVGBackend::with_string(&mut svg, (pixels.max(640), 480)).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(caption, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(36)
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..columns, 0.0..top)?;
        let name = |x: &f64| {
            let group = (x - GROUP / 2.0).round();
            let centred = (x - GROUP / 2.0 - group).abs() < 1e-6;
            let name = if centred { workloads.get(group as usize) } else { None };
            name.map_or_else(String::new, |name| (*name).to_owned())
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(2 * workloads.len() + 1)
            .x_label_formatter(&name)
            .y_desc(axis)
            .draw()?;
        for (at, system) in systems.iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            let mine = bars.iter().filter(|bar| bar.colour == colour);
            let boxes = mine.map(|bar| {
                Rectangle::new(
                    [(bar.at, 0.0), (bar.at + width * 0.92, bar.height)],
                    colour.filled(),
                )
            });
            chart.draw_series(boxes)?.label(*system).legend(move |(x, y)| {
                Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled())
            });
        }
        chart.draw_series(bars.iter().map(|bar| {
            let middle = bar.at + width * 0.46;
            ErrorBar::new_vertical(middle, bar.low, bar.height, bar.high, BLACK.stroke_width(1), 6)
        }))?;
        chart.draw_series(LineSeries::new([(0.0, 1.0), (columns, 1.0)], BLACK.mix(0.5)))?;
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .draw()?;
        area.present()?;
    }
    Ok(svg)
}
