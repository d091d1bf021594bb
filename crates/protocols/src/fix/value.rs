//! Values of fields.

/// What a field can say.
pub trait FixValue: Sized {
    /// The kind of the value, in words.
    const NEEDS: &'static str;

    /// The value of these bytes, of which there is at least one.
    fn get(bytes: &[u8]) -> Option<Self>;

    /// Appends the bytes.
    fn put(&self, to: &mut Vec<u8>);
}

/// A text: bytes other than 0x01, at least one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FixText(Vec<u8>);

impl FixText {
    /// The text of these bytes; `None` if there are none, or 0x01 is among them.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Option<FixText> {
        let bytes = bytes.into();
        (!bytes.is_empty() && !bytes.contains(&SEPARATOR)).then_some(FixText(bytes))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// A text that says what went wrong: without 0x01, and never empty.
    pub(super) fn said(words: &str) -> FixText {
        let bytes: Vec<u8> = words.bytes().filter(|byte| *byte != SEPARATOR).collect();
        FixText(if bytes.is_empty() { b"-".to_vec() } else { bytes })
    }
}

impl std::fmt::Display for FixText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// The byte after each field.
pub(super) const SEPARATOR: u8 = 1;

impl FixValue for FixText {
    const NEEDS: &'static str = "a text";

    fn get(bytes: &[u8]) -> Option<FixText> {
        FixText::new(bytes)
    }

    fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.0);
    }
}

/// Data: any bytes, whose number the field before says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixData(pub Vec<u8>);

/// One character.
impl FixValue for u8 {
    const NEEDS: &'static str = "one character";

    fn get(bytes: &[u8]) -> Option<u8> {
        match bytes {
            [one] if *one != SEPARATOR => Some(*one),
            _ => None,
        }
    }

    fn put(&self, to: &mut Vec<u8>) {
        to.push(*self);
    }
}

impl FixValue for bool {
    const NEEDS: &'static str = "Y or N";

    fn get(bytes: &[u8]) -> Option<bool> {
        match bytes {
            b"Y" => Some(true),
            b"N" => Some(false),
            _ => None,
        }
    }

    fn put(&self, to: &mut Vec<u8>) {
        to.push(if *self { b'Y' } else { b'N' });
    }
}

/// The number that digits are, leading zeros allowed.
pub(super) fn digits(bytes: &[u8]) -> Option<u64> {
    let text = str::from_utf8(bytes).ok().filter(|_| bytes.iter().all(u8::is_ascii_digit))?;
    text.parse().ok()
}

impl FixValue for u64 {
    const NEEDS: &'static str = "a whole number";

    fn get(bytes: &[u8]) -> Option<u64> {
        digits(bytes)
    }

    fn put(&self, to: &mut Vec<u8>) {
        to.extend(self.to_string().bytes());
    }
}

impl FixValue for u32 {
    const NEEDS: &'static str = "a whole number of 32 bits";

    fn get(bytes: &[u8]) -> Option<u32> {
        digits(bytes)?.try_into().ok()
    }

    fn put(&self, to: &mut Vec<u8>) {
        to.extend(self.to_string().bytes());
    }
}

/// A decimal from zero up: a price or a quantity, exact. Of the same number there is one value only: as few decimals as
/// it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixDecimal {
    units: u64,
    decimals: u32,
}

impl FixDecimal {
    /// The most decimals.
    pub const DECIMALS_MAX: u32 = 18;

    /// `units` divided by 10^`decimals`; `None` if these are too many.
    pub fn new(mut units: u64, mut decimals: u32) -> Option<FixDecimal> {
        while decimals > 0 && units.is_multiple_of(10) {
            (units, decimals) = (units / 10, decimals - 1);
        }
        (decimals <= FixDecimal::DECIMALS_MAX).then_some(FixDecimal { units, decimals })
    }

    /// How often 10^-`decimals` fits, if that is a whole number of 64 bits.
    pub fn in_units(self, decimals: u32) -> Option<u64> {
        10u64.checked_pow(decimals.checked_sub(self.decimals)?)?.checked_mul(self.units)
    }
}

impl From<u32> for FixDecimal {
    fn from(units: u32) -> FixDecimal {
        FixDecimal { units: units.into(), decimals: 0 }
    }
}

impl FixValue for FixDecimal {
    const NEEDS: &'static str = "a decimal from 0 up, of at most 18 decimals";

    fn get(bytes: &[u8]) -> Option<FixDecimal> {
        let point = bytes.iter().position(|byte| *byte == b'.');
        let (whole, rest) = point.map_or((bytes, &[][..]), |at| (&bytes[..at], &bytes[at + 1..]));
        if whole.is_empty() && rest.is_empty() {
            return None;
        }
        let kept = rest.len() - rest.iter().rev().take_while(|byte| **byte == b'0').count();
        if !rest[kept..].iter().chain(whole).all(u8::is_ascii_digit) {
            return None;
        }
        let units = digits(&[b"0", whole, &rest[..kept]].concat())?;
        FixDecimal::new(units, kept.try_into().ok()?)
    }

    fn put(&self, to: &mut Vec<u8>) {
        let text = format!("{:0>width$}", self.units, width = self.decimals as usize + 1);
        let (whole, rest) = text.split_at(text.len() - self.decimals as usize);
        to.extend_from_slice(whole.as_bytes());
        if !rest.is_empty() {
            to.push(b'.');
            to.extend_from_slice(rest.as_bytes());
        }
    }
}

/// A time in UTC, in milliseconds since 1970: `20261126-20:15:07.250`. It is read with 0, 3, 6, 9 or 12 decimals; what
/// is finer than a millisecond is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FixTime(u64);

