//! Turns: whose requests are next, in front of a worker that strangers can load.
//!
//! ```text
//!  client ──push──► its queue ─┐
//!  client ──push──► its queue ─┼─ next: one slice of each client in turn ──► worker ──charge: what proved false──┐
//!  client ──push──► its queue ─┘ ▲ resume: the rest of a request                                                 │
//!           └── refused, with a time ◄── budget of the client ◄───────────────────────────────────────────────────┘
//! ```
//!
//! - Upon *a push*: the request waits behind the others of its client. It is refused if the client has no budget left,
//!   or if its queue is full.
//! - Upon *next*: the client whose turn it is gets a slice: as many of its requests as fit, and no more units than it
//!   has budget left. Requests of one client that come in different *flows*, as over several connections, take turns
//!   within its slice.
//! - Upon *resume*: what was too large for its slice waits again, before the other requests of its client.
//! - Upon *a charge*: what proved false is taken from the client's budget ([`Budgets`]).
//!
//! *Properties.* A client that waits is served after at most one slice of each other client, whatever they queue. The
//! requests of a flow keep their order. A client holds at most `of_one` units, and at most what it leaves free of
//! `units`, so k greedy clients leave 1/(k+1) to the next one. Who holds nothing may push any request that finds room.
//! What proves false costs a client no more than its budget, and at most one request more.
//!
//! **Invariant**: no clock and no socket; callers pass the time.

use std::collections::{BTreeMap, VecDeque};

use crate::{BudgetLimits, Budgets};

/// The bounds of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnLimits {
    /// Units that wait at most.
    pub units: u64,
    /// Units of one client that wait at most; one request may be larger.
    pub of_one: u64,
    /// What may prove false; `None` if it costs nothing here.
    pub budget: Option<BudgetLimits>,
}

/// Why a request gets no turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTurn {
    /// The client has too many waiting requests, or others leave no room.
    #[error("too many requests wait already, of your address or of all; send the next ones when those are answered")]
    Crowded,
    /// Too much of what the client sent was false.
    #[error("too much of what came from your address was false, such as signatures: send it again in {again_ms} ms")]
    OverBudget {
        /// Milliseconds until its budget has something left.
        again_ms: u64,
    },
    /// The worker is stopping.
    #[error("the node is stopping")]
    Stopping,
}

/// What a client gets in its turn.
#[derive(Debug, PartialEq, Eq)]
pub struct Slice<C, F, R> {
    /// Whose turn it is.
    pub client: C,
    /// Its next requests, at least one, each with its flow. The last may be larger than what is left of `units`.
    pub requests: Vec<(F, R)>,
    /// The units that may be worked on; none if the client has no budget left.
    pub units: Result<u64, NoTurn>,
}

/// The requests that wait; see the module text.
#[derive(Debug)]
pub struct Turns<C, F, R> {
    limits: TurnLimits,
    /// Units that wait.
    waiting: u64,
    queues: BTreeMap<C, Queue<F, R>>,
    /// Clients with waiting requests, in the order in which they are served.
    order: VecDeque<C>,
    budgets: Option<Budgets<C>>,
}

/// The requests of one client.
#[derive(Debug)]
struct Queue<F, R> {
    units: u64,
    flows: BTreeMap<F, VecDeque<(u64, R)>>,
    order: VecDeque<F>,
}

impl<F: Copy + Ord, R> Queue<F, R> {
    fn new() -> Queue<F, R> {
        Queue { units: 0, flows: BTreeMap::new(), order: VecDeque::new() }
    }

    /// The units of the next request.
    fn next_units(&self) -> Option<u64> {
        self.flows.get(self.order.front()?)?.front().map(|(units, _)| *units)
    }

    fn pop(&mut self) -> Option<(F, u64, R)> {
        let flow = self.order.pop_front()?;
        let waiting = self.flows.get_mut(&flow)?;
        let (units, request) = waiting.pop_front()?;
        match waiting.is_empty() {
            true => drop(self.flows.remove(&flow)),
            false => self.order.push_back(flow),
        }
        self.units -= units;
        Some((flow, units, request))
    }

    fn push(&mut self, flow: F, units: u64, request: R) {
        self.units += units;
        let waiting = self.flows.entry(flow).or_default();
        if waiting.is_empty() {
            self.order.push_back(flow);
        }
        waiting.push_back((units, request));
    }

