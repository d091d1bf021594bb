//! Whole committees on real sockets and disks.

mod admission;
mod restored;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lane::wire::{HEAD_BYTES, REPLY_BYTES_MAX, Reply, read_head, read_reply, write_frame, write_refusal};
use lane::{
    FileLog, LaneClient, LaneClientError, LaneDirectory, LaneShard, Outbox, OutboxError, ShardError, ShardLimits,
    ShardSetup,
};
use payments::{
    AssetRule, FastReceipt, Holding, LaneCommittee, LaneInput, LaneRefusal, LaneRules, LaneSettings, LogOwner,
    MuteReason, Output, OutputId, OutputProof, PaymentView, Recipient, RootCache, SignedPayment, build_payment,
};
use primitives::{AssetId, Digest, PublicKey, SecretKey};
use sockets::{Acquaintances, Networks};
use store::RealDisk;

const NETWORK: Digest = Digest([9; 32]);
/// Nothing is measured here: it only has to end.
const PATIENCE: Duration = Duration::from_secs(600);

fn secret(kind: u8, number: usize) -> SecretKey {
    let mut seed = [kind; 32];
    seed[..8].copy_from_slice(&(number as u64).to_le_bytes());
    SecretKey::from_seed(seed)
}

fn owner(number: usize) -> SecretKey {
    secret(1, number)
}

fn shard_key(validator: usize, shard: usize) -> SecretKey {
    secret(2, validator * 100 + shard)
}

fn rules() -> LaneRules {
    LaneRules { network: NETWORK, assets: BTreeMap::new(), other: AssetRule { least_units: 1, fee: 0 } }
}

fn output(to: PublicKey, amount: u64) -> Output {
    Output { to: Recipient::Key(to), asset: AssetId(0), amount }
}

/// Output number `index` of the genesis: 100 units of the owner with that number.
fn coin(index: usize) -> Holding {
    let id = OutputId::of_genesis(&NETWORK, 0, index as u32);
    Holding { id, output: output(owner(index).public(), 100), proof: OutputProof::Ledger }
}

fn pay(coin: &Holding, from: usize, to: usize) -> SignedPayment {
    let outputs = vec![output(owner(to).public(), coin.output.amount)];
    build_payment(&rules(), &owner(from), 0, 0, vec![coin.clone()], outputs).expect("correct")
}

/// A committee whose shards can be stopped and started one by one.
struct Network {
    home: tempfile::TempDir,
    directory: LaneDirectory,
    coins: usize,
    leaves: usize,
    limits: ShardLimits,
    known: Acquaintances,
    shards: Vec<Vec<Option<LaneShard>>>,
}

/// An address that no one else takes while a shard is stopped.
fn free_address() -> SocketAddr {
    sockets::free_address().expect("a free port")
}

impl Network {
    fn new(validators: usize, shards: usize, coins: usize) -> Network {
        let keys = |validator| (0..shards).map(|shard| shard_key(validator, shard).public()).collect();
        let committee = LaneCommittee::new(NETWORK, 0, (0..validators).map(keys).collect());
        let addresses = (0..validators).map(|_| (0..shards).map(|_| free_address()).collect()).collect();
        let network = Network {
            home: tempfile::tempdir().expect("a directory"),
            directory: LaneDirectory { committee, addresses, tls: false },
            coins,
            leaves: 64,
            limits: ShardLimits::default(),
            known: Acquaintances::default(),
            shards: (0..validators).map(|_| (0..shards).map(|_| None).collect()).collect(),
        };
        for (validator, shard) in network.places() {
            FileLog::create(&network.disk(validator, shard), &network.owner(validator, shard)).expect("a log");
        }
        network
    }

    fn started(validators: usize, shards: usize, coins: usize) -> Network {
        Network::new(validators, shards, coins).start_all()
    }

    fn start_all(mut self) -> Network {
        self.places().into_iter().for_each(|(validator, shard)| self.start(validator, shard).expect("starts"));
        self
    }

    fn places(&self) -> Vec<(usize, usize)> {
        (0..self.shards.len()).flat_map(|of| (0..self.shards[of].len()).map(move |shard| (of, shard))).collect()
    }

    fn owner(&self, validator: usize, shard: usize) -> LogOwner {
        LogOwner { network: NETWORK, home: 0, validator: validator as u8, shard: shard as u16 }
    }

