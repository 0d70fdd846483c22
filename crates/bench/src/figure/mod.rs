//! Figures of a document, as SVG; no font of the system is needed, for a browser sets the text.

mod bars;
mod beside;
mod claims;
mod common;
mod curve;
mod heat;
mod page;
mod papers;
mod rates;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

pub use self::beside::text;
use self::common::{Drawn, distinct};
pub use self::papers::{FIGURES, PaperFigure, Workers};
use crate::{Document, Row};

/// Writes the figures of `document` and the page that holds them into `directory`, and says which
/// files that made.
///
/// # Errors
///
/// If a file cannot be written, with its path.
pub fn write(document: &Document, directory: &Path) -> Result<Vec<PathBuf>> {
    let mut figures: Vec<Drawn> = Vec::new();
    for suite in distinct(document.rows.iter().map(|row| row.suite.as_str())) {
        let rows: Vec<&Row> = document.rows.iter().filter(|row| row.suite == suite).collect();
        let mut workers: Vec<usize> = rows.iter().map(|row| row.workers).collect();
        workers.sort_unstable();
        workers.dedup();
        let mut of_suite =
            |name, svg| figures.push(Drawn { of: None, suite: suite.to_owned(), name, svg });
        for count in &workers {
            if let Some(svg) = bars::draw(document, suite, *count)? {
                of_suite(format!("{suite}-{count}-workers.svg"), svg);
            }
            if let Some(svg) = heat::draw(document, suite, *count)? {
                of_suite(format!("{suite}-regions-{count}-workers.svg"), svg);
            }
        }
        if let Some(svg) = curve::draw(document, suite, &workers)? {
            of_suite(format!("{suite}-speedup.svg"), svg);
        }
    }
    for figure in FIGURES.iter() {
        let drawn = figure.draw(document)?.into_iter();
        figures.extend(drawn.map(|(name, svg)| Drawn {
            of: Some(figure.name),
            suite: figure.suite.to_owned(),
            name,
            svg,
        }));
    }
    let mut written = Vec::new();
    let mut put = |name: &str, text: &str| -> Result<()> {
        let path = directory.join(name);
        fs::write(&path, text).with_context(|| format!("could not write {}", path.display()))?;
        written.push(path);
        Ok(())
    };
    for drawn in &figures {
        put(&drawn.name, &drawn.svg.wide)?;
    }
    put("summary.txt", &summary(document))?;
    put("index.html", &page::render(document, &figures))?;
    Ok(written)
}

/// What a run was made on and with: terms, and what there is to say of each.
fn facts(document: &Document) -> Vec<(&'static str, String)> {
    let machine = &document.machine;
    let peers: Vec<String> =
        machine.peers.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let siblings = match machine.threads_per_core {
        0 => String::new(),
        1 => ", each said to be a core of its own".to_owned(),
        count => format!(", {count} on a core"),
    };
    let mut facts: Vec<(&str, String)> = document
        .commands
        .iter()
        .map(|command| {
            let [before, after] = command.load;
            let said = format!(
                "{} ({}; {} samples; load {before:.2}, then {after:.2}; {:.1} % of the processors' time went to other guests)",
                command.line,
                crate::runs::day(command.began),
                command.samples,
                command.steal_percent
            );
            ("command", said)
        })
        .collect();
    let processor = [machine.cpu.as_str(), &machine.model];
    let processor: Vec<&str> = processor.into_iter().filter(|part| !part.is_empty()).collect();
    facts.extend([
        (
            "machine",
            format!(
                "{}, {} processors{siblings}, {} MiB, {}",
                processor.join(", "),
                machine.cores,
                machine.memory_bytes >> 20,
                machine.arch
            ),
        ),
        ("system", machine.os.clone()),
        ("build", format!("{}, {}, {}", machine.source(), machine.rustc, machine.profile)),
        ("peers", peers.join(", ")),
        ("inputs", document.size.clone()),
    ]);
    facts
}

/// The run as text: what it was made on and with, its tables, and the papers' beside them.
fn summary(document: &Document) -> String {
    let mut summary = String::new();
    for (term, said) in facts(document) {
        // Writing to a string does not fail.
        let _ = writeln!(summary, "{term:8} {said}");
    }
    format!("{summary}\n{}\n{}", crate::table::render(document, 120), text(document))
}
