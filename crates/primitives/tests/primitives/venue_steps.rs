//! Attacks on reports of steps, by what their bytes alone show.

use primitives::merkle::{self, Family, Tree};
use primitives::venue::{
    Contradicting, FillReport, ReportedFill, SignedReport, SignedStep, StepReport, VenueEvidence, VenueOperation,
    VenueReport,
};
use primitives::{Address, Body, Digest, Malformed, Operation, SecretKey, Signature};
use proptest::prelude::*;

const NETWORK: Digest = Digest([0x4e; 32]);
const VENUE: u32 = 3;

type Leaf = (u64, Digest, Address);

fn key(seed: u8) -> SecretKey {
    SecretKey::from_seed([seed; 32])
}

fn told(index: u64) -> [Leaf; 2] {
    [1, 2].map(|side| (index, Digest([index as u8; 32]), Address([side; 20])))
}

fn leaves(fills: u64) -> Vec<Leaf> {
    (0..fills).flat_map(told).collect()
}

fn signed(step: u64, clock_ms: u64, leaves: &[Leaf]) -> SignedStep {
    SignedStep::new(&NETWORK, (VENUE, 1), (step, clock_ms), leaves, &key(50))
}

/// A report of a step of so many fills.
fn report(fills: u64, place: usize) -> StepReport {
    let leaves = leaves(fills);
    signed(7, 1_000, &leaves).report(place, leaves[place])
}

fn accuse(report: VenueReport, contradicting: Contradicting<VenueReport>) -> Result<(), Malformed> {
    let operation = VenueOperation::AccuseStep(Box::new(VenueEvidence { report, contradicting, ended: None }));
    let operation = Operation::Venue(Box::new(operation));
    Body { chain: 1, account: Address([9; 20]), sequence: 1, until: 9, operation }.sign(&NETWORK, &key(1)).check()
}

#[test]
fn every_report_of_every_small_step_is_signed_for_its_network_alone() {
    for fills in 1..=17 {
        for place in 0..fills as usize * 2 {
            let report = report(fills, place);
            assert!(report.is_signed(&NETWORK) && !report.is_signed(&Digest([1; 32])), "{place} of {fills}");
            let bytes = VenueReport::Step(report.clone()).to_bytes();
            assert_eq!(VenueReport::of_bytes(&bytes).expect("its bytes"), VenueReport::Step(report));
        }
    }
}

#[test]
fn a_root_of_another_venue_incarnation_step_clock_size_or_key_is_nothing() {
    let spoils: [fn(&mut StepReport); 12] = [
        |of| of.fill.venue += 1,
        |of| of.fill.incarnation += 1,
        |of| of.fill.index += 1,
        |of| of.fill.leaf = Digest([9; 32]),
        |of| of.fill.account = Address([9; 20]),
        |of| of.step += 1,
        |of| of.clock_ms += 1,
        // A path is as long at this place of a tree with one leaf less.
        |of| of.size -= 1,
        |of| of.place ^= 1,
        |of| of.key = key(51).public(),
        |of| of.signature = Signature([0; 64]),
        |of| of.path[0] = Digest([9; 32]),
    ];
    for (at, spoil) in spoils.into_iter().enumerate() {
        let mut other = report(4, 2);
        spoil(&mut other);
        assert!(!other.is_signed(&NETWORK), "spoil {at}");
    }
}

#[test]
fn a_path_is_bounded_and_no_other_length_is_read() {
    for length in (0..=40).filter(|length| *length != 3) {
        let other = StepReport { path: vec![Digest([1; 32]); length], ..report(4, 2) };
        assert!(!other.is_plain() && other.header().is_none() && !other.is_signed(&NETWORK), "{length}");
        assert!(VenueReport::of_bytes(&VenueReport::Step(other.clone()).to_bytes()).is_err());
        let own = VenueReport::Step(other);
        assert_eq!(accuse(own, Contradicting::Tree(Digest([7; 32]), Vec::new())), Err(Malformed::VenueBounds));
    }
    let most = Family::VenueReports.leaves_max();
    let beyond = StepReport { size: most as u32 + 1, place: 0, path: vec![Digest([1; 32]); 21], ..report(4, 2) };
    assert!(!beyond.is_plain() && !SignedStep::holds(most + 1) && !SignedStep::holds(0));
    let longest = StepReport { size: most as u32, place: 0, path: vec![Digest([1; 32]); 20], ..report(4, 2) };
    assert!(longest.is_plain());
    assert_eq!(VenueReport::Step(longest).to_bytes().len(), 833, "what the longest report has");
}

/// The attack: a trader is shown an inner node as a leaf, or a leaf of a tree of the payment lane as a report.
#[test]
fn an_inner_node_or_a_leaf_of_another_kind_is_no_report() {
    let told = report(2, 0);
    let root = told.header().expect("it fits").root;
    let below = StepReport { size: 2, place: 0, path: told.path[1..].to_vec(), ..told.clone() };
    assert_ne!(below.header().map(|header| header.root), Some(root));
    // The venue signs a tree whose leaves are hashed as those of another kind.
    let content: Vec<u8> = borsh::to_vec(&(0u64, Digest([0; 32]), Address([1; 20]))).expect("in memory");
    for family in [Family::LaneSigned, Family::LaneOutputs] {
        let foreign = Tree::new(family, vec![merkle::leaf(family, &content); 2]);
        assert!(!foreign.path(0).is_empty());
        let header = primitives::venue::StepHeader { size: 2, root: foreign.root(), ..told.header().expect("it fits") };
        let signature = key(50).sign(&header.signing_bytes(&NETWORK));
        let forged = StepReport { signature, size: 2, place: 0, path: foreign.path(0), ..told.clone() };
        assert!(!forged.is_signed(&NETWORK), "{family:?}");
    }
    let own = Tree::new(Family::VenueReports, vec![merkle::leaf(Family::VenueReports, &content); 2]);
    let header = primitives::venue::StepHeader { size: 2, root: own.root(), ..told.header().expect("it fits") };
    let signature = key(50).sign(&header.signing_bytes(&NETWORK));
    assert!(StepReport { signature, size: 2, place: 0, path: own.path(0), ..told }.is_signed(&NETWORK));
}

