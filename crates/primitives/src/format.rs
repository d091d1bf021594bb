//! Versions of formats: the first byte of everything that is stored or sent as a whole.
//!
//! A reader knows one version of each format and refuses the others by name. The version defines how bytes are read;
//! the rules of the chain define which values they may have.

use std::io::{Error, ErrorKind, Read, Result, Write};

/// Writes the version of a format.
///
/// # Errors
/// As the writer reports.
pub fn write_format<W: Write>(writer: &mut W, version: u8) -> Result<()> {
    writer.write_all(&[version])
}

/// Reads the version of a format, which must be `known`; `what` names the format.
///
/// # Errors
/// If it is another version, or as the reader reports.
pub fn read_format<R: Read>(reader: &mut R, what: &str, known: u8) -> Result<()> {
    let mut version = [0];
    reader.read_exact(&mut version)?;
    match version[0] {
        version if version == known => Ok(()),
        other => {
            let why =
                format!("{what} of format {other}, and this program reads {known}: use the version that wrote it");
            Err(Error::new(ErrorKind::InvalidData, why))
        }
    }
}
