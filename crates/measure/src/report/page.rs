//! The document as one page: its style and its figures are in it, and it loads nothing.

use std::fmt::Write as _;

use super::Document;
use super::html::escape;
use super::plot::Plot;
use crate::capacity::{Capacity, Measured, Pattern};
use crate::knee::Finding;
use crate::litmus::grid;
use crate::litmus::program::Target;

const STYLE: &str = "
:root{color-scheme:light dark;--ground:#fff;--ink:#1b1f24;--soft:#59636e;--rule:#d5dae0;--card:#f5f7f9;
--lines:#0b5fa5;--words:#b35900;--one:#00785a;--none:#8a8f96;--good:#00785a;--bad:#c2331f}
@media(prefers-color-scheme:dark){:root{--ground:#14171b;--ink:#e8eaed;--soft:#a3abb5;--rule:#363c44;
--card:#1d2127;--lines:#6db7ff;--words:#ffb057;--one:#4ed1a7;--none:#8a929c;--good:#4ed1a7;--bad:#ff7d6b}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem 1rem 4rem;max-width:46rem;background:var(--ground);color:var(--ink);
font:16px/1.55 system-ui,sans-serif}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .5rem}h2{font-size:1.2rem;margin:2.2rem 0 .6rem}
p{margin:.5rem 0}.soft,figcaption{color:var(--soft);font-size:.9rem}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(6.4rem,1fr));gap:.7rem;margin:1.2rem 0}
.facts div{background:var(--card);border-radius:8px;padding:.6rem .8rem}
.facts b{display:block;font-size:1.7rem;line-height:1.2}.facts span{display:block;color:var(--soft);font-size:.85rem;line-height:1.35}
figure{margin:1rem 0}.scroll{overflow-x:auto}
svg{display:block;width:100%;height:auto;font:13px system-ui,sans-serif}
svg text{fill:var(--soft)}svg .strong{fill:var(--ink);font-weight:600}
.grid{stroke:var(--rule);stroke-width:1}.mark{stroke:var(--ink);stroke-dasharray:4 3}
.line{fill:none;stroke-width:1.8}.l-lines{stroke:var(--lines)}.l-words{stroke:var(--words);stroke-dasharray:9 6}
.l-one{stroke:var(--one)}.l-none{stroke:var(--none)}.diagonal{stroke:var(--soft);stroke-dasharray:2 4}
.good{fill:var(--good)}.bad{stroke:var(--bad);stroke-width:1.8;fill:none}
.key{display:inline-block;width:1.4em;border-top:3px solid;margin:0 .4em .25em 0}
ul.legend{list-style:none;padding:0;margin:.4rem 0;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;font-size:.9rem}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:.92rem}
th,td{text-align:right;padding:.3rem .55rem;border-bottom:1px solid var(--rule);white-space:nowrap}
th:first-child,td:first-child{text-align:left}th{font-weight:600;vertical-align:bottom}
.k-words{border-top-style:dashed}
@media(max-width:36rem){svg{font-size:20px}th,td{padding:.25rem .3rem;font-size:.82rem}th{white-space:normal}
.facts b{font-size:1.4rem}.facts span{font-size:.78rem}
.line{stroke-width:2.6}.bad{stroke-width:3}.diagonal{stroke-width:1.5}}
";

/// A number with a narrow space at the thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

pub(super) fn render(document: &Document) -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut page, document);
    page
}

