//! Every command that README shows, pasted into a shell in its order: each prints what README shows below it. The
//! guide's commands of a first exchange likewise succeed, and say what its text promises. Only addresses differ, which
//! other tests may have taken, and pauses, which end when the node answers.

// The other tests use the rest of it.
#[allow(dead_code)]
mod process;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use process::walras;
use tempfile::TempDir;

/// A file of the project.
fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A command of a document, and the lines that the document shows below it.
struct Shown {
    command: String,
    lines: Vec<String>,
}

/// What the consoles of a document show, in its order.
fn shown(document: &str) -> Vec<Shown> {
    let consoles = document.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut shown: Vec<Shown> = Vec::new();
    for line in consoles.flat_map(str::lines) {
        match line.strip_prefix("$ ") {
            Some(command) => shown.push(Shown { command: command.into(), lines: Vec::new() }),
            None => shown.last_mut().expect("a command is first").lines.push(line.into()),
        }
    }
    shown
}

/// Words one space apart, without heights: a node that rests makes an empty block each minute.
fn plain(text: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in text.split_whitespace() {
        let is_height = words.last().is_some_and(|last| ["block", "height"].contains(last));
        words.push(if is_height { word.trim_start_matches(|letter: char| letter.is_ascii_digit()) } else { word });
    }
    words.join(" ")
}

/// Whether a line is as shown: `…` stands for any text, and columns may be aligned otherwise.
fn is_as_shown(shown: &str, line: &str) -> bool {
    let (shown, line) = (plain(shown), plain(line));
    match shown.split_once('…') {
        Some((start, end)) => {
            line.strip_prefix(start).is_some_and(|rest| rest.len() >= end.len() && rest.ends_with(end))
        }
        None => shown == line,
    }
}

/// Whether all lines are as shown: a line `…` stands for any number of lines.
fn are_as_shown(shown: &[String], lines: &[String]) -> bool {
    match (shown, lines) {
        ([], _) => lines.is_empty(),
        ([any, rest @ ..], _) if any == "…" => (0..=lines.len()).any(|skipped| are_as_shown(rest, &lines[skipped..])),
        ([first, rest @ ..], [line, more @ ..]) => is_as_shown(first, line) && are_as_shown(rest, more),
        _ => false,
    }
}

/// The same text with a zero for each number: addresses, processes and traders of a demo are others in each run.
fn without_numbers(text: &str) -> String {
    let mut plain = String::new();
    for letter in text.chars() {
        match letter.is_ascii_digit() {
            true if plain.ends_with('0') => {}
            true => plain.push('0'),
            false => plain.push(letter),
        }
    }
    plain
}

