//! A shard that loses power at every point of its log's life, and one that is killed.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kernel::{FaultDisk, Surviving};
use lane::{FileLog, LaneClient, LaneClientError, LaneDirectory, LaneShard, ShardError, ShardLimits, ShardSetup};
use payments::{
    AssetRule, Holding, LaneCommittee, LaneRules, LaneSettings, LogOwner, Output, OutputId, OutputProof, Recipient,
    SignedPayment, build_payment,
};
use primitives::{AssetId, Digest, SecretKey};
use store::{Disk, RealDisk};

const NETWORK: Digest = Digest([9; 32]);
/// Nothing is measured here: it only has to end.
const PATIENCE: Duration = Duration::from_secs(600);
const COINS: u32 = 400;
/// Names the directory where the child of the killing test keeps its log.
const CHILD: &str = "WALRAS_LANE_CHILD";

fn key() -> SecretKey {
    SecretKey::from_seed([1; 32])
}

fn owner() -> SecretKey {
    SecretKey::from_seed([2; 32])
}

fn rules() -> LaneRules {
    LaneRules { network: NETWORK, assets: BTreeMap::new(), other: AssetRule { least_units: 1, fee: 0 } }
}

fn log_owner() -> LogOwner {
    LogOwner { network: NETWORK, home: 0, validator: 0, shard: 0 }
}

fn committee() -> LaneCommittee {
    LaneCommittee::new(NETWORK, 0, vec![vec![key().public()]])
}

fn settings() -> LaneSettings {
    LaneSettings {
        rules: rules(),
        committee: committee(),
        previous: None,
        validator: 0,
        shard: 0,
        now: 0,
        leaves: 4,
        entries_max: 1 << 20,
        trees_waiting_max: 64,
        checks_per_peer: 10_000,
        checks_per_tick: 100_000,
        roots_per_validator: 16,
    }
}

fn coin(index: u32) -> Holding {
    let id = OutputId::of_genesis(&NETWORK, 0, index);
    let output = Output { to: Recipient::Key(owner().public()), asset: AssetId(0), amount: 100 };
    Holding { id, output, proof: OutputProof::Ledger }
}

/// Coin `index`, paid to one of two people.
fn pay(index: u32, to: u8) -> SignedPayment {
    let to = SecretKey::from_seed([10 + to; 32]).public();
    let outputs = vec![Output { to: Recipient::Key(to), ..coin(index).output }];
    build_payment(&rules(), &owner(), 0, 0, vec![coin(index)], outputs).expect("correct")
}

fn start(disk: &impl Disk) -> Result<LaneShard, ShardError> {
    let backed = (0..COINS).map(coin).map(|coin| (coin.id, coin.output)).collect();
    let setup = ShardSetup {
        settings: settings(),
        key: key(),
        bls_key: None,
        share: None,
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        tls: false,
        proven: Vec::new(),
        backed,
        peers: None,
        limits: ShardLimits::default(),
        known: Default::default(),
        post: Box::new(drop),
    };
    LaneShard::start(setup, disk)
}

fn client(address: SocketAddr) -> LaneClient {
    LaneClient::new(LaneDirectory { committee: committee(), addresses: vec![vec![address]], tls: false })
}

/// The state of the disk if power failed at some point, and what had been signed by then.
type Cut = (FaultDisk, BTreeMap<u32, Digest>);

#[test]
fn whatever_was_signed_stands_after_a_power_cut_at_any_point() {
    const PAID: u32 = 12;
    let survivals = [Surviving::Nothing, Surviving::Everything, Surviving::Torn(0), Surviving::Some(5)];
    let disk = FaultDisk::new(3);
    FileLog::create(&disk, &log_owner()).expect("a log");
    let signed: Arc<Mutex<BTreeMap<u32, Digest>>> = Arc::default();
    let cuts: Arc<Mutex<Vec<Cut>>> = Arc::default();
    disk.watch({
        let (signed, cuts) = (signed.clone(), cuts.clone());
        move |disk| {
            let by_now = signed.lock().expect("no panic").clone();
            let cut = |surviving: Surviving| (disk.after_crash(surviving), by_now.clone());
            cuts.lock().expect("no panic").extend(survivals.into_iter().map(cut));
        }
    });
    {
        let shard = start(&disk).expect("starts");
        let mut client = client(shard.address());
        for index in 0..PAID {
            let payment = pay(index, 0);
            client.confirm(&payment, PATIENCE).expect("confirmed");
            signed.lock().expect("no panic").insert(index, payment.digest);
        }
    }
    let cuts = std::mem::take(&mut *cuts.lock().expect("no panic"));
    assert!(cuts.len() > 4 * 2 * PAID as usize, "each payment is written and synced");
    let mut freed = 0;
    for (disk, signed) in cuts {
        let shard = start(&disk).expect("what a crash leaves is no damage");
        let mut client = client(shard.address());
        for index in 0..PAID {
            let other = client.confirm(&pay(index, 1), PATIENCE);
            match signed.get(&index) {
                Some(_) => {
                    assert!(matches!(other, Err(LaneClientError::Refused { .. })), "coin {index} is spent twice")
                }
                // No one got an answer to a payment of it: whichever is known stands.
                None => freed += u32::from(other.is_ok()),
            }
        }
    }
    assert!(freed > 0, "no output is frozen by a crash");
}

/// Not a test by itself: the shard that the test below kills.
#[test]
fn child() {
    let Ok(home) = std::env::var(CHILD) else { return };
    let shard = start(&RealDisk::new(&home).expect("a directory")).expect("what a kill leaves is no damage");
    println!("\nlistens {}", shard.address());
    loop {
        std::thread::park();
    }
}

fn spawn(home: &Path) -> (Child, SocketAddr) {
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "child", "--nocapture"])
        .env(CHILD, home)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let line = lines.map_while(Result::ok).find_map(|line| Some(line.strip_prefix("listens ")?.to_string()));
    (child, line.expect("it listens").parse().expect("an address"))
}

#[test]
fn a_killed_shard_never_signs_another_payment_of_the_same_money() {
    const KILLS: u32 = 12;
    const OF_A_LIFE: u32 = 30;
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("shard");
    FileLog::create(&RealDisk::new(&home).expect("a directory"), &log_owner()).expect("a log");
    let mut signed = BTreeMap::new();
    for life in 0..KILLS {
        let (mut child, address) = spawn(&home);
        // The shard is killed while it works, each time a little later.
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(u64::from(3 * life)));
            child.kill().expect("it runs");
            child.wait().expect("it ran");
        });
        let mut client = client(address);
        for index in life * OF_A_LIFE..(life + 1) * OF_A_LIFE {
            let payment = pay(index, (index % 2) as u8);
            if client.confirm(&payment, Duration::from_millis(60)).is_err() {
                break;
            }
            signed.insert(index, payment);
        }
        killer.join().expect("no panic");
    }
    let (mut child, address) = spawn(&home);
    let mut client = client(address);
    for (index, payment) in &signed {
        let other = client.confirm(&pay(*index, 1 - (index % 2) as u8), PATIENCE);
        assert!(matches!(other, Err(LaneClientError::Refused { .. })), "coin {index} is spent twice");
        client.confirm(payment, PATIENCE).expect("the same payment gets the same answer");
    }
    child.kill().expect("it runs");
    child.wait().expect("it ran");
    assert!(!signed.is_empty(), "every shard was killed before it signed anything");
}
