//! The structure of the workspace: crates depend on one another only as ARCHITECTURE.md says.

mod circles;
mod named_tests;
mod sentences;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/walras is two levels down")
}

/// Edges between crates of the workspace, from their manifests; dev-dependencies are not restricted.
fn built() -> BTreeMap<String, Vec<String>> {
    let crates = root().join("crates");
    let names: Vec<String> = std::fs::read_dir(&crates)
        .expect("the crates")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name"))
        .collect();
    let edges = |name: &String| {
        let text = std::fs::read_to_string(crates.join(name).join("Cargo.toml")).expect("a manifest");
        let manifest: toml::Table = text.parse().expect("TOML");
        let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
        let mut own: Vec<String> =
            dependencies.into_iter().flat_map(toml::Table::keys).filter(|key| names.contains(key)).cloned().collect();
        own.sort();
        (name.clone(), own)
    };
    names.iter().map(edges).collect()
}

/// The lines between the fences of the section "Edges": `crate -> crate, crate`.
fn listed() -> BTreeMap<String, Vec<String>> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let section = text.split("## Edges").nth(1).expect("a section on edges");
    let block = section.split("```").nth(1).expect("a fenced list");
    let lines = block.lines().skip(1).filter(|line| !line.trim().is_empty());
    let entry = |line: &str| {
        let (name, edges) = line.split_once("->").expect("an arrow");
        let mut edges: Vec<String> =
            edges.split(',').map(|edge| edge.trim().to_string()).filter(|edge| !edge.is_empty()).collect();
        edges.sort();
        (name.trim().to_string(), edges)
    };
    lines.map(entry).collect()
}

#[test]
fn no_edge_that_the_architecture_does_not_list() {
    assert_eq!(built(), listed(), "left: what the manifests say; right: ARCHITECTURE.md, section Edges");
}

/// What a wallet or a light client never links: the state machine, and with it the EVM.
const BELOW_CLIENTS: [&str; 4] = ["ledger", "revm", "stm", "clearing"];

/// Dependencies of packages by name, as the lock file has them.
fn locked() -> BTreeMap<String, Vec<String>> {
    let text = std::fs::read_to_string(root().join("Cargo.lock")).expect("Cargo.lock");
    let lock: toml::Table = text.parse().expect("TOML");
    let mut packages = BTreeMap::<String, Vec<String>>::new();
    for package in lock["package"].as_array().expect("a list") {
        let names = package.get("dependencies").and_then(toml::Value::as_array).into_iter().flatten();
        // A name that several versions have is followed by one of them.
        let names = names.filter_map(|name| name.as_str()?.split(' ').next().map(String::from));
        packages.entry(package["name"].as_str().expect("a name").into()).or_default().extend(names);
    }
    packages
}

/// Dependencies that the manifest of a crate of the workspace names.
fn named(name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).expect("a manifest");
    let manifest: toml::Table = text.parse().expect("TOML");
    let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
    dependencies.into_iter().flat_map(toml::Table::keys).cloned().collect()
}

/// Every package that a crate of the workspace links: by its manifest, and from there on by the lock file.
fn linked(name: &str) -> BTreeSet<String> {
    let (locked, workspace, mut found) = (locked(), built(), BTreeSet::new());
    let mut next = named(name);
    while let Some(package) = next.pop() {
        if found.insert(package.clone()) {
            match workspace.contains_key(&package) {
                // The lock file lists what tests of a crate need, too.
                true => next.extend(named(&package)),
                false => next.extend(locked.get(&package).cloned().unwrap_or_default()),
            }
        }
    }
    found
}

#[test]
fn clients_link_neither_the_ledger_nor_an_evm() {
    for name in ["proofs", "client"] {
        let linked = linked(name);
        assert!(linked.contains("primitives") && linked.contains("blake3"), "{name}: {linked:?}");
        let found: Vec<&str> = BELOW_CLIENTS.into_iter().filter(|package| linked.contains(*package)).collect();
        assert!(found.is_empty(), "{name} links {found:?}");
    }
    assert!(linked("ledger").contains("revm"), "what is looked for is found where it is");
}

