//! The speed-ups of short parallel regions: a grid for each workload of `runtime` whose counters
//! are cells and each of its systems, a row for each gap, a column for each length. Red is slower
//! than sequential.

use anyhow::{Result, anyhow};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::common::Svg;
use crate::suites::runtime::region::{GAPS, LENGTHS, cell as cell_name};
use crate::{Document, Row};

/// A cell's height in pixels.
const HEIGHT: i32 = 34;
/// Above a grid, for its title and its lengths.
const ABOVE: i32 = 62;
/// Above all of them, for the caption, and below, for the scale.
const CAPTION: i32 = 62;
const SCALE: i32 = 58;

/// The figure of the rows with `workers` workers, or `None` if no row has a cell.
pub(super) fn draw(document: &Document, suite: &str, workers: usize) -> Result<Option<Svg>> {
    let has_cells = |row: &&Row| GAPS.iter().any(|gap| value(row, *gap, LENGTHS[0]).is_some());
    let rows: Vec<&Row> = document
        .rows
        .iter()
        .filter(|row| row.suite == suite && row.workers == workers)
        .filter(has_cells)
        .collect();
    if rows.is_empty() {
        return Ok(None);
    }
    let svg = Svg::of(|width| paint(width, &rows, workers));
    svg.map(Some).map_err(|error| anyhow!("the regions of {suite} could not be drawn: {error}"))
}

fn value(row: &Row, gap: u32, length: u32) -> Option<f64> {
    row.counters.get(&cell_name(gap, length)).copied()
}

/// From red at a half and less over white at 1 to blue at `most`, by the logarithm.
fn colour(speed_up: f64, most: f64) -> RGBColor {
    let mix = |to: RGBColor, share: f64| {
        let part = |to: u8| (255.0 - (255.0 - f64::from(to)) * share.clamp(0.0, 1.0)) as u8;
        RGBColor(part(to.0), part(to.1), part(to.2))
    };
    if speed_up < 1.0 {
        mix(RGBColor(213, 94, 0), -speed_up.max(1e-3).log2())
    } else {
        mix(RGBColor(0, 114, 178), 0.8 * speed_up.log2() / most.max(1.5).log2())
    }
}

/// The widths of a cell, of what is to the left of a grid for its gaps, and of what is between two
/// grids.
struct Widths {
    cell: i32,
    left: i32,
    between: i32,
    /// The sizes of the text, of the numbers in cells, and of the caption.
    text: [u32; 3],
}

