//! Validators that make sealing keys: what their seats do between two ticks, and what must hold of keys and secrets.

use consensus::Index;
use ledger::{Genesis, SealPost, SealTerms};
use payments::BlsPublicKey;
use primitives::{Digest, Height, Operation, RULES_OF_SEALS, Superblock};
use replica::unsealing::{Points, UnsealResult};
use replica::{SealSeat, SeatSecrets, UnsealFrame};
use sealing::{OpeningKey, SealShare};

use super::host::Process;
use super::{Faults, SimNetwork};
use crate::world::Mistake;

/// The genesis with terms of seals, if its rules have them and a key ends with a committee that is known.
pub(super) fn with_seals(sim: &SimNetwork, genesis: Genesis) -> Genesis {
    let is_known = sim.epoch_heights.is_none() || sim.schedule().delay >= ledger::SEAL_NOTICE;
    let makes = sim.seals && is_known && genesis.rules >= RULES_OF_SEALS;
    Genesis { seals: makes.then(|| SealTerms::named("fewest")).flatten(), ..genesis }
}

/// The process takes part with what its disk has.
pub(super) fn seated(sim: &SimNetwork, of: Index, mut process: Process) -> Process {
    if sim.genesis.seals.is_some() {
        let secrets = sim.hosts[usize::from(of)].secrets.clone();
        let signer = sim.epoch_zero(of).own.votes;
        let seat = SealSeat::new(signer, secrets).with_mistake(sim.mistake.and_then(Mistake::of_seat).into());
        process.proposals = process.proposals.seated(seat);
    }
    process
}

/// What a seat owes: its disk takes the secrets before its post is signed, and the process may be killed between.
pub(super) fn take_seat(sim: &mut SimNetwork, of: Index) {
    if sim.genesis.seals.is_none() {
        return;
    }
    let fresh: [u8; 32] = std::array::from_fn(|_| sim.dice.below(256) as u8);
    let process = sim.process(of).expect("it runs");
    let done = process.proposals.seal_work(&process.ledger).map(|work| work.perform(fresh));
    let (certified, height) = (process.certified_durably, process.ledger.height());
    let changed = process.proposals.take_sealed(done, &process.ledger, certified);
    let network = (process.ledger.network(), process.ledger.chain());
    let secrets = process.proposals.seat().filter(|_| changed).map(|seat| seat.secrets().clone());
    process.proposals.sign_sealed(network, height);
    let faulty: Vec<Index> = sim.committee.members().filter(|one| sim.fault_of(*one).is_some()).collect();
    faulty.into_iter().for_each(|one| post_of_faulty(sim, one, of));
    if let Some(secrets) = secrets {
        sim.host(of).secrets = secrets;
    }
}

/// The share of a validator's disk for the key of a number: a false seat has another one.
pub(super) fn share_of(sim: &SimNetwork, of: Index, network: &Digest, number: u64) -> Option<SealShare> {
    let share = sim.hosts[usize::from(of)].secrets.share(network, number)?;
    let is_false = sim.false_seat == Some(sim.validator(of));
    Some(if is_false { SealShare::parse(&[1; 32]).expect("a number") } else { share })
}

/// Who finds a frame false doubts its sender as long as the key lives: the next one costs nothing.
pub(super) fn note_false(sim: &mut SimNetwork, of: Index, result: &UnsealResult) {
    let UnsealResult::FalseShares { key, senders, .. } = result else { return };
    let order = sim.order_of(of);
    for sender in senders {
        let sender = order[usize::from(*sender)];
        let is_correct = sim.false_seat != Some(sender) && !sim.faults.contains_key(&sender);
        assert!(!is_correct, "{of} finds the shares of {sender} false, which is correct");
        let found = sim.found_false.entry((of, *key, sender)).or_default();
        *found += 1;
        assert!(*found == 1 || !sim.must_open, "{of} combines false shares of {sender} again");
    }
}

/// What a false seat sends after its shares: they, as if they were the keys.
pub(super) fn false_keys(sim: &SimNetwork, of: Index, bytes: &[u8]) -> Option<UnsealFrame> {
    if sim.false_seat != Some(of) {
        return None;
    }
    match UnsealFrame::from_bytes(bytes).ok()? {
        UnsealFrame::Shares { height, points, .. } => Some(UnsealFrame::Keys { height, points }),
        UnsealFrame::Ask(_) | UnsealFrame::Keys { .. } => None,
    }
}

