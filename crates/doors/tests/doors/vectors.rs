//! The test vectors of `docs/specification.md`: every operation, at the limits of its fields. This test generates the
//! file (`WALRAS_WRITE_VECTORS=1`) and compares with it; a program in another language compares it with the text.

use std::path::Path;

use ledger::{Genesis, Ledger, Listing, Outcome, PoolTerms, RootPart, Roots, Signatures};
use primitives::{
    Address, AssetControl, AssetId, AssetListing, Body, BoxSize, ChangedBy, ClientId, Closing, Contradiction, Digest,
    EnvelopeBytes, Evidence, ExactSide, Fraction, HolderRecovery, HolderState, KeyPolicy, KeySignatures, KeySigner,
    KeysChange, LaneAssetTerms, Life, OfferPlace, OfferReplacement, Operation, Parameter, PlainListing, PolicySigned,
    PoolKey, PoolOperation, Price, ProposalWord, Proposed, ProposedChange, PublicKey, REFERENCE_RULES, RecoverKeys,
    Reference, ReferenceKind, ReferenceRule, RoundProposed, RoundValue, RoundVoted, SESSION_SLOTS_MAX, Scope,
    SecretKey, SessionCap, SessionOperation, SessionScope, SessionTerms, SessionsFate, SetKeys, SignedBy, Stake,
    SubBlock, Superblock, Transaction, TypedData, Upgrade, VoteKind, WalletKey, WalletSigner, policy_salt,
    session_possession_bytes, to_hex,
};
use serde_json::{Value, json};

use crate::parameter_proofs::parameter_proof_vectors;

const NETWORK: Digest = Digest([0x4e; 32]);

pub fn key(number: u8) -> SecretKey {
    SecretKey::from_seed(std::array::from_fn(|at| number.wrapping_mul(31).wrapping_add(at as u8)))
}

fn price(text: &str) -> Price {
    text.parse().expect("a price")
}

fn offer(sell: u32, buy: u32, amount: u64, limit: &str) -> Operation {
    Operation::offer(AssetId(sell), AssetId(buy), amount, price(limit))
}

fn living(operation: Operation, life: Life) -> Operation {
    let Operation::CreateOffer { sell, buy, amount, limit, client, .. } = operation else { unreachable!("an offer") };
    Operation::CreateOffer { sell, buy, amount, limit, life, client }
}

fn cancel(sell: u32, buy: u32, limit: &str, offer: u64) -> Operation {
    Operation::cancel(AssetId(sell), AssetId(buy), price(limit), offer)
}

fn place(sell: u32, buy: u32, limit: &str, offer: u64) -> OfferPlace {
    OfferPlace { sell: AssetId(sell), buy: AssetId(buy), limit: price(limit), offer }
}

fn pay(to: [u8; 20], asset: u32, amount: u64) -> Operation {
    Operation::Pay { to: Address(to), asset: AssetId(asset), amount }
}

fn stake(units: u64, address: &str, chain: u64, account: &Address, validator: u8) -> Operation {
    Operation::Stake(Box::new(Stake::new(units, address.into(), chain, account, &key(validator))))
}

fn accuse(epoch: u64, member: u8, height: u64, contradiction: Contradiction) -> Operation {
    Operation::Accuse(Box::new(Evidence { epoch, member, height, contradiction }))
}

fn proposals(epoch: u64, member: u8, height: u64) -> Contradiction {
    let scope = Scope { network: NETWORK, epoch };
    Contradiction::Proposals([(1, 100), (2, u32::MAX)].map(|(byte, length)| {
        let payload = Digest([byte; 32]);
        let signature = key(member).sign(&scope.proposal(height, member, &payload, length).0);
        Proposed { payload, length, signature }
    }))
}

fn commits(epoch: u64, member: u8, height: u64) -> Contradiction {
    let scope = Scope { network: NETWORK, epoch };
    Contradiction::Commits([3, 4].map(|byte| {
        let (superblock, root) = (Digest([byte; 32]), Digest([byte + 8; 32]));
        let signature = key(member).sign(&scope.commit(height, &superblock, &root).0);
        primitives::Committed { superblock, root, signature }
    }))
}

fn votes(epoch: u64, member: u8, height: u64, round: u32, kind: VoteKind) -> Contradiction {
    let scope = Scope { network: NETWORK, epoch };
    let votes = [None, Some(RoundValue { slot: 2, digest: Digest([5; 32]) })].map(|value| {
        let signature = key(member).sign(&scope.round_vote(height, round, kind, value.as_ref()).0);
        RoundVoted { value, signature }
    });
    Contradiction::RoundVotes { round, kind, votes }
}

fn round_proposals(epoch: u64, member: u8, height: u64, round: u32) -> Contradiction {
    let scope = Scope { network: NETWORK, epoch };
    let proposals = [(6, None), (7, Some(round.saturating_sub(1)))].map(|(byte, valid_round)| {
        let value = RoundValue { slot: member, digest: Digest([byte; 32]) };
        let signature = key(member).sign(&scope.round_proposal(height, round, &value, valid_round).0);
        RoundProposed { value, valid_round, signature }
    });
    Contradiction::RoundProposals { round, proposals }
}

fn pool(operation: PoolOperation) -> Operation {
    Operation::Pool(Box::new(operation))
}

fn exact(sell: u32, buy: u32, side: ExactSide, units: u64, bound: u64) -> Operation {
    let (sell, buy) = (AssetId(sell), AssetId(buy));
    Operation::Exact { sell, buy, side, units, bound, client: ClientId([0xe5; 16]) }
}

