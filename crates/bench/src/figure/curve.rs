//! Speed-up over workers: a curve a system, the geometric mean over the workloads of the baseline's
//! median over its own. The form of Lace's Figures 5 to 7.

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use super::common::{COLOURS, distinct};
use crate::{Better, Document, Row, geometric_mean};

/// The figure, or `None` if no system ran with two numbers of workers.
pub(super) fn draw(document: &Document, suite: &str, workers: &[usize]) -> Result<Option<String>> {
    let rows: Vec<(&Row, &Row)> = document
        .rows
        .iter()
        .filter(|row| row.suite == suite)
        .filter_map(|row| Some((row, document.baseline(row)?)))
        .collect();
    let systems = distinct(rows.iter().map(|(row, _)| row.system.as_str()));
    let mut curves: Vec<(&str, Vec<(f64, f64)>)> = Vec::new();
    for system in systems {
        let points: Vec<(f64, f64)> = workers
            .iter()
            .filter_map(|count| {
                let there = rows
                    .iter()
                    .filter(|(row, _)| row.system == system && row.workers == *count)
                    .map(|(row, base)| speed_up(row, base));
                Some((*count as f64, geometric_mean(there)?))
            })
            .collect();
        if points.len() > 1 {
            curves.push((system, points));
        }
    }
    if curves.is_empty() {
        return Ok(None);
    }
    let svg = paint(document, suite, workers, &curves);
    svg.map(Some).map_err(|error| anyhow!("the curve of {suite} could not be drawn: {error}"))
}

fn speed_up(row: &Row, base: &Row) -> f64 {
    match row.better {
        Better::Lower => base.median / row.median,
        Better::Higher => row.median / base.median,
    }
}

fn paint(
    document: &Document,
    suite: &str,
    workers: &[usize],
    curves: &[(&str, Vec<(f64, f64)>)],
) -> Result<String, Box<dyn std::error::Error>> {
    let mut svg = String::new();
    let most = workers.last().copied().unwrap_or(1) as f64;
    let highest =
        curves.iter().flat_map(|(_, points)| points).map(|(_, y)| *y).fold(most, f64::max);
    let cores = document.machine.cores as f64;
    {
        let area = SVGBackend::with_string(&mut svg, (640, 480)).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(format!("{suite}: speed-up over workers"), ("sans-serif", 19))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..most * 1.05, 0.0..highest * 1.05)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.15))
            .axis_style(BLACK.mix(0.6))
            .label_style(("sans-serif", 16))
            // There is no half a worker.
            .x_label_formatter(&|x| {
                if (x - x.round()).abs() < 1e-6 { format!("{x:.0}") } else { String::new() }
            })
            .x_desc("workers")
            .y_desc("times the baseline, geometric mean over the workloads")
            .draw()?;
        chart.draw_series(LineSeries::new([(0.0, 0.0), (most, most)], BLACK.mix(0.3)))?;
        if most > cores {
            // To the right of this line there are more workers than processors.
            chart.draw_series(LineSeries::new([(cores, 0.0), (cores, highest)], RED.mix(0.5)))?;
        }
        for (at, (system, points)) in curves.iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            chart
                .draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?
                .label(*system)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 14, y)], colour));
            chart
                .draw_series(points.iter().map(|point| Circle::new(*point, 4, colour.filled())))?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .label_font(("sans-serif", 16))
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .draw()?;
        area.present()?;
    }
    Ok(svg)
}
