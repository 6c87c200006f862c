//! Instants and half-open windows.
//!
//! A [`Timestamp`] is UTC with microseconds. It prints the fraction only when it is not zero, then
//! with six digits. Reading needs a date, a time and an offset; nothing here knows the wall clock.

use std::fmt;

use chrono::{DateTime, Datelike, NaiveDate, NaiveTime, TimeDelta, Timelike, Utc};

/// An instant in UTC with microseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(DateTime<Utc>);

impl Timestamp {
    /// Takes an instant, cut to microseconds.
    pub fn from_utc(instant: DateTime<Utc>) -> Self {
        let micros = instant.nanosecond() / 1_000 * 1_000;
        Self(instant.with_nanosecond(micros).unwrap_or(instant))
    }

    /// Takes seconds since the epoch; none when no calendar date has that instant.
    pub fn from_unix(seconds: i64) -> Option<Self> {
        DateTime::from_timestamp(seconds, 0)
            .map(Self)
            .filter(Self::has_four_digit_year)
    }

    /// Reads an ISO 8601 date and time with an offset, such as `2026-05-08T09:30:00+08:00`.
    pub fn parse(text: &str) -> Option<Self> {
        let (date, rest) = text.split_at_checked(10)?;
        let date = parse_date(date)?;
        let rest = rest.strip_prefix(['T', ' '])?;
        let (clock, offset) = split_offset(rest)?;
        let time = parse_clock(clock)?;
        let local = date.and_time(time);
        let utc = local.checked_sub_signed(TimeDelta::seconds(parse_offset(offset)?))?;
        Some(Self(utc.and_utc())).filter(Self::has_four_digit_year)
    }

    /// Returns the instant for calendar arithmetic.
    pub fn utc(self) -> DateTime<Utc> {
        self.0
    }

    /// Returns whole seconds since the epoch, rounded down.
    pub fn unix_seconds(self) -> i64 {
        self.0.timestamp()
    }

    /// Returns the instant `seconds` later; none outside the calendar.
    pub fn plus_seconds(self, seconds: i64) -> Option<Self> {
        let delta = TimeDelta::try_seconds(seconds)?;
        self.0
            .checked_add_signed(delta)
            .map(Self)
            .filter(Self::has_four_digit_year)
    }

    /// Returns the next microsecond, which uniqueness rules use; none at the end of the calendar.
    pub fn next_microsecond(self) -> Option<Self> {
        self.0
            .checked_add_signed(TimeDelta::microseconds(1))
            .map(Self)
            .filter(Self::has_four_digit_year)
    }

    /// Returns whole seconds from `earlier` to this instant, rounded down, never below zero.
    pub fn seconds_since(self, earlier: Self) -> i64 {
        let delta = self.0.signed_duration_since(earlier.0);
        delta.num_seconds().max(0)
    }

    fn has_four_digit_year(&self) -> bool {
        (1..=9999).contains(&self.0.year())
    }
}

fn parse_date(text: &str) -> Option<NaiveDate> {
    let bytes = text.as_bytes();
    if bytes.get(4) != Some(&b'-') || bytes.get(7) != Some(&b'-') {
        return None;
    }
    let (year, month, day) = (text.get(..4)?, text.get(5..7)?, text.get(8..)?);
    NaiveDate::from_ymd_opt(
        i32::try_from(digits(year, 4)?).ok()?,
        digits(month, 2)?,
        digits(day, 2)?,
    )
    .filter(|date| date.year() >= 1)
}

fn parse_clock(text: &str) -> Option<NaiveTime> {
    let (whole, fraction) = match text.split_once(['.', ',']) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    let mut parts = whole.split(':');
    let hour = digits(parts.next()?, 2)?;
    let minute = digits(parts.next()?, 2)?;
    let second = parts.next().map(|part| digits(part, 2));
    if parts.next().is_some() || (fraction.is_some() && second.is_none()) {
        return None;
    }
    let second = match second {
        Some(second) => second?,
        None => 0,
    };
    let micros = fraction.map_or(Some(0), parse_micros)?;
    NaiveTime::from_hms_micro_opt(hour, minute, second, micros)
}

fn parse_micros(fraction: &str) -> Option<u32> {
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let six: String = fraction
        .chars()
        .chain(std::iter::repeat('0'))
        .take(6)
        .collect();
    six.parse().ok()
}

fn split_offset(text: &str) -> Option<(&str, &str)> {
    let at = text.find(['Z', '+', '-'])?;
    Some(text.split_at(at))
}

