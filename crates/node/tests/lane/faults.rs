//! Errors that pass, and losses that do not.

use std::path::Path;
use std::time::Duration;

use node::{LaneKeys, home_address, make_first_lane_keys};
use payments::{HomeEpoch, Recipient, RootCache};
use primitives::{Digest, Operation};
use store::{Disk, RealDisk};

use crate::*;

/// A key that is lost after its registration is never recreated: the shard is mute in that epoch, and works again in
/// the next one.
#[test]
fn a_lost_key_mutes_for_its_epoch() {
    let dir = private();
    let address = free_address();
    let genesis = rotating(dir.path());
    let start = || Net::with(&genesis, LaneKeys::Registrar(Box::new(shard_key())), dir.path(), address);
    let net = start();
    let registered = |net: &Net, epoch: HomeEpoch| {
        net.exchange.read(|ledger| ledger.lane().expect("there is one").bridge().registrations(epoch).count())
    };
    wait_until("somebody registers", || registered(&net, 1) > 0);
    net.exchange.stop();
    drop(net);
    std::fs::remove_file(dir.path().join("lane/1/0/shard-key")).expect("lost");
    let net = start();
    net.reach(1);
    let (coin, home) = net.withdraw(1, 1_000);
    let payment = net.pay(1, &coin, [home, home], Recipient::Key(person(2)));
    net.client(home).confirm(&payment, Duration::from_secs(1)).expect_err("the shard is mute");
    net.reach(2);
    let (coin, home) = net.withdraw(1, 500);
    let payment = net.pay(1, &coin, [home, home], Recipient::Key(person(2)));
    net.confirm(&mut net.client(home), &payment);
    net.exchange.stop();
}

/// When an epoch begins, another process has the port of one shard, and the logs of the next epoch cannot be created.
/// The other shard keeps working, and nothing is lost once both errors have passed.
#[test]
fn what_fails_at_an_epoch_and_passes_ends_nothing() {
    let (dir, mut genesis) = (private(), genesis());
    let lane = genesis.lane.as_mut().expect("it has a lane");
    lane.members = vec![make_first_lane_keys(dir.path(), 2, None).expect("made")];
    lane.registrars = vec![shard_key().public()];
    let addresses = vec![vec![free_address(), free_address()]];
    let taken = std::net::TcpListener::bind(home_address(addresses[0][1], 1)).expect("a free port");
    let blocked = dir.path().join("lane/2");
    let net = Net::among(&genesis, LaneKeys::Registrar(Box::new(shard_key())), dir.path(), addresses);
    std::fs::write(&blocked, []).expect("a file where a directory is to be");
    net.reach(1);
    let payments = [1, 2, 3].map(|of| {
        let (coin, home) = net.withdraw(of, 100);
        assert_eq!(home, 1, "three blocks of six");
        net.pay(of, &coin, [home, home], Recipient::Key(person(9)))
    });
    let mut client = net.client(1);
    let shard = |of| client.committee().shard_of(0, &person(of)).expect("a member");
    assert_eq!([1, 2, 3].map(shard), [0, 1, 0]);
    net.confirm(&mut client, &payments[0]);
    client.confirm(&payments[1], Duration::from_secs(1)).expect_err("somebody else has its port");
    assert_eq!(net.exchange.lane_shards_unreachable(), 1);
    drop(taken);
    std::fs::remove_file(blocked).expect("removed");
    payments.iter().for_each(|payment| drop(net.confirm(&mut client, payment)));
    net.reach(2);
    let (coin, home) = net.withdraw(2, 100);
    net.confirm(&mut net.client(home), &net.pay(2, &coin, [home, home], Recipient::Key(person(9))));
    net.exchange.stop();
}

