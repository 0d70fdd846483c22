//! Numbers for people.

/// What numbers of bytes are shown in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Units {
    /// Powers of 1024: `KiB`, `MiB` and so on.
    #[default]
    Binary,
    /// Powers of 1000: `kB`, `MB` and so on.
    Si,
    /// Bytes.
    Plain,
}

impl Units {
    /// A number of bytes, to three digits or more but where they are plain: `1.00 KiB`, `1.02 kB`,
    /// `1,024 B`.
    pub fn show(self, number: u64) -> String {
        match self {
            Units::Binary => bytes(number),
            Units::Si => scaled(number, 1000, ["kB", "MB", "GB", "TB", "PB", "EB"]),
            Units::Plain => format!("{} B", count(number)),
        }
    }
}

/// A number of bytes to three digits or more: `0 B`, `999 B`, `1.00 KiB`, `23.4 MiB`, `1023 GiB`.
pub fn bytes(bytes: u64) -> String {
    scaled(bytes, 1024, ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"])
}

fn scaled(bytes: u64, base: u16, units: [&str; 6]) -> String {
    if bytes < u64::from(base) {
        return format!("{bytes} B");
    }
    let base = f64::from(base);
    let mut value = bytes as f64 / base;
    let mut unit = 0;
    // What would be rounded up to the base belongs to the next unit.
    while value >= base - 0.5 && unit + 1 < units.len() {
        value /= base;
        unit += 1;
    }
    let digits = usize::from(value < 9.995) + usize::from(value < 99.95);
    format!("{value:.digits$} {}", units[unit])
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
    fn the_units_are_those_asked_for() {
        let shown = [999, 1000, 1023, 999_500, 123_456_789, u64::MAX].map(|it| Units::Si.show(it));
        assert_eq!(shown, ["999 B", "1.00 kB", "1.02 kB", "1.00 MB", "123 MB", "18.4 EB"]);
        assert_eq!(Units::Plain.show(1_234_567), "1,234,567 B");
        assert_eq!(Units::Binary.show(1536), bytes(1536));
    }

    #[test]
    fn thousands_stand_apart() {
        for (number, shown) in [(0, "0"), (999, "999"), (1000, "1,000"), (123_456, "123,456")] {
            assert_eq!(count(number), shown);
        }
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
    }
}
