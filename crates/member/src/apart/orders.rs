//! What a node orders a shard to do, and what a shard answers.
//!
//! ```text
//! order   1 home 8 · network 32 · BLS kind 1 (prepare) · 2 home 8 · epoch 8 · terms (start)
//!         · 3 home 8 · fact (tell) · 4 home 8 (stop listening) · 5 home 8 (stop) · 6 home 8 (remove)
//!         · 7 home 8 (forget) · 8 newest 8 · home 8 each (keep)
//! answer  1 home 8 · offer, or nothing (prepared) · 2 home 8 · 0 | 1 | 2, digest 32 each (failed, mute, runs)
//!         · 3 home 8 · report · 4 home 8 · signed 8 · refused 8 · bytes of the log 8 (counted)
//! ```

use std::collections::BTreeSet;

use payments::{
    HomeEpoch, HomeTerms, LaneBls, LaneEffect, LaneFact, LaneInput, ShardOffer, fact_bytes, parse_fact, parse_report,
    report_bytes,
};
use primitives::Digest;

use crate::{ShardStart, ShardTerm};

/// What a node orders.
#[derive(Clone, Debug)]
pub enum ShardOrder {
    /// Make the key and the log of a home, unless they exist, and offer the key.
    Prepare {
        /// The home.
        home: HomeEpoch,
        /// The identity of the network.
        network: Digest,
        /// The BLS keys of its lane.
        bls: LaneBls,
    },
    /// Start in a home, from its log. What the ledger knows of outputs follows as facts.
    Start {
        /// The home.
        home: HomeEpoch,
        /// The lane epoch by certified height.
        now: HomeEpoch,
        /// Its terms.
        terms: Box<HomeTerms>,
    },
    /// Take a fact.
    Tell(HomeEpoch, LaneFact),
    /// Release the address of a home.
    StopListening(HomeEpoch),
    /// Stop in a home.
    Stop(HomeEpoch),
    /// Wipe the key of a home.
    Remove(HomeEpoch),
    /// Remove the log of a home whose key is wiped.
    Forget(HomeEpoch),
    /// The newest epoch is this one, and these homes live. Wipe the keys of all others that have begun.
    Keep(HomeEpoch, BTreeSet<HomeEpoch>),
}

/// What a shard answers.
#[derive(Clone, Debug)]
pub enum ShardAnswer {
    /// What it offers for a home; nothing if its disk failed.
    Prepared(HomeEpoch, Option<ShardOffer>),
    /// How a start went.
    Started(HomeEpoch, ShardStart),
    /// A report of the shard in a home.
    Reported(HomeEpoch, LaneEffect),
    /// What the shard has done in a home since it started there.
    Counted(HomeEpoch, ShardFigures),
}

/// What a shard has done in a home since it started there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardFigures {
    /// Answers that it has signed.
    pub signed: u64,
    /// Requests that it has refused.
    pub refused: u64,
    /// Bytes of its log.
    pub log_bytes: u64,
}

const BLS_KINDS: [LaneBls; 3] = [LaneBls::None, LaneBls::Aggregate, LaneBls::Threshold];

fn of_home(kind: u8, home: HomeEpoch, rest: &[u8]) -> Vec<u8> {
    [&[kind][..], &home.to_le_bytes(), rest].concat()
}

/// Kind, home and rest.
fn split(bytes: &[u8]) -> Option<(u8, HomeEpoch, &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    let (home, rest) = rest.split_first_chunk::<8>()?;
    Some((*kind, u64::from_le_bytes(*home), rest))
}

/// A set whose members ascend.
fn set<T: Ord, const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> T) -> Option<BTreeSet<T>> {
    let (parts, rest) = bytes.as_chunks::<N>();
    let all: Vec<T> = parts.iter().map(|part| read(*part)).collect();
    (rest.is_empty() && all.is_sorted_by(|one, next| one < next)).then(|| all.into_iter().collect())
}

impl ShardOrder {
    /// What a shard is started with: its start, and the outputs that the ledger knows as facts.
    pub fn starting(term: ShardTerm) -> Vec<ShardOrder> {
        let ShardTerm { rules, committee, previous, now, backed, proven, .. } = term;
        let home = committee.epoch();
        let terms = Box::new(HomeTerms { rules, committee, previous });
        let backed = backed.into_iter().map(|(id, output)| LaneInput::Backed(id, output));
        let proven = proven.into_iter().map(|(id, output)| LaneInput::Proven(id, output));
        let facts = backed.chain(proven).map(|fact| ShardOrder::Tell(home, fact));
        [ShardOrder::Start { home, now, terms }].into_iter().chain(facts).collect()
    }

