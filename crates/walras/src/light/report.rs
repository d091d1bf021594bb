//! ProvedFact facts and errors of light clients, for people and as JSON.

use client::light::{AssetFacts, LightError, LightRemedy, Pin, ProvedFact};
use ledger::Genesis;
use primitives::venue::VenueId;
use primitives::{Address, Amount, AssetId, Digest, PARAMETERS, TransactionId};
use proofs::{AccountKeys, AccountState, Outcome, ParametersRecord, VenueDeposit, VenueRecord};
use serde_json::{Value, json};

use crate::decimal::from_units;
use crate::wallet::keys_words;

/// A proved fact, as it is printed.
pub struct LightReport {
    pub json: Value,
    pub words: String,
}

impl LightReport {
    /// A fact with its signers.
    fn new<T>(proved: &ProvedFact<T>, mut fact: Value, words: &str) -> LightReport {
        let more = json!({
            "height": proved.height,
            "time_ms": proved.time_ms,
            "signed_by": proved.signed_by,
            "validators": proved.validators,
            "epoch": proved.epoch,
            "witnesses": proved.witnesses,
            "begun_with": proved.begun_with.name(),
        });
        let (Some(fields), Value::Object(more)) = (fact.as_object_mut(), more) else { unreachable!("objects") };
        fields.extend(more);
        LightReport { json: fact, words: format!("{words}\n{}", signers(proved)) }
    }
}

/// Who signed a proved fact.
fn signers<T>(proved: &ProvedFact<T>) -> String {
    let ProvedFact { signed_by, validators, epoch, .. } = proved;
    let witnesses = match proved.witnesses {
        0 => String::new(),
        count => format!(" Witnesses that show the same: {count}."),
    };
    format!("Signed by {signed_by} of the {validators} validators of epoch {epoch}.{witnesses}")
}

/// Symbol and decimals of an asset, as the genesis has them. One that was listed after it is told by its number, and
/// its amounts in units: `walras light asset` proves what it is.
fn listed(genesis: &Genesis, asset: AssetId) -> (String, u8) {
    let known = genesis.assets.get(asset.0 as usize);
    known.map_or_else(|| (format!("asset {asset}"), 0), |known| (known.symbol.clone(), known.decimals))
}

pub fn asset(number: AssetId, proved: &ProvedFact<AssetFacts>) -> LightReport {
    let (record, terms) = &proved.fact;
    let listed = terms.as_ref().and_then(|terms| terms.listed);
    let closes = terms.as_ref().and_then(|terms| terms.closes);
    let end = closes.map_or_else(String::new, |last| format!(", trades up to height {last}"));
    let most = listed.map_or_else(String::new, |listed| format!(" of at most {}", listed.supply_max));
    let words = match record {
        None => format!("there is no asset {number} at height {}", proved.height),
        Some(asset) => format!(
            "asset {number} is {} with {} decimals, issued by {}: {} units{most} exist at height {}{end}",
            asset.symbol, asset.decimals, asset.issuer, asset.issued, proved.height
        ),
    };
    let record = record.as_ref().map(|asset| {
        json!({
            "symbol": asset.symbol,
            "decimals": asset.decimals,
            "issuer": asset.issuer.to_string(),
            "issued": asset.issued.to_string(),
            "supply_max": listed.map(|listed| listed.supply_max.to_string()),
            "document": listed.map(|listed| listed.document.to_string()),
            "closes": closes,
        })
    });
    LightReport::new(proved, json!({"asset": number.0, "record": record}), &words)
}

fn money(genesis: &Genesis, asset: AssetId, units: Amount) -> String {
    let (symbol, decimals) = listed(genesis, asset);
    format!("{} {symbol}", from_units(units, decimals))
}

pub fn account(address: &Address, proved: &ProvedFact<Option<AccountState>>, genesis: &Genesis) -> LightReport {
    let (state, height) = (proved.fact.as_ref(), proved.height);
    let symbol = |asset: AssetId| listed(genesis, asset).0.to_string();
    let spendable = state.map(|state| {
        let amounts = state.balances.iter().map(|(asset, units)| (symbol(*asset), json!(units.to_string())));
        amounts.collect::<serde_json::Map<_, _>>()
    });
    let words = match state {
        None => format!("{address} does not exist at height {height}"),
        Some(state) => {
            let mut held: Vec<(String, String)> =
                state.balances.iter().map(|(asset, units)| (symbol(*asset), money(genesis, *asset, *units))).collect();
            held.sort_unstable();
            let held: Vec<String> = held.into_iter().map(|(_, money)| money).collect();
            let held = if held.is_empty() { "nothing".into() } else { held.join(", ") };
            format!("{address} can spend {held} at height {height}")
        }
    };
    let fact = json!({
        "account": address.to_string(),
        "exists": state.is_some(),
        "spendable": spendable,
        "state_root": proved.state.to_string(),
    });
    LightReport::new(proved, fact, &words)
}

