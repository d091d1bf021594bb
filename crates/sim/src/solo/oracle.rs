//! The reference: the history replayed from genesis on another number of threads, and what clients were told.

use std::collections::BTreeMap;

use kernel::{Dice, FaultDisk};
use ledger::{BlockReceipts, Genesis, Ledger, Outcome, RootPart, Roots, Signatures};
use primitives::{Digest, Height, Superblock, TransactionId};
use rayon::ThreadPool;
use replica::Restored;

use super::batch::verify_batch;
use super::distorted::execute;
use super::shadow::Shadow;
use crate::controls::ControlCounts;
use crate::listings::ListingCounts;
use crate::policies::PolicyCounts;
use crate::proposals::ProposalCounts;
use crate::sessions::SessionCounts;
use crate::world::Mistake;

/// The state after one height.
struct Epoch {
    bytes: Vec<u8>,
    ledger: Ledger,
    root: Digest,
    receipts: Vec<u8>,
    shadow: Shadow,
}

/// See the module text.
pub(crate) struct Oracle {
    epochs: Vec<Epoch>,
    told: BTreeMap<TransactionId, (Height, Outcome)>,
    /// The last height whose state a reader could see, and the last whose root.
    shown: (Height, Height),
    /// Blocks below this height may be gone.
    forgotten_below: Height,
    threads: ThreadPool,
    mistake: Option<Mistake>,
}

fn root_anew(ledger: &Ledger) -> Digest {
    Roots::of(ledger).parts().root()
}

fn decode(receipts: &[u8]) -> BlockReceipts {
    borsh::from_slice(receipts).expect("receipts of our own")
}

impl Oracle {
    pub fn new(genesis: &Genesis, mistake: Option<Mistake>) -> Oracle {
        let ledger = Ledger::new(genesis).expect("a sound genesis");
        let root = root_anew(&ledger);
        let shadow = Shadow::new(genesis);
        let threads = rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("threads");
        let first = Epoch { bytes: Vec::new(), ledger, root, receipts: Vec::new(), shadow };
        Oracle { epochs: vec![first], told: BTreeMap::new(), shown: (0, 0), forgotten_below: 0, threads, mistake }
    }

    fn newest(&self) -> &Epoch {
        self.epochs.last().expect("genesis at least")
    }

    pub fn height(&self) -> Height {
        self.epochs.len() as Height - 1
    }

    pub fn root(&self, height: Height) -> Digest {
        self.epochs[height as usize].root
    }

    pub fn receipts(&self, height: Height) -> &[u8] {
        &self.epochs[height as usize].receipts
    }

    pub fn acknowledged(&self) -> usize {
        self.told.len()
    }

    pub fn session_counts(&self) -> SessionCounts {
        self.newest().shadow.session_counts()
    }

    pub fn policy_counts(&self) -> PolicyCounts {
        self.newest().shadow.policy_counts()
    }

    pub fn proposal_counts(&self) -> ProposalCounts {
        self.newest().shadow.proposal_counts()
    }

    pub fn listing_counts(&self) -> ListingCounts {
        self.newest().shadow.listings().counts
    }

    pub fn control_counts(&self) -> ControlCounts {
        self.newest().shadow.controls().counts
    }

    /// Adds the next block, as every node must execute it.
    pub fn extend(&mut self, block: &Superblock, dice: &mut Dice) -> Result<(), String> {
        let last = self.newest();
        if block.parent_root != last.root {
            return Err(format!("block {} contains another state root than its parent has", block.height));
        }
        let mistake = self.mistake;
        let mut ledger = last.ledger.clone();
        let run = || execute(&mut ledger, block, Signatures::Unchecked, mistake);
        let applied = self.threads.install(run).map_err(|error| error.to_string())?;
        ledger.audit().map_err(|error| format!("conservation: {error}"))?;
        let receipts = replica::receipts(block, &applied);
        let mut shadow = last.shadow.clone();
        shadow.apply(block, &receipts, &last.ledger, &ledger).map_err(|error| format!("bookkeeping: {error}"))?;
        verify_batch((last.shadow.listings(), shadow.pools()), &ledger, &receipts, applied.report.clone())
            .map_err(|error| format!("clearing: {error}"))?;
        shadow.hold(&ledger).map_err(|error| format!("bookkeeping: {error}"))?;
        let root = root_anew(&ledger);
        self.check_shuffled(block, &receipts, &ledger, dice)?;
        let receipts = borsh::to_vec(&receipts).expect("encodes");
        self.epochs.push(Epoch { bytes: block.to_bytes(), ledger, root, receipts, shadow });
        Ok(())
    }

