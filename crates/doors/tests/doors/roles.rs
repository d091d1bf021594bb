//! Every cell of the table of endpoints and roles, TLS, origins, and invalid door settings.

use crate::fake;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::open::{call, exchange, loopback, with_doors};
use doors::roles::{ENDPOINTS, Role};
use doors::{Bound, Http, ListenError};

const OPERATOR: &str = "the operator's token, long enough to count";
const SUBMIT: &str = "a token for sending, long enough to count";

fn file(folder: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
    path
}

fn refusal(settings: Http) -> ListenError {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a thread");
    match runtime.block_on(Bound::new(settings)) {
        Ok(_) => panic!("it listens"),
        Err(error) => error,
    }
}

/// A path of a route, with a value in each place.
fn concrete(route: &str) -> String {
    let part = |name: &str| match name {
        "{address}" | "{account}" => format!("0x{}", "11".repeat(20)),
        "{id}" if route.starts_with("/v1/transactions") => fake::zeros(),
        "{base}" | "{sell}" => "EUR".into(),
        "{quote}" | "{buy}" => "USD".into(),
        "{height}" | "{id}" | "{limit}" | "{number}" => "1".into(),
        other => other.into(),
    };
    route.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[test]
fn every_cell_of_the_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = Http {
        operator_token_file: Some(file(folder.path(), "operator", OPERATOR, 0o600)),
        submit_token_file: Some(file(folder.path(), "submit", &format!("{SUBMIT}\n"), 0o600)),
        ..loopback()
    };
    let exposed = Http { listen: SocketAddr::from(([0, 0, 0, 0], 0)), behind_proxy: true, ..tokens.clone() };
    let nobody = [None, Some("a token that somebody made up by guessing")];
    let is_somebody = |token: Option<&str>| token == Some(SUBMIT) || token == Some(OPERATOR);
    for (settings, is_exposed, has_tokens) in [(loopback(), false, false), (tokens, false, true), (exposed, true, true)]
    {
        with_doors(settings, move |server| {
            let mut cells = 0;
            for (method, route, role) in ENDPOINTS {
                for token in nobody.into_iter().chain([Some(SUBMIT), Some(OPERATOR)]) {
                    let is_operator = has_tokens && token == Some(OPERATOR);
                    let admitted = match role {
                        Role::Read => true,
                        Role::Submit => !has_tokens || is_somebody(token),
                        Role::Operator => is_operator,
                        Role::Probe => !is_exposed || is_operator,
                    };
                    let bearer = token.map(|token| format!("Bearer {token}"));
                    let headers: Vec<_> = bearer.iter().map(|value| ("Authorization", value.as_str())).collect();
                    let (status, answer) = call(server, method, &concrete(route), &headers);
                    assert_eq!(status != 401, admitted, "{method} {route} with {token:?}: {answer}");
                    if !admitted {
                        assert!(answer.contains("\"unauthorized\"") && answer.contains("_token_file"), "{answer}");
                        assert!(answer.to_lowercase().contains("www-authenticate: bearer"), "{answer}");
                    }
                    cells += 1;
                }
            }
            assert_eq!(cells, 4 * ENDPOINTS.len());
        });
    }
}

#[test]
fn the_table_lists_what_there_is() {
    let (_, answer) = with_doors(loopback(), |server| call(server, "GET", "/v1/openapi.json", &[]));
    let body = answer.split("\r\n\r\n").nth(1).expect("a body");
    let description: serde_json::Value = serde_json::from_str(body).expect("JSON");
    let mut described = BTreeSet::new();
    for (path, item) in description["paths"].as_object().expect("paths") {
        for method in item.as_object().expect("operations").keys() {
            described.insert((method.to_uppercase(), path.clone()));
        }
    }
    let others = ["/healthz", "/readyz", "/metrics", "/v1/openapi.json", "/v1/asyncapi.json", "/v1/stream"];
    let listed = ENDPOINTS.iter().filter(|(_, route, _)| !others.contains(route));
    let listed: BTreeSet<_> = listed.map(|(method, route, _)| (method.to_string(), route.to_string())).collect();
    assert_eq!(described, listed, "left: the description; right: roles::ENDPOINTS");
}

/// Regressions found by validators of such documents: a null where something else belongs, a parameter without a
/// format, an answer that is not listed.
#[test]
fn the_description_is_exact() {
    let (_, answer) = with_doors(loopback(), |server| call(server, "GET", "/v1/openapi.json", &[]));
    let text = answer.split("\r\n\r\n").nth(1).expect("a body");
    assert!(!text.contains(":null"), "{text}");
    let description: serde_json::Value = serde_json::from_str(text).expect("JSON");
    for (path, item) in description["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            for status in ["400", "404", "429", "500", "503"] {
                assert!(operation["responses"][status]["content"].is_object(), "{method} {path} {status}");
            }
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let schema = &parameter["schema"];
                let is_exact = match schema["type"].as_str() {
                    Some("integer") => schema["maximum"].is_u64() && schema["minimum"].is_u64(),
                    Some("string") => schema["pattern"].is_string() || schema["enum"].is_array(),
                    other => other == Some("boolean"),
                };
                assert!(is_exact, "{method} {path}: {parameter}");
            }
            assert_eq!(
                operation["requestBody"]["content"]["application/json"].is_object(),
                ["/v1/transactions", "/v1/ethereum", "/v1/typed-data"].iter().any(|takes| path.starts_with(takes))
                    && method == "post",
                "{method} {path}"
            );
        }
    }
}

