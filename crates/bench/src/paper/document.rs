//! Tables of a document, made from the files that exhibits wrote.
//!
//! A table stands between a line `<!-- exhibit NAME -->`, where `NAME.json` is the file, and the line
//! `<!-- end of exhibit -->`. What stands between them is replaced; everything else is left alone. A column that a
//! table should not show is named after a minus: `<!-- exhibit NAME -stopped -->`.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use super::chart::cell_text;

const BEGIN: &str = "<!-- exhibit ";
const END: &str = "<!-- end of exhibit -->";

/// A document's tables could not be made.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// A file cannot be read.
    #[error(
        "{path}: {source}; `walras-lab bench PAPER --all --out FOLDER` writes what a document's tables are made from"
    )]
    File {
        /// The file.
        path: String,
        /// The reason.
        source: std::io::Error,
    },
    /// A file is not what an exhibit writes.
    #[error("{path}: {source}; run the exhibit again")]
    Json {
        /// The file.
        path: String,
        /// The reason.
        source: serde_json::Error,
    },
    /// A file lacks a part that a table shows.
    #[error("{name}.json has no {at}; run the exhibit again")]
    Part {
        /// The exhibit.
        name: String,
        /// Where it should be, as a JSON pointer.
        at: String,
    },
    /// The end of a table is missing.
    #[error("the table of {0} has no end: write `{END}` after it")]
    NoEnd(String),
}

/// The document with its tables as `folder` has their data; `link` is how the document names that folder.
///
/// # Errors
/// [`DocumentError`].
pub fn with_tables(document: &str, folder: &Path, link: &str) -> Result<String, DocumentError> {
    let (mut result, mut lines) = (String::new(), document.lines());
    while let Some(line) = lines.next() {
        result += line;
        result.push('\n');
        let Some(asked) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(" -->")) else { continue };
        let mut words = asked.split_whitespace();
        let name = words.next().unwrap_or_default();
        let hidden: Vec<&str> = words.filter_map(|word| word.strip_prefix('-')).collect();
        result += &table(&read(folder, name)?, name, &hidden, link)?;
        lines.by_ref().find(|line| *line == END).ok_or_else(|| DocumentError::NoEnd(name.into()))?;
        result += END;
        result.push('\n');
    }
    Ok(result)
}

/// The names of the exhibits that a document shows.
pub fn shown(document: &str) -> Vec<&str> {
    let asked = document.lines().filter_map(|line| line.strip_prefix(BEGIN)?.strip_suffix(" -->"));
    asked.filter_map(|asked| asked.split_whitespace().next()).collect()
}

/// What an exhibit wrote.
///
/// # Errors
/// [`DocumentError`].
pub fn read(folder: &Path, name: &str) -> Result<Value, DocumentError> {
    let path = folder.join(format!("{name}.json"));
    let named = || path.display().to_string();
    let text = std::fs::read_to_string(&path).map_err(|source| DocumentError::File { path: named(), source })?;
    serde_json::from_str(&text).map_err(|source| DocumentError::Json { path: named(), source })
}

