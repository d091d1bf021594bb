//! The vectors of `docs/lane-specification.md`. This test generates the file (`WALRAS_WRITE_VECTORS=1`) and compares
//! with it. A program in another language compares it with the text.

mod forged;
mod forms;
mod refused;
mod world;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;

use client::purse::{Slip, SlipError};
use lane::wire::{PositionOf, PositionQuery, REPLY_BYTES_MAX, read_head, read_reply};
use payments::*;
use primitives::{Address, SecretKey, to_hex};
use serde_json::{Value, json};

use world::{GROUP, NETWORK, SHARDS, Subject, TREES, committee, registrar, rules, secret};

/// Where and when a shard gets a request, and what it knows.
#[derive(Clone)]
pub struct At {
    epoch: HomeEpoch,
    member: u8,
    shard: u16,
    now: HomeEpoch,
    backed: Vec<Holding>,
    /// Requests that it has confirmed before.
    before: Vec<Vec<u8>>,
}

/// What bytes claim to be, and what a verifier knows otherwise.
#[derive(Clone)]
pub enum Form {
    Payment,
    Certificate(Subject),
    Receipt,
    Request(At),
    Registration,
    Post,
    Board(HomeEpoch),
    Slip,
    Reply,
    Frame,
}

/// Bytes of a form with a name.
pub struct Case {
    pub form: Form,
    pub name: &'static str,
    pub bytes: Vec<u8>,
}

/// The name of a refusal, as the code has it.
fn name(refusal: impl Debug) -> String {
    format!("{refusal:?}").chars().take_while(|letter| letter.is_alphanumeric()).collect()
}

pub fn hex(bytes: &[u8]) -> Value {
    json!(format!("0x{}", to_hex(bytes)))
}

fn known(epoch: HomeEpoch) -> Option<LaneCommittee> {
    [TREES, GROUP, SHARDS].contains(&epoch).then(|| committee(epoch))
}

/// The position query that replies answer.
pub fn asked() -> PositionOf {
    PositionOf { network: NETWORK, query: PositionQuery { home: TREES, validator: 1, shard: 0 } }
}

impl Case {
    /// Parses and verifies the bytes; the name of the reason if they are refused.
    fn judge(&self) -> Result<(), String> {
        let (bytes, roots, budget) = (&self.bytes[..], &mut RootCache::new(0), &mut CheckBudget(u32::MAX));
        match &self.form {
            Form::Payment => PaymentView::parse(bytes).and_then(|view| view.check(&rules())).map_err(name),
            Form::Certificate(of) => {
                let verify = |certificate: PaymentCertificate| {
                    roots.verify_certificate(&committee(of.epoch), &of.claim(), &certificate, budget)
                };
                PaymentCertificate::parse(bytes).and_then(verify).map_err(name)
            }
            Form::Receipt => {
                let verify = |receipt: FastReceipt| {
                    let committee = known(receipt.proof.summary.home).unwrap_or_else(|| committee(GROUP));
                    receipt.verify(&committee, roots).map(drop)
                };
                FastReceipt::parse(bytes).and_then(verify).map_err(name)
            }
            Form::Request(at) => at.judge(bytes).map_err(name),
            Form::Registration => {
                let of = |member: u8| registrar(member).public();
                let verify = |one: LaneRegistration| one.verify(&NETWORK, &of(one.member));
                LaneRegistration::parse(bytes).and_then(verify).map_err(name)
            }
            Form::Post => {
                let registrars: Vec<_> = (0..4).map(|member| registrar(member).public()).collect();
                let committees: BTreeMap<_, _> = [TREES, GROUP, SHARDS].map(|epoch| (epoch, committee(epoch))).into();
                let verify = |post: BridgeOperation| {
                    let of = |epoch| committees.get(&epoch);
                    post.verify(&NETWORK, Address([1; 20]), of, &registrars, roots, budget).map(drop)
                };
                BridgeOperation::parse(bytes).and_then(verify).map_err(name)
            }
            Form::Board(epoch) => with_told_board(world::plain(*epoch), bytes).map(drop).map_err(name),
            Form::Slip => {
                let text = std::str::from_utf8(bytes).expect("slips are text");
                Slip::parse(text, &NETWORK).map(drop).map_err(|error| match error {
                    SlipError::Refused(refusal) => name(refusal),
                    error => name(error),
                })
            }
            Form::Reply => read_reply(0, bytes, Some(&asked())).map(drop).map_err(Into::into),
            Form::Frame => read_head(bytes, REPLY_BYTES_MAX).map(drop).map_err(Into::into),
        }
    }

