//! A validator whose key is in another process.

// The other tests use the rest of it.
#[allow(dead_code)]
mod process;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use process::{Process, walras};

struct RunningSigner(Child);

impl RunningSigner {
    fn start(folder: &Path, more: &[&str]) -> RunningSigner {
        let at = |name: &str| folder.join(name);
        let mut command = walras();
        command.args(["signer", "--key"]).arg(at("validator-key.json")).arg("--guard").arg(at("guard"));
        command.arg("--socket").arg(at("signer.sock")).args(more).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("walras starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        assert!(line.starts_with("signing for "), "{line}");
        RunningSigner(child)
    }
}

impl Drop for RunningSigner {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The home of the only validator of a network; its key is in `folder`, outside the home.
fn home(folder: &Path) -> PathBuf {
    let network = folder.join("network");
    let init = "init --validators 1 --asset USD:2 --supply 1000 --stake 500 --fee 0 --home";
    assert!(walras().args(init.split_whitespace()).arg(&network).output().expect("walras runs").status.success());
    let home = network.join("validator-0");
    std::fs::rename(home.join("validator-key.json"), folder.join("validator-key.json")).expect("moved");
    home
}

fn start(home: &Path, folder: &Path) -> Process {
    let socket = folder.join("signer.sock");
    let socket = socket.to_str().expect("a plain path");
    Process::start(home, &[("WALRAS_NETWORK__SIGNER", socket), ("WALRAS_NETWORK__LISTEN", "127.0.0.1:0")])
}

fn pay(folder: &Path, node: &Process, amount: &str) {
    let mut command = walras();
    command.args(["wallet", "pay", "--asset", "USD", "--amount", amount, "--server", &node.server]);
    command.args(["--to", "0x00000000000000000000000000000000000000a1", "--key"]);
    let output = command.arg(folder.join("network/issuer-key.json")).output().expect("walras runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_signer_holds_the_key_and_a_node_without_it_stops_and_goes_on_with_it() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let folder = folder.path();
    let home = home(folder);
    let signer = RunningSigner::start(folder, &["--new"]);
    let node = start(&home, folder);
    pay(folder, &node, "1");

    // Without its signer the node stops and says why; nothing is signed by another key.
    drop(signer);
    let mut command = walras();
    command.args(["wallet", "pay", "--asset", "USD", "--amount", "2", "--server", &node.server, "--key"]);
    command.arg(folder.join("network/issuer-key.json")).args(["--to", "0x00000000000000000000000000000000000000a1"]);
    let mut waiting = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("walras starts");
    let begun = Instant::now();
    while !node.log().contains("no signer answers at") {
        assert!(begun.elapsed() < Duration::from_secs(300), "it continues: {}", node.log());
        std::thread::sleep(Duration::from_millis(100));
    }
    let _ = waiting.kill();
    let _ = waiting.wait();
    drop(node);

    // Both continue where they were, and a second start with --new is refused.
    let again = walras()
        .args(["signer", "--new", "--key"])
        .arg(folder.join("validator-key.json"))
        .arg("--guard")
        .arg(folder.join("guard"))
        .arg("--socket")
        .arg(folder.join("other.sock"))
        .output();
    let again = String::from_utf8_lossy(&again.expect("walras runs").stderr).into_owned();
    assert!(again.contains("guard"), "{again}");
    let _signer = RunningSigner::start(folder, &[]);
    let node = start(&home, folder);
    pay(folder, &node, "3");
}
