// SPDX-License-Identifier: GPL-2.0

//! Parameters of the module, which C has not.

weft::module_params! {
    /// Who takes the key to the memory of a read away from the server.
    ///
    /// A message of the server costs it a work request and a packet, and the client a receive; it comes before the
    /// answer. A work request of the client costs the client one, which begins when the answer is there. Either way the
    /// request is not over before the key opens nothing.
    remote_invalidation: bool = false,
        "Have the server invalidate the memory of reads by a message, instead of doing it here (default: N)";
}
