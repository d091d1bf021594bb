//! Files of a purse's folder.

use std::io;
use std::path::Path;

use serde::Serialize;
use store::RealDisk;

use crate::durable::write_durable;
use crate::error::ClientError;

pub(super) const LANE: &str = "lane.json";
pub(super) const DEPOSITS: &str = "deposits";
pub(super) const RECEIVED: &str = "received";
pub(super) const POSTED: &str = "posted";
pub(super) const CONTESTED: &str = "contested";
pub(super) const OUTBOX: &str = "outbox";
/// Proved keys of lane epochs. Files of earlier versions have another name, since nothing proved their keys.
pub(super) const EPOCHS: &str = "proved-epochs.json";
/// Boards on which members made group keys.
pub(super) const BOARDS: &str = "boards.json";
/// The terms of assets that a node told last.
pub(super) const TERMS: &str = "terms.json";
/// The newest committee that was proved, where committees change.
pub(super) const PROVED: &str = "validators.json";

/// An error of the system about a file.
pub(super) fn of(path: &Path) -> impl FnOnce(io::Error) -> ClientError {
    move |cause| ClientError::file(path, cause.to_string(), cause)
}

pub(super) fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, ClientError> {
    read_json_or(path, "restore it from a copy")
}

/// The same of a file with another remedy.
pub(super) fn read_json_or<T: serde::de::DeserializeOwned>(path: &Path, remedy: &str) -> Result<T, ClientError> {
    let text = std::fs::read(path).map_err(of(path))?;
    let damaged = |cause| ClientError::contents(path, format!("it is damaged ({cause}): {remedy}"));
    serde_json::from_slice(&text).map_err(damaged)
}

pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), ClientError> {
    let text = serde_json::to_string_pretty(value).expect("names of members are text") + "\n";
    write_durable(path, text.as_bytes())
}

/// Makes a folder, if there is none.
pub(super) fn make_folder(path: &Path) -> Result<(), ClientError> {
    RealDisk::new(path).map(drop).map_err(of(path))
}

/// Removes a file if it exists.
pub(super) fn remove(path: &Path) -> Result<(), ClientError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(of(path)(error)),
        _ => Ok(()),
    }
}
