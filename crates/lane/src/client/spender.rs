//! Asks a quorum what spends an output.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use payments::{
    CheckBudget, Claim, ContestedOutput, KnownSpender, PaymentBody, RootCache, SpendGround, StatementKind,
    owner_message, spender_request,
};
use primitives::SecretKey;

use super::{AGAIN, Came, LaneClient, LaneClientError};
use crate::wire::Reply;

impl LaneClient {
    /// Asks what spends an output: whatever the owner has signed since a copy of its purse was made. Returns as soon as
    /// one validator shows a payment that the owner signed, or f+1 have signed the output's exit; `None` once a quorum
    /// says that nothing spends it. Anything else is no answer, and validators that give it are asked again.
    ///
    /// # Errors
    /// [`LaneClientError`]; it may be tried again.
    pub fn spender(
        &mut self,
        key: &SecretKey,
        of: &ContestedOutput,
        patience: Duration,
    ) -> Result<Option<KnownSpender>, LaneClientError> {
        let committee = self.directory.committee.clone();
        let (network, quorums) = (committee.network(), committee.quorums());
        let needed = quorums.certificate;
        let (owner, validators) = (key.public(), self.directory.addresses.len());
        let request = spender_request(&network, committee.epoch(), key, &of.output.id);
        let until = Instant::now() + patience;
        let (mut told, mut refusals) = (BTreeSet::new(), BTreeMap::new());
        let exit = PaymentBody::new(of.exit(network));
        let claim = Claim { kind: StatementKind::Confirmation, owner: &owner, digest: &exit.digest };
        let (mut exited, mut roots) = (BTreeSet::new(), RootCache::new(0));
        let mut send_at = Instant::now();
        loop {
            let now = Instant::now();
            if now >= send_at {
                for validator in (0..validators as u8).filter(|v| !told.contains(v) && !exited.contains(v)) {
                    // A validator that registered no key for this epoch is not asked.
                    if let Ok(shard) = committee.shard_of(validator, &owner) {
                        self.send(validator, shard, &request);
                    }
                }
                send_at = now + AGAIN;
            }
            let wait = send_at.min(until).saturating_duration_since(Instant::now());
            match self.replies.recv_timeout(wait) {
                Ok((validator, shard, generation, Came::Gone)) => self.forget(validator, shard, generation),
                Ok((validator, _, _, Came::Reply(Reply::Spender { output: about, spender })))
                    if about == of.output.id =>
                {
                    match spender {
                        None => drop(told.insert(validator)),
                        Some(spender) if spender.ground(&network, of) == Some(SpendGround::OwnerSigned) => {
                            return Ok(Some(spender));
                        }
                        Some(_) => {}
                    }
                }
                // An exit carries no owner's signature: the validators' signatures on it count.
                Ok((_, _, _, Came::Reply(Reply::Answer { kind: StatementKind::Confirmation, digest, answer })))
                    if digest == exit.digest =>
                {
                    if roots.verify(&committee, &claim, &answer, &mut CheckBudget(1)).is_ok() {
                        exited.insert(answer.validator);
                    }
                }
                Ok((validator, _, _, Came::Reply(Reply::Refusal { text, .. }))) => {
                    refusals.insert(validator, text);
                }
                Ok(_) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if exited.len() >= quorums.witness() {
                let signature = key.sign(&owner_message(&network, of.home, &exit.digest));
                return Ok(Some(KnownSpender { payment: exit.payment.encode(), signature }));
            }
            if told.len() >= needed {
                return Ok(None);
            }
            if Instant::now() >= until {
                return Err(LaneClientError::Untold { answered: told.len(), needed, refusals });
            }
        }
    }
}
