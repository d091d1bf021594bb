//! The blocks (biconnected components) of a graph of pairs: its largest parts that no single asset separates
//! (Hopcroft and Tarjan 1973).

use crate::book::Book;

/// One asset on the path from a root, and the progress of its search.
struct Visit {
    asset: usize,
    /// The next edge to examine.
    next: usize,
    /// Number of edges on the stack when it was reached.
    taken: usize,
}

/// The blocks of the graph whose edges are the links of `book` listed in `pairs`, each as its links in the order of
/// the book. Of connected blocks, each but the first shares one asset with those before it.
pub(crate) fn blocks(book: &Book, pairs: &[usize]) -> Vec<Vec<usize>> {
    let graph = Graph::new(book, pairs);
    let assets = book.assets as usize;
    let mut order = vec![usize::MAX; assets];
    let mut low = vec![usize::MAX; assets];
    let mut visited = 0;
    // Pairs met and not yet in a block. Every pair is met once, from whichever of its assets comes first.
    let mut open: Vec<usize> = Vec::new();
    let mut met = vec![false; pairs.len()];
    let mut path: Vec<Visit> = Vec::new();
    let mut result = Vec::new();
    for root in 0..assets {
        if order[root] != usize::MAX {
            continue;
        }
        path.push(Visit { asset: root, next: graph.first[root], taken: 0 });
        while let Some(visit) = path.last_mut() {
            let Visit { asset, next, taken } = *visit;
            if order[asset] == usize::MAX {
                (order[asset], low[asset]) = (visited, visited);
                visited += 1;
            }
            if next < graph.first[asset + 1] {
                visit.next += 1;
                let (to, pair) = graph.ways[next];
                let before = open.len();
                if !std::mem::replace(&mut met[pair], true) {
                    open.push(pair);
                }
                if order[to] == usize::MAX {
                    path.push(Visit { asset: to, next: graph.first[to], taken: before });
                } else {
                    low[asset] = low[asset].min(order[to]);
                }
                continue;
            }
            path.pop();
            let Some(parent) = path.last().map(|visit| visit.asset) else { continue };
            if low[asset] >= order[parent] {
                let mut block: Vec<usize> = open.drain(taken..).map(|pair| pairs[pair]).collect();
                block.sort_unstable();
                result.push(block);
            } else {
                low[parent] = low[parent].min(low[asset]);
            }
        }
    }
    result.reverse();
    result
}

/// The edges of every asset: their other asset and their pair; `ways[first[a]..first[a + 1]]`.
struct Graph {
    ways: Vec<(usize, usize)>,
    first: Vec<usize>,
}

impl Graph {
    fn new(book: &Book, pairs: &[usize]) -> Graph {
        let ends = |link: usize| {
            let (sell, buy) = book.link(link);
            (sell.0 as usize, buy.0 as usize)
        };
        let mut first = vec![0; book.assets as usize + 1];
        for (sell, buy) in pairs.iter().map(|pair| ends(*pair)) {
            first[sell + 1] += 1;
            first[buy + 1] += 1;
        }
        (1..first.len()).for_each(|asset| first[asset] += first[asset - 1]);
        let mut next = first.clone();
        let mut ways = vec![(0, 0); 2 * pairs.len()];
        for (index, pair) in pairs.iter().enumerate() {
            let (sell, buy) = ends(*pair);
            for (from, to) in [(sell, buy), (buy, sell)] {
                ways[next[from]] = (to, index);
                next[from] += 1;
            }
        }
        Graph { ways, first }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::PairBook;
    use primitives::{AssetId, Price};
    use proptest::prelude::*;

    fn book(assets: u32, edges: &[(u32, u32)]) -> Book<'static> {
        let mut edges = edges.to_vec();
        edges.sort_unstable();
        edges.dedup();
        let pair = |(sell, buy): (u32, u32)| {
            PairBook::new(AssetId(sell), AssetId(buy), &[Price::ONE], &[1]).expect("a proper pair")
        };
        Book { assets, pairs: edges.into_iter().map(pair).collect(), ..Book::default() }
    }

    fn named(book: &Book, blocks: Vec<Vec<usize>>) -> Vec<Vec<(u32, u32)>> {
        let pair = |index: usize| (book.pairs[index].sell.0, book.pairs[index].buy.0);
        blocks.into_iter().map(|block| block.into_iter().map(pair).collect()).collect()
    }

    #[test]
    fn stocks_hang_on_a_core() {
        let book = book(6, &[(0, 1), (1, 2), (2, 0), (3, 0), (0, 3), (4, 2), (2, 4), (5, 4)]);
        let all: Vec<usize> = (0..book.pairs.len()).collect();
        let mut got = named(&book, blocks(&book, &all));
        got.sort();
        let core = vec![(0, 1), (1, 2), (2, 0)];
        assert_eq!(got, [core, vec![(0, 3), (3, 0)], vec![(2, 4), (4, 2)], vec![(5, 4)]]);
    }

    /// The connected assets after removing `without`.
    fn joined(book: &Book, without: u32) -> Vec<u32> {
        let mut group: Vec<u32> = (0..book.assets).collect();
        for _ in 0..book.assets {
            for pair in book.pairs.iter().filter(|pair| pair.sell.0 != without && pair.buy.0 != without) {
                let least = group[pair.sell.0 as usize].min(group[pair.buy.0 as usize]);
                (group[pair.sell.0 as usize], group[pair.buy.0 as usize]) = (least, least);
            }
        }
        group
    }

    proptest! {
        /// Two pairs are in one block exactly if no asset separates them, and each block meets earlier ones in one
        /// asset.
        #[test]
        fn blocks_are_what_no_asset_separates(edges in prop::collection::vec((0u32..7, 1u32..7), 1..12)) {
            let edges: Vec<_> = edges.into_iter().map(|(a, step)| (a, (a + step) % 7)).collect();
            let book = book(7, &edges);
            let all: Vec<usize> = (0..book.pairs.len()).collect();
            let got = named(&book, blocks(&book, &all));
            prop_assert_eq!(got.iter().flatten().count(), all.len());
            let whole = joined(&book, u32::MAX);
            let mut seen: Vec<u32> = Vec::new();
            for block in &got {
                let mut assets: Vec<u32> = block.iter().flat_map(|(a, b)| [*a, *b]).collect();
                assets.sort_unstable();
                assets.dedup();
                let first_of_its_kind = !seen.iter().any(|asset| whole[*asset as usize] == whole[assets[0] as usize]);
                let shared = assets.iter().filter(|asset| seen.contains(asset)).count();
                prop_assert_eq!(shared, usize::from(!first_of_its_kind));
                for without in 0..7 {
                    let group = joined(&book, without);
                    let rest: Vec<u32> = assets.iter().filter(|a| **a != without).map(|a| group[*a as usize]).collect();
                    prop_assert!(rest.windows(2).all(|pair| pair[0] == pair[1]));
                }
                seen.extend(assets);
            }
            // No two blocks could be merged: they share at most one asset.
            for (index, one) in got.iter().enumerate() {
                for other in &got[index + 1..] {
                    let assets = |block: &Vec<(u32, u32)>| block.iter().flat_map(|(a, b)| [*a,
                        *b]).collect::<std::collections::BTreeSet<_>>();
                    prop_assert!(assets(one).intersection(&assets(other)).count() <= 1);
                }
            }
        }
    }
}
