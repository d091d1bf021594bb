//! Bugs to be seeded at the simulator's own boundary: a check that never fires shows nothing.

use borsh::BorshDeserialize;
use ledger::{AccountState, Applied, Fault, Ledger, Outcome, Pair, Place, Restore, Signatures, Snapshot};
use primitives::{Address, Amount, AssetId, Digest, Fraction, Height, Operation, Superblock, Transaction};

/// A mistake that a node could make. Production code knows none of them: the simulated node takes a wrong step, or what
/// the engines return is changed on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Clients are answered before the log is synced.
    AnswerBeforeSync,
    /// The log is never synced.
    SyncSkipped,
    /// An error of the disk is taken for success.
    DiskErrorIgnored,
    /// Receipts of some blocks are not archived.
    ReceiptsSkipped,
    /// Receipts are archived with another outcome.
    ReceiptsChanged,
    /// A checkpoint holds the state of a later block than it says.
    CheckpointOfLaterState,
    /// A checkpoint is overwritten in place.
    CheckpointInPlace,
    /// The tries miss a block's changes.
    RootsSkipped,
    /// Signatures are not checked.
    SignaturesUnchecked,
    /// A sequence number stays free.
    SequenceNotMarked,
    /// A cancelled offer is paid back twice, out of new units.
    RefundTwice,
    /// A fee is given back, and counted as never taken.
    FeeNotBurnt,
    /// A payout is rounded up, at the cost of what is burnt.
    RoundedUp,
    /// The batch claims more sold than was.
    TradeOverstated,
    /// A proposer is paid twice, out of new units.
    RewardTwice,
}

impl Bug {
    /// All of them.
    pub const ALL: [Bug; 15] = [
        Bug::AnswerBeforeSync,
        Bug::SyncSkipped,
        Bug::DiskErrorIgnored,
        Bug::ReceiptsSkipped,
        Bug::ReceiptsChanged,
        Bug::CheckpointOfLaterState,
        Bug::CheckpointInPlace,
        Bug::RootsSkipped,
        Bug::SignaturesUnchecked,
        Bug::SequenceNotMarked,
        Bug::RefundTwice,
        Bug::FeeNotBurnt,
        Bug::RoundedUp,
        Bug::TradeOverstated,
        Bug::RewardTwice,
    ];
}

/// Applies a block as the ledger does, and then as a ledger with this bug would have.
pub(crate) fn execute(
    ledger: &mut Ledger,
    block: &Superblock,
    signatures: Signatures,
    bug: Option<Bug>,
) -> Result<Applied, Fault> {
    let before = ledger.clone();
    let mut applied = ledger.apply(block, signatures, &mut |_| {})?;
    if let Some(bug) = bug {
        distort(bug, &before, ledger, block, &mut applied);
    }
    Ok(applied)
}

fn distort(bug: Bug, before: &Ledger, ledger: &mut Ledger, block: &Superblock, applied: &mut Applied) {
    let mut effective = transactions(block).zip(&applied.outcomes).filter(|(_, outcome)| outcome.refusal().is_none());
    let fee = ledger.fee();
    match bug {
        Bug::SequenceNotMarked => {
            let Some((first, _)) = effective.next() else { return };
            let old = before.accounts().get(&first.body.account).map(|account| *account.window()).unwrap_or_default();
            edit(ledger, &first.body.account, |account| account.window = old, None);
        }
        Bug::RefundTwice => {
            let refund = effective.find_map(|(transaction, outcome)| refunded(before, transaction, outcome));
            let Some((account, asset, units)) = refund else { return };
            edit(ledger, &account, |account| credit(account, asset, units), Some((asset, units)));
        }
        Bug::FeeNotBurnt => {
            let Some((first, _)) = effective.next() else { return };
            edit(ledger, &first.body.account, |account| credit(account, AssetId(0), fee), Some((AssetId(0), fee)));
            less_burnt(applied, AssetId(0), fee);
        }
        Bug::RoundedUp => {
            let Some(fill) = applied.batch.fills.first_mut() else { return };
            fill.bought += 1;
            let (account, pair) = (fill.place.account, fill.pair);
            let trade = applied.batch.trades.iter_mut().find(|trade| trade.pair == pair).expect("fills are of trades");
            trade.bought += 1;
            edit(ledger, &account, |account| credit(account, pair.buy, 1), Some((pair.buy, 1)));
            less_burnt(applied, pair.buy, 1);
        }
        Bug::TradeOverstated => {
            if let Some(trade) = applied.batch.trades.first_mut() {
                trade.sold += 1;
            }
        }
        Bug::RewardTwice => {
            let epoch = before.schedule().epoch_of(block.height);
            let Some(proposer) = before.committee(epoch).and_then(|committee| committee.first()) else { return };
            let reward = before.validators().terms().reward;
            let asset = AssetId(0);
            edit(ledger, &proposer.account, |account| credit(account, asset, reward), Some((asset, reward)));
        }
        _ => {}
    }
}

