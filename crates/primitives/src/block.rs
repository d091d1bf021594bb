//! Superblocks: what consensus decides and the ledger applies.

use std::io::{Error, ErrorKind, Read, Result, Write};

use borsh::{BorshDeserialize, BorshSerialize};
use rayon::prelude::*;

use crate::{Address, Digest, Height, Transaction, read_format, write_format};

const BLOCK_CONTEXT: &str = "walras 2026 superblock v2";
/// The version of the encoding of superblocks.
const BLOCK_FORMAT: u8 = 5;
/// The version of those in which envelopes were opened: their keys are behind the rest.
const OPENED_FORMAT: u8 = 6;
/// Bytes of the key that opens an envelope.
pub const OPENING_KEY_BYTES: usize = 48;
/// The version of the encoding of sub-blocks.
const SUB_BLOCK_FORMAT: u8 = 4;
/// The section of native transactions; every sub-block has it.
const NATIVE_SECTION: u8 = 0;
/// The section of Ethereum transactions; a sub-block has it unless it is empty.
const ETHEREUM_SECTION: u8 = 1;
/// Transactions that one thread encodes at a time.
const PART: usize = 1_024;

/// One validator's share of a superblock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubBlock {
    /// The proposer's number in the epoch's list of validators.
    pub proposer: u32,
    /// Milliseconds since 1970, by the proposer's clock.
    pub time_ms: u64,
    /// Native transactions. Their order has no meaning (rule 6).
    pub native: Vec<Transaction>,
    /// Ethereum transactions in their EIP-2718 form, in the proposer's order. The ledger defines their meaning.
    pub ethereum: Vec<Vec<u8>>,
    /// Positions of the native transactions with an invalid signature, ascending. Each validator finds them itself;
    /// they are not part of the proposal. They are stored so that no later reader has to verify again.
    pub forged: Vec<u32>,
    /// The signer of each Ethereum transaction, `None` where the signature recovers to no address. Found and stored
    /// like `forged`.
    pub senders: Vec<Option<Address>>,
}

/// What a proposer sends: the version of the format, its clock, and its transactions in typed sections. Each section
/// begins with its type, and sections are in order of type.
struct Payload {
    time_ms: u64,
    native: Vec<Transaction>,
    ethereum: Vec<Vec<u8>>,
}

impl BorshDeserialize for Payload {
    fn deserialize_reader<R: Read>(reader: &mut R) -> Result<Payload> {
        read_format(reader, "a sub-block", SUB_BLOCK_FORMAT)?;
        let (time_ms, sections) = <(u64, u8)>::deserialize_reader(reader)?;
        if sections == 0 || sections > 2 {
            return invalid(format!("the sub-block has {sections} sections: the rules in force allow one or two"));
        }
        read_section(reader, NATIVE_SECTION)?;
        let native = Vec::deserialize_reader(reader)?;
        let mut ethereum: Vec<Vec<u8>> = Vec::new();
        if sections == 2 {
            read_section(reader, ETHEREUM_SECTION)?;
            ethereum = Vec::deserialize_reader(reader)?;
            if ethereum.is_empty() {
                return invalid("the section of Ethereum transactions is empty: leave it out".into());
            }
        }
        Ok(Payload { time_ms, native, ethereum })
    }
}

fn invalid<T>(why: String) -> Result<T> {
    Err(Error::new(ErrorKind::InvalidData, why))
}

/// Reads the type of the next section, which must be the expected one.
fn read_section<R: Read>(reader: &mut R, expected: u8) -> Result<()> {
    match u8::deserialize_reader(reader)? {
        section if section == expected => Ok(()),
        section => invalid(format!("section {section} of a sub-block is unknown to the rules in force")),
    }
}

impl SubBlock {
    /// What its proposer sends: everything except its number and what others find out.
    pub fn to_payload(&self) -> Vec<u8> {
        let mut bytes = self.sections_head();
        bytes.extend(encoded_each(&self.native));
        self.write_ethereum(&mut bytes);
        bytes
    }

    /// Decodes what a proposer sent.
    ///
    /// # Errors
    /// Describes the fault in the bytes: another format, a section that the rules do not know, or not a sub-block.
    pub fn from_payload(proposer: u32, bytes: &[u8]) -> Result<SubBlock> {
        let Payload { time_ms, native, ethereum } = borsh::from_slice(bytes)?;
        Ok(SubBlock { proposer, time_ms, native, ethereum, ..SubBlock::default() })
    }

    /// The beginning of the payload, up to the number of transactions.
    fn sections_head(&self) -> Vec<u8> {
        let sections = 1 + u8::from(!self.ethereum.is_empty());
        encoded(&(SUB_BLOCK_FORMAT, self.time_ms, sections, NATIVE_SECTION, length(self.native.len())))
    }

    /// Writes the section of Ethereum transactions, if there are some.
    fn write_ethereum(&self, bytes: &mut Vec<u8>) {
        if !self.ethereum.is_empty() {
            bytes.push(ETHEREUM_SECTION);
            self.ethereum.serialize(bytes).expect("writing to memory cannot fail");
        }
    }
}

