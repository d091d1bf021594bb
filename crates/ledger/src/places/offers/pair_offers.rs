//! The resting offers of one pair, as chunks in order: a change costs as much as it touches, not as much as rests.
//!
//! The totals of each chunk are stored beside it, so that a batch is cleared without reading chunks far from the
//! rate. A few edits to a chunk are made in place. Chunks that have many edits, grow too long or too short, or
//! execute, are rebuilt. Unchanged chunks are shared with owners of an older state. How the offers are cut into
//! chunks depends on their history, and nothing else depends on the cuts.
//!
//! **Ends.** Each chunk has the least last height of its offers beside its totals, and the pair a bound below all of
//! these. So the offers that end are found by looking at the chunks of pairs in which something may end, 8 bytes for 64
//! offers. An index from heights to places would need as many bytes for one offer. It would have to be kept exact on
//! every fill and cancel, copied for each checkpoint and rebuilt by each restore.

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use clearing::{PairBook, Run, Total};
use primitives::{Amount, Height, Price, Sequence};
use proofs::{Batch, Fill, NO_END, Offer, Pair, Place, Rest};
use rayon::prelude::*;

use super::chunk::{CHUNK, Chunk, Columns};
use super::offer::{Edit, ends_later};

/// A smaller chunk is joined with its neighbour.
const SPARSE: usize = CHUNK / 4;
/// A chunk with more edits than this is rebuilt: each edit in place moves half of the chunk's offers.
const IN_PLACE: usize = 8;

/// A chunk with its totals.
#[derive(Clone, Debug)]
struct Link {
    /// The totals of the chunk; its first limit serves searches.
    total: Total,
    len: usize,
    /// The least last height of the offers.
    ends: Height,
    chunk: Arc<Chunk>,
}

/// The resting offers of one ordered pair, in order of execution. 54 bytes per offer in full chunks; a chunk is at
/// least a quarter full, and typically about three quarters.
#[derive(Clone, Debug)]
pub struct PairOffers {
    links: Vec<Link>,
    len: usize,
    /// No offer has a lower last height.
    ends: Height,
}

impl Default for PairOffers {
    fn default() -> PairOffers {
        PairOffers { links: Vec::new(), len: 0, ends: NO_END }
    }
}

impl Link {
    fn new(chunk: Arc<Chunk>) -> Link {
        Link { total: chunk.total(), len: chunk.len(), ends: chunk.ends(), chunk }
    }

    fn is_after(&self, place: &Place) -> bool {
        let first = self.total.first();
        first > place.limit || (first == place.limit && self.chunk.place(0) > *place)
    }

    /// The offers in the solver's form.
    fn run(&self) -> Run<'_> {
        let (limits, amounts) = self.chunk.unseen(self.len);
        Run { limits, amounts, total: self.total }
    }

    /// Units that the offers lock.
    fn sum(&self) -> Amount {
        self.total.amount()
    }

    /// Makes these edits in place, unless there are too many of them, or the chunk could become too long or too
    /// short.
    fn edit_in_place(&mut self, edits: &[Edit], ends: &mut EndChanges) -> bool {
        let come = edits.iter().filter(|edit| edit.amount.is_some()).count();
        let go = edits.len() - come;
        if edits.len() > IN_PLACE || self.len + come > CHUNK || self.len < SPARSE + go {
            return false;
        }
        let chunk = Arc::make_mut(&mut self.chunk);
        edits.iter().for_each(|edit| ends.note(chunk.edit(edit), edit));
        (self.total, self.len, self.ends) = (chunk.total(), chunk.len(), chunk.ends());
        true
    }
}

impl PairOffers {
    /// Number of offers.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no offer rests.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The offer that executes first.
    pub fn first(&self) -> Option<Offer> {
        self.links.first().map(|link| link.chunk.offer(0))
    }

    /// The offer that executes last.
    pub fn last(&self) -> Option<Offer> {
        self.links.last().map(|link| link.chunk.offer(link.chunk.len() - 1))
    }

