//! The committee's sealing key.

use api::{SealBody, SealFailedBody, SealKeyBody, SealMakingBody, SealingStatus};
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

/// What the status of a node says of the key; `None` on a chain that makes none.
pub fn sealing(outline: &Outline) -> Option<SealingStatus> {
    let seals = outline.seals.as_deref()?;
    let key = seals.in_force(outline.height + 1);
    Some(SealingStatus {
        in_force: key.map(|key| key.number),
        age: key.map(|key| (outline.height + 1).saturating_sub(key.from)),
        holders: key.map_or(0, |key| key.holders.len()),
        missing: key.is_none().then(|| missing(seals)),
    })
}

/// Why no key is in force.
fn missing(seals: &Seals) -> String {
    let silent = |accounts: &[String]| match accounts {
        [] => "nobody".to_string(),
        some => some.join(", "),
    };
    match (seals.keys().first(), seals.board(), seals.failed()) {
        (Some(key), ..) => format!("the key {} is made and acts from height {}", key.number, key.from),
        (None, Some(board), _) => {
            let of = making(board);
            let (number, step, ends) = (of.number, of.step, of.ends);
            format!(
                "the key {number} is being made: the step {step} ends after height {ends} at the latest, and awaits {}",
                silent(&of.awaited)
            )
        }
        (None, None, Some(failure)) => {
            let of = failed(failure);
            let (number, step, again) = (of.number, of.step, of.again);
            format!(
                "no_group_key: the key {number} was not made, for too few took part in the step {step}. Silent: {}. The \
                 same committee tries again after height {again}",
                silent(&of.silent)
            )
        }
        (None, None, None) => "the committee has not begun to make one, or another one is drawn soon".into(),
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