/// The policy of an account, or its absence.
pub fn keys(address: &Address, proved: &ProvedFact<Option<AccountKeys>>) -> LightReport {
    let keys = proved.fact.as_ref().map(doors::json::account_keys);
    let words = match &keys {
        None => format!("{address} has no policy at height {}: its own key signs alone", proved.height),
        Some(keys) => format!("{address} at height {}\n{}", proved.height, keys_words(keys).trim_end()),
    };
    let fact = json!({"account": address.to_string(), "keys": keys, "state_root": proved.state.to_string()});
    LightReport::new(proved, fact, &words)
}

/// The parameters of the chain, in force and to come.
pub fn parameters(proved: &ProvedFact<Option<ParametersRecord>>) -> LightReport {
    let named = |values: &[u64]| -> serde_json::Map<String, Value> {
        PARAMETERS.iter().zip(values).map(|(name, value)| ((*name).into(), value.to_string().into())).collect()
    };
    let coming = |(acts, values): &(u64, [u64; PARAMETERS.len()])| json!({"acts": acts, "values": named(values)});
    let record = proved.fact.as_ref();
    let words = record.map_or_else(
        || {
            format!(
                "at height {} nobody has proposed anything yet: the parameters are those of the genesis",
                proved.height
            )
        },
        |record| {
            let mut lines = vec![format!("parameters at height {}", proved.height)];
            let line = |(name, value): (&&str, &u64)| format!("  {name:<16} {value:>20}");
            lines.extend(PARAMETERS.iter().zip(&record.now).map(line));
            let mut before = &record.now;
            for (acts, values) in &record.coming {
                let changed = PARAMETERS.iter().zip(values).zip(before).filter(|((_, new), old)| new != old);
                let changed: Vec<String> = changed.map(|((name, new), _)| format!("{name} is {new}")).collect();
                lines.push(format!("from height {acts} on: {}", changed.join(", ")));
                before = values;
            }
            lines.join("\n")
        },
    );
    let fact = json!({
        "first": record.map(|record| named(&record.first)),
        "now": record.map(|record| named(&record.now)),
        "coming": record.map(|record| record.coming.iter().map(coming).collect::<Vec<_>>()),
        "state_root": proved.state.to_string(),
    });
    LightReport::new(proved, fact, &words)
}

pub fn transaction(id: &TransactionId, proved: &ProvedFact<Option<Outcome>>) -> LightReport {
    let refusal = proved.fact.map(|outcome| outcome.refusal());
    let code = refusal.map(|refusal| refusal.map_or("committed", |refusal| refusal.code()));
    let words = match refusal {
        None => format!("{id} is not in block {}", proved.height),
        Some(None) => format!("{id} is committed in block {}", proved.height),
        Some(Some(refusal)) => format!("{id} is refused in block {}: {}", proved.height, refusal.code()),
    };
    let fact = json!({
        "transaction": id.to_string(),
        "outcome": code,
        "receipts_root": proved.receipts.to_string(),
    });
    LightReport::new(proved, fact, &words)
}

/// A deposit, or its absence.
pub fn deposit(
    address: &Address,
    venue: VenueId,
    asset: AssetId,
    proved: &ProvedFact<Option<VenueDeposit>>,
    genesis: &Genesis,
) -> LightReport {
    let VenueDeposit { free, leaving } = proved.fact.unwrap_or_default();
    let waits =
        leaving.map_or(String::new(), |leaving| format!(" and {} that leaves", money(genesis, asset, leaving.units)));
    let words = format!(
        "{address} has {} free{waits} at venue {venue} at height {}",
        money(genesis, asset, free),
        proved.height
    );
    let leaving = leaving.map(|leaving| json!({"units": leaving.units.to_string(), "since_height": leaving.since}));
    let fact = json!({
        "venue": venue,
        "account": address.to_string(),
        "asset": listed(genesis, asset).0,
        "free": free.to_string(),
        "leaving": leaving,
        "state_root": proved.state.to_string(),
    });
    LightReport::new(proved, fact, &words)
}

