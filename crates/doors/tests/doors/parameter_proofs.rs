//! Proofs of parameters for the test vectors: of a chain of one node, before and after its operator proposes.

use ledger::{CharterTerms, Genesis, Ledger, Listing, Outcome, ParametersRecord, Roots, Signatures};
use primitives::{
    Address, AssetId, Body, Fraction, Operation, PARAMETERS, Parameter, ProposedChange, SecretKey, SubBlock,
    Superblock, to_hex,
};
use serde_json::{Map, Value, json};

/// That nothing was ever proposed; that another fee waits.
pub fn parameter_proof_vectors() -> Vec<Value> {
    let key = SecretKey::from_seed([16; 32]);
    let operator = key.public().address();
    let genesis = Genesis {
        chain: 7,
        fee: 5,
        mu: Fraction::power_of_two(10),
        assets: vec![Listing::new("USD", 6, Address([9; 20]))],
        balances: vec![(operator, AssetId(0), 1_000_000)],
        charter: CharterTerms { operator, notice_min: 3, patience: 40 },
        ..Genesis::default()
    };
    let mut ledger = Ledger::new(&genesis).expect("sound");
    let mut proofs = vec![proof_vector(&ledger)];
    let change = ProposedChange::Parameter { parameter: Parameter::Fee, value: 9 };
    let operation = Operation::Propose(Box::new(change));
    let body = Body { chain: 7, account: operator, sequence: 1, until: 200, operation };
    let native = vec![body.sign(&ledger.network(), &key)];
    let (height, parent) = (1, ledger.last_block());
    let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
    let block = Superblock { height, parent, sub_blocks, ..Superblock::default() };
    let applied = ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
    assert_eq!(applied.outcomes, [Outcome::Applied]);
    proofs.push(proof_vector(&ledger));
    proofs
}

fn proof_vector(ledger: &Ledger) -> Value {
    let mut roots = Roots::of(ledger);
    let (proof, root) = (roots.prove_parameters(ledger), roots.parts().root());
    let record = proof.verify(&root).expect("it holds");
    let bytes = to_hex(&borsh::to_vec(&proof).expect("encodes"));
    json!({"root": root.to_string(), "proof": bytes, "parameters": record.map(record_json)})
}

fn record_json(record: &ParametersRecord) -> Value {
    let named = |values: &[u64]| -> Map<String, Value> {
        PARAMETERS.iter().zip(values).map(|(name, value)| ((*name).into(), value.to_string().into())).collect()
    };
    let coming = record.coming.iter().map(|(acts, values)| json!({"acts": acts, "values": named(values)}));
    json!({"first": named(&record.first), "now": named(&record.now), "coming": coming.collect::<Vec<_>>()})
}
