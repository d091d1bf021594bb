//! Owners of the outputs that the measurement pays, and what they received.

use payments::{
    FastReceipt, Holding, LaneCommittee, Output, PaymentCertificate, PaymentView, Recipient, RootCache, SignedPayment,
    build_payment,
};
use primitives::{AssetId, SecretKey};
use rayon::prelude::*;

use super::{PaymentsLaneOptions, key, rules};

/// Owners of outputs, of each shard: as many as signatures are verified with one equation, where one key that signed
/// several would count once.
const OWNERS: usize = 256;

/// Owners of outputs of the shards that run. Payments go around among them, and each stays in its shard.
pub(super) struct Owners(Vec<Vec<SecretKey>>);

impl Owners {
    pub(super) fn new(options: &PaymentsLaneOptions, committee: &LaneCommittee) -> Owners {
        let running = options.running();
        let mut keys = vec![Vec::new(); running.len()];
        let candidates = (0..).map(|number| key(1, number));
        for candidate in candidates {
            let shard = committee.shard_of(0, &candidate.public()).expect("the validator is registered");
            match running.iter().position(|of| *of == shard) {
                Some(at) if keys[at].len() < OWNERS => keys[at].push(candidate),
                _ if keys.iter().all(|of| of.len() == OWNERS) => break,
                _ => {}
            }
        }
        Owners(keys)
    }

    /// Who owns a coin, after so many payments of it.
    fn of(&self, coin: usize, payments: usize) -> &SecretKey {
        let (shard, round) = (coin % self.0.len(), coin / self.0.len());
        &self.0[shard][(round + payments) % OWNERS]
    }

    pub(super) fn output(&self, coin: usize, payments: usize) -> Output {
        let to = Recipient::Key(self.of(coin, payments).public());
        Output { to, asset: AssetId(0), amount: 1_000 }
    }

    /// The payment of a coin by its owner to the next one.
    pub(super) fn pay(&self, coin: usize, payments: usize, holding: Holding) -> Result<SignedPayment, String> {
        let next = self.output(coin, payments + 1);
        build_payment(&rules(), self.of(coin, payments), 0, 0, vec![holding], vec![next]).map_err(|e| e.to_string())
    }
}

/// What these payments paid, with proofs; each certificate is verified.
pub(super) fn holdings_of(
    committee: &LaneCommittee,
    payments: &[SignedPayment],
    certificates: &[PaymentCertificate],
) -> Result<Vec<Holding>, String> {
    let all = payments.par_iter().zip(certificates).map_init(
        || RootCache::new(1 << 12),
        |roots, (payment, certificate)| {
            let view = PaymentView::parse(&payment.payment).map_err(|error| error.to_string())?;
            let receipt = FastReceipt::of(&view, 0, certificate.clone()).ok_or("no output")?;
            receipt.verify(committee, roots).map_err(|error| error.to_string())
        },
    );
    all.collect()
}
