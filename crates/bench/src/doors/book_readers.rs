//! Readers of one book, which changes all the time: what each costs the node, what one costs its own client, and
//! whether blocks wait for them.
//!
//! Traders move their offers from one level to another, so that each move is two changes of the book. One reader
//! follows the book as a client does, checksums and all; the others take what comes and do not look at it. What the
//! node costs is the processor time of its threads, less that with nobody reading, in the same round.

use std::collections::{HashMap, HashSet};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use api::{ChannelState, StreamMessage};
use client::{Channel, LocalBook, Stream};
use primitives::{Address, Price, Transaction};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tungstenite::Message;

use super::{QUOTES, SILENCE, Site, Trader, lost, next_block};
use crate::consensus::{percentiles, processor};
use crate::evm_rpc::held_ms;
use crate::exchange::Error;
use crate::scaling::median;

const MARKET: &str = "EUR/USD";
const AMOUNT: u64 = 10_000;
/// Names of threads that are not the node's.
const MOVES: &str = "bench-moves";
const FOLLOWS: &str = "bench-follows";
const CROWD: &str = "bench-crowd";
/// Before the processor's time is counted.
const SETTLING: Duration = Duration::from_millis(300);
/// Between two looks at which moves are due.
const TICK: Duration = Duration::from_millis(10);
/// How long a reader waits before it looks whether the time is over.
const PATIENCE: Duration = Duration::from_millis(100);

/// Connections that take what comes.
struct Crowd(Vec<TcpStream>);

/// One number of readers in one round.
#[derive(Default)]
struct Window {
    /// Seconds of a core in a second: the node's, and the one reader's that follows.
    node: f64,
    follows: f64,
    /// Changes of the book in a second, made and told to the one that follows.
    made: f64,
    told: f64,
    blocks: f64,
    held_ms: Vec<f64>,
    ended: usize,
}

/// What blocks did while offers were moved.
#[derive(Default)]
struct Moves {
    blocks: usize,
    moved: usize,
    held_ms: Vec<f64>,
}

