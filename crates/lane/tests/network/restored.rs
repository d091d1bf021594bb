//! A wallet that was restored from a copy asks what it has spent.

use super::*;
use payments::{ContestedOutput, LaneInput, SpendGround, SpentOutput};

#[test]
fn a_restored_wallet_hears_from_a_quorum_what_it_has_spent() {
    let mut network = Network::started(4, 2, 2);
    let mut client = network.client();
    let of = |index: usize| {
        let Holding { id, output: Output { asset, amount, .. }, .. } = coin(index);
        ContestedOutput { output: SpentOutput { id, asset, amount }, home: 0, owner: owner(index).public() }
    };
    assert_eq!(client.spender(&owner(0), &of(0), PATIENCE), Ok(None));
    let payment = pay(&coin(0), 0, 7);
    client.confirm(&payment, PATIENCE).expect("confirmed");
    network.stop(3, 0);
    network.stop(3, 1);
    let spender = client.spender(&owner(0), &of(0), PATIENCE).expect("a quorum tells").expect("it is spent");
    assert_eq!((spender.payment, spender.signature), (payment.payment, payment.signature));
    assert_eq!(client.spender(&owner(1), &of(1), PATIENCE), Ok(None));
    // Two of four are no quorum: a wallet that gets no answer does not spend.
    network.stop(2, 0);
    network.stop(2, 1);
    let mut client = network.client();
    let asked = client.spender(&owner(1), &of(1), Duration::from_secs(2));
    assert!(matches!(asked, Err(LaneClientError::Untold { answered: 2, needed: 3, .. })), "{asked:?}");
    assert!(client.spender(&owner(0), &of(0), PATIENCE).expect("one that has signed suffices").is_some());
}

/// An exit without the owner's signature is believed once f+1 validators have signed it.
#[test]
fn a_wallet_believes_an_exit_that_more_than_one_validator_signed() {
    let network = Network::started(4, 1, 2);
    let of = |index: usize| {
        let Holding { id, output: Output { asset, amount, .. }, .. } = coin(index);
        ContestedOutput { output: SpentOutput { id, asset, amount }, home: 0, owner: owner(index).public() }
    };
    let open = |validator: usize, index: usize| {
        let shard = network.shards[validator][0].as_ref().expect("it runs");
        shard.tell(LaneInput::CaseOpened(of(index)));
    };
    // One validator is bound to the exit of the first coin: it may be Byzantine.
    open(0, 0);
    (0..3).for_each(|validator| open(validator, 1));
    let mut client = network.client();
    assert_eq!(client.spender(&owner(0), &of(0), PATIENCE), Ok(None));
    let spender = client.spender(&owner(1), &of(1), PATIENCE).expect("told").expect("three are bound to it");
    assert_eq!(spender.payment, of(1).exit(NETWORK).encode());
    assert_eq!(spender.ground(&NETWORK, &of(1)), Some(SpendGround::OwnerSigned), "the wallet signs it");
}
