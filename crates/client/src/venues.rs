//! Venues of continuous markets, as a node shows them, and the trees that prove what a venue settled.

use api::{
    EndedBody, FillTreeBody, IncarnationsBody, SettledFillBody, TradingKeyAtBody, TradingKeyBody, TradingKeysBody,
    VenueAtBody, VenueBody, VenueDepositBody, VenueDepositsBody, VenueMarketBody, VenueMarketsBody, VenueSettlesBody,
    VenuesBody,
};
use primitives::venue::{EndedIncarnation, FillTree, VenueId};
use primitives::{Address, Digest, Height, PublicKey};

use crate::error::ClientError;
use crate::node::NodeClient;

/// Entries in a page.
const PAGE: usize = 1_000;
/// How often a list that spans pages is read again because the chain went on meanwhile.
const AGAIN_MAX: u32 = 20;

/// A fill that a venue settled, with its block.
#[derive(Clone, Debug, PartialEq)]
pub struct FillAt {
    /// Height of the block.
    pub height: Height,
    /// Its leaf.
    pub leaf: Digest,
    /// What became of it.
    pub shown: SettledFillBody,
}

/// Venues, deposits and custody at one height.
#[derive(Clone, Debug)]
pub struct VenueCustody {
    /// The venues, with the sums that the node counts from block to block.
    pub venues: VenuesBody,
    /// All deposits.
    pub deposits: Vec<VenueDepositBody>,
}

impl NodeClient {
    /// The venues of the chain, with their terms.
    ///
    /// # Errors
    /// [`ClientError`]; absence if the chain has none.
    pub fn venues(&self) -> Result<VenuesBody, ClientError> {
        let mut all: VenuesBody = self.get(&format!("/v1/venues?limit={PAGE}"))?;
        while let Some(next) = all.next.take() {
            let page: VenuesBody = self.get(&format!("/v1/venues?limit={PAGE}&cursor={next}"))?;
            all.venues.extend(page.venues);
            all.next = page.next;
        }
        Ok(all)
    }

