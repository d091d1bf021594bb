//! The page as a browser loads it: its document and all that the document names, compressed, one file after another.

use std::collections::BTreeSet;
use std::time::Instant;

use serde_json::{Value, json};
use ureq::Agent;

use crate::exchange::Error;

/// Files, compressed bytes and milliseconds of the page; null in a binary without one.
pub(super) fn page(url: &str) -> Result<Value, Error> {
    let agent = Agent::new_with_defaults();
    let document = agent.get(format!("{url}/")).call()?.body_mut().read_to_string()?;
    let files = named(&document);
    if files.is_empty() {
        return Ok(Value::Null);
    }
    let (begun, mut bytes) = (Instant::now(), 0);
    for file in std::iter::once("/").chain(files.iter().map(String::as_str)) {
        let asked = agent.get(format!("{url}{file}")).header("Accept-Encoding", "zstd, gzip");
        bytes += asked.call()?.body_mut().read_to_vec()?.len();
    }
    let took = begun.elapsed().as_secs_f64() * 1_000.0;
    Ok(json!({ "files": files.len() + 1, "compressed_bytes": bytes, "all_ms": took }))
}

/// The paths of scripts, styles and pictures in a document.
fn named(document: &str) -> BTreeSet<String> {
    let parts = ["src=\"", "href=\""].into_iter().flat_map(|attribute| document.split(attribute).skip(1));
    let paths = parts.filter_map(|rest| rest.split('"').next());
    paths
        .filter_map(|path| path.strip_prefix("./").or_else(|| path.strip_prefix('/')))
        .map(|p| format!("/{p}"))
        .collect()
}
