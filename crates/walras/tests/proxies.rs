//! The settings in `deploy/proxy` for real proxies in front of a real node: the interface under the network's name, the
//! stream, and Ethereum's JSON-RPC. A proxy that this machine does not have is not tested, and the test says so.

// The other tests use the rest of it.
#[allow(dead_code)]
mod process;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use process::{Process, agent, walras};
use serde_json::{Value, json};
use tempfile::TempDir;

const NAME: &str = "exchange.example";

/// A node with its own two addresses.
struct Behind {
    _folder: TempDir,
    _node: Process,
    http: SocketAddr,
    ethereum: SocketAddr,
}

impl Behind {
    fn start() -> Behind {
        let folder = TempDir::new().expect("a folder");
        let home = folder.path().join("home");
        let made = walras()
            .args(["init", "--contracts", "--chain", "70417", "--home"])
            .arg(&home)
            .output()
            .expect("walras runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let ethereum = sockets::free_address().expect("a free port");
        let settings = [
            ("WALRAS_HTTP__HOSTS", NAME),
            ("WALRAS_HTTP__TRUSTED_PROXIES", "127.0.0.1"),
            ("WALRAS_ETHEREUM__LISTEN", &ethereum.to_string()),
        ];
        let node = Process::start(&home, &settings);
        let http = node.server.trim_start_matches("http://").parse().expect("an address");
        Behind { _folder: folder, _node: node, http, ethereum }
    }

    /// A file of `deploy/proxy` with the addresses of this node.
    fn settings(&self, name: &str) -> String {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/proxy");
        let text = std::fs::read_to_string(folder.join(name)).expect("settings");
        assert!(text.contains("127.0.0.1:8080") && text.contains("127.0.0.1:8545"), "{name}");
        text.replace("127.0.0.1:8080", &self.http.to_string()).replace("127.0.0.1:8545", &self.ethereum.to_string())
    }
}

/// A program of this machine, also where only administrators look for it.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let found = folders.map(|folder| folder.join(name)).find(|program| program.is_file());
    if found.is_none() {
        eprintln!("NOT TESTED: there is no {name} on this machine");
    }
    found
}

/// A proxy's process, which ends with the test.
struct Proxy(Child);

impl Proxy {
    fn start(command: &mut Command) -> Proxy {
        Proxy(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("the proxy starts"))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // nginx ends its workers at this signal, and not at SIGKILL.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// What a client meets that knows the proxy alone.
fn check(at: SocketAddr) {
    let agent = agent();
    let url = |path: &str| format!("http://{at}{path}");
    let status = || agent.get(url("/v1/status")).header("Host", NAME).call();
    // However slow the machine is: the proxy is starting.
    let until_ready = (0..6_000).find_map(|_| match status() {
        Ok(answer) if answer.status() == 200 => Some(answer),
        _ => {
            std::thread::sleep(Duration::from_millis(100));
            None
        }
    });
    let body: Value = until_ready.expect("the proxy passes requests on").body_mut().read_json().expect("JSON");
    assert!(body["height"].is_u64(), "{body}");

    let asked = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []});
    let post = agent.post(url("/ethereum")).header("Host", NAME).header("X-Forwarded-For", "203.0.113.7");
    let answer: Value = post.send_json(&asked).expect("an answer").body_mut().read_json().expect("JSON");
    assert!(answer["result"].as_str().is_some_and(|id| id.starts_with("0x")), "{answer}");

