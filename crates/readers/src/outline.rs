//! The small part of the ledger that every block publishes completely.

use std::collections::BTreeMap;
use std::sync::Arc;

use ledger::{
    Asset, Ballot, Charter, Controls, LaneAssets, LaneBridge, LaneRegistration, LaneTerms, Ledger, Listings,
    Parameters, Schedule, Seals, Validators,
};
use primitives::{Amount, AssetId, Digest, Fraction, Height, Price};

/// A summary of the ledger after a block, in a few kilobytes, so that readers need not access the ledger.
#[derive(Clone, Debug)]
pub struct Outline {
    /// The chain's number.
    pub chain: u64,
    /// Units of asset 0 that a transaction costs.
    pub fee: Amount,
    /// The auctioneer's commission ε.
    pub epsilon: Fraction,
    /// The band μ below the rate within which an offer may be left unfilled.
    pub mu: Fraction,
    /// Height of the last block.
    pub height: Height,
    /// Its digest.
    pub block: Digest,
    /// How many heights ahead a transaction may end.
    pub until_max: u64,
    /// Number of accounts.
    pub accounts: usize,
    /// The assets by number.
    pub assets: Vec<Asset>,
    /// How assets were listed after the genesis, and which close.
    pub listings: Arc<Listings>,
    /// What issuers control, and whom they have frozen or admitted.
    pub controls: Arc<Controls>,
    /// The committee's sealing keys, if it makes some.
    pub seals: Option<Arc<Seals>>,
    /// The registry and the committees.
    pub validators: Validators,
    /// When committees change.
    pub schedule: Schedule,
    /// Which rules the chain follows, and who approves of the next ones.
    pub charter: Charter,
    /// The parameters of the next block.
    pub parameters: Parameters,
    /// What is proposed about them, and what waits.
    pub ballot: Arc<Ballot>,
    /// The payment lane, if the chain has one.
    pub lane: Option<LaneOutline>,
    /// Contracts, if the chain has them.
    pub contracts: Option<ContractsOutline>,
}

/// The contract parameters of the ledger.
#[derive(Clone, Copy, Debug)]
pub struct ContractsOutline {
    /// The base fee of the next block, in wei per unit of gas.
    pub base_fee: u64,
    /// The minimum base fee of the genesis, which is the base fee of block 0.
    pub first_base_fee: u64,
    /// Gas that the Ethereum transactions of a block may declare.
    pub block_gas: u64,
}

/// The payment lane in the ledger.
#[derive(Clone, Debug)]
pub struct LaneOutline {
    /// The identity that every signature in the lane covers.
    pub network: Digest,
    /// The lane epoch of the next block.
    pub epoch: u64,
    /// Heights left of that epoch.
    pub heights_left: u64,
    /// Whether the lane is halted.
    pub is_halted: bool,
    /// The number that a vote to halt must name.
    pub halt_round: u64,
    /// Open cases.
    pub open_cases: usize,
    /// Claims delayed by a limit.
    pub waiting_claims: usize,
    /// The terms of the genesis.
    pub terms: LaneTerms,
    /// The terms of assets, by lane epoch.
    pub assets: Arc<LaneAssets>,
    /// Units in escrow of each asset that the present epoch carries.
    pub escrow: BTreeMap<AssetId, u128>,
    /// Keys of the epochs that count, and of the next one.
    pub registrations: Vec<LaneRegistration>,
    /// Those epochs for which the members generated a group key.
    pub group_keys: Vec<u64>,
    /// Members that contradicted themselves.
    pub convicted: Vec<u8>,
}

impl LaneOutline {
    fn of(lane: &LaneBridge) -> LaneOutline {
        let (bridge, clock, assets) = (lane.bridge(), lane.bridge().clock(), lane.shared_assets());
        let carried = assets.of_home(clock.epoch()).into_iter();
        LaneOutline {
            network: lane.network(),
            epoch: clock.epoch(),
            heights_left: clock.heights_left(),
            is_halted: clock.is_halted(),
            halt_round: clock.halt_round(),
            open_cases: bridge.resolver().open_cases(),
            waiting_claims: bridge.queue().len(),
            registrations: bridge.all_registrations().cloned().collect(),
            group_keys: lane.group_keys().collect(),
            convicted: bridge.convicted().iter().copied().collect(),
            escrow: carried.map(|of| (of.asset, bridge.escrow(of.asset))).collect(),
            terms: lane.terms().clone(),
            assets,
        }
    }
}

impl Outline {
    /// The outline of a ledger, between two blocks.
    pub fn of(ledger: &Ledger) -> Outline {
        Outline {
            chain: ledger.chain(),
            fee: ledger.fee(),
            epsilon: ledger.epsilon(),
            mu: ledger.mu(),
            height: ledger.height(),
            block: ledger.last_block(),
            until_max: ledger.limits().until_max,
            accounts: ledger.accounts().len(),
            assets: ledger.assets().to_vec(),
            listings: ledger.shared_listings(),
            controls: ledger.shared_controls(),
            seals: ledger.shared_seals(),
            validators: ledger.validators().clone(),
            schedule: ledger.schedule(),
            charter: ledger.charter().clone(),
            parameters: ledger.parameters(),
            ballot: ledger.shared_ballot(),
            lane: ledger.lane().map(LaneOutline::of),
            contracts: ledger.contracts().head().map(|head| ContractsOutline {
                base_fee: head.base_fee,
                first_base_fee: ledger.founded().1.least_base_fee,
                block_gas: ledger.limits().block_gas,
            }),
        }
    }

    /// The valuation of an asset in the last batch, if it had a price there.
    pub fn valuation(&self, asset: AssetId) -> Option<Price> {
        self.assets[asset.0 as usize].valuation
    }
}
