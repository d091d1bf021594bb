//! Controls before the rules that have them. What they mean is tested beside the place `controls`.

use ledger::{Genesis, GenesisError, Ledger, ListingPolicy, ListingTerms, Refusal};
use primitives::{
    AssetControl, AssetListing, Digest, HolderRecovery, HolderState, Operation, RULES_OF_CONTROLS, Reference,
    ReferenceKind,
};

use crate::world::{EUR, World, address, genesis};

#[test]
fn controls_are_refused_before_their_rules() {
    let older = || Genesis { rules: RULES_OF_CONTROLS - 1, ..genesis(None) };
    let controls = vec![(EUR, AssetControl::Freezable)];
    let refused = Ledger::new(&Genesis { controls, ..older() }).err();
    assert!(matches!(refused, Some(GenesisError::Controls(_))), "{refused:?}");
    let listings = ListingTerms { policy: ListingPolicy::Priced, fees: 10, ..ListingTerms::default() };
    let mut world = World::of(&Genesis { listings, ..older() });
    let reference = Reference::read(ReferenceKind::Text, "why").expect("plain");
    let (from, to, account) = (address(2), address(3), address(2));
    for operation in [
        Operation::SetHolder { asset: EUR, account, state: HolderState::Frozen, reference: reference.clone() },
        Operation::Recover(Box::new(HolderRecovery { asset: EUR, from, to, amount: 1, reference })),
        Operation::ListAsset(Box::new(AssetListing {
            symbol: "GBP".into(),
            decimals: 2,
            control: AssetControl::Admitted,
            least_units: 4_096,
            supply_max: 1 << 40,
            document: Digest::default(),
            fees: 10,
        })),
    ] {
        assert_eq!(world.outcome(1, operation), Some(Refusal::RULES_TO_COME));
    }
}
