//! What a root is told once; it stands in the first record of its journal.

use borsh::{BorshDeserialize, BorshSerialize};
use matching::BookLimits;
use primitives::venue::{Delay, GROUP_FILLS_MAX, PPM, VENUE_SIGNATURES_PER_SUB_BLOCK, VenueId, VenueOperator};
use primitives::{Amount, Digest, Height, MAX_ISSUED, WEIGHT_BYTES};

/// The most bytes of an order in a settle, with its signature.
pub(crate) const ORDER_BYTES_MAX: usize = 32 + 4 + 10 + 10 + 3 + 4 + 4 + 8 + 9 + 4 + 65;
/// The most bytes by which the path of a list is longer than a signature.
pub(crate) const PATH_BYTES_MAX: usize = 16 + 2 + 6 * 32;
/// Bytes of a fill in a settle.
pub(crate) const FILL_BYTES: usize = 2 + 2 + 4 + 4 + 8 + 8 + 1;
/// Bytes of a settle without orders and fills.
pub(crate) const SETTLE_BYTES: usize = 4 + 4 + 8 + 4 + 4;

// What a settle weighs, as `primitives` counts it, rounded up.
pub(crate) const FILL_WEIGHT: u64 = 256 + FILL_BYTES as u64;
const SIGNATURE_WEIGHT: u64 = 512;
const ENTRY_WEIGHT: u64 = 256;
const LIFE_HEIGHTS: u64 = 1_024;

/// What an order weighs in a settle that makes its entry, if it still lives so many heights; with 0 also without one.
pub(crate) fn entry_weight(life: Height) -> u64 {
    let lives = (life / LIFE_HEIGHTS).saturating_add(1);
    lives.saturating_mul(ENTRY_WEIGHT).saturating_add(ORDER_BYTES_MAX as u64 + SIGNATURE_WEIGHT)
}

/// Terms of the chain that settles judge by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SettlingTerms {
    /// The chain's number.
    pub chain: u64,
    /// Units of asset 0 that a transaction of weight one costs, until a fact says otherwise.
    pub fee: Amount,
    /// How long an action of a trader waits: D heights and τ milliseconds.
    pub delay: Delay,
    /// The bond below which a venue does not settle.
    pub bond_min: Amount,
    /// The most bytes of a settle.
    pub settle_bytes: u32,
    /// The most entries of orders of a venue.
    pub entries_max: u64,
    /// The most heights from a block to the expiry of an order that it fills.
    pub life_max: Height,
}

/// Limits of a root that are its operator's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct VenueLimits {
    /// Accounts of which something is remembered: those with open orders, and those that traded last.
    pub accounts: u32,
    /// Keys of an account of which something is remembered.
    pub keys_of_account: u32,
    /// Orders of a key that are open, or filled and not past.
    pub entries_of_key: u32,
    /// Numbers of a key whose first answers are kept.
    pub numbers_of_key: u32,
    /// The most heights that an order lives, within the chain's own limit: its entry on the ledger costs the operator a
    /// fee for each thousand.
    pub life_heights: Height,
    /// Ledger fees a day (UTC) that the operator pays for orders too small to pay for their entries; an account has a
    /// 32nd of it.
    pub small_order_fees: u64,
    /// Heights after which a settle that no block has is given up.
    pub settle_heights: u64,
    /// How many settles hold all that is unsettled. One is in flight at a time and takes up to D / 4, so with more than
    /// three the last would settle too late. Two leave room for fills that stand badly in them.
    pub backlog_settles: u32,
    /// Matching pauses if no certified block came for this long, at most half of τ: meanwhile the chain may go on, and
    /// actions of traders with it.
    pub quiet_ms: u64,
}

impl Default for VenueLimits {
    /// 4,096 accounts of eight keys; 1,024 entries and 4,096 numbers a key; orders live for a day of blocks of a
    /// second, and small ones cost 131,072 fees a day; settles for 32 heights; two settles of unsettled fills; five
    /// seconds without a block.
    fn default() -> VenueLimits {
        VenueLimits {
            accounts: 4_096,
            keys_of_account: 8,
            entries_of_key: 1_024,
            numbers_of_key: 4_096,
            life_heights: 86_400,
            small_order_fees: 1 << 17,
            settle_heights: 32,
            backlog_settles: 2,
            quiet_ms: 5_000,
        }
    }
}

