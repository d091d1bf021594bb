//! The tree: plan, spraying, hedging, relays, rewinds. References here share no code with the cores.

use std::collections::{BTreeMap, BTreeSet};

use crate::dice::Dice;
use fairnet::*;
use proptest::prelude::*;

const SESSION: [u8; 10] = *b"0001000001";
const SECRET: [u8; 32] = [7; 32];

fn plan(receivers: u32, hedging: u32) -> Plan {
    Plan::new(&PlanRequest { epoch: 1, receivers, depth: None, hedging, trees: 1 }).expect("a plan")
}

fn header(sequence: u64) -> PacketHeader {
    PacketHeader { epoch: 1, session: SESSION, tree: 0, sequence, deadline: 1_000, sent: 0, is_unfair: false }
}

fn sealed(header: &PacketHeader, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    header.seal(&PacketKey::of_epoch(&SECRET, header.epoch), payload, &mut bytes);
    bytes
}

fn relay(spot: Spot, plan: &Plan) -> Relay {
    Relay::new((0, spot), plan.clone(), SESSION, PacketKey::of_epoch(&SECRET, 1), RelayLimits::default())
}

fn effects(relay: &mut Relay, now: Nanos, input: RelayInput<'_>) -> Vec<RelayEffect> {
    let mut out = Vec::new();
    relay.step(now, input, &mut out);
    out
}

#[test]
fn plan_follows_the_rule_of_the_paper_and_its_table_4() {
    for (receivers, depth, fan_out, proxies) in
        [(10, 1, 10, 0), (100, 2, 10, 10), (1_000, 3, 10, 110), (200, 2, 15, 14)]
    {
        let plan = plan(receivers, 0);
        assert_eq!((plan.depth(), plan.fan_out(plan.depth() - 1), plan.proxies()), (depth, fan_out, proxies));
    }
    // Table 4 has three trees for H = 2.
    let hedged = |receivers| {
        Plan::new(&PlanRequest { epoch: 1, receivers, depth: None, hedging: 2, trees: 3 }).expect("a plan").proxies()
    };
    assert_eq!((hedged(100), hedged(1_000)), (30, 330));
    assert_eq!(TreeCost::FITTED.best_depth(1_000), 3);
}

#[test]
fn plan_refuses_trees_that_cannot_be() {
    let request = PlanRequest { epoch: 1, receivers: 100, depth: None, hedging: 2, trees: 1 };
    let refused = |request: PlanRequest| Plan::new(&request).expect_err("no plan");
    assert_eq!(refused(PlanRequest { receivers: 0, ..request }), PlanError::Receivers(0));
    assert_eq!(refused(PlanRequest { receivers: u32::MAX, ..request }), PlanError::Receivers(u32::MAX));
    assert_eq!(refused(PlanRequest { depth: Some(99), ..request }), PlanError::Depth(99));
    assert_eq!(refused(PlanRequest { trees: 0, ..request }), PlanError::Trees);
    assert_eq!(
        refused(PlanRequest { hedging: 10, ..request }),
        PlanError::Hedging { hedging: 10, layer: 1, width: 10 }
    );
    assert_eq!(Plan::with_widths(1, &[10, 5], 0, 1), Err(PlanError::Widths(2)));
}

