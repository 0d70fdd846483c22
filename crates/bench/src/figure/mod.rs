//! Figures of a document, as SVG; no font of the system is needed, for a browser sets the text.

mod bars;
mod beside;
mod claims;
mod common;
mod curve;
mod heat;
mod page;
mod papers;

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
pub fn write(document: &Document, command: &str, directory: &Path) -> Result<Vec<PathBuf>> {
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
    for figure in &FIGURES {
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
        put(&drawn.name, &drawn.svg)?;
    }
    put("summary.txt", &summary(document, command))?;
    put("index.html", &page::render(document, command, &figures))?;
    Ok(written)
}

/// The run as text: what it was made on and with, its tables, and the papers' beside them.
fn summary(document: &Document, command: &str) -> String {
    let machine = &document.machine;
    let peers = machine.peers.iter().map(|(name, version)| format!("{name} {version}"));
    format!(
        "command  {command}\nmachine  {}, {} processors, {} MiB, {}, {}\nbuild    commit {}, {}, \
         {}\npeers    {}\ninputs   {}\n\n{}\n{}",
        machine.cpu,
        machine.cores,
        machine.memory_bytes >> 20,
        machine.arch,
        machine.os,
        machine.commit,
        machine.rustc,
        machine.profile,
        peers.collect::<Vec<_>>().join(", "),
        document.size,
        crate::table::render(document, 120),
        text(document)
    )
}
