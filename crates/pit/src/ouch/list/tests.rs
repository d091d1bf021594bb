//! Lists at the door: their bytes, and what becomes of their orders.

use std::cell::{Cell, RefCell};

use kernel::{Dice, FaultDisk, Surviving};
use primitives::venue::OrderLife;
use protocols::ouch::{OuchEnter, OuchOutbound, OuchReplace};
use protocols::soup::client::{SoupClient, SoupClientEffect, SoupClientInput};
use protocols::soup::server::SoupServerInput;
use protocols::soup::{ANY_SESSION, SoupLimits, SoupLogin};
use venue::{CheckedOrderList, ReportKind, RequestScope, SessionNumber, TradeCommand, TradeReport, VenueInput};

use super::*;
use crate::ouch::{OuchHost, OuchLink, OuchParty, OuchSession, OuchSessions, words_of};

const SESSION: SessionNumber = 7;
const NOW_MS: u64 = 20_000 * 86_400_000 + 5;
const SCOPE: RequestScope = RequestScope { network: Digest([3; 32]), venue: 1, incarnation: 2 };

fn key() -> SecretKey {
    SecretKey::from_seed([7; 32])
}

/// What the root is given, however it was signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    Order(VenueOrder, Option<OrderNumber>),
    Cancel(OrderNumber, u32),
    CancelAll(Option<MarketId>),
}

/// A door with one link, and a root that only notes what it is given.
pub(crate) struct Door {
    host: Host,
    client: SoupClient,
    link: OuchLink,
    effects: u64,
}

struct Host {
    sessions: RefCell<OuchSessions<FaultDisk>>,
    given: RefCell<Vec<VenueInput>>,
    takes: Cell<bool>,
}

impl OuchHost for Host {
    fn now_ms(&self) -> u64 {
        NOW_MS
    }

    fn scope(&self) -> Option<RequestScope> {
        Some(SCOPE)
    }

    fn with<T>(&self, session: SessionNumber, with: impl FnOnce(&mut OuchSession) -> T) -> T {
        self.sessions.borrow_mut().with(session, with)
    }

    fn takes_orders(&self) -> bool {
        self.takes.get()
    }

    fn trade(&self, session: SessionNumber, _: PublicKey, command: TradeCommand) -> bool {
        self.given.borrow_mut().push(VenueInput::Trade(session, command));
        true
    }

    fn list(&self, session: SessionNumber, list: CheckedOrderList) -> bool {
        self.given.borrow_mut().push(VenueInput::List(session, list));
        true
    }

    fn heartbeat(&self, _: SessionNumber) {}

    fn wake(&self) {}
}

impl Door {
    pub fn new() -> Door {
        Door::on(FaultDisk::new(1))
    }

    fn on(disk: FaultDisk) -> Door {
        let mut sessions = OuchSessions::default();
        let effects = sessions.open(disk, 20_000, SCOPE.incarnation, NOW_MS).expect("it opens").unwrap_or(0);
        let host = Host { sessions: RefCell::new(sessions), given: RefCell::default(), takes: Cell::new(true) };
        let party = OuchParty { session: SESSION, key: key().public(), number: 1, has_timer: false };
        let link = OuchLink::begin(&host, party);
        let (username, password) = (*b"TEST  ", *b"          ");
        let login = SoupLogin { username, password, session: ANY_SESSION, next: 1, timeout_ms: None };
        let client = SoupClient::new(login, SoupLimits::default());
        let mut door = Door { host, client, link, effects };
        door.step(SoupClientInput::Connected);
        door
    }

    /// What the client does reaches the link, and its answers reach the client.
    fn step(&mut self, input: SoupClientInput<'_>) {
        let mut effects = self.client.step(NOW_MS, input);
        while let Some(SoupClientEffect::Send(bytes)) = effects.pop() {
            let turn = self.link.step(&self.host, SoupServerInput::Received(&bytes));
            assert!(!turn.is_over, "the link ends");
            effects.extend(self.client.step(NOW_MS, SoupClientInput::Received(&turn.bytes)));
            effects.retain(|effect| matches!(effect, SoupClientEffect::Send(_)));
        }
    }

