//! Chooses what to spend, builds payments, has them confirmed and settled, and finishes payments after a crash.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use lane::{LaneClientError, SentPayment};
use payments::{
    AssetRule, FastReceipt, HomeEpoch, HomePhase, INPUTS_MAX, LaneRefusal, Output, OutputId, Payment,
    PaymentCertificate, PaymentView, Recipient, SignedPayment, SpentOutput, build_payment,
};
use primitives::{Amount, AssetId, Digest, PublicKey};

use super::error::PurseError;
use super::folder::Purse;
use super::held::HeldOutput;
use super::keys::Seed;
use super::lanes::Lanes;

/// A payment to be built: outputs of one owner and one home.
#[derive(Debug)]
pub struct Part {
    /// What it spends, completely.
    pub inputs: Vec<HeldOutput>,
    /// Units that it pays.
    pub paid: Amount,
    /// Units that come back.
    pub change: Amount,
}

/// A payment and how long it took.
pub struct Confirmed {
    /// The payment.
    pub payment: SignedPayment,
    /// The home of what it spends.
    pub home: HomeEpoch,
    /// What confirms it.
    pub certificate: PaymentCertificate,
    /// From the first send to the certificate.
    pub fast: Duration,
    /// From then to the acknowledgement, once there is one.
    pub settled: Option<Duration>,
}

/// Whether new payments can spend an output in this epoch.
pub fn is_spendable(home: HomeEpoch, now: HomeEpoch) -> bool {
    matches!(HomePhase::of(home, now), HomePhase::Own | HomePhase::Next)
}

/// Chooses outputs that make up an amount, in as few payments as are easily found. A payment spends outputs of one
/// owner and one home, and pays the fee of its asset in that home.
///
/// # Errors
/// [`Missing`] units.
pub fn choose(
    held: &[HeldOutput],
    asset: AssetId,
    rule: impl Fn(HomeEpoch) -> AssetRule,
    amount: Amount,
    now: HomeEpoch,
) -> Result<Vec<Part>, Missing> {
    let mut groups: BTreeMap<(PublicKey, HomeEpoch), Vec<&HeldOutput>> = BTreeMap::new();
    let of_asset = |held: &&HeldOutput| held.holding.output.asset == asset && is_spendable(held.home, now);
    for one in held.iter().filter(of_asset) {
        groups.entry((one.owner, one.home)).or_default().push(one);
    }
    let units = |held: &HeldOutput| held.holding.output.amount;
    let mut groups: Vec<(AssetRule, Vec<&HeldOutput>)> =
        groups.into_iter().map(|((_, home), group)| (rule(home), group)).collect();
    for (_, group) in &mut groups {
        group.sort_by_key(|held| std::cmp::Reverse(units(held)));
        group.truncate(INPUTS_MAX);
    }
    let total = |group: &[&HeldOutput]| group.iter().map(|held| u128::from(units(held))).sum::<u128>();
    let wanted = |rule: &AssetRule| u128::from(amount) + u128::from(rule.fee);
    // The smallest group that suffices alone comes first, then the largest ones.
    groups.sort_by_key(|(rule, group)| match total(group) {
        sum if sum >= wanted(rule) => (0, sum),
        sum => (1, u128::MAX - sum),
    });
    let (mut parts, mut left) = (Vec::new(), amount);
    for (rule, group) in groups {
        if left == 0 {
            break;
        }
        parts.extend(part_of(&group, rule, &mut left));
    }
    if left == 0 { Ok(parts) } else { Err(Missing(left)) }
}

/// Units that a purse lacks for an amount, with fees and least outputs.
#[derive(Debug, PartialEq, Eq)]
pub struct Missing(pub Amount);

/// The part of a payment that one group contributes; `None` if it contributes nothing.
fn part_of(group: &[&HeldOutput], rule: AssetRule, left: &mut Amount) -> Option<Part> {
    let (mut inputs, mut sum) = (Vec::new(), 0u128);
    for held in group {
        if sum >= u128::from(*left) + u128::from(rule.fee) {
            break;
        }
        sum += u128::from(held.holding.output.amount);
        inputs.push((*held).clone());
    }
    let usable = sum.checked_sub(rule.fee.into())?;
    let mut paid = usable.min((*left).into());
    let least = u128::from(rule.least_units);
    // Neither the change nor the amount that others have to pay may be too small for an output.
    let rest = |paid: u128| (usable - paid, u128::from(*left) - paid);
    let is_too_small = |units: u128| units > 0 && units < least;
    let (change, later) = rest(paid);
    if is_too_small(change) || is_too_small(later) {
        paid = paid.checked_sub(least)?;
    }
    let (change, later) = rest(paid);
    if paid < least || is_too_small(change) || is_too_small(later) {
        return None;
    }
    *left = Amount::try_from(later).ok()?;
    Some(Part { inputs, paid: Amount::try_from(paid).ok()?, change: Amount::try_from(change).ok()? })
}

