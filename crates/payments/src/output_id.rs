//! The names of outputs.

use std::fmt;

use primitives::{Address, Digest};

use crate::HomeEpoch;

const OUTPUT_CONTEXT: &str = "walras 2026 lane output id v1";
const DEPOSIT_CONTEXT: &str = "walras 2026 lane deposit id v1";
const GENESIS_CONTEXT: &str = "walras 2026 lane genesis id v1";

/// The name of an output: a hash of what created it, so that a payer cannot choose it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutputId(pub [u8; 32]);

impl OutputId {
    /// The `index`-th output of the payment with this digest, which lives in epoch `home`.
    pub fn of_payment(home: HomeEpoch, payment: &Digest, index: u8) -> OutputId {
        OutputId(Digest::of(OUTPUT_CONTEXT, &[&home.to_le_bytes()[..], &payment.0, &[index]].concat()).0)
    }

    /// The output that a withdrawal from the ledger creates.
    pub fn of_deposit(network: &Digest, home: HomeEpoch, account: &Address, sequence: u64) -> OutputId {
        let bytes = [&network.0[..], &home.to_le_bytes(), &account.0, &sequence.to_le_bytes()].concat();
        OutputId(Digest::of(DEPOSIT_CONTEXT, &bytes).0)
    }

    /// The `index`-th output of the genesis.
    pub fn of_genesis(network: &Digest, home: HomeEpoch, index: u32) -> OutputId {
        OutputId(Digest::of(GENESIS_CONTEXT, &[&network.0[..], &home.to_le_bytes(), &index.to_le_bytes()].concat()).0)
    }
}

impl fmt::Display for OutputId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Digest(self.0))
    }
}

impl fmt::Debug for OutputId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
