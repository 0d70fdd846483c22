//! What the papers claim, and what the rows of a document say of it: a claim in the papers, theirs, ours, its interval, and why
//! they differ. All numbers of ours are made from the rows.

use super::catalog::{CILK, CLOSURES, LACE};
use crate::words::figure;
use crate::{Document, Ratio, Row};

/// A claim of a paper beside what was measured.
pub(super) struct Claim {
    /// The figure that shows it.
    pub(super) figure: &'static str,
    pub(super) what: &'static str,
    pub(super) theirs: &'static str,
    pub(super) ours: String,
    pub(super) interval: String,
    pub(super) why: &'static str,
}

/// What rows say: the value, and its interval.
type Said = Option<(String, String)>;

const CORES: &str = "2 virtual processors of one package here, so little contention and short ways between caches; the papers had 4 to 48 cores";
const PROCESSOR: &str =
    "another processor: what a fence costs, beside the rest of a program, is another share";
const SIMULATED: &str = "simulated: caches, links and store buffers of the paper's machine, but no operating system, no bandwidth limit of a core";

/// The claims that `document` has rows of.
pub(super) fn claims(document: &Document) -> Vec<Claim> {
    let d = document;
    let mut claims = Vec::new();
    let mut add = |figure, what, theirs, why, said: Said| {
        if let Some((ours, interval)) = said {
            claims.push(Claim { figure, what, theirs, ours, interval, why });
        }
    };
    let one = |suite, programs, system, base| mean(d, suite, programs, system, base, 1);
    add(
        "fence-1",
        "the fence in pop, one worker: time without it over THE",
        "down to 0.75",
        PROCESSOR,
        one("fork-join", &CILK, "unfenced-the", "the"),
    );
    add(
        "fence-1",
        "the same, with an asymmetric fence in its place",
        "not in the paper",
        "this policy has no fence in pop, and tests its policy there",
        one("fork-join", &CILK, "asymmetric-the", "the"),
    );
    add(
        "fence-7",
        "entries of the store buffer, by stores to distinct lines",
        "32 (Westmere-EX) and 42 (Haswell), as documented",
        "another processor; AMD documents 64 for Zen 4 and 104 for Zen 5",
        value(d, "processor", "store-buffer", "lines", 1),
    );
    add(
        "fence-8",
        "stores that a load may overtake",
        "33 on Westmere-EX: the entries and one more",
        "stores that left the buffer wait for their line in the cache; a search of few rounds sees less than there is",
        value(d, "processor", "litmus", "ff-the", 2),
    );
    let most = most(d, "fork-join");
    let all = |programs, system, base| mean(d, "fork-join", programs, system, base, most);
    add(
        "fence-10",
        "THEP over THE, Cilk's programs, all processors",
        "0.93 (Westmere-EX, 10 threads) and 0.89 (Haswell, 4), 0.77 at best",
        PROCESSOR,
        all(&CILK, "thep", "the"),
    );
    for (system, theirs) in [
        ("ff-the", "6 of 11 with the default delta"),
        ("ff-the-measured", "6 of 11 with the default delta"),
        ("ff-the-4", "lud alone with a delta of 4"),
    ] {
        add(
            "fence-10",
            "FF-THE's thieves get nothing from programs with few tasks in a queue",
            theirs,
            "the bound here is greater than Haswell's, so thieves keep farther away; inputs differ",
            none_stolen(d, system, most),
        );
    }
    let most = self::most(d, "graphs");
    for (programs, claim, theirs) in [
        (&CLOSURES[..], "FF-CL over Chase-Lev, transitive closure", "0.83 on average"),
        (&CLOSURES[2..], "FF-CL over Chase-Lev, transitive closure of the torus", "about 0.67"),
    ] {
        add(
            "fence-11a",
            claim,
            theirs,
            PROCESSOR,
            mean(d, "graphs", programs, "ff-cl", "chase-lev", most),
        );
    }
    add(
        "fence-11b",
        "tasks stolen from FF-CL, transitive closure, percent",
        "few, and not none",
        CORES,
        stolen(d, "ff-cl", most),
    );
    let most = self::most(d, "fork-join");
    for (program, theirs) in [
        ("fib", "T_48 34.9"),
        ("uts-t2l", "T_48 47.4"),
        ("uts-t3l", "T_48 19.9"),
        ("queens", "T_48 47.7"),
        ("matmul", "T_48 47.5"),
    ] {
        let said = speed_up(d, "fork-join", program, "split", most);
        let said = said.map(|(ours, interval)| (format!("{program}: {ours}"), interval));
        add("lace-5", "speed-up of the split deque over its own one worker", theirs, CORES, said);
    }
    add(
        "lace-5",
        "one worker of the split deque over the sequential program",
        "0.97 (fib) to 1.13 (queens)",
        "the paper's compiler kept its fork out of line, and its programs had larger tasks",
        over_sequential(d, &LACE),
    );
    add(
        "lace-5",
        "split over private deques, Lace's programs, all workers",
        "0.79 to 1.11",
        CORES,
        mean(d, "fork-join", &LACE, "split-queue", "private", most),
    );
    add(
        "lace-7",
        "steals of fib",
        "865 on 48 workers",
        CORES,
        counter(d, "fork-join", "fib", "split", most, "steals"),
    );
    for (system, theirs) in
        [("leapfrog", "19.9"), ("transitive", "37.8 (Wool)"), ("random", "38.3")]
    {
        let said = speed_up(d, "simulate", "lace-uts-t3l", system, 48);
        let said = said.map(|(ours, interval)| (format!("{system}: {ours}"), interval));
        add(
            "lace-8",
            "speed-up of uts-t3l on 48 workers, by the way of waiting",
            theirs,
            SIMULATED,
            said,
        );
    }
    for (base, theirs) in [
        ("ws-msq", "20 at 16/16"),
        ("ws-lifo", "20 at 16/16"),
        ("conc-bag", "more than 3.5 at 16/16"),
        ("salsa-cas", "1.7 at 16/16"),
    ] {
        let named =
            |said: Said| said.map(|(ours, interval)| (format!("{ours} times `{base}`"), interval));
        let here = over(d, "pool", "1p1c", "salsa", base, 2);
        add(
            "salsa-4a",
            "SALSA's throughput over the others', at 1/1 on this machine",
            theirs,
            CORES,
            named(here),
        );
        let there = over(d, "simulate", "balanced", "salsa", base, 32);
        add(
            "salsa-4a-simulated",
            "SALSA's throughput over the others', at 16/16",
            theirs,
            SIMULATED,
            named(there),
        );
    }
    for (workload, claim) in [
        ("3p1c", "SALSA over SALSA+CAS with three producers and one consumer"),
        ("1p3c", "SALSA over SALSA+CAS with one producer and three consumers"),
    ] {
        add(
            "salsa-4b",
            claim,
            "more than 1 at each ratio",
            "4 threads on 2 processors: who is not running is not fed, and a chunk's owner may be off its processor",
            over(d, "pool", workload, "salsa", "salsa-cas", 4),
        );
    }
    for (system, theirs) in [("salsa", "does not drop"), ("ws-msq", "drops by a factor of 10")] {
        let said = between(d, "pool", ("1p1c", 2), ("1p7c", 8), system);
        let said = said.map(|(ours, interval)| (format!("{system}: {ours}"), interval));
        add(
            "salsa-5a",
            "throughput of one producer with 7 consumers over that with one",
            theirs,
            "8 threads on 2 processors: consumers that find nothing take time slices from the producer",
            said,
        );
    }
    for (system, theirs) in [("salsa", "next to none"), ("ws-msq", "more than one")] {
        let said = counter(d, "pool", "1p7c", system, 8, "exchanges_per_task");
        let said = said.map(|(ours, interval)| (format!("{system}: {ours}"), interval));
        add(
            "salsa-5b",
            "compare-and-swaps for a task, one producer and 7 consumers",
            theirs,
            "as the paper says; a consumer that finds nothing counts too",
            said,
        );
    }
    add(
        "salsa-6",
        "SALSA over SALSA+CAS without balancing, one producer and 7 consumers",
        "clearly more than 1",
        CORES,
        over(d, "pool", "1p7c-unbalanced", "salsa", "salsa-cas", 8),
    );
    add(
        "salsa-7",
        "throughput of threads bound to processors over free ones, 2/2",
        "almost 1",
        "4 threads on 2 processors: the scheduler may not move a bound one to where there is time",
        between(d, "pool", ("2p2c", 4), ("2p2c-pinned", 4), "salsa"),
    );
    add(
        "salsa-8",
        "throughput with chunks of 1000 tasks over chunks of 128",
        "more than 1",
        CORES,
        systems(d, "2p2c-chunk", "salsa-1000", "salsa-128"),
    );
    add(
        "salsa-8",
        "ConcBag's throughput with chunks of 1000 over chunks of 128",
        "less than 1",
        CORES,
        systems(d, "2p2c-chunk", "conc-bag-1000", "conc-bag-128"),
    );
    let most = self::most(d, "walk");
    add(
        "phanes-1",
        "lock-free engine, cold over warm",
        "0.99 (Linux), 0.99 (Windows)",
        "their cold run is the first of a series, here the caches are dropped before each; and another disk",
        between(d, "walk", ("walk-warm", most), ("walk-cold", most), "lock-free"),
    );
    add(
        "phanes-2",
        "stealing from locked deques over lock-free ones, warm",
        "2.98 (Linux, 22 threads), 2.00 (Windows, 32 threads)",
        "2 processors here, where a lock is seldom fought over",
        over(d, "walk", "walk-warm", "mutex-stealing", "lock-free", most),
    );
    add(
        "phanes-2",
        "one thread over the lock-free engine, warm",
        "5.52 (Linux, 22 threads), 10.41 (Windows, 32 threads)",
        CORES,
        threads(d, most),
    );
    claims
}

