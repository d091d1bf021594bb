//! Tests that documents name beside what they are about: each of them exists.

use super::{files, root, section, sources};

/// Names between backticks that no function of the workspace and no test of the packages has.
fn missing_functions<'t>(named: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
    let (sources, packages) = (sources(), tests_of_packages());
    let is_function = |name: &str| sources.iter().any(|(_, text)| text.contains(&format!("fn {name}(")));
    let is_test = |name: &str| {
        let written = [format!("def test_{name}("), format!("test(\"{}\"", name.replace('_', " "))];
        packages.iter().any(|text| written.iter().any(|test| text.contains(test)))
    };
    named.filter(|name| !is_function(name) && !is_test(name)).collect()
}

/// The tests of the packages in Python and TypeScript.
fn tests_of_packages() -> Vec<String> {
    let folders = [("sdk/python/tests", "py"), ("sdk/typescript/tests", "ts")];
    let found = folders.iter().flat_map(|(folder, kind)| files(&root().join(folder), kind));
    found.map(|path| std::fs::read_to_string(path).expect("text")).collect()
}

/// The tests that SECURITY.md names beside the attacks.
#[test]
fn tests_against_attacks_exist() {
    let section = section("SECURITY.md", "Known attacks and accidents");
    let missing = missing_functions(section.split('`').skip(1).step_by(2));
    assert!(missing.is_empty(), "no such tests: {missing:?}");
}

/// The tests that docs/fairnet.md names for what the market edge must do. What is a command or a crate is no test.
#[test]
fn tests_of_the_market_edge_exist() {
    let section = section("docs/fairnet.md", "What is tested where");
    let rows = section.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| item |"));
    let is_test = |name: &&str| name.contains('_') && !name.contains(' ');
    let named: Vec<Vec<&str>> = rows.map(|row| row.split('`').skip(1).step_by(2).filter(is_test).collect()).collect();
    let count: usize = named.iter().map(Vec::len).sum();
    assert!(count > 100, "the table names {count} tests");
    let missing = missing_functions(named.into_iter().flatten());
    assert!(missing.is_empty(), "no such tests: {missing:?}");
}

/// The tests that docs/sealed.md names for each of the fifteen mistakes that would let somebody read.
#[test]
fn tests_of_sealed_orders_exist() {
    let section = section("docs/sealed.md", "For reviewers");
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| ") && line.contains(". ")).collect();
    let is_test = |name: &&str| name.contains('_');
    let named: Vec<Vec<&str>> =
        rows.iter().map(|row| row.split('`').skip(1).step_by(2).filter(is_test).collect()).collect();
    assert!(rows.len() == 15 && named.iter().all(|tests| !tests.is_empty()), "each row names a test: {named:?}");
    let missing = missing_functions(named.into_iter().flatten());
    assert!(missing.is_empty(), "no such tests: {missing:?}");
}

/// The tests that docs/venues.md names for what must hold of a venue, one or more in each row.
#[test]
fn tests_of_venues_exist() {
    let section = section("docs/venues.md", "What is tested where");
    let rows: Vec<&str> = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").nth(1)).collect();
    let missing = missing_functions(rows.iter().flat_map(|tests| tests.split('`').skip(1).step_by(2)));
    assert!(missing.is_empty(), "no such tests: {missing:?}");
    let untested: Vec<&&str> = rows.iter().skip(1).filter(|tests| !tests.contains('`')).collect();
    assert!(rows.len() > 40 && untested.is_empty(), "{} rows; without a test: {untested:?}", rows.len());
}
