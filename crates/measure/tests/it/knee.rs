//! The knee of made-up and of recorded times.

#![forbid(unsafe_code)]

use poach_measure::capacity::{Capacity, Measured, Pattern};
use poach_measure::knee::{Finding, Knee, Sweep};

/// Samples about a curve, with noise and with bursts that only ever add time.
fn sweep(seed: u64, noise: f64, bursts: f64, curve: impl Fn(usize) -> f64) -> Sweep {
    let mut random = fastrand::Rng::with_seed(seed);
    let samples = (1..=160).map(|length| {
        (0..31)
            .map(|_| {
                let burst = if random.f64() < bursts { 80.0 * random.f64() } else { 0.0 };
                curve(length) + noise * (random.f64() - 0.5) + burst
            })
            .collect()
    });
    Sweep::new(samples.collect())
}

fn knee(sweep: &Sweep) -> Knee {
    match sweep.knee(7) {
        Finding::Knee(knee) => knee,
        Finding::None { why } => panic!("no knee: {why}"),
    }
}

fn stall(at: usize, jump: f64, slope: f64) -> impl Fn(usize) -> f64 {
    move |length| 147.0 + if length > at { jump + slope * (length - at) as f64 } else { 0.0 }
}

#[test]
fn a_step_is_found_where_it_is() {
    for at in [12, 32, 42, 56, 104, 140] {
        for seed in 0..5 {
            let found = knee(&sweep(seed, 1.0, 0.2, stall(at, 5.0, 0.23)));
            assert_eq!(found.at, at as u64, "seed {seed}");
            assert!(found.confidence > 0.9, "seed {seed}: {found:?}");
        }
    }
}

#[test]
fn a_bend_without_a_step_is_found_too() {
    for seed in 0..5 {
        let found = knee(&sweep(seed, 0.5, 0.1, stall(32, 0.0, 1.5)));
        assert!(found.at.abs_diff(32) <= 1, "seed {seed}: {found:?}");
    }
}

#[test]
fn there_is_no_knee_in_a_level_a_slope_or_noise() {
    let none = |sweep: Sweep, what: &str| {
        assert!(matches!(sweep.knee(7), Finding::None { .. }), "{what}: {:?}", sweep.knee(7));
    };
    for seed in 0..5 {
        none(sweep(seed, 1.0, 0.2, |_| 147.0), "level");
        none(sweep(seed, 1.0, 0.2, |length| 20.0 + 1.1 * length as f64), "slope");
        none(sweep(seed, 200.0, 0.9, |_| 147.0), "noise");
        none(sweep(seed, 1.0, 0.2, |length| 20.0 + 0.01 * (length * length) as f64), "curve");
    }
}

#[test]
fn times_that_make_no_sense_are_no_knee() {
    for samples in [vec![], vec![vec![1.0]; 5], vec![vec![]; 40], vec![vec![f64::NAN]; 40]] {
        assert!(matches!(Sweep::new(samples).knee(1), Finding::None { .. }));
    }
}

/// Levels recorded on an EPYC of family 0x1a (documented: 104 entries), in tenths of a nanosecond,
/// lengths 90 to 121; before them the level is the same throughout.
const RECORDED: [u32; 32] = [
    1468, 1468, 1469, 1468, 1470, 1468, 1468, 1469, 1468, 1468, 1470, 1468, 1468, 1469, 1468, 1520,
    1521, 1523, 1520, 1522, 1526, 1528, 1529, 1532, 1535, 1541, 1543, 1546, 1550, 1553, 1555, 1556,
];

#[test]
fn a_recorded_sweep_has_its_processors_capacity() {
    let tenths = std::iter::repeat_n(1468, 89).chain(RECORDED);
    let sweep = Sweep::new(tenths.map(|tenths| vec![f64::from(tenths) / 10.0; 3]).collect());
    assert_eq!(knee(&sweep).at, 104);
}

fn conclude(lines: Sweep, control: Sweep) -> Capacity {
    let of = |pattern, sweep: Sweep| Measured { pattern, finding: sweep.knee(7), sweep };
    Capacity::conclude(vec![of(Pattern::Lines, lines), of(Pattern::None, control)])
}

#[test]
fn a_knee_that_runs_without_stores_have_too_is_no_capacity() {
    let step = |at| sweep(1, 1.0, 0.1, stall(at, 5.0, 0.2));
    let level = sweep(2, 1.0, 0.1, |_| 147.0);
    assert_eq!(conclude(step(104), level).entries, Some(104));
    assert_eq!(conclude(step(104), step(130)).entries, Some(104));
    let other = conclude(step(104), step(100));
    assert_eq!(other.entries, None);
    assert!(other.why_not.is_some_and(|why| why.contains("something other")));
}
