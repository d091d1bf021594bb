//! The messages between a client and a shard over TCP, both in the same frame.
//!
//! ```text
//! frame     length 4 of what follows · number 4 · body
//! request   1 · spend | 2 · settle | 3 · batch | 4 · question for a spender | 5 · one under BLS      see `payments`
//!           16 · home 8 · validator 1 · shard 2         how far has this shard signed?
//! reply     1 · kind 1 · digest 32 · answer             number 0: an answer belongs to its digest
//!           2 · again 1 · text                          a refusal, with the number of the request
//!           3 · (0 | 1 · kind 1 · size 4 · position 8 · root 32 · signature 64)
//!                                                       the highest position that is known, signed by that shard
//!           4 · kind 1 · digest 32 · validator 1 · BLS signature 48
//!           5 · batch answer                            number 0: a broker asks one batch at a time
//!           6 · output 32 · (0 | 1 · signature 64 · payment)      what spends the output, by its owner's signature
//! ```
//!
//! Integers are little-endian. Answers authenticate themselves, so a connection need not. `again` is 1 if the same
//! bytes may be sent again later.

use payments::{
    BatchAnswer, BlsSignature, HomeEpoch, KnownSpender, LaneAnswer, LaneRefusal, OutputId, RootHeader, StatementKind,
};
use primitives::{Digest, Signature};

/// Bytes of a frame before its body.
pub const HEAD_BYTES: usize = 8;
/// Bytes of the longest reply's body: the answer to a batch of which nothing is confirmed.
pub const REPLY_BYTES_MAX: usize = 16 << 10;
const POSITION: u8 = 16;
const TEXT_BYTES_MAX: usize = 512;

/// A reply of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It signed.
    Answer {
        /// Confirmation or acknowledgement.
        kind: StatementKind,
        /// The digest of the payment.
        digest: Digest,
        /// The signature.
        answer: LaneAnswer,
    },
    /// It signed, under the BLS scheme.
    BlsAnswer {
        /// Confirmation or acknowledgement.
        kind: StatementKind,
        /// The digest of the payment.
        digest: Digest,
        /// The signer.
        validator: u8,
        /// The signature.
        signature: BlsSignature,
    },
    /// It signed a broker's batch.
    Batch(BatchAnswer),
    /// It reported which payment spends an output, as far as it knows.
    Spender {
        /// The output.
        output: OutputId,
        /// The payment that spends it.
        spender: Option<KnownSpender>,
    },
    /// It refused.
    Refusal {
        /// The number of the request.
        number: u32,
        /// Whether the same bytes may be sent again later.
        again: bool,
        /// The reason, and what to do.
        text: String,
    },
    /// The highest known position of a shard's log.
    Position {
        /// The number of the request.
        number: u32,
        /// The header that the shard signed there; `None` if nothing is known.
        signed: Option<(RootHeader, Signature)>,
    },
}

/// A query for the highest position of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionQuery {
    /// The home epoch.
    pub home: HomeEpoch,
    /// The validator.
    pub validator: u8,
    /// Its shard.
    pub shard: u16,
}

impl PositionQuery {
    const BYTES: usize = 1 + 8 + 1 + 2;

    /// The request.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![POSITION];
        bytes.extend(self.home.to_le_bytes());
        bytes.push(self.validator);
        bytes.extend(self.shard.to_le_bytes());
        bytes
    }

    /// Parses a query; `None` if it is another request.
    pub fn parse(bytes: &[u8]) -> Option<PositionQuery> {
        let bytes: &[u8; PositionQuery::BYTES] = bytes.try_into().ok()?;
        if bytes[0] != POSITION {
            return None;
        }
        let home = HomeEpoch::from_le_bytes(bytes[1..9].try_into().ok()?);
        Some(PositionQuery { home, validator: bytes[9], shard: u16::from_le_bytes([bytes[10], bytes[11]]) })
    }
}

/// Writes a frame.
pub fn write_frame(to: &mut Vec<u8>, number: u32, body: &[u8]) {
    write_body(to, number, |to| to.extend(body));
}