    fn disk(&self, validator: usize, shard: usize) -> RealDisk {
        RealDisk::new(self.home.path().join(format!("{validator}-{shard}"))).expect("a directory")
    }

    fn settings(&self, validator: usize, shard: usize) -> LaneSettings {
        LaneSettings {
            rules: rules(),
            committee: self.directory.committee.clone(),
            previous: None,
            validator: validator as u8,
            shard: shard as u16,
            now: 0,
            leaves: self.leaves,
            entries_max: 1 << 20,
            trees_waiting_max: 64,
            checks_per_peer: 10_000,
            checks_per_tick: 100_000,
            roots_per_validator: 1_024,
        }
    }

    fn start(&mut self, validator: usize, shard: usize) -> Result<(), ShardError> {
        let setup = ShardSetup {
            settings: self.settings(validator, shard),
            key: shard_key(validator, shard),
            bls_key: None,
            share: None,
            listen: self.directory.addresses[validator][shard],
            tls: self.directory.tls,
            proven: Vec::new(),
            backed: (0..self.coins).map(coin).map(|coin| (coin.id, coin.output)).collect(),
            peers: (self.shards.len() > 1).then(|| self.directory.clone()),
            limits: self.limits,
            known: self.known.clone(),
            post: Box::new(drop),
        };
        self.shards[validator][shard] = Some(LaneShard::start(setup, &self.disk(validator, shard))?);
        Ok(())
    }

    fn stop(&mut self, validator: usize, shard: usize) {
        self.shards[validator][shard] = None;
    }

    fn client(&self) -> LaneClient {
        LaneClient::new(self.directory.clone())
    }
}

fn receipt(payment: &SignedPayment, client: &mut LaneClient) -> FastReceipt {
    let certificate = client.confirm(payment, PATIENCE).expect("confirmed");
    let view = PaymentView::parse(&payment.payment).expect("a payment");
    FastReceipt::of(&view, 0, certificate).expect("it has an output")
}

#[test]
fn money_moves_over_tls_and_only_the_shards_key_is_believed() {
    let mut network = Network::new(4, 2, 4);
    network.directory.tls = true;
    let network = network.start_all();
    let mut client = network.client();
    for from in 0..4 {
        let fast = receipt(&pay(&coin(from), from, 20), &mut client);
        client.settle(&fast, PATIENCE).expect("settles");
    }
    // A server with another key than the registered one is refused before anything is sent.
    let address = network.directory.addresses[0][0];
    assert!(lane::connect(address, Some(shard_key(0, 0).public())).is_ok());
    let refused = lane::connect(address, Some(shard_key(0, 1).public())).expect_err("another shard's key");
    assert!(refused.to_string().contains("invalid peer certificate"), "{refused}");
    // A client without TLS gets nothing from a shard with TLS, and the other way round.
    let plain = LaneDirectory { tls: false, ..network.directory.clone() };
    let brief = Duration::from_millis(300);
    let unanswered = LaneClient::new(plain).confirm(&pay(&coin(0), 0, 20), brief);
    assert!(matches!(unanswered, Err(LaneClientError::Unanswered { answered: 0, .. })), "{unanswered:?}");
    let without = Network::started(4, 1, 1);
    let secured = LaneDirectory { tls: true, ..without.directory.clone() };
    assert!(LaneClient::new(secured).confirm(&pay(&coin(0), 0, 20), brief).is_err());
}

#[test]
fn money_moves_over_sockets_and_settles_with_one_validator_down() {
    let mut network = Network::started(4, 2, 8);
    network.stop(3, 0);
    network.stop(3, 1);
    let mut client = network.client();
    let mut roots = RootCache::new(0);
    for from in 0..8 {
        let first = receipt(&pay(&coin(from), from, 20), &mut client);
        let holding = first.verify(&network.directory.committee, &mut roots).expect("it verifies offline");
        let second = receipt(&pay(&holding, 20, 30), &mut client);
        let settled = client.settle(&second, PATIENCE).expect("settles");
        let holding = settled.verify(&network.directory.committee, &mut roots).expect("it verifies offline");
        assert_eq!(holding.output, output(owner(30).public(), 100));
    }
}