fn write(page: &mut String, document: &Document) -> std::fmt::Result {
    let host = &document.host;
    write!(
        page,
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n\
         <meta name=viewport content='width=device-width,initial-scale=1'>\n\
         <title>The store buffer of {0}</title>\n<style>{STYLE}</style></head><body>\n\
         <h1>The store buffer of {0}</h1>\n<p class=soft>{1} · {2} · {3} processors{4}</p>\n",
        escape(&host.cpu),
        escape(host.identity.as_deref().unwrap_or("unknown model")),
        escape(&host.kernel),
        host.processors.len(),
        if host.virtual_machine { " · virtual machine" } else { "" },
    )?;
    let number = |value: Option<u64>| value.map_or("–".to_owned(), |value| value.to_string());
    page.push_str("<div class=facts>\n");
    for (value, name) in [
        (number(document.capacity), "entries of the store buffer"),
        (number(document.bound), "stores a load may overtake"),
        (number(document.safe_delta.first().copied()), "delta, one store between pops"),
    ] {
        writeln!(page, "<div><b>{value}</b><span>{name}</span></div>")?;
    }
    page.push_str("</div>\n");
    for sentence in document.verdict() {
        writeln!(page, "<p>{}</p>", escape(&sentence))?;
    }
    if let Some(sweeps) = &document.sweeps {
        capacity(page, sweeps)?;
    }
    if !document.litmus.is_empty() {
        litmus(page, document)?;
    }
    if !document.classic.is_empty() {
        page.push_str(
            "<h2>Classic litmus tests</h2>\n<div class=scroll><table><tr><th>Test<th>seen<th>runs\
             <th>total store order\n",
        );
        for c in &document.classic {
            let allowed = if c.allowed { "allows it" } else { "forbids it" };
            let (seen, runs) = (grouped(c.seen), grouped(c.runs));
            writeln!(page, "<tr><td>{}<td>{seen}<td>{runs}<td>{allowed}", c.test)?;
        }
        page.push_str(
            "</table></div>\n<p class=soft>How often the outcome came about that would be out of order: both \
             loads before both stores (SB), the second of two stores seen without the first (MP), loads that \
             see later stores (LB), two readers who see two stores in different orders (IRIW).</p>\n",
        );
    }
    if !document.safe_delta.is_empty() {
        delta(page, document)?;
    }
    writeln!(
        page,
        "<p class=soft>Made by poach measure, seed {}. After Morrison and Afek, <i>Fence-Free Work \
         Stealing on Bounded TSO Processors</i>, section 7.</p>\n</body></html>",
        document.seed
    )
}

fn capacity(page: &mut String, sweeps: &Capacity) -> std::fmt::Result {
    page.push_str("<h2>Capacity</h2>\n");
    sweep(page, &sweeps.patterns, sweeps.entries, "Time by the number of stores in a run")?;
    page.push_str(
        "<figcaption>As long as a run of stores fits into the store buffer it costs nothing. Lower \
         quartiles of interleaved samples (Figure 7 of the paper).</figcaption></figure>\n",
    );
    if let Some(behind) = &sweeps.behind {
        page.push_str("<h2>Behind a store that misses</h2>\n");
        let description = "Time by the number of stores behind one that misses";
        sweep(page, &behind.patterns, behind.stores, description)?;
        page.push_str(
            "<figcaption>Each run begins with a store to a line that is in no cache, and all others wait \
             behind it: in the store buffer, and on the way from there to the cache. As long as there is \
             room the chain passes meanwhile. Stores that join on that way take less of it.</figcaption>\
             </figure>\n",
        );
    }
    Ok(())
}

/// A figure of these sweeps, its legend, and the beginning of its caption.
fn sweep(
    page: &mut String,
    patterns: &[Measured],
    knee: Option<u64>,
    description: &str,
) -> std::fmt::Result {
    let levels: Vec<(Pattern, Vec<f64>)> =
        patterns.iter().map(|m| (m.pattern, m.sweep.levels())).collect();
    let all = || levels.iter().flat_map(|(_, levels)| levels.iter().copied());
    let longest = levels.iter().map(|(_, levels)| levels.len()).max().unwrap_or(1);
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    let room = (high - low).max(1.0) / 12.0;
    let mut plot = Plot::new(
        (1.0, longest as f64),
        ((low - room).max(0.0), high + room),
        ("stores in a run", "ns for a run and a chain"),
        description,
    );
    for (pattern, levels) in levels.iter().rev() {
        let points = levels.iter().enumerate().map(|(at, level)| ((at + 1) as f64, *level));
        plot.line(&format!("l-{}", pattern.name()), points);
    }
    if let Some(knee) = knee {
        plot.upright(knee as f64, &format!("{knee}"));
    }
    write!(page, "<figure>{}<ul class=legend>", plot.finish())?;
    for measured in patterns {
        let knee = match &measured.finding {
            Finding::Knee(knee) => {
                format!("knee at {}, confidence {:.0} %", knee.at, knee.confidence * 100.0)
            }
            Finding::None { .. } => "no knee".to_owned(),
        };
        let (name, about) = (measured.pattern.name(), measured.pattern.about());
        writeln!(
            page,
            "<li><span class='key k-{name}' style='color:var(--{name})'></span>{about}: {knee}"
        )?;
    }
    page.push_str("</ul>");
    Ok(())
}

