//! Orders that clients of this node have placed lately, so that it can answer about one that is in no block yet, and
//! keeps two orders of an account from having one client id at the same time.
//!
//! An order is noted once its signature holds, just before the pool decides, and taken back if the pool refuses it. So
//! nobody notes anything in the name of another account: whoever only knows its address and its numbers changes nothing
//! here. Several transactions of one number are several notes, and taking one back leaves the others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use primitives::{Address, ClientId, Height, Sequence, Transaction, TransactionId};

/// Number of orders that are remembered.
const REMEMBERED: usize = 100_000;
const LOWEST: TransactionId = primitives::Digest([0; 32]);
const HIGHEST: TransactionId = primitives::Digest([u8::MAX; 32]);

/// An order that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedOrder {
    /// The transaction.
    pub id: TransactionId,
    /// The account's number of it.
    pub sequence: Sequence,
    /// The last height at which it may count.
    pub until: Height,
}

/// See the module text.
#[derive(Default)]
pub struct TakenOrders(Mutex<Taken>);

/// A number of an account, then the end of an order of this number, and its transaction.
type OrderKey = (Address, Sequence, Height, TransactionId);
/// A client id of an account, and the same.
type ClientKey = (Address, ClientId, Sequence, Height, TransactionId);

#[derive(Default)]
struct Taken {
    orders: BTreeMap<OrderKey, ClientId>,
    clients: BTreeSet<ClientKey>,
    oldest_first: VecDeque<OrderKey>,
}

/// An order that was noted before the pool has decided.
#[derive(Debug)]
pub struct Noted(OrderKey);

fn placed(sequence: Sequence, until: Height, id: TransactionId) -> PlacedOrder {
    PlacedOrder { id, sequence, until }
}

impl TakenOrders {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an order whose signature holds, and about which the pool decides next, above a height. Other transactions,
    /// those that end later than any may, and those that are noted already are not noted.
    ///
    /// # Errors
    /// The other order of the account that has its client id and is not void.
    pub fn note(
        &self,
        transaction: &Transaction,
        id: TransactionId,
        height: Height,
        until_max: Height,
    ) -> Result<Option<Noted>, PlacedOrder> {
        let body = &transaction.body;
        let Some(client) = body.operation.client() else { return Ok(None) };
        let mut taken = self.taken();
        let is_other = |order: &PlacedOrder| order.sequence != body.sequence && order.until > height;
        let other = taken.with_client(&body.account, client).rfind(is_other);
        if let Some(other) = other {
            return Err(other);
        }
        let key = (body.account, body.sequence, body.until, id);
        let may_count = body.until.saturating_sub(height.saturating_add(1)) <= until_max;
        let is_new = may_count && taken.insert(key, client);
        Ok(is_new.then_some(Noted(key)))
    }

    /// Takes back what was noted: the pool has refused it.
    pub fn take_back(&self, Noted(key): Noted) {
        self.taken().remove(&key);
    }

    /// The orders with a number, the one that ends last first.
    pub fn with_number(&self, account: &Address, number: Sequence) -> Vec<PlacedOrder> {
        let taken = self.taken();
        let (first, last) = ((*account, number, 0, LOWEST), (*account, number, Height::MAX, HIGHEST));
        let all = taken.orders.range(first..=last);
        all.rev().map(|((_, sequence, until, id), _)| placed(*sequence, *until, *id)).collect()
    }

    /// The orders of an account with the highest numbers, by number; of those with one number the one that ends last.
    pub fn of(&self, account: &Address, count: usize) -> Vec<PlacedOrder> {
        let taken = self.taken();
        let (first, last) = ((*account, 0, 0, LOWEST), (*account, Sequence::MAX, Height::MAX, HIGHEST));
        let mut orders: Vec<PlacedOrder> = Vec::new();
        for ((_, sequence, until, id), _) in taken.orders.range(first..=last).rev() {
            if orders.last().is_some_and(|above| above.sequence == *sequence) {
                continue;
            }
            if orders.len() == count {
                break;
            }
            orders.push(placed(*sequence, *until, *id));
        }
        orders.reverse();
        orders
    }

    /// The orders with a client's name, the one with the highest number that ends last first.
    pub fn with_client(&self, account: &Address, client: &ClientId) -> Vec<PlacedOrder> {
        self.taken().with_client(account, *client).rev().collect()
    }
}

impl Taken {
    /// By number, then by end. Zeros are no name, and no order is kept by them.
    fn with_client(&self, account: &Address, client: ClientId) -> impl DoubleEndedIterator<Item = PlacedOrder> {
        let first = (*account, client, 0, 0, LOWEST);
        let last = (*account, client, Sequence::MAX, Height::MAX, HIGHEST);
        let all = self.clients.range(first..=last);
        all.map(|(_, _, sequence, until, id)| placed(*sequence, *until, *id))
    }

