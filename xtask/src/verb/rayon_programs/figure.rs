//! A bar a program: its speed on Poach as a multiple of that on rayon, whiskers from p10 to p90.

use anyhow::{Result, anyhow};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::Measured;

const WIDTH: i32 = 900;
/// The height of a program's row.
const ROW: i32 = 34;
const TOP: i32 = 48;
const BOTTOM: i32 = 44;
/// Where the axis begins and ends.
const LEFT: i32 = 250;
const RIGHT: i32 = WIDTH - 90;
const BAR: RGBColor = RGBColor(0x2a, 0x6f, 0xbb);

pub(super) fn draw(measured: &[Measured], threads: usize) -> Result<String> {
    let rows: Vec<[f64; 3]> = measured.iter().map(Measured::speeds).collect();
    let most = rows.iter().map(|row| row[2]).fold(1.0, f64::max).ceil();
    let x = |speed: f64| LEFT + (speed.min(most) / most * f64::from(RIGHT - LEFT)) as i32;
    let bottom = TOP + ROW * measured.len() as i32;
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, (WIDTH as u32, (bottom + BOTTOM) as u32))
        .into_drawing_area();
    let wrong = |error: DrawingAreaErrorKind<_>| anyhow!("could not draw: {error}");
    let text = |size: i32, at: HPos| {
        TextStyle::from(("sans-serif", size).into_font()).pos(Pos::new(at, VPos::Center))
    };
    area.fill(&WHITE).map_err(wrong)?;
    let title = format!(
        "Speed on Poach as a multiple of that on rayon, {threads} threads (higher is better)"
    );
    area.draw(&Text::new(title, (WIDTH / 2, TOP / 2), text(18, HPos::Center))).map_err(wrong)?;
    let steps = if most > 3.0 { most as i32 } else { most as i32 * 4 };
    for step in 0..=steps {
        let value = most * f64::from(step) / f64::from(steps);
        let colour = if (value - 1.0).abs() < 1e-9 { BLACK } else { RGBColor(0xdd, 0xdd, 0xdd) };
        let line = PathElement::new(vec![(x(value), TOP), (x(value), bottom)], colour);
        area.draw(&line).map_err(wrong)?;
        let label = Text::new(format!("{value}"), (x(value), bottom + 14), text(14, HPos::Center));
        area.draw(&label).map_err(wrong)?;
    }
    for (index, (row, [p10, p50, p90])) in measured.iter().zip(rows).enumerate() {
        let middle = TOP + ROW * index as i32 + ROW / 2;
        let name = format!("{} {}", row.program.package, row.program.version);
        area.draw(&Text::new(name, (LEFT - 10, middle), text(15, HPos::Right))).map_err(wrong)?;
        let bar = Rectangle::new([(LEFT, middle - 9), (x(p50), middle + 9)], BAR.filled());
        area.draw(&bar).map_err(wrong)?;
        let whisker = PathElement::new(vec![(x(p10), middle), (x(p90), middle)], BLACK);
        area.draw(&whisker).map_err(wrong)?;
        for end in [p10, p90] {
            let tick = vec![(x(end), middle - 5), (x(end), middle + 5)];
            area.draw(&PathElement::new(tick, BLACK)).map_err(wrong)?;
        }
        let value = Text::new(format!("{p50:.2}"), (x(p90) + 8, middle), text(14, HPos::Left));
        area.draw(&value).map_err(wrong)?;
    }
    area.present().map_err(wrong)?;
    drop(area);
    Ok(svg)
}
