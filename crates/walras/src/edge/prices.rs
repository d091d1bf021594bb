//! The demo's feed: batch prices as packets of MoldUDP64.

use ledger::BlockReceipts;
use protocols::mold::MoldPacket;

/// Bytes of messages in one packet at most, so that none is fragmented.
const PACKET_BYTES: usize = 1_200;
/// The session of the demo's feed.
pub const SESSION: [u8; 10] = *b"0000000001";

/// One line of JSON for each asset that has a valuation: its price in asset 0, in whole units. A block without a batch
/// has none.
fn messages(block: &BlockReceipts) -> Vec<String> {
    let valuations: Vec<f64> = block.batch.valuations.iter().map(|valuation| valuation.to_f64()).collect();
    let Some(numeraire) = valuations.first() else { return Vec::new() };
    let prices = valuations.iter().map(|valuation| valuation / numeraire).enumerate().skip(1);
    let line = |(asset, price)| format!("{{\"height\":{},\"asset\":{asset},\"price\":{price:.9}}}", block.height);
    prices.filter(|(_, price)| price.is_finite() && *price > 0.0).map(line).collect()
}

/// The packets of a block; `next` is the number of the next message, and is counted on.
pub fn packets(block: &BlockReceipts, next: &mut u64) -> Vec<Vec<u8>> {
    let messages = messages(block);
    let mut packets = Vec::new();
    let mut rest = &messages[..];
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |message: &&String| {
            bytes += 2 + message.len();
            bytes <= PACKET_BYTES
        };
        let count = rest.iter().take_while(fits).count().max(1);
        let (now, later) = rest.split_at(count);
        let messages = now.iter().map(|message| message.as_bytes()).collect();
        let packet = MoldPacket { session: SESSION, first: *next, messages, is_end: false };
        packets.extend(packet.encode());
        *next += count as u64;
        rest = later;
    }
    packets
}
