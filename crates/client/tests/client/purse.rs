//! A purse as a library: its folder, its keys, what it refuses, and what a silent or foreign node does to it.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use client::keystore::{KeyError, create_under};
use client::purse::{
    Asking, Deposit, LaneMoney, LaneNetwork, LedgerTrust, Purse, PurseError, PurseRemedy, ReceiptFault, Session, Slip,
    SlipError, checked, read_network,
};
use client::{ClientError, NodeClient};
use payments::{AnswerScheme, AssetRule, LaneCarryOver, Output, OutputId, Recipient};
use primitives::{AssetId, Digest, PublicKey, SecretKey};
use tempfile::TempDir;

const PASSPHRASE: &str = "a passphrase";

fn network(id: u8) -> LaneNetwork {
    let members = (1..=4).map(|seed| vec![SecretKey::from_seed([seed; 32]).public()]).collect();
    let rule = AssetRule { least_units: 10, fee: 1 };
    let money = LaneMoney { asset: AssetId(0), symbol: "EUR".into(), decimals: 2, rule };
    LaneNetwork::new(Digest([id; 32]), members, Vec::new(), vec![money]).proved_by(LedgerTrust::SoloNode)
}

fn make(folder: &Path) -> Result<(), PurseError> {
    Purse::create(folder, &network(7), |path| Ok::<_, PurseError>(create_under(path, PASSPHRASE).map(drop)?))
}

/// A folder that others cannot read.
fn private() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).expect("its owner may");
    folder
}

fn made() -> (TempDir, Purse) {
    let folder = private();
    make(folder.path()).expect("a purse");
    let purse = Purse::open(folder.path()).expect("it opens");
    (folder, purse)
}

/// What the network's restart carries over for a key.
fn carried(to: PublicKey, amount: u64) -> LaneCarryOver {
    let output = Output { to: Recipient::Key(to), asset: AssetId(0), amount };
    LaneCarryOver { outputs: [(OutputId([9; 32]), output)].into(), ..LaneCarryOver::default() }
}

#[test]
fn a_purse_is_made_once_and_opened_by_one_at_a_time() {
    let (folder, purse) = made();
    assert!(matches!(make(folder.path()), Err(PurseError::Exists(_))));
    let busy = Purse::open(folder.path()).err().expect("it is in use");
    assert!(matches!(busy, PurseError::InUse(_)) && busy.to_string().contains("wait until it has ended"), "{busy}");
    drop(purse);
    let purse = Purse::open(folder.path()).expect("nobody uses it");
    assert_eq!((purse.network.id, purse.is_copy()), (Digest([7; 32]), false));
    assert!(matches!(purse.seed("another"), Err(PurseError::Key(KeyError::In { .. } | KeyError::Passphrase))));

    let empty = private();
    let none = Purse::open(empty.path()).err().expect("no purse");
    assert_eq!(none.remedy(), PurseRemedy::MakeOne);
}

#[test]
fn keys_are_durable_before_they_are_given_away_and_belong_to_one_seed() {
    let (folder, mut purse) = made();
    let seed = purse.seed(PASSPHRASE).expect("its seed");
    let keys: Vec<PublicKey> = (0..3).map(|_| purse.keys.make(&seed).expect("a key").public()).collect();
    drop(purse);
    let purse = Purse::open(folder.path()).expect("it opens");
    for key in &keys {
        assert_eq!(purse.keys.secret(&seed, key).expect("its own").public(), *key);
        assert_eq!(purse.keys.secret_of_account(&seed, &key.address()).expect("its own").public(), *key);
    }
    let stranger = SecretKey::from_seed([77; 32]).public();
    assert!(matches!(purse.keys.secret(&seed, &stranger), Err(PurseError::NotOwned(key)) if key == stranger));
    let (_other, purse_of_another) = made();
    let other = purse_of_another.seed(PASSPHRASE).expect("another seed");
    assert!(matches!(purse.keys.secret(&other, &keys[0]), Err(PurseError::OtherSeed)));
}

