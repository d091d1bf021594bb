//! The WebSocket stream: orders and requests in, own reports and books out. Every message is numbered; who does not
//! read is cut with a reason.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::{RequestBody, VenueMessage, VenueSaid, VenueTold};
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use doors::Visitor;
use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use primitives::venue::MarketId;
use primitives::{Address, PublicKey};
use serde_json::Value;
use sockets::Client;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::oneshot;
use venue::{SessionNumber, TraderAsk, TraderRequest, session_number};

use super::bodies::{event_body, report_body, signed_request, top_body};
use super::books::image_body;
use super::orders::{Placing, ask, check_request, error_body, place_all, place_all_lists};
use super::{Api, Failure};
use crate::codes::pause_code;
use crate::events::StepEvents;
use crate::shared::{PitInput, PitRefusal};

/// The longest message of a client.
const MESSAGE_BYTES: usize = 256 << 10;
const HEARTBEAT: Duration = Duration::from_secs(1);
/// A reader that cannot be written to for this long is cut.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// The most books of a connection, and of a message.
const BOOKS: usize = 64;
/// A dead man's timer is reset at most so often.
const QUIET: Duration = Duration::from_millis(500);
const TOO_SLOW: &str = "too slow: connect again, take an image of each book, and ask for missed fills";
const REVOKED: &str = "the key of this drop copy is revoked";
const DISPLACED: &str = "the session has a newer connection";

pub(super) async fn open(
    State(api): State<Api>,
    Extension(visitor): Extension<Visitor>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let Some(share) = api.streams.take(visitor.address, 1) else {
        let message = "too many connections of the stream, of all or of this address: try again shortly";
        return Failure::new(StatusCode::TOO_MANY_REQUESTS, "too_many_streams", message).into_response();
    };
    upgrade.max_message_size(MESSAGE_BYTES).max_frame_size(MESSAGE_BYTES).on_upgrade(async move |socket| {
        serve(&api, &visitor, socket).await;
        drop(share);
    })
}

/// A session that is attached here.
#[derive(Clone, Copy)]
struct Attached {
    session: SessionNumber,
    key: PublicKey,
    link: u64,
    /// Whether a dead man's timer runs.
    has_timer: bool,
}

struct Connection<'a> {
    api: &'a Api,
    client: Client,
    socket: SplitSink<WebSocket, Message>,
    sequence: u64,
    attached: Option<Attached>,
    /// A key that has a drop copy here, and its account.
    watch: Option<(PublicKey, Address)>,
    books: BTreeSet<MarketId>,
}

type Delivered = Result<(), &'static str>;

async fn serve(api: &Api, visitor: &Visitor, socket: WebSocket) {
    let (sink, mut source) = socket.split();
    let (attached, watch, books) = (None, None, BTreeSet::new());
    let client = visitor.client();
    let mut connection = Connection { api, client, socket: sink, sequence: 0, attached, watch, books };
    let mut events = api.shared.events.subscribe();
    let mut heartbeat = tokio::time::interval(HEARTBEAT);
    heartbeat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut spoke = tokio::time::Instant::now();
    let reason = loop {
        let served = tokio::select! {
            message = source.next() => match message {
                Some(Ok(Message::Text(text))) => {
                    connection.is_alive(&mut spoke);
                    connection.hear(&text).await
                }
                Some(Ok(Message::Binary(_))) => connection.error(&Value::Null, &Failure::malformed("send text")).await,
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                    connection.is_alive(&mut spoke);
                    Ok(())
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => break None,
            },
            told = events.recv() => match told {
                Ok(told) => connection.tell(&told).await,
                Err(RecvError::Lagged(_)) => Err(TOO_SLOW),
                Err(RecvError::Closed) => Err("the node is stopping"),
            },
            _ = heartbeat.tick() => connection.beat().await,
            () = visitor.visit.displaced() => Err("all connections are in use, and this address has most of them"),
        };
        match served {
            Ok(()) => visitor.visit.progress(),
            Err(reason) => break Some(reason),
        }
    };
    // First of all its orders end, if they are to.
    if let Some(Attached { session, link, .. }) = connection.attached {
        drop(api.shared.send(PitInput::Detach { session, link }));
    }
    if let Some(reason) = reason {
        let frame = CloseFrame { code: close_code::AGAIN, reason: reason.into() };
        drop(tokio::time::timeout(HEARTBEAT, connection.socket.send(Message::Close(Some(frame)))).await);
    }
}