fn session(operation: SessionOperation) -> Operation {
    Operation::Session(Box::new(operation))
}

/// A key that agrees to act for the account.
fn authorize(account: &Address, slot: u32, number: u8, scope: SessionScope, caps: u32) -> SessionOperation {
    let public = key(number).public();
    let possession = key(number).sign(&session_possession_bytes(&NETWORK, account, slot, &public));
    let cap = |asset: u32| SessionCap { asset: AssetId(asset), units: 1_000 << asset };
    let terms =
        SessionTerms { slot, key: public, scope, until: 1 << 33, alive: 600, caps: (0..caps).map(cap).collect() };
    SessionOperation::Authorize { terms, possession }
}

fn referenced(kind: ReferenceKind, bytes: &[u8]) -> Operation {
    let reference = Reference { kind, bytes: bytes.into() };
    Operation::PayReferenced { to: Address([0x33; 20]), asset: AssetId(1), amount: 1_250, reference }
}

fn wallet(number: u8) -> WalletKey {
    WalletKey::from_bytes([number; 32]).expect("in range")
}

/// The policy of a treasury of five with a threshold of three, one of them a wallet, and two guardians.
fn treasury() -> KeyPolicy {
    let mut keys: Vec<KeySigner> = (1..=4).map(|one| KeySigner { key: key(one).public(), weight: one }).collect();
    keys.sort_by_key(|one| one.key);
    KeyPolicy {
        keys: keys.into(),
        wallets: [WalletSigner { wallet: wallet(7).address(), weight: 255 }].into(),
        moves: 3,
        governs: 260,
        guardian_keys: [key(8).public()].into(),
        guardian_wallets: [wallet(8).address()].into(),
        guardians: 2,
        delay: 1 << 20,
    }
}

/// A change of keys of the account of key 9, with a signature of each kind.
fn change_of_keys(chain: u64, by: ChangedBy, sessions: SessionsFate) -> (KeysChange, KeySignatures) {
    let (account, last) = (key(9).public().address(), Digest([0x1a; 32]));
    let change = KeysChange { account, last, policy: treasury(), sessions };
    let of_wallet = change.sign_typed(by, chain, &NETWORK, &wallet(7));
    let signatures = change.sign(by, &NETWORK, &key(1)).with(&of_wallet);
    (change, signatures)
}

fn keys_operations(chain: u64) -> [Operation; 3] {
    let (change, signatures) = change_of_keys(chain, ChangedBy::Signers, SessionsFate::Keep);
    let set = SetKeys { change, first: key(9).public(), signatures };
    let (change, signatures) = change_of_keys(chain + 1, ChangedBy::Guardians, SessionsFate::Close);
    let recover = RecoverKeys { change, signatures };
    let account = key(9).public().address();
    [Operation::SetKeys(Box::new(set)), Operation::RecoverKeys(Box::new(recover)), Operation::CompleteKeys { account }]
}

/// Proposals at the limits of their fields, and both words about one.
fn voted_on() -> [Operation; 9] {
    let most = (1 << 63) - 1;
    let propose = |change| Operation::Propose(Box::new(change));
    let sets = |parameter, value| propose(ProposedChange::Parameter { parameter, value });
    let lists = |symbol: &str, decimals, supply_max| {
        let (symbol, document, control) = (symbol.into(), Digest([0x2c; 32]), AssetControl::Open);
        let (issuer, least_units) = (key(9).public().address(), 4_096.min(supply_max));
        propose(ProposedChange::List(PlainListing {
            issuer,
            symbol,
            decimals,
            control,
            least_units,
            supply_max,
            document,
        }))
    };
    let carries = |asset, units, (outflow_most, outflow_per_height)| {
        let (asset, deposits) = (AssetId(asset), outflow_most == 0);
        let terms =
            LaneAssetTerms { asset, least_units: units, fee: units, deposits, outflow_most, outflow_per_height };
        propose(ProposedChange::Lane(terms))
    };
    let vote = |word| Operation::Vote { proposal: Digest([0x5a; 32]), word };
    [
        sets(Parameter::Fee, 10_000),
        sets(Parameter::ListingPolicy, u64::MAX),
        lists("EUR", 2, 1_000_000_000),
        lists("WRAPPED-BTC9", 18, most),
        propose(ProposedChange::Close { asset: AssetId(17) }),
        carries(17, 100, (0, 0)),
        carries(u32::MAX, most, (most, 1)),
        vote(ProposalWord::Yes),
        vote(ProposalWord::No),
    ]
}

/// Listings at the limits of their fields, and both words about the end of an asset.
fn listings() -> [Operation; 4] {
    let most = (1 << 63) - 1;
    let listing = |symbol: &str, decimals, supply_max, fees| {
        let (symbol, document, control) = (symbol.into(), Digest([0x2b; 32]), AssetControl::Open);
        let least_units = 4_096.min(supply_max);
        let terms = AssetListing { symbol, decimals, control, least_units, supply_max, document, fees };
        Operation::ListAsset(Box::new(terms))
    };
    let close = |asset, closing| Operation::CloseAsset { asset: AssetId(asset), closing };
    [
        listing("EUR", 2, 1_000_000_000, 10_000_000),
        listing("a-B_09", 18, most, 1 << 40),
        close(17, Closing::Announce),
        close(u32::MAX, Closing::Revoke),
    ]
}

