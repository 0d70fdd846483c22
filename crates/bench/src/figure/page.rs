//! The page that holds the figures of a run, with what they were made on: one file that loads
//! nothing, for a light or a dark screen, wide or narrow. What is wider than the screen moves
//! within its own frame.

use std::fmt::Write as _;

use super::beside;
use super::claims::{Claimed, claims};
use super::common::{Drawn, Svg, distinct};
use crate::words::{figure, workers};
use crate::{Document, Row};

/// The figures' white and black are the page's ground and ink here.
const STYLE: &str = concat!("\n", include_str!("page.css"));

/// The page as HTML; the figures are in it, so the one file can be kept or sent.
pub(super) fn render(document: &Document, figures: &[Drawn]) -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut page, document, figures);
    page
}

fn write(page: &mut String, document: &Document, figures: &[Drawn]) -> std::fmt::Result {
    write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width,initial-scale=1\">\n<title>poach bench</title>\n\
         <style>{STYLE}</style></head>\n<body>\n<h1>poach bench</h1>\n"
    )?;
    facts(page, document)?;
    for beside in beside::all(document) {
        writeln!(page, "<h2 id=\"{}\">{}</h2>", beside.figure.name, escape(beside.figure.title))?;
        page.push_str("<div class=\"paper\">\n");
        for (of, says) in &beside.figure.paper {
            writeln!(page, "<p><b>The paper, {}:</b> {}</p>", escape(of), escape(says))?;
        }
        page.push_str("</div>\n");
        for drawn in figures.iter().filter(|drawn| drawn.of == Some(beside.figure.name)) {
            framed(page, drawn)?;
        }
        page.push_str(
            "<details><summary>In numbers</summary><div class=\"scroll\"><table>\n<tr><th>program</th>\
             <th class=\"n\">workers</th><th>system</th><th></th></tr>\n",
        );
        for line in &beside.lines {
            writeln!(
                page,
                "<tr><td>{}</td><td class=\"n\">{}</td><td>{}</td><td>{}</td></tr>",
                escape(&line.program),
                escape(&line.workers),
                escape(&line.system),
                escape(&line.value)
            )?;
        }
        page.push_str("</table></div></details>\n");
    }
    let claims = claims(document);
    if !claims.is_empty() {
        page.push_str(
            "<h2 id=\"claims\">The papers' claims, theirs and ours</h2>\n<p class=\"soft\">Intervals are of 95 %, by a bootstrap over \
             rounds.</p>\n<div class=\"claims\">\n",
        );
        for Claimed { figure, claim, ours, interval, why } in &claims {
            writeln!(
                page,
                "<dl><dt>claim</dt><dd><b>{}</b> ({})</dd>",
                escape(claim.what),
                escape(figure)
            )?;
            for (term, text) in [
                ("theirs", claim.theirs),
                ("ours", ours),
                ("interval", interval),
                ("why it differs", why),
            ] {
                writeln!(page, "<dt>{term}</dt><dd>{}</dd>", escape(text))?;
            }
            page.push_str("</dl>\n");
        }
        page.push_str("</div>\n");
    }
    for suite in distinct(document.rows.iter().map(|row| row.suite.as_str())) {
        writeln!(page, "<h2>Everything of the suite {}</h2>", escape(suite))?;
        let of_suite = |drawn: &&Drawn| drawn.of.is_none() && drawn.suite == suite;
        for drawn in figures.iter().filter(of_suite) {
            framed(page, drawn)?;
        }
        page.push_str(
            "<details><summary>In numbers</summary><div class=\"scroll\"><table>\n<tr>\
             <th>workload</th><th>system</th><th class=\"n\">workers</th><th>unit</th>\
             <th class=\"n\">median</th><th class=\"n\">min</th><th class=\"n\">p10</th>\
             <th class=\"n\">p90</th><th class=\"n\">samples</th></tr>\n",
        );
        for row in document.rows.iter().filter(|row| row.suite == suite) {
            page.push_str(&line(row));
        }
        page.push_str("</table></div></details>\n");
    }
    page.push_str("</body>\n</html>\n");
    Ok(())
}

/// What the run was made on and with, and what went wrong with it.
fn facts(page: &mut String, document: &Document) -> std::fmt::Result {
    page.push_str("<dl>\n");
    for (term, text) in super::facts(document) {
        writeln!(page, "<dt>{term}</dt><dd>{}</dd>", escape(&text))?;
    }
    page.push_str("</dl>\n");
    if !document.complete {
        page.push_str(
            "<p class=\"bad\">The run was cut short: this is what it had measured.</p>\n",
        );
    }
    for (failure, more) in document.causes() {
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        writeln!(
            page,
            "<p class=\"bad\">{} on {} with {}{more} failed: {}</p>",
            escape(&failure.workload),
            escape(&failure.system),
            workers(failure.workers),
            escape(&failure.message)
        )?;
    }
    if document.rows.iter().any(|row| row.oversubscribed) {
        writeln!(
            page,
            "<p class=\"soft\">* more workers than the {} processors of this machine</p>",
            document.machine.cores
        )?;
    }
    Ok(())
}

fn framed(page: &mut String, drawn: &Drawn) -> std::fmt::Result {
    let (name, Svg { wide, narrow }) = (escape(&drawn.name), &drawn.svg);
    writeln!(
        page,
        "<figure id=\"{name}\"><div class=\"wide\">\n{wide}\n</div><div class=\"narrow\">\n{narrow}\n</div></figure>"
    )
}

fn line(row: &Row) -> String {
    let mut line = String::from("<tr>");
    let workers = format!("{}{}", row.workers, if row.oversubscribed { "*" } else { "" });
    for (class, text) in
        [("", &row.workload), ("", &row.system), (" class=\"n\"", &workers), ("", &row.unit)]
    {
        let _ = write!(line, "<td{class}>{}</td>", escape(text));
    }
    let _ = write!(
        line,
        "<td class=\"n\">{}{}</td>",
        figure(row.median),
        escape(&crate::table::also(row))
    );
    for value in [row.min, row.p10, row.p90] {
        let _ = write!(line, "<td class=\"n\">{}</td>", figure(value));
    }
    let _ = writeln!(line, "<td class=\"n\">{}</td></tr>", row.samples.len());
    line
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    #[test]
    fn text_stays_text() {
        assert_eq!(super::escape("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
    }
}
