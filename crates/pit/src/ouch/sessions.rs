//! The sessions of a day over a disk: connections say what came, and whoever runs the root makes it durable and tells
//! them.

use std::collections::HashMap;

use protocols::soup::SoupSession;
use store::Disk;
use venue::{MatchingStage, ReportKind, SessionNumber, TradeReport, VenueInput};

use super::DAY_MS;
use super::journal::{FoundSessions, SessionEntry, SessionJournal, SessionJournalError};
use super::lost::LostNumber;
use super::outbound;
use super::session::OuchSession;

/// The sessions of a day and an incarnation, with their journal.
pub struct OuchSessions<D: Disk> {
    day: u16,
    incarnation: u32,
    name: SoupSession,
    sessions: HashMap<SessionNumber, OuchSession>,
    /// Not in the journal.
    unwritten: Vec<SessionEntry>,
    /// In the journal, and not synced.
    unsynced: Vec<SessionEntry>,
    journal: Option<SessionJournal<D>>,
    /// Whether the journal says how many effects of the root are in it: a restart tells those that follow.
    is_counted: bool,
    /// Whether a restart is telling them.
    is_told_again: bool,
}

impl<D: Disk> Default for OuchSessions<D> {
    fn default() -> OuchSessions<D> {
        OuchSessions {
            day: 0,
            incarnation: 0,
            name: [b' '; 10],
            sessions: HashMap::new(),
            unwritten: Vec::new(),
            unsynced: Vec::new(),
            journal: None,
            is_counted: false,
            is_told_again: false,
        }
    }
}

impl<D: Disk> OuchSessions<D> {
    fn session(&mut self, number: SessionNumber) -> &mut OuchSession {
        let OuchSessions { name, day, incarnation, .. } = *self;
        self.sessions.entry(number).or_insert_with(|| OuchSession::new(number, name, day, incarnation))
    }

    /// Whether these are the sessions of this day and incarnation.
    pub fn is_of(&self, day: u16, incarnation: u32) -> bool {
        self.journal.is_some() && (self.day, self.incarnation) == (day, incarnation)
    }

    /// Begins the sessions of a day and an incarnation, or goes on with those of a journal. How many effects of the
    /// root they have been told of; `None` if they begin now.
    ///
    /// # Errors
    /// [`SessionJournalError`]: the sessions of before are forgotten, and there are none.
    pub fn open(
        &mut self,
        disk: D,
        day: u16,
        incarnation: u32,
        now_ms: u64,
    ) -> Result<Option<u64>, SessionJournalError> {
        *self = OuchSessions::default();
        let (journal, found) = SessionJournal::open(disk, session_name(day, incarnation, now_ms))?;
        let FoundSessions { name, effects, entries } = found;
        let (journal, is_counted) = (Some(journal), effects.is_some());
        let is_told_again = is_counted;
        *self = OuchSessions { day, incarnation, name, journal, is_counted, is_told_again, ..OuchSessions::default() };
        entries.into_iter().for_each(|entry| self.session(session_of(&entry)).replay(entry));
        self.sessions.values_mut().for_each(|session| session.unwritten.clear());
        Ok(effects)
    }

    /// Does something to a session.
    pub fn with<T>(&mut self, session: SessionNumber, with: impl FnOnce(&mut OuchSession) -> T) -> T {
        let session = self.session(session);
        let done = with(session);
        let mut unwritten = std::mem::take(&mut session.unwritten);
        self.unwritten.append(&mut unwritten);
        done
    }

    /// What a root is to be given about numbers that a restart finds without an answer, once it has told again all that
    /// these sessions have not heard. They are told their rejections with its next step.
    pub fn void_lost(&mut self, now_ms: u64, root: &MatchingStage) -> Vec<VenueInput> {
        let nanoseconds = now_ms % DAY_MS * 1_000_000;
        let mut inputs = Vec::new();
        let mut numbers: Vec<SessionNumber> = self.sessions.keys().copied().collect();
        numbers.sort_unstable();
        self.is_told_again = false;
        for number in numbers {
            self.with(number, |session| session.remember_lost(number, root));
            for about in self.session(number).about_lost(number, nanoseconds, root) {
                match about {
                    LostNumber::Ask(input) => inputs.push(input),
                    LostNumber::Told(message) => self.with(number, |session| session.tell(&message)),
                }
            }
        }
        inputs
    }

