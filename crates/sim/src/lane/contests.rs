//! Payers contest payments, and send outputs home.

use payments::{
    BridgeOperation, ContestClaim, ContestedOutput, HomeEpoch, Output, PaymentBody, SpentOutput, owner_message,
};

use super::payers::{CHEAT, Coin, Paid, Payers};
use super::{CASE_DEPOSIT, LaneWorld};

/// Number of blocks after which an honest payer contests a payment that is stuck.
const STUCK_BLOCKS: u64 = 5;

impl LaneWorld {
    /// Contests the outputs of a payment: the cheat of any payment, an honest payer of one that is stuck.
    pub(super) fn contest(&mut self, payer: usize) {
        let height = self.ledger.height();
        let may = |paid: &Paid| {
            let is_stuck = paid.certificate.is_none() && height >= paid.begun + STUCK_BLOCKS;
            paid.payer == payer && !paid.is_contested && !paid.is_dead && (is_stuck || payer == CHEAT)
        };
        let payments = &self.payers.payments;
        let own: Vec<usize> = (0..payments.len()).filter(|at| may(&payments[*at])).collect();
        if own.is_empty() {
            return;
        }
        let at = own[self.dice.index(own.len())];
        let home = self.payers.payments[at].home();
        if !self.lane().bridge().clock().may_open(home) {
            return;
        }
        self.payers.payments[at].is_contested = true;
        let network = self.lane().network();
        let claim = |coin: &usize| {
            let Coin { holding, home, key, .. } = &self.payers.coins[*coin];
            let Output { asset, amount, .. } = holding.output;
            let output = SpentOutput { id: holding.id, asset, amount };
            let contested = ContestedOutput { output, home: *home, owner: key.public() };
            let exit = PaymentBody::new(contested.exit(network));
            let signature = key.sign(&owner_message(&network, *home, &exit.digest));
            ContestClaim { contested, signature, proof: holding.proof.clone() }
        };
        let mut outputs: Vec<ContestClaim> = self.payers.payments[at].inputs.iter().map(claim).collect();
        outputs.sort_by_key(|of| of.contested.output.id);
        let account = self.payers.account(payer);
        self.post(&account, &BridgeOperation::Resolve { bid: CASE_DEPOSIT, outputs });
    }

    /// Begins the exits of the settled outputs of honest payers that can still be sent for two more epochs.
    pub(super) fn send_home(&mut self, now: HomeEpoch) -> Vec<usize> {
        let is_due = |payers: &Payers, at: usize| {
            let coin = &payers.coins[at];
            coin.owner != CHEAT && !coin.is_spent && payers.is_settled(coin) && coin.home + 1 >= now
        };
        let due: Vec<usize> = (0..self.payers.coins.len()).filter(|at| is_due(&self.payers, *at)).collect();
        due.into_iter().filter_map(|coin| self.exit(coin)).collect()
    }
}
