//! Independent bookkeeping of what issuers control, from the receipts: what they said of holders, and that nobody used,
//! bought, sent or received what the state before its block did not permit.
//!
//! Contracts run after the words of their block, and are judged by the state after it. Nothing of the ledger's
//! judgement is used.

use std::collections::BTreeMap;

use ledger::{Genesis, HolderRecord, Ledger, Outcome, Pair};
use primitives::{
    Address, AssetControl, AssetId, Height, HolderState, Operation, PoolOperation, Sequence, Transaction,
};

/// A transaction that counted, and what became of it.
type Counted<'a> = (&'a Transaction, Outcome);

/// An account that holds an asset, or may.
type Holder = (AssetId, Address);

/// Heights that a holder is frozen before units are recovered.
const DAY: Height = 24 * 60 * 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word {
    is_open: bool,
    since: Height,
    was_open: bool,
}

/// What issuers did in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlCounts {
    /// Holders that were frozen, of those who were not.
    pub frozen: u64,
    /// Holders that were admitted, or opened again.
    pub opened: u64,
    /// Offers that ended because of a freeze.
    pub ended: u64,
    /// Holdings of pools that were paid out because of one.
    pub expelled: u64,
    /// Transfers of controlled assets by contracts.
    pub transfers: u64,
}

impl std::ops::AddAssign for ControlCounts {
    fn add_assign(&mut self, other: ControlCounts) {
        let ControlCounts { frozen, opened, ended, expelled, transfers } = other;
        self.frozen += frozen;
        self.opened += opened;
        self.ended += ended;
        self.expelled += expelled;
        self.transfers += transfers;
    }
}

/// See the module text.
#[derive(Clone, Default)]
pub(crate) struct ControlBooks {
    /// Controlled assets, with their issuers.
    kinds: BTreeMap<AssetId, (AssetControl, Address)>,
    words: BTreeMap<Holder, Word>,
    pub counts: ControlCounts,
}

/// Whether only those hold an asset that its issuer admitted.
fn admits(kind: AssetControl) -> bool {
    kind == AssetControl::Admitted || kind == AssetControl::AdmittedRecoverable
}

impl ControlBooks {
    pub fn new(genesis: &Genesis) -> ControlBooks {
        let kind =
            |(asset, control): &(AssetId, AssetControl)| (*asset, (*control, genesis.assets[asset.0 as usize].issuer));
        ControlBooks { kinds: genesis.controls.iter().map(kind).collect(), ..ControlBooks::default() }
    }

    fn is_open(&self, asset: AssetId, account: &Address) -> bool {
        let Some((kind, issuer)) = self.kinds.get(&asset) else { return true };
        let word = self.words.get(&(asset, *account));
        account == issuer || word.map_or(!admits(*kind), |word| word.is_open)
    }

    fn check(&self, asset: AssetId, account: &Address, does: &str) -> Result<(), String> {
        match self.words.get(&(asset, *account)) {
            _ if self.is_open(asset, account) => Ok(()),
            Some(_) => Err(format!("{account} {does} asset {asset}, in which it is frozen")),
            None => Err(format!("{account} {does} asset {asset}, to which it was never admitted")),
        }
    }

    /// Processes the transactions of a block that count; returns whom it freezes, of those who were not, in order.
    pub fn apply(&mut self, height: Height, effective: &[Counted]) -> Result<Vec<Holder>, String> {
        for (transaction, _) in effective {
            let name = transaction.body.operation.name();
            self.check_uses(transaction, height).map_err(|what| format!("{name}: {what}"))?;
        }
        let mut said: BTreeMap<Holder, Vec<(Sequence, HolderState, bool)>> = BTreeMap::new();
        for (transaction, outcome) in effective {
            if let Operation::SetHolder { asset, account, state, .. } = transaction.body.operation {
                let word = (transaction.body.sequence, state, *outcome != Outcome::Void);
                said.entry((asset, account)).or_default().push(word);
            }
        }
        let mut frozen = Vec::new();
        for (holder, mut words) in said {
            words.sort_unstable_by_key(|(number, ..)| *number);
            let (_, last, _) = words.pop().filter(|(.., counts)| *counts).ok_or("the last word counts for nothing")?;
            if words.iter().any(|(.., counts)| *counts) {
                return Err(format!("of the words about {holder:?} others count than the last one: {words:?}"));
            }
            frozen.extend(self.say(holder, last, height).then_some(holder));
        }
        for (transaction, outcome) in effective {
            if let (Operation::ListAsset(listing), Outcome::Listed(asset)) = (&transaction.body.operation, outcome)
                && listing.control != AssetControl::Open
            {
                self.kinds.insert(*asset, (listing.control, transaction.body.account));
            }
        }
        Ok(frozen)
    }

