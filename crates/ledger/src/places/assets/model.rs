//! A model of listings and closings: two issuers, and a holder with offers. All short histories, and random longer
//! ones, are judged by the real ledger, block by block, and by an oracle that shares no code with it: it keeps lists of
//! words and numbers.
//!
//! A rule that is wrong is a [`Wrong`]: the model with it must find a history in which the two differ.

use std::sync::Arc;

use primitives::{
    Address, Amount, AssetControl, AssetId, AssetListing, Body, ClientId, Closing, Digest, Fraction, Height, Life,
    Operation, Price, RULES_OF_LISTINGS, SecretKey, Signature, SubBlock, Superblock, Transaction, TransactionId,
};
use proofs::Outcome;

use super::Listings;
use crate::terms::{Genesis, ListingPolicy, ListingTerms};
use crate::{Applied, Ledger, Listing, Restore, Roots, Signatures, Snapshot};

const FEES: u64 = 3;
const ASSETS_MAX: u32 = 6;
const NOTICE: Height = 3;
const SUPPLY_MAX: Amount = 10_000;
const ISSUED: Amount = 6_000;
const OFFERED: Amount = 2_048;
/// The first number that a listing gets.
const FIRST: u32 = 2;

/// A rule that looks as good and is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// Numbers follow the order of the block.
    NumbersByPlace,
    /// Whatever fees a listing names, it pays those that are asked for.
    FeesAreFound,
    /// A plain name may be copied.
    NamesAreCopied,
    /// Closed assets keep their room.
    ClosedKeepRoom,
    /// The room has no bound.
    NoRoom,
    /// An offer may outlive its asset.
    OffersOutlive,
    /// What rests stays when an asset has closed.
    OffersStay,
    /// An asset is issued for ever.
    IssuedForEver,
    /// A closing may be revoked at its last height.
    RevokedLate,
    /// The notice is a height shorter.
    ShortNotice,
    /// A closed asset cannot be paid.
    ClosedIsFrozen,
}

const WRONGS: &[Wrong] = &[
    Wrong::NumbersByPlace,
    Wrong::FeesAreFound,
    Wrong::NamesAreCopied,
    Wrong::ClosedKeepRoom,
    Wrong::NoRoom,
    Wrong::OffersOutlive,
    Wrong::OffersStay,
    Wrong::IssuedForEver,
    Wrong::RevokedLate,
    Wrong::ShortNotice,
    Wrong::ClosedIsFrozen,
];

/// What the block of an act has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// A listing of the first issuer's, for the fees that are asked for.
    List(&'static str),
    /// One that was signed before any other was in a block.
    ListStale,
    /// Listings of both issuers.
    ListBoth,
    /// What the issuer of the first listed asset says of its end.
    Close(Closing),
    /// Somebody else says it.
    CloseByOther,
    /// Both words in one block.
    CloseTwice,
    /// The holder offers the first listed asset.
    Offer(Ends),
    /// So many issues of it.
    Issue(usize),
    /// The holder pays a unit of it.
    Pay,
    /// The block is empty.
    Pass,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Never,
    WithBatch,
    After(Height),
}

const ACTS: &[Act] = &[
    Act::List("GBP"),
    Act::List("u-5d"),
    Act::ListStale,
    Act::ListBoth,
    Act::Close(Closing::Announce),
    Act::Close(Closing::Revoke),
    Act::CloseByOther,
    Act::CloseTwice,
    Act::Offer(Ends::Never),
    Act::Offer(Ends::WithBatch),
    Act::Offer(Ends::After(1)),
    Act::Offer(Ends::After(NOTICE + 1)),
    Act::Issue(1),
    Act::Issue(2),
    Act::Pay,
    Act::Pass,
];

/// The two issuers, and the holder.
const ONE: usize = 0;
const TWO: usize = 1;
const HOLDER: usize = 2;

fn key(who: usize) -> SecretKey {
    SecretKey::from_seed([who as u8 + 1; 32])
}

fn account(who: usize) -> Address {
    key(who).public().address()
}

/// An asset by the oracle.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    name: String,
    issuer: usize,
    issued: Amount,
    closes: Option<Height>,
}

/// What the oracle says of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Said {
    Done,
    Listed(u32),
    Nothing,
    Refused,
}

/// Lists of words and numbers.
#[derive(Clone, Debug, Default)]
struct Oracle {
    listed: Vec<Known>,
    /// Offers of the holder: the last height of each, with its number.
    offers: Vec<(Height, u64)>,
    held: Amount,
}

