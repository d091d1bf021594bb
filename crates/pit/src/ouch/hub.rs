//! The sessions of a day, and who writes their journal: connections say what came, and the root's thread makes it
//! durable and tells them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use protocols::soup::SoupSession;
use store::{Disk, RealDisk};
use venue::SessionNumber;

use super::DAY_MS;
use super::journal::{FoundSessions, SessionEntry, SessionJournal, SessionJournalError};
use super::outbound;
use super::session::OuchSession;
use crate::clock::clock_ms;
use crate::events::StepEvents;

struct Sessions<D: Disk> {
    day: u16,
    incarnation: u32,
    name: SoupSession,
    sessions: HashMap<SessionNumber, OuchSession>,
    /// Not in the journal.
    unwritten: Vec<SessionEntry>,
    /// In the journal, and not synced.
    unsynced: Vec<SessionEntry>,
    journal: Option<SessionJournal<D>>,
}

impl<D: Disk> Default for Sessions<D> {
    fn default() -> Sessions<D> {
        Sessions {
            day: 0,
            incarnation: 0,
            name: [b' '; 10],
            sessions: HashMap::new(),
            unwritten: Vec::new(),
            unsynced: Vec::new(),
            journal: None,
        }
    }
}

impl<D: Disk> Sessions<D> {
    fn session(&mut self, number: SessionNumber) -> &mut OuchSession {
        let Sessions { name, day, incarnation, .. } = *self;
        self.sessions.entry(number).or_insert_with(|| OuchSession::new(number, name, day, incarnation))
    }

    fn open(&mut self, disk: D, day: u16, incarnation: u32) -> Result<Option<u64>, SessionJournalError> {
        let (journal, found) = SessionJournal::open(disk, session_name(day, incarnation))?;
        let FoundSessions { name, effects, entries } = found;
        *self = Sessions { day, incarnation, name, journal: Some(journal), ..Sessions::default() };
        entries.into_iter().for_each(|entry| self.session(session_of(&entry)).replay(entry));
        Ok(effects)
    }

    fn write(&mut self, effects: u64) -> Result<(), SessionJournalError> {
        if let Some(journal) = self.journal.as_mut().filter(|_| !self.unwritten.is_empty()) {
            journal.append(effects, &self.unwritten)?;
            self.unsynced.append(&mut self.unwritten);
        }
        Ok(())
    }