/// What issuers say of holders, a recovery, a listing with controls, and a session key that freezes; there are so many
/// operations before these.
fn controls(before: u8) -> [Operation; 5] {
    let holder = |number: u8| key(number).public().address();
    let reference = |kind, bytes: &[u8]| Reference { kind, bytes: bytes.into() };
    let set = |asset, number, state, reference| Operation::SetHolder {
        asset: AssetId(asset),
        account: holder(number),
        state,
        reference,
    };
    let recovery = HolderRecovery {
        asset: AssetId(u32::MAX),
        from: holder(5),
        to: holder(6),
        amount: (1 << 63) - 1,
        reference: reference(ReferenceKind::Message, &[0xee; 32]),
    };
    let [Operation::ListAsset(mut listing), ..] = listings() else { unreachable!("it is the first") };
    listing.control = AssetControl::AdmittedRecoverable;
    [
        set(17, 5, HolderState::Frozen, reference(ReferenceKind::Text, b"order 7/2026")),
        set(18, 6, HolderState::Open, reference(ReferenceKind::Number, &[9; 8])),
        Operation::Recover(Box::new(recovery)),
        Operation::ListAsset(listing),
        session(authorize(&holder(before + 5), 4, 9, SessionScope::Control, 2)),
    ]
}

/// An envelope whose point is none: its bytes are what is shown here.
fn envelope(size: BoxSize) -> Operation {
    let point = std::array::from_fn(|at| at as u8 + 1);
    let sealed = (0..size.bytes()).map(|at| (at % 251) as u8).collect();
    Operation::Sealed(Box::new(EnvelopeBytes::new(u64::MAX - size as u64, point, sealed).expect("a size")))
}

fn key_of(a: u32, b: u32, class: u8) -> PoolKey {
    PoolKey { a: AssetId(a), b: AssetId(b), class }
}

/// Bodies with the number of the key that signs each.
fn bodies() -> Vec<(u8, Body)> {
    let most = (1 << 63) - 1;
    let own = |number: u8| key(number).public().address();
    let create = |number: u8| Operation::CreateAccount { account: own(number), key: key(number).public() };
    let mut operations = vec![
        create(2),
        create(200),
        // The account itself under a new key.
        Operation::CreateAccount { account: own(3), key: key(4).public() },
        Operation::CreateAccount { account: Address([0xff; 20]), key: PublicKey([0; 32]) },
        pay([0x11; 20], 0, 1),
        pay([0; 20], 1, 1_250),
        pay([0xff; 20], u32::MAX, most),
        pay([1; 20], 256, 65_536),
        pay(own(9).0, 2, 1 << 32),
        pay(own(10).0, 65_536, (1 << 56) + 1),
        Operation::Issue { to: Address([0x22; 20]), asset: AssetId(3), amount: 1_000_000 },
        Operation::Issue { to: own(5), asset: AssetId(0), amount: most },
        Operation::Burn { asset: AssetId(3), amount: 7 },
        Operation::Burn { asset: AssetId(u32::MAX), amount: most },
        Operation::Unstake { units: 1 },
        Operation::Unstake { units: most },
    ];
    for limit in [
        "1",
        "0.000000000000000001",
        "999999999999999990",
        "1.0973",
        "0.1",
        "12345.678901234567",
        "99999999999999999",
        "0.00000000000000000123",
        "100",
        "3.1415926535897932",
    ] {
        operations.push(offer(1, 0, 10_000, limit));
    }
    operations.extend([
        living(offer(0, 1, 1, "1.5"), Life::Until(1 << 33)),
        offer(u32::MAX, 0, most, "2"),
        Operation::CreateOffer {
            sell: AssetId(7),
            buy: AssetId(8),
            amount: 4_096,
            limit: price("0.91"),
            life: Life::OneBatch,
            client: ClientId(std::array::from_fn(|at| at as u8 + 1)),
        },
        cancel(1, 0, "1.0973", 1),
        cancel(0, 1, "1.5", 64),
        cancel(u32::MAX, 7, "0.000000000000000001", u64::MAX),
        Operation::Cancel((0..32).map(|at| place(2, 3 + at, "999999999999999990", 1 << at)).collect()),
    ]);
    for (number, address) in ["a.example:9100", "127.0.0.1:1", "[2001:db8::1]:65535", "x:9"].into_iter().enumerate() {
        let number = number as u8;
        // The following bodies have chain 7 + their position and the account of key position + 1.
        let at = operations.len() as u64;
        operations.push(stake(u64::from(number) * 1_000, address, 7 + at, &own(at as u8 + 1), 100 + number));
    }
    operations.extend([
        accuse(0, 0, 1, proposals(0, 0, 1)),
        accuse(9, 3, 1 << 40, proposals(9, 3, 1 << 40)),
        accuse(1, 1, 2, commits(1, 1, 2)),
        accuse(u64::MAX, 255, u64::MAX, commits(u64::MAX, 255, u64::MAX)),
        accuse(2, 2, 3, votes(2, 2, 3, 0, VoteKind::Prevote)),
        accuse(2, 2, 3, votes(2, 2, 3, u32::MAX, VoteKind::Precommit)),
        accuse(3, 1, 4, round_proposals(3, 1, 4, 0)),
        accuse(3, 1, 4, round_proposals(3, 1, 4, 9)),
    ]);
    let withdraw =
        |number, asset, amount| Operation::Withdraw { to: key(number).public(), asset: AssetId(asset), amount };
    operations.extend([
        withdraw(9, 1, 1_250),
        withdraw(10, u32::MAX, most),
        Operation::Replace(Box::new(OfferReplacement {
            old: place(1, 0, "1.0973", 7),
            remains: most,
            amount: 100,
            limit: price("1.1"),
            life: Life::Until(u64::MAX),
            client: ClientId([0xc1; 16]),
        })),
        Operation::Lane(vec![].into()),
        Operation::Lane((0..=255).collect()),
        pool(PoolOperation::Open { pool: key_of(0, 1, 0), x: 1_080_000, y: 1_000_000 }),
        pool(PoolOperation::Open { pool: key_of(7, u32::MAX, 255), x: most, y: 1 }),
        pool(PoolOperation::Provide { pool: key_of(0, 1, 3), shares: 1 << 23, most_a: most, most_b: 17 }),
        pool(PoolOperation::Leave { pool: key_of(0, 1, 3), shares: u64::MAX, least_a: 0, least_b: most }),
        exact(1, 0, ExactSide::Buy, 1_250, most),
        exact(0, u32::MAX, ExactSide::Sell, most, 1),
    ]);
    for (number, slot, scope, caps) in
        [(60, 1, SessionScope::Trade, 8), (61, SESSION_SLOTS_MAX, SessionScope::Cancel, 1)]
    {
        // The account of the body is that of key position + 1.
        let account = own(operations.len() as u8 + 1);
        operations.push(session(authorize(&account, slot, number, scope, caps)));
    }
    operations.extend([
        session(SessionOperation::Revoke { slot: 3 }),
        session(SessionOperation::Alive { slot: SESSION_SLOTS_MAX, through: 0 }),
        session(SessionOperation::Alive { slot: 1, through: 1 << 40 }),
        Operation::Present { epoch: 1 << 40 },
        Operation::Approve { upgrade: Upgrade { rules: 12, manifest: Digest([0xa5; 32]), notice: 604_800 }, at: 77 },
        Operation::Approve {
            upgrade: Upgrade { rules: u32::MAX, manifest: Digest([0; 32]), notice: u64::MAX },
            at: u64::MAX,
        },
        Operation::Unapprove { rules: 12, at: 1 << 40 },
        referenced(ReferenceKind::Text, b"INV/2026-11 \"~\""),
        referenced(ReferenceKind::Uuid, &[0xab; 16]),
        referenced(ReferenceKind::Message, &[0xff; 32]),
        referenced(ReferenceKind::Number, &[0, 0, 0, 0, 0, 0, 4, 2]),
        Operation::IssueReferenced {
            to: own(5),
            asset: AssetId(3),
            amount: 1_000_000,
            reference: Reference { kind: ReferenceKind::Uuid, bytes: [0xcd; 16][..].into() },
        },
    ]);
    while operations.len() < 64 {
        let at = operations.len() as u64;
        operations.push(pay([at as u8; 20], at as u32, at * at * at));
    }
    operations.extend(keys_operations(7 + operations.len() as u64));
    operations.extend(
        [ReferenceRule::Required, ReferenceRule::Optional].map(|references| Operation::SetReceiving { references }),
    );
    operations.extend(listings());
    operations.extend(voted_on());
    operations.extend(controls(operations.len() as u8));
    operations.push(Operation::SealDuty { key: 1 << 40, post: vec![4] });
    operations.extend(BoxSize::ALL.map(envelope));
    let body = |(at, operation): (usize, Operation)| {
        let number = at as u8 + 1;
        // A presence takes no number, nor does a post about the sealing key.
        let is_numbered = !matches!(operation, Operation::Present { .. } | Operation::SealDuty { .. });
        let sequence = [1, 2, 64, 1 << 32, (1 << 63) - 1][at % 5] * u64::from(is_numbered);
        (number, Body { chain: 7 + at as u64, account: own(number), sequence, until: 50_000, operation })
    };
    operations.into_iter().enumerate().map(body).collect()
}

