//! What a hostile venue does with the keys of a sound one. Whoever has them settles what it likes, in the order it
//! likes, or nothing; the ledger takes from traders what they have signed and no more, and what contradicts a report
//! is proof against the bond.

use kernel::Dice;
use primitives::venue::{
    FillReport, ReportedFill, Settle, SettledFill, SettledOrder, SignedOrder, SignedStep, StepHeader, StepReport,
    VenueOperation, VenueSide,
};
use primitives::{Digest, Signature};
use strum::VariantArray;

use super::oracle::{KnownOrder, Oracle, venue_operation};
use super::people::{TRADERS, VENUE, address, reporting};

/// How a venue cheats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub(super) enum Villainy {
    /// It settles fills that it never reported, between orders that traders signed once, or never.
    FalseFills,
    /// It settles fills in another order than it reported.
    Reorders,
    /// It reports, and settles nothing any more.
    Withholds,
    /// It reports one number to two traders as two fills.
    TwoReports,
    /// Two roots run with one key.
    Twins,
}

impl Villainy {
    pub const ALL: &[Villainy] = Villainy::VARIANTS;
}

/// A settle between orders that are known, at prices, lots and fees that the venue likes. Some are more than traders
/// have signed, and some have a signature that nobody made.
pub(super) fn false_settle(oracle: &Oracle, dice: &mut Dice) -> Option<Settle> {
    let of_now =
        |of: &&KnownOrder| of.signed.order.number.incarnation == oracle.incarnation && of.signed.order.is_plain();
    let known: Vec<&KnownOrder> = oracle.signed.values().filter(of_now).collect();
    let side = |side: VenueSide| known.iter().filter(move |of| of.signed.order.side == side).copied();
    let (buys, sells): (Vec<_>, Vec<_>) = (side(VenueSide::Buy).collect(), side(VenueSide::Sell).collect());
    if buys.is_empty() || sells.is_empty() {
        return None;
    }
    let (buy, sell) = (buys[dice.index(buys.len())].signed, sells[dice.index(sells.len())].signed);
    let [buy, sell] = [invented(buy, dice), invented(sell, dice)].map(SettledOrder::from);
    let mut orders = vec![buy.clone(), sell.clone()];
    orders.sort_by_key(|one| (one.key, one.order.number));
    let at = |of: &SettledOrder| orders.iter().position(|one| one == of).unwrap_or(0) as u16;
    let (buy_at, sell_at) = (at(&buy), at(&sell));
    let worst = if dice.once_in(2) { buy.order.tick } else { sell.order.tick };
    let lots = [1, buy.order.lots.min(sell.order.lots), buy.order.lots];
    let (fee_buy, fee_sell) =
        if dice.once_in(2) { (0, 0) } else { (dice.below(40) as i64 - 2, dice.below(40) as i64 + 2) };
    let fill = SettledFill {
        buy: buy_at,
        sell: sell_at,
        lots: lots[dice.index(3)],
        tick: if dice.once_in(6) { 1 + dice.below(200) as u32 } else { worst },
        fee_buy,
        fee_sell,
        taker: if dice.once_in(2) { VenueSide::Buy } else { VenueSide::Sell },
    };
    let fills = vec![fill; if dice.once_in(4) { 2 } else { 1 }];
    let (from, incarnation) = (oracle.leaves.len() as u64, oracle.incarnation);
    let settle = Settle { venue: VENUE, incarnation, from, orders, fills };
    settle.check(1 << 13).is_ok().then_some(settle)
}

/// Mostly the order as it was signed; else one that nobody signed, with an old signature or with none of anybody.
fn invented(of: SignedOrder, dice: &mut Dice) -> SignedOrder {
    let mut order = of.order;
    match dice.below(8) {
        0 => SignedOrder { signature: Signature([9; 64]), ..of },
        1..=3 => {
            order.number.reference = order.number.reference.saturating_add(1_000_000);
            SignedOrder { order, ..of }
        }
        _ => of,
    }
}

/// The same fills in another order; nothing if the order shows in no leaf or breaks a group.
pub(super) fn reordered(settle: &Settle, network: &Digest) -> Option<Settle> {
    let fills = settle.fills.iter().rev().copied().collect();
    let other = Settle { fills, ..settle.clone() };
    let differs = other.leaves(network) != settle.leaves(network);
    (differs && other.check(1 << 13).is_ok()).then_some(other)
}

/// A report of a fill as another one, to another trader.
pub(super) fn lie(report: &ReportedFill, network: &Digest, changes: u8, dice: &mut Dice) -> FillReport {
    let account = address(TRADERS[dice.index(TRADERS.len())]);
    let leaf = Digest([dice.below(250) as u8; 32]);
    FillReport::new(network, (VENUE, report.incarnation, report.index), leaf, account, &reporting(changes))
}

/// A report of another tree of a step, of a fill that is nowhere else.
pub(super) fn other_tree(header: &StepHeader, network: &Digest, changes: u8) -> StepReport {
    let leaf = (1 << 40, Digest([7; 32]), address(TRADERS[0]));
    let place = (header.venue, header.incarnation);
    SignedStep::new(network, place, (header.step, header.clock_ms), &[leaf], &reporting(changes)).report(0, leaf)
}

/// The settle in a transaction.
pub(super) fn settle_in(of: &primitives::Transaction) -> Option<&Settle> {
    match venue_operation(of)? {
        VenueOperation::Settle(settle) => Some(settle),
        _ => None,
    }
}
