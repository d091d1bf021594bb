//! Restarts a network under a new identity, from a state that its validators agree on outside the protocol.
//!
//! A validator cannot take back what it has signed, and its vote log is never edited. So a network that must go back
//! to an earlier state, or discard the blocks of a faulty binary, restarts under another identity: the digest of the
//! first identity, the number of the restart, and the snapshot that it begins with. Everything that validators sign
//! names the identity, so earlier statements mean nothing in the restarted network and contradict nothing in it.
//!
//! A committee that is gone for good decides nothing, and draws no other one. So a restart may name the accounts that
//! take its seats; the list is part of the identity. Who has a seat counts as present for the next draw, and nobody
//! else does: absent stakes that counted would take f seats at once.
//!
//! What accounts have said about rules to come is forgotten, with what is proposed or waits to act. All who stake count
//! as ready for the rules that the network begins with. These are the rules of the state, or others that were agreed
//! on.
//!
//! A payment lane starts again, too: its certificates outlive the rolled back state, and would be redeemed from the
//! escrow of others if it kept its name. What is carried over is a list ([`payments::LaneCarryOver`]); the list and the
//! keys of the first committee are part of the identity, so that nobody can sign for two lists under one name.

use payments::{CarryRefusal, LaneRefusal};
use primitives::{
    Address, Digest, PublicKey, RULES_OF_CONTROLS, RULES_OF_KEYS, RULES_OF_LANE_TERMS, RULES_OF_LISTINGS,
    RULES_OF_PROPOSALS, RULES_OF_SEALS,
};

use super::rules::{RULES_LEAST, RULES_NEWEST};

const IDENTITY_CONTEXT: &str = "walras 2026 restart of a network v1";
const COMMITTEE_CONTEXT: &str = "walras 2026 restart of a network with a committee v1";
const RULES_CONTEXT: &str = "walras 2026 restart of a network with rules v1";
const LANE_CONTEXT: &str = "walras 2026 restart of a network with a lane v1";

/// Which restart of a network this is, and the snapshot it begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restart {
    /// How often the network has restarted, including this time; counted from 1.
    pub number: u32,
    /// The digest of the state ([`crate::Snapshot::digest`]) that the previous network ended with.
    pub snapshot: Digest,
    /// The accounts that take the seats of the first committee, in this order; empty if the drawn committees stay.
    pub committee: Vec<Address>,
    /// What its payment lane begins with, if it has one.
    pub lane: Option<RestartedLane>,
    /// The rules that it begins with, if not with those of the state.
    pub rules: Option<u32>,
}

/// The beginning of the payment lane of a restarted network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestartedLane {
    /// The digest of the list ([`payments::LaneCarryOver::digest`]).
    pub list: Digest,
    /// The keys of each member's shards in the first epoch, by the member's index.
    pub members: Vec<Vec<PublicKey>>,
}