#[test]
fn the_operator_turns_submissions_away() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = Http { operator_token_file: Some(file(folder.path(), "operator", OPERATOR, 0o600)), ..loopback() };
    with_doors(settings, |server| {
        let operator = [("Authorization", &*format!("Bearer {OPERATOR}"))];
        assert_eq!(call(server, "GET", "/readyz", &[]).0, 200);
        let (status, answer) = call(server, "POST", "/v1/operator/drain", &operator);
        assert!(status == 200 && answer.contains("\"draining\":true"), "{answer}");
        let (status, answer) = call(server, "GET", "/readyz", &[]);
        assert!(status == 503 && answer.contains("\"draining\""), "{answer}");
        assert_eq!(call(server, "GET", "/v1/status", &[]).0, 200, "reads still work");
        assert_eq!(call(server, "POST", "/v1/operator/resume", &operator).0, 200);
        assert_eq!(call(server, "GET", "/readyz", &[]).0, 200);
    });
}

#[test]
fn only_known_origins_may_read() {
    let settings = Http { origins: vec!["https://desk.example".into()], ..loopback() };
    with_doors(settings, |server| {
        let allows = |answer: &str, origin: &str| {
            answer.to_lowercase().contains(&format!("access-control-allow-origin: {origin}"))
        };
        let from = |origin| call(server, "GET", "/v1/status", &[("Origin", origin)]).1;
        assert!(allows(&from("https://desk.example"), "https://desk.example"));
        for other in ["https://evil.example", "https://desk.example.evil", "http://desk.example", "null"] {
            assert!(!from(other).to_lowercase().contains("access-control"), "{other}");
            assert!(from(other).contains("foreign_origin"), "{other}");
        }
        let preflight = [("Origin", "https://desk.example"), ("Access-Control-Request-Method", "POST")];
        let (status, answer) = call(server, "OPTIONS", "/v1/transactions", &preflight);
        assert!(status == 204 && allows(&answer, "https://desk.example"), "{answer}");
        let preflight = [("Origin", "https://evil.example"), ("Access-Control-Request-Method", "POST")];
        assert_eq!(call(server, "OPTIONS", "/v1/transactions", &preflight).0, 403);
    });
}

#[test]
fn a_door_that_others_reach_needs_tls_or_a_proxy() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = Http { listen: SocketAddr::from(([0, 0, 0, 0], 0)), ..Http::default() };
    let said = refusal(open.clone()).to_string();
    assert!(said.contains("refusing to listen on 0.0.0.0") && said.contains("behind_proxy = true"), "{said}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a thread");
    let both = |http: Http| {
        runtime.block_on(async { Bound::new(http).await.expect("a free port").with_ethereum(open.listen).await })
    };
    assert!(matches!(both(loopback()), Err(ListenError::Exposed(_))), "the door for Ethereum's tools likewise");
    assert!(both(Http { behind_proxy: true, ..loopback() }).is_ok());
    let half = Http { certificate: Some(fixture("certificate.pem")), ..open.clone() };
    assert!(matches!(refusal(half), ListenError::HalfTls));
    let readable = file(folder.path(), "readable", OPERATOR, 0o644);
    let said = refusal(Http { operator_token_file: Some(readable), ..loopback() }).to_string();
    assert!(said.contains("others can read it") && said.contains("chmod 600"), "{said}");
    let short = file(folder.path(), "short", "secret", 0o600);
    let said = refusal(Http { submit_token_file: Some(short), ..loopback() }).to_string();
    assert!(said.contains("at least 32 characters"), "{said}");
    let key = Some(file(folder.path(), "key", &std::fs::read_to_string(fixture("key.pem")).expect("there"), 0o644));
    let said =
        refusal(Http { certificate: Some(fixture("certificate.pem")), certificate_key: key, ..open }).to_string();
    assert!(said.contains("others can read it"), "{said}");
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name)
}

#[test]
fn the_door_speaks_tls() {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, ServerName};

    let folder = tempfile::tempdir().expect("a folder");
    let key = file(folder.path(), "key", &std::fs::read_to_string(fixture("key.pem")).expect("there"), 0o600);
    let listen = SocketAddr::from(([0, 0, 0, 0], 0));
    let certificate = Some(fixture("certificate.pem"));
    let settings = Http { listen, certificate, certificate_key: Some(key), head_seconds: 2, ..Http::default() };
    with_doors(settings, |server| {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(fixture("certificate.pem")).expect("a certificate")).expect("sound");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().expect("versions");
        let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
        let name = ServerName::try_from("localhost").expect("a name");
        let tls = rustls::ClientConnection::new(config, name).expect("a client");
        let mut stream = rustls::StreamOwned::new(tls, TcpStream::connect(server).expect("listens"));
        let (status, answer) = exchange(&mut stream, "GET", "/v1/status", &[]);
        assert!(status == 200 && answer.contains("\"engine\":\"solo\""), "{answer}");
        // A client that sends plain HTTP, or nothing, gets no answer and is disconnected.
        for said in ["GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n", ""] {
            let mut plain = TcpStream::connect(server).expect("listens");
            plain.write_all(said.as_bytes()).expect("sent");
            let mut answer = Vec::new();
            let _ = plain.read_to_end(&mut answer);
            assert!(!answer.starts_with(b"HTTP"), "{:?}", String::from_utf8_lossy(&answer));
        }
    });
}