#[test]
fn a_restored_purse_finds_keys_that_were_made_after_the_copy() {
    let (folder, mut purse) = made();
    let seed = purse.seed(PASSPHRASE).expect("its seed");
    purse.keys.make(&seed).expect("a key");
    let copied = std::fs::read(folder.path().join("keys.json")).expect("the list of keys");
    let later: Vec<PublicKey> = (0..5).map(|_| purse.keys.make(&seed).expect("a key").public()).collect();
    drop(purse);
    std::fs::write(folder.path().join("keys.json"), copied).expect("restored");
    let mut purse = Purse::open(folder.path()).expect("it opens");
    assert!(!purse.keys.owns(&later[4]));
    purse.keys.find_lost(&seed, &later).expect("found");
    assert!(later.iter().all(|key| purse.keys.owns(key)));
}

#[test]
fn a_copied_folder_knows_that_it_is_one() {
    let (folder, purse) = made();
    drop(purse);
    let copy = private();
    for entry in std::fs::read_dir(folder.path()).expect("files").flatten() {
        let to = copy.path().join(entry.file_name());
        match entry.path().is_dir() {
            true => {
                std::fs::create_dir(&to).expect("made");
                std::fs::set_permissions(to, Permissions::from_mode(0o700)).expect("its owner may");
            }
            false => drop(std::fs::copy(entry.path(), to).expect("copied")),
        }
    }
    let mut purse = Purse::open(copy.path()).expect("it opens");
    assert!(purse.is_copy());
    purse.settle_in().expect("settled in");
    assert!(!purse.is_copy());
}

#[test]
fn a_damaged_file_is_named_with_its_remedy_and_hides_no_money() {
    let (folder, purse) = made();
    drop(purse);
    let keys = folder.path().join("keys.json");
    let sound = std::fs::read_to_string(&keys).expect("the list of keys");
    for damage in ["{", r#"{"salt": "1", "keys": [{"public": "0x12", "salt": "1", "index": 0}]}"#] {
        std::fs::write(&keys, damage).expect("damaged");
        let error = Purse::open(folder.path()).err().expect("damaged");
        let said = error.to_string();
        assert!(matches!(error, PurseError::Node(ClientError::File { .. })), "{said}");
        assert!(said.contains("keys.json") && said.contains("from a copy"), "{said}");
    }
    std::fs::write(&keys, sound).expect("mended");
    std::fs::write(folder.path().join("proved-epochs.json"), "[1]").expect("damaged");
    let said = Purse::open(folder.path()).err().expect("damaged").to_string();
    assert!(said.contains("proved-epochs.json") && said.contains("remove it"), "{said}");
}

#[test]
fn a_purse_follows_a_restart_and_keeps_what_was_before() {
    let (folder, mut purse) = made();
    let seed = purse.seed(PASSPHRASE).expect("its seed");
    let own = purse.keys.make(&seed).expect("a key").public();
    let lost = Deposit {
        transaction: "before".into(),
        ..Deposit::carried(&OutputId([1; 32]), &Output { to: Recipient::Key(own), asset: AssetId(0), amount: 5 })
            .expect("a key's")
    };
    purse.keep_deposit(&lost).expect("kept");
    let (outputs, before) = purse.follow(&seed, &network(8), &carried(own, 60)).expect("followed");
    assert_eq!(outputs, 1);
    assert!(before.join("deposits/before.json").exists(), "evidence of before is kept");
    let purse = Purse::open(folder.path()).expect("it opens");
    assert_eq!(purse.network.id, Digest([8; 32]));
    let held = purse.contents().expect("contents").held;
    let values: Vec<(u64, PublicKey)> = held.iter().map(|held| (held.holding.output.amount, held.owner)).collect();
    assert_eq!(values, [(60, own)]);
    assert_eq!(read_network(folder.path()).expect("readable").fingerprint(), network(8).fingerprint());
    // A list without its keys carries nothing over.
    let (outputs, _) = purse.follow(&seed, &network(9), &carried(PublicKey([5; 32]), 1)).expect("followed");
    assert_eq!(outputs, 0);
}

