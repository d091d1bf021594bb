//! Validators that make sealing keys: what their seats do between two ticks, and what must hold of keys and secrets.

use consensus::Index;
use ledger::{Genesis, SealPost, SealTerms};
use payments::BlsPublicKey;
use primitives::{Height, Operation, RULES_OF_SEALS, Superblock};
use replica::SealSeat;

use super::SimNetwork;
use super::host::Process;

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
        let seat = SealSeat::new(signer, secrets).with_mistake(sim.seat_mistake.into());
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
    if let Some(secrets) = secrets {
        sim.host(of).secrets = secrets;
    }
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
