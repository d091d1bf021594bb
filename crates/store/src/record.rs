//! Headers of log files and of records; the crate's text describes the format.

/// The longest payload of a part of a record: 256 MiB.
pub(crate) const PART_BYTES_MAX: usize = 1 << 28;

/// The version of the format of log files. Version 2 has records in several parts.
pub(crate) const VERSION: u32 = 2;
pub(crate) const FILE_HEADER_BYTES: usize = 96;
pub(crate) const RECORD_HEADER_BYTES: usize = 64;
pub(crate) const DIGEST_BYTES: usize = 32;
const FILE_MAGIC: [u8; 8] = *b"walraslg";
const BLOCK_MAGIC: [u8; 4] = *b"wblk";
const PART_MAGIC: [u8; 4] = *b"wprt";
const MARK_MAGIC: [u8; 4] = *b"wmrk";
const CHECK_BYTES: usize = 8;

pub(crate) type Digest = [u8; DIGEST_BYTES];

/// Decodes fixed-size fields one after the other.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl Fields<'_> {
    /// The next field. A header's length is checked before its fields are read.
    pub(crate) fn next<const BYTES: usize>(&mut self) -> [u8; BYTES] {
        let (field, rest) = self.0.split_first_chunk().expect("the header is as long as its fields");
        self.0 = rest;
        *field
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.next())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.next())
    }
}

/// The error for a file of another format.
pub(crate) fn other_version(found: u32, read: u32) -> String {
    let remedy =
        if found > read { "start the newer version that wrote it" } else { "start the older one that wrote it" };
    format!("the file has format version {found}, and this program reads {read}: {remedy}")
}

/// The header of a log file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) number: u32,
    pub(crate) first: u64,
    /// Digest of the last record of the previous file.
    pub(crate) previous: Digest,
    pub(crate) salt: [u8; 32],
}

impl FileHeader {
    pub(crate) fn encode(&self) -> [u8; FILE_HEADER_BYTES] {
        let fields = [
            &FILE_MAGIC[..],
            &VERSION.to_le_bytes(),
            &self.number.to_le_bytes(),
            &self.first.to_le_bytes(),
            &self.previous,
            &self.salt,
        ];
        let mut bytes = fields.concat();
        bytes.extend_from_slice(&blake3::hash(&bytes).as_bytes()[..CHECK_BYTES]);
        bytes.try_into().expect("the fields add up")
    }

    /// The header, or its fault.
    pub(crate) fn decode(bytes: &[u8; FILE_HEADER_BYTES]) -> Result<FileHeader, String> {
        let (checked, check) = bytes.split_at(FILE_HEADER_BYTES - CHECK_BYTES);
        let mut fields = Fields(checked);
        if fields.next() != FILE_MAGIC {
            return Err("not a log file".into());
        }
        if blake3::hash(checked).as_bytes()[..CHECK_BYTES] != *check {
            return Err("the file's header does not match its checksum".into());
        }
        let version = fields.u32();
        if version != VERSION {
            return Err(other_version(version, VERSION));
        }
        let (number, first) = (fields.u32(), fields.u64());
        if first == 0 {
            return Err("height 0 is before the first block".into());
        }
        Ok(FileHeader { number, first, previous: fields.next(), salt: fields.next() })
    }
}

/// What follows a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartKind {
    /// A part of a record that continues in the next part.
    Part(u32),
    /// A record, or its last part.
    Last(u32),
    /// Nothing: everything before is durable.
    Mark,
}

impl PartKind {
    /// Length of the payload; `None` for a mark.
    pub(crate) fn payload(self) -> Option<u32> {
        match self {
            PartKind::Part(payload) | PartKind::Last(payload) => Some(payload),
            PartKind::Mark => None,
        }
    }

    fn magic(self) -> [u8; 4] {
        match self {
            PartKind::Part(_) => PART_MAGIC,
            PartKind::Last(_) => BLOCK_MAGIC,
            PartKind::Mark => MARK_MAGIC,
        }
    }

    fn read(magic: [u8; 4], payload: u32) -> Option<PartKind> {
        match magic {
            PART_MAGIC => Some(PartKind::Part(payload)),
            BLOCK_MAGIC => Some(PartKind::Last(payload)),
            MARK_MAGIC => Some(PartKind::Mark),
            _ => None,
        }
    }
}

/// The header of a record or of a part of it, or a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) kind: PartKind,
    pub(crate) height: u64,
    pub(crate) durable: u64,
    /// Digest of the previous record or part.
    pub(crate) previous: Digest,
}

impl RecordHeader {
    pub(crate) fn encode(&self, salt: &[u8; 32]) -> [u8; RECORD_HEADER_BYTES] {
        let fields = [
            &self.kind.magic()[..],
            &self.kind.payload().unwrap_or(0).to_le_bytes(),
            &self.height.to_le_bytes(),
            &self.durable.to_le_bytes(),
            &self.previous,
        ];
        let mut bytes = fields.concat();
        bytes.extend_from_slice(&blake3::keyed_hash(salt, &bytes).as_bytes()[..CHECK_BYTES]);
        bytes.try_into().expect("the fields add up")
    }

    pub(crate) fn decode(bytes: &[u8; RECORD_HEADER_BYTES], salt: &[u8; 32]) -> Option<RecordHeader> {
        let (checked, check) = bytes.split_at(RECORD_HEADER_BYTES - CHECK_BYTES);
        let mut fields = Fields(checked);
        let magic = fields.next();
        let kind = PartKind::read(magic, fields.u32())?;
        if blake3::keyed_hash(salt, checked).as_bytes()[..CHECK_BYTES] != *check {
            return None;
        }
        Some(RecordHeader { kind, height: fields.u64(), durable: fields.u64(), previous: fields.next() })
    }

    /// The digest of the record with this header and payload.
    pub(crate) fn digest(&self, salt: &[u8; 32], payload: &[u8]) -> Digest {
        let header = self.encode(salt);
        let mut hasher = blake3::Hasher::new();
        hasher.update(&header[..RECORD_HEADER_BYTES - CHECK_BYTES]).update(payload).finalize().into()
    }
}

/// Whether a record or mark of the file with this salt, anywhere in `bytes`, records that `height` was durable.
pub(crate) fn attests_durable(bytes: &[u8], salt: &[u8; 32], height: u64) -> bool {
    bytes.windows(RECORD_HEADER_BYTES).any(|window| {
        let magic = &window[..BLOCK_MAGIC.len()];
        let is_known = [BLOCK_MAGIC, PART_MAGIC, MARK_MAGIC].iter().any(|known| magic == known);
        let header = is_known.then(|| window.first_chunk()).flatten();
        header.and_then(|header| RecordHeader::decode(header, salt)).is_some_and(|header| header.durable >= height)
    })
}
