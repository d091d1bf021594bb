//! A piece of network before a member, which can hold what is sent to it.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use fairnet::MemberId;

/// To whom nothing comes through.
#[derive(Default)]
pub struct Gate {
    held: Mutex<Option<MemberId>>,
    changed: Condvar,
}

impl Gate {
    pub fn set(&self, held: Option<MemberId>) {
        *self.held.lock().expect("no panic") = held;
        self.changed.notify_all();
    }

    fn pass(&self, member: MemberId) {
        let held = self.held.lock().expect("no panic");
        drop(self.changed.wait_while(held, |held| *held == Some(member)).expect("no panic"));
    }
}

/// A relay to a member's streams.
pub fn relay(to: SocketAddr, member: MemberId, gate: Arc<Gate>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let Ok(onward) = TcpStream::connect(to) else { continue };
            let (back, forth) = (onward.try_clone().expect("a socket"), stream.try_clone().expect("a socket"));
            let gate = gate.clone();
            std::thread::spawn(move || copy(stream, onward, || gate.pass(member)));
            std::thread::spawn(move || copy(back, forth, || {}));
        }
    });
    address
}

fn copy(mut from: TcpStream, mut to: TcpStream, pass: impl Fn()) {
    let mut buffer = [0; 4_096];
    while let Ok(count) = from.read(&mut buffer) {
        pass();
        if count == 0 || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    drop((from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both)));
}
