//! The charter: how a chain comes to follow other rules, from one height on, without a restart.
//!
//! # The protocol
//!
//! A program implements a range of rules. Which of them a height follows stands in the state ([`proofs::ChainRules`]),
//! as a number and the digest of what it means: a program that means something else by it does not follow them. The
//! genesis writes the first ones, and from then on validators change them by *approvals*. Every block is judged by
//! the state before it, and boundaries too, so the order of a block's approvals means nothing. B(e) is the boundary of
//! epoch e, F(e) the first height that its committee decides. A committee has n seats, f = ⌊(n−1)/3⌋.
//!
//! - Upon *Approve{rules, manifest, notice}* of an account with a stake or a seat: it approves these rules, and nothing
//!   else, to come next. The number is one above the rules confirmed. Of the confirmed rules themselves an account says
//!   so that it is *ready* for them; whoever stakes is ready unless a confirmation passed without it.
//! - Upon *Unapprove*: it has not approved them, nor has it with an approval that is in no block yet. Of the confirmed
//!   rules it takes back that it is ready.
//! - A seat approves what its holder approves, as long as this one is staked and not convicted.
//! - *Lock*, at B(k), if none is locked: ⌈5n/6⌉ seats of committee k−1 and of committee k approve the same, and so do
//!   accounts with 5/6 of all stake. The rules are then to act from the first F(e) that lies `notice` ahead, and after
//!   F(k).
//! - *Patience*: once accounts with 2/3 of all stake have approved the same at every boundary for `patience` heights,
//!   n − f seats and that stake suffice. A lock that fails does not end this count.
//! - *Confirm*, at B(e): the same shares, of committee e and of the stake. If they are missing, e+1 is tried; after
//!   three tries the lock is dropped; and at any boundary at which accounts with 2/3 of all stake no longer approve it.
//!   Confirmed rules are never taken back. They act from F(e): until then committee e−1 decides.
//! - *Draw*: everybody who stakes stays in the draw. With a seats needed to lock the confirmed rules, up to n − a seats
//!   are held by accounts that are not ready; a further one passes to the next drawn that is. Whoever was present at
//!   the confirmation and has not approved is *stopped*: its node can say nothing more, and it stays in the draw
//!   without saying that it is present, until it is ready, takes back or unstakes. Any other that is not ready is asked
//!   to be present.
//! - On a chain of one node the account that the genesis names as *operator* approves, and `notice` heights later the
//!   rules act, unless it withdraws before.
//!
//! A node that does not implement the rules of the next height stops before it and loses nothing: the engine of the
//! old epoch has ended with its last height, and nobody begins the next one there.
//!
//! # Properties
//!
//! (`model` checks them for committees of 4 to 30 seats against an oracle that counts who votes.)
//!
//! - *One number a height*, at all correct nodes, whenever they start, from whatever state they replay.
//! - *Room*: at most n − a seats are held by honest accounts that cannot follow the confirmed rules.
//! - *No stall*: so a chain goes on while its liars are at most f − (n − a), though they approved and are silent; and
//!   whatever they are, while liars and unready seats together are at most f. Beyond that it waits before the first
//!   height of the rules, unforked, and goes on when enough of the unready install the program.
//! - *No favour*: liars are drawn as often as without an upgrade.
//! - *No veto*: f seats that refuse delay rules by `patience`, and no longer.
//!
//! # Attacks
//!
//! | attack | answer |
//! |---|---|
//! | liars approve without the program, and are silent from F(e) on | ⌈5n/6⌉ seats, not n − f: a sixth may refuse beside them |
//! | whoever has not approved stops, posts no presence, and leaves its part of the draw to liars | it is drawn without a presence |
//! | a seat approves, and its holder unstakes or is convicted | it counts no more |
//! | a minority of the seats refuses for ever | patience |
//! | an old approval is posted again after it was withdrawn | it names a height, which must be above that of the last word |
//! | an approval is held back until its operator has gone back to the older program | a withdrawal counts as a word, also if there is nothing to withdraw |
//! | a lock with a notice of 400 days stands in the way of all other rules | it falls when most no longer approve it |
//! | a flood of approvals | the validator's key has one a block for nothing; others pay |
//! | two programs mean different things by one number | approvals count together only if manifest and notice are equal, too; the state keeps the manifest, and who means something else stops |
//! | an operation of rules to come, which old programs cannot decode | no validator votes for a sub-block with it |
//!
//! # Deviations
//!
//! From the design of a network that lives for years:
//!
//! - *A seat of an account that is not ready is not marked.* It is held as any other, and votes as soon as its node can
//!   follow: marking it would keep it silent for the rest of the epoch, after the operator has installed the program.
//! - *An account that is not ready takes a free seat only while fewer than n − a such seats are held.* The others keep
//!   theirs, f seats change at a time: so the number never rises above n − a.
//! - *Who is not ready says so itself* when it is: a stake does not do it for it, since the key that stakes says
//!   nothing about the program of the node.
//! - *An institution that never comes back* may hold one of the n − a seats until it unstakes: a chain cannot tell it
//!   from one that installs the program tomorrow.
//! - *A lock falls* at a boundary when less than 2/3 of all stake approve it, and not at its confirmation alone.
//! - *Approvals carry a height, not a sequence number*, so that the validator's key can post them,
//!   as it does presences.
//! - *The manifest is the digest of the rules' text alone*, without the oldest rules that the program replays and
//!   without a recorded chain: a later release that replays less means the same by a number, and must neither split
//!   approvals nor stop.
//! - *Links do not greet with ranges of rules.* A link that was refused for them would cut a node that has stopped from
//!   the blocks that it still lacks. What a program knows is in its approvals, and at `/v1/upgrade` of its node.
//! - *What is proposed* has a page of its own (`proposals`): parameters, assets with plain names, ends of assets.
//! - *A venue takes no orders* from 2D heights before rules that its node does not follow. Auctions that were called
//!   before then end as announced.

