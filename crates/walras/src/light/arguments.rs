//! Arguments of light clients: pins and spans of time.

use std::time::Duration;

use client::light::Pin;

/// Reads a pin.
pub fn pin(text: &str) -> Result<Pin, String> {
    text.parse::<Pin>().map_err(|error| format!("{error}; `walras light pin` prints one"))
}

/// Reads a span of time: a number and s, m, h or d.
pub fn span(text: &str) -> Result<Duration, String> {
    let form = || format!("{text:?} is not a span of time; write a number with s, m, h or d, such as 12h");
    let unit = text.char_indices().next_back().ok_or_else(form)?;
    let seconds: u64 = match unit.1 {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(form()),
    };
    let number: u64 = text[..unit.0].parse().map_err(|_| form())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_and_a_wrong_pin_names_the_command_that_prints_one() {
        for wrong in ["", "1200", "1200:", ":0x07", "x:0x07", "1200:0x07"] {
            assert!(pin(wrong).is_err_and(|error| error.contains("walras light pin")), "{wrong}");
        }
        assert_eq!(span("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(span("7d"), Ok(Duration::from_secs(7 * 86_400)));
        for wrong in ["", "7", "d", "-1d", "1w", "99999999999999999999d", "18446744073709551615d"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }
}
