//! The list that a restarted lane begins with.

use std::collections::BTreeMap;

use primitives::{AssetId, Digest};

use super::log::write_count;
use crate::layout::Reader;
use crate::resolve::read_map;
use crate::{LaneRefusal, Output, OutputId, Recipient};

const LIST_CONTEXT: &str = "walras 2026 lane carried over v1";
const CARRIED_CONTEXT: &str = "walras 2026 lane output carried over v1";

impl OutputId {
    /// The output of a restarted network that takes the place of this one in the network before.
    pub fn carried_into(&self, network: &Digest) -> OutputId {
        OutputId(Digest::of(CARRIED_CONTEXT, &[network.0, self.0].concat()).0)
    }
}

/// What a restarted lane begins with. Outputs have the ids of the network before; amounts are known parts.
///
/// ```text
/// list   count 4 · (id 32 · output 45)[] · count 4 · (id 32 · output 45)[] · count 4 · (id 32 · output 45)[]
///        outputs                           claims                            aside
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneCarryOver {
    /// Outputs of keys: they exist again, in the first epoch.
    pub outputs: BTreeMap<OutputId, Output>,
    /// Outputs to accounts that are not paid yet: they are claims on escrow.
    pub claims: BTreeMap<OutputId, Output>,
    /// Outputs of keys for which too few complete logs were shown. Their units stay in escrow.
    pub aside: BTreeMap<OutputId, Output>,
}

impl LaneCarryOver {
    /// The digest of the list, which the new identity contains.
    pub fn digest(&self) -> Digest {
        Digest::of(LIST_CONTEXT, &self.encode())
    }

    /// Units of each asset that outputs and claims need.
    pub fn needed(&self) -> BTreeMap<AssetId, u128> {
        let mut sums = BTreeMap::new();
        for output in self.outputs.values().chain(self.claims.values()) {
            *sums.entry(output.asset).or_default() += u128::from(output.amount);
        }
        sums
    }

    /// Its layout.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Vec::new();
        for part in [&self.outputs, &self.claims, &self.aside] {
            write_count(&mut to, part.len());
            for (id, output) in part {
                to.extend(id.0);
                output.write(&mut to);
            }
        }
        to
    }

    /// Parses a list that fills `bytes`.
    ///
    /// # Errors
    /// [`LaneRefusal::Malformed`] for anything that [`LaneCarryOver::encode`] does not write.
    pub fn parse(bytes: &[u8]) -> Result<LaneCarryOver, LaneRefusal> {
        let mut reader = Reader::new(bytes);
        let mut part = |to_keys: bool| {
            let count = reader.u32()?;
            let part = read_map(&mut reader, count, |reader| Ok((OutputId(reader.array()?), Output::read(reader)?)))?;
            let is_right = |output: &Output| matches!(output.to, Recipient::Key(_)) == to_keys;
            let wrong = LaneRefusal::Malformed("outputs go to keys, and claims to accounts");
            if part.values().all(is_right) { Ok(part) } else { Err(wrong) }
        };
        let carried = LaneCarryOver { outputs: part(true)?, claims: part(false)?, aside: part(true)? };
        reader.end()?;
        Ok(carried)
    }
}