    /// Its bytes; `None` for a fact that is none of the ledger.
    pub fn encode(&self) -> Option<Vec<u8>> {
        Some(match self {
            ShardOrder::Prepare { home, network, bls } => of_home(1, *home, &[&network.0[..], &[*bls as u8]].concat()),
            ShardOrder::Start { home, now, terms } => {
                of_home(2, *home, &[&now.to_le_bytes()[..], &terms.encode()].concat())
            }
            ShardOrder::Tell(home, fact) => of_home(3, *home, &fact_bytes(fact)?),
            ShardOrder::StopListening(home) => of_home(4, *home, &[]),
            ShardOrder::Stop(home) => of_home(5, *home, &[]),
            ShardOrder::Remove(home) => of_home(6, *home, &[]),
            ShardOrder::Forget(home) => of_home(7, *home, &[]),
            ShardOrder::Keep(newest, homes) => {
                of_home(8, *newest, &homes.iter().flat_map(|home| home.to_le_bytes()).collect::<Vec<u8>>())
            }
        })
    }

    /// Parses an order that fills `bytes`.
    pub fn parse(bytes: &[u8]) -> Option<ShardOrder> {
        let (kind, home, rest) = split(bytes)?;
        Some(match (kind, rest) {
            (1, _) => {
                let (network, [bls]) = rest.split_first_chunk::<32>()? else { return None };
                let bls = *BLS_KINDS.get(usize::from(*bls))?;
                ShardOrder::Prepare { home, network: Digest(*network), bls }
            }
            (2, _) => {
                let (now, terms) = rest.split_first_chunk::<8>()?;
                let terms = HomeTerms::parse(terms).ok().filter(|terms| terms.committee.epoch() == home)?;
                ShardOrder::Start { home, now: u64::from_le_bytes(*now), terms: Box::new(terms) }
            }
            (3, _) => ShardOrder::Tell(home, parse_fact(rest).ok()?),
            (4, []) => ShardOrder::StopListening(home),
            (5, []) => ShardOrder::Stop(home),
            (6, []) => ShardOrder::Remove(home),
            (7, []) => ShardOrder::Forget(home),
            (8, _) => ShardOrder::Keep(home, set(rest, u64::from_le_bytes)?),
            _ => return None,
        })
    }
}

impl ShardAnswer {
    /// Its bytes; `None` for a report that is none.
    pub fn encode(&self) -> Option<Vec<u8>> {
        Some(match self {
            ShardAnswer::Prepared(home, offer) => {
                of_home(1, *home, &offer.as_ref().map(ShardOffer::encode).unwrap_or_default())
            }
            ShardAnswer::Started(home, start) => of_home(2, *home, &start_bytes(start)),
            ShardAnswer::Reported(home, report) => of_home(3, *home, &report_bytes(report)?),
            ShardAnswer::Counted(home, ShardFigures { signed, refused, log_bytes }) => {
                of_home(4, *home, &[signed, refused, log_bytes].map(|figure| figure.to_le_bytes()).concat())
            }
        })
    }

    /// Parses an answer that fills `bytes`.
    pub fn parse(bytes: &[u8]) -> Option<ShardAnswer> {
        let (kind, home, rest) = split(bytes)?;
        Some(match (kind, rest) {
            (1, []) => ShardAnswer::Prepared(home, None),
            (1, _) => ShardAnswer::Prepared(home, Some(ShardOffer::parse(rest).ok()?)),
            (2, _) => ShardAnswer::Started(home, parse_start(rest)?),
            (3, _) => ShardAnswer::Reported(home, parse_report(rest).ok()?),
            (4, _) => {
                let (figures, []) = rest.as_chunks::<8>() else { return None };
                let [signed, refused, log_bytes] = *figures else { return None };
                let [signed, refused, log_bytes] = [signed, refused, log_bytes].map(u64::from_le_bytes);
                ShardAnswer::Counted(home, ShardFigures { signed, refused, log_bytes })
            }
            _ => return None,
        })
    }
}

fn start_bytes(start: &ShardStart) -> Vec<u8> {
    match start {
        ShardStart::Failed | ShardStart::Underway => vec![0],
        ShardStart::Mute => vec![1],
        ShardStart::Runs(barred) => [2].into_iter().chain(barred.iter().flat_map(|of| of.0)).collect(),
    }
}

fn parse_start(bytes: &[u8]) -> Option<ShardStart> {
    match bytes {
        [0] => Some(ShardStart::Failed),
        [1] => Some(ShardStart::Mute),
        [2, barred @ ..] => set(barred, Digest).map(ShardStart::Runs),
        _ => None,
    }
}