impl BorshSerialize for SubBlock {
    fn serialize<W: Write>(&self, writer: &mut W) -> Result<()> {
        self.proposer.serialize(writer)?;
        writer.write_all(&self.to_payload())?;
        (&self.forged, &self.senders).serialize(writer)
    }
}

impl BorshDeserialize for SubBlock {
    fn deserialize_reader<R: Read>(reader: &mut R) -> Result<SubBlock> {
        let proposer = u32::deserialize_reader(reader)?;
        let Payload { time_ms, native, ethereum } = Payload::deserialize_reader(reader)?;
        let (forged, senders) = BorshDeserialize::deserialize_reader(reader)?;
        Ok(SubBlock { proposer, time_ms, native, ethereum, forged, senders })
    }
}

/// A decided block: the sub-blocks of one height, and the state that they build on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Superblock {
    /// Height of this block.
    pub height: Height,
    /// Digest of the previous block; of the genesis for height 1.
    pub parent: Digest,
    /// Milliseconds since 1970: the median of the sub-blocks' clocks; it does not affect any order or decision.
    pub time_ms: u64,
    /// The state root after the previous block, so that hashing stays off the critical path (rule 9).
    pub parent_root: Digest,
    /// The validators' sub-blocks in slot order.
    pub sub_blocks: Vec<SubBlock>,
    /// The keys of the envelopes that it opens, in their order. The committee makes them once the block is decided.
    /// They are stored so that a replay needs no committee.
    pub openings: Vec<[u8; OPENING_KEY_BYTES]>,
}

impl BorshSerialize for Superblock {
    fn serialize<W: Write>(&self, writer: &mut W) -> Result<()> {
        write_format(writer, self.format())?;
        (self.height, self.parent, self.time_ms, self.parent_root).serialize(writer)?;
        self.sub_blocks.serialize(writer)?;
        writer.write_all(&self.encoded_openings())
    }
}

impl BorshDeserialize for Superblock {
    fn deserialize_reader<R: Read>(reader: &mut R) -> Result<Superblock> {
        let mut format = [0];
        reader.read_exact(&mut format)?;
        let is_opened = format == [OPENED_FORMAT];
        if !is_opened {
            read_format(&mut &format[..], "a block", BLOCK_FORMAT)?;
        }
        let (height, parent, time_ms, parent_root, sub_blocks) = BorshDeserialize::deserialize_reader(reader)?;
        let openings: Vec<_> = if is_opened { BorshDeserialize::deserialize_reader(reader)? } else { Vec::new() };
        if is_opened && openings.is_empty() {
            return invalid("the keys of opened envelopes are missing: leave them out by the format".into());
        }
        Ok(Superblock { height, parent, time_ms, parent_root, sub_blocks, openings })
    }
}

impl Superblock {
    fn format(&self) -> u8 {
        if self.openings.is_empty() { BLOCK_FORMAT } else { OPENED_FORMAT }
    }

    /// What stands behind the sub-blocks.
    fn encoded_openings(&self) -> Vec<u8> {
        if self.openings.is_empty() { Vec::new() } else { encoded(&self.openings) }
    }

    /// Number of native transactions in all sub-blocks.
    pub fn native_len(&self) -> usize {
        self.sub_blocks.iter().map(|sub| sub.native.len()).sum()
    }

    /// Number of Ethereum transactions in all sub-blocks.
    pub fn ethereum_len(&self) -> usize {
        self.sub_blocks.iter().map(|sub| sub.ethereum.len()).sum()
    }

    /// Whether the signature of each native transaction is valid; `None` if all are.
    pub fn signatures(&self) -> Option<Vec<bool>> {
        self.sub_blocks.iter().any(|sub| !sub.forged.is_empty()).then(|| {
            let of = |sub: &SubBlock| {
                let mut valid = vec![true; sub.native.len()];
                sub.forged.iter().for_each(|at| valid[*at as usize] = false);
                valid
            };
            self.sub_blocks.iter().flat_map(of).collect()
        })
    }

    /// The canonical encoding, written in parallel on the current rayon pool if it is large.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = encoded(&(self.format(), self.height, self.parent, self.time_ms, self.parent_root));
        bytes.extend(encoded(&length(self.sub_blocks.len())));
        for sub_block in &self.sub_blocks {
            bytes.extend(encoded(&sub_block.proposer));
            bytes.extend(sub_block.sections_head());
            let parts: Vec<Vec<u8>> = sub_block.native.par_chunks(PART).map(encoded_each).collect();
            bytes.reserve(parts.iter().map(Vec::len).sum());
            parts.iter().for_each(|part| bytes.extend_from_slice(part));
            sub_block.write_ethereum(&mut bytes);
            bytes.extend(encoded(&(&sub_block.forged, &sub_block.senders)));
        }
        bytes.extend(self.encoded_openings());
        bytes
    }

    /// The digest of an encoded superblock.
    pub fn digest(bytes: &[u8]) -> Digest {
        let mut hasher = blake3::Hasher::new_derive_key(BLOCK_CONTEXT);
        Digest(hasher.update_rayon(bytes).finalize().into())
    }
}