fn hex(bytes: &[u8]) -> String {
    format!("0x{}", to_hex(bytes))
}

pub fn encoded(value: &impl borsh::BorshSerialize) -> String {
    hex(&borsh::to_vec(value).expect("in memory"))
}

fn operation(operation: &Operation) -> Value {
    match operation {
        Operation::CreateAccount { account, key } => json!({"account": account.to_string(), "key": key.to_string()}),
        Operation::CreateOffer { sell, buy, amount, limit, life, client } => json!({
            "sell": sell.0, "buy": buy.0, "amount": amount.to_string(), "limit": limit.to_string(),
            "life": life.to_string(), "client": client.to_string(),
        }),
        Operation::Replace(replace) => {
            let OfferReplacement { old, remains, amount, limit, life, client } = **replace;
            json!({
                "sell": old.sell.0, "buy": old.buy.0, "oldLimit": old.limit.to_string(), "offer": old.offer.to_string(),
                "remains": remains.to_string(), "amount": amount.to_string(), "limit": limit.to_string(),
                "life": life.to_string(), "client": client.to_string(),
            })
        }
        Operation::Exact { sell, buy, side, units, bound, client } => json!({
            "sell": sell.0, "buy": buy.0, "side": side.name(), "units": units.to_string(),
            "bound": bound.to_string(), "client": client.to_string(),
        }),
        Operation::Cancel(places) => {
            let place = |&OfferPlace { sell, buy, limit, offer }: &OfferPlace| {
                let (limit, offer) = (limit.to_string(), offer.to_string());
                json!({"sell": sell.0, "buy": buy.0, "limit": limit, "offer": offer})
            };
            json!({"offers": places.iter().map(place).collect::<Vec<_>>()})
        }
        Operation::Pay { to, asset, amount } | Operation::Issue { to, asset, amount } => {
            json!({"to": to.to_string(), "asset": asset.0, "amount": amount.to_string()})
        }
        Operation::Burn { asset, amount } => json!({"asset": asset.0, "amount": amount.to_string()}),
        Operation::Stake(stake) => json!({
            "units": stake.units.to_string(),
            "key": stake.key.to_string(),
            "address": stake.address,
            "possession": hex(&stake.possession.0),
        }),
        Operation::Unstake { units } => json!({"units": units.to_string()}),
        Operation::Present { epoch } => json!({"epoch": epoch.to_string()}),
        Operation::SealDuty { key, post } => json!({"key": key.to_string(), "post": hex(post)}),
        Operation::Approve { upgrade, at } => json!({
            "rules": upgrade.rules, "manifest": upgrade.manifest.to_string(), "notice": upgrade.notice.to_string(),
            "at": at.to_string(),
        }),
        Operation::Unapprove { rules, at } => json!({"rules": rules, "at": at.to_string()}),
        Operation::PayReferenced { to, asset, amount, reference }
        | Operation::IssueReferenced { to, asset, amount, reference } => {
            let kind = ["text", "uuid", "message", "number"][reference.kind as usize];
            json!({
                "to": to.to_string(), "asset": asset.0, "amount": amount.to_string(),
                "referenceKind": kind, "reference": hex(&reference.bytes),
            })
        }
        Operation::SetKeys(set) => {
            let mut asked = changed_keys(&set.change, &set.signatures);
            asked["first"] = set.first.to_string().into();
            asked
        }
        Operation::RecoverKeys(recover) => changed_keys(&recover.change, &recover.signatures),
        Operation::CompleteKeys { account } => json!({"changed": account.to_string()}),
        Operation::SetReceiving { references } => json!({"references": REFERENCE_RULES[*references as usize]}),
        Operation::ListAsset(listing) => json!({
            "symbol": listing.symbol, "decimals": listing.decimals, "control": listing.control.name(),
            "leastUnits": listing.least_units.to_string(), "supplyMax": listing.supply_max.to_string(),
            "document": listing.document.to_string(), "fees": listing.fees.to_string(),
        }),
        Operation::CloseAsset { asset, closing } => {
            let closing = if *closing == Closing::Announce { "announce" } else { "revoke" };
            json!({"asset": asset.0, "closing": closing})
        }
        Operation::Propose(change) => match &**change {
            ProposedChange::Parameter { parameter, value } => {
                json!({"parameter": parameter.name(), "value": value.to_string()})
            }
            ProposedChange::List(listing) => json!({
                "issuer": listing.issuer.to_string(), "symbol": listing.symbol, "decimals": listing.decimals,
                "control": listing.control.name(), "leastUnits": listing.least_units.to_string(),
                "supplyMax": listing.supply_max.to_string(), "document": listing.document.to_string(),
            }),
            ProposedChange::Close { asset } => json!({"asset": asset.0}),
            ProposedChange::Lane(terms) => json!({
                "asset": terms.asset.0, "leastUnits": terms.least_units.to_string(), "fee": terms.fee.to_string(),
                "deposits": if terms.deposits { "taken" } else { "refused" },
                "outflowMost": terms.outflow_most.to_string(),
                "outflowPerHeight": terms.outflow_per_height.to_string(),
            }),
        },
        Operation::Vote { proposal, word } => {
            json!({"proposal": proposal.to_string(), "word": if *word == ProposalWord::Yes { "yes" } else { "no" }})
        }
        Operation::SetHolder { asset, account, state, reference } => json!({
            "asset": asset.0, "holder": account.to_string(), "state": state.name(),
            "referenceKind": reference.kind.name(), "reference": hex(&reference.bytes),
        }),
        Operation::Recover(recovery) => json!({
            "asset": recovery.asset.0, "from": recovery.from.to_string(), "to": recovery.to.to_string(),
            "amount": recovery.amount.to_string(), "referenceKind": recovery.reference.kind.name(),
            "reference": hex(&recovery.reference.bytes),
        }),
        Operation::Sealed(envelope) => json!({
            "key": envelope.key.to_string(), "size": envelope.size() as u8, "point": hex(&envelope.point),
            "sealed": hex(envelope.sealed()),
        }),
        Operation::Withdraw { to, asset, amount } => {
            json!({"to": to.to_string(), "asset": asset.0, "amount": amount.to_string()})
        }
        Operation::Lane(post) => json!({"post": hex(post)}),
        Operation::Session(operation) => match &**operation {
            SessionOperation::Authorize { terms, possession } => {
                let cap = |cap: &SessionCap| json!({"asset": cap.asset.0, "units": cap.units.to_string()});
                json!({
                    "slot": terms.slot, "key": terms.key.to_string(), "scope": terms.scope.name(),
                    "ends": terms.until.to_string(), "alive": terms.alive.to_string(),
                    "caps": terms.caps.iter().map(cap).collect::<Vec<_>>(), "possession": hex(&possession.0),
                })
            }
            SessionOperation::Revoke { slot } => json!({"slot": slot}),
            SessionOperation::Alive { slot, through } => json!({"slot": slot, "through": through.to_string()}),
        },
        Operation::Venue(operation) => json!({"operation": encoded(operation)}),
        Operation::Pool(operation) => {
            let PoolKey { a, b, class } = operation.pool();
            let (a, b) = (a.0, b.0);
            match **operation {
                PoolOperation::Open { x, y, .. } => {
                    json!({"a": a, "b": b, "class": class, "x": x.to_string(), "y": y.to_string()})
                }
                PoolOperation::Provide { shares, most_a, most_b, .. } => json!({
                    "a": a, "b": b, "class": class, "shares": shares.to_string(),
                    "mostA": most_a.to_string(), "mostB": most_b.to_string(),
                }),
                PoolOperation::Leave { shares, least_a, least_b, .. } => json!({
                    "a": a, "b": b, "class": class, "shares": shares.to_string(),
                    "leastA": least_a.to_string(), "leastB": least_b.to_string(),
                }),
            }
        }
        Operation::Accuse(evidence) => json!({
            "network": NETWORK.to_string(),
            "epoch": evidence.epoch.to_string(),
            "member": evidence.member,
            "height": evidence.height.to_string(),
            "contradiction": contradiction(&evidence.contradiction),
        }),
    }
}

