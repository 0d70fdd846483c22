//! The speed-ups of short parallel regions: a grid for each workload of `runtime` whose counters are cells
//! and each of its systems, a row for each gap, a column for each length. Red is slower than sequential.

use anyhow::{Result, anyhow};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::runtime::region::{GAPS, LENGTHS, cell};
use crate::{Document, Row};

/// A cell's width and height in pixels.
const CELL: (i32, i32) = (74, 34);
/// To the left of a grid, for its gaps.
const LEFT: i32 = 96;
/// Above a grid, for its title and its lengths.
const ABOVE: i32 = 62;
/// Between two grids.
const BETWEEN: i32 = 26;
/// Above all of them, for the caption, and below, for the scale.
const CAPTION: i32 = 40;
const SCALE: i32 = 58;

/// The figure of the rows with so many workers, or `None` if no row has a cell.
pub(super) fn draw(document: &Document, suite: &str, workers: usize) -> Result<Option<String>> {
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
    let svg = paint(&rows, workers);
    svg.map(Some).map_err(|error| anyhow!("the regions of {suite} could not be drawn: {error}"))
}

fn value(row: &Row, gap: u32, length: u32) -> Option<f64> {
    row.counters.get(&cell(gap, length)).copied()
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

fn paint(rows: &[&Row], workers: usize) -> Result<String, Box<dyn std::error::Error>> {
    let (columns, lines) = (LENGTHS.len() as i32, GAPS.len() as i32);
    // The systems of a workload stand side by side, the workloads one below the other.
    let mut workloads: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in rows {
        match workloads.iter_mut().find(|(name, _)| *name == row.workload) {
            Some((_, rows)) => rows.push(row),
            None => workloads.push((&row.workload, vec![row])),
        }
    }
    let most_systems = workloads.iter().map(|(_, rows)| rows.len()).max().unwrap_or(1) as i32;
    let (grid_width, grid_height) = (LEFT + columns * CELL.0, ABOVE + lines * CELL.1);
    let width = most_systems * (grid_width + BETWEEN) + BETWEEN;
    let bottom = CAPTION + workloads.len() as i32 * (grid_height + BETWEEN);
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
        let caption =
            format!("short parallel regions, {workers} workers: times the sequential speed");
        text(&caption, 19, (width / 2, CAPTION / 2), HPos::Center, VPos::Center)?;
        let most = workers as f64;
        for (at, (workload, rows)) in workloads.iter().enumerate() {
            for (system, row) in rows.iter().enumerate() {
                let left = BETWEEN + system as i32 * (grid_width + BETWEEN) + LEFT;
                let top = CAPTION + at as i32 * (grid_height + BETWEEN) + ABOVE;
                let title = format!("{workload}, {}", row.system);
                text(&title, 17, (left, top - ABOVE + 4), HPos::Left, VPos::Top)?;
                for (column, length) in LENGTHS.iter().enumerate() {
                    let middle = left + column as i32 * CELL.0 + CELL.0 / 2;
                    let length = format!("{length} us");
                    text(&length, 15, (middle, top - 6), HPos::Center, VPos::Bottom)?;
                }
                for (line, gap) in GAPS.iter().enumerate() {
                    let upper = top + line as i32 * CELL.1;
                    let (label, middle) = (format!("every {gap} us"), upper + CELL.1 / 2);
                    text(&label, 15, (left - 8, middle), HPos::Right, VPos::Center)?;
                    for (column, length) in LENGTHS.iter().enumerate() {
                        let Some(value) = value(row, *gap, *length) else { continue };
                        let from = (left + column as i32 * CELL.0, upper);
                        let to = (from.0 + CELL.0 - 2, from.1 + CELL.1 - 2);
                        let fill = colour(value, most).filled();
                        area.draw(&Rectangle::new([from, to], fill))?;
                        let (at, number) = ((from.0 + CELL.0 / 2, middle), format!("{value:.2}"));
                        // A colour of its own, not the page's ink: the cells stay light on a dark page.
                        let ink = RGBColor(20, 20, 20);
                        let ink = style(16, HPos::Center, VPos::Center).color(&ink);
                        area.draw_text(&number, &ink, at)?;
                    }
                }
            }
        }
        for (step, speed_up) in
            [0.25, 0.5, 0.71, 0.9, 1.0, 1.25, 1.5, most.max(1.5)].iter().enumerate()
        {
            let from = (BETWEEN + LEFT + step as i32 * CELL.0, bottom);
            let to = (from.0 + CELL.0, from.1 + 16);
            area.draw(&Rectangle::new([from, to], colour(*speed_up, most).filled()))?;
            let at = (from.0 + CELL.0 / 2, from.1 + 20);
            text(&format!("{speed_up}"), 15, at, HPos::Center, VPos::Top)?;
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
                            sample.count(&cell(gap, length), speed_up)
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
        let svg = draw(&document, "runtime", 2).unwrap().unwrap();
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