impl Connection<'_> {
    async fn send(&mut self, told: VenueTold) -> Delivered {
        let message = VenueMessage { sequence: self.sequence, told };
        let text = serde_json::to_string(&message).expect("plain data");
        self.sequence += 1;
        match tokio::time::timeout(WRITE_TIMEOUT, self.socket.send(Message::text(text))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err("the connection broke"),
            Err(_) => Err(TOO_SLOW),
        }
    }

    async fn error(&mut self, id: &Value, why: &Failure) -> Delivered {
        self.send(VenueTold::Error { id: id.clone(), error: error_body(why) }).await
    }

    async fn beat(&mut self) -> Delivered {
        if self.watch.is_some_and(|(key, account)| self.api.shared.watched_by(&key) != Some(account)) {
            return Err(REVOKED);
        }
        let (paused, height) = {
            let view = self.api.shared.view.borrow();
            (view.paused.map(|why| pause_code(&why).to_string()), view.height)
        };
        self.send(VenueTold::Heartbeat { paused, height }).await
    }

    /// The client lives.
    fn is_alive(&self, spoke: &mut tokio::time::Instant) {
        if let Some(Attached { session, has_timer: true, .. }) = self.attached
            && spoke.elapsed() >= QUIET
        {
            *spoke = tokio::time::Instant::now();
            drop(self.api.shared.send(PitInput::Heartbeat(session)));
        }
    }

    async fn hear(&mut self, text: &str) -> Delivered {
        let said: VenueSaid = match serde_json::from_str(text) {
            Ok(said) => said,
            Err(error) => return self.error(&Value::Null, &Failure::malformed(error.to_string())).await,
        };
        let VenueSaid { id, attach, orders, lists, request, books, .. } = said;
        let books = books.unwrap_or_default();
        if books.len() > BOOKS {
            let why = format!("books: a message names at most {BOOKS}; nothing of it was done");
            return self.error(&id, &Failure::malformed(why)).await;
        }
        let placing = Placing { client: self.client, session: self.attached.map(|of| (of.session, of.key)) };
        let api = self.api;
        if let Some(body) = attach {
            match self.attach(&body).await {
                Ok(()) => self.send(VenueTold::Attached { id: id.clone() }).await?,
                Err(why) => self.error(&id, &why).await?,
            }
        }
        if let Some(orders) = orders {
            match place_all(&api.shared, placing, orders).await {
                Ok(results) => self.send(VenueTold::Results { id: id.clone(), results }).await?,
                Err(why) => self.error(&id, &why).await?,
            }
        }
        if let Some(lists) = lists {
            match place_all_lists(&api.shared, placing, lists).await {
                Ok(results) => self.send(VenueTold::Results { id: id.clone(), results }).await?,
                Err(why) => self.error(&id, &why).await?,
            }
        }
        if let Some(body) = request {
            match ask(&api.shared, placing, &body).await {
                Ok(answer) => self.send(VenueTold::Answer { id: id.clone(), answer }).await?,
                Err(why) => self.error(&id, &why).await?,
            }
        }
        for market in books {
            self.subscribe(&id, market).await?;
        }
        Ok(())
    }

    /// Attaches a session; its reports come here from now on.
    async fn attach(&mut self, body: &RequestBody) -> Result<(), Failure> {
        let request = signed_request(body).map_err(Failure::malformed)?;
        let (session, ends_orders, dead_man_ms) = match request.ask {
            TraderAsk::Attach { session, ends_orders, dead_man_ms } => (session, ends_orders, dead_man_ms),
            TraderAsk::Watch => return self.watch(&request).await,
            _ => return Err(Failure::malformed("attach: the request asks for something else")),
        };
        if session == 0 {
            return Err(Failure::malformed(
                "attach: session 0 is that of requests without a session: choose another one",
            ));
        }
        if self.attached.is_some() {
            return Err(Failure::malformed("attach: this connection has a session: open another one"));
        }
        let shared = &self.api.shared;
        check_request(shared, self.client, &request).await?;
        shared.claim_session(&request.key, session)?;
        let (session, key, link) = (session_number(&request.key, session), request.key, shared.new_link());
        let (reply, attached) = oneshot::channel();
        shared.send(PitInput::Attach { session, link, key, ends_orders, dead_man_ms, reply })?;
        self.attached = Some(Attached { session, key, link, has_timer: dead_man_ms.is_some() });
        Ok(attached.await.map_err(|_| PitRefusal::BeginsAgain)?)
    }

    /// Begins a drop copy.
    async fn watch(&mut self, request: &TraderRequest) -> Result<(), Failure> {
        check_request(&self.api.shared, self.client, request).await?;
        let account = self.api.shared.watched_by(&request.key).ok_or(PitRefusal::NoWatcher)?;
        self.watch = Some((request.key, account));
        Ok(())
    }

    /// Copies what a step told of the keys of an account.
    async fn copy(&mut self, account: Address, told: &StepEvents) -> Delivered {
        let shared = &self.api.shared;
        let Some(state) = shared.heard(|heard| heard.newest.clone()) else { return Ok(()) };
        let owner = |key| state.venues.key(shared.venue, key).map(|of| of.owner);
        for report in told.reports.iter().filter(|report| owner(&report.key) == Some(account)) {
            self.send(VenueTold::DropCopy { account: account.to_string(), report: report_body(report) }).await?;
        }
        Ok(())
    }

    /// Sends an image of a book; its events follow.
    async fn subscribe(&mut self, id: &Value, market: MarketId) -> Delivered {
        if self.books.len() >= BOOKS {
            return self.error(id, &Failure::malformed(format!("books: a connection has at most {BOOKS}"))).await;
        }
        let api = self.api;
        match api.shared.image(market).await {
            Ok(Some(found)) => {
                self.books.insert(market);
                let image = image_body(market, &found.0, &found.1);
                self.send(VenueTold::Image { id: id.clone(), image }).await
            }
            Ok(None) => {
                let why =
                    Failure::new(StatusCode::NOT_FOUND, "market_not_open", format!("market {market} is not open"));
                self.error(id, &why).await
            }
            Err(why) => self.error(id, &why.into()).await,
        }
    }

    /// What a step told, as far as it concerns this client.
    async fn tell(&mut self, told: &Arc<StepEvents>) -> Delivered {
        if let Some(own) = self.attached {
            if told
                .attached
                .iter()
                .any(|(session, link)| *session == own.session && *link != own.link && *link > own.link)
            {
                return Err(DISPLACED);
            }
            for report in told.reports.iter().filter(|report| report.key == own.key) {
                let own_session = report.session == own.session;
                self.send(VenueTold::Report { report: report_body(report), own_session }).await?;
            }
        }
        if let Some((_, account)) = self.watch {
            self.copy(account, told).await?;
        }
        if let Some(pause) = told.pause {
            let paused = pause.map(|why| pause_code(&why).to_string());
            self.send(VenueTold::Pause { paused }).await?;
        }
        if let Some(why) = told.stopped {
            self.send(VenueTold::Stopped { message: why.to_string() }).await?;
        }
        for (market, top) in &told.tops {
            if self.books.contains(market) {
                let of_market = told.market.iter().filter(|(of, ..)| of == market);
                let events = of_market.map(|(_, number, event)| event_body(*number, event)).collect();
                self.send(VenueTold::Book { market: *market, events, top: top_body(top) }).await?;
            }
        }
        Ok(())
    }
}