const DAY_MS: u64 = 86_400_000;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH: u64 = 719_468;
/// Days of 400 years.
const ERA: u64 = 146_097;

impl FixTime {
    /// The first millisecond that four digits of a year cannot say.
    pub const END_MS: u64 = 253_402_300_800_000;

    /// The time so many milliseconds after 1970; the last one of the year 9999 if it is later.
    pub fn of_ms(ms: u64) -> FixTime {
        FixTime(ms.min(FixTime::END_MS - 1))
    }

    /// Milliseconds since 1970.
    pub fn ms(self) -> u64 {
        self.0
    }
}

/// Year, month and day of the day so long after 1970, by the proleptic Gregorian calendar.
fn date(days: u64) -> (u64, u64, u64) {
    let shifted = days + EPOCH;
    let (era, day) = (shifted / ERA, shifted % ERA);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, date)
}

/// The day of a date; `None` if there is no such date from 1970 on.
fn day(year: u64, month: u64, date_of: u64) -> Option<u64> {
    if year < 1970 || !(1..=12).contains(&month) {
        return None;
    }
    let before = year - u64::from(month <= 2);
    let (era, of_era) = (before / 400, before % 400);
    let of_year = (153 * if month > 2 { month - 3 } else { month + 9 } + 2) / 5 + date_of.checked_sub(1)?;
    let days = era * ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH;
    (date(days) == (year, month, date_of)).then_some(days)
}

impl FixValue for FixTime {
    const NEEDS: &'static str = "a time such as 20261126-20:15:07.250, with 0, 3, 6, 9 or 12 decimals";

    fn get(bytes: &[u8]) -> Option<FixTime> {
        let (bytes, fraction) = bytes.split_at_checked(17)?;
        let decimals = match fraction {
            [] => &[],
            [b'.', decimals @ ..] if matches!(decimals.len(), 3 | 6 | 9 | 12) => decimals,
            _ => return None,
        };
        if (bytes[8], bytes[11], bytes[14]) != (b'-', b':', b':') || !decimals.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let part = |from: usize, to: usize| digits(&bytes[from..to]);
        let (hour, minute, second) = (part(9, 11)?, part(12, 14)?, part(15, 17)?);
        let ms = decimals.first_chunk::<3>().map_or(Some(0), |ms| digits(ms))?;
        // A leap second is the last millisecond before it.
        let (second, ms) = if second == 60 { (59, 999) } else { (second, ms) };
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let days = day(part(0, 4)?, part(4, 6)?, part(6, 8)?)?;
        Some(FixTime(days * DAY_MS + ((hour * 60 + minute) * 60 + second) * 1_000 + ms))
    }

    fn put(&self, to: &mut Vec<u8>) {
        let (year, month, day) = date(self.0 / DAY_MS);
        let ms = self.0 % DAY_MS;
        let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
        to.extend(format!("{year:04}{month:02}{day:02}-{hour:02}:{minute:02}:{second:02}.{:03}", ms % 1_000).bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn said<T: FixValue>(value: &T) -> String {
        let mut bytes = Vec::new();
        value.put(&mut bytes);
        String::from_utf8(bytes).expect("ASCII")
    }

    #[test]
    fn fix_times_are_those_of_the_calendar() {
        for (text, ms) in [
            ("19700101-00:00:00.000", 0),
            ("20000229-23:59:59.999", 951_868_799_999),
            ("20261126-20:15:07.250", 1_795_724_107_250),
            ("99991231-23:59:59.999", FixTime::END_MS - 1),
        ] {
            assert_eq!(FixTime::get(text.as_bytes()), Some(FixTime(ms)), "{text}");
            assert_eq!(said(&FixTime(ms)), text);
        }
        assert_eq!(FixTime::get(b"20261126-20:15:07"), Some(FixTime(1_795_724_107_000)));
        for decimals in ["250", "250999", "250999999", "250999999999"] {
            let text = format!("20261126-20:15:07.{decimals}");
            assert_eq!(FixTime::get(text.as_bytes()), Some(FixTime(1_795_724_107_250)), "{text}");
        }
        for decimals in ["", "2", "25", "2509", "25099999", "2509999999999", "25x", "250-99", "250 99"] {
            let text = format!("20261126-20:15:07.{decimals}");
            assert_eq!(FixTime::get(text.as_bytes()), None, "{text}");
        }
        for text in ["20260229-00:00:00", "20261301-00:00:00", "20261126-24:00:00", "20261126 20:15:07", "1969"] {
            assert_eq!(FixTime::get(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn fix_decimals_are_exact() {
        for (text, again) in [("150.3400", "150.34"), ("0.05", "0.05"), (".5", "0.5"), ("7.", "7"), ("007", "7")] {
            assert_eq!(said(&FixDecimal::get(text.as_bytes()).expect(text)), again);
        }
        for text in ["", ".", "-1", "1e5", "1.2.3", "0.1234567890123456789", "18446744073709551616"] {
            assert_eq!(FixDecimal::get(text.as_bytes()), None, "{text}");
        }
        let price = FixDecimal::new(15_034, 2).expect("two decimals");
        assert_eq!((price.in_units(4), price.in_units(2), price.in_units(1)), (Some(1_503_400), Some(15_034), None));
    }

    proptest! {
        #[test]
        fn fix_times_and_decimals_are_read_as_written(ms in 0..FixTime::END_MS, units: u64, decimals in 0..19u32) {
            prop_assert_eq!(FixTime::get(said(&FixTime(ms)).as_bytes()), Some(FixTime(ms)));
            let decimal = FixDecimal::new(units, decimals).expect("few decimals");
            prop_assert_eq!(FixDecimal::get(said(&decimal).as_bytes()), Some(decimal));
        }
    }
}
