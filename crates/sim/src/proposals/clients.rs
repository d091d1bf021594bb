//! Validators who propose and vote, and get it wrong.

use kernel::Dice;
use ledger::Ledger;
use primitives::{
    Address, AssetControl, AssetId, Digest, MAX_ISSUED, Operation, Parameter, PlainListing, ProposalWord,
    ProposedChange,
};

/// Names that are asked for. Some look like others, and some like those of the genesis.
const NAMES: [&str; 8] = ["JPY", "jpy", "J-PY", "GBP", "CHF", "AO", "XAU", "NOK"];
/// The policy of listings under which votes list assets, as a parameter.
const VOTED: u64 = 2;

/// See the module text.
pub(crate) struct ProposalClients {
    /// Who issues what they list.
    pub issuer: Address,
}

impl ProposalClients {
    /// What one of these people says next, by its place among them.
    pub fn draw(&self, ledger: &Ledger, people: &[Address], dice: &mut Dice) -> (usize, Operation) {
        let says = if dice.once_in(3) { None } else { self.vote(ledger, people, dice) };
        says.unwrap_or_else(|| (who(ledger, people, dice), self.propose(ledger, dice)))
    }

    /// A word about something that is open, mostly a missing yes.
    fn vote(&self, ledger: &Ledger, people: &[Address], dice: &mut Dice) -> Option<(usize, Operation)> {
        let open: Vec<_> = ledger.proposals().open().values().collect();
        let proposal = (!open.is_empty()).then(|| open[dice.index(open.len())])?;
        let is_missing = |of: &usize| {
            let account = &people[*of];
            ledger.validators().is_staked(account) && proposal.votes.get(account) != Some(&ProposalWord::Yes)
        };
        let missing: Vec<usize> = (0..people.len()).filter(is_missing).collect();
        let word = if dice.once_in(12) { ProposalWord::No } else { ProposalWord::Yes };
        let voter = match missing.is_empty() || dice.once_in(8) {
            true => who(ledger, people, dice),
            false => missing[dice.index(missing.len())],
        };
        Some((voter, Operation::Vote { proposal: proposal.id, word }))
    }

    /// Where votes list assets, half of what is asked for is a listing.
    fn propose(&self, ledger: &Ledger, dice: &mut Dice) -> Operation {
        let listings = if ledger.parameters().get(Parameter::ListingPolicy) == VOTED { 4 } else { 1 };
        Operation::Propose(Box::new(match dice.below(8) {
            0 => ProposedChange::Close { asset: AssetId(dice.below(ledger.assets().len() as u64) as u32) },
            place if place <= listings => ProposedChange::List(PlainListing {
                issuer: self.issuer,
                symbol: NAMES[dice.index(NAMES.len())].into(),
                decimals: dice.below(4) as u8,
                control: AssetControl::Open,
                least_units: if dice.once_in(8) { 1 } else { 4_096 },
                supply_max: MAX_ISSUED / (1 + dice.below(3)),
                document: Digest([dice.below(3) as u8; 32]),
            }),
            _ => {
                let parameter = Parameter::ALL[dice.index(Parameter::ALL.len())];
                let value = value(parameter, ledger.parameters().get(parameter), dice);
                ProposedChange::Parameter { parameter, value }
            }
        }))
    }
}

/// Mostly somebody who stakes.
fn who(ledger: &Ledger, people: &[Address], dice: &mut Dice) -> usize {
    let staked: Vec<usize> = (0..people.len()).filter(|of| ledger.validators().is_staked(&people[*of])).collect();
    if staked.is_empty() || dice.once_in(10) { dice.index(people.len()) } else { staked[dice.index(staked.len())] }
}

/// Another value of a parameter, some of them too far from the present one.
fn value(parameter: Parameter, now: u64, dice: &mut Dice) -> u64 {
    if parameter == Parameter::ListingPolicy {
        // Mostly what lists assets.
        return [VOTED, VOTED, 1, dice.below(4)][dice.index(4)];
    }
    match dice.below(8) {
        0 => now.saturating_mul(3),
        1 => now / 3,
        2 => now,
        3 | 4 => now.div_ceil(2),
        5 => now + now / 2 + 1,
        _ => now.saturating_mul(2),
    }
}
