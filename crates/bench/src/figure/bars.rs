//! A group of bars a workload, a bar a system: ratios with their interval of 95 % as whiskers, or
//! values with p10 and p90. The form of the fence-free paper's Figure 10. A bar that is much higher
//! than most ends at the figure's top, with its value written into it, and a whisker without an
//! upper end goes on above.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::common::{Head, LETTER, Svg, TEXT, colour, distinct};
use crate::words::figure;
use crate::{Better, Document, Ratio, Row};

/// The height of a bar, and its whiskers.
struct Bar {
    /// The workload's index.
    group: usize,
    /// The system's index.
    system: usize,
    height: f64,
    low: f64,
    high: f64,
}

/// The share of a group's width that its bars fill.
const FILLED: f64 = 0.84;
/// The least width of a bar, and the greatest.
const BAR: (u32, u32) = (11, 30);
/// To the left of a panel, for its axis, and to the right.
const MARGIN: u32 = 66;
/// The height of a panel, on a wide figure and on a narrow one.
const PANELS: [u32; 2] = [330, 230];
/// How many times as high as three quarters of the bars the highest may be.
const HIGHEST: f64 = 3.0;

/// What whiskers say where bars are ratios, and where they are values.
pub(super) const INTERVAL: &str =
    "Whiskers: the interval of 95 % of the ratio of medians, by a bootstrap over rounds.";

/// The figure, or `None` if nothing but the baseline ran with `workers` workers.
pub(super) fn draw(document: &Document, suite: &str, workers: usize) -> Result<Option<Svg>> {
    let here = |row: &&Row| row.suite == suite && row.workers == workers;
    let Some(first) = document.rows.iter().find(here) else { return Ok(None) };
    // Not all workloads of a suite need have the same one.
    let bases = document.rows.iter().filter(here).filter_map(|row| document.beside(row));
    let names = distinct(bases.map(|base| base.system.as_str())).join("` or `");
    let (name, is_better) = match first.better {
        Better::Lower => ("Time", "lower"),
        Better::Higher => ("Rate", "higher"),
    };
    let axis = format!("{name}, as a multiple of `{names}`: {is_better} is better.");
    let values = |row: &Row| {
        let Ratio { low, value, high } = row.over(document.beside(row)?)?;
        Some([low, value, high])
    };
    let axis = Axis { name: &axis, ratio: true, note: INTERVAL };
    draw_values(document, suite, workers, suite, axis, &values)
}

/// What the heights of bars are.
#[derive(Clone, Copy)]
pub(super) struct Axis<'a> {
    pub(super) name: &'a str,
    /// Multiples of the baseline, which is a line at 1.
    pub(super) ratio: bool,
    /// What the whiskers are, and what else is to be known.
    pub(super) note: &'a str,
}