#[test]
fn what_is_no_receipt_is_refused_with_the_reason() {
    let (_folder, purse) = made();
    let of_other = format!("WALRAS:0103{}", "11".repeat(32));
    let cases = [
        ("coffee", "begins with WALRAS:"),
        ("WALRAS:0g", "hexadecimal"),
        ("WALRAS:01", "too early"),
        ("\n \n", "no receipt"),
        (of_other.as_str(), "another network"),
    ];
    for (text, why) in cases {
        let error = Slip::read(text, &purse.network.id).expect_err("no receipt");
        assert!(error.to_string().contains(why), "{text}: {error}");
    }
    let long = format!("WALRAS:{}", "0".repeat(3 << 20));
    assert!(matches!(Slip::parse(&long, &purse.network.id), Err(SlipError::Long)));
    let missing = Slip::read_file(Path::new("/nowhere"), &purse.network.id);
    assert!(matches!(missing, Err(SlipError::Unread(_))));
    let deposit = Slip::Deposit(client::purse::DepositSlip {
        home: 0,
        id: OutputId([1; 32]),
        owner: PublicKey([2; 32]),
        asset: AssetId(0),
        amount: 5,
    });
    assert_eq!(checked(&purse, &deposit, None), Err(ReceiptFault::NoOutput), "a deposit proves nothing");
}

/// A server that answers every request like this.
fn server(status: u16, body: &'static str) -> NodeClient {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut asked = [0; 4_096];
            let read = stream.read(&mut asked).expect("a request");
            let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            // A client may have gone.
            let _ = (read, stream.write_all(format!("{head}{body}").as_bytes()));
        }
    });
    NodeClient::at(format!("http://{address}"))
}

#[test]
fn a_silent_or_foreign_node_ends_a_session_before_anything_is_spent() {
    let (_folder, mut purse) = made();
    let asking = Asking { patience: Duration::ZERO, scheme: AnswerScheme::Tree };
    let mut begin = |node: &NodeClient| {
        let seed = purse.seed(PASSPHRASE).expect("its seed");
        Session::begin(&mut purse, seed, node, asking).err().expect("no session")
    };
    let error = begin(&NodeClient::at("http://127.0.0.1:9"));
    assert!(matches!(error, PurseError::Node(ClientError::NoAnswer { .. })), "{error}");
    let error = begin(&server(200, r#"{"hello": 1}"#));
    assert!(matches!(error, PurseError::Node(ClientError::Foreign { .. })), "{error}");
    assert!(matches!(LaneNetwork::of_node(&server(200, "{}")), Err(PurseError::Node(ClientError::Foreign { .. }))));
    assert!(purse.contents().expect("contents").sent.is_empty());
}

/// Members make a group key in the epoch before. Its keys are proved when it begins, and the board is checked with
/// them.
#[test]
fn the_group_key_of_an_epoch_that_has_not_begun_stops_no_purse() {
    let registrars = (1..=4).map(|seed| SecretKey::from_seed([seed; 32]).public()).collect();
    let mut network = network(7);
    network.registrars = registrars;
    let pinned = network.encode();
    let lane = api::LaneBody {
        height: 90,
        network: pinned.network,
        epoch: 0,
        heights_left: 10,
        epoch_heights: 100,
        halted: false,
        halt_round: 0,
        case_deposit: "1".into(),
        lapse_penalty_millionths: 0,
        open_cases: 0,
        waiting_claims: 0,
        members: pinned.members,
        registrars: pinned.registrars,
        bls: "threshold".into(),
        registrations: Vec::new(),
        group_keys: vec![1],
        accounts: Vec::new(),
        convicted: Vec::new(),
        addresses: Vec::new(),
        tls: true,
        home_ports: 8,
        assets: Vec::new(),
        terms: Vec::new(),
    };
    let body = serde_json::to_string(&lane).expect("plain data").leak();
    assert_eq!(network.learn(&server(200, body)).expect("a lane"), lane);
}

#[test]
fn amounts_are_those_of_the_lane() {
    let network = network(7);
    assert_eq!(network.units("EUR", "12.5").expect("an amount"), (AssetId(0), 1_250));
    assert_eq!(network.money(AssetId(0), 1_250), "12.5 EUR");
    let error = network.units("USD", "1").expect_err("not carried");
    assert!(error.to_string().contains("\"USD\"; there are EUR"), "{error}");
    assert!(matches!(network.units("EUR", "1.234"), Err(PurseError::Amount(_))));
}
