//! Connected groups of assets.

/// The groups into which `edges` join assets: the group of every asset, numbered by lowest asset, and the number of
/// groups. An asset without edges has none. Union-find with path halving (Tarjan and van Leeuwen 1984).
pub(crate) fn connected(assets: usize, edges: impl Iterator<Item = (usize, usize)>) -> (Vec<Option<usize>>, usize) {
    let mut above: Vec<usize> = (0..assets).collect();
    let mut has_edge = vec![false; assets];
    for (a, b) in edges {
        (has_edge[a], has_edge[b]) = (true, true);
        let (a, b) = (top(&mut above, a), top(&mut above, b));
        // The lowest asset is on top.
        above[a.max(b)] = a.min(b);
    }
    let mut group_of = vec![None; assets];
    let mut count = 0;
    for asset in (0..assets).filter(|asset| has_edge[*asset]) {
        let top = top(&mut above, asset);
        if top == asset {
            group_of[asset] = Some(count);
            count += 1;
        } else {
            group_of[asset] = group_of[top];
        }
    }
    (group_of, count)
}

fn top(above: &mut [usize], mut asset: usize) -> usize {
    while above[asset] != asset {
        above[asset] = above[above[asset]];
        asset = above[asset];
    }
    asset
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn who_can_be_reached_is_of_the_group(edges in prop::collection::vec((0usize..12, 0usize..12), 0..14)) {
            let (group_of, count) = connected(12, edges.iter().copied());
            let mut reach = [[false; 12]; 12];
            edges.iter().for_each(|&(a, b)| (reach[a][b], reach[b][a], reach[a][a], reach[b][b]) = (true, true, true,
                true));
            for via in 0..12 {
                for (a, b) in (0..12).flat_map(|a| (0..12).map(move |b| (a, b))) {
                    reach[a][b] |= reach[a][via] && reach[via][b];
                }
            }
            for (a, b) in (0..12).flat_map(|a| (0..12).map(move |b| (a, b))) {
                prop_assert_eq!(group_of[a].is_some() && group_of[a] == group_of[b], reach[a][b]);
            }
            let mut first: Vec<usize> = group_of.iter().copied().flatten().collect();
            first.dedup();
            let mut seen = Vec::new();
            first.into_iter().for_each(|group| if !seen.contains(&group) { seen.push(group) });
            prop_assert_eq!(seen, (0..count).collect::<Vec<_>>());
        }
    }
}
