// SPDX-License-Identifier: GPL-2.0

//! Names of files, and what is read from and written to them.

use core::{
    cmp::min,
    str::{
        self,
        FromStr, //
    }, //
};
use kernel::{
    error::code::{
        EINVAL,
        ENAMETOOLONG,
        EOVERFLOW, //
    },
    fmt::{
        self,
        Write, //
    },
    prelude::*,
    str::{
        kstrtobool_bytes,
        parse_int::ParseInt,
        BStr,
        CStr,
        CString, //
    },
};

/// The longest name in bytes, `NAME_MAX` of C: a longer one could not be looked up.
const NAME_MAX: usize = 255;

/// Whether `name` can be the name of a file, a link, a directory or a device.
///
/// `EINVAL` if it is empty, `.` or `..` or has a slash in it, `ENAMETOOLONG` if it has more than 255 bytes. Any context.
pub fn check_name(name: &CStr) -> Result {
    match name.to_bytes() {
        b"" | b"." | b".." => Err(EINVAL),
        bytes if bytes.len() > NAME_MAX => Err(ENAMETOOLONG),
        bytes if bytes.contains(&b'/') => Err(EINVAL),
        _ => Ok(()),
    }
}

/// What is formatted, with a `!` in the place of each slash: how sysfs names what is named by a path. Sleeps.
///
/// `EINVAL` if there is a NUL in it. Different paths may give one name.
pub fn escaped(name: fmt::Arguments<'_>) -> Result<CString> {
    let plain = CString::try_from_fmt(name)?;
    let mut bytes = KVec::with_capacity(plain.to_bytes_with_nul().len(), GFP_KERNEL)?;
    for byte in plain.to_bytes_with_nul() {
        bytes.push(if *byte == b'/' { b'!' } else { *byte }, GFP_KERNEL)?;
    }
    let name = CStr::from_bytes_with_nul(&bytes).map_err(|_| EINVAL)?;
    CString::try_from(name).map_err(Error::from)
}

/// What is shown to a reader of a file: at most one page less one byte, as in C.
pub struct PageWriter<'a> {
    page: &'a mut [u8],
    len: usize,
    full: bool,
}

impl<'a> PageWriter<'a> {
    pub(super) fn new(page: &'a mut [u8]) -> Self {
        Self {
            page,
            len: 0,
            full: false,
        }
    }

    /// Appends text. `EOVERFLOW` if it does not fit, and then the reader gets that error, whatever is appended later.
    pub fn emit(&mut self, args: fmt::Arguments<'_>) -> Result {
        self.write_fmt(args)
            .map_err(|_| if self.full { EOVERFLOW } else { EINVAL })
    }

    /// How many bytes still fit.
    pub fn room(&self) -> usize {
        self.page.len().saturating_sub(self.len)
    }

    /// The number of bytes written.
    pub(super) fn finish(self) -> Result<usize> {
        if self.full {
            return Err(EOVERFLOW);
        }
        Ok(self.len)
    }
}

impl Write for PageWriter<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let bytes = text.as_bytes();
        let end = self.len.saturating_add(bytes.len());
        match self.page.get_mut(self.len..end) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.len = end;
                Ok(())
            }
            None => {
                self.full = true;
                Err(fmt::Error)
            }
        }
    }
}

/// What was written without what C's parsers ignore: all from the first NUL on, and one line end before that.
pub fn text(input: &[u8]) -> &[u8] {
    let end = input
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(input.len());
    let text = input.get(..min(end, input.len())).unwrap_or_default();
    text.strip_suffix(b"\n").unwrap_or(text)
}

/// Whether `word` was written, with or without a line end: `sysfs_streq` of C.
pub fn is(input: &[u8], word: &[u8]) -> bool {
    text(input) == word
}

/// The number that was written, as C's `kstrto*` functions with base 0 read it. `EINVAL` if there is none or if it is
/// out of range.
pub fn parse<T: ParseInt>(input: &[u8]) -> Result<T> {
    T::from_str(BStr::from_bytes(text(input)))
}

/// The decimal number that was written. `EINVAL` if there is none or if it is out of range.
pub fn parse_decimal<T: FromStr>(input: &[u8]) -> Result<T> {
    let text = str::from_utf8(text(input)).map_err(|_| EINVAL)?;
    text.parse().map_err(|_| EINVAL)
}

/// The truth value that was written, as C's `kstrtobool` reads it. `EINVAL` if there is none.
pub fn parse_bool(input: &[u8]) -> Result<bool> {
    kstrtobool_bytes(text(input))
}
