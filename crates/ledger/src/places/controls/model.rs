//! A model of controls: an issuer, a holder with an offer and shares of a pool, and a friend. All short histories are
//! judged by the real ledger, block by block, and by an oracle that shares no code with it: it keeps words and numbers.
//! Of a batch it believes what was sold; that an offer of an open holder meets its counterpart it knows itself.
//!
//! A rule that is wrong is a [`Wrong`]: the model with it must find a history in which the two differ.

use std::sync::Arc;

use primitives::{Amount, AssetControl, Life, Operation, PoolKey, PoolOperation, Price, Signature, Transaction};
use proofs::{HolderRecord, Outcome};

use super::tests::world::{
    ANN, BEGINS, BOB, CTL, EUR, ISSUER, START, USD, World, account, freeze, genesis, key, offer, pay, recover, unfreeze,
};
use super::{Controls, HeldOffers, RECOVERY_WAIT};
use crate::terms::{Genesis, Limits};

const POOL: PoolKey = PoolKey { a: USD, b: CTL, class: 0 };
/// Units of each asset that a share costs.
const SHARE: Amount = 4;
const SHARES: u64 = 1_000;
const OFFERED: Amount = 9_000;

/// A rule that looks as good and is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// A freeze acts before the batch of its block.
    BeforeTheBatch,
    /// Offers of the frozen rest.
    OffersRest,
    /// Shares of the frozen stay in pools.
    SharesStay,
    /// Units of an open holder are recovered.
    RecoversOpen,
    /// Units are recovered as soon as a holder is frozen.
    RecoversAtOnce,
    /// Two recoveries of a block count.
    RecoversTwice,
    /// Anybody freezes.
    StrangersFreeze,
    /// A freeze of who is frozen begins the wait anew.
    AgainRestarts,
    /// Who was never admitted holds the asset.
    StrangersHold,
    /// The frozen receive.
    FrozenReceive,
    /// The frozen pay.
    FrozenPay,
    /// Of two words in a block the first one counts.
    FirstWordCounts,
    /// An opening counts for nothing.
    FrozenForEver,
}

const WRONGS: &[Wrong] = &[
    Wrong::BeforeTheBatch,
    Wrong::OffersRest,
    Wrong::SharesStay,
    Wrong::RecoversOpen,
    Wrong::RecoversAtOnce,
    Wrong::RecoversTwice,
    Wrong::StrangersFreeze,
    Wrong::AgainRestarts,
    Wrong::StrangersHold,
    Wrong::FrozenReceive,
    Wrong::FrozenPay,
    Wrong::FirstWordCounts,
    Wrong::FrozenForEver,
];

/// What the block of an act has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Freeze,
    Open,
    /// Both words in one block, the freeze with the lower number.
    FreezeAndOpen,
    /// The friend says that the holder is frozen.
    FreezeByFriend,
    PayOut,
    PayIn,
    /// The holder offers the asset.
    Offer,
    Cancel,
    /// The friend buys what the holder offers.
    Meet,
    /// He does so in the block of the freeze.
    MeetAndFreeze,
    Provide,
    Leave,
    /// Units of the holder go to the issuer.
    Recover,
    /// Twice in a block.
    RecoverTwice,
    /// A day passes, and an empty block.
    Day,
}

const ACTS: &[Act] = &[
    Act::Freeze,
    Act::Open,
    Act::FreezeAndOpen,
    Act::FreezeByFriend,
    Act::PayOut,
    Act::PayIn,
    Act::Offer,
    Act::Cancel,
    Act::Meet,
    Act::MeetAndFreeze,
    Act::Provide,
    Act::Leave,
    Act::Recover,
    Act::RecoverTwice,
    Act::Day,
];

/// What the issuer has said last of the holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    None,
    Open,
    Frozen,
}

/// What the oracle says of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Done,
    Nothing,
    Refused,
}

/// Words and numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Oracle {
    /// Whether the asset is for admitted holders.
    admits: bool,
    word: Word,
    /// Whether the holder has been frozen for a day.
    ripe: bool,
    /// The number of the holder's offer, and the units that rest.
    offer: Option<(u64, Amount)>,
    shares: u64,
    holder: Amount,
    friend: Amount,
    issuer: Amount,
}

impl Oracle {
    fn is_open(&self) -> bool {
        match self.word {
            Word::None => !self.admits,
            word => word == Word::Open,
        }
    }

