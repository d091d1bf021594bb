//! Proofs of what issuers said of holders, for programs in other languages.

use ledger::{Genesis, HolderRecord, Ledger, Listing, Outcome, Roots, Signatures};
use primitives::{
    Address, AssetControl, AssetId, Body, Fraction, HolderState, Operation, Reference, ReferenceKind, SubBlock,
    Superblock,
};
use serde_json::{Value, json};

use crate::vectors::{encoded, key};

const USD: AssetId = AssetId(0);
const EUR: AssetId = AssetId(1);
const GBP: AssetId = AssetId(2);

/// Of a holder on a chain without controls; then of one that is frozen, one of whom nothing was said, one that was
/// admitted, and a stranger.
pub fn holder_proof_vectors() -> Vec<Value> {
    let issuer = key(9).public().address();
    let assets = ["USD", "EUR", "GBP"].map(|symbol| Listing::new(symbol, 6, issuer)).to_vec();
    let balances = vec![(issuer, USD, 1_000_000)];
    let open = Genesis { chain: 7, mu: Fraction::power_of_two(10), assets, balances, ..Genesis::default() };
    let controls = vec![(EUR, AssetControl::Recoverable), (GBP, AssetControl::Admitted)];
    let holders = [Address([1; 20]), Address([2; 20])];
    let plain = Ledger::new(&open).expect("sound");
    let absence = holder_proof(&plain, &mut Roots::of(&plain), EUR, &holders[0]);
    let mut ledger = Ledger::new(&Genesis { controls, ..open }).expect("sound");
    let mut roots = Roots::of(&ledger);
    let said = [(EUR, HolderState::Frozen), (GBP, HolderState::Open)];
    let native = said.iter().zip(1..).map(|((asset, state), sequence)| {
        let reference = Reference::read(ReferenceKind::Text, "case 7").expect("plain");
        let operation = Operation::SetHolder { asset: *asset, account: holders[0], state: *state, reference };
        Body { chain: 7, account: issuer, sequence, until: 50_000, operation }.sign(&ledger.network(), &key(9))
    });
    let sub_blocks = vec![SubBlock { native: native.collect(), ..SubBlock::default() }];
    let block = Superblock { height: 1, parent: ledger.last_block(), sub_blocks, ..Superblock::default() };
    let applied = ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
    assert_eq!(applied.outcomes, [Outcome::Applied; 2]);
    roots.apply(&applied.changes);
    let all = [EUR, GBP].into_iter().flat_map(|asset| holders.map(|account| (asset, account)));
    let proofs = all.map(|(asset, account)| holder_proof(&ledger, &mut roots, asset, &account));
    std::iter::once(absence).chain(proofs.collect::<Vec<_>>()).collect()
}

fn holder_proof(ledger: &Ledger, roots: &mut Roots, asset: AssetId, account: &Address) -> Value {
    let proof = roots.prove_holder(ledger, asset, account);
    let root = roots.parts().root();
    let (control, is_open) = proof.verify(&root, asset, account).expect("it holds");
    let since = proof.record.map(|record: HolderRecord| record.since);
    json!({
        "asset": asset.0, "account": account.to_string(), "root": root.to_string(), "proof": encoded(&proof),
        "control": control.name(), "is_open": is_open, "since": since,
    })
}
