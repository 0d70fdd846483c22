//! Speed-up over ranks, drawn: what `poach-far simulate --svg` writes.

use std::fmt::Write as _;

/// A line of the drawing.
pub(super) struct Curve {
    /// What it is called.
    pub(super) name: String,
    /// Ranks, and how many times as fast as one they are.
    pub(super) points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 460.0;
/// Room for the scales and the text: left, right, above, below.
const MARGINS: [f64; 4] = [70.0, 150.0, 62.0, 50.0];
const COLOURS: [&str; 4] = ["#0b6e99", "#c2571a", "#4f7a28", "#7a3e9d"];

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Both axes are logarithmic, from 1 to the same power of two, so that a line at 45 degrees is a
/// speed-up of as many times as there are ranks.
pub(super) fn draw(title: &str, assumptions: &str, curves: &[Curve]) -> String {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let most = points().fold(2.0f64, |most, point| most.max(point.0).max(point.1));
    let doublings = most.log2().ceil();
    let [left, right, above, below] = MARGINS;
    let (wide, high) = (WIDTH - left - right, HEIGHT - above - below);
    let x = |ranks: f64| left + wide * ranks.log2() / doublings;
    let y = |times: f64| above + high * (1.0 - times.max(1.0).log2() / doublings);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n\
         <text x=\"{left}\" y=\"24\" font-size=\"15\">{}</text>\n\
         <text x=\"{left}\" y=\"44\" fill=\"#555\">{}</text>\n",
        escaped(title),
        escaped(assumptions),
    );
    let mut tick = 0.0;
    while tick <= doublings {
        let number = tick.exp2();
        let (at_x, at_y) = (x(number), y(number));
        let (bottom, end) = (above + high, left + wide);
        let _ = write!(
            svg,
            "<path d=\"M{at_x:.1} {above:.1}V{bottom:.1}M{left:.1} {at_y:.1}H{end:.1}\" stroke=\"#e2e2e2\"/>\n\
             <text x=\"{at_x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{number}</text>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{number}</text>\n",
            bottom + 18.0,
            left - 8.0,
            at_y + 4.0,
        );
        tick += if doublings > 8.0 { 2.0 } else { 1.0 };
    }
    let _ = write!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">ranks</text>\n\
         <text x=\"18\" y=\"{:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 18 {:.1})\">times as fast as one</text>\n\
         <path d=\"M{:.1} {:.1}L{:.1} {:.1}\" stroke=\"#999\" stroke-dasharray=\"4 4\"/>\n",
        left + wide / 2.0,
        HEIGHT - 12.0,
        above + high / 2.0,
        above + high / 2.0,
        x(1.0),
        y(1.0),
        x(doublings.exp2()),
        y(doublings.exp2()),
    );
    // Names stand at the ends of their curves, and no two in one place.
    let mut taken: Vec<f64> = Vec::new();
    for (curve, colour) in curves.iter().zip(COLOURS.iter().cycle()) {
        let mut path = String::new();
        for (at, &(ranks, times)) in curve.points.iter().enumerate() {
            let _ =
                write!(path, "{}{:.1} {:.1}", if at == 0 { 'M' } else { 'L' }, x(ranks), y(times));
        }
        let _ = writeln!(
            svg,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"
        );
        for &(ranks, times) in &curve.points {
            let _ = writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"><title>{ranks} ranks: {times:.1}</title></circle>",
                x(ranks),
                y(times)
            );
        }
        let Some(&(ranks, times)) = curve.points.last() else { continue };
        let mut at = y(times) + 4.0;
        while taken.iter().any(|other| (other - at).abs() < 14.0) {
            at += 14.0;
        }
        taken.push(at);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{at:.1}\" fill=\"{colour}\">{}</text>",
            x(ranks) + 8.0,
            escaped(&curve.name)
        );
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_up_of_as_many_times_lies_on_the_dashed_line() {
        let points = vec![(1.0, 1.0), (4.0, 4.0), (4_096.0, 4_096.0)];
        let svg = draw("a & b", "<none>", &[Curve { name: "c".to_owned(), points }]);
        assert!(svg.contains("a &amp; b") && svg.contains("&lt;none&gt;"), "{svg}");
        let line = |from: &str| {
            let (_, behind) = svg.split_once(from).unwrap();
            behind.split('\"').next().unwrap().to_owned()
        };
        let dashed = line("<path d=\"M70.0 410.0L");
        let curve = line("<path d=\"M70.0 410.0L153.3 352.0L");
        assert_eq!(dashed, curve, "{svg}");
        assert!(svg.trim_end().ends_with("</svg>"));
    }
}