/// Runs a demo until it has printed what is shown, and ends it as Ctrl-C does.
fn demo_prints(arguments: &str, shown: &[String]) {
    let shown: Vec<String> = shown.iter().map(|line| without_numbers(line)).collect();
    // So that a demo that never prints it ends, and tells what it printed instead.
    let mut command = walras();
    command.args(arguments.split_whitespace()).args(["--seconds", "600"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut demo = command.spawn().expect("a demo starts");
    let (mut lines, mut reader) = (Vec::new(), BufReader::new(demo.stdout.take().expect("piped")));
    while !are_as_shown(&shown, &lines) {
        let mut line = String::new();
        let read = reader.read_line(&mut line).expect("text");
        assert!(read > 0, "walras {arguments}: shown\n{}\n\nprinted\n{}", shown.join("\n"), lines.join("\n"));
        lines.push(without_numbers(line.trim_end()));
    }
    let ended = Command::new("sh").args(["-c", &format!("kill -INT {}", demo.id())]).status().expect("sh runs");
    assert!(ended.success());
    // Its summary has a reader, so that it ends as it does in a terminal.
    std::io::copy(&mut reader, &mut std::io::sink()).expect("the rest");
    assert!(demo.wait().expect("it ends").success(), "walras {arguments}");
}

/// The arguments with which a target of the Makefile runs the program at its end.
fn made(target: &str) -> String {
    let makefile = read("Makefile");
    let rule = makefile.split(&format!("\n{target}: ")).nth(1).expect("a target");
    let recipe = rule.lines().skip(1).take_while(|line| line.starts_with('\t'));
    let last = recipe.last().and_then(|line| line.trim().strip_prefix("./$(WALRAS) "));
    last.unwrap_or_else(|| panic!("make {target} does not run the program at its end")).into()
}

/// A folder in which `walras` is on the path, with a server's address of its own.
struct Shell {
    folder: TempDir,
    settings: Vec<(&'static str, String)>,
}

/// Stands between what two commands print.
const BETWEEN: char = '\u{1}';

impl Shell {
    fn new() -> Shell {
        let folder = TempDir::new().expect("a folder");
        std::os::unix::fs::symlink(walras().get_program(), folder.path().join("walras")).expect("a link");
        let listen = sockets::free_ports(1).expect("free ports").to_string();
        let settings = vec![
            ("WALRAS_HTTP__LISTEN", listen.clone()),
            ("WALRAS_SERVER", format!("http://{listen}")),
            ("WALRAS_BLOCKS__INTERVAL_MS", "20".into()),
        ];
        Shell { folder, settings }
    }

    /// With addresses of the payment lane, which an exchange without a lane refuses.
    fn with_lane(mut self) -> Shell {
        let lane = sockets::free_ports(node::HOME_PORTS).expect("free ports").to_string();
        self.settings.push(("WALRAS_LANE__ADDRESSES", lane));
        self
    }

    /// Runs commands and returns what each prints; ends the processes that they leave in the background.
    fn run<'c>(&self, commands: impl IntoIterator<Item = &'c str>) -> Vec<String> {
        let path: PathBuf = self.folder.path().into();
        let answers = "walras wallet show --key exchange/issuer-key.json > /dev/null 2>&1";
        // A node that has ended will not answer.
        let runs = "[ -n \"$(jobs -rp)\" ] || { cat exchange.log >&2; exit 1; }";
        let pause = format!("sleep() {{ until {answers}; do {runs}; command sleep 0.05; done }}");
        let commands: Vec<&str> = commands.into_iter().collect();
        let commands = commands.join(&format!("\nprintf '{BETWEEN}'\n"));
        let script = format!("set -euo pipefail; trap 'kill $(jobs -p) || true; wait' EXIT\n{pause}\n{commands}");
        let mut shell = Command::new("bash");
        shell.args(["-c", &script]).current_dir(&path).envs(self.settings.iter().map(|(name, value)| (*name, value)));
        let others = std::env::var("PATH").unwrap_or_default();
        let output = shell.env("PATH", format!("{}:{others}", path.display())).output().expect("bash runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        text.split(BETWEEN).map(String::from).collect()
    }
}

#[test]
fn every_command_of_the_readme_prints_what_the_readme_shows() {
    let all = shown(&read("README.md"));
    let (made_here, pasted): (Vec<&Shown>, Vec<&Shown>) = all.iter().partition(|one| one.command.starts_with("make "));
    assert!(made_here.len() == 1 && pasted.len() > 5, "{} and {} commands", made_here.len(), pasted.len());
    for one in made_here {
        demo_prints(&made(one.command.trim_start_matches("make ")), &one.lines);
    }
    let printed = Shell::new().run(pasted.iter().map(|one| one.command.as_str()));
    assert_eq!(printed.len(), pasted.len());
    for (one, printed) in pasted.into_iter().zip(printed) {
        let lines: Vec<String> = printed.lines().map(String::from).collect();
        assert!(are_as_shown(&one.lines, &lines), "{}: shown {:#?}, printed {lines:#?}", one.command, one.lines);
    }
}

#[test]
fn every_demo_that_the_readme_names_starts() {
    let readme = read("README.md");
    let spans = readme.split('`').skip(1).step_by(2).filter_map(|span| span.strip_prefix("walras "));
    let demos: Vec<&str> = spans.filter(|arguments| arguments.starts_with("demo ")).collect();
    assert!(demos.len() > 1, "{demos:?}");
    for demo in demos {
        demo_prints(demo, &["…", "…Ctrl-C stops.", "…"].map(String::from));
    }
}

#[test]
fn what_a_document_shows_is_compared_line_by_line() {
    let lines = |text: &str| text.lines().map(String::from).collect::<Vec<_>>();
    let shown = lines("committed in block 1: paid 1 USD to 0x…\n…\nlast");
    assert!(are_as_shown(&shown, &lines("committed in block 12:  paid 1 USD to 0xaf\nlast")));
    assert!(are_as_shown(&shown, &lines("committed in block 1: paid 1 USD to 0xaf\none\ntwo\nlast")));
    assert!(!are_as_shown(&shown, &lines("committed in block 1: paid 2 USD to 0xaf\nlast")));
    assert!(!are_as_shown(&shown, &lines("committed in block 1: paid 1 USD to 0xaf\nlast\nmore")));
    assert_eq!(without_numbers("block 17, port 8080 of 1.5"), "block 0, port 0 of 0.0");
}

/// The indented commands of a section of the guide, block by block.
fn blocks(title: &str) -> Vec<String> {
    let guide = read("docs/guide.md");
    let section = guide.split("\n## ").find(|section| section.starts_with(title)).expect("the section");
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

#[test]
fn the_guides_first_trade_and_payment_work_when_they_are_pasted() {
    let blocks = blocks("Your own exchange");
    let of =
        |word: &str| blocks.iter().find(|block| block.contains(word)).unwrap_or_else(|| panic!("no {word}")).clone();
    let commands = [of("wallet sell"), of("pay send"), of("inspect")].concat();
    let said = Shell::new().with_lane().run([commands.as_str()]).concat();
    for promised in [
        "paid 1000 EUR to",
        "sold 0 EUR for 0 USD; 100 EUR rests",
        "offer 1      sells 100 EUR at 1.05 USD",
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
