//! How etcd is reached: JSON over HTTP/1.1 on a connection a call, with TLS and a login where they are given.
//!
//! TLS trusts the given authorities and nothing else. A login is exchanged for a token, which etcd forgets when it
//! starts again; then it is asked for a new one, once.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};

use super::EtcdError;

/// Bytes of an answer at most.
const ANSWER_BYTES: u64 = 1 << 20;

/// Name and password at etcd.
#[derive(Clone)]
pub struct EtcdLogin {
    /// The user.
    pub user: String,
    /// Its password.
    pub password: String,
}

/// The addresses, and what they ask for.
#[derive(Clone)]
pub(super) struct Access {
    pub(super) endpoints: Vec<String>,
    pub(super) patience: Duration,
    pub(super) tls: Option<Arc<ClientConfig>>,
    pub(super) login: Option<EtcdLogin>,
    pub(super) token: Arc<Mutex<Option<String>>>,
}

/// What came back.
struct Reply {
    status: u16,
    text: String,
}

impl Access {
    /// Asks one endpoint after the other. An answer that is an error is one.
    pub(super) fn call(&self, path: &str, body: &Value) -> Result<Value, EtcdError> {
        let mut why = "no endpoints".to_string();
        for endpoint in &self.endpoints {
            match self.ask(endpoint, path, body) {
                Ok(reply) => return answer(&reply),
                Err(Failed::Refused(error)) => return Err(error),
                Err(Failed::Silent(error)) => why = format!("{endpoint}: {error}"),
            }
        }
        Err(EtcdError::Silent(why, self.endpoints.clone()))
    }

    fn ask(&self, endpoint: &str, path: &str, body: &Value) -> Result<Reply, Failed> {
        let known = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (token, is_new) = match (&self.login, known) {
            (Some(login), None) => (Some(self.enter(endpoint, login)?), true),
            (_, known) => (known, false),
        };
        let reply = self.post(endpoint, path, body, token.as_deref())?;
        match &self.login {
            Some(login) if reply.status == 401 && !is_new => {
                let token = self.enter(endpoint, login)?;
                Ok(self.post(endpoint, path, body, Some(&token))?)
            }
            _ => Ok(reply),
        }
    }

    /// Exchanges the login for a token.
    fn enter(&self, endpoint: &str, login: &EtcdLogin) -> Result<String, Failed> {
        let body = json!({ "name": login.user, "password": login.password });
        let reply = answer(&self.post(endpoint, "/v3/auth/authenticate", &body, None)?).map_err(Failed::Refused)?;
        let missing = || Failed::Refused(EtcdError::Answer("a login without a token".into()));
        let token = reply["token"].as_str().ok_or_else(missing)?.to_string();
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(token.clone());
        Ok(token)
    }

    fn post(&self, endpoint: &str, path: &str, body: &Value, token: Option<&str>) -> io::Result<Reply> {
        let ends = Instant::now() + self.patience;
        let (is_secure, authority) = parts(endpoint)?;
        let socket = Timed { socket: connect(authority, is_secure, ends)?, ends };
        let body = body.to_string();
        let login = token.map_or(String::new(), |token| format!("Authorization: {token}\r\n"));
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             {login}Connection: close\r\n\r\n{body}",
            body.len()
        );
        if !is_secure {
            return exchange(socket, &request);
        }
        let config = self.tls.clone().ok_or_else(|| io::Error::other("https needs the authority: give --etcd-ca"))?;
        let (host, _) = host_and_port(authority, is_secure)?;
        let name = ServerName::try_from(host.to_string()).map_err(io::Error::other)?;
        let connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
        exchange(StreamOwned::new(connection, socket), &request)
    }
}

enum Failed {
    /// Nobody answered: another endpoint may.
    Silent(io::Error),
    Refused(EtcdError),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::Silent(error)
    }
}

fn answer(reply: &Reply) -> Result<Value, EtcdError> {
    let foreign = || EtcdError::Answer(format!("{}: {}", reply.status, reply.text));
    let answer: Value = serde_json::from_str(&reply.text).map_err(|_| foreign())?;
    if reply.status == 200 && answer["error"].is_null() { Ok(answer) } else { Err(foreign()) }
}

