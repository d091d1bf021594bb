//! Versions of formats: the first byte of everything that is stored or sent whole.
//!
//! A reader knows one version of each format and refuses the others by name. Versions say how bytes are read; what they
//! may say is up to the rules of the chain.

use std::io::{Error, ErrorKind, Read, Result, Write};

/// Writes the version of a format.
///
/// # Errors
/// As the writer says.
pub fn write_format<W: Write>(writer: &mut W, version: u8) -> Result<()> {
    writer.write_all(&[version])
}

/// Reads the version of a format, which must be `known`; `what` names the format.
///
/// # Errors
/// If it is another one, or as the reader says.
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