fn changed_keys(change: &KeysChange, signatures: &KeySignatures) -> Value {
    let KeyPolicy { keys, wallets, moves, governs, guardian_keys, guardian_wallets, guardians, delay } = &change.policy;
    let key = |one: &KeySigner| json!({"key": one.key.to_string(), "weight": one.weight});
    let wallet = |one: &WalletSigner| json!({"wallet": one.wallet.to_string(), "weight": one.weight});
    let signed =
        |one: &primitives::KeySignature| json!({"key": one.key.to_string(), "signature": hex(&one.signature.0)});
    let signed_by_wallet = |one: &primitives::SignedByWallet| {
        let (wallet, signature) = (one.wallet.to_string(), hex(&one.signature.0));
        json!({"wallet": wallet, "signature": signature})
    };
    json!({
        "changed": change.account.to_string(),
        "last": change.last.to_string(),
        "keys": keys.iter().map(key).collect::<Vec<_>>(),
        "wallets": wallets.iter().map(wallet).collect::<Vec<_>>(),
        "move": moves,
        "govern": governs,
        "guardianKeys": guardian_keys.iter().map(|key| json!({"key": key.to_string()})).collect::<Vec<_>>(),
        "guardianWallets":
            guardian_wallets.iter().map(|wallet| json!({"wallet": wallet.to_string()})).collect::<Vec<_>>(),
        "guardians": guardians,
        "delay": delay,
        "sessions": if change.sessions == SessionsFate::Keep { "keep" } else { "close" },
        "keySignatures": signatures.keys.iter().map(signed).collect::<Vec<_>>(),
        "walletSignatures": signatures.wallets.iter().map(signed_by_wallet).collect::<Vec<_>>(),
    })
}

