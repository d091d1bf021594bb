//! What a binary that was built for a demo says of `walras edge gateway --strategy`.

use edge::EdgeObserver;
use fairnet::MemberId;

/// # Errors
///
/// Always: this build has no interpreter of modules.
pub fn run_strategy(_module: &[u8], _gateway: MemberId, _observer: EdgeObserver) -> anyhow::Result<EdgeObserver> {
    anyhow::bail!("this binary was built for a demo, without an interpreter of modules: `make build` adds it")
}
