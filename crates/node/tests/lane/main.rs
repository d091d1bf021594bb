//! Money moves ledger → lane → lane → ledger through one node, which is the whole committee of its lane.

mod faults;

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use doors::{Answer, Awaited};
use lane::{LaneClient, LaneDirectory};
use ledger::{Genesis, LaneAsset, LaneBls, LaneTerms, Listing, Outcome};
use node::{Config, Exchange, HOME_PORTS, LaneKeys, LaneSeat, LaneStartError, home_address, make_first_lane_keys};
use payments::{
    AnswerScheme, BridgeOperation, Claim, ContestClaim, ContestedOutput, FastReceipt, Holding, HomeEpoch, LaneAnswer,
    Output, OutputId, OutputProof, PaymentBody, PaymentCertificate, PaymentView, Recipient, RootCache, SignedPayment,
    SpentOutput, StatementKind, build_payment, owner_message,
};
use primitives::{AssetId, Body, Fraction, Operation, PublicKey, SecretKey, Signature};

const USD: AssetId = AssetId(0);
const START: u64 = 1_000_000;
const HEIGHTS: u64 = 6;
const CASE_DEPOSIT: u64 = 7;
/// Nothing is measured here; the tests only have to end.
const PATIENCE: Duration = Duration::from_secs(600);

fn key(person: u8) -> SecretKey {
    SecretKey::from_seed([person; 32])
}

fn shard_key() -> SecretKey {
    key(200)
}

/// The validator's own account, which pays for votes.
fn account() -> SecretKey {
    key(100)
}

fn genesis() -> Genesis {
    let assets = vec![Listing::new("USD", 2, key(9).public().address())];
    let people = [1, 2, 3, 100];
    let balances = people.map(|person| (key(person).public().address(), USD, START)).to_vec();
    let lane = LaneTerms {
        epoch_heights: HEIGHTS,
        halt_heights: 3,
        case_deposit: CASE_DEPOSIT,
        lapse_penalty: 0,
        members: vec![vec![shard_key().public()]],
        registrars: Vec::new(),
        bls: LaneBls::None,
        accounts: Vec::new(),
        assets: vec![LaneAsset { asset: USD, least_units: 1, fee: 0, outflow: None }],
        outputs: vec![],
    };
    Genesis { chain: 7, mu: Fraction::power_of_two(10), assets, balances, lane: Some(lane), ..Genesis::default() }
}

/// An address with as many free ports above it as a shard takes.
fn free_address() -> SocketAddr {
    sockets::free_ports(HOME_PORTS).expect("free ports")
}

/// A directory readable by its owner only, as a node demands.
fn private() -> tempfile::TempDir {
    let only_owner = std::fs::Permissions::from_mode(0o700);
    tempfile::Builder::new().permissions(only_owner).tempdir().expect("a directory")
}

/// As [`genesis`], with keys that change with each epoch; the first ones are created in `data`.
fn rotating(data: &Path) -> Genesis {
    let mut genesis = genesis();
    let lane = genesis.lane.as_mut().expect("it has a lane");
    lane.members = vec![make_first_lane_keys(data, 1, None).expect("made")];
    lane.registrars = vec![shard_key().public()];
    genesis
}

struct Net {
    exchange: Arc<Exchange>,
    /// The addresses of its shards.
    addresses: Vec<SocketAddr>,
}

impl Net {
    fn start(data: &Path, address: SocketAddr) -> Net {
        Net::with(&genesis(), LaneKeys::Fixed(vec![shard_key()]), data, address)
    }

    fn with(genesis: &Genesis, keys: LaneKeys, data: &Path, address: SocketAddr) -> Net {
        Net::among(genesis, keys, data, vec![vec![address]])
    }

