//! Records of the journal, and what each came to.
//!
//! The journal is a [`store::Store`]: its "blocks" are records, numbered from 1, and its "receipts" are what each of
//! them came to. All integers are little-endian, in borsh.
//!
//! | record | bytes |
//! |---|---|
//! | first | 0, version 4, [`VenueSettings`] |
//! | others | 1, the time of the step, its inputs, the digest of what it came to |
//!
//! A record has what a replay needs and no more. What traders signed stands in it with its signature, since a fill that
//! was told must settle after any crash; a key stands there as its position, if the root knew it before the step; an
//! order's digest follows from the rest.
//!
//! What a record came to: the count of fills before it, its fills, and the digest of the settle that it cut. If one
//! signature holds for the reports of all its fills, the time of the step follows. A record is made after its step, so
//! it states the result that was reported; a replay that comes to another one is refused.

use std::sync::{Arc, PoisonError, RwLock};

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::venue::{ListEntry, MarketId, OrderList, OrderNumber, SettledFill, VenueOrder, VenueSide};
use primitives::{Address, Amount, Digest, Height, PublicKey, Signature};

use crate::checked::{CheckedOrder, CheckedOrderList};
use crate::input::{SessionNumber, TradeCommand, VenueInput};
use crate::machine::VenueMachine;
use crate::report::{FillParty, VenueFill};
use crate::settings::VenueSettings;
use crate::state::Core;

const FOUNDED: u8 = 0;
const STEP: u8 = 1;
const VERSION: u8 = 4;
const CONTEXT: &str = "walras 2026 venue root outcome v1";
const SETTLE_CONTEXT: &str = "walras 2026 venue root settle v1";

/// A record that was read.
pub(crate) enum JournalRecord {
    Founded(VenueSettings),
    Step { clock_ms: u64, inputs: Vec<WrittenInput<VenueInput>>, outcome: Digest },
}

/// The keys that a root knows, by their positions, with their accounts. Readers of fills share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownKeys(Arc<RwLock<Vec<(PublicKey, Address)>>>);

impl KnownKeys {
    /// Adds those that a root has learnt since: none ever leaves, nor changes its account.
    pub fn follow(&self, core: &Core) {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).len();
        if known < core.keys.len() {
            let new = core.keys[known..].iter().map(|key| (key.public, core.account(key.account).address));
            self.0.write().unwrap_or_else(PoisonError::into_inner).extend(new);
        }
    }

    fn get(&self, at: u32) -> Result<(PublicKey, Address), String> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.get(at as usize).copied().ok_or_else(|| format!("it names key {at}, which the root does not know"))
    }
}

#[derive(BorshSerialize, BorshDeserialize)]
pub(crate) enum WrittenKey {
    /// The position of one that was known before the step.
    Known(u32),
    Whole(PublicKey),
}

#[derive(BorshSerialize, BorshDeserialize)]
pub(crate) struct WrittenOrder {
    key: WrittenKey,
    order: VenueOrder,
    signature: Signature,
}

/// An input as it stands in a record. There are many of the first three.
#[derive(BorshSerialize, BorshDeserialize)]
pub(crate) enum WrittenInput<I> {
    New(SessionNumber, WrittenOrder),
    Replace(SessionNumber, OrderNumber, WrittenOrder),
    Cancel(SessionNumber, WrittenKey, OrderNumber, u32),
    Other(I),
    List(SessionNumber, WrittenKey, WrittenList),
}

/// A list without its key. Salts, paths and digests follow.
#[derive(BorshSerialize, BorshDeserialize)]
pub(crate) struct WrittenList {
    seed: [u8; 32],
    entries: Vec<ListEntry>,
    signature: Signature,
}

/// Writes the inputs of a step before which a root knew so many keys.
struct InputWriter<'a> {
    core: &'a Core,
    known: u32,
}

