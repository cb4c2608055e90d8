// SPDX-License-Identifier: GPL-2.0

//! Memory set aside for I/O, and the I/O in flight.

use super::{
    check,
    BioPages,
    Command,
    Data,
    Done, //
};
use crate::{
    bindings,
    block::{
        bdev::Bdev,
        gate::Gate,
        Op,
        SECTOR_SHIFT, //
    },
};
use core::{
    marker::PhantomData,
    mem::{
        offset_of,
        size_of, //
    },
    ptr::{
        self,
        addr_of_mut,
        NonNull, //
    }, //
};
use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

/// What a pool and its I/O share.
///
/// # Invariants
///
/// `set` is initialised as long as somebody is inside `users`.
#[pin_data]
struct Shared {
    #[pin]
    set: Opaque<bindings::bio_set>,
    #[pin]
    users: Gate,
}

// SAFETY: A `bio_set` may be used from any thread; the gate is `Send`.
unsafe impl Send for Shared {}
// SAFETY: As above.
unsafe impl Sync for Shared {}

/// The part of an I/O that does not depend on who does it; directly before the bio.
#[repr(C)]
struct Header {
    /// Takes the I/O apart and tells its result.
    finish: unsafe fn(NonNull<bindings::bio>),
    /// One user is counted for this I/O.
    shared: NonNull<Shared>,
}

/// An I/O, as the memory of the pool is laid out. Only the last bio of a chain has more than the bio initialised.
#[repr(C)]
struct Io<D> {
    done: D,
    bdev: Arc<Bdev>,
    pages: Option<Arc<dyn BioPages>>,
    header: Header,
    bio: bindings::bio,
}

impl<D: Done> Io<D> {
    /// Bytes before the bio.
    const FRONT: usize = offset_of!(Self, bio);

    /// Fails to compile for what cannot lie before a bio.
    const FITS: () = assert!(
        align_of::<Self>() <= 8
            && Self::FRONT == offset_of!(Self, header) + size_of::<Header>()
            && Self::FRONT <= 1024
    );

    /// Ends an I/O.
    ///
    /// # Safety
    ///
    /// `bio` must be completed and that of an initialised `Io<D>`, which is gone afterwards.
    unsafe fn finish(bio: NonNull<bindings::bio>) {
        // SAFETY: By the safety requirements.
        let io = unsafe { bio.as_ptr().byte_sub(Self::FRONT).cast::<Self>() };
        // SAFETY: As above: each value is taken out once, and the memory given back.
        let (result, done, bdev, pages) = unsafe {
            let status = bindings::blk_status_to_errno((*bio.as_ptr()).bi_status);
            let io = (
                to_result(status),
                ptr::read(addr_of_mut!((*io).done)),
                ptr::read(addr_of_mut!((*io).bdev)),
                ptr::read(addr_of_mut!((*io).pages)),
            );
            bindings::bio_put(bio.as_ptr());
            io
        };
        drop(pages);
        drop(bdev);
        done.done(result);
    }
}

/// Called when the last bio of an I/O is completed. Not inlined into other modules: after the last user has left the
/// pool, the module may be gone.
///
/// # Safety
///
/// To be called by the block layer, once, for a bio with an initialised header before it.
#[inline(never)]
unsafe extern "C" fn end_io_callback(bio: *mut bindings::bio) {
    // SAFETY: The header lies directly before the bio.
    let (finish, shared) = unsafe {
        let header = bio.byte_sub(size_of::<Header>()).cast::<Header>();
        ((*header).finish, (*header).shared)
    };
    // SAFETY: The header is that of an I/O for which this is the function.
    unsafe { finish(NonNull::new_unchecked(bio)) };
    // SAFETY: A user is counted for this I/O, so it is valid; it is not used after this.
    unsafe { (*shared.as_ptr()).users.leave() };
}

