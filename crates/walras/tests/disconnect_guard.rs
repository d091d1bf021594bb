//! A guard of the library before a running node: offers end with its connection, and stay where it is withdrawn.

#[path = "../examples/guarded.rs"]
#[expect(dead_code, reason = "the example is a program, too")]
mod guarded;
mod process;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use client::wallet::{Fate, Numbering, Signatory, Wallet};
use client::{DisconnectGuard, Guards, NodeClient, keystore};
use primitives::{
    Address, AssetId, ClientId, Life, Operation, PublicKey, SessionCap, SessionOperation, SessionScope, SessionTerms,
    Transaction, session_possession_bytes,
};
use process::{Process, agent, get, walras};
use tempfile::TempDir;

const SETTINGS: [(&str, &str); 1] = [("WALRAS_BLOCKS__INTERVAL_MS", "20")];
const PASSPHRASE: &str = "correct horse";
/// Steps of a hundredth of a second until a test says what stood still.
const STEPS: usize = 12_000;

/// A node, and the issuer who owns what its genesis pays.
struct Exchange {
    node: Process,
    folder: TempDir,
}

impl Exchange {
    fn new() -> Exchange {
        let folder = TempDir::new().expect("a folder");
        let assets = ["--asset", "USD:2", "--asset", "EUR:2", "--supply", "1000000"];
        let made = walras().arg("init").args(assets).arg("--home").arg(folder.path().join("home")).output();
        assert!(made.expect("walras runs").status.success());
        Exchange { node: Process::start(&folder.path().join("home"), &SETTINGS), folder }
    }

    fn wallet(&self, key_file: PathBuf, patience: Duration) -> Wallet {
        let node = NodeClient::at(self.node.server.clone());
        Wallet { node, key_file, numbering: Numbering::default(), patience }
    }

    fn owner(&self) -> (Wallet, Arc<Signatory>) {
        let wallet = self.wallet(self.folder.path().join("home/issuer-key.json"), Duration::from_secs(60));
        let key = keystore::open_under(&wallet.key_file, PASSPHRASE).expect("the issuer's key");
        let account = key.public().address();
        let signatory = wallet.signatory::<client::ClientError>(account, None, || Ok(key)).expect("it may sign");
        (wallet, Arc::new(signatory))
    }

    /// A key file with a session key of the owner.
    fn bot(&self) -> PathBuf {
        let file = self.folder.path().join("bot.json");
        assert!(walras().args(["wallet", "new", "--key"]).arg(&file).output().expect("walras runs").status.success());
        let key = keystore::open_under(&file, PASSPHRASE).expect("its key");
        let (wallet, owner) = self.owner();
        let public: PublicKey = key.public();
        let possession = key.sign(&session_possession_bytes(&owner.network, &owner.account, 1, &public));
        let caps = (0..2).map(|asset| SessionCap { asset: AssetId(asset), units: 10_000_000 }).collect();
        let terms =
            SessionTerms { slot: 1, key: public, scope: SessionScope::Trade, until: 90_000, alive: 80_000, caps };
        done(&wallet, &owner, &session(SessionOperation::Authorize { possession, terms }));
        file
    }

    fn offers(&self, account: &Address) -> usize {
        let (_, body) = get(&agent(), &self.node.server, &format!("/v1/accounts/{account}/offers"));
        body["offers"].as_array().expect("a list").len()
    }

