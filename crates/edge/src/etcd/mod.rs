//! Several roots behind etcd (3.4 or later): one leads at a time, and members find it.
//!
//! etcd speaks JSON over HTTP beside gRPC (its *gateway*, `/v3/…`), so no other client is needed. Two keys belong to
//! an edge:
//!
//! | key | value | lives |
//! |---|---|---|
//! | `PREFIX/root` | where the root takes streams | as long as the root's lease |
//! | `PREFIX/epoch` | the last epoch that a root has told | for ever |
//!
//! A candidate asks for a lease, and in one transaction writes the first key if it does not exist. Its lease is renewed
//! while it leads. [`fairnet::RootSuccession`] decides; [`EtcdRoots`] only asks. Each call takes at most the time that
//! it was given, also if etcd is down: then nobody leads for longer than the last lease.
//!
//! The epoch is *fenced*: it is written only in a transaction that finds the first key free (a claim) or under the
//! writer's own lease (a renewal). So what a root of before writes late changes nothing, and no two roots have one
//! epoch.

mod access;
#[cfg(test)]
mod fake;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use access::Access;
pub use access::EtcdLogin;
use fairnet::{EPOCHS, Nanos, RootSuccession, SuccessionEffect, SuccessionInput, SuccessionRules};
use serde_json::{Value, json};

use crate::clock::EdgeClock;
use crate::host::HostHandle;
use crate::station::EdgeCommand;

/// Between two looks at etcd.
const LOOK: Duration = Duration::from_millis(200);

/// Why etcd gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum EtcdError {
    /// No endpoint answered.
    #[error("etcd does not answer ({0}): is it up at one of {1:?}?")]
    Silent(String, Vec<String>),
    /// An answer has another form.
    #[error("etcd answered {0}: the edge needs etcd 3.4 or later, and a user who may write its keys")]
    Answer(String),
    /// A file for TLS cannot be used.
    #[error("{0}: {1}")]
    File(String, String),
}

/// The roots of one edge.
#[derive(Clone)]
pub struct EtcdRoots {
    access: Access,
    prefix: String,
}

/// What a candidate is told.
enum Claim {
    /// It has the lease: its number, and the last epoch that was told.
    Granted(String, u32),
    /// Somebody else has it.
    Taken,
}

impl EtcdRoots {
    /// The roots under a prefix, at an etcd that is reached at these addresses (`http://127.0.0.1:2379`).
    pub fn new(endpoints: Vec<String>, prefix: &str, patience: Duration) -> EtcdRoots {
        let access = Access { endpoints, patience, tls: None, login: None, token: Arc::default() };
        EtcdRoots { access, prefix: prefix.trim_end_matches('/').into() }
    }

    /// Trusts the authorities in a file for `https`, and shows a certificate if one is given with its key (all PEM).
    ///
    /// # Errors
    /// [`EtcdError::File`].
    pub fn with_tls(mut self, authorities: &Path, own: Option<(&Path, &Path)>) -> Result<EtcdRoots, EtcdError> {
        self.access.tls = Some(Arc::new(access::tls(authorities, own)?));
        Ok(self)
    }

    /// Logs in as a user.
    pub fn with_login(mut self, login: EtcdLogin) -> EtcdRoots {
        self.access.login = Some(login);
        self
    }

    fn key(&self, name: &str) -> String {
        base64(format!("{}/{name}", self.prefix).as_bytes())
    }

    /// The value of a key, as text, and the revision that wrote it: 0 if none has.
    fn value(&self, name: &str) -> Result<(Option<String>, String), EtcdError> {
        let answer = self.access.call("/v3/kv/range", &json!({ "key": self.key(name) }))?;
        let found = &answer["kvs"][0];
        let text = found["value"].as_str().map(|value| unbase64(value).ok_or(EtcdError::Answer(answer.to_string())));
        Ok((text.transpose()?, found["mod_revision"].as_str().unwrap_or("0").into()))
    }

    /// Where the root is, if there is one.
    ///
    /// # Errors
    /// If etcd does not say.
    pub fn root(&self) -> Result<Option<SocketAddr>, EtcdError> {
        Ok(self.value("root")?.0.and_then(|text| text.parse().ok()))
    }

