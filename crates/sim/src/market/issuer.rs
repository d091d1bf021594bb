//! The issuer of EUR in some runs: it freezes and admits holders, recalls what they have at the venue, and recovers
//! units of their accounts. What it said is in [`super::holders`].

use kernel::Dice;
use primitives::venue::VenueOperation;
use primitives::{AssetControl, HolderRecovery, HolderState, Operation, Reference, ReferenceKind, Transaction};

use super::chain::Chain;
use super::people::{BLOCK_MS, EUR, EVERYBODY, HOSTILE, ISSUER, OWNER, Person, VENUE, address};

/// Frozen since the day before the run.
pub(super) const LONG_FROZEN: Person = HOSTILE[1];
/// Where holders are admitted, nobody has mentioned this one before the run.
pub(super) const UNKNOWN: Person = HOSTILE[0];

/// The control of EUR in the run of a seed: mostly none.
pub(super) fn control_of(seed: u64) -> AssetControl {
    match seed % 16 {
        6 | 7 => AssetControl::Recoverable,
        9 | 14 => AssetControl::AdmittedRecoverable,
        _ => AssetControl::Open,
    }
}

fn reference() -> Reference {
    Reference::read(ReferenceKind::Text, "case 7").expect("plain")
}

fn says(person: Person, state: HolderState) -> Operation {
    Operation::SetHolder { asset: EUR, account: address(person), state, reference: reference() }
}

fn recalls(person: Person) -> Operation {
    let recall = VenueOperation::Recall { venue: VENUE, asset: EUR, account: address(person) };
    Operation::Venue(Box::new(recall))
}

/// Before anything else: whoever trades is admitted, if somebody must be, but for one.
pub(super) fn admit_first(chain: &mut Chain) -> Result<(), String> {
    if !chain.oracle.holders.admits {
        return Ok(());
    }
    let others = EVERYBODY.into_iter().chain([OWNER]).filter(|person| *person != UNKNOWN);
    issue(chain, others.map(|person| says(person, HolderState::Open)).collect())
}

/// One trader is frozen, and a day passes, so that the issuer may recall and recover.
pub(super) fn freeze_first(chain: &mut Chain) -> Result<(), String> {
    if !chain.oracle.holders.is_controlled {
        return Ok(());
    }
    issue(chain, vec![says(LONG_FROZEN, HolderState::Frozen)])?;
    chain.pass_a_day()
}

fn issue(chain: &mut Chain, operations: Vec<Operation>) -> Result<(), String> {
    let signed = signed(chain, operations);
    chain.block(Vec::new(), signed, BLOCK_MS).map(drop)
}

fn signed(chain: &Chain, operations: Vec<Operation>) -> Vec<Transaction> {
    let numbered = (chain.next_sequence(ISSUER)..).zip(operations);
    numbered.map(|(number, operation)| chain.sign_any(ISSUER, number, operation)).collect()
}

/// What the issuer does in a block: now and then a word, a recall and a recovery, many of them too early. At most one
/// of each, so that all that count do something.
pub(super) fn acts(chain: &Chain, dice: &mut Dice) -> Vec<Transaction> {
    let oracle = &chain.oracle;
    let all: Vec<Person> = EVERYBODY.into_iter().chain([OWNER]).collect();
    let frozen: Vec<Person> = all.iter().copied().filter(|person| !oracle.holders.is_open(&address(*person))).collect();
    let some = |dice: &mut Dice, of: &[Person]| of[dice.index(of.len())];
    let suspect =
        |dice: &mut Dice| if frozen.is_empty() || dice.once_in(4) { some(dice, &all) } else { some(dice, &frozen) };
    let mut operations = Vec::new();
    if dice.once_in(5) {
        // Mostly somebody is opened again, so that there is a market; whom the issuer pursues seldom is.
        let pardoned: Vec<Person> =
            frozen.iter().copied().filter(|one| *one != LONG_FROZEN || dice.once_in(4)).collect();
        operations.push(match pardoned.is_empty() || dice.once_in(3) {
            true => says(some(dice, &all), HolderState::Frozen),
            false => says(some(dice, &pardoned), HolderState::Open),
        });
    }
    if dice.once_in(6) {
        operations.push(recalls(suspect(dice)));
    }
    if dice.once_in(5) {
        let person = suspect(dice);
        let held = oracle.balance(person, EUR);
        if held > 0 {
            let (from, to, amount) = (address(person), address(ISSUER), 1 + dice.below(held));
            let recovery = HolderRecovery { asset: EUR, from, to, amount, reference: reference() };
            operations.push(Operation::Recover(Box::new(recovery)));
        }
    }
    signed(chain, operations)
}
