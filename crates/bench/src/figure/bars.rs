//! Normalised run time: a group of bars a workload, a bar a system, whiskers from p10 to p90. The
//! form of the fence-free paper's Figure 10. A whisker without an upper end goes on above the figure.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use super::common::{COLOURS, distinct};
use crate::{Better, Document, Row};

/// The height of a bar, and its whiskers: multiples of the baseline's median.
struct Bar {
    /// Which workload.
    group: usize,
    /// Which system.
    system: usize,
    height: f64,
    low: f64,
    high: f64,
}

/// The share of a group's width that its bars fill.
const FILLED: f64 = 0.84;
/// The figure's width in pixels; workloads that do not fit into it go on in a panel below.
const WIDTH: u32 = 980;
/// The least width of a bar, and the greatest.
const BAR: (u32, u32) = (11, 30);
/// What a letter of the axis is wide, at most.
const LETTER: u32 = 8;
/// The height of a panel.
const PANEL: u32 = 360;
/// To the left of a panel, for its axis, and to the right.
const MARGIN: u32 = 84;
/// The height of a line of the legend, and of the caption.
const LINE: u32 = 22;
const TEXT: (&str, u32) = ("sans-serif", 16);

/// The figure, or `None` if nothing ran with so many workers beside the baseline.
pub(super) fn draw(document: &Document, suite: &str, workers: usize) -> Result<Option<String>> {
    let base = |row: &Row| document.baseline(row).filter(|base| base.median > 0.0);
    let here = |row: &&Row| row.suite == suite && row.workers == workers;
    let Some(first) = document.rows.iter().find(here) else { return Ok(None) };
    // Not all workloads of a suite need have the same one.
    let bases = document.rows.iter().filter(here).filter_map(base);
    let names = distinct(bases.map(|base| base.system.as_str())).join("` or `");
    let axis = match first.better {
        Better::Lower => format!("time, as a multiple of `{names}` (lower is better)"),
        Better::Higher => format!("rate, as a multiple of `{names}` (higher is better)"),
    };
    let values = |row: &Row| {
        let base = base(row)?.median;
        Some([row.p10 / base, row.median / base, row.p90 / base])
    };
    draw_values(document, suite, workers, suite, Axis { name: &axis, ratio: true }, &values)
}

/// What the heights of bars are.
#[derive(Clone, Copy)]
pub(super) struct Axis<'a> {
    pub(super) name: &'a str,
    /// Multiples of the baseline, which is a line at 1.
    pub(super) ratio: bool,
}

/// A figure of what `values` says of each row: the lower end of its whisker, its height, and the upper
/// end. `None` if that is nothing, or 0 everywhere.
pub(super) fn draw_values(
    document: &Document,
    suite: &str,
    workers: usize,
    title: &str,
    axis: Axis<'_>,
    values: &dyn Fn(&Row) -> Option<[f64; 3]>,
) -> Result<Option<String>> {
    let rows: Vec<(&Row, [f64; 3])> = document
        .rows
        .iter()
        .filter(|row| row.suite == suite && row.workers == workers)
        .filter_map(|row| Some((row, values(row)?)))
        .collect();
    // In the order of all rows of the suite, so that a system has one colour whatever the workers.
    let of_suite = document.rows.iter().filter(|row| row.suite == suite);
    let mut systems = distinct(of_suite.map(|row| row.system.as_str()));
    systems.retain(|system| rows.iter().any(|(row, _)| row.system == *system));
    let workloads = distinct(rows.iter().map(|(row, _)| row.workload.as_str()));
    let nothing = rows.iter().all(|(_, [_, height, _])| *height == 0.0);
    if nothing || systems == ["sequential"] {
        return Ok(None);
    }
    let bars: Vec<Bar> = rows
        .iter()
        .map(|(row, [low, height, high])| Bar {
            group: workloads.iter().position(|name| *name == row.workload).unwrap_or(0),
            system: systems.iter().position(|name| *name == row.system).unwrap_or(0),
            height: *height,
            low: *low,
            high: *high,
        })
        .collect();
    let oversubscribed = rows.iter().any(|(row, _)| row.oversubscribed);
    let caption = caption(document, title, workers, oversubscribed);
    let svg = paint(&caption, axis, &workloads, &systems, &bars);
    svg.map(Some).map_err(|error| anyhow!("the figure of {suite} could not be drawn: {error}"))
}