    /// Asks for the lease.
    fn claim(&self, root: SocketAddr, ttl: Nanos) -> Result<Claim, EtcdError> {
        if self.root()?.is_some() {
            return Ok(Claim::Taken);
        }
        let (last, revision) = self.value("epoch")?;
        // An epoch that cannot be read is none to begin above.
        let read = |text: String| text.parse().map_err(|_| EtcdError::Answer(format!("the epoch {text:?}")));
        let last: u32 = last.map_or(Ok(0), read)?;
        let granted =
            self.access.call("/v3/lease/grant", &json!({ "TTL": ttl.div_ceil(1_000_000_000).to_string() }))?;
        let lease = granted["ID"].as_str().ok_or_else(|| EtcdError::Answer(granted.to_string()))?.to_string();
        let (key, value) = (self.key("root"), base64(root.to_string().as_bytes()));
        let is_new = json!({ "key": key, "target": "CREATE", "result": "EQUAL", "create_revision": "0" });
        let is_last = json!({ "key": self.key("epoch"), "target": "MOD", "result": "EQUAL", "mod_revision": revision });
        // The first epochs are told with the claim: a root that dies before it renews has used them.
        let first = self.put_epoch(last.saturating_add(EPOCHS));
        let root = json!({ "requestPut": { "key": key, "value": value, "lease": lease } });
        let is_done = self.transact(&json!([is_new, is_last]), &json!([root, first]))?;
        Ok(if is_done { Claim::Granted(lease, last) } else { Claim::Taken })
    }

    fn put_epoch(&self, epoch: u32) -> Value {
        json!({ "requestPut": { "key": self.key("epoch"), "value": base64(epoch.to_string().as_bytes()) } })
    }

    /// Whether the comparisons held, and so the writes were made.
    fn transact(&self, compare: &Value, success: &Value) -> Result<bool, EtcdError> {
        let done = self.access.call("/v3/kv/txn", &json!({ "compare": compare, "success": success }))?;
        Ok(done["succeeded"] == json!(true))
    }

    /// Renews a lease, and tells the last epoch; false if the lease is gone, or the first key is under another one.
    fn renew(&self, lease: &str, epoch: u32) -> Result<bool, EtcdError> {
        let is_own = json!({ "key": self.key("root"), "target": "LEASE", "result": "EQUAL", "lease": lease });
        if !self.transact(&json!([is_own]), &json!([self.put_epoch(epoch)]))? {
            return Ok(false);
        }
        let answer = self.access.call("/v3/lease/keepalive", &json!({ "ID": lease }))?;
        let left = answer["result"]["TTL"].as_str().and_then(|left| left.parse::<i64>().ok()).unwrap_or(0);
        Ok(left > 0)
    }

    /// Gives a lease back.
    fn resign(&self, lease: &str) {
        // If etcd does not hear it, the lease ends by itself.
        drop(self.access.call("/v3/lease/revoke", &json!({ "ID": lease })));
    }

    /// Stands for root until `stop`: `lead` is called with the first epoch whenever it leads, and must return a number
    /// that is kept at the last epoch. `rest` whenever it leads no more. Takes the thread.
    pub fn stand(
        &self,
        root: SocketAddr,
        rules: SuccessionRules,
        stop: &AtomicBool,
        mut lead: impl FnMut(u32) -> Arc<AtomicU32>,
        mut rest: impl FnMut(),
    ) {
        let (mut clock, mut succession) = (EdgeClock::system(None), RootSuccession::new(rules));
        let mut lease: Option<(String, Arc<AtomicU32>)> = None;
        while !stop.load(Ordering::Relaxed) {
            let asked = clock.now();
            let (input, granted) = match &lease {
                None => match self.claim(root, rules.ttl) {
                    Ok(Claim::Granted(lease, last)) => (SuccessionInput::Granted(asked, last), Some(lease)),
                    Ok(Claim::Taken) | Err(_) => (SuccessionInput::Tick, None),
                },
                Some((lease, epoch)) => match self.renew(lease, epoch.load(Ordering::Relaxed)) {
                    Ok(true) => (SuccessionInput::Renewed(asked), None),
                    Ok(false) => (SuccessionInput::Lost, None),
                    Err(_) => (SuccessionInput::Tick, None),
                },
            };
            match (succession.step(clock.now(), input), granted) {
                (Some(SuccessionEffect::Lead(epoch)), Some(granted)) => lease = Some((granted, lead(epoch))),
                (Some(SuccessionEffect::Stop), _) => {
                    lease = None;
                    rest();
                }
                // The answer came too late to count.
                (None, Some(granted)) => self.resign(&granted),
                _ => {}
            }
            std::thread::sleep(LOOK);
        }
        if let Some((lease, _)) = lease {
            rest();
            self.resign(&lease);
        }
    }

    /// Tells members of a host where the root is, until `stop`. Takes the thread.
    pub fn follow(&self, handle: &HostHandle, stations: usize, stop: &AtomicBool) {
        let mut known = None;
        while !stop.load(Ordering::Relaxed) {
            // While etcd says nothing, the last root that it named is the root.
            let found = self.root().ok().flatten().or(known);
            if found != known {
                known = found;
                let root = |at| EdgeCommand::Root(at);
                found.iter().for_each(|at| (0..stations).for_each(|station| handle.send(station, root(*at))));
            }
            std::thread::sleep(LOOK);
        }
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64 as JSON of etcd has it (RFC 4648, with padding).
fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let word = (0..3).fold(0u32, |word, at| word << 8 | u32::from(three.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= three.len() { digit.into() } else { '=' });
        }
    }
    text
}

