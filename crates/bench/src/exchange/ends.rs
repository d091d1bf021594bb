//! What a block costs in which many offers end at once, beside one in which none does and one that cancels as many.

use std::collections::BTreeMap;
use std::time::Instant;

use ledger::{Applied, Attached, Ledger, Roots, Signatures};
use primitives::{
    Body, Height, Life, MAX_ISSUED, OfferPlace, Operation, PublicKey, SESSION_CAPS_MAX, SessionCap, SessionOperation,
    SessionScope, SessionTerms, Signature, Transaction, slot_sequence,
};
use serde_json::{Value, json};

use super::samples::milliseconds;
use super::{Error, ExchangeFixture, FILL_BLOCK, attach, rest};
use crate::population::{Unsigned, block};
use crate::scaling::median;
use crate::trading::Trading;

/// Why the offers end.
#[derive(Clone, Copy, PartialEq)]
enum Why {
    /// Each has the height as its last.
    Height,
    /// The timers of the session keys that placed them are over.
    Timer,
}

/// Copies of what the runs before have left, so that nothing here changes it.
struct Book {
    trading: Trading,
    ledger: Ledger,
    roots: Roots,
    blocks: usize,
}

/// Places `count` offers that end at one height, scattered over pairs, limits and accounts, and replays the block of
/// that height, which has no transactions; once for offers with that last height, and once for offers of session keys
/// with that timer. Signatures are no part of any of the times.
pub(super) fn ends(fixture: &ExchangeFixture, count: usize, blocks: usize) -> Result<Vec<Value>, Error> {
    let book = || Book {
        trading: fixture.trading.clone(),
        ledger: fixture.ledger.clone(),
        roots: fixture.roots.clone(),
        blocks,
    };
    let (_, pool) = fixture.pools.last_key_value().expect("a number of threads");
    let count = count.min(FILL_BLOCK);
    [Why::Height, Why::Timer].map(|why| pool.install(|| book().measure(why, count))).into_iter().collect()
}

impl Book {
    fn measure(mut self, why: Why, count: usize) -> Result<Value, Error> {
        // A block of keys, one of offers, one in which nothing ends, and the last one.
        let until = self.ledger.height() + 4;
        let mut resting = self.trading.resting(&self.ledger, count);
        let keys = if why == Why::Timer { authorisations(&mut resting, until) } else { Vec::new() };
        let keys = self.trading.population.sign(keys, None);
        self.rest(keys);
        if why == Why::Height {
            resting.iter_mut().for_each(|one| end_at(&mut one.body, until));
        }
        let placed = resting.iter().filter_map(|one| Some((one.account, place_of(&one.body)?)));
        let cancels: Vec<(usize, OfferPlace)> = placed.collect();
        let native = match why {
            Why::Height => self.trading.population.sign(resting, None),
            Why::Timer => resting.into_iter().map(by_session).collect(),
        };
        self.rest(native);
        let (block_ms, _) = self.replay(Vec::new())?;
        let cancel = |(account, OfferPlace { sell, buy, limit, offer }): (usize, OfferPlace)| {
            self.trading.population.act(account, Operation::cancel(sell, buy, limit, offer))
        };
        let cancels: Vec<Unsigned> = cancels.into_iter().map(cancel).collect();
        let cancels = self.trading.population.sign(cancels, None);
        let (cancels_ms, applied) = self.replay(cancels)?;
        let cancelled = applied.batch.ended.len();
        self.rest(Vec::new());
        let (ends_ms, applied) = self.replay(Vec::new())?;
        let ended = applied.batch.ended.len();
        let begun = Instant::now();
        self.rest(Vec::new());
        let with_tries_ms = milliseconds(begun);
        Ok(json!({
            "why": if why == Why::Height { "last height" } else { "timers of session keys" },
            "ended": ended,
            "cancelled": cancelled,
            "block_ms": block_ms,
            "block_of_ends_ms": ends_ms,
            "block_and_tries_of_ends_ms": with_tries_ms,
            "block_of_cancels_ms": cancels_ms,
        }))
    }

    /// Applies a block whose offers should rest.
    fn rest(&mut self, native: Vec<Transaction>) {
        let block = block(&self.ledger, native);
        let changes = rest(&mut self.ledger, &block);
        self.roots.apply(&changes);
    }

    /// The median time of a block with its batch at hand; the state stays as it is.
    fn replay(&self, native: Vec<Transaction>) -> Result<(f64, Applied), Error> {
        let block = block(&self.ledger, native);
        let attached: Attached = attach(&self.ledger, &block)?;
        let (mut times, mut last) = (Vec::new(), None);
        for _ in 0..self.blocks.max(1) {
            let mut ledger = self.ledger.clone();
            let begun = Instant::now();
            last = Some(ledger.apply_attached(&block, &attached, Signatures::Valid, &mut |_| {})?);
            times.push(milliseconds(begun));
        }
        Ok((median(times), last.expect("at least one")))
    }
}

fn end_at(body: &mut Body, until: Height) {
    if let Operation::CreateOffer { life, .. } = &mut body.operation {
        *life = Life::Until(until);
    }
}

fn place_of(body: &Body) -> Option<OfferPlace> {
    let Operation::CreateOffer { sell, buy, limit, .. } = body.operation else { return None };
    Some(OfferPlace { sell, buy, limit, offer: body.sequence })
}

/// The key of an account's session: nobody checks what it signs.
fn session_key(account: usize) -> PublicKey {
    let mut key = [0x5e; 32];
    key[..8].copy_from_slice(&(account as u64).to_le_bytes());
    PublicKey(key)
}

/// The transaction of a session key.
fn by_session(Unsigned { account, body }: Unsigned) -> Transaction {
    Transaction::by_key(body, session_key(account), Signature([0; 64]))
}

/// Gives the offers numbers of the first slot of their accounts, and returns what authorises its key, with the last of
/// the numbers that they had. No account has had a slot before.
fn authorisations(resting: &mut [Unsigned], alive: Height) -> Vec<Unsigned> {
    let mut slots: BTreeMap<usize, (Body, Vec<SessionCap>, u64)> = BTreeMap::new();
    for Unsigned { account, body } in resting.iter_mut() {
        let Operation::CreateOffer { sell, .. } = body.operation else { continue };
        let (last, caps, numbers) = slots.entry(*account).or_insert_with(|| (body.clone(), Vec::new(), 0));
        *last = body.clone();
        if caps.iter().all(|cap| cap.asset != sell) {
            caps.push(SessionCap { asset: sell, units: MAX_ISSUED });
        }
        *numbers += 1;
        body.sequence = slot_sequence(1, *numbers);
    }
    let authorize = |(account, (last, mut caps, _)): (usize, (Body, Vec<SessionCap>, u64))| {
        caps.sort_unstable();
        caps.truncate(SESSION_CAPS_MAX);
        let (key, scope, caps) = (session_key(account), SessionScope::Trade, caps.into());
        let terms = SessionTerms { slot: 1, key, scope, until: alive, alive, caps };
        let possession = Signature([0; 64]);
        let operation = Operation::Session(Box::new(SessionOperation::Authorize { terms, possession }));
        Unsigned { account, body: Body { operation, ..last } }
    };
    slots.into_iter().map(authorize).collect()
}
