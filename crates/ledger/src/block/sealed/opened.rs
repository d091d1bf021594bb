//! Which envelopes of a block open: a function of the block, of the keys in force, and of the names opened before.
//!
//! It looks at no account, so that the envelopes of a height open while the height before is executed.

use std::collections::BTreeMap;

use primitives::{Digest, EnvelopeName, Height, Operation, SEALED_AHEAD_MAX, Superblock, Transaction, TransactionId};
use proofs::Refusal;
use rayon::prelude::*;
use sealing::{Envelope, EnvelopeTerms, Label};

use crate::places::seals::OpenedNames;

/// The most envelopes of a block, of all its sub-blocks together.
pub const ENVELOPES_MAX: u32 = 64;

/// What decides, beside a block, which of its envelopes open.
#[derive(Clone, Copy)]
pub struct OpeningRules<'a> {
    /// The number of the chain.
    pub chain: u64,
    /// The identity of the network.
    pub network: Digest,
    /// The numbers of the committee's keys in force at the block's height.
    pub keys: &'a [u64],
    /// The most envelopes of a sub-block ([`envelopes_per_sub_block`]).
    pub per_sub_block: u32,
    /// The names opened at the heights before, also of decided blocks that no ledger has applied yet.
    pub names: &'a OpenedNames,
}

/// An envelope of a block that opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenedEnvelope {
    /// The index of its transaction among the native ones of the block.
    pub index: u32,
    /// The number of the committee's key that opens it.
    pub key: u64,
    /// Its label, which the opening key signs.
    pub label: Label,
    /// Its name, which no later block opens.
    pub name: EnvelopeName,
}

/// What becomes of the envelopes of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenedEnvelopes {
    /// Those that open, in the block's order: that of their opening keys in the block's record.
    pub opened: Vec<OpenedEnvelope>,
    /// Those that stay closed, by index, with the reason. They cost nothing and use up nothing.
    pub closed: Vec<(u32, Refusal)>,
}

/// The most envelopes of a sub-block where a committee has so many seats; a node that is alone is one.
pub fn envelopes_per_sub_block(seats: u32) -> u32 {
    ENVELOPES_MAX / seats.max(1)
}

/// Whether the envelopes of a sub-block are at most so many, and each is signed by one ed25519 key and has a point. It
/// looks at bytes alone: a sub-block without it gets no vote.
pub fn are_envelopes_sound(native: &[Transaction], most: usize) -> bool {
    let envelopes: Vec<&Transaction> = native.iter().filter(|one| is_sealed(one)).collect();
    let is_sound = |one: &&Transaction| {
        one.check().is_ok() && one.envelope().is_some_and(|(bytes, _)| Envelope::parse(bytes).is_ok())
    };
    envelopes.len() <= most && envelopes.par_iter().all(is_sound)
}

/// Whether a transaction brings an envelope.
pub(super) fn is_sealed(transaction: &Transaction) -> bool {
    matches!(transaction.body.operation, Operation::Sealed(_))
}

/// Which envelopes of a block open. `valid` says whether the signature of each native transaction is valid; `None` if
/// all are.
pub fn opened(block: &Superblock, valid: Option<&[bool]>, rules: &OpeningRules) -> OpenedEnvelopes {
    let mut opening = OpenedEnvelopes::default();
    let mut named: BTreeMap<EnvelopeName, Vec<(Rank, OpenedEnvelope)>> = BTreeMap::new();
    let mut index = 0;
    for sub_block in &block.sub_blocks {
        let mut room = rules.per_sub_block;
        for transaction in &sub_block.native {
            if is_sealed(transaction) {
                let is_valid = valid.is_none_or(|valid| valid[index as usize]);
                match check(block.height, index, transaction, is_valid && room > 0, rules) {
                    Ok((rank, envelope)) => named.entry(envelope.name).or_default().push((rank, envelope)),
                    Err(_) if is_valid && room == 0 => opening.closed.push((index, Refusal::OVER_QUOTA)),
                    Err(refusal) => opening.closed.push((index, refusal)),
                }
                room = room.saturating_sub(1);
            }
            index += 1;
        }
    }
    for of_name in named.into_values() {
        let (best, counts) = *of_name.iter().max_by_key(|(rank, _)| *rank).expect("it has one");
        for ((until, id, _), envelope) in of_name {
            match envelope.index {
                index if index == counts.index => opening.opened.push(envelope),
                index if (until, id) == (best.0, best.1) => opening.closed.push((index, Refusal::DUPLICATE)),
                index => opening.closed.push((index, Refusal::SEQUENCE_CONFLICT)),
            }
        }
    }
    opening.opened.sort_unstable_by_key(|envelope| envelope.index);
    opening.closed.sort_unstable();
    opening
}

/// Of several envelopes with one name that with the highest rank opens: it ends last, then has the highest id. Of
/// copies it is the first.
type Rank = (Height, TransactionId, std::cmp::Reverse<u32>);

fn check(
    height: Height,
    index: u32,
    transaction: &Transaction,
    signed: bool,
    rules: &OpeningRules,
) -> Result<(Rank, OpenedEnvelope), Refusal> {
    transaction.check()?;
    let until = transaction.body.until;
    let (envelope, name) = transaction.envelope().ok_or(Refusal::ENVELOPE_SIGNER)?;
    match () {
        _ if transaction.body.chain != rules.chain => return Err(Refusal::WRONG_CHAIN),
        _ if !signed => return Err(Refusal::BAD_SIGNATURE),
        _ if until < height => return Err(Refusal::ENDED),
        _ if until - height > SEALED_AHEAD_MAX => return Err(Refusal::SEALED_TOO_LATE),
        _ if !rules.keys.contains(&envelope.key) => return Err(Refusal::SEALED_KEY),
        _ if rules.names.opened_at(&name).is_some() => return Err(Refusal::NAME_OPENED),
        _ => {}
    }
    let terms = EnvelopeTerms::of(rules.network, envelope, &name, until);
    let label = terms.label(envelope.size(), &envelope.point);
    let rank = (until, transaction.id(), std::cmp::Reverse(index));
    Ok((rank, OpenedEnvelope { index, key: envelope.key, label, name }))
}