/// The most workers that a suite has without more than the processors.
fn most(document: &Document, suite: &str) -> usize {
    let rows = document.rows.iter().filter(|row| row.suite == suite && !row.oversubscribed);
    rows.map(|row| row.workers).max().unwrap_or(1)
}

fn said(Ratio { low, value, high }: Ratio) -> (String, String) {
    let interval = if low < high {
        format!("{low:.3} to {high:.3}")
    } else {
        "none: too few samples, or all alike".to_owned()
    };
    (format!("{value:.3}"), interval)
}

/// One system over another in one workload.
fn over(
    d: &Document,
    suite: &str,
    workload: &str,
    system: &str,
    base: &str,
    workers: usize,
) -> Said {
    let row = |system| d.row(suite, workload, system, workers);
    row(system)?.over(row(base)?).map(said)
}

/// Of the geometric mean over programs: the intervals of the programs as if their errors were independent and their logarithms
/// normal.
fn mean(
    d: &Document,
    suite: &str,
    programs: &[&str],
    system: &str,
    base: &str,
    workers: usize,
) -> Said {
    let ratio = |program: &&str| {
        let row = |system| d.row(suite, program, system, workers);
        Some(((*program).to_owned(), row(system)?.over(row(base)?)?))
    };
    means(&programs.iter().filter_map(ratio).collect::<Vec<_>>())
}

