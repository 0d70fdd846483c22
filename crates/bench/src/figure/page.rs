//! The page that holds the figures of a run, with what they were made on.

use std::fmt::Write as _;

use crate::table::figure;
use crate::{Document, Row};

/// The page as HTML; the figures are in it, so the one file can be kept or sent.
pub(super) fn render(document: &Document, command: &str, figures: &[(String, String)]) -> String {
    let machine = &document.machine;
    let mut page = String::from(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>poach bench</title>\n\
         <style>body{font:16px/1.5 system-ui,sans-serif;max-width:72em;margin:2em auto;padding:0 1em}\
         table{border-collapse:collapse}td,th{padding:.15em .7em;text-align:right;\
         border-bottom:1px solid #ddd}td:nth-child(-n+3),th:nth-child(-n+3){text-align:left}\
         figure{margin:2em 0}svg{max-width:100%;height:auto}dt{font-weight:bold}</style>\n\
         <h1>poach bench</h1>\n<dl>\n",
    );
    let peers: Vec<String> =
        machine.peers.iter().map(|(name, version)| format!("{name} {version}")).collect();
    for (term, text) in [
        ("command", command.to_owned()),
        ("machine", format!("{}, {} processors, {}", machine.cpu, machine.cores, machine.arch)),
        ("system", machine.os.clone()),
        ("build", format!("commit {}, {}, {}", machine.commit, machine.rustc, machine.profile)),
        ("peers", peers.join(", ")),
        ("inputs", document.size.clone()),
    ] {
        let _ = writeln!(page, "<dt>{term}</dt><dd>{}</dd>", escape(&text));
    }
    page.push_str("</dl>\n");
    if !document.complete {
        page.push_str("<p><strong>The run was cut short.</strong></p>\n");
    }
    for (name, svg) in figures {
        let _ = writeln!(page, "<figure id=\"{}\">\n{svg}\n</figure>", escape(name));
    }
    let papers = super::text(document);
    if !papers.is_empty() {
        let _ = writeln!(page, "<h2>Beside the papers</h2>\n<pre>{}</pre>", escape(&papers));
    }
    page.push_str(
        "<table>\n<tr><th>suite</th><th>workload</th><th>system</th><th>workers</th><th>unit</th>\
         <th>median</th><th>min</th><th>p10</th><th>p90</th><th>samples</th></tr>\n",
    );
    for row in &document.rows {
        page.push_str(&line(row));
    }
    page.push_str("</table>\n");
    for failure in &document.failures {
        let _ = writeln!(
            page,
            "<p>{} on {} with {} workers failed: {}</p>",
            escape(&failure.workload),
            escape(&failure.system),
            failure.workers,
            escape(&failure.message)
        );
    }
    page
}

fn line(row: &Row) -> String {
    let mut line = String::from("<tr>");
    let workers = format!("{}{}", row.workers, if row.oversubscribed { "*" } else { "" });
    for text in [&row.suite, &row.workload, &row.system, &workers, &row.unit] {
        let _ = write!(line, "<td>{}</td>", escape(text));
    }
    for value in [row.median, row.min, row.p10, row.p90] {
        let _ = write!(line, "<td>{}</td>", figure(value));
    }
    let _ = writeln!(line, "<td>{}</td></tr>", row.samples.len());
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
