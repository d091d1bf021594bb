//! A running node: what its threads share, and the interface for the doors.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use doors::{Answer, Closed, EthereumTaken};
use ledger::contracts::EthereumFault;
use ledger::{Genesis, Ledger};
use primitives::{Address, Height, Transaction, TransactionId};
use readers::CommittedBlock;
use replica::{EthereumCandidate, EthereumReject, Handover, Home, LifeStart, Network, ReplicaError, ValidatorStatus};
use sockets::Client;
use store::RealDisk;
use tokio::sync::{broadcast, oneshot};
use transport::Transport;

use crate::candles::remember_candles;
use crate::config::Config;
use crate::developer::develop;
use crate::history::History;
use crate::history::thread::keep_history;
use crate::intake::{admit_ethereum, admit_submissions, enter};
use crate::intake_queue::Submission;
use crate::lane::host::LaneHost;
use crate::lane::restart::lane_closed_for;
use crate::lane::seat::{LaneSeat, LaneStartError};
use crate::locks::poisoned;
use crate::pipeline::{Started, start_workers};
use crate::producer::produce;
use crate::recovery::recover;
use crate::shared::{ExchangeError, Shared, spawn};
use crate::validator;

fn home(data: &std::path::Path) -> Result<Home<RealDisk>, ReplicaError> {
    Home::at(data).map_err(|error| ReplicaError::Directory(data.display().to_string(), error))
}