/// Writes a frame whose body `write` appends where it stays: many frames fill one buffer of a connection.
fn write_body(to: &mut Vec<u8>, number: u32, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = to.len();
    to.extend([0; 4]);
    to.extend(number.to_le_bytes());
    write(to);
    let length = (to.len() - begin - 4) as u32;
    to[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
}

/// The length of the body and the number of the frame at the beginning of `bytes`. `None` if more bytes are needed.
///
/// # Errors
/// If the frame announces fewer bytes than its number has, or a body of more than `body_max`.
pub fn read_head(bytes: &[u8], body_max: usize) -> Result<Option<(usize, u32)>, &'static str> {
    let Some(head) = bytes.first_chunk::<HEAD_BYTES>() else { return Ok(None) };
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
    let number = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    match length.checked_sub(4) {
        None => Err("a frame is shorter than its number"),
        Some(body) if body > body_max => Err("a frame is larger than any message"),
        Some(body) => Ok(Some((body, number))),
    }
}

/// The kinds of answers.
const ANSWERS: [StatementKind; 2] = [StatementKind::Confirmation, StatementKind::Acknowledgement];
/// The kinds that have a root, and so a position in the log.
const ROOTS: [StatementKind; 5] = [
    StatementKind::Confirmation,
    StatementKind::Acknowledgement,
    StatementKind::View,
    StatementKind::Halt,
    StatementKind::SharedConfirmation,
];

fn kind_of(byte: u8, among: &[StatementKind]) -> Option<StatementKind> {
    among.iter().copied().find(|kind| *kind as u8 == byte)
}

/// Writes the frame of an answer.
pub fn write_answer(to: &mut Vec<u8>, kind: StatementKind, digest: &Digest, answer: &LaneAnswer) {
    write_body(to, 0, |to| {
        to.extend([1, kind as u8]);
        to.extend(digest.0);
        answer.write(to);
    });
}

/// Writes the frame of an answer under the BLS scheme.
pub fn write_bls_answer(
    to: &mut Vec<u8>,
    kind: StatementKind,
    digest: &Digest,
    validator: u8,
    signature: &BlsSignature,
) {
    write_body(to, 0, |to| {
        to.extend([4, kind as u8]);
        to.extend(digest.0);
        to.push(validator);
        to.extend(signature.0);
    });
}

/// Writes the frame of an answer to a batch.
pub fn write_batch_answer(to: &mut Vec<u8>, answer: &BatchAnswer) {
    write_body(to, 0, |to| {
        to.push(5);
        answer.write(to);
    });
}

/// Writes the frame with the payment that spends an output.
pub fn write_spender(to: &mut Vec<u8>, output: &OutputId, spender: Option<&KnownSpender>) {
    write_body(to, 0, |to| {
        to.push(6);
        to.extend(output.0);
        to.push(u8::from(spender.is_some()));
        if let Some(KnownSpender { payment, signature }) = spender {
            to.extend(signature.0);
            to.extend(payment);
        }
    });
}

/// Writes the frame of a refusal.
pub fn write_refusal(to: &mut Vec<u8>, number: u32, refusal: &LaneRefusal) {
    // A payment into an epoch that has not begun here is early: the block that begins the epoch is not certified here
    // yet.
    let again = match refusal {
        LaneRefusal::Busy | LaneRefusal::UnknownOutput(_) | LaneRefusal::Muted(_) | LaneRefusal::Halted => true,
        LaneRefusal::WrongEpoch { into, now } => into > now,
        _ => false,
    };
    let mut text = refusal.to_string();
    while text.len() > TEXT_BYTES_MAX {
        text.pop();
    }
    write_body(to, number, |to| {
        to.extend([2, u8::from(again)]);
        to.extend(text.as_bytes());
    });
}

/// Writes the frame of a position.
pub fn write_position(to: &mut Vec<u8>, number: u32, signed: Option<&(RootHeader, Signature)>) {
    write_body(to, number, |to| {
        to.extend([3, u8::from(signed.is_some())]);
        if let Some((header, signature)) = signed {
            to.push(header.kind as u8);
            to.extend(header.size.to_le_bytes());
            to.extend(header.position.to_le_bytes());
            to.extend(header.root.0);
            to.extend(signature.0);
        }
    });
}

