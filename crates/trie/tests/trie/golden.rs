//! The pinned format: a change of any hashed byte shows here.

use crate::reference;
use trie::{Change, Trie};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn root<const KEY: usize, const VALUE: usize>(batch: &[Change<KEY, VALUE>]) -> String {
    let mut trie = Trie::<KEY, VALUE>::new();
    trie.apply(batch);
    let defined = batch.iter().map(|(key, value)| (*key, value.expect("only insertions"))).collect();
    assert_eq!(trie.root().0, reference::root(&defined));
    hex(&trie.root().0)
}

#[test]
fn roots() {
    let key = |last: u8| std::array::from_fn(|i| if i == 19 { last } else { i as u8 });
    let value = |byte: u8| Some([byte; 32]);
    let many: Vec<Change<4>> = (0..1000u32).map(|i| ((i * 4_294_967).to_be_bytes(), value(i as u8))).collect();
    let dense: Vec<Change<36>> = (0..=255).map(|i| (std::array::from_fn(|j| [3, i][j / 35]), value(i))).collect();
    let short: Vec<Change<36, 8>> = dense.iter().map(|(key, value)| (*key, value.map(|value| [value[0]; 8]))).collect();
    let roots = [
        ("empty, 20-byte keys", root::<20, 32>(&[])),
        ("empty, 36-byte keys", root::<36, 32>(&[])),
        ("one entry", root::<20, 32>(&[(key(1), value(1))])),
        ("two entries that part in the last nibble", root::<20, 32>(&[(key(1), value(1)), (key(2), value(2))])),
        ("two entries that part in the last byte", root::<20, 32>(&[(key(1), value(1)), (key(0x12), value(2))])),
        ("a thousand entries, 4-byte keys", root(&many)),
        ("256 entries that differ in the last byte, 36-byte keys", root(&dense)),
        ("the same with 8-byte values", root(&short)),
    ];
    for ((name, root), golden) in roots.iter().zip(GOLDEN) {
        assert_eq!(root, golden, "{name}");
    }
}

const GOLDEN: [&str; 8] = [
    "75f0952a05069616aff7713d0949e4fee1b73fd8745772c8d86a3d470d6e2718",
    "d121944d8121f0e5c655b1cc2810000d77a66dc1d004fa52b9c862aa7fd34e6f",
    "cb0ff4c9a4ef285689a43fb21b666e3e28ac95edc7c25ea5f5a9b19d84b47a2b",
    "5b160f7c0008f6e490f6349d8a9d12ef0d3479296e2cb9ccf291d5ecec06450d",
    "1903d64d212f2753d3fb425565022c213aef01776bc09d8b0f0b91b733bf4f1e",
    "bd0f18d5cd50f857627304381994c590531a18b77ede0b4ab586cdea21221a71",
    "d728d263273502f8d89dae90d738b88e84c6cdfb0c219b32cb002fbac73c1e6b",
    "c68f3c1740ac1ff3d07428608151a6b838031927885fcbcd8eeada109c49f71a",
];
