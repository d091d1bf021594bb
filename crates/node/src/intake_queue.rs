//! What waits to be checked, by client: the queue in front of the intake thread.
//!
//! Every client has its turns ([`sockets::Turns`]): an address, another validator that forwards, this process itself.
//! Large submissions are checked slice by slice. False signatures are charged to their client, and one without a budget
//! is told when to come back, so that nobody waits for what others forge.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use doors::{Answer, Closed, EthereumTaken};
use primitives::{Transaction, TransactionId};
use replica::EthereumReject;
use sockets::{BudgetLimits, Client, NoTurn, Slice, TurnLimits, Turns};
use tokio::sync::oneshot;

use crate::locks::poisoned;

/// Signatures that are checked together, and that a client gets of them at least in its turn. A batch equation has 256.
const STEP: u64 = 8_192;
const SLICE: u64 = 1_024;

/// What may prove false. A false signature costs about ten valid ones: a full budget costs a core a fifth of a second,
/// and its refill a hundredth of its time.
const BUDGET: BudgetLimits = BudgetLimits { burst: 2_048, per_second: 128, clients: 65_536 };
const LIMITS: TurnLimits = TurnLimits { units: 1 << 20, of_one: 1 << 19, budget: Some(BUDGET) };

/// The answers to Ethereum transactions; none if the rest of them could not be looked at.
pub(crate) type EthereumAnswers = Result<EthereumTaken, Closed>;

/// Transactions of one submission, and the answers to those that were judged.
#[derive(Debug)]
pub(crate) struct Batch<T, A> {
    rest: std::vec::IntoIter<T>,
    pub told: Vec<A>,
}

/// Transactions on their way to the pool.
#[derive(Debug)]
pub(crate) enum Submission {
    Native {
        batch: Batch<Transaction, Answer>,
        wait: bool,
        reply: oneshot::Sender<Vec<Answer>>,
    },
    Ethereum {
        batch: Batch<Vec<u8>, Result<TransactionId, EthereumReject>>,
        is_new: bool,
        reply: std::sync::mpsc::SyncSender<EthereumAnswers>,
    },
}

impl<T, A> Batch<T, A> {
    fn of(transactions: Vec<T>) -> Batch<T, A> {
        Batch { told: Vec::with_capacity(transactions.len()), rest: transactions.into_iter() }
    }

    fn units(&self, of: impl Fn(&T) -> u64) -> u64 {
        self.rest.as_slice().iter().map(of).sum()
    }

    /// Takes the next transactions, as many as there is room for; the first of a slice in any case.
    fn take(&mut self, room: &mut u64, of: impl Fn(&T) -> u64) -> Vec<T> {
        let mut count = 0;
        for one in self.rest.as_slice() {
            if *room == 0 {
                break;
            }
            *room = room.saturating_sub(of(one));
            count += 1;
        }
        self.rest.by_ref().take(count).collect()
    }
}

impl Submission {
    /// Native transactions, and where the answers come.
    pub fn native(transactions: Vec<Transaction>, wait: bool) -> (Submission, oneshot::Receiver<Vec<Answer>>) {
        let (reply, answers) = oneshot::channel();
        (Submission::Native { batch: Batch::of(transactions), wait, reply }, answers)
    }

    /// Ethereum transactions, and where the answers come.
    pub fn ethereum(transactions: Vec<Vec<u8>>) -> (Submission, std::sync::mpsc::Receiver<EthereumAnswers>) {
        let (reply, answers) = std::sync::mpsc::sync_channel(1);
        (Submission::Ethereum { batch: Batch::of(transactions), is_new: false, reply }, answers)
    }

    /// What is left of it, in signatures.
    fn units(&self) -> u64 {
        match self {
            Submission::Native { batch, .. } => batch.units(Transaction::signature_count),
            Submission::Ethereum { batch, .. } => batch.units(|_| 1),
        }
    }

    /// Answers what was not judged: the client has no budget left.
    pub fn refuse(self, why: NoTurn) {
        let closed = Closed::from(why);
        match self {
            Submission::Native { mut batch, reply, .. } => {
                let answer = || match closed {
                    Closed::OverBudget { again_ms } => Answer::OverBudget { again_ms },
                    _ => Answer::Full,
                };
                batch.told.extend(batch.rest.map(|_| answer()));
                // The sender may be gone.
                drop(reply.send(batch.told));
            }
            Submission::Ethereum { reply, .. } => drop(reply.send(Err(closed))),
        }
    }

