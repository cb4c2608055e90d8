// SPDX-License-Identifier: GPL-2.0

//! Hearing from TCP what happens on a connection.
//!
//! C: `sk_data_ready`, `sk_write_space` and `sk_state_change` of [`struct sock`](srctree/include/net/sock.h)
//!
//! TCP calls these pointers with its lock on the socket held: in softirq, or in a task that works on what came in while
//! it had the socket locked. Ours take `sk_callback_lock` for reading, look for the socket's owner in `sk_user_data`
//! and call it. The owner is put there and taken away under the same lock held for writing, so once it is taken away no
//! callback is with it any more.
//!
//! The socket's owner and its socket go together: an [`Attached`] socket cannot be attached again, so a callback finds
//! the owner it was installed for, or none. It is no listener, so no child inherits the callbacks. And its release,
//! which takes TCP's lock, waits for the last instruction of a callback, so the module may be unloaded afterwards.

use super::{
    hook::{
        self,
        Callback, //
    },
    KernelSocket,
    TcpSk,
    TcpState, //
};
use crate::bindings;
use core::{
    marker::PhantomData,
    ops::Deref,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
    types::NotThreadSafe, //
};

/// What the owner of a connection is told.
///
/// The calls come with TCP's lock on the socket held and bottom halves off. They must not sleep, must not call methods
/// of the socket that may, and must not detach it. A call may come out of the owner's own call into the socket.
pub trait TcpCallbacks: Send + Sync + 'static {
    /// Data has arrived.
    fn data_ready(this: ArcBorrow<'_, Self>, sk: &mut CallbackSk<'_>);

    /// The peer has acknowledged data. Comes only after [`KernelSocket::set_nospace`] or a send that did not fit; from
    /// then on with each acknowledgement.
    fn write_space(this: ArcBorrow<'_, Self>, sk: &CallbackSk<'_>);

    /// The connection has got another state.
    fn state_change(this: ArcBorrow<'_, Self>, sk: &CallbackSk<'_>, state: TcpState);
}

/// A socket in one of its callbacks.
///
/// # Invariants
///
/// TCP's lock on the socket is held for this call, and so is `sk_callback_lock` for reading.
pub struct CallbackSk<'a> {
    sk: &'a TcpSk,
    _not_send: NotThreadSafe,
}

impl CallbackSk<'_> {
    /// # Safety
    ///
    /// The type invariants must hold for `'a`, and `sk` must be a socket that an [`Attached`] owns.
    #[inline]
    unsafe fn new<'a>(sk: *mut bindings::sock) -> CallbackSk<'a> {
        // INVARIANT: The caller promises it.
        CallbackSk {
            // SAFETY: The owner is a `KernelSocket`, whose invariants include those of `TcpSk`.
            sk: unsafe { TcpSk::from_raw(sk) },
            _not_send: NotThreadSafe,
        }
    }
}

impl Deref for CallbackSk<'_> {
    type Target = TcpSk;

    #[inline]
    fn deref(&self) -> &TcpSk {
        self.sk
    }
}

/// What `sk_user_data` of an attached socket points to.
struct Hooks<C> {
    owner: Arc<C>,
    data_ready: Callback,
    write_space: Callback,
    state_change: Callback,
}

/// A socket whose callbacks go to a `C`.
///
/// Dropping it detaches and releases the socket. Sleeps.
///
/// # Invariants
///
/// `sk_user_data` of the socket is a `KBox<Hooks<C>>` marked as not to be copied, and its callbacks are those for `C` of
/// this module, or neither is the case. Both change together, under `sk_callback_lock` held for writing, and once ended
/// this does not begin again.
pub struct Attached<C: TcpCallbacks> {
    socket: KernelSocket,
    _owner: PhantomData<Arc<C>>,
}