/// What measures and simulates, and what only that needs.
const LABORATORY: [&str; 5] = ["bench", "clarabel", "lab", "plotters", "sim"];

#[test]
fn the_product_links_no_laboratory() {
    let linked_by = |name: &str| {
        let linked = linked(name);
        LABORATORY.into_iter().filter(|package| linked.contains(*package)).collect::<Vec<_>>()
    };
    assert_eq!(linked_by("walras"), [""; 0]);
    assert_eq!(linked_by("lab"), ["bench", "clarabel", "plotters", "sim"], "what is looked for is found where it is");
}

/// The features with which a crate is built alone, and those of everything that it links.
fn features(name: &str) -> BTreeSet<String> {
    let cargo = std::process::Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--offline",
            "--edges",
            "normal,build,features",
            "--prefix",
            "none",
            "--package",
            name,
        ])
        .current_dir(root())
        // The tests are built with the features of the whole workspace at once; a product is not.
        .env_remove("CARGO_RESOLVER_FEATURE_UNIFICATION")
        .output()
        .expect("cargo runs");
    assert!(cargo.status.success(), "{}", String::from_utf8_lossy(&cargo.stderr));
    let text = String::from_utf8(cargo.stdout).expect("text");
    text.lines().map(|line| line.trim_end_matches(" (*)").to_string()).collect()
}

/// With these, a simulation can plant mistakes in the code that runs in production.
const PLANTING: [&str; 2] = ["fairnet feature \"simulation\"", "kernel feature \"mistakes\""];

#[test]
fn no_mistake_can_be_planted_in_the_product() {
    let planting_of = |name: &str| {
        let features = features(name);
        PLANTING.into_iter().filter(|feature| features.contains(*feature)).collect::<Vec<_>>()
    };
    assert_eq!(planting_of("walras"), [""; 0]);
    assert_eq!(planting_of("lab"), PLANTING, "what is looked for is found where it is");
}

/// Cargo joins the features of all packages that one command builds: with the laboratory, the product would have its.
#[test]
fn the_product_is_built_without_the_laboratory() {
    for file in ["Makefile", "deploy/Dockerfile"] {
        let text = std::fs::read_to_string(root().join(file)).expect("text");
        let shipped = |line: &&str| line.contains("-p walras") && (line.contains("--release") || line.contains("dist"));
        let builds: Vec<&str> =
            text.lines().filter(|line| line.contains(" build ") || line.contains(" run ")).filter(shipped).collect();
        assert!(!builds.is_empty(), "{file} has no command that builds the product");
        let joined: Vec<&&str> = builds.iter().filter(|line| line.matches(" -p ").count() != 1).collect();
        assert!(joined.is_empty(), "{file} builds the product together with another package: {joined:?}");
    }
}

/// Mistakes of the code that runs in production are held in `Planted`, which has no room in the product.
#[test]
fn no_type_of_the_product_has_room_for_a_mistake() {
    let is_room = |line: &&str| {
        let line = line.trim();
        ["Mistake>,", "Defect>,", "Lie>,"].iter().any(|end| line.ends_with(end)) && line.contains("Option<")
    };
    let mut found = Vec::new();
    for name in linked("walras").iter().filter(|name| built().contains_key(*name)) {
        for file in files(&root().join("crates").join(name).join("src"), "rs") {
            let text = std::fs::read_to_string(&file).expect("text");
            let is_simulation = file.components().any(|part| part.as_os_str() == "sim");
            found.extend(
                text.lines().filter(is_room).filter(|_| !is_simulation).map(|line| format!("{file:?}: {line}")),
            );
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn the_architecture_names_every_dependency() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
    let manifest: toml::Table = manifest.parse().expect("TOML");
    let dependencies = manifest["workspace"]["dependencies"].as_table().expect("a table");
    let unnamed: Vec<&String> = dependencies.keys().filter(|name| !text.contains(&format!("`{name}`"))).collect();
    assert!(unnamed.is_empty(), "not named in ARCHITECTURE.md: {unnamed:?}");
}

/// The files of a kind in a folder and the folders in it.
fn files(folder: &Path, kind: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target" && name != ".venv" && name != "node_modules") {
                found.extend(files(&path, kind));
            }
        } else if path.extension().is_some_and(|extension| extension == kind) {
            found.push(path);
        }
    }
    found
}