    /// Answers, if everything is judged; otherwise gives back what waits on.
    fn end(self) -> Option<Submission> {
        match self {
            Submission::Native { batch, reply, .. } if batch.rest.len() == 0 => drop(reply.send(batch.told)),
            Submission::Ethereum { batch, is_new, reply } if batch.rest.len() == 0 => {
                drop(reply.send(Ok(EthereumTaken { answers: batch.told, is_new })));
            }
            rest => return Some(rest),
        }
        None
    }
}

/// What is judged of a submission in one step.
pub(crate) struct Part {
    pub client: Client,
    pub submission: Submission,
    pub natives: Vec<Transaction>,
    pub ethereum: Vec<Vec<u8>>,
}

/// See the module text.
pub(crate) struct IntakeQueue {
    waiting: Mutex<Waiting>,
    came: Condvar,
}

struct Waiting {
    turns: Turns<Client, (), Submission>,
    is_closed: bool,
}

impl IntakeQueue {
    /// Nothing waits.
    pub fn new() -> IntakeQueue {
        IntakeQueue {
            waiting: Mutex::new(Waiting { turns: Turns::new(LIMITS), is_closed: false }),
            came: Condvar::new(),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        poisoned(self.waiting.lock())
    }

    /// Queues a submission.
    pub fn push(&self, now_ms: u64, client: Client, submission: Submission) -> Result<(), Closed> {
        let units = submission.units();
        if units == 0 {
            submission.end();
            return Ok(());
        }
        let mut waiting = self.waiting();
        if waiting.is_closed {
            return Err(Closed::Stopping);
        }
        waiting.turns.push(now_ms, client, (), units, submission)?;
        drop(waiting);
        self.came.notify_one();
        Ok(())
    }

    /// The parts of the next step: of every client that waits its slice, as far as they fit. Waits at most so long for
    /// the first.
    pub fn next(&self, now_ms: impl Fn() -> u64, wait: Duration) -> Vec<Part> {
        let mut waiting = self.waiting();
        let until = Instant::now() + wait;
        while waiting.turns.is_empty() {
            let rest = until.saturating_duration_since(Instant::now());
            if rest.is_zero() || waiting.is_closed {
                return Vec::new();
            }
            waiting = poisoned(self.came.wait_timeout(waiting, rest)).0;
        }
        // Those who wait share the step; who is alone has more of it, and so all cores.
        let clients = (waiting.turns.clients() as u64).min(STEP / SLICE);
        let slices: Vec<_> = (0..clients).map_while(|_| waiting.turns.next(now_ms(), STEP / clients)).collect();
        drop(waiting);
        slices.into_iter().flat_map(cut).collect()
    }

    /// Answers what is judged, queues the rest again before what its client sent later, and charges what was false.
    pub fn judged(&self, now_ms: u64, parts: Vec<Part>, false_units: &[(Client, u64)]) {
        let rest: Vec<(Client, Submission)> =
            parts.into_iter().filter_map(|part| Some((part.client, part.submission.end()?))).collect();
        if rest.is_empty() && false_units.is_empty() {
            return;
        }
        let mut waiting = self.waiting();
        for (client, units) in false_units.iter().filter(|(client, _)| *client != Client::Own) {
            waiting.turns.charge(now_ms, *client, *units);
        }
        for (client, submission) in rest {
            waiting.turns.resume(client, (), submission.units(), submission);
        }
    }

    /// Takes nothing more; whoever waits learns that the node is stopping.
    pub fn close(&self) {
        let mut waiting = self.waiting();
        (waiting.is_closed, waiting.turns) = (true, Turns::new(LIMITS));
    }
}

/// Cuts a slice into the parts that are judged; those without a budget are answered.
fn cut(slice: Slice<Client, (), Submission>) -> Vec<Part> {
    let Slice { client, requests, units } = slice;
    let mut room = match units {
        Ok(units) => units,
        Err(why) => {
            requests.into_iter().for_each(|((), submission)| submission.refuse(why));
            return Vec::new();
        }
    };
    let part = |((), mut submission)| {
        let (mut natives, mut ethereum) = (Vec::new(), Vec::new());
        match &mut submission {
            Submission::Native { batch, .. } => natives = batch.take(&mut room, Transaction::signature_count),
            Submission::Ethereum { batch, .. } => ethereum = batch.take(&mut room, |_| 1),
        }
        Part { client, submission, natives, ethereum }
    };
    requests.into_iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use primitives::{AssetId, Body, Operation, PublicKey, Signature};

    use super::*;

    const NOW: fn() -> u64 = || 0;

    fn forged(sequence: u64) -> Transaction {
        let key = PublicKey([1; 32]);
        let operation = Operation::Pay { to: key.address(), asset: AssetId(0), amount: 1 };
        let body = Body { chain: 1, account: key.address(), sequence, until: 50, operation };
        Transaction::by_key(body, key, Signature([0; 64]))
    }

    fn client(number: u8) -> Client {
        Client::at([192, 0, 2, number].into())
    }

    /// Judges a step: everything is false, but what the honest client sent. Returns whose, and how many transactions.
    fn step(queue: &IntakeQueue, honest: Client) -> Vec<(Client, usize)> {
        let mut parts = queue.next(NOW, Duration::ZERO);
        let mut false_units = Vec::new();
        let mut judged = Vec::new();
        for part in &mut parts {
            let Submission::Native { batch, .. } = &mut part.submission else { panic!("all are native") };
            let is_false = part.client != honest;
            batch.told.extend(part.natives.iter().map(|_| match is_false {
                true => Answer::Refused(ledger::Refusal::BAD_SIGNATURE),
                false => Answer::Full,
            }));
            judged.push((part.client, part.natives.len()));
            false_units.extend(is_false.then_some((part.client, part.natives.len() as u64)));
        }
        queue.judged(0, parts, &false_units);
        judged
    }

    /// The attack: one address posts batches of forged copies, and a validator forwards some, in front of everybody.
    #[test]
    fn forged_batches_of_one_client_delay_others_by_one_slice_and_end_with_its_budget() {
        let queue = IntakeQueue::new();
        let (address, validator, honest) = (client(1), Client::Validator(3), client(2));
        let push = |client, count| {
            let (submission, answers) = Submission::native((0..count).map(forged).collect(), false);
            queue.push(0, client, submission).map(|()| answers)
        };
        let mut flood: Vec<_> = (0..24).map(|_| push(address, 1_500).expect("room")).collect();
        let forwarded = push(validator, 1_500).expect("room");
        let mut own = push(honest, 1).expect("room");
        let first = [(address, 1_500), (address, 548), (validator, 1_500), (honest, 1)];
        assert_eq!(step(&queue, honest), first, "no slice is larger than the budget of its client");
        assert!(matches!(own.try_recv().expect("answered")[..], [Answer::Full]));
        assert_eq!(step(&queue, honest), [], "nothing more is looked at");
        while !queue.next(NOW, Duration::ZERO).is_empty() || queue.waiting().turns.clients() > 0 {}
        let mut told = flood.iter_mut().flat_map(|answers| answers.try_recv().expect("answered"));
        let is_false = |answer: &Answer| matches!(answer, Answer::Refused(_));
        let is_busy = |answer: &Answer| matches!(answer, Answer::OverBudget { again_ms: 1.. });
        assert!(told.by_ref().take(2_048).all(|answer| is_false(&answer)) && told.all(|answer| is_busy(&answer)));
        assert!(matches!(push(address, 1).err(), Some(Closed::OverBudget { again_ms: 1.. })));
        assert!(push(honest, 1).is_ok() && push(validator, 1).is_ok(), "others pay nothing for it");
        drop(forwarded);
    }

    #[test]
    fn clients_that_wait_share_a_step() {
        let queue = IntakeQueue::new();
        let push = |client| queue.push(0, client, Submission::native((0..9_000).map(forged).collect(), false).0);
        let judged = || {
            let parts = queue.next(NOW, Duration::ZERO);
            let counts: Vec<_> = parts.iter().map(|part| part.natives.len() as u64).collect();
            queue.judged(0, parts, &[]);
            counts
        };
        push(Client::Own).expect("room");
        assert_eq!(judged(), [BUDGET.burst], "no slice is larger than a budget");
        (0..12).for_each(|number| push(Client::Validator(number)).expect("room"));
        assert_eq!(judged(), [SLICE; (STEP / SLICE) as usize]);
    }

    #[test]
    fn who_waits_for_a_queue_that_closes_learns_so() {
        let queue = IntakeQueue::new();
        let (submission, mut answers) = Submission::native(vec![forged(1)], false);
        queue.push(0, client(1), submission).expect("room");
        queue.close();
        assert!(answers.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Closed));
        let (submission, _) = Submission::ethereum(vec![vec![1]]);
        assert_eq!(queue.push(0, client(1), submission), Err(Closed::Stopping));
    }

    #[test]
    fn a_submission_of_nothing_is_answered_at_once() {
        let (submission, mut answers) = Submission::native(Vec::new(), false);
        IntakeQueue::new().push(0, client(1), submission).expect("taken");
        assert!(answers.try_recv().expect("answered").is_empty());
    }

    #[test]
    fn a_settle_weighs_as_much_as_the_signatures_that_it_carries() {
        let mut room = 10;
        let mut batch: Batch<u64, ()> = Batch::of(vec![4, 4, 4, 4]);
        assert_eq!(batch.take(&mut room, |units| *units).len(), 3, "the last may be larger than what is left");
        assert_eq!((batch.units(|units| *units), room), (4, 0));
    }
}
