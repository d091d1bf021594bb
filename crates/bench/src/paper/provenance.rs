//! Where and how a figure was taken: commit, rules, processor, load, arguments.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::chart::cell_text;
use super::exhibit::{Exhibit, PaperOptions};

/// What is known before an exhibit runs.
pub struct Provenance {
    begun: Instant,
    load_before: Value,
    others_before: Option<f64>,
}

impl Provenance {
    /// Begins: the load of the machine is that before the exhibit.
    pub fn begin() -> Provenance {
        Provenance { load_before: load(), others_before: others(), begun: Instant::now() }
    }

    /// Ends.
    pub fn end(&self, exhibit: &Exhibit, options: &PaperOptions, commit: &str) -> Value {
        let seconds = (self.begun.elapsed().as_secs_f64() * 10.0).round() / 10.0;
        json!({
            "commit": commit,
            "rules": ledger::RULES_NEWEST,
            "processor": processor(),
            "cores": std::thread::available_parallelism().map_or(0, usize::from),
            "build": if cfg!(debug_assertions) { "debug" } else { "release" },
            "load_before": self.load_before,
            "load_after": load(),
            "others_running": self.others_before.zip(others()).map(|(before, after)| before.max(after)),
            "seconds": seconds,
            "command": command(exhibit, options),
            "size": options.size.name(),
            "threads": options.threads,
            "seed": options.seed,
            "kind": exhibit.kind.name(),
        })
    }
}

/// Where a picture is taken that no exhibit is of, in a line.
pub(crate) fn here() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("commit {}, rules {}, {} ({cores} cores)", commit(), ledger::RULES_NEWEST, processor())
}

/// Where a picture was taken, in a line.
pub(super) fn line(told: &Value) -> String {
    let part = |at: &str| told.pointer(at).map(cell_text).unwrap_or_else(|| "unknown".into());
    format!(
        "{}, size {}, commit {}, rules {}, {} build, {} ({} cores), load {}",
        part("/kind"),
        part("/size"),
        part("/commit"),
        part("/rules"),
        part("/build"),
        part("/processor"),
        part("/cores"),
        part("/load_before/0"),
    )
}

/// The command that runs an exhibit again.
fn command(exhibit: &Exhibit, options: &PaperOptions) -> String {
    let number = |kind: &str| exhibit.id.strip_prefix(kind).and_then(|number| number.parse::<u32>().ok());
    let what = match (number("figure-"), number("table-")) {
        (Some(figure), _) => format!("--figure {figure}"),
        (_, Some(table)) => format!("--table {table}"),
        _ => format!("--name {}", exhibit.id),
    };
    let threads: Vec<String> = options.threads.iter().map(usize::to_string).collect();
    let (paper, size, threads, seed) = (exhibit.paper.name(), options.size.name(), threads.join(","), options.seed);
    format!("walras-lab bench {paper} {what} --size {size} --threads {threads} --seed {seed}")
}

/// The commit of the sources that this program was built from, as they are now; `+` if files have changed since.
pub fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(env!("CARGO_MANIFEST_DIR")).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(head) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".into() };
    let changed =
        git(&["status", "--porcelain", "--untracked-files=no", "--", ":(top)*.rs", ":(top)*.toml", ":(top)*.lock"]);
    format!("{head}{}", if changed.is_some_and(|files| !files.is_empty()) { "+" } else { "" })
}

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or("unknown", |(_, name)| name).to_owned()
}

/// The load of the last one, five and fifteen minutes; null if the system does not say.
fn load() -> Value {
    let text = std::fs::read_to_string(Path::new("/proc/loadavg")).unwrap_or_default();
    let loads: Vec<f64> = text.split(' ').take(3).filter_map(|load| load.parse().ok()).collect();
    if loads.len() == 3 { json!(loads) } else { Value::Null }
}

/// Looks at what runs.
const LOOKS: u32 = 10;

/// How many threads of others run at a time, while this one only looks; nothing if the system does not say. The load
/// would count those of the exhibit before, too.
fn others() -> Option<f64> {
    let running = |text: String| text.split(' ').nth(3)?.split('/').next()?.parse::<u32>().ok();
    let mut all = 0;
    for _ in 0..LOOKS {
        std::thread::sleep(Duration::from_millis(10));
        all += running(std::fs::read_to_string("/proc/loadavg").ok()?)?.saturating_sub(1);
    }
    Some(f64::from(all) / f64::from(LOOKS))
}
