//! Transactions laid out for whoever signs without a library: the bytes to sign, the id, and in words what they do.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use primitives::{
    Address, Amount, AssetControl, AssetId, AssetListing, Body, Closing, Digest, ExactSide, HolderRecovery,
    HolderState, KeyHolder, KeySignatures, KeysChange, Life, OfferPlace, OfferReplacement, Operation, PolicySigned,
    PoolKey, PoolOperation, ProposalWord, PublicKey, Reference, ReferenceKind, ReferenceRule, SessionCap,
    SessionOperation, SessionScope, SessionTerms, SessionsFate, Signature, SignedBy, Transaction, TypedData,
    WalletSignature, format_units, policy_salt, slot_of, to_hex,
};

use super::pools::sleep_in_words;
use super::typed_data::{Wanted, described, wanted_body};
use super::unsigned::{SIGNATURE, unsigned, whole};
use super::{Api, parse, venue_words};
use crate::json::{self, ErrorBody, PreparedBody, Symbols};
use crate::kit::{Answered, Failure};

/// The form of a body.
const FORM: &str =
    r#"{"account":"0x…","key":"0x…","operation":{"type":"pay","to":"0x…","asset":"EUR","amount":"1250"}}"#;

/// The bytes that a native transaction is signed over, its id, and what it does.
#[utoipa::path(post, path = "/v1/transactions/prepare",
    request_body(content = String, content_type = "application/json",
        description = "`{\"account\":\"0x…\",\"operation\":{\"type\":\"pay\",…}}`, with `key`, `sequence`, `until`"),
    responses((status = 200, body = PreparedBody), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 413, body = ErrorBody)))]
pub(super) async fn prepare(State(api): State<Api>, body: Result<Bytes, BytesRejection>) -> Answered<PreparedBody> {
    let asked: Wanted = serde_json::from_slice(&whole(body)?)
        .map_err(|error| Failure::malformed(format!("the body is not JSON such as {FORM}: {error}")))?;
    api.blocking(move |api| {
        let key: Option<PublicKey> = asked.key.as_deref().map(|key| parse("key", key)).transpose()?;
        let (body, network) = wanted_body(api, asked, key.as_ref())?;
        let sleeps = sleep_in_words(api, &body.operation);
        let keys = api.backend.account(&body.account).keys.filter(|_| slot_of(body.sequence) == 0);
        let views = api.published().views();
        let mut says = in_words(&body, views.outline().fee, &api.symbols());
        says.extend(sleeps.map(|sleeps| format!(" {sleeps}")));
        if let Some(keys) = keys {
            says.push_str(" Each signature costs a fee.");
            return Ok(Json(for_policy(&body, &keys.last, &network, says)));
        }
        let typed = key.is_none().then(|| described(&body, network));
        let signing_bytes = key.map(|_| format!("0x{}", to_hex(&body.signing_bytes(&network))));
        let signed_by = match key {
            Some(signer) => SignedBy::Key { signer, signature: Signature([0; SIGNATURE]) },
            None => SignedBy::TypedData { network, signature: WalletSignature([0; SIGNATURE]) },
        };
        let transaction = Transaction { body, signed_by };
        let (hash, typed_data) = typed.map(|typed| (typed.hash, typed.typed_data)).unzip();
        Ok(Json(PreparedBody {
            sequence: transaction.body.sequence.to_string(),
            until: transaction.body.until.to_string(),
            id: transaction.id().to_string(),
            says,
            last: None,
            signing_bytes,
            hash,
            typed_data,
            unsigned: unsigned(&transaction),
        }))
    })
    .await?
}

/// What the signers of an account with a policy sign.
fn for_policy(body: &Body, last: &Digest, network: &Digest, says: String) -> PreparedBody {
    let transaction = Transaction::by_policy(body.clone(), *last, KeySignatures::default());
    let bytes = borsh::to_vec(&transaction).expect("writing to memory cannot fail");
    let salt = policy_salt(network, &body.account, last);
    let hex = |bytes: &[u8]| format!("0x{}", to_hex(bytes));
    PreparedBody {
        sequence: body.sequence.to_string(),
        until: body.until.to_string(),
        id: transaction.id().to_string(),
        says,
        last: Some(last.to_string()),
        signing_bytes: Some(hex(&PolicySigned::signing_bytes(body, last, network))),
        hash: Some(hex(&PolicySigned::typed_hash(body, last, network))),
        typed_data: Some(json::typed_data(&TypedData::of(body), body.chain, &salt)),
        // The counts of both lists of signatures follow.
        unsigned: hex(&bytes[..bytes.len() - 8]),
    }
}