/// Every source file of the workspace, by its path from the root.
fn sources() -> Vec<(String, String)> {
    let mut found: Vec<_> = ["crates", "sdk"].iter().flat_map(|folder| files(&root().join(folder), "rs")).collect();
    found.sort();
    let read = |path: std::path::PathBuf| {
        let name = path.strip_prefix(root()).expect("below the root").display().to_string();
        (name, std::fs::read_to_string(&path).expect("text"))
    };
    found.into_iter().map(read).collect()
}

/// Maximum width of a line. A line may be wider if a long string literal or a row of a table makes it so: neither can
/// be broken without harm.
const COLUMNS: usize = 120;
/// A literal of this many characters counts as long.
const LITERAL: usize = 60;

#[test]
fn lines_are_narrow() {
    let is_wide = |line: &&str| {
        let row = line.trim_start().trim_start_matches("//!").trim_start_matches("///").trim_start().starts_with('|');
        let parts: Vec<&str> = line.split('"').collect();
        // An odd number of quotes: a literal that spans several lines.
        let literal =
            parts.len().is_multiple_of(2) || parts.iter().skip(1).step_by(2).any(|part| part.len() >= LITERAL);
        line.chars().count() > COLUMNS && !literal && !row
    };
    let wide: Vec<String> = sources()
        .iter()
        .flat_map(|(name, text)| text.lines().filter(is_wide).map(move |line| format!("{name}: {line}")))
        .collect();
    assert!(wide.is_empty(), "{} lines:\n{}", wide.len(), wide.join("\n"));
}

/// A section of a document.
fn section(document: &str, heading: &str) -> String {
    let text = std::fs::read_to_string(root().join(document)).expect("a document");
    let section = text.split(&format!("\n## {heading}\n")).nth(1).and_then(|rest| rest.split("\n## ").next());
    section.unwrap_or_else(|| panic!("{document} has no section {heading:?}")).into()
}

/// Each promise of the specification's table counts something that the code has.
#[test]
fn every_promise_counts_heights_or_time_that_the_code_has() {
    let section = section("docs/specification.md", "Promises and time");
    let rows: Vec<&str> = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").nth(2)).collect();
    assert!(rows.len() > 10, "the table has {} rows", rows.len());
    let sources = sources();
    let has = |text: String| sources.iter().any(|(_, source)| source.contains(&text));
    let is_there = |name: &str| match name.split_once("::") {
        Some((of, field)) => has(format!("struct {of}")) && has(format!("pub {field}: ")),
        None => has(format!("const {name}: ")),
    };
    let named = rows.iter().skip(1).flat_map(|row| row.split('`').skip(1).step_by(2));
    let missing: Vec<&str> = named.filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty(), "the code has none of {missing:?}");
}

#[test]
fn no_crate_reaches_into_another() {
    let reaches =
        |text: &str| text.lines().any(|line| line.trim_start().starts_with("#[path") && line.contains("../.."));
    let found: Vec<String> = sources().into_iter().filter(|(_, text)| reaches(text)).map(|(name, _)| name).collect();
    assert!(found.is_empty(), "{found:?}");
}

/// Files above this length are listed in ARCHITECTURE.md with the reason why each must be read as one.
const LINES: usize = 500;

#[test]
fn long_files_have_a_reason() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let section = text.split("## Long files").nth(1).expect("a section on long files");
    let section = section.split("\n## ").next().expect("text");
    let long = sources().into_iter().filter(|(_, text)| text.lines().count() > LINES);
    let unlisted: Vec<String> = long.map(|(name, _)| name).filter(|name| !section.contains(name.as_str())).collect();
    assert!(unlisted.is_empty(), "{unlisted:?}");
}

