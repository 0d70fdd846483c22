//! Samples of a measurement.

/// The value below which the share `of` of the samples lies.
pub(crate) fn quantile(samples: &[f64], of: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * of).round() as usize]
}

pub(crate) fn median(samples: &[f64]) -> f64 {
    quantile(samples, 0.5)
}
