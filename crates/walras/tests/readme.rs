//! The commands of README's "Your own exchange", pasted into a shell in their order: each succeeds, and says what the
//! text promises. Only addresses differ, which other tests may have taken, and pauses, which end when the node answers.

// The other tests use the rest of it.
#[allow(dead_code)]
mod process;

use std::path::{Path, PathBuf};
use std::process::Command;

use process::walras;
use tempfile::TempDir;

/// The commands of a section, block by block.
fn blocks(title: &str) -> Vec<String> {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = std::fs::read_to_string(readme).expect("README.md");
    let section = text.split("\n## ").find(|section| section.starts_with(title)).expect("the section");
    let mut blocks = vec![String::new()];
    for line in section.lines() {
        match line.strip_prefix("    ") {
            Some(command) => *blocks.last_mut().expect("one at least") += &format!("{command}\n"),
            None if blocks.last().is_some_and(|block| !block.is_empty()) => blocks.push(String::new()),
            None => {}
        }
    }
    blocks.retain(|block| !block.is_empty());
    blocks
}

/// A folder in which `walras` is on the path, with a server's address of its own.
struct Shell {
    folder: TempDir,
    settings: Vec<(&'static str, String)>,
}

impl Shell {
    fn new() -> Shell {
        let folder = TempDir::new().expect("a folder");
        std::os::unix::fs::symlink(walras().get_program(), folder.path().join("walras")).expect("a link");
        let free = |count| sockets::free_ports(count).expect("free ports").to_string();
        let (listen, lane) = (free(1), free(node::HOME_PORTS));
        let settings = vec![
            ("WALRAS_HTTP__LISTEN", listen.clone()),
            ("WALRAS_SERVER", format!("http://{listen}")),
            ("WALRAS_LANE__ADDRESSES", lane),
            ("WALRAS_BLOCKS__INTERVAL_MS", "20".into()),
        ];
        Shell { folder, settings }
    }

    /// Runs commands and returns what they print; ends the processes that they left in the background.
    fn run(&self, commands: &str) -> String {
        let path: PathBuf = self.folder.path().into();
        let pause = "sleep() { until walras wallet show --key exchange/issuer-key.json; do command sleep 0.05; done }";
        let script = format!("set -euo pipefail; trap 'kill $(jobs -p); wait' EXIT\n{pause}\n{commands}");
        let mut shell = Command::new("bash");
        shell.args(["-c", &script]).current_dir(&path).envs(self.settings.iter().map(|(name, value)| (*name, value)));
        let others = std::env::var("PATH").unwrap_or_default();
        let output = shell.env("PATH", format!("{}:{others}", path.display())).output().expect("bash runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        text
    }
}

#[test]
fn the_readmes_first_trade_and_payment_work_when_they_are_pasted() {
    let blocks = blocks("Your own exchange");
    let of =
        |word: &str| blocks.iter().find(|block| block.contains(word)).unwrap_or_else(|| panic!("no {word}")).clone();
    let (trade, payment, home) = (of("wallet offer"), of("pay send"), of("inspect"));
    let said = Shell::new().run(&[trade, payment, home].concat());
    for promised in [
        "paid 1000 EUR to",
        "sold 0 EUR for 0 USD; 100 EUR rests",
        "offer 1      sells 100 EUR, limit 1.05 USD for one EUR",
        "deposited 100 EUR: settled",
        "proves fast only",
        "received 12.5 EUR",
        "redeemed 12.5 EUR",
        "deposits",
        "exchange.snapshot: written",
        "trades",
    ] {
        assert!(said.contains(promised), "{promised:?} is not in\n{said}");
    }
    assert!(!said.contains("refused") && !said.contains("error"), "{said}");
}