    /// As the first of several members.
    fn among(genesis: &Genesis, keys: LaneKeys, data: &Path, addresses: Vec<Vec<SocketAddr>>) -> Net {
        let own = addresses[0].clone();
        let mut config = Config::default();
        config.blocks.interval_ms = 5;
        let exchange = Arc::new(Exchange::start(config, genesis, data, None).expect("starts"));
        exchange
            .start_lane(
                LaneSeat {
                    index: 0,
                    keys,
                    registers: own.len() as u16,
                    bind: None,
                    addresses,
                    tls: false,
                    known: Default::default(),
                    account: account(),
                    safe: None,
                    apart: Default::default(),
                },
                data,
            )
            .expect("takes part");
        Net { exchange, addresses: own }
    }

    /// Submits an operation and waits until it is in a block.
    fn submit(&self, person: u8, operation: Operation) -> u64 {
        let account = key(person).public().address();
        let highest = |ledger: &ledger::Ledger| ledger.accounts().get(&account).expect("exists").window().highest();
        let sequence = self.exchange.read(highest) + 1;
        let transaction = Body { chain: 7, account, sequence, until: 50_000, operation }
            .sign(&self.exchange.read(ledger::Ledger::network), &key(person));
        let answers = self.exchange.submit(vec![transaction], true).expect("open").blocking_recv().expect("an answer");
        match answers.into_iter().next().expect("one answer") {
            Answer::Pending(_, Some(found)) => {
                let told = found.blocking_recv().expect("committed");
                assert!(matches!(told, Awaited::Committed(found) if found.outcome == Outcome::Applied), "{told:?}");
            }
            other => panic!("{other:?}"),
        }
        sequence
    }

    fn withdraw(&self, person: u8, amount: u64) -> (Holding, HomeEpoch) {
        let (to, home) = (key(person).public(), self.epoch());
        let sequence = self.submit(person, Operation::Withdraw { to, asset: USD, amount });
        self.exchange.read(|ledger| {
            let lane = ledger.lane().expect("there is one");
            let id = OutputId::of_deposit(&lane.network(), home, &key(person).public().address(), sequence);
            let (id, output) = lane.bridge().backed(home).find(|(backed, _)| **backed == id).expect("it is backed");
            (Holding { id: *id, output: *output, proof: OutputProof::Ledger }, home)
        })
    }

    fn epoch(&self) -> HomeEpoch {
        self.exchange.read(|ledger| ledger.lane().expect("there is one").bridge().clock().epoch())
    }

    fn balance(&self, person: u8) -> u64 {
        let account = key(person).public().address();
        self.exchange.read(|ledger| ledger.accounts().get(&account).expect("exists").balance(USD))
    }

    fn escrow(&self) -> u128 {
        self.exchange.read(|ledger| ledger.lane().expect("there is one").held(USD))
    }

    /// Passes blocks until a lane epoch begins.
    fn reach(&self, epoch: HomeEpoch) {
        while self.epoch() < epoch {
            let to = key(2).public().address();
            self.submit(3, Operation::Pay { to, asset: USD, amount: 1 });
        }
    }

    fn client(&self, home: HomeEpoch) -> LaneClient {
        let committee = self.exchange.read(|ledger| ledger.lane()?.committee(home).cloned()).expect("it counts");
        let addresses = vec![self.addresses.iter().map(|of| home_address(*of, home)).collect()];
        LaneClient::new(LaneDirectory { committee, addresses, tls: false })
    }

    fn pay(&self, from: u8, coin: &Holding, homes: [HomeEpoch; 2], to: Recipient) -> SignedPayment {
        let rules = self.exchange.read(|ledger| ledger.lane().expect("there is one").rules(homes[0]));
        let outputs = vec![Output { to, ..coin.output }];
        build_payment(&rules, &key(from), homes[0], homes[1], vec![coin.clone()], outputs).expect("correct")
    }

    /// Gets a payment confirmed; its certificate's receipt.
    fn confirm(&self, client: &mut LaneClient, payment: &SignedPayment) -> FastReceipt {
        let certificate = client.confirm(payment, PATIENCE).expect("confirmed");
        let view = PaymentView::parse(&payment.payment).expect("well-formed");
        FastReceipt::of(&view, 0, certificate).expect("it has an output")
    }

