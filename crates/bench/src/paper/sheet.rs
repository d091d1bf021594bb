//! A page with a thumbnail of every exhibit, and what became of its claims there.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use super::chart::cell_text;
use super::document::{DocumentError, read};
use super::exhibit::Paper;
use super::{ClaimTally, exhibits};

/// Thumbnails of a row.
const ACROSS: usize = 3;

const HEAD: &str = "# Every table and figure\n\n\
    What `walras-lab bench PAPER --all --out docs/figures` wrote, made into a page by `walras-lab bench document \
    --sheet docs/exhibits.md`. Each picture says how and where it was taken; hollow marks are what the paper states. A \
    click opens the picture; data and claims are in the file of the same name that ends in `.json`.\n";

/// The page; `link` is how it names the folder of the pictures.
///
/// # Errors
/// [`DocumentError`], if an exhibit has no data.
pub fn sheet(folder: &Path, link: &str) -> Result<String, DocumentError> {
    let mut page = HEAD.to_owned();
    for paper in Paper::ALL {
        let all = exhibits(paper);
        let [head, rule] = ["|  ", "|---"].map(|cell| cell.repeat(ACROSS) + "|");
        let _ = write!(page, "\n## {}: {}\n\n{head}\n{rule}\n", paper.title(), all.len());
        for row in all.chunks(ACROSS) {
            page += "|";
            for exhibit in row {
                let told = read(folder, &exhibit.file())?;
                page += &thumbnail(&exhibit.file(), exhibit.id, &told, link);
            }
            page += "\n";
        }
    }
    Ok(page)
}

fn thumbnail(file: &str, id: &str, told: &Value, link: &str) -> String {
    let title = cell_text(&told["title"]);
    let (picture, label) = (format!("{link}/{file}.svg"), format!("<b>{id}</b>: {title}"));
    let image = format!("<img src=\"{picture}\" width=\"260\" alt=\"{id}: {title}\">");
    format!(" <a href=\"{picture}\">{image}</a><br>{label}<br>{} |", claims(told))
}

/// How its claims stand, in words.
fn claims(told: &Value) -> String {
    let ClaimTally { hold, known, untested, fail } = ClaimTally::of(&serde_json::json!({ "exhibits": [told] }));
    let parts = [
        (hold, "hold"),
        (known, "known not to hold"),
        (untested, "not tested by this run"),
        (fail.len(), "failed in this run"),
    ];
    let told: Vec<String> =
        parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if told.is_empty() { "quoted, without claims".into() } else { format!("claims: {}", told.join(", ")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_sheet_shows_every_exhibit_and_names_one_without_data() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str| {
            let told = json!({ "id": "x", "title": name, "claims": [{ "verdict": "holds" }] });
            std::fs::write(folder.path().join(format!("{name}.json")), told.to_string()).expect("written");
        };
        let all: Vec<String> = Paper::ALL.into_iter().flat_map(exhibits).map(|one| one.file()).collect();
        all[1..].iter().for_each(|name| write(name));
        let missing = sheet(folder.path(), "figures").expect_err("one is missing").to_string();
        assert!(missing.contains(&all[0]) && missing.contains("--out"), "{missing}");
        write(&all[0]);
        let page = sheet(folder.path(), "figures").expect("a page");
        for name in &all {
            assert_eq!(page.matches(&format!("src=\"figures/{name}.svg\"")).count(), 1, "{name}");
        }
        assert_eq!(page.matches("claims: 1 hold |").count(), all.len());
    }
}
