//! Where the chain has what venues did: heights of settles, of fences and of changed report keys, and keys by account.
//!
//! The ledger knows a venue's present fills by the peaks of their tree alone, and an ended incarnation by one leaf. Who
//! proves a fill, a false report or a claim needs the leaves themselves, which blocks and receipts have; this index
//! says in which. It is filled by each block as it is published, and by older blocks of the archive in any order.
//!
//! *Properties.* Each list is bounded; the oldest entries of the venue that adds one make room. Whoever
//! joins the leaves compares their tree with the peaks in the ledger, so a gap is seen and never believed.

use std::collections::{BTreeMap, BTreeSet};

use ledger::{BlockReceipts, Outcome, Venues};
use primitives::venue::{VenueId, VenueOperation};
use primitives::{Address, Height, Operation, PublicKey, Superblock, Transaction};

/// Maximum number of entries of each list.
const KEPT_MAX: usize = 1 << 20;

/// A settle that counted: the first index, and how many fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettledRange {
    /// The venue.
    pub venue: VenueId,
    /// Its incarnation.
    pub incarnation: u32,
    /// The index of the first fill.
    pub from: u64,
    /// Number of fills.
    pub fills: u64,
}

/// A block of a venue's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VenueBlock {
    /// Its height.
    pub height: Height,
    /// Its time, milliseconds since 1970.
    pub time_ms: u64,
}

/// See the module text.
#[derive(Default)]
pub struct VenueHistory {
    keys: BTreeSet<(Address, VenueId, PublicKey)>,
    settles: BTreeMap<(VenueId, u32, u64), (Height, u64)>,
    report_keys: BTreeMap<(VenueId, Height, u64), PublicKey>,
    fences: BTreeMap<(VenueId, u32), VenueBlock>,
}

/// An incarnation that a fence ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedHistory {
    /// Its number.
    pub incarnation: u32,
    /// Its report keys, in the order in which it had them.
    pub report_keys: Vec<PublicKey>,
    /// The block of the fence.
    pub fence: VenueBlock,
}

impl SettledRange {
    /// The settles of a block.
    pub fn all(receipts: &BlockReceipts) -> Vec<SettledRange> {
        receipts.venues.iter().map(SettledRange::of).collect()
    }

    /// Where a settle is in the tree.
    pub fn of(settled: &ledger::SettledFills) -> SettledRange {
        let ledger::SettledFills { venue, incarnation, from, .. } = *settled;
        SettledRange { venue, incarnation, from, fills: settled.leaves.len() as u64 }
    }
}

impl VenueHistory {
    /// The history of a recovered ledger: it knows the keys, and no block yet.
    pub fn of(venues: Option<&Venues>) -> VenueHistory {
        let keys = venues.into_iter().flat_map(Venues::keys);
        VenueHistory { keys: keys.map(|((venue, key), of)| (of.owner, *venue, *key)).collect(), ..Default::default() }
    }

    /// Adds a block, of any height.
    pub fn add<'a>(
        &mut self,
        block: VenueBlock,
        settles: &[SettledRange],
        transactions: impl IntoIterator<Item = (&'a Transaction, Outcome)>,
    ) {
        for SettledRange { venue, incarnation, from, fills } in settles {
            self.settles.insert((*venue, *incarnation, *from), (block.height, *fills));
            self.make_room(*venue);
        }
        for (transaction, outcome) in transactions {
            let (Operation::Venue(operation), Outcome::Applied) = (&transaction.body.operation, outcome) else {
                continue;
            };
            self.add_operation(block, transaction.body.account, transaction.body.sequence, operation);
        }
    }

    /// Adds a block of the archive.
    pub fn add_archived(&mut self, block: &Superblock, receipts: &BlockReceipts) {
        let transactions = block.sub_blocks.iter().flat_map(|sub| &sub.native);
        let outcomes = receipts.outcomes.iter().map(|(_, outcome)| *outcome);
        let at = VenueBlock { height: block.height, time_ms: block.time_ms };
        self.add(at, &SettledRange::all(receipts), transactions.zip(outcomes));
    }

