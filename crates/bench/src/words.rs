//! How tables, figures and pages say a number.

/// A number of workers, in words: `1 worker`.
pub fn workers(count: usize) -> String {
    format!("{count} worker{}", if count == 1 { "" } else { "s" })
}

/// A value with three or four digits that say something.
pub(crate) fn figure(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { 3 - value.abs().log10().floor() as i32 };
    format!("{value:.*}", usize::try_from(digits.clamp(0, 9)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1.000"),
            (0.012_345, "0.01235"),
            (123_456.0, "123456"),
            (98.76, "98.76"),
        ] {
            assert_eq!(figure(value), text);
        }
    }
}