    /// The order of transactions in a block changes nothing.
    fn check_shuffled(
        &self,
        block: &Superblock,
        receipts: &BlockReceipts,
        after: &Ledger,
        dice: &mut Dice,
    ) -> Result<(), String> {
        let mut shuffled = block.clone();
        shuffled.sub_blocks.iter_mut().for_each(|sub| dice.shuffle(&mut sub.native));
        let mut ledger = self.newest().ledger.clone();
        let applied =
            execute(&mut ledger, &shuffled, Signatures::Unchecked, self.mistake).map_err(|e| e.to_string())?;
        let other = replica::receipts(&shuffled, &applied);
        let by_id = |receipts: &BlockReceipts| receipts.outcomes.iter().copied().collect::<BTreeMap<_, _>>();
        // Contracts see the digests of blocks, and a shuffled block has another digest.
        let parts = |ledger: &Ledger| -> Vec<RootPart> {
            let all = Roots::of(ledger).parts();
            all.list().iter().filter(|part| part.tag != RootPart::CONTRACTS).copied().collect()
        };
        let same = parts(&ledger) == parts(after)
            && other.contracts == receipts.contracts
            && other.batch == receipts.batch
            && by_id(&other) == by_id(receipts);
        if same { Ok(()) } else { Err(format!("block {} depends on the order of its transactions", block.height)) }
    }

    /// Checks that a node's state is that of its height.
    pub fn hold(&self, ledger: &Ledger) -> Result<(), String> {
        ledger.audit().map_err(|error| format!("conservation: {error}"))?;
        let epoch = self.epochs.get(ledger.height() as usize).ok_or("a height that does not exist")?;
        epoch.shadow.hold(ledger).map_err(|error| format!("bookkeeping: {error}"))?;
        if root_anew(ledger) != epoch.root || ledger.last_block() != epoch.ledger.last_block() {
            return Err(format!("the state after block {} differs from a replay from genesis", ledger.height()));
        }
        Ok(())
    }

    /// Records that readers see the state after a block.
    pub fn show(&mut self, height: Height) {
        self.shown.0 = self.shown.0.max(height);
    }

    /// Records that readers see the root after a block.
    pub fn show_root(&mut self, height: Height) {
        self.shown.1 = self.shown.1.max(height);
    }

    /// Records that blocks below a height may be forgotten.
    pub fn forget(&mut self, below: Height) {
        self.forgotten_below = self.forgotten_below.max(below);
    }

    /// The height below which blocks may be gone.
    pub fn forgotten_below(&self) -> Height {
        self.forgotten_below
    }

    /// Records what a client was told.
    pub fn acknowledge(&mut self, id: TransactionId, height: Height, outcome: Outcome) -> Result<(), String> {
        let receipts = decode(self.receipts(height));
        if !receipts.outcomes.contains(&(id, outcome)) {
            return Err(format!("a client was told {outcome:?} of {id}, but block {height} says otherwise"));
        }
        match self.told.get(&id) {
            // A refused transaction may be sent again.
            Some((_, first)) if first.refusal().is_none() && *first != outcome => {
                Err(format!("a client was told {first:?} of {id}, then {outcome:?}"))
            }
            Some((_, first)) if first.refusal().is_none() => Ok(()),
            _ => {
                self.told.insert(id, (height, outcome));
                Ok(())
            }
        }
    }

    /// The history of a restarted node must be the one that clients know, perhaps with more blocks at its end.
    pub fn restarted(&mut self, restored: &Restored<FaultDisk>, dice: &mut Dice) -> Result<(), String> {
        let (height, archive) = (restored.ledger.height(), restored.store.archive());
        let told = self.told.values().map(|(height, _)| *height).max().unwrap_or(0);
        if height < told {
            return Err(format!("blocks {} to {told} were acknowledged and are lost", height + 1));
        }
        for (what, shown) in [("state", self.shown.0), ("root", self.shown.1)] {
            if height < shown {
                return Err(format!("the {what} after block {shown} was shown and is lost"));
            }
        }
        self.epochs.truncate(height as usize + 1);
        for at in 1..=height {
            if at < self.forgotten_below && archive.block(at).is_ok_and(|block| block.is_none()) {
                continue;
            }
            let bytes = archive.block(at).map_err(|e| e.to_string())?.ok_or(format!("block {at} is missing"))?;
            let known = self.epochs.get(at as usize).map(|epoch| epoch.bytes == bytes);
            if known == Some(false) {
                return Err(format!("block {at} has changed"));
            }
            if known.is_none() {
                self.extend(&borsh::from_slice(&bytes).map_err(|e| e.to_string())?, dice)?;
            }
            let receipts = archive.receipts(at).map_err(|error| error.to_string())?;
            if receipts.is_none() && at < self.forgotten_below {
                continue;
            }
            if receipts.as_deref() != Some(self.receipts(at)) {
                let what = if receipts.is_some() { "differ from before" } else { "are missing" };
                return Err(format!("the receipts of block {at} {what}"));
            }
        }
        if restored.root != self.root(height) {
            return Err(format!("the tries after block {height} differ from rebuilt ones"));
        }
        self.hold(&restored.ledger)
    }
}
