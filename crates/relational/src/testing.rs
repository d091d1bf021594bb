//! A real PostgreSQL for tests (feature `testing`).
//!
//! It needs `initdb`, `postgres` and `pg_isready`, on the path or in the folder `WALRAS_POSTGRES`. Without them a test
//! says so and ends. A server of root's is started as the user `postgres` or `nobody`, as it refuses to be root.

use std::fs::File;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server in a folder of its own, reached by its socket there; it ends with the test.
pub struct TestServer {
    child: Child,
    folder: tempfile::TempDir,
    user: Option<u32>,
    programs: PathBuf,
}

fn programs() -> Option<PathBuf> {
    let named = std::env::var_os("WALRAS_POSTGRES").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = named.into_iter().chain(std::env::split_paths(&path));
    let found = folders.map(|folder| folder.join("postgres")).find_map(|program| program.canonicalize().ok());
    Some(found?.parent()?.to_path_buf()).filter(|folder| folder.join("initdb").exists())
}

/// The user under whose number the server runs, if this process is root's.
fn user() -> Option<u32> {
    let numbers = |name: &str| {
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let line = users.lines().find(|line| line.starts_with(name))?.to_string();
        line.split(':').nth(2)?.parse::<u32>().ok()
    };
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let own = status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().nth(1)?.to_string();
    if own == "0" { numbers("postgres:").or_else(|| numbers("nobody:")) } else { None }
}

impl TestServer {
    /// Starts one, if its programs are there.
    pub fn start() -> Option<TestServer> {
        let Some(programs) = programs() else {
            eprintln!("NOT TESTED: there is no PostgreSQL. Set WALRAS_POSTGRES to the folder of its programs");
            return None;
        };
        let (folder, user) = (tempfile::tempdir().expect("a folder"), user());
        if let Some(user) = user {
            chown(folder.path(), Some(user), None).expect("the folder is ours");
        }
        let mut make = Self::command(&programs.join("initdb"), user);
        let data = folder.path().join("data");
        let made = make.arg("-D").arg(&data).args(["-U", "walras", "-A", "trust", "--no-sync"]).output();
        let made = made.expect("initdb runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let child = Self::serve(&programs, folder.path(), user);
        Some(TestServer { child, folder, user, programs })
    }

    fn command(program: &Path, user: Option<u32>) -> Command {
        let mut command = Command::new(program);
        command.current_dir("/").env("LC_ALL", "C").stdout(Stdio::null());
        if let Some(user) = user {
            command.uid(user);
        }
        command
    }

    fn serve(programs: &Path, folder: &Path, user: Option<u32>) -> Child {
        let told = || std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        let begin = || {
            let mut serve = Self::command(&programs.join("postgres"), user);
            serve.arg("-D").arg(folder.join("data")).arg("-k").arg(folder).args(["-h", "", "-c", "fsync=off"]);
            let log = File::options().create(true).append(true).open(folder.join("log")).expect("a log");
            serve.stderr(log).spawn().expect("postgres runs")
        };
        let (mut before, mut child) = (told().len(), begin());
        // It says itself when it takes connections.
        let is_ready = || {
            let mut ask = Self::command(&programs.join("pg_isready"), user);
            ask.arg("-q").arg("-h").arg(folder).status().is_ok_and(|answer| answer.success())
        };
        while !is_ready() {
            // After a crash a server ends at once while processes of the one before still hold its memory.
            if child.try_wait().expect("it is ours").is_some() {
                let log = told();
                assert!(log[before..].contains("is still in use"), "postgres does not start: {log}");
                (before, child) = (log.len(), begin());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        child
    }

    /// Where it is.
    pub fn address(&self) -> String {
        format!("host={} user=walras dbname=postgres", self.folder.path().display())
    }

    /// Ends it as a crash does, and starts it again.
    pub fn crash(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ended");
        self.child = Self::serve(&self.programs, self.folder.path(), self.user);
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