impl Oracle {
    fn is_closed(&self, known: &Known, height: Height) -> bool {
        known.closes.is_some_and(|last| last < height)
    }

    fn open(&self, height: Height) -> usize {
        self.listed.iter().filter(|known| !self.is_closed(known, height)).count()
    }

    fn fees(&self, height: Height) -> u64 {
        let mut fees = FEES;
        for _ in 0..self.open(height) * 8 / ASSETS_MAX as usize {
            fees *= 2;
        }
        fees
    }

    /// The words of a block of this height, with the ids of its transactions; what it says of each.
    fn step(&mut self, height: Height, block: &[(Transaction, usize)]) -> Vec<Said> {
        let before = self.clone();
        let mut said: Vec<Said> = block.iter().map(|(one, who)| before.judge(height, one, *who)).collect();
        let of = |at: usize| &block[at].0.body.operation;
        let issues: Vec<usize> = (0..block.len()).filter(|at| matches!(of(*at), Operation::Issue { .. })).collect();
        let units = ISSUED * issues.iter().filter(|at| said[**at] == Said::Done).count() as Amount;
        if before.listed.first().is_some_and(|first| first.issued + units > SUPPLY_MAX) {
            issues.iter().for_each(|at| said[*at] = Said::Refused);
        }
        let closings: Vec<usize> =
            (0..block.len()).filter(|at| matches!(of(*at), Operation::CloseAsset { .. })).collect();
        let done = closings.iter().filter(|at| said[**at] == Said::Done);
        let counts = done.max_by_key(|at| block[**at].0.body.sequence).copied();
        for at in closings {
            if said[at] == Said::Done && Some(at) != counts {
                said[at] = Said::Nothing;
            }
        }
        let mut asked: Vec<(TransactionId, usize)> = (0..block.len())
            .filter(|at| matches!(of(*at), Operation::ListAsset(_)) && said[*at] == Said::Done)
            .map(|at| (block[at].0.id(), at))
            .collect();
        asked.sort_unstable();
        let room = ASSETS_MAX as usize - 2 - before.open(height);
        for (place, (_, at)) in asked.into_iter().enumerate() {
            said[at] =
                if place < room { Said::Listed(FIRST + (before.listed.len() + place) as u32) } else { Said::Refused };
        }
        let mut by_number: Vec<usize> = (0..block.len()).collect();
        by_number.sort_by_key(|at| if let Said::Listed(number) = said[*at] { number } else { 0 });
        for at in by_number {
            if matches!(said[at], Said::Done | Said::Listed(_)) {
                self.write(height, &block[at].0, block[at].1);
            }
        }
        self.end(height);
        said
    }

    fn judge(&self, height: Height, one: &Transaction, who: usize) -> Said {
        let first = self.listed.first();
        let is_closed = || first.is_some_and(|first| self.is_closed(first, height));
        let closes = first.and_then(|first| first.closes);
        let fits = match &one.body.operation {
            Operation::ListAsset(listing) => {
                let plain = ["gbp", "jpy"].contains(&&*listing.symbol.to_lowercase());
                plain && listing.fees == self.fees(height)
            }
            Operation::CloseAsset { closing: Closing::Announce, .. } => {
                first.is_some_and(|first| first.issuer == who) && closes.is_none()
            }
            Operation::CloseAsset { closing: Closing::Revoke, .. } => {
                first.is_some_and(|first| first.issuer == who) && closes.is_some_and(|last| height < last)
            }
            Operation::CreateOffer { life, .. } => {
                let ends = match life {
                    Life::Rests => Height::MAX,
                    Life::OneBatch => height,
                    Life::Until(until) => *until,
                };
                first.is_some() && self.held >= OFFERED && closes.is_none_or(|last| ends <= last && height <= last)
            }
            Operation::Issue { .. } => first.is_some_and(|first| first.issuer == who) && !is_closed(),
            Operation::Pay { .. } => first.is_some() && self.held > 0,
            other => unreachable!("{other:?}"),
        };
        if fits { Said::Done } else { Said::Refused }
    }

    fn write(&mut self, height: Height, one: &Transaction, who: usize) {
        match &one.body.operation {
            Operation::ListAsset(listing) => {
                let name = format!("{}.{}", listing.symbol, FIRST as usize + self.listed.len());
                self.listed.push(Known { name, issuer: who, issued: 0, closes: None });
            }
            Operation::CloseAsset { closing, .. } => {
                self.listed[0].closes = (*closing == Closing::Announce).then_some(height + NOTICE);
            }
            Operation::CreateOffer { life, .. } => {
                let ends = match life {
                    Life::Rests => Height::MAX,
                    Life::OneBatch => height,
                    Life::Until(until) => *until,
                };
                self.held -= OFFERED;
                self.offers.push((ends, one.body.sequence));
            }
            Operation::Issue { .. } => {
                self.listed[0].issued += ISSUED;
                self.held += ISSUED;
            }
            Operation::Pay { .. } => self.held -= 1,
            other => unreachable!("{other:?}"),
        }
    }

