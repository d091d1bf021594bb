//! A sorted map that shares its memory with its clones: a block after a checkpoint copies the pages that it writes to,
//! and nothing else.
//!
//! Entries lie in pages, pages in branches. A clone copies one pointer for each branch. Whoever has found an entry
//! knows its place, and writes there without a search. An edit whose entry is elsewhere by then comes back.

use std::collections::HashSet;
use std::iter::Peekable;
use std::sync::Arc;

/// Entries of a full page.
const PAGE: usize = 32;
/// Pages of a full branch.
const BRANCH: usize = 64;

type Page<K, V> = Vec<(K, V)>;
type Branch<K, V> = Vec<Arc<Page<K, V>>>;

/// Where an entry was: its branch, its page in the branch, and its place in the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryPlace {
    branch: u32,
    page: u32,
    at: u32,
}

/// Finds keys in a map. It stays at an entry, so that keys of one page are searched for in that page alone, and those
/// that follow near by.
pub(crate) struct Finder<'m, K, V> {
    map: &'m SharedMap<K, V>,
    page: &'m [(K, V)],
    /// The place of the page, and in it that of the entry that was found last.
    place: EntryPlace,
    /// The first key of the next page, if there is one.
    end: Option<&'m K>,
}

impl<'m, K: Ord + Clone, V: Clone> Finder<'m, K, V> {
    pub(crate) fn find(&mut self, key: &K) -> Option<&'m V> {
        self.find_place(key).map(|(_, value)| value)
    }

    /// A value and where it is.
    pub(crate) fn find_place(&mut self, key: &K) -> Option<(EntryPlace, &'m V)> {
        let is_here = self.page.first().is_some_and(|(first, _)| first <= key) && self.end.is_none_or(|end| key < end);
        if !is_here {
            let (branch, page) = self.map.place(key)?;
            let pages = &self.map.branches[branch];
            let next_branch = || self.map.branches.get(branch + 1).map(first_of_branch);
            self.end = pages.get(page + 1).map(first_of_page).or_else(next_branch);
            self.page = &pages[page];
            self.place = EntryPlace { branch: branch as u32, page: page as u32, at: 0 };
        }
        let last = self.place.at as usize;
        let from = if self.page.get(last).is_some_and(|(of, _)| of <= key) { last } else { 0 };
        let at = from + first_at(&self.page[from..], key);
        let (_, value) = self.page.get(at).filter(|(of, _)| of == key)?;
        self.place.at = at as u32;
        Some((self.place, value))
    }
}

/// What becomes of a key that is edited.
pub(crate) enum Edited<V> {
    /// It is as it was, or was changed in its place.
    Stays,
    /// It has this value.
    Is(V),
    /// It has none.
    Gone,
}

/// A sorted map. No page and no branch is empty.
#[derive(Clone, Debug)]
pub(crate) struct SharedMap<K, V> {
    branches: Vec<Arc<Branch<K, V>>>,
    len: usize,
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> SharedMap<K, V> {
        SharedMap { branches: Vec::new(), len: 0 }
    }
}

/// The position of the first entry at a key or behind it: in few steps if it is near the front.
fn first_at<K: Ord, V>(entries: &[(K, V)], key: &K) -> usize {
    let mut end = 1;
    while entries.get(end - 1).is_some_and(|(of, _)| of < key) {
        end *= 2;
    }
    let near = &entries[end / 2..end.min(entries.len())];
    end / 2 + near.partition_point(|(of, _)| of < key)
}

/// The position of the last item that begins at a key or before it, or the first item.
fn last_at<T, K: Ord>(items: &[T], key: &K, first: impl Fn(&T) -> &K) -> usize {
    items.partition_point(|item| first(item) <= key).saturating_sub(1)
}

fn first<K: Clone, V>((key, _): (&K, &V)) -> K {
    key.clone()
}

fn first_of_page<K, V>(page: &Arc<Page<K, V>>) -> &K {
    &page[0].0
}

fn first_of_branch<K, V>(branch: &Arc<Branch<K, V>>) -> &K {
    first_of_page(&branch[0])
}