/// The longest function of a command line: what is longer is a table, or several functions.
const FUNCTION: usize = 60;

/// The first lines of functions of more than so many lines; the text is formatted.
fn long_functions(text: &str, most: usize) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let is_function = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().take_while(|word| !word.starts_with('(')).collect();
        words
            .iter()
            .position(|word| *word == "fn")
            .is_some_and(|at| words[..at].iter().all(|word| QUALIFIERS.contains(word)))
    };
    let length = |at: usize| {
        let indent = lines[at].len() - lines[at].trim_start().len();
        let ends = |line: &&str| line.len() == indent + 1 && line.trim_start() == "}";
        lines[at..].iter().position(ends).map_or(1, |more| more + 1)
    };
    (0..lines.len()).filter(|at| is_function(lines[*at]) && length(*at) > most).map(|at| lines[at].trim()).collect()
}

/// What stands before `fn`.
const QUALIFIERS: [&str; 6] = ["pub", "pub(crate)", "pub(super)", "const", "async", "unsafe"];

#[test]
fn functions_of_the_command_lines_are_short() {
    let rooms = ["crates/walras/src/", "crates/lab/src/", "crates/terminal/src/"];
    let sources = sources();
    let of_rooms = sources.iter().filter(|(name, _)| rooms.iter().any(|room| name.starts_with(room)));
    let found: Vec<_> = of_rooms
        .flat_map(|(name, text)| long_functions(text, FUNCTION).into_iter().map(move |line| format!("{name}: {line}")))
        .collect();
    assert!(found.is_empty(), "{found:#?}");
    let text = "impl A {\n    pub fn long(\n        &self,\n    ) {\n        one();\n    }\n}\nfn short() {\n}\n";
    assert_eq!(long_functions(text, 4), ["pub fn long("], "what is looked for is found where it is");
}

/// Names of public types that mean the same idea in several crates, with the idea.
const SHARED_NAMES: [(&str, &str); 9] = [
    ("Book", "a book of offers; the Python package wraps the one of clearing"),
    ("Outcome", "what became of an order; the Python package wraps the one of the ledger"),
    ("Offer", "a limit offer: of a book to be cleared, and resting in the ledger"),
    ("Evidence", "two contradictory statements: as consensus finds them and as the ledger punishes them"),
    ("Height", "a height, and the agreement on it"),
    ("Vote", "a vote, of either engine"),
    ("Proposal", "a proposal, of either engine"),
    ("Round", "a round, of either engine"),
    ("Superblock", "agreed sub-blocks, and the block that they make"),
];

#[test]
fn no_public_type_has_the_name_of_another() {
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, text) in sources().iter().filter(|(file, _)| file.contains("/src/")) {
        for line in text.lines().map(str::trim_start) {
            let kinds = ["pub struct ", "pub enum ", "pub trait ", "pub type "];
            let Some(rest) = kinds.iter().find_map(|kind| line.strip_prefix(kind)) else { continue };
            let name: String = rest.chars().take_while(|letter| letter.is_alphanumeric()).collect();
            names.entry(name).or_default().push(file.clone());
        }
    }
    let shared = |name: &str| SHARED_NAMES.iter().any(|(known, _)| *known == name);
    let twice: Vec<_> = names.into_iter().filter(|(name, files)| files.len() > 1 && !shared(name)).collect();
    assert!(twice.is_empty(), "{twice:#?}");
}

/// The most files that name one operation: where it is declared and described, what it does, its words, its command,
/// and the sources that are generated for clients.
const FILES_OF_AN_OPERATION: usize = 12;

