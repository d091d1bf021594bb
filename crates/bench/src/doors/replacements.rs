//! Replaced offers beside new ones, as many, of the same accounts, on the same book; and what it costs to keep the
//! history of accounts meanwhile.

use std::time::Instant;

use client::HistoryPage;
use primitives::{Address, ClientId, Digest, Life, OfferPlace, OfferReplacement, Operation, Price, Transaction};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::{OFFERS_OF_ONE, PAUSE, Server, Site, Trader};
use crate::exchange::Error;
use crate::scaling::median;

/// Units of an offer.
const AMOUNT: u64 = 10_000;

/// A price far above the market, another one for each of an account's offers.
fn limit(base: f64, number: usize) -> Price {
    Price::from_f64(base + number as f64 / 1_000.0).expect("a price")
}

impl Trader {
    fn offers(&mut self, network: &Digest) -> Vec<Transaction> {
        (0..OFFERS_OF_ONE).map(|number| self.offer(network, AMOUNT, limit(2.0, number))).collect()
    }

    fn replaces(&mut self, network: &Digest) -> Vec<Transaction> {
        let old = std::mem::take(&mut self.resting);
        let replace = |(number, old)| self.replace(network, old, AMOUNT, limit(3.0, number));
        old.into_iter().enumerate().map(replace).collect()
    }

    /// Replaces an offer by one of the same amount, and remembers where it rests.
    pub(super) fn replace(&mut self, network: &Digest, old: OfferPlace, amount: u64, limit: Price) -> Transaction {
        self.resting.push(OfferPlace { limit, offer: self.next, ..old });
        let (life, client) = (Life::Rests, ClientId::NONE);
        let replacement = OfferReplacement { old, remains: amount, amount, limit, life, client };
        self.sign(network, Operation::Replace(Box::new(replacement)))
    }
}

/// Rates of all rounds, and the milliseconds after each in which the history reached the last block.
#[derive(Default)]
struct Rates {
    new: Vec<f64>,
    replaced: Vec<f64>,
    behind_ms: Vec<f64>,
}

impl Site<'_> {
    /// Signed beforehand; each rate is until all are executed and durable. The offers end between two rounds. Both
    /// nodes execute the same, one after the other, and take turns at being the first.
    pub(super) fn replacements(&self, traders: &mut [Trader]) -> Result<Value, Error> {
        let traders = &mut traders[..self.options.offers.div_ceil(OFFERS_OF_ONE)];
        let network = &self.network;
        let account = traders[0].address();
        let mut rates = [Rates::default(), Rates::default()];
        for round in 0..self.options.rounds {
            let new: Vec<Transaction> = traders.par_iter_mut().flat_map_iter(|one| one.offers(network)).collect();
            let moves: Vec<Transaction> = traders.par_iter_mut().flat_map_iter(|one| one.replaces(network)).collect();
            let cancels: Vec<Transaction> = traders.par_iter_mut().map(|one| one.cancel(network)).collect();
            for turn in [round % 2, (round + 1) % 2] {
                let (server, rates) = ([&self.usual, &self.forgetful][turn], &mut rates[turn]);
                rates.new.push(server.execute(&new)?);
                rates.replaced.push(server.execute(&moves)?);
                if turn == 0 {
                    rates.behind_ms.push(server.until_history_is_there(&account)?);
                }
                server.execute(&cancels)?;
            }
        }
        let ratio = |one: &[f64], other: &[f64]| median(one.iter().zip(other).map(|(a, b)| a / b).collect());
        let [usual, forgetful] = &rates;
        Ok(json!({
            "offers": traders.len() * OFFERS_OF_ONE,
            "new_per_second": median(usual.new.clone()),
            "replaced_per_second": median(usual.replaced.clone()),
            "replaced_over_new": ratio(&usual.replaced, &usual.new),
            "with_over_without_history": {
                "new": ratio(&usual.new, &forgetful.new),
                "replaced": ratio(&usual.replaced, &forgetful.replaced),
            },
            "history_behind_ms": median(usual.behind_ms.clone()),
        }))
    }
}

impl Server<'_> {
    /// Milliseconds until the history of accounts has what the ledger has executed.
    fn until_history_is_there(&self, account: &Address) -> Result<f64, Error> {
        let height = self.node.exchange().read(ledger::Ledger::height);
        let (newest, begun) = (HistoryPage { limit: Some(1), ..HistoryPage::NEWEST }, Instant::now());
        while self.client.history_orders(account, &newest)?.height < height {
            std::thread::sleep(PAUSE);
        }
        Ok(begun.elapsed().as_secs_f64() * 1_000.0)
    }
}