pub(crate) fn transactions(block: &Superblock) -> impl Iterator<Item = &Transaction> {
    block.sub_blocks.iter().flat_map(|sub| &sub.native)
}

fn refunded(before: &Ledger, transaction: &Transaction, outcome: &Outcome) -> Option<(Address, AssetId, Amount)> {
    let Operation::CancelOffer { sell, buy, limit, offer } = transaction.body.operation else { return None };
    let account = transaction.body.account;
    let offers = before.book().get(Pair { sell, buy }).filter(|_| *outcome == Outcome::Applied)?;
    let amount = offers.get(&Place { limit, account, id: offer })?;
    Some((account, sell, amount))
}

fn credit(account: &mut AccountState, asset: AssetId, units: Amount) {
    match account.balances.binary_search_by_key(&asset, |(asset, _)| *asset) {
        Ok(at) => account.balances[at].1 += units,
        Err(_) if units == 0 => {}
        Err(at) => account.balances.insert(at, (asset, units)),
    }
}

fn less_burnt(applied: &mut Applied, asset: AssetId, units: Amount) {
    for burnt in applied.batch.burnt.iter_mut().filter(|burnt| burnt.0 == asset) {
        burnt.1 = burnt.1.saturating_sub(units);
    }
    applied.batch.burnt.retain(|(_, units)| *units > 0);
}

/// What the head of a snapshot begins with: format and rules, chain, fee, ε, μ, limits, height, last block and its
/// time, assets, validators.
type Head = (
    (u8, u32),
    u64,
    Amount,
    Fraction,
    Fraction,
    ledger::Limits,
    Height,
    Digest,
    u64,
    Vec<ledger::Asset>,
    ledger::Validators,
);

/// Changes one account and what is issued of an asset, by way of a snapshot: the ledger itself offers no such thing.
fn edit(
    ledger: &mut Ledger,
    address: &Address,
    change: impl FnOnce(&mut AccountState),
    issue: Option<(AssetId, Amount)>,
) {
    const HEAD: u8 = 0;
    const ACCOUNTS: u8 = 1;
    let mut change = Some(change);
    let mut restore = Restore::default();
    for mut chunk in Snapshot::of(ledger) {
        if chunk[0] == HEAD
            && let Some((asset, units)) = issue
        {
            let mut rest = &chunk[1..];
            let mut head: Head = BorshDeserialize::deserialize(&mut rest).expect("a head");
            head.9[asset.0 as usize].issued += units;
            chunk = [&[HEAD][..], &borsh::to_vec(&head).expect("encodes"), rest].concat();
        } else if chunk[0] == ACCOUNTS {
            let mut accounts: Vec<AccountState> = borsh::from_slice(&chunk[1..]).expect("accounts");
            for account in accounts.iter_mut().filter(|account| account.address == *address) {
                change.take().expect("an account stands in one chunk")(account);
            }
            chunk = [vec![ACCOUNTS], borsh::to_vec(&accounts).expect("encodes")].concat();
        }
        restore.push(&chunk).expect("a chunk");
    }
    *ledger = restore.finish().expect("a state in which money is conserved");
}