/// A running pipeline.
pub struct Exchange {
    pub(crate) shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Exchange {
    /// Recovers the committed state from the store, and starts.
    ///
    /// # Errors
    /// [`ExchangeError`] says what prevents the start, with the file at fault if there is one.
    pub fn start(
        mut config: Config,
        genesis: &Genesis,
        data: &std::path::Path,
        network: Option<Network>,
    ) -> Result<Exchange, ExchangeError> {
        // Heights have one pace in a network: that of its genesis.
        if let Some(network) = &network {
            config.blocks.interval_ms = network.interval.as_millis() as u64;
        }
        // A state that was fetched before is installed first.
        let home = network.as_ref().map(|_| home(data)).transpose()?;
        home.as_ref().map_or(Ok(()), replica::state_sync::finish)?;
        let recovered = recover(&config, genesis, data)?;
        let height = recovered.ledger.height();
        let shared = Arc::new(Shared::new(config, recovered));
        shared.note_rules();
        let history = History::open(&shared.config.history, &shared.network, height, data)?;
        shared.history.get_or_init(|| history);
        let mut threads = vec![spawn("intake", &shared, admit_submissions)?];
        threads.push(spawn("history", &shared, keep_history)?);
        if genesis.is_developers {
            let genesis = genesis.clone();
            shared.open_commands();
            threads.push(spawn("developer", &shared, move |shared| develop(shared, &genesis))?);
            return Ok(Exchange { shared, threads: Mutex::new(threads) });
        }
        threads.push(spawn("candles", &shared, move |shared| remember_candles(shared, height))?);
        match network.zip(home) {
            None => {
                let start = LifeStart { height, handover: None, certified: Height::MAX };
                let Started { executor, threads: workers } = start_workers(&shared, start, None)?;
                threads.extend(workers);
                threads.push(spawn("producer", &shared, move |shared| produce(shared, &executor))?);
            }
            Some((network, home)) => {
                threads.extend(validator::start(network, &home, &shared, data)?);
            }
        }
        Ok(Exchange { shared, threads: Mutex::new(threads) })
    }

    /// Takes part in the payment lane. `data` is the node's data directory.
    ///
    /// # Errors
    /// [`LaneStartError`] says what prevents it; the node continues without the lane.
    pub fn start_lane(&self, seat: LaneSeat, data: &std::path::Path) -> Result<(), LaneStartError> {
        let unreadable = |error| LaneStartError::Directory(data.display().to_string(), error);
        if let Some(restart) = lane_closed_for(data).map_err(unreadable)? {
            return Err(LaneStartError::Closed(restart));
        }
        let host = LaneHost::start(&self.shared, seat, data)?;
        let run = spawn("lane-host", &self.shared, move |_| host.run());
        poisoned(self.threads.lock()).push(run.map_err(|error| LaneStartError::Thread(error.to_string()))?);
        Ok(())
    }

    /// The status of this validator; `None` in a solo node.
    pub fn status(&self) -> Option<ValidatorStatus> {
        self.shared.seat.status()
    }

    /// The last height up to which all heights are certified here; 0 in a solo node.
    pub fn certified(&self) -> Height {
        self.shared.seat.certified.load(Ordering::Acquire)
    }

    /// Whether the pipeline stopped because it has fetched a state from others: start it again with the same
    /// settings, and it continues from that state.
    pub fn is_to_begin_again(&self) -> bool {
        self.shared.life.again.load(Ordering::Acquire)
    }

    /// Number of shards of the payment lane that clients cannot reach: they cannot start, or another process has
    /// their port.
    pub fn lane_shards_unreachable(&self) -> u64 {
        self.shared.metrics.lane_shards_unreachable.get() as u64
    }

    /// The proofs of the committees from an epoch on, in order, as many as fit into an answer; empty in a solo node.
    ///
    /// # Errors
    /// [`ExchangeError`] if they cannot be read.
    pub fn handovers(&self, from: u64) -> Result<Vec<Handover>, ExchangeError> {
        Ok(self.shared.seat.handovers.get().map_or(Ok(Vec::new()), |handovers| handovers.page(from))?)
    }

    /// How often the vote log was synced since start.
    pub fn vote_log_syncs(&self) -> u64 {
        self.shared.metrics.vote_syncs.get()
    }

    /// The links to other validators; `None` in a solo node.
    pub fn transport(&self) -> Option<Arc<Transport>> {
        self.shared.seat.links().1
    }

    /// Submits transactions of this process; the receiver gets one answer for each, in order.
    ///
    /// # Errors
    /// [`Closed`] if the node cannot take them now.
    pub fn submit(&self, transactions: Vec<Transaction>, wait: bool) -> Result<oneshot::Receiver<Vec<Answer>>, Closed> {
        self.submit_of(Client::Own, transactions, wait)
    }

    /// Submits transactions of a client, which wait for its turn.
    ///
    /// # Errors
    /// [`Closed`] if the node cannot take them now.
    pub fn submit_of(
        &self,
        client: Client,
        transactions: Vec<Transaction>,
        wait: bool,
    ) -> Result<oneshot::Receiver<Vec<Answer>>, Closed> {
        self.check_open()?;
        let (submission, answers) = Submission::native(transactions, wait);
        self.shared.intake.push(self.shared.now_ms(), client, submission)?;
        Ok(answers)
    }

    fn check_open(&self) -> Result<(), Closed> {
        if !self.shared.is_ready() {
            return Err(Closed::Stopping);
        }
        if let Some(rules) = self.shared.needs_rules() {
            return Err(Closed::NeedsRules(rules));
        }
        if self.status().is_some_and(|status| status.follows) {
            return Err(Closed::Follows);
        }
        Ok(())
    }

    /// Submits Ethereum transactions of this process.
    ///
    /// # Errors
    /// [`Closed`] if the node cannot take them now.
    pub fn submit_ethereum(
        &self,
        transactions: Vec<Vec<u8>>,
    ) -> Result<Vec<Result<TransactionId, EthereumReject>>, Closed> {
        Ok(self.submit_ethereum_of(Client::Own, transactions)?.answers)
    }

    /// Submits Ethereum transactions of a client, and waits until they have had its turn.
    ///
    /// # Errors
    /// [`Closed`] if the node cannot take them now.
    pub fn submit_ethereum_of(&self, client: Client, transactions: Vec<Vec<u8>>) -> Result<EthereumTaken, Closed> {
        self.check_open()?;
        // A developers' chain has no strangers who take turns: its only client waits for no other thread.
        if self.shared.is_developers {
            let (taken, _) = admit_ethereum(&self.shared, transactions);
            self.shared.settle();
            return Ok(taken);
        }
        let (submission, answers) = Submission::ethereum(transactions);
        self.shared.intake.push(self.shared.now_ms(), client, submission)?;
        answers.recv().map_err(|_| Closed::Stopping)?
    }

    /// Submits an Ethereum transaction of an account that did not sign it; only a developers' chain accepts it.
    ///
    /// # Errors
    /// [`Closed`] if the node cannot take it now.
    pub fn impersonate(
        &self,
        sender: &Address,
        transaction: Vec<u8>,
    ) -> Result<Result<TransactionId, EthereumReject>, Closed> {
        self.check_open()?;
        if !self.shared.is_developers {
            return Ok(Err(EthereumReject::Fault(EthereumFault::Signature)));
        }
        let candidate =
            EthereumCandidate::impersonating(transaction, self.read(Ledger::next_transaction_rules), *sender);
        let answer = enter(&self.shared, vec![candidate]).answers.pop().expect("one for each");
        self.shared.settle();
        Ok(answer)
    }

    /// Reads the ledger. Blocks wait while `read` runs: copy out what is needed.
    pub fn read<T>(&self, read: impl FnOnce(&Ledger) -> T) -> T {
        read(&self.shared.read_ledger())
    }

    /// A feed of committed blocks. A reader that falls 256 blocks behind misses some and is told so.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<CommittedBlock>> {
        self.shared.readers.published.subscribe()
    }

    /// Number of transactions that took effect, and that were rejected inside a block, since start.
    pub fn totals(&self) -> (u64, u64) {
        self.shared.readers.published.views().totals
    }

    /// Waits until the pipeline fails; returns the reason.
    pub async fn failed(&self) -> String {
        loop {
            let notified = self.shared.life.failed.notified();
            if let Some(reason) = self.shared.life.failure.get().cloned() {
                return reason;
            }
            notified.await;
        }
    }

    /// Stops: pending transactions are put into last blocks, which are published; then the threads end.
    pub fn stop(&self) {
        self.shared.stop();
        let threads: Vec<_> = poisoned(self.threads.lock()).drain(..).collect();
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a thread of the pipeline panicked");
            }
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.stop();
    }
}