#[test]
fn two_payments_of_one_output_are_never_both_confirmed_and_the_second_hears_of_the_first() {
    let network = Network::started(4, 1, 1);
    let mut client = network.client();
    let (one, two) = (pay(&coin(0), 0, 5), pay(&coin(0), 0, 6));
    client.confirm(&one, PATIENCE).expect("confirmed");
    let Err(LaneClientError::Refused { refusals, .. }) = client.confirm(&two, PATIENCE) else { panic!("spent twice") };
    // A validator that is still starting is busy; more than f others name the first payment.
    let said = |words: String| refusals.values().filter(|text| text.contains(&words)).count();
    let (naming, busy) = (said(one.digest.to_string()), said(LaneRefusal::Busy.to_string()));
    assert!(naming >= 2 && naming + busy == refusals.len(), "{refusals:?}");
    client.confirm(&one, PATIENCE).expect("the same payment gets the same answer");
}

#[test]
fn every_shard_may_stop_and_start_again_and_none_forgets_what_it_signed() {
    let mut network = Network::started(4, 1, 6);
    let mut client = network.client();
    for round in 0..3 {
        let paid = pay(&coin(round), round, 9);
        client.confirm(&paid, PATIENCE).expect("confirmed");
        for validator in 0..4 {
            network.stop(validator, 0);
            network.start(validator, 0).expect("its log is whole");
        }
        let mut client = network.client();
        let other = pay(&coin(round), round, 8);
        assert!(matches!(client.confirm(&other, PATIENCE), Err(LaneClientError::Refused { .. })));
        client.confirm(&paid, PATIENCE).expect("the same payment gets the same answer");
    }
}

#[test]
fn an_old_copy_of_a_log_mutes_its_shard_and_the_others_go_on() {
    let mut network = Network::started(4, 1, 3);
    let mut client = network.client();
    let log = |network: &Network| network.home.path().join("0-0/lane-0-0-0");
    let old = std::fs::read(log(&network)).expect("a log");
    // The receiver spends it, so that the validators see certificates of validator 0.
    network.stop(3, 0);
    let first = receipt(&pay(&coin(0), 0, 7), &mut client);
    let holding = first.verify(&network.directory.committee, &mut RootCache::new(0)).expect("verifies");
    receipt(&pay(&holding, 7, 8), &mut client);
    network.stop(0, 0);
    std::fs::write(log(&network), old).expect("the old copy");
    network.start(0, 0).expect("it cannot know yet");
    let mut client = network.client();
    let other = client.confirm(&pay(&coin(0), 0, 9), Duration::from_secs(2));
    assert!(other.is_err(), "two of four have signed another payment, one is down and one is mute");
    network.start(3, 0).expect("starts");
    let mut client = network.client();
    client.confirm(&pay(&coin(1), 1, 9), PATIENCE).expect("three go on");
    let muted = network.shards[0][0].as_ref().expect("it runs").counts();
    assert_eq!(muted.answers.load(Ordering::Acquire), 0, "a shard with an old log has signed");
}

#[test]
fn a_shard_without_its_log_does_not_start_and_a_log_is_made_once() {
    let mut network = Network::new(1, 1, 0);
    let again = FileLog::create(&network.disk(0, 0), &network.owner(0, 0)).expect_err("there is one");
    assert!(again.to_string().contains("created once"), "{again}");
    std::fs::remove_file(network.home.path().join("0-0/lane-0-0-0")).expect("a log");
    let error = network.start(0, 0).expect_err("it would forget what it signed");
    assert!(matches!(error, ShardError::Mute { reason: MuteReason::MissingLog, .. }), "{error}");
}

#[test]
fn one_process_has_a_log() {
    let mut network = Network::new(1, 1, 0);
    network.start(0, 0).expect("starts");
    let running = network.shards[0][0].take();
    let error = network.start(0, 0).expect_err("another has it");
    assert!(matches!(error, ShardError::InUse(_)), "{error}");
    drop(running);
    network.start(0, 0).expect("starts");
}

#[test]
fn what_the_ledger_tells_is_spendable_from_then_on() {
    let network = Network::started(1, 1, 0);
    let (deposit, mut client) = (coin(3), network.client());
    let payment = pay(&deposit, 3, 4);
    let refusals = refused_in_part(&mut client, &payment);
    assert!(refusals[&0].contains("wait until its deposit is certified"), "{refusals:?}");
    let shard = network.shards[0][0].as_ref().expect("it runs");
    shard.tell(LaneInput::Backed(deposit.id, deposit.output));
    client.confirm(&payment, PATIENCE).expect("confirmed");
    shard.tell(LaneInput::Epoch(7));
    let late = client.confirm(&pay(&coin(4), 4, 5), PATIENCE);
    assert!(matches!(late, Err(LaneClientError::Refused { .. })), "{late:?}");
}

