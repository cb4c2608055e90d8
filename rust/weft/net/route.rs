// SPDX-License-Identifier: GPL-2.0

//! Whose address an address is.
//!
//! C headers: [`include/net/route.h`](srctree/include/net/route.h),
//! [`include/net/addrconf.h`](srctree/include/net/addrconf.h)
//!
//! An address is 16 bytes, an IPv4 address in its v4-mapped form.

use super::ns::Net;
use crate::bindings;
use core::ptr;
use kernel::sync::rcu;

/// An address: IPv6, or IPv4 as `::ffff:a.b.c.d`.
pub type Address = [u8; 16];

/// The first twelve bytes of a v4-mapped address.
const V4_MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/// The IPv4 address in `address`, in network order, if it is a mapped one.
#[inline]
pub(crate) fn v4(address: &Address) -> Option<u32> {
    let [prefix @ .., a, b, c, d] = address;
    (*prefix == V4_MAPPED).then(|| u32::from_ne_bytes([*a, *b, *c, *d]))
}

/// The mapped form of an IPv4 address in network order.
#[inline]
pub(crate) fn v4_mapped(address: u32) -> Address {
    let [a, b, c, d] = address.to_ne_bytes();
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d]
}

/// Whether the address is an IPv6 unicast address that means something on one link only (`fe80::/10`).
#[inline]
pub fn is_link_local(address: &Address) -> bool {
    matches!(address, [0xfe, second, ..] if second & 0xc0 == 0x80)
}

/// Whether the address belongs to this host in `net`: on the interface `scope_id` if that is not zero.
///
/// Any context but hard interrupts. For an IPv4 address `scope_id` plays no part.
pub fn local_address(net: &Net, address: &Address, scope_id: u32) -> bool {
    if let Some(address) = v4(address) {
        // SAFETY: By the invariant of `Net` the namespace's routing tables are there.
        return unsafe { bindings::inet_addr_type(net.as_raw(), address) }
            == bindings::WEFT_RTN_LOCAL;
    }
    // The device may go away as soon as the read section ends.
    let _guard = rcu::read_lock();
    let device = if scope_id == 0 {
        ptr::null_mut()
    } else {
        let Ok(index) = i32::try_from(scope_id) else {
            return false;
        };
        // SAFETY: The namespace is valid, and this is an RCU read section.
        let device = unsafe { bindings::dev_get_by_index_rcu(net.as_raw(), index) };
        if device.is_null() {
            return false;
        }
        device
    };
    let address = bindings::in6_addr {
        in6_u: bindings::in6_addr__bindgen_ty_1 { u6_addr8: *address },
    };
    // SAFETY: The namespace's IPv6 addresses are there if IPv6 is enabled, which the helper checks. The device is null
    // or valid in this read section.
    unsafe { bindings::weft_helper_ipv6_chk_addr(net.as_raw(), &address, device) }
}

/// The index of the network interface that is called `name` now in `net`. Any context but hard interrupts.
pub fn interface_index(net: &Net, name: &str) -> Option<u32> {
    // One more byte than a name may have, for the terminator.
    let mut raw = [0u8; 16];
    if name.len() >= raw.len() || name.contains('\0') {
        return None;
    }
    raw.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
    // SAFETY: By the invariant of `Net` the namespace is there; the name is terminated, as checked.
    let index = unsafe { bindings::weft_helper_ifindex_by_name(net.as_raw(), raw.as_ptr().cast()) };
    u32::try_from(index).ok().filter(|index| *index != 0)
}
