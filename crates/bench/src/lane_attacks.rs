//! Attacks on the payment lane of a running network: validators with disks and sockets, payers with TLS.
//!
//! The attackers come from addresses of their own (127.0.x.y); the payers, all from 127.0.0.1, are strangers too, since
//! the shards listen at other addresses. All share this machine, so an attack also costs what its client computes.
//!
//! * *frames*: full batches of false signatures over outputs that do not exist, which cost nobody anything.
//! * *connections*: thousands of idle connections from sixteen addresses.
//! * *contests*: thousands of outputs of a hundredth of the asset are contested, each post as often as its case is not
//!   open. Payments, votes and registrations go on, and the lane epoch ends.

mod network;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lane::wire::write_frame;
use payments::{LaneBroker, Output, OutputId, OutputProof, Recipient, SpentOutput, spend_request};
use primitives::Signature;
use serde_json::{Value, json};

use crate::exchange::Error;
use network::{AttackedLane, Latencies, connect_from};

/// The addresses of the attackers.
const ADDRESSES: u8 = 16;
/// Bytes of a frame of a batch at most.
const FRAME_BYTES: usize = 1 << 20;
/// The pause of an attacker between two frames. The attackers share the machine with those whom they attack. So without
/// it the run would measure what TLS costs the attackers: 16 frames a second reach each of four validators.
const FRAME_PAUSE: Duration = Duration::from_millis(250);
/// Different frames of an attacker.
const FRAMES: u8 = 4;
/// The longest wait for a condition that ends a run. Nothing is decided by it but that a run ends.
const PATIENCE: Duration = Duration::from_secs(600);

/// What attacks the payment lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LaneAttack {
    /// Batches of false signatures over outputs that do not exist, from sixteen addresses.
    Frames,
    /// 4,096 idle connections from sixteen addresses.
    Connections,
    /// 3,000 contested outputs of a hundredth.
    Contests,
}

/// The size of an attack.
#[derive(Clone, Copy, Debug)]
pub struct LaneAttackOptions {
    /// What attacks.
    pub attack: LaneAttack,
    /// Validators, one shard each.
    pub validators: usize,
    /// Honest payers, who pay at the same time.
    pub payers: usize,
    /// Payments of each payer in each phase.
    pub payments: usize,
    /// False signatures of a frame, connections in total, or contested outputs.
    pub size: usize,
    /// Heights of a lane epoch.
    pub epoch_heights: u64,
}

impl LaneAttackOptions {
    /// The size at which an attack is measured, or a small one that shows whether everything runs.
    pub fn of(attack: LaneAttack, validators: usize, quick: bool) -> LaneAttackOptions {
        let (size, small) = match attack {
            LaneAttack::Frames => (4_096, 64),
            LaneAttack::Connections => (4_096, 256),
            LaneAttack::Contests => (3_000, 64),
        };
        let (size, payers, payments, epoch_heights) = if quick { (small, 3, 4, 40) } else { (size, 8, 100, 300) };
        LaneAttackOptions { attack, validators, payers, payments, size, epoch_heights }
    }
}

/// Runs one attack; `say` is called with each step. Homes are made below `directory`.
///
/// # Errors
/// If the network does not start, or a payer is not served.
pub fn run(
    options: &LaneAttackOptions,
    directory: &std::path::Path,
    say: &mut dyn FnMut(&str),
) -> Result<Value, Error> {
    say("starting the network");
    let network = AttackedLane::start(options, directory)?;
    say("paying in quiet");
    let quiet = network.pay_all(0)?;
    say("paying under attack");
    let (attacked, facts) = match options.attack {
        LaneAttack::Frames => frames(&network, options)?,
        LaneAttack::Connections => connections(&network, options)?,
        LaneAttack::Contests => contests(&network)?,
    };
    say("paying afterwards");
    let after = network.pay_all(2)?;
    network.stop();
    let ratio = |of: &Latencies| of.median_ms() / quiet.median_ms();
    Ok(json!({
        "attack": format!("{:?}", options.attack).to_lowercase(),
        "validators": options.validators,
        "payers": options.payers,
        "payments_of_each": options.payments,
        "size": options.size,
        "quiet": quiet.as_json(),
        "attacked": attacked.as_json(),
        "after": after.as_json(),
        "attacked_to_quiet": ratio(&attacked),
        "after_to_quiet": ratio(&after),
        "facts": facts,
    }))
}

/// The addresses of attackers, in four networks of /24.
fn attacker(number: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 1 + number % 4, 1 + number))
}

/// False signatures over outputs that do not exist, in one frame.
fn free_frame(network: &AttackedLane, number: u8, size: usize) -> Result<Vec<u8>, Error> {
    let owner = network.payer(0);
    let request = |at: usize| {
        let mut id = [number; 32];
        id[..8].copy_from_slice(&(at as u64).to_le_bytes());
        let output = Output { to: Recipient::Key(owner.public()), asset: network::ASSET, amount: 1 };
        let spent = SpentOutput { id: OutputId(id), asset: network::ASSET, amount: 1 };
        let payment = network.payment(&owner, spent, output);
        spend_request(&payment.encode(), &Signature([7; 64]), &[OutputProof::Ledger])
    };
    let one = request(0).len() + 8;
    let requests = (0..size.clamp(1, FRAME_BYTES / one)).map(request).collect();
    let batch = LaneBroker::new(network.committee(), requests)?.request();
    let mut frame = Vec::new();
    write_frame(&mut frame, number.into(), &batch);
    Ok(frame)
}