/// The query that a position answers: a reply does not repeat it.
#[derive(Clone, Copy, Debug)]
pub struct PositionOf {
    /// The identity of the network.
    pub network: Digest,
    /// The query.
    pub query: PositionQuery,
}

/// Parses the body of a reply. `asked` is the query that positions answer.
///
/// # Errors
/// The fault.
pub fn read_reply(number: u32, body: &[u8], asked: Option<&PositionOf>) -> Result<Reply, &'static str> {
    let (tag, rest) = body.split_first().ok_or("a reply is empty")?;
    match tag {
        1 => {
            let (kind, rest) = rest.split_first().ok_or("an answer has no kind")?;
            let (digest, rest) = rest.split_first_chunk::<32>().ok_or("an answer has no digest")?;
            let kind = kind_of(*kind, &ANSWERS).ok_or("an answer is of no known kind")?;
            let answer = LaneAnswer::parse(rest).map_err(|_| "an answer is malformed")?;
            Ok(Reply::Answer { kind, digest: Digest(*digest), answer })
        }
        2 => {
            let (again, text) = rest.split_first().ok_or("a refusal is empty")?;
            let again = match again {
                0 => false,
                1 => true,
                _ => return Err("a refusal is final (0) or not (1)"),
            };
            let text = std::str::from_utf8(text).map_err(|_| "a refusal is no text")?;
            Ok(Reply::Refusal { number, again, text: text.into() })
        }
        3 => Ok(Reply::Position { number, signed: read_position(rest, asked)? }),
        4 => read_bls_answer(rest),
        6 => read_spender(rest),
        5 => BatchAnswer::parse(rest).map(Reply::Batch).map_err(|_| "the answer to a batch is malformed"),
        _ => Err("a reply is of no known kind"),
    }
}

fn read_spender(bytes: &[u8]) -> Result<Reply, &'static str> {
    const MALFORMED: &str = "what spends an output is malformed";
    let (output, rest) = bytes.split_first_chunk::<32>().ok_or(MALFORMED)?;
    let spender = match rest.split_first().ok_or(MALFORMED)? {
        (0, []) => None,
        (1, rest) => {
            let (signature, payment) = rest.split_first_chunk::<64>().ok_or(MALFORMED)?;
            Some(KnownSpender { payment: payment.to_vec(), signature: Signature(*signature) })
        }
        _ => return Err(MALFORMED),
    };
    Ok(Reply::Spender { output: OutputId(*output), spender })
}

fn read_bls_answer(bytes: &[u8]) -> Result<Reply, &'static str> {
    const MALFORMED: &str = "an answer is malformed";
    let bytes: &[u8; 82] = bytes.try_into().map_err(|_| MALFORMED)?;
    let kind = kind_of(bytes[0], &ANSWERS).ok_or("an answer is of no known kind")?;
    let digest = Digest(bytes[1..33].try_into().map_err(|_| MALFORMED)?);
    let signature = BlsSignature(bytes[34..82].try_into().map_err(|_| MALFORMED)?);
    Ok(Reply::BlsAnswer { kind, digest, validator: bytes[33], signature })
}