/// A request of an account with a policy: what its keys and its wallets sign, and the transaction with signatures of
/// both kinds.
fn request_vector(body: Body) -> Value {
    let (last, chain) = (Digest([0x2b; 32]), body.chain);
    let wallets = body.sign_typed_for_policy(&last, &NETWORK, &wallet(7));
    let keys = body.sign_for_policy(&last, &NETWORK, &key(2)).with(&body.sign_for_policy(&last, &NETWORK, &key(1)));
    let signatures = wallets.with(&keys);
    let (salt, seeds) = (policy_salt(&NETWORK, &body.account, &last), [1, 2].map(|one| hex(&key(one).to_seed())));
    let transaction = Transaction::by_policy(body.clone(), last, signatures);
    assert!(transaction.is_signed(&NETWORK) && transaction.check().is_ok());
    json!({
        "seeds": seeds,
        "wallet": hex(&[7; 32]),
        "account": body.account.to_string(),
        "network": NETWORK.to_string(),
        "last": last.to_string(),
        "sequence": body.sequence.to_string(),
        "until": body.until.to_string(),
        "salt": salt.to_string(),
        "typed_data": doors::json::typed_data(&TypedData::of(&body), chain, &salt),
        "hash": hex(&PolicySigned::typed_hash(&body, &last, &NETWORK)),
        "signing_bytes": hex(&PolicySigned::signing_bytes(&body, &last, &NETWORK)),
        "transaction": encoded(&transaction),
        "id": transaction.id().to_string(),
    })
}

/// What those sign who agree to a change of keys.
fn consent_vector(by: ChangedBy) -> Value {
    const CHAIN: u64 = 31_337;
    let (change, signatures) = change_of_keys(CHAIN, by, SessionsFate::Close);
    let salt = policy_salt(&NETWORK, &change.account, &change.last);
    json!({
        "seed": hex(&key(1).to_seed()),
        "wallet": hex(&[7; 32]),
        "network": NETWORK.to_string(),
        "by": if by == ChangedBy::Signers { "signers" } else { "guardians" },
        "change": encoded(&change),
        "change_id": change.id(by).to_string(),
        "signing_bytes": hex(&change.signing_bytes(by, &NETWORK)),
        "typed_data": doors::json::typed_data(&TypedData::of_change(&change, by), CHAIN, &salt),
        "hash": hex(&change.typed_hash(by, CHAIN, &NETWORK)),
        "key_signature": hex(&signatures.keys[0].signature.0),
        "wallet_signature": hex(&signatures.wallets[0].signature.0),
    })
}

fn value(value: &RoundValue) -> Value {
    json!({"slot": value.slot, "digest": value.digest.to_string()})
}

fn contradiction(contradiction: &Contradiction) -> Value {
    match contradiction {
        Contradiction::Proposals(both) => json!({"proposals": both.map(|one| json!({
            "payload": one.payload.to_string(), "length": one.length, "signature": hex(&one.signature.0)
        }))}),
        Contradiction::Commits(both) => json!({"commits": both.map(|one| json!({
            "superblock": one.superblock.to_string(), "root": one.root.to_string(), "signature": hex(&one.signature.0)
        }))}),
        Contradiction::RoundVotes { round, kind, votes } => json!({
            "round": round,
            "kind": if *kind == VoteKind::Prevote { "prevote" } else { "precommit" },
            "round_votes": votes.map(|one| json!({
                "value": one.value.as_ref().map(value), "signature": hex(&one.signature.0)
            })),
        }),
        Contradiction::RoundProposals { round, proposals } => json!({
            "round": round,
            "round_proposals": proposals.map(|one| json!({
                "value": value(&one.value), "valid_round": one.valid_round, "signature": hex(&one.signature.0)
            })),
        }),
    }
}

