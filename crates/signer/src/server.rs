//! The signer's side of the socket.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use store::Disk;

use crate::guard::Guard;
use crate::wire::{SignerAnswer, SignerQuestion, read, write};

/// Connections that are served at the same time. A node has one, and briefly a second one when it restarts.
const CONNECTIONS_MAX: usize = 4;

/// Listens on a socket that only the own user can open, and answers until the process ends.
///
/// # Errors
/// If it cannot listen there, or the listener fails.
pub fn serve<D: Disk>(guard: Guard<D>, socket: &Path) -> io::Result<()>
where
    Guard<D>: Send,
{
    // A killed signer leaves the socket behind. A running one would hold the log that this guard has open.
    if socket.exists() {
        std::fs::remove_file(socket)?;
    }
    let listener = UnixListener::bind(socket)?;
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600))?;
    let (guard, served) = (Mutex::new(guard), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        loop {
            let (mut stream, _) = listener.accept()?;
            if served.load(Ordering::Acquire) == CONNECTIONS_MAX {
                tracing::warn!("more connections than a node has are refused");
                continue;
            }
            served.fetch_add(1, Ordering::AcqRel);
            let (guard, served) = (&guard, &served);
            scope.spawn(move || {
                // It ends when the node disconnects, or sends something that is not in the protocol.
                while answer(guard, &mut stream).is_ok() {}
                served.fetch_sub(1, Ordering::AcqRel);
            });
        }
    })
}

fn answer<D: Disk>(guard: &Mutex<Guard<D>>, stream: &mut UnixStream) -> io::Result<()> {
    let question: SignerQuestion = read(stream)?;
    let mut guard = guard.lock().unwrap_or_else(PoisonError::into_inner);
    let answer = match question {
        SignerQuestion::Key => SignerAnswer::Key(guard.public()),
        SignerQuestion::SignPost(post) => SignerAnswer::Signed(guard.sign_post(&post)),
        SignerQuestion::Sign(request) => match guard.sign(&request) {
            Ok(signature) => SignerAnswer::Signed(signature),
            Err(error) => {
                tracing::error!(height = request.height, %error, "not signed");
                SignerAnswer::Refused(error.to_string())
            }
        },
    };
    drop(guard);
    write(stream, &answer)
}
