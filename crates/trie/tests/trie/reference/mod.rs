//! Computes the root only from its definition: recursive over a sorted map, written from the crate's text and not
//! from its code.

use std::collections::BTreeMap;

type Entry<'a> = (Vec<u8>, &'a [u8], &'a [u8]);

/// The root of a set of entries.
pub fn root<const KEY: usize, const VALUE: usize>(entries: &BTreeMap<[u8; KEY], [u8; VALUE]>) -> [u8; 32] {
    let hash_key = blake3::derive_key("walras 2026 trie v2", &[KEY as u8, VALUE as u8]);
    let hash = |message: &[u8]| *blake3::keyed_hash(&hash_key, message).as_bytes();
    let entries: Vec<Entry> =
        entries.iter().map(|(key, value)| (nibbles(key), value.as_slice(), key.as_slice())).collect();
    match entries.as_slice() {
        [] => hash(&[0]),
        [(_, value, key)] => hash(&[&[1], *key, *value].concat()),
        _ => hash(&node_message(&entries, &hash)),
    }
}

fn nibbles(key: &[u8]) -> Vec<u8> {
    key.iter().flat_map(|byte| [byte / 16, byte % 16]).collect()
}

fn node_message(entries: &[Entry], hash: &dyn Fn(&[u8]) -> [u8; 32]) -> Vec<u8> {
    let mut depth = 0;
    while entries.iter().all(|entry| entry.0[depth] == entries[0].0[depth]) {
        depth += 1;
    }
    let mut path = entries[0].0[..depth].to_vec();
    if depth % 2 == 1 {
        path.push(0);
    }
    let path: Vec<u8> = path.chunks(2).map(|pair| pair[0] * 16 + pair[1]).collect();
    let (mut node_slots, mut leaf_slots, mut contents) = (0u16, 0u16, Vec::new());
    for slot in 0..16 {
        let within: Vec<Entry> = entries.iter().filter(|entry| entry.0[depth] == slot).cloned().collect();
        match within.as_slice() {
            [] => {}
            [(_, value, key)] => {
                leaf_slots += 1 << slot;
                contents.extend_from_slice(&key[path.len()..]);
                contents.extend_from_slice(value);
            }
            _ => {
                node_slots += 1 << slot;
                contents.extend(hash(&node_message(&within, hash)));
            }
        }
    }
    let header = [2, depth as u8, node_slots as u8, (node_slots >> 8) as u8, leaf_slots as u8, (leaf_slots >> 8) as u8];
    let mut message = [&header[..], &path, &contents].concat();
    while message.len() % 64 != 0 {
        message.push(0);
    }
    message
}
