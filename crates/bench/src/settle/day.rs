//! A home with a day of fills, which `walras venue audit` reads.

use std::path::{Path, PathBuf};

use ledger::{Applied, Roots};
use node::{receipts, write_checkpoint};
use primitives::Superblock;
use serde_json::{Value, json};
use store::{RealDisk, Store};

use super::{Chain, SettleBenchError};

/// Where a chain keeps its blocks and their receipts.
pub(super) struct Kept {
    home: PathBuf,
    roots: Roots,
    store: Store<RealDisk>,
}

fn failed(error: impl std::fmt::Display) -> SettleBenchError {
    SettleBenchError::Home(error.to_string())
}

impl Kept {
    fn new(home: &Path, chain: &Chain) -> Result<Kept, SettleBenchError> {
        founding::genesis_file::write(&home.join("genesis.json"), &chain.genesis).map_err(failed)?;
        let disk = RealDisk::new(home.join("data")).map_err(failed)?;
        let (store, _) = Store::open(disk, store::Options::default()).map_err(failed)?;
        Ok(Kept { home: home.to_path_buf(), roots: Roots::of(&chain.ledger), store })
    }

    /// Logs a block that is about to be applied.
    pub(super) fn log(&mut self, block: &mut Superblock) -> Result<(), SettleBenchError> {
        block.parent_root = self.roots.parts().root();
        self.store.append(block.height, &block.to_bytes()).map_err(failed)
    }

    /// Archives what applying it gave.
    pub(super) fn archive(&mut self, block: &Superblock, applied: &Applied) -> Result<(), SettleBenchError> {
        self.roots.apply(&applied.changes);
        let bytes = borsh::to_vec(&receipts(block, applied)).expect("writing to memory cannot fail");
        self.store.append_receipts(block.height, &bytes).map_err(failed)
    }
}

/// Settles `day` fills in settles of `fills` each, into a home in a folder that has none.
pub(super) fn make(
    (traders, fills, day): (usize, usize, u64),
    home: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<Value, SettleBenchError> {
    if home.join("genesis.json").exists() {
        return Err(SettleBenchError::Home(format!("{} is a home already: name another folder", home.display())));
    }
    std::fs::create_dir_all(home).map_err(failed)?;
    let mut chain = Chain::new(traders, true)?;
    chain.kept = Some(Kept::new(home, &chain)?);
    chain.found()?;
    let mut turn = 0;
    while chain.settled < day {
        let next = (day - chain.settled).min(fills as u64) as usize;
        let settle = chain.settle_block(next, turn);
        chain.must(settle)?;
        turn += 1;
        if turn.is_multiple_of(50) {
            say(&format!("{} of {day} fills", chain.settled));
        }
    }
    let Chain { ledger, kept: Some(mut kept), .. } = chain else { unreachable!("it was made above") };
    say("a checkpoint");
    kept.store.sync().map_err(failed)?;
    let writer = kept.store.begin_checkpoint(ledger.height()).map_err(failed)?;
    write_checkpoint(&ledger, writer).map_err(failed)?;
    let audit = format!("walras venue audit --home {}", kept.home.display());
    Ok(json!({ "fills": day, "blocks": ledger.height(), "traders": traders, "audit": audit }))
}
