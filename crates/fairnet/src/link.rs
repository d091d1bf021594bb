//! Streams between members: what they say, in frames that carry a MAC over a counter.
//!
//! Two kinds of streams lead up from each member: *control* to the root (joining, heartbeats, reports; the tree of each
//! epoch comes back) and *orders* to its parent (orders, watermarks, delays; credit comes back). The secret is on venue
//! machines alone. Each end contributes a nonce, so a frame counts once: on one stream, in one direction, in one place.
//!
//! | bytes of a frame | field |
//! |---|---|
//! | 0–3 | bytes of the message |
//! | 4 … | the message: a tag, then its fields, big-endian |
//! | last 16 | MAC of direction, counter and message: BLAKE3, keyed by secret, purpose, both ends and both nonces |

use crate::Nanos;
use crate::bytes::ByteReader;
use crate::estimator::ProbePair;
use crate::key::{MergeKey, OrderClass, Sequenced};

use crate::packet::{LINK, PacketKey, is_equal};
use crate::roster::{FairnessEvent, MemberRole};
use crate::seating::{EdgePlace, MemberId, Seating};
use crate::tokens::OrderToken;

/// Most bytes of a message.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// Most bytes of an order's body.
pub const ORDER_BYTES_MAX: usize = 4_096;
const TAG_BYTES: usize = 16;
const LENGTH_BYTES: usize = 4;

/// An order on its way in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeOrder {
    /// Whose.
    pub participant: u64,
    /// Which life of the gateway: the epoch in which it joined. References begin anew with each.
    pub session: u32,
    /// What identifies it, also when it is sent again.
    pub token: OrderToken,
    /// The last feed sequence that its participant was shown.
    pub md_seq: u64,
    /// What the engine gets.
    pub body: Vec<u8>,
}

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkPurpose {
    /// Between a member and the root.
    Control,
    /// Between a member and its parent.
    Orders,
}

/// What members tell each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkMessage {
    /// Both ways, first of all: by it each end proves that it knows the secret. Shells keep it to themselves.
    Hello,
    /// Up, control: wants to take part, as this, there.
    Join(MemberRole, EdgePlace),
    /// Up, control: is alive, and works by this epoch.
    Alive(u32),
    /// Up, control: something impaired fairness.
    Event(FairnessEvent),
    /// Up, control: when a sampled packet was shown. See [`ShownSample`].
    Shown(ShownSample),
    /// Up, control: a pair of probes of this member came.
    Probed(MemberId, ProbePair),
    /// Down, control: the tree of the next epoch, and the session of the feed.
    Configure(Box<Seating>, [u8; 10]),
    /// Down, control: the tree counts from now on, and a newcomer's first packet is this.
    Begin(u64),
    /// Down, control: not a member; it must join.
    Unknown,
    /// Down, control: a child of this member cheats, by so much, and is no member any more.
    Expelled(MemberId, u64),
    /// Down, control: may not join before this time.
    TooSoon(Nanos),
    /// Down, control: the root has these orders of a gateway's session.
    Taken(u32, Vec<OrderToken>),
    /// Down, control: a report for participants, to be passed on once the packet of this sequence was shown.
    Report(u64, Vec<u8>),
    /// Up, orders.
    Order(Box<Sequenced<EdgeOrder>>),
    /// Up, orders: in this class nothing below this key comes.
    Watermark(OrderClass, MergeKey),
    /// Up, orders: the largest delay below.
    Delay(Nanos),
    /// Down, orders: this many more orders may come.
    Credit(u64),
}

/// What a gateway says of one packet that it showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownSample {
    /// The packet.
    pub sequence: u64,
    /// How long it took from the root, ns.
    pub delay: Nanos,
    /// How long it was held, ns.
    pub held: Nanos,
    /// How much after its deadline it was shown, ns.
    pub late: Nanos,
    /// The clock's largest error, ns, if it is known.
    pub error_bound: Option<Nanos>,
}

/// Why a stream must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The length is out of range.
    #[error("a message of {0} bytes: at most {MESSAGE_BYTES_MAX} are taken")]
    Length(usize),
    /// The MAC is wrong: forged, repeated, left out, or by another secret.
    #[error("a frame is not authentic")]
    Forged,
    /// An authentic message has no meaning.
    #[error("a message of kind {0} cannot be read: do both ends run the same version?")]
    Malformed(u8),
}

fn put_key(key: &MergeKey, out: &mut Vec<u8>) {
    out.extend_from_slice(&key.mid.to_be_bytes());
    out.extend_from_slice(&key.stamp.to_be_bytes());
    out.extend_from_slice(&key.source.to_be_bytes());
    out.extend_from_slice(&key.sub.to_be_bytes());
}

fn key(bytes: &mut ByteReader<'_>) -> Option<MergeKey> {
    Some(MergeKey { mid: bytes.u64()?, stamp: bytes.u64()?, source: bytes.u32()?, sub: bytes.u32()? })
}