/// A payment that spends some outputs of one owner and home completely, signed by the owner's key.
fn built(
    purse: &Purse,
    seed: &Seed,
    inputs: &[HeldOutput],
    into: HomeEpoch,
    outputs: Vec<Output>,
) -> Result<SignedPayment, PurseError> {
    let first = inputs.first().ok_or(LaneRefusal::Malformed("a payment has no inputs"))?;
    let key = purse.keys.secret(seed, &first.owner)?;
    let holdings = inputs.iter().map(|held| held.holding.clone()).collect();
    Ok(build_payment(&purse.network.rules(first.home), &key, first.home, into, holdings, outputs)?)
}

/// Builds the payments of an amount and makes them durable. From then on they may be sent, and must be finished.
///
/// # Errors
/// [`PurseError::Missing`], [`PurseError::Scheme`]; nothing was signed then.
pub fn begin(
    purse: &mut Purse,
    seed: &Seed,
    lanes: &Lanes,
    to: Recipient,
    (asset, amount): (AssetId, Amount),
) -> Result<Vec<SignedPayment>, PurseError> {
    let held = purse.contents()?.held;
    let parts = choose(&held, asset, |home| purse.network.rule(asset, home), amount, lanes.now.epoch);
    let missing = |Missing(units)| PurseError::Missing { missing: purse.network.money(asset, units), asset, units };
    let parts = parts.map_err(missing)?;
    // Checked before anything is signed.
    parts.iter().flat_map(|part| &part.inputs).try_for_each(|held| lanes.check_scheme(held.home))?;
    let mut payments = Vec::new();
    for Part { inputs, paid, change } in parts {
        let mut outputs = vec![Output { to, asset, amount: paid }];
        if change > 0 {
            let key = purse.keys.make(seed)?.public();
            outputs.push(Output { to: Recipient::Key(key), asset, amount: change });
        }
        payments.push(built(purse, seed, &inputs, lanes.now.epoch, outputs)?);
    }
    payments.iter().try_for_each(|payment| purse.outbox.insert(payment))?;
    Ok(payments)
}

/// Has a payment in the outbox confirmed.
///
/// # Errors
/// [`PurseError::Unconfirmed`]: the same bytes can be sent again, and the money is spent for nothing else meanwhile.
pub fn confirm(purse: &Purse, lanes: &mut Lanes, payment: SignedPayment) -> Result<Confirmed, PurseError> {
    let home = PaymentView::parse(&payment.payment)?.home();
    let (begun, patience) = (Instant::now(), lanes.patience);
    let unconfirmed = |cause| PurseError::Unconfirmed { payment: payment.digest, cause };
    let certificate = lanes.client(home).confirm(&payment, patience).map_err(unconfirmed)?;
    let fast = begun.elapsed();
    purse.outbox.finish(&payment.digest, &certificate)?;
    Ok(Confirmed { payment, home, certificate, fast, settled: None })
}

/// Has a confirmed payment acknowledged by a quorum.
///
/// # Errors
/// [`PurseError`]; its receipt is valid without it, and it can be tried again.
pub fn settle(purse: &Purse, lanes: &mut Lanes, confirmed: &mut Confirmed) -> Result<(), PurseError> {
    let summary = PaymentView::parse(&confirmed.payment.payment)?.summary();
    let (begun, patience) = (Instant::now(), lanes.patience);
    let proof = lanes.client(confirmed.home).acknowledge(summary, &confirmed.certificate, patience)?;
    confirmed.settled = Some(begun.elapsed());
    Ok(purse.outbox.settle(&confirmed.payment.digest, &proof)?)
}

/// What could not be settled.
#[derive(Debug)]
pub enum Unsettled {
    /// An own payment.
    Payment(Digest, LaneClientError),
    /// An output that somebody else paid.
    Output(OutputId, LaneClientError),
}

impl fmt::Display for Unsettled {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsettled::Payment(digest, error) => write!(to, "payment {digest}: {error}"),
            Unsettled::Output(id, error) => write!(to, "output {id}: {error}"),
        }
    }
}

