//! What all figures have in common.

use plotters::style::RGBColor;

/// Colours in the order of the systems: Okabe and Ito's, which stay apart for the colour-blind too, and
/// shades between them for those who look at more systems than that.
pub(super) const COLOURS: [RGBColor; 16] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(86, 180, 233),
    RGBColor(204, 121, 167),
    RGBColor(120, 120, 120),
    RGBColor(240, 228, 66),
    RGBColor(70, 80, 160),
    RGBColor(150, 105, 30),
    RGBColor(130, 205, 175),
    RGBColor(150, 50, 25),
    RGBColor(160, 145, 225),
    RGBColor(130, 65, 120),
    RGBColor(190, 190, 190),
    RGBColor(150, 165, 45),
];

/// A figure that is drawn.
pub(super) struct Drawn {
    /// The paper's figure that it is of; none if it is of a suite.
    pub(super) of: Option<&'static str>,
    /// The suite of its rows.
    pub(super) suite: String,
    /// Its file.
    pub(super) name: String,
    pub(super) svg: String,
}

/// Each thing once, in the order of its first appearance.
pub(super) fn distinct<'a>(things: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for thing in things {
        if !seen.contains(&thing) {
            seen.push(thing);
        }
    }
    seen
}