/// TLS that trusts the authorities of a file, and shows a certificate if one is given with its key.
pub(super) fn tls(authorities: &Path, own: Option<(&Path, &Path)>) -> Result<ClientConfig, EtcdError> {
    let wrong =
        |path: &Path, error: &dyn std::fmt::Display| EtcdError::File(path.display().to_string(), error.to_string());
    let certificates = |path: &Path| {
        let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        read.map_err(|error| wrong(path, &error))
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(authorities)? {
        roots.add(certificate).map_err(|error| wrong(authorities, &error))?;
    }
    if roots.is_empty() {
        return Err(wrong(authorities, &"it holds no certificate"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| wrong(authorities, &error))?.with_root_certificates(roots);
    let Some((certificate, key)) = own else { return Ok(builder.with_no_client_auth()) };
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    builder.with_client_auth_cert(certificates(certificate)?, secret).map_err(|error| wrong(certificate, &error))
}

/// Whether an endpoint is secure, and its host and port.
fn parts(endpoint: &str) -> io::Result<(bool, &str)> {
    let endpoint = endpoint.trim_end_matches('/');
    let plain = endpoint.strip_prefix("http://").map(|rest| (false, rest));
    let found = plain.or_else(|| endpoint.strip_prefix("https://").map(|rest| (true, rest)));
    found.ok_or_else(|| io::Error::other("no address such as http://127.0.0.1:2379"))
}

fn host_and_port(authority: &str, is_secure: bool) -> io::Result<(&str, u16)> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(io::Error::other)?),
        _ => (authority, if is_secure { 443 } else { 80 }),
    };
    Ok((host.trim_start_matches('[').trim_end_matches(']'), port))
}

fn connect(authority: &str, is_secure: bool, ends: Instant) -> io::Result<TcpStream> {
    let mut failed = io::Error::other("the name has no address");
    for address in host_and_port(authority, is_secure)?.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left(ends)?) {
            Ok(socket) => return Ok(socket),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn left(ends: Instant) -> io::Result<Duration> {
    let left = ends.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// A socket of which everything together takes at most a time.
struct Timed {
    socket: TcpStream,
    ends: Instant,
}

impl Read for Timed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(left(self.ends)?))?;
        self.socket.read(into)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(left(self.ends)?))?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

fn exchange(mut stream: impl Read + Write, request: &str) -> io::Result<Reply> {
    stream.write_all(request.as_bytes())?;
    stream.flush()?;
    let mut bytes = Vec::new();
    match stream.take(ANSWER_BYTES).read_to_end(&mut bytes) {
        // An end without TLS' own: the lengths tell whether all came.
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        _ => reply(&bytes),
    }
}

/// Reads an answer that its connection's end ends.
fn reply(bytes: &[u8]) -> io::Result<Reply> {
    let cut = || io::Error::new(io::ErrorKind::UnexpectedEof, "the answer is cut short");
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").ok_or_else(cut)?;
    let (head, body) = (String::from_utf8_lossy(&bytes[..end]).to_lowercase(), &bytes[end + 4..]);
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(cut)?;
    let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    let body = match header("content-length").map(|length| length.parse::<usize>()) {
        Some(length) => body.get(..length.map_err(io::Error::other)?).ok_or_else(cut)?.to_vec(),
        None if header("transfer-encoding") == Some("chunked") => unchunked(body).ok_or_else(cut)?,
        None => body.to_vec(),
    };
    Ok(Reply { status, text: String::from_utf8_lossy(&body).into_owned() })
}

fn unchunked(mut from: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = from.windows(2).position(|two| two == b"\r\n")?;
        let length = str::from_utf8(&from[..line]).ok()?.split(';').next()?.trim();
        let length = usize::from_str_radix(length, 16).ok()?;
        from = &from[line + 2..];
        if length == 0 {
            return Some(body);
        }
        body.extend_from_slice(from.get(..length)?);
        from = from.get(length + 2..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_etcd_are_read_whole_or_not_at_all() {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
        let text = |rest: &str| reply(format!("{head}{rest}").as_bytes()).map(|reply| (reply.status, reply.text)).ok();
        assert_eq!(text("Content-Length: 2\r\n\r\n{}"), Some((200, "{}".into())));
        assert_eq!(text("Content-Length: 3\r\n\r\n{}"), None);
        assert_eq!(
            text("Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1;x=y\r\n}\r\n0\r\n\r\n"),
            Some((200, "{}".into()))
        );
        assert_eq!(text("Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\nffffffffffffffff\r\n}"), None);
        assert_eq!(text("Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"), None);
        assert_eq!(text(""), None);
        let named = |authority| host_and_port(authority, true).ok();
        assert_eq!(named("[::1]:2379"), Some(("::1", 2379)));
        assert_eq!((named("[::1]"), named("etcd")), (Some(("::1", 443)), Some(("etcd", 443))));
        assert!(parts("127.0.0.1:2379").is_err() && named("etcd:x").is_none());
    }
}
