//! The node's side of the socket.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use primitives::{PublicKey, Signature, Signer, SigningError, SigningRequest, ValidatorPost};

use crate::wire::{SignerAnswer, SignerQuestion, read, write};

/// How long one answer may take: the signer waits for a disk.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a signer may be unavailable while it restarts.
const AWAY: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);

/// A key that a signer holds.
pub struct RemoteSigner {
    socket: PathBuf,
    key: PublicKey,
    /// `None` before the first question, and after a failed one.
    stream: Mutex<Option<UnixStream>>,
}

impl RemoteSigner {
    /// Requests the key from the signer at a socket.
    ///
    /// # Errors
    /// [`SigningError`] if no signer answers there.
    pub fn connect(socket: &Path) -> Result<RemoteSigner, SigningError> {
        let mut stream = None;
        match ask(&mut stream, socket, &SignerQuestion::Key)? {
            SignerAnswer::Key(key) => Ok(RemoteSigner { socket: socket.into(), key, stream: Mutex::new(stream) }),
            _ => Err(SigningError(format!("the process that answers at {} is not a signer", socket.display()))),
        }
    }
}

impl Signer for RemoteSigner {
    fn public(&self) -> PublicKey {
        self.key
    }

    fn sign_statement(&self, request: &SigningRequest) -> Result<Signature, SigningError> {
        self.ask(&SignerQuestion::Sign(*request), &request.digest().0)
    }

    fn sign_post(&self, post: &ValidatorPost) -> Result<Signature, SigningError> {
        let bytes = post.body().signing_bytes(&post.network);
        self.ask(&SignerQuestion::SignPost(post.clone()), &bytes)
    }
}

impl RemoteSigner {
    /// The signature on these bytes that a question asks for.
    fn ask(&self, question: &SignerQuestion, signed: &[u8]) -> Result<Signature, SigningError> {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        match ask(&mut stream, &self.socket, question)? {
            SignerAnswer::Signed(signature) if self.key.verify(signed, &signature) => Ok(signature),
            SignerAnswer::Refused(why) => Err(SigningError(format!("the signer refuses: {why}"))),
            _ => Err(SigningError(format!("the signer at {} has another key than before", self.socket.display()))),
        }
    }
}

/// Asks once more if the connection belonged to a signer that has stopped since: the same question has the same
/// answer.
fn ask(
    stream: &mut Option<UnixStream>,
    socket: &Path,
    question: &SignerQuestion,
) -> Result<SignerAnswer, SigningError> {
    let begun = Instant::now();
    loop {
        match ask_once(stream, socket, question) {
            Ok(answer) => return Ok(answer),
            Err(error) => {
                *stream = None;
                if begun.elapsed() >= AWAY {
                    let place = socket.display();
                    return Err(SigningError(format!("no signer answers at {place}: {error}; start `walras signer`")));
                }
                std::thread::sleep(PAUSE);
            }
        }
    }
}

fn ask_once(stream: &mut Option<UnixStream>, socket: &Path, question: &SignerQuestion) -> io::Result<SignerAnswer> {
    let stream = match stream {
        Some(stream) => stream,
        none => {
            let made = UnixStream::connect(socket)?;
            made.set_read_timeout(Some(ANSWER))?;
            made.set_write_timeout(Some(ANSWER))?;
            none.insert(made)
        }
    };
    write(stream, question)?;
    read(stream)
}
