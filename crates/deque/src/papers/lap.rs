//! The heartbeats of [`thep`](crate::thep), which come back after 2^32, and the echo of one, which
//! may stay.

/// No heartbeat: they have 32 bits.
pub(crate) const SILENT: u64 = u64::MAX;

/// Heartbeats after which thieves look whether they are about to reach the echo.
const LAP: u32 = 1 << 16;

/// The heartbeat after `last`, and not that of the echo. The echo is looked at once a lap: an echo
/// that lies within the lap that begins is stepped over, and so is all that comes before it.
#[inline(always)]
pub(crate) fn beat_after(last: u32, echo: impl FnOnce() -> u64) -> u32 {
    let next = last.wrapping_add(1);
    if next % LAP == 0 { step_over(next, echo()) } else { next }
}

#[cold]
#[inline(never)]
fn step_over(next: u32, echo: u64) -> u32 {
    match u32::try_from(echo) {
        Ok(echo) if echo.wrapping_sub(next) < LAP => echo.wrapping_add(1),
        _ => next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `count` heartbeats after `last`, with an echo that stays.
    fn beats(last: u32, echo: u64, count: u32) -> impl Iterator<Item = u32> {
        let mut last = last;
        (0..count).map(move |_| {
            last = beat_after(last, || echo);
            last
        })
    }

    #[test]
    fn an_echo_that_stays_is_never_met() {
        // Anywhere in a lap, at its ends, and where heartbeats wrap around.
        let (laps, beaten): (&[u32], _) = if cfg!(miri) {
            (&[u32::MAX - (LAP - 1)], LAP + 2)
        } else {
            (&[0, LAP, 7 * LAP, u32::MAX - (LAP - 1)], 3 * LAP)
        };
        for &lap in laps {
            for echo in [lap, lap + 1, lap + LAP / 2, lap + (LAP - 2), lap + (LAP - 1)] {
                let mut met = beats(lap.wrapping_sub(1), echo.into(), beaten);
                assert!(met.all(|beat| beat != echo), "{echo:#x} was met");
            }
        }
    }

    #[test]
    fn an_echo_of_late_or_of_another_lap_skips_nothing() {
        for echo in [SILENT, u64::from(7 * LAP) - 1, u64::from(8 * LAP)] {
            assert!(beats(7 * LAP - 1, echo, 100).eq(7 * LAP..7 * LAP + 100));
        }
    }
}
