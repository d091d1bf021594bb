//! The parameters of a chain, and what is proposed about them.

use api::{ChangedParameterBody, ComingChangeBody, ParameterBody, ParametersBody, ProposalBody};
use ledger::{Coming, OpenProposal, PARAMETER_PAUSE, Parameters};
use primitives::{
    Address, Digest, LaneAssetTerms, Operation, Parameter, PlainListing, ProposalWord, ProposedChange, format_units,
};
use readers::Outline;

use super::Symbols;

/// The body for an outline.
pub fn parameters(outline: &Outline, symbols: &Symbols) -> ParametersBody {
    let Outline { height, charter, ballot, parameters: now, .. } = outline;
    let first = ballot.record().map_or(*now, |record| record.first);
    let parameter = |one: Parameter| {
        let bounds = first.bounds(one);
        ParameterBody {
            parameter: one.name().into(),
            value: now.get(one).to_string(),
            least: bounds.start().to_string(),
            most: bounds.end().to_string(),
            rests_until: ballot.changed(one).map(|last| last.saturating_add(PARAMETER_PAUSE)),
        }
    };
    let befores = [now].into_iter().chain(ballot.coming().iter().map(|coming| &coming.values));
    let operator = charter.terms.operator;
    ParametersBody {
        height: *height,
        operator: (operator != Address::default()).then(|| operator.to_string()),
        parameters: Parameter::ALL.into_iter().map(parameter).collect(),
        coming: befores.zip(ballot.coming()).map(|(before, coming)| comes(before, coming, symbols)).collect(),
        proposals: ballot.open().iter().map(|(proposer, open)| proposal(outline, proposer, open, symbols)).collect(),
    }
}

fn comes(before: &Parameters, coming: &Coming, symbols: &Symbols) -> ComingChangeBody {
    let changed = Parameter::ALL.into_iter().filter(|one| before.get(*one) != coming.values.get(*one));
    let value = |one: Parameter| coming.values.get(one).to_string();
    ComingChangeBody {
        acts: coming.acts,
        parameters: changed
            .map(|one| ChangedParameterBody { parameter: one.name().into(), value: value(one) })
            .collect(),
        lists: coming.lists.iter().map(|listing| listing.symbol.clone()).collect(),
        closes: coming.closes.iter().map(|asset| symbols.name(*asset)).collect(),
        lane: coming.lane.iter().map(|terms| symbols.name(terms.asset)).collect(),
    }
}

fn proposal(outline: &Outline, proposer: &Address, open: &OpenProposal, symbols: &Symbols) -> ProposalBody {
    let support = open.support(&outline.validators);
    let say = |word: ProposalWord| {
        let accounts = open.votes.iter().filter(|(_, said)| **said == word);
        accounts.map(|(account, _)| account.to_string()).collect()
    };
    ProposalBody {
        id: open.id.to_string(),
        proposer: proposer.to_string(),
        change: symbols.operation(&Operation::Propose(Box::new(open.change.clone()))),
        words: proposed_words(&open.change, symbols),
        boundaries_left: open.boundaries_left(),
        seats: support.seats,
        seats_needed: support.seats_needed,
        all_seats: support.all_seats,
        stake: support.stake.to_string(),
        all_stake: support.all_stake.to_string(),
        yes: say(ProposalWord::Yes),
        no: say(ProposalWord::No),
    }
}

/// Terms of an asset in the lane, in words.
fn lane_words(terms: &LaneAssetTerms, symbols: &Symbols) -> String {
    let amount = |units| symbols.money(terms.asset, units);
    let enters = if terms.deposits { "deposits are taken" } else { "deposits are refused, and what is in it leaves" };
    let leaves = match terms.is_limited() {
        true => format!(
            "at most {} leaves at once, and {} more at each height",
            amount(terms.outflow_most),
            amount(terms.outflow_per_height)
        ),
        false => "no limit on what leaves".into(),
    };
    let (name, least, fee) = (symbols.name(terms.asset), amount(terms.least_units), amount(terms.fee));
    format!("{name}, with outputs of at least {least}, a fee of {fee} for a payment: {enters}; {leaves};")
}

/// What is proposed, in words.
pub fn proposed_words(change: &ProposedChange, symbols: &Symbols) -> String {
    match change {
        ProposedChange::Parameter { parameter, value } => {
            format!("proposes {value} for the parameter {} of the chain; validators vote on it", parameter.name())
        }
        ProposedChange::List(PlainListing { issuer, symbol, decimals, least_units, supply_max, document, .. }) => {
            let document = match *document == Digest::default() {
                true => "no document says what it is".into(),
                false => format!("the document of digest {document} says what it is"),
            };
            format!(
                "proposes an asset {symbol}, which {} issues: {decimals} decimals, at most {} {symbol}, offers of at \
                 least {} {symbol}; {document}; validators vote on it",
                issuer.checked(),
                format_units(*supply_max, *decimals),
                format_units(*least_units, *decimals),
            )
        }
        ProposedChange::Close { asset } => {
            format!("proposes that {} closes, whatever its issuer says; validators vote on it", symbols.name(*asset))
        }
        ProposedChange::Lane(terms) => format!(
            "proposes that later epochs of the payment lane carry {} validators vote on it",
            lane_words(terms, symbols)
        ),
    }
}

#[cfg(test)]
mod tests {
    use ledger::{Genesis, Ledger, Listing};
    use primitives::{AssetId, Fraction};

    use super::*;

    #[test]
    fn parameters_are_told_with_their_bounds() {
        let assets = vec![Listing::new("USD", 2, Address([1; 20]))];
        let genesis = Genesis { fee: 5, mu: Fraction::power_of_two(10), assets, ..Genesis::default() };
        let outline = Outline::of(&Ledger::new(&genesis).expect("sound"));
        let body = parameters(&outline, &Symbols::of(&outline.assets));
        let fee = &body.parameters[0];
        assert_eq!((fee.parameter.as_str(), fee.value.as_str()), ("fee", "5"));
        assert_eq!((fee.least.as_str(), fee.most.as_str(), fee.rests_until), ("1", "500", None));
        assert_eq!((body.parameters.len(), body.coming.len(), body.proposals.len()), (Parameter::ALL.len(), 0, 0));
        let words = proposed_words(&ProposedChange::Close { asset: AssetId(0) }, &Symbols::of(&outline.assets));
        assert!(words.contains("USD closes"), "{words}");
    }
}