/// What a transaction does and costs, for the person who signs it.
fn in_words(body: &Body, fee: Amount, symbols: &Symbols) -> String {
    let Body { account, sequence, until, .. } = body;
    let (account, cost) = (account.checked(), symbols.money(AssetId(0), body.cost(fee)));
    let does = operation_in_words(body, symbols);
    format!(
        "{account} {does}. The fee is {cost}. It has number {sequence}, counts once, and in no block after {until}."
    )
}

/// What a payment is for.
fn what_for(reference: &Reference) -> String {
    match reference.kind {
        ReferenceKind::Text => format!("for {:?}", reference.to_string()),
        ReferenceKind::Uuid => format!("with the UUID {reference}"),
        ReferenceKind::Message => format!("for the message with the hash {reference}"),
        ReferenceKind::Number => format!("with the number {reference}"),
    }
}

/// What becomes of the part of an offer that is not sold at once.
fn life_in_words(life: Life) -> String {
    match life {
        Life::Rests => "rests until it is, or until it is cancelled".into(),
        Life::Until(height) => format!("rests until it is, or is cancelled, or returns after block {height}"),
        Life::OneBatch => "returns after the batch of its block".into(),
    }
}

fn operation_in_words(body: &Body, symbols: &Symbols) -> String {
    let symbol = |asset| symbols.name(asset);
    match &body.operation {
        Operation::CreateAccount { account, key } if *account == body.account => {
            format!("gives control of itself to the key {key}")
        }
        Operation::CreateAccount { account, key } => format!("registers {} under the key {key}", account.checked()),
        &Operation::CreateOffer { sell, buy, amount, limit, life, .. } => format!(
            "sells {} for at least {} {} each; what is not sold {}",
            symbols.money(sell, amount),
            symbols.whole_price(&limit.to_string(), sell, buy),
            symbol(buy),
            life_in_words(life),
        ),
        Operation::Replace(replace) => {
            let OfferReplacement { old, remains, amount, limit, life, .. } = **replace;
            format!(
                "replaces offer {}, of which {} or less rests, by one that sells {} less what was sold meanwhile, for \
                 at least {} {} each; what is not sold {}",
                old.offer,
                symbols.money(old.sell, remains),
                symbols.money(old.sell, amount),
                symbols.whole_price(&limit.to_string(), old.sell, old.buy),
                symbol(old.buy),
                life_in_words(life),
            )
        }
        &Operation::Exact { sell, buy, side, units, bound, .. } => {
            let does = match side {
                ExactSide::Buy => ("buys", symbols.money(buy, units), "most", symbols.money(sell, bound)),
                ExactSide::Sell => ("sells", symbols.money(sell, units), "least", symbols.money(buy, bound)),
            };
            let (verb, units, end, bound) = does;
            format!(
                "{verb} exactly {units} for at {end} {bound}, at the rate of the batch of its block; or nothing happens, \
                 and what it locked returns"
            )
        }
        Operation::Cancel(places) => {
            let named = |&OfferPlace { sell, buy, limit, offer }: &OfferPlace| {
                let price = symbols.whole_price(&limit.to_string(), sell, buy);
                format!("offer {offer}, which sells {} for at least {price} {} each", symbol(sell), symbol(buy))
            };
            format!("cancels {}", places.iter().map(named).collect::<Vec<_>>().join("; "))
        }
        Operation::Approve { upgrade, .. } => {
            format!("approves rules {} with a notice of {} heights", upgrade.rules, upgrade.notice)
        }
        Operation::Unapprove { rules, .. } => format!("withdraws its approval of rules {rules}"),
        &Operation::PayReferenced { to, asset, amount, ref reference } => {
            format!("pays {} to {} {}", symbols.money(asset, amount), to.checked(), what_for(reference))
        }
        &Operation::Pay { to, asset, amount } => format!("pays {} to {}", symbols.money(asset, amount), to.checked()),
        &Operation::Issue { to, asset, amount } => {
            format!("creates {} for {}", symbols.money(asset, amount), to.checked())
        }
        &Operation::IssueReferenced { to, asset, amount, ref reference } => {
            format!("creates {} for {} {}", symbols.money(asset, amount), to.checked(), what_for(reference))
        }
        &Operation::Burn { asset, amount } => format!("destroys {}", symbols.money(asset, amount)),
        Operation::Stake(stake) => {
            format!("stakes {} for the validator {}", symbols.money(AssetId(0), stake.units), stake.address)
        }
        Operation::Unstake { units } => format!("withdraws {} of its stake", symbols.money(AssetId(0), *units)),
        Operation::Accuse(evidence) => {
            format!("proves that validator {} of epoch {} contradicted itself", evidence.member, evidence.epoch)
        }
        Operation::SealDuty { key, .. } => format!("does its part in making the sealing key {key} of the committee"),
        Operation::Present { epoch } => format!("says that its validator is present, to be drawn for epoch {epoch}"),
        &Operation::Withdraw { to, asset, amount } => {
            format!("moves {} into the payment lane, for the key {to} there", symbols.money(asset, amount))
        }
        Operation::Pool(operation) => pool_words(operation, symbols),
        Operation::Venue(operation) => venue_words::in_words(operation, symbols),
        Operation::Session(operation) => session_words(operation, symbols),
        Operation::Lane(_) => "posts about the payment lane".into(),
        Operation::SetKeys(set) => keys_words("gives", &set.change, set.signatures.len()),
        Operation::RecoverKeys(recover) => keys_words("recovers with", &recover.change, recover.signatures.len()),
        Operation::CompleteKeys { account } => format!("completes the change of keys of {}", account.checked()),
        Operation::SetReceiving { references: ReferenceRule::Required } => {
            "takes no payment without a reference from the next block on".into()
        }
        Operation::SetReceiving { references: ReferenceRule::Optional } => {
            "takes payments without a reference, too, from the next block on".into()
        }
        Operation::ListAsset(listing) => listing_words(listing),
        Operation::CloseAsset { asset, closing: Closing::Announce } => {
            format!("announces that {} closes: when the notice is over it can be paid, but not traded", symbol(*asset))
        }
        Operation::CloseAsset { asset, closing: Closing::Revoke } => {
            format!("takes back that {} closes", symbol(*asset))
        }
        Operation::Propose(change) => json::proposed_words(change, symbols),
        Operation::Vote { proposal, word: ProposalWord::Yes } => format!("votes for the proposal {proposal}"),
        Operation::Vote { proposal, word: ProposalWord::No } => format!("votes against the proposal {proposal}"),
        Operation::SetHolder { asset, account, state, reference } => {
            holder_words(*state, &symbol(*asset), account, &reference.to_string())
        }
        Operation::Recover(recovery) => {
            let HolderRecovery { asset, from, to, amount, reference } = &**recovery;
            let (units, from, to) = (symbols.money(*asset, *amount), from.checked(), to.checked());
            format!("recovers {units} of the frozen holder {from}, as the issuer, and gives them to {to}: {reference}")
        }
        Operation::Sealed(envelope) => {
            let (bytes, key) = (envelope.size().bytes(), envelope.key);
            format!("sends a sealed envelope of {bytes} bytes, which the committee's key {key} opens")
        }
    }
}

