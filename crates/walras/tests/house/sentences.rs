//! What is written for people can be read: the first documents are short, and no sentence is longer than a breath.

use std::path::PathBuf;

use super::{files, root, section, sources};

/// The most words of a document, code and tables included.
const WORDS: [(&str, usize); 2] = [("README.md", 900), ("ARCHITECTURE.md", 5_000)];
/// The most words of what is said of a release.
const WORDS_OF_RELEASE: usize = 800;
/// A sentence of so many words is two. The aim is 25.
const WORDS_OF_SENTENCE: usize = 45;

fn read(path: PathBuf) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_first_documents_are_short() {
    for (document, most) in WORDS {
        let count = read(root().join(document)).split_whitespace().count();
        assert!((1..=most).contains(&count), "{document} has {count} words, the most are {most}");
    }
    let changes = read(root().join("CHANGELOG.md"));
    let releases: Vec<&str> = changes.lines().filter_map(|line| line.strip_prefix("## ")).skip(1).collect();
    assert!(!releases.is_empty(), "what has no release yet is first, and releases follow");
    for release in releases {
        let count = section("CHANGELOG.md", release).split_whitespace().count();
        assert!((1..=WORDS_OF_RELEASE).contains(&count), "{release} has {count} words");
    }
}

/// A line of a comment: what marks it, and its text.
fn comment(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let mark = ["//!", "///", "//"].into_iter().find(|mark| line.starts_with(mark))?;
    Some((mark, line[mark.len()..].trim()))
}

/// A line of a document; code is indented.
fn prose(line: &str) -> Option<(&str, &str)> {
    (!line.starts_with("    ")).then(|| ("", line.trim()))
}

/// Whether a line begins a paragraph of its own: an item, a row, a heading.
fn begins(text: &str) -> bool {
    let number = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let is_numbered = number.len() < text.len() && number.starts_with(". ");
    is_numbered || ["- ", "* ", "|", "#"].iter().any(|start| text.starts_with(start))
}

/// Paragraphs, each with the number of its first line, of lines with their marks; code between fences is none.
fn paragraphs<'t>(lines: impl Iterator<Item = Option<(&'t str, &'t str)>>) -> Vec<(usize, String)> {
    let (mut found, mut open, mut is_code) = (Vec::<(usize, String)>::new(), None, false);
    for (at, line) in lines.enumerate() {
        let Some((mark, text)) = line else {
            open = None;
            continue;
        };
        let is_fence = text.starts_with("```");
        is_code ^= is_fence;
        if is_fence || is_code || text.is_empty() {
            open = None;
            continue;
        }
        if open != Some(mark) || begins(text) {
            found.push((at + 1, String::new()));
        }
        open = Some(mark);
        let (_, paragraph) = found.last_mut().expect("one is open");
        *paragraph += &format!("{text} ");
    }
    found
}

/// Sentences of a paragraph with too many words.
fn long_sentences(paragraph: &str, ends: &[char]) -> Vec<String> {
    let mut sentences = vec![Vec::new()];
    for word in paragraph.split_whitespace() {
        sentences.last_mut().expect("one at least").push(word);
        if word.trim_end_matches([')', '*', '"', '”']).ends_with(ends) {
            sentences.push(Vec::new());
        }
    }
    let count = |words: &Vec<&str>| words.iter().filter(|word| word.chars().any(char::is_alphanumeric)).count();
    sentences.iter().filter(|words| count(words) >= WORDS_OF_SENTENCE).map(|words| words.join(" ")).collect()
}

/// The documents of the project.
fn documents() -> Vec<PathBuf> {
    let beside = std::fs::read_dir(root()).expect("the project").flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = beside.filter(|path| path.extension().is_some_and(|kind| kind == "md")).collect();
    found.extend(["docs", "findings", "peers"].iter().flat_map(|folder| files(&root().join(folder), "md")));
    let readmes = ["sdk/ethereum", "sdk/python", "sdk/typescript", "web"];
    found.extend(readmes.iter().map(|folder| root().join(folder).join("README.md")));
    found
}

#[test]
fn no_sentence_is_longer_than_a_breath() {
    let mut long = Vec::new();
    let mut look = |name: &str, found: Vec<(usize, String)>, ends: &[char]| {
        for (line, paragraph) in found {
            long.extend(
                long_sentences(&paragraph, ends).into_iter().map(|sentence| format!("{name}:{line}: {sentence}")),
            );
        }
    };
    for (name, text) in sources() {
        look(&name, paragraphs(text.lines().map(comment)), &['.', '?', '!']);
    }
    for path in documents() {
        let name = path.strip_prefix(root()).expect("below the root").display().to_string();
        // Rows of tables list clauses.
        look(&name, paragraphs(read(path).lines().map(prose)), &['.', '?', '!', ';', '|', '·']);
    }
    assert!(long.is_empty(), "{} sentences of {WORDS_OF_SENTENCE} words or more: {long:#?}", long.len());
}

#[test]
fn a_long_sentence_is_found_where_it_is() {
    let words = vec!["word"; WORDS_OF_SENTENCE].join(" ");
    let source = format!("/// Short. {}\n///   {}.\nfn f() {{}}\n// - {words}", &words[..100], &words[101..]);
    let found: Vec<usize> = paragraphs(source.lines().map(comment))
        .into_iter()
        .filter(|(_, paragraph)| !long_sentences(paragraph, &['.']).is_empty())
        .map(|(line, _)| line)
        .collect();
    assert_eq!(found, [1, 4]);
    let document = format!("# Head\n\n```sh\n{words}\n```\n\n    {words}\n\nText: {words}\n| {words}; | {words} |\n");
    let found = paragraphs(document.lines().map(prose));
    let long: Vec<usize> = found.iter().map(|(_, text)| long_sentences(text, &[';', '|']).len()).collect();
    assert_eq!(long, [0, 1, 2]);
}
