//! An order until its fill is durable, by three ways to send it.

use std::time::{Duration, Instant};

use primitives::{Operation, Price, Transaction, to_hex};
use serde_json::{Value, json};
use ureq::Agent;

use super::{EUR, INTERVAL_MS, Site, Trader, USD};
use crate::consensus::percentiles;
use crate::exchange::Error;

/// Dollars that one order sells.
const SOLD: u64 = 10_000;
/// The clients' first pause between two questions, and their shortest.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// How an order is sent, and how its fill is heard of.
#[derive(Clone, Copy)]
enum Way {
    /// Its bytes, by a call that answers when its block is durable.
    Binary,
    /// The same call, with JSON.
    Json,
    /// As the clients do: its bytes, and then questions, at first soon and at last every eighth of an interval.
    Client,
}

impl Way {
    const ALL: [Way; 3] = [Way::Binary, Way::Json, Way::Client];

    const fn name(self) -> &'static str {
        match self {
            Way::Binary => "binary_ms",
            Way::Json => "json_ms",
            Way::Client => "client_ms",
        }
    }
}

impl Site<'_> {
    /// One trader offers more euros than all orders buy; another one's orders accept a tenth less than the price. The
    /// ways take turns, so that the machine's moods meet all.
    pub(super) fn fills(&self, traders: &mut [Trader]) -> Result<Value, Error> {
        let [maker, taker, ..] = traders else { return Err("two traders are needed".into()) };
        let count = self.options.orders;
        let offered = (count as u64 + 1) * Way::ALL.len() as u64 * SOLD;
        self.usual.execute(&[maker.offer(&self.network, offered, Price::ONE)])?;
        let agent = Agent::new_with_defaults();
        let mut times = Way::ALL.map(|_| Vec::with_capacity(count));
        for _ in 0..count {
            for (way, times) in Way::ALL.into_iter().zip(&mut times) {
                times.push(self.fill(&agent, taker, way)?);
            }
        }
        self.usual.execute(&[maker.cancel(&self.network)])?;
        let mut figures = json!({ "orders": count });
        for (way, times) in Way::ALL.into_iter().zip(&mut times) {
            figures[way.name()] = percentiles(times);
        }
        let median = |way: Way| figures[way.name()]["p50"].as_f64().unwrap_or(f64::NAN);
        let over_binary = |way| median(way) / median(Way::Binary);
        let (json, client) = (over_binary(Way::Json), over_binary(Way::Client));
        figures["json_over_binary"] = json!(json);
        figures["client_over_binary"] = json!(client);
        Ok(figures)
    }

    /// Milliseconds of one order.
    fn fill(&self, agent: &Agent, taker: &mut Trader, way: Way) -> Result<f64, Error> {
        let account = taker.address();
        let euros = || {
            self.usual
                .node
                .exchange()
                .read(|ledger| ledger.accounts().get(&account).map_or(0, |held| held.balance(EUR)))
        };
        let before = euros();
        let limit = Price::from_f64(0.9).expect("a price");
        let order = taker.sign(&self.network, Operation::offer(USD, EUR, SOLD, limit));
        let begun = Instant::now();
        match way {
            Way::Binary => self.wait_for(agent, &borsh::to_vec(&order)?, "application/octet-stream")?,
            Way::Json => {
                let body = json!({ "transaction": format!("0x{}", to_hex(&borsh::to_vec(&order)?)) });
                self.wait_for(agent, body.to_string().as_bytes(), "application/json")?;
            }
            Way::Client => self.follow(&order)?,
        }
        let took = begun.elapsed().as_secs_f64() * 1_000.0;
        match euros() > before {
            true => Ok(took),
            false => Err(format!("{} is in a block, and bought nothing", order.id()).into()),
        }
    }

    fn wait_for(&self, agent: &Agent, body: &[u8], kind: &str) -> Result<(), Error> {
        let url = format!("{}/v1/transactions?wait=committed", self.usual.client.url());
        let answer: Value = agent.post(&url).header("Content-Type", kind).send(body)?.body_mut().read_json()?;
        match answer["status"] == "committed" {
            true => Ok(()),
            false => Err(format!("the order was answered with {answer}").into()),
        }
    }

    fn follow(&self, order: &Transaction) -> Result<(), Error> {
        let id = order.id();
        let mut answer = self.usual.client.submit(order)?;
        let (mut pause, longest) = (FIRST_PAUSE, FIRST_PAUSE.max(Duration::from_millis(INTERVAL_MS / 8)));
        while answer.status != "committed" {
            std::thread::sleep(pause);
            pause = (pause * 2).min(longest);
            answer = self.usual.client.transaction(&id)?;
        }
        Ok(())
    }
}