    fn wait_until(&self, what: &str, holds: impl Fn() -> bool) {
        for _ in 0..STEPS {
            if holds() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("{what}: {}", self.node.log());
    }
}

fn session(operation: SessionOperation) -> Operation {
    Operation::Session(Box::new(operation))
}

fn offer(amount: u64) -> Operation {
    let (sell, buy, limit) = (AssetId(1), AssetId(0), "2".parse().expect("a price"));
    Operation::CreateOffer { sell, buy, amount, limit, life: Life::Rests, client: ClientId::NONE }
}

/// Sends an operation that must have effect; its number.
fn done(wallet: &Wallet, signatory: &Signatory, operation: &Operation) -> u64 {
    let (id, fate) = wallet.send(signatory, operation, &mut |_| {}).expect("it is taken");
    assert!(matches!(fate, Fate::Committed(_)), "{operation:?}: {fate:?}");
    wallet.node.transaction(&id).expect("it is known").sequence.expect("it has a number").parse().expect("a number")
}

/// What lies in a folder beside a key file.
fn beside(key_file: &Path, ending: &str) -> Vec<Transaction> {
    let folder = format!("{}.{ending}", key_file.display());
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    // One that is written or removed at this moment is not counted.
    let bytes = entries.filter_map(|entry| std::fs::read(entry.ok()?.path()).ok());
    bytes.filter_map(|bytes| borsh::from_slice(&bytes).ok()).collect()
}

#[test]
fn offers_of_a_session_key_end_with_its_connection_and_stay_where_it_is_withdrawn() {
    let exchange = Exchange::new();
    let file = exchange.bot();
    let (_, owner) = exchange.owner();
    guarded::trade(&exchange.node.server, file.clone(), PASSPHRASE, owner.account).expect("the example trades");
    assert_eq!(exchange.offers(&owner.account), 1, "a regular end leaves the offer");
    let [withdrawn] = &beside(&file, "released")[..] else { panic!("the stop is let go: its number is taken next") };

    let wallet = exchange.wallet(file.clone(), Duration::from_secs(60));
    let key = keystore::open_under(&file, PASSPHRASE).expect("its key");
    let bot = wallet.session_signatory::<client::ClientError>(owner.account, None, || Ok(key)).expect("slot 1");
    let bot = Arc::new(bot);
    // The next transaction takes the number of what was withdrawn, so that it counts no more at any node.
    assert_eq!(done(&wallet, &bot, &offer(20_000)), withdrawn.body.sequence);
    assert!(wallet.node.submit(withdrawn).is_err(), "the old stop is worth nothing");
    assert_eq!((exchange.offers(&owner.account), beside(&file, "released").len()), (2, 0));

    let guard = DisconnectGuard::open(&wallet, bot.clone(), Guards::Slot(1)).expect("it is held");
    assert!(guard.is_held());
    let [held] = &beside(&file, "held")[..] else { panic!("what is left lies beside the key") };
    assert_ne!(done(&wallet, &bot, &offer(30_000)), held.body.sequence, "nothing takes its number");
    drop(guard);
    exchange.wait_until("the offers end with the connection", || exchange.offers(&owner.account) == 0);

    // The slot trades again once it is said to be alive; the next guard lets the number of the used stop go.
    done(&wallet, &bot, &session(SessionOperation::Alive { slot: 1, through: 80_000 }));
    done(&wallet, &bot, &offer(40_000));
    let first = DisconnectGuard::open(&wallet, bot.clone(), Guards::Slot(1)).expect("it is held");
    exchange.wait_until("one is held", || beside(&file, "held").len() == 1);
    // Of two guards of one slot the last one holds.
    let second = DisconnectGuard::open(&wallet, bot.clone(), Guards::Slot(1)).expect("it is held");
    exchange.wait_until("the first one is told", || !first.is_held());
    let error = first.withdraw().expect_err("it guards nothing");
    assert_eq!(error.code(), Some("taken_over"), "{error}");
    assert!(second.is_held() && exchange.offers(&owner.account) == 1);
    second.withdraw().expect("it is taken back");
    for amount in [50_000, 60_000] {
        done(&wallet, &bot, &offer(amount));
    }
    assert_eq!(
        (exchange.offers(&owner.account), beside(&file, "released").len(), beside(&file, "held").len()),
        (3, 0, 0)
    );
    assert_eq!(exchange.node.terminate().code(), Some(0));
}

#[test]
fn an_owner_without_a_session_key_leaves_a_cancel_that_follows_the_offers() {
    let exchange = Exchange::new();
    let (wallet, owner) = exchange.owner();
    let file = &wallet.key_file;
    let guard = || DisconnectGuard::open(&wallet, owner.clone(), Guards::Offers).expect("it begins");
    let named = || match beside(file, "held").iter().max_by_key(|held| held.body.until).map(|held| &held.body.operation)
    {
        Some(Operation::Cancel(places)) => places.len(),
        _ => 0,
    };
    // Nothing rests, so nothing is left; the first offer changes that.
    let one = guard();
    assert!(one.is_held() && beside(file, "held").is_empty());
    let first = done(&wallet, &owner, &offer(10_000));
    exchange.wait_until("the offer is named", || named() == 1);
    done(&wallet, &owner, &offer(20_000));
    exchange.wait_until("both offers are named", || named() == 2);
    let place = primitives::OfferPlace {
        sell: AssetId(1),
        buy: AssetId(0),
        limit: "2".parse().expect("a price"),
        offer: first,
    };
    done(&wallet, &owner, &Operation::Cancel([place].into()));
    exchange.wait_until("one is named", || named() == 1);
    exchange.wait_until("the node holds it", || one.is_held());
    one.withdraw().expect("it is taken back");
    assert_eq!(exchange.offers(&owner.account), 1, "a regular end leaves the offer");

    // More than one cancel can name: the newest are guarded, and how many are not is told.
    let fast = Wallet { patience: Duration::ZERO, ..wallet.clone() };
    for amount in 0..32 {
        fast.send(&owner, &offer(10_000 + amount), &mut |_| {}).expect("it is taken");
    }
    exchange.wait_until("all rest", || exchange.offers(&owner.account) == 33);
    let resting = wallet.node.offers(&owner.account).expect("an answer");
    let one = guard();
    assert_eq!((named(), one.beyond()), (32, 1));
    drop(one);
    exchange.wait_until("all but the oldest end", || exchange.offers(&owner.account) == 1);
    let left = wallet.node.offers(&owner.account).expect("an answer");
    let lowest = resting.iter().map(|offer| offer.id.parse::<u64>().expect("a number")).min();
    assert_eq!(left[0].id.parse().ok(), lowest, "it has the lowest number");
    assert_eq!(exchange.node.terminate().code(), Some(0));
}
