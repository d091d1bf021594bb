//! The doors of a node as traders and readers use them: an order until its fill is durable, replacements beside new
//! orders, readers of a book that changes all the time, and the page. One node on loopback; the clients run on the
//! same cores. Nothing here measures a single engine: what a user waits for, and what he costs others.

mod book_readers;
mod fills;
mod page;
mod replacements;

use std::sync::Arc;
use std::time::{Duration, Instant};

use api::ResultBody;
use client::NodeClient;
use ledger::{Genesis, Listing};
use node::{Config, Node};
use primitives::{
    Address, Amount, AssetId, Body, Digest, Fraction, OfferPlace, Operation, Price, SecretKey, Sequence, Transaction,
};
use readers::CommittedBlock;
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;

use crate::exchange::Error;
use crate::measurement::{BenchResult, BenchShown, BenchSteps, Measurement, count};

/// A node's doors as users meet them: orders until their fill, replacements beside new orders, readers of a book that
/// changes all the time, the page.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  walras-lab bench doors --json
  walras-lab bench doors --readers 1,100 --changes 500 --rounds 3")]
pub struct DoorsOptions {
    /// Orders until their fill, of each way to send one.
    #[arg(long, default_value_t = 40, value_parser = count(1..=1_000))]
    pub orders: usize,
    /// New offers, and as many replaced, of one round.
    #[arg(long, default_value_t = 20_000, value_parser = count(1..=1_000_000))]
    pub offers: usize,
    /// Numbers of readers of one book.
    #[arg(long, value_delimiter = ',', default_values_t = [1usize, 100, 1_000], value_parser = count(1..=8_000))]
    pub readers: Vec<usize>,
    /// Changes of the book in a second, while it is read.
    #[arg(long, default_value_t = 1_000, value_parser = count(2..=2_000))]
    pub changes: usize,
    /// Seconds that each number of readers reads in one round.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=255))]
    pub seconds: u64,
    /// Rounds of all but the orders.
    #[arg(long, default_value_t = 5, value_parser = count(1..=255))]
    pub rounds: usize,
}

impl Measurement for DoorsOptions {
    fn measured(self, say: &mut BenchSteps) -> BenchResult {
        Ok(BenchShown::Figures(run(&self, say)?))
    }
}

/// Milliseconds that a transaction is pending before a block is made.
const INTERVAL_MS: u64 = 50;
/// Offers of one account: within its window of sequence numbers twice.
const OFFERS_OF_ONE: usize = 20;
/// Traders that change the book while it is read: each has one of its levels.
const QUOTES: usize = 100;
const BALANCE: Amount = 1_000_000_000_000;
const EUR: AssetId = AssetId(0);
const USD: AssetId = AssetId(1);
/// Transactions of one request, and connections that send side by side.
const BATCH: usize = 500;
const CONNECTIONS: usize = 4;
/// Pause between two looks at what is executed.
const PAUSE: Duration = Duration::from_millis(1);
/// With no executed transaction for so long, those that are pending are called lost.
const SILENCE: Duration = Duration::from_secs(60);

/// A node, as its clients see it.
struct Server<'a> {
    node: &'a Node,
    client: NodeClient,
}

/// What is measured: a node as operators run it, and one of the same chain that keeps no history.
struct Site<'a> {
    usual: Server<'a>,
    forgetful: Server<'a>,
    network: Digest,
    options: &'a DoorsOptions,
}

/// An account of the genesis.
struct Trader {
    key: SecretKey,
    next: Sequence,
    resting: Vec<OfferPlace>,
}

/// Measures everything; `say` is called with each step.
///
/// # Errors
/// If the node does not start, refuses what is sent, or ends a connection.
pub fn run(options: &DoorsOptions, say: &mut dyn FnMut(&str)) -> Result<Value, Error> {
    let mut traders: Vec<Trader> = (0..accounts(options)).map(Trader::new).collect();
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let genesis = genesis(&traders);
    let start = |name: &str, keeps_history| {
        let data = folder.path().join(name);
        runtime.block_on(Node::start(config(options, keeps_history), &genesis, &data, None))
    };
    let (usual, forgetful) = (start("usual", true)?, start("forgetful", false)?);
    let network = usual.exchange().read(ledger::Ledger::network);
    let site = Site { usual: Server::of(&usual), forgetful: Server::of(&forgetful), network, options };
    let figures = site.measure(&mut traders, say);
    runtime.block_on(usual.stop());
    runtime.block_on(forgetful.stop());
    figures
}

/// On loopback, with room for all readers at once from one address, which gets a part of all room.
fn config(options: &DoorsOptions, keeps_history: bool) -> Config {
    let most = 4 * (options.readers.iter().max().copied().unwrap_or(0) + CONNECTIONS);
    let mut config = Config::default();
    config.http.listen.set_port(0);
    config.http.stream_connections = most;
    config.http.connections_of_one = most;
    config.http.connections = most;
    config.blocks.interval_ms = INTERVAL_MS;
    config.history.keep = keeps_history;
    config
}

/// Those that place offers and replace them, and two that trade.
fn accounts(options: &DoorsOptions) -> usize {
    options.offers.div_ceil(OFFERS_OF_ONE).max(QUOTES) + 2
}

fn genesis(traders: &[Trader]) -> Genesis {
    let issuer = Address([1; 20]);
    let funded = |trader: &Trader| [EUR, USD].map(|asset| (trader.address(), asset, BALANCE));
    Genesis {
        chain: 1,
        mu: Fraction::power_of_two(10),
        assets: vec![Listing::new("EUR", 2, issuer), Listing::new("USD", 2, issuer)],
        balances: traders.iter().flat_map(funded).collect(),
        ..Genesis::default()
    }
}

