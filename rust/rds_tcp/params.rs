// SPDX-License-Identifier: GPL-2.0

//! Parameters of the module.

use kernel::prelude::*;
use weft_proto::rds::wire::MAX_PATHS;

weft::module_params! {
    /// Paths that a connection may have; C always has eight.
    max_paths: i32 = 8, "TCP connections between two addresses, 1, 2, 4 or 8 (default: 8)";
}

/// What `max_paths` says. `EINVAL` if that is out of range, or no power of two: a path's source port says by its remainder
/// by 8 which one it is, and the peer looks at the remainder by the number of paths.
pub(crate) fn own_paths() -> Result<u8> {
    let value = max_paths.value();
    match u8::try_from(value) {
        Ok(paths) if usize::from(paths) <= MAX_PATHS && paths.is_power_of_two() => Ok(paths),
        _ => {
            pr_err!(
                "RDS/tcp: max_paths={} cannot be, must be 1, 2, 4 or {}\n",
                value,
                MAX_PATHS
            );
            Err(EINVAL)
        }
    }
}
