//! Files of a purse's folder.

use std::path::Path;

use anyhow::Context;
use serde::Serialize;

use crate::durable::write_durable;

pub(super) const LANE: &str = "lane.json";
pub(super) const DEPOSITS: &str = "deposits";
pub(super) const RECEIVED: &str = "received";
pub(super) const POSTED: &str = "posted";
pub(super) const CONTESTED: &str = "contested";
pub(super) const OUTBOX: &str = "outbox";

pub(super) fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = std::fs::read(path).with_context(|| path.display().to_string())?;
    serde_json::from_slice(&text).with_context(|| format!("{} is damaged: restore it from a copy", path.display()))
}

pub(super) fn write_json(path: &Path, value: &impl Serialize) -> anyhow::Result<()> {
    Ok(write_durable(path, (serde_json::to_string_pretty(value)? + "\n").as_bytes())?)
}
