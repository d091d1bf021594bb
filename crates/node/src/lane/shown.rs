//! What a member's operator is shown of its shards: `/v1/status`, metrics, `walras shard list`.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use lane::LaneShard;
use member::apart::ShardFigures;
use payments::HomeEpoch;
use primitives::Height;
use readers::metrics::LaneShardFigures;

/// How often it is renewed.
const EVERY: Duration = Duration::from_secs(1);

/// Since when each shard is up or down, and the height that it was told last.
#[derive(Default)]
pub(crate) struct ShownShards {
    next: Option<Instant>,
    shards: BTreeMap<u16, LaneShardFigures>,
}

impl ShownShards {
    /// Whether it is time to renew what is shown.
    pub fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self.next.is_none_or(|next| next <= now);
        if is_due {
            self.next = Some(now + EVERY);
        }
        is_due
    }

    /// How a shard stands at this time, in milliseconds since 1970. `told` is the height of the last block whose facts
    /// the node has sent to shards that are up.
    pub fn standing(
        &mut self,
        now_ms: u64,
        (shard, figures): (u16, LaneShardFigures),
        told: Height,
    ) -> LaneShardFigures {
        let before = self.shards.get(&shard);
        let is_same = before.is_some_and(|before| before.is_up == figures.is_up);
        let since_ms = before.filter(|_| is_same).map_or(now_ms, |before| before.since_ms);
        let facts_height = if figures.is_up { told } else { before.map_or(0, |before| before.facts_height) };
        let standing = LaneShardFigures { since_ms, facts_height, ..figures };
        self.shards.insert(shard, standing);
        standing
    }
}

/// A shard in the node, in each home in which it runs. It is up if clients reach it in the newest.
pub(crate) fn here<'a>(homes: impl Iterator<Item = (HomeEpoch, &'a LaneShard)>) -> LaneShardFigures {
    homes.fold(LaneShardFigures::default(), |all, (home, shard)| {
        let is_newest = all.epoch.is_none_or(|epoch| epoch < home);
        let is_up = if is_newest { !shard.awaits_address() } else { all.is_up };
        added(LaneShardFigures { is_up, ..all }, home, &figures(shard))
    })
}

/// A shard that runs apart, by what it last counted.
pub(crate) fn apart(is_up: bool, counted: &BTreeMap<HomeEpoch, ShardFigures>) -> LaneShardFigures {
    let none = LaneShardFigures { is_apart: true, is_up, ..LaneShardFigures::default() };
    counted.iter().fold(none, |all, (home, figures)| added(all, *home, figures))
}

/// What a shard has done.
pub(crate) fn figures(shard: &LaneShard) -> ShardFigures {
    let counts = shard.counts();
    let [signed, refused, log_bytes] =
        [&counts.answers, &counts.refusals, &counts.log_bytes].map(|count| count.load(Ordering::Relaxed));
    ShardFigures { signed, refused, log_bytes }
}

fn added(all: LaneShardFigures, home: HomeEpoch, of: &ShardFigures) -> LaneShardFigures {
    LaneShardFigures {
        epoch: all.epoch.max(Some(home)),
        signed: all.signed.saturating_add(of.signed),
        refused: all.refused.saturating_add(of.refused),
        log_bytes: all.log_bytes.saturating_add(of.log_bytes),
        ..all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_that_goes_keeps_its_height_and_says_since_when() {
        let mut shown = ShownShards::default();
        let counted = |signed| BTreeMap::from([(3, ShardFigures { signed, refused: 1, log_bytes: 10 })]);
        let up = shown.standing(100, (1, apart(true, &counted(5))), 40);
        assert_eq!((up.is_up, up.facts_height, up.signed, up.epoch), (true, 40, 5, Some(3)));
        let later = shown.standing(200, (1, apart(true, &counted(9))), 50);
        assert_eq!((later.since_ms, later.facts_height, later.signed), (100, 50, 9));
        let down = shown.standing(300, (1, apart(false, &counted(9))), 60);
        assert_eq!((down.is_up, down.facts_height, down.signed), (false, 50, 9), "it heard nothing of block 60");
        assert_eq!(down.since_ms, 300);
        let back = shown.standing(400, (1, apart(true, &BTreeMap::new())), 70);
        assert_eq!((back.is_up, back.facts_height, back.epoch), (true, 70, None));
    }

    #[test]
    fn counts_of_homes_add_up_and_a_shard_that_runs_in_none_is_down() {
        let both = BTreeMap::from([
            (7, ShardFigures { signed: 1, refused: 2, log_bytes: u64::MAX }),
            (8, ShardFigures { signed: 10, refused: 20, log_bytes: 30 }),
        ]);
        let all = apart(true, &both);
        assert_eq!((all.epoch, all.signed, all.refused, all.log_bytes), (Some(8), 11, 22, u64::MAX));
        assert_eq!(here(std::iter::empty()), LaneShardFigures::default());
    }
}
