//! Which names people take for another one.

/// A name without what the eye passes over: case, signs, and letters that look like digits.
fn folded(name: &str) -> String {
    let fold = |sign: char| match sign.to_ascii_lowercase() {
        '.' | '-' | '_' => None,
        '0' => Some('o'),
        '1' | 'l' => Some('i'),
        '5' => Some('s'),
        other => Some(other),
    };
    name.chars().filter_map(fold).collect()
}

/// Whether two names look alike.
pub(crate) fn are_alike(one: &str, other: &str) -> bool {
    folded(one) == folded(other)
}

/// Whether a listed symbol could be taken for a plain name, by itself or with a number from `next` on.
pub(super) fn is_look_alike(symbol: &str, plain: &str, next: u32) -> bool {
    let plain = folded(plain);
    let Some(rest) = plain.strip_prefix(&folded(symbol)) else { return false };
    rest.is_empty() || number_of(rest).is_some_and(|number| number >= next)
}

/// The number that these folded signs could be, written without zeros before it.
fn number_of(folded: &str) -> Option<u32> {
    let digit = |sign: char| match sign {
        'o' => '0',
        'i' => '1',
        's' => '5',
        other => other,
    };
    let digits: String = folded.chars().map(digit).collect();
    digits.parse().ok().filter(|number: &u32| number.to_string() == digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_are_refused_with_their_number_and_without() {
        for symbol in ["USD", "usd", "U5D", "u-s_d", "US-D"] {
            assert!(is_look_alike(symbol, "USD", 2) && is_look_alike(symbol, "U.S.D", 2), "{symbol}");
        }
        assert!(is_look_alike("SOL", "S0L", 2) && is_look_alike("BIL", "B1I", 2));
        // With the number 17 it would be USD.17.
        assert!(is_look_alike("USD", "USD17", 2) && is_look_alike("USD", "usdI7", 17));
        // That number was given long ago, or can be none.
        assert!(!is_look_alike("USD", "USD17", 18) && !is_look_alike("USD", "USD017", 2));
        assert!(!is_look_alike("USD", "USDX", 2) && !is_look_alike("EUR", "USD", 2));
        assert!(!is_look_alike("USD", "USD99999999999", 2));
        assert!(are_alike("Bl-0", "bi.o") && !are_alike("A1", "A2"));
    }
}
