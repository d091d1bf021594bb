//! The payment lane in JSON.

use std::net::SocketAddr;

use api::{
    HOME_PORTS, LaneAssetBody, LaneBody, LaneCandidateBody, LaneCaseBody, LaneCasesBody, LaneOutputBody,
    LaneRegistrationBody, LaneTermsBody, RegisteredBlsBody,
};
use ledger::LaneRegistration;
use primitives::{LANE_DEPOSITS, LaneAssetTerms, to_hex};

use crate::backend::{LaneCaseRead, LaneOutputRead};
use readers::outline::{LaneOutline, Outline};

/// The payment lane; `None` on a chain without one.
pub fn lane(outline: &Outline, addresses: &[Vec<SocketAddr>], tls: bool) -> Option<LaneBody> {
    let LaneOutline {
        network,
        epoch,
        heights_left,
        is_halted,
        halt_round,
        open_cases,
        waiting_claims,
        terms,
        assets,
        escrow,
        registrations,
        group_keys,
        convicted,
    } = outline.lane.as_ref()?;
    let carried = assets.of_home(*epoch).into_iter().map(|of| LaneAssetBody {
        asset: symbol(outline, of.asset),
        least_units: of.least_units.to_string(),
        fee: of.fee.to_string(),
        escrow: escrow.get(&of.asset).copied().unwrap_or(0).to_string(),
    });
    let of_member = |shards: &Vec<SocketAddr>| shards.iter().map(SocketAddr::to_string).collect();
    let addresses = match addresses.len() == terms.members.len() {
        true => addresses.iter().map(of_member).collect(),
        false => Vec::new(),
    };
    Some(LaneBody {
        addresses,
        tls,
        home_ports: HOME_PORTS,
        height: outline.height,
        network: network.to_string(),
        epoch: *epoch,
        heights_left: *heights_left,
        epoch_heights: terms.epoch_heights,
        halted: *is_halted,
        halt_round: *halt_round,
        case_deposit: terms.case_deposit.to_string(),
        lapse_penalty_millionths: terms.lapse_penalty,
        open_cases: *open_cases,
        waiting_claims: *waiting_claims,
        members: terms.members.iter().map(|shards| shards.iter().map(ToString::to_string).collect()).collect(),
        registrars: terms.registrars.iter().map(ToString::to_string).collect(),
        bls: terms.bls.name().into(),
        registrations: registrations.iter().map(lane_registration).collect(),
        group_keys: group_keys.clone(),
        accounts: terms.accounts.iter().map(ToString::to_string).collect(),
        convicted: convicted.clone(),
        assets: carried.collect(),
        terms: assets.iter().map(|(from, of)| terms_from(outline, from, of)).collect(),
    })
}

fn terms_from(outline: &Outline, from: u64, of: &LaneAssetTerms) -> LaneTermsBody {
    LaneTermsBody {
        asset: symbol(outline, of.asset),
        number: of.asset.0,
        decimals: outline.assets.get(of.asset.0 as usize).map_or(0, |listed| listed.decimals),
        from,
        least_units: of.least_units.to_string(),
        fee: of.fee.to_string(),
        deposits: LANE_DEPOSITS[usize::from(of.deposits)].into(),
        outflow_most: of.outflow_most.to_string(),
        outflow_per_height: of.outflow_per_height.to_string(),
    }
}

/// Registered keys in JSON.
pub fn lane_registration(of: &LaneRegistration) -> LaneRegistrationBody {
    LaneRegistrationBody {
        epoch: of.epoch,
        member: of.member,
        keys: of.keys.iter().map(ToString::to_string).collect(),
        bls: of.bls.iter().map(|of| RegisteredBlsBody { key: to_hex(&of.key), proof: to_hex(&of.proof.0) }).collect(),
        signature: to_hex(&of.signature.0),
    }
}

fn symbol(outline: &Outline, asset: primitives::AssetId) -> String {
    outline.assets.get(asset.0 as usize).map_or_else(|| asset.to_string(), |listed| listed.symbol.clone())
}

/// An output in JSON.
pub fn lane_output(outline: &Outline, id: String, read: &LaneOutputRead) -> LaneOutputBody {
    LaneOutputBody {
        output: id,
        home: read.home,
        to: read.to.to_string(),
        asset: symbol(outline, read.asset),
        amount: read.amount.to_string(),
    }
}

/// Cases in JSON.
pub fn lane_cases(outline: &Outline, read: Vec<LaneCaseRead>) -> LaneCasesBody {
    let candidate = |(digest, payment): (primitives::Digest, Vec<u8>)| LaneCandidateBody {
        digest: digest.to_string(),
        payment: format!("0x{}", to_hex(&payment)),
    };
    let case = |read: LaneCaseRead| LaneCaseBody {
        output: read.output.to_string(),
        home: read.home,
        owner: read.owner.to_string(),
        asset: symbol(outline, read.asset),
        amount: read.amount.to_string(),
        candidates: read.candidates.map(|all| all.into_iter().map(candidate).collect()),
    };
    LaneCasesBody { cases: read.into_iter().map(case).collect() }
}