    fn add_operation(&mut self, block: VenueBlock, account: Address, sequence: u64, operation: &VenueOperation) {
        match *operation {
            VenueOperation::Authorize { venue, key, .. } => drop(self.keys.insert((account, venue, key))),
            VenueOperation::Open { venue, operator, .. }
            | VenueOperation::ChangeOperator { venue, to: operator, .. } => {
                self.report_keys.insert((venue, block.height, sequence), operator.report_key);
                self.make_room(venue);
            }
            VenueOperation::Fence { venue, incarnation } => {
                self.fences.insert((venue, incarnation), block);
                self.make_room(venue);
            }
            _ => {}
        }
    }

    /// Drops the oldest entries of a venue from lists that are full.
    fn make_room(&mut self, venue: VenueId) {
        fn drop_first<K: Ord + Copy, V>(map: &mut BTreeMap<K, V>, from: K) {
            if map.len() > KEPT_MAX {
                let first = map.range(from..).next().map(|(key, _)| *key);
                first.map(|first| map.remove(&first));
            }
        }
        drop_first(&mut self.settles, (venue, 0, 0));
        drop_first(&mut self.report_keys, (venue, 0, 0));
        drop_first(&mut self.fences, (venue, 0));
    }

    /// Forgets what is above a height, on a developers' chain that went back to the state of these venues.
    pub fn cut_above(&mut self, height: Height, venues: Option<&Venues>) {
        self.settles.retain(|_, (of, _)| *of <= height);
        self.report_keys.retain(|(_, of, _), _| *of <= height);
        self.fences.retain(|_, block| block.height <= height);
        self.keys = VenueHistory::of(venues).keys;
    }