mod custody;
#[cfg(test)]
mod model;
mod proposals;
mod tally;

use std::collections::BTreeMap;
use std::sync::Arc;

use primitives::{Address, Digest, Height, Upgrade};
use proofs::{ChainRules, Charter, Refusal, RulesConsent, RulesReadiness, Schedule, Validators, charter_root};

pub(crate) use custody::{CharterEdit, RulesEdit};
pub use proposals::{Ballot, Coming, OpenProposal, PARAMETER_PAUSE, Support, VotedParameters};
pub(crate) use proposals::{LAW, Scene, Voters, stakes_of};
pub use tally::seats_needed;

use crate::terms::CHARTER_HEIGHTS_MAX;

/// The charter as a place: rules and approvals, and what is proposed.
#[derive(Clone, Debug)]
pub(crate) struct ChainCharter {
    pub charter: Charter,
    pub proposals: Arc<Ballot>,
}

impl ChainCharter {
    /// The digest of all but the rules: that of the approvals, until something is proposed.
    pub(crate) fn rest(&self) -> Digest {
        let approvals = self.charter.rest();
        self.proposals.proved().map_or(approvals, |(record, proposed)| record.rest(&approvals, &proposed))
    }

    /// The digest in the state root.
    fn digest(&self) -> Digest {
        charter_root(&self.charter.rules, &self.rest())
    }
}

/// Who may speak about the rules of a chain.
pub(crate) struct Electorate<'a> {
    pub registered: &'a Validators,
    /// The height of the next block.
    pub height: Height,
    /// Whether validators decide, or a node alone.
    pub is_network: bool,
}

/// Checks an approval or a withdrawal against the state before the block.
pub(crate) fn check(charter: &Charter, all: &Electorate<'_>, sender: &Address, edit: RulesEdit) -> Result<(), Refusal> {
    let (rules, at) = match edit {
        RulesEdit::Approve { upgrade, at } => (upgrade.rules, at),
        RulesEdit::Unapprove { rules, at } => (rules, at),
    };
    check_say(charter, all, sender)?;
    let own = charter.consent(sender);
    let ChainRules { confirmed, manifest, .. } = charter.rules;
    let next = confirmed.saturating_add(1);
    let notice = charter.terms.notice_min..=CHARTER_HEIGHTS_MAX;
    let changes = match edit {
        RulesEdit::Approve { .. } if rules == confirmed => !charter.is_ready(sender),
        RulesEdit::Approve { upgrade, .. } => !charter.approves(sender, &upgrade),
        // An approval that is in no block yet may be on its way: whoever takes it back outdates that one, too.
        RulesEdit::Unapprove { .. } => true,
    };
    match edit {
        _ if rules != confirmed && rules != next => Err(Refusal::OTHER_RULES),
        RulesEdit::Approve { upgrade, .. } if rules == confirmed && upgrade.manifest != manifest => {
            Err(Refusal::OTHER_RULES)
        }
        RulesEdit::Approve { upgrade, .. } if rules == next && !notice.contains(&upgrade.notice) => {
            Err(Refusal::NOTICE_OUT_OF_BOUNDS)
        }
        _ if at >= all.height || own.is_some_and(|own| at <= own.said) => Err(Refusal::APPROVAL_OUTDATED),
        _ if !changes => Err(Refusal::APPROVED_ALREADY),
        _ => Ok(()),
    }
}

