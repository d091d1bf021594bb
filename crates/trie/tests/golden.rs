//! The format, pinned: a change of any byte that is hashed shows here.

mod reference;

use trie::{Change, Trie};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn root<const KEY: usize>(batch: &[Change<KEY>]) -> String {
    let mut trie = Trie::<KEY>::new();
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
    let roots = [
        ("empty, 20-byte keys", root::<20>(&[])),
        ("empty, 36-byte keys", root::<36>(&[])),
        ("one entry", root::<20>(&[(key(1), value(1))])),
        ("two entries that part in the last nibble", root::<20>(&[(key(1), value(1)), (key(2), value(2))])),
        ("two entries that part in the last byte", root::<20>(&[(key(1), value(1)), (key(0x12), value(2))])),
        ("a thousand entries, 4-byte keys", root(&many)),
        ("256 entries that differ in the last byte, 36-byte keys", root(&dense)),
    ];
    for ((name, root), golden) in roots.iter().zip(GOLDEN) {
        assert_eq!(root, golden, "{name}");
    }
}

const GOLDEN: [&str; 7] = [
    "4d1a37e7c27d51b4074ae866c3285f346b82ebf694edc6d3b30ac67ca92968aa",
    "922c1ac0740e740fd5955be961524bf401c3a7f3e63278925bc82af4953acc83",
    "fc60839be6a1e2afedcb3ef7b9dd1fe60839da999b4520708b2b6fef1dc6ee4f",
    "c8ac7ec86794e0240f5d60ac327052f970ab861af77f23e74c63b0c7aaad42ef",
    "2db5f656ec5d61ab1709b80bbc6e570b1df90480f5dc3b095f3caeccbd678804",
    "ca803720b446af84608b645294e0c7ef5fa6c6ed899b0cf971412b28e5489d66",
    "22a0b0e1b53bb1039f862f941a3f6d1b766ec56dc437a2ae597c78a508298062",
];
