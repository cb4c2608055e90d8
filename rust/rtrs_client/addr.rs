// SPDX-License-Identifier: GPL-2.0

//! Addresses of a path.

use kernel::{
    fmt,
    prelude::*, //
};
use weft_proto::rtrs::addr;
use weft_rdma::addr::Addr;