impl KernelSocket {
    /// Lets `owner` hear from TCP from now on.
    ///
    /// Nothing is told of what has happened before: data may have arrived, or the peer may have closed.
    /// If this fails (`ENOMEM`, or `EBUSY` if something else uses the socket) the socket is given back.
    pub fn attach<C: TcpCallbacks>(self, owner: Arc<C>) -> Result<Attached<C>, (Error, Self)> {
        let sk = self.as_raw();
        let Ok(hooks) = KBox::<Hooks<C>>::new_uninit(GFP_KERNEL) else {
            return Err((ENOMEM, self));
        };
        // SAFETY: The socket is valid.
        let lock = unsafe { hook::WriteLock::new(sk) };
        // SAFETY: The socket is valid.
        if unsafe { bindings::weft_helper_sk_user_data(sk) } != 0 {
            drop(lock);
            return Err((EBUSY, self));
        }
        // SAFETY: The socket is valid, and its callbacks are stable under the lock.
        let originals = unsafe {
            (
                bindings::weft_helper_sk_data_ready(sk),
                bindings::weft_helper_sk_write_space(sk),
                bindings::weft_helper_sk_state_change(sk),
            )
        };
        let (Some(data_ready), Some(write_space), Some(state_change)) = originals else {
            drop(lock);
            return Err((EINVAL, self));
        };
        let hooks = KBox::into_raw(hooks.write(Hooks {
            owner,
            data_ready,
            write_space,
            state_change,
        }));
        // INVARIANT: The hooks and the callbacks change together, under the lock.
        // SAFETY: The socket is valid and its callback lock is held for writing. The callbacks match the hooks.
        unsafe {
            bindings::weft_helper_sk_set_user_data_nocopy(sk, hooks.cast());
            bindings::weft_helper_sk_set_data_ready(sk, Some(data_ready_callback::<C>));
            bindings::weft_helper_sk_set_write_space(sk, Some(write_space_callback::<C>));
            bindings::weft_helper_sk_set_state_change(sk, Some(state_change_callback::<C>));
        }
        drop(lock);
        Ok(Attached {
            socket: self,
            _owner: PhantomData,
        })
    }
}

impl<C: TcpCallbacks> Attached<C> {
    /// Gives the callbacks back to TCP and drops the reference to the owner.
    ///
    /// When this returns, no callback is with the owner and none will come. Does nothing if done before. Must not be
    /// called from a callback of the same socket.
    pub fn detach(&self) {
        let sk = self.as_raw();
        // SAFETY: The socket is valid.
        let lock = unsafe { hook::WriteLock::new(sk) };
        // SAFETY: The socket is attached by `C`, and the lock is held.
        let Some(hooks) = (unsafe { hooks::<C>(sk) }) else {
            return;
        };
        // INVARIANT: The hooks and the callbacks change together, under the lock.
        // SAFETY: The hooks are valid, as they are dropped below only. The socket is valid and its lock is held.
        unsafe {
            let originals = hooks.as_ref();
            bindings::weft_helper_sk_set_data_ready(sk, Some(originals.data_ready));
            bindings::weft_helper_sk_set_write_space(sk, Some(originals.write_space));
            bindings::weft_helper_sk_set_state_change(sk, Some(originals.state_change));
            bindings::weft_helper_sk_clear_user_data(sk);
        }
        drop(lock);
        // SAFETY: These are the hooks of `attach`. Callbacks use them under the lock held for reading, so none did when
        // we had it for writing, and no one finds them any more.
        drop(unsafe { KBox::from_raw(hooks.as_ptr()) });
    }
}

impl<C: TcpCallbacks> Deref for Attached<C> {
    type Target = KernelSocket;

    #[inline]
    fn deref(&self) -> &KernelSocket {
        &self.socket
    }
}

impl<C: TcpCallbacks> Drop for Attached<C> {
    fn drop(&mut self) {
        // The socket is released afterwards, with its field.
        self.detach();
    }
}

