// SPDX-License-Identifier: GPL-2.0

//! What users write into files in sysfs: numbers and words.
//!
//! Blanks around a value do not matter, nor whether a newline ends it; everything else has to match exactly.

use core::fmt;

use crate::errno::{
    Errno,
    Failure, //
};

/// Largest capacity of a device in sectors of 512 bytes: its size in bytes fits a file offset.
pub const MAX_SECTORS: u64 = (i64::MAX as u64) >> 9;

/// A value without the blanks and the newline around it.
#[inline]
pub fn trimmed(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

/// Reads a value that can only be `1`, as the files that start something take it.
pub fn parse_one(text: &[u8]) -> Result<(), ValueError> {
    match trimmed(text) {
        b"1" => Ok(()),
        _ => Err(ValueError::NotOne),
    }
}

/// Reads a decimal number from `min` to `max`.
pub fn parse_decimal(text: &[u8], min: i64, max: i64) -> Result<i64, ValueError> {
    let error = ValueError::Decimal { min, max };
    let (negative, digits) = match trimmed(text) {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let number = digits_of(digits, 10).and_then(|number| i64::try_from(number).ok());
    let number = number.ok_or(error)?;
    // A positive number has a negative one.
    let number = if negative {
        number.wrapping_neg()
    } else {
        number
    };
    if (min..=max).contains(&number) {
        Ok(number)
    } else {
        Err(error)
    }
}

/// Reads a size in sectors: decimal, hexadecimal after `0x`, or octal after `0`; at most [`MAX_SECTORS`].
pub fn parse_sectors(text: &[u8]) -> Result<u64, ValueError> {
    let number = match trimmed(text) {
        [b'0', b'x' | b'X', digits @ ..] => digits_of(digits, 16),
        [b'0', digits @ ..] if !digits.is_empty() => digits_of(digits, 8),
        digits => digits_of(digits, 10),
    };
    match number {
        Some(number) if number <= MAX_SECTORS => Ok(number),
        _ => Err(ValueError::Sectors),
    }
}

/// The number that consists of these digits and nothing else.
fn digits_of(digits: &[u8], base: u32) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, digit| {
        let digit = char::from(*digit).to_digit(base)?;
        number.checked_mul(base.into())?.checked_add(digit.into())
    })
}

/// What is wrong with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueError {
    /// Only `1` is possible.
    NotOne,
    /// Not a decimal number in the range.
    Decimal {
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
    },
    /// Not a size in sectors.
    Sectors,
    /// None of some words.
    Word {
        /// What is possible.
        expected: &'static str,
    },
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotOne => f.write_str("value must be 1"),
            Self::Decimal { min, max } => {
                write!(f, "value must be a decimal number from {min} to {max}")
            }
            Self::Sectors => write!(
                f,
                "value must be a number of sectors from 0 to {MAX_SECTORS}"
            ),
            Self::Word { expected } => write!(f, "value must be {expected}"),
        }
    }
}

impl Failure for ValueError {
    fn errno(&self) -> Errno {
        Errno::EINVAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ones() {
        for text in ["1", "1\n", " 1 "] {
            assert_eq!(parse_one(text.as_bytes()), Ok(()));
        }
        for text in ["", "\n", "0", "11", "1 1", "one", "+1", "1\0"] {
            assert_eq!(
                parse_one(text.as_bytes()),
                Err(ValueError::NotOne),
                "{text}"
            );
        }
    }

    #[test]
    fn decimals() {
        let parse = |text: &str| parse_decimal(text.as_bytes(), -1, 9999).ok();
        assert_eq!(
            (parse("-1\n"), parse("0"), parse("9999"), parse("007")),
            (Some(-1), Some(0), Some(9999), Some(7))
        );
        for text in [
            "",
            "-",
            "-2",
            "10000",
            "0x10",
            "1e3",
            "1 2",
            "99999999999999999999",
            "--1",
            "+1",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(
            parse_decimal(b"-9223372036854775808", i64::MIN, 0).ok(),
            None
        );
    }

    #[test]
    fn sectors() {
        for (text, sectors) in [
            ("0", 0),
            ("1\n", 1),
            ("2147483648", 1 << 31),
            ("4294967304", (1 << 32) + 8),
            ("0x10", 16),
            ("0X1f", 31),
            ("010", 8),
            ("18014398509481983", MAX_SECTORS),
        ] {
            assert_eq!(parse_sectors(text.as_bytes()), Ok(sectors), "{text}");
        }
        for text in [
            "",
            "-1",
            "10G",
            "9223372036854775808",
            "18014398509481984",
            "99999999999999999999999",
            "0x",
            "08",
            "1 2",
        ] {
            assert_eq!(
                parse_sectors(text.as_bytes()),
                Err(ValueError::Sectors),
                "{text}"
            );
        }
    }
}