/// Another process holds the log of a shard while its epoch begins and ends. The shard starts later, and then knows
/// what certified blocks have said meanwhile: its outputs, a case, and the epoch.
#[test]
fn a_shard_that_starts_late_knows_what_blocks_have_said() {
    let (dir, mut genesis) = (private(), genesis());
    // The shard is tried again after 63 and 127 blocks, and signs until epoch 3.
    genesis.lane.as_mut().expect("it has a lane").epoch_heights = 100;
    let net = Net::with(&genesis, LaneKeys::Fixed(vec![shard_key()]), dir.path(), free_address());
    let log = RealDisk::new(dir.path().join("lane/1/0")).expect("the directory of the next epoch");
    let held = log.lock().expect("readable").expect("nobody holds it");
    net.reach(1);
    let [coin, contested] = [1, 2].map(|of| net.withdraw(of, 100).0);
    contest(&net, 2, &contested, 1);
    net.reach(2);
    wait_until("one of two shards runs", || net.exchange.lane_shards_unreachable() == 1);
    drop(held);
    wait_until("the other one starts", || {
        net.submit(3, Operation::Pay { to: person(9).address(), asset: USD, amount: 1 });
        // The lane's host follows blocks on its own thread.
        std::thread::sleep(Duration::from_millis(40));
        net.exchange.lane_shards_unreachable() == 0
    });
    // Its vote for the exit decides the case, because it is the only member.
    wait_until("the case is decided", || net.escrow() <= 100);
    assert_eq!(net.epoch(), 2);
    net.confirm(&mut net.client(1), &net.pay(1, &coin, [1, 2], Recipient::Key(person(9))));
    net.exchange.stop();
}

/// A deleted lane log is never recreated for an epoch that has begun: the shard stays mute.
#[test]
fn a_deleted_log_mutes_until_the_next_epoch() {
    let dir = private();
    let address = free_address();
    let net = Net::start(dir.path(), address);
    let (coin, home) = net.withdraw(1, 1_000);
    net.exchange.stop();
    drop(net);
    std::fs::remove_dir_all(dir.path().join("lane")).expect("deleted");
    let net = Net::start(dir.path(), address);
    let payment = net.pay(1, &coin, [home, home], Recipient::Key(person(2)));
    net.client(home).confirm(&payment, Duration::from_secs(1)).expect_err("the shard is mute");
    net.reach(home + 1);
    let (coin, home) = net.withdraw(1, 500);
    let payment = net.pay(1, &coin, [home, home], Recipient::Key(person(2)));
    net.confirm(&mut net.client(home), &payment);
    net.exchange.stop();
}

/// A payment is contested, barred and confirmed. After a restart the shard does not refuse it: its log has the bar, and
/// the ledger the verdict.
#[test]
fn a_verdict_outlasts_a_restart() {
    let (dir, address) = (private(), free_address());
    let net = Net::start(dir.path(), address);
    let (coin, home) = net.withdraw(1, 1_000);
    let mut client = net.client(home);
    let payment = net.pay(1, &coin, [home, home], Recipient::Key(person(2)));
    let receipt = net.confirm(&mut client, &payment);
    let received = receipt.verify(client.committee(), &mut RootCache::new(16)).expect("it holds");
    contest(&net, 1, &coin, home);
    // The record of a payment has no digest, that of a bar has.
    let log = dir.path().join(format!("lane/{home}/0"));
    wait_until("the payment is barred", || holds(&log, &payment.digest));
    net.exchange.stop();
    drop(net);
    let net = Net::start(dir.path(), address);
    let resolver = |ledger: &ledger::Ledger| {
        let resolver = ledger.lane().expect("there is one").bridge().resolver();
        (resolver.open_cases(), resolver.confirms(&payment.digest))
    };
    assert_eq!(net.exchange.read(resolver), (0, true));
    let next = net.pay(2, &received, [home, home], Recipient::Key(person(3)));
    let mut client = net.client(home);
    wait_until("the shard accepts the output", || client.confirm(&next, PATIENCE).is_ok());
    net.exchange.stop();
}

/// Whether a file of a directory holds these bytes.
fn holds(directory: &Path, digest: &Digest) -> bool {
    let files = std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut contents = files.filter(|file| file.is_file()).map(|file| std::fs::read(file).expect("readable"));
    contents.any(|bytes| bytes.windows(digest.0.len()).any(|part| part == digest.0))
}