    let request = tungstenite::http::Request::builder().uri(format!("ws://{at}/v1/stream"));
    let key = tungstenite::handshake::client::generate_key();
    let request = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")]
        .into_iter()
        .fold(request.header("Host", NAME).header("Sec-WebSocket-Key", key), |so_far, (name, value)| {
            so_far.header(name, value)
        });
    let socket = std::net::TcpStream::connect(at).expect("the proxy listens");
    let (mut stream, _) = tungstenite::client(request.body(()).expect("a request"), socket).expect("a stream");
    stream.send(r#"{"subscribe":["blocks"]}"#.into()).expect("sent");
    let first = stream.read().expect("a message").into_text().expect("text");
    assert!(first.contains("\"sequence\""), "{first}");
}

#[test]
fn nginx_passes_on_the_interface_the_stream_and_ethereum() {
    let Some(nginx) = program("nginx") else { return };
    let (node, at, folder) =
        (Behind::start(), sockets::free_address().expect("a free port"), TempDir::new().expect("a folder"));
    // Without TLS here, and with its files in a folder of the test's.
    let own = folder.path().display();
    let files = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(|of| format!("{of}_temp_path {own}/{of};"));
    let settings = node
        .settings("nginx.conf")
        .replace("listen 443 ssl;", &format!("listen {at};"))
        .replace("http {", &format!("http {{ access_log off; {}", files.concat()));
    let plain: String =
        settings.lines().filter(|line| !line.contains("ssl_certificate")).collect::<Vec<_>>().join("\n");
    let path = folder.path().join("nginx.conf");
    std::fs::write(&path, plain).expect("written");
    let global = format!("daemon off; pid {own}/pid; error_log stderr;");
    let _proxy =
        Proxy::start(Command::new(nginx).arg("-p").arg(folder.path()).arg("-c").arg(&path).args(["-g", &global]));
    check(at);
}

#[test]
fn haproxy_passes_on_the_interface_the_stream_and_ethereum() {
    let Some(haproxy) = program("haproxy") else { return };
    let (node, at, folder) =
        (Behind::start(), sockets::free_address().expect("a free port"), TempDir::new().expect("a folder"));
    let tls = "bind :443 ssl crt /etc/ssl/exchange.example.pem";
    let settings = node.settings("haproxy.cfg").replace(tls, &format!("bind {at}"));
    let path = folder.path().join("haproxy.cfg");
    std::fs::write(&path, settings).expect("written");
    let _proxy = Proxy::start(Command::new(haproxy).arg("-db").arg("-f").arg(&path));
    check(at);
}

#[test]
fn caddy_passes_on_the_interface_the_stream_and_ethereum() {
    let Some(caddy) = program("caddy") else { return };
    let (node, at, folder) =
        (Behind::start(), sockets::free_address().expect("a free port"), TempDir::new().expect("a folder"));
    let site = format!("http://{NAME}:{} {{", at.port());
    let settings = node.settings("Caddyfile").replace("exchange.example {", &site);
    let path = folder.path().join("Caddyfile");
    std::fs::write(&path, format!("{{\n\tadmin off\n\tauto_https off\n\tdefault_bind 127.0.0.1\n}}\n{settings}"))
        .expect("written");
    let mut command = Command::new(caddy);
    command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&path).env("HOME", folder.path());
    let _proxy = Proxy::start(command.stderr(Stdio::null()));
    check(at);
}

/// What a proxy's usual settings do: the name of its upstream, and no upgrade. The refusals name the setting.
#[test]
fn a_proxy_that_hides_the_name_or_the_upgrade_is_told_which_setting_it_lacks() {
    let node = Behind::start();
    let agent = agent();
    let get = |path: &str, host: &str| {
        let mut answer =
            agent.get(format!("http://{}{path}", node.http)).header("Host", host).call().expect("an answer");
        let body: Value = answer.body_mut().read_json().expect("JSON");
        (answer.status().as_u16(), body["error"]["message"].as_str().unwrap_or_default().to_string())
    };
    let (status, message) = get("/v1/status", "walras-upstream");
    assert_eq!(status, 421);
    for part in ["\"walras-upstream\"", "[http] hosts", "proxy_set_header Host $host"] {
        assert!(message.contains(part), "{message}");
    }
    let (status, message) = get("/v1/stream", NAME);
    assert_eq!(status, 400);
    for part in ["ws://", "proxy_set_header Upgrade $http_upgrade", "proxy_http_version 1.1"] {
        assert!(message.contains(part), "{message}");
    }
}