    /// The offers in order of execution.
    pub fn iter(&self) -> impl Iterator<Item = Offer> + '_ {
        self.links.iter().flat_map(|link| (0..link.chunk.len()).map(|at| link.chunk.offer(at)))
    }

    /// The offers whose places lie in `range`, in order of execution. Starting costs a search, not a walk.
    ///
    /// [`Place::lowest`] and [`Place::highest`] convert prices to places.
    pub fn range(&self, range: impl RangeBounds<Place>) -> impl Iterator<Item = Offer> + '_ {
        let (mut link, mut at) = match range.start_bound() {
            Bound::Unbounded => (0, 0),
            Bound::Included(place) => self.lower_bound(place),
            Bound::Excluded(place) => {
                let (link, at) = self.lower_bound(place);
                let same = self.links.get(link).is_some_and(|link| link.chunk.is_at(at, place));
                (link, at + usize::from(same))
            }
        };
        let end = range.end_bound().cloned();
        std::iter::from_fn(move || {
            let mut chunk = &self.links.get(link)?.chunk;
            if at == chunk.len() {
                (link, at) = (link + 1, 0);
                chunk = &self.links.get(link)?.chunk;
            }
            at += 1;
            Some(chunk.offer(at - 1))
        })
        .take_while(move |offer| match &end {
            Bound::Unbounded => true,
            Bound::Included(last) => offer.place <= *last,
            Bound::Excluded(last) => offer.place < *last,
        })
    }

    /// Units for sale of the offer at a place.
    pub fn get(&self, place: &Place) -> Option<Amount> {
        self.rest(place).map(|rest| rest.amount)
    }

    /// What rests at a place.
    pub fn rest(&self, place: &Place) -> Option<Rest> {
        let (link, at) = self.lower_bound(place);
        let chunk = &self.links.get(link)?.chunk;
        chunk.is_at(at, place).then(|| Rest { amount: chunk.amounts()[at], until: chunk.untils()[at] })
    }

    /// No offer has a lower last height than this.
    pub(crate) fn ends(&self) -> Height {
        self.ends
    }

    /// The offers whose last height is at most `height`, in order of execution.
    pub(crate) fn due(&self, height: Height) -> Vec<Offer> {
        let of_link = |link: &Link| (0..link.len).map(|at| link.chunk.offer(at)).collect::<Vec<_>>();
        let late = self.links.par_iter().filter(|link| link.ends <= height).flat_map_iter(of_link);
        late.filter(|offer| offer.until <= height).collect()
    }

    /// Makes the bound of the last heights exact.
    pub(crate) fn bound_ends(&mut self) {
        self.ends = self.links.iter().map(|link| link.ends).min().unwrap_or(NO_END);
    }

    /// Whether one of the first `most` offers at this limit has this id, in any account.
    pub fn any_at(&self, limit: Price, id: Sequence, most: usize) -> bool {
        self.range(Place::lowest(limit)..=Place::highest(limit)).take(most).any(|offer| offer.place.id == id)
    }

    /// Units that the offers lock.
    pub fn locked(&self) -> u128 {
        self.links.iter().map(|link| u128::from(link.sum())).sum()
    }

    /// The offers as they were before `fills`, which are sorted by place: the present offers plus what was sold.
    pub fn before<'a>(&self, fills: impl IntoIterator<Item = &'a Fill>) -> PairOffers {
        let until = |place: &Place| self.rest(place).map_or(NO_END, |rest| rest.until);
        let unsold = |fill: &Fill| Edit { place: fill.place, amount: Some(fill.offered()), until: until(&fill.place) };
        let mut before = self.clone();
        before.apply(None, &fills.into_iter().map(unsold).collect::<Vec<_>>());
        before
    }

    /// The offers of `pair` before a batch, from those that rest after its block: what the batch sold is put back, and
    /// offers that ended after it rest again.
    pub fn as_met_by(&self, batch: &Batch, pair: Pair) -> PairOffers {
        let ended = batch.ended.iter().filter(|ended| ended.pair == pair && ended.why.is_after_batch());
        let edits: Vec<Edit> =
            ended.map(|ended| Edit { place: ended.place, amount: Some(ended.returned), until: NO_END }).collect();
        self.with(&edits).before(batch.fills_of(pair))
    }

    /// The offers with these edits made, which are sorted by place.
    pub fn with(&self, edits: &[Edit]) -> PairOffers {
        let mut changed = self.clone();
        changed.apply(None, edits);
        changed
    }

    /// The offers in the solver's form: chunks are its runs, and their sums are cached.
    pub fn view(&self, pair: Pair) -> PairBook<'_> {
        PairBook { sell: pair.sell, buy: pair.buy, runs: self.links.iter().map(Link::run).collect() }
    }

    /// The first offers in the solver's form: all whose limits `reach`, which must hold for a prefix of limits.
    pub(crate) fn leading_view(&self, pair: Pair, reach: impl Fn(Price) -> bool) -> PairBook<'_> {
        let runs = self.links.iter().take_while(|link| reach(link.total.first())).map(Link::run);
        PairBook { sell: pair.sell, buy: pair.buy, runs: runs.collect() }
    }

    /// Bytes of memory, including chunks shared with other states.
    pub(crate) fn bytes(&self) -> usize {
        let links = self.links.capacity() * size_of::<Link>();
        size_of::<PairOffers>() + links + self.links.len() * Chunk::BYTES
    }

    /// Whether places rise, no offer is empty, and the cached totals are correct.
    pub(crate) fn is_sound(&self) -> bool {
        let chunk = |link: &Link| {
            let sane = (1..=CHUNK).contains(&link.len) && link.len == link.chunk.len();
            let ends = link.ends == link.chunk.ends() && self.ends <= link.ends;
            sane && ends && Total::of(link.chunk.limits(), link.chunk.amounts()) == Ok(link.total)
        };
        let len: usize = self.links.iter().map(|link| link.chunk.len()).sum();
        len == self.len && self.links.iter().all(chunk) && self.iter().is_sorted_by(|a, b| a.place < b.place)
    }

    /// The chunk and the position in it of the first offer at `place` or behind it. The position may be one past the
    /// end of the chunk.
    fn lower_bound(&self, place: &Place) -> (usize, usize) {
        let link = self.links.partition_point(|link| !link.is_after(place)).saturating_sub(1);
        (link, self.links.get(link).map_or(0, |link| link.chunk.lower_bound(place)))
    }

    /// Removes every offer up to and including `through`, then makes `edits`, which are sorted by place; an edit may
    /// restore an offer that `through` removed. Returns the change of the locked units, summed over the chunks.
    pub(crate) fn apply(&mut self, through: Option<&Place>, edits: &[Edit]) -> i128 {
        self.apply_with(&mut Workspace::default(), through, edits)
    }

    /// [`PairOffers::apply`] with working memory that is reused for many pairs.
    pub(crate) fn apply_with(&mut self, workspace: &mut Workspace, through: Option<&Place>, edits: &[Edit]) -> i128 {
        let Workspace { old, open, left, ends } = workspace;
        left.clear();
        ends.clear();
        let mut next = Rebuild { links: &mut self.links, open, len: self.len, change: 0, ends };
        let from = next.edit_in_place(through, edits, left);
        if through.is_some() || !left.is_empty() {
            next.rebuild(from, old, through, left);
        }
        let change = next.change;
        self.len = next.len;
        self.ends = self.ends.min(ends.least);
        change
    }
}

