//! The gate in front of work that is awaited: a few requests run at once, and those that wait are served in
//! [turns](crate::Turns).
//!
//! *Properties.* At most `at_once` turns are held. A client that waits is served after at most one request of each
//! other client. A client has at most so many waiting requests: further ones are refused, with the reason.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::oneshot;

use crate::{BudgetLimits, Client, NoTurn, TurnLimits, Turns};

type Waiter = oneshot::Sender<Result<Pass, NoTurn>>;

/// See the module text.
pub struct Gate {
    at_once: usize,
    begun: Instant,
    entered: Mutex<Entered>,
}

struct Entered {
    held: usize,
    turns: Turns<Client, (), Waiter>,
}

/// A turn; it ends when this is dropped.
pub struct Pass(Option<(Arc<Gate>, Client)>);

impl Gate {
    /// A gate for so many requests at once, and so many waiting ones of each client. With a budget, what proves false
    /// can be charged.
    pub fn new(at_once: usize, waiting_of_one: usize, budget: Option<BudgetLimits>) -> Arc<Gate> {
        let limits = TurnLimits { units: u64::MAX, of_one: waiting_of_one as u64, budget };
        let entered = Mutex::new(Entered { held: 0, turns: Turns::new(limits) });
        Arc::new(Gate { at_once, begun: Instant::now(), entered })
    }

    fn entered(&self) -> MutexGuard<'_, Entered> {
        self.entered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> u64 {
        self.begun.elapsed().as_millis() as u64
    }

    /// Waits for a turn of a client.
    ///
    /// # Errors
    /// [`NoTurn`] says why there is none.
    pub async fn take(self: &Arc<Self>, client: Client) -> Result<Pass, NoTurn> {
        let receiver = {
            let (now_ms, mut entered) = (self.now_ms(), self.entered());
            if entered.held < self.at_once {
                entered.turns.check_budget(now_ms, &client)?;
                entered.held += 1;
                return Ok(Pass(Some((self.clone(), client))));
            }
            entered.turns.retain(client, |waiter| !waiter.is_closed());
            let (sender, receiver) = oneshot::channel();
            entered.turns.push(now_ms, client, (), 1, sender)?;
            receiver
        };
        receiver.await.unwrap_or(Err(NoTurn::Stopping))
    }

    /// Charges what proved false to a client.
    pub fn charge(&self, client: Client, units: u64) {
        self.entered().turns.charge(self.now_ms(), client, units);
    }

    /// Gives a turn that has ended to the next client.
    fn pass_on(self: &Arc<Self>) {
        loop {
            let now_ms = self.now_ms();
            let slice = {
                let mut entered = self.entered();
                let slice = entered.turns.next(now_ms, 1);
                entered.held -= usize::from(slice.is_none());
                slice
            };
            let Some(slice) = slice else { return };
            for ((), waiter) in slice.requests {
                let turn = slice.units.map(|_| Pass(Some((self.clone(), slice.client))));
                match waiter.send(turn) {
                    Ok(()) if slice.units.is_ok() => return,
                    // It has no budget left, and the turn passes on.
                    Ok(()) | Err(Err(_)) => {}
                    // It has gone, and the turn passes on.
                    Err(Ok(mut turn)) => turn.0 = None,
                }
            }
        }
    }
}

impl Pass {
    /// Charges what proved false in this turn to its client.
    pub fn charge(&self, units: u64) {
        if let Some((gate, client)) = &self.0 {
            gate.charge(*client, units);
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some((gate, _)) = self.0.take() {
            gate.pass_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: u8) -> Client {
        Client::at([192, 0, 2, number].into())
    }

    /// Waits until a number of requests wait.
    async fn until(gate: &Gate, waiting: u64) {
        while gate.entered().turns.waiting() < waiting {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn clients_have_their_turns_one_after_another() {
        let gate = Gate::new(1, 100, None);
        let held = gate.take(client(1)).await.expect("there is room");
        let (served, mut order) = tokio::sync::mpsc::unbounded_channel();
        for (place, number) in [1, 1, 1, 2, 2, 3].into_iter().enumerate() {
            let (own, served) = (gate.clone(), served.clone());
            tokio::spawn(async move {
                let turn = own.take(client(number)).await.expect("a turn");
                served.send(number).expect("the test listens");
                drop(turn);
            });
            until(&gate, place as u64 + 1).await;
        }
        drop((held, served));
        let mut found = Vec::new();
        while let Some(number) = order.recv().await {
            found.push(number);
        }
        assert_eq!(found, [1, 2, 3, 1, 2, 1], "a client with three requests delays another one by one");
        assert_eq!(gate.entered().held, 0);
    }

    #[tokio::test]
    async fn a_client_with_too_many_waiting_requests_is_refused_and_others_are_not() {
        let gate = Gate::new(1, 2, None);
        let held = gate.take(client(1)).await.expect("there is room");
        let waits = |number| {
            let own = gate.clone();
            tokio::spawn(async move { own.take(client(number)).await.map(drop) })
        };
        let gone = [waits(1), waits(1)];
        until(&gate, 2).await;
        assert_eq!(gate.take(client(1)).await.err(), Some(NoTurn::Crowded));
        let other = waits(2);
        until(&gate, 3).await;
        // Those who have gone do not count, and get no turn.
        for one in gone {
            one.abort();
            assert!(one.await.is_err_and(|error| error.is_cancelled()));
        }
        drop(held);
        assert_eq!(other.await.expect("it ends"), Ok(()));
        let entered = gate.entered();
        assert_eq!((entered.held, entered.turns.waiting()), (0, 0));
    }

    #[tokio::test]
    async fn who_has_spent_its_budget_is_told_when_to_come_back_and_the_turn_passes_on() {
        let budget = BudgetLimits { burst: 4, per_second: 1, clients: 16 };
        let gate = Gate::new(1, 8, Some(budget));
        let held = gate.take(client(1)).await.expect("there is room");
        let waits = |number| {
            let own = gate.clone();
            tokio::spawn(async move { own.take(client(number)).await.map(drop) })
        };
        let (forger, other) = (waits(1), waits(2));
        until(&gate, 2).await;
        held.charge(100_000);
        drop(held);
        assert!(matches!(forger.await.expect("it ends"), Err(NoTurn::OverBudget { again_ms: 1.. })));
        assert_eq!(other.await.expect("it ends"), Ok(()));
        assert!(matches!(gate.take(client(1)).await.err(), Some(NoTurn::OverBudget { .. })));
        assert_eq!(gate.entered().held, 0);
    }
}
