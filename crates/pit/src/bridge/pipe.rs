//! A socket of a bridge.

use std::io::ErrorKind;

use tokio::io::Interest;
use tokio::net::TcpStream;

/// A socket, and what it has not taken.
pub(super) struct Pipe {
    pub stream: TcpStream,
    pub unsent: Vec<u8>,
}

/// What a socket did.
pub(super) enum PipeTurn {
    Read(usize),
    Wrote(usize),
    Lost,
    Nothing,
}

impl Pipe {
    pub fn new(stream: TcpStream) -> Pipe {
        drop(stream.set_nodelay(true));
        Pipe { stream, unsent: Vec::new() }
    }

    pub fn write(&mut self) -> PipeTurn {
        match self.stream.try_write(&self.unsent) {
            Ok(bytes) => {
                self.unsent.drain(..bytes);
                PipeTurn::Wrote(bytes)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => PipeTurn::Nothing,
            Err(_) => PipeTurn::Lost,
        }
    }
}

/// Waits until a socket can do something, and does it; for ever if there is none.
pub(super) async fn turn(pipe: &mut Option<Pipe>, buffer: &mut [u8]) -> PipeTurn {
    let Some(pipe) = pipe else { return std::future::pending().await };
    let interest = if pipe.unsent.is_empty() { Interest::READABLE } else { Interest::READABLE | Interest::WRITABLE };
    let Ok(ready) = pipe.stream.ready(interest).await else { return PipeTurn::Lost };
    if ready.is_writable() && !pipe.unsent.is_empty() {
        match pipe.write() {
            PipeTurn::Nothing => {}
            done => return done,
        }
    }
    match pipe.stream.try_read(buffer) {
        Ok(0) => PipeTurn::Lost,
        Ok(bytes) => PipeTurn::Read(bytes),
        Err(error) if error.kind() == ErrorKind::WouldBlock => PipeTurn::Nothing,
        Err(_) => PipeTurn::Lost,
    }
}
