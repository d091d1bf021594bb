//! The part of a genesis file about limits.

use ledger::Limits;
use serde::{Deserialize, Serialize};

/// [`Limits`], with defaults for omitted fields.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitsEntry {
    resting_offers: u64,
    open_pairs: u32,
    validators: u32,
    block_gas: u64,
    sub_block_gas: u64,
    least_base_fee: u64,
    until_max: u64,
}

impl Default for LimitsEntry {
    fn default() -> LimitsEntry {
        LimitsEntry::of(Limits::default())
    }
}

impl LimitsEntry {
    pub(crate) fn of(limits: Limits) -> LimitsEntry {
        let Limits { resting_offers, open_pairs, validators, block_gas, sub_block_gas, least_base_fee, until_max } =
            limits;
        LimitsEntry { resting_offers, open_pairs, validators, block_gas, sub_block_gas, least_base_fee, until_max }
    }

    pub(crate) fn limits(&self) -> Limits {
        let LimitsEntry { resting_offers, open_pairs, validators, .. } = *self;
        let LimitsEntry { block_gas, sub_block_gas, least_base_fee, until_max, .. } = *self;
        Limits { resting_offers, open_pairs, validators, block_gas, sub_block_gas, least_base_fee, until_max }
    }
}