fn means(ratios: &[(String, Ratio)]) -> Said {
    let best = ratios.iter().min_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    let count = ratios.len() as f64;
    let log = ratios.iter().map(|(_, ratio)| ratio.value.ln()).sum::<f64>() / count;
    let spread = |ratio: &Ratio| (ratio.high / ratio.low).ln() / 2.0;
    let half = ratios.iter().map(|(_, ratio)| spread(ratio).powi(2)).sum::<f64>().sqrt() / count;
    let ratio = Ratio { value: log.exp(), low: (log - half).exp(), high: (log + half).exp() };
    let (value, interval) = said(ratio);
    let best = format!("{:.3} at best ({})", best.1.value, best.0);
    Some((format!("{value} on average over {} programs, {best}", ratios.len()), interval))
}

fn over_sequential(d: &Document, programs: &[&str]) -> Said {
    let ratio = |program: &&str| {
        let row = d.row("fork-join", program, "split", 1)?;
        Some(((*program).to_owned(), row.over(d.sequential(row)?)?))
    };
    means(&programs.iter().filter_map(ratio).collect::<Vec<_>>())
}

/// One worker's time over that of so many.
fn speed_up(d: &Document, suite: &str, workload: &str, system: &str, workers: usize) -> Said {
    let row = |workers| d.row(suite, workload, system, workers);
    let (value, interval) = said(row(1)?.over(row(workers).filter(|_| workers > 1)?)?);
    Some((format!("{value} on {workers}"), interval))
}

/// One system in one workload over the same in another.
fn between(
    d: &Document,
    suite: &str,
    base: (&str, usize),
    with: (&str, usize),
    system: &str,
) -> Said {
    let row = |(workload, workers): (&str, usize)| d.row(suite, workload, system, workers);
    row(with)?.over(row(base)?).map(said)
}

fn systems(d: &Document, workload: &str, system: &str, base: &str) -> Said {
    over(d, "pool", workload, system, base, 4)
}

fn threads(d: &Document, workers: usize) -> Said {
    let one = d.row("walk", "walk-warm", "sequential", 1)?;
    one.over(d.row("walk", "walk-warm", "lock-free", workers)?).map(said)
}

