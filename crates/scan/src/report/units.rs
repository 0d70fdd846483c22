//! Numbers for people.

/// A number of bytes to three digits or more: `0 B`, `999 B`, `1.00 KiB`, `23.4 MiB`, `1023 GiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // What would be rounded up to 1024 belongs to the next unit.
    while value >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(value < 9.995) + usize::from(value < 99.95);
    format!("{value:.digits$} {}", UNITS[unit])
}

/// A count with its thousands apart: `1,234,567`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_three_digits() {
        let pairs = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (10_234, "9.99 KiB"),
            (10_240, "10.0 KiB"),
            (102_400, "100 KiB"),
            (1_048_063, "1023 KiB"),
            (1_048_064, "1.00 MiB"),
            (5 << 40, "5.00 TiB"),
            (u64::MAX, "16.0 EiB"),
        ];
        for (number, shown) in pairs {
            assert_eq!(bytes(number), shown, "{number}");
        }
    }

    #[test]
    fn thousands_stand_apart() {
        for (number, shown) in [(0, "0"), (999, "999"), (1000, "1,000"), (123_456, "123,456")] {
            assert_eq!(count(number), shown);
        }
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
    }
}