    /// What leaves after the batch of a height. What is said in this block about the end acts with the next one.
    fn end(&mut self, height: Height) {
        let last = self.listed.first().and_then(|first| first.closes);
        let stays = |ends: &Height| *ends > height && last.is_none_or(|last| height < last);
        let returned = self.offers.iter().filter(|(ends, _)| !stays(ends)).count();
        self.offers.retain(|(ends, _)| stays(ends));
        self.held += OFFERED * returned as Amount;
    }
}

#[derive(Clone)]
struct Case {
    ledger: Ledger,
    oracle: Oracle,
    numbers: [u64; 3],
    wrong: Wrong,
}

fn genesis(rules: u32) -> Genesis {
    let listed = |symbol| Listing { least_units: OFFERED, ..Listing::new(symbol, 2, account(ONE)) };
    Genesis {
        rules,
        fee: 1,
        mu: Fraction::power_of_two(10),
        assets: ["USD", "EUR"].map(listed).to_vec(),
        balances: (0..3).map(|who| (account(who), AssetId(0), 1_000_000)).collect(),
        listings: ListingTerms { policy: ListingPolicy::Priced, fees: FEES, assets_max: ASSETS_MAX, notice: NOTICE },
        ..Genesis::default()
    }
}

impl Case {
    fn new(wrong: Wrong) -> Case {
        let ledger = Ledger::new(&genesis(RULES_OF_LISTINGS)).expect("sound");
        Case { ledger, oracle: Oracle::default(), numbers: [0; 3], wrong }
    }

    fn height(&self) -> Height {
        self.ledger.height() + 1
    }

    fn listing(&self, symbol: &str, fees: u64) -> Operation {
        Operation::ListAsset(Box::new(AssetListing {
            symbol: symbol.into(),
            decimals: 2,
            control: AssetControl::Open,
            least_units: OFFERED,
            supply_max: SUPPLY_MAX,
            document: Digest::default(),
            fees,
        }))
    }

    /// What an act asks for, each with who asks.
    fn asks(&self, act: Act) -> Vec<(usize, Operation)> {
        let (asset, fees) = (AssetId(FIRST), self.oracle.fees(self.height()));
        let issuer = self.oracle.listed.first().map_or(ONE, |first| first.issuer);
        let close = |closing| Operation::CloseAsset { asset, closing };
        let offer = |life| Operation::CreateOffer {
            sell: asset,
            buy: AssetId(0),
            amount: OFFERED,
            limit: Price::ONE,
            life,
            client: ClientId::NONE,
        };
        match act {
            Act::List(symbol) => vec![(ONE, self.listing(symbol, fees))],
            Act::ListStale => vec![(TWO, self.listing("JPY", FEES))],
            Act::ListBoth => vec![(ONE, self.listing("GBP", fees)), (TWO, self.listing("JPY", fees))],
            Act::Close(closing) => vec![(issuer, close(closing))],
            Act::CloseByOther => vec![(HOLDER, close(Closing::Announce))],
            Act::CloseTwice => vec![(issuer, close(Closing::Announce)), (issuer, close(Closing::Revoke))],
            Act::Offer(Ends::Never) => vec![(HOLDER, offer(Life::Rests))],
            Act::Offer(Ends::WithBatch) => vec![(HOLDER, offer(Life::OneBatch))],
            Act::Offer(Ends::After(heights)) => vec![(HOLDER, offer(Life::Until(self.height() + heights)))],
            Act::Issue(count) => vec![(issuer, Operation::Issue { to: account(HOLDER), asset, amount: ISSUED }); count],
            Act::Pay => vec![(HOLDER, Operation::Pay { to: account(TWO), asset, amount: 1 })],
            Act::Pass => Vec::new(),
        }
    }

    fn signed(&self, act: Act) -> Vec<(Transaction, usize)> {
        let mut numbers = self.numbers;
        let mut sign = |(who, operation): (usize, Operation)| {
            numbers[who] += 1;
            let (account, sequence, until) = (account(who), numbers[who], self.height());
            let body = Body { chain: 0, account, sequence, until, operation };
            (Transaction::by_key(body, key(who).public(), Signature([0; 64])), who)
        };
        self.asks(act).into_iter().map(&mut sign).collect()
    }

