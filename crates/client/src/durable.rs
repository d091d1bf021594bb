//! Files that are whole whenever somebody reads them, also while another command writes them, and after a crash.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use crate::error::ClientError;

/// Replaces a file at once and durably; only its owner may read it.
///
/// # Errors
/// [`ClientError::File`] with the error of the disk; the file is as it was.
pub fn write_durable(path: &Path, bytes: &[u8]) -> Result<(), ClientError> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || {
        // Every command has an unfinished file of its own.
        let mut unfinished = tempfile::Builder::new().prefix(".").suffix(".unfinished").tempfile_in(folder)?;
        unfinished.write_all(bytes)?;
        unfinished.as_file().sync_all()?;
        unfinished.persist(path).map_err(|error| error.error)?;
        File::open(folder)?.sync_all()
    };
    write().map_err(|cause: io::Error| {
        let what = cause.to_string();
        ClientError::file(path, what, cause)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_whole_whenever_it_is_read_while_others_write_it() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("file");
        let text = |writer: u8| vec![b'a' + writer; 100_000];
        write_durable(&path, &text(0)).expect("written");
        std::thread::scope(|scope| {
            let writers = [1, 2].map(|writer| {
                let path = &path;
                scope.spawn(move || (0..20).for_each(|_| write_durable(path, &text(writer)).expect("written")))
            });
            while writers.iter().any(|writer| !writer.is_finished()) {
                let read = std::fs::read(&path).expect("it is there");
                assert!((0..3).any(|writer| read == text(writer)), "{} bytes", read.len());
            }
        });
        assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 1, "nothing unfinished is left");
        let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
