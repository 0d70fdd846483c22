//! What all figures have in common: colours, the lines above a figure, its two widths.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::RGBColor;

/// The systems that figures show most, each with a colour of its own. The first colours are Okabe
/// and Ito's, which stay apart for the colour-blind too; the others are shades between them.
const COLOURS: [(&[&str], RGBColor); 25] = [
    (&["sequential", "mutex-vecdeque"], RGBColor(120, 120, 120)),
    (&["split", "salsa", "poach"], RGBColor(0, 114, 178)),
    (&["rayon", "crossbeam-lifo", "crossbeam-channel"], RGBColor(230, 159, 0)),
    (&["chase-lev", "salsa-cas"], RGBColor(0, 158, 115)),
    (&["the", "conc-bag"], RGBColor(213, 94, 0)),
    (&["thep", "ws-msq"], RGBColor(204, 121, 167)),
    (&["ff-the", "ws-lifo"], RGBColor(86, 180, 233)),
    (&["ff-cl", "kanal"], RGBColor(240, 208, 40)),
    (&["poach-join", "task-pool", "split-half"], RGBColor(70, 80, 160)),
    (&["chili", "flume", "st3-lifo"], RGBColor(150, 105, 30)),
    (&["ff-the-4", "crossbeam-seg-queue", "face-fifo"], RGBColor(130, 205, 175)),
    (&["mutex", "std-mpsc"], RGBColor(150, 50, 25)),
    (&["asymmetric-the", "crossbeam-array-queue", "face-lifo-batch"], RGBColor(160, 145, 225)),
    (&["asymmetric-cl", "crossbeam-injector"], RGBColor(130, 65, 120)),
    (&["private", "concurrent-queue"], RGBColor(190, 190, 190)),
    (&["thep-infinite", "poach-injector", "unfenced"], RGBColor(150, 165, 45)),
    (&["split-queue", "crossbeam-injector-batch", "array-fenced"], RGBColor(255, 140, 140)),
    (&["resolved", "crossbeam-channel-bounded"], RGBColor(0, 90, 80)),
    (&["ff-the-measured", "rtrb", "face-fifo-batch"], RGBColor(90, 90, 30)),
    (&["unfenced-the", "flume-bounded", "crossbeam-fifo"], RGBColor(245, 100, 180)),
    (&["idempotent-lifo", "kanal-bounded"], RGBColor(100, 60, 200)),
    (&["idempotent-deque", "salsa-displaced"], RGBColor(180, 130, 100)),
    (&["idempotent-fifo"], RGBColor(60, 200, 60)),
    (&["face-lifo", "salsa-full-fence"], RGBColor(60, 140, 240)),
    (&["std-sync-mpsc", "array"], RGBColor(40, 60, 60)),
];

/// The colour of a system: the same in every figure.
pub(super) fn colour(system: &str) -> RGBColor {
    // The dots of a litmus test.
    match system {
        "a round went wrong" => return RGBColor(213, 60, 0),
        "no round went wrong" => return RGBColor(0, 114, 178),
        _ => {}
    }
    if let Some((_, colour)) = COLOURS.iter().find(|(systems, _)| systems.contains(&system)) {
        return *colour;
    }
    // FNV-1a of the name, as a hue and a shade.
    let hash = system.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let (hue, shade) = ((hash >> 20) % 4096, (hash >> 40) % 256);
    let shade = 0.3 + 0.35 * shade as f64 / 256.0;
    let (r, g, b) = HSLColor(hue as f64 / 4096.0, 0.6, shade).to_backend_color().rgb;
    RGBColor(r, g, b)
}

/// The width of a figure in pixels: on paper and on a wide screen, and on a narrow one.
pub(super) const WIDTHS: [u32; 2] = [980, 350];

/// A figure at both widths.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Svg {
    pub(super) wide: String,
    pub(super) narrow: String,
}

impl Svg {
    /// The figure that `paint` makes of a width.
    pub(super) fn of(
        mut paint: impl FnMut(u32) -> Result<String, Box<dyn std::error::Error>>,
    ) -> Result<Svg, Box<dyn std::error::Error>> {
        Ok(Svg { wide: paint(WIDTHS[0])?, narrow: paint(WIDTHS[1])? })
    }
}

/// A figure that is drawn.
pub(super) struct Drawn {
    /// The paper's figure that it is of; none if it is of a suite.
    pub(super) of: Option<&'static str>,
    /// The suite of its rows.
    pub(super) suite: String,
    /// Its file.
    pub(super) name: String,
    pub(super) svg: Svg,
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

pub(super) const TEXT: (&str, u32) = ("sans-serif", 15);
const TITLE: (&str, u32) = ("sans-serif", 18);
/// What a letter of the text is wide, at most, and one of the title.
pub(super) const LETTER: u32 = 8;
const TITLE_LETTER: u32 = 10;
/// The height of a line.
const LINE: u32 = 21;
/// To the left of it all, and to the right.
const INDENT: u32 = 12;

/// What stands above a figure: its title, what its axis and its whiskers are, and the names of its
/// systems.
pub(super) struct Head {
    title: Vec<String>,
    notes: Vec<String>,
    legend: Vec<(String, RGBColor, u32, u32)>,
}

impl Head {
    pub(super) fn new(width: u32, title: &str, notes: &[&str], systems: &[&str]) -> Self {
        let room = width - 2 * INDENT;
        let title = wrap(title, (room / TITLE_LETTER) as usize);
        let notes: Vec<String> =
            notes.iter().flat_map(|note| wrap(note, (room / (LETTER - 1)) as usize)).collect();
        let (mut x, mut line) = (0, 0);
        let mut legend = Vec::new();
        for system in systems {
            let wide = 34 + LETTER * system.len() as u32;
            if x > 0 && x + wide > room {
                (x, line) = (0, line + 1);
            }
            legend.push(((*system).to_owned(), colour(system), x, line));
            x += wide;
        }
        Head { title, notes, legend }
    }

    pub(super) fn height(&self) -> u32 {
        let legend = self.legend.last().map_or(0, |(_, _, _, line)| line + 1);
        16 + LINE * (self.title.len() as u32 + self.notes.len() as u32 + legend)
    }

    pub(super) fn draw(
        &self,
        area: &DrawingArea<SVGBackend<'_>, Shift>,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let left = INDENT as i32;
        let mut y = 10;
        for line in &self.title {
            area.draw(&Text::new(line.clone(), (left, y), TITLE))?;
            y += LINE as i32;
        }
        for line in &self.notes {
            area.draw(&Text::new(line.clone(), (left, y), TEXT))?;
            y += LINE as i32;
        }
        for (system, colour, x, line) in &self.legend {
            let (x, y) = (left + *x as i32, y + (LINE * line) as i32 + 2);
            area.draw(&Rectangle::new([(x, y), (x + 12, y + 12)], colour.filled()))?;
            area.draw(&Text::new(system.clone(), (x + 17, y - 1), TEXT))?;
        }
        Ok(())
    }
}

/// Breaks a text into lines of at most `letters` letters, where its words allow.
fn wrap(text: &str, letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= letters => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_goes_on_in_the_next_line() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("unbreakable", 4), ["unbreakable"]);
        let many = ["a-system-of-a-long-name"; 9];
        let head = Head::new(WIDTHS[0], "title", &[], &many);
        assert!(head.legend.iter().all(|(_, _, x, _)| x + 34 + LETTER * 23 <= WIDTHS[0]));
        assert_eq!(head.legend.last().map(|place| place.3), Some(2));
        assert!(Head::new(WIDTHS[1], "title", &[], &many).height() > head.height());
    }
}
