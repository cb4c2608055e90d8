// SPDX-License-Identifier: GPL-2.0

//! Parameters of the module.

use kernel::prelude::*;
use weft_proto::rds::wire::MAX_PATHS;

weft::module_params! {
    /// Paths that a connection may have; C always has eight.
    max_paths: i32 = 8, "TCP connections between two addresses, 1 to 8 (default: 8)";
}

/// What `max_paths` says. `EINVAL` if that is out of range.
pub(crate) fn own_paths() -> Result<u8> {
    let value = max_paths.value();
    match u8::try_from(value) {
        Ok(paths) if (1..=MAX_PATHS).contains(&usize::from(paths)) => Ok(paths),
        _ => {
            pr_err!(
                "RDS/tcp: max_paths={} is out of range, must be 1 to {}\n",
                value,
                MAX_PATHS
            );
            Err(EINVAL)
        }
    }
}