fn caption(document: &Document, title: &str, workers: usize, oversubscribed: bool) -> String {
    let warning = if oversubscribed {
        format!(" (more than the {} processors)", document.machine.cores)
    } else {
        String::new()
    };
    format!("{title}, {}{warning}", crate::words::workers(workers))
}

/// Where each name of the legend stands: from the left, and in which line.
fn legend(systems: &[&str]) -> Vec<(u32, u32)> {
    let (mut x, mut line) = (0, 0);
    let mut places = Vec::new();
    for system in systems {
        let width = 34 + LETTER * system.len() as u32;
        if x > 0 && x + width > WIDTH - 24 {
            (x, line) = (0, line + 1);
        }
        places.push((x, line));
        x += width;
    }
    places
}

fn paint(
    caption: &str,
    axis: Axis<'_>,
    workloads: &[&str],
    systems: &[&str],
    bars: &[Bar],
) -> Result<String, Box<dyn std::error::Error>> {
    let mut svg = String::new();
    let longest = workloads.iter().map(|name| name.len()).max().unwrap_or(1) as u32;
    let narrow = (BAR.0 * systems.len() as u32).max(LETTER * longest + 8);
    let room = WIDTH - MARGIN;
    let most = (room / narrow).clamp(1, workloads.len().max(1) as u32);
    let panels = (workloads.len() as u32).div_ceil(most);
    // As many in each panel, so that none of them has one group only.
    let groups = (workloads.len() as u32).div_ceil(panels);
    let wide = narrow.max(BAR.1 * systems.len() as u32);
    let places = legend(systems);
    let top = 16 + LINE * (2 + places.last().map_or(0, |(_, line)| *line));
    // A whisker may go on above the figure: one sample at a bad moment would make every bar small.
    let least = if axis.ratio { 1.0 } else { 0.0 };
    let highest = bars.iter().map(|bar| bar.height).fold(least, f64::max) * 1.15;
    {
        let size = (WIDTH, top + PANEL * panels);
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&WHITE)?;
        let (head, body) = area.split_vertically(top);
        head.draw(&Text::new(caption.to_owned(), (12, 10), ("sans-serif", 19)))?;
        for (at, (system, (x, line))) in systems.iter().zip(&places).enumerate() {
            let (x, y) = (12 + *x as i32, (14 + LINE * (1 + line)) as i32);
            let colour = COLOURS[at % COLOURS.len()];
            head.draw(&Rectangle::new([(x, y), (x + 12, y + 12)], colour.filled()))?;
            head.draw(&Text::new((*system).to_owned(), (x + 17, y), TEXT))?;
        }
        for (at, panel) in body.split_evenly((panels as usize, 1)).iter().enumerate() {
            let from = at * groups as usize;
            let names = &workloads[from..workloads.len().min(from + groups as usize)];
            // No wider than its groups need, and all panels by one measure.
            let width = (wide.min(room / groups) * names.len() as u32).min(room) + MARGIN;
            let panel = panel.split_horizontally(width).0;
            let bars: Vec<&Bar> =
                bars.iter().filter(|bar| (from..from + names.len()).contains(&bar.group)).collect();
            groups_of(&panel, axis, (from, names), systems.len(), &bars, highest)?;
        }
        area.present()?;
    }
    Ok(svg)
}

