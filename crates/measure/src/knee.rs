//! Finding a knee: two straight lines and the place where the one ends and the other begins.
//!
//! A sweep has samples of a time for each length 1, 2, .. The samples of a length are reduced to
//! their lower quartile: interference only ever adds time, in bursts, so the lower part of a
//! distribution moves least. A running median of three takes out single outliers and leaves every
//! step and every ramp where it was.
//!
//! The model is `a + b n` up to the knee and `c + d n` after it, the two free of each other, so
//! that a step, a bend and both together are all knees. Least squares over each place for the knee
//! (prefix sums: constant time a place) gives the best one. It counts only if
//!
//! - two lines leave less than half the square error that one line leaves: a curve or a slope has
//!   no knee;
//! - the second line lies above the first one's continuation by more than six times the residual
//!   noise, and by a fiftieth of the level: a wiggle is none;
//! - what the first line rises by is less than half of what lies above it: before a knee runs are
//!   free;
//! - most bootstrap resamples of the samples have it at that same length. That share is the
//!   confidence.

use serde::{Serialize, Serializer};

/// The shortest stretch that a line is fitted to.
const STRETCH: usize = 6;
/// Bootstrap resamples.
const RESAMPLES: usize = 200;
/// The least share of resamples that must agree.
const AGREEMENT: f64 = 0.5;

/// Times by length.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// Those of length `n` are at `n - 1`, each list sorted.
    samples: Vec<Vec<f64>>,
}

/// A knee.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Knee {
    /// The last length before the times rise.
    pub at: u64,
    /// The share of bootstrap resamples that have it at this length.
    pub confidence: f64,
    /// The least and the greatest length that the middle 95 % of resamples have it at.
    pub between: (u64, u64),
    /// The time up to the knee, in the unit of the samples.
    pub before: f64,
    /// By how much the time jumps just after it.
    pub jump: f64,
    /// By how much each further store adds to it.
    pub slope: f64,
}

/// What a sweep says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// There is a knee.
    Knee(Knee),
    /// There is none that can be relied on.
    None {
        /// Why not.
        why: String,
    },
}

/// Each length's level: what a document keeps of a sweep.
impl Serialize for Sweep {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rounded = |value: f64| (value * 100.0).round() / 100.0;
        serializer.collect_seq(self.levels().into_iter().map(rounded))
    }
}

impl Sweep {
    /// A sweep with the samples of length `n` at `n - 1`.
    pub fn new(mut samples: Vec<Vec<f64>>) -> Sweep {
        for of_length in &mut samples {
            of_length.sort_by(f64::total_cmp);
        }
        Sweep { samples }
    }

    /// Each length's lower quartile.
    pub fn levels(&self) -> Vec<f64> {
        self.samples.iter().map(|of_length| lower_quartile(of_length)).collect()
    }

    /// The knee, or why there is none. The `seed` is the bootstrap's.
    pub fn knee(&self, seed: u64) -> Finding {
        match self.find(seed) {
            Ok(knee) => Finding::Knee(knee),
            Err(why) => Finding::None { why },
        }
    }

    fn find(&self, seed: u64) -> Result<Knee, String> {
        if self.samples.len() < 2 * STRETCH || self.samples.iter().any(Vec::is_empty) {
            return Err("there are too few lengths, or a length without samples".to_owned());
        }
        let levels = self.levels();
        // Checked before anything compares them.
        if self.samples.iter().flatten().any(|time| !time.is_finite()) {
            return Err("a time is not a number".to_owned());
        }
        let levels = smooth(&levels);
        let fit = Fit::best(&levels);
        fit.judge(&levels)?;
        let mut random = fastrand::Rng::with_seed(seed);
        let mut places: Vec<usize> =
            (0..RESAMPLES).map(|_| Fit::best(&smooth(&self.resample(&mut random))).at).collect();
        places.sort_unstable();
        let agreeing = places.iter().filter(|place| **place == fit.at).count();
        let confidence = agreeing as f64 / RESAMPLES as f64;
        let (low, high) = (places[RESAMPLES / 40], places[RESAMPLES - 1 - RESAMPLES / 40]);
        if confidence < AGREEMENT {
            return Err(format!(
                "the times are too noisy: of {RESAMPLES} resamples {agreeing} have the knee at {}, the \
                 others between {low} and {high}",
                fit.at
            ));
        }
        let next = fit.at + 1;
        Ok(Knee {
            at: fit.at as u64,
            confidence,
            between: (low as u64, high as u64),
            before: fit.before.at(fit.at),
            jump: fit.after.at(next) - fit.before.at(next),
            slope: fit.after.slope,
        })
    }