fn frames(network: &AttackedLane, options: &LaneAttackOptions) -> Result<(Latencies, Value), Error> {
    let frames: Vec<Vec<u8>> =
        (0..FRAMES).map(|number| free_frame(network, number, options.size)).collect::<Result<_, _>>()?;
    let begun = Instant::now();
    let (is_over, sent, cut) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let attack = |number: u8| {
        let validator = usize::from(number) % options.validators;
        while !is_over.load(Ordering::Acquire) {
            let Ok((mut to, _from)) = connect_from(attacker(number), network, validator) else { continue };
            let mut turns = frames.iter().cycle();
            while !is_over.load(Ordering::Acquire) && turns.next().is_some_and(|frame| to.send(frame).is_ok()) {
                sent.fetch_add(1, Ordering::AcqRel);
                std::thread::sleep(FRAME_PAUSE);
            }
            cut.fetch_add(1, Ordering::AcqRel);
        }
    };
    let attacked = std::thread::scope(|scope| {
        (0..ADDRESSES).for_each(|number| drop(scope.spawn(move || attack(number))));
        // Payers begin when the flood is under way.
        wait_until(|| sent.load(Ordering::Acquire) >= u64::from(ADDRESSES));
        let attacked = network.pay_all(1);
        is_over.store(true, Ordering::Release);
        attacked
    })?;
    let (bytes, sent, seconds) = (frames[0].len(), sent.into_inner(), begun.elapsed().as_secs_f64());
    let rate = bytes as f64 * sent as f64 / seconds / 1e6 / options.validators as f64;
    let facts = json!({
        "frame_bytes": bytes,
        "frames_sent": sent,
        "megabytes_per_second_to_each_validator": rate,
        "connections_ended": cut.into_inner(),
    });
    Ok((attacked, facts))
}

fn connections(network: &AttackedLane, options: &LaneAttackOptions) -> Result<(Latencies, Value), Error> {
    let each = options.size / options.validators / usize::from(ADDRESSES);
    let mut held = Vec::new();
    for validator in 0..options.validators {
        for number in 0..ADDRESSES {
            let opened = (0..each).filter_map(|_| network.open_from(attacker(number), validator).ok());
            held.extend(opened);
        }
    }
    let opened = held.len();
    // Each payer connects anew.
    let attacked = network.pay_all(1)?;
    let open = held.iter().filter(|stream| network::is_open(stream)).count();
    Ok((attacked, json!({ "opened": opened, "still_open": open, "addresses": ADDRESSES })))
}

fn contests(network: &AttackedLane) -> Result<(Latencies, Value), Error> {
    let begun = Instant::now();
    let is_over = AtomicBool::new(false);
    let attacked = std::thread::scope(|scope| {
        let attack = scope.spawn(|| network.contest_until(&is_over));
        wait_until(|| network.cases_opened() > 0);
        let attacked = network.pay_all(1);
        // Registrations are posted, and the epoch ends, while the contests go on.
        wait_until(|| network.epoch() > 0);
        is_over.store(true, Ordering::Release);
        attack.join().map_err(|_| "the attack panicked")??;
        attacked
    })?;
    let facts = json!({
        "seconds_to_the_next_epoch": begun.elapsed().as_secs_f64(),
        "cases_opened": network.cases_opened(),
        "verdicts": network.verdicts(),
        "registered_for_the_epoch": network.registered(1),
        "epoch": network.epoch(),
    });
    Ok((attacked, facts))
}

fn wait_until(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(attack: LaneAttack, size: usize) -> Value {
        let directory = tempfile::tempdir().expect("a directory");
        let options = LaneAttackOptions { attack, validators: 4, payers: 3, payments: 4, size, epoch_heights: 40 };
        let report = run(&options, directory.path(), &mut |_| {}).expect("every payer is served");
        for phase in ["quiet", "attacked", "after"] {
            assert_eq!(report[phase]["served"], 12, "{report}");
        }
        report["facts"].clone()
    }

    #[test]
    fn payers_are_served_during_a_flood_of_free_frames() {
        let facts = small(LaneAttack::Frames, 64);
        assert!(facts["frames_sent"].as_u64() >= Some(16), "{facts}");
    }

    #[test]
    fn payers_are_served_beside_connections_from_sixteen_addresses() {
        let facts = small(LaneAttack::Connections, 256);
        assert_eq!(facts["opened"], 256, "{facts}");
    }

    #[test]
    fn payments_registrations_and_epochs_go_on_while_outputs_are_contested() {
        let facts = small(LaneAttack::Contests, 64);
        assert!(facts["cases_opened"].as_u64() >= Some(1), "{facts}");
        assert!(facts["registered_for_the_epoch"].as_u64() >= Some(3), "{facts}");
        assert_eq!(facts["epoch"], 1, "{facts}");
    }
}