/// The next edit, if its key is below the first one of the next page.
fn next_below<K: Ord, E>(edits: &mut Peekable<impl Iterator<Item = (K, E)>>, end: Option<&K>) -> Option<(K, E)> {
    edits.next_if(|(key, _)| end.is_none_or(|end| key < end))
}

fn is_next_below<K: Ord, E>(edits: &mut Peekable<impl Iterator<Item = (K, E)>>, end: Option<&K>) -> bool {
    edits.peek().is_some_and(|(key, _)| end.is_none_or(|end| key < end))
}

/// A page to write to, with room for one entry more than it may keep: a copy of its own if others share it.
fn own_page<T: Clone>(page: &mut Arc<Vec<T>>) -> &mut Vec<T> {
    if Arc::get_mut(page).is_none() {
        let mut copy = Vec::with_capacity(PAGE + 1);
        copy.extend_from_slice(page);
        *page = Arc::new(copy);
    }
    Arc::get_mut(page).expect("nobody else has it")
}

/// Edits a page; returns by how many entries it has grown.
fn edit_page<K: Ord, V, E>(
    entries: &mut Page<K, V>,
    edits: &mut Peekable<impl Iterator<Item = (K, E)>>,
    end: Option<&K>,
    write: &mut impl FnMut(&K, E, Option<&mut V>) -> Edited<V>,
) -> isize {
    let (mut at, mut gone, mut new) = (0, Vec::new(), Vec::new());
    while let Some((key, edit)) = next_below(edits, end) {
        at += first_at(&entries[at..], &key);
        let found = entries.get_mut(at).filter(|(of, _)| *of == key).map(|(_, value)| value);
        let is_found = found.is_some();
        match write(&key, edit, found) {
            Edited::Is(value) if is_found => entries[at].1 = value,
            Edited::Is(value) => new.push((at, (key, value))),
            Edited::Gone if is_found => gone.push(at),
            Edited::Gone | Edited::Stays => {}
        }
    }
    let grown = new.len() as isize - gone.len() as isize;
    match (&new[..], &gone[..]) {
        ([], []) => {}
        ([], [at]) => drop(entries.remove(*at)),
        ([_], []) => new.into_iter().for_each(|(at, entry)| entries.insert(at, entry)),
        _ => rebuild(entries, new, gone),
    }
    grown
}

/// Puts new entries before those at their positions, and drops those that are gone; both by position.
fn rebuild<T>(entries: &mut Vec<T>, new: Vec<(usize, T)>, gone: Vec<usize>) {
    let before = std::mem::replace(entries, Vec::with_capacity(entries.len() + new.len()));
    let (mut new, mut gone) = (new.into_iter().peekable(), gone.into_iter().peekable());
    for (at, entry) in before.into_iter().enumerate() {
        entries.extend(std::iter::from_fn(|| new.next_if(|(before, _)| *before == at)).map(|(_, entry)| entry));
        if gone.next_if_eq(&at).is_none() {
            entries.push(entry);
        }
    }
    entries.extend(new.map(|(_, entry)| entry));
}

/// Adds an item that is not empty, in as few equal parts as it needs.
fn add_parts<T: Clone>(all: &mut Vec<Arc<Vec<T>>>, item: Arc<Vec<T>>, most: usize) {
    match item.len() {
        0 => {}
        len if len <= most => all.push(item),
        len => {
            let size = len.div_ceil(len.div_ceil(most));
            let mut rest = Arc::unwrap_or_clone(item).into_iter();
            while rest.len() > 0 {
                let mut part = Vec::with_capacity(most + 1);
                part.extend(rest.by_ref().take(size));
                all.push(Arc::new(part));
            }
        }
    }
}

