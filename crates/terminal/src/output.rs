//! Standard output and standard error, whose reader may be slow or gone, or whose disk may be full.
//!
//! - *Results* go to standard output. If one cannot be written, the command goes on with its work, and then ends with 1
//!   and a sentence. A reader that closed the pipe has read what it wanted, as `head` does: that is no error.
//! - *The log and remarks* go to standard error by one thread. Nobody fails by it: lines that cannot be written are
//!   counted, and the first one that can be is followed by their number. Nobody waits for a reader that does not read;
//!   otherwise a result comes after what was logged before it.

use std::collections::VecDeque;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Why standard output took no more, the first time.
static FAILED: OnceLock<io::Error> = OnceLock::new();

/// Prints a line of the result.
pub fn line(text: Arguments) {
    drop(writeln!(Out, "{text}"));
}

/// Prints a part of the result.
pub fn text(text: Arguments) {
    drop(write!(Out, "{text}"));
}

/// Whether a result could not be printed: a command that only shows something may then stop.
pub fn takes_no_more() -> bool {
    FAILED.get().is_some()
}

/// Whether the reader of the results closed its pipe.
pub fn reader_is_gone() -> bool {
    FAILED.get().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// Standard output, of which [`finish`] reports the errors. After the first one it takes nothing more.
pub struct Out;

impl Out {
    fn tried<T>(&self, done: io::Result<T>, otherwise: T) -> io::Result<T> {
        Ok(done.unwrap_or_else(|error| {
            FAILED.get_or_init(|| error);
            otherwise
        }))
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if HAS_ERRORS.load(Ordering::Relaxed) {
            ERRORS.drain(ORDER_PATIENCE);
        }
        match takes_no_more() {
            true => Ok(bytes.len()),
            false => self.tried(io::stdout().write(bytes), bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tried(io::stdout().flush(), ())
    }
}

/// Ends the output of a command, and returns its exit code: 1 instead of 0 if a result could not be written.
pub fn finish(code: ExitCode) -> ExitCode {
    drop(Out.flush());
    let failed = FAILED.get().filter(|error| error.kind() != ErrorKind::BrokenPipe);
    if let Some(error) = failed {
        note(format_args!(
            "error: standard output: {error}: the result of this command is not written there whole; what the command \
             did stands, so look before you repeat it"
        ));
    }
    drain();
    if failed.is_some() && code == ExitCode::SUCCESS { ExitCode::FAILURE } else { code }
}

/// Bytes that wait for standard error at most.
const WAITING_MAX: usize = 1 << 20;
/// How long the end of a command waits for the reader of standard error.
const END_PATIENCE: Duration = Duration::from_secs(2);
/// How long a result waits for what was logged before it.
const ORDER_PATIENCE: Duration = Duration::from_millis(100);
/// Whether anything was ever logged.
static HAS_ERRORS: AtomicBool = AtomicBool::new(false);

/// What waits to be written to standard error.
#[derive(Default)]
struct Waiting {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Lines that were not written.
    lost: u64,
    is_writing: bool,
    /// Somebody waited in vain, and nothing was written since.
    is_stuck: bool,
}

struct Errors {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

static ERRORS: LazyLock<Errors> = LazyLock::new(|| {
    // Without a thread the lines only wait: there is nobody to tell.
    drop(std::thread::Builder::new().name("log".into()).spawn(|| ERRORS.write_all()));
    Errors { waiting: Mutex::default(), changed: Condvar::new() }
});

impl Errors {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: Vec<u8>) {
        HAS_ERRORS.store(true, Ordering::Relaxed);
        let mut waiting = self.waiting();
        if waiting.bytes + line.len() > WAITING_MAX {
            waiting.lost += 1;
            return;
        }
        waiting.bytes += line.len();
        waiting.lines.push_back(line);
        self.changed.notify_all();
    }

    fn write_all(&self) {
        loop {
            let line = self.next();
            let failed = io::stderr().write_all(&line).err();
            let mut waiting = self.waiting();
            (waiting.is_writing, waiting.is_stuck) = (false, false);
            waiting.lost += u64::from(failed.is_some());
            let lost = if failed.is_none() { std::mem::take(&mut waiting.lost) } else { 0 };
            self.changed.notify_all();
            drop(waiting);
            if lost > 0 {
                tracing::warn!(lines = lost, "lines of the log before this one could not be written and are lost");
            }
        }
    }

    fn next(&self) -> Vec<u8> {
        let waiting = self.changed.wait_while(self.waiting(), |waiting| waiting.lines.is_empty());
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        let line = waiting.lines.pop_front().unwrap_or_default();
        waiting.bytes -= line.len();
        waiting.is_writing = true;
        line
    }

    fn drain(&self, patience: Duration) {
        let is_busy = |waiting: &mut Waiting| !waiting.is_stuck && (waiting.is_writing || !waiting.lines.is_empty());
        let waited = self.changed.wait_timeout_while(self.waiting(), patience, is_busy);
        let (mut waiting, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        waiting.is_stuck |= timeout.timed_out();
    }
}

/// Prints a remark on standard error.
pub fn note(text: Arguments) {
    ERRORS.push(format!("{text}\n").into_bytes());
}

/// Waits until the log is written, but not for a reader that does not read.
pub fn drain() {
    ERRORS.drain(END_PATIENCE);
}

/// Where the log goes.
#[derive(Clone, Copy)]
pub struct Log;

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        ERRORS.push(line.to_vec());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
