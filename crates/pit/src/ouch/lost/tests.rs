//! Numbers without an answer, over kills at any write.

use kernel::{Dice, DiskFault, FaultDisk, Surviving};
use protocols::ouch::OuchMassCancel;
use venue::{Acceptance, TradeReport};

use super::super::OuchSessions;
use super::super::list::tests::{enter, replace};
use super::super::refusing::words_of;
use super::*;

const SESSION: SessionNumber = 7;
const NOW_MS: u64 = 20_000 * 86_400_000 + 5;

type Sessions = OuchSessions<FaultDisk>;

fn opened(disk: FaultDisk) -> (Sessions, u64) {
    let mut sessions = Sessions::default();
    let effects = sessions.open(disk, 20_000, 2, NOW_MS).expect("it opens");
    (sessions, effects.unwrap_or(0))
}

fn claim(session: &mut OuchSession, message: OuchInbound) {
    assert!(session.claim(message.new_user_ref().expect("it has a number")));
    if !matches!(message, OuchInbound::MassCancel(_)) {
        session.enter(Entered { message, symbol: symbol_of(3), side: b'B', is_answered: false, open: 0 });
    }
}

/// A list as one message, a replacement, and a request to cancel all.
fn claim_all(sessions: &mut Sessions) {
    sessions.with(SESSION, |session| {
        (1..65).for_each(|reference| claim(session, OuchInbound::Enter(enter(reference))));
    });
    sessions.with(SESSION, |session| claim(session, OuchInbound::Replace(replace(1, 65))));
    let mass = OuchMassCancel { user_ref: 66, firm: [b' '; 4], symbol: [b' '; 8] };
    sessions.with(SESSION, |session| claim(session, OuchInbound::MassCancel(mass)));
}

fn report(reference: u32, what: ReportKind) -> TradeReport {
    let number = OrderNumber { incarnation: 2, day: 20_000, reference };
    TradeReport { session: SESSION, key: PublicKey([1; 32]), number, what }
}

fn told(sessions: &mut Sessions) -> Vec<OuchMessage<OuchOutbound>> {
    sessions.with(SESSION, |of| {
        let messages = (of.log.first()..of.log.next()).filter_map(|number| of.log.get(number));
        messages.map(|message| OuchMessage::decode(message).expect("a message")).collect()
    })
}

fn lost(sessions: &mut Sessions) -> Vec<u32> {
    sessions.with(SESSION, |session| session.lost.iter().copied().collect())
}

/// What a root has told, which it tells again.
#[derive(Default)]
struct Told(Vec<TradeReport>);

impl Told {
    /// Tells sessions what they have not heard; false if the disk fails.
    fn tell(&self, sessions: &mut Sessions, count: &mut u64) -> bool {
        let is_told = sessions.tell(&self.0[*count as usize..], self.0.len() as u64, NOW_MS).is_ok();
        *count = self.0.len() as u64;
        is_told
    }
}

