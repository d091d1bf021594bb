//! The shape of the house: crates depend on one another only where ARCHITECTURE.md says so.

use std::collections::BTreeMap;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/walras is two levels down")
}

/// Edges between crates of the workspace, from their manifests; tests may use what they like.
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

#[test]
fn the_architecture_names_every_dependency() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
    let manifest: toml::Table = manifest.parse().expect("TOML");
    let dependencies = manifest["workspace"]["dependencies"].as_table().expect("a table");
    let unnamed: Vec<&String> = dependencies.keys().filter(|name| !text.contains(&format!("`{name}`"))).collect();
    assert!(unnamed.is_empty(), "not named in ARCHITECTURE.md: {unnamed:?}");
}