fn read_position(bytes: &[u8], asked: Option<&PositionOf>) -> Result<Option<(RootHeader, Signature)>, &'static str> {
    const MALFORMED: &str = "a position is malformed";
    if bytes == [0] {
        return Ok(None);
    }
    let bytes: &[u8; 110] = bytes.try_into().map_err(|_| MALFORMED)?;
    let PositionOf { network, query } = asked.ok_or("a position was not asked for")?;
    let kind = kind_of(bytes[1], &ROOTS).filter(|_| bytes[0] == 1).ok_or(MALFORMED)?;
    let header = RootHeader {
        network: *network,
        epoch: query.home,
        validator: query.validator,
        shard: query.shard,
        kind,
        size: u32::from_le_bytes(bytes[2..6].try_into().map_err(|_| MALFORMED)?),
        position: u64::from_le_bytes(bytes[6..14].try_into().map_err(|_| MALFORMED)?),
        root: Digest(bytes[14..46].try_into().map_err(|_| MALFORMED)?),
    };
    Ok(Some((header, Signature(bytes[46..110].try_into().map_err(|_| MALFORMED)?))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn body_of(frame: &[u8]) -> (u32, &[u8]) {
        let (length, number) = read_head(frame, REPLY_BYTES_MAX).expect("a head").expect("complete");
        assert_eq!(frame.len(), HEAD_BYTES + length);
        (number, &frame[HEAD_BYTES..])
    }

    fn asked() -> PositionOf {
        PositionOf { network: Digest([7; 32]), query: PositionQuery { home: 3, validator: 2, shard: 1 } }
    }

    #[test]
    fn what_is_written_is_read() {
        let answer = LaneAnswer {
            validator: 2,
            size: 4,
            index: 1,
            position: 99,
            signature: Signature([5; 64]),
            path: vec![Digest([1; 32]), Digest([2; 32])],
        };
        let (kind, digest) = (StatementKind::Acknowledgement, Digest([9; 32]));
        let mut frame = Vec::new();
        write_answer(&mut frame, kind, &digest, &answer);
        let (number, body) = body_of(&frame);
        assert_eq!(read_reply(number, body, None), Ok(Reply::Answer { kind, digest, answer }));
        let mut frame = Vec::new();
        let output = OutputId([3; 32]);
        for spender in [None, Some(KnownSpender { payment: vec![1, 2, 3], signature: Signature([8; 64]) })] {
            let mut frame = Vec::new();
            write_spender(&mut frame, &output, spender.as_ref());
            let (number, body) = body_of(&frame);
            assert_eq!(read_reply(number, body, None), Ok(Reply::Spender { output, spender }));
        }
        write_refusal(&mut frame, 12, &LaneRefusal::Busy);
        let (number, body) = body_of(&frame);
        let text = LaneRefusal::Busy.to_string();
        assert_eq!(read_reply(number, body, None), Ok(Reply::Refusal { number: 12, again: true, text }));
        let PositionOf { network, query } = asked();
        for kind in ROOTS {
            let header = RootHeader {
                network,
                epoch: query.home,
                validator: query.validator,
                shard: query.shard,
                kind,
                size: 1,
                position: 77,
                root: Digest([4; 32]),
            };
            let signed = Some((header, Signature([6; 64])));
            let mut frame = Vec::new();
            write_position(&mut frame, 5, signed.as_ref());
            let (number, body) = body_of(&frame);
            assert_eq!(read_reply(number, body, Some(&asked())), Ok(Reply::Position { number: 5, signed }));
        }
        assert_eq!(PositionQuery::parse(&query.encode()), Some(query));
    }

    #[test]
    fn a_halt_is_not_final_and_a_refusal_has_one_encoding() {
        let mut frame = Vec::new();
        write_refusal(&mut frame, 4, &LaneRefusal::Halted);
        let (number, body) = body_of(&frame);
        let told = read_reply(number, body, None);
        assert!(matches!(told, Ok(Reply::Refusal { again: true, .. })), "the text says to send the same bytes again");
        assert!(read_reply(4, &[2, 2, b'?'], None).is_err(), "another byte for yes or no");
    }

    #[test]
    fn a_frame_that_announces_too_much_is_refused_before_it_comes() {
        assert!(read_head(&[255; 8], 100).is_err());
        assert!(read_head(&[3, 0, 0, 0, 0, 0, 0, 0], 100).is_err(), "no room for the number");
        assert_eq!(read_head(&[4, 0, 0], 100), Ok(None));
        assert_eq!(read_head(&[104, 0, 0, 0, 9, 0, 0, 0], 100), Ok(Some((100, 9))));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), number in any::<u32>()) {
            let _ = read_reply(number, &bytes, Some(&asked()));
            let _ = read_reply(number, &bytes, None);
            let _ = read_head(&bytes, 64);
            if let Some(query) = PositionQuery::parse(&bytes) {
                prop_assert_eq!(query.encode(), bytes);
            }
        }
    }
}