/// Working memory for changes.
#[derive(Default)]
pub(crate) struct Workspace {
    old: Vec<Link>,
    open: Columns,
    /// Edits that cannot be made in place.
    left: Vec<Edit>,
    /// What the last change did to the ends of offers.
    pub ends: EndChanges,
}

/// How a change moves the numbers of offers by last height.
#[derive(Default)]
pub(crate) struct EndChanges {
    /// Heights at which one offer more ends, or one less; only of offers that rest and have an end.
    pub changes: Vec<(Height, i32)>,
    /// The least last height of the offers that came.
    least: Height,
}

impl EndChanges {
    fn clear(&mut self) {
        self.changes.clear();
        self.least = NO_END;
    }

    /// Notes an edit, and the last height of the offer that was at its place.
    fn note(&mut self, before: Option<Height>, edit: &Edit) {
        before.into_iter().for_each(|until| self.leave(until));
        if edit.amount.is_some() {
            self.come(edit.until);
        }
    }

    fn come(&mut self, until: Height) {
        self.least = self.least.min(until);
        if ends_later(until) {
            self.changes.push((until, 1));
        }
    }

    fn leave(&mut self, until: Height) {
        if ends_later(until) {
            self.changes.push((until, -1));
        }
    }
}

impl Columns {
    fn push_edit(&mut self, edit: &Edit) {
        if let Some(amount) = edit.amount {
            self.push(Offer { place: edit.place, amount, until: edit.until });
        }
    }

    /// Copies the offers of a chunk from position `at` on, with the edits that belong into it.
    fn merge(&mut self, chunk: &Chunk, mut at: usize, edits: &[Edit], ends: &mut EndChanges) {
        chunk.untils()[..at].iter().for_each(|until| ends.leave(*until));
        for edit in edits {
            let to = chunk.lower_bound(&edit.place).max(at);
            self.extend(chunk, at..to);
            let before = chunk.is_at(to, &edit.place).then(|| chunk.untils()[to]);
            at = to + usize::from(before.is_some());
            ends.note(before, edit);
            self.push_edit(edit);
        }
        self.extend(chunk, at..chunk.len());
    }
}

