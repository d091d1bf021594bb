//! Orders that this node took lately, so that it can answer about one that is in no block yet, and keeps two orders of
//! an account from having one client id at the same time.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use primitives::{Address, ClientId, Height, Operation, Sequence, Transaction, TransactionId};

use super::Failure;

/// Number of orders that are remembered.
const REMEMBERED: usize = 100_000;

/// An order that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlacedOrder {
    /// The transaction.
    pub id: TransactionId,
    /// The account's number of it.
    pub sequence: Sequence,
    /// The last height at which it may count.
    pub until: Height,
    client: ClientId,
}

/// See the module text.
#[derive(Default)]
pub(super) struct Submitted(Mutex<Taken>);

#[derive(Default)]
struct Taken {
    orders: BTreeMap<(Address, Sequence), PlacedOrder>,
    clients: HashMap<(Address, ClientId), Sequence>,
    oldest_first: VecDeque<(Address, Sequence)>,
}

/// An order that was noted before the pool has answered.
pub(super) struct Noted {
    account: Address,
    order: PlacedOrder,
    /// What had its number before.
    before: Option<PlacedOrder>,
}

impl Submitted {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an order that is about to be submitted above a height; other transactions are not noted.
    ///
    /// # Errors
    /// 409 if another order of the account has its client id and is not void.
    pub(super) fn note(&self, transaction: &Transaction, height: Height) -> Result<Option<Noted>, Failure> {
        let body = &transaction.body;
        let client = match &body.operation {
            Operation::CreateOffer { client, .. } | Operation::Exact { client, .. } => *client,
            Operation::Replace(replace) => replace.client,
            _ => return Ok(None),
        };
        let order = PlacedOrder { id: transaction.id(), sequence: body.sequence, until: body.until, client };
        let mut taken = self.taken();
        if let Some(other) = taken.with_client(&body.account, &client)
            && other.sequence != order.sequence
            && other.until > height
        {
            let message = format!(
                "client: order {} of this account has this client id and may count until block {}: ask \
                 /v1/accounts/{}/clients/{client} about it, and take another id for another order",
                other.sequence, other.until, body.account
            );
            return Err(Failure::new(StatusCode::CONFLICT, "client_id_used", message));
        }
        let before = taken.insert(body.account, order);
        Ok(Some(Noted { account: body.account, order, before }))
    }

    /// Takes back what was noted: the pool has refused it.
    pub(super) fn take_back(&self, Noted { account, order, before }: Noted) {
        let mut taken = self.taken();
        if taken.orders.get(&(account, order.sequence)) != Some(&order) || before == Some(order) {
            return;
        }
        taken.remove(&(account, order.sequence));
        if let Some(before) = before {
            taken.insert(account, before);
        }
    }

    /// The order with a number.
    pub(super) fn with_number(&self, account: &Address, number: Sequence) -> Option<PlacedOrder> {
        self.taken().orders.get(&(*account, number)).copied()
    }

    /// The orders of an account with the highest numbers, by number.
    pub(super) fn of(&self, account: &Address, count: usize) -> Vec<PlacedOrder> {
        let taken = self.taken();
        let all = taken.orders.range((*account, 0)..=(*account, Sequence::MAX));
        let mut orders: Vec<PlacedOrder> = all.rev().take(count).map(|(_, order)| *order).collect();
        orders.reverse();
        orders
    }

    /// The order with a client's name.
    pub(super) fn with_client(&self, account: &Address, client: &ClientId) -> Option<PlacedOrder> {
        self.taken().with_client(account, client)
    }
}

impl Taken {
    fn with_client(&self, account: &Address, client: &ClientId) -> Option<PlacedOrder> {
        if *client == ClientId::NONE {
            return None;
        }
        let sequence = *self.clients.get(&(*account, *client))?;
        self.orders.get(&(*account, sequence)).copied()
    }

    fn insert(&mut self, account: Address, order: PlacedOrder) -> Option<PlacedOrder> {
        let key = (account, order.sequence);
        let before = self.orders.insert(key, order);
        match before {
            None => self.oldest_first.push_back(key),
            Some(before) if before.client != order.client => drop(self.clients.remove(&(account, before.client))),
            Some(_) => {}
        }
        if order.client != ClientId::NONE {
            self.clients.insert((account, order.client), order.sequence);
        }
        while self.oldest_first.len() > REMEMBERED {
            let oldest = self.oldest_first.pop_front().expect("many");
            self.remove(&oldest);
        }
        before
    }

    fn remove(&mut self, key: &(Address, Sequence)) {
        if let Some(order) = self.orders.remove(key) {
            let client = (key.0, order.client);
            if self.clients.get(&client) == Some(&order.sequence) {
                self.clients.remove(&client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primitives::{AssetId, Body, Life, Price, PublicKey, Signature};

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

    #[test]
    fn a_client_id_is_taken_until_its_order_is_void_or_refused() {
        let submitted = Submitted::default();
        let first = submitted.note(&order(1, 50, 7), 10).ok().flatten().expect("noted");
        assert!(submitted.note(&order(1, 60, 7), 10).is_ok(), "a substitute has the number");
        let refused = submitted.note(&order(2, 99, 7), 10).err().expect("a second order");
        assert_eq!((refused.0, &*refused.1.code), (StatusCode::CONFLICT, "client_id_used"));
        assert!(submitted.note(&order(2, 99, 0), 10).is_ok(), "zeros are no name");
        assert!(submitted.note(&order(3, 99, 7), 60).is_ok(), "the first is void");
        let of_client = submitted.with_client(&account(), &ClientId([7; 16])).expect("the newest");
        assert_eq!(of_client.sequence, 3);
        submitted.take_back(first);
        assert_eq!(submitted.with_number(&account(), 1).map(|order| order.until), Some(60), "the substitute stays");
    }

    #[test]
    fn what_the_pool_refused_gives_its_client_id_back() {
        let submitted = Submitted::default();
        let noted = submitted.note(&order(1, 50, 7), 10).ok().flatten().expect("noted");
        submitted.take_back(noted);
        assert!(submitted.note(&order(2, 50, 7), 10).is_ok());
        let again = submitted.note(&order(2, 60, 7), 10).ok().flatten().expect("noted");
        submitted.take_back(again);
        assert_eq!(submitted.with_number(&account(), 2).map(|order| order.until), Some(50), "what stood stands");
    }

    #[test]
    fn the_newest_orders_are_remembered() {
        let submitted = Submitted::default();
        for sequence in 1..=REMEMBERED as u64 + 1 {
            assert!(submitted.note(&order(sequence, 50, 0), 10).is_ok());
        }
        assert_eq!(submitted.with_number(&account(), 1), None);
        assert!(submitted.with_number(&account(), 2).is_some());
        let newest = REMEMBERED as u64 + 1;
        let numbers: Vec<Sequence> = submitted.of(&account(), 2).iter().map(|order| order.sequence).collect();
        assert_eq!(numbers, [newest - 1, newest]);
        assert_eq!(submitted.of(&PublicKey([2; 32]).address(), 2), []);
    }
}