/// The process is killed at random writes, again and again, from the first order on.
#[test]
fn each_used_number_has_one_answer_however_often_the_process_ends() {
    let mut dice = Dice::new(7);
    let (mut answered_late, mut forgotten) = (0, 0);
    for _ in 0..200 {
        let (mut disk, mut root) = (FaultDisk::new(dice.bits()), Told::default());
        let (mut sessions, mut count) = opened(disk.clone());
        sessions.with(SESSION, |_| ());
        sessions.write(count).expect("a sound disk");
        claim_all(&mut sessions);
        sessions.write(count).expect("a sound disk");
        if dice.once_in(2) {
            sessions.tell(&[], count, NOW_MS).expect("a sound disk");
        }
        // Of some the root is given, and it answers a few.
        let taken = Acceptance { id: 5, lots: 5, replaces: None, keeps_place: false };
        let given = 1..1 + dice.below(30) as u32;
        given.clone().for_each(|of| root.0.push(report(of, ReportKind::Accepted(taken))));
        let mut before = Vec::new();
        for kills_left in (0..4).rev() {
            disk = disk.after_crash(Surviving::drawn(&mut dice));
            (sessions, count) = opened(disk.clone());
            let now = told(&mut sessions);
            assert!(now.starts_with(&before), "what was sent is as it was");
            if kills_left > 0 {
                disk.inject(disk.points() + dice.below(6), DiskFault::Error);
            }
            let mut is_told = root.tell(&mut sessions, &mut count);
            if is_told {
                let lost = lost(&mut sessions);
                root.0.extend(lost.into_iter().map(|of| report(of, ReportKind::Overtaken)));
                is_told = root.tell(&mut sessions, &mut count);
                answered_late += usize::from(is_told && kills_left == 0 && count > 0);
            }
            assert!(is_told || kills_left > 0);
            if is_told {
                before = told(&mut sessions);
            }
        }
        assert!(lost(&mut sessions).is_empty());
        let mut answers: Vec<u32> = before.iter().filter_map(|message| answer(&message.body)).collect();
        answers.sort_unstable();
        // Numbers that neither disk nor root has are used by nobody.
        let is_forgotten = answers.len() < 66;
        let used = if is_forgotten { given } else { 1..67 };
        assert_eq!(answers, used.collect::<Vec<_>>());
        forgotten += usize::from(is_forgotten);
    }
    assert!(answered_late > 100 && (1..150).contains(&forgotten), "{answered_late} {forgotten}");
}

fn answer(body: &OuchOutbound) -> Option<u32> {
    match body {
        OuchOutbound::Accepted(of) => Some(of.user_ref),
        OuchOutbound::Rejected(of) => Some(of.user_ref),
        _ => None,
    }
}

fn restarted() -> Sessions {
    let disk = FaultDisk::new(3);
    let (mut sessions, _) = opened(disk.clone());
    claim_all(&mut sessions);
    sessions.tell(&[], 0, NOW_MS).expect("a sound disk");
    opened(disk.after_crash(Surviving::Nothing)).0
}

#[test]
fn what_the_root_says_of_a_lost_number_is_its_answer() {
    let accepted = Acceptance { id: 50, lots: 5, replaces: None, keeps_place: false };
    let (executed, settled, bust, ended) = (0, 0, 0, None);
    let standing = OrderStanding::Taken { accepted, ended, open: 5, executed, settled, bust };
    let mut sessions = restarted();
    let reports = [
        report(1, ReportKind::Overtaken),
        report(2, ReportKind::Status(Some(standing))),
        report(3, ReportKind::Refused(OrderRefusal::Halted)),
        report(66, ReportKind::Refused(OrderRefusal::UnknownKey)),
        // The participant's own cancels come later.
        report(1, ReportKind::Status(Some(OrderStanding::Overtaken))),
        report(66, ReportKind::Overtaken),
        // The order was in the queue of a root that failed.
        report(1, ReportKind::Refused(OrderRefusal::Overtaken)),
    ];
    sessions.tell(&reports, 7, NOW_MS).expect("a sound disk");
    let told = told(&mut sessions);
    let bodies: Vec<&OuchOutbound> = told.iter().map(|message| &message.body).collect();
    let [
        OuchOutbound::Rejected(a),
        OuchOutbound::Accepted(b),
        OuchOutbound::Rejected(c),
        OuchOutbound::Rejected(d),
        OuchOutbound::CancelReject(e),
        OuchOutbound::CancelReject(f),
    ] = bodies[..]
    else {
        panic!("{told:?}")
    };
    assert_eq!([a.user_ref, b.user_ref, c.user_ref, d.user_ref, e.user_ref, f.user_ref], [1, 2, 3, 66, 1, 66]);
    let halted = refusal_name(&OrderRefusal::Halted).0;
    assert_eq!(([a.reason, c.reason, d.reason], a.client_order), ([LOST, halted, LOST], *b"mine          "));
    let words = |at: usize| words_of(told[at].options.as_deref()).expect("words");
    assert!(words(0) == ORDER_LOST && words(3) == REQUEST_LOST, "{told:?}");
    assert_eq!(lost(&mut sessions).len(), 62);
}