    /// An issuer says what a holder is; returns whether that freezes it.
    fn say(&mut self, (asset, account): Holder, state: HolderState, height: Height) -> bool {
        let (was_open, is_open) = (self.is_open(asset, &account), state == HolderState::Open);
        let is_known = self.words.contains_key(&(asset, account));
        let admits = self.kinds.get(&asset).is_some_and(|(kind, _)| admits(*kind));
        match (was_open, is_open) {
            (true, false) => self.counts.frozen += 1,
            (false, true) => self.counts.opened += 1,
            // It is so already; who was never admitted is from now on known to be frozen.
            _ if is_known || was_open || !admits => return false,
            _ => {}
        }
        match is_open && !admits {
            true => self.words.remove(&(asset, account)),
            false => self.words.insert((asset, account), Word { is_open, since: height, was_open }),
        };
        was_open && !is_open
    }

    /// What a transaction uses and sends, by the state before its block.
    fn check_uses(&self, transaction: &Transaction, height: Height) -> Result<(), String> {
        let account = &transaction.body.account;
        let uses = |assets: &[AssetId]| assets.iter().try_for_each(|asset| self.check(*asset, account, "uses"));
        match &transaction.body.operation {
            Operation::Pay { to, asset, .. } | Operation::PayReferenced { to, asset, .. } => {
                uses(&[*asset])?;
                self.check(*asset, to, "receives")
            }
            Operation::Issue { to, asset, .. } | Operation::IssueReferenced { to, asset, .. } => {
                self.check(*asset, to, "receives")
            }
            Operation::Burn { asset, .. } => uses(&[*asset]),
            Operation::CreateOffer { sell, buy, .. } | Operation::Exact { sell, buy, .. } => uses(&[*sell, *buy]),
            Operation::Replace(replace) => uses(&[replace.old.sell, replace.old.buy]),
            Operation::Pool(operation) if !matches!(**operation, PoolOperation::Leave { .. }) => {
                let pool = operation.pool();
                uses(&[pool.a, pool.b])
            }
            Operation::SetHolder { asset, account: holder, .. } => match self.kinds.get(asset) {
                Some((_, issuer)) if issuer == account && issuer != holder => Ok(()),
                found => Err(format!("{account} says something of {holder} and asset {asset}: {found:?}")),
            },
            Operation::Recover(recovery) => {
                let word = self.words.get(&(recovery.asset, recovery.from)).filter(|word| !word.is_open);
                match word.filter(|word| word.since + DAY <= height) {
                    Some(_) => self.check(recovery.asset, &recovery.to, "receives"),
                    None => Err(format!("units are recovered of {}, which is {word:?} at {height}", recovery.from)),
                }
            }
            _ => Ok(()),
        }
    }

    /// A contract moved units of an asset.
    pub fn check_moved(&mut self, (asset, from, to): (AssetId, Address, Address)) -> Result<(), String> {
        self.counts.transfers += u64::from(self.kinds.contains_key(&asset));
        self.check(asset, &from, "sends")?;
        self.check(asset, &to, "receives")
    }

    /// An account has an offer.
    pub fn check_offer(&self, pair: Pair, account: &Address) -> Result<(), String> {
        [pair.sell, pair.buy].into_iter().try_for_each(|asset| self.check(asset, account, "has an offer of"))
    }

    /// Compares the ledger with these books.
    pub fn hold(&self, ledger: &Ledger) -> Result<(), String> {
        let assets = self.kinds.iter().map(|(asset, (kind, _))| (*asset, *kind));
        if !ledger.controls().assets().into_iter().eq(assets) {
            return Err(format!(
                "controlled are {:?}, but by the receipts {:?}",
                ledger.controls().assets(),
                self.kinds
            ));
        }
        let word =
            |record: &HolderRecord| Word { is_open: record.is_open, since: record.since, was_open: record.was_open };
        let theirs: BTreeMap<Holder, Word> =
            ledger.controls().holders().map(|(holder, record)| (*holder, word(record))).collect();
        if theirs != self.words {
            return Err(format!("of holders the ledger says {theirs:?}, but the receipts say {:?}", self.words));
        }
        let frozen = self.words.iter().filter(|(_, word)| !word.is_open).map(|(holder, _)| holder);
        for (asset, account) in frozen {
            let mut held = ledger.pools().into_iter().flat_map(|pools| pools.holdings_of(*account));
            if let Some((pool, _)) = held.find(|(pool, _)| pool.a == *asset || pool.b == *asset) {
                return Err(format!("{account} is frozen in asset {asset}, and has shares of {pool:?}"));
            }
        }
        Ok(())
    }
}