/// A plan by drawing it: for each layer a table of who serves whom, rotated by hand.
fn drawn(plan: &Plan, packet: u64) -> BTreeMap<Spot, BTreeSet<Spot>> {
    let widths = plan.widths();
    let mut parents: BTreeMap<Spot, BTreeSet<Spot>> = BTreeMap::new();
    for layer in 0..plan.depth() as usize {
        let (width, next) = (widths[layer] as usize, widths[layer + 1]);
        let mut groups: Vec<Vec<u32>> = vec![Vec::new(); width];
        (0..next).for_each(|child| groups[(u64::from(child) * width as u64 / u64::from(next)) as usize].push(child));
        let below: u64 = widths[layer + 1..widths.len() - 1].iter().map(|width| u64::from(*width)).product();
        groups.rotate_left(((packet % below + packet / below) % width as u64) as usize);
        let copies = if layer == 0 { 1 } else { plan.hedging() as usize + 1 };
        for parent in 0..width {
            for child in (0..copies).flat_map(|copy| &groups[(parent + copy) % width]) {
                let child = Spot { layer: layer as u32 + 1, index: *child };
                parents.entry(child).or_default().insert(Spot { layer: layer as u32, index: parent as u32 });
            }
        }
    }
    parents
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn plan_gives_each_node_its_copies_from_different_parents(
        receivers in 1u32..400, depth in 1u32..4, hedging in 0u32..4, packet in 0u64..5_000,
    ) {
        let request = PlanRequest { epoch: 1, receivers, depth: Some(depth), hedging, trees: 1 };
        let Ok(plan) = Plan::new(&request) else { return Ok(()) };
        let drawn = drawn(&plan, packet);
        prop_assert_eq!(drawn.len() as u32, plan.widths()[1..].iter().sum::<u32>());
        let mut sent = 0;
        for (child, parents) in &drawn {
            let own: Vec<Spot> = plan.parents(*child, packet).collect();
            prop_assert_eq!(&own.iter().copied().collect::<BTreeSet<Spot>>(), parents);
            prop_assert_eq!(own.len(), if child.layer == 1 { 1 } else { hedging as usize + 1 });
            sent += own.len() as u64;
            for parent in parents {
                prop_assert_eq!(plan.children(*parent, packet).filter(|to| to == child).count(), 1);
            }
        }
        prop_assert_eq!(sent, plan.copies_of_packet());
    }

    #[test]
    fn spraying_reaches_a_receiver_by_every_path_once(
        one in 1u32..5, two in 1u32..6, receivers in 30u32..60, index in 0u32..30,
    ) {
        let Ok(plan) = Plan::with_widths(1, &[one, two.max(one), receivers], 0, 1) else { return Ok(()) };
        let paths = u64::from(one) * u64::from(two.max(one));
        let path = |packet: u64| {
            let mut spot = Spot { layer: 3, index };
            let mut path = Vec::new();
            while spot.layer > 0 {
                spot = plan.parents(spot, packet).next().expect("a parent");
                path.push(spot);
            }
            path
        };
        let all: BTreeSet<Vec<Spot>> = (1_000..1_000 + paths).map(path).collect();
        prop_assert_eq!(all.len() as u64, paths);
    }

    #[test]
    fn envelopes_of_any_bytes_open_to_what_seals_to_them(
        bytes in prop::collection::vec(any::<u8>(), 0..120), flags in 0u8..3,
    ) {
        let mut bytes = bytes;
        if let Some(head) = bytes.get_mut(..2) {
            head.copy_from_slice(&[1, flags]);
        }
        if let Ok((header, payload)) = PacketHeader::open(&bytes) {
            let again = sealed(&header, payload);
            let end = bytes.len() - 16;
            prop_assert_eq!(&again[..end], &bytes[..end]);
            prop_assert!(PacketHeader::is_authentic(&again, &PacketKey::of_epoch(&SECRET, header.epoch)));
        }
    }

    #[test]
    fn seen_window_agrees_with_a_set(seed in any::<u64>()) {
        let (mut dice, mut window, mut seen, mut top) = (Dice::new(seed), SeenWindow::new(128), BTreeSet::new(), 0u64);
        for _ in 0..2_000 {
            let jump = if dice.is(1) { 300 } else { 0 };
            let number = (top + dice.below(40)).saturating_sub(dice.below(60)).max(1) + jump;
            // Within the last 65 numbers it must be exact; before that it may call anything seen.
            if number + 65 > top {
                prop_assert_eq!(window.has(number), seen.contains(&number));
                prop_assert_eq!(window.insert(number), seen.insert(number));
            } else {
                prop_assert!(window.has(number) || !seen.contains(&number));
                if window.insert(number) {
                    prop_assert!(seen.insert(number));
                }
            }
            top = top.max(number);
        }
    }
}

#[test]
fn plan_epochs_overlap_and_then_end() {
    let mut plans = Plans::new(plan(10, 0), 100);
    let second =
        Plan::new(&PlanRequest { epoch: 2, receivers: 20, depth: None, hedging: 0, trees: 1 }).expect("a plan");
    assert!(plans.install(1_000, second.clone()));
    assert!(!plans.install(1_000, second), "an epoch is installed once");
    assert_eq!(plans.of(1_050, 1).map(Plan::epoch), Some(1));
    assert_eq!(plans.of(1_100, 1), None);
    assert_eq!(plans.of(1_100, 2).map(Plan::epoch), Some(2));
    assert_eq!(plans.of(1_100, 3), None);
}

