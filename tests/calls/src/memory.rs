// SPDX-License-Identifier: GPL-2.0

//! System calls, and the only memory whose addresses they are given.
//!
//! All `unsafe` code of this program is here. Calls get plain numbers, right ones and wrong ones. It is safe for every
//! number to be wrong, since addresses come from three sources only: a [`Region`], which no Rust reference points into
//! while its owner makes a call; the [`pattern`], which is for reading and is handed out as such; and addresses where
//! nothing is that can be read or written.

use std::ffi::{c_int, c_long};
use std::io;
use std::ptr;
use std::slice;
use std::sync::OnceLock;

const PAGE: usize = 4096;

/// Addresses that nothing can be read from: null, the first page, outside of what a process has, the kernel's.
pub(crate) const NOWHERE: [usize; 5] = [
    0,
    1,
    0x0000_7fff_ffff_f000,
    0x0800_0000_0000_0000,
    0xffff_8880_0000_1000,
];

/// Makes a system call; the error is the errno.
pub(crate) fn call(number: c_long, args: [usize; 6]) -> Result<usize, i32> {
    let [a, b, c, d, e, f] = args;
    // SAFETY: The module says which addresses the numbers may be; the kernel accesses nothing else.
    let ret = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    usize::try_from(ret).map_err(|_| errno())
}

/// The errno of the call that has just failed.
fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Memory that the kernel writes to: some pages, and behind them one that cannot be accessed.
pub(crate) struct Region {
    base: *mut u8,
    len: usize,
}

// SAFETY: It is memory that belongs to the value alone, wherever that is.
unsafe impl Send for Region {}

impl Region {
    /// `len` bytes, rounded up to pages, all 0.
    pub(crate) fn new(len: usize) -> io::Result<Self> {
        let len = len.next_multiple_of(PAGE);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: It is a new mapping at an address that the kernel chooses.
        let base = unsafe { libc::mmap(ptr::null_mut(), len + PAGE, rights, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base: *mut u8 = base.cast();
        // SAFETY: The page is part of the mapping.
        let guard = unsafe { base.add(len) };
        // SAFETY: It is the last page of the mapping, and nobody accesses it.
        match unsafe { libc::mprotect(guard.cast(), PAGE, libc::PROT_NONE) } {
            0 => Ok(Self { base, len }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// A page that can only be read.
    pub(crate) fn read_only() -> io::Result<Self> {
        let region = Self::new(PAGE)?;
        // SAFETY: It is a page of this mapping, and no reference to it exists.
        match unsafe { libc::mprotect(region.base.cast(), PAGE, libc::PROT_READ) } {
            0 => Ok(region),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The address of a byte; the one behind the last is that of the page that cannot be accessed.
    pub(crate) fn at(&self, offset: usize) -> usize {
        assert!(offset <= self.len);
        self.base.addr() + offset
    }

    /// What is written there.
    pub(crate) fn get(&self, offset: usize, len: usize) -> &[u8] {
        assert!(offset <= self.len && len <= self.len - offset);
        // SAFETY: The bytes are in the mapping and initialised; the kernel writes them only in calls of the owner, who
        // has no time for that as long as this reference exists.
        unsafe { slice::from_raw_parts(self.base.add(offset), len) }
    }

    /// Writes something there.
    pub(crate) fn put(&mut self, offset: usize, data: &[u8]) {
        assert!(offset <= self.len && data.len() <= self.len - offset);
        // SAFETY: The bytes are in the mapping, `data` is not, and no reference to them exists.
        unsafe { ptr::copy_nonoverlapping(data.as_ptr(), self.base.add(offset), data.len()) };
    }

    /// Writes words of 64 bits.
    pub(crate) fn put_words(&mut self, offset: usize, words: &[usize]) {
        for (number, word) in words.iter().enumerate() {
            self.put(offset + 8 * number, &word.to_ne_bytes());
        }
    }

    /// Reads a word of 32 bits.
    pub(crate) fn u32(&self, offset: usize) -> u32 {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(self.get(offset, 4));
        u32::from_ne_bytes(bytes)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: It is a mapping of ours, as long as `new` has made it, and its owner is gone.
        unsafe { libc::munmap(self.base.cast(), self.len + PAGE) };
    }
}

/// Bytes that never change, to be sent: longer than any message.
pub(crate) fn pattern() -> &'static [u8] {
    static PATTERN: OnceLock<Vec<u8>> = OnceLock::new();
    PATTERN.get_or_init(|| {
        let mut rng = crate::rng::Rng::new(1, 1);
        (0..(5 << 18) / 8)
            .flat_map(|_| rng.next().to_ne_bytes())
            .collect()
    })
}

extern "C" fn nothing(_: c_int) {}

/// Makes a signal end waiting calls, or restart them, and do nothing else.
pub(crate) fn harmless(signal: c_int, restart: bool) {
    // SAFETY: A `sigaction` consists of integers and pointers, for which zero is a value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as *const () as libc::sighandler_t;
    action.sa_flags = if restart { libc::SA_RESTART } else { 0 };
    // SAFETY: `action` is whole, and the handler does nothing.
    unsafe { libc::sigaction(signal, &action, ptr::null_mut()) };
}

/// Runs `child` in a copy of this process, which then ends; the number of the process.
///
/// Only the calling thread exists there, so `child` must not lock or allocate anything.
pub(crate) fn fork(child: impl FnOnce()) -> Result<usize, i32> {
    // SAFETY: The child does what is allowed after a fork of a program with threads: it calls the kernel and ends.
    match unsafe { libc::fork() } {
        0 => {
            child();
            // SAFETY: It ends the process and runs nothing of the parent's.
            unsafe { libc::_exit(0) }
        }
        pid => usize::try_from(pid).map_err(|_| errno()),
    }
}