/// What an issuer says of a holder, in words.
fn holder_words(state: HolderState, symbol: &str, account: &Address, reference: &str) -> String {
    let account = account.checked();
    match state {
        HolderState::Frozen => format!(
            "freezes {account} in {symbol}, as the issuer: it neither spends, buys nor receives it, its offers end and its \
             shares of pools are paid out: {reference}"
        ),
        HolderState::Open => format!("lets {account} hold and move {symbol}, as the issuer: {reference}"),
    }
}

/// A listing in words.
fn listing_words(listing: &AssetListing) -> String {
    let AssetListing { symbol, decimals, control, least_units, supply_max, document, fees } = listing;
    let control = match control {
        AssetControl::Open => "",
        AssetControl::Freezable => "The issuer freezes holders. ",
        AssetControl::Admitted => "The issuer freezes holders, and only those hold it that it admits. ",
        AssetControl::Recoverable => "The issuer freezes holders, and recovers units of those frozen for long. ",
        AssetControl::AdmittedRecoverable => {
            "The issuer freezes holders, recovers units of those frozen for long, and only those hold it that it admits. "
        }
    };
    let document = match *document == Digest::default() {
        true => "no document says what it is".into(),
        false => format!("the document of digest {document} says what it is"),
    };
    format!(
        "lists an asset {symbol}, with a point and its number behind it, which the account issues: {decimals} decimals, \
         at most {} {symbol}, offers of at least {} {symbol}; {document}. {control}It pays {fees} fees for that",
        format_units(*supply_max, *decimals),
        format_units(*least_units, *decimals),
    )
}