/// What a root is told once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct VenueSettings {
    /// The identity of the network.
    pub network: Digest,
    /// The venue.
    pub venue: VenueId,
    /// The incarnation that this root runs; another one needs another root.
    pub incarnation: u32,
    /// The account that settles, and the key that signs reports.
    pub operator: VenueOperator,
    /// Terms of the chain.
    pub terms: SettlingTerms,
    /// The operator's own limits.
    pub limits: VenueLimits,
}

/// How a market is run. It does not change within an incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct MarketSettings {
    /// Millionths of the quote units that a maker pays; a rebate is negative.
    pub maker_ppm: i32,
    /// Millionths of the quote units that a taker pays; at least a maker's rebate.
    pub taker_ppm: u32,
    /// The fewest lots of an order: each fill costs the operator fees, however small it is.
    pub lots_min: u32,
    /// The least that an order is worth, in quote units, at the worst price for its fees: see
    /// [`VenueSettings::covering`]. 0 asks for nothing.
    pub quote_min: Amount,
    /// The most open orders.
    pub orders: u32,
    /// The most open orders of an account.
    pub orders_of_account: u32,
    /// The first tick of the window in which price levels are found by index.
    pub window_base: u32,
    /// Ticks of the window, 64 to 262,144.
    pub window_ticks: u32,
}

impl Default for MarketSettings {
    /// No fees; one lot; 65,536 orders, 1,024 of an account; ticks 1 to 65,536 in the window.
    fn default() -> MarketSettings {
        MarketSettings {
            maker_ppm: 0,
            taker_ppm: 0,
            lots_min: 1,
            quote_min: 0,
            orders: 1 << 16,
            orders_of_account: 1_024,
            window_base: 1,
            window_ticks: 1 << 16,
        }
    }
}

/// Settings with which a root cannot run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the venue's setting `{0}` {1}")]
pub struct VenueSettingsError(pub &'static str, pub &'static str);

impl VenueSettings {
    /// # Errors
    /// [`VenueSettingsError`] names the setting and the remedy.
    pub fn check(&self) -> Result<(), VenueSettingsError> {
        let VenueLimits { accounts, entries_of_key, numbers_of_key, life_heights, .. } = self.limits;
        let VenueLimits { settle_heights, backlog_settles, quiet_ms, .. } = self.limits;
        let keys = self.limits.keys_of_account;
        let longest = self.terms.delay.heights.max(256);
        let least = (SETTLE_BYTES + 2 * ORDER_BYTES_MAX + FILL_BYTES) as u32;
        for (holds, name, remedy) in [
            ((1..=1 << 20).contains(&accounts), "accounts", "must be 1 to 1,048,576"),
            ((1..=256).contains(&keys), "keys_of_account", "must be 1 to 256"),
            ((1..=1_024).contains(&entries_of_key), "entries_of_key", "must be 1 to 1,024"),
            (numbers_of_key / 2 >= entries_of_key, "numbers_of_key", "must be at least twice `entries_of_key`"),
            (numbers_of_key <= 1 << 16, "numbers_of_key", "must be at most 65,536"),
            (life_heights >= 1, "life_heights", "must be at least 1"),
            (
                (1..=longest).contains(&settle_heights),
                "settle_heights",
                "must be at least 1, and at most 256 or the chain's delay.heights",
            ),
            ((1..=3).contains(&backlog_settles), "backlog_settles", "must be 1 to 3"),
            (
                (1..=self.terms.delay.ms / 2).contains(&quiet_ms),
                "quiet_ms",
                "must be at least 1, and at most half of the chain's delay.ms",
            ),
            (self.terms.delay.heights >= 2, "delay.heights", "of the chain must be at least 2"),
            (self.terms.settle_bytes >= least, "settle_bytes", "of the chain does not hold one fill"),
        ] {
            if !holds {
                return Err(VenueSettingsError(name, remedy));
            }
        }
        Ok(())
    }