fn vector((number, body): (u8, Body)) -> Value {
    let secret = key(number);
    let transaction: Transaction = body.clone().sign(&NETWORK, &secret);
    let mut asked = operation(&body.operation);
    asked["type"] = body.operation.name().into();
    let SignedBy::Key { signature, .. } = transaction.signed_by else { unreachable!("a key signs") };
    json!({
        "seed": hex(&secret.to_seed()),
        "signer": secret.public().to_string(),
        "account": body.account.to_string(),
        "chain": body.chain.to_string(),
        "network": NETWORK.to_string(),
        "sequence": body.sequence.to_string(),
        "until": body.until.to_string(),
        "operation": asked,
        "body": encoded(&body),
        "signing_bytes": hex(&body.signing_bytes(&NETWORK)),
        "signature": hex(&signature.0),
        "transaction": encoded(&transaction),
        "id": transaction.id().to_string(),
    })
}

/// A transaction that a wallet signed as typed data, one of each kind.
fn typed_vector(body: Body) -> Value {
    const CHAIN: u64 = 31_337;
    let key = [7; 32];
    let wallet = WalletKey::from_bytes(key).expect("in range");
    let body = Body { chain: CHAIN, account: wallet.address(), ..body };
    let data = TypedData::of(&body);
    let transaction = body.clone().sign_typed(NETWORK, &wallet);
    let SignedBy::TypedData { signature, .. } = transaction.signed_by else { unreachable!("a wallet signs") };
    json!({
        "key": hex(&key),
        "account": body.account.to_string(),
        "sequence": body.sequence.to_string(),
        "until": body.until.to_string(),
        "network": NETWORK.to_string(),
        "body": encoded(&body),
        "typed_data": doors::json::typed_data(&data, CHAIN, &NETWORK),
        "hash": hex(&data.hash(CHAIN, &NETWORK)),
        "signature": hex(&signature.0),
        "transaction": encoded(&transaction),
        "id": transaction.id().to_string(),
    })
}

/// Bodies with one of each operation at a venue, from their own vectors.
fn at_venues() -> Vec<Body> {
    let vectors: Value = serde_json::from_str(include_str!("../../../../docs/venue-vectors.json")).expect("vectors");
    let of = |operation: &Value| {
        let hex = operation["bytes"].as_str().expect("bytes").trim_start_matches("0x").as_bytes();
        let digit = |digit: u8| char::from(digit).to_digit(16).expect("a digit") as u8;
        let bytes: Vec<u8> = hex.chunks_exact(2).map(|two| digit(two[0]) << 4 | digit(two[1])).collect();
        let operation = Operation::Venue(borsh::from_slice(&bytes).expect("an operation"));
        Body { chain: 1, account: Address([7; 20]), sequence: 3, until: 50_000, operation }
    };
    vectors["operations"].as_array().expect("a list").iter().map(of).collect()
}

/// The state root at the genesis of a chain, with the parts that it has.
fn root_vector(genesis: &Genesis) -> Value {
    let parts = Roots::of(&Ledger::new(genesis).expect("sound")).parts();
    let part = |part: &RootPart| json!({"tag": part.tag, "root": part.root.to_string()});
    json!({
        "parts": parts.list().iter().map(part).collect::<Vec<_>>(),
        "bytes": encoded(&parts),
        "root": parts.root().to_string(),
    })
}

/// Proofs of policies: of one with a change that waits, of the absence of one, and of that on a chain that has none.
fn key_proof_vectors() -> Vec<Value> {
    let holder = key(9).public().address();
    let assets = vec![Listing::new("USD", 6, Address([9; 20]))];
    let balances = vec![(holder, AssetId(0), 1_000_000)];
    let genesis = Genesis { chain: 7, mu: Fraction::power_of_two(10), assets, balances, ..Genesis::default() };
    let mut ledger = Ledger::new(&genesis).expect("sound");
    let mut roots = Roots::of(&ledger);
    let mut proofs = vec![key_proof(&ledger, &mut roots, &holder)];
    for sequence in 1..=2 {
        let operation = signed_change(&ledger, &holder);
        let body = Body { chain: 7, account: holder, sequence, until: 50_000, operation };
        // The first change gives the account a policy: then several sign together.
        let transaction = match ledger.account_keys(&holder).map(|keys| keys.last) {
            None => body.sign(&ledger.network(), &key(9)),
            Some(last) => {
                let keys = [3, 4].map(|one| body.sign_for_policy(&last, &ledger.network(), &key(one)));
                let [one, other] = keys;
                Transaction::by_policy(body, last, one.with(&other))
            }
        };
        let sub_blocks = vec![SubBlock { native: vec![transaction], ..SubBlock::default() }];
        let (height, parent) = (ledger.height() + 1, ledger.last_block());
        let block = Superblock { height, parent, sub_blocks, ..Superblock::default() };
        let applied = ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
        assert_eq!(applied.outcomes, [Outcome::Applied]);
        roots.apply(&applied.changes);
    }
    proofs.extend([holder, Address([1; 20])].map(|account| key_proof(&ledger, &mut roots, &account)));
    proofs
}