    /// A venue.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn venue(&self, venue: VenueId) -> Result<VenueBody, ClientError> {
        let body: VenueAtBody = self.get(&format!("/v1/venues/{venue}"))?;
        Ok(body.venue)
    }

    /// The markets of a venue.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn venue_markets(&self, venue: VenueId) -> Result<Vec<VenueMarketBody>, ClientError> {
        self.pages(&format!("/v1/venues/{venue}/markets"), |page: VenueMarketsBody| (page.markets, page.next))
    }

    /// The deposits of an account at all venues.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn deposits(&self, account: &Address) -> Result<Vec<VenueDepositBody>, ClientError> {
        self.pages(&format!("/v1/accounts/{account}/deposits"), |page: VenueDepositsBody| (page.deposits, page.next))
    }

    /// The trading keys of an account at all venues.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn trading_keys(&self, account: &Address) -> Result<Vec<TradingKeyBody>, ClientError> {
        self.pages(&format!("/v1/accounts/{account}/trading-keys"), |page: TradingKeysBody| (page.keys, page.next))
    }

    /// A trading key of a venue; `None` if nobody authorised it.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn trading_key(&self, venue: VenueId, key: &PublicKey) -> Result<Option<TradingKeyBody>, ClientError> {
        let found: Option<TradingKeyAtBody> = self.find(&format!("/v1/venues/{venue}/keys/{key}"))?;
        Ok(found.map(|found| found.key))
    }

    /// All venues and all deposits at one height.
    ///
    /// # Errors
    /// [`ClientError`], also if the chain goes on faster than the pages come.
    pub fn custody(&self) -> Result<VenueCustody, ClientError> {
        for _ in 0..AGAIN_MAX {
            let venues = self.venues()?;
            let mut deposits = Vec::new();
            let mut heights = vec![venues.height];
            for venue in &venues.venues {
                let path = format!("/v1/venues/{}/deposits", venue.venue);
                deposits.extend(self.pages(&path, |page: VenueDepositsBody| {
                    heights.push(page.height);
                    (page.deposits, page.next)
                })?);
            }
            if heights.iter().all(|height| *height == venues.height) {
                return Ok(VenueCustody { venues, deposits });
            }
        }
        Err(self.foreign("it makes blocks faster than it shows all deposits: audit a home, or another node"))
    }

    /// The fills of an incarnation that are settled, from the first on.
    ///
    /// # Errors
    /// [`ClientError`], also if the node no longer has the first ones, or leaves one out.
    pub fn settled(&self, venue: VenueId, incarnation: u32) -> Result<Vec<FillAt>, ClientError> {
        let (mut all, mut from) = (Vec::<FillAt>::new(), "0".to_string());
        loop {
            let path = format!("/v1/venues/{venue}/settles?incarnation={incarnation}&from={from}");
            let page: VenueSettlesBody = self.get(&path)?;
            for settled in page.settles {
                for shown in settled.settle.fills {
                    if shown.index != all.len().to_string() {
                        return Err(self.foreign(&format!(
                            "fill {} of incarnation {incarnation} is missing: it no longer keeps the block, or was \
                             started a moment ago and still reads old blocks",
                            all.len()
                        )));
                    }
                    let leaf = self.number("leaf", &shown.leaf)?;
                    all.push(FillAt { height: settled.height, leaf, shown });
                }
            }
            match page.next {
                Some(next) => from = next,
                None => return Ok(all),
            }
        }
    }

    /// The ended incarnations of a venue, with the trees that their settles make: the leaves of `finals`.
    ///
    /// # Errors
    /// [`ClientError`], also if they are not those that the venue's record names.
    pub fn ended(&self, venue: &VenueBody) -> Result<Vec<EndedIncarnation>, ClientError> {
        let path = format!("/v1/venues/{}/incarnations", venue.venue);
        let shown: Vec<EndedBody> = self.pages(&path, |page: IncarnationsBody| (page.ended, page.next))?;
        let mut ended = Vec::new();
        let mut finals = FillTree::default();
        for one in shown {
            let keys = one.report_keys.iter().map(|key| self.number("report key", key)).collect::<Result<_, _>>()?;
            let incarnation = EndedIncarnation {
                incarnation: one.incarnation,
                tree: tree_of(&self.settled(venue.venue, one.incarnation)?),
                report_keys: keys,
                height: one.fence_height,
                time_ms: one.fence_ms,
            };
            finals.append(incarnation.leaf(venue.venue));
            ended.push(incarnation);
        }
        if finals != self.fill_tree(&venue.finals)? {
            return Err(self.foreign(
                "what it shows of ended incarnations is not what the ledger has: it does not keep all of their blocks",
            ));
        }
        Ok(ended)
    }

    /// A tree as a node shows it.
    ///
    /// # Errors
    /// [`ClientError::Foreign`] if it is none.
    pub fn fill_tree(&self, body: &FillTreeBody) -> Result<FillTree, ClientError> {
        let peaks = body.peaks.iter().map(|peak| self.number("peak", peak)).collect::<Result<_, _>>()?;
        let tree = FillTree::of(self.number("count", &body.count)?, peaks);
        tree.ok_or_else(|| self.foreign("a tree has another number of peaks than its count says"))
    }

    /// All rows of a list that comes in pages.
    fn pages<P: serde::de::DeserializeOwned, T>(
        &self,
        path: &str,
        mut rows: impl FnMut(P) -> (Vec<T>, Option<String>),
    ) -> Result<Vec<T>, ClientError> {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let (page, next) = rows(self.get(&format!("{path}?limit={PAGE}{cursor}"))?);
            all.extend(page);
            match next {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Ok(all),
            }
        }
    }
}

/// The tree of settled fills.
pub fn tree_of(fills: &[FillAt]) -> FillTree {
    let mut tree = FillTree::default();
    fills.iter().for_each(|fill| assert!(tree.append(fill.leaf), "a count of 64 bits"));
    tree
}
