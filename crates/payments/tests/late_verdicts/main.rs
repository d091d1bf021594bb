//! An exhaustive model of views, verdicts and late certificates, with an adversary that withholds what it holds.
//!
//! `resolve/model.rs` drives the ledger's machine of protocol R with all orders of votes and views. This model adds
//! what that one leaves out: certificates are *things held*, which a member or the adversary has and shows at any step
//! or never; time has deadlines; committees have ends. Its machine calls the pure rules of `payments`
//! ([`payments::ViewClaim`], [`payments::CaseFacts`], [`payments::CommitteeLife`], [`payments::HomePhase`]), as the
//! ledger does. Its checks (`checks.rs`) call none of them.
//!
//! # The protocol
//!
//! Committees 0, 1 and 2 are disjoint. Payment T spends *a* (or *a* and *b*) of home 0 and creates two outputs in home
//! 0 or 1: the recipient's and a *sibling*, the payer's change. A rival Z spends *a* (or *b*). A child C spends the
//! recipient's output into the epoch after its home.
//!
//! * A member signs one payment of an output, in the epochs in which its committee may ([`payments::HomePhase`]).
//! * A member that is shown a certificate *accepts* the payment: it acknowledges it, or signs a payment of an output
//!   of it. Its log then has the certificate.
//! * Anyone opens a case, at most until h+2. Members vote: for what they signed, otherwise for the exit. *Binding*
//!   votes fix the candidates. Members of the home, and of the next committee if a candidate pays into it, bar the
//!   candidates and post a view: empty, or naming the payment that they accepted, with its certificate.
//! * The ledger refuses a view that is not proven. It decides a case as soon as it can: a payment with a certificate,
//!   with q votes, or with a certified child, stands. Then *freed*, *lapsed*, *expired*.
//! * A verdict for T proves T's outputs: their committee signs exits through the epoch after it, and the ledger redeems
//!   these for one epoch more. What the ledger does not keep, it forgets.
//!
//! # The adversary
//!
//! * It is one member of each committee, the payer and the recipient. Its members' signatures on everything exist. It
//!   votes for any payment, also one that no one else has seen, and posts any view with any certificate or none.
//! * It holds each certificate as soon as enough signatures exist, and shows it to the ledger or to any member at any
//!   step, also without a case and after a verdict, or never.
//! * It is first with a member's signed view, without its certificate or with another one.
//! * It delays each message for ever, lets epochs end at any time, and lets block heights pass while lane time stands
//!   still. So each deadline may come before anybody has spoken.
//! * Members without registered keys never say anything. A crash keeps the bit of an acceptance and drops the
//!   certificate, where a rule allows that. With certificate and bit in one log in this order, no crash does.
//!
//! # What is checked in each state
//!
//! *Money*: each output has one claim at most, and it is honoured once, also after the ledger has forgotten it.
//! *Final*: what a quorum has accepted at some time (a bit of history) never lapses, and no other payment of its inputs
//! stands.
//! *Freed*: no payment of a freed output is certified. *No alarm*. *Time to settle*: nothing lapses before a whole
//! epoch has passed. *No idle expiry*: when a case expires in lane time, some correct member could still have posted.
//! *An end*: no case is open after its time. *A way home*: through the epoch after a verdict for T, the sibling's
//! committee has its keys and the ledger its proof; through the epoch after that, the ledger redeems the exit.
//! *Bounded*: no epoch is kept for more than six epochs.
//!
//! # What is left out, and why
//!
//! * Two facts in one block, and contested outputs with more than two payments: `resolve/model.rs` has the former, and
//!   the proofs name one payment at a time.
//! * The middle of h+2: a case is opened in h+2 or not. The rest of that epoch is time for votes and views; delays are
//!   free in any case.
//! * Logs record by record, trees, encodings: tests of the machines have them.
//! * The child's own outputs, beyond their committee's views: they are to the child's home what T's are to home 0.
//! * Signatures of members after their keys are destroyed, and more than f faulty members: nothing holds then.
//!
//! # Searches
//!
//! Breadth first, so that a counterexample is as short as any. Correct members in one state are interchangeable. A
//! state's key is 128 bits of a cryptographic hash of its canonical bytes.
//!
//! | model | n = 4 | n = 5 | n = 6 |
//! |---|---|---|---|
//! | one output, T into its own home | 11,675 | 35,518 | 128,109 |
//! | members without keys: one at home | 2,423 | | 35,518 |
//! | members without keys: one at home and one in the next; two at home | 17,256 | | 6,638 |
//! | a rival into the same home | 79,099 | 264,315 | 1,618,243 |
//! | a rival into the next home, invented or signed | 827,763 | 5,623,326 | |
//! | T into the next home | 182,436 | 1,457,614 | 8,754,588 |
//! | T into the next home, and a child | 4,291,900 | | |
//! | the output of T is contested; committees 1 and 2 are asked | 6,735,087 | | |
//! | T of two contested outputs | 390,304 | 4,924,560 | 30,969,383 |
//!
//! `larger_models_of_late_verdicts` has those that `make test` leaves to `make soak`. An expired case frees nobody's
//! keys: a certificate that is shown after the expiry confirms its payment, but its key outputs can be sent home only
//! in the epoch of the expiry itself. Later their money is among what expired.
//!
//! # Rules that it rejects
//!
//! `broken_rules_are_rejected` prints a counterexample for each. In short:
//!
//! * An unproven view is empty: two members accept T, a relay strips their views, and the settled T lapses. It is its
//!   member's only view: T is stripped, and the case expires although all have posted. Any certificate proves it: the
//!   Byzantine member names its own rival with T's certificate.
//! * 2f+1 bind at n = 6, or f+1 empty views, or time alone, or the deadline: a settled payment lapses, or an output is
//!   freed of a certified one. It lapses at once: its recipient had no epoch to settle.
//! * The bit comes before the certificate, or a child is signed without its parent's. After the crash the member can
//!   post no view, and the case expires although all have posted. If it posts an empty one, the settled T lapses.
//! * A member without keys is silent: with the Byzantine one there are too few votes.
//! * Expiry lifts bars: T of *a* and *b* expires in the case of *a*, is then settled, and lapses in the case of *b*.
//!   The case is opened again and old views count: T is settled between the two openings.
//! * Certificates are redeemed through c+3 only: the exit after a late verdict is not. For ever: T is redeemed again
//!   when the ledger has forgotten it. Keys go with the last case: the sibling has no way home.
//! * The rules before: a case stays open, later epochs are kept, and the sibling has no way home.

