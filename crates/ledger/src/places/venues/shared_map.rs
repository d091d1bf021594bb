//! A sorted map that shares its memory with its clones: a block after a checkpoint copies the pages that it writes to,
//! and nothing else.
//!
//! Entries lie in pages, pages in branches. A clone copies one pointer for each branch.

use std::collections::HashSet;
use std::sync::Arc;

/// Entries of a full page.
const PAGE: usize = 32;
/// Pages of a full branch.
const BRANCH: usize = 64;

type Page<K, V> = Vec<(K, V)>;
type Branch<K, V> = Vec<Arc<Page<K, V>>>;

/// A sorted map. No page and no branch is empty.
#[derive(Clone, Debug)]
pub(super) struct SharedMap<K, V> {
    branches: Vec<Arc<Branch<K, V>>>,
    len: usize,
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> SharedMap<K, V> {
        SharedMap { branches: Vec::new(), len: 0 }
    }
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

/// Splits a full item into halves; returns the second one.
fn split<T>(items: &mut Vec<T>, most: usize) -> Option<Vec<T>> {
    (items.len() > most).then(|| items.split_off(items.len() / 2))
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Branch and page in which a key is, if it is there.
    fn place(&self, key: &K) -> Option<(usize, usize)> {
        let branch = last_at(&self.branches, key, first_of_branch);
        let pages = self.branches.get(branch)?;
        Some((branch, last_at(pages, key, first_of_page)))
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        let (branch, page) = self.place(key)?;
        let page = &self.branches[branch][page];
        page.binary_search_by(|(of, _)| of.cmp(key)).ok().map(|at| &page[at].1)
    }

    pub(super) fn contains(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (branch, page) = self.place(key)?;
        let at = self.branches[branch][page].binary_search_by(|(of, _)| of.cmp(key)).ok()?;
        let page = &mut Arc::make_mut(&mut self.branches[branch])[page];
        Some(&mut Arc::make_mut(page)[at].1)
    }

    /// Returns the value that the key had.
    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
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

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
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
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> + Clone {
        self.branches
            .iter()
            .flat_map(|pages| pages.iter())
            .flat_map(|page| page.iter())
            .map(|(key, value)| (key, value))
    }

    /// The entries from a key on, in order.
    pub(super) fn from<'a>(&'a self, key: &K) -> impl Iterator<Item = (&'a K, &'a V)> + use<'a, K, V> {
        let (branch, page) = self.place(key).unwrap_or((0, 0));
        let rest = self.branches.get(branch).map_or(&[][..], |pages| &pages[page..]);
        let later = self.branches.iter().skip(branch + 1).flat_map(|pages| pages.iter());
        let entries = rest.iter().chain(later).flat_map(|page| page.iter()).map(|(key, value)| (key, value));
        let key = key.clone();
        entries.skip_while(move |(of, _)| **of < key)
    }

    /// The keys whose entries are not those of another map, in no order; entries that one of them lacks count. Pages
    /// that a clone shares are not looked at, so what a block changed is found in the time that it took to change it.
    pub(super) fn differences(&self, other: &SharedMap<K, V>) -> Vec<K>
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

    pub(super) fn last(&self) -> Option<(&K, &V)> {
        let (key, value) = self.branches.last()?.last()?.last()?;
        Some((key, value))
    }

    pub(super) fn first(&self) -> Option<(&K, &V)> {
        self.iter().next()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares with a map of the standard library; clones keep the state of the moment when they were taken.
        #[test]
        fn a_shared_map_equals_a_plain_one_and_its_clones_stand_still(
            steps in prop::collection::vec((0..8u8, 0..3_000u16), 1..6_000)
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
            clones.push((shared, plain));
            for (shared, plain) in clones {
                prop_assert_eq!(shared.len(), plain.len());
                prop_assert_eq!((shared.first(), shared.last()), (plain.iter().next(), plain.iter().next_back()));
                prop_assert!(shared.iter().eq(plain.iter()));
            }
        }
    }
}
