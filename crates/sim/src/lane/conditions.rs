//! What is wrong in a run besides disks, messages and blocks: accounts without money, a member without keys, payers who
//! keep certificates to themselves, views that a relay strips of their certificates, outputs contested by the hundred,
//! restarts of the network.

use kernel::Dice;
use ledger::{LaneOutput, Outcome};
use member::MemberMistake;
use payments::{
    BridgeOperation, ContestClaim, ContestedOutput, HomePhase, OutputId, OutputProof, PaymentBody, SpentOutput,
    StatementKind, owner_message,
};
use primitives::{Amount, Digest, Operation, SecretKey, Transaction, TransactionId};

use super::payers::CHEAT;
use super::{ASSET, CASE_DEPOSIT, LaneWorld, secret};
use crate::world::{LaneMistake, Mistake};

/// Outputs that are contested together in a run with a flood, and the posts of a block about them.
const FLOOD: u32 = 1_000;
const FLOOD_POSTS: usize = 20;
/// Outputs of one post.
const TOGETHER: usize = 16;
/// The amount of each.
const FLOODED: Amount = 100;

/// The conditions of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    /// Members have no money for fees.
    pub are_members_poor: bool,
    /// The Byzantine member registers no keys: it signs nothing after the first epoch.
    pub is_unregistered: bool,
    /// Payers post no certificate of a contested payment. They show it to members, who post it.
    pub are_payers_silent: bool,
    /// A thousand outputs are contested at once.
    pub is_flooded: bool,
    /// More than f members say nothing in cases, a correct one among them: what votes alone decide expires.
    pub is_stalled: bool,
    /// Members vote on the terms of assets.
    pub are_terms_voted: bool,
    /// The network restarts: the height of its snapshot, and the height that is rolled back to it.
    pub restart: Option<(u64, u64)>,
}

/// The correct member that says nothing in cases where more than f do.
const SILENT: u8 = 0;

impl Conditions {
    pub fn of(seed: u64, mistake: Option<Mistake>) -> Conditions {
        let mut dice = Dice::new(seed ^ 0xfa17);
        let [poor, unregistered, silent, flooded, stalled] = [2, 6, 3, 24, 6].map(|once_in| dice.once_in(once_in));
        let member = mistake.and_then(Mistake::of_member);
        // A group key needs all members.
        let makes_group_keys = seed % 8 == 5;
        let is_late = member == Some(MemberMistake::LateCertificateNotTold);
        let is_restarted = dice.once_in(4) && mistake.is_none()
            || mistake.and_then(Mistake::of_lane).is_some_and(LaneMistake::is_of_restarts);
        let snapshot = 8 + dice.below(14);
        let are_terms_voted = match mistake {
            None => seed.is_multiple_of(3),
            Some(mistake) => mistake.of_lane().is_some_and(LaneMistake::is_of_terms),
        };
        // A proposal has its price.
        let poor = poor && !are_terms_voted;
        Conditions {
            are_terms_voted,
            restart: is_restarted.then(|| (snapshot, snapshot + 2 + dice.below(10))),
            are_members_poor: poor && mistake.is_none() || mistake == Some(Mistake::Lane(LaneMistake::DutyUnmarked)),
            is_unregistered: unregistered && !makes_group_keys && mistake.is_none(),
            are_payers_silent: silent || member == Some(MemberMistake::ShownNotPosted),
            is_flooded: flooded && mistake.is_none(),
            is_stalled: is_late || stalled && !unregistered && mistake.is_none(),
        }
    }

    /// Whether a correct member says nothing in cases.
    pub fn silences(self, member: u8) -> bool {
        self.is_stalled && member == SILENT
    }

    /// Outputs of the genesis, all of one key of the cheat.
    pub fn outputs(self) -> Vec<LaneOutput> {
        let output = LaneOutput { to: flood_key().public(), asset: ASSET, amount: FLOODED };
        vec![output; if self.is_flooded { FLOOD as usize } else { 0 }]
    }
}

fn flood_key() -> SecretKey {
    secret(7, 0)
}