/// Settles own payments and received receipts that are confirmed and not settled. Returns their number, and why some
/// are not settled.
///
/// # Errors
/// [`PurseError`] of the disk.
pub fn settle_all(purse: &Purse, lanes: &mut Lanes) -> Result<(usize, Vec<Unsettled>), PurseError> {
    let (contents, patience, now) = (purse.contents()?, lanes.patience, lanes.now.epoch);
    let (mut settled, mut failed) = (0, Vec::new());
    let is_open = |home| HomePhase::of(home, now) <= HomePhase::Exit;
    for sent in contents.sent.into_iter().filter(|sent| !sent.is_settled) {
        let Some(certificate) = sent.certificate else { continue };
        let summary = PaymentView::parse(&sent.payment.payment)?.summary();
        if is_open(summary.home) {
            match lanes.client(summary.home).acknowledge(summary, &certificate, patience) {
                Ok(proof) => {
                    purse.outbox.settle(&sent.payment.digest, &proof)?;
                    settled += 1;
                }
                Err(error) => failed.push(Unsettled::Payment(sent.payment.digest, error)),
            }
        }
    }
    for held in contents.held.into_iter().filter(|held| held.is_received && !held.is_settled) {
        let Some((summary, certificate)) = held.payment.clone().filter(|(summary, _)| is_open(summary.home)) else {
            continue;
        };
        match lanes.client(summary.home).acknowledge(summary, &certificate, patience) {
            Ok(proof) => {
                purse.keep_settled(&held, &summary.digest(&purse.network.id), &proof)?;
                settled += 1;
            }
            Err(error) => failed.push(Unsettled::Output(held.holding.id, error)),
        }
    }
    Ok((settled, failed))
}

/// Outputs that can be spent for the last time in this epoch.
fn to_renew(purse: &Purse, now: HomeEpoch) -> Result<Vec<HeldOutput>, PurseError> {
    let held = purse.contents()?.held;
    Ok(held.into_iter().filter(|held| HomePhase::of(held.home, now) == HomePhase::Next).collect())
}

/// Moves outputs of the previous epoch into this one, to new keys. Outputs worth less than the fee are not moved.
/// Returns the number of outputs that were.
///
/// # Errors
/// [`PurseError`].
pub fn renew(purse: &mut Purse, seed: &Seed, lanes: &mut Lanes) -> Result<usize, PurseError> {
    let mut groups: BTreeMap<(PublicKey, AssetId), Vec<HeldOutput>> = BTreeMap::new();
    for held in to_renew(purse, lanes.now.epoch)? {
        groups.entry((held.owner, held.holding.output.asset)).or_default().push(held);
    }
    let mut renewed = 0;
    for ((_, asset), group) in groups {
        // All are of one home: the epoch before.
        let rule = group.first().map(|held| purse.network.rule(asset, held.home)).expect("a group has outputs");
        for inputs in group.chunks(INPUTS_MAX) {
            let sum: u128 = inputs.iter().map(|held| u128::from(held.holding.output.amount)).sum();
            let Some(amount) = sum.checked_sub(rule.fee.into()).and_then(|sum| Amount::try_from(sum).ok()) else {
                continue;
            };
            if amount < rule.least_units {
                continue;
            }
            let key = purse.keys.make(seed)?.public();
            let output = Output { to: Recipient::Key(key), asset, amount };
            let payment = built(purse, seed, inputs, lanes.now.epoch, vec![output])?;
            purse.outbox.insert(&payment)?;
            let mut confirmed = confirm(purse, lanes, payment)?;
            settle(purse, lanes, &mut confirmed)?;
            renewed += inputs.len();
        }
    }
    Ok(renewed)
}

/// Returns outputs that can only go to the ledger to the accounts of their keys. Returns the number of outputs.
///
/// # Errors
/// [`PurseError`].
pub fn send_home(purse: &Purse, seed: &Seed, lanes: &mut Lanes) -> Result<usize, PurseError> {
    let is_late = |held: &HeldOutput| HomePhase::of(held.home, lanes.now.epoch) == HomePhase::Exit;
    let late: Vec<HeldOutput> = purse.contents()?.held.into_iter().filter(is_late).collect();
    for held in &late {
        let output = held.holding.output;
        let spent = SpentOutput { id: held.holding.id, asset: output.asset, amount: output.amount };
        let exit = Payment::exit(purse.network.id, held.home, held.owner, spent);
        let payment = built(purse, seed, std::slice::from_ref(held), held.home, exit.outputs)?;
        purse.outbox.insert(&payment)?;
        confirm(purse, lanes, payment)?;
    }
    Ok(late.len())
}

/// The receipts for the other parties of a payment: of all outputs except the purse's own.
///
/// # Errors
/// [`LaneRefusal`] if the stored payment is damaged.
pub fn receipts(
    purse: &Purse,
    payment: &SignedPayment,
    certificate: &PaymentCertificate,
) -> Result<Vec<FastReceipt>, LaneRefusal> {
    let view = PaymentView::parse(&payment.payment)?;
    let of = |at: usize| FastReceipt::of(&view, at as u8, certificate.clone());
    let all = (0..view.outputs().count()).filter_map(of);
    let is_others = |receipt: &FastReceipt| match receipt.output.to {
        Recipient::Key(key) => !purse.keys.owns(&key),
        Recipient::Account(_) => false,
    };
    Ok(all.filter(is_others).collect())
}