    /// Writes what came, before the root takes it: a process that is killed then knows its orders again.
    ///
    /// # Errors
    /// [`SessionJournalError`]: nothing more may be told.
    pub fn write(&mut self, effects: u64) -> Result<(), SessionJournalError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let begins = self.unwritten.iter().any(|entry| matches!(entry, SessionEntry::Opened { .. }));
        if !self.unwritten.is_empty() || !self.is_counted {
            journal.append(effects, &self.unwritten)?;
            self.unsynced.append(&mut self.unwritten);
        }
        // The first count, and that there is a session, is durable before the root takes anything of it. Without that a
        // restart would not know what sessions lack, or that they are there to be told.
        if begins || !self.is_counted {
            journal.sync()?;
            self.is_counted = true;
        }
        Ok(())
    }

    /// Tells sessions what a step told about their orders, and what waits for them, once it is durable. `effects` are
    /// those of the root with the step.
    ///
    /// # Errors
    /// [`SessionJournalError`]: nothing of it was told.
    pub fn tell(&mut self, reports: &[TradeReport], effects: u64, now_ms: u64) -> Result<(), SessionJournalError> {
        let nanoseconds = now_ms % DAY_MS * 1_000_000;
        for report in reports {
            let Some(session) = self.sessions.get_mut(&report.session) else { continue };
            // Orders of another day have no reference in this session.
            session.key = Some(report.key);
            if session.number(report.number.reference) == report.number {
                if self.is_told_again && matches!(report.what, ReportKind::Accepted(_)) {
                    session.find(report.number.reference);
                }
                if let Some(message) = outbound::message(session, nanoseconds, report) {
                    session.tell(&message);
                }
                self.unwritten.append(&mut session.unwritten);
            }
        }
        self.write(effects)?;
        if let Some(journal) = self.journal.as_mut().filter(|_| !self.unsynced.is_empty()) {
            journal.sync()?;
            for entry in std::mem::take(&mut self.unsynced) {
                if let SessionEntry::Told { session, message } = entry {
                    self.session(session).publish(message);
                }
            }
        }
        Ok(())
    }
}

fn session_of(entry: &SessionEntry) -> SessionNumber {
    match entry {
        SessionEntry::Claimed { session, .. }
        | SessionEntry::Entered { session, .. }
        | SessionEntry::Told { session, .. }
        | SessionEntry::Opened { session } => *session,
    }
}

/// The name of a day's sessions: day and incarnation, and when their journal began. A journal that is lost begins under
/// another name, so that no number means two messages.
pub(crate) fn session_name(day: u16, incarnation: u32, now_ms: u64) -> SoupSession {
    let mut name = [b'0'; 10];
    base36(u64::from(day), &mut name[..4]);
    base36(u64::from(incarnation), &mut name[4..7]);
    base36(now_ms / 1_000, &mut name[7..]);
    name
}

fn base36(mut number: u64, to: &mut [u8]) {
    for digit in to.iter_mut().rev() {
        *digit = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[(number % 36) as usize];
        number /= 36;
    }
}

#[cfg(test)]
mod tests {
    use kernel::{FaultDisk, Surviving};
    use primitives::PublicKey;
    use protocols::ouch::{OuchAccountQueryResponse, OuchEnter, OuchInbound, OuchMessage, OuchOutbound};
    use venue::{Acceptance, OrderEnd, OrderRefusal, OrderStanding, ReportKind, TradeReport};

    use super::super::refusing::words_of;
    use super::super::session::Entered;
    use super::*;

    const SESSION: SessionNumber = 7;
    const NOW_MS: u64 = 1_000_000;

    fn opened(disk: FaultDisk, day: u16) -> (OuchSessions<FaultDisk>, Option<u64>) {
        let mut sessions = OuchSessions::default();
        let effects = sessions.open(disk, day, 1, NOW_MS).expect("it opens");
        (sessions, effects)
    }

    fn enter(sessions: &mut OuchSessions<FaultDisk>, user_ref: u32) {
        let enter = OuchEnter {
            user_ref,
            side: b'B',
            quantity: 9,
            symbol: *b"M0      ",
            price: 5,
            time_in_force: b'0',
            display: b'Y',
            capacity: b'P',
            sweep: b'N',
            cross: b'N',
            client_order: *b"mine          ",
        };
        let message = OuchInbound::Enter(enter);
        sessions.with(SESSION, |session| {
            assert!(session.claim(user_ref));
            session.enter(Entered { message, symbol: enter.symbol, side: b'B', is_answered: false, open: 0 });
        });
    }

    fn step(sessions: &mut OuchSessions<FaultDisk>, user_ref: u32, what: ReportKind, effects: u64) -> bool {
        let number = sessions.session(SESSION).number(user_ref);
        let report = TradeReport { session: SESSION, key: PublicKey([1; 32]), number, what };
        sessions.write(effects - 1).and_then(|()| sessions.tell(&[report], effects, NOW_MS)).is_ok()
    }

    fn accepted(id: u64) -> ReportKind {
        ReportKind::Accepted(Acceptance { id, lots: 9, replaces: None, keeps_place: false })
    }