impl InputWriter<'_> {
    fn input<'i>(&self, input: &'i VenueInput) -> WrittenInput<&'i VenueInput> {
        match input {
            VenueInput::Trade(session, TradeCommand::New(order)) => WrittenInput::New(*session, self.order(order)),
            VenueInput::Trade(session, TradeCommand::Replace(old, order)) => {
                WrittenInput::Replace(*session, *old, self.order(order))
            }
            VenueInput::Trade(session, TradeCommand::Cancel { key, number, keeps }) => {
                WrittenInput::Cancel(*session, self.key(key), *number, *keeps)
            }
            VenueInput::List(session, list) => {
                let OrderList { key, seed, entries, signature } = list.list().clone();
                WrittenInput::List(*session, self.key(&key), WrittenList { seed, entries, signature })
            }
            other => WrittenInput::Other(other),
        }
    }

    fn order(&self, order: &CheckedOrder) -> WrittenOrder {
        WrittenOrder { key: self.key(order.key()), order: *order.order(), signature: order.signed().signature }
    }

    fn key(&self, key: &PublicKey) -> WrittenKey {
        let at = self.core.key_of.get(key).copied().filter(|at| *at < self.known);
        at.map_or(WrittenKey::Whole(*key), WrittenKey::Known)
    }
}

impl WrittenInput<VenueInput> {
    /// The input, by the state before its step.
    pub fn read(self, core: &Core) -> Result<VenueInput, String> {
        Ok(match self {
            WrittenInput::New(session, order) => VenueInput::Trade(session, TradeCommand::New(order.read(core)?)),
            WrittenInput::Replace(session, old, order) => {
                VenueInput::Trade(session, TradeCommand::Replace(old, order.read(core)?))
            }
            WrittenInput::Cancel(session, key, number, keeps) => {
                VenueInput::Trade(session, TradeCommand::Cancel { key: key.read(core)?, number, keeps })
            }
            WrittenInput::List(session, key, WrittenList { seed, entries, signature }) => {
                let list = OrderList { key: key.read(core)?, seed, entries, signature };
                let (network, venue) = (&core.settings.network, core.settings.venue);
                let list = CheckedOrderList::journaled(network, venue, list).map_err(|fault| fault.to_string())?;
                VenueInput::List(session, list)
            }
            WrittenInput::Other(input) => input,
        })
    }
}

impl WrittenOrder {
    fn read(self, core: &Core) -> Result<CheckedOrder, String> {
        let WrittenOrder { key, order, signature } = self;
        let (network, venue) = (&core.settings.network, core.settings.venue);
        Ok(CheckedOrder::journaled(network, venue, key.read(core)?, order, signature))
    }
}

impl WrittenKey {
    fn read(self, core: &Core) -> Result<PublicKey, String> {
        match self {
            WrittenKey::Whole(key) => Ok(key),
            WrittenKey::Known(at) => {
                let key = core.keys.get(at as usize).map(|key| key.public);
                key.ok_or_else(|| format!("it names key {at}, which the root did not know"))
            }
        }
    }
}

/// A side of a fill; its key by the position.
#[derive(BorshSerialize, BorshDeserialize)]
struct WrittenParty {
    key: u32,
    number: OrderNumber,
    session: SessionNumber,
    id: u64,
    left: u32,
}

/// A fill; its index follows from its place.
#[derive(BorshSerialize, BorshDeserialize)]
struct WrittenFill {
    leaf: Digest,
    market: MarketId,
    buyer: WrittenParty,
    seller: WrittenParty,
    lots: u32,
    tick: u32,
    fees: (i64, i64),
    taker: VenueSide,
    quote: Amount,
    base: Amount,
    matched: Height,
}