#[test]
fn a_root_that_does_not_know_the_session_is_asked_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut root = crate::shared::tests::root(folder.path());
    let mut sessions = restarted();
    assert_eq!(sessions.void_lost(NOW_MS, &root), []);
    sessions.tell(&[], 0, NOW_MS).expect("a sound disk");
    let told = told(&mut sessions);
    assert_eq!((told.len(), lost(&mut sessions)), (66, Vec::new()));
    assert!(told.iter().all(|message| matches!(message.body, OuchOutbound::Rejected(of) if of.reason == LOST)));
    // One that knows it is asked to end each number, once.
    let mut sessions = restarted();
    let (keys, ends_orders, dead_man_ms) = (vec![PublicKey([1; 32])], false, None);
    root.step(NOW_MS, &[VenueInput::Attach { session: SESSION, keys, ends_orders, dead_man_ms }]).expect("attached");
    let asked = sessions.void_lost(NOW_MS, &root);
    let is_cancel = |input: &VenueInput| match input {
        VenueInput::Trade(SESSION, TradeCommand::Cancel { keeps: 0, key, .. }) => *key == PublicKey([1; 32]),
        _ => false,
    };
    assert!(asked.len() == 66 && asked.iter().all(is_cancel), "{asked:?}");
}

/// What is lost on its way comes after a higher number: it is taken once, also after a restart.
#[test]
fn a_number_that_was_passed_over_is_taken_when_it_comes() {
    let disk = FaultDisk::new(3);
    let (mut sessions, count) = opened(disk.clone());
    let claims = |sessions: &mut Sessions, numbers: &[u32]| -> Vec<bool> {
        sessions.with(SESSION, |session| numbers.iter().map(|number| session.claim(*number)).collect())
    };
    assert_eq!(claims(&mut sessions, &[0, 9, 4, 4, 9, 1, 8]), [false, true, true, false, false, true, true]);
    sessions.write(count).expect("a sound disk");
    let (mut again, _) = opened(disk.after_crash(Surviving::Everything));
    assert_eq!(lost(&mut again), [1, 4, 8, 9], "each of them needs an answer");
    assert_eq!(claims(&mut again, &[1, 4, 8, 9, 3, 2, 3, 5, 7, 6, 6, 10]), {
        [false, false, false, false, true, true, false, true, true, true, false, true]
    });
}

/// A power cut may leave the root with an order of which the journal of sessions knows nothing.
#[test]
fn a_number_that_only_the_root_has_is_used_and_needs_its_answer() {
    let disk = FaultDisk::new(5);
    let (mut sessions, _) = opened(disk.clone());
    sessions.with(SESSION, |_| ());
    sessions.write(0).expect("a sound disk");
    claim_all(&mut sessions);
    sessions.write(0).expect("a sound disk");
    let disk = disk.after_crash(Surviving::Nothing);
    let (mut again, count) = opened(disk.clone());
    let taken = Acceptance { id: 5, lots: 5, replaces: None, keeps_place: false };
    let accepted = [report(3, ReportKind::Accepted(taken))];
    again.tell(&accepted, count + 1, NOW_MS).expect("a sound disk");
    assert_eq!((lost(&mut again), told(&mut again)), (vec![3], Vec::new()));
    // It is so after another crash, and what comes under it is ignored. What never came is taken.
    let (mut again, _) = opened(disk.after_crash(Surviving::Nothing));
    assert_eq!(lost(&mut again), [3]);
    again.with(SESSION, |session| assert_eq!([2, 3, 4].map(|number| session.claim(number)), [true, false, true]));
}

/// Hostile gaps cost bounded memory: the lowest are forgotten, and their numbers ignored.
#[test]
fn of_very_many_gaps_the_lowest_are_forgotten() {
    let (mut sessions, _) = opened(FaultDisk::new(4));
    sessions.with(SESSION, |session| {
        assert!((1..70_000).all(|half| session.claim(2 * half)));
        assert_eq!([1, 3, 139_997].map(|number| session.claim(number)), [false, false, true]);
    });
}
