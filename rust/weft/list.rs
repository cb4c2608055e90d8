// SPDX-License-Identifier: GPL-2.0

//! Intrusive lists from whose middle an entry can be removed safely.
//!
//! The kernel's [`List`] removes an entry by reference only in an `unsafe` method, because nothing tells it whether
//! the entry is on *this* list. A [`HomeList`] marks each entry with its own identity while it holds it, which makes
//! that question answerable: an entry whose mark is this list's identity was put there through this list, and only
//! through the `&mut` of this list can it have left.
//!
//! An object that may be on several lists at a time has one [`Home`] for each, told apart by `ID`.

use kernel::{
    list::{
        AtomicTracker,
        Iter,
        List,
        ListArc,
        ListItem,
        TryNewListArc, //
    },
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        ArcBorrow, //
    },
};

/// Mark of an entry that is on no list.
const NOWHERE: u64 = 0;

static NEXT_IDENTITY: Atomic<u64> = Atomic::new(NOWHERE + 1);

/// Which [`HomeList`] an object is on.
///
/// # Invariants
///
/// The value is the identity of the list the object is on, or [`NOWHERE`]; it is written only while that list is
/// borrowed mutably.
pub struct Home(Atomic<u64>);

impl Home {
    /// The mark of a new object.
    pub const fn new() -> Self {
        // INVARIANT: A new object is on no list.
        Self(Atomic::new(NOWHERE))
    }
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

/// Objects that a [`HomeList`] can hold.
///
/// # Safety
///
/// `home` must always return the same field of `self`, used for this `ID` and nothing else. Implement it with
/// [`impl_home_item!`](crate::impl_home_item).
pub unsafe trait HomeItem<const ID: u64>: ListItem<ID> + TryNewListArc<ID> {
    /// The mark that says which list this object is on.
    fn home(&self) -> &Home;
}

/// Makes a type an entry of [`HomeList`]s: `links` is a `ListLinks<ID>`, `tracker` an `AtomicTracker<ID>` (both
/// pinned fields) and `home` a [`Home`].
///
/// ```ignore
/// weft::impl_home_item! { impl HomeItem<1> for Message { links: path_links, tracker: path_tracker, home: path_home } }
/// ```
#[macro_export]
macro_rules! impl_home_item {
    (impl HomeItem<$id:tt> for $self:ty { links: $links:ident, tracker: $tracker:ident, home: $home:ident }) => {
        const _: () = {
            // The kernel's macro names this trait without its path.
            use ::kernel::list::TryNewListArc;
            ::kernel::list::impl_list_arc_safe! {
                impl ListArcSafe<$id> for $self { tracked_by $tracker: ::kernel::list::AtomicTracker<$id>; }
            }
        };
        ::kernel::list::impl_list_item! {
            impl ListItem<$id> for $self { using ListLinks { self.$links }; }
        }
        // SAFETY: One field of the object itself, named once for this `ID`.
        unsafe impl $crate::list::HomeItem<$id> for $self {
            #[inline]
            fn home(&self) -> &$crate::list::Home {
                // It is a field of this type, and not of what the type derefs to; and a `Home`, not what derefs to one.
                const _: usize = ::core::mem::offset_of!($self, $home);
                let _: *const $crate::list::Home = ::core::ptr::addr_of!(self.$home);
                &self.$home
            }
        }
    };
}

/// A list of reference-counted objects, in the order they were put there.
///
/// It has no lock of its own: keep it inside the lock that protects it.
pub struct HomeList<T: HomeItem<ID>, const ID: u64> {
    list: List<T, ID>,
    identity: u64,
}

impl<T: HomeItem<ID>, const ID: u64> HomeList<T, ID> {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self {
            list: List::new(),
            // ORDERING: Only uniqueness counts; a 64-bit counter does not wrap.
            identity: NEXT_IDENTITY.fetch_add(1, Relaxed),
        }
    }

    /// Whether the list holds nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Appends `item`; gives it back if it is already on a list of this `ID`.
    #[inline]
    pub fn push_back(&mut self, item: Arc<T>) -> Result<(), Arc<T>> {
        let item = ListArc::try_from_arc(item)?;
        self.push_back_list_arc(item);
        Ok(())
    }

    /// Appends an entry taken off another list.
    #[inline]
    pub fn push_back_list_arc(&mut self, item: ListArc<T, ID>) {
        // ORDERING: Read again only under the same `&mut` of this list; see `remove`.
        item.home().0.store(self.identity, Relaxed);
        self.list.push_back(item);
    }

    /// Puts an entry taken off another list in front of all others.
    #[inline]
    pub fn push_front_list_arc(&mut self, item: ListArc<T, ID>) {
        // ORDERING: As in `push_back_list_arc`.
        item.home().0.store(self.identity, Relaxed);
        self.list.push_front(item);
    }

    /// Takes the first entry.
    #[inline]
    pub fn pop_front(&mut self) -> Option<ListArc<T, ID>> {
        self.list.pop_front().map(Self::left)
    }

    /// Takes the last entry.
    #[inline]
    pub fn pop_back(&mut self) -> Option<ListArc<T, ID>> {
        self.list.pop_back().map(Self::left)
    }

    /// The first entry.
    #[inline]
    pub fn front(&self) -> Option<ArcBorrow<'_, T>> {
        self.list.iter().next()
    }

    /// The entries, first to last.
    pub fn iter(&self) -> Iter<'_, T, ID> {
        self.list.iter()
    }

    /// Takes `item` out, wherever in this list it is; `None` if it is not on this list.
    #[inline]
    pub fn remove(&mut self, item: &T) -> Option<ListArc<T, ID>> {
        // ORDERING: If the mark is this list's identity, it was stored through this list's `&mut`, as would be the
        // store that takes it away, so whoever holds the `&mut` now is ordered after both.
        if item.home().0.load(Relaxed) != self.identity {
            return None;
        }
        // SAFETY: By the invariant of `Home` the item is on this list, so on no other one with this `ID`.
        unsafe { self.list.remove(item) }.map(Self::left)
    }

    /// Marks an entry that was just taken out.
    fn left(item: ListArc<T, ID>) -> ListArc<T, ID> {
        // ORDERING: As in `push_back_list_arc`.
        item.home().0.store(NOWHERE, Relaxed);
        item
    }
}

impl<T: HomeItem<ID>, const ID: u64> Default for HomeList<T, ID> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: HomeItem<ID>, const ID: u64> Drop for HomeList<T, ID> {
    fn drop(&mut self) {
        while self.pop_front().is_some() {}
    }
}

/// The tracker every entry needs; a shorter name for the pair of imports.
pub type Tracker<const ID: u64> = AtomicTracker<ID>;
