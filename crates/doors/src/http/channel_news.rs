//! What the channels of the stream tell: what they begin with, what follows a height, and what a block adds.

use std::sync::Arc;

use api::{AccountSnapshot, TickerBody};
use primitives::Height;
use readers::views::{CommittedBlock, Views};
use serde_json::{Value, json};

use super::Api;
use super::accounts::OffersPage;
use super::batch_news::{account_increment, candle, tagged, trades};
use super::channels::{Channel, name};
use super::markets::{candles_body, ticker};
use super::own_orders::{OrdersNews, ToldOrders};
use crate::book_feed::BookNews;
use crate::json::{self, Offers};
use crate::kit::Failure;
use crate::unnumbered::Unnumbered;

/// Candles in a snapshot.
const CANDLES: usize = 500;
/// How far a connection has told a channel.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// Of a book: the height of the reader's book.
    pub(super) height: Height,
    /// Of a ticker: what was told last.
    pub(super) ticker: Option<TickerBody>,
    /// Of an account's own orders.
    pub(super) orders: ToldOrders,
}

/// A message of the stream before its connection numbers it.
pub(super) enum Saying {
    /// Written for one connection.
    Own(Value),
    /// Written once for all.
    Shared(Unnumbered),
}

impl Saying {
    /// The text that is sent.
    pub(super) fn numbered(self, sequence: u64) -> String {
        match self {
            Saying::Own(mut message) => {
                message["sequence"] = sequence.into();
                message.to_string()
            }
            Saying::Shared(message) => message.numbered(sequence),
        }
    }
}

impl From<Value> for Saying {
    fn from(message: Value) -> Saying {
        Saying::Own(message)
    }
}

/// Messages of a channel, and how far it is told after them.
pub(super) type Told = (Vec<Saying>, Progress);

/// What a channel begins with.
pub(super) fn snapshot(api: &Api, channel: &Channel) -> Result<Told, Failure> {
    let published = api.published();
    let mut progress = Progress { height: published.views().height(), ..Progress::default() };
    let mut message = match channel {
        // The height is that of what is told, also where a block comes meanwhile.
        Channel::Blocks => {
            let views = published.views();
            progress.height = views.height();
            json!({"blocks": views.blocks(u64::MAX).take(20).map(json::block).collect::<Vec<_>>()})
        }
        Channel::Batches => {
            let views = published.views();
            progress.height = views.height();
            json!({"batch": views.batches().next_back().map(|batch| api.symbols().batch(batch))})
        }
        Channel::Trades(market) => {
            let (height, last) = {
                let views = published.views();
                (views.height(), views.batches().next_back().cloned())
            };
            progress.height = height;
            // Before the first batch there are none.
            let trades = last.map_or(Vec::new(), |batch| trades(api, market, &batch));
            json!({ "trades": trades })
        }
        Channel::Candles(base, quote, interval) => {
            let sides = api.sides(base, quote)?;
            json!({"candles": candles_body(api, sides, *interval, (None, u64::MAX), CANDLES).candles})
        }
        Channel::Book(base, quote) => {
            let book = api.books.snapshot(published, &api.symbols(), api.sides(base, quote)?);
            progress.height = book.height;
            serde_json::to_value(book).expect("plain data")
        }
        Channel::Ticker(base, quote) => {
            let ticker = ticker(api, base, quote)?;
            progress.height = ticker.height;
            progress.ticker = Some(ticker.clone());
            json!({ "ticker": ticker })
        }
        Channel::Account(address) => {
            let offers = |views: &Views| api.offers_of(views, address, OffersPage::of(1_000));
            let (account, Offers { height, offers, more, next }) = api.account_and(address, offers)?;
            progress.height = height;
            serde_json::to_value(AccountSnapshot { account, offers, more, next }).expect("plain data")
        }
        Channel::Orders(address) => {
            let (body, told) = api.orders_snapshot(address)?;
            progress.height = body.height;
            progress.orders = told;
            serde_json::to_value(body).expect("plain data")
        }
    };
    message["type"] = "snapshot".into();
    message["channel"] = name(channel).into();
    message["height"] = progress.height.into();
    Ok((vec![message.into()], progress))
}