/// Title, rows, claims with their verdicts, what the paper says, and where it was taken.
fn table(told: &Value, name: &str, hidden: &[&str], link: &str) -> Result<String, DocumentError> {
    let none = |at: &str| DocumentError::Part { name: name.into(), at: at.into() };
    let text = |at: &str| told.pointer(at).map(cell_text).ok_or_else(|| none(at));
    let list = |at: &str| told.pointer(at).and_then(Value::as_array).ok_or_else(|| none(at));
    let mut result =
        format!("\n**{}** ({}, {}): {}.", text("/title")?, text("/section")?, text("/kind")?, text("/method")?);
    let _ = write!(result, " [Picture]({link}/{name}.svg), `{}`\n\n", text("/provenance/command")?);
    let all: Vec<String> = list("/columns")?.iter().map(cell_text).collect();
    let is_hidden = |column: &str| hidden.iter().any(|part| column.split_whitespace().any(|word| word == *part));
    let columns: Vec<&String> = all.iter().filter(|column| !is_hidden(column)).collect();
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    result += &row(columns.iter().map(|column| (*column).clone()).collect());
    result += &row(columns.iter().map(|_| "---".into()).collect()).replace(' ', "");
    for one in list("/rows")? {
        result += &row(columns.iter().map(|column| cell_text(&one[column.as_str()]).replace('|', "\\|")).collect());
    }
    result.push('\n');
    for claim in list("/claims")? {
        let part = |field: &str| cell_text(&claim[field]);
        let _ = write!(result, "- {}: **{}**: {}", part("claim"), part("verdict"), part("numbers"));
        let reasons = ["unmet", "untested"].into_iter().filter_map(|name| claim.get(name));
        let why: String = reasons.map(|why| format!(". {}", cell_text(why))).collect();
        let _ = writeln!(result, "{why}");
    }
    for value in list("/the_paper_says")? {
        let part = |field: &str| cell_text(&value[field]);
        let _ = writeln!(result, "- the paper, {}: {}: {}", part("section"), part("what"), part("value"));
    }
    let _ = writeln!(
        result,
        "- taken at commit {}, rules {}, {} build, {} cores ({}), load {} before and {} after, {} s",
        text("/provenance/commit")?,
        text("/provenance/rules")?,
        text("/provenance/build")?,
        text("/provenance/cores")?,
        text("/provenance/processor")?,
        text("/provenance/load_before/0")?,
        text("/provenance/load_after/0")?,
        text("/provenance/seconds")?,
    );
    result.push('\n');
    Ok(result)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let told = json!({
            "title": "offers", "section": "§1", "kind": "measured", "method": "by hand", "columns": ["n", "ms", "why"],
            "rows": [{ "n": 1_000, "ms": 0.123456, "why": "a|b" }],
            "claims": [{ "claim": "it is fast", "verdict": "holds", "numbers": "0.1" }],
            "the_paper_says": [{ "what": "time", "value": "1 ms", "section": "§2" }],
            "provenance": {
                "commit": "abc", "rules": 5, "load_before": [1.5, 2, 2], "load_after": [2.5, 2, 2], "seconds": 3,
                "command": "walras-lab bench p --figure 1", "build": "release", "cores": 2, "processor": "a processor",
            },
        });
        std::fs::write(folder.path().join("p-1.json"), told.to_string()).expect("written");
        folder
    }

    #[test]
    fn tables_are_replaced_and_the_rest_is_left_alone() {
        let folder = folder();
        let document = format!("before\n{BEGIN}p-1 -why -->\nstale\n{END}\nafter\n");
        let first = with_tables(&document, folder.path(), "figures").expect("a table");
        assert!(first.starts_with("before\n") && first.ends_with(&format!("{END}\nafter\n")), "{first}");
        for part in ["| n | ms |\n|---|---|\n| 1,000 | 0.1235 |\n", "it is fast: **holds**: 0.1", "figures/p-1.svg"] {
            assert!(first.contains(part), "{part:?} in {first}");
        }
        assert!(first.contains("commit abc, rules 5") && first.contains("load 1.5 before and 2.5 after"), "{first}");
        assert!(!first.contains("stale") && !first.contains("a|b"));
        assert_eq!(
            with_tables(&first, folder.path(), "figures").expect("again"),
            first,
            "a second time changes nothing"
        );
        assert_eq!(shown(&document), ["p-1"]);
    }

    #[test]
    fn what_is_missing_is_named_with_its_remedy() {
        let folder = folder();
        let missing = with_tables(&format!("{BEGIN}p-2 -->\n{END}\n"), folder.path(), "").expect_err("no file");
        assert!(
            missing.to_string().contains("p-2.json") && missing.to_string().contains("walras-lab bench"),
            "{missing}"
        );
        let endless = with_tables(&format!("{BEGIN}p-1 -->\n"), folder.path(), "").expect_err("no end");
        assert!(matches!(endless, DocumentError::NoEnd(name) if name == "p-1"));
        std::fs::write(folder.path().join("p-3.json"), r#"{"title": "offers"}"#).expect("written");
        let part = with_tables(&format!("{BEGIN}p-3 -->\n{END}\n"), folder.path(), "").expect_err("half a file");
        assert_eq!(part.to_string(), "p-3.json has no /section; run the exhibit again");
    }
}
