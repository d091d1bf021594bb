//! Nothing that is matched busts, as long as it is settled in time.

use crate::world::*;

#[test]
fn a_fill_is_matched_reported_settled_and_told() {
    let mut world = World::new(None);
    world.trade(ANN, BEN, 100, 5);
    assert_eq!(world.told[&0].len(), 2);
    assert_eq!(world.root().counts(), (1, 0));
    world.settle_all();
    world.check().expect("holds");
    assert_eq!(world.leaves.len(), 1);
}