/// What follows a height in a channel; `None` if this node cannot tell it.
pub(super) fn resumed(api: &Api, channel: &Channel, height: Height) -> Result<Option<Told>, Failure> {
    if let Channel::Book(base, quote) = channel {
        let news = api.books.news(api.published(), &api.symbols(), api.sides(base, quote)?, height);
        let begun = json!({"type": "resumed", "channel": name(channel), "height": height});
        return Ok(changes_of(news).map(|(changes, height)| {
            let messages = std::iter::once(begun.into()).chain(changes).collect();
            (messages, Progress { height, ..Progress::default() })
        }));
    }
    let views = api.published().views();
    let last = views.height();
    let is_kept = height == last || views.block(height.saturating_add(1)).is_some();
    if height > last || !is_kept {
        return Ok(None);
    }
    let mut messages = vec![json!({"type": "resumed", "channel": name(channel), "height": height})];
    match channel {
        Channel::Blocks => {
            let later = views.blocks(u64::MAX).take_while(|block| block.height > height);
            let mut later: Vec<Value> = later.map(|block| tagged("block", json::block(block))).collect();
            later.reverse();
            messages.extend(later);
        }
        Channel::Batches | Channel::Trades(_) => {
            let later: Vec<_> = views.batches().rev().take_while(|batch| batch.height > height).cloned().collect();
            drop(views);
            for batch in later.into_iter().rev() {
                match channel {
                    Channel::Trades(market) => {
                        messages.extend(trades(api, market, &batch).into_iter().map(|trade| tagged("trade", trade)));
                    }
                    _ => messages.push(tagged("batch", api.symbols().batch(&batch))),
                }
            }
        }
        // Their snapshots are whole.
        _ => return Ok(None),
    }
    let messages = messages.into_iter().map(Saying::Own).collect();
    Ok(Some((messages, Progress { height: last, ..Progress::default() })))
}

/// What a reader of a book is told, and the height that it has then; `None` where it needs the whole book.
fn changes_of(news: BookNews) -> Option<(Vec<Saying>, Height)> {
    match news {
        BookNews::Same(height) => Some((Vec::new(), height)),
        BookNews::Changes(changes, height) => {
            Some((changes.iter().map(|change| Saying::Shared(change.message.clone())).collect(), height))
        }
        BookNews::Lost => None,
    }
}

/// What a block adds to a channel, where another reader's question has made it already; `None` where it is to be made.
pub(super) fn increments_made(
    api: &Api,
    channel: &Channel,
    mut progress: Progress,
    committed: &Arc<CommittedBlock>,
) -> Option<Told> {
    let messages = match channel {
        Channel::Book(base, quote) => {
            let sides = api.sides(base, quote).ok()?;
            let news = api.books.news_made(sides, progress.height, committed.summary.height)?;
            let (messages, height) = changes_of(news)?;
            progress.height = height;
            messages
        }
        _ => shared(&api.shared_news.written(channel, committed)?),
    };
    Some((messages, progress))
}

fn shared(written: &[Unnumbered]) -> Vec<Saying> {
    written.iter().cloned().map(Saying::Shared).collect()
}

/// What a block adds to a channel.
pub(super) fn increments(
    api: &Api,
    channel: &Channel,
    mut progress: Progress,
    committed: &Arc<CommittedBlock>,
) -> Result<Told, Failure> {
    let to_all = |make: &dyn Fn() -> Vec<Value>| shared(&api.shared_news.of(channel, committed, make));
    let messages = match channel {
        Channel::Blocks => to_all(&|| vec![tagged("block", json::block(&committed.summary))]),
        Channel::Batches => to_all(&|| vec![tagged("batch", api.symbols().batch(&committed.batch))]),
        Channel::Trades(market) => {
            to_all(&|| trades(api, market, &committed.batch).into_iter().map(|trade| tagged("trade", trade)).collect())
        }
        Channel::Candles(base, quote, interval) => to_all(&|| {
            let changed = candle(api, base, quote, *interval, &committed.batch);
            changed.map(|candle| tagged("candle", candle)).into_iter().collect()
        }),
        Channel::Book(base, quote) => {
            let news = api.books.news(api.published(), &api.symbols(), api.sides(base, quote)?, progress.height);
            let Some((messages, height)) = changes_of(news) else { return snapshot(api, channel) };
            progress.height = height;
            messages
        }
        Channel::Ticker(base, quote) => {
            let ticker = ticker(api, base, quote)?;
            let is_news = progress.ticker.as_ref().is_none_or(|told| differs(told, &ticker));
            let messages = is_news.then(|| tagged("ticker", ticker.clone()).into()).into_iter().collect();
            if is_news {
                progress.ticker = Some(ticker);
            }
            messages
        }
        Channel::Account(address) => account_increment(api, address, committed)?.map(Saying::Own).into_iter().collect(),
        Channel::Orders(address) => {
            let (news, told) = api.orders_news(address, progress.orders, committed)?;
            progress.orders = told;
            match news {
                OrdersNews::Nothing => Vec::new(),
                OrdersNews::Changes(body) => vec![tagged("orders", body).into()],
                OrdersNews::Snapshot(body) => {
                    let mut message = tagged("snapshot", body);
                    message["channel"] = name(channel).into();
                    vec![message.into()]
                }
            }
        }
    };
    Ok((messages, progress))
}

/// Whether tickers of two heights tell something else.
fn differs(told: &TickerBody, now: &TickerBody) -> bool {
    TickerBody { height: told.height, time_ms: told.time_ms, ..now.clone() } != *told
}