/// One of the purse's payments, by its digest or the first digits of it.
///
/// # Errors
/// [`PurseError::NoPayment`] or [`PurseError::Ambiguous`].
pub fn find(purse: &Purse, text: &str) -> Result<SentPayment, PurseError> {
    let start = if text.starts_with("0x") { text.to_string() } else { format!("0x{text}") };
    let mut found = purse.outbox.all()?;
    found.retain(|sent| sent.payment.digest.to_string().starts_with(&start));
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(PurseError::NoPayment(text.into())),
        _ => Err(PurseError::Ambiguous(text.into())),
    }
}

/// The amounts that a payment pays to accounts, in units by asset.
///
/// # Errors
/// [`LaneRefusal`] if the stored payment is damaged.
pub fn to_accounts(payment: &SignedPayment) -> Result<BTreeMap<AssetId, u128>, LaneRefusal> {
    let mut sums = BTreeMap::new();
    for output in PaymentView::parse(&payment.payment)?.outputs() {
        if matches!(output.to, Recipient::Account(_)) {
            *sums.entry(output.asset).or_default() += u128::from(output.amount);
        }
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use payments::{Holding, OutputProof};

    use super::*;

    fn held(owner: u8, home: HomeEpoch, amount: Amount, number: u8) -> HeldOutput {
        let owner = PublicKey([owner; 32]);
        let output = Output { to: Recipient::Key(owner), asset: AssetId(0), amount };
        let holding = Holding { id: OutputId([number; 32]), output, proof: OutputProof::Ledger };
        HeldOutput { holding, home, owner, payment: None, is_settled: true, is_received: false }
    }

    fn chosen(
        held: &[HeldOutput],
        rule: (Amount, Amount),
        amount: Amount,
    ) -> Result<Vec<(usize, Amount, Amount)>, Missing> {
        let rule = AssetRule { least_units: rule.0, fee: rule.1 };
        let parts = choose(held, AssetId(0), |_| rule, amount, 5)?;
        Ok(parts.into_iter().map(|part| (part.inputs.len(), part.paid, part.change)).collect())
    }

    #[test]
    fn outputs_of_one_owner_and_home_make_one_payment() {
        let purse = [held(1, 5, 40, 1), held(1, 5, 30, 2), held(2, 5, 100, 3), held(3, 4, 60, 4), held(4, 3, 500, 5)];
        // The smallest group that suffices.
        assert_eq!(chosen(&purse, (1, 0), 55), Ok(vec![(1, 55, 5)]));
        assert_eq!(chosen(&purse, (1, 0), 65), Ok(vec![(2, 65, 5)]));
        // Several payments if no group suffices; outputs that are too old are not spent.
        assert_eq!(chosen(&purse, (1, 0), 165), Ok(vec![(1, 100, 0), (2, 65, 5)]));
        assert_eq!(chosen(&purse, (1, 0), 230).map(|parts| parts.len()), Ok(3));
        assert_eq!(chosen(&purse, (1, 0), 231), Err(Missing(1)));
        assert!(chosen(&[], (1, 0), Amount::MAX).is_err());
    }

    #[test]
    fn fees_are_paid_and_nothing_is_too_small() {
        let purse = [held(1, 5, 40, 1), held(2, 5, 100, 3)];
        assert_eq!(chosen(&purse, (1, 3), 97), Ok(vec![(1, 97, 0)]));
        assert_eq!(chosen(&purse, (1, 3), 98), Ok(vec![(1, 97, 0), (1, 1, 36)]));
        assert!(chosen(&purse, (1, 3), 135).is_err(), "a fee for each of two payments");
        // 95 of 100 would leave change of 5: the other group pays a part.
        assert_eq!(chosen(&purse, (10, 0), 95), Ok(vec![(1, 85, 15), (1, 10, 30)]));
        assert!(chosen(&[held(1, 5, 15, 1)], (10, 0), 10).is_err(), "change of 5 is none");
        for amount in 1..=200 {
            let Ok(parts) = chosen(&purse, (7, 2), amount) else { continue };
            assert_eq!(parts.iter().map(|(_, paid, _)| paid).sum::<Amount>(), amount);
            assert!(parts.iter().all(|(_, paid, change)| *paid >= 7 && (*change == 0 || *change >= 7)));
        }
    }
}