/// Memory set aside for I/O of a module.
///
/// Dropping it sleeps: it refuses new I/O and waits for what is in flight, so that no code of the module is called by
/// the block layer afterwards. As with every registration of the kernel crate, it must not be forgotten by a module
/// that is unloaded.
pub struct Pool<D: Done> {
    handle: PoolHandle<D>,
}

/// A reference to a [`Pool`]; once that is being dropped, there is no I/O through it.
pub struct PoolHandle<D: Done> {
    shared: Arc<Shared>,
    _done: PhantomData<fn(D)>,
}

impl<D: Done> Clone for PoolHandle<D> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            _done: PhantomData,
        }
    }
}

impl<D: Done> Pool<D> {
    /// Sets memory aside for `spare` bios. Sleeps. `ENOMEM`.
    ///
    /// That many can always be in flight; more are as long as there is other memory.
    pub fn new(spare: u32) -> Result<Self> {
        let () = Io::<D>::FITS;
        // INVARIANT: Nobody is inside yet; the drop of the pool lets nobody in.
        let shared = Arc::pin_init(
            try_pin_init!(Shared {
                set <- Opaque::try_ffi_init(|slot| {
                    // SAFETY: `slot` is valid for writes and stays where it is.
                    to_result(unsafe {
                        ptr::write_bytes(slot, 0, 1);
                        bindings::bioset_init(
                            slot,
                            spare,
                            Io::<D>::FRONT as u32,
                            bindings::BIOSET_NEED_BVECS as i32,
                        )
                    })
                }),
                users <- Gate::new(),
            }),
            GFP_KERNEL,
        )?;
        Ok(Self {
            handle: PoolHandle {
                shared,
                _done: PhantomData,
            },
        })
    }

    /// A handle with which I/O is done.
    pub fn handle(&self) -> PoolHandle<D> {
        self.handle.clone()
    }
}

impl<D: Done> Drop for Pool<D> {
    fn drop(&mut self) {
        let shared = &self.handle.shared;
        shared.users.close();
        // SAFETY: The set is initialised, and nobody uses it any more or will.
        unsafe { bindings::bioset_exit(shared.set.get()) };
    }
}

impl<D: Done> PoolHandle<D> {
    /// Does `command` on `bdev`; `done` is told how it went. May sleep, until memory is there or the device has room.
    ///
    /// Operations without data may be as large as the device is: they are done in pieces, of which the first error is
    /// the result. If it is not started, `done` comes back with the error: `EINVAL` if the command is impossible,
    /// `EROFS` if it would change what is read-only, `EOPNOTSUPP` if the device cannot do it, `ESHUTDOWN` if the pool
    /// is being dropped.
    pub fn submit(
        &self,
        bdev: &Arc<Bdev>,
        command: &Command,
        data: Option<Data>,
        done: D,
    ) -> Result<(), (Error, D)> {
        let parts = match check::check(bdev, command, data.as_ref()) {
            Ok(parts) => parts,
            Err(error) => return Err((error, done)),
        };
        if !self.shared.users.enter() {
            return Err((ESHUTDOWN, done));
        }
        // SAFETY: A user is counted, which `end_io_callback` undoes. The command was checked.
        unsafe {
            let bio = self.last(bdev, command, parts);
            match self.fill(bio, bdev, data, done) {
                Ok(()) => bindings::submit_bio(bio.as_ptr()),
                Err(_) => {
                    (*bio.as_ptr()).bi_status = bindings::WEFT_BLK_STS_IOERR;
                    bindings::bio_endio(bio.as_ptr());
                }
            }
        }
        Ok(())
    }