impl LaneWorld {
    /// The next posts of a flood: each output until its case is open.
    pub(super) fn flood(&mut self) {
        let bridge = self.lane().bridge();
        if !self.conditions.is_flooded || self.healed || !bridge.clock().may_open(0) {
            return;
        }
        let (network, resolver) = (self.lane().network(), bridge.resolver());
        let ids = (0..FLOOD).map(|index| OutputId::of_genesis(&network, 0, index));
        let left: Vec<OutputId> =
            ids.filter(|id| !resolver.is_open(id) && !self.flooded.contains(id)).take(FLOOD_POSTS * TOGETHER).collect();
        let account = self.payers.account(CHEAT);
        for part in left.chunks(TOGETHER) {
            let mut outputs: Vec<ContestClaim> = part.iter().map(|id| flood_claim(*id, &network)).collect();
            outputs.sort_by_key(|of| of.contested.output.id);
            self.post(&account, &BridgeOperation::Resolve { bid: CASE_DEPOSIT, outputs });
        }
    }

    /// A relay makes copies of views without the certificates that they name. They come to the same block.
    pub(super) fn strip(&mut self, native: &mut Vec<Transaction>) {
        for at in 0..native.len() {
            let Operation::Lane(bytes) = &native[at].body.operation else { continue };
            let Ok(BridgeOperation::View { case, committee, owner, paid: Some(_), answer }) =
                BridgeOperation::parse(bytes)
            else {
                continue;
            };
            let stripped = BridgeOperation::View { case, committee, owner, paid: None, answer };
            let account = self.payers.account(1);
            let id = self.post(&account, &stripped);
            native.extend(self.waiting.pop());
            self.stripped.insert(id);
        }
    }

    /// What the ledger made of a post of these conditions.
    pub(super) fn on_condition(
        &mut self,
        id: &TransactionId,
        is_member: bool,
        outcome: &Outcome,
        post: &[u8],
    ) -> Result<(), String> {
        let is_applied = outcome.refusal().is_none();
        if self.stripped.contains(id) {
            self.report.stripped += 1;
            return if is_applied { Err("a view counts without the certificate that it names".into()) } else { Ok(()) };
        }
        if let (true, true, Ok(BridgeOperation::Redeem { payment, .. })) =
            (is_member, is_applied, BridgeOperation::parse(post))
        {
            self.report.shown += 1;
            let body = PaymentBody::parse(&payment).map_err(|refusal| refusal.to_string())?;
            self.payers.redeemed(&body.digest);
        }
        Ok(())
    }

    /// Payments whose certificates members are shown from now on: contested, certified and not acknowledged.
    pub(super) fn certificates_to_show(&self) -> Vec<(OutputId, Digest)> {
        let resolver = self.lane().bridge().resolver();
        let is_shown = |home| HomePhase::of(home, self.now()) <= HomePhase::Exit;
        let paid = self.payers.payments.iter().filter(|paid| is_shown(paid.home()));
        let waits = paid.filter(|paid| paid.wants() == Some(StatementKind::Acknowledgement));
        let of_open = |body: &PaymentBody| {
            let input = body.input_ids().find(|input| resolver.is_open(input))?;
            resolver.awaits_certificate(body).then_some((input, body.digest))
        };
        waits.filter_map(|paid| of_open(&paid.body)).collect()
    }

    /// Checks that cases in which members were shown a certificate are closed.
    pub(super) fn check_shown(&self, shown: &[(OutputId, Digest)]) -> Result<(), String> {
        let resolver = self.lane().bridge().resolver();
        let open = shown.iter().find(|(case, _)| resolver.is_open(case)).map(|(_, payment)| *payment);
        // What a member's shard reported, and the member did not forget by a crash.
        let reported = self.validators.iter().flat_map(|validator| &validator.shown);
        let is_lacked = |payment: &&Digest| {
            self.observed.bodies.get(*payment).is_some_and(|body| resolver.awaits_certificate(body))
        };
        let lacked = open.or_else(|| reported.into_iter().find(is_lacked).copied());
        lacked.map_or(Ok(()), |payment| {
            Err(format!("members were shown the certificate of payment {payment}, and the ledger does not have it"))
        })
    }
}

fn flood_claim(id: OutputId, network: &Digest) -> ContestClaim {
    let (output, owner) = (SpentOutput { id, asset: ASSET, amount: FLOODED }, flood_key());
    let contested = ContestedOutput { output, home: 0, owner: owner.public() };
    let exit = PaymentBody::new(contested.exit(*network));
    let signature = owner.sign(&owner_message(network, 0, &exit.digest));
    ContestClaim { contested, signature, proof: OutputProof::Ledger }
}
