//! A reader of ITCH 5.0 that others wrote (`itchy`) reads what this crate writes.

use itchy::Body as Theirs;
use protocols::frames::put_frame;
use protocols::itch::*;

const STOCK: [u8; 8] = *b"WALRUS  ";

fn bodies() -> Vec<ItchBody> {
    vec![
        ItchBody::SystemEvent(SystemEvent { event: b'O' }),
        ItchBody::TradingAction(TradingAction { stock: STOCK, state: b'T', reserved: b' ', reason: *b"IPOQ" }),
        ItchBody::ShortSaleRestriction(ShortSaleRestriction { stock: STOCK, action: b'1' }),
        ItchBody::ParticipantPosition(ParticipantPosition {
            participant: *b"MAKE",
            stock: STOCK,
            primary: b'Y',
            mode: b'N',
            state: b'A',
        }),
        ItchBody::BreakerLevels(BreakerLevels { one: 300_000_000_000, two: 280_000_000_000, three: 260_000_000_000 }),
        ItchBody::BreakerStatus(BreakerStatus { level: b'2' }),
        ItchBody::IpoQuotation(IpoQuotation { stock: STOCK, release: 36_000, qualifier: b'A', price: 210_000 }),
        ItchBody::AuctionCollar(AuctionCollar { stock: STOCK, reference: 5, upper: 6, lower: 4, extension: 1 }),
        ItchBody::Add(Add { order: 1, side: b'B', shares: 200, stock: STOCK, price: 1_234_500 }),
        ItchBody::AddAttributed(AddAttributed {
            order: 2,
            side: b'S',
            shares: 300,
            stock: STOCK,
            price: 1_234_600,
            participant: *b"MAKE",
        }),
        ItchBody::Executed(Executed { order: 1, shares: 50, matched: 900 }),
        ItchBody::ExecutedAt(ExecutedAt { order: 2, shares: 60, matched: 901, printable: b'Y', price: 1_234_550 }),
        ItchBody::Cancelled(Cancelled { order: 1, shares: 10 }),
        ItchBody::Replaced(Replaced { before: 1, order: 3, shares: 70, price: 1_234_400 }),
        ItchBody::Delete(Delete { order: 3 }),
        ItchBody::HiddenTrade(HiddenTrade { order: 0, side: b'B', shares: 9, stock: STOCK, price: 7, matched: 902 }),
        ItchBody::CrossTrade(CrossTrade { shares: 1 << 40, stock: STOCK, price: 8, matched: 903, cross: b'O' }),
        ItchBody::BrokenTrade(BrokenTrade { matched: 903 }),
        ItchBody::Imbalance(Imbalance {
            paired: 1,
            imbalance: 2,
            direction: b'B',
            stock: STOCK,
            far: 3,
            near: 4,
            reference: 5,
            cross: b'C',
            variation: b'L',
        }),
        ItchBody::RetailInterest(RetailInterest { stock: STOCK, interest: b'A' }),
    ]
}

#[test]
fn a_reader_of_others_reads_our_itch_file() {
    let mut file = Vec::new();
    for (at, body) in bodies().into_iter().enumerate() {
        let header = ItchHeader { locate: 17, tracking: 2, nanoseconds: 34_200_000_000_000 + at as u64 };
        let mut bytes = Vec::new();
        ItchMessage { header, body }.encode(&mut bytes).expect("in time");
        assert!(put_frame(&bytes, &mut file));
    }
    let read: Vec<_> = itchy::MessageStream::from_reader(&file[..]).collect::<Result<_, _>>().expect("all are read");
    assert_eq!(read.len(), bodies().len());
    for ((at, ours), theirs) in bodies().into_iter().enumerate().zip(&read) {
        assert_eq!((theirs.tag, theirs.stock_locate, theirs.tracking_number), (ours.kind(), 17, 2));
        assert_eq!(theirs.timestamp, 34_200_000_000_000 + at as u64);
        assert!(is_same(&ours, &theirs.body), "{ours:?} {theirs:?}");
    }
}