/// The attack: one tree for one trader and another one for the other, of the same step and without a common index.
#[test]
fn two_trees_of_one_step_convict_by_any_report_of_each() {
    let [first, second] = [told(1), told(2)].map(|leaves| signed(7, 1_000, &leaves).report(0, leaves[0]));
    assert!(first.contradicts(&second) && second.contradicts(&first));
    // So do another clock, and another number of leaves, with equal leaves at the index.
    let own = leaves(2);
    let base = signed(7, 1_000, &own).report(0, own[0]);
    let late = signed(7, 1_001, &own).report(0, own[0]);
    let more = signed(7, 1_000, &leaves(3)).report(0, own[0]);
    assert!(base.contradicts(&late) && base.contradicts(&more));
    // Another step, incarnation or venue is no contradiction; nor is another key under the same header.
    let next = signed(8, 1_000, &leaves(3)).report(0, own[0]);
    let rekeyed = SignedStep::new(&NETWORK, (VENUE, 1), (7, 1_000), &own, &key(51)).report(3, own[3]);
    assert!(!base.contradicts(&next) && !base.contradicts(&rekeyed));
    for place in [(VENUE, 2), (VENUE + 1, 1)] {
        let other = SignedStep::new(&NETWORK, place, (7, 1_001), &own, &key(50)).report(0, own[0]);
        assert!(!base.contradicts(&other));
    }
}

/// The attack: an index twice, with two leaves: in one tree, in the trees of two steps, and in both forms of reports.
#[test]
fn an_index_has_one_leaf_in_whatever_form_and_tree_it_is_reported() {
    let lie = (1, Digest([9; 32]), Address([2; 20]));
    let both = [told(1)[0], lie];
    let one_tree = signed(7, 1_000, &both);
    let [honest, lied] = [0, 1].map(|place| one_tree.report(place, both[place]));
    assert!(honest.is_signed(&NETWORK) && lied.is_signed(&NETWORK) && honest.contradicts(&lied));
    let later = signed(8, 1_000, &[lie]).report(0, lie);
    assert!(honest.contradicts(&later));
    let single = FillReport::new(&NETWORK, (VENUE, 1, 1), lie.1, lie.2, &key(50));
    assert!(honest.contradicts(&single) && single.contradicts(&honest));
    let same = FillReport::new(&NETWORK, (VENUE, 1, 1), told(1)[0].1, lie.2, &key(50));
    assert!(!honest.contradicts(&same), "both forms may say the same");
}

#[test]
fn a_pair_of_reports_is_one_accusation_and_says_something() {
    let [first, second] = [1_000, 1_001].map(|clock| {
        let leaves = leaves(2);
        VenueReport::Step(signed(7, clock, &leaves).report(1, leaves[1]))
    });
    let (low, high) = if first.rank() < second.rank() { (first, second) } else { (second, first) };
    assert_eq!(accuse(low.clone(), Contradicting::Report(high.clone())), Ok(()));
    assert_eq!(accuse(high, Contradicting::Report(low.clone())), Err(Malformed::VenueBounds), "the other way round");
    assert_eq!(accuse(low.clone(), Contradicting::Report(low)), Err(Malformed::VenueBounds), "of itself");
    let singles =
        [4, 5].map(|leaf| FillReport::new(&NETWORK, (VENUE, 1, 1), Digest([leaf; 32]), Address([2; 20]), &key(50)));
    let [low, high] = singles.map(VenueReport::Single);
    assert_eq!(accuse(low, Contradicting::Report(high)), Err(Malformed::VenueBounds), "the older form has a place");
}

/// Two readings of the same bytes would be two reports.
#[test]
fn bytes_of_one_form_are_never_read_as_the_other() {
    let single = VenueReport::Single(FillReport::new(&NETWORK, (1, 1, 1), Digest([4; 32]), Address([2; 20]), &key(50)));
    assert_eq!((single.to_bytes().len(), single.to_bytes()[0]), (164, 1), "it begins as one of a step would");
    assert_eq!(VenueReport::of_bytes(&single.to_bytes()).expect("its bytes"), single);
    for fills in 1..=40 {
        assert_ne!(VenueReport::Step(report(fills, 0)).to_bytes().len(), 164);
    }
    assert!(VenueReport::of_bytes(&borsh::to_vec(&single).expect("in memory")).is_err(), "an operation's encoding");
    assert!(borsh::from_slice::<FillReport>(&VenueReport::Step(report(1, 0)).to_bytes()).is_err());
}

proptest! {
    /// Whatever is done to the bytes of a report, they are refused, or say what they said.
    #[test]
    fn spoiled_bytes_of_a_report_say_nothing_new(
        (fills, place) in (1..40u64, 0..80usize), at in 0..2_000usize, with: u8,
    ) {
        let honest = VenueReport::Step(report(fills, place % (fills as usize * 2)));
        let mut bytes = honest.to_bytes();
        let at = at % bytes.len();
        bytes[at] = with;
        if let Ok(read) = VenueReport::of_bytes(&bytes) {
            prop_assert_eq!(&read.to_bytes(), &bytes, "one encoding");
            let said = |of: &VenueReport| -> ReportedFill { of.fill() };
            prop_assert!(!read.is_signed(&NETWORK) || said(&read) == said(&honest));
        }
    }
}