mod checks;
mod machine;
mod rules;
mod search;
mod state;
mod steps;

use checks::Fault;
use machine::Machine;
use rules::{Rule, Step};
use search::search;
use state::*;

/// One contested output and T into its home.
fn one(members: usize) -> Scenario {
    Scenario {
        name: "one output",
        members,
        unregistered: [0; COMMITTEES],
        into: 0,
        rival: None,
        both: false,
        child: false,
        contested: 0b001,
        opens: 0b101,
        stalls: true,
        last: 8,
    }
}

fn rival(members: usize) -> Scenario {
    Scenario { name: "a rival into the same home", rival: Some(0), ..one(members) }
}

fn crossing_rival(members: usize) -> Scenario {
    Scenario { name: "a rival into the next home", rival: Some(1), ..one(members) }
}

fn next(members: usize) -> Scenario {
    Scenario { name: "T into the next home", into: 1, ..one(members) }
}

fn child(members: usize) -> Scenario {
    Scenario { name: "T into the next home, and a child", child: true, ..next(members) }
}

fn both(members: usize) -> Scenario {
    Scenario { name: "T of two contested outputs", both: true, contested: 0b011, ..one(members) }
}

/// The output of T is contested at the last moment; views come from committees 1 and 2.
fn contested_child(members: usize) -> Scenario {
    Scenario { name: "the output of T is contested", contested: 0b101, opens: 0b1000, ..child(members) }
}

fn unregistered(members: usize, of: [usize; COMMITTEES], into: usize) -> Scenario {
    Scenario { name: "members without keys", unregistered: of, into, ..one(members) }
}

fn holds(scenario: Scenario) {
    let found = search(&scenario, Rule::Sound, |machine| machine.fault(&[]).is_some());
    println!("{}, n = {}: {} states", scenario.name, scenario.members, found.states);
    if let Some((steps, state)) = found.stopped {
        let fault = Machine { scenario: &scenario, rule: Rule::Sound, state }.fault(&[]);
        panic!("{}, n = {}: {fault:?} after {steps:#?}", scenario.name, scenario.members);
    }
}

fn rejects(rule: Rule, scenario: Scenario, only: &[Fault]) {
    let found = search(&scenario, rule, |machine| machine.fault(only).is_some());
    let Some((steps, state)) = found.stopped else { panic!("{rule:?} is not rejected in {} states", found.states) };
    let fault = Machine { scenario: &scenario, rule, state }.fault(only);
    println!("{rule:?}: {fault:?} after {} states:\n    {steps:?}", found.states);
}

#[test]
fn views_and_late_certificates_of_one_output() {
    [4, 5, 6].into_iter().map(one).for_each(holds);
    holds(rival(4));
}

#[test]
fn views_and_late_certificates_over_a_boundary() {
    holds(next(4));
}

#[test]
fn views_and_late_certificates_of_two_inputs() {
    holds(both(4));
}

#[test]
fn views_and_late_certificates_with_unregistered_members() {
    holds(unregistered(4, [1, 0, 0], 0));
    holds(unregistered(4, [1, 1, 0], 1));
    holds(unregistered(6, [1, 0, 0], 0));
    holds(unregistered(6, [2, 0, 0], 0));
}

/// Takes many minutes: for `cargo test --release -p payments larger_models -- --ignored`.
#[test]
#[ignore = "long: `make soak` runs it"]
fn larger_models_of_late_verdicts() {
    [5, 6].into_iter().map(rival).for_each(holds);
    [5, 6].into_iter().map(next).for_each(holds);
    [5, 6].into_iter().map(both).for_each(holds);
    [4, 5].into_iter().map(crossing_rival).for_each(holds);
    holds(child(4));
    holds(contested_child(4));
}

