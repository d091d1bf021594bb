//! A shard that runs apart, as its node sees it: the connection, the machine of the line, and the keys that it offers.

use std::collections::BTreeMap;

use member::MemberInput;
use member::apart::{NodeEnd, NodeEndEffect, ShardAnswer, ShardFigures, ShardOrder};
use payments::{HomeEpoch, ShardOffer};

use super::keys;
use super::line::{Line, LineEvent};

/// Homes of a shard whose counts are kept; fewer live at a time.
const HOMES_COUNTED: usize = 16;

/// See the module text.
pub(crate) struct ShardApart {
    shard: u16,
    end: NodeEnd,
    line: Option<Line>,
    offers: BTreeMap<HomeEpoch, ShardOffer>,
    /// What it last counted in each home.
    figures: BTreeMap<HomeEpoch, ShardFigures>,
}

impl ShardApart {
    pub fn new(shard: u16) -> ShardApart {
        ShardApart { shard, end: NodeEnd::default(), line: None, offers: BTreeMap::new(), figures: BTreeMap::new() }
    }

    /// Whether the shard hears what it is told at present.
    pub fn is_met(&self) -> bool {
        self.end.is_met()
    }

    /// What it last counted in each home that lives.
    pub fn figures(&self) -> &BTreeMap<HomeEpoch, ShardFigures> {
        &self.figures
    }

    /// The key that it has offered for an epoch.
    pub fn offer(&self, epoch: HomeEpoch) -> Option<ShardOffer> {
        self.offers.get(&epoch).cloned()
    }

    /// A key that nobody has takes the place of the one that it did not offer.
    pub fn stand_in(&mut self, epoch: HomeEpoch, offer: Option<ShardOffer>) {
        self.offers.extend(offer.map(|offer| (epoch, offer)));
    }

    /// Nothing up to this epoch is registered or lives any more.
    pub fn forget(&mut self, epoch: HomeEpoch) {
        self.offers.retain(|of, _| *of > epoch);
        self.figures.retain(|of, _| *of > epoch);
    }

    /// Orders something; what follows for the member.
    pub fn order(&mut self, order: &ShardOrder) -> Vec<MemberInput> {
        let effects = self.end.order(order);
        self.perform(effects)
    }

    /// Something happened on a connection; what follows for the member.
    pub fn on_line(&mut self, event: LineEvent) -> Vec<MemberInput> {
        let is_present = |id| self.line.as_ref().is_some_and(|line| line.id == id);
        let effects = match event {
            LineEvent::Opened(line) => match keys::random::<16>() {
                Ok(fresh) => {
                    self.line = Some(line);
                    self.end.disconnected();
                    self.end.connected(u128::from_le_bytes(*fresh))
                }
                Err(error) => {
                    tracing::error!(%error, "no random numbers: a shard that runs apart is not told anything");
                    Vec::new()
                }
            },
            LineEvent::Frame(id, frame, _turn) if is_present(id) => self.end.frame(&frame),
            LineEvent::Closed(id) if is_present(id) => {
                self.close();
                tracing::warn!(shard = self.shard, "the connection to a shard that runs apart is gone; dialling again");
                Vec::new()
            }
            LineEvent::Frame(..) | LineEvent::Closed(_) => Vec::new(),
        };
        self.perform(effects)
    }

    fn close(&mut self) {
        self.line = None;
        self.end.disconnected();
    }

    fn perform(&mut self, effects: Vec<NodeEndEffect>) -> Vec<MemberInput> {
        let inputs = effects.into_iter().filter_map(|effect| match effect {
            NodeEndEffect::Send(frame) => {
                // What is not sent now is sent on the next connection.
                if self.line.as_ref().is_some_and(|line| !line.send(frame)) {
                    self.close();
                }
                None
            }
            NodeEndEffect::Close => {
                self.close();
                None
            }
            NodeEndEffect::Away => Some(MemberInput::Away(self.shard)),
            NodeEndEffect::Back => {
                tracing::info!(shard = self.shard, "a shard that runs apart is there: it is told everything anew");
                Some(MemberInput::Back(self.shard))
            }
            NodeEndEffect::Heard(answer) => self.heard(*answer),
            NodeEndEffect::Unread => {
                tracing::warn!(
                    shard = self.shard,
                    "a shard that runs apart answers what this program does not know: run the same version at both ends"
                );
                None
            }
        });
        inputs.collect()
    }

    fn heard(&mut self, answer: ShardAnswer) -> Option<MemberInput> {
        match answer {
            ShardAnswer::Prepared(home, Some(offer)) => {
                self.offers.entry(home).or_insert(offer);
                None
            }
            ShardAnswer::Prepared(home, None) => {
                tracing::error!(shard = self.shard, home, "a shard that runs apart cannot make its key: see its log");
                None
            }
            ShardAnswer::Started(home, start) => Some(MemberInput::Started(home, self.shard, start)),
            ShardAnswer::Counted(home, figures) => {
                self.figures.insert(home, figures);
                // It has a few homes, whatever it says.
                while self.figures.len() > HOMES_COUNTED {
                    self.figures.pop_first();
                }
                None
            }
            ShardAnswer::Reported(home, report) => Some(MemberInput::Reported(home, self.shard, report)),
        }
    }
}