/// Whether the account may speak about the rules and parameters: on a network, whoever stakes or holds a seat.
pub(crate) fn check_say(charter: &Charter, all: &Electorate<'_>, sender: &Address) -> Result<(), Refusal> {
    let operator = charter.terms.operator;
    match () {
        _ if all.is_network && all.registered.terms.schedule.is_fixed() => Err(Refusal::RULES_FIXED),
        _ if all.is_network && (all.registered.is_staked(sender) || all.registered.holds_seat(sender)) => Ok(()),
        _ if !all.is_network && operator == Address::default() => Err(Refusal::RULES_FIXED),
        _ if !all.is_network && operator == *sender => Ok(()),
        _ => Err(Refusal::NO_SAY),
    }
}

/// The accounts whose nodes may be unable to follow the confirmed rules.
pub(crate) fn unready(charter: &Charter) -> BTreeMap<Address, RulesReadiness> {
    let all = charter.consents.iter().map(|one| (one.account, one.readiness));
    all.filter(|(_, readiness)| *readiness != RulesReadiness::Ready).collect()
}

/// Writes what an account says in a block of this height.
pub(crate) fn write(charter: &mut Charter, account: Address, edit: RulesEdit, height: Height) {
    let ChainRules { confirmed, manifest, .. } = charter.rules;
    let own = consent_of(charter, account);
    own.said = height;
    match edit {
        // This very block may have confirmed the rules that were to come.
        RulesEdit::Approve { upgrade, .. } if upgrade.manifest == manifest => own.readiness = RulesReadiness::Ready,
        RulesEdit::Approve { upgrade, .. } if upgrade.rules > confirmed => own.next = Some(upgrade),
        RulesEdit::Unapprove { rules, .. } if rules == confirmed => own.readiness = RulesReadiness::Unready,
        RulesEdit::Unapprove { rules, .. } if rules > confirmed => own.next = None,
        // It is about rules that this block has replaced.
        RulesEdit::Approve { .. } | RulesEdit::Unapprove { .. } => {}
    }
}

/// The entry of an account, made if there is none.
fn consent_of(charter: &mut Charter, account: Address) -> &mut RulesConsent {
    let at = charter.consents.binary_search_by_key(&account, |one| one.account).unwrap_or_else(|at| {
        charter.consents.insert(at, RulesConsent { account, said: 0, readiness: RulesReadiness::Ready, next: None });
        at
    });
    &mut charter.consents[at]
}

/// The fault of a decoded charter of this height, if there is one.
pub(crate) fn fault(charter: &Charter, height: Height, schedule: Schedule) -> Option<&'static str> {
    let rules = &charter.rules;
    let is_next = |upgrade: &Upgrade| upgrade.rules == rules.confirmed.saturating_add(1);
    let approved = charter.consents.iter().filter_map(|one| one.next.as_ref());
    let coming = rules.coming.iter().map(|coming| &coming.upgrade);
    let awaited = charter.awaited.iter().map(|awaited| &awaited.upgrade);
    let begins_epoch = |acts: Height| schedule.is_fixed() || schedule.first_height(schedule.epoch_of(acts)) == acts;
    Some(match () {
        _ if !charter.consents.is_sorted_by(|a, b| a.account < b.account) => "approvals out of order",
        _ if charter.consents.iter().any(|one| one.said > height) => "an approval of a height to come",
        _ if !approved.chain(coming).chain(awaited).all(is_next) => "rules that are not the next ones",
        _ if rules.before > rules.confirmed => "rules that fall",
        _ if rules.coming.is_some_and(|coming| coming.acts <= height || !begins_epoch(coming.acts)) => {
            "rules that act in the past, or in the middle of an epoch"
        }
        _ => return None,
    })
}

/// Units staked by the accounts for which this holds, and by all.
pub(crate) fn stakes(registered: &Validators, has: impl Fn(&Address) -> bool) -> (u128, u128) {
    registered.registry.iter().filter(|one| one.is_staked()).fold((0, 0), |(part, all), one| {
        let own = u128::from(one.member.stake);
        (part + if has(&one.member.account) { own } else { 0 }, all + own)
    })
}