/// The model is not empty: each verdict and each claim is reached under the sound rules.
#[test]
fn every_verdict_is_reached() {
    let reaches = |what: &str, scenario: Scenario, is_there: fn(&State) -> bool| {
        let found = search(&scenario, Rule::Sound, |machine| is_there(&machine.state));
        assert!(found.stopped.is_some(), "{what} is not reached");
    };
    reaches("a freed output", rival(4), |state| state.past.freed != 0);
    reaches("a lapsed output", one(4), |state| state.fates[A] == Fate::Lapsed);
    reaches("an expired case whose payment stands later", one(4), |state| {
        state.cases[A].expired && state.stands != 0 && state.past.confirmed == 0
    });
    reaches("a verdict in the last epoch, and an exit after it", next(4), |state| {
        state.past.confirmed == 5 && state.now == 6 && state.past.claims[SIBLING] == EXITED
    });
    reaches("a settled payment that stands", both(4), |state| state.past.settled != 0 && state.stands != 0);
    reaches("a payment confirmed by its child", child(4), |state| state.fates[FIRST] == Fate::By(C as u8));
}

#[test]
fn broken_rules_are_rejected() {
    let money = &[Fault::Made, Fault::Unsettled, Fault::Alarm][..];
    rejects(Rule::UnprovenIsEmpty, one(4), money);
    rejects(Rule::Strip, one(4), &[Fault::Idle]);
    rejects(Rule::AnyCertificate, rival(4), money);
    rejects(Rule::TwoFaultyPlusOne, one(6), money);
    rejects(Rule::LapseAtOnce, one(4), &[Fault::Hasty]);
    rejects(Rule::LapseAtDeadline, one(4), money);
    rejects(Rule::FewViews, one(4), money);
    rejects(Rule::LapseByTime, one(4), money);
    rejects(Rule::BitBeforeCertificate, one(4), &[Fault::Idle]);
    rejects(Rule::EmptyAfterCrash, one(4), money);
    rejects(Rule::SilentUnregistered, unregistered(4, [1, 0, 0], 0), &[Fault::Idle]);
    rejects(Rule::LiftOnExpiry, both(4), money);
    rejects(Rule::ReplayedViews, one(4), money);
    rejects(Rule::ChildWithoutProof, child(4), &[Fault::Idle]);
    rejects(Rule::ShortRedeem, one(4), &[Fault::Unredeemable]);
    rejects(Rule::WideRedeem, one(4), money);
    rejects(Rule::KeysDestroyed, one(4), &[Fault::Stuck]);
}

/// The rules before late verdicts, by each of their faults.
#[test]
fn the_rules_before_are_rejected() {
    for fault in [Fault::Open, Fault::Kept, Fault::Stuck, Fault::Unredeemable] {
        rejects(Rule::Before, one(4), &[fault]);
    }
}

/// One honest view names T, two are empty, the Byzantine member is silent, and T's certificate comes when its home has
/// ended: under the rules before, the payer's change has no way home, and until then each later epoch is kept. Under
/// the present rules the view brings the certificate.
#[test]
fn a_silent_member_and_a_late_certificate_destroy_the_change_under_the_rules_before() {
    let sign = |member| Step::Sign { committee: 0, member, payment: T };
    let vote = |member| Step::Vote { member, output: A };
    let view = |member| Step::View { committee: 0, member, output: A };
    // Members are sorted by their states after each step: at the end the one that accepted T is number 1.
    let accept = Step::Accept { committee: 0, member: 1, payment: T };
    let steps = [sign(0), sign(0), accept, Step::Open { output: A }, vote(0), vote(0), vote(1), view(1)];
    let scenario = one(4);
    let play = |rule: Rule, state: State, steps: &[Step]| {
        steps.iter().fold(state, |state, step| {
            let machine = Machine { scenario: &scenario, rule, state };
            assert!(machine.steps().contains(step), "{rule:?} does not allow {step:?} in {state:?}");
            machine.after(*step)
        })
    };
    let machine = |rule, state| Machine { scenario: &scenario, rule, state };

    let named = play(Rule::Before, State::start(), &steps);
    let late = play(Rule::Before, named, &[view(0), view(2), Step::Pass, Step::Pass, Step::Pass, Step::Pass]);
    assert!(late.cases[A].open, "neither a witness nor a binding set");
    assert!(machine(Rule::Before, late).fault(&[Fault::Open]).is_some());
    let shown = play(Rule::Before, late, &[Step::Show { payment: T }]);
    assert_eq!(machine(Rule::Before, shown).fault(&[Fault::Stuck]), Some(Fault::Stuck));

    let named = play(Rule::Sound, State::start(), &steps);
    assert!(!named.cases[A].open && named.past.confirmed == 1, "the view proves T");
    let home = play(Rule::Sound, named, &[Step::SignExit, Step::RedeemExit]);
    assert_eq!((home.past.claims[SIBLING], machine(Rule::Sound, home).fault(&[])), (EXITED, None));
}