/// Splits a full item into halves; returns the second one.
fn split<T>(items: &mut Vec<T>, most: usize) -> Option<Vec<T>> {
    (items.len() > most).then(|| items.split_off(items.len() / 2))
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Branch and page in which a key is, if it is there.
    fn place(&self, key: &K) -> Option<(usize, usize)> {
        let branch = last_at(&self.branches, key, first_of_branch);
        let pages = self.branches.get(branch)?;
        Some((branch, last_at(pages, key, first_of_page)))
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let (branch, page) = self.place(key)?;
        let page = &self.branches[branch][page];
        page.binary_search_by(|(of, _)| of.cmp(key)).ok().map(|at| &page[at].1)
    }

    /// Finds many keys, quickly if they ascend.
    pub(crate) fn finder(&self) -> Finder<'_, K, V> {
        Finder { map: self, page: &[], place: EntryPlace { branch: 0, page: 0, at: 0 }, end: None }
    }

    pub(crate) fn contains(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (branch, page) = self.place(key)?;
        let at = self.branches[branch][page].binary_search_by(|(of, _)| of.cmp(key)).ok()?;
        let page = &mut Arc::make_mut(&mut self.branches[branch])[page];
        Some(&mut Arc::make_mut(page)[at].1)
    }

    /// Returns the value that the key had.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let Some((branch, page)) = self.place(&key) else {
            self.branches.push(Arc::new(vec![Arc::new(vec![(key, value)])]));
            self.len = 1;
            return None;
        };
        let pages = Arc::make_mut(&mut self.branches[branch]);
        let entries = Arc::make_mut(&mut pages[page]);
        match entries.binary_search_by(|(of, _)| of.cmp(&key)) {
            Ok(at) => return Some(std::mem::replace(&mut entries[at].1, value)),
            Err(at) => entries.insert(at, (key, value)),
        }
        self.len += 1;
        if let Some(second) = split(entries, PAGE) {
            pages.insert(page + 1, Arc::new(second));
        }
        if let Some(second) = split(pages, BRANCH) {
            self.branches.insert(branch + 1, Arc::new(second));
        }
        None
    }

    /// Edits many keys, which ascend, each once: `write` is given the value of each, and says what becomes of it. Pages
    /// with none of the keys are not touched, and each of the others is copied at most once.
    pub(crate) fn edit<E>(
        &mut self,
        edits: impl IntoIterator<Item = (K, E)>,
        mut write: impl FnMut(&K, E, Option<&mut V>) -> Edited<V>,
    ) {
        let mut edits = edits.into_iter().peekable();
        if edits.peek().is_none() {
            return;
        }
        let mut before = std::mem::take(&mut self.branches);
        if before.is_empty() {
            before.push(Arc::new(vec![Arc::default()]));
        }
        let (mut grown, mut before) = (0, before.into_iter().peekable());
        while let Some(mut branch) = before.next() {
            let end = before.peek().map(first_of_branch);
            if is_next_below(&mut edits, end) {
                let pages = Arc::make_mut(&mut branch);
                let mut rest = std::mem::take(pages).into_iter().peekable();
                while let Some(mut page) = rest.next() {
                    let end = rest.peek().map(first_of_page).or(end);
                    if is_next_below(&mut edits, end) {
                        grown += edit_page(own_page(&mut page), &mut edits, end, &mut write);
                    }
                    add_parts(pages, page, PAGE);
                }
            }
            add_parts(&mut self.branches, branch, BRANCH);
        }
        self.len = self.len.checked_add_signed(grown).expect("it holds what is removed");
    }

    /// Changes values of many keys where they were found, each once. Returns those that are not there any more.
    pub(crate) fn edit_places<E>(
        &mut self,
        edits: impl IntoIterator<Item = (EntryPlace, K, E)>,
        mut write: impl FnMut(E, &mut V),
    ) -> Vec<(K, E)> {
        let (mut edits, mut moved) = (edits.into_iter().peekable(), Vec::new());
        while let Some((EntryPlace { branch, page, .. }, ..)) = edits.peek() {
            let (branch, page) = (*branch, *page);
            let pages = self.branches.get_mut(branch as usize).map(Arc::make_mut);
            let mut entries = pages.and_then(|pages| pages.get_mut(page as usize)).map(own_page);
            let is_here = |(of, ..): &(EntryPlace, K, E)| (of.branch, of.page) == (branch, page);
            while let Some((place, key, edit)) = edits.next_if(is_here) {
                let entry = entries.as_mut().and_then(|entries| entries.get_mut(place.at as usize));
                match entry.filter(|(of, _)| *of == key) {
                    Some((_, value)) => write(edit, value),
                    None => moved.push((key, edit)),
                }
            }
        }
        moved
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let (branch, page) = self.place(key)?;
        let at = self.branches[branch][page].binary_search_by(|(of, _)| of.cmp(key)).ok()?;
        let pages = Arc::make_mut(&mut self.branches[branch]);
        let entries = Arc::make_mut(&mut pages[page]);
        let (_, value) = entries.remove(at);
        self.len -= 1;
        if entries.is_empty() {
            pages.remove(page);
        }
        if pages.is_empty() {
            self.branches.remove(branch);
        }
        Some(value)
    }

    /// The entries in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> + Clone {
        self.branches
            .iter()
            .flat_map(|pages| pages.iter())
            .flat_map(|page| page.iter())
            .map(|(key, value)| (key, value))
    }

    /// The entries from a key on, in order.
    pub(crate) fn from<'a>(&'a self, key: &K) -> impl Iterator<Item = (&'a K, &'a V)> + use<'a, K, V> {
        let (branch, page) = self.place(key).unwrap_or((0, 0));
        let rest = self.branches.get(branch).map_or(&[][..], |pages| &pages[page..]);
        let later = self.branches.iter().skip(branch + 1).flat_map(|pages| pages.iter());
        let entries = rest.iter().chain(later).flat_map(|page| page.iter()).map(|(key, value)| (key, value));
        let key = key.clone();
        entries.skip_while(move |(of, _)| **of < key)
    }

    /// The keys whose entries are not those of another map, in no order; entries that one of them lacks count. Pages
    /// that a clone shares are not looked at, so what a block changed is found in the time that it took to change it.
    pub(crate) fn differences(&self, other: &SharedMap<K, V>) -> Vec<K>
    where
        V: PartialEq,
    {
        let mut keys: Vec<K> =
            self.unshared(other).filter(|(key, value)| other.get(key) != Some(*value)).map(first).collect();
        keys.extend(other.unshared(self).filter(|(key, _)| !self.contains(key)).map(first));
        keys
    }

    /// The entries in pages that another map does not have, too.
    fn unshared<'a>(&'a self, other: &SharedMap<K, V>) -> impl Iterator<Item = (&'a K, &'a V)> {
        let theirs: HashSet<_> = other.branches.iter().map(Arc::as_ptr).collect();
        let (shared, own): (Vec<_>, Vec<_>) =
            self.branches.iter().partition(|branch| theirs.contains(&Arc::as_ptr(branch)));
        let shared: HashSet<_> = shared.into_iter().map(Arc::as_ptr).collect();
        let others = other.branches.iter().filter(|branch| !shared.contains(&Arc::as_ptr(branch)));
        let pages: HashSet<_> = others.flat_map(|pages| pages.iter()).map(Arc::as_ptr).collect();
        let own = own.into_iter().flat_map(|pages| pages.iter());
        own.filter(move |page| !pages.contains(&Arc::as_ptr(page)))
            .flat_map(|page| page.iter())
            .map(|(key, value)| (key, value))
    }

    pub(crate) fn last(&self) -> Option<(&K, &V)> {
        let (key, value) = self.branches.last()?.last()?.last()?;
        Some((key, value))
    }

    pub(crate) fn first(&self) -> Option<(&K, &V)> {
        self.iter().next()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Edits every few keys from one on: some get values, some lose them, some are changed in their places.
    fn edit_both(shared: &mut SharedMap<u16, usize>, plain: &mut BTreeMap<u16, usize>, first: u16, at: usize) {
        let edits: Vec<(u16, usize)> = (0..at % 97).map(|step| (first + (step * (1 + at % 5)) as u16, step)).collect();
        for (key, step) in &edits {
            match step % 3 {
                0 => drop(plain.insert(*key, at + step)),
                1 => drop(plain.remove(key)),
                _ => plain.get_mut(key).into_iter().for_each(|value| *value += 1),
            }
        }
        shared.edit(edits, |_, step, value| match (step % 3, value) {
            (0, _) => Edited::Is(at + step),
            (1, _) => Edited::Gone,
            (_, value) => {
                value.into_iter().for_each(|value| *value += 1);
                Edited::Stays
            }
        });
        assert!(shared.branches.iter().all(|pages| !pages.is_empty() && pages.len() <= BRANCH));
        assert!(shared.branches.iter().flat_map(|pages| pages.iter()).all(|page| (1..=PAGE).contains(&page.len())));
    }

    /// Edits entries where they are in a map, and where they were in another state of it.
    fn check_places(
        last: &SharedMap<u16, usize>,
        mut plain: BTreeMap<u16, usize>,
        old: &SharedMap<u16, usize>,
        of_old: &BTreeMap<u16, usize>,
    ) -> Result<(), TestCaseError> {
        let (mut finder, mut edited, mut other) = (last.finder(), last.clone(), old.clone());
        let found = (0..3_000).step_by(3).filter_map(|key| Some((finder.find_place(&key)?.0, key, 7)));
        let found: Vec<(EntryPlace, u16, usize)> = found.collect();
        found.iter().for_each(|(_, key, add)| *plain.get_mut(key).expect("it was found") += add);
        prop_assert_eq!(edited.edit_places(found.clone(), |add, value| *value += add), vec![]);
        prop_assert!(edited.iter().eq(plain.iter()));
        let mut of_other = of_old.clone();
        let moved = other.edit_places(found.clone(), |add, value| *value += add);
        let is_moved = |key: &u16| moved.binary_search_by(|(of, _)| of.cmp(key)).is_ok();
        for (_, key, add) in found.iter().filter(|(_, key, _)| !is_moved(key)) {
            *of_other.get_mut(key).expect("it is at its place") += add;
        }
        prop_assert!(other.iter().eq(of_other.iter()));
        Ok(())
    }

    proptest! {
        /// Compares with a map of the standard library; clones keep the state of the moment when they were taken.
        #[test]
        fn a_shared_map_equals_a_plain_one_and_its_clones_stand_still(
            steps in prop::collection::vec((0..10u8, 0..3_000u16), 1..6_000)
        ) {
            let (mut shared, mut plain) = (SharedMap::default(), BTreeMap::new());
            let mut clones = Vec::new();
            for (at, (step, key)) in steps.into_iter().enumerate() {
                match step {
                    0..=3 => prop_assert_eq!(shared.insert(key, at), plain.insert(key, at)),
                    4..=5 => prop_assert_eq!(shared.remove(&key), plain.remove(&key)),
                    6 => {
                        let one = shared.get_mut(&key).map(|value: &mut usize| { *value += 1; *value });
                        prop_assert_eq!(one, plain.get_mut(&key).map(|value| { *value += 1; *value }));
                    }
                    7 if at % 8 == 0 => edit_both(&mut shared, &mut plain, key, at),
                    _ if at % 64 == 0 => clones.push((shared.clone(), plain.clone())),
                    _ => {
                        let next: Vec<_> = shared.from(&key).take(3).map(|(key, _)| *key).collect();
                        prop_assert_eq!(next, plain.range(key..).take(3).map(|(key, _)| *key).collect::<Vec<_>>());
                    }
                }
                prop_assert_eq!(shared.get(&key), plain.get(&key));
            }
            let (last, of_last) = (shared.clone(), plain.clone());
            for (clone, of_clone) in clones.iter().rev().take(2) {
                let mut found = last.differences(clone);
                found.sort_unstable();
                let keys = of_last.keys().chain(of_clone.keys());
                let mut changed: Vec<u16> = keys.filter(|key| of_last.get(key) != of_clone.get(key)).copied().collect();
                changed.sort_unstable();
                changed.dedup();
                prop_assert_eq!(found, changed);
            }
            let mut finder = last.finder();
            for key in (0..3_100).chain((0..3_100).step_by(7)).chain([0, 2_999, 1_500, 7]) {
                prop_assert_eq!(finder.find(&key), of_last.get(&key));
            }
            let (old, of_old) = clones.last().cloned().unwrap_or_else(|| (shared.clone(), plain.clone()));
            check_places(&last, of_last, &old, &of_old)?;
            clones.push((shared, plain));
            for (shared, plain) in clones {
                prop_assert_eq!(shared.len(), plain.len());
                prop_assert_eq!((shared.first(), shared.last()), (plain.iter().next(), plain.iter().next_back()));
                prop_assert!(shared.iter().eq(plain.iter()));
            }
        }
    }
}
