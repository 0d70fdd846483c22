//! What the papers claim of their queues, and what the rows of a document say of it.

use super::papers::{CILK, CLOSURES, LACE};
use crate::{Document, geometric_mean};

/// The claims: of what, what the paper says, and what the rows of `document` say.
pub(super) fn claims(document: &Document) -> Vec<(&'static str, &'static str, String)> {
    let most = |suite: &str| {
        let rows = document.rows.iter().filter(|row| row.suite == suite && !row.oversubscribed);
        rows.map(|row| row.workers).max().unwrap_or(1)
    };
    let ratios = |suite: &str, programs: &[&str], system: &str, base: &str| -> Vec<(String, f64)> {
        let workers = most(suite);
        let ratio = |program: &&str| {
            let one = document.row(suite, program, system, workers)?.median;
            Some(((*program).to_owned(), one / document.row(suite, program, base, workers)?.median))
        };
        programs.iter().filter_map(ratio).collect()
    };
    let summary = |suite: &str, ratios: &[(String, f64)]| {
        let mean = geometric_mean(ratios.iter().map(|(_, ratio)| *ratio))?;
        let best = ratios.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let workers = most(suite);
        Some(format!(
            "{mean:.3} of its time on average over {} programs, {:.3} at best ({}), {workers} \
             workers",
            ratios.len(),
            best.1,
            best.0
        ))
    };
    let mut claims = Vec::new();
    for (claim, paper, suite, programs, system, base) in [
        (
            "THEP against THE, Cilk's programs",
            "0.93 (Westmere-EX) and 0.89 (Haswell), 0.77 at best",
            "fork-join",
            &CILK[..],
            "thep",
            "the",
        ),
        (
            "FF-CL against Chase-Lev, transitive closure",
            "0.83 on average, 0.67 on the torus",
            "graphs",
            &CLOSURES[..],
            "ff-cl",
            "chase-lev",
        ),
        (
            "split against private, Lace's programs",
            "T_48 of split over private: 0.79 to 1.11",
            "fork-join",
            &LACE[..],
            "split-queue",
            "private",
        ),
    ] {
        let ratios = ratios(suite, programs, system, base);
        if let Some(ours) = summary(suite, &ratios) {
            claims.push((claim, paper, ours));
        }
    }
    let default = "nothing is stolen in 6 of 11 programs with the default delta";
    let least = "with a delta of 4 that is so in lud alone";
    for (system, paper) in [("ff-the", default), ("ff-the-measured", default), ("ff-the-4", least)]
    {
        let workers = most("fork-join");
        // A clock tells little of a program of milliseconds; the count of steals tells it all.
        let stolen: Vec<(&str, f64)> = CILK
            .iter()
            .filter_map(|program| {
                let row = document.row("fork-join", program, system, workers)?;
                Some((*program, *row.counters.get("stolen")?))
            })
            .collect();
        if workers > 1 && !stolen.is_empty() {
            let none = stolen.iter().filter(|(_, stolen)| *stolen == 0.0);
            let names: Vec<&str> = none.map(|(name, _)| *name).collect();
            let ours = format!(
                "{system}: thieves got nothing in {} of {} with {workers} workers: {}",
                names.len(),
                stolen.len(),
                if names.is_empty() { "none".to_owned() } else { names.join(", ") }
            );
            claims.push(("FF-THE's thieves give up near the owner", paper, ours));
        }
    }
    claims
}