    /// A message of the participant.
    pub fn hear(&mut self, message: &[u8]) {
        self.step(SoupClientInput::Send(message));
        self.step(SoupClientInput::Sent(1 << 20));
    }

    /// What the root was given since the last call.
    pub fn take_given(&self) -> Vec<Given> {
        let one = |input: VenueInput| match input {
            VenueInput::List(SESSION, list) => {
                list.list().entries.iter().map(|entry| Given::Order(entry.order, entry.replaces)).collect()
            }
            VenueInput::Trade(SESSION, TradeCommand::New(order)) => vec![Given::Order(*order.order(), None)],
            VenueInput::Trade(SESSION, TradeCommand::Replace(old, order)) => {
                vec![Given::Order(*order.order(), Some(old))]
            }
            VenueInput::Trade(SESSION, TradeCommand::Cancel { number, keeps, .. }) => {
                vec![Given::Cancel(number, keeps)]
            }
            VenueInput::Trade(SESSION, TradeCommand::CancelAll { market, .. }) => vec![Given::CancelAll(market)],
            other => panic!("{other:?}"),
        };
        self.host.given.take().into_iter().flat_map(one).collect()
    }

    /// What the session was told since it began; reports of the root come first.
    pub fn told(&mut self, reports: &[(u32, ReportKind)]) -> Vec<OuchMessage<OuchOutbound>> {
        self.effects += reports.len() as u64;
        let mut sessions = self.host.sessions.borrow_mut();
        let number = |reference| OrderNumber { incarnation: SCOPE.incarnation, day: 20_000, reference };
        let report = |(reference, what): &(u32, ReportKind)| TradeReport {
            session: SESSION,
            key: key().public(),
            number: number(*reference),
            what: what.clone(),
        };
        let reports: Vec<TradeReport> = reports.iter().map(report).collect();
        sessions.tell(&reports, self.effects, NOW_MS).expect("a sound disk");
        sessions.with(SESSION, |of| {
            let messages = (of.log.first()..of.log.next()).filter_map(|number| of.log.get(number));
            messages.map(|message| OuchMessage::decode(message).expect("a message")).collect()
        })
    }
}

/// A new order of a participant.
pub(crate) fn enter(user_ref: u32) -> OuchEnter {
    OuchEnter {
        user_ref,
        side: b'B',
        quantity: 5,
        symbol: symbol_of(3),
        price: 77,
        time_in_force: b'0',
        display: b'Y',
        capacity: b'P',
        sweep: b'N',
        cross: b'N',
        client_order: *b"mine          ",
    }
}

/// A replacement by a participant.
pub(crate) fn replace(before: u32, user_ref: u32) -> OuchReplace {
    let OuchEnter { quantity, price, time_in_force, display, sweep, client_order, .. } = enter(user_ref);
    OuchReplace { before, user_ref, quantity, price, time_in_force, display, sweep, client_order }
}

fn terms() -> OuchTerms {
    let floor = OrderNumber { incarnation: 2, day: 0, reference: 0 };
    let (self_trade, until_ms) = (SelfTradeRule::ExpireTaker, Some(NOW_MS + 9));
    OuchTerms { incarnation: 2, day: 20_000, floor, self_trade, expiry: 140, until_ms, fee_cap_ppm: 500 }
}

fn order(body: OuchInbound, options: Vec<OuchOption>) -> OuchOrder {
    OuchOrder::read(OuchMessage { body, options: Some(options) }, Some((3, VenueSide::Sell))).expect("plain")
}

fn signed(terms: OuchTerms, orders: Vec<OuchOrder>, key: &SecretKey) -> OuchList {
    OuchList::sign(&SCOPE.network, SCOPE.venue, terms, orders, key).expect("ascending")
}

fn list(references: impl IntoIterator<Item = u32>) -> Vec<u8> {
    let orders = references.into_iter().map(|of| order(OuchInbound::Enter(enter(of)), Vec::new()));
    signed(terms(), orders.collect(), &key()).encode().expect("short")
}

fn is_signed(list: &OuchList) -> bool {
    list.signed_by(key().public()).verify(&SCOPE.network, SCOPE.venue).is_ok()
}

