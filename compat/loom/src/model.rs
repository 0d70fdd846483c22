//! How a model is checked.

use std::ops::{Deref, DerefMut};
use std::str::FromStr;
use std::time::Duration;

pub use poach_check::loom::model::{Machine, model_on};

type OnC11 = poach_check::loom::c11::model::Builder;

/// How a model is checked: loom's fields, and those that loom has not
/// ([`BuilderOn`](poach_check::loom::model::BuilderOn)). It begins as the environment says.
#[derive(Clone, Debug)]
pub struct Builder(OnC11);

/// An environment variable, if it is there.
///
/// # Panics
///
/// If it is not what it should be.
fn variable<T: FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} may not be {text:?}")))
}

impl Builder {
    /// What the environment says: by loom's variables, and by `LOOM_MACHINE`, `LOOM_SPURIOUS`,
    /// `LOOM_REPLAY` and `LOOM_PICTURE`.
    ///
    /// # Panics
    ///
    /// If a variable is not what it should be.
    pub fn new() -> Self {
        let mut builder = OnC11::new();
        builder.machine = variable("LOOM_MACHINE").unwrap_or(builder.machine);
        builder.spurious_wakeups = variable("LOOM_SPURIOUS").unwrap_or(builder.spurious_wakeups);
        builder.replay = variable("LOOM_REPLAY");
        builder.picture = variable("LOOM_PICTURE");
        builder.max_branches = variable("LOOM_MAX_BRANCHES").unwrap_or(builder.max_branches);
        builder.max_permutations = variable("LOOM_MAX_PERMUTATIONS");
        builder.max_duration = variable("LOOM_MAX_DURATION").map(Duration::from_secs);
        builder.preemption_bound = variable("LOOM_MAX_PREEMPTIONS");
        builder.checkpoint_file = variable("LOOM_CHECKPOINT_FILE");
        let interval = variable("LOOM_CHECKPOINT_INTERVAL");
        builder.checkpoint_interval = interval.unwrap_or(builder.checkpoint_interval);
        builder.log = std::env::var_os("LOOM_LOG").is_some();
        Builder(builder)
    }

    /// Sets the checkpoint file.
    pub fn checkpoint_file(&mut self, file: &str) -> &mut Self {
        self.checkpoint_file = Some(file.into());
        self
    }

    /// Explores every execution of the model, or as many as this says. With
    /// [`log`](poach_check::loom::model::BuilderOn::log) it prints what was covered.
    ///
    /// # Panics
    ///
    /// If an execution is wrong.
    pub fn check<F>(&self, model: F)
    where
        F: Fn() + Sync + Send + 'static,
    {
        let log = self.log;
        self.0.check_and_tell(model, |covered| {
            if log {
                println!("{covered}");
            }
        });
    }
}

impl Default for Builder {
    fn default() -> Self {
        Builder::new()
    }
}

impl Deref for Builder {
    type Target = OnC11;

    fn deref(&self) -> &OnC11 {
        &self.0
    }
}

impl DerefMut for Builder {
    fn deref_mut(&mut self) -> &mut OnC11 {
        &mut self.0
    }
}

/// Explores every execution of a model, as the environment says.
///
/// # Panics
///
/// If an execution is wrong.
pub fn model<F>(model: F)
where
    F: Fn() + Sync + Send + 'static,
{
    Builder::new().check(model);
}
