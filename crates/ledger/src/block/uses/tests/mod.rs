//! Each operation of the table has an answer to what it uses and sends. One without an answer fails here.

use primitives::operations::{AskedAs, FieldKind, FieldValue, OperationField, OperationRow, all};
use primitives::{Body, ClientId, Operation, Price, PublicKey, Signature};

use super::*;

const SENDER: Address = Address([3; 20]);
const RECEIVER: Address = Address([8; 20]);

/// What each operation does with the first and the second asset that it names.
const ANSWERS: &[(&str, &str)] = &[
    ("create offer", "uses 1, uses 2"),
    ("pay", "uses 1, sends 1"),
    ("issue", "sends 1"),
    ("burn", "uses 1"),
    ("withdraw", "uses 1"),
    ("replace", "uses 1, uses 2"),
    ("open pool", "uses 1, uses 2"),
    ("provide", "uses 1, uses 2"),
    ("exact", "uses 1, uses 2"),
    ("pay referenced", "uses 1, sends 1"),
    ("issue referenced", "sends 1"),
    ("recover", "sends 1"),
    ("venue list", "uses 1, uses 2"),
    ("venue deposit", "uses 1"),
    // They bring the sender's own custody home, or that of a frozen holder.
    ("cancel", ""),
    ("leave", ""),
    ("venue collect", ""),
    ("venue recall", ""),
    // Asset 0 alone, or no units at all.
    ("create account", ""),
    ("stake", ""),
    ("unstake", ""),
    ("accuse", ""),
    ("lane", ""),
    ("authorize session", ""),
    ("revoke session", ""),
    ("session alive", ""),
    ("seal duty", ""),
    ("present", ""),
    ("approve", ""),
    ("unapprove", ""),
    ("set keys", ""),
    ("recover keys", ""),
    ("complete keys", ""),
    ("set receiving", ""),
    ("list asset", ""),
    ("close asset", ""),
    ("propose parameter", ""),
    ("propose listing", ""),
    ("propose closing", ""),
    ("propose lane terms", ""),
    ("vote", ""),
    ("set holder", ""),
    ("venue open", ""),
    ("venue fence", ""),
    ("venue change operator", ""),
    ("venue bond", ""),
    ("venue unbond", ""),
    ("venue authorize", ""),
    ("venue revoke", ""),
    ("venue raise floor", ""),
    ("venue accuse", ""),
    ("venue claim", ""),
    ("venue accuse step", ""),
    ("venue claim step", ""),
    // Its fills are judged one by one (F8).
    ("venue settle", ""),
    // What is inside is judged when it is opened.
    ("sealed", ""),
];

/// A value of each field; assets are 1, 2 and so on.
fn values(fields: &[OperationField], assets: &mut u32) -> Vec<FieldValue> {
    let encoded = fields.iter().filter(|field| !matches!(field.kind, FieldKind::Whole | FieldKind::Digest));
    encoded.map(|field| value(field.kind, assets)).collect()
}

fn value(kind: FieldKind, assets: &mut u32) -> FieldValue {
    match kind {
        FieldKind::Address => FieldValue::Address(RECEIVER),
        FieldKind::Key => FieldValue::Key(PublicKey([5; 32])),
        FieldKind::Signature => FieldValue::Signature(Signature([0; 64])),
        FieldKind::Asset => {
            *assets += 1;
            FieldValue::Asset(AssetId(*assets))
        }
        FieldKind::Units | FieldKind::Long => FieldValue::Number(7),
        FieldKind::Short(_) => FieldValue::Number(1),
        FieldKind::Price => FieldValue::Price(Price::ONE),
        FieldKind::Life => FieldValue::Life(Life::Rests),
        FieldKind::Client => FieldValue::Client(ClientId::NONE),
        FieldKind::Choice(texts) => FieldValue::Choice(texts[0]),
        FieldKind::Text => FieldValue::Text("a.example:9100".into()),
        FieldKind::Bytes => FieldValue::Bytes(b"a reference".to_vec()),
        FieldKind::List(list) => FieldValue::List(vec![values(list.fields, assets)]),
        FieldKind::Group(fields) => FieldValue::Group(values(fields, assets)),
        FieldKind::Whole | FieldKind::Digest => unreachable!("no encoding has it"),
    }
}

/// What is found of an operation, if an asset is for admitted holders and one of the two accounts is not admitted.
fn found(operation: &Operation, asset: u32, without: Address) -> Option<Refusal> {
    let mut controls = Controls::default();
    let admitted = if without == SENDER { RECEIVER } else { SENDER };
    controls.admit_only(AssetId(asset), admitted);
    let held = HeldOffers::default();
    let mut uses = Uses { controls: &controls, held: &held, sender: SENDER, refused: None };
    let body = Body { chain: 0, account: SENDER, sequence: 1, until: 9, operation: operation.clone() };
    visit(&Transaction::by_key(body, PublicKey([5; 32]), Signature([0; 64])), 0, &mut uses);
    uses.refused
}

fn answer(row: &OperationRow) -> String {
    // No value of their fields can be made up; an envelope hides what it does.
    if matches!(row.asked, AskedAs::Bytes { .. }) || ["lane", "sealed"].contains(&row.name) {
        return String::new();
    }
    let operation = Operation::of_values(row, &values(row.fields, &mut 0)).expect("a value of each field");
    let of = |asset| {
        let uses = found(&operation, asset, SENDER) == Some(Refusal::NOT_ADMITTED);
        let sends = found(&operation, asset, RECEIVER) == Some(Refusal::RECEIVER_NOT_ADMITTED);
        [uses.then(|| format!("uses {asset}")), sends.then(|| format!("sends {asset}"))].into_iter().flatten()
    };
    (1..=3).flat_map(of).collect::<Vec<_>>().join(", ")
}

#[test]
fn each_operation_has_an_answer_to_what_it_does_with_controlled_assets() {
    for row in all() {
        let expected = ANSWERS.iter().find(|(title, _)| *title == row.title());
        let (title, expected) = expected.unwrap_or_else(|| panic!("{} has no answer", row.title()));
        assert_eq!(answer(row), *expected, "{title}");
    }
    assert_eq!(ANSWERS.len(), all().count());
}
