// SPDX-License-Identifier: GPL-2.0

//! Parameters of the module; the same as those of C.

weft::module_params! {
    /// See [`Config::always_invalidate`](crate::config::Config::always_invalidate).
    always_invalidate: bool = true,
        "Take the client's key to a chunk away while a request in it is executed (default: Y)";
    /// Bytes of a chunk.
    max_chunk_size: i32 = 131_072,
        "Size of a chunk in bytes: data of a request, message and header, a power of two (default: 131072)";
    /// Chunks of a session.
    sess_queue_depth: i32 = 512,
        "Chunks of a session, 1 to 65535 (default: 512)";
}
