//! Standard output, whose reader may close it before the command is done.

use std::fmt::Arguments;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

static READER_IS_GONE: AtomicBool = AtomicBool::new(false);

/// Prints a line. If the reader has closed the pipe, this and all later lines are dropped.
pub(crate) fn line(text: Arguments) {
    if writeln!(std::io::stdout().lock(), "{text}").is_err() {
        READER_IS_GONE.store(true, Ordering::Relaxed);
    }
}

/// Whether a line could not be printed because the reader closed the pipe; the command may then stop.
pub(crate) fn reader_is_gone() -> bool {
    READER_IS_GONE.load(Ordering::Relaxed)
}
