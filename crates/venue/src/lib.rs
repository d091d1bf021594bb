//! The operator of continuous markets: signed orders in, reports, market data and settles out.
//!
//! A venue matches outside the ledger and settles every fill on it; the ledger applies a fill or makes it bust
//! (`ledger::places::venues`). A [`VenueRoot`] is what one incarnation of a venue runs: pure steps over a
//! [`store::Disk`], without clock, socket or thread. Whoever drives it is its *host*; codecs (OUCH, FIX, ITCH) map to
//! its commands, reports and events, and are not known here.
//!
//! ```text
//!  sessions ──► gateways: check_orders ──┐                       ┌─► TradeReport ──► sessions
//!  operator ──► Steer, Kill, OpenMarket ─┼─► step ─► journal ────┼─► MarketEvent ──► market data
//!  ledger ────► CertifiedFacts ──────────┘      sync, then tell  └─► Submit ───────► pools of 2f + 1 validators
//! ```
//!
//! # The protocol
//!
//! - Upon *inputs*: take them in order, and write one record with the inputs, the clock and a digest of what they
//!   came to. Sync it. Only then tell anything.
//! - Upon an *order*: a number that is known gets its first answer. Otherwise check everything that the ledger will
//!   judge its fills by (F1 to F8), from certified facts, and then give it to the book (`matching`). Keep the answer.
//! - Upon a *list* of orders under one signature ([`primitives::venue::OrderList`]): each is an order by itself, in
//!   their order. The record has seed and signature once; a settle shows an order of it by its path.
//! - Upon a *trade*: the fill takes the next index in the tree of the incarnation. Both traders get a report, signed
//!   over network, venue, incarnation, index, leaf and account. *Executed is not settled.* Where the rules of the chain
//!   judge reports of steps ([`STEP_REPORTS_RULES`](primitives::venue::STEP_REPORTS_RULES)), one signature holds for
//!   all reports of a step, whose number is that of its record ([`SignedStep`](primitives::venue::SignedStep)).
//! - Upon a *certified block*: learn the fates of fills, deposits, keys, bond and balance. End orders that expired,
//!   whose key is revoked, that are below a floor, or that the deposit does not cover any more. So end those of whom
//!   the issuer of an asset of their market has frozen, and all of the market if that is the venue's owner. Then send
//!   the settle in flight again; if its number is used, or it has ended, cut the next one from the settled count on.
//! - *Matching pauses* when no certified block came for a while, or when the last one is more than D / 4 behind the
//!   newest decided one. It pauses when the oldest unsettled fill is half of D old, and when bond or balance cover less
//!   than twice what is unsettled. It pauses while the ledger has another operator than the root. So it does from the
//!   opening of a root until the next certified block. It goes on by itself. Cancels are always taken.
//! - *The backlog is bounded*: an order that would trade, at once or in the auction of a call, is refused if what is
//!   unsettled would then take more bytes than two settles hold ([`VenueLimits::backlog_settles`]). So is an auction.
//!   One settle is in flight at a time and takes up to D / 4; more than four would not fit into D. So an order or an
//!   auction that meets more makers than two settles hold never trades whole, however empty the backlog is.
//! - *A settle that would be void is not cut* (the bond is below its least). After two void ones in a row the root
//!   waits, after each further one twice as long, up to D.
//! - *The root stops* for ever when its incarnation is fenced or convicted, and when the ledger has another fill at an
//!   index than it reported, or more fills than its journal. Then another root runs, or the journal is not the newest.
//!
//! **Risk.** What an account can still reserve of an asset is what is free in its certified deposit, less what open
//! orders reserve, less what unsettled fills owe. What a key may still lose is its cap with its certified gain, less
//! the same. Nothing that unsettled fills will bring counts, and nothing that leaves. Sums are kept for speed; in
//! debug builds each step computes them anew from orders and fills.
//!
//! **Numbers.** An order is named by key and number. The first answer is kept, also to a refusal, also past the end of
//! the session and over restarts. A retry gets it and places nothing. A key keeps so many numbers
//! ([`VenueLimits::numbers_of_key`]). If there are more, those that are final are forgotten, the lowest first, and
//! every number up to the highest forgotten one is refused with the next valid one. A cancel that comes before its
//! order is kept like an answer: the order is refused when it comes, and if it is a replacement, the order that it
//! names ends.
//!
//! **Places.** Something is remembered of so many accounts ([`VenueLimits::accounts`]), and of so many keys of each
//! ([`VenueLimits::keys_of_account`]). If all places are taken, the account without open orders that has been idle for
//! longest gives way, or an idle key of the account. What is final of them is forgotten as above. An account or key
//! that finds no place is refused, and that is no answer to its number.
//!
//! **Replacing** states total lots: those that the replaced orders executed count. A cut in size at the same price
//! keeps the place in the queue; so does a cancel that keeps some lots. **Fill or kill**: its fills are one group, of
//! at most 64 and of what one settle holds, and are never cut apart. **Price bands**: a limit is inside of its key's
//! band, and so is the best price at which it would trade at once. In a call the band must reach to the collar, since
//! an auction's price may be better than the limit; orders for which it does not end when a call begins.
//!
//! # Properties
//!
//! - *No surprise*: a fill that is settled within D heights of the certified height on which it was matched never
//!   busts, whatever traders, proposers and replayers do.
//! - *Synced first*: nothing is told before the record that it follows from is durable; the record states the fills
//!   and the settle.
//! - *One index, one leaf*: an index is never reported with two leaves, and no id is issued twice, restarts included.
//! - *One step, one header*: no two trees of a step are signed that anybody is told of, restarts included.
//! - *One settle in flight* of an account, under one number, as the same bytes. A number is signed for another body
//!   only when the first one can never count: its last height is certified, without it. Numbers stay within the window
//!   that the ledger takes, however many settles end unused. An operator's account that is changed and comes back goes
//!   on where it was. A settle is signed only if the balance covers its fee.
//! - *Deterministic*: equal journals give equal states ([`VenueRoot::digest`]). A replay that comes to other fills or
//!   to another settle than its record says is refused ([`VenueRootError::Diverged`]).
//! - *Bounded*: accounts and keys that have a place, orders of a book, entries and numbers of a key, and unsettled
//!   fills have limits. Deposits and keys on the ledger are all known: they cost those who make them. So are markets,
//!   which the operator opens. Bytes from disk are verified before they are believed.
//!
//! Tests: `tests/venue` drives a root together with the real ledger and a disk that fails. `mistakes.rs` plants
//! mistakes, each of which a scenario finds.
//!
//! # For the author of a host
//!
//! - **Before**: authenticate sessions, and check orders in batches with [`check_orders`], off the thread that steps.
//!   Drop what is no input of an attached session: each input costs bytes in the journal.
//! - **Call** [`VenueRoot::step`] with all inputs that wait (one sync for all of them), and with [`VenueInput::Tick`]
//!   when [`VenueRoot::wants_step_at_ms`] is over. The clock is the host's; if it is set back no time passes, if it
//!   leaps ahead timers fire.
//! - **Or overlap steps** ([`TwoStages`]): a thread writes a long step while the host matches the next, with the same
//!   bytes. Between the two there is no root to look at; what telling a step needs of it is taken when it is matched.
//! - **Then** do the effects in their order. Reports go to their session if it is attached; what a session missed is
//!   fetched by index ([`VenueRoot::reported`]) and by number ([`VenueRoot::standing`]). Submit a
//!   settle to the own pool and to enough others that 2f + 1 validators have it, each time that it is given. Events of
//!   a market are numbered; a reader that begins or missed one gets an image that names the last event in it
//!   ([`VenueRoot::image`]).
//! - **Effects are numbered** from 0 ([`VenueRoot::effects_told`]). A host whose sessions must not miss one keeps the
//!   number of the last that it passed on, and asks for those behind it when it opens ([`VenueOptions::again_from`]).
//!   They are made again from the journal, byte for byte, as far as no snapshot contains them. The opening tells
//!   something itself; that stands behind them in [`FoundRoot::again`], asked for or not, and is to be done as well.
//! - **Blocks**: give every certified block from [`VenueRoot::height`] on, in order, none left out: times of all
//!   heights and fates of all fills are needed. The first one states everything. Records that a block did not change
//!   may be left out. `tests/venue/reading.rs` reads them from a ledger. [`CertifiedFacts::newest`] is the highest
//!   height that *peers* say is decided, not the highest that the own node has executed or replayed: while the host
//!   catches up the root matches nothing only because of it.
//! - **After an error of a step** tell nothing of it, drop the root and open it again. Then what was in the step may
//!   have happened or not: sessions send their commands again and get first answers; blocks that are known are
//!   ignored.
//! - **After opening**: detach the sessions that were attached ([`VenueRoot::sessions`]), since their links are
//!   broken; submit [`VenueRoot::in_flight`]; give the blocks that are missing.
//! - **An auction** that is refused because matching pauses, or as [`VenuePause::Backlog`], is asked for again after
//!   later blocks. Markets share the backlog: if others fill it, halt them first. An order in a call that would make
//!   the auction too large is refused.
//! - **Snapshots** name the record that they follow. They are written at once ([`VenueRoot::snapshot`]), or on another
//!   thread ([`VenueRoot::begin_snapshot`]). Two are kept; the journal below the older one may be forgotten
//!   ([`VenueRoot::forget_below`]), and with it the fills that can be fetched.
//! - **A directory is one incarnation.** After a fence create the next one in an empty directory. A journal that is
//!   lost is never made anew in its incarnation, nor replaced by an older copy: fence it. The ledger shows that a copy
//!   is too old only once it has settled more than the copy knows.
//! - **A change of the operator**: the owner changes it on the ledger; open the same directory with the new keys,
//!   before or after. The operator's account does nothing else: its numbers are the root's.
//!
//! # What a crash leaves
//!
//! | after | leaves |
//! |---|---|
//! | a step, before its record is durable | nothing, or the whole record: nobody was told |
//! | the sync, before effects are done | fills and answers that nobody was told; they are fetched, retried, settled |
//! | a settle is submitted | the same settle, sent again with the next block |
//! | a snapshot, before it has its name | the one before it |
//!
//! # Deviations from the design
//!
//! - *Pauses without blocks, and behind the chain.* The age of the oldest fill, counted in certified heights, stands
//!   still when the root hears of no block while the chain goes on, and means nothing while it catches up. So matching
//!   also pauses by the clock, after at most τ / 2, and while more than D / 4 decided blocks are not certified here;
//!   ages are counted from the newest decided block.
//! - *Tombstones of cancels need no watermarks.* They are remembered like answers, and forgotten like them.
//! - *The outbox is the journal.* A settle follows from its record, which has its digest; there is no second log.
//! - *The operator bounds its own fees*: what an order's entry costs grows with its life, and what a fill costs does
//!   not fall with its lots. So a root has a longest life and markets a least order. The balance covers every order
//!   that an arriving one may meet as if it lived that long. An order that is used up pays for the entries of its
//!   fills, whoever cancels what else they met ([`VenueSettings::covering`]).
//! - *An incarnation outlives its operator*, as its report keys do: a change of operator pauses the root and does not
//!   stop it.

