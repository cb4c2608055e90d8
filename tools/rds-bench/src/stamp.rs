// SPDX-License-Identifier: GPL-2.0

//! Numbers at the start of messages: enough to notice loss and exchange, too little to cost anything.

/// Bytes of a number; shorter messages have none.
const LEN: usize = 8;

/// A message of `size` bytes.
pub(crate) fn message(size: usize) -> Vec<u8> {
    vec![0xa5; size]
}

/// Numbers a message.
pub(crate) fn put(message: &mut [u8], number: u64) {
    if let Some(start) = message.get_mut(..LEN) {
        start.copy_from_slice(&number.to_le_bytes());
    }
}

/// Whether a message has the right length and number.
pub(crate) fn matches(message: &[u8], size: usize, number: u64) -> bool {
    message.len() == size
        && message
            .get(..LEN)
            .is_none_or(|start| *start == number.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_noticed_if_there_is_room() {
        let mut long = message(9);
        put(&mut long, 7);
        assert!(matches(&long, 9, 7) && !matches(&long, 9, 8) && !matches(&long, 8, 7));
        let mut short = message(7);
        put(&mut short, 7);
        assert!(matches(&short, 7, 8) && !matches(&short, 6, 7));
    }
}
