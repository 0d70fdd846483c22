//! Order statistics of a handful of samples.
//!
//! Medians and percentiles, for timings are bounded below and have a long tail: a mean would mostly
//! tell of the noise. A percentile between two samples is interpolated linearly (the definition
//! that R calls type 7, and the default of `NumPy`).

/// What a row says of its samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The least sample.
    pub min: f64,
    /// The sample in the middle.
    pub median: f64,
    /// A tenth of the samples are below.
    pub p10: f64,
    /// A tenth of the samples are above.
    pub p90: f64,
}

impl Summary {
    /// The summary of `samples`, or `None` if there are none.
    ///
    /// # Panics
    ///
    /// If a sample is not a number.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(|a, b| a.partial_cmp(b).expect("a sample is a number"));
        Some(Summary {
            min: *sorted.first()?,
            median: percentile(&sorted, 0.5),
            p10: percentile(&sorted, 0.1),
            p90: percentile(&sorted, 0.9),
        })
    }
}

/// The value below which a `share` (0 to 1) of the samples lies.
///
/// # Panics
///
/// If `sorted` is empty or `share` is outside of 0 to 1.
pub fn percentile(sorted: &[f64], share: f64) -> f64 {
    assert!((0.0..=1.0).contains(&share), "a share is between 0 and 1, not {share}");
    let at = share * (sorted.len() - 1) as f64;
    let below = at.floor() as usize;
    let above = at.ceil() as usize;
    sorted[below] + (sorted[above] - sorted[below]) * (at - at.floor())
}

/// How two rows compare: the ratio of their medians, and where it lies with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The median of the one over that of the other.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Ratio {
    /// The ratio the other way round.
    #[must_use]
    pub fn inverse(self) -> Self {
        Ratio { value: 1.0 / self.value, low: 1.0 / self.high, high: 1.0 / self.low }
    }
}

/// How often a bootstrap draws.
const DRAWS: usize = 500;
/// The fewest samples with an interval.
const LEAST: usize = 4;

/// The ratio of the median of `ours` to that of `base`, with the interval that a bootstrap gives.
/// It draws the same number of samples anew, with replacement, 500 times; 2.5 % of the ratios lie
/// below the interval and 2.5 % above.
///
/// `paired` says that the samples at one index were taken in one round: they are then drawn
/// together, so that what slowed all systems of a round is no difference between them. With fewer
/// than four samples the interval is the value.
///
/// `None` if there are none, or if the median of `base` is not positive.
pub fn ratio(ours: &[f64], base: &[f64], paired: bool) -> Option<Ratio> {
    let (mut ours_drawn, mut base_drawn) = (ours.to_vec(), base.to_vec());
    let value = quotient(&mut ours_drawn, &mut base_drawn)?;
    let mut result = Ratio { value, low: value, high: value };
    if ours.len().min(base.len()) < LEAST {
        return Some(result);
    }
    // The same rows have the same interval, whenever it is asked for.
    let mut random = fastrand::Rng::with_seed(1);
    let mut ratios = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        if paired && ours.len() == base.len() {
            for (one, other) in ours_drawn.iter_mut().zip(&mut base_drawn) {
                let at = random.usize(..ours.len());
                (*one, *other) = (ours[at], base[at]);
            }
        } else {
            ours_drawn.fill_with(|| ours[random.usize(..ours.len())]);
            base_drawn.fill_with(|| base[random.usize(..base.len())]);
        }
        ratios.extend(quotient(&mut ours_drawn, &mut base_drawn));
    }
    ratios.sort_by(f64::total_cmp);
    if !ratios.is_empty() {
        result.low = percentile(&ratios, 0.025).min(value);
        result.high = percentile(&ratios, 0.975).max(value);
    }
    Some(result)
}

/// The median of the one over that of the other; both are sorted by it.
fn quotient(ours: &mut [f64], base: &mut [f64]) -> Option<f64> {
    ours.sort_by(f64::total_cmp);
    base.sort_by(f64::total_cmp);
    if ours.is_empty() || base.is_empty() {
        return None;
    }
    let below = percentile(base, 0.5);
    (below > 0.0).then(|| percentile(ours, 0.5) / below)
}

