//! What a block says in the channels that say the same to everybody: written by the first connection that asks, and
//! shared by the others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use readers::views::CommittedBlock;
use serde_json::Value;

use super::channels::Channel;
use crate::unnumbered::Unnumbered;

/// All that a block says in a channel.
pub(super) type Written = Arc<[Unnumbered]>;

/// What the block says that was asked for last, as far as somebody has asked.
#[derive(Default)]
pub(super) struct SharedNews(Mutex<OfBlock>);

#[derive(Default)]
struct OfBlock {
    block: Option<Arc<CommittedBlock>>,
    written: BTreeMap<Channel, Written>,
}

impl OfBlock {
    fn is_of(&self, block: &Arc<CommittedBlock>) -> bool {
        self.block.as_ref().is_some_and(|known| Arc::ptr_eq(known, block))
    }

    fn of(&self, channel: &Channel, block: &Arc<CommittedBlock>) -> Option<Written> {
        self.written.get(channel).filter(|_| self.is_of(block)).cloned()
    }
}

impl SharedNews {
    /// What a block says in a channel; `make` makes it for the first who asks.
    pub(super) fn of(
        &self,
        channel: &Channel,
        block: &Arc<CommittedBlock>,
        make: impl FnOnce() -> Vec<Value>,
    ) -> Written {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(written) = known().of(channel, block) {
            return written;
        }
        let written: Written = make().iter().map(Unnumbered::of).collect();
        let mut known = known();
        if !known.is_of(block) {
            *known = OfBlock { block: Some(block.clone()), ..OfBlock::default() };
        }
        known.written.insert(channel.clone(), written.clone());
        written
    }

    /// The same if somebody has asked before, and nobody does now: nothing is waited for.
    pub(super) fn written(&self, channel: &Channel, block: &Arc<CommittedBlock>) -> Option<Written> {
        self.0.try_lock().ok()?.of(channel, block)
    }
}

#[cfg(test)]
mod tests {
    use ledger::{Genesis, Ledger, Listing, Signatures};
    use primitives::{Address, Digest, Fraction, Superblock};
    use readers::Outline;
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_written_once_for_each_block_and_channel() {
        let block = || {
            let assets = vec![Listing::new("EUR", 2, Address([1; 20]))];
            let mu = Fraction::power_of_two(10);
            let mut ledger = Ledger::new(&Genesis { chain: 1, mu, assets, ..Genesis::default() }).expect("sound");
            let (height, parent) = (1, ledger.last_block());
            let block = Superblock { height, parent, time_ms: 1, ..Superblock::default() };
            let applied = ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("sound");
            let (root, outline) = (Digest::default(), Outline::of(&ledger));
            Arc::new(CommittedBlock::new(&block, &applied, &[], root, outline, Vec::new()))
        };
        let (news, first, second, mut made) = (SharedNews::default(), block(), block(), 0);
        let mut ask = |channel: &Channel, block| {
            let make = || {
                made += 1;
                vec![json!({ "made": made })]
            };
            news.of(channel, block, make)[0].numbered(0)
        };
        let told = |made: u32| format!(r#"{{"made":{made},"sequence":0}}"#);
        assert_eq!([ask(&Channel::Blocks, &first), ask(&Channel::Blocks, &first)], [told(1), told(1)]);
        assert_eq!(ask(&Channel::Batches, &first), told(2));
        // Another block of the same height, as after a developers' chain went back.
        assert_eq!(ask(&Channel::Blocks, &second), told(3));
        assert_eq!(news.written(&Channel::Batches, &second), None);
        assert!(news.written(&Channel::Blocks, &second).is_some());
        assert_eq!(news.written(&Channel::Blocks, &first), None);
    }
}
