//! Another reader of ITCH 5.0 that others wrote (`itch5`, which casts bytes where they lie) reads what this crate
//! writes.

use std::ops::ControlFlow;

use itch5::messages::{
    AddOrderNoMPIDAttribution, BrokenTrade as TheirBroken, BuySellIndicator, CrossTrade as TheirCross, CrossType,
    OrderCancel, OrderDelete, OrderExecuted, OrderExecutedWithPrice, OrderReplace, Printable, Timestamp,
};
use itch5::{MessageHandler, Parser};
use proptest::prelude::*;
use protocols::frames::put_frame;
use protocols::itch::*;

const STOCK: [u8; 8] = *b"WALRUS  ";
const DAY: u64 = 86_400_000_000_000;

/// What was read, in this crate's words.
#[derive(Default)]
struct Reader(Vec<ItchMessage>);

impl Reader {
    fn add(&mut self, locate: u16, tracking: u16, time: &Timestamp, body: ItchBody) -> ControlFlow<()> {
        let header = ItchHeader { locate, tracking, nanoseconds: time.to_u64() };
        self.0.push(ItchMessage { header, body });
        ControlFlow::Continue(())
    }
}

impl MessageHandler for Reader {
    fn on_add_order_no_mpid_attribution(&mut self, of: &AddOrderNoMPIDAttribution) -> ControlFlow<()> {
        let side = if matches!(of.buy_sell_indicator(), BuySellIndicator::Buy) { b'B' } else { b'S' };
        let (order, shares, price) = (of.order_reference_number(), of.shares(), of.price().into_u32());
        let stock = of.stock().to_u64().to_be_bytes();
        let body = ItchBody::Add(Add { order, side, shares, stock, price });
        self.add(of.stock_locate(), of.tracking_number(), of.timestamp(), body)
    }

    fn on_order_executed(&mut self, of: &OrderExecuted) -> ControlFlow<()> {
        let (order, shares, matched) = (of.order_reference_number(), of.executed_shares(), of.match_number());
        let body = ItchBody::Executed(Executed { order, shares, matched });
        self.add(of.stock_locate(), of.tracking_number(), of.timestamp(), body)
    }

    fn on_order_executed_with_price(&mut self, of: &OrderExecutedWithPrice) -> ControlFlow<()> {
        let (order, shares, matched) = (of.order_reference_number(), of.executed_shares(), of.match_number());
        let printable = if matches!(of.printable(), Printable::Printable) { b'Y' } else { b'N' };
        let price = of.execution_price().into_u32();
        let body = ItchBody::ExecutedAt(ExecutedAt { order, shares, matched, printable, price });
        self.add(of.stock_locate(), of.tracking_number(), of.timestamp(), body)
    }

    fn on_order_cancel(&mut self, of: &OrderCancel) -> ControlFlow<()> {
        let (order, shares) = (of.order_reference_number(), of.cancelled_shares());
        let body = ItchBody::Cancelled(Cancelled { order, shares });
        self.add(of.stock_locate(), of.tracking_number(), of.timestamp(), body)
    }

    fn on_order_delete(&mut self, of: &OrderDelete) -> ControlFlow<()> {
        let body = ItchBody::Delete(Delete { order: of.order_reference_number() });
        self.add(of.stock_locate(), of.tracking_number(), of.timestamp(), body)
    }

    fn on_order_replace(&mut self, of: &OrderReplace) -> ControlFlow<()> {
        let (before, order) = (of.original_order_reference_number(), of.new_order_reference_number());
        let body = ItchBody::Replaced(Replaced { before, order, shares: of.shares(), price: of.price().into_u32() });
        self.add(of.stock_locate(), of.tracking_number(), of.timestamp(), body)
    }

    fn on_cross_trade(&mut self, of: &TheirCross) -> ControlFlow<()> {
        let (shares, stock) = (of.shares(), of.stock().to_u64().to_be_bytes());
        let cross = if matches!(of.cross_type(), CrossType::NasdaqOpeningCross) { b'O' } else { b'C' };
        let (price, matched) = (of.cross_price().into_u32(), of.match_number());
        let body = ItchBody::CrossTrade(CrossTrade { shares, stock, price, matched, cross });
        self.add(of.stock_locate(), of.tracking_number(), of.timestamp(), body)
    }

    fn on_broken_trade(&mut self, of: &TheirBroken) -> ControlFlow<()> {
        let body = ItchBody::BrokenTrade(BrokenTrade { matched: of.match_number() });
        self.add(of.stock_locate(), of.tracking_number(), of.timestamp(), body)
    }
}

fn body() -> impl Strategy<Value = ItchBody> {
    let side = prop_oneof![Just(b'B'), Just(b'S')];
    let printable = prop_oneof![Just(b'Y'), Just(b'N')];
    prop_oneof![
        (any::<u64>(), side, any::<u32>(), any::<u32>()).prop_map(|(order, side, shares, price)| ItchBody::Add(Add {
            order,
            side,
            shares,
            stock: STOCK,
            price
        })),
        (any::<u64>(), any::<u32>(), any::<u64>()).prop_map(|(order, shares, matched)| ItchBody::Executed(Executed {
            order,
            shares,
            matched
        })),
        (any::<u64>(), any::<u32>(), any::<u64>(), printable, any::<u32>()).prop_map(
            |(order, shares, matched, printable, price)| ItchBody::ExecutedAt(ExecutedAt {
                order,
                shares,
                matched,
                printable,
                price
            })
        ),
        (any::<u64>(), any::<u32>()).prop_map(|(order, shares)| ItchBody::Cancelled(Cancelled { order, shares })),
        any::<u64>().prop_map(|order| ItchBody::Delete(Delete { order })),
        (any::<u64>(), any::<u64>(), any::<u32>(), any::<u32>()).prop_map(|(before, order, shares, price)| {
            ItchBody::Replaced(Replaced { before, order, shares, price })
        }),
        (any::<u64>(), any::<u32>(), any::<u64>()).prop_map(|(shares, price, matched)| {
            ItchBody::CrossTrade(CrossTrade { shares, stock: STOCK, price, matched, cross: b'O' })
        }),
        any::<u64>().prop_map(|matched| ItchBody::BrokenTrade(BrokenTrade { matched })),
    ]
}

proptest! {
    /// Every field of the messages that build a book, up to its limits, at any moment of a day.
    #[test]
    fn a_reader_that_casts_bytes_reads_each_field_of_our_books(
        messages in prop::collection::vec((any::<u16>(), any::<u16>(), 0..DAY, body()), 1..40)
    ) {
        let message = |(locate, tracking, nanoseconds, body)| {
            ItchMessage { header: ItchHeader { locate, tracking, nanoseconds }, body }
        };
        let ours: Vec<ItchMessage> = messages.into_iter().map(message).collect();
        let mut file = Vec::new();
        for message in &ours {
            let mut bytes = Vec::new();
            message.encode(&mut bytes).expect("in a day");
            prop_assert!(put_frame(&bytes, &mut file));
        }
        let mut theirs = Reader::default();
        Parser::new(&file).parse_stream(&mut theirs).expect("all are read");
        prop_assert_eq!(theirs.0, ours);
    }
}