    /// A bio for one piece of `command`.
    ///
    /// # Safety
    ///
    /// The caller must be inside `users`, and submit or put the bio.
    unsafe fn alloc(
        &self,
        bdev: &Bdev,
        command: &Command,
        parts: u16,
        (sector, sectors): (u64, u64),
    ) -> NonNull<bindings::bio> {
        let flush = Op::Write.to_raw() | bindings::WEFT_REQ_PREFLUSH | bindings::WEFT_REQ_SYNC;
        let opf = match command.op {
            Op::Flush => flush,
            op => op.to_raw() | command.flags.to_raw(),
        };
        // SAFETY: The set is initialised by the safety requirements. An allocation that may wait does not fail; it
        // does no I/O.
        unsafe {
            let bio = bindings::bio_alloc_bioset(
                bdev.as_raw(),
                parts,
                opf,
                bindings::WEFT_GFP_NOIO,
                self.shared.set.get(),
            );
            (*bio).bi_iter.bi_sector = sector;
            // CAST: The pieces are at most as large as a bio.
            (*bio).bi_iter.bi_size = (sectors << SECTOR_SHIFT) as u32;
            (*bio).bi_ioprio = command.prio.to_raw();
            NonNull::new_unchecked(bio)
        }
    }

    /// Makes the bios of `command` and submits all but the last, which completes after them.
    ///
    /// # Safety
    ///
    /// As for [`Self::alloc`]; the command must have been checked, with `parts` as the result.
    unsafe fn last(&self, bdev: &Bdev, command: &Command, parts: u16) -> NonNull<bindings::bio> {
        if command.op.has_data() || command.op == Op::Flush {
            // SAFETY: As promised by the caller. The size comes from the memory that is added.
            return unsafe { self.alloc(bdev, command, parts, (command.sector, 0)) };
        }
        let (mut sector, mut left) = (command.sector, command.bytes >> SECTOR_SHIFT);
        let mut last: Option<NonNull<bindings::bio>> = None;
        loop {
            // The device may have changed since it was checked; then it is the block layer that refuses.
            let block = u64::from(bdev.logical_block_size() >> SECTOR_SHIFT).max(1);
            let sectors = check::limit(bdev, command.op, sector).max(block).min(left);
            // SAFETY: As promised by the caller.
            let bio = unsafe { self.alloc(bdev, command, 0, (sector, sectors)) };
            if let Some(previous) = last {
                // SAFETY: Both are ours; the previous one has all it needs. This is process context.
                unsafe {
                    bindings::bio_chain(previous.as_ptr(), bio.as_ptr());
                    bindings::submit_bio(previous.as_ptr());
                    bindings::weft_helper_cond_resched();
                }
            }
            sector += sectors;
            left -= sectors;
            if left == 0 {
                return bio;
            }
            last = Some(bio);
        }
    }

    /// Adds to a bio its memory and what is done at its end, the latter in any case.
    ///
    /// # Safety
    ///
    /// `bio` must be new, from [`Self::last`] with the same command, whose data was checked.
    unsafe fn fill(
        &self,
        bio: NonNull<bindings::bio>,
        bdev: &Arc<Bdev>,
        data: Option<Data>,
        done: D,
    ) -> Result {
        // The command was checked with the same memory, so that neither this nor C fails.
        let added = data.as_ref().map_or(Ok(()), |data| {
            data.for_each(|run| {
                let len = u32::try_from(run.len)?;
                // SAFETY: The bio is ours, and the memory stays until it is completed, since a reference of it is kept
                // beside the bio.
                let added = unsafe {
                    bindings::bio_add_page(bio.as_ptr(), run.page.as_ptr(), len, run.offset)
                };
                if u32::try_from(added) == Ok(len) {
                    Ok(())
                } else {
                    Err(EIO)
                }
            })
        });
        // SAFETY: The pool has room for this before each bio.
        unsafe {
            let io = bio.as_ptr().byte_sub(Io::<D>::FRONT).cast::<Io<D>>();
            addr_of_mut!((*io).done).write(done);
            addr_of_mut!((*io).bdev).write(bdev.clone());
            addr_of_mut!((*io).pages).write(data.map(|data| data.pages));
            addr_of_mut!((*io).header).write(Header {
                finish: Io::<D>::finish,
                shared: NonNull::from(&*self.shared),
            });
            (*bio.as_ptr()).bi_end_io = Some(end_io_callback);
        }
        added
    }
}