/// The next change of keys of the account of key 9, which all have signed who must.
fn signed_change(ledger: &Ledger, account: &Address) -> Operation {
    let last = ledger.account_keys(account).map_or(Digest::default(), |keys| keys.last);
    let change = KeysChange { account: *account, last, policy: treasury(), sessions: SessionsFate::Keep };
    let by = ChangedBy::Signers;
    let of_wallet = change.sign_typed(by, 7, &ledger.network(), &wallet(7));
    let first = ledger.account_keys(account).is_none().then_some(9);
    let keys = [1, 2, 3, 4].into_iter().chain(first).map(|one| change.sign(by, &ledger.network(), &key(one)));
    let signatures = keys.fold(of_wallet, |all, one| all.with(&one));
    Operation::SetKeys(Box::new(SetKeys { change, first: key(9).public(), signatures }))
}

fn key_proof(ledger: &Ledger, roots: &mut Roots, account: &Address) -> Value {
    let proof = roots.prove_keys(ledger, account);
    let root = roots.parts().root();
    let keys = proof.verify(&root, account).expect("it holds").map(doors::json::account_keys);
    json!({"account": account.to_string(), "root": root.to_string(), "proof": encoded(&proof), "keys": keys})
}

/// A chain without contracts has fewer parts than one with them.
fn root_vectors() -> Vec<Value> {
    let assets = vec![Listing::new("USD", 6, Address([9; 20])), Listing::new("EUR", 6, Address([9; 20]))];
    let balances = vec![(Address([1; 20]), AssetId(0), 1_000_000)];
    let plain = Genesis { chain: 7, mu: Fraction::power_of_two(10), assets, balances, ..Genesis::default() };
    let limits = plain.limits.with_contracts(1);
    let pools = Some(PoolTerms::default());
    [plain.clone(), Genesis { limits, pools, ..plain }].iter().map(root_vector).collect()
}

#[test]
fn the_vectors_are_those_of_the_code() {
    let vectors: Vec<Value> = bodies().into_iter().map(vector).collect();
    assert_eq!(vectors.len(), 97);
    let native = ["create_account", "create_offer", "cancel", "pay", "issue", "burn", "stake", "unstake", "accuse"];
    let later = ["withdraw", "lane", "replace", "open_pool", "provide", "leave", "exact"];
    let sessions = ["authorize_session", "revoke_session", "session_alive"];
    let newest = ["present", "approve", "unapprove", "pay_referenced", "issue_referenced"];
    let keys = ["set_keys", "recover_keys", "complete_keys", "set_receiving", "list_asset", "close_asset"];
    let votes = ["propose_parameter", "propose_listing", "propose_closing", "propose_lane_terms", "vote"];
    let controls = ["set_holder", "recover", "seal_duty", "sealed"];
    let names = native.into_iter().chain(later).chain(sessions).chain(newest).chain(keys).chain(votes).chain(controls);
    for name in names {
        assert!(vectors.iter().any(|vector| vector["operation"]["type"] == name), "{name} has none");
    }
    let mut kinds = std::collections::BTreeSet::new();
    let one_of_each = bodies().into_iter().map(|(_, body)| body).filter(|body| kinds.insert(body.operation.name()));
    let typed: Vec<Value> = one_of_each.chain(at_venues()).map(typed_vector).collect();
    assert_eq!(typed.len(), 58);
    let roots = root_vectors();
    assert_eq!(roots.iter().map(|root| root["parts"].as_array().map_or(0, Vec::len)).collect::<Vec<_>>(), [5, 7]);
    let mut kinds = std::collections::BTreeSet::new();
    let asked = ["pay", "issue", "cancel", "set_keys"];
    let is_asked = |body: &Body| asked.contains(&body.operation.name()) && kinds.insert(body.operation.name());
    let requests: Vec<Value> =
        bodies().into_iter().map(|(_, body)| body).filter(is_asked).map(request_vector).collect();
    let consents = [ChangedBy::Signers, ChangedBy::Guardians].map(consent_vector);
    let all = json!({
        "vectors": vectors, "typed_data": typed, "state_roots": roots, "requests": requests, "consents": consents,
        "key_proofs": key_proof_vectors(), "parameter_proofs": parameter_proof_vectors(),
        "holder_proofs": crate::holder_vectors::holder_proof_vectors(),
    });
    let text = serde_json::to_string_pretty(&all).expect("plain data") + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/vectors.json");
    if std::env::var_os("WALRAS_WRITE_VECTORS").is_some() {
        std::fs::write(&path, &text).expect("written");
    }
    let kept = std::fs::read_to_string(&path).expect("docs/vectors.json");
    assert!(kept == text, "docs/vectors.json differs: an encoding has changed, or the vectors have");
}

/// The possession proof of a stake and the statements of an accusation are signed in the vectors, too: a program that
/// creates them must arrive at valid signatures.
#[test]
fn what_the_vectors_sign_inside_holds() {
    for (number, body) in bodies() {
        match &body.operation {
            Operation::Stake(stake) => assert!(stake.is_possessed(body.chain, &body.account), "{number}"),
            Operation::Accuse(evidence) => {
                assert!(evidence.convicts(NETWORK, &key(evidence.member).public()), "{number}");
            }
            Operation::Session(operation) => {
                if let SessionOperation::Authorize { terms, possession } = &**operation {
                    let bytes = session_possession_bytes(&NETWORK, &body.account, terms.slot, &terms.key);
                    assert!(terms.key.verify(&bytes, possession), "{number}");
                }
            }
            _ => {}
        }
    }
}