    /// What it says of the transactions of an act; those of a block are judged by the state before.
    fn judge(&self, act: Act) -> Vec<Said> {
        let done_if = |holds: bool| vec![if holds { Said::Done } else { Said::Refused }];
        let recovers = self.word == Word::Frozen && self.ripe && self.holder >= 30;
        match act {
            Act::Freeze | Act::Open | Act::Meet => vec![Said::Done],
            Act::MeetAndFreeze => vec![Said::Done; 2],
            Act::FreezeAndOpen => vec![Said::Nothing, Said::Done],
            Act::FreezeByFriend => vec![Said::Refused],
            Act::PayOut | Act::PayIn | Act::Offer | Act::Provide => done_if(self.is_open()),
            Act::Cancel => done_if(self.offer.is_some()),
            Act::Leave => done_if(self.shares > 0),
            Act::Recover => done_if(recovers),
            Act::RecoverTwice => match recovers {
                true => vec![Said::Nothing, Said::Done],
                false => vec![Said::Refused; 2],
            },
            Act::Day => Vec::new(),
        }
    }

    fn freeze(&mut self) {
        if self.word != Word::Frozen {
            (self.word, self.ripe) = (Word::Frozen, false);
            self.holder += self.offer.take().map_or(0, |(_, units)| units) + SHARE * self.shares;
            self.shares = 0;
        }
    }

    /// Writes what an act does; `number` is that of the holder's next transaction. `sold` tells of the holder's offer
    /// what is sold, what rests and what returned; and what the friend has bought.
    fn write(&mut self, act: Act, number: u64, sold: Option<(Amount, Amount, Amount)>, bought: Amount) {
        let was_open = self.is_open();
        if let (Some((number, units)), Some((sold, left, returned))) = (self.offer, sold) {
            assert_eq!(units, sold + left + returned);
            self.offer = (left > 0).then_some((number, left));
            self.holder += returned;
        }
        self.friend += bought;
        match act {
            Act::Freeze | Act::MeetAndFreeze => self.freeze(),
            Act::Open | Act::FreezeAndOpen => (self.word, self.ripe) = (Word::Open, false),
            Act::PayOut if was_open => (self.holder, self.friend) = (self.holder - 5, self.friend + 5),
            Act::PayIn if was_open => (self.holder, self.friend) = (self.holder + 5, self.friend - 5),
            Act::Offer if was_open => {
                self.holder -= OFFERED;
                self.offer = Some((number, OFFERED));
            }
            Act::Cancel => self.holder += self.offer.take().map_or(0, |(_, units)| units),
            Act::Provide if was_open => {
                (self.holder, self.shares) = (self.holder - SHARE * SHARES, self.shares + SHARES)
            }
            Act::Leave if self.shares > 0 => {
                (self.holder, self.shares) = (self.holder + SHARE * SHARES, self.shares - SHARES);
            }
            Act::Recover if self.judge(act)[0] == Said::Done => {
                (self.holder, self.issuer) = (self.holder - 10, self.issuer + 10);
            }
            Act::RecoverTwice if self.judge(act)[0] == Said::Nothing => {
                (self.holder, self.issuer) = (self.holder - 20, self.issuer + 20);
            }
            Act::Day => self.ripe = self.word == Word::Frozen,
            _ => {}
        }
    }
}

#[derive(Clone)]
struct Case {
    world: World,
    oracle: Oracle,
    wrong: Wrong,
}

fn pool(operation: PoolOperation) -> Operation {
    Operation::Pool(Box::new(operation))
}

impl Case {
    fn new(control: AssetControl, wrong: Wrong) -> Case {
        let genesis = Genesis { limits: Limits::default(), venues: None, ..genesis(control) };
        let mut world = World::of(&genesis);
        let open = PoolOperation::Open { pool: POOL, x: SHARE << 24, y: SHARE << 24 };
        let admit = control.admits().then(|| (ISSUER, unfreeze(BOB)));
        world.done([(ISSUER, pool(open))].into_iter().chain(admit).collect());
        let issuer = START - (SHARE << 24);
        let (admits, word, offer) = (control.admits(), Word::None, None);
        let oracle = Oracle { admits, word, ripe: false, offer, shares: 0, holder: START, friend: START, issuer };
        Case { world, oracle, wrong }
    }

