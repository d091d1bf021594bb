//! The binary as a child process, and a client for its interface.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use serde_json::Value;

/// The binary, with a passphrase and none of the caller's settings.
pub fn walras() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_walras"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("WALRAS_")) {
        command.env_remove(name);
    }
    command.env_remove("RUST_LOG").env("WALRAS_PASSPHRASE", "correct horse").stdin(Stdio::null());
    command
}

/// A node in a process of its own. When dropped, it gets SIGKILL: requests in progress are not finished.
pub struct Process {
    child: Child,
    stdout: BufReader<ChildStdout>,
    log: PathBuf,
    /// Where it listens.
    pub server: String,
}

impl Process {
    /// Starts the node of a home; its log goes into the home.
    pub fn spawn(home: &Path, settings: &[(&str, &str)]) -> Process {
        Process::spawn_by(walras(), home, settings)
    }

    /// Starts the node of a home by a command that runs the binary with further arguments.
    pub fn spawn_by(command: Command, home: &Path, settings: &[(&str, &str)]) -> Process {
        let log = File::create(home.join("node.log")).expect("a log");
        Process::spawn_logging(command, home, settings, log.into())
    }

    /// The same with a log of the caller's.
    pub fn spawn_logging(mut command: Command, home: &Path, settings: &[(&str, &str)], errors: Stdio) -> Process {
        let log = home.join("node.log");
        command.args(["node", "--listen", "127.0.0.1:0", "--home"]).arg(home).env("RUST_LOG", "warn");
        command.env("WALRAS_ETHEREUM__LISTEN", "127.0.0.1:0");
        command.envs(settings.iter().copied()).stdout(Stdio::piped()).stderr(errors);
        let mut child = command.spawn().expect("walras starts");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        Process { child, stdout, log, server: String::new() }
    }

    /// Starts the node of a home and waits until it listens.
    pub fn start(home: &Path, settings: &[(&str, &str)]) -> Process {
        Process::spawn(home, settings).listening()
    }

    /// Waits until it listens.
    pub fn listening(mut self) -> Process {
        let process = &mut self;
        let mut line = String::new();
        process.stdout.read_line(&mut line).expect("a line");
        let server = line.trim().strip_prefix("listening on ");
        process.server = server.unwrap_or_else(|| panic!("no node listens: {}", process.log())).to_string();
        self
    }

    /// The contents of its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Sends it a signal, such as `STOP`.
    pub fn signal(&self, name: &str) {
        let signal = Command::new("sh").args(["-c", &format!("kill -{name} {}", self.child.id())]).status();
        assert!(signal.expect("sh runs").success());
    }

    /// Sends SIGTERM and returns the exit status.
    pub fn terminate(mut self) -> ExitStatus {
        self.signal("TERM");
        self.child.wait().expect("ends")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An agent that returns an error of the node as an answer.
pub fn agent() -> ureq::Agent {
    let patience = std::time::Duration::from_secs(60);
    ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(patience)).build().into()
}

/// The node's answer: status and JSON.
pub fn get(agent: &ureq::Agent, server: &str, path: &str) -> (u16, Value) {
    let mut response = agent.get(format!("{server}{path}")).call().expect("the node answers");
    (response.status().as_u16(), response.body_mut().read_json().expect("JSON"))
}