fn paint(wide: u32, rows: &[&Row], workers: usize) -> Result<String, Box<dyn std::error::Error>> {
    let (columns, lines) = (LENGTHS.len() as i32, GAPS.len() as i32);
    let narrow = wide < 600;
    let widths = if narrow {
        Widths { cell: 50, left: 82, between: 9, text: [12, 13, 14] }
    } else {
        Widths { cell: 66, left: 96, between: 24, text: [15, 16, 18] }
    };
    let Widths { cell, left: labels, between, text: [small, number_size, large] } = widths;
    // The systems of a workload stand side by side, the workloads one below the other; on a narrow
    // figure each has a line.
    let mut workloads: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in rows {
        match workloads.iter_mut().find(|(name, _)| *name == row.workload) {
            Some((_, rows)) if !narrow => rows.push(row),
            _ => workloads.push((&row.workload, vec![row])),
        }
    }
    let most_systems = workloads.iter().map(|(_, rows)| rows.len()).max().unwrap_or(1) as i32;
    let (grid_width, grid_height) = (labels + columns * cell, ABOVE + lines * HEIGHT);
    let width = most_systems * (grid_width + between) + between;
    let bottom = CAPTION + workloads.len() as i32 * (grid_height + between);
    let mut svg = String::new();
    {
        let size = (u32::try_from(width)?, u32::try_from(bottom + SCALE)?);
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&WHITE)?;
        let style = |size: u32, horizontal, vertical| {
            TextStyle::from(("sans-serif", size).into_font())
                .color(&BLACK)
                .pos(Pos::new(horizontal, vertical))
        };
        let text = |text: &str, size, at: (i32, i32), horizontal, vertical| {
            area.draw_text(text, &style(size, horizontal, vertical), at)
        };
        let caption = [
            format!("short parallel regions, {workers} workers"),
            "times the speed of the sequential region; red is slower".to_owned(),
        ];
        for (line, caption) in caption.iter().enumerate() {
            let at = (between, 10 + 22 * line as i32);
            text(caption, large - 2 * line as u32, at, HPos::Left, VPos::Top)?;
        }
        let most = workers as f64;
        for (at, (workload, rows)) in workloads.iter().enumerate() {
            for (system, row) in rows.iter().enumerate() {
                let left = between + system as i32 * (grid_width + between) + labels;
                let top = CAPTION + at as i32 * (grid_height + between) + ABOVE;
                let title = format!("{workload}, {}", row.system);
                text(&title, large, (left, top - ABOVE + 4), HPos::Left, VPos::Top)?;
                for (column, length) in LENGTHS.iter().enumerate() {
                    let middle = left + column as i32 * cell + cell / 2;
                    let length = format!("{length} us");
                    text(&length, small, (middle, top - 6), HPos::Center, VPos::Bottom)?;
                }
                for (line, gap) in GAPS.iter().enumerate() {
                    let upper = top + line as i32 * HEIGHT;
                    let (label, middle) = (format!("every {gap} us"), upper + HEIGHT / 2);
                    text(&label, small, (left - 8, middle), HPos::Right, VPos::Center)?;
                    for (column, length) in LENGTHS.iter().enumerate() {
                        let Some(value) = value(row, *gap, *length) else { continue };
                        let from = (left + column as i32 * cell, upper);
                        let to = (from.0 + cell - 2, from.1 + HEIGHT - 2);
                        let fill = colour(value, most).filled();
                        area.draw(&Rectangle::new([from, to], fill))?;
                        let (at, number) = ((from.0 + cell / 2, middle), format!("{value:.2}"));
                        // A colour of its own, not the page's ink: the cells stay light on a dark
                        // page.
                        let ink = RGBColor(20, 20, 20);
                        let ink = style(number_size, HPos::Center, VPos::Center).color(&ink);
                        area.draw_text(&number, &ink, at)?;
                    }
                }
            }
        }
        let scale = cell.min((width - 2 * between) / 8);
        for (step, speed_up) in
            [0.25, 0.5, 0.71, 0.9, 1.0, 1.25, 1.5, most.max(1.5)].iter().enumerate()
        {
            let from = (between + step as i32 * scale, bottom);
            let to = (from.0 + scale, from.1 + 16);
            area.draw(&Rectangle::new([from, to], colour(*speed_up, most).filled()))?;
            let at = (from.0 + scale / 2, from.1 + 20);
            text(&format!("{speed_up}"), small, at, HPos::Center, VPos::Top)?;
        }
        area.present()?;
    }
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Case, Plan, Request, Sample, Session, Suite, Unit};

    struct MadeUp;

    impl Suite for MadeUp {
        fn name(&self) -> &'static str {
            "runtime"
        }

        fn about(&self) -> &'static str {
            "made up"
        }

        fn cases(&self, _request: &Request) -> Vec<Case> {
            let case = |workload, cells: &'static [(u32, u32, f64)]| {
                Case::new(workload, "split", 2, Unit::SECONDS, move || {
                    Ok(move || {
                        let count = |sample: Sample, &(gap, length, speed_up): &(u32, u32, f64)| {
                            sample.count(&cell_name(gap, length), speed_up)
                        };
                        Ok(cells.iter().fold(Sample::from(1.0), count))
                    })
                })
                .computed()
            };
            vec![case("plain", &[]), case("regions", &[(0, 8, 0.25), (0, 128, 1.875)])]
        }
    }

    #[test]
    fn a_grid_shows_the_cells_that_were_measured() {
        let session = Session::new(Plan { workers: vec![2], rounds: 1, ..Plan::quick() });
        session.run(&MadeUp, &|_| {}).unwrap();
        let mut document = session.document();
        let Svg { wide: svg, narrow } = draw(&document, "runtime", 2).unwrap().unwrap();
        assert!(narrow.contains("regions, split") && narrow.contains("1.88"), "{narrow}");
        assert!(svg.contains("regions, split") && !svg.contains("plain, split"), "{svg}");
        assert!(svg.contains("0.25") && svg.contains("1.88"), "{svg}");
        assert!(draw(&document, "runtime", 1).unwrap().is_none());
        document.rows.retain(|row| row.workload == "plain");
        assert!(draw(&document, "runtime", 2).unwrap().is_none());
    }

    #[test]
    fn what_is_slower_than_sequential_is_red_and_what_is_faster_blue() {
        let (slow, same, fast) = (colour(0.5, 2.0), colour(1.0, 2.0), colour(2.0, 2.0));
        assert_eq!(same, RGBColor(255, 255, 255));
        assert!(slow.0 > slow.2 && fast.2 > fast.0, "{slow:?} {fast:?}");
        assert_eq!(colour(0.1, 2.0), slow, "below a half nothing is redder");
    }
}