impl WrittenFill {
    fn of(fill: &VenueFill, core: &Core) -> WrittenFill {
        let party = |FillParty { key, number, account: _, session, id, left }: &FillParty| WrittenParty {
            key: *core.key_of.get(key).expect("a key that trades is known"),
            number: *number,
            session: *session,
            id: *id,
            left: *left,
        };
        let VenueFill { index: _, leaf, market, buyer, seller, terms, quote, base, matched } = fill;
        let SettledFill { buy: _, sell: _, lots, tick, fee_buy, fee_sell, taker } = *terms;
        WrittenFill {
            leaf: *leaf,
            market: *market,
            buyer: party(buyer),
            seller: party(seller),
            lots,
            tick,
            fees: (fee_buy, fee_sell),
            taker,
            quote: *quote,
            base: *base,
            matched: *matched,
        }
    }

    fn read(self, index: u64, keys: &KnownKeys) -> Result<VenueFill, String> {
        let party = |WrittenParty { key, number, session, id, left }: WrittenParty| {
            let (key, account) = keys.get(key)?;
            Ok::<_, String>(FillParty { key, number, account, session, id, left })
        };
        let WrittenFill { leaf, market, buyer, seller, lots, tick, fees, taker, quote, base, matched } = self;
        let terms = SettledFill { buy: 0, sell: 0, lots, tick, fee_buy: fees.0, fee_sell: fees.1, taker };
        let (buyer, seller) = (party(buyer)?, party(seller)?);
        Ok(VenueFill { index, leaf, market, buyer, seller, terms, quote, base, matched })
    }
}

fn write(part: &impl BorshSerialize, bytes: &mut Vec<u8>) {
    part.serialize(bytes).expect("writing to memory cannot fail");
}

pub(crate) fn encode_founded(settings: &VenueSettings) -> Vec<u8> {
    let mut bytes = vec![FOUNDED, VERSION];
    write(settings, &mut bytes);
    bytes
}

/// The record of a step that was taken, before which the root knew so many keys. It has no end yet: see [`end_step`].
pub(crate) fn encode_step(clock_ms: u64, inputs: &[VenueInput], (core, known): (&Core, u32), bytes: &mut Vec<u8>) {
    bytes.clear();
    bytes.push(STEP);
    write(&clock_ms, bytes);
    write(&(inputs.len() as u32), bytes);
    let writer = InputWriter { core, known };
    inputs.iter().for_each(|input| write(&writer.input(input), bytes));
}

/// Ends the record of a step with the digest of what it came to.
pub(crate) fn end_step(outcome: &[u8], bytes: &mut Vec<u8>) {
    write(&outcome_digest(outcome), bytes);
}

pub(crate) fn decode(bytes: &[u8]) -> Result<JournalRecord, String> {
    match bytes {
        [FOUNDED, VERSION, rest @ ..] => borsh::from_slice(rest).map(JournalRecord::Founded).map_err(text),
        [FOUNDED, version, ..] => Err(format!("its format has version {version}, and this program reads {VERSION}")),
        [STEP, rest @ ..] => {
            let (clock_ms, inputs, outcome) = borsh::from_slice(rest).map_err(text)?;
            Ok(JournalRecord::Step { clock_ms, inputs, outcome })
        }
        _ => Err("it is of no known kind".into()),
    }
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}

pub(crate) fn outcome_digest(outcome: &[u8]) -> Digest {
    Digest::of(CONTEXT, outcome)
}

/// What the first record came to: nothing.
pub(crate) fn encode_nothing(bytes: &mut Vec<u8>) {
    bytes.clear();
    write(&(0_u64, 0_u32, None::<Digest>), bytes);
}

/// What the last step of a machine came to, with the count of fills before it.
pub(crate) fn encode_outcome(before: u64, machine: &VenueMachine, bytes: &mut Vec<u8>) {
    bytes.clear();
    write(&before, bytes);
    write(&(machine.fills.len() as u32), bytes);
    machine.fills.iter().for_each(|fill| write(&WrittenFill::of(fill, &machine.core), bytes));
    let digest = |body| Digest::of(SETTLE_CONTEXT, &borsh::to_vec(body).expect("writing to memory cannot fail"));
    write(&machine.cut.as_ref().map(digest), bytes);
    machine.step_clock().iter().for_each(|clock_ms| write(clock_ms, bytes));
}

