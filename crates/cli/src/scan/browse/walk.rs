//! A walk on a thread of its own, beside the browser.

use std::io;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use poach_scan::listing::Live;
use poach_scan::report::{bytes, count, escape};
use poach_scan::{Control, Error, Options, Scan};

use super::names::Names;

/// What is walked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    All,
    /// One directory below a given path.
    Below(Names),
}

/// A walk that runs.
pub(super) struct Walk {
    pub(super) what: What,
    control: Arc<Control>,
    thread: JoinHandle<Result<Scan, Error>>,
    began: Instant,
}

impl Walk {
    /// Begins a walk that tells a listener of what it finds. `shared`: whether blocks that files
    /// share count once in what it ends with.
    ///
    /// # Errors
    ///
    /// If the system refuses the thread.
    pub(super) fn begin(
        what: What,
        paths: Vec<PathBuf>,
        options: Options,
        shared: bool,
        live: Live,
    ) -> io::Result<Walk> {
        let control = Arc::new(Control::new());
        let own = Arc::clone(&control);
        let walk = move || {
            let mut scan = live.scan(&paths, &options, &own)?;
            if shared && !scan.interrupted {
                scan.count_shared_once(&own);
            }
            Ok(scan)
        };
        let thread = thread::Builder::new().name("walk".to_owned()).spawn(walk)?;
        Ok(Walk { what, control, thread, began: Instant::now() })
    }

    /// Asks it to end with what it has.
    pub(super) fn stop(&self) {
        self.control.stop();
    }

    pub(super) fn is_done(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// The scan's own. A panic of the walk goes on here.
    pub(super) fn finish(self) -> Result<Scan, Error> {
        self.thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// How far it is, in a line.
    pub(super) fn progress(&self) -> String {
        let progress = self.control.progress();
        let rate = progress.entries as f64 / self.began.elapsed().as_secs_f64().max(1e-3);
        let stopping = if self.control.is_stopped() { ", stopping" } else { "" };
        let path = self.control.path();
        let (entries, size, rate) =
            (count(progress.entries), bytes(progress.bytes), count(rate as u64));
        format!("scanning: {entries}, {size}, {rate}/s{stopping}  {}", escape(&path))
    }
}
