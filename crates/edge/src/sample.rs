//! The sample market maker: quotes a tenth of a per cent around every batch price that it is shown.
//!
//! It is there twice, with the same answers: `strategies/market_maker.wat`, which a gateway runs itself (trust model
//! 1), and this one, which runs elsewhere (trust model 2, `walras edge quote`). A message of the feed is a line such as
//! `{"height":7,"asset":3,"price":1.089000000}`. The second and third of its numbers are asset and price, and a price
//! has nine decimals, so that its digits are an integer. For each message two orders leave, a bid and an ask.
//!
//! | bytes of an order | field, big-endian |
//! |---|---|
//! | 0 | side: 0 bid, 1 ask |
//! | 1–4 | asset |
//! | 5–12 | price in billionths |

use std::iter::from_fn;

/// The orders upon one message of the feed; none upon a message without asset and price.
pub fn sample_quotes(message: &[u8]) -> Vec<Vec<u8>> {
    let (mut numbers, mut number) = (Vec::new(), None::<u64>);
    for byte in message {
        match byte {
            b'0'..=b'9' => {
                let digit = u64::from(byte - b'0');
                number = Some(number.unwrap_or(0).wrapping_mul(10).wrapping_add(digit));
            }
            // The decimals go on.
            b'.' => {}
            _ => numbers.extend(number.take()),
        }
    }
    let [_, asset, price, ..] = numbers[..] else { return Vec::new() };
    let spread = price / 1_000;
    let quote = |(side, price): (u8, u64)| [&[side][..], &(asset as u32).to_be_bytes(), &price.to_be_bytes()].concat();
    [(0, price.wrapping_sub(spread)), (1, price.wrapping_add(spread))].map(quote).to_vec()
}

/// The orders upon a packet of MoldUDP64, as far as it is whole.
pub fn sample_quotes_of_packet(payload: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = payload.get(20..).unwrap_or_default();
    let messages = from_fn(|| {
        let (length, after) = rest.split_first_chunk::<2>()?;
        let (message, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        rest = after;
        Some(message)
    });
    messages.flat_map(sample_quotes).collect()
}