fn encoded(value: &impl BorshSerialize) -> Vec<u8> {
    borsh::to_vec(value).expect("writing to memory cannot fail")
}

fn encoded_each(transactions: &[Transaction]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(transactions.len() * 256);
    transactions.iter().for_each(|t| t.serialize(&mut bytes).expect("writing to memory cannot fail"));
    bytes
}

fn length(items: usize) -> u32 {
    u32::try_from(items).expect("fewer than 2^32 items in a block")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Address, AssetId, Body, Operation, PublicKey, Signature, SignedBy, WalletSignature};

    #[test]
    fn written_in_parallel_is_written_the_same() {
        let transaction = |sequence| Transaction {
            body: Body {
                chain: 1,
                account: Address([3; 20]),
                sequence,
                until: 50_000,
                operation: match sequence % 2 {
                    0 => Operation::Burn { asset: AssetId(1), amount: sequence },
                    _ => Operation::Pay { to: Address([4; 20]), asset: AssetId(2), amount: sequence },
                },
            },
            signed_by: match sequence % 3 {
                0 => SignedBy::TypedData { network: Digest([5; 32]), signature: WalletSignature([6; 64]) },
                _ => SignedBy::Key { signer: PublicKey([5; 32]), signature: Signature([6; 64]) },
            },
        };
        for sizes in [vec![], vec![0], vec![3], vec![1, 0, 2], vec![PART as u64 * 3 + 7, 5]] {
            let sub_block = |(i, size): (usize, &u64)| SubBlock {
                proposer: i as u32,
                time_ms: 7,
                native: (0..*size).map(transaction).collect(),
                ethereum: (0..*size % 3).map(|length| vec![7; length as usize]).collect(),
                forged: (0..*size as u32 / 2).collect(),
                senders: (0..*size % 3).map(|one| (one == 1).then_some(Address([9; 20]))).collect(),
            };
            let sub_blocks = sizes.iter().enumerate().map(sub_block).collect();
            let (parent, parent_root) = (Digest([1; 32]), Digest([2; 32]));
            let openings = (0..sizes.len() as u8).map(|at| [at; OPENING_KEY_BYTES]).collect();
            let block = Superblock { height: 9, parent, time_ms: 8, parent_root, sub_blocks, openings };
            for sub in &block.sub_blocks {
                let read = SubBlock::from_payload(sub.proposer, &sub.to_payload()).expect("its own bytes");
                assert_eq!(SubBlock { forged: sub.forged.clone(), senders: sub.senders.clone(), ..read }, *sub);
            }
            let plain = borsh::to_vec(&block).expect("writing to memory");
            assert_eq!(block.to_bytes(), plain);
            assert_eq!(Superblock::digest(&plain), Digest::of(BLOCK_CONTEXT, &plain));
            assert_eq!(borsh::from_slice::<Superblock>(&plain).expect("its own bytes"), block);
            assert_eq!(plain[0], if sizes.is_empty() { BLOCK_FORMAT } else { OPENED_FORMAT });
        }
    }

    /// Formats and sections that this program does not know are refused by name, and a payload has one encoding.
    #[test]
    fn other_formats_and_sections_are_refused_by_name() {
        let payload = SubBlock { time_ms: 7, ..SubBlock::default() }.to_payload();
        assert_eq!(payload, [&[SUB_BLOCK_FORMAT][..], &7u64.to_le_bytes(), &[1, 0], &[0; 4]].concat());
        let refused = |at: usize, byte: u8| {
            let mut other = payload.clone();
            other[at] = byte;
            SubBlock::from_payload(0, &other).expect_err("refused").to_string()
        };
        assert!(refused(0, 1).contains("a sub-block of format 1, and this program reads 4"));
        assert!(refused(9, 0).contains("0 sections") && refused(9, 3).contains("3 sections"));
        assert!(refused(10, 1).contains("section 1 of a sub-block is unknown to the rules in force"));
        let with_section = |section: &[u8]| {
            let mut other = [&payload[..], section].concat();
            other[9] = 2;
            SubBlock::from_payload(0, &other)
        };
        let ethereum = with_section(&[1, 1, 0, 0, 0, 2, 0, 0, 0, 5, 6]).expect("a section of one transaction").ethereum;
        assert_eq!(ethereum, [[5, 6]]);
        for section in [&[1, 0, 0, 0, 0][..], &[2, 1, 0, 0, 0, 0, 0, 0, 0], &[0, 0, 0, 0, 0], &[]] {
            assert!(with_section(section).is_err(), "{section:?}: empty, unknown, native twice, missing");
        }
        assert!(SubBlock::from_payload(0, &[&payload[..], &[0]].concat()).is_err(), "something is left over");
        let mut block = Superblock::default().to_bytes();
        assert_eq!(borsh::from_slice::<Superblock>(&block).expect("its own bytes"), Superblock::default());
        block[0] = 9;
        let error = borsh::from_slice::<Superblock>(&block).expect_err("refused").to_string();
        assert!(
            error.contains("a block of format 9, and this program reads 5: use the version that wrote it"),
            "{error}"
        );
    }
}
