//! A reader of a stream of bytes, and the fields of a message.

use super::value::{FixData, FixText, FixValue, SEPARATOR, digits};
use super::{BEGIN_STRING, FixError};

/// What every message begins with.
const BEGIN: &[u8] = b"8=FIX.4.4\x019=";
/// Digits of the length.
const LENGTH_DIGITS: usize = 6;
/// Bytes of the checksum's field.
const TRAILER: usize = 7;
/// The largest tag.
const TAG_MAX: u64 = 99_999;

/// Tags of lengths, and of the data that they are of.
const DATA: [(u32, u32); 15] = [
    (90, 91),
    (93, 89),
    (95, 96),
    (212, 213),
    (348, 349),
    (350, 351),
    (352, 353),
    (354, 355),
    (356, 357),
    (358, 359),
    (360, 361),
    (362, 363),
    (364, 365),
    (445, 446),
    (618, 619),
];

/// A reader of a stream of bytes, which come in any pieces.
#[derive(Clone, Debug)]
pub struct FixReader {
    /// The most bytes of a message.
    most: usize,
    /// The message so far.
    bytes: Vec<u8>,
    /// Whether the message is whole and was handed out.
    is_done: bool,
}

impl FixReader {
    /// A reader that refuses messages of more than `most` bytes.
    pub fn new(most: usize) -> FixReader {
        FixReader { most, bytes: Vec::new(), is_done: false }
    }

    /// Takes bytes from `stream` until a message is whole; its body, from the kind up to the checksum, or `None` if
    /// they do not suffice.
    ///
    /// # Errors
    /// [`FixError::Checksum`]: the message is skipped, and the next may be taken. After any other the stream cannot be
    /// read any further.
    pub fn take(&mut self, stream: &mut &[u8]) -> Result<Option<&[u8]>, FixError> {
        if std::mem::take(&mut self.is_done) {
            self.bytes.clear();
        }
        loop {
            let Some((start, length)) = self.extent()? else {
                let Some((byte, rest)) = stream.split_first() else { return Ok(None) };
                self.bytes.push(*byte);
                *stream = rest;
                continue;
            };
            let whole = start + length + TRAILER;
            let missing = whole - self.bytes.len();
            let (taken, rest) = stream.split_at(missing.min(stream.len()));
            self.bytes.extend_from_slice(taken);
            *stream = rest;
            if self.bytes.len() < whole {
                return Ok(None);
            }
            self.is_done = true;
            return body(&self.bytes, start, length).map(Some);
        }
    }

    /// Where the body begins and its length, once they are there.
    fn extent(&self) -> Result<Option<(usize, usize)>, FixError> {
        let known = self.bytes.len().min(BEGIN.len());
        if let Some(at) = (0..known).find(|at| self.bytes[*at] != BEGIN[*at]) {
            return Err(FixError::Begin { at });
        }
        let rest = self.bytes.get(BEGIN.len()..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count > LENGTH_DIGITS || count == 0 && !rest.is_empty() {
            return Err(FixError::Begin { at: BEGIN.len() + count });
        }
        let Some(end) = rest.get(count) else { return Ok(None) };
        let start = BEGIN.len() + count + 1;
        if *end != SEPARATOR {
            return Err(FixError::Begin { at: start - 1 });
        }
        let length = digits(&rest[..count]).unwrap_or(u64::MAX) as usize;
        let has = start.saturating_add(length).saturating_add(TRAILER);
        if has > self.most { Err(FixError::Long { most: self.most, has }) } else { Ok(Some((start, length))) }
    }
}

/// The body of a whole message.
fn body(bytes: &[u8], start: usize, length: usize) -> Result<&[u8], FixError> {
    let (before, trailer) = bytes.split_at(start + length);
    let body = &before[start..];
    let says = trailer.strip_prefix(b"10=").and_then(|rest| rest.strip_suffix(&[SEPARATOR])).and_then(digits);
    let is_body = body.starts_with(b"35=") && body.ends_with(&[SEPARATOR]);
    let says = says.and_then(|says| u8::try_from(says).ok()).filter(|_| is_body);
    let says = says.ok_or(FixError::Length { says: length })?;
    let is = checksum(before);
    if says == is { Ok(body) } else { Err(FixError::Checksum { says, is }) }
}

/// The sum of all bytes, modulo 256.
fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| sum.wrapping_add(*byte))
}

/// The whole message of `body`, which begins with the kind.
pub(super) fn framed(body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("8={BEGIN_STRING}\u{1}9={}\u{1}", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    let sum = checksum(&bytes);
    bytes.extend(format!("10={sum:03}\u{1}").bytes());
    bytes
}

/// Appends a field.
pub(super) fn put<T: FixValue>(tag: u32, value: &T, to: &mut Vec<u8>) {
    to.extend(format!("{tag}=").bytes());
    value.put(to);
    to.push(SEPARATOR);
}

/// One field of a message.
#[derive(Clone, Copy, Debug)]
struct Entry<'a> {
    tag: u32,
    value: &'a [u8],
    is_taken: bool,
}

/// The fields of a message, which are taken one by one; what is left then is skipped.
#[derive(Clone, Debug)]
pub(super) struct FixFields<'a> {
    entries: Vec<Entry<'a>>,
    pub(super) kind: String,
    /// What is wrong with the first field that is none.
    pub(super) fault: Option<FixError>,
}

