//! Figures as SVG. The colours are the page's variables, so that a figure follows the reader's choice of
//! light or dark; that is why they are written here and not by a plotting library, which fixes them.

use std::fmt::Write as _;

use super::html::escape;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 14.0;
/// Room for the name of the upright axis, which lies: on a phone, where letters are large for the figure,
/// one that stands would run into the numbers.
const TOP: f64 = 32.0;
const BOTTOM: f64 = 56.0;

/// Axes and what is drawn between them.
pub(super) struct Plot {
    x: (f64, f64),
    y: (f64, f64),
    body: String,
    description: String,
}

impl Plot {
    /// Axes with these ranges and names. `description` is what one who does not see it is told.
    pub(super) fn new(
        x: (f64, f64),
        y: (f64, f64),
        names: (&str, &str),
        description: &str,
    ) -> Plot {
        let widen =
            |(low, high): (f64, f64)| if high > low { (low, high) } else { (low, low + 1.0) };
        let mut plot = Plot {
            x: widen(x),
            y: widen(y),
            body: String::new(),
            description: escape(description),
        };
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        for tick in ticks(plot.x) {
            let at = plot.at_x(tick);
            plot.push(&format!(
                "<line class=grid x1={at:.1} y1={TOP} x2={at:.1} y2={bottom} />\
                 <text x={at:.1} y={:.1} text-anchor=middle>{tick}</text>",
                bottom + 20.0
            ));
        }
        for tick in ticks(plot.y) {
            let at = plot.at_y(tick);
            plot.push(&format!(
                "<line class=grid x1={LEFT} y1={at:.1} x2={right} y2={at:.1} />\
                 <text x={:.1} y={:.1} text-anchor=end>{tick}</text>",
                LEFT - 7.0,
                at + 4.5
            ));
        }
        let (middle, low) = (f64::midpoint(LEFT, right), HEIGHT - 8.0);
        let (x_name, y_name) = (escape(names.0), escape(names.1));
        plot.push(&format!("<text x={middle:.1} y={low:.1} text-anchor=middle>{x_name}</text>"));
        plot.push(&format!("<text x={LEFT} y=18>{y_name}</text>"));
        plot
    }

    fn push(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    fn at_x(&self, value: f64) -> f64 {
        LEFT + (value - self.x.0) / (self.x.1 - self.x.0) * (WIDTH - LEFT - RIGHT)
    }

    fn at_y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - (value - self.y.0) / (self.y.1 - self.y.0) * (HEIGHT - TOP - BOTTOM)
    }

    /// A line through points.
    pub(super) fn line(&mut self, class: &str, points: impl Iterator<Item = (f64, f64)>) {
        let mut path = String::new();
        for (x, y) in points {
            let (x, y) = (self.at_x(x), self.at_y(y));
            // Writing to a string does not fail.
            let _ = write!(path, "{x:.1},{y:.1} ");
        }
        self.push(&format!("<polyline class='line {class}' points='{}' />", path.trim_end()));
    }

    /// A dot, or a cross for what went wrong: no larger than keeps it apart from the mark one above it.
    pub(super) fn mark(&mut self, (x, y): (f64, f64), well: bool) {
        let room = (self.at_y(y) - self.at_y(y + 1.0)).abs();
        let (x, y) = (self.at_x(x), self.at_y(y));
        let half = (0.4 * room).clamp(2.0, 4.0);
        let (left, top, full) = (x - half, y - half, 2.0 * half);
        self.push(&if well {
            format!("<circle class=good cx={x:.1} cy={y:.1} r={half:.1} />")
        } else {
            format!(
                "<path class=bad d='M{left:.1} {top:.1}l{full:.1} {full:.1}m0 -{full:.1}l-{full:.1} \
                 {full:.1}' />"
            )
        });
    }

    /// An upright with a text on its left.
    pub(super) fn upright(&mut self, x: f64, text: &str) {
        let (at, bottom, text) = (self.at_x(x), HEIGHT - BOTTOM, escape(text));
        self.push(&format!(
            "<line class=mark x1={at:.1} y1={TOP} x2={at:.1} y2={bottom} />\
             <text class=strong x={:.1} y={:.1} text-anchor=end>{text}</text>",
            at - 7.0,
            TOP + 18.0
        ));
    }

    /// The whole figure.
    pub(super) fn finish(self) -> String {
        format!(
            "<div class=scroll><svg viewBox='0 0 {WIDTH} {HEIGHT}' role=img aria-label='{}'>\n{}</svg></div>\n",
            self.description, self.body
        )
    }
}

/// Round numbers over a range, some six of them.
fn ticks((low, high): (f64, f64)) -> Vec<f64> {
    let rough = (high - low) / 6.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|f| f * power).into_iter().find(|s| *s >= rough);
    let step = step.unwrap_or(rough).max(1.0).round();
    let first = (low / step).ceil();
    (0..32).map(|n| (first + f64::from(n)) * step).take_while(|tick| *tick <= high).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(ticks((1.0, 160.0)), [50.0, 100.0, 150.0]);
        assert_eq!(ticks((0.0, 6.0)), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert!(ticks((0.0, 1.0)).len() <= 2);
    }

    #[test]
    fn a_range_of_nothing_is_drawn_all_the_same() {
        let mut plot = Plot::new((3.0, 3.0), (0.0, 0.0), ("x", "y"), "<nothing> & 'none'");
        plot.mark((3.0, 0.0), false);
        let svg = plot.finish();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(svg.contains("&lt;nothing&gt; &amp; &#39;none&#39;"));
    }
}