/// Why a network cannot restart with a state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestartError {
    /// The number is 0; restarts are counted from 1.
    #[error("the number of a restart is 1 or more: set it to 1 for the first restart")]
    Number,
    /// The state is not the one that was agreed on.
    #[error("the state has snapshot digest {found}, but the restart begins with {agreed}: use the agreed snapshot")]
    OtherSnapshot {
        /// The state's digest.
        found: Digest,
        /// The digest agreed on.
        agreed: Digest,
    },
    /// This program does not decide under the rules that were agreed on.
    #[error(
        "the restart begins with rules {0}, and this program decides under {RULES_LEAST} to {RULES_NEWEST}, or means \
         something else by {0}: install a version of walras for them, or agree on others (--rules)"
    )]
    Rules(u32),
    /// Accounts have policies of keys, or need references of payments, which these rules do not have: nobody could sign
    /// for the former.
    #[error(
        "the restart begins with rules {0}, under which accounts have no policies of keys and need no references of \
         payments, and some do: agree on rules {RULES_OF_KEYS} or later (--rules)"
    )]
    Policies(u32),
    /// Assets were listed on the running chain, or close, and these rules know nothing of it.
    #[error(
        "the restart begins with rules {0}, which do not know the terms of assets that were listed or that close: agree \
         on rules {RULES_OF_LISTINGS} or later (--rules)"
    )]
    Listings(u32),
    /// Something was proposed on the running chain, and these rules know nothing of it.
    #[error(
        "the restart begins with rules {0}, which know no proposals, and this chain has some, or parameters that a vote \
         has changed: agree on rules {RULES_OF_PROPOSALS} or later (--rules)"
    )]
    Proposals(u32),
    /// Issuers control assets, and these rules know nothing of it.
    #[error(
        "the restart begins with rules {0}, which do not know that issuers control assets, and some do: agree on rules \
         {RULES_OF_CONTROLS} or later (--rules)"
    )]
    Controls(u32),
    /// The committee makes sealing keys, and these rules know nothing of them.
    #[error(
        "the restart begins with rules {0}, which do not know the committee's sealing key, and this chain has terms of \
         seals: agree on rules {RULES_OF_SEALS} or later (--rules)"
    )]
    Seals(u32),
    /// A vote has decided terms of assets in the payment lane, and these rules know nothing of it.
    #[error(
        "the restart begins with rules {0}, which do not know that terms of assets in the payment lane were voted: \
         agree on rules {RULES_OF_LANE_TERMS} or later (--rules)"
    )]
    LaneTerms(u32),
    /// An account cannot take a seat.
    #[error("the account {0} cannot take a seat in the committee: it {1}; /v1/validators lists who has staked")]
    Seat(Address, &'static str),
    /// More accounts are named than a committee has seats.
    #[error("{0} accounts are named for the committee, and this network's has {1} seats: name fewer")]
    Seats(usize, u32),
    /// The state has a payment lane and no list was agreed on, or the other way around.
    #[error("the state has a payment lane exactly if a list is carried over: name the lane's logs")]
    Lane,
    /// The list is not the one that was agreed on.
    #[error("the list of the lane has digest {found}, but the restart begins with {agreed}: use the agreed evidence")]
    OtherList {
        /// The list's digest.
        found: Digest,
        /// The digest agreed on.
        agreed: Digest,
    },
    /// The keys of the first committee do not fit the lane.
    #[error("the keys of the lane's first committee do not fit: {0}")]
    Committee(&'static str),
    /// An operator's part is of another network.
    #[error("an operator's part does not fit: {0}")]
    Part(LaneRefusal),
    /// No list is safe.
    #[error(transparent)]
    Carry(#[from] CarryRefusal),
}

impl Restart {
    /// The identity of the restarted network; `first` is the identity of the network when it was founded.
    pub fn identity(&self, first: &Digest) -> Digest {
        let base = self.base(first);
        let with = |lane: &RestartedLane| borsh::to_vec(&(base, lane.list, &lane.members));
        let bytes = self.lane.as_ref().map(|lane| with(lane).expect("writing to memory cannot fail"));
        bytes.map_or(base, |bytes| Digest::of(LANE_CONTEXT, &bytes))
    }

    /// The identity without what the lane begins with. Registrars sign the keys of the first committee for it, since
    /// the identity itself follows from these keys.
    pub fn base(&self, first: &Digest) -> Digest {
        let bytes = borsh::to_vec(&(first, self.number, self.snapshot)).expect("writing to memory cannot fail");
        let base = Digest::of(IDENTITY_CONTEXT, &bytes);
        let with_rules = |rules: u32| borsh::to_vec(&(base, rules)).expect("writing to memory cannot fail");
        let base = self.rules.map_or(base, |rules| Digest::of(RULES_CONTEXT, &with_rules(rules)));
        if self.committee.is_empty() {
            return base;
        }
        let bytes = borsh::to_vec(&(base, &self.committee)).expect("writing to memory cannot fail");
        Digest::of(COMMITTEE_CONTEXT, &bytes)
    }
}
