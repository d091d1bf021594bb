//! What is inside envelopes, envelopes, and frames about opened ones. The seeds are the vectors of
//! `docs/sealed-vectors.json`.

use fuzz::Target;
use primitives::{Digest, EnvelopeBytes, Operation};
use replica::UnsealFrame;
use sealing::{BoxSize, Envelope, Label, OpeningKey, SealedText};
use serde_json::Value;

fn unhex(text: &Value) -> Vec<u8> {
    let digits = text.as_str().expect("text").trim_start_matches("0x");
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn made() -> Vec<Value> {
    let vectors: Value = serde_json::from_str(include_str!("../../../docs/sealed-vectors.json")).expect("the vectors");
    vectors["made"].as_array().expect("a list").clone()
}

fn opened(of: &Value) -> Vec<u8> {
    let size = BoxSize::ALL[of["size"].as_u64().expect("a number") as usize];
    let point = unhex(&of["point"]).try_into().expect("96 bytes");
    let envelope = Envelope::new(size, point, unhex(&of["box"])).expect("an envelope");
    let label = Label(Digest(unhex(&of["label"]).try_into().expect("32 bytes")));
    let key = OpeningKey(unhex(&of["opening_key"]).try_into().expect("48 bytes"));
    envelope.open(&label, &key).and_then(|text| text.padded()).expect("it opens").1
}

#[test]
fn texts() {
    Target::new("sealed-text", made().iter().map(opened).collect()).run(|bytes| {
        let text = SealedText::unpadded(bytes).map_err(|fault| fault.to_string())?;
        let (_, padded) = text.padded().map_err(|fault| fault.to_string())?;
        let length = bytes.len().min(padded.len());
        assert_eq!(padded[..length], bytes[..length], "a second encoding");
        Ok(format!("{} operations", text.0.len()))
    });
}

#[test]
fn points_and_keys() {
    let points = made().iter().map(|of| unhex(&of["point"])).collect();
    Target::new("sealed-point", points).run(|bytes| {
        let point = bytes.try_into().map_err(|_| "another length".to_string())?;
        Envelope::new(BoxSize::Small, point, vec![0; 512]).map_err(|fault| fault.to_string())?;
        Ok("a point".into())
    });
}

/// What a block has of an envelope. The seeds are envelopes of each size.
#[test]
fn envelopes_of_a_block() {
    let seed = |of: &Value| {
        let point = unhex(&of["point"]).try_into().expect("96 bytes");
        let envelope = EnvelopeBytes::new(1, point, unhex(&of["box"]).into()).expect("a size");
        borsh::to_vec(&Operation::Sealed(Box::new(envelope))).expect("memory")
    };
    Target::new("sealed-envelope", made().iter().map(seed).collect()).run(|bytes| {
        let operation: Operation = borsh::from_slice(bytes).map_err(|fault| fault.to_string())?;
        assert_eq!(borsh::to_vec(&operation).expect("memory"), bytes, "a second encoding");
        let Operation::Sealed(envelope) = operation else { return Ok("another operation".into()) };
        assert_eq!(envelope.sealed().len(), envelope.size().bytes());
        Ok(format!("an envelope, {}", if Envelope::parse(&envelope).is_ok() { "with a point" } else { "without one" }))
    });
}

#[test]
fn frames_about_opened_envelopes() {
    let points: Vec<OpeningKey> = (0..64).map(|seed| OpeningKey([seed; 48])).collect();
    let shares = UnsealFrame::Shares { height: 7, key: 2, points: points[..2].into() };
    let frames = [UnsealFrame::Ask(u64::MAX), shares, UnsealFrame::Keys { height: 9, points: points.into() }];
    Target::new("unseal-frame", frames.iter().map(UnsealFrame::to_bytes).collect()).run(|bytes| {
        let frame = UnsealFrame::from_bytes(bytes).map_err(|error| error.to_string())?;
        assert_eq!(frame.to_bytes(), bytes, "a second encoding");
        Ok(format!("{:?}", std::mem::discriminant(&frame)))
    });
}