    fn asks(&self, act: Act) -> Vec<(u8, Operation)> {
        let limit = Price::ratio_rounding_up(90, 100).expect("a price");
        let meet = (BOB, offer(EUR, CTL, 2 * OFFERED, 90, Life::OneBatch));
        match act {
            Act::Freeze => vec![(ISSUER, freeze(ANN))],
            Act::Open => vec![(ISSUER, unfreeze(ANN))],
            Act::FreezeAndOpen => vec![(ISSUER, freeze(ANN)), (ISSUER, unfreeze(ANN))],
            Act::FreezeByFriend => vec![(BOB, freeze(ANN))],
            Act::PayOut => vec![(ANN, pay(BOB, CTL, 5))],
            Act::PayIn => vec![(BOB, pay(ANN, CTL, 5))],
            Act::Offer => vec![(ANN, offer(CTL, EUR, OFFERED, 90, Life::Rests))],
            Act::Cancel => {
                let number = self.oracle.offer.map_or(1, |(number, _)| number);
                vec![(ANN, Operation::cancel(CTL, EUR, limit, number))]
            }
            Act::Meet => vec![meet],
            Act::MeetAndFreeze => vec![meet, (ISSUER, freeze(ANN))],
            Act::Provide => {
                let most = SHARE * SHARES;
                vec![(ANN, pool(PoolOperation::Provide { pool: POOL, shares: SHARES, most_a: most, most_b: most }))]
            }
            Act::Leave => {
                vec![(ANN, pool(PoolOperation::Leave { pool: POOL, shares: SHARES, least_a: 0, least_b: 0 }))]
            }
            Act::Recover => vec![(ISSUER, recover(ANN, ISSUER, 10))],
            Act::RecoverTwice => vec![(ISSUER, recover(ANN, ISSUER, 10)), (ISSUER, recover(ANN, ISSUER, 20))],
            Act::Day => Vec::new(),
        }
    }

    /// One block by the ledger and by the oracle; tells in what they differ.
    fn step(&mut self, act: Act) -> Result<(), String> {
        if act == Act::Offer && self.oracle.offer.is_some() {
            return Ok(());
        }
        let said = self.oracle.judge(act);
        if act == Act::Day && self.oracle.word == Word::Frozen {
            self.world.age(ANN, RECOVERY_WAIT);
        }
        let native: Vec<Transaction> =
            self.asks(act).into_iter().map(|(who, one)| self.world.signed(who, one)).collect();
        let number = self.world.number(ANN);
        let applied = self.apply(act, native);
        let told = applied.outcomes.iter().map(|outcome| match outcome {
            Outcome::Refused(_) => Said::Refused,
            Outcome::Void => Said::Nothing,
            _ => Said::Done,
        });
        let told: Vec<Said> = told.collect();
        if told != said {
            return Err(format!("the oracle says {said:?}, the ledger {:?}", applied.outcomes));
        }
        let of = |person| applied.batch.fills.iter().find(move |fill| fill.place.account == account(person));
        let meets = matches!(act, Act::Meet | Act::MeetAndFreeze) && self.oracle.offer.is_some();
        if of(ANN).is_some() != meets {
            return Err(format!("the batch has {:?}", applied.batch.fills));
        }
        let sold = of(ANN).map(|fill| (fill.sold, fill.left, fill.returned));
        self.oracle.write(act, number, sold, of(BOB).map_or(0, |fill| fill.bought));
        self.differs()
    }

    /// In what the ledger is not as the oracle says.
    fn differs(&self) -> Result<(), String> {
        let (world, oracle) = (&self.world, &self.oracle);
        let shares = world.ledger.pools().expect("pools").shares(POOL, account(ANN));
        let rests = world.rests(CTL, EUR);
        let held = [ANN, BOB, ISSUER].map(|person| world.units(person, CTL));
        match () {
            _ if held != [oracle.holder, oracle.friend, oracle.issuer] => Err(format!("{oracle:?}, {held:?}")),
            _ if shares != oracle.shares => Err(format!("the holder has {shares} shares: {oracle:?}")),
            _ if rests != usize::from(oracle.offer.is_some()) => Err(format!("{rests} rest: {oracle:?}")),
            _ => Ok(()),
        }
    }

    fn controls(&mut self) -> &mut Controls {
        Arc::make_mut(&mut self.world.ledger.places.controls)
    }

    fn record(&self) -> Option<HolderRecord> {
        self.world.ledger.controls().record(CTL, &account(ANN)).copied()
    }

    fn set_record(&mut self, record: Option<HolderRecord>) {
        match record {
            Some(record) => drop(self.controls().holders.insert((CTL, account(ANN)), record)),
            None => drop(self.controls().holders.remove(&(CTL, account(ANN)))),
        }
    }

    fn apply(&mut self, act: Act, mut native: Vec<Transaction>) -> crate::Applied {
        let before = self.record();
        self.mistake(act, &mut native);
        let planted = self.record();
        let applied = self.world.apply(native, Vec::new());
        if self.record() == planted && planted != before {
            self.set_record(before);
        }
        let height = self.world.ledger.height();
        match self.wrong {
            Wrong::AgainRestarts if act == Act::Freeze => {
                let record = before.filter(|record| !record.is_open);
                let again = record.map(|record| HolderRecord { since: height, ..record });
                again.into_iter().for_each(|again| self.set_record(Some(again)));
            }
            Wrong::FrozenForEver if act == Act::Open => self.set_record(before),
            Wrong::StrangersHold => self.controls().assets[1].control = AssetControl::AdmittedRecoverable,
            Wrong::OffersRest => {
                let ledger = &mut self.world.ledger;
                ledger.held = HeldOffers::of(&ledger.places.controls, &ledger.places.book);
            }
            _ => {}
        }
        applied
    }

