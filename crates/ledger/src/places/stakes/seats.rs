//! Who holds the seats of the next committee: the draw, and how much of it may happen at once.

use primitives::{Amount, Digest};
use proofs::Committee;

use super::draw::Lots;
use crate::places::charter::seats_needed;

/// How an account stands in a draw. Of those that lose their seats the first ones go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// It was convicted.
    Convicted,
    /// It has a stake, and its node has not said that it is present.
    Absent,
    /// Its node cannot follow the confirmed rules.
    Unready,
    /// It has unstaked.
    Left,
    /// It may be drawn.
    Present,
}

/// An account in a draw.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// Its stake.
    pub stake: Amount,
    /// How it stands.
    pub standing: Standing,
}

/// The most seats of a committee of `size` that one draw changes: f, and one where f is zero.
pub(crate) fn changes_max(size: usize) -> usize {
    Committee::new(size.max(1)).faulty.max(1)
}

/// The holders of the next committee's seats, as positions in `candidates`. `held` are the holders of the present
/// seats, `size` is the number of seats that the chain wants, and the stakes sum below 2^64. Of n seats that the chain
/// can fill, n − a may be held by accounts that are not ready, where a seats had to agree on the rules.
pub(crate) fn next_seats(
    seed: &Digest,
    epoch: u64,
    candidates: &[Candidate],
    held: &[usize],
    size: usize,
    is_patient: bool,
) -> Vec<usize> {
    let mut lots = Lots::new(seed, epoch);
    let stakes: Vec<Amount> = candidates.iter().map(|one| one.stake).collect();
    let order = lots.draw(&stakes, candidates.len());
    let is_present = |at: &usize| candidates[*at].standing == Standing::Present;
    let is_unready = |at: &usize| candidates[*at].standing == Standing::Unready;
    let order: Vec<usize> = order.into_iter().filter(|at| is_present(at) || is_unready(at)).collect();
    let seats = size.min(order.len().max(held.len()));
    let vacant = seats - seats_needed(seats, is_patient);
    let mut left = vacant;
    let drawn: Vec<usize> = order.into_iter().filter(|at| is_present(at) || take_one(&mut left)).take(size).collect();

    let changes = changes_max(held.len());
    let comes: Vec<usize> = drawn.iter().filter(|at| !held.contains(at)).copied().collect();
    let goes: Vec<usize> = held.iter().filter(|at| !drawn.contains(at)).copied().collect();
    let mut left = vacant.saturating_sub(held.iter().filter(|at| is_unready(at)).count());
    let comes = lots.shuffle(&comes).into_iter().filter(|at| is_present(at) || take_one(&mut left));
    let mut comes = comes.take(changes);
    let mut goes = lots.shuffle(&goes);
    goes.sort_by_key(|at| candidates[*at].standing);
    let mut goes = goes.into_iter().take(changes).peekable();

    let mut seats = held.to_vec();
    for gone in goes.by_ref().take(held.len().saturating_sub(size)) {
        seats.retain(|seat| *seat != gone);
    }
    while let Some(gone) = goes.next_if(|at| !is_present(at)) {
        replace(&mut seats, gone, comes.next());
    }
    let free = size.saturating_sub(seats.len());
    seats.extend(comes.by_ref().take(free));
    goes.for_each(|gone| replace(&mut seats, gone, comes.next()));
    seats
}

/// Takes one of what is left, if anything is.
fn take_one(left: &mut usize) -> bool {
    let takes = *left > 0;
    *left -= usize::from(takes);
    takes
}

/// Gives a seat to who comes. Without anybody it stays: a smaller committee bears fewer faulty members.
fn replace(seats: &mut [usize], gone: usize, comes: Option<usize>) {
    if let (Some(seat), Some(comes)) = (seats.iter_mut().find(|seat| **seat == gone), comes) {
        *seat = comes;
    }
}
