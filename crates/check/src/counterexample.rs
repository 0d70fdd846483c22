//! An execution for people: a column a thread, with memory and the buffers after each step.

use std::fmt::{self, Write as _};

use crate::Violation;
use crate::history::Operation;

/// Where a row's event happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Nowhere: the state before the first event.
    Start,
    /// In a thread.
    Thread(usize),
    /// In a thread's store buffer.
    Buffer(usize),
}

/// One event, and the state after it.
#[derive(Clone, Debug)]
pub struct Row {
    /// Where it happened.
    pub column: Column,
    /// What happened.
    pub text: String,
    /// Where in the source, if it was a thread's step.
    pub at: String,
    /// The operation that began with it.
    pub opens: Option<String>,
    /// The operations that returned after it.
    pub notes: Vec<String>,
    /// The words in memory.
    pub memory: Vec<String>,
    /// Each thread's buffer, the oldest store first.
    pub buffers: Vec<Vec<String>>,
}

/// An execution.
#[derive(Clone, Debug)]
pub struct Counterexample {
    /// The threads' names.
    pub threads: Vec<String>,
    /// The events.
    pub rows: Vec<Row>,
    /// The operations, in the order of their calls.
    pub history: Vec<Operation>,
    /// What is wrong with it, if something is.
    pub violation: Option<Violation>,
    /// Whether the oldest store of each buffer lies in its egress slot.
    pub egress: bool,
    /// What replays it.
    pub choices: String,
}

/// Lines that are printed at most: of more, those in the middle are not.
const MOST_LINES: usize = 400;

impl Counterexample {
    fn table(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let threads = self.threads.len();
        let mut head = self.threads.clone();
        head.push("memory".to_owned());
        head.extend(self.threads.iter().map(|name| format!("{name}'s stores on their way")));
        let width = head.len();
        let mut lines = Vec::new();
        let mut shown = String::new();
        for row in &self.rows {
            if let (Column::Thread(thread), Some(call)) = (row.column, &row.opens) {
                let mut line = vec![String::new(); width];
                line[thread].clone_from(call);
                lines.push(line);
            }
            let mut line = vec![String::new(); width];
            match row.column {
                Column::Start => {}
                Column::Thread(thread) => line[thread] = format!("  {}", row.text),
                Column::Buffer(thread) => line[thread] = format!("    ~ {}", row.text),
            }
            let memory = row.memory.join(", ");
            if memory != shown {
                line[threads].clone_from(&memory);
                shown = memory;
            }
            for (thread, buffer) in row.buffers.iter().enumerate() {
                line[threads + 1 + thread] = self.buffer(buffer);
            }
            lines.push(line);
            for note in &row.notes {
                let mut line = vec![String::new(); width];
                if let Column::Thread(thread) = row.column {
                    line[thread].clone_from(note);
                }
                lines.push(line);
            }
        }
        (head, lines)
    }

    fn buffer(&self, entries: &[String]) -> String {
        match entries {
            [first, rest @ ..] if self.egress => {
                let rest = rest.join(", ");
                if rest.is_empty() { format!("[{first}]") } else { format!("[{first}] {rest}") }
            }
            _ => entries.join(", "),
        }
    }

    /// The same as a picture, in SVG: one text line a row, coloured by where it happened.
    pub fn svg(&self) -> String {
        const LINE: usize = 18;
        const CHARACTER: usize = 8;
        let (head, lines) = self.table();
        let widths = widths(&head, &lines);
        let lefts: Vec<usize> = widths
            .iter()
            .scan(16, |left, width| {
                let here = *left;
                *left += (width + 3) * CHARACTER;
                Some(here)
            })
            .collect();
        let total = lefts.last().copied().unwrap_or(16)
            + (widths.last().copied().unwrap_or(0) + 2) * CHARACTER;
        let height = (lines.len() + 5) * LINE;
        let mut svg = String::new();
        let _ = writeln!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {total} {height}\" \
             width=\"{total}\" height=\"{height}\" font-family=\"monospace\" font-size=\"13\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
        );
        let mut text = |left: usize, line: usize, style: &str, content: &str| {
            if !content.is_empty() {
                let _ = writeln!(
                    svg,
                    "<text x=\"{left}\" y=\"{}\" xml:space=\"preserve\" {style}>{}</text>",
                    (line + 1) * LINE,
                    escape(content)
                );
            }
        };
        for (left, title) in lefts.iter().zip(&head) {
            text(*left, 0, "font-weight=\"bold\"", title);
        }
        for (number, line) in lines.iter().enumerate() {
            for (column, content) in line.iter().enumerate() {
                let style = if content.contains("~ ") {
                    "fill=\"#b45309\""
                } else if column < self.threads.len() && !content.starts_with(' ') {
                    "font-weight=\"bold\" fill=\"#1d4ed8\""
                } else if column >= self.threads.len() {
                    "fill=\"#4b5563\""
                } else {
                    "fill=\"black\""
                };
                text(lefts[column], number + 2, style, content);
            }
        }
        if let Some(violation) = &self.violation {
            let style = "font-weight=\"bold\" fill=\"#b91c1c\"";
            text(16, lines.len() + 3, style, &violation.to_string());
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn widths(head: &[String], lines: &[Vec<String>]) -> Vec<usize> {
    (0..head.len())
        .map(|column| {
            let cells = lines.iter().map(|line| line[column].chars().count());
            cells.chain([head[column].chars().count()]).max().unwrap_or(0)
        })
        .collect()
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (head, lines) = self.table();
        let widths = widths(&head, &lines);
        let mut print = |line: &[String]| {
            let mut text = String::new();
            for (cell, width) in line.iter().zip(&widths) {
                let _ = write!(text, "{cell:width$} | ");
            }
            writeln!(f, "{}", text.trim_end_matches([' ', '|']))
        };
        print(&head)?;
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        print(&rule)?;
        let left_out = lines.len().saturating_sub(MOST_LINES);
        let begin = lines.len().min(MOST_LINES / 2);
        for line in &lines[..begin] {
            print(line)?;
        }
        if left_out > 0 {
            let mut line = vec![String::new(); head.len()];
            line[0] = format!("({left_out} lines)");
            print(&line)?;
        }
        for line in &lines[begin + left_out..] {
            print(line)?;
        }
        if self.egress {
            writeln!(f, "(a store in brackets is in the egress slot)")?;
        }
        if let Some(violation) = &self.violation {
            writeln!(f, "\n{violation}")?;
        }
        if left_out > 0 {
            return writeln!(f, "choices: {} characters, in `choices`", self.choices.len());
        }
        writeln!(f, "choices: {}", self.choices)
    }
}