/// A venue, or its absence.
pub fn venue(venue: VenueId, proved: &ProvedFact<Option<VenueRecord>>, genesis: &Genesis) -> LightReport {
    let words = match &proved.fact {
        None => format!("there is no venue {venue} at height {}", proved.height),
        Some(record) => format!(
            "venue {venue} of {} has a bond of {} and {} fills in incarnation {} at height {}",
            record.owner,
            money(genesis, AssetId(0), record.bond),
            record.fills.count(),
            record.incarnation,
            proved.height
        ),
    };
    let record = proved.fact.as_ref().map(|record| {
        json!({
            "owner": record.owner.to_string(),
            "operator": record.operator.account.to_string(),
            "incarnation": record.incarnation,
            "report_keys": record.report_keys.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "fills": record.fills.count().to_string(),
            "peaks": record.fills.peaks().iter().map(Digest::to_string).collect::<Vec<_>>(),
            "bond": record.bond.to_string(),
            "is_convicted": record.judged > record.incarnation,
        })
    });
    LightReport::new(proved, json!({"venue": venue, "record": record, "state_root": proved.state.to_string()}), &words)
}

pub fn pinned(proved: &ProvedFact<Pin>) -> LightReport {
    let said = LightReport::new(proved, json!({ "pin": proved.fact.to_string() }), "");
    LightReport { words: proved.fact.to_string(), ..said }
}

/// An error of a light client, with what to do about it on the command line.
pub fn advised(error: LightError) -> anyhow::Error {
    match advice(error.remedy()) {
        Some(advice) => anyhow::anyhow!("{error}. {advice}"),
        None => error.into(),
    }
}

/// What to do, on the command line; `None` if the error says it.
pub fn advice(remedy: LightRemedy) -> Option<&'static str> {
    Some(match remedy {
        LightRemedy::AsSaid => return None,
        LightRemedy::AnotherNode => "Give another --server",
        LightRemedy::NewPin => {
            "Ask somebody you trust for a pin (`walras light pin` at a node of theirs), and give it as --trust \
             HEIGHT:DIGEST"
        }
        LightRemedy::OtherStart => "Omit --trust or --remember, or ask for a later height",
        LightRemedy::Witnesses => "Give one or more --witness that show the same block",
        LightRemedy::Clock => "Ask another --server, set the clock, or accept it with a larger --max-age",
        LightRemedy::OtherMemory => "Give another --remember, or the matching genesis",
        LightRemedy::Later => "Try again later",
    })
}

#[cfg(test)]
mod tests {
    use client::light::Beginning;
    use ledger::Listing;
    use proofs::{Refusal, Window};

    use super::*;

    fn proved<T>(fact: T) -> ProvedFact<T> {
        let (state, receipts) = (Digest([1; 32]), Digest([2; 32]));
        let (time_ms, begun_with) = (5, Beginning::Genesis);
        ProvedFact {
            fact,
            height: 7,
            time_ms,
            state,
            receipts,
            signed_by: 3,
            validators: 4,
            epoch: 1,
            witnesses: 0,
            begun_with,
        }
    }

    #[test]
    fn people_read_decimals() {
        let (issuer, alice) = (Address([9; 20]), Address([0x11; 20]));
        let assets = vec![Listing::new("USD", 2, issuer), Listing::new("BTC", 8, issuer)];
        let genesis = Genesis { assets, ..Genesis::default() };
        let balances = vec![(AssetId(0), 5), (AssetId(1), 150_000_000)];
        let state = AccountState {
            address: alice,
            key: None,
            window: Window::default(),
            balances,
            evm: None,
            sessions: None,
            needs_reference: false,
        };
        let rich = account(&alice, &proved(Some(state)), &genesis);
        let expected =
            format!("{alice} can spend 1.5 BTC, 0.05 USD at height 7\nSigned by 3 of the 4 validators of epoch 1.");
        assert_eq!(rich.words, expected);
        assert_eq!(rich.json["spendable"], json!({"BTC": "150000000", "USD": "5"}));
        assert_eq!((&rich.json["height"], &rich.json["begun_with"]), (&json!(7), &json!("genesis")));
        let absent = account(&alice, &proved(None), &genesis);
        assert!(absent.words.starts_with(&format!("{alice} does not exist at height 7")), "{}", absent.words);
        assert_eq!((&absent.json["exists"], &absent.json["spendable"]), (&json!(false), &Value::Null));
        let id: TransactionId = Digest([0x22; 32]);
        let refused = transaction(&id, &proved(Some(Outcome::Refused(Refusal::OVERDRAFT))));
        assert!(refused.words.starts_with(&format!("{id} is refused in block 7: overdraft")), "{}", refused.words);
        assert_eq!(transaction(&id, &proved(None)).json["outcome"], Value::Null);
        assert_eq!(transaction(&id, &proved(Some(Outcome::Applied))).json["outcome"], "committed");
    }
}
