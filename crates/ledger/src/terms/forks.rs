//! Which of Ethereum's forks contracts run under, by height.
//!
//! A genesis has a schedule. The height of a block alone decides its fork: when it is executed, and in calls, traces
//! and estimates over it. The schedule stands in the state of contracts, so that a state without its genesis follows
//! it too. A genesis without a schedule has the usual one, and its bytes and digests are those from before schedules.

use std::str::FromStr;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Height;
use revm::context::CfgEnv;
use revm::primitives::eip4844::BLOB_BASE_FEE_UPDATE_FRACTION_PRAGUE;
use revm::primitives::hardfork::SpecId;

/// The interpreter's rules under each fork that a network may have. Sub-blocks are judged by them before a vote, when
/// no height is known.
pub const NETWORK_SPEC: SpecId = SpecId::OSAKA;

/// A fork of Ethereum that this program knows, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub enum Fork {
    /// Osaka, of December 2025.
    Osaka,
    /// Osaka with the first change of blobs alone (EIP-7892).
    Bpo1,
    /// Osaka with the second change of blobs alone.
    Bpo2,
    /// Amsterdam as the interpreter has it, which is not final: only developers' chains may have it.
    Amsterdam,
}

impl Fork {
    /// All of them, in order.
    pub const ALL: [Fork; 4] = [Fork::Osaka, Fork::Bpo1, Fork::Bpo2, Fork::Amsterdam];

    /// Its name in a genesis.
    pub fn name(self) -> &'static str {
        match self {
            Fork::Osaka => "osaka",
            Fork::Bpo1 => "bpo1",
            Fork::Bpo2 => "bpo2",
            Fork::Amsterdam => "amsterdam",
        }
    }

    /// The interpreter's rules under it.
    pub fn spec(self) -> SpecId {
        match self {
            Fork::Osaka | Fork::Bpo1 | Fork::Bpo2 => NETWORK_SPEC,
            Fork::Amsterdam => SpecId::AMSTERDAM,
        }
    }

    /// How slowly the price of blobs follows their use (EIP-7840). The chain has no blobs: contracts cannot tell.
    pub fn blob_fraction(self) -> u64 {
        match self {
            Fork::Osaka => BLOB_BASE_FEE_UPDATE_FRACTION_PRAGUE,
            Fork::Bpo1 => 8_346_193,
            Fork::Bpo2 | Fork::Amsterdam => 11_684_671,
        }
    }

    /// The settings of the interpreter under it.
    pub(crate) fn rules(self, chain: u64) -> CfgEnv {
        let mut rules = CfgEnv::new().with_spec_and_mainnet_gas_params(self.spec()).with_chain_id(chain);
        rules.blob_base_fee_update_fraction = Some(self.blob_fraction());
        rules
    }
}

/// A name that is none of a fork.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this program knows the forks osaka, bpo1, bpo2 and amsterdam, not {0:?}: start a version of walras that knows it"
)]
pub struct UnknownFork(String);

impl FromStr for Fork {
    type Err = UnknownFork;

    fn from_str(text: &str) -> Result<Fork, UnknownFork> {
        Fork::ALL.into_iter().find(|fork| fork.name() == text).ok_or_else(|| UnknownFork(text.into()))
    }
}

/// Which fork begins at which height: Osaka from the genesis on, unless a genesis says something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkSchedule(Vec<(Height, Fork)>);

impl Default for ForkSchedule {
    fn default() -> ForkSchedule {
        ForkSchedule(vec![(0, Fork::Osaka)])
    }
}

impl ForkSchedule {
    /// A schedule of forks with the heights of their first blocks.
    ///
    /// # Errors
    /// What is wrong with it, and what to do.
    pub fn new(steps: Vec<(Height, Fork)>) -> Result<ForkSchedule, &'static str> {
        if steps.first().is_none_or(|(height, _)| *height != 0) {
            return Err("the first begins at height 0, with the genesis");
        }
        let is_later = |pair: &[(Height, Fork)]| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1;
        if !steps.windows(2).all(is_later) {
            return Err("each is a later fork than the one before it, and begins at a greater height");
        }
        Ok(ForkSchedule(steps))
    }

    /// The forks with the heights of their first blocks, in order.
    pub fn steps(&self) -> &[(Height, Fork)] {
        &self.0
    }

    /// The fork of the block at a height.
    pub fn at(&self, height: Height) -> Fork {
        let begun = self.0.iter().rev().find(|(from, _)| *from <= height);
        begun.expect("the first begins at height 0").1
    }

    /// Whether it is that of a genesis which says nothing.
    pub fn is_usual(&self) -> bool {
        *self == ForkSchedule::default()
    }

    /// The steps of a schedule that a genesis or a state has to name.
    pub(crate) fn unusual(&self) -> Option<&Vec<(Height, Fork)>> {
        (!self.is_usual()).then_some(&self.0)
    }

    /// Why a chain cannot have it, if it cannot.
    pub(crate) fn fault(&self, has_contracts: bool, is_developers: bool) -> Option<&'static str> {
        let is_final = self.0.iter().all(|(_, fork)| fork.spec() == NETWORK_SPEC);
        match () {
            _ if !has_contracts && !self.is_usual() => {
                Some("a chain without contracts has none: leave them out, or set limits.block_gas")
            }
            _ if !is_developers && !is_final => {
                Some("amsterdam is not final, so only a developers' chain may have it: leave it out")
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_begins_with_the_genesis_and_rises() {
        use Fork::{Amsterdam, Bpo1, Bpo2, Osaka};
        let sound = ForkSchedule::new(vec![(0, Osaka), (10, Bpo1), (11, Amsterdam)]).expect("sound");
        let at: Vec<Fork> = [0, 9, 10, 11, u64::MAX].map(|height| sound.at(height)).into();
        assert_eq!(at, [Osaka, Osaka, Bpo1, Amsterdam, Amsterdam]);
        for wrong in [
            vec![],
            vec![(1, Osaka)],
            vec![(0, Osaka), (0, Bpo1)],
            vec![(0, Osaka), (9, Bpo2), (10, Bpo1)],
            vec![(0, Osaka), (9, Osaka)],
            vec![(0, Osaka), (9, Bpo1), (8, Bpo2)],
        ] {
            assert!(ForkSchedule::new(wrong.clone()).is_err(), "{wrong:?}");
        }
        assert!(ForkSchedule::default().is_usual() && !sound.is_usual());
    }

    #[test]
    fn every_fork_has_a_name_and_only_an_unfinished_one_changes_what_is_judged_before_a_vote() {
        for fork in Fork::ALL {
            assert_eq!(fork.name().parse(), Ok(fork));
            let schedule = ForkSchedule::new(vec![(0, fork)]).expect("sound");
            assert_eq!(schedule.fault(true, false).is_none(), fork.spec() == NETWORK_SPEC, "{fork:?}");
            assert_eq!(schedule.fault(true, true), None);
            assert_eq!(schedule.fault(false, true).is_none(), schedule.is_usual());
        }
        let unknown = "fusaka".parse::<Fork>().expect_err("no fork").to_string();
        assert!(unknown.contains("start a version of walras"), "{unknown}");
    }
}
