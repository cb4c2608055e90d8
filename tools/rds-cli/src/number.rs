// SPDX-License-Identifier: GPL-2.0

//! Numbers with units, as the RDS programs have always taken them.

use std::time::Duration;

/// A number, decimal or hexadecimal with `0x`, with an optional `k`, `m` or `g` (powers of 1024).
pub fn parse_count(text: &str) -> Result<u64, String> {
    let bad = || format!("'{text}' is not a number");
    let (digits, shift) = match text.chars().last().map(|c| c.to_ascii_lowercase()) {
        Some('k') => (&text[..text.len() - 1], 10),
        Some('m') => (&text[..text.len() - 1], 20),
        Some('g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let value = match digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))
    {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    let value: u64 = value.map_err(|_| bad())?;
    value.checked_mul(1 << shift).ok_or_else(bad)
}

/// The same for a number of bytes in memory.
pub fn parse_size(text: &str) -> Result<usize, String> {
    let value = parse_count(text)?;
    usize::try_from(value).map_err(|_| format!("'{text}' is too large"))
}

/// A time in seconds, which may have a fraction, or with one of the units `s`, `ms` (`msec`) and `us`
/// (`usec`).
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("'{text}' is not a time");
    let at = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(at);
    let scale = match unit {
        "" | "s" | "sec" => 1.0,
        "ms" | "msec" => 1e-3,
        "us" | "usec" => 1e-6,
        _ => return Err(bad()),
    };
    let value: f64 = digits.parse().map_err(|_| bad())?;
    Duration::try_from_secs_f64(value * scale).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        assert_eq!(parse_count("12"), Ok(12));
        assert_eq!(parse_count("0x10"), Ok(16));
        assert_eq!(parse_count("4k"), Ok(4096));
        assert_eq!(parse_count("1M"), Ok(1 << 20));
        for bad in [
            "",
            "k",
            "-1",
            "1x",
            "0xg",
            "99999999999999999999",
            "18446744073709551615k",
        ] {
            assert!(parse_count(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(parse_duration("7usec"), Ok(Duration::from_micros(7)));
        assert_eq!(parse_duration("0"), Ok(Duration::ZERO));
        for bad in ["", "ms", "-1", "1h", "nan", "inf", "1e999"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }
}