/// Finds the hooks in a socket's `sk_user_data`.
///
/// # Safety
///
/// `sk` must be valid and have been attached by a `C`, and its `sk_callback_lock` must be held. The hooks are valid as
/// long as it is.
#[inline]
unsafe fn hooks<C>(sk: *mut bindings::sock) -> Option<NonNull<Hooks<C>>> {
    // SAFETY: The socket is valid and the lock is held.
    unsafe { hook::get(sk) }.map(NonNull::cast)
}

/// Calls `call` with the owner of the socket and returns the original callback that `original` picks, or `None` if there
/// is no owner any more.
///
/// # Safety
///
/// Must be called by a callback of `sk` that was installed for `C`.
#[inline]
unsafe fn with_owner<C: TcpCallbacks>(
    sk: *mut bindings::sock,
    call: impl FnOnce(ArcBorrow<'_, C>, &mut CallbackSk<'_>),
    original: impl FnOnce(&Hooks<C>) -> Callback,
) -> Option<Callback> {
    // SAFETY: The socket is valid.
    let _lock = unsafe { hook::ReadLock::new(sk) };
    // SAFETY: The socket was attached by a `C`, or its callback would not be here, and the lock is held.
    let hooks = unsafe { hooks::<C>(sk)?.as_ref() };
    // SAFETY: TCP holds its lock during callbacks, the other one is held here, and the socket is still attached.
    let mut token = unsafe { CallbackSk::new(sk) };
    call(hooks.owner.as_arc_borrow(), &mut token);
    Some(original(hooks))
}

/// # Safety
///
/// To be called by TCP, as `sk_data_ready` of a socket attached by a `C`.
unsafe extern "C" fn data_ready_callback<C: TcpCallbacks>(sk: *mut bindings::sock) {
    // SAFETY: This is such a callback.
    let original = unsafe { with_owner::<C>(sk, C::data_ready, |hooks| hooks.data_ready) };
    // Without an owner the socket has been given back and has its own callback.
    // SAFETY: The socket is valid during the callback.
    let callback = original.or_else(|| unsafe { bindings::weft_helper_sk_data_ready(sk) });
    if let Some(callback) = callback {
        // SAFETY: This is what TCP would have called.
        unsafe { callback(sk) }
    }
}

/// # Safety
///
/// To be called by TCP, as `sk_state_change` of a socket attached by a `C`.
unsafe extern "C" fn state_change_callback<C: TcpCallbacks>(sk: *mut bindings::sock) {
    let call = |owner: ArcBorrow<'_, C>, token: &mut CallbackSk<'_>| {
        let state = token.state();
        C::state_change(owner, token, state);
    };
    // SAFETY: This is such a callback.
    let original = unsafe { with_owner::<C>(sk, call, |hooks| hooks.state_change) };
    // SAFETY: The socket is valid during the callback.
    let callback = original.or_else(|| unsafe { bindings::weft_helper_sk_state_change(sk) });
    if let Some(callback) = callback {
        // SAFETY: This is what TCP would have called.
        unsafe { callback(sk) }
    }
}

/// # Safety
///
/// To be called by TCP, as `sk_write_space` of a socket attached by a `C`.
unsafe extern "C" fn write_space_callback<C: TcpCallbacks>(sk: *mut bindings::sock) {
    // SAFETY: This is such a callback.
    let original = unsafe {
        with_owner::<C>(
            sk,
            |owner, token| C::write_space(owner, token),
            |hooks| hooks.write_space,
        )
    };
    // SAFETY: The socket is valid during the callback.
    let callback = original.or_else(|| unsafe { bindings::weft_helper_sk_write_space(sk) });
    if let Some(callback) = callback {
        // SAFETY: This is what TCP would have called.
        unsafe { callback(sk) }
    }
    // TCP's own callback clears the flag without which the next acknowledgement would not be told of.
    if original.is_some() {
        // SAFETY: The socket is valid during the callback. Its `struct socket` is null or stays until TCP's lock, which
        // is held, can be taken to release it.
        unsafe {
            let socket = bindings::weft_helper_sk_socket(sk);
            if !socket.is_null() {
                bindings::weft_helper_socket_set_nospace(socket);
            }
        }
    }
}
