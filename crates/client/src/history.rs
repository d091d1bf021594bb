//! The history of an account: its orders, fills, transfers and balances, and the definite answer about an order.

use api::{BalancesBody, FillsBody, OrderFateBody, OrdersBody, TransfersBody};
use primitives::{Address, ClientId, Height, Sequence};
use serde::de::DeserializeOwned;

use crate::error::ClientError;
use crate::node::NodeClient;

/// The part of a history that is asked for. Answers begin with the newest; `next` of one is the `cursor` of the page
/// after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryPage {
    /// At most so many rows; the node has a maximum of its own.
    pub limit: Option<usize>,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// The lowest height.
    pub since: Option<Height>,
}

impl HistoryPage {
    /// The newest rows.
    pub const NEWEST: HistoryPage = HistoryPage { limit: None, cursor: None, since: None };

    fn query(&self, offer: Option<Sequence>) -> String {
        let parts = [
            self.limit.map(|limit| format!("limit={limit}")),
            self.cursor.as_ref().map(|cursor| format!("cursor={cursor}")),
            self.since.map(|since| format!("since={since}")),
            offer.map(|offer| format!("offer={offer}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
    }
}

impl NodeClient {
    /// Orders of an account: what it asked for, the outcome, and how each stands now.
    ///
    /// # Errors
    /// [`ClientError`], also if the node keeps no history, or none that is so old.
    pub fn history_orders(&self, account: &Address, page: &HistoryPage) -> Result<OrdersBody, ClientError> {
        self.get(&format!("/v1/accounts/{account}/orders{}", page.query(None)))
    }

    /// Fills of an account's offers, or of one.
    ///
    /// # Errors
    /// Those of [`history_orders`](Self::history_orders).
    pub fn history_fills(
        &self,
        account: &Address,
        offer: Option<Sequence>,
        page: &HistoryPage,
    ) -> Result<FillsBody, ClientError> {
        self.get(&format!("/v1/accounts/{account}/fills{}", page.query(offer)))
    }

    /// Units that an account paid and received by native operations.
    ///
    /// # Errors
    /// Those of [`history_orders`](Self::history_orders).
    pub fn history_transfers(&self, account: &Address, page: &HistoryPage) -> Result<TransfersBody, ClientError> {
        self.get(&format!("/v1/accounts/{account}/transfers{}", page.query(None)))
    }

    /// What an account had after the blocks that changed it.
    ///
    /// # Errors
    /// Those of [`history_orders`](Self::history_orders).
    pub fn history_balances(&self, account: &Address, page: &HistoryPage) -> Result<BalancesBody, ClientError> {
        self.get(&format!("/v1/accounts/{account}/balances{}", page.query(None)))
    }

    /// The definite answer about the order with a number; `None` if the node has indexed none and took none, which a
    /// node that does not keep everything cannot say of old ones.
    ///
    /// # Errors
    /// Those of [`history_orders`](Self::history_orders).
    pub fn order_fate(&self, account: &Address, number: Sequence) -> Result<Option<OrderFateBody>, ClientError> {
        known(self.get(&format!("/v1/accounts/{account}/orders/{number}")))
    }

    /// The same about the order that its client gave this name.
    ///
    /// # Errors
    /// Those of [`history_orders`](Self::history_orders).
    pub fn order_fate_of_client(
        &self,
        account: &Address,
        client: &ClientId,
    ) -> Result<Option<OrderFateBody>, ClientError> {
        known(self.get(&format!("/v1/accounts/{account}/clients/{client}")))
    }
}

/// A node without a history does not know; it must not be taken for one that knows of no order.
fn known<T: DeserializeOwned>(answer: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
    match answer {
        Err(error) if error.code() == Some("order_unknown") => Ok(None),
        answer => answer.map(Some),
    }
}
