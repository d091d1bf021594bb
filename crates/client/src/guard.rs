//! Cancel on disconnect: a connection of the stream that leaves a signed stop or cancel with the node, which submits it
//! when the connection ends.
//!
//! What is left has a number that the wallet gives to nothing else ([`Wallet::hold`]); once it is withdrawn, the next
//! transaction takes that number, so that it counts no more wherever it still lies. After a lost connection nothing of
//! this key takes the number, so that it counts, until another guard of the same holds. Then offers of the new
//! connection are not ended by the old one, which a node may have taken for open. All this lies beside the key file, so
//! that it outlives the process.
//!
//! `crates/walras/examples/guarded.rs` is a program that uses one.
//!
//! The promise is the timer of a session key, which is on the ledger: a node that fails or is stopped submits nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use api::StreamMessage;
use primitives::{
    CANCELS_MAX, Height, OfferPlace, Operation, Sequence, SessionOperation, SessionSlot, Transaction, UNTIL_USUAL,
    slot_of,
};

use crate::error::ClientError;
use crate::stream::{Channel, Stream};
use crate::wallet::{Signatory, Wallet};

/// What is left is renewed so many heights before its end.
const RENEWED: Height = UNTIL_USUAL / 2;
/// It is renewed when the highest number is so far above its own, of the 64 that are taken above the highest.
const WINDOW_USED: Sequence = 24;
/// How often it is looked whether something is to be done.
const LOOK: Duration = Duration::from_millis(100);

/// What ends when the connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guards {
    /// All offers of a session key's slot, by a stop: the slot trades again after the next `alive`. It is signed by the
    /// key of the slot, by another one, or by the account's own.
    Slot(SessionSlot),
    /// The resting offers of the key that signs, by a cancel of the newest [`CANCELS_MAX`]: for who trades without a
    /// session key. The list follows the account block by block; an offer of the last moment is not on it, nor is one
    /// that is still pending.
    Offers,
}

/// A connection whose end ends offers. It works on a thread of its own, and ends with the process.
///
/// Whoever drops it without [`withdraw`](Self::withdraw) has them ended, as by a crash.
pub struct DisconnectGuard {
    shared: Arc<Shared>,
    work: Option<JoinHandle<Result<(), ClientError>>>,
}

#[derive(Default)]
struct Shared {
    is_held: AtomicBool,
    beyond: AtomicUsize,
    withdraws: AtomicBool,
    closes: AtomicBool,
}

impl DisconnectGuard {
    /// Begins, and returns once the node holds what ends the offers.
    ///
    /// # Errors
    /// [`ClientError`]: no node, a key that may not log in, or a refusal of what is left.
    ///
    /// # Panics
    /// If the system starts no thread.
    pub fn open(wallet: &Wallet, signatory: Arc<Signatory>, guards: Guards) -> Result<DisconnectGuard, ClientError> {
        let shared = Arc::new(Shared::default());
        let (begun, begins) = sync_channel(1);
        let leaving = Leaving {
            wallet: wallet.clone(),
            signatory,
            guards,
            shared: shared.clone(),
            begun,
            listed: BTreeSet::new(),
            is_stale: false,
            is_awaited: false,
            signed: None,
            before: None,
            height: 0,
        };
        let work = std::thread::Builder::new().name("disconnect guard".into());
        let work = work.spawn(move || leaving.run()).expect("the system starts a thread");
        let mut guard = DisconnectGuard { shared, work: Some(work) };
        match begins.recv() {
            Ok(()) => Ok(guard),
            Err(_) => Err(guard.join().expect_err("it ended before it began")),
        }
    }

    /// Whether the connection lives and the node holds what ends the guarded offers, if there are any.
    pub fn is_held(&self) -> bool {
        self.shared.is_held.load(Ordering::Acquire)
    }

    /// Of [`Guards::Offers`], the resting offers beyond those that one cancel names: they stay.
    pub fn beyond(&self) -> usize {
        self.shared.beyond.load(Ordering::Acquire)
    }