    fn json(&self) -> Value {
        let (kind, with) = match &self.form {
            Form::Payment => ("payment", json!({})),
            Form::Certificate(of) => {
                let (owner, digest) = (hex(&of.owner.0), hex(&of.digest.0));
                ("certificate", json!({"kind": of.kind as u8, "epoch": of.epoch, "owner": owner, "digest": digest}))
            }
            Form::Receipt => ("receipt", json!({})),
            Form::Request(at) => ("request", at.json()),
            Form::Registration => ("registration", json!({})),
            Form::Post => ("post", json!({})),
            Form::Board(epoch) => ("board", json!({"epoch": epoch})),
            Form::Slip => ("slip", json!({})),
            Form::Reply => ("reply", json!({})),
            Form::Frame => ("frame", json!({})),
        };
        let mut all = json!({"form": kind, "name": self.name});
        let fields = all.as_object_mut().expect("an object");
        with.as_object()
            .expect("an object")
            .iter()
            .for_each(|(key, value)| drop(fields.insert(key.clone(), value.clone())));
        let bytes = match self.form {
            Form::Slip => json!(String::from_utf8_lossy(&self.bytes)),
            _ => hex(&self.bytes),
        };
        fields.insert("bytes".into(), bytes);
        all
    }
}

impl At {
    fn settings(&self) -> LaneSettings {
        LaneSettings {
            rules: rules(),
            committee: committee(self.epoch),
            previous: self.epoch.checked_sub(1).and_then(known),
            validator: self.member,
            shard: self.shard,
            now: self.now,
            leaves: 1,
            entries_max: 1 << 10,
            trees_waiting_max: 64,
            checks_per_peer: 100_000,
            checks_per_tick: 100_000,
            roots_per_validator: 64,
        }
    }

    /// A shard in this state; what it has confirmed before is in its open batch.
    fn judge(&self, bytes: &[u8]) -> Result<(), LaneRefusal> {
        let owner = LogOwner { network: NETWORK, home: self.epoch, validator: self.member, shard: self.shard };
        let log = new_log(&owner, [3; 32]);
        let key: SecretKey = secret(3, self.epoch, self.member, self.shard as u8);
        let settings = LaneSettings { leaves: 64, ..self.settings() };
        let has_bls = settings.committee.has_bls();
        let (mut shard, _) = LaneValidator::open(settings, key, [0; 32], Some(&log));
        if has_bls {
            shard = shard.with_bls(world::bls_key(self.epoch, self.member, self.shard as u8));
        }
        if self.epoch == GROUP {
            let (board, _) = world::generation();
            shard =
                shard.with_share(board.share(self.member, &world::bls_key(GROUP, self.member, 0)).expect("a share"));
        }
        for Holding { id, output, .. } in &self.backed {
            shard.step(&log, LaneInput::Backed(*id, *output));
        }
        let mut step = |bytes: &[u8]| {
            let effects = shard.step(&log, LaneInput::Request { peer: 1, bytes });
            let refusal = |effect| if let LaneEffect::Refuse { refusal, .. } = effect { Some(refusal) } else { None };
            effects.into_iter().find_map(refusal).map_or(Ok(()), Err)
        };
        self.before.iter().for_each(|earlier| step(earlier).expect("confirmed before"));
        step(bytes)
    }

    fn json(&self) -> Value {
        let backed = |of: &Holding| {
            let payments::Recipient::Key(owner) = of.output.to else { panic!("a key owns it") };
            let (asset, amount) = (of.output.asset.0, of.output.amount.to_string());
            json!({"id": hex(&of.id.0), "owner": hex(&owner.0), "asset": asset, "amount": amount})
        };
        json!({
            "epoch": self.epoch, "member": self.member, "shard": self.shard, "now": self.now,
            "backed": self.backed.iter().map(backed).collect::<Vec<_>>(),
            "before": self.before.iter().map(|request| hex(request)).collect::<Vec<_>>(),
        })
    }
}

#[test]
fn the_vectors_of_the_lane_are_those_of_the_code() {
    let good = forms::cases();
    for case in &good {
        assert_eq!(case.judge(), Ok(()), "{}", case.name);
    }
    let mut refused = Vec::new();
    for (case, reason) in refused::cases() {
        assert_eq!(case.judge(), Err(reason.into()), "{}", case.name);
        let mut entry = case.json();
        entry["reason"] = json!(reason);
        refused.push(entry);
    }
    assert!(refused.len() >= 30, "{} mutations", refused.len());
    let verified: Vec<Value> = good.iter().map(Case::json).collect();
    let names = |of: &[Value]| of.iter().map(|one| one["name"].to_string()).collect::<std::collections::BTreeSet<_>>();
    assert_eq!((names(&verified).len(), names(&refused).len()), (verified.len(), refused.len()), "names differ");
    let all = json!({"world": forms::world(), "made": forms::made(), "verified": verified, "refused": refused});
    let text = serde_json::to_string_pretty(&all).expect("plain data") + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lane-vectors.json");
    if std::env::var_os("WALRAS_WRITE_VECTORS").is_some() {
        std::fs::write(&path, &text).expect("written");
    }
    let kept = std::fs::read_to_string(&path).expect("docs/lane-vectors.json");
    assert!(kept == text, "docs/lane-vectors.json differs: an encoding has changed, or the vectors have");
}
