//! Turns: a few requests run at once, and those that wait are served client by client.
//!
//! A request runs at once if there is room. Otherwise it waits behind the other requests of its client, and each time
//! room is free, the client whose turn it is gets it. So a client with a thousand requests delays another one by one
//! request, not by a thousand.
//!
//! *Properties.* At most `at_once` turns are held. A client that waits is served after at most one request of each
//! other client. A client has at most `waiting_of_one` waiting requests: further ones are refused, with the reason.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::client::Client;

/// Why a request gets no turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoTurn {
    /// The client has too many waiting requests.
    #[error("{0} requests of your address wait already; send the next ones when those are answered")]
    TooMany(usize),
    /// The node is stopping.
    #[error("the node is stopping")]
    Stopping,
}

/// See the module text.
pub(crate) struct Turns {
    at_once: usize,
    waiting_of_one: usize,
    queues: Mutex<Queues>,
}

#[derive(Default)]
struct Queues {
    held: usize,
    waiting: HashMap<Client, VecDeque<oneshot::Sender<Turn>>>,
    /// Clients with waiting requests, in the order in which they are served.
    order: VecDeque<Client>,
}

/// A turn; it ends when this is dropped.
pub(crate) struct Turn(Option<Arc<Turns>>);

impl Turns {
    pub(crate) fn new(at_once: usize, waiting_of_one: usize) -> Arc<Turns> {
        Arc::new(Turns { at_once, waiting_of_one, queues: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn of a client.
    ///
    /// # Errors
    /// [`NoTurn`] says why there is none.
    pub(crate) async fn take(self: &Arc<Self>, client: Client) -> Result<Turn, NoTurn> {
        let receiver = {
            let mut queues = self.lock();
            if queues.held < self.at_once {
                queues.held += 1;
                return Ok(Turn(Some(self.clone())));
            }
            queues.wait(client, self.waiting_of_one)?
        };
        receiver.await.map_err(|_| NoTurn::Stopping)
    }

    /// Gives a turn that has ended to the next client.
    fn pass_on(self: &Arc<Self>) {
        loop {
            let Some(next) = self.lock().next() else { return };
            match next.send(Turn(Some(self.clone()))) {
                Ok(()) => return,
                // Its client has gone; the turn passes on.
                Err(mut turn) => turn.0 = None,
            }
        }
    }
}

impl Queues {
    fn wait(&mut self, client: Client, most: usize) -> Result<oneshot::Receiver<Turn>, NoTurn> {
        let waiting = self.waiting.entry(client).or_default();
        waiting.retain(|one| !one.is_closed());
        if waiting.len() >= most {
            return Err(NoTurn::TooMany(most));
        }
        if waiting.is_empty() && !self.order.contains(&client) {
            self.order.push_back(client);
        }
        let (sender, receiver) = oneshot::channel();
        waiting.push_back(sender);
        Ok(receiver)
    }

    /// The next waiting request; if there is none, one turn less is held.
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        while let Some(client) = self.order.pop_front() {
            let Some(waiting) = self.waiting.get_mut(&client) else { continue };
            let next = waiting.pop_front();
            if waiting.is_empty() {
                self.waiting.remove(&client);
            } else {
                self.order.push_back(client);
            }
            if next.is_some() {
                return next;
            }
        }
        self.held -= 1;
        None
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = self.0.take() {
            turns.pass_on();
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
    async fn until(turns: &Turns, waiting: usize) {
        while turns.lock().waiting.values().map(VecDeque::len).sum::<usize>() < waiting {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn clients_have_their_turns_one_after_another() {
        let turns = Turns::new(1, 100);
        let held = turns.take(client(1)).await.expect("there is room");
        let (served, mut order) = tokio::sync::mpsc::unbounded_channel();
        for (place, number) in [1, 1, 1, 2, 2, 3].into_iter().enumerate() {
            let (own, served) = (turns.clone(), served.clone());
            tokio::spawn(async move {
                let turn = own.take(client(number)).await.expect("a turn");
                served.send(number).expect("the test listens");
                drop(turn);
            });
            until(&turns, place + 1).await;
        }
        drop((held, served));
        let mut found = Vec::new();
        while let Some(number) = order.recv().await {
            found.push(number);
        }
        assert_eq!(found, [1, 2, 3, 1, 2, 1], "a client with three requests delays another one by one");
        assert_eq!(turns.lock().held, 0);
    }

    #[tokio::test]
    async fn a_client_with_too_many_waiting_requests_is_refused_and_others_are_not() {
        let turns = Turns::new(1, 2);
        let held = turns.take(client(1)).await.expect("there is room");
        let waits = |number| {
            let own = turns.clone();
            tokio::spawn(async move { own.take(client(number)).await.map(drop) })
        };
        let gone = [waits(1), waits(1)];
        until(&turns, 2).await;
        assert_eq!(turns.take(client(1)).await.err(), Some(NoTurn::TooMany(2)));
        let other = waits(2);
        until(&turns, 3).await;
        // Those who have gone do not count, and get no turn.
        for one in gone {
            one.abort();
            assert!(one.await.is_err_and(|error| error.is_cancelled()));
        }
        drop(held);
        assert_eq!(other.await.expect("it ends"), Ok(()));
        let queues = turns.lock();
        assert_eq!((queues.held, queues.waiting.len()), (0, 0));
    }
}
