//! Loopback ports for networks on one machine: the demo's, and those of tests.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};

/// An unused loopback address, for networks on one machine: [`free_ports`] for one port.
///
/// # Errors
/// If there is none.
pub fn free_address() -> io::Result<SocketAddr> {
    free_ports(1)
}

/// Reserves a port for an interface: true if nothing listens at the address and no other process has reserved the port
/// with this function or [`free_ports`]. Two demos that start at once do not choose the same door.
pub fn reserve_door(address: SocketAddr) -> bool {
    TcpListener::bind(address).is_ok() && reserve(address.port())
}

/// The first of `count` consecutive loopback ports that are unused by UDP and TCP. They belong to this process until it
/// ends, also while nothing listens at them: systems do not assign them automatically, because they are between 10,000
/// and 32,000, and on Linux this function gives them to no other process.
///
/// # Errors
/// If there are no such ports.
pub fn free_ports(count: u16) -> io::Result<SocketAddr> {
    const FIRST: u16 = 10_000;
    /// The range of the first port. The last ports of a row may be above it.
    const PORTS: u32 = 21_000;
    /// Distance between the starting points of concurrent processes.
    const APART: u32 = 7_919;
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let begin = std::process::id().wrapping_mul(APART) % PORTS;
    for _ in 0..PORTS {
        let taken = u32::from(TAKEN.fetch_add(count, Ordering::Relaxed));
        let first = FIRST + ((begin + taken) % PORTS) as u16;
        if (first..first + count).all(|port| is_free(port) && reserve(port)) {
            return Ok((Ipv4Addr::LOCALHOST, first).into());
        }
    }
    Err(io::ErrorKind::AddrNotAvailable.into())
}

fn is_free(port: u16) -> bool {
    let address = (Ipv4Addr::LOCALHOST, port);
    UdpSocket::bind(address).is_ok() && TcpListener::bind(address).is_ok()
}

/// Reserves a port by a local socket with its name; false if another process has done so. A validator that restarts
/// leaves its port unused for a moment, in which another network on this machine must not take it.
#[cfg(target_os = "linux")]
fn reserve(port: u16) -> bool {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    use std::sync::Mutex;
    static RESERVED: Mutex<Vec<UnixDatagram>> = Mutex::new(Vec::new());
    let name = SocketAddr::from_abstract_name(format!("walras port {port}")).expect("a short name");
    let reserved = UnixDatagram::bind_addr(&name);
    let mut all = RESERVED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    reserved.map(|socket| all.push(socket)).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn reserve(_port: u16) -> bool {
    true
}
