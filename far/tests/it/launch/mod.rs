//! Jobs under a launcher: `POACH_FAR_MPIEXEC` names it, or it is `mpiexec`.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The time after which the test says that a job hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

pub(crate) fn launcher() -> Command {
    let mut command =
        Command::new(std::env::var("POACH_FAR_MPIEXEC").unwrap_or_else(|_| "mpiexec".to_owned()));
    // Open MPI's leave to run as the user of a container, and more ranks than processors.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    // The windows of Open MPI 4.1.4 crash otherwise: see the README's limits.
    command.env("OMPI_MCA_osc", "^rdma");
    command
}

pub(crate) fn program() -> &'static str {
    env!("CARGO_BIN_EXE_poach-far")
}

/// The example `jobs`, which stands beside the program.
pub(crate) fn jobs() -> String {
    let path = Path::new(program()).with_file_name("examples").join("jobs");
    path.to_str().unwrap().to_owned()
}

/// What a job printed, and how long it took.
pub(crate) struct Ran {
    pub(crate) output: Output,
    pub(crate) took: Duration,
}

impl Ran {
    pub(crate) fn stdout(&self) -> &str {
        std::str::from_utf8(&self.output.stdout).unwrap()
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// The document of a job that went well.
    pub(crate) fn document(&self) -> Value {
        assert!(self.output.status.success(), "{}{}", self.stdout(), self.stderr());
        serde_json::from_str(self.stdout()).unwrap()
    }
}

pub(crate) fn wait(mut command: Command) -> Ran {
    let began = Instant::now();
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the launcher starts");
    let (id, (send, receive)) = (child.id(), std::sync::mpsc::channel());
    thread::spawn(move || send.send(child.wait_with_output()));
    let Ok(output) = receive.recv_timeout(PATIENCE) else {
        let _ = Command::new("kill").arg(id.to_string()).status();
        panic!("{command:?} hangs");
    };
    Ran { output: output.unwrap(), took: began.elapsed() }
}

pub(crate) fn run(ranks: usize, program: &str, arguments: &[&str]) -> Ran {
    let mut command = launcher();
    command.args(["-n", &ranks.to_string(), program]).args(arguments);
    wait(command)
}