    /// Puts a request before all others.
    fn push_front(&mut self, flow: F, units: u64, request: R) {
        self.units += units;
        self.flows.entry(flow).or_default().push_front((units, request));
        self.order.retain(|other| *other != flow);
        self.order.push_front(flow);
    }
}

impl<C: Copy + Ord, F: Copy + Ord, R> Turns<C, F, R> {
    /// Nothing waits.
    pub fn new(limits: TurnLimits) -> Turns<C, F, R> {
        let budgets = limits.budget.map(Budgets::new);
        Turns { limits, waiting: 0, queues: BTreeMap::new(), order: VecDeque::new(), budgets }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Clients with waiting requests.
    pub fn clients(&self) -> usize {
        self.queues.len()
    }

    /// Units that wait.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Adds a request of a client; it waits behind the others of its flow.
    ///
    /// # Errors
    /// [`NoTurn::Crowded`] or [`NoTurn::OverBudget`]; nothing has changed.
    pub fn push(&mut self, now_ms: u64, client: C, flow: F, units: u64, request: R) -> Result<(), NoTurn> {
        self.check_budget(now_ms, &client)?;
        let held = self.queues.get(&client).map_or(0, |queue| queue.units);
        let free = self.limits.units.saturating_sub(self.waiting);
        let left = free.checked_sub(units).ok_or(NoTurn::Crowded)?;
        let wanted = held.saturating_add(units);
        if held > 0 && (wanted > self.limits.of_one || wanted > left) {
            return Err(NoTurn::Crowded);
        }
        self.waiting += units;
        self.queue(client).push(flow, units, request);
        Ok(())
    }

    /// What a client has left of its budget.
    ///
    /// # Errors
    /// [`NoTurn::OverBudget`] if nothing is left.
    pub fn check_budget(&self, now_ms: u64, client: &C) -> Result<u64, NoTurn> {
        let left = self.budgets.as_ref().map_or(Ok(u64::MAX), |budgets| budgets.left(now_ms, client));
        left.map_err(|again_ms| NoTurn::OverBudget { again_ms })
    }

    /// Charges what proved false to a client.
    pub fn charge(&mut self, now_ms: u64, client: C, units: u64) {
        if let Some(budgets) = &mut self.budgets {
            budgets.charge(now_ms, client, units);
        }
    }

    /// The next slice, of at most so many units: of the next client its next requests.
    pub fn next(&mut self, now_ms: u64, most: u64) -> Option<Slice<C, F, R>> {
        let client = self.order.pop_front()?;
        let units = self.check_budget(now_ms, &client).map(|left| left.min(most));
        let queue = self.queues.get_mut(&client)?;
        let (mut requests, mut room) = (Vec::new(), units.unwrap_or(most));
        while let Some(next) = queue.next_units().filter(|_| room > 0) {
            room = room.saturating_sub(next.max(1));
            let (flow, units, request) = queue.pop()?;
            self.waiting -= units;
            requests.push((flow, request));
        }
        match queue.order.is_empty() {
            true => drop(self.queues.remove(&client)),
            false => self.order.push_back(client),
        }
        Some(Slice { client, requests, units })
    }

    /// Puts the rest of a request that was too large for its slice before the others of its client. It had its room,
    /// and is not refused.
    pub fn resume(&mut self, client: C, flow: F, units: u64, rest: R) {
        self.waiting += units;
        self.queue(client).push_front(flow, units, rest);
    }

    /// Removes waiting requests of a client that nobody wants any more.
    pub fn retain(&mut self, client: C, is_wanted: impl Fn(&R) -> bool) {
        let Some(queue) = self.queues.get_mut(&client) else { return };
        let mut gone = 0;
        for waiting in queue.flows.values_mut() {
            waiting.retain(|(units, request)| {
                let is_wanted = is_wanted(request);
                gone += if is_wanted { 0 } else { *units };
                is_wanted
            });
        }
        queue.flows.retain(|_, waiting| !waiting.is_empty());
        queue.order.retain(|flow| queue.flows.contains_key(flow));
        queue.units -= gone;
        self.waiting -= gone;
        if queue.order.is_empty() {
            self.queues.remove(&client);
            self.order.retain(|other| *other != client);
        }
    }

    fn queue(&mut self, client: C) -> &mut Queue<F, R> {
        self.queues.entry(client).or_insert_with(|| {
            self.order.push_back(client);
            Queue::new()
        })
    }
}

#[cfg(test)]
mod tests;
