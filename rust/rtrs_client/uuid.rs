// SPDX-License-Identifier: GPL-2.0

//! Universally unique identifiers.

use weft::time::random_u32;

/// A random one (version 4). Any context.
pub(crate) fn random() -> [u8; 16] {
    let mut uuid = [0; 16];
    for word in uuid.chunks_exact_mut(4) {
        word.copy_from_slice(&random_u32().to_ne_bytes());
    }
    // The bits that say of which kind an identifier is.
    let [_, _, _, _, _, _, version, _, variant, ..] = &mut uuid;
    *version = (*version & 0x0f) | 0x40;
    *variant = (*variant & 0x3f) | 0x80;
    uuid
}