    /// Makes the ledger follow the wrong rule in the next block.
    fn mistake(&mut self, act: Act, native: &mut [Transaction]) {
        let record = self.record();
        let frozen = HolderRecord { is_open: false, since: BEGINS - RECOVERY_WAIT, was_open: true };
        match (self.wrong, act) {
            (Wrong::BeforeTheBatch, Act::MeetAndFreeze) => {
                native[0].body.operation = offer(EUR, CTL, 2 * OFFERED, 900, Life::OneBatch);
            }
            (Wrong::OffersRest, _) => self.world.ledger.held = HeldOffers::default(),
            (Wrong::SharesStay, Act::Freeze | Act::MeetAndFreeze) => {
                self.world.ledger.places.pools.as_mut().map(Arc::make_mut).expect("pools").forget_holders();
            }
            (Wrong::RecoversOpen, Act::Recover) => self.set_record(Some(frozen)),
            (Wrong::RecoversAtOnce, Act::Recover) if record.is_some_and(|record| !record.is_open) => {
                self.set_record(Some(frozen));
            }
            (Wrong::RecoversTwice, Act::RecoverTwice) => {
                if let Operation::Recover(recovery) = &mut native[1].body.operation {
                    recovery.amount = 30;
                }
            }
            (Wrong::StrangersFreeze, Act::FreezeByFriend) => {
                let mut body = native[0].body.clone();
                (body.account, body.sequence) = (account(ISSUER), self.world.next(ISSUER));
                native[0] = Transaction::by_key(body, key(ISSUER).public(), Signature([0; 64]));
            }
            (Wrong::StrangersHold, _) => self.controls().assets[1].control = AssetControl::Recoverable,
            (Wrong::FrozenReceive, Act::PayIn) | (Wrong::FrozenPay, Act::PayOut) => {
                let open = record.map(|record| HolderRecord { is_open: true, ..record });
                self.set_record(open);
            }
            (Wrong::FirstWordCounts, Act::FreezeAndOpen) => {
                let (one, two) = native.split_at_mut(1);
                std::mem::swap(&mut one[0].body.operation, &mut two[0].body.operation);
            }
            _ => {}
        }
    }
}

/// The first difference in all histories of so many acts; tells how many steps were made.
fn search(case: &Case, depth: usize, steps: &mut u64) -> Option<Vec<Act>> {
    if depth == 0 {
        return None;
    }
    ACTS.iter().find_map(|act| {
        let mut next = case.clone();
        *steps += 1;
        match next.step(*act) {
            Err(_) => Some(vec![*act]),
            Ok(()) => search(&next, depth - 1, steps).map(|mut rest| {
                rest.insert(0, *act);
                rest
            }),
        }
    })
}

/// Acts that lead to where most happens.
const OPENINGS: &[(AssetControl, &[Act])] = &[
    (AssetControl::Recoverable, &[]),
    (AssetControl::Recoverable, &[Act::Offer, Act::Provide]),
    (AssetControl::Recoverable, &[Act::Offer, Act::Freeze, Act::Day]),
    (AssetControl::AdmittedRecoverable, &[]),
    (AssetControl::AdmittedRecoverable, &[Act::Open, Act::Offer, Act::Provide]),
];

fn begun((control, opening): (AssetControl, &[Act]), wrong: Wrong) -> Option<Case> {
    let mut case = Case::new(control, wrong);
    opening.iter().all(|act| case.step(*act).is_ok()).then_some(case)
}

#[test]
fn every_short_history_of_controls_is_as_the_oracle_says() {
    let mut steps = 0;
    for opening in OPENINGS {
        let case = begun(*opening, Wrong::Nothing).expect("the opening is sound");
        let found = search(&case, 3, &mut steps).map(|acts| {
            let mut again = case.clone();
            let why: Vec<_> = acts.iter().map(|act| again.step(*act)).collect();
            (acts, why)
        });
        assert_eq!(found, None, "after {opening:?}");
    }
    assert!(steps > 15_000, "{steps}");
}

#[test]
fn each_wrong_rule_of_controls_is_found() {
    for wrong in WRONGS {
        let found = OPENINGS.iter().any(|opening| {
            let Some(case) = begun(*opening, *wrong) else { return true };
            search(&case, 2, &mut 0).is_some()
        });
        assert!(found, "{wrong:?}");
    }
}
