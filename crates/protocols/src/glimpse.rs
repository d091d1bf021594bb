//! Snapshots of an order book feed: NASDAQ GLIMPSE 5.0.
//!
//! A snapshot is a session of [`soup`](crate::soup): messages of [`itch`](crate::itch) that build the books as they
//! stand, and then one message that says with which number the feed goes on. Its number is of twenty digits, padded
//! with spaces on the left.

const KIND: u8 = b'G';
const DIGITS: usize = 20;

/// The message that ends a snapshot: the first message of the feed that is not in it.
pub fn snapshot_end(next: u64) -> Vec<u8> {
    [&[KIND][..], format!("{next:>DIGITS$}").as_bytes()].concat()
}

/// The number that a message which ends a snapshot has; `None` if it is another message.
pub fn read_snapshot_end(message: &[u8]) -> Option<u64> {
    let digits = message.strip_prefix(&[KIND]).filter(|digits| digits.len() == DIGITS)?;
    let digits = digits.trim_ascii();
    let text = str::from_utf8(digits).ok().filter(|_| digits.iter().all(u8::is_ascii_digit))?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_glimpse_snapshot_says_the_next_number() {
        for next in [0, 1, u64::MAX] {
            assert_eq!(read_snapshot_end(&snapshot_end(next)), Some(next));
        }
        for other in [&b""[..], b"G", b"G                   x", b"H                   1", b"G                  -1"] {
            assert_eq!(read_snapshot_end(other), None, "{other:?}");
        }
        assert_eq!(read_snapshot_end(&[b'G'; 1 + DIGITS]), None);
    }
}