    /// The most heights that an order lives.
    pub(crate) fn life_max(&self) -> Height {
        self.limits.life_heights.min(self.terms.life_max)
    }

    /// So many bytes of orders and fills stand in one settle, whatever they are: it has a most of bytes and of orders.
    pub(crate) fn settle_room(&self) -> u64 {
        let bytes = u64::from(self.terms.settle_bytes) - SETTLE_BYTES as u64;
        bytes.min(u64::from(VENUE_SIGNATURES_PER_SUB_BLOCK) * ORDER_BYTES_MAX as u64)
    }

    /// Makers that a fill-or-kill order may meet: all of its fills stand in one settle.
    pub(crate) fn group_max(&self) -> u32 {
        let room = (self.terms.settle_bytes as usize).saturating_sub(SETTLE_BYTES + ORDER_BYTES_MAX);
        (room / (ORDER_BYTES_MAX + FILL_BYTES)).clamp(1, GROUP_FILLS_MAX) as u32
    }

    /// Whether one settle holds the fills of any fill-or-kill order if all orders are of lists.
    pub(crate) fn has_room_for_lists(&self) -> bool {
        let (fills, order) = (self.group_max() as usize, ORDER_BYTES_MAX + PATH_BYTES_MAX);
        SETTLE_BYTES + (fills + 1) * order + fills * FILL_BYTES <= self.terms.settle_bytes as usize
    }

    /// What an order of a market must be worth so that the fees of traders pay for what their orders cost on the
    /// ledger, where a ledger fee is worth so many quote units. `None` if there are no fees that could.
    ///
    /// A fill makes at most two entries and uses at least one order up. So there are no more fills than orders that are
    /// used up, and each of these pays for one fill and its entries if half of its fees do: the other half belongs to
    /// the orders that it met. Each side's fee is rounded down by less than a unit.
    pub fn covering(&self, market: &MarketSettings, fee_worth: Amount) -> Option<Amount> {
        if fee_worth == 0 {
            return Some(0);
        }
        let cost = u128::from(self.entry_fees()).checked_mul(fee_worth.into())?.checked_add(2)?;
        let ppm =
            u128::try_from(i64::from(market.taker_ppm) + i64::from(market.maker_ppm)).ok().filter(|ppm| *ppm > 0)?;
        let worth = cost.checked_mul(2 * u128::from(PPM))?.div_ceil(ppm);
        Amount::try_from(worth).ok().filter(|worth| *worth <= MAX_ISSUED)
    }

    /// The most ledger fees that a fill and its two entries cost.
    pub fn entry_fees(&self) -> u64 {
        let entries = entry_weight(self.life_max()).saturating_mul(2);
        entries.saturating_add(FILL_WEIGHT + SETTLE_BYTES as u64 + 1).div_ceil(WEIGHT_BYTES)
    }

    /// The size of the book of a market.
    pub(crate) fn book(&self, market: &MarketSettings) -> BookLimits {
        BookLimits {
            orders: market.orders,
            owners: self.limits.accounts,
            orders_of_owner: market.orders_of_account,
            window_base: market.window_base,
            window_ticks: market.window_ticks,
            fill_or_kill_orders: self.group_max(),
        }
    }
}

impl MarketSettings {
    /// The most that an order pays, in millionths.
    pub(crate) fn fee_ppm(&self) -> u32 {
        self.taker_ppm.max(u32::try_from(self.maker_ppm).unwrap_or(0))
    }

    /// Whether the fees of a fill are together not negative, and never more than what is traded.
    pub fn has_sound_fees(&self) -> bool {
        self.fee_ppm() <= PPM && self.maker_ppm.checked_neg().is_some_and(|rebate| rebate <= self.taker_ppm as i32)
    }

    /// The fee of a side on quote units, rounded towards nothing: sums of fees stay below the fee of the sum.
    pub(crate) fn fee(&self, quote: Amount, is_taker: bool) -> i64 {
        let ppm = if is_taker { i128::from(self.taker_ppm) } else { i128::from(self.maker_ppm) };
        (i128::from(quote) * ppm / i128::from(PPM)) as i64
    }
}