/// Draws a panel: the groups of `names`, of which the first is the workload number `from`.
fn groups_of(
    panel: &DrawingArea<SVGBackend<'_>, Shift>,
    axis: Axis<'_>,
    (from, names): (usize, &[&str]),
    systems: usize,
    bars: &[&Bar],
    highest: f64,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut chart = ChartBuilder::on(panel)
        .margin(8)
        .x_label_area_size(34)
        .y_label_area_size(68)
        .build_cartesian_2d(0.0..names.len() as f64, 0.0..highest)?;
    let name = |x: &f64| {
        let group = (x - 0.5).round();
        let centred = (x - 0.5 - group).abs() < 1e-6;
        let name = if centred { names.get(group as usize) } else { None };
        name.map_or_else(String::new, |name| (*name).to_owned())
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.15))
        .axis_style(BLACK.mix(0.6))
        .x_labels(2 * names.len() + 1)
        .x_label_formatter(&name)
        .y_labels(7)
        // Thousands with a decimal place would run into the axis' name.
        .y_label_formatter(&|y| if highest < 100.0 { format!("{y:.1}") } else { format!("{y:.0}") })
        .y_desc(axis.name)
        .label_style(TEXT)
        .draw()?;
    let width = FILLED / systems as f64;
    let left =
        |bar: &Bar| (bar.group - from) as f64 + (1.0 - FILLED) / 2.0 + bar.system as f64 * width;
    chart.draw_series(bars.iter().map(|bar| {
        let colour = COLOURS[bar.system % COLOURS.len()];
        let (x, right) = (left(bar), left(bar) + width * 0.92);
        Rectangle::new([(x, 0.0), (right, bar.height)], colour.filled())
    }))?;
    // A single sample has no whisker.
    for bar in bars.iter().filter(|bar| bar.high > bar.low) {
        let (middle, half) = (left(bar) + width * 0.46, width * 0.2);
        let (low, high) = (bar.low.min(highest), bar.high.min(highest));
        let line = |from: (f64, f64), to: (f64, f64)| {
            PathElement::new(vec![from, to], BLACK.stroke_width(1))
        };
        let mut lines = vec![line((middle, low), (middle, high))];
        lines.push(line((middle - half, low), (middle + half, low)));
        if bar.high <= highest {
            lines.push(line((middle - half, high), (middle + half, high)));
        }
        chart.draw_series(lines)?;
    }
    if axis.ratio {
        let one = [(0.0, 1.0), (names.len() as f64, 1.0)];
        chart.draw_series(LineSeries::new(one, BLACK.mix(0.5)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Case;
    use crate::harness::document::CaseName;

    #[test]
    fn a_legend_goes_on_in_a_second_line() {
        assert_eq!(legend(&["the", "thep"]), [(0, 0), (58, 0)]);
        let many = ["a-system-of-a-long-name"; 9];
        let places = legend(&many);
        assert!(places.iter().all(|(x, _)| x + 34 + LETTER * 23 <= WIDTH));
        assert_eq!(places.last().map(|(_, line)| *line), Some(2));
    }

    #[test]
    fn the_axis_names_each_baseline() {
        let mut document = Document::new("tiny");
        for (workload, system) in
            [("a", "split"), ("a", "rayon"), ("b", "sequential"), ("b", "split"), ("b", "rayon")]
        {
            let case = CaseName::of(&Case::timed(workload, system, 1, || Ok(())));
            document.add("suite", &case, 1.0.into());
        }
        let svg = draw(&document, "suite", 1).unwrap().unwrap();
        assert!(svg.contains("as a multiple of `split` or `sequential` (lower"), "{svg}");
    }

    #[test]
    fn many_workloads_go_on_in_a_panel_below_and_a_whisker_does_not_flatten_the_bars() {
        let names: Vec<String> = (0..25).map(|at| format!("workload-{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let systems = ["the"; 16];
        let bar =
            |at: usize| Bar { group: at / 16, system: at % 16, height: 1.0, low: 0.9, high: 99.0 };
        let bars: Vec<Bar> = (0..25 * 16).map(bar).collect();
        let svg =
            paint("caption", Axis { name: "axis", ratio: true }, &names, &systems, &bars).unwrap();
        assert!(svg.contains(&format!("width=\"{WIDTH}\"")));
        for name in &names {
            assert_eq!(svg.matches(&format!("\n{name}\n")).count(), 1, "{name}");
        }
        // Each bar once, and each colour of the legend.
        let rectangles = svg.matches("<rect").count();
        assert_eq!(rectangles, 25 * 16 + 16 + 1, "{rectangles}");
        assert!(!svg.contains("99.0"));
    }
}