#[test]
fn the_longest_list_fits_into_a_packet_of_every_door() {
    let mut orders = Vec::new();
    for at in 0..LIST_ORDERS_MAX as u32 {
        orders.push(match at % 4 {
            0 => order(
                OuchInbound::Enter(OuchEnter { time_in_force: b'3', ..enter(at) }),
                vec![OuchOption::LeastQuantity(5)],
            ),
            1 => order(
                OuchInbound::Replace(OuchReplace { time_in_force: b'3', ..replace(at - 1, at) }),
                vec![OuchOption::LeastQuantity(5)],
            ),
            2 => order(OuchInbound::Enter(enter(at)), vec![OuchOption::PostOnly(b'P')]),
            _ => order(OuchInbound::Replace(replace(0, at)), Vec::new()),
        });
    }
    let lives: Vec<OrderLife> = orders.iter().map(|order| order.fields.life).collect();
    assert!(lives.contains(&OrderLife::FillOrKill) && lives.contains(&OrderLife::PostOnly));
    let list = signed(terms(), orders, &key());
    let bytes = list.encode().expect("it fits");
    assert!(bytes.len() <= LIST_BYTES_MAX && LIST_BYTES_MAX < fairnet::PARTICIPANT_PACKET_MAX);
    assert!(LIST_BYTES_MAX < usize::from(SoupLimits::default().packet_max));
    let read = OuchList::decode(&bytes).expect("a list");
    assert!(read == list && is_signed(&read));
    // The head is counted with all that it can have.
    let head = bytes.len() - list.orders.iter().map(|order| order.listed().expect("short").len()).sum::<usize>();
    assert_eq!(head, LIST_HEAD_MAX);
}

#[test]
fn a_list_that_is_cut_off_or_changed_is_none_of_its_key() {
    let orders = vec![
        order(OuchInbound::Enter(enter(4)), Vec::new()),
        order(OuchInbound::Replace(replace(4, 6)), vec![OuchOption::PostOnly(b'P')]),
    ];
    let original = signed(terms(), orders, &key());
    let bytes = original.encode().expect("short");
    let entries = original.signed_by(key().public()).entries;
    let message = bytes.len() - original.orders.iter().map(|of| of.listed().expect("short").len()).sum::<usize>();
    let ends = [message, message + original.orders[0].listed().expect("short").len()];
    for end in 0..bytes.len() {
        let cut = OuchList::decode(&bytes[..end]);
        assert!(cut.as_ref().is_none_or(|list| ends.contains(&end) && !is_signed(list)), "{end}");
    }
    assert_eq!(OuchList::decode(&[&bytes[..], &[0]].concat()), None);
    for at in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[at / 8] ^= 1 << (at % 8);
        // What a participant says for itself alone is not signed: it changes no order.
        if let Some(list) = OuchList::decode(&changed).filter(is_signed) {
            assert_eq!(list.signed_by(key().public()).entries, entries, "bit {at}");
        }
    }
    let many: Vec<u8> = (0..65).flat_map(|at| order(OuchInbound::Enter(enter(at)), vec![]).listed().unwrap()).collect();
    assert_eq!(OuchList::decode(&[&bytes[..message], &many].concat()), None);
    // Its seed hides the orders from all but their trader, and another list has another one.
    let other = OuchList::decode(&list([4, 7])).expect("a list");
    assert_ne!(other.seed, original.seed);
}

#[test]
fn each_order_of_a_list_over_ouch_has_answers_of_its_own() {
    let mut door = Door::new();
    door.hear(&list([4, 6, 9]));
    assert_eq!(door.take_given().len(), 3);
    let accepted = |id| ReportKind::Accepted(venue::Acceptance { id, lots: 5, replaces: None, keeps_place: false });
    let reports = [
        (4, accepted(50)),
        (6, ReportKind::Refused(venue::OrderRefusal::Halted)),
        (9, accepted(51)),
        (9, ReportKind::Ended { lots: 5, why: venue::OrderEnd::Asked }),
    ];
    let told = door.told(&reports);
    let bodies: Vec<&OuchOutbound> = told.iter().map(|message| &message.body).collect();
    assert!(
        matches!(
            bodies[..],
            [OuchOutbound::Accepted(a), OuchOutbound::Rejected(b), OuchOutbound::Accepted(c), OuchOutbound::Canceled(d)]
                if [a.user_ref, b.user_ref, c.user_ref, d.user_ref] == [4, 6, 9, 9]
        ),
        "{told:?}"
    );
    // A list after a lost link, whose answers are there, and one of which some numbers are used.
    door.hear(&list([4, 6, 9]));
    assert_eq!((door.take_given(), door.told(&[]).len()), (Vec::new(), 4));
    door.hear(&list([9, 10, 11]));
    assert_eq!(door.take_given(), []);
    let told = door.told(&[]);
    let refused: Vec<u32> = told[4..].iter().filter_map(rejected).collect();
    assert_eq!(refused, [10, 11]);
    assert!(words_of(told[4].options.as_deref()).is_some_and(|words| words.contains("new numbers")));
}