    fn tell(&mut self, events: &StepEvents, effects: u64) -> Result<(), SessionJournalError> {
        let nanoseconds = clock_ms() % DAY_MS * 1_000_000;
        for report in &events.reports {
            let Some(session) = self.sessions.get_mut(&report.session) else { continue };
            // Orders of another day have no reference in this session.
            if session.number(report.number.reference) == report.number {
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
        | SessionEntry::Told { session, .. } => *session,
    }
}

/// The name of a day's sessions: day and incarnation, and when their journal began. A journal that is lost begins under
/// another name, so that no number means two messages.
pub(crate) fn session_name(day: u16, incarnation: u32) -> SoupSession {
    let mut name = [b'0'; 10];
    base36(u64::from(day), &mut name[..4]);
    base36(u64::from(incarnation), &mut name[4..7]);
    base36(clock_ms() / 1_000, &mut name[7..]);
    name
}

fn base36(mut number: u64, to: &mut [u8]) {
    for digit in to.iter_mut().rev() {
        *digit = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[(number % 36) as usize];
        number /= 36;
    }
}

/// The sessions of the present day and incarnation.
#[derive(Default)]
pub(crate) struct OuchHub(Mutex<Sessions<RealDisk>>);

impl OuchHub {
    fn lock(&self) -> MutexGuard<'_, Sessions<RealDisk>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the sessions are those of this day and incarnation.
    pub fn is_of(&self, day: u16, incarnation: u32) -> bool {
        let of = self.lock();
        of.journal.is_some() && (of.day, of.incarnation) == (day, incarnation)
    }

    /// Begins the sessions of a day and an incarnation, or goes on with them after a restart; those of others are
    /// forgotten. How many effects of the root they have been told of; `None` if they begin now.
    pub fn open(&self, folder: &Path, day: u16, incarnation: u32) -> Result<Option<u64>, SessionJournalError> {
        let mut of = self.lock();
        *of = Sessions::default();
        let directory = folder.join(format!("{incarnation}-{day}"));
        let failed = |error| SessionJournalError::Directory(directory.display().to_string(), error);
        let disk = RealDisk::new(&directory).map_err(failed)?;
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path != directory {
                std::fs::remove_dir_all(path).map_err(failed)?;
            }
        }
        of.open(disk, day, incarnation)
    }

    /// Does something to a session.
    pub fn with<T>(&self, session: SessionNumber, with: impl FnOnce(&mut OuchSession) -> T) -> T {
        let mut of = self.lock();
        let session = of.session(session);
        let done = with(session);
        let mut unwritten = std::mem::take(&mut session.unwritten);
        of.unwritten.append(&mut unwritten);
        done
    }

    /// Ends all sessions, and so their connections: whether what they said last has happened is not known.
    pub fn end_all(&self) {
        *self.lock() = Sessions::default();
    }

    /// Writes what came, before the root takes it: a process that is killed then knows its orders again.
    pub fn write(&self, effects: u64) -> Result<(), SessionJournalError> {
        self.lock().write(effects)
    }

    /// Tells sessions what a step told about their orders, and what waits for them, once it is durable.
    pub fn tell(&self, events: &StepEvents, effects: u64) -> Result<(), SessionJournalError> {
        self.lock().tell(events, effects)
    }
}

#[cfg(test)]
mod tests {
    use primitives::PublicKey;
    use protocols::ouch::{OuchAccountQueryResponse, OuchEnter, OuchInbound, OuchMessage, OuchOutbound};
    use store::{FaultDisk, Surviving};
    use venue::{Acceptance, OrderEnd, ReportKind, TradeReport};

    use super::super::session::Entered;
    use super::*;

    const SESSION: SessionNumber = 7;

    fn opened(disk: FaultDisk, day: u16) -> (Sessions<FaultDisk>, Option<u64>) {
        let mut sessions = Sessions::default();
        let effects = sessions.open(disk, day, 1).expect("it opens");
        (sessions, effects)
    }

    fn enter(sessions: &mut Sessions<FaultDisk>, user_ref: u32) {
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
        let session = sessions.session(SESSION);
        assert!(session.claim(user_ref));
        session.enter(Entered { message, symbol: enter.symbol, side: b'B', is_answered: false, open: 0 });
        let mut unwritten = std::mem::take(&mut session.unwritten);
        sessions.unwritten.append(&mut unwritten);
    }

    fn step(sessions: &mut Sessions<FaultDisk>, user_ref: u32, what: ReportKind, effects: u64) -> bool {
        let number = sessions.session(SESSION).number(user_ref);
        let report = TradeReport { session: SESSION, key: PublicKey([1; 32]), number, what };
        let events = StepEvents { reports: vec![report], ..StepEvents::default() };
        sessions.write(effects - 1).and_then(|()| sessions.tell(&events, effects)).is_ok()
    }

    fn accepted(id: u64) -> ReportKind {
        ReportKind::Accepted(Acceptance { id, lots: 9, replaces: None, keeps_place: false })
    }

    fn messages(sessions: &mut Sessions<FaultDisk>) -> Vec<Vec<u8>> {
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
        let session = sessions.session(SESSION);
        session.tell(&OuchMessage::plain(query));
        let mut unwritten = std::mem::take(&mut session.unwritten);
        sessions.unwritten.append(&mut unwritten);
        assert_eq!(messages(&mut sessions).len(), 1, "not before it is durable");
        sessions.tell(&StepEvents::default(), 10).expect("written");
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
        assert_ne!(session_name(3, 1)[..7], session_name(4, 1)[..7]);
        assert_ne!(session_name(3, 1)[..7], session_name(3, 2)[..7]);
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