/// A faulty validator, which holds a share of its own, answers shares: with the same ones as its own, with keys that
/// are none, of heights that nobody has decided, and with questions for everything.
pub(super) fn misbehave(sim: &mut SimNetwork, me: Index, faults: Faults, frame: UnsealFrame) {
    let UnsealFrame::Shares { height, key, points } = frame else { return };
    if faults == Faults::Silent {
        return;
    }
    let garbage = || -> Points { points.iter().map(|_| OpeningKey([height as u8; 48])).collect() };
    let ahead = height + sim.dice.below(20);
    let answers = [
        UnsealFrame::Shares { height: ahead, key, points: points.clone() },
        UnsealFrame::Shares { height: ahead, key: key + sim.dice.below(3), points: garbage() },
        UnsealFrame::Keys { height: ahead, points: points.clone() },
        UnsealFrame::Keys { height, points: garbage() },
        UnsealFrame::Ask(sim.dice.below(height + 20)),
        UnsealFrame::Ask(u64::MAX),
    ];
    let answer = answers[sim.dice.index(answers.len())].to_bytes();
    for to in sim.committee.members().filter(|to| *to != me).collect::<Vec<_>>() {
        sim.transmit(me, to, answer.clone().into());
    }
}

/// The seat of a faulty validator owes something by the state here, and posts it here: it wants shares.
fn post_of_faulty(sim: &mut SimNetwork, faulty: Index, at: Index) {
    let fresh: [u8; 32] = std::array::from_fn(|_| sim.dice.below(256) as u8);
    let signer = sim.epoch_zero(faulty).own.votes;
    let mut seat = sim.faulty_seats.remove(&faulty).unwrap_or_else(|| SealSeat::new(signer, SeatSecrets::default()));
    let process = sim.process(at).expect("it runs");
    if let Some(work) = seat.work(&process.ledger) {
        seat.take(work.perform(fresh), &process.ledger);
        seat.sign((process.ledger.network(), process.ledger.chain()), process.ledger.height());
    }
    seat.post(&process.ledger, &mut process.pool, 0);
    sim.faulty_seats.insert(faulty, seat);
}

/// A correct seat deals once in a generation, whatever crashes.
pub(super) fn check_dealings(sim: &mut SimNetwork, block: &Superblock) {
    for transaction in block.sub_blocks.iter().flat_map(|sub| &sub.native) {
        let Operation::SealDuty { key, post } = &transaction.body.operation else { continue };
        if let Some(SealPost::Deal(_)) = SealPost::parse(post) {
            let first = sim.dealt.entry((*key, transaction.body.account)).or_insert_with(|| post.clone());
            assert!(first == post || !sim.twins.is_empty(), "a seat deals twice for the key {key}");
        }
    }
}

/// What holds of keys and of a seat's secrets in the end.
pub(super) fn check_seat(sim: &SimNetwork, of: Index) {
    let host = &sim.hosts[usize::from(of)];
    let Some(process) = &host.process else { return };
    let Some(seals) = process.ledger.seals() else { return };
    let account = sim.secrets[usize::from(of)].public().address();
    assert!(seals.keys().len() <= 2, "more sealing keys than two");
    for key in seals.keys() {
        let shares: Vec<(u8, BlsPublicKey)> =
            key.holders.iter().map(|holder| (holder.place, BlsPublicKey::parse(&holder.key).expect("a key"))).collect();
        let group = BlsPublicKey::parse(&key.group).expect("a key");
        assert!(key.holders.len() >= usize::from(key.least) || key.last < Height::MAX, "too few hold {}", key.number);
        let t = usize::from(key.t);
        assert!(shares.len() < t || group.is_made_of(&shares[shares.len() - t..]), "shares of another key");
        let own = key.holders.iter().find(|holder| holder.account == account);
        if let Some(own) = own.filter(|_| !sim.twins.values().any(|twin| *twin == of)) {
            let share =
                process.proposals.seat().and_then(|seat| seat.share(&process.ledger.network(), key.number, own.place));
            let fits = share.is_some_and(|share| share.public().to_bytes() == own.key);
            assert!(fits, "{of} holds no share of the key {} that it holds by the state", key.number);
        }
    }
    // Two keys, one that is being made, and one whose last outcome is not certified.
    assert!(host.secrets.secrets.len() <= 4, "{of} keeps secrets of keys that are over: {:?}", host.secrets);
}
