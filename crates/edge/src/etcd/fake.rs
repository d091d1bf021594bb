//! An etcd for tests: keys with revisions and leases, transactions, logins; leases end when the test says so.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use super::EtcdLogin;

#[derive(Clone, Default)]
struct Entry {
    value: Value,
    created: u64,
    changed: u64,
    lease: String,
}

#[derive(Default)]
struct State {
    entries: BTreeMap<String, Entry>,
    revision: u64,
    leases: Vec<String>,
    tokens: Vec<String>,
    given: u64,
}

/// See the module text. It runs until the test's process ends.
pub(super) struct FakeEtcd {
    pub(super) url: String,
    state: Arc<Mutex<State>>,
}

impl FakeEtcd {
    /// With files of a certificate and its key it speaks TLS; with a login it wants one.
    pub(super) fn start(files: Option<&[PathBuf; 2]>, login: Option<&EtcdLogin>) -> FakeEtcd {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let (state, login, tls) = (Arc::<Mutex<State>>::default(), login.cloned(), files.map(config));
        let (scheme, host) = if tls.is_some() { ("https", "localhost") } else { ("http", "127.0.0.1") };
        let served = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.expect("a connection");
                match &tls {
                    // Whoever does not trust it breaks off.
                    Some(tls) => drop(serve(secured(stream, tls), &served, login.as_ref())),
                    None => drop(serve(stream, &served, login.as_ref())),
                }
            }
        });
        FakeEtcd { url: format!("{scheme}://{host}:{port}"), state }
    }

    /// Ends a lease, and with it its keys.
    pub(super) fn expire(&self, lease: &str) {
        let mut state = self.state.lock().expect("no panic");
        state.leases.retain(|known| known != lease);
        state.entries.retain(|_, entry| entry.lease != lease);
    }

    /// As a start does.
    pub(super) fn forget_logins(&self) {
        self.state.lock().expect("no panic").tokens.clear();
    }
}

fn config([certificate, key]: &[PathBuf; 2]) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("sound");
    let certificate = CertificateDer::from_pem_file(certificate).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(key).expect("a key");
    Arc::new(builder.with_no_client_auth().with_single_cert(vec![certificate], key).expect("sound"))
}

fn secured(stream: TcpStream, tls: &Arc<ServerConfig>) -> StreamOwned<ServerConnection, TcpStream> {
    StreamOwned::new(ServerConnection::new(tls.clone()).expect("sound"), stream)
}

fn serve(stream: impl Read + Write, state: &Mutex<State>, login: Option<&EtcdLogin>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut head, mut line) = (String::new(), String::new());
    while line != "\r\n" {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Ok(());
        }
        head.push_str(&line);
    }
    let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::to_string);
    let length = header("Content-Length: ").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let path = head.split(' ').nth(1).unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut state = state.lock().expect("no panic");
    let may = login.is_none() || header("Authorization: ").is_some_and(|token| state.tokens.contains(&token));
    let (status, answer) = match path {
        "/v3/auth/authenticate" => state.enter(&body, login),
        _ if !may => (401, json!({"code": 16, "error": "etcdserver: invalid auth token"})),
        _ => (200, state.answer(path, &body)),
    };
    let text = answer.to_string();
    let head = format!("HTTP/1.1 {status} -\r\nContent-Length: {}\r\n\r\n", text.len());
    stream.get_mut().write_all((head + &text).as_bytes())?;
    stream.get_mut().flush()
}

impl State {
    fn enter(&mut self, body: &Value, login: Option<&EtcdLogin>) -> (u16, Value) {
        let is_right = login.is_some_and(|login| body["name"] == login.user && body["password"] == login.password);
        if !is_right {
            return (
                400,
                json!({"code": 3, "error": "etcdserver: authentication failed, invalid user ID or password"}),
            );
        }
        self.given += 1;
        let token = format!("token.{}", self.given);
        self.tokens.push(token.clone());
        (200, json!({ "token": token }))
    }

    fn answer(&mut self, path: &str, body: &Value) -> Value {
        match path {
            "/v3/kv/range" => self.range(body),
            "/v3/kv/put" => self.put(body),
            "/v3/kv/txn" => self.transact(body),
            "/v3/lease/grant" => {
                self.given += 1;
                self.leases.push(self.given.to_string());
                json!({"ID": self.given.to_string(), "TTL": body["TTL"]})
            }
            "/v3/lease/keepalive" => {
                let is_there = self.leases.iter().any(|lease| body["ID"] == **lease);
                if is_there { json!({"result": {"TTL": "2"}}) } else { json!({"result": {}}) }
            }
            other => panic!("{other} is not asked"),
        }
    }

    fn range(&self, body: &Value) -> Value {
        let found = self.entries.get(body["key"].as_str().expect("a key"));
        let shown = |entry: &Entry| json!({"value": entry.value, "mod_revision": entry.changed.to_string()});
        json!({ "kvs": found.map(shown).into_iter().collect::<Vec<_>>() })
    }

    fn put(&mut self, body: &Value) -> Value {
        self.revision += 1;
        let entry = self.entries.entry(body["key"].as_str().expect("a key").into()).or_default();
        entry.created = if entry.created == 0 { self.revision } else { entry.created };
        entry.changed = self.revision;
        entry.value = body["value"].clone();
        entry.lease = body["lease"].as_str().unwrap_or_default().into();
        json!({})
    }

    fn transact(&mut self, body: &Value) -> Value {
        let holds = |test: &Value| {
            let entry = self.entries.get(test["key"].as_str().expect("a key")).cloned().unwrap_or_default();
            match test["target"].as_str() {
                Some("CREATE") => test["create_revision"] == json!(entry.created.to_string()),
                Some("MOD") => test["mod_revision"] == json!(entry.changed.to_string()),
                Some("LEASE") => test["lease"] == entry.lease,
                other => panic!("{other:?} is not compared"),
            }
        };
        let succeeded = body["compare"].as_array().expect("a list").iter().all(holds);
        if succeeded {
            for write in body["success"].as_array().expect("a list") {
                self.put(&write["requestPut"]);
            }
        }
        json!({ "succeeded": succeeded })
    }
}
