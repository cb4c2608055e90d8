// SPDX-License-Identifier: GPL-2.0
/* Makes the trace events of RDS, with the functions by which Rust calls them. */
#define CREATE_TRACE_POINTS
#define CREATE_RUST_TRACE_POINTS
#include "rds_events.h"