fn litmus(page: &mut String, document: &Document) -> std::fmt::Result {
    page.push_str("<h2>Reordering bound</h2>\n");
    let points = document.points();
    let names: Vec<&str> = document.litmus.iter().map(|run| run.placement.name()).collect();
    let supposed = document.capacity.map(|capacity| capacity + 1);
    let mut bounds: Vec<u64> = supposed.into_iter().chain(document.bound).collect();
    bounds.dedup();
    for bound in bounds {
        let figure = grid::figure(&points, bound);
        let high =
            figure.iter().map(|(alpha, delta, _)| *alpha.max(delta)).max().unwrap_or(1) as f64;
        let mut plot = Plot::new(
            (0.0, high + 2.0),
            (0.0, high + 2.0),
            ("delta that the bound makes safe", "delta of the thief"),
            "Points of the litmus test by predicted and tested delta",
        );
        plot.line("diagonal", [(0.0, 0.0), (high + 2.0, high + 2.0)].into_iter());
        for (alpha, delta, correct) in figure {
            plot.mark((alpha as f64, delta as f64), correct);
        }
        writeln!(
            page,
            "<figure>{}<figcaption>Supposed bound {bound}: if it is right, everything on the dotted line \
             and above it is correct (dots), and only what is below may go wrong (crosses). Placements: \
             {}. Figure 8 of the paper.</figcaption></figure>",
            plot.finish(),
            names.join(", ")
        )?;
    }
    let bound = document.bound.filter(|bound| supposed.is_some_and(|supposed| *bound > supposed));
    page.push_str("<div class=scroll><table><tr><th>Stores<th>wrong<th>largest delta<th>hidden");
    for bound in supposed.into_iter().chain(bound) {
        write!(page, "<th>{bound} hides")?;
    }
    page.push('\n');
    for column in &document.columns {
        let of = || {
            points
                .iter()
                .filter(|o| (o.point.stores, o.point.target) == (column.stores, column.target))
        };
        let name = match column.target {
            Target::Lines => column.stores.to_string(),
            Target::Words => format!("{}, one line", column.stores),
            Target::One => format!("{}, one word", column.stores),
        };
        let most = |hidden: Option<u64>| match hidden {
            Some(hidden) if column.stores > 0 => hidden.to_string(),
            _ => "any".to_owned(),
        };
        write!(
            page,
            "<tr><td>{name}<td>{}<td>{}<td>{}<td>{}",
            grouped(of().map(|o| o.outcome.incorrect).sum()),
            column.highest_violation.map_or("none".to_owned(), |delta| delta.to_string()),
            column.hidden,
            most(Some(column.by_capacity))
        )?;
        if bound.is_some() {
            let hidden = Some(column.predicted);
            write!(page, "<td>{}", most(hidden))?;
        }
        page.push('\n');
    }
    writeln!(
        page,
        "</table></div>\n<p class=soft>Stores between two pops, to distinct lines unless it says otherwise; \
         how many of {} rounds in all went wrong; the largest delta with which one did; the most pops that \
         were hidden from a thief, and how many the supposed bounds can hide. Without a store between pops \
         stores join, and no bound holds.</p>",
        grouped(points.iter().map(|o| o.outcome.rounds).sum())
    )?;
    Ok(())
}

fn delta(page: &mut String, document: &Document) -> std::fmt::Result {
    page.push_str("<h2>What to use</h2>\n<div class=scroll><table><tr><th>Stores between, x");
    for x in 1..=document.safe_delta.len() {
        write!(page, "<th>{x}")?;
    }
    page.push_str("\n<tr><td>Delta");
    for delta in &document.safe_delta {
        write!(page, "<td>{delta}")?;
    }
    page.push_str(
        "\n</table></div>\n<p class=soft>For a client that makes x stores between pops, to whatever lines \
         other than the queue's; at least, for a longer search may find more.</p>\n",
    );
    if let Some(cost) = &document.cost {
        writeln!(
            page,
            "<p>A push and a pop take {:.2} ns with a fence, {:.2} ns bounded, and {:.2} ns bounded where \
             the client makes the store between pops. In exchange thieves leave the last {} tasks of a \
             queue to their owner.</p>",
            cost.full,
            cost.bounded,
            cost.bounded_without_fill,
            document.safe_delta.first().copied().unwrap_or(0)
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_apart() {
        let plain = |number| grouped(number).replace('\u{202f}', " ");
        assert_eq!(
            ["7", "999", "1 000", "12 345", "1 000 000"],
            [7, 999, 1000, 12345, 1_000_000].map(plain)[..]
        );
    }
}