/// Sends bytes and reads until the shard closes the connection; returns the received frames.
fn talk(to: SocketAddr, bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let mut stream = TcpStream::connect(to).expect("it listens");
    stream.write_all(bytes).expect("sent");
    stream.shutdown(std::net::Shutdown::Write).expect("half open");
    let mut all = Vec::new();
    // A connection that is closed while bytes are unread may be reset.
    let _ = stream.read_to_end(&mut all);
    let mut frames = Vec::new();
    let mut rest = &all[..];
    while let Ok(Some((length, number))) = read_head(rest, REPLY_BYTES_MAX) {
        frames.push((number, rest[HEAD_BYTES..HEAD_BYTES + length].to_vec()));
        rest = &rest[HEAD_BYTES + length..];
    }
    frames
}

#[test]
fn garbage_is_refused_with_a_reason_and_others_are_not_disturbed() {
    let network = Network::started(1, 1, 1);
    let address = network.directory.addresses[0][0];
    talk(address, &[255; 100]);
    talk(address, &[0; 8]);
    let mut frame = Vec::new();
    write_frame(&mut frame, 77, &[9, 9, 9]);
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(&frame).expect("sent");
    let mut bytes = vec![0; 4_096];
    let count = stream.read(&mut bytes).expect("a reply");
    let (length, number) = read_head(&bytes[..count], REPLY_BYTES_MAX).expect("a head").expect("whole");
    let reply = read_reply(number, &bytes[HEAD_BYTES..HEAD_BYTES + length], None).expect("a reply");
    let Reply::Refusal { number: 77, again: false, text } = reply else { panic!("{reply:?}") };
    assert!(text.contains("malformed"), "{text}");
    network.client().confirm(&pay(&coin(0), 0, 1), PATIENCE).expect("confirmed");
}

/// The validators that refuse a payment without a quorum, once there is one: a busy machine needs a while.
fn refused_in_part(client: &mut LaneClient, payment: &SignedPayment) -> BTreeMap<u8, String> {
    loop {
        match client.confirm(payment, Duration::from_secs(1)) {
            Err(LaneClientError::Unanswered { answered: 0, refusals, .. }) if refusals.is_empty() => {}
            Err(LaneClientError::Unanswered { answered: 0, refusals, .. }) => return refusals,
            answered => panic!("{answered:?}"),
        }
    }
}

/// Serves connections one after the other with `each`, like a server that is not a shard.
fn impostor(mut each: impl FnMut(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || listener.incoming().flatten().for_each(&mut each));
    address
}

#[test]
fn nobody_refuses_for_others() {
    let mut network = Network::new(4, 1, 1);
    let addresses = &mut network.directory.addresses;
    // Three accept requests and do not answer; the fourth refuses for all.
    let mut held = Vec::new();
    let silent = impostor(move |stream| held.push(stream));
    (0..3).for_each(|validator| addresses[validator][0] = silent);
    addresses[3][0] = impostor(|mut stream| {
        let mut bytes = vec![0; 4_096];
        while matches!(stream.read(&mut bytes), Ok(1..)) {
            let mut refusals = Vec::new();
            (0..64).for_each(|number| write_refusal(&mut refusals, number, &LaneRefusal::ForeignHome(9)));
            if stream.write_all(&refusals).is_err() {
                return;
            }
        }
    });
    let refusals = refused_in_part(&mut network.client(), &pay(&coin(0), 0, 5));
    assert_eq!(refusals.keys().collect::<Vec<_>>(), [&3]);
}

