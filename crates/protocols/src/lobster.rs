//! Message files of LOBSTER: lines of *time, type, order, size, price, direction*.
//!
//! Times are seconds after midnight with decimals, rounded here to nanoseconds: some files have the noise of a double
//! behind them. Prices are ten-thousandths of a dollar, and the direction is 1 for
//! buys and −1 for sells: that of the resting order, also in executions.

/// What happens to an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LobsterEvent {
    /// 1: a limit order arrives.
    Submission,
    /// 2: a part of it is cancelled.
    Cancellation,
    /// 3: it ends.
    Deletion,
    /// 4: it trades.
    Execution,
    /// 5: an order that was not displayed trades.
    HiddenExecution,
    /// 6: the trades of an auction.
    Cross,
    /// 7: trading halts, or goes on.
    Halt,
}

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LobsterLine {
    /// Nanoseconds since midnight.
    pub nanoseconds: u64,
    /// What happens.
    pub event: LobsterEvent,
    /// The number of the order; zero where there is none.
    pub order: u64,
    /// Shares.
    pub size: u32,
    /// Ten-thousandths; −1 to 1 in a halt.
    pub price: i64,
    /// Whether the resting order buys.
    pub is_buy: bool,
}

/// Why a line is not one of LOBSTER.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LobsterError {
    /// There are not six columns.
    #[error("a line has 6 columns (time, type, order, size, price, direction), not {0}")]
    Columns(usize),
    /// A column cannot be read.
    #[error("{column}: {found:?} is not {wanted}")]
    Column {
        /// Its name.
        column: &'static str,
        /// What is there.
        found: String,
        /// What should be.
        wanted: &'static str,
    },
}

impl LobsterLine {
    /// Whether a line names the columns instead of filling them.
    pub fn is_header(line: &str) -> bool {
        let columns = line.split(',').map(|column| column.trim().trim_start_matches('\u{feff}'));
        columns.clone().count() == 6
            && columns.clone().all(|name| name.starts_with(|first: char| first.is_alphabetic()))
    }

    /// Reads one line.
    ///
    /// # Errors
    /// [`LobsterError`] names the column.
    pub fn parse(line: &str) -> Result<LobsterLine, LobsterError> {
        let columns: Vec<&str> = line.trim_end().split(',').map(str::trim).collect();
        let Ok([time, event, order, size, price, direction]) = <[&str; 6]>::try_from(&columns[..]) else {
            return Err(LobsterError::Columns(columns.len()));
        };
        Ok(LobsterLine {
            nanoseconds: read("time", time, "seconds after midnight", nanoseconds)?,
            event: read("type", event, "1 to 7", kind)?,
            order: read("order", order, "a whole number", |text| text.parse().ok())?,
            size: read("size", size, "a whole number below 2^32", |text| text.parse().ok())?,
            price: read("price", price, "a whole number", |text| text.parse().ok())?,
            is_buy: read("direction", direction, "1 or -1", direction_of)?,
        })
    }
}

fn read<T>(
    column: &'static str,
    text: &str,
    wanted: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, LobsterError> {
    parse(text).ok_or_else(|| LobsterError::Column { column, found: text.chars().take(40).collect(), wanted })
}

fn nanoseconds(text: &str) -> Option<u64> {
    const DAY: u64 = 86_400;
    let (seconds, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(seconds) || !is_number(decimals) {
        return None;
    }
    let seconds = seconds.parse::<u64>().ok().filter(|seconds| *seconds <= DAY)?;
    let tenths = format!("{decimals:0<10}")[..10].parse::<u64>().ok()?;
    Some(1_000_000_000 * seconds + (tenths + 5) / 10)
}

fn kind(text: &str) -> Option<LobsterEvent> {
    use LobsterEvent::*;
    let all = [Submission, Cancellation, Deletion, Execution, HiddenExecution, Cross, Halt];
    text.parse::<usize>().ok()?.checked_sub(1).and_then(|at| all.get(at).copied())
}

fn direction_of(text: &str) -> Option<bool> {
    match text {
        "1" => Some(true),
        "-1" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_lobster_line_is_read() {
        let line = LobsterLine::parse("34200.017459617,1,16113575,18,5853300,-1\r\n").expect("a line");
        let want = LobsterLine {
            nanoseconds: 34_200_017_459_617,
            event: LobsterEvent::Submission,
            order: 16_113_575,
            size: 18,
            price: 5_853_300,
            is_buy: false,
        };
        assert_eq!(line, want);
    }

    #[test]
    fn a_lobster_error_names_the_column() {
        let error = |line: &str| LobsterLine::parse(line).expect_err("bad").to_string();
        assert_eq!(error("1,1,1"), "a line has 6 columns (time, type, order, size, price, direction), not 3");
        assert_eq!(error("1.5,8,1,1,1,1"), "type: \"8\" is not 1 to 7");
        assert_eq!(error("x,1,1,1,1,1"), "time: \"x\" is not seconds after midnight");
        assert_eq!(error("1,1,1,-1,1,1"), "size: \"-1\" is not a whole number below 2^32");
        assert_eq!(error("1,1,1,1,1,0"), "direction: \"0\" is not 1 or -1");
    }

    #[test]
    fn times_behind_nanoseconds_are_rounded() {
        for (text, nanoseconds) in [
            ("35821.088778456004", 35_821_088_778_456),
            ("1.0000000005", 1_000_000_001),
            ("1.00000000049999", 1_000_000_000),
            ("1.99999999999999", 2_000_000_000),
            ("86400.000000000", 86_400_000_000_000),
            ("7", 7_000_000_000),
        ] {
            let line = LobsterLine::parse(&format!("{text},3,1,18,1,1"));
            assert_eq!(line.map(|line| line.nanoseconds), Ok(nanoseconds), "{text}");
        }
        for wrong in ["1.", ".5", "-1", "1.5e3", "86401", ""] {
            assert!(LobsterLine::parse(&format!("{wrong},3,1,18,1,1")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_header_is_told_from_a_line() {
        assert!(LobsterLine::is_header("time,type,order_id,size,price,direction"));
        assert!(LobsterLine::is_header("\u{feff}Time, Event Type, Order ID, Size, Price, Direction\r\n"));
        for line in ["34200.1,1,2,3,4,1", "x,1,1,1,1,1", "time,type", ""] {
            assert!(!LobsterLine::is_header(line), "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in ".{0,60}") {
            let _ = LobsterLine::parse(&text);
        }
    }
}
