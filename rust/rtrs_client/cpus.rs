// SPDX-License-Identifier: GPL-2.0

//! One of something for each CPU.

use kernel::{
    cpu::nr_cpu_ids,
    prelude::*, //
};

/// Makes a list with one value for each CPU that can ever be. May sleep.
pub(crate) fn one_each<T>(make: impl Fn() -> T) -> Result<KVec<T>> {
    let count = usize::try_from(nr_cpu_ids())?;
    let mut values = KVec::with_capacity(count, GFP_KERNEL)?;
    for _ in 0..count {
        values.push(make(), GFP_KERNEL)?;
    }
    Ok(values)
}