#[test]
fn a_peer_that_sends_a_byte_at_a_time_does_not_hold_up_a_start() {
    let mut network = Network::new(4, 1, 1);
    network.directory.addresses[3][0] = impostor(|mut stream| {
        while stream.write_all(&[0]).is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    (0..3).for_each(|validator| network.start(validator, 0).expect("starts"));
    network.client().confirm(&pay(&coin(0), 0, 5), PATIENCE).expect("three have told each other their positions");
}

#[test]
fn a_shard_without_an_address_does_not_answer_for_its_member() {
    let mut network = Network::new(4, 2, 1);
    network.directory.addresses[1].pop();
    let mut start = |validator: usize| (0..2).for_each(|shard| network.start(validator, shard).expect("starts"));
    [0, 2].into_iter().for_each(&mut start);
    network.start(1, 0).expect("starts");
    // One half of member 1 tells nothing, so members 0 and 2 have heard from one other member where they need two.
    let early = network.client().confirm(&pay(&coin(0), 0, 5), Duration::from_secs(2));
    assert!(matches!(early, Err(LaneClientError::Unanswered { .. })), "{early:?}");
    (0..2).for_each(|shard| network.start(3, shard).expect("starts"));
    network.client().confirm(&pay(&coin(0), 0, 5), PATIENCE).expect("three members have told each other");
}

#[test]
fn who_does_not_read_its_replies_is_let_go() {
    let mut network = Network::new(1, 1, 1);
    network.limits.reply_bytes = 10_000;
    network.start(0, 0).expect("starts");
    let mut stream = TcpStream::connect(network.directory.addresses[0][0]).expect("it listens");
    let mut frames = Vec::new();
    (0..1_000).for_each(|number| write_frame(&mut frames, number, &[9]));
    while stream.write_all(&frames).is_ok() {}
    network.client().confirm(&pay(&coin(0), 0, 1), PATIENCE).expect("others are served");
}

#[test]
fn a_client_that_was_killed_finishes_its_payment_with_the_same_bytes() {
    let network = Network::started(4, 1, 2);
    let home = tempfile::tempdir().expect("a directory");
    let outbox = |path: &Path| Outbox::new(RealDisk::new(path.join("outbox")).expect("a directory"));
    let payment = pay(&coin(0), 0, 5);
    outbox(home.path()).insert(&payment).expect("durable");
    // Half of it was sent before the client was killed.
    let mut frame = Vec::new();
    write_frame(&mut frame, 1, &payment.request);
    let mut to_one = TcpStream::connect(network.directory.addresses[0][0]).expect("it listens");
    to_one.write_all(&frame).expect("sent");
    let outbox = outbox(home.path());
    let other = outbox.insert(&pay(&coin(0), 0, 6));
    assert!(matches!(&other, Err(OutboxError::Spent { by, .. }) if *by == payment.digest), "{other:?}");
    let unfinished = outbox.unfinished().expect("readable");
    assert_eq!(unfinished, std::slice::from_ref(&payment));
    let certificate = network.client().confirm(&unfinished[0], PATIENCE).expect("confirmed");
    outbox.finish(&payment.digest, &certificate).expect("durable");
    assert_eq!(outbox.unfinished().expect("readable"), []);
    assert!(matches!(outbox.insert(&pay(&coin(0), 0, 6)), Err(OutboxError::Spent { .. })), "it stays spent");
    outbox.insert(&pay(&coin(1), 1, 6)).expect("another coin");
    // A finished payment is removed with its certificate, also when a crash left only the certificate.
    let names = || {
        let entries = std::fs::read_dir(home.path().join("outbox")).expect("a directory");
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let certificate = format!("certificate-{}", payment.digest);
    outbox.forget(&[payment.digest]).expect("forgotten");
    assert_eq!(names().iter().filter(|name| name.contains(&payment.digest.to_string())).count(), 0, "{:?}", names());
    std::fs::write(home.path().join("outbox").join(&certificate), [1]).expect("a remnant");
    outbox.forget(&[]).expect("nothing more");
    assert!(!names().contains(&certificate));
    assert_eq!(outbox.unfinished().expect("readable").len(), 1, "the other one stays");
}

#[test]
fn a_shard_that_stops_listening_gives_its_address_away_and_one_that_finds_it_taken_waits() {
    let mut network = Network::started(1, 1, 1);
    network.client().confirm(&pay(&coin(0), 0, 5), PATIENCE).expect("confirmed");
    let mut first = network.shards[0][0].take().expect("it runs");
    first.stop_listening();
    first.stop_listening();
    let asked = network.client().confirm(&pay(&coin(0), 0, 5), Duration::from_secs(1));
    assert!(matches!(asked, Err(LaneClientError::Unanswered { answered: 0, .. })), "{asked:?}");
    let address = network.directory.addresses[0][0];
    let other = TcpListener::bind(address).expect("the address is free, and the shard still runs");
    first.tell(LaneInput::Epoch(1));
    drop(first);
    network.start(0, 0).expect("its log is whole");
    assert!(network.shards[0][0].as_ref().is_some_and(LaneShard::awaits_address));
    drop(other);
    network.client().confirm(&pay(&coin(0), 0, 5), PATIENCE).expect("the same answer");
}