    /// Takes back what was left and closes the connection: the offers stay.
    ///
    /// # Errors
    /// Why the connection had ended before: then the node has submitted what was left, unless it failed itself.
    pub fn withdraw(mut self) -> Result<(), ClientError> {
        self.shared.withdraws.store(true, Ordering::Release);
        self.join()
    }

    fn join(&mut self) -> Result<(), ClientError> {
        let work = self.work.take().expect("it is joined once");
        work.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for DisconnectGuard {
    fn drop(&mut self) {
        self.shared.closes.store(true, Ordering::Release);
        if let Some(work) = self.work.take() {
            // Why it ended is of no interest to who ends it.
            drop(work.join());
        }
    }
}

/// The work of a guard.
struct Leaving {
    wallet: Wallet,
    signatory: Arc<Signatory>,
    guards: Guards,
    shared: Arc<Shared>,
    begun: SyncSender<()>,
    /// The offers that the last cancel names.
    listed: BTreeSet<Sequence>,
    /// Something happened to the account since.
    is_stale: bool,
    /// The node has not answered the last request.
    is_awaited: bool,
    /// What was left last.
    signed: Option<Transaction>,
    /// What it renews: the node holds this one until it says that it holds the other one.
    before: Option<Transaction>,
    height: Height,
}

impl Leaving {
    fn run(mut self) -> Result<(), ClientError> {
        let ended = self.work();
        self.shared.is_held.store(false, Ordering::Release);
        ended
    }

    fn work(&mut self) -> Result<(), ClientError> {
        let account = self.signatory.account;
        let channels: &[_] = match self.guards {
            Guards::Slot(_) => &[],
            Guards::Offers => &[(Channel::Account(account), None)],
        };
        let mut stream = Stream::open(&self.wallet.node, channels)?;
        stream.log_in(&account, &self.signatory.key)?;
        self.leave(&mut stream)?;
        while !self.shared.closes.load(Ordering::Acquire) {
            if self.shared.withdraws.load(Ordering::Acquire) {
                return self.withdraw(&mut stream);
            }
            if let Some(told) = stream.wait_at_most(LOOK)? {
                self.hear(&mut stream, told.event)?;
            }
            self.look(&mut stream)?;
        }
        Ok(())
    }

    fn hear(&mut self, stream: &mut Stream, event: StreamMessage) -> Result<(), ClientError> {
        match event {
            StreamMessage::Heartbeat { height, .. } => {
                self.height = height;
                if self.is_old()? {
                    self.leave(stream)?;
                }
            }
            StreamMessage::Snapshot(_) | StreamMessage::Account(_) => self.is_stale = true,
            StreamMessage::Error { code, message } => return Err(self.refused(code, message)),
            StreamMessage::OnDisconnect { id: Some(id), .. } => self.holds(&id)?,
            StreamMessage::OnDisconnect { code, message, .. } => {
                self.holds_no_more(stream, code.unwrap_or_default(), message.unwrap_or_default())?;
            }
            _ => {}
        }
        Ok(())
    }

    /// The node holds what was left last, unless it speaks of an earlier one.
    fn holds(&mut self, id: &str) -> Result<(), ClientError> {
        let Some(signed) = self.signed.as_ref().filter(|signed| signed.id().to_string() == id) else { return Ok(()) };
        self.is_awaited = false;
        for lost in self.wallet.held_before(&[signed])? {
            self.wallet.let_go(&lost)?;
        }
        self.before = None;
        self.says_held();
        Ok(())
    }

    fn says_held(&self) {
        self.shared.is_held.store(true, Ordering::Release);
        // Who opened it has heard already, or waits no more.
        let _ = self.begun.try_send(());
    }

    fn holds_no_more(&mut self, stream: &mut Stream, code: String, message: String) -> Result<(), ClientError> {
        match &*code {
            "withdrawn" => {
                self.is_awaited = false;
                self.let_all_go()?;
                self.says_held();
                Ok(())
            }
            "taken_over" => Err(self.refused(code, message)),
            _ => {
                self.shared.is_held.store(false, Ordering::Release);
                self.leave(stream)
            }
        }
    }

    fn refused(&self, code: String, message: String) -> ClientError {
        ClientError::Refused { server: self.wallet.node.url().into(), status: 403, code, message }
    }

    /// Whether what is held ends soon, or its number is soon too old.
    fn is_old(&self) -> Result<bool, ClientError> {
        let Some(signed) = self.signed.as_ref().filter(|_| !self.is_awaited) else { return Ok(false) };
        let (highest, _) = self.wallet.numbers(&self.signatory)?;
        let is_used_up = highest >= signed.body.sequence.saturating_add(WINDOW_USED);
        Ok(is_used_up || signed.body.until <= self.height.saturating_add(RENEWED))
    }

    /// Leaves another list where the offers are others than it names.
    fn look(&mut self, stream: &mut Stream) -> Result<(), ClientError> {
        if !self.is_stale || self.is_awaited {
            return Ok(());
        }
        let listed = std::mem::take(&mut self.listed);
        let operation = self.operation()?;
        if self.listed == listed { Ok(()) } else { self.leave_one(stream, operation) }
    }

    fn leave(&mut self, stream: &mut Stream) -> Result<(), ClientError> {
        let operation = self.operation()?;
        self.leave_one(stream, operation)
    }

    /// What ends the guarded offers; nothing where there are none.
    fn operation(&mut self) -> Result<Option<Operation>, ClientError> {
        let slot = match self.guards {
            Guards::Slot(slot) => slot,
            Guards::Offers => return self.cancel(),
        };
        Ok(Some(Operation::Session(Box::new(SessionOperation::Alive { slot, through: 0 }))))
    }

    fn cancel(&mut self) -> Result<Option<Operation>, ClientError> {
        self.is_stale = false;
        let Signatory { account, slot, assets, .. } = &*self.signatory;
        let node = &self.wallet.node;
        let mut own = Vec::new();
        for offer in node.offers(account)? {
            let id: Sequence = node.number("offer", &offer.id)?;
            if slot_of(id) == *slot {
                let (sell, buy) = (assets.find(&offer.sell)?.asset, assets.find(&offer.buy)?.asset);
                own.push(OfferPlace { sell, buy, limit: node.number("limit", &offer.limit)?, offer: id });
            }
        }
        own.sort_by_key(|place| std::cmp::Reverse(place.offer));
        self.shared.beyond.store(own.len().saturating_sub(CANCELS_MAX), Ordering::Release);
        own.truncate(CANCELS_MAX);
        self.listed = own.iter().map(|place| place.offer).collect();
        Ok((!own.is_empty()).then(|| Operation::Cancel(own.into())))
    }

    fn leave_one(&mut self, stream: &mut Stream, operation: Option<Operation>) -> Result<(), ClientError> {
        let Some(operation) = operation else {
            if self.signed.is_none() {
                self.says_held();
                return Ok(());
            }
            self.is_awaited = true;
            return stream.withdraw();
        };
        if let Some(before) = self.before.take() {
            self.wallet.let_go(&before)?;
        }
        self.before = self.signed.take();
        let signed = self.wallet.hold(&self.signatory, operation)?;
        stream.leave(&signed)?;
        self.is_awaited = true;
        self.signed = Some(signed);
        Ok(())
    }

    /// At its owner's wish. What the node said before is read first.
    fn withdraw(&mut self, stream: &mut Stream) -> Result<(), ClientError> {
        stream.withdraw()?;
        loop {
            match stream.wait()?.event {
                StreamMessage::OnDisconnect { code: Some(code), .. } if code == "withdrawn" => {
                    return self.let_all_go();
                }
                StreamMessage::OnDisconnect { code: Some(code), message, .. } if code == "taken_over" => {
                    return Err(self.refused(code, message.unwrap_or_default()));
                }
                StreamMessage::Error { code, message } => return Err(self.refused(code, message)),
                _ => {}
            }
        }
    }

    fn let_all_go(&mut self) -> Result<(), ClientError> {
        for one in [self.before.take(), self.signed.take()].into_iter().flatten() {
            self.wallet.let_go(&one)?;
        }
        Ok(())
    }
}