/// A figure of what `values` says of each row: the lower end of its whisker, its height, and the
/// upper end. `None` if that is nothing, or 0 everywhere.
pub(super) fn draw_values(
    document: &Document,
    suite: &str,
    workers: usize,
    title: &str,
    axis: Axis<'_>,
    values: &dyn Fn(&Row) -> Option<[f64; 3]>,
) -> Result<Option<Svg>> {
    let rows: Vec<(&Row, [f64; 3])> = document
        .rows
        .iter()
        .filter(|row| row.suite == suite && row.workers == workers)
        .filter_map(|row| Some((row, values(row)?)))
        .collect();
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
    let svg = Svg::of(|width| paint(width, &caption, axis, &workloads, &systems, &bars));
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

/// The upper end of the axis: above all bars, but for bars that would make the others too small to
/// be read.
fn top(bars: &[Bar], ratio: bool) -> f64 {
    let mut heights: Vec<f64> = bars.iter().map(|bar| bar.height).collect();
    heights.sort_by(f64::total_cmp);
    let least = if ratio { 1.0 } else { 0.0 };
    let highest = heights.last().copied().unwrap_or(1.0).max(least);
    let most = heights.get(heights.len() * 3 / 4).copied().unwrap_or(highest);
    // A few bars, or bars of which most are nothing, are shown as they are.
    let limit = if heights.len() < 4 || most <= 0.0 { highest } else { HIGHEST * most.max(least) };
    highest.min(limit) * 1.15
}

fn paint(
    wide: u32,
    caption: &str,
    axis: Axis<'_>,
    workloads: &[&str],
    systems: &[&str],
    bars: &[Bar],
) -> Result<String, Box<dyn std::error::Error>> {
    let mut svg = String::new();
    let longest = workloads.iter().map(|name| name.len()).max().unwrap_or(1) as u32;
    let narrow = (BAR.0 * systems.len() as u32).max(LETTER * longest + 8);
    let room = wide - MARGIN;
    let most = (room / narrow).clamp(1, workloads.len().max(1) as u32);
    let panels = (workloads.len() as u32).div_ceil(most);
    let panel_height = PANELS[usize::from(wide < 600)];
    // As many in each panel, so that none of them has one group only.
    let groups = (workloads.len() as u32).div_ceil(panels);
    let group = narrow.max(BAR.1 * systems.len() as u32);
    let head = Head::new(wide, caption, &[axis.name, axis.note], systems);
    let highest = top(bars, axis.ratio);
    {
        let size = (wide, head.height() + panel_height * panels);
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&WHITE)?;
        let (above, body) = area.split_vertically(head.height());
        head.draw(&above)?;
        for (at, panel) in body.split_evenly((panels as usize, 1)).iter().enumerate() {
            let from = at * groups as usize;
            let names = &workloads[from..workloads.len().min(from + groups as usize)];
            // No wider than its groups need, and all panels by one measure.
            let width = (group.min(room / groups) * names.len() as u32).min(room) + MARGIN;
            let panel = panel.split_horizontally(width).0;
            let bars: Vec<&Bar> =
                bars.iter().filter(|bar| (from..from + names.len()).contains(&bar.group)).collect();
            groups_of(&panel, axis, (from, names), systems, &bars, highest)?;
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
    systems: &[&str],
    bars: &[&Bar],
    highest: f64,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut chart = ChartBuilder::on(panel)
        .margin(8)
        .x_label_area_size(34)
        .y_label_area_size(50)
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
        .y_label_formatter(&|y| match highest {
            highest if highest < 2.0 => format!("{y:.2}"),
            highest if highest < 100.0 => format!("{y:.1}"),
            _ => format!("{y:.0}"),
        })
        .label_style(TEXT)
        .draw()?;
    let width = FILLED / systems.len() as f64;
    let left =
        |bar: &Bar| (bar.group - from) as f64 + (1.0 - FILLED) / 2.0 + bar.system as f64 * width;
    chart.draw_series(bars.iter().map(|bar| {
        let (x, right) = (left(bar), left(bar) + width * 0.92);
        Rectangle::new(
            [(x, 0.0), (right, bar.height.min(highest))],
            colour(systems[bar.system]).filled(),
        )
    }))?;
    let upwards =
        TextStyle::from(("sans-serif", 12).into_font().transform(FontTransform::Rotate270))
            .pos(Pos::new(HPos::Right, VPos::Center));
    chart.draw_series(bars.iter().filter(|bar| bar.height > highest).map(|bar| {
        let place = (left(bar) + width * 0.2, highest);
        Text::new(figure(bar.height), place, upwards.clone())
    }))?;
    // A single sample has no whisker.
    for bar in bars.iter().filter(|bar| bar.high > bar.low && bar.height <= highest) {
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

    const AXIS: Axis<'static> = Axis { name: "axis", ratio: true, note: "note" };

    #[test]
    fn the_axis_names_each_baseline() {
        let mut document = Document::new("tiny");
        for (workload, system) in
            [("a", "split"), ("a", "rayon"), ("b", "sequential"), ("b", "split"), ("b", "rayon")]
        {
            let case = CaseName::of(&Case::timed(workload, system, 1, || Ok(())));
            document.add("suite", &case, 1.0.into(), (0, 1));
        }
        let svg = draw(&document, "suite", 1).unwrap().unwrap().wide;
        assert!(svg.contains("as a multiple of `split` or `sequential`: lower is better"), "{svg}");
        assert!(svg.contains("interval of 95 %"), "{svg}");
    }

    #[test]
    fn many_workloads_go_on_in_a_panel_below_and_an_outlier_does_not_flatten_the_bars() {
        let names: Vec<String> = (0..25).map(|at| format!("workload-{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let systems = ["the"; 16];
        let bar = |at: usize| {
            let height = if at == 0 { 77.0 } else { 1.0 };
            Bar { group: at / 16, system: at % 16, height, low: 0.9, high: 99.0 }
        };
        let bars: Vec<Bar> = (0..25 * 16).map(bar).collect();
        assert!(top(&bars, true) < 4.0);
        for width in super::super::common::WIDTHS {
            let svg = paint(width, "caption", AXIS, &names, &systems, &bars).unwrap();
            assert!(svg.contains(&format!("width=\"{width}\"")));
            for name in &names {
                assert_eq!(svg.matches(&format!("\n{name}\n")).count(), 1, "{name}");
            }
            // Each bar once, and each colour of the legend.
            let rectangles = svg.matches("<rect").count();
            assert_eq!(rectangles, 25 * 16 + 16 + 1, "{rectangles}");
            assert!(!svg.contains("99.0"));
            assert!(svg.contains("\n77.00\n"), "the value of the bar that is cut");
        }
    }

    #[test]
    fn a_few_bars_are_shown_as_they_are() {
        let bar = |height| Bar { group: 0, system: 0, height, low: height, high: height };
        assert!(top(&[bar(1.0), bar(50.0)], true) > 50.0);
        assert!(top(&[bar(0.0), bar(0.0), bar(0.0), bar(0.0), bar(9.0)], false) > 9.0);
    }
}
