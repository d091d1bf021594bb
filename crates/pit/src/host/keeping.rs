//! What the host does beside steps: snapshots, what is forgotten, how the root stands, and the end.

use std::thread::JoinHandle;

use primitives::Height;
use primitives::venue::MarketId;
use venue::{MatchingStage, RequestScope, TwoStages, VenuePause, VenueStop};

use super::Host;
use super::opening::NoRoot;
use crate::shared::{Fills, PitStanding, SettleInFlight};

/// How a root stands after a step.
pub(super) struct Shown {
    scope: RequestScope,
    standing: PitStanding,
    paused: Option<VenuePause>,
    height: Option<Height>,
    /// Fills, and how many of them are settled or bust.
    counts: (u64, u64),
    in_flight: Option<SettleInFlight>,
    record: u64,
    takes_lists: bool,
    markets: Vec<MarketId>,
    links: usize,
}

impl Shown {
    /// How it stands with these listed markets and so many links of sessions.
    pub fn of(state: &MatchingStage, listed: &[MarketId], links: usize) -> Shown {
        let settings = state.settings();
        let scope =
            RequestScope { network: settings.network, venue: settings.venue, incarnation: settings.incarnation };
        let in_flight = state.in_flight_body();
        Shown {
            scope,
            standing: state.stopped().map_or(PitStanding::Runs, PitStanding::Stopped),
            paused: state.paused(),
            height: state.height(),
            counts: state.counts(),
            in_flight: in_flight.map(|body| SettleInFlight { sequence: body.sequence, until: body.until }),
            record: state.last_record(),
            takes_lists: state.takes_lists(),
            markets: listed.iter().copied().filter(|market| state.book(*market).is_some()).collect(),
            links,
        }
    }
}

impl Host {
    /// Whether a snapshot was written or is due.
    pub(super) fn has_keeping(&self) -> bool {
        let is_written = self.snapshot.as_ref().is_some_and(JoinHandle::is_finished);
        let record = self.ahead().map_or(0, MatchingStage::last_record);
        is_written || (self.snapshot.is_none() && record >= self.snapshot_due())
    }

    /// The record from which on a snapshot is due.
    fn snapshot_due(&self) -> u64 {
        self.snapshots[1].saturating_add(self.settings.config.snapshot_records.max(1))
    }

    /// Snapshots, and what is forgotten.
    pub(super) fn keep(&mut self) -> Result<(), NoRoot> {
        let due = self.snapshot_due();
        let Some(root) = self.root.as_mut().and_then(TwoStages::root_mut) else { return Ok(()) };
        if let Some(done) = self.snapshot.take_if(|writing| writing.is_finished()) {
            match done.join() {
                Ok(written) => {
                    written?;
                    let below = self.snapshots[0].saturating_sub(self.settings.config.keep_records);
                    if self.settings.config.keep_records > 0 {
                        root.forget_below(below)?;
                    }
                }
                Err(_) => tracing::error!("writing a snapshot of the venue panicked"),
            }
        }
        if self.snapshot.is_none()
            && root.last_record() >= due
            && let Some(snapshot) = root.begin_snapshot()?
        {
            self.snapshots = [self.snapshots[1], root.last_record()];
            self.snapshot = Some(std::thread::spawn(|| snapshot.write()));
        }
        Ok(())
    }

    /// The markets that the ledger lists for the venue.
    pub(super) fn listed(&self) -> Vec<MarketId> {
        let listed = self.told.iter().flat_map(|state| state.venues.markets_from(self.shared.venue, 0));
        listed.map(|(market, _)| market).collect()
    }

    /// Shows how the root stands, as of now: all that it matched is told.
    pub(super) fn show(&mut self) {
        let Some(state) = self.ahead() else { return };
        let shown = Shown::of(state, &self.listed(), self.links.len());
        self.show_as(shown);
    }

    /// Shows how the root stood after the last step that was told.
    pub(super) fn show_as(&mut self, shown: Shown) {
        let Shown { scope, standing, paused, height, counts, in_flight, record, takes_lists, markets, links } = shown;
        self.shared.view.send_modify(|view| {
            view.standing = standing;
            view.scope = Some(scope);
            view.paused = paused;
            view.height = height;
            (view.fills, view.settled, view.busts) = (counts.0, counts.1, self.busts);
            view.in_flight = in_flight;
            view.record = record;
            view.takes_lists = takes_lists;
            view.markets = markets;
            view.links = links;
        });
        if let Some(reader) = self.reader.clone() {
            self.shared.show_fills(Some(Fills { reader, counts, record }));
        }
        self.shared.forget_stamps();
    }

    /// A root that was fenced gives its place to the next incarnation.
    pub(super) fn begin_next(&mut self) {
        if self.ahead().and_then(MatchingStage::stopped) == Some(VenueStop::Fenced) {
            self.next_incarnation();
        }
    }

    /// The last turn: a snapshot, so that the next start replays little.
    pub(super) fn end(&mut self) {
        if let Some(writing) = self.snapshot.take() {
            drop(writing.join());
        }
        if let Some(root) = self.root.as_mut().and_then(TwoStages::root_mut)
            && let Err(error) = root.snapshot()
        {
            tracing::warn!(%error, "the venue's snapshot at the end was not written: the next start replays more");
        }
    }
}
