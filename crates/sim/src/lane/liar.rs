//! The Byzantine validator.

use std::collections::BTreeMap;

use kernel::Dice;
use payments::{
    AnswerScheme, BlsSecretKey, BridgeOperation, CertifiedPayment, Claim, HomeEpoch, KeyGeneration, KeyShare,
    LaneAnswer, LaneCommittee, OutputId, PaymentBody, StatementKind, view_digest,
};
use primitives::{Digest, PublicKey, Signature};

use super::schemes::SimAnswer;
use super::{lane_key, shard_key};

/// The Byzantine validator: it confirms and acknowledges everything, at any time, and posts anything in cases.
pub(super) struct Liar {
    pub index: u8,
    position: u64,
    /// Its shares of group keys, from its own and others' dealings.
    shares: BTreeMap<HomeEpoch, Option<KeyShare>>,
}

impl Liar {
    pub fn new(index: u8) -> Liar {
        Liar { index, position: 1_000, shares: BTreeMap::new() }
    }

    /// Answers with its BLS key or share, or with a signature of something else, or not at all.
    pub fn bls_answer(
        &mut self,
        committee: &LaneCommittee,
        generation: Option<&KeyGeneration>,
        scheme: AnswerScheme,
        said: (StatementKind, Digest),
        dice: &mut Dice,
    ) -> Option<SimAnswer> {
        let (network, home, (kind, digest)) = (committee.network(), committee.epoch(), said);
        let digest = if dice.once_in(4) { Digest([3; 32]) } else { digest };
        let key = BlsSecretKey::of_shard(&lane_key(self.index, home));
        let signature = match scheme {
            AnswerScheme::Share => {
                let index = self.index;
                let share = self.shares.entry(home).or_insert_with(|| generation.and_then(|of| of.share(index, &key)));
                share.as_ref()?.sign(&network, home, kind, &digest)
            }
            _ => key.sign(&network, home, kind, &digest),
        };
        (!dice.once_in(4)).then_some(SimAnswer::Bls(self.index, signature))
    }

    fn sign(&mut self, committee: &LaneCommittee, claim: &Claim<'_>) -> LaneAnswer {
        self.position += 1;
        let mut answer = LaneAnswer {
            validator: self.index,
            size: 1,
            index: 0,
            position: self.position,
            signature: Signature([0; 64]),
            path: Vec::new(),
        };
        // It keeps all keys. Its signatures count only with a registered key.
        if let Ok(header) = answer.header(committee, claim) {
            answer.signature = shard_key(self.index, committee.epoch(), header.shard).sign(&header.bytes());
        }
        answer
    }

    pub fn answer(&mut self, committee: &LaneCommittee, kind: StatementKind, body: &PaymentBody) -> LaneAnswer {
        self.sign(committee, &Claim { kind, owner: &body.payment.owner, digest: &body.digest })
    }

    /// A view that names a payment with its certificate, or none.
    pub fn view(
        &mut self,
        committee: &LaneCommittee,
        (case, owner): (OutputId, PublicKey),
        paid: Option<Box<CertifiedPayment>>,
    ) -> BridgeOperation {
        let named = paid.as_ref().map(|paid| paid.digest(&committee.network()));
        let digest = view_digest(&case, named.as_ref());
        let answer = self.sign(committee, &Claim { kind: StatementKind::View, owner: &owner, digest: &digest });
        BridgeOperation::View { case, committee: committee.epoch(), owner, paid, answer }
    }
}