/// Reads `Z`, `±HH:MM` or `±HHMM` into seconds east of UTC.
fn parse_offset(text: &str) -> Option<i64> {
    if text == "Z" {
        return Some(0);
    }
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match rest.len() {
        5 => rest.split_once(':')?,
        4 => rest.split_at_checked(2)?,
        _ => return None,
    };
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    (hours < 24 && minutes < 60).then(|| sign * i64::from(hours * 3600 + minutes * 60))
}

fn digits(text: &str, count: usize) -> Option<u32> {
    (text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

impl fmt::Display for Timestamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (date, time) = (self.0.date_naive(), self.0.time());
        write!(
            out,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            date.year(),
            date.month(),
            date.day(),
            time.hour(),
            time.minute(),
            time.second()
        )?;
        match self.0.timestamp_subsec_micros() {
            0 => out.write_str("Z"),
            micros => write!(out, ".{micros:06}Z"),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

/// The half-open interval `[start_at, end_at)`; the start is strictly before the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Window {
    start_at: Timestamp,
    end_at: Timestamp,
}

impl Window {
    /// Returns the window, or none when the start is not before the end.
    pub fn new(start_at: Timestamp, end_at: Timestamp) -> Option<Self> {
        (start_at < end_at).then_some(Self { start_at, end_at })
    }

    /// Returns the first instant inside.
    pub fn start_at(&self) -> Timestamp {
        self.start_at
    }

    /// Returns the first instant after the window.
    pub fn end_at(&self) -> Timestamp {
        self.end_at
    }

    /// Tells whether an instant lies inside.
    pub fn contains(&self, instant: Timestamp) -> bool {
        self.start_at <= instant && instant < self.end_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn printed(text: &str) -> Option<String> {
        Timestamp::parse(text).map(|instant| instant.to_string())
    }

    #[test]
    fn offsets_are_turned_into_utc() {
        let cases = [
            ("2026-05-08T09:30:00Z", "2026-05-08T09:30:00Z"),
            ("2026-05-08T09:30+08:00", "2026-05-08T01:30:00Z"),
            ("2026-05-08T09:30:00-0330", "2026-05-08T13:00:00Z"),
            ("2026-05-08T09:30:00.5Z", "2026-05-08T09:30:00.500000Z"),
            (
                "2026-05-08T09:30:00.1234567Z",
                "2026-05-08T09:30:00.123456Z",
            ),
            ("2026-05-08T09:30:00.000000Z", "2026-05-08T09:30:00Z"),
        ];
        for (text, expected) in cases {
            assert_eq!(printed(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_lacks_an_offset_or_does_not_exist_is_refused() {
        let cases = [
            "2026-05-08T09:30:00",
            "2026-05-08",
            "2026-05-08T09:30:00z",
            "2026-05-08T24:00:00Z",
            "2026-05-08T23:59:60Z",
            "2026-02-30T00:00:00Z",
            "2026-05-08T09:30:00+24:00",
            "2026-05-08T09:30:00.Z",
            "2026-05-08T09:30.5Z",
            "0000-01-01T00:00:00Z",
            "0001-01-01T00:00:00+01:00",
            "9999-12-31T23:59:59-01:00",
            "２026-05-08T09:30:00Z",
            "",
        ];
        for text in cases {
            assert_eq!(printed(text), None, "{text}");
        }
    }

    #[test]
    fn elapsed_seconds_are_whole_and_never_negative() {
        let early = Timestamp::parse("2026-05-08T09:30:00.9Z").expect("valid");
        let late = Timestamp::parse("2026-05-08T09:30:02.8Z").expect("valid");
        assert_eq!(late.seconds_since(early), 1);
        assert_eq!(early.seconds_since(late), 0);
    }

    #[test]
    fn a_window_is_half_open() {
        let start = Timestamp::parse("2026-05-01T00:00:00Z").expect("valid");
        let end = Timestamp::parse("2026-05-08T00:00:00Z").expect("valid");
        let window = Window::new(start, end).expect("ordered");
        assert!(window.contains(start) && !window.contains(end));
        assert_eq!(Window::new(end, end), None);
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back_equal(seconds in -62_135_596_800_i64..253_402_300_799, micros in 0_u32..1_000_000) {
            let instant = DateTime::from_timestamp(seconds, micros * 1_000).map(Timestamp::from_utc).expect("in range");
            prop_assert_eq!(Timestamp::parse(&instant.to_string()), Some(instant));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
            let _ = Timestamp::parse(&text);
        }
    }
}