/// The text that base64 stands for; `None` if it is none.
fn unbase64(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let digits: Vec<u32> = text.trim_end_matches('=').bytes().map(value_of).collect::<Option<_>>()?;
    for four in digits.chunks(4) {
        let word = (0..4).fold(0u32, |word, at| word << 6 | four.get(at).copied().unwrap_or(0));
        bytes.extend_from_slice(&word.to_be_bytes()[1..four.len().max(1)]);
    }
    String::from_utf8(bytes).ok()
}

fn value_of(digit: u8) -> Option<u32> {
    DIGITS.iter().position(|known| *known == digit).map(|at| at as u32)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::fake::FakeEtcd;
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(600);
    const TTL: Nanos = 2_000_000_000;

    fn roots(etcd: &FakeEtcd) -> EtcdRoots {
        EtcdRoots::new(vec![etcd.url.clone()], "/walras/edge", PATIENCE)
    }

    fn place(number: u16) -> SocketAddr {
        ([127, 0, 0, 1], number).into()
    }

    fn claimed(roots: &EtcdRoots, number: u16) -> (String, u32) {
        match roots.claim(place(number), TTL).expect("an answer") {
            Claim::Granted(lease, last) => (lease, last),
            Claim::Taken => panic!("{number} gets no lease"),
        }
    }

    /// The second root takes the place of a first one that hangs; then the first one goes on for a moment.
    #[test]
    fn two_roots_never_lead_with_one_epoch_whatever_is_written_late() {
        let etcd = FakeEtcd::start(None, None);
        let roots = roots(&etcd);
        let (first, begins) = claimed(&roots, 1);
        assert_eq!(begins, 0);
        assert!(roots.renew(&first, EPOCHS + 5).expect("an answer"));
        etcd.expire(&first);
        let (second, begins) = claimed(&roots, 2);
        assert_eq!(begins, EPOCHS + 5);
        // The second one has used epochs up to here, and told them with its claim.
        let used = begins + EPOCHS;
        assert!(!roots.renew(&first, EPOCHS + 6).expect("an answer"), "its lease is gone");
        assert!(matches!(roots.claim(place(1), TTL).expect("an answer"), Claim::Taken));
        etcd.expire(&second);
        let (_, begins) = claimed(&roots, 3);
        assert!(begins >= used, "the third root leads from {begins} + {EPOCHS}, and the second one had {used}");
    }

    #[test]
    fn an_epoch_that_cannot_be_read_is_not_taken_for_none() {
        let etcd = FakeEtcd::start(None, None);
        let roots = roots(&etcd);
        roots
            .transact(&json!([]), &json!([{"requestPut": {"key": roots.key("epoch"), "value": base64(b"many")}}]))
            .expect("put");
        assert!(matches!(roots.claim(place(1), TTL), Err(EtcdError::Answer(what)) if what.contains("many")));
    }

    #[test]
    fn etcd_is_reached_by_tls_and_with_a_login_that_it_forgets() {
        let fixture = |name: &str| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../doors/tests/tls").join(name);
        let files = [fixture("certificate.pem"), fixture("key.pem")];
        let login = EtcdLogin { user: "edge".into(), password: "horse".into() };
        let etcd = FakeEtcd::start(Some(&files), Some(&login));
        let roots = roots(&etcd);
        let untrusting = roots.clone().with_login(login.clone());
        assert!(matches!(untrusting.root(), Err(EtcdError::Silent(why, _)) if why.contains("--etcd-ca")));
        let trusting = roots.with_tls(&files[0], None).expect("an authority");
        assert!(matches!(trusting.root(), Err(EtcdError::Answer(_))), "it wants a login");
        let false_one = EtcdLogin { password: "cow".into(), ..login.clone() };
        assert!(matches!(trusting.clone().with_login(false_one).root(), Err(EtcdError::Answer(_))));
        let roots = trusting.with_login(login);
        let (lease, _) = claimed(&roots, 1);
        etcd.forget_logins();
        assert!(roots.renew(&lease, EPOCHS).expect("a new token"));
        assert_eq!(roots.root().expect("an answer"), Some(place(1)));
        let missing = EtcdRoots::new(vec![], "", PATIENCE).with_tls(&fixture("none.pem"), None);
        assert!(matches!(missing, Err(EtcdError::File(path, _)) if path.contains("none.pem")));
    }

    #[test]
    fn base64_is_that_of_the_standard() {
        let known = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, text) in known {
            assert_eq!((base64(plain.as_bytes()), unbase64(text)), (text.into(), Some(plain.into())));
        }
        assert_eq!(unbase64("Zm9*"), None);
    }
}