fn rejected(message: &OuchMessage<OuchOutbound>) -> Option<u32> {
    match &message.body {
        OuchOutbound::Rejected(of) => Some(of.user_ref),
        _ => None,
    }
}

#[test]
fn a_list_that_the_venue_does_not_take_is_rejected_order_by_order() {
    let mut door = Door::new();
    let fresh = |from: u32| (from..from + 2).map(|of| order(OuchInbound::Enter(enter(of)), Vec::new())).collect();
    let other = SecretKey::from_seed([8; 32]);
    for (at, refused) in [
        signed(terms(), fresh(1), &other),
        signed(OuchTerms { day: 20_001, ..terms() }, fresh(3), &key()),
        signed(
            OuchTerms { incarnation: 1, floor: OrderNumber { incarnation: 0, day: 0, reference: 0 }, ..terms() },
            fresh(5),
            &key(),
        ),
    ]
    .iter()
    .enumerate()
    {
        door.hear(&refused.encode().expect("short"));
        assert_eq!(door.take_given(), [], "{at}");
        assert_eq!(door.told(&[]).len(), 2 * (at + 1), "{at}");
    }
    door.host.takes.set(false);
    door.hear(&list([7, 8]));
    assert_eq!(door.take_given(), []);
    let refused: Vec<u32> = door.told(&[]).iter().filter_map(rejected).collect();
    assert_eq!(refused, [1, 2, 3, 4, 5, 6, 7, 8]);
    // Numbers that do not ascend.
    door.host.takes.set(true);
    let mut bytes = list([9, 10]);
    let length = order(OuchInbound::Enter(enter(9)), vec![]).listed().expect("short").len();
    let (head, last) = (bytes.len() - 2 * length, bytes.len() - length);
    bytes[head..].rotate_left(length);
    assert_eq!(last - head, length);
    door.hear(&bytes);
    assert_eq!(door.take_given(), []);
    let refused: Vec<u32> = door.told(&[]).iter().filter_map(rejected).collect();
    assert_eq!(refused[8..], [10, 9], "each has its answer");
}

/// A link ends whose lists are false, as one whose orders are.
#[test]
fn false_lists_end_their_link() {
    let mut door = Door::new();
    let other = SecretKey::from_seed([8; 32]);
    let mut is_over = false;
    for at in 1..=300 {
        let one = vec![order(OuchInbound::Enter(enter(at)), Vec::new())];
        let bytes = signed(terms(), one, &other).encode().expect("short");
        let packet = [&(bytes.len() as u16 + 1).to_be_bytes()[..], b"U", &bytes].concat();
        is_over |= door.link.step(&door.host, SoupServerInput::Received(&packet)).is_over;
    }
    assert!(is_over);
}

/// A crash leaves all numbers of a list, or none.
#[test]
fn a_restart_knows_a_list_or_nothing_of_it() {
    let mut dice = Dice::new(5);
    for _ in 0..40 {
        let disk = FaultDisk::new(dice.bits());
        let mut door = Door::on(disk.clone());
        door.told(&[]);
        door.hear(&list(1..40));
        assert_eq!(door.take_given().len(), 39);
        door.host.sessions.borrow_mut().write(door.effects).expect("a sound disk");
        let surviving = Surviving::drawn(&mut dice);
        let mut again = Door::on(disk.after_crash(surviving));
        again.hear(&list(1..40));
        let (given, told) = (again.take_given().len(), again.told(&[]).len());
        assert!(given == 39 || given == 0, "{given} are given again");
        assert_eq!(told, 0, "none is refused");
    }
}