/// How many fills were made before a record, by what it came to.
pub(crate) fn fills_before(outcome: &[u8]) -> Option<u64> {
    outcome.first_chunk().map(|first| u64::from_le_bytes(*first))
}

/// The fills of a record, and the clock under which one signature holds for all of their reports.
pub(crate) fn fills_of(mut outcome: &[u8], keys: &KnownKeys) -> Result<(Vec<VenueFill>, Option<u64>), String> {
    let (before, fills, _): (u64, Vec<WrittenFill>, Option<Digest>) =
        BorshDeserialize::deserialize(&mut outcome).map_err(text)?;
    let is_single = outcome.is_empty();
    let clock_ms = (!is_single).then(|| borsh::from_slice(outcome)).transpose().map_err(text)?;
    let fills: Result<Vec<VenueFill>, String> = (before..).zip(fills).map(|(at, fill)| fill.read(at, keys)).collect();
    Ok((fills?, clock_ms))
}

#[cfg(test)]
mod tests {
    use primitives::SecretKey;
    use primitives::venue::{Delay, KeyScope, Mandate, OrderLife, SelfTradeRule, SignedOrder, VenueOperator};

    use super::*;
    use crate::checked::check_orders;
    use crate::facts::{CertifiedFacts, KeyStanding, VenueFact};
    use crate::settings::{SettlingTerms, VenueLimits};

    const NETWORK: Digest = Digest([3; 32]);

    /// What a root knows that has learnt of one key.
    fn machine(trading: &PublicKey) -> VenueMachine {
        let operator = VenueOperator { account: Address([1; 20]), report_key: PublicKey([2; 32]) };
        let delay = Delay { heights: 8, ms: 1_000 };
        let (bond_min, settle_bytes, entries_max, life_max) = (1, 1 << 16, 9, 99);
        let terms = SettlingTerms { chain: 1, fee: 1, delay, bond_min, settle_bytes, entries_max, life_max };
        let settings = VenueSettings {
            network: NETWORK,
            venue: 5,
            incarnation: 0,
            operator,
            terms,
            limits: VenueLimits::default(),
        };
        let mut machine = VenueMachine::new(settings, 0, kernel::Planted::NOTHING);
        let mandate = Mandate { scope: KeyScope::Venue, markets: Vec::new(), caps: Vec::new() };
        let (owner, net, is_revoked, floor) = (Address([9; 20]), Vec::new(), false, number(0));
        let standing = KeyStanding { owner, mandate, net, is_revoked, floor, raised: floor };
        let facts = vec![VenueFact::Key(*trading, standing)];
        machine.step(1, &[VenueInput::Certified(CertifiedFacts { height: 1, time_ms: 1, newest: 1, facts })]);
        machine
    }

    fn number(reference: u32) -> OrderNumber {
        OrderNumber { incarnation: 0, day: 1, reference }
    }

    fn checked(key: &SecretKey) -> CheckedOrder {
        let order = VenueOrder {
            market: 1,
            number: number(7),
            floor: number(0),
            side: VenueSide::Buy,
            life: OrderLife::Rests,
            self_trade: SelfTradeRule::ExpireMaker,
            tick: 5,
            lots: 6,
            expiry: 9,
            until_ms: None,
            fee_cap_ppm: 100,
        };
        check_orders(&NETWORK, 5, &[SignedOrder::sign(&NETWORK, 5, key, order)])[0].expect("it is signed")
    }

    /// The inputs of a step, before which a root knew so many keys, and the bytes of their record.
    fn read_again(machine: &VenueMachine, known: u32, inputs: &[VenueInput]) -> (Vec<VenueInput>, usize) {
        let mut bytes = Vec::new();
        encode_step(4, inputs, (&machine.core, known), &mut bytes);
        end_step(&[], &mut bytes);
        let Ok(JournalRecord::Step { clock_ms: 4, inputs, .. }) = decode(&bytes) else { panic!("{bytes:?}") };
        let read = inputs.into_iter().map(|input| input.read(&machine.core).expect("it names what is known"));
        (read.collect(), bytes.len())
    }