/// A new operation touches as many files as a plain one stands in; the laboratory and tests aside.
#[test]
fn an_operation_stands_in_few_files() {
    let tree = |folder: &str| ["rs", "py", "ts"].iter().flat_map(|kind| files(&root().join(folder), kind)).collect();
    let all: Vec<std::path::PathBuf> = ["crates", "sdk/python/python", "sdk/typescript/src", "web/src"]
        .into_iter()
        .flat_map(|folder| -> Vec<_> { tree(folder) })
        .filter(|path| {
            !["bench", "sim", "lab", "tests"].iter().any(|part| path.components().any(|c| c.as_os_str() == *part))
        })
        .collect();
    for words in [["Burn", "burn"], ["Unstake", "unstake"]] {
        let naming = |path: &&std::path::PathBuf| {
            let text = std::fs::read_to_string(path).expect("text");
            let has = |word: &str| {
                [format!("Operation::{word} "), format!("\"{word}\""), format!("class {word}(")]
                    .iter()
                    .any(|form| text.contains(form.as_str()))
            };
            words.iter().any(|word| has(word))
        };
        let named: Vec<_> = all.iter().filter(naming).collect();
        let table = named.iter().any(|path| path.ends_with("primitives/src/operations/native.rs"));
        assert!(table && named.len() >= 5, "{words:?}: what is looked for is found where it is: {named:#?}");
        assert!(named.len() <= FILES_OF_AN_OPERATION, "{words:?}: {} files: {named:#?}", named.len());
    }
}

#[test]
fn there_is_no_circle_of_files() {
    let read = |name: &String| circles::Crate::read(&root().join("crates").join(name).join("src")).circles();
    let found: Vec<_> =
        built().keys().map(|name| (name.clone(), read(name))).filter(|(_, all)| !all.is_empty()).collect();
    assert!(found.is_empty(), "files that need each other: {found:#?}");
}

/// The crates whose modules stand on storeys, from the lowest on. A module needs those below, and none beside it.
const STOREYS: [(&str, &str); 4] = [
    ("ledger", "terms < places < contracts < sessions < state < block"),
    (
        "doors",
        "settings client taken unnumbered < roles door < tls backend < listen json < page markets < \
         book_feed < kit < http ethereum side_door",
    ),
    (
        "pit",
        "codes clock chain home tape < listening events < ouch < feed < shared < edge bridge < settings \
         < host < door",
    ),
    (
        "node",
        "locks free_disk empty_blocks admission known_lists < inbox block_jobs chain_clock intake_queue verified < \
         lane < config < pool < history < recovery < venue < shared < snapshot seal_keys laggards unsealer < links \
         candles executor intake < publisher < pipeline < execution producer < developer validator < exchange < reads",
    ),
];
/// Arrows back up that a crate may have, each from a file to a module.
const ARROWS_UP: usize = 3;

#[test]
fn modules_stand_on_storeys() {
    for (name, storeys) in STOREYS {
        let read = circles::Crate::read(&root().join("crates").join(name).join("src"));
        let storeys = circles::storeys_of(storeys);
        let named: BTreeSet<&str> = storeys.iter().flatten().copied().collect();
        assert_eq!(read.tops(), named, "{name}: left, the modules that there are; right, those on storeys");
        let up = read.arrows(&storeys);
        assert!(up.len() <= ARROWS_UP, "{name}: {} arrows back up: {up:#?}", up.len());
    }
}

/// Files that may have `impl` blocks of one type: who reads it has them all before him.
const FILES_OF_TYPE: usize = 6;
/// Types that have fewer.
const FEWER_FILES: [(&str, &str, usize); 1] = [("ledger", "state::ledger::Ledger", 4)];

#[test]
fn a_type_is_implemented_in_few_files() {
    let mut many = Vec::new();
    for name in built().keys() {
        let impls = circles::Crate::read(&root().join("crates").join(name).join("src")).impls();
        for (known, of, most) in FEWER_FILES.iter().filter(|(known, ..)| known == name) {
            let files = impls.get(*of).map_or(0, BTreeSet::len);
            assert!((1..=*most).contains(&files), "{known}: {files} files implement {of}");
        }
        many.extend(impls.into_iter().filter(|(_, files)| files.len() > FILES_OF_TYPE));
    }
    assert!(many.is_empty(), "types implemented in more than {FILES_OF_TYPE} files: {many:#?}");
}
