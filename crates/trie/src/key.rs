//! Keys as paths of nibbles.

use crate::Change;

/// Nibble number `i` of a key, the high one of each byte first.
pub(crate) fn nibble(key: &[u8], i: usize) -> usize {
    let byte = key[i / 2];
    usize::from(if i.is_multiple_of(2) { byte >> 4 } else { byte & 15 })
}

/// The number of leading nibbles that two keys of the same length share.
pub(crate) fn common_nibbles(a: &[u8], b: &[u8]) -> usize {
    match a.iter().zip(b).position(|(x, y)| x != y) {
        Some(i) => 2 * i + usize::from(a[i] >> 4 == b[i] >> 4),
        None => 2 * a.len(),
    }
}

/// The number of leading nibbles that every key of a sorted, nonempty batch shares with `path`.
pub(crate) fn common_with<const KEY: usize, const VALUE: usize>(
    batch: &[Change<KEY, VALUE>],
    path: &[u8; KEY],
) -> usize {
    let last = batch.len() - 1;
    common_nibbles(&batch[0].0, path).min(common_nibbles(&batch[last].0, path))
}

/// Splits a sorted list, whose keys share `depth` nibbles, into the runs that also share the next one.
pub(crate) fn by_nibble<T>(
    sorted: &[T],
    depth: usize,
    key: impl Fn(&T) -> &[u8] + Copy,
) -> impl Iterator<Item = (usize, &[T])> {
    let mut rest = sorted;
    std::iter::from_fn(move || {
        let slot = nibble(key(rest.first()?), depth);
        let end = end_of_run(rest, |item| nibble(key(item), depth) == slot);
        let (run, after) = rest.split_at(end);
        rest = after;
        Some((slot, run))
    })
}

/// Length of the leading run of items that satisfy `in_run`; no item after the run does. Uses doubling steps, because
/// runs are mostly short deep in a trie and long at its top.
fn end_of_run<T>(items: &[T], in_run: impl Fn(&T) -> bool) -> usize {
    let mut step = 1;
    while step < items.len() && in_run(&items[step]) {
        step *= 2;
    }
    let (from, to) = (step / 2, step.min(items.len()));
    from + items[from..to].partition_point(in_run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nibbles_in_order() {
        let key = [0x12, 0x3f];
        assert_eq!([0, 1, 2, 3].map(|i| nibble(&key, i)), [1, 2, 3, 15]);
    }

    #[test]
    fn common_prefix_in_nibbles() {
        assert_eq!(common_nibbles(&[0x12, 0x34], &[0x12, 0x34]), 4);
        assert_eq!(common_nibbles(&[0x12, 0x34], &[0x12, 0x35]), 3);
        assert_eq!(common_nibbles(&[0x12, 0x34], &[0x12, 0x44]), 2);
        assert_eq!(common_nibbles(&[0x12, 0x34], &[0x22, 0x34]), 0);
    }

    #[test]
    fn runs_of_every_length() {
        for ones in 0..40u8 {
            let keys: Vec<[u8; 1]> = (0..ones).map(|_| [0x10]).chain([[0x20], [0x70], [0x70]]).collect();
            let runs: Vec<(usize, usize)> = by_nibble(&keys, 0, |k| k).map(|(slot, run)| (slot, run.len())).collect();
            let expected = [(1, usize::from(ones)), (2, 1), (7, 2)];
            assert_eq!(runs, expected[usize::from(ones == 0)..]);
        }
    }
}
