//! Curves over numbers of workers, or over whatever else is a number: a panel a workload, or one
//! for all of them. The form of Lace's Figures 5 to 7 and of SALSA's.

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use super::common::{Head, Svg, TEXT, colour, distinct};
use crate::{Document, Ratio, Row, geometric_mean};

/// A system's points in a panel: where, and the value with the ends of its whisker.
pub(super) struct Curve {
    pub(super) system: String,
    pub(super) points: Vec<(f64, [f64; 3])>,
}

/// Curves that share a panel, and its name.
pub(super) struct Panel {
    pub(super) name: String,
    pub(super) curves: Vec<Curve>,
}

/// What is written beside curves.
pub(super) struct Words<'a> {
    pub(super) title: &'a str,
    /// What the axes are, and the whiskers.
    pub(super) notes: &'a [&'a str],
    /// What stands below the axis.
    pub(super) x: &'a str,
    /// A line where the value is as great as the place: a speed-up that is the number of workers.
    pub(super) diagonal: bool,
    /// To the right of it there are more workers than processors.
    pub(super) cores: Option<f64>,
    /// Points with no line between them.
    pub(super) dots: bool,
}

/// Speed-up over workers: a curve a system, the geometric mean over the workloads of the sequential
/// program's median over its own. The workloads are those that each of the systems ran with each
/// number of workers. A system that ran less than half of them takes none away from the others, and
/// has no curve.
///
/// `None` if no system ran with two numbers of workers, or nothing beside the sequential program.
pub(super) fn draw(document: &Document, suite: &str, workers: &[usize]) -> Result<Option<Svg>> {
    let rows: Vec<(&Row, f64)> = document
        .rows
        .iter()
        .filter(|row| row.suite == suite && row.system != "sequential")
        .filter_map(|row| Some((row, row.gain(document.sequential(row)?)?.value)))
        .collect();
    let gain = |system: &str, workload: &str, count: usize| {
        let is = |row: &&(&Row, f64)| {
            row.0.system == system && row.0.workload == workload && row.0.workers == count
        };
        rows.iter().find(is).map(|(_, gain)| *gain)
    };
    let mut workloads = distinct(rows.iter().map(|(row, _)| row.workload.as_str()));
    let all = |system: &str, workload: &str| {
        workers.iter().all(|count| gain(system, workload, *count).is_some())
    };
    let mut systems = distinct(rows.iter().map(|(row, _)| row.system.as_str()));
    systems.retain(|system| {
        let ran = workloads.iter().filter(|workload| all(system, workload)).count();
        2 * ran > workloads.len()
    });
    workloads.retain(|workload| systems.iter().all(|system| all(system, workload)));
    if workers.len() < 2 || systems.is_empty() || workloads.is_empty() {
        return Ok(None);
    }
    let curves = systems.iter().map(|system| {
        let points = workers.iter().filter_map(|count| {
            let mean = geometric_mean(workloads.iter().filter_map(|w| gain(system, w, *count)))?;
            Some((*count as f64, [mean; 3]))
        });
        Curve { system: (*system).to_owned(), points: points.collect() }
    });
    let panel = Panel { name: String::new(), curves: curves.collect() };
    let title = format!("{suite}: speed-up over workers");
    let note = format!(
        "Times as fast as the sequential program: the geometric mean over the same {} workloads for all systems.",
        workloads.len()
    );
    let words = Words {
        title: &title,
        notes: &[&note],
        x: "workers",
        diagonal: true,
        cores: Some(document.machine.cores as f64),
        dots: false,
    };
    draw_panels(&words, &[panel])
}

/// Speed-up over workers, a panel a workload.
pub(super) fn each(document: &Document, suite: &str, title: &str) -> Result<Option<Svg>> {
    let of_suite = || document.rows.iter().filter(|row| row.suite == suite);
    let mut panels = Vec::new();
    for workload in distinct(of_suite().map(|row| row.workload.as_str())) {
        let rows: Vec<&Row> = of_suite().filter(|row| row.workload == workload).collect();
        let mut systems = distinct(rows.iter().map(|row| row.system.as_str()));
        systems.retain(|system| *system != "sequential");
        let curves = systems.iter().map(|system| {
            let point = |row: &&Row| {
                let Ratio { low, value, high } = row.gain(document.sequential(row)?)?;
                Some((row.workers as f64, [low, value, high]))
            };
            let of_system = rows.iter().filter(|row| row.system == *system);
            Curve { system: (*system).to_owned(), points: of_system.filter_map(point).collect() }
        });
        panels.push(Panel { name: workload.to_owned(), curves: curves.collect() });
    }
    panels.retain(|panel| panel.curves.iter().any(|curve| curve.points.len() > 1));
    let words = Words {
        title,
        notes: &["Times as fast as the sequential program.", super::bars::INTERVAL],
        x: "workers",
        diagonal: true,
        cores: Some(document.machine.cores as f64),
        dots: false,
    };
    draw_panels(&words, &panels)
}

/// The figure of these panels, or `None` if there are none.
pub(super) fn draw_panels(words: &Words<'_>, panels: &[Panel]) -> Result<Option<Svg>> {
    if panels.iter().all(|panel| panel.curves.iter().all(|curve| curve.points.is_empty())) {
        return Ok(None);
    }
    let svg = Svg::of(|width| paint(width, words, panels));
    svg.map(Some).map_err(|error| anyhow!("`{}` could not be drawn: {error}", words.title))
}

/// The height of a panel on a wide figure, and on a narrow one.
const HEIGHTS: [u32; 2] = [360, 270];