impl<'a> FixFields<'a> {
    /// The fields of a body, the kind first.
    pub(super) fn of(body: &'a [u8]) -> Result<FixFields<'a>, FixError> {
        let (mut fields, mut rest) = (FixFields { entries: Vec::new(), kind: String::new(), fault: None }, body);
        while !rest.is_empty() {
            match fields.next(rest) {
                Ok(after) => rest = after,
                Err(fault) => {
                    fields.fault = Some(fault);
                    break;
                }
            }
        }
        let kind = fields.value::<FixText>(35)?.ok_or(FixError::Tag { at: 1 })?;
        fields.kind = kind.to_string();
        Ok(fields)
    }

    /// Adds the field that `bytes` begin with; what follows it.
    fn next(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], FixError> {
        let at = self.entries.len() + 1;
        let (tag, after) = tag(bytes).ok_or(FixError::Tag { at })?;
        let length = match self.entries.last().and_then(|last| data_of(last, tag)) {
            Some(length) => length.filter(|length| after.get(*length) == Some(&SEPARATOR)),
            None => after.iter().position(|byte| *byte == SEPARATOR),
        };
        let length = length.ok_or(FixError::Data { tag, at })?;
        if length == 0 {
            return Err(FixError::Empty { tag, at });
        }
        self.entries.push(Entry { tag, value: &after[..length], is_taken: false });
        Ok(&after[length + 1..])
    }

    /// Takes the field of `tag`, if it is there.
    pub(super) fn take(&mut self, tag: u32) -> Result<Option<(usize, &'a [u8])>, FixError> {
        let mut found = (1..).zip(&mut self.entries).filter(|(_, entry)| entry.tag == tag && !entry.is_taken);
        let Some((at, entry)) = found.next() else { return Ok(None) };
        if let Some((at, _)) = found.next() {
            return Err(FixError::Repeated { tag, at });
        }
        entry.is_taken = true;
        Ok(Some((at, entry.value)))
    }

    /// Takes the value of `tag`, if it is there.
    pub(super) fn value<T: FixValue>(&mut self, tag: u32) -> Result<Option<T>, FixError> {
        let Some((at, bytes)) = self.take(tag)? else { return Ok(None) };
        T::get(bytes).map(Some).ok_or(FixError::Value { tag, at, needs: T::NEEDS })
    }

    /// Takes the entries of the group whose count is `tag`: each begins with `first`, and goes on with `others`.
    pub(super) fn group(&mut self, tag: u32, first: u32, others: &[u32]) -> Result<Vec<FixFields<'a>>, FixError> {
        let Some(says) = self.value::<u64>(tag)? else { return Ok(Vec::new()) };
        let begin = self.entries.iter().position(|entry| entry.tag == tag).map_or(0, |at| at + 1);
        let mut groups: Vec<FixFields> = Vec::new();
        for entry in &mut self.entries[begin..] {
            if entry.tag == first {
                groups.push(FixFields { entries: Vec::new(), kind: self.kind.clone(), fault: None });
            }
            let Some(group) = groups.last_mut().filter(|_| entry.tag == first || others.contains(&entry.tag)) else {
                break;
            };
            group.entries.push(*entry);
            entry.is_taken = true;
        }
        let has = groups.len();
        if says == has as u64 { Ok(groups) } else { Err(FixError::Group { tag, says, has }) }
    }
}

/// The tag that `bytes` begin with, and what follows it.
fn tag(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let end = bytes.iter().take(LENGTH_DIGITS).position(|byte| *byte == b'=')?;
    let tag = digits(&bytes[..end]).filter(|tag| (1..=TAG_MAX).contains(tag) && bytes[0] != b'0')?;
    Some((tag as u32, &bytes[end + 1..]))
}

/// If `tag` is that of data whose length `before` says: that length, as far as it is a number.
fn data_of(before: &Entry, tag: u32) -> Option<Option<usize>> {
    DATA.contains(&(before.tag, tag)).then(|| digits(before.value)?.try_into().ok())
}

/// A field of a message: there always, perhaps, or a group.
pub(super) trait FixField: Sized {
    /// Takes it from the fields.
    fn take(tag: u32, fields: &mut FixFields) -> Result<Self, FixError>;

    /// Appends it.
    fn put_field(&self, tag: u32, to: &mut Vec<u8>);
}

impl<T: FixValue> FixField for T {
    fn take(tag: u32, fields: &mut FixFields) -> Result<T, FixError> {
        fields.value(tag)?.ok_or_else(|| FixError::Missing { tag, kind: fields.kind.clone() })
    }

    fn put_field(&self, tag: u32, to: &mut Vec<u8>) {
        put(tag, self, to);
    }
}

impl<T: FixValue> FixField for Option<T> {
    fn take(tag: u32, fields: &mut FixFields) -> Result<Option<T>, FixError> {
        fields.value(tag)
    }

    fn put_field(&self, tag: u32, to: &mut Vec<u8>) {
        self.iter().for_each(|value| put(tag, value, to));
    }
}

/// Data after their length, whose tag this is; the tag of the data is the next in the table.
impl FixField for Option<FixData> {
    fn take(tag: u32, fields: &mut FixFields) -> Result<Option<FixData>, FixError> {
        let of = DATA.iter().find(|(length, _)| *length == tag).map_or(0, |(_, data)| *data);
        match (fields.take(tag)?, fields.take(of)?) {
            (None, None) => Ok(None),
            (Some((_, length)), Some((_, data))) if digits(length) == Some(data.len() as u64) => {
                Ok(Some(FixData(data.to_vec())))
            }
            (length, data) => Err(FixError::Data { tag, at: length.or(data).map_or(0, |(at, _)| at) }),
        }
    }

    fn put_field(&self, tag: u32, to: &mut Vec<u8>) {
        let Some(FixData(data)) = self.as_ref().filter(|data| !data.0.is_empty()) else { return };
        let of = DATA.iter().find(|(length, _)| *length == tag).map_or(0, |(_, data)| *data);
        to.extend(format!("{tag}={}\u{1}{of}=", data.len()).bytes());
        to.extend_from_slice(data);
        to.push(SEPARATOR);
    }
}