    fn insert(&mut self, key: OrderKey, client: ClientId) -> bool {
        if self.orders.contains_key(&key) {
            return false;
        }
        let (account, sequence, until, id) = key;
        self.orders.insert(key, client);
        if client != ClientId::NONE {
            self.clients.insert((account, client, sequence, until, id));
        }
        self.oldest_first.push_back(key);
        while self.oldest_first.len() > REMEMBERED {
            if let Some(oldest) = self.oldest_first.pop_front() {
                self.remove(&oldest);
            }
        }
        true
    }

    fn remove(&mut self, key: &OrderKey) {
        if let Some(client) = self.orders.remove(key) {
            let (account, sequence, until, id) = *key;
            self.clients.remove(&(account, client, sequence, until, id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primitives::{AssetId, Body, Life, Operation, Price, PublicKey, Signature};

    const UNTIL_MAX: Height = 1_000;

    fn order(sequence: Sequence, until: Height, client: u8) -> Transaction {
        let key = PublicKey([1; 32]);
        let (sell, buy, limit) = (AssetId(0), AssetId(1), Price::ONE);
        let client = ClientId([client; 16]);
        let operation = Operation::CreateOffer { sell, buy, amount: 1_000, limit, life: Life::Rests, client };
        let body = Body { chain: 1, account: key.address(), sequence, until, operation };
        Transaction::by_key(body, key, Signature([0; 64]))
    }

    fn account() -> Address {
        PublicKey([1; 32]).address()
    }

    fn note(taken: &TakenOrders, order: &Transaction, height: Height) -> Result<Option<Noted>, PlacedOrder> {
        taken.note(order, order.id(), height, UNTIL_MAX)
    }

    #[test]
    fn a_client_id_is_taken_until_its_order_is_void_or_refused() {
        let taken = TakenOrders::default();
        let first = note(&taken, &order(1, 50, 7), 10).ok().flatten().expect("noted");
        assert!(note(&taken, &order(1, 60, 7), 10).is_ok(), "a substitute has the number");
        let other = note(&taken, &order(2, 99, 7), 10).expect_err("a second order");
        assert_eq!((other.sequence, other.until), (1, 60));
        assert!(note(&taken, &order(2, 99, 0), 10).is_ok(), "zeros are no name");
        assert!(note(&taken, &order(3, 99, 7), 60).is_ok(), "the first is void");
        let of_client: Vec<_> =
            taken.with_client(&account(), &ClientId([7; 16])).iter().map(|of| of.sequence).collect();
        assert_eq!(of_client, [3, 1, 1]);
        taken.take_back(first);
        let left: Vec<Height> = taken.with_number(&account(), 1).iter().map(|order| order.until).collect();
        assert_eq!(left, [60], "the substitute stays");
    }

    #[test]
    fn what_the_pool_refused_gives_its_client_id_back_and_leaves_the_other_of_its_number() {
        let taken = TakenOrders::default();
        let noted = note(&taken, &order(1, 50, 7), 10).ok().flatten().expect("noted");
        taken.take_back(noted);
        assert!(note(&taken, &order(2, 50, 7), 10).is_ok());
        // Two others of this number come in one batch, and both are refused.
        let again = [60, 70].map(|until| note(&taken, &order(2, until, 8), 10).ok().flatten().expect("noted"));
        again.into_iter().for_each(|noted| taken.take_back(noted));
        let left: Vec<Height> = taken.with_number(&account(), 2).iter().map(|order| order.until).collect();
        assert_eq!(left, [50], "what stood stands");
        assert!(note(&taken, &order(2, 50, 7), 10).is_ok_and(|noted| noted.is_none()), "a repetition is noted already");
    }

    #[test]
    fn an_end_that_no_transaction_may_have_blocks_no_client_id() {
        let taken = TakenOrders::default();
        assert!(note(&taken, &order(1, Height::MAX, 7), 10).is_ok_and(|noted| noted.is_none()));
        assert!(note(&taken, &order(2, 50, 7), 10).is_ok());
        assert_eq!(taken.with_number(&account(), 1), []);
    }

    #[test]
    fn the_newest_orders_are_remembered() {
        let taken = TakenOrders::default();
        for sequence in 1..=REMEMBERED as u64 + 1 {
            assert!(note(&taken, &order(sequence, 50, 0), 10).is_ok());
        }
        assert_eq!(taken.with_number(&account(), 1), []);
        assert_eq!(taken.with_number(&account(), 2).len(), 1);
        let newest = REMEMBERED as u64 + 1;
        let numbers: Vec<Sequence> = taken.of(&account(), 2).iter().map(|order| order.sequence).collect();
        assert_eq!(numbers, [newest - 1, newest]);
        assert_eq!(taken.of(&PublicKey([2; 32]).address(), 2), []);
    }
}