/// The geometric mean: the mean of ratios.
///
/// `None` if there are none, or if one is not positive.
pub fn geometric_mean(ratios: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut logarithms, mut count) = (0.0, 0u32);
    for ratio in ratios {
        if ratio.is_nan() || ratio <= 0.0 {
            return None;
        }
        logarithms += ratio.ln();
        count += 1;
    }
    (count > 0).then(|| (logarithms / f64::from(count)).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-12 * b.abs().max(1.0)
    }

    #[test]
    fn of_known_data() {
        // By hand, from the definition: the sample at 1 + share * (n - 1), counted from 1.
        let data = [15.0, 20.0, 35.0, 40.0, 50.0];
        assert!(close(percentile(&data, 0.4), 29.0));
        let summary = Summary::of(&data).unwrap();
        assert!(close(summary.min, 15.0));
        assert!(close(summary.p10, 17.0));
        assert!(close(summary.median, 35.0));
        assert!(close(summary.p90, 46.0));

        let data = [0.3, 0.1, 0.4, 0.15, 0.92, 0.65];
        let summary = Summary::of(&data).unwrap();
        assert!(close(summary.p10, 0.125));
        assert!(close(summary.median, 0.35));
        assert!(close(summary.p90, 0.785));
    }

    #[test]
    fn of_one_sample_and_of_none() {
        let one = Summary::of(&[7.0]).unwrap();
        assert_eq!(one, Summary { min: 7.0, median: 7.0, p10: 7.0, p90: 7.0 });
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    #[should_panic(expected = "a sample is a number")]
    fn of_something_that_is_no_number() {
        let _ = Summary::of(&[1.0, f64::NAN]);
    }

    #[test]
    fn a_ratio_of_pairs_leaves_out_what_slowed_both() {
        // Each round is slower than the last, and ours takes twice as long in each.
        let base: Vec<f64> = (1..=11).map(f64::from).collect();
        let ours: Vec<f64> = base.iter().map(|value| 2.0 * value).collect();
        let paired = ratio(&ours, &base, true).unwrap();
        assert_eq!(paired, Ratio { value: 2.0, low: 2.0, high: 2.0 });
        let apart = ratio(&ours, &base, false).unwrap();
        assert!(close(apart.value, 2.0) && apart.low < 1.5 && apart.high > 2.5, "{apart:?}");
        assert!(close(apart.inverse().low, 1.0 / apart.high));
        assert_eq!(ratio(&ours, &base, false), Some(apart));
    }

    #[test]
    fn an_interval_of_known_noise() {
        // Of 11 samples of which one is an outlier, the median and its interval do not see it.
        let mut ours = vec![1.0; 10];
        ours.push(1000.0);
        let seen = ratio(&ours, &[2.0; 11], true).unwrap();
        assert_eq!(seen, Ratio { value: 0.5, low: 0.5, high: 0.5 });
        // With three samples nothing is known of the noise.
        let few = ratio(&[1.0, 2.0, 3.0], &[1.0, 1.0, 1.0], true).unwrap();
        assert_eq!((few.low, few.high), (2.0, 2.0));
        assert_eq!(ratio(&[], &[1.0], true), None);
        assert_eq!(ratio(&[1.0], &[0.0], true), None);
    }

    #[test]
    fn mean_of_ratios() {
        assert!(close(geometric_mean([2.0, 8.0]).unwrap(), 4.0));
        assert!(close(geometric_mean([0.5, 2.0]).unwrap(), 1.0));
        assert_eq!(geometric_mean([]), None);
        assert_eq!(geometric_mean([1.0, 0.0]), None);
        assert_eq!(geometric_mean([f64::NAN]), None);
    }

    proptest! {
        #[test]
        fn order_does_not_matter_and_the_order_holds(
            mut samples in proptest::collection::vec(0.0f64..1e9, 1..40)
        ) {
            let summary = Summary::of(&samples).unwrap();
            prop_assert!(summary.min <= summary.p10);
            prop_assert!(summary.p10 <= summary.median);
            prop_assert!(summary.median <= summary.p90);
            samples.reverse();
            prop_assert_eq!(Summary::of(&samples).unwrap(), summary);
        }
    }
}