fn paint(
    width: u32,
    words: &Words<'_>,
    panels: &[Panel],
) -> Result<String, Box<dyn std::error::Error>> {
    let mut svg = String::new();
    let curves = || panels.iter().flat_map(|panel| &panel.curves);
    let systems = distinct(curves().map(|curve| curve.system.as_str()));
    let head = Head::new(width, words.title, words.notes, &systems);
    let points = || curves().flat_map(|curve| &curve.points);
    let last = points().map(|(x, _)| *x).fold(0.0, f64::max);
    let mut highest = points().map(|(_, [_, y, _])| *y).fold(0.0, f64::max);
    if words.diagonal {
        highest = highest.max(last.min(2.0 * highest));
    }
    let highest = highest * 1.1;
    let narrow = width < 600;
    let columns = if narrow || panels.len() == 1 { 1 } else { 2 };
    let lines = panels.len().div_ceil(columns);
    {
        let size = (width, head.height() + HEIGHTS[usize::from(narrow)] * lines as u32);
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&WHITE)?;
        let (above, body) = area.split_vertically(head.height());
        head.draw(&above)?;
        for (panel, place) in panels.iter().zip(body.split_evenly((lines, columns))) {
            // Alone on a wide figure it would be a band.
            let place =
                if width > 700 && columns == 1 { place.split_horizontally(640).0 } else { place };
            let mut chart = ChartBuilder::on(&place)
                .caption(&panel.name, TEXT)
                .margin(8)
                .margin_right(20)
                .x_label_area_size(42)
                .y_label_area_size(50)
                .build_cartesian_2d(0.0..last * 1.05, 0.0..highest)?;
            chart
                .configure_mesh()
                .light_line_style(TRANSPARENT)
                .bold_line_style(BLACK.mix(0.15))
                .axis_style(BLACK.mix(0.6))
                .label_style(TEXT)
                .x_labels(if narrow { 5 } else { 9 })
                // There is no half a worker.
                .x_label_formatter(&|x| {
                    if (x - x.round()).abs() < 1e-6 { format!("{x:.0}") } else { String::new() }
                })
                .y_label_formatter(&|y| {
                    if highest < 20.0 { format!("{y:.1}") } else { format!("{y:.0}") }
                })
                .x_desc(words.x)
                .draw()?;
            if words.diagonal {
                let end = last.min(highest);
                chart.draw_series(LineSeries::new([(0.0, 0.0), (end, end)], BLACK.mix(0.3)))?;
            }
            if let Some(cores) = words.cores.filter(|cores| *cores < last) {
                chart
                    .draw_series(LineSeries::new([(cores, 0.0), (cores, highest)], RED.mix(0.5)))?;
            }
            for curve in &panel.curves {
                let colour = colour(&curve.system);
                let mut points: Vec<_> = curve.points.clone();
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
                let line = points.iter().map(|(x, [_, y, _])| (*x, *y));
                if !words.dots {
                    chart.draw_series(LineSeries::new(line.clone(), colour.stroke_width(2)))?;
                }
                chart.draw_series(line.map(|point| Circle::new(point, 3, colour.filled())))?;
                chart.draw_series(points.iter().filter(|(_, [low, _, high])| high > low).map(
                    |(x, [low, _, high])| {
                        let ends = vec![(*x, *low), (*x, high.min(highest))];
                        PathElement::new(ends, colour.stroke_width(1))
                    },
                ))?;
            }
        }
        area.present()?;
    }
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Case;
    use crate::harness::document::CaseName;

    fn document(rows: &[(&'static str, &str, usize, f64)]) -> Document {
        let mut document = Document::new("tiny");
        for (workload, system, workers, seconds) in rows {
            let case = CaseName::of(&Case::timed(workload, *system, *workers, || Ok(())));
            document.add("suite", &case, (*seconds).into(), (0, 1));
        }
        document
    }

    #[test]
    fn nothing_is_a_speed_up_over_another_than_the_sequential_program() {
        let rows = [
            ("a", "the", 1, 2.0),
            ("a", "the", 2, 1.0),
            ("a", "thep", 1, 1.0),
            ("a", "thep", 2, 1.0),
        ];
        assert_eq!(draw(&document(&rows), "suite", &[1, 2]).unwrap(), None);
        let with = [&rows[..], &[("a", "sequential", 1, 1.0)]].concat();
        let svg = draw(&document(&with), "suite", &[1, 2]).unwrap().unwrap().wide;
        assert!(svg.contains("over the same 1 workloads"), "{svg}");
    }

    #[test]
    fn a_curve_is_over_the_workloads_that_all_systems_ran() {
        let mut rows = Vec::new();
        for workload in ["a", "b", "c"] {
            rows.push((workload, "sequential", 1, 1.0));
            for (system, workers) in [("the", 1), ("the", 2), ("thep", 1), ("thep", 2)] {
                if (workload, system, workers) != ("b", "thep", 2) {
                    rows.push((workload, system, workers, 1.0));
                }
            }
        }
        // In one workload of three: it has no curve, and takes nothing from the others.
        rows.extend([("a", "rare", 1, 1.0), ("a", "rare", 2, 1.0)]);
        let svg = draw(&document(&rows), "suite", &[1, 2]).unwrap().unwrap().wide;
        assert!(svg.contains("over the same 2 workloads") && !svg.contains("rare"), "{svg}");
        // With a panel for each workload, each has what there is of it.
        let svg = each(&document(&rows), "suite", "title").unwrap().unwrap().narrow;
        for name in ["a", "b", "c", "rare"] {
            assert!(svg.contains(&format!("\n{name}\n")), "{name}: {svg}");
        }
    }
}
