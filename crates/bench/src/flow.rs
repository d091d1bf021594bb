//! A flow of orders as markets have it: orders come in bursts, because orders bring orders.
//!
//! Arrivals are a Hawkes process with two sides (A. G. Hawkes, Biometrika 58, 1971): the intensity of a side at time t
//! is μ + Σ α·β·e^(−β(t − tᵢ)) over the arrivals before it, with one α for those of the same side and another one for
//! those of the other. It is drawn exactly, by thinning (Y. Ogata, 1981). What arrives is a cancel, a replacement, an
//! order that takes, or one that rests at a distance from the middle of which each doubling has half as many. Orders
//! that take move the middle. All parameters are in [`FlowParameters`]; nothing is fitted to a market.
//!
//! Whoever has a file of ITCH 5.0 messages replays its orders instead ([`from_itch`]).

use std::collections::HashMap;

use ::matching::Side;
use kernel::Dice;
use protocols::frames::{FileFrame, first_frame};
use protocols::itch::{ItchBody, ItchMessage};
use serde_json::{Value, json};

/// Parameters of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowParameters {
    /// Arrivals of a side a second that nothing has brought.
    pub base: f64,
    /// Arrivals of the same side that an arrival brings, on average.
    pub own: f64,
    /// Arrivals of the other side that an arrival brings. With `own` it is less than one, or the flow explodes.
    pub cross: f64,
    /// How fast an arrival is forgotten, by second.
    pub decay: f64,
    /// Shares of cancels, replacements and orders that take; the rest rests.
    pub cancels: f64,
    /// See `cancels`.
    pub replaces: f64,
    /// See `cancels`.
    pub takes: f64,
    /// The chance that an order that takes moves the middle by a tick.
    pub moves: f64,
    /// Traders, who are equal.
    pub owners: u32,
}

impl Default for FlowParameters {
    /// 300 arrivals a second of each side by themselves, ten times as many in all; half of all are cancels, and one in
    /// twelve takes.
    fn default() -> FlowParameters {
        FlowParameters {
            base: 300.0,
            own: 0.6,
            cross: 0.3,
            decay: 50.0,
            cancels: 0.42,
            replaces: 0.08,
            takes: 0.08,
            moves: 0.3,
            owners: 64,
        }
    }
}

impl FlowParameters {
    /// The parameters as part of a report.
    pub fn to_json(self) -> Value {
        json!({
            "base_per_second": self.base, "own": self.own, "cross": self.cross, "decay_per_second": self.decay,
            "cancels": self.cancels, "replaces": self.replaces, "takes": self.takes, "moves": self.moves,
            "owners": self.owners,
        })
    }
}

/// What arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowAction {
    /// An order that rests.
    Rest(Side, u32, u32),
    /// An order that takes at once, up to a tick, and does not rest.
    Take(Side, u32, u32),
    /// The end of the order that arrived at this position.
    Cancel(usize),
    /// Another tick and size for the order that arrived at this position; it is known by its own position from now on.
    Replace(usize, u32, u32),
}

/// An arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowEvent {
    /// Nanoseconds since the flow began.
    pub nanoseconds: u64,
    /// The trader, from 0.
    pub owner: u32,
    /// The action.
    pub action: FlowAction,
}

/// The tick in the middle when a flow begins.
pub const MIDDLE: u32 = 30_000;
/// The furthest that the middle goes from where it began.
const WANDERS: u32 = 10_000;
/// The price of an order that takes is at most this far beyond the middle.
const REACH: u32 = 16;

/// Excitement of both sides, and the clock.
struct Hawkes {
    of: FlowParameters,
    seconds: f64,
    excited: [f64; 2],
}

impl Hawkes {
    /// The next arrival: its side. The intensity only falls between arrivals, so that the present one bounds it.
    fn next(&mut self, random: &mut Dice) -> usize {
        loop {
            let bound = 2.0 * self.of.base + self.excited[0] + self.excited[1];
            let waits = -(1.0 - random.unit()).ln() / bound;
            self.seconds += waits;
            let fades = (-self.of.decay * waits).exp();
            self.excited = self.excited.map(|of| of * fades);
            let drawn = random.unit() * bound;
            let first = self.of.base + self.excited[0];
            let side = usize::from(drawn >= first);
            if drawn < first + self.of.base + self.excited[1] {
                self.excited[side] += self.of.own * self.of.decay;
                self.excited[1 - side] += self.of.cross * self.of.decay;
                return side;
            }
        }
    }
}

/// So many arrivals.
///
/// # Panics
/// If an arrival brings one or more others on average.
pub fn hawkes(of: FlowParameters, arrivals: usize, seed: u64) -> Vec<FlowEvent> {
    assert!(of.own + of.cross < 1.0, "`own` and `cross` sum to less than one");
    let mut random = Dice::new(seed);
    let mut hawkes = Hawkes { of, seconds: 0.0, excited: [0.0; 2] };
    let (mut events, mut open, mut middle) = (Vec::with_capacity(arrivals), Vec::new(), MIDDLE);
    while events.len() < arrivals {
        let side = if hawkes.next(&mut random) == 0 { Side::Buy } else { Side::Sell };
        let nanoseconds = (hawkes.seconds * 1e9) as u64;
        let at = events.len();
        let kind = random.unit();
        let lots = 1 + random.below(100) as u32;
        let event = match open.len() {
            0 => None,
            many if kind < of.cancels => {
                let (order, owner, _) = open.swap_remove(random.below(many as u64) as usize);
                Some((owner, FlowAction::Cancel(order)))
            }
            many if kind < of.cancels + of.replaces => {
                let place = random.below(many as u64) as usize;
                let (order, owner, side) = open[place];
                open[place] = (at, owner, side);
                Some((owner, FlowAction::Replace(order, beside(middle, side, &mut random), lots)))
            }
            _ => None,
        };
        let new = |random: &mut Dice| random.below(of.owners.into()) as u32;
        let (owner, action) = event.unwrap_or_else(|| {
            let owner = new(&mut random);
            if kind >= 1.0 - of.takes {
                let tick = if side == Side::Buy { middle + REACH } else { middle - REACH };
                if random.unit() < of.moves {
                    middle = if side == Side::Buy { middle + 1 } else { middle - 1 };
                    middle = middle.clamp(MIDDLE - WANDERS, MIDDLE + WANDERS);
                }
                return (owner, FlowAction::Take(side, tick, lots));
            }
            open.push((at, owner, side));
            (owner, FlowAction::Rest(side, beside(middle, side, &mut random), lots))
        });
        events.push(FlowEvent { nanoseconds, owner, action });
    }
    events
}