    /// The trading keys of an account, by venue and key.
    pub fn keys_of(&self, account: &Address) -> impl Iterator<Item = (VenueId, PublicKey)> + '_ {
        let account = *account;
        let own = self.keys.range((account, 0, PublicKey([0; 32]))..).take_while(move |(of, ..)| *of == account);
        own.map(|(_, venue, key)| (*venue, *key))
    }

    /// The heights of settles of an incarnation from the one with this index on: the first index, and the height.
    pub fn settles_from(
        &self,
        venue: VenueId,
        incarnation: u32,
        index: u64,
    ) -> impl Iterator<Item = (u64, Height)> + '_ {
        let first = self.settle_with(venue, incarnation, index).map_or(index, |(from, _)| from);
        let of_incarnation = (venue, incarnation, first)..=(venue, incarnation, u64::MAX);
        self.settles.range(of_incarnation).map(|((_, _, from), (height, _))| (*from, *height))
    }

    /// The settle with a fill: its first index, and its height.
    pub fn settle_with(&self, venue: VenueId, incarnation: u32, index: u64) -> Option<(u64, Height)> {
        let up_to = (venue, incarnation, 0)..=(venue, incarnation, index);
        let ((_, _, from), (height, fills)) = self.settles.range(up_to).next_back()?;
        (index - from < *fills).then_some((*from, *height))
    }

    /// At most `count` ended incarnations of a venue from a number on, up to the first of which a block is not known.
    pub fn ended_from(&self, venue: VenueId, incarnation: u32, count: usize) -> Vec<EndedHistory> {
        let known = self.fences.range((venue, incarnation)..=(venue, u32::MAX));
        let rows = (incarnation..).zip(known).take_while(|(expected, ((_, of), _))| expected == of).take(count);
        rows.map_while(|(_, ((_, of), fence))| {
            let begun = match of.checked_sub(1) {
                None => 0,
                Some(before) => self.fences.get(&(venue, before))?.height,
            };
            let report_keys = self.report_keys_within(venue, begun, fence.height);
            (!report_keys.is_empty()).then_some(EndedHistory { incarnation: *of, report_keys, fence: *fence })
        })
        .collect()
    }

    /// The report keys of an incarnation that began with the fence of one height and ended with that of another. The
    /// last one of before, and those that follow, each once. Operators of a fence's block change before the fence.
    fn report_keys_within(&self, venue: VenueId, begun: Height, ended: Height) -> Vec<PublicKey> {
        let until = |height| (venue, 0, 0)..=(venue, height, u64::MAX);
        let first = self.report_keys.range(until(begun)).next_back().map(|(_, key)| *key);
        let within = self.report_keys.range((venue, begun + 1, 0)..=(venue, ended, u64::MAX)).map(|(_, key)| *key);
        let mut keys = Vec::new();
        for key in first.into_iter().chain(within) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primitives::venue::VenueOperator;
    use primitives::{Body, Digest, SecretKey};

    fn at(height: Height) -> VenueBlock {
        VenueBlock { height, time_ms: height * 1_000 }
    }

    fn done(operation: VenueOperation) -> Transaction {
        let key = SecretKey::from_seed([1; 32]);
        let account = key.public().address();
        let operation = Operation::Venue(Box::new(operation));
        Body { chain: 1, account, sequence: 1, until: 9, operation }.sign(&Digest([1; 32]), &key)
    }

    fn operator(byte: u8) -> VenueOperator {
        VenueOperator { account: Address([byte; 20]), report_key: PublicKey([byte; 32]) }
    }

    #[test]
    fn fills_and_ended_incarnations_are_found_whatever_the_order_of_the_blocks() {
        let settled = |incarnation, from, fills| SettledRange { venue: 0, incarnation, from, fills };
        let fence = |incarnation| done(VenueOperation::Fence { venue: 0, incarnation });
        let change = |to| done(VenueOperation::ChangeOperator { venue: 0, from: operator(1), to: operator(to) });
        let open = done(VenueOperation::Open { venue: 0, operator: operator(1), fee_cap_ppm: 0, bond: 1 });
        let (two, three, first, second) = (change(2), change(3), fence(0), fence(1));
        let mut blocks: Vec<(VenueBlock, Vec<SettledRange>, Vec<&Transaction>)> = vec![
            (at(1), vec![], vec![&open]),
            (at(3), vec![settled(0, 0, 2)], vec![]),
            (at(5), vec![settled(0, 2, 3)], vec![&two, &first]),
            (at(8), vec![settled(1, 0, 1)], vec![&three]),
            (at(9), vec![], vec![&second]),
        ];
        for backwards in [false, true] {
            let mut history = VenueHistory::default();
            for (block, settles, transactions) in &blocks {
                let all = transactions.iter().map(|transaction| (*transaction, Outcome::Applied));
                history.add(*block, settles, all.chain([(&three, Outcome::Void)]));
            }
            assert_eq!(history.settle_with(0, 0, 4), Some((2, 5)), "{backwards}");
            assert_eq!((history.settle_with(0, 0, 5), history.settle_with(1, 0, 0)), (None, None));
            assert_eq!(history.settles_from(0, 0, 1).collect::<Vec<_>>(), [(0, 3), (2, 5)]);
            let ended = history.ended_from(0, 0, 9);
            let keys = |bytes: &[u8]| bytes.iter().map(|byte| PublicKey([*byte; 32])).collect::<Vec<_>>();
            assert_eq!(ended[0], EndedHistory { incarnation: 0, report_keys: keys(&[1, 2]), fence: at(5) });
            assert_eq!(ended[1], EndedHistory { incarnation: 1, report_keys: keys(&[2, 3]), fence: at(9) });
            history.cut_above(8, None);
            assert_eq!((history.ended_from(0, 0, 9).len(), history.ended_from(0, 1, 9).len()), (1, 0));
            blocks.reverse();
        }
    }
}