fn class(bytes: &mut ByteReader<'_>) -> Option<OrderClass> {
    OrderClass::ALL.get(usize::from(bytes.u8()?)).copied()
}

fn put_token(token: &OrderToken, out: &mut Vec<u8>) {
    out.extend_from_slice(&token.reference.to_be_bytes());
    out.extend_from_slice(&token.token);
}

fn token(bytes: &mut ByteReader<'_>) -> Option<OrderToken> {
    Some(OrderToken { reference: bytes.u32()?, token: bytes.array()? })
}

fn put_order(order: &Sequenced<EdgeOrder>, out: &mut Vec<u8>) {
    out.push(order.class as u8);
    put_key(&order.key, out);
    out.push(u8::from(order.restamped.is_some()));
    order.restamped.iter().for_each(|key| put_key(key, out));
    let EdgeOrder { participant, session, token, md_seq, body } = &order.item;
    out.extend_from_slice(&participant.to_be_bytes());
    out.extend_from_slice(&session.to_be_bytes());
    put_token(token, out);
    out.extend_from_slice(&md_seq.to_be_bytes());
    out.extend_from_slice(&(body.len() as u32).to_be_bytes());
    out.extend_from_slice(body);
}

fn order(bytes: &mut ByteReader<'_>) -> Option<Sequenced<EdgeOrder>> {
    let (class, at) = (class(bytes)?, key(bytes)?);
    let restamped = match bytes.u8()? {
        0 => None,
        1 => Some(key(bytes)?),
        _ => return None,
    };
    let (participant, session, token, md_seq) = (bytes.u64()?, bytes.u32()?, token(bytes)?, bytes.u64()?);
    let length = bytes.u32()? as usize;
    let body = bytes.bytes(length).filter(|body| body.len() <= ORDER_BYTES_MAX)?.to_vec();
    Some(Sequenced { class, key: at, restamped, item: EdgeOrder { participant, session, token, md_seq, body } })
}

fn put_sample(sample: &ShownSample, out: &mut Vec<u8>) {
    let ShownSample { sequence, delay, held, late, error_bound } = *sample;
    // No clock is wrong by the end of time: that stands for a bound that is not known.
    for word in [sequence, delay, held, late, error_bound.unwrap_or(Nanos::MAX)] {
        out.extend_from_slice(&word.to_be_bytes());
    }
}

fn sample(bytes: &mut ByteReader<'_>) -> Option<ShownSample> {
    let (sequence, delay, held, late) = (bytes.u64()?, bytes.u64()?, bytes.u64()?, bytes.u64()?);
    let error_bound = Some(bytes.u64()?).filter(|bound| *bound != Nanos::MAX);
    Some(ShownSample { sequence, delay, held, late, error_bound })
}

impl LinkMessage {
    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            LinkMessage::Join(role, place) => {
                out.extend_from_slice(&[0, *role as u8]);
                place.encode(out);
            }
            LinkMessage::Alive(epoch) => put(1, &epoch.to_be_bytes(), out),
            LinkMessage::Event(event) => {
                out.push(2);
                event.words().iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
            }
            LinkMessage::Shown(sample) => {
                out.push(3);
                put_sample(sample, out);
            }
            LinkMessage::Configure(seating, session) => {
                put(4, session, out);
                seating.encode(out);
            }
            LinkMessage::Begin(next) => put(12, &next.to_be_bytes(), out),
            LinkMessage::Hello => out.push(13),
            LinkMessage::Unknown => out.push(5),
            LinkMessage::TooSoon(until) => put(6, &until.to_be_bytes(), out),
            LinkMessage::Taken(session, tokens) => {
                put(7, &session.to_be_bytes(), out);
                tokens.iter().for_each(|token| put_token(token, out));
            }
            LinkMessage::Order(order) => {
                out.push(8);
                put_order(order, out);
            }
            LinkMessage::Watermark(class, key) => {
                out.extend_from_slice(&[9, *class as u8]);
                put_key(key, out);
            }
            LinkMessage::Delay(delay) => put(10, &delay.to_be_bytes(), out),
            LinkMessage::Credit(orders) => put(11, &orders.to_be_bytes(), out),
            LinkMessage::Expelled(member, by) => {
                put(16, &member.to_be_bytes(), out);
                out.extend_from_slice(&by.to_be_bytes());
            }
            LinkMessage::Probed(from, ProbePair { sent, received }) => {
                put(15, &from.to_be_bytes(), out);
                sent.iter().chain(received).for_each(|time| out.extend_from_slice(&time.to_be_bytes()));
            }
            LinkMessage::Report(position, bytes) => {
                put(14, &position.to_be_bytes(), out);
                out.extend_from_slice(bytes);
            }
        }
    }

    /// The message that bytes are.
    ///
    /// # Errors
    /// [`LinkError::Malformed`] if they are none, or more than one.
    pub fn decode(bytes: &[u8]) -> Result<LinkMessage, LinkError> {
        let mut rest = ByteReader(bytes);
        let message = read(&mut rest).filter(|_| rest.0.is_empty());
        message.ok_or(LinkError::Malformed(bytes.first().copied().unwrap_or(u8::MAX)))
    }
}