/// A price on a side's own side of the middle.
fn beside(middle: u32, side: Side, random: &mut Dice) -> u32 {
    let doublings = 1 + random.below(1 << 16).trailing_zeros().min(9);
    let distance = 1 + random.below(1 << doublings) as u32;
    if side == Side::Buy { middle - distance } else { middle + distance }
}

/// The orders of one security in a file of framed ITCH 5.0 messages; the first one that has orders, if none is named.
/// An execution is an order that takes, since the feed shows no other. Prices are cents. Traders are made up.
///
/// # Errors
/// The text of what cannot be read, with its offset.
pub fn from_itch(bytes: &[u8], security: Option<[u8; 8]>, owners: u32) -> Result<Vec<FlowEvent>, String> {
    let (mut rest, mut events, mut locate) = (bytes, Vec::new(), None);
    let mut known: HashMap<u64, (usize, Side, u32)> = HashMap::new();
    loop {
        let offset = bytes.len() - rest.len();
        let cut = |_| format!("byte {offset}: the last message is cut");
        let (message, behind) = match first_frame(rest).map_err(cut)? {
            Some(FileFrame::Message(message, behind)) => (message, behind),
            Some(FileFrame::End(behind)) if !behind.is_empty() => {
                let more = behind.len();
                return Err(format!("byte {offset}: a length of zero ends the session, and {more} bytes follow it"));
            }
            Some(FileFrame::End(_)) | None => return Ok(events),
        };
        rest = behind;
        let message = ItchMessage::decode(message).map_err(|error| format!("byte {offset}: {error}"))?;
        let added = match &message.body {
            ItchBody::Add(of) => Some((of.order, of.side, of.shares, of.stock, of.price)),
            ItchBody::AddAttributed(of) => Some((of.order, of.side, of.shares, of.stock, of.price)),
            _ => None,
        };
        let nanoseconds = message.header.nanoseconds;
        let at = events.len();
        if let Some((order, side, shares, stock, price)) = added {
            if security.is_some_and(|wanted| wanted != stock) || locate.is_some_and(|of| of != message.header.locate) {
                continue;
            }
            locate = Some(message.header.locate);
            let (side, owner) = (if side == b'B' { Side::Buy } else { Side::Sell }, (order % u64::from(owners)) as u32);
            known.insert(order, (at, side, price / 100));
            events.push(FlowEvent { nanoseconds, owner, action: FlowAction::Rest(side, price / 100, shares) });
            continue;
        }
        let taken = |order: &u64, shares| {
            let (_, side, tick) = known.get(order)?;
            Some((*order, FlowAction::Take(side.other(), *tick, shares)))
        };
        let action = match &message.body {
            ItchBody::Executed(of) => taken(&of.order, of.shares).map(|(order, action)| (order + 1, action)),
            ItchBody::Delete(of) => known.remove(&of.order).map(|(at, ..)| (of.order, FlowAction::Cancel(at))),
            ItchBody::Replaced(of) => known.remove(&of.before).map(|(before, side, _)| {
                known.insert(of.order, (at, side, of.price / 100));
                (of.before, FlowAction::Replace(before, of.price / 100, of.shares))
            }),
            _ => None,
        };
        let event = action.map(|(order, action)| {
            let owner = (order % u64::from(owners)) as u32;
            FlowEvent { nanoseconds, owner, action }
        });
        events.extend(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_has_its_rate_and_comes_in_bursts() {
        let of = FlowParameters::default();
        let events = hawkes(of, 60_000, 1);
        let seconds = events.last().expect("some").nanoseconds as f64 / 1e9;
        let expected = 2.0 * of.base / (1.0 - of.own - of.cross);
        let rate = events.len() as f64 / seconds;
        assert!((rate / expected - 1.0).abs() < 0.2, "{rate} instead of {expected} a second");
        // Of a Poisson process the variance of counts is their mean.
        let mut counts = vec![0.0f64; seconds as usize * 10];
        for event in &events {
            if let Some(count) = counts.get_mut((event.nanoseconds / 100_000_000) as usize) {
                *count += 1.0;
            }
        }
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / counts.len() as f64;
        assert!(variance > 5.0 * mean, "{variance} around {mean}");
        assert_eq!(events, hawkes(of, 60_000, 1));
    }

    #[test]
    fn a_flow_names_only_orders_that_came_before() {
        let events = hawkes(FlowParameters::default(), 5_000, 2);
        for (at, event) in events.iter().enumerate() {
            let (FlowAction::Cancel(of) | FlowAction::Replace(of, ..)) = event.action else { continue };
            assert!(of < at && events[of].owner == event.owner, "{at} names {of}");
            assert!(matches!(events[of].action, FlowAction::Rest(..) | FlowAction::Replace(..)), "{at} names {of}");
        }
    }
}
