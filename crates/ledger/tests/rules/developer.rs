//! Edits of accounts, which a developers' chain makes and every other chain skips.

use crate::evm::*;
use ledger::contracts::{DeveloperEdit, EDIT_TYPE, EditError, OFFERS, Skip, token_address};
use ledger::{Genesis, GenesisError, Ledger, Restore, Roots, Signatures, Snapshot};
use primitives::{Address, AssetId, MAX_ISSUED};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A developers' chain; the transactions of other tests do not name its number.
pub fn developers() -> Genesis {
    Genesis { chain: ledger::DEVELOPERS_CHAIN, membership: None, is_developers: true, ..genesis() }
}

#[test]
fn a_developers_chain_is_no_network() {
    let refused = |genesis: Genesis| Ledger::new(&genesis).err();
    assert_eq!(refused(developers()), None);
    for genesis in [
        Genesis { chain: 7, ..developers() },
        Genesis { membership: genesis().membership, ..developers() },
        Genesis { limits: ledger::Limits::default(), ..developers() },
    ] {
        assert!(matches!(refused(genesis), Some(GenesisError::Developers(_))));
    }
    assert_ne!(developers().digest(), Genesis { is_developers: false, ..developers() }.digest());
}

/// Whatever the edits, all wei and units are conserved, tries follow, and a restored state continues identically.
#[test]
fn random_edits_conserve() {
    let mut dice = ChaCha8Rng::seed_from_u64(5);
    let mut chain = Chain::of(&developers());
    let people: Vec<Address> = (0..4).map(|one| key(one).address()).chain([Address([66; 20]), OFFERS]).collect();
    for round in 0..60 {
        let mut edit = || {
            let account = people[dice.random_range(0..people.len())];
            let word =
                |dice: &mut ChaCha8Rng| std::array::from_fn(|at| if at == 31 { dice.random_range(0..3) } else { 0 });
            match dice.random_range(0..7) {
                0 => DeveloperEdit::Balance { account, wei: dice.random() },
                1 => DeveloperEdit::Balance { account, wei: dice.random_range(0..3 * UNIT) },
                2 => DeveloperEdit::Balance { account, wei: dice.random_range(0..u128::from(MAX_ISSUED)) * UNIT },
                3 => DeveloperEdit::Nonce { account, nonce: dice.random_range(0..9) },
                4 => {
                    let code = [&[][..], COUNTER, REVERTS, &[0xef, 1, 0], &[0xef]][dice.random_range(0..5)].to_vec();
                    DeveloperEdit::Code { account, code }
                }
                5 => DeveloperEdit::BaseFee { wei: dice.random_range(0..1 << 40) },
                _ => DeveloperEdit::Slot { account, slot: word(&mut dice), value: word(&mut dice) },
            }
        };
        let lane: Vec<Vec<u8>> = (0..5).map(|_| edit().encode()).collect();
        let block = chain.block(Vec::new(), vec![lane]);
        let before = chain.ledger.clone();
        let applied = chain.apply(&block);
        assert!(applied.contracts.receipts.is_empty(), "an edit has no receipt");
        for address in &people {
            let told = chain.ledger.ethereum_account_at(address, chain.ledger.height() - 1).expect("kept");
            let was = before.ethereum_account_at(address, before.height()).expect("now");
            assert_eq!((told.wei, told.nonce, told.code), (was.wei, was.nonce, was.code), "round {round}");
        }
        let mut restore = Restore::default();
        Snapshot::of(&before).for_each(|chunk| restore.push(&chunk).expect("the next chunk"));
        let mut restored = restore.finish().expect("whole").under(&developers());
        let again = restored.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
        assert_eq!(again.contracts, applied.contracts);
        assert_eq!(Roots::of(&restored).parts().root(), chain.root);
    }
}

#[test]
fn edits_come_before_the_transactions_of_their_block() {
    let mut chain = Chain::of(&developers());
    let (poor, to) = (key(30).address(), Address([55; 20]));
    let request = ledger::contracts::EthereumRequest {
        chain: ledger::DEVELOPERS_CHAIN,
        value: ETHER,
        gas_limit: 21_000,
        ..request(0, Some(to))
    };
    let transfer = key(30).sign(&request);
    let edit = DeveloperEdit::Balance { account: poor, wei: 2 * ETHER }.encode();
    let applied = chain.run(vec![vec![transfer, edit]]);
    assert_eq!((applied.contracts.receipts.len(), applied.contracts.skipped.len()), (1, 0));
    assert_eq!(applied.contracts.receipts[0].position, Some(0));
    assert_eq!(chain.wei(&to), ETHER);
}

#[test]
fn what_cannot_be_made_says_why() {
    let chain = Chain::of(&developers());
    let account = key(1).address();
    let check = |edit| chain.ledger.check_edit(&edit);
    let most = u128::from(MAX_ISSUED - 8_000_000_000) * UNIT;
    assert_eq!(check(DeveloperEdit::Balance { account, wei: u128::MAX }), Err(EditError::TooMuch(most)));
    assert_eq!(check(DeveloperEdit::Balance { account, wei: most }), Ok(()));
    assert_eq!(check(DeveloperEdit::Nonce { account, nonce: u64::MAX }), Err(EditError::Nonce(0)));
    for reserved in [OFFERS, token_address(AssetId(1))] {
        let edit = DeveloperEdit::Balance { account: reserved, wei: 1 };
        assert_eq!(check(edit), Err(EditError::Reserved(reserved)));
    }
}

/// On a chain that is not a developers' chain, edits are bytes that are no transaction: skipped, and without effect.
#[test]
fn other_chains_skip_edits() {
    for genesis in
        [genesis(), Genesis { membership: None, ..genesis() }, Genesis { is_developers: false, ..developers() }]
    {
        let mut chain = Chain::of(&genesis);
        let mut without = Chain::of(&genesis);
        let edit = DeveloperEdit::Balance { account: Address([66; 20]), wei: 5 * ETHER }.encode();
        assert_eq!(edit[0], EDIT_TYPE);
        let applied = chain.run(vec![vec![edit]]);
        assert_eq!(applied.contracts.skipped, [(0, Skip::Malformed)]);
        without.run(vec![vec![]]);
        assert_eq!(chain.wei(&Address([66; 20])), 0);
        assert_eq!(chain.ledger.assets()[0].issued, without.ledger.assets()[0].issued);
    }
}