    fn resample(&self, random: &mut fastrand::Rng) -> Vec<f64> {
        let mut drawn = Vec::new();
        let one = |of_length: &Vec<f64>| {
            drawn.clear();
            drawn.extend((0..of_length.len()).map(|_| of_length[random.usize(..of_length.len())]));
            let quarter = drawn.len() / 4;
            *drawn.select_nth_unstable_by(quarter, f64::total_cmp).1
        };
        self.samples.iter().map(one).collect()
    }
}

fn lower_quartile(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 4).copied().unwrap_or(f64::NAN)
}

/// The running median of three; the ends as they are.
fn smooth(values: &[f64]) -> Vec<f64> {
    let mut smoothed = values.to_vec();
    for (at, window) in values.windows(3).enumerate() {
        let (low, high) = (window[0].min(window[1]), window[0].max(window[1]));
        smoothed[at + 1] = window[2].clamp(low, high);
    }
    smoothed
}

#[derive(Clone, Copy, Debug)]
struct Line {
    start: f64,
    slope: f64,
}

impl Line {
    fn at(self, length: usize) -> f64 {
        self.start + self.slope * length as f64
    }
}

/// Sums over a prefix of lengths: of x, x squared, y, y squared, and x y.
#[derive(Clone, Copy, Default)]
struct Sums {
    count: f64,
    x: f64,
    xx: f64,
    y: f64,
    yy: f64,
    xy: f64,
}

impl Sums {
    fn with(self, x: f64, y: f64) -> Sums {
        Sums {
            count: self.count + 1.0,
            x: self.x + x,
            xx: self.xx + x * x,
            y: self.y + y,
            yy: self.yy + y * y,
            xy: self.xy + x * y,
        }
    }

    fn without(self, prefix: Sums) -> Sums {
        Sums {
            count: self.count - prefix.count,
            x: self.x - prefix.x,
            xx: self.xx - prefix.xx,
            y: self.y - prefix.y,
            yy: self.yy - prefix.yy,
            xy: self.xy - prefix.xy,
        }
    }

    /// The line of least squares, and the square error that it leaves.
    fn line(self) -> (Line, f64) {
        let spread = self.xx - self.x * self.x / self.count;
        let common = self.xy - self.x * self.y / self.count;
        let slope = if spread > 0.0 { common / spread } else { 0.0 };
        let start = (self.y - slope * self.x) / self.count;
        let error = self.yy - self.y * self.y / self.count - slope * common;
        (Line { start, slope }, error.max(0.0))
    }
}

struct Fit {
    /// The last length of the first line.
    at: usize,
    before: Line,
    after: Line,
    error: f64,
    error_of_one_line: f64,
}

impl Fit {
    /// The best two lines. There are at least `2 * STRETCH` values.
    fn best(values: &[f64]) -> Fit {
        // Centred, or the sums of squares would cancel to nothing but rounding.
        let centre = values.iter().sum::<f64>() / values.len() as f64;
        let mut prefixes = vec![Sums::default()];
        for (at, value) in values.iter().enumerate() {
            prefixes.push(prefixes[at].with((at + 1) as f64, value - centre));
        }
        let all = prefixes[values.len()];
        let error_of_one_line = all.line().1;
        let two = |at: usize| {
            let (before, left) = prefixes[at].line();
            let (after, right) = all.without(prefixes[at]).line();
            Fit { at, before, after, error: left + right, error_of_one_line }
        };
        let mut best = two(STRETCH);
        for at in STRETCH + 1..=values.len() - STRETCH {
            let fit = two(at);
            if fit.error < best.error {
                best = fit;
            }
        }
        best.before.start += centre;
        best.after.start += centre;
        best
    }

    fn judge(&self, values: &[f64]) -> Result<(), String> {
        if self.error > self.error_of_one_line / 2.0 || self.error_of_one_line <= 0.0 {
            return Err(format!(
                "up to {} stores the times lie on one line as well as on two",
                values.len()
            ));
        }
        let last = values.len();
        let noise = (self.error / last as f64).sqrt();
        let middle = usize::midpoint(self.at, last);
        let above = self.after.at(middle) - self.before.at(middle);
        let level = self.before.at(self.at);
        if above < 6.0 * noise || above < level / 50.0 {
            return Err(format!(
                "after {} stores the times differ, but by no more than noise ({above:.1} at a level of \
                 {level:.1})",
                self.at
            ));
        }
        let rise = (self.before.slope * (self.at - 1) as f64).abs();
        if rise > above / 2.0 {
            return Err(format!(
                "the times rise from the first store on ({rise:.1} up to {} stores, and {above:.1} after \
                 them), as where stores are emulated",
                self.at
            ));
        }
        Ok(())
    }
}