/// A change of keys in words.
fn keys_words(does: &str, change: &KeysChange, signatures: usize) -> String {
    let KeysChange { account, policy, sessions, .. } = change;
    let signers: Vec<String> =
        policy.signers().map(|(one, weight)| format!("{} of weight {weight}", named(one))).collect();
    let guardians: Vec<String> = policy.guards().map(named).collect();
    let guarded = match &guardians[..] {
        [] => "nobody recovers it".into(),
        some => format!("{} of the guardians {} recover it", policy.guardians, some.join(", ")),
    };
    let fate = if *sessions == SessionsFate::Keep { "stay" } else { "close" };
    format!(
        "{does} {} a policy with the signers {}; weight {} spends, weight {} governs; {guarded}; later changes wait {} \
         heights; its session keys {fate}. {signatures} have signed it",
        account.checked(),
        signers.join(", "),
        policy.moves,
        policy.governs,
        policy.delay,
    )
}

fn named(holder: KeyHolder) -> String {
    match holder {
        KeyHolder::Key(key) => format!("key {key}"),
        KeyHolder::Wallet(wallet) => format!("wallet {}", wallet.checked()),
    }
}

fn session_words(operation: &SessionOperation, symbols: &Symbols) -> String {
    match operation {
        SessionOperation::Authorize { terms, .. } => {
            let SessionTerms { slot, key, scope, until, alive, caps } = terms;
            let may = match scope {
                SessionScope::Cancel => "cancel its offers",
                SessionScope::Trade => "cancel its offers and trade",
                SessionScope::Duty => "cancel its offers, approve rules, accuse, and post duties of the lane",
                SessionScope::Control => "cancel its offers, and freeze holders of assets that it issues",
            };
            // Of an asset that a key of this scope freezes holders of, its cap counts them.
            let cap = |cap: &SessionCap| match *scope == SessionScope::Control && cap.asset.0 > 0 {
                true => format!("{} holders of {}", cap.units, symbols.name(cap.asset)),
                false => symbols.money(cap.asset, cap.units),
            };
            let caps: Vec<String> = caps.iter().map(cap).collect();
            let caps = if caps.is_empty() { "nothing".into() } else { format!("at most {}", caps.join(", ")) };
            format!(
                "lets the key {key} {may} in slot {slot} until block {until}, and use {caps}, fees included; the key's \
                 offers end with block {alive} unless that height is raised"
            )
        }
        SessionOperation::Revoke { slot } => format!("ends the session key in slot {slot}, and its offers"),
        SessionOperation::Alive { slot, through: 0 } => {
            format!("ends all offers of the session key in slot {slot}; it may not trade until its timer is raised")
        }
        SessionOperation::Alive { slot, through } => {
            format!("keeps offers of the session key in slot {slot} until the end of block {through}")
        }
    }
}

fn pool_words(operation: &PoolOperation, symbols: &Symbols) -> String {
    let PoolKey { a, b, class } = operation.pool();
    let pool = format!("the pool of {} and {} of fee class {class}", symbols.name(a), symbols.name(b));
    let both = |x, y| format!("{} and {}", symbols.money(a, x), symbols.money(b, y));
    match *operation {
        PoolOperation::Open { x, y, .. } => {
            let (kept_x, kept_y) = ledger::pool_keeps(x, y);
            format!("opens {pool} with {}, of which {} stay in it for ever", both(x, y), both(kept_x, kept_y))
        }
        PoolOperation::Provide { shares, most_a, most_b, .. } => {
            format!("buys {shares} shares of {pool} for at most {}; what is not needed returns", both(most_a, most_b))
        }
        PoolOperation::Leave { shares, least_a, least_b, .. } => {
            format!("gives back {shares} shares of {pool} for at least {}", both(least_a, least_b))
        }
    }
}
