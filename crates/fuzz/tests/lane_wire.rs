//! What clients and shards of the payment lane send each other, and what people exchange. The seeds are the vectors of
//! `docs/lane-specification.md`.

use client::purse::Slip;
use fuzz::{Room, Target};
use lane::wire::{
    PositionOf, PositionQuery, Reply, read_head, read_reply, write_answer, write_batch_answer, write_bls_answer,
    write_frame, write_position, write_spender,
};
use payments::{FastReceipt, LaneCommittee, LaneRegistration, with_told_board};
use primitives::Digest;
use serde_json::Value;

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../docs/lane-vectors.json")).expect("the vectors")
}

fn unhex(text: &Value) -> Vec<u8> {
    let digits = text.as_str().expect("text").trim_start_matches("0x");
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// The correct vectors of a form.
fn seeds(form: &str) -> Vec<Vec<u8>> {
    let (vectors, text) = (vectors(), form == "slip");
    let of = |vector: &Value| match text {
        true => vector["bytes"].as_str().expect("text").as_bytes().to_vec(),
        false => unhex(&vector["bytes"]),
    };
    let all = vectors["verified"].as_array().expect("a list");
    all.iter().filter(|vector| vector["form"] == form).map(of).collect()
}

fn network() -> Digest {
    Digest(unhex(&vectors()["world"]["network"]).try_into().expect("32 bytes"))
}

/// The frame that a shard writes for a reply; of a refusal, whose reasons have types, by hand.
fn written(reply: &Reply) -> Vec<u8> {
    let mut to = Vec::new();
    match reply {
        Reply::Answer { kind, digest, answer } => write_answer(&mut to, *kind, digest, answer),
        Reply::BlsAnswer { kind, digest, validator, signature } => {
            write_bls_answer(&mut to, *kind, digest, *validator, signature);
        }
        Reply::Batch(answer) => write_batch_answer(&mut to, answer),
        Reply::Spender { output, spender } => write_spender(&mut to, output, spender.as_ref()),
        Reply::Refusal { number, again, text } => {
            write_frame(&mut to, *number, &[&[2, u8::from(*again)], text.as_bytes()].concat());
        }
        Reply::Position { number, signed } => write_position(&mut to, *number, signed.as_ref()),
    }
    to
}

fn of(refusal: impl std::fmt::Display) -> String {
    refusal.to_string()
}

#[test]
fn replies_of_a_shard() {
    let query = PositionQuery { home: 4, validator: 1, shard: 0 };
    let asked = PositionOf { network: network(), query };
    Target::new("lane-reply", seeds("reply")).run(|bytes| {
        let reply = read_reply(0, bytes, Some(&asked))?;
        assert_eq!(written(&reply)[8..], *bytes, "a second encoding");
        Ok(format!("{:?}", std::mem::discriminant(&reply)))
    });
    Target::new("lane-frame", seeds("frame")).run(|bytes| {
        let head = read_head(bytes, 1 << 14)?.ok_or("more is needed")?;
        assert!(head.0 <= 1 << 14);
        Ok("a head".into())
    });
}

#[test]
fn receipts_and_what_people_exchange() {
    Target::new("lane-receipt", seeds("receipt")).run(|bytes| {
        let receipt = FastReceipt::parse(bytes).map_err(of)?;
        assert_eq!(receipt.encode(), bytes, "a second encoding");
        Ok(format!("of {}", receipt.proof.certificate.cost()))
    });
    let network = network();
    Target::new("lane-slip", seeds("slip")).run(|bytes| {
        let text = std::str::from_utf8(bytes).map_err(of)?;
        let slip = Slip::parse(text, &network).map_err(of)?;
        assert_eq!(slip.encode(&network), text.trim().to_uppercase(), "a second encoding");
        Ok(format!("{:?}", std::mem::discriminant(&slip)))
    });
}

#[test]
fn registrations_and_boards() {
    let registrations = vectors()["world"]["registrations"].as_array().expect("a list").iter().map(unhex).collect();
    let mut committee = LaneCommittee::unregistered(network(), 5, 4);
    Target::new("lane-registration", registrations).run(|bytes| {
        let registration = LaneRegistration::parse(bytes).map_err(of)?;
        assert_eq!(registration.encode(), bytes, "a second encoding");
        // The unchanged ones, which come first, are seated.
        if registration.epoch == 5 && committee.keys_of(registration.member).is_empty() {
            committee.seat(&registration).map_err(of)?;
        }
        Ok(format!("{} keys", registration.keys.len()))
    });
    let room = Some(Room { base: 4 << 20, factor: 128 });
    let target = Target { room, ..Target::new("lane-board", seeds("board")) };
    target.run(|bytes| with_told_board(committee.clone(), bytes).map(|_| "a group key".into()).map_err(of));
}
