//! Order statistics of a handful of samples.
//!
//! Medians and percentiles, for timings are bounded below and have a long tail: a mean would mostly
//! tell of the noise. A percentile between two samples is interpolated linearly (the definition that
//! R calls type 7, and the default of `NumPy`).

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