    fn redeem(&self, person: u8, payment: &SignedPayment, receipt: &FastReceipt) {
        let (payment, certificate) = (payment.payment.clone(), receipt.proof.certificate.clone());
        let redeem = BridgeOperation::Redeem { payment, certificate };
        self.submit(person, Operation::Lane(redeem.encode().into()));
    }
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "waited for long until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The owner contests an output.
fn contest(net: &Net, owner: u8, coin: &Holding, home: HomeEpoch) {
    let output = SpentOutput { id: coin.id, asset: USD, amount: coin.output.amount };
    let contested = ContestedOutput { output, home, owner: person(owner) };
    let network = net.exchange.read(|ledger| ledger.lane().expect("there is one").network());
    let exit = PaymentBody::new(contested.exit(network));
    let signature = key(owner).sign(&owner_message(&network, home, &exit.digest));
    let (deposit, proof) = (CASE_DEPOSIT, OutputProof::Ledger);
    let resolve =
        BridgeOperation::Resolve { bid: deposit, outputs: vec![ContestClaim { contested, signature, proof }] };
    net.submit(owner, Operation::Lane(resolve.encode().into()));
}

fn person(person: u8) -> PublicKey {
    key(person).public()
}

#[test]
fn money_moves_into_the_lane_through_it_and_back_across_restart_and_epochs() {
    let dir = private();
    let address = free_address();
    let net = Net::start(dir.path(), address);
    let (coin, home) = net.withdraw(1, 1_000);
    assert_eq!((net.balance(1), net.escrow()), (START - 1_000, 1_000));

    // Lane → lane: a fast receipt, checked offline, and a settled one.
    let mut client = net.client(home);
    let payment = net.pay(1, &coin, [home, home], Recipient::Key(person(2)));
    let receipt = net.confirm(&mut client, &payment);
    let received = receipt.verify(client.committee(), &mut RootCache::new(16)).expect("it holds");
    client.settle(&receipt, PATIENCE).expect("settled");

    // The node restarts: the same bytes get an answer, other bytes for the same money do not.
    net.exchange.stop();
    drop(net);
    let net = Net::start(dir.path(), address);
    let mut client = net.client(home);
    net.confirm(&mut client, &payment);
    let again = net.pay(1, &coin, [home, home], Recipient::Key(person(3)));
    client.confirm(&again, PATIENCE).expect_err("the money is spent");

    // An epoch later the home committee still signs, into the new epoch.
    net.reach(home + 1);
    let mut client = net.client(home);
    let homes = [home, home + 1];
    let payment = net.pay(2, &received, homes, Recipient::Account(person(3).address()));
    let receipt = net.confirm(&mut client, &payment);
    let before = net.balance(3);
    net.redeem(2, &payment, &receipt);
    assert_eq!((net.balance(3), net.escrow()), (before + 1_000, 0));
    // A copy is not paid out.
    net.redeem(1, &payment, &receipt);
    assert_eq!((net.balance(3), net.escrow()), (before + 1_000, 0));
    net.exchange.stop();
}

/// New epochs have their own shards, and outputs of each are spendable there.
#[test]
fn each_epoch_has_its_shard() {
    let dir = private();
    let net = Net::start(dir.path(), free_address());
    for epoch in 0..5 {
        net.reach(epoch);
        let (coin, home) = net.withdraw(1, 10 + epoch);
        let payment = net.pay(1, &coin, [home, home], Recipient::Key(person(2)));
        net.confirm(&mut net.client(home), &payment);
    }
    // Logs of epochs that are over stay for eight epochs more: they are evidence at a restart.
    let log = |epoch: &u64| dir.path().join(format!("lane/{epoch}")).exists();
    wait_until("all logs are there, and that of the next epoch", || (0..=5).all(|epoch| log(&epoch)));
    net.exchange.stop();
}

/// Keys are fresh in each epoch, registered before it begins, and destroyed after it; a restart finds them.
#[test]
fn keys_rotate_with_the_lane_epoch() {
    let dir = private();
    let address = free_address();
    let genesis = rotating(dir.path());
    let start = || Net::with(&genesis, LaneKeys::Registrar(Box::new(shard_key())), dir.path(), address);
    let mut net = start();
    let mut known = Vec::new();
    for epoch in 0..5 {
        net.reach(epoch);
        if epoch == 2 {
            net.exchange.stop();
            drop(net);
            net = start();
        }
        let (coin, home) = net.withdraw(1, 10 + epoch);
        let payment = net.pay(1, &coin, [home, home], Recipient::Key(person(2)));
        net.confirm(&mut net.client(home), &payment);
        let key = net.client(home).committee().key(0, 0).expect("registered");
        assert!(!known.contains(&key) && key != shard_key().public(), "the key of epoch {home} is not fresh");
        known.push(key);
    }
    let keys = || {
        let has_key = |epoch: &u64| dir.path().join(format!("lane/{epoch}/0/shard-key")).exists();
        (0..8).filter(has_key).collect::<Vec<u64>>()
    };
    wait_until("the keys of epochs 2 to 5 are there", || keys() == [2, 3, 4, 5]);
    net.exchange.stop();
}

/// The member generates a group key for each epoch over the ledger. Restarts while it deals, during the complaint
/// period and while its share signs change nothing.
#[test]
fn a_group_key_is_made_over_the_ledger_across_restarts() {
    let dir = private();
    let address = free_address();
    let mut genesis = rotating(dir.path());
    let terms = genesis.lane.as_mut().expect("it has a lane");
    (terms.bls, terms.epoch_heights) = (LaneBls::Threshold, 16);
    let start = || Net::with(&genesis, LaneKeys::Registrar(Box::new(shard_key())), dir.path(), address);
    let restart = |net: Net| {
        net.exchange.stop();
        drop(net);
        start()
    };
    let generation = |net: &Net, epoch: HomeEpoch| {
        net.exchange.read(|ledger| ledger.lane().expect("there is one").bridge().generation(epoch).cloned())
    };
    let mut net = restart(start());
    for epoch in 1..=2 {
        // Its own posts cause blocks.
        wait_until("somebody deals", || generation(&net, epoch).is_some_and(|of| of.dealing_of(0).is_some()));
        net = restart(net);
        while !generation(&net, epoch).expect("a board").awaits_complaints() {
            net.submit(3, Operation::Pay { to: person(2).address(), asset: USD, amount: 1 });
        }
        net = restart(net);
        net.reach(epoch);
        if epoch == 2 {
            net = restart(net);
        }
        let (coin, home) = net.withdraw(1, 10 + epoch);
        let payment = net.pay(1, &coin, [home, home], Recipient::Account(person(3).address()));
        let mut client = net.client(home).under(AnswerScheme::Share).expect("there is a group key");
        let receipt = net.confirm(&mut client, &payment);
        assert!(matches!(receipt.proof.certificate, PaymentCertificate::Threshold(_)));
        let mut client = net.client(home).under(AnswerScheme::Bls).expect("there are BLS keys");
        let aggregate = net.confirm(&mut client, &payment).proof.certificate;
        assert!(matches!(aggregate, PaymentCertificate::Aggregate(_)), "the same payment under the other scheme");
        let before = net.balance(3);
        net.redeem(2, &payment, &receipt);
        assert_eq!(net.balance(3), before + 10 + epoch);
    }
    net.exchange.stop();
}

/// The owner contests an output: the validator learns of the case, votes for the exit by its own transaction, and the
/// owner gets the money back.
#[test]
fn a_contested_output_goes_home_by_the_validators_vote() {
    let dir = private();
    let net = Net::start(dir.path(), free_address());
    let (coin, home) = net.withdraw(1, 1_000);
    contest(&net, 1, &coin, home);
    wait_until("the validator votes", || net.escrow() == 0);
    let left = (START - CASE_DEPOSIT, START);
    assert_eq!((net.balance(1), net.balance(100)), left, "the case has used up its bid, and duties are free");
    net.exchange.stop();
}

/// Blocks contain two votes of one member: a node that takes part in the lane accuses it.
#[test]
fn a_member_that_votes_twice_is_accused_and_convicted() {
    let dir = private();
    let mut genesis = genesis();
    let members = [200, 201, 202, 203];
    genesis.lane.as_mut().expect("it has a lane").members = members.map(|seed| vec![key(seed).public()]).to_vec();
    let addresses = members.map(|_| vec![free_address()]).to_vec();
    let net = Net::among(&genesis, LaneKeys::Fixed(vec![shard_key()]), dir.path(), addresses);
    let (coin, home) = net.withdraw(1, 1_000);
    contest(&net, 1, &coin, home);
    let committee = net.exchange.read(|ledger| ledger.lane()?.committee(home).cloned()).expect("it counts");
    for to in [2, 3] {
        let SignedPayment { payment, digest, signature, .. } =
            net.pay(1, &coin, [home, home], Recipient::Key(person(to)));
        let (validator, unsigned) = (3, Signature([0; 64]));
        let mut answer =
            LaneAnswer { validator, size: 1, index: 0, position: 1, signature: unsigned, path: Vec::new() };
        let claim = Claim { kind: StatementKind::Confirmation, owner: &person(1), digest: &digest };
        let header = answer.header(&committee, &claim).expect("a tree of one leaf");
        answer.signature = key(203).sign(&header.bytes());
        let vote = BridgeOperation::Vote { case: coin.id, payment, signature: Some(signature), answer };
        net.submit(2, Operation::Lane(vote.encode().into()));
    }
    let convicted = || net.exchange.read(|ledger| ledger.lane().expect("there is one").bridge().convicted().clone());
    wait_until("somebody accuses", || !convicted().is_empty());
    assert_eq!(convicted().into_iter().collect::<Vec<u8>>(), [3]);
    net.exchange.stop();
}

#[test]
fn a_member_with_other_keys_does_not_start() {
    let dir = private();
    let exchange = Exchange::start(Config::default(), &genesis(), dir.path(), None).expect("starts");
    let member = |index, key, addresses| LaneSeat {
        index,
        keys: LaneKeys::Fixed(vec![key]),
        addresses,
        registers: 1,
        bind: None,
        tls: false,
        known: Default::default(),
        account: account(),
        safe: None,
        apart: Default::default(),
    };
    let at: SocketAddr = "127.0.0.1:7100".parse().expect("an address");
    let start = |member| exchange.start_lane(member, dir.path());
    assert!(matches!(start(member(0, key(1), vec![vec![at]])), Err(LaneStartError::Keys { .. })));
    assert!(matches!(start(member(1, shard_key(), vec![vec![at]])), Err(LaneStartError::Keys { .. })));
    assert!(matches!(start(member(0, shard_key(), vec![])), Err(LaneStartError::Addresses(_))));
    let two = LaneSeat { registers: 2, ..member(0, shard_key(), vec![vec![at, at]]) };
    assert!(matches!(start(two), Err(LaneStartError::Registers(_))), "their number does not change, either");
    let none = LaneSeat { registers: 0, ..member(0, shard_key(), vec![vec![at]]) };
    assert!(matches!(start(none), Err(LaneStartError::Registers(_))));
    let registrar =
        LaneSeat { keys: LaneKeys::Registrar(Box::new(shard_key())), ..member(0, shard_key(), vec![vec![at]]) };
    assert!(matches!(start(registrar), Err(LaneStartError::Registrar(0))), "this chain's keys do not change");
    exchange.stop();
}