#[test]
fn forged_first_copy_displaces_nothing() {
    let plan = plan(100, 1);
    let mut relay = relay(Spot { layer: 1, index: 3 }, &plan);
    let honest = sealed(&header(1), b"price 100");
    let mut forged = honest.clone();
    *forged.last_mut().expect("a byte") ^= 1;
    let mut forged_deadline = honest.clone();
    forged_deadline[33] ^= 1;
    for bytes in [&forged, &forged_deadline] {
        let out = effects(&mut relay, 0, RelayInput::Packet(bytes));
        assert_eq!(out, [RelayEffect::Dropped(PacketDrop::Forged)]);
    }
    let out = effects(&mut relay, 0, RelayInput::Packet(&honest));
    let children: Vec<RelayEffect> = plan.children(Spot { layer: 1, index: 3 }, 1).map(RelayEffect::Forward).collect();
    assert_eq!(out, children);
    assert_eq!(out.len(), 20);
    // The duplicate check comes first: a forgery of what was taken costs no hash.
    assert_eq!(effects(&mut relay, 0, RelayInput::Packet(&forged)), [RelayEffect::Dropped(PacketDrop::Duplicate)]);
    assert_eq!(relay.kept(1), Some(&honest[..]));
}

#[test]
fn forged_sequence_far_ahead_moves_no_window() {
    let plan = plan(100, 0);
    let mut relay = relay(Spot { layer: 1, index: 0 }, &plan);
    let mut ahead = sealed(&header(u64::MAX), b"");
    ahead[40] ^= 1;
    assert_eq!(effects(&mut relay, 0, RelayInput::Packet(&ahead)), [RelayEffect::Dropped(PacketDrop::Forged)]);
    assert_eq!(effects(&mut relay, 0, RelayInput::Packet(&sealed(&header(1), b""))).len(), 10);
}

#[test]
fn mac_is_verified_once_for_hedged_copies() {
    let mut first = FirstCopy::new(plan(100, 3), SESSION, PacketKey::of_epoch(&SECRET, 1), 1_024, 0);
    let mut hashed = 0;
    for _ in 0..4 {
        let _ = first.take(0, &header(9), |_| {
            hashed += 1;
            true
        });
    }
    assert_eq!(hashed, 1);
}

#[test]
fn old_epoch_and_session_replayed_are_refused() {
    let old = plan(100, 0);
    let mut relay = relay(Spot { layer: 1, index: 0 }, &old);
    let next = Plan::new(&PlanRequest { epoch: 2, receivers: 100, depth: None, hedging: 0, trees: 1 }).expect("a plan");
    effects(&mut relay, 0, RelayInput::Install(Spot { layer: 1, index: 4 }, next, PacketKey::of_epoch(&SECRET, 2)));
    let replayed = sealed(&header(1), b"old");
    let overlap = RelayLimits::default().overlap;
    // Both epochs count for a while, and the old plan is that in which this relay was at place 0.
    let children: Vec<RelayEffect> = old.children(Spot { layer: 1, index: 0 }, 1).map(RelayEffect::Forward).collect();
    assert_eq!(effects(&mut relay, overlap - 1, RelayInput::Packet(&replayed)), children);
    let late = sealed(&header(2), b"old");
    let stale = [RelayEffect::Dropped(PacketDrop::Stale)];
    assert_eq!(effects(&mut relay, overlap, RelayInput::Packet(&late)), stale);
    // The key of epoch 1 does not open epoch 2.
    let mut mixed = Vec::new();
    PacketHeader { epoch: 2, ..header(3) }.seal(&PacketKey::of_epoch(&SECRET, 1), b"", &mut mixed);
    assert_eq!(effects(&mut relay, 0, RelayInput::Packet(&mixed)), [RelayEffect::Dropped(PacketDrop::Forged)]);
    // A rewind under the old key counts no longer either.
    effects(&mut relay, 0, RelayInput::Register(5));
    let request = RewindRequest::seal(1, 0, (1, 1), 5, &PacketKey::of_epoch(&SECRET, 1));
    let forged = [RelayEffect::Refused(RewindRefusal::Forged)];
    assert_eq!(effects(&mut relay, overlap, RelayInput::Rewind(5, request)), forged);
    let other = sealed(&PacketHeader { epoch: 2, session: *b"0002000001", ..header(4) }, b"");
    assert_eq!(effects(&mut relay, 0, RelayInput::Packet(&other)), stale);
    effects(&mut relay, 0, RelayInput::Begin(*b"0002000001"));
    assert_eq!(effects(&mut relay, 0, RelayInput::Packet(&other)).len(), 10);
}

