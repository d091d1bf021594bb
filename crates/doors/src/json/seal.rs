//! The committee's sealing key.

use api::{SealBody, SealFailedBody, SealKeyBody, SealMakingBody};
use ledger::{SEAL_RETRY_HEIGHTS, SEAL_STEP_HEIGHTS, SealBoard, SealFailure, SealKeyRecord, Seals};
use primitives::{Address, to_hex};
use readers::Outline;

/// The body for an outline.
pub fn seal(outline: &Outline) -> SealBody {
    let seals = outline.seals.as_deref();
    SealBody {
        height: outline.height,
        threshold: seals.map(|seals| seals.terms().name().into()),
        in_force: seals.and_then(|seals| seals.in_force(outline.height + 1)).map(|key| key.number),
        keys: seals.map_or(Vec::new(), |seals| seals.keys().iter().map(key).collect()),
        making: seals.and_then(Seals::board).map(making),
        failed: seals.and_then(Seals::failed).map(failed),
    }
}

fn texts<'a>(accounts: impl Iterator<Item = &'a Address>) -> Vec<String> {
    accounts.map(ToString::to_string).collect()
}

fn key(of: &SealKeyRecord) -> SealKeyBody {
    SealKeyBody {
        number: of.number,
        key: to_hex(&of.group),
        needed: of.t,
        least: of.least,
        holders: texts(of.holders.iter().map(|holder| &holder.account)),
        from: of.from,
        last: (of.last < u64::MAX).then_some(of.last),
    }
}

fn making(board: &SealBoard) -> SealMakingBody {
    let (step, since) = board.at();
    let (number, ends) = (board.number(), since.saturating_add(SEAL_STEP_HEIGHTS));
    SealMakingBody { number, step: step.name().into(), ends, awaited: texts(board.awaited()) }
}

fn failed(of: &SealFailure) -> SealFailedBody {
    SealFailedBody {
        number: of.number,
        step: of.step.name().into(),
        height: of.height,
        again: of.height.saturating_add(SEAL_RETRY_HEIGHTS),
        silent: texts(of.silent.iter()),
    }
}