mod checked;
mod error;
mod expiries;
mod facts;
mod input;
mod keys;
mod machine;
mod mistake;
mod order;
mod reader;
mod reading;
mod record;
mod refusal;
mod report;
mod request;
mod root;
mod settings;
mod stages;
mod state;

pub use checked::{CheckedOrder, CheckedOrderList, check_lists, check_orders};
pub use error::VenueRootError;
pub use facts::{
    CertifiedFacts, FillBust, FillFate, FreezableAsset, KeyStanding, OperatorStanding, VenueFact, VenueStanding,
};
pub use input::{SessionNumber, Steering, TradeCommand, VenueInput};
pub use keys::VenueKeys;
pub use mistake::VenueMistake;
pub use reader::{FillReader, ReportedFills};
pub use reading::{ChainState, facts_since, fate_of, settles_of};
pub use refusal::{OrderEnd, OrderRefusal, VenuePause, VenueStop};
pub use report::{
    Acceptance, FillParty, MarketEvent, MarketImage, OrderExecution, OrderStanding, ReportKind, RestingOrder,
    TradeReport, VenueEffect, VenueFill,
};
pub use request::{
    RequestScope, RequestStamps, SESSIONS_OF_KEY, STAMP_WINDOW_MS, STAMPS_OF_KEY, StampRefusal, TraderAsk,
    TraderRequest, session_number,
};
pub use root::{FoundRoot, VenueOptions, VenueRoot, VenueSnapshot};
pub use settings::{MarketSettings, SettlingTerms, VenueLimits, VenueSettings, VenueSettingsError};
pub use stages::{JournalStage, MatchedStep, MatchingStage, ToldStep, TwoStages};