/// The first and the last moment of a UTC day, and the largest numbers that fields have.
#[test]
fn a_reader_of_others_reads_midnight_and_the_limits_of_u32() {
    const DAY: u64 = 86_400_000_000_000;
    let (order, shares, price, matched) = (u64::MAX, u32::MAX, u32::MAX, u64::MAX);
    let bodies = [
        ItchBody::Add(Add { order, side: b'B', shares, stock: STOCK, price }),
        ItchBody::Executed(Executed { order, shares, matched }),
        ItchBody::ExecutedAt(ExecutedAt { order, shares, matched, printable: b'Y', price }),
        ItchBody::Cancelled(Cancelled { order, shares }),
        ItchBody::Replaced(Replaced { before: order, order, shares, price }),
        ItchBody::Delete(Delete { order }),
    ];
    let mut file = Vec::new();
    let moments = [0, 1, DAY - 1];
    for nanoseconds in moments {
        for body in &bodies {
            let header = ItchHeader { locate: u16::MAX, tracking: u16::MAX, nanoseconds };
            let mut bytes = Vec::new();
            ItchMessage { header, body: *body }.encode(&mut bytes).expect("in a day");
            assert!(put_frame(&bytes, &mut file));
        }
    }
    let read: Vec<_> = itchy::MessageStream::from_reader(&file[..]).collect::<Result<_, _>>().expect("all are read");
    assert_eq!(read.len(), moments.len() * bodies.len());
    let expected = moments.iter().flat_map(|moment| bodies.iter().map(move |body| (*moment, body)));
    for (theirs, (moment, ours)) in read.iter().zip(expected) {
        assert_eq!((theirs.timestamp, theirs.stock_locate, theirs.tracking_number), (moment, u16::MAX, u16::MAX));
        assert!(is_same(ours, &theirs.body), "{ours:?} {theirs:?}");
    }
}

/// Whether both say the same, for the messages of a book.
fn is_same(ours: &ItchBody, theirs: &Theirs) -> bool {
    match (ours, theirs) {
        (ItchBody::Add(a), Theirs::AddOrder(b)) => {
            (a.order, a.shares, a.price, b.mpid.is_none()) == (b.reference, b.shares, b.price.raw(), true)
                && b.side == itchy::Side::Buy
                && b.stock.trim_end() == "WALRUS"
        }
        (ItchBody::AddAttributed(a), Theirs::AddOrder(b)) => {
            (a.order, a.shares, a.price) == (b.reference, b.shares, b.price.raw())
                && b.side == itchy::Side::Sell
                && b.mpid.as_deref() == Some("MAKE")
        }
        (ItchBody::Executed(a), Theirs::OrderExecuted { reference, executed, match_number }) => {
            (a.order, a.shares, a.matched) == (*reference, *executed, *match_number)
        }
        (
            ItchBody::ExecutedAt(a),
            Theirs::OrderExecutedWithPrice { reference, executed, match_number, printable, price },
        ) => {
            (a.order, a.shares, a.matched, a.price, true)
                == (*reference, *executed, *match_number, price.raw(), *printable)
        }
        (ItchBody::Cancelled(a), Theirs::OrderCancelled { reference, cancelled }) => {
            (a.order, a.shares) == (*reference, *cancelled)
        }
        (ItchBody::Replaced(a), Theirs::ReplaceOrder(b)) => {
            (a.before, a.order, a.shares, a.price) == (b.old_reference, b.new_reference, b.shares, b.price.raw())
        }
        (ItchBody::Delete(a), Theirs::DeleteOrder { reference }) => a.order == *reference,
        (ItchBody::CrossTrade(a), Theirs::CrossTrade(b)) => {
            (a.shares, a.matched, a.price) == (b.shares, b.match_number, b.cross_price.raw())
        }
        (ItchBody::Imbalance(a), Theirs::Imbalance(b)) => {
            (a.paired, a.imbalance, a.far, a.near)
                == (b.paired_shares, b.imbalance_shares, b.far_price.raw(), b.near_price.raw())
        }
        (ItchBody::Add(_) | ItchBody::AddAttributed(_) | ItchBody::Executed(_) | ItchBody::Delete(_), _) => false,
        _ => true,
    }
}
