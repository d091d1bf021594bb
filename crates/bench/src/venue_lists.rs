//! Orders in lists of 32, each list under one signature, against what the signatures of the same orders would cost one
//! by one. The load is ladders: the new orders of a flow, 32 in a row by one owner.

use std::path::Path;
use std::time::Instant;

use ::venue::VenueInput;
use primitives::venue::{ListEntry, ORDER_LISTS_RULES, OrderList, SignedOrder};
use store::RealDisk;

use crate::flow::{FlowAction, FlowEvent};
use crate::venue_ahead::{STEPS_OF_BLOCK, VenueBenchError, inputs, trade_ahead};
use crate::venue_world::{VenueWorld, check, check_of_lists, sign, sign_list};

/// Orders of a list.
const ORDERS: usize = 32;

/// Times of one run, in seconds.
pub(crate) struct ListTimes {
    /// Orders.
    pub orders: f64,
    /// Of the orders' own signatures alone: the limit of single orders.
    pub check: f64,
    /// From the first signature until the last step, each order with a signature of its own.
    pub singles: f64,
    /// The same with lists.
    pub lists: f64,
    /// Orders of lists that were refused, and their fills.
    pub refused: u64,
    pub fills: u64,
}

/// The new orders of a flow, so many in a row by one owner.
fn ladder(flow: &[FlowEvent], owners: u32) -> Vec<FlowEvent> {
    let is_new = |event: &&FlowEvent| matches!(event.action, FlowAction::Rest(..) | FlowAction::Take(..));
    let owned = |(at, event): (usize, &FlowEvent)| FlowEvent { owner: (at / ORDERS) as u32 % owners, ..*event };
    flow.iter().filter(is_new).enumerate().map(owned).collect()
}

/// Trades the ladders of a flow, one by one and in lists, each below `folder`.
pub(crate) fn ladders(
    flow: &[FlowEvent],
    batch: usize,
    owners: u32,
    folder: &Path,
) -> Result<ListTimes, VenueBenchError> {
    let (flow, batch) = (ladder(flow, owners), batch.next_multiple_of(ORDERS));
    let orders = sign(&flow, 0, |at| VenueWorld::<RealDisk>::expiry(at, batch * STEPS_OF_BLOCK));
    let signed: Vec<SignedOrder> = orders.iter().flatten().copied().collect();
    let begun = Instant::now();
    signed.chunks(batch).for_each(|signed| drop(check(signed)));
    let check_s = begun.elapsed().as_secs_f64();

    let mut world = VenueWorld::under(ORDER_LISTS_RULES, RealDisk::new(folder.join("singles"))?, owners)?;
    let batches = flow.chunks(batch).zip(orders.chunks(batch)).enumerate();
    let singles = trade_ahead(
        &mut world,
        batches.map(|(at, (events, orders))| {
            let signed: Vec<SignedOrder> = orders.iter().flatten().copied().collect();
            inputs(events, orders, &check(&signed), at * batch)
        }),
    )?;

    let lists: Vec<(u32, OrderList)> = flow.chunks(ORDERS).zip(signed.chunks(ORDERS)).map(listed).collect();
    let mut world = VenueWorld::under(ORDER_LISTS_RULES, RealDisk::new(folder.join("lists"))?, owners)?;
    let lists = trade_ahead(&mut world, lists.chunks(batch / ORDERS).map(checked))?;
    let (refused, fills) = (world.refused, world.root().counts().0);
    Ok(ListTimes { orders: signed.len() as f64, check: check_s, singles, lists, refused, fills })
}

fn listed((events, orders): (&[FlowEvent], &[SignedOrder])) -> (u32, OrderList) {
    let entries = orders.iter().map(|signed| ListEntry { order: signed.order, replaces: None }).collect();
    (events[0].owner, sign_list(events[0].owner, entries))
}

fn checked(lists: &[(u32, OrderList)]) -> Vec<VenueInput> {
    let (owners, lists): (Vec<u32>, Vec<OrderList>) = lists.iter().cloned().unzip();
    let checked = check_of_lists(lists).into_iter().map(|list| list.expect("signed"));
    owners.into_iter().zip(checked).map(|(owner, list)| VenueInput::List(owner.into(), list)).collect()
}