    fn messages(sessions: &mut OuchSessions<FaultDisk>) -> Vec<Vec<u8>> {
        let log = &sessions.session(SESSION).log;
        (log.first()..log.next()).filter_map(|number| log.get(number)).map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn ouch_numbers_mean_the_same_messages_after_a_crash() {
        let disk = FaultDisk::new(1);
        let (mut sessions, effects) = opened(disk.clone(), 3);
        assert_eq!(effects, None);
        enter(&mut sessions, 4);
        assert!(step(&mut sessions, 4, accepted(50), 10));
        // What a connection says alone has its number, too.
        let query = OuchOutbound::AccountQueryResponse(OuchAccountQueryResponse { nanoseconds: 1, next: 5 });
        sessions.with(SESSION, |session| session.tell(&OuchMessage::plain(query)));
        assert_eq!(messages(&mut sessions).len(), 1, "not before it is durable");
        sessions.tell(&[], 10, NOW_MS).expect("written");
        let (name, told) = (sessions.name, messages(&mut sessions));
        assert_eq!(told.len(), 2);

        let (mut again, effects) = opened(disk.after_crash(Surviving::Nothing), 3);
        assert_eq!((again.name, messages(&mut again), effects), (name, told, Some(10)));
        // Its orders are known: the end has the open lots, a repetition is none, and a second answer neither.
        assert!(!again.session(SESSION).claim(4));
        assert!(step(&mut again, 4, accepted(50), 11));
        assert!(step(&mut again, 4, ReportKind::Reduced { lots: 2 }, 12));
        let last = messages(&mut again);
        let OuchOutbound::Canceled(canceled) = OuchMessage::decode(&last[2]).expect("a message").body else {
            panic!("{last:?}")
        };
        assert_eq!((last.len(), canceled.quantity), (3, 7));
        // Another day is another session.
        assert_ne!(session_name(3, 1, NOW_MS)[..7], session_name(4, 1, NOW_MS)[..7]);
        assert_ne!(session_name(3, 1, NOW_MS)[..7], session_name(3, 2, NOW_MS)[..7]);
    }

    /// Cancels cross fills, come twice, or name what never was: each has one answer.
    #[test]
    fn a_cancel_of_what_is_not_open_is_answered() {
        let (mut sessions, _) = opened(FaultDisk::new(4), 3);
        enter(&mut sessions, 1);
        let taken = |ended| OrderStanding::Taken {
            accepted: Acceptance { id: 50, lots: 9, replaces: None, keeps_place: false },
            ended,
            open: 0,
            executed: 9,
            settled: 0,
            bust: 0,
        };
        let filled = ReportKind::Status(Some(taken(Some(OrderEnd::Filled))));
        for (user_ref, answer, words) in [
            (1, accepted(50), None),
            (1, filled, Some("too late to cancel: the order is filled")),
            (1, ReportKind::Refused(OrderRefusal::NotOpen), Some("no open order has this number")),
            (8, ReportKind::Overtaken, Some("no order of this number has come; it is refused if it comes")),
            (9, ReportKind::Refused(OrderRefusal::NotOpen), Some("no open order has this number")),
        ] {
            let before = messages(&mut sessions).len();
            assert!(step(&mut sessions, user_ref, answer, 10 + before as u64));
            let told = messages(&mut sessions);
            assert_eq!(told.len(), before + 1, "{user_ref}");
            let message = OuchMessage::<OuchOutbound>::decode(&told[before]).expect("a message");
            assert_eq!(words_of(message.options.as_deref()).as_deref(), words);
            let is_reject = matches!(message.body, OuchOutbound::CancelReject(of) if of.user_ref == user_ref);
            assert_eq!(is_reject, words.is_some());
        }
    }

    /// The first orders of a day may be lost in a crash although the root has taken them: the root then tells again
    /// what it told after the count.
    #[test]
    fn ouch_knows_what_its_sessions_lack_though_all_of_their_orders_are_lost() {
        let disk = FaultDisk::new(3);
        let (mut sessions, _) = opened(disk.clone(), 3);
        sessions.with(SESSION, |_| ());
        sessions.write(10).expect("counted");
        enter(&mut sessions, 1);
        sessions.write(10).expect("written");
        let (mut again, effects) = opened(disk.after_crash(Surviving::Nothing), 3);
        assert_eq!((effects, again.sessions.len()), (Some(10), 1));
        assert!(step(&mut again, 1, ReportKind::Ended { lots: 9, why: OrderEnd::Asked }, 11));
        assert_eq!(messages(&mut again).len(), 1);
    }

    #[test]
    fn ouch_tells_nothing_that_a_full_disk_did_not_take() {
        let disk = FaultDisk::new(2);
        let (mut sessions, _) = opened(disk.clone(), 3);
        enter(&mut sessions, 1);
        assert!(step(&mut sessions, 1, accepted(50), 10));
        disk.set_capacity(Some(0));
        let ended = || ReportKind::Ended { lots: 9, why: OrderEnd::Asked };
        assert!(!step(&mut sessions, 1, ended(), 11));
        assert_eq!(messages(&mut sessions).len(), 1);
        disk.set_capacity(None);
        drop(sessions);
        // The root tells its effects from the last known one on again, and nothing is lost.
        let (mut again, effects) = opened(disk.after_crash(Surviving::Everything), 3);
        assert_eq!((effects, messages(&mut again).len()), (Some(10), 1));
        assert!(step(&mut again, 1, ended(), 11));
        assert_eq!(messages(&mut again).len(), 2);
    }
}