    #[test]
    fn a_command_takes_few_bytes_beside_what_was_signed() {
        let key = SecretKey::from_seed([7; 32]);
        let (machine, order) = (machine(&key.public()), checked(&key));
        let signed = borsh::to_vec(&(order.order(), order.signed().signature)).expect("memory").len();
        let cancel = TradeCommand::Cancel { key: key.public(), number: number(7), keeps: 2 };
        let without = read_again(&machine, 1, &[]).1;
        for (command, signed) in
            [(TradeCommand::New(order), signed), (TradeCommand::Replace(number(3), order), signed), (cancel, 0)]
        {
            let inputs = [VenueInput::Trade(9, command)];
            let (read, bytes) = read_again(&machine, 1, &inputs);
            assert_eq!(read, inputs);
            assert!(bytes - without - signed <= 32, "{command:?} takes {bytes} bytes, of them {signed} signed");
        }
    }

    /// A key that the step itself brings has no position before it.
    #[test]
    fn a_key_that_the_step_brings_is_written_whole() {
        let key = SecretKey::from_seed([7; 32]);
        let (machine, order) = (machine(&key.public()), checked(&key));
        let inputs = [VenueInput::Trade(9, TradeCommand::New(order)), VenueInput::Heartbeat(3)];
        let ((read, whole), (_, known)) = (read_again(&machine, 0, &inputs), read_again(&machine, 1, &inputs));
        assert_eq!((&read[..], whole - known), (&inputs[..], 28));
        let unknown = WrittenInput::<VenueInput>::Cancel(9, WrittenKey::Known(1), number(7), 0).read(&machine.core);
        assert_eq!(unknown, Err("it names key 1, which the root did not know".into()));
    }

    /// Seed and signature stand there once, and what no root wrote is an error.
    #[test]
    fn a_list_is_read_as_it_was_and_a_broken_one_is_refused() {
        let key = SecretKey::from_seed([7; 32]);
        let (machine, order) = (machine(&key.public()), *checked(&key).order());
        let entry = |reference| ListEntry { order: VenueOrder { number: number(reference), ..order }, replaces: None };
        let list = OrderList::sign(&NETWORK, 5, [3; 32], (7..10).map(entry).collect(), &key).expect("plain");
        let checked = CheckedOrderList::journaled(&NETWORK, 5, list.clone()).expect("plain");
        let inputs = [VenueInput::List(9, checked)];
        assert_eq!(read_again(&machine, 1, &inputs).0, inputs);
        assert_eq!(
            borsh::from_slice::<VenueInput>(&borsh::to_vec(&inputs[0]).expect("memory")).expect("read"),
            inputs[0]
        );
        for entries in [Vec::new(), vec![list.entries[1], list.entries[0]], vec![list.entries[0]; 65]] {
            let (seed, signature) = (list.seed, list.signature);
            let broken = WrittenList { seed, entries: entries.clone(), signature };
            assert!(WrittenInput::<VenueInput>::List(9, WrittenKey::Known(0), broken).read(&machine.core).is_err());
            let broken = OrderList { key: list.key, seed, entries, signature };
            assert!(
                borsh::from_slice::<CheckedOrderList>(
                    &borsh::to_vec(&(broken, vec![Digest([0; 32])])).expect("memory")
                )
                .is_err()
            );
        }
    }

    #[test]
    fn a_journal_of_another_version_is_refused_by_number() {
        for version in [0, VERSION + 1] {
            let error = decode(&[FOUNDED, version, 1, 2, 3]).err();
            let wanted = format!("its format has version {version}, and this program reads {VERSION}");
            assert_eq!(error, Some(wanted));
        }
        assert_eq!(decode(&[9, VERSION]).err().as_deref(), Some("it is of no known kind"));
    }
}