impl Site<'_> {
    pub(super) fn readers(&self, quotes: &mut [Trader], say: &mut dyn FnMut(&str)) -> Result<Value, Error> {
        let offers: Vec<_> =
            quotes.iter_mut().enumerate().map(|(at, one)| one.offer(&self.network, AMOUNT, level(at, false))).collect();
        self.usual.execute(&offers)?;
        let mut rounds: Vec<Vec<Window>> = Vec::new();
        for round in 0..self.options.rounds {
            let mut windows = Vec::new();
            for readers in std::iter::once(&0).chain(&self.options.readers) {
                say(&format!("{readers} readers, round {} of {}", round + 1, self.options.rounds));
                windows.push(self.window(quotes, *readers)?);
            }
            rounds.push(windows);
        }
        let of =
            |place: usize, figure: &dyn Fn(&Window) -> f64| median(rounds.iter().map(|r| figure(&r[place])).collect());
        let row = |place: usize, readers: usize| {
            let mut held: Vec<f64> = rounds.iter().flat_map(|windows| windows[place].held_ms.clone()).collect();
            let more = median(rounds.iter().map(|windows| windows[place].node - windows[0].node).collect());
            json!({
                "readers": readers,
                "made_per_second": of(place, &|window| window.made),
                "told_per_second": of(place, &|window| window.told),
                "node_core_percent": 100.0 * of(place, &|window| window.node),
                "node_core_percent_each": (readers > 0).then(|| 100.0 * more / readers as f64),
                "client_core_percent": (readers > 0).then(|| 100.0 * of(place, &|window| window.follows)),
                "blocks_per_second": of(place, &|window| window.blocks),
                "block_ms": percentiles(&mut held),
                "ended": rounds.iter().map(|windows| windows[place].ended).sum::<usize>(),
            })
        };
        let numbers = std::iter::once(0).chain(self.options.readers.iter().copied());
        let rows: Vec<Value> = numbers.enumerate().map(|(place, readers)| row(place, readers)).collect();
        Ok(json!({ "market": MARKET, "levels": QUOTES, "rows": rows }))
    }

    /// Moves offers while so many read.
    fn window(&self, quotes: &mut [Trader], readers: usize) -> Result<Window, Error> {
        let crowd = Crowd::of(self, readers.saturating_sub(1))?;
        let done = &AtomicBool::new(false);
        let named = |name: &str| std::thread::Builder::new().name(name.into());
        std::thread::scope(|scope| {
            let moves = named(MOVES).spawn_scoped(scope, || self.move_offers(quotes, done))?;
            let crowd = named(CROWD).spawn_scoped(scope, || crowd.read(done))?;
            let follows = named(FOLLOWS).spawn_scoped(scope, || match readers {
                0 => Ok(0),
                _ => self.follow_book(done),
            })?;
            std::thread::sleep(SETTLING);
            let (before, begun) = (processor(), Instant::now());
            std::thread::sleep(Duration::from_secs(self.options.seconds));
            let (after, seconds) = (processor(), begun.elapsed().as_secs_f64());
            done.store(true, Ordering::Release);
            let whole = seconds + SETTLING.as_secs_f64();
            let spent = |is_of: &dyn Fn(&str) -> bool| {
                let of = |times: &HashMap<String, f64>| -> f64 {
                    times.iter().filter(|(name, _)| is_of(name)).map(|(_, time)| time).sum()
                };
                (of(&after) - of(&before)) / seconds
            };
            let moves = moves.join().expect("no client panics")?;
            let told = follows.join().expect("no client panics")?;
            Ok(Window {
                node: spent(&|name| ![MOVES, FOLLOWS, CROWD].contains(&name)),
                follows: spent(&|name| name == FOLLOWS),
                made: 2.0 * moves.moved as f64 / whole,
                told: told as f64 / whole,
                blocks: moves.blocks as f64 / whole,
                held_ms: moves.held_ms,
                ended: crowd.join().expect("no client panics")?,
            })
        })
    }

    /// Moves offers until the end, and waits for the last of them.
    fn move_offers(&self, quotes: &mut [Trader], done: &AtomicBool) -> Result<Moves, Error> {
        let mut feed = self.usual.node.exchange().subscribe();
        let (begun, mut heard) = (Instant::now(), Instant::now());
        let (mut waiting, mut sent, mut moves) = (HashSet::new(), 0, Moves::default());
        loop {
            while let Some(block) = next_block(&mut feed)? {
                for (account, ..) in &block.outcomes {
                    waiting.remove(account);
                }
                moves.moved += block.outcomes.len();
                moves.blocks += 1;
                moves.held_ms.push(held_ms(&block));
                heard = Instant::now();
            }
            if !done.load(Ordering::Acquire) {
                let due = (begun.elapsed().as_secs_f64() * self.options.changes as f64 / 2.0) as usize;
                self.usual.send(&self.due_moves(quotes, due, &mut sent, &mut waiting))?;
            } else if waiting.is_empty() {
                return Ok(moves);
            } else if heard.elapsed() > SILENCE {
                return Err(lost(waiting.len()));
            }
            std::thread::sleep(TICK);
        }
    }

    /// The moves up to number `due`, in turn; none of an offer whose move before waits for its block.
    fn due_moves(
        &self,
        quotes: &mut [Trader],
        due: usize,
        sent: &mut usize,
        waiting: &mut HashSet<Address>,
    ) -> Vec<Transaction> {
        let mut batch = Vec::new();
        while *sent < due {
            let at = *sent % quotes.len();
            let one = &mut quotes[at];
            if !waiting.insert(one.address()) {
                break;
            }
            let old = one.resting.pop().expect("each has one offer");
            let is_up = old.limit == level(at, false);
            batch.push(one.replace(&self.network, old, AMOUNT, level(at, is_up)));
            *sent += 1;
        }
        batch
    }

    /// Follows the book until the end; returns how many changes it was told.
    fn follow_book(&self, done: &AtomicBool) -> Result<usize, Error> {
        let mut stream = Stream::open(&self.usual.client, &[(Channel::Book(MARKET.into()), None)])?;
        let (mut book, mut told) = (LocalBook::of(MARKET), 0);
        while !done.load(Ordering::Acquire) {
            let Some(heard) = stream.wait_at_most(PATIENCE)? else { continue };
            match heard.event {
                StreamMessage::Snapshot(snapshot) => match snapshot.state {
                    ChannelState::Book(levels) => book.take(levels)?,
                    _ => return Err("another channel's snapshot came".into()),
                },
                StreamMessage::Book(change) => {
                    told += change.sells.len() + change.buys.len();
                    book.change(change)?;
                }
                _ => {}
            }
        }
        Ok(told)
    }
}

impl Crowd {
    fn of(site: &Site, readers: usize) -> Result<Crowd, Error> {
        let one = |_| {
            let address = site.usual.node.address();
            let url = format!("ws://{address}/v1/stream");
            let (mut socket, _) = tungstenite::client(url, TcpStream::connect(address)?)?;
            socket.send(Message::text(json!({ "subscribe": [format!("book:{MARKET}")] }).to_string()))?;
            let stream = socket.get_ref().try_clone()?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        };
        (0..readers).map(one).collect::<Result<_, Error>>().map(Crowd)
    }

    /// Takes what comes until the end; returns how many connections the node has ended before.
    fn read(self, done: &AtomicBool) -> Result<usize, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut readers = tokio::task::JoinSet::new();
            for stream in self.0 {
                let mut stream = tokio::net::TcpStream::from_std(stream)?;
                readers.spawn(async move {
                    let mut room = vec![0; 16 << 10];
                    while stream.read(&mut room).await.is_ok_and(|count| count > 0) {}
                });
            }
            while !done.load(Ordering::Acquire) {
                tokio::time::sleep(PATIENCE).await;
            }
            let mut ended = 0;
            while readers.try_join_next().is_some() {
                ended += 1;
            }
            Ok(ended)
        })
    }
}

/// One of the two levels of a trader; no two have the same.
fn level(trader: usize, is_upper: bool) -> Price {
    let number = 2 * trader + usize::from(is_upper);
    Price::from_f64(2.0 + number as f64 / 1_000.0).expect("a price")
}