/// A row's own value, from its least sample to its greatest.
fn value(d: &Document, suite: &str, workload: &str, system: &str, workers: usize) -> Said {
    let row: &Row = d.row(suite, workload, system, workers)?;
    let most = row.samples.iter().copied().fold(row.min, f64::max);
    Some((
        format!("{} {}", row.median, row.unit),
        format!("{} to {most} in {} samples", row.min, row.samples.len()),
    ))
}

fn counter(
    d: &Document,
    suite: &str,
    workload: &str,
    system: &str,
    workers: usize,
    name: &str,
) -> Said {
    let row = d.row(suite, workload, system, workers)?;
    let samples = row.counter_samples.get(name)?;
    let (least, most) =
        samples.iter().fold((f64::MAX, 0.0_f64), |(a, b), v| (a.min(*v), b.max(*v)));
    let ours = format!("{} on {workers}", figure(*row.counters.get(name)?));
    Some((ours, format!("{} to {} in {} samples", figure(least), figure(most), samples.len())))
}

fn stolen(d: &Document, system: &str, workers: usize) -> Said {
    let share = |program: &&str| {
        let row = d.row("graphs", program, system, workers)?;
        Some(
            100.0 * row.counters.get("stolen")?
                / row.counters.get("tasks").filter(|tasks| **tasks > 0.0)?,
        )
    };
    let shares: Vec<f64> = CLOSURES.iter().filter_map(share).collect();
    let (least, most) = shares.iter().fold((f64::MAX, 0.0_f64), |(a, b), v| (a.min(*v), b.max(*v)));
    (!shares.is_empty())
        .then(|| (format!("{least:.3} to {most:.3} by graph"), "medians of counters".to_owned()))
}

/// A clock tells little of a program of milliseconds; the count of steals tells it all.
fn none_stolen(d: &Document, system: &str, workers: usize) -> Said {
    let count = |program: &&'static str| {
        let row = d.row("fork-join", program, system, workers)?;
        Some((*program, *row.counters.get("stolen")?))
    };
    let counts: Vec<(&str, f64)> = CILK.iter().filter_map(count).collect();
    if workers == 1 || counts.is_empty() {
        return None;
    }
    let names: Vec<&str> =
        counts.iter().filter(|(_, n)| *n == 0.0).map(|(name, _)| *name).collect();
    let list = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let ours =
        format!("{system}: {} of {} on {workers} workers: {list}", names.len(), counts.len());
    Some((ours, "medians of counters".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Case;
    use crate::harness::document::CaseName;

    fn document(rows: &[(&'static str, &str, f64, f64)]) -> Document {
        let mut document = Document::new("tiny");
        for (workload, system, seconds, stolen) in rows {
            let case = CaseName::of(&Case::timed(workload, *system, 2, || Ok(())));
            for round in 0..5 {
                let sample = crate::Sample::from(*seconds).count("stolen", *stolen);
                document.add("fork-join", &case, sample, (round, 1));
            }
        }
        document.machine.cores = 2;
        document.rows.iter_mut().for_each(|row| row.oversubscribed = false);
        document
    }

    #[test]
    fn claims_by_hand() {
        let claims = claims(&document(&[
            ("fib", "the", 2.0, 1.0),
            ("fib", "thep", 1.0, 1.0),
            ("fib", "ff-the", 4.0, 0.0),
            ("heat", "the", 1.0, 1.0),
            ("heat", "thep", 2.0, 1.0),
            ("heat", "ff-the", 1.0, 3.0),
        ]));
        assert_eq!(claims.len(), 2);
        assert_eq!(claims[0].ours, "1.000 on average over 2 programs, 0.500 at best (fib)");
        assert_eq!(
            claims[0].interval, "none: too few samples, or all alike",
            "all samples are alike"
        );
        assert_eq!(claims[1].ours, "ff-the: 1 of 2 on 2 workers: fib");
        assert!(claims.iter().all(|claim| !claim.why.is_empty() && !claim.theirs.is_empty()));
    }

    #[test]
    fn the_interval_of_a_mean_is_narrower_than_those_of_its_programs() {
        let ratio = Ratio { value: 1.0, low: 0.9, high: 1.0 / 0.9 };
        let four = vec![("a".to_owned(), ratio); 4];
        assert_eq!(means(&four).unwrap().1, "0.949 to 1.054");
        assert_eq!(means(&[]), None);
    }
}