impl Trader {
    fn new(number: usize) -> Trader {
        let mut seed = [0xd0; 32];
        seed[..8].copy_from_slice(&(number as u64).to_le_bytes());
        Trader { key: SecretKey::from_seed(seed), next: 1, resting: Vec::new() }
    }

    fn address(&self) -> Address {
        self.key.public().address()
    }

    fn sign(&mut self, network: &Digest, operation: Operation) -> Transaction {
        let body = Body { chain: 1, account: self.address(), sequence: self.next, until: 50_000, operation };
        self.next += 1;
        body.sign(network, &self.key)
    }

    /// Offers euros, and remembers where they rest.
    fn offer(&mut self, network: &Digest, amount: Amount, limit: Price) -> Transaction {
        self.resting.push(OfferPlace { sell: EUR, buy: USD, limit, offer: self.next });
        self.sign(network, Operation::offer(EUR, USD, amount, limit))
    }

    /// Cancels all that rests.
    fn cancel(&mut self, network: &Digest) -> Transaction {
        let mut places = std::mem::take(&mut self.resting);
        places.sort_unstable();
        self.sign(network, Operation::Cancel(places.into()))
    }
}

impl Site<'_> {
    fn measure(&self, traders: &mut [Trader], say: &mut dyn FnMut(&str)) -> Result<Value, Error> {
        let (both, traders) = traders.split_at_mut(2);
        say("orders until their fill is durable");
        let fills = self.fills(both)?;
        say("new offers, and replaced ones");
        let replacements = self.replacements(traders)?;
        let readers = self.readers(&mut traders[..QUOTES], say)?;
        say("the page");
        Ok(json!({
            "block_interval_ms": INTERVAL_MS,
            "fills": fills,
            "replacements": replacements,
            "readers": readers,
            "page": page::page(self.usual.client.url())?,
        }))
    }
}

impl<'a> Server<'a> {
    fn of(node: &'a Node) -> Server<'a> {
        Server { node, client: NodeClient::at(format!("http://{}", node.address())) }
    }

    /// Sends these through the binary intake, on several connections, each account on one; returns how many were
    /// executed per second. A refused one is an error.
    fn execute(&self, transactions: &[Transaction]) -> Result<f64, Error> {
        let mut feed = self.node.exchange().subscribe();
        let begun = Instant::now();
        std::thread::scope(|scope| {
            let parts = transactions.chunks(transactions.len().div_ceil(CONNECTIONS).next_multiple_of(OFFERS_OF_ONE));
            let senders: Vec<_> = parts.map(|part| scope.spawn(|| self.send(part))).collect();
            senders.into_iter().try_for_each(|sender| sender.join().expect("no client panics"))
        })?;
        let (mut left, mut heard) = (transactions.len(), Instant::now());
        while left > 0 {
            match next_block(&mut feed)? {
                Some(block) => {
                    left -= block.outcomes.len().min(left);
                    heard = if block.outcomes.is_empty() { heard } else { Instant::now() };
                }
                None if heard.elapsed() < SILENCE => std::thread::sleep(PAUSE),
                None => return Err(lost(left)),
            }
        }
        Ok(transactions.len() as f64 / begun.elapsed().as_secs_f64())
    }

    /// Sends these in batches; those for which there is no room again.
    fn send(&self, transactions: &[Transaction]) -> Result<(), Error> {
        for batch in transactions.chunks(BATCH) {
            let mut left = batch.to_vec();
            while !left.is_empty() {
                let mut refused = Vec::new();
                for (transaction, answer) in left.iter().zip(self.client.submit_all(&left)?) {
                    match answer {
                        ResultBody::Taken(_) => {}
                        ResultBody::Error(body) if body.error.code == "mempool_full" => {
                            refused.push(transaction.clone());
                        }
                        ResultBody::Error(body) => return Err(body.error.message.into()),
                    }
                }
                left = refused;
                if !left.is_empty() {
                    std::thread::sleep(PAUSE);
                }
            }
        }
        Ok(())
    }
}

/// The next block of a feed, if one has come. One with a refused transaction is an error.
fn next_block(feed: &mut Receiver<Arc<CommittedBlock>>) -> Result<Option<Arc<CommittedBlock>>, Error> {
    let block = match feed.try_recv() {
        Ok(block) => block,
        Err(TryRecvError::Empty) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let refused = block.outcomes.iter().find_map(|(account, id, outcome)| Some((account, id, outcome.refusal()?)));
    match refused {
        Some((account, id, refusal)) => Err(format!("{id} of {account} is refused: {refusal:?}").into()),
        None => Ok(Some(block)),
    }
}

fn lost(count: usize) -> Error {
    format!("{count} transactions that the node took have been in no block for {} seconds", SILENCE.as_secs()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_door_is_measured() {
        let options = DoorsOptions { orders: 2, offers: 400, readers: vec![1, 4], changes: 200, seconds: 1, rounds: 1 };
        let figures = run(&options, &mut |_| ()).expect("it runs");
        let number =
            |at: &str| figures.pointer(at).and_then(Value::as_f64).unwrap_or_else(|| panic!("{at}: {figures}"));
        for way in ["binary", "json", "client"] {
            assert!(number(&format!("/fills/{way}_ms/p50")) > 0.0, "{figures}");
        }
        assert!(number("/replacements/replaced_over_new") > 0.0, "{figures}");
        assert!(number("/readers/rows/1/told_per_second") > 0.0, "{figures}");
        assert_eq!(figures["readers"]["rows"][1]["ended"], 0, "{figures}");
    }
}