    /// One block by the ledger and by the oracle; tells in what they differ.
    fn step(&mut self, act: Act) -> Result<Applied, String> {
        let (block, height) = (self.signed(act), self.height());
        let said = self.oracle.step(height, &block);
        let applied = self.apply(&block);
        let told = applied.outcomes.iter().map(|outcome| match outcome {
            Outcome::Refused(_) => Said::Refused,
            Outcome::Void => Said::Nothing,
            Outcome::Listed(number) => Said::Listed(number.0),
            _ => Said::Done,
        });
        let told: Vec<Said> = told.collect();
        for ((one, who), said) in block.iter().zip(&said) {
            if *said != Said::Refused {
                self.numbers[*who] = one.body.sequence;
            }
        }
        match self.differs() {
            _ if told != said => Err(format!("the oracle says {said:?}, the ledger {:?}", applied.outcomes)),
            Some(what) => Err(what),
            None => Ok(applied),
        }
    }

    /// In what the ledger is not as the oracle says.
    fn differs(&self) -> Option<String> {
        let (ledger, oracle) = (&self.ledger, &self.oracle);
        let listed: Vec<Known> = (FIRST..)
            .zip(&ledger.assets()[FIRST as usize..])
            .map(|(number, asset)| Known {
                name: asset.symbol.clone(),
                issuer: if asset.issuer == account(ONE) { ONE } else { TWO },
                issued: asset.issued,
                closes: ledger.listings().closes(AssetId(number)),
            })
            .collect();
        let held = ledger.accounts().get(&account(HOLDER)).map_or(0, |holder| holder.balance(AssetId(FIRST)));
        match () {
            _ if listed != oracle.listed => Some(format!("{:?} is listed, the ledger has {listed:?}", oracle.listed)),
            _ if ledger.book().len() != oracle.offers.len() => {
                Some(format!("{:?} rest, the ledger has {}", oracle.offers, ledger.book().len()))
            }
            _ if held != oracle.held => Some(format!("the holder has {}, not {held}", oracle.held)),
            _ => None,
        }
    }

    fn apply(&mut self, block: &[(Transaction, usize)]) -> Applied {
        let mut native: Vec<Transaction> = block.iter().map(|(one, _)| one.clone()).collect();
        let kept = self.ledger.places.listings.clone();
        self.mistake(&mut native);
        let wrong = self.ledger.places.listings.clone();
        let sub = SubBlock { proposer: 0, native, ..SubBlock::default() };
        let (height, parent) = (self.height(), self.ledger.last_block());
        let parent_root = Roots::of(&self.ledger).parts().root();
        let block =
            Superblock { height, parent, time_ms: height, parent_root, sub_blocks: vec![sub], ..Superblock::default() };
        let applied = self.ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("sound");
        self.undo_mistake(&kept, &wrong);
        applied
    }

    fn rewrite(&mut self, with: impl FnOnce(&mut Listings)) {
        with(Arc::make_mut(&mut self.ledger.places.listings));
    }

    /// Makes the ledger follow the wrong rule in the next block.
    fn mistake(&mut self, native: &mut Vec<Transaction>) {
        let (height, fees) = (self.height(), self.ledger.listing_fees());
        let is = |wanted: fn(&Operation) -> bool| native.iter().any(|one| wanted(&one.body.operation));
        match self.wrong {
            Wrong::FeesAreFound => native.iter_mut().for_each(|one| {
                if let Operation::ListAsset(listing) = &mut one.body.operation {
                    listing.fees = fees;
                }
            }),
            Wrong::NamesAreCopied => native.iter_mut().for_each(|one| {
                if let Operation::ListAsset(listing) = &mut one.body.operation
                    && listing.symbol == "u-5d"
                {
                    listing.symbol = "GBP".into();
                }
            }),
            Wrong::ClosedKeepRoom => {
                let closed = self.oracle.listed.len() - self.oracle.open(height);
                self.rewrite(|listings| listings.terms.assets_max -= closed as u32);
            }
            Wrong::NoRoom => self.rewrite(|listings| listings.terms.assets_max = 16),
            Wrong::OffersOutlive if is(|one| matches!(one, Operation::CreateOffer { .. })) => {
                self.rewrite(|listings| listings.closes.clear());
            }
            Wrong::OffersStay if native.is_empty() => self.rewrite(|listings| listings.closes.clear()),
            Wrong::IssuedForEver if is(|one| matches!(one, Operation::Issue { .. })) => {
                self.rewrite(|listings| listings.closes.clear());
            }
            Wrong::RevokedLate if is(|one| matches!(one, Operation::CloseAsset { closing: Closing::Revoke, .. })) => {
                self.rewrite(|listings| listings.closes.values_mut().for_each(|last| *last += 1));
            }
            Wrong::ShortNotice => self.rewrite(|listings| listings.terms.notice = NOTICE - 1),
            Wrong::ClosedIsFrozen if self.ledger.listings().is_closed(AssetId(FIRST), height) => {
                native.retain(|one| !matches!(one.body.operation, Operation::Pay { .. }));
            }
            _ => {}
        }
    }