/// The first of these sorted edits that belong before `follower`, and the rest.
fn before<'a>(edits: &'a [Edit], follower: Option<&Link>) -> (&'a [Edit], &'a [Edit]) {
    let is_own = |edit: &Edit| follower.is_none_or(|follower| follower.is_after(&edit.place));
    edits.split_at(edits.iter().take_while(|edit| is_own(edit)).count())
}

/// A pair's offers during a change.
struct Rebuild<'a> {
    links: &'a mut Vec<Link>,
    /// Offers behind those of `links` that are not in a chunk yet.
    open: &'a mut Columns,
    len: usize,
    /// Units in the new chunks minus units in the removed chunks.
    change: i128,
    ends: &'a mut EndChanges,
}

impl Rebuild<'_> {
    /// Makes the edits behind `through` that can be made in place, and leaves the others in `left`; returns the first
    /// chunk to rebuild.
    fn edit_in_place(&mut self, through: Option<&Place>, edits: &[Edit], left: &mut Vec<Edit>) -> usize {
        let mut at = through.map_or(0, |last| self.links.partition_point(|link| !link.is_after(last)));
        let mut from = if through.is_some() { 0 } else { self.links.len() };
        let mut edits = edits;
        if through.is_some() {
            let (own, others) = before(edits, self.links.get(at));
            left.extend_from_slice(own);
            edits = others;
        }
        while let Some(next) = edits.first() {
            at += self.links[at..].partition_point(|link| !link.is_after(&next.place)).saturating_sub(1);
            let (own, others) = before(edits, self.links.get(at + 1));
            match self.links.get_mut(at) {
                Some(link) => {
                    let (units, len) = (link.sum(), link.len);
                    if link.edit_in_place(own, self.ends) {
                        self.change += i128::from(link.sum()) - i128::from(units);
                        self.len = self.len + link.len - len;
                    } else {
                        left.extend_from_slice(own);
                        from = from.min(at);
                    }
                }
                None => left.extend_from_slice(own),
            }
            edits = others;
        }
        from
    }

    /// Removes every offer up to and including `through`, and makes `edits`, starting with the chunk at `from`.
    fn rebuild(&mut self, from: usize, old: &mut Vec<Link>, through: Option<&Place>, edits: &[Edit]) {
        old.extend(self.links.drain(from..));
        let mut edits = edits;
        let mut links = old.drain(..).peekable();
        while let Some(link) = links.next() {
            let own;
            (own, edits) = before(edits, links.peek());
            let cut = match through {
                Some(last) if links.peek().is_some_and(|follower| !follower.is_after(last)) => link.len,
                Some(last) if !link.is_after(last) => link.chunk.upper_bound(last),
                _ => 0,
            };
            self.merge_chunk(link, cut, own);
        }
        for edit in edits {
            self.ends.note(None, edit);
            self.open.push_edit(edit);
        }
        self.finish();
    }

    /// Takes a chunk over from position `cut` on, unchanged if nothing in it changes.
    fn merge_chunk(&mut self, link: Link, cut: usize, edits: &[Edit]) {
        if cut == 0 && edits.is_empty() && self.open.len() == 0 {
            // The chunk is not even read: most chunks of a large book are in no cache.
            self.links.push(link);
            return;
        }
        self.len -= link.len;
        self.change -= i128::from(link.sum());
        self.open.merge(&link.chunk, cut, edits, self.ends);
        self.open.reuse(link.chunk);
        if self.open.len() >= SPARSE {
            self.close();
        }
    }

    fn close(&mut self) {
        self.open.cut(|chunk| {
            let link = Link::new(chunk);
            self.len += link.len;
            self.change += i128::from(link.sum());
            self.links.push(link);
        });
    }

    /// Makes chunks of the rest.
    fn finish(&mut self) {
        if (1..SPARSE).contains(&self.open.len())
            && let Some(last) = self.links.pop()
        {
            self.len -= last.len;
            self.change -= i128::from(last.sum());
            self.open.prepend(&last.chunk);
            self.open.reuse(last.chunk);
        }
        self.close();
    }
}

#[cfg(test)]
mod tests;