#[test]
fn malformed_envelopes_are_refused() {
    let good = sealed(&header(1), b"payload");
    assert_eq!(PacketHeader::open(&good).expect("an envelope"), (header(1), &b"payload"[..]));
    assert_eq!(PacketHeader::open(&good[..49]), Err(EnvelopeError::Short(49)));
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        PacketHeader::open(&bytes).map(|_| ())
    };
    assert_eq!(with(0, 1), Err(EnvelopeError::Version(1)));
    assert_eq!(with(1, 2), Err(EnvelopeError::Flags(2)));
    let key = PacketKey::of_epoch(&SECRET, 1);
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        assert!(!PacketHeader::is_authentic(&bytes, &key), "byte {at}");
    }
    assert!(PacketHeader::is_authentic(&good, &key) && !PacketHeader::is_authentic(&good[..20], &key));
}

#[test]
fn spoofed_rewind_is_refused_and_budgeted() {
    let mut relay = relay(Spot { layer: 1, index: 0 }, &plan(100, 0));
    let key = PacketKey::of_epoch(&SECRET, 1);
    for sequence in 1..=50 {
        effects(&mut relay, 0, RelayInput::Packet(&sealed(&header(sequence), &[0; 8_192 - ENVELOPE_BYTES])));
    }
    let request = RewindRequest::seal(1, 0, (1, 50), 42, &key);
    let refused = |why| vec![RelayEffect::Refused(why)];
    assert_eq!(effects(&mut relay, 0, RelayInput::Rewind(42, request)), refused(RewindRefusal::Unregistered));
    effects(&mut relay, 0, RelayInput::Register(42));
    effects(&mut relay, 0, RelayInput::Register(43));
    assert_eq!(effects(&mut relay, 0, RelayInput::Rewind(43, request)), refused(RewindRefusal::Forged));
    let out = effects(&mut relay, 0, RelayInput::Rewind(42, request));
    // A burst of 256 KiB is 32 packets of 8 KiB; then the address has to wait.
    assert_eq!(out.len(), 33);
    assert!(out[..32].iter().zip(1..).all(|(effect, sequence)| *effect == RelayEffect::Resend(42, sequence)));
    assert_eq!(out[32], RelayEffect::Refused(RewindRefusal::Exhausted));
    let later =
        effects(&mut relay, 1_000_000_000, RelayInput::Rewind(42, RewindRequest::seal(1, 0, (50, 2), 42, &key)));
    assert_eq!(later, [RelayEffect::Resend(42, 50), RelayEffect::Refused(RewindRefusal::Gone(51))]);
    let end = RewindRequest::seal(1, 0, (u64::MAX, u16::MAX), 42, &key);
    assert_eq!(effects(&mut relay, 0, RelayInput::Rewind(42, end)), []);
    effects(&mut relay, 0, RelayInput::Forget(42));
    assert_eq!(effects(&mut relay, 0, RelayInput::Rewind(42, request)), refused(RewindRefusal::Unregistered));
}

#[test]
fn parallel_trees_keep_their_packets_apart() {
    let request = PlanRequest { epoch: 1, receivers: 100, depth: None, hedging: 0, trees: 3 };
    let plan = Plan::new(&request).expect("a plan");
    assert_eq!([0, 1, 2, 3, u64::MAX].map(|symbol| plan.tree_of(symbol)), [0, 1, 2, 0, 0]);
    let mut relay = relay(Spot { layer: 1, index: 0 }, &plan);
    let key = PacketKey::of_epoch(&SECRET, 1);
    assert_eq!(effects(&mut relay, 0, RelayInput::Packet(&sealed(&header(1), b"ours"))).len(), 10);
    let others = sealed(&PacketHeader { tree: 1, ..header(1) }, b"theirs");
    assert_eq!(effects(&mut relay, 0, RelayInput::Packet(&others)), [RelayEffect::Dropped(PacketDrop::Stale)]);
    effects(&mut relay, 0, RelayInput::Register(5));
    let asked = effects(&mut relay, 0, RelayInput::Rewind(5, RewindRequest::seal(1, 1, (1, 1), 5, &key)));
    assert_eq!(asked, [RelayEffect::Refused(RewindRefusal::Gone(1))]);
    // A receiver of all trees takes the same sequence once in each.
    let mut first = FirstCopy::new(plan, SESSION, key, 64, 0);
    let taken = |first: &mut FirstCopy, tree| first.take(0, &PacketHeader { tree, ..header(1) }, |_| true).map(|_| ());
    assert_eq!(
        [0, 1, 1, 3].map(|tree| taken(&mut first, tree)),
        [Ok(()), Ok(()), Err(PacketDrop::Duplicate), Err(PacketDrop::Stale),]
    );
}