fn put(kind: u8, fields: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(fields);
}

fn read(bytes: &mut ByteReader<'_>) -> Option<LinkMessage> {
    Some(match bytes.u8()? {
        0 => {
            let role = match bytes.u8()? {
                0 => MemberRole::Proxy,
                1 => MemberRole::Gateway,
                _ => return None,
            };
            LinkMessage::Join(role, EdgePlace::decode(bytes)?)
        }
        1 => LinkMessage::Alive(bytes.u32()?),
        2 => LinkMessage::Event(FairnessEvent::from_words([bytes.u64()?, bytes.u64()?, bytes.u64()?])?),
        3 => LinkMessage::Shown(sample(bytes)?),
        4 => {
            let session = bytes.array()?;
            LinkMessage::Configure(Box::new(Seating::decode(bytes)?), session)
        }
        5 => LinkMessage::Unknown,
        6 => LinkMessage::TooSoon(bytes.u64()?),
        7 => {
            let (session, mut tokens) = (bytes.u32()?, Vec::new());
            while !bytes.0.is_empty() {
                tokens.push(token(bytes)?);
            }
            LinkMessage::Taken(session, tokens)
        }
        8 => LinkMessage::Order(Box::new(order(bytes)?)),
        9 => LinkMessage::Watermark(class(bytes)?, key(bytes)?),
        10 => LinkMessage::Delay(bytes.u64()?),
        11 => LinkMessage::Credit(bytes.u64()?),
        12 => LinkMessage::Begin(bytes.u64()?),
        13 => LinkMessage::Hello,
        16 => LinkMessage::Expelled(bytes.u64()?, bytes.u64()?),
        15 => {
            let from = bytes.u64()?;
            let (sent, received) = ([bytes.u64()?, bytes.u64()?], [bytes.u64()?, bytes.u64()?]);
            LinkMessage::Probed(from, ProbePair { sent, received })
        }
        14 => LinkMessage::Report(bytes.u64()?, std::mem::take(&mut bytes.0).to_vec()),
        _ => return None,
    })
}

/// What both ends of a stream know before the first frame.
#[derive(Clone, Copy, Debug)]
pub struct LinkTerms {
    /// Who opened the stream.
    pub from: MemberId,
    /// Who took it.
    pub to: MemberId,
    /// What for.
    pub purpose: LinkPurpose,
    /// A number that each end has drawn for this stream alone, the opener's first.
    pub nonces: [[u8; 16]; 2],
}

/// One end of a stream: seals frames that it sends, opens frames that it receives.
#[derive(Debug)]
pub struct LinkSeal {
    key: PacketKey,
    is_opener: bool,
    sent: u64,
    received: u64,
}

impl LinkSeal {
    /// The end that opened the stream, or the other one.
    pub fn new(secret: &[u8; 32], terms: &LinkTerms, is_opener: bool) -> LinkSeal {
        let mut hasher = blake3::Hasher::new_derive_key("walras fairnet link key v1");
        hasher.update(secret).update(&terms.from.to_be_bytes()).update(&terms.to.to_be_bytes());
        hasher.update(&[terms.purpose as u8]).update(&terms.nonces[0]).update(&terms.nonces[1]);
        LinkSeal { key: PacketKey::from_bytes(hasher.finalize().into()), is_opener, sent: 0, received: 0 }
    }

    fn tag(&self, by_opener: bool, counter: u64, message: &[u8]) -> [u8; TAG_BYTES] {
        self.key.tag(LINK, &[&[u8::from(by_opener)], &counter.to_be_bytes(), message])
    }

    /// Appends a frame.
    pub fn seal(&mut self, message: &LinkMessage, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; LENGTH_BYTES]);
        message.encode(out);
        let length = (out.len() - start - LENGTH_BYTES) as u32;
        out[start..start + LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
        let tag = self.tag(self.is_opener, self.sent, &out[start + LENGTH_BYTES..]);
        self.sent += 1;
        out.extend_from_slice(&tag);
    }

    /// The next message of the other end and the bytes that its frame took; `None` if it is not complete.
    ///
    /// # Errors
    /// [`LinkError`]: the stream must end.
    pub fn open(&mut self, bytes: &[u8]) -> Result<Option<(LinkMessage, usize)>, LinkError> {
        let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > MESSAGE_BYTES_MAX {
            return Err(LinkError::Length(length));
        }
        let Some((message, rest)) = rest.split_at_checked(length) else { return Ok(None) };
        let Some(tag) = rest.first_chunk::<TAG_BYTES>() else { return Ok(None) };
        if !is_equal(&self.tag(!self.is_opener, self.received, message), tag) {
            return Err(LinkError::Forged);
        }
        self.received += 1;
        Ok(Some((LinkMessage::decode(message)?, LENGTH_BYTES + length + TAG_BYTES)))
    }
}
