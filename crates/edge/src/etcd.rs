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
//! A candidate asks for a lease, and in one transaction writes the first key if it does not exist; its lease is
//! renewed while it leads. [`fairnet::RootSuccession`] decides; [`EtcdRoots`] only asks. Each call takes at most the
//! time that it was given, also if etcd is down: then nobody leads for longer than the last lease.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

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
    #[error("etcd answered {0}: the edge needs etcd 3.4 or later")]
    Answer(String),
}

/// The roots of one edge.
#[derive(Clone)]
pub struct EtcdRoots {
    agent: ureq::Agent,
    endpoints: Vec<String>,
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
        let agent = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(patience)).build();
        EtcdRoots { agent: agent.into(), endpoints, prefix: prefix.trim_end_matches('/').into() }
    }

    fn key(&self, name: &str) -> String {
        base64(format!("{}/{name}", self.prefix).as_bytes())
    }

    /// Asks one endpoint after the other.
    fn call(&self, path: &str, body: &Value) -> Result<Value, EtcdError> {
        let mut why = "no endpoints".to_string();
        for endpoint in &self.endpoints {
            let url = format!("{}{path}", endpoint.trim_end_matches('/'));
            let answer = self.agent.post(url).content_type("application/json").send(body.to_string());
            match answer.and_then(|mut answer| answer.body_mut().read_to_string()) {
                Ok(text) => return serde_json::from_str(&text).map_err(|_| EtcdError::Answer(text)),
                Err(error) => why = error.to_string(),
            }
        }
        Err(EtcdError::Silent(why, self.endpoints.clone()))
    }

    /// The value of a key, as text, and the revision that wrote it: 0 if none has.
    fn value(&self, name: &str) -> Result<(Option<String>, String), EtcdError> {
        let answer = self.call("/v3/kv/range", &json!({ "key": self.key(name) }))?;
        if !answer["error"].is_null() {
            return Err(EtcdError::Answer(answer.to_string()));
        }
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
        let last: u32 = last.and_then(|text| text.parse().ok()).unwrap_or(0);
        let granted = self.call("/v3/lease/grant", &json!({ "TTL": ttl.div_ceil(1_000_000_000).to_string() }))?;
        let lease = granted["ID"].as_str().ok_or_else(|| EtcdError::Answer(granted.to_string()))?.to_string();
        let (key, value) = (self.key("root"), base64(root.to_string().as_bytes()));
        let is_new = json!({ "key": key, "target": "CREATE", "result": "EQUAL", "create_revision": "0" });
        // The first epochs are told with the claim: a root that dies before it renews has used them.
        let epoch = self.key("epoch");
        let is_last = json!({ "key": epoch, "target": "MOD", "result": "EQUAL", "mod_revision": revision });
        let first = base64(last.saturating_add(EPOCHS).to_string().as_bytes());
        let puts = [json!({ "key": key, "value": value, "lease": lease }), json!({ "key": epoch, "value": first })];
        let puts = puts.map(|put| json!({ "requestPut": put }));
        let done = self.call("/v3/kv/txn", &json!({ "compare": [is_new, is_last], "success": puts }))?;
        Ok(if done["succeeded"] == json!(true) { Claim::Granted(lease, last) } else { Claim::Taken })
    }

    /// Renews a lease, and tells the last epoch; false if the lease is gone.
    fn renew(&self, lease: &str, epoch: u32) -> Result<bool, EtcdError> {
        let put = json!({ "key": self.key("epoch"), "value": base64(epoch.to_string().as_bytes()) });
        self.call("/v3/kv/put", &put)?;
        let answer = self.call("/v3/lease/keepalive", &json!({ "ID": lease }))?;
        let left = answer["result"]["TTL"].as_str().and_then(|left| left.parse::<i64>().ok()).unwrap_or(0);
        Ok(left > 0)
    }

    /// Gives a lease back.
    fn resign(&self, lease: &str) {
        // If etcd does not hear it, the lease ends by itself.
        drop(self.call("/v3/lease/revoke", &json!({ "ID": lease })));
    }

    /// Stands for root until `stop`: `lead` is called with the first epoch whenever it leads, and must return a number
    /// that is kept at the last epoch; `rest` whenever it leads no more. Takes the thread.
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
    use super::*;

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