    /// Goes back to the true state, but for what the block has changed.
    fn undo_mistake(&mut self, kept: &Arc<Listings>, wrong: &Arc<Listings>) {
        if self.wrong == Wrong::NumbersByPlace {
            let last = self.ledger.assets.len();
            if last > FIRST as usize + 1 && self.ledger.assets[last - 1].symbol.starts_with('G') {
                self.ledger.assets.swap(last - 2, last - 1);
            }
        }
        if !Arc::ptr_eq(&self.ledger.places.listings, wrong) || Arc::ptr_eq(kept, wrong) {
            let terms = kept.terms;
            return self.rewrite(|listings| listings.terms = terms);
        }
        self.ledger.places.listings = kept.clone();
    }

    /// Checks that the state is the same from its chunks, and that tries that followed are those of the whole.
    fn check_restored(&self, roots: &mut Roots) {
        let mut restore = Restore::default();
        Snapshot::of(&self.ledger).for_each(|chunk| restore.push(&chunk).expect("a chunk"));
        let restored = restore.finish().expect("sound");
        let chunks = |ledger: &Ledger| Snapshot::of(ledger).collect::<Vec<_>>();
        assert_eq!(chunks(&restored), chunks(&self.ledger));
        assert_eq!(Roots::of(&restored).parts(), roots.parts());
        let root = roots.parts().root();
        for number in 0..self.ledger.assets().len() as u32 + 1 {
            let proof = roots.prove_asset_terms(&self.ledger, AssetId(number));
            let proved = proof.verify(&root, AssetId(number)).expect("it holds");
            assert_eq!(proved, self.ledger.listings().get(AssetId(number)));
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
            Ok(_) => search(&next, depth - 1, steps).map(|mut rest| {
                rest.insert(0, *act);
                rest
            }),
        }
    })
}

/// Acts that lead to where most happens: an asset is listed, issued, and closes.
const OPENINGS: &[&[Act]] = &[
    &[],
    &[Act::List("GBP"), Act::Issue(1), Act::Offer(Ends::Never), Act::Close(Closing::Announce)],
    &[Act::ListBoth, Act::ListBoth],
    &[Act::List("GBP"), Act::Issue(1), Act::Close(Closing::Announce), Act::Pass, Act::Pass, Act::ListBoth],
];

fn begun(opening: &[Act], wrong: Wrong) -> Option<Case> {
    let mut case = Case::new(wrong);
    opening.iter().all(|act| case.step(*act).is_ok()).then_some(case)
}

#[test]
fn every_short_history_of_listings_is_as_the_oracle_says() {
    let mut steps = 0;
    for opening in OPENINGS {
        let case = begun(opening, Wrong::Nothing).expect("the opening is sound");
        let found = search(&case, 3, &mut steps);
        assert_eq!(found, None, "after {opening:?}");
    }
    assert!(steps > 15_000, "{steps}");
}

/// Dice of a fixed seed.
fn dice(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    }
}

#[test]
fn long_histories_of_listings_are_as_the_oracle_says_and_as_their_snapshots() {
    for seed in 0..20 {
        let (mut case, mut roll) = (Case::new(Wrong::Nothing), dice(seed));
        let mut roots = Roots::of(&case.ledger);
        for step in 0..60 {
            let act = ACTS[roll() as usize % ACTS.len()];
            let applied = case.step(act).unwrap_or_else(|what| panic!("seed {seed}, step {step}, {act:?}: {what}"));
            roots.apply(&applied.changes);
            case.check_restored(&mut roots);
        }
    }
}

#[test]
fn each_wrong_rule_of_listings_is_found() {
    for wrong in WRONGS {
        let found = OPENINGS.iter().any(|opening| {
            let Some(case) = begun(opening, *wrong) else { return true };
            search(&case, 3, &mut 0).is_some()
        });
        assert!(found, "{wrong:?}");
    }
}
