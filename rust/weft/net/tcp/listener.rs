// SPDX-License-Identifier: GPL-2.0

//! Listening sockets.
//!
//! A [`Listener`] lives in a namespace without keeping it alive: it is made from a [`ScopedNet`] and is gone when the
//! namespace is left. So are the connections it accepts.
//!
//! Every child of a listening socket starts as a copy of it, callback included, and has it until it is accepted. The
//! callback therefore serves children as well: they have no hooks, because those are marked as not to be copied, and get
//! what TCP's sockets have by default. It is not generic, so it stays in this module's text, whatever module listens.

use super::{
    hook::{
        self,
        Callback, //
    },
    socket::RawSocket,
    Family,
    KernelSocket,
    SocketAddr6, //
};
use crate::{
    bindings,
    net::ns::{
        NetBound,
        Resource,
        ScopedNet,
        WeakNet, //
    },
};
use core::{
    mem::transmute,
    ptr::{
        self,
        fn_addr_eq,
        NonNull, //
    },
};
use kernel::{
    error::to_result,
    ffi::{
        c_int,
        c_void, //
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

/// Who is told of connections.
pub trait ListenCallbacks: Send + Sync + 'static {
    /// A connection can be accepted. Called in softirq; must not sleep nor use the listener.
    ///
    /// Several connections may be announced by one call.
    fn ready(this: ArcBorrow<'_, Self>);
}

/// A listening TCP socket.
///
/// Dropping it sleeps: it resets the connections that were not accepted.
pub struct Listener {
    socket: NetBound<ListenSocket>,
}

impl Listener {
    /// Creates a socket that is bound to `addr` but does not listen yet. `EADDRINUSE` if the port is taken; addresses in
    /// TIME_WAIT do not count.
    pub fn bind(net: &ScopedNet<'_>, family: Family, addr: &SocketAddr6) -> Result<Self> {
        let weak = WeakNet::new(net)?;
        // SAFETY: The socket is dropped here or bound to the namespace below.
        let socket = unsafe { RawSocket::create(net, family)? };
        // SAFETY: This is a valid TCP socket. Accepted sockets inherit both.
        unsafe {
            bindings::sock_set_reuseaddr(socket.sk());
            bindings::tcp_sock_set_nodelay(socket.sk());
        }
        socket.bind(addr, family)?;
        let socket = net.bind(ListenSocket {
            socket,
            family,
            net: weak,
        })?;
        Ok(Self { socket })
    }

    /// Starts to listen, with room for `backlog` connections that are not accepted yet.
    ///
    /// `EBUSY` if done before, `ENETUNREACH` if the namespace has been left.
    pub fn listen<C: ListenCallbacks>(&self, backlog: i32, owner: Arc<C>) -> Result {
        let ready = KBox::new(Owner(owner), GFP_KERNEL)?;
        self.socket
            .with(|socket| socket.listen(backlog, ready))
            .unwrap_or(Err(ENETUNREACH))
    }

    /// Accepts a connection without waiting: `EAGAIN` if there is none, `ENETUNREACH` if the namespace has been left or
    /// comes to its end.
    pub fn accept(&self) -> Result<KernelSocket> {
        self.socket
            .with(ListenSocket::accept)
            .unwrap_or(Err(ENETUNREACH))
    }
}

/// A [`ListenCallbacks`] object without its type.
trait Ready: Send + Sync {
    fn ready(&self);
}

struct Owner<C: ListenCallbacks>(Arc<C>);

impl<C: ListenCallbacks> Ready for Owner<C> {
    fn ready(&self) {
        C::ready(self.0.as_arc_borrow());
    }
}

/// What `sk_user_data` of a listening socket points to.
struct Hooks {
    owner: KBox<dyn Ready>,
    data_ready: Callback,
}

/// `sk_data_ready` of every TCP socket that nobody has changed, or null before the first one listens.
///
/// C does not export the function, and a child that inherits our callback has no other memory of it.
static DEFAULT_DATA_READY: Atomic<*mut c_void> = Atomic::new(ptr::null_mut());

/// The default callback.
fn default_data_ready() -> Option<Callback> {
    // ORDERING: The value is the same whenever it is set.
    let callback = DEFAULT_DATA_READY.load(Relaxed);
    // SAFETY: It is null, or was a `Callback`; `Option` of a function pointer has null for `None`.
    unsafe { transmute::<*mut c_void, Option<Callback>>(callback) }
}

/// # Invariants
///
/// `sk_user_data` of the socket is either null, or a `KBox<Hooks>` marked as not to be copied; in that case
/// `sk_data_ready` is [`data_ready_callback`]. Both change together, under `sk_callback_lock` held for writing.
struct ListenSocket {
    socket: RawSocket,
    family: Family,
    /// The namespace of the socket.
    net: WeakNet,
}

impl ListenSocket {
    fn listen(&self, backlog: i32, owner: KBox<dyn Ready>) -> Result {
        let sk = self.socket.sk();
        let hooks = KBox::new_uninit(GFP_KERNEL)?;
        // SAFETY: The socket is valid.
        let lock = unsafe { hook::WriteLock::new(sk) };
        // SAFETY: The socket is valid.
        if unsafe { bindings::weft_helper_sk_user_data(sk) } != 0 {
            return Err(EBUSY);
        }
        // SAFETY: The socket is valid.
        let data_ready = unsafe { bindings::weft_helper_sk_data_ready(sk) }.ok_or(EINVAL)?;
        // ORDERING: The value is the same whenever it is set; the lock shows it to callbacks of this socket and, by way
        // of the handshake, of its children.
        DEFAULT_DATA_READY.store(data_ready as *mut c_void, Relaxed);
        let hooks = KBox::into_raw(hooks.write(Hooks { owner, data_ready }));
        // INVARIANT: The hooks and the callback change together, under the lock.
        // SAFETY: The socket is valid and its callback lock is held for writing.
        unsafe {
            bindings::weft_helper_sk_set_user_data_nocopy(sk, hooks.cast());
            bindings::weft_helper_sk_set_data_ready(sk, Some(data_ready_callback));
        }
        drop(lock);
        // SAFETY: The socket is valid. If this fails, the hooks stay until the socket is dropped.
        to_result(unsafe { bindings::kernel_listen(self.socket.as_raw(), backlog) })
    }

    fn accept(&self) -> Result<KernelSocket> {
        let mut sock = ptr::null_mut();
        // SAFETY: The socket is valid.
        to_result(unsafe {
            // CAST: A small constant.
            bindings::kernel_accept(
                self.socket.as_raw(),
                &mut sock,
                bindings::O_NONBLOCK as c_int,
            )
        })?;
        let sock = NonNull::new(sock).ok_or(ENOMEM)?;
        // SAFETY: The socket was just accepted for us.
        let socket = unsafe { RawSocket::from_raw(sock) };
        let sk = socket.sk();
        {
            // SAFETY: The socket is valid.
            let _lock = unsafe { hook::WriteLock::new(sk) };
            // SAFETY: The socket is valid.
            let inherited = unsafe { bindings::weft_helper_sk_data_ready(sk) };
            if inherited
                .is_some_and(|inherited| fn_addr_eq(inherited, data_ready_callback as Callback))
            {
                // SAFETY: The socket is valid and its callback lock is held for writing.
                unsafe { bindings::weft_helper_sk_set_data_ready(sk, default_data_ready()) };
            }
        }
        let Some(net) = self.net.enter() else {
            socket.no_linger();
            return Err(ENETUNREACH);
        };
        // SAFETY: The socket was just accepted; a child is of its listener's family and namespace, and holds as little
        // of that as the listener.
        Ok(unsafe { KernelSocket::from_socket(socket, self.family, net) })
    }
}

impl ListenSocket {
    /// Takes the hooks away. When this returns, no callback is with the owner and none will come.
    fn unhook(&self) -> Option<KBox<Hooks>> {
        let sk = self.socket.sk();
        // SAFETY: The socket is valid.
        let _lock = unsafe { hook::WriteLock::new(sk) };
        // SAFETY: The socket is valid and the lock is held.
        let hooks = unsafe { hook::get(sk)? }.cast::<Hooks>();
        // INVARIANT: The hooks and the callback change together, under the lock.
        // SAFETY: By the type invariants these are our hooks. The socket is valid and its callback lock is held for
        // writing.
        unsafe {
            bindings::weft_helper_sk_set_data_ready(sk, Some(hooks.as_ref().data_ready));
            bindings::weft_helper_sk_clear_user_data(sk);
        }
        // SAFETY: These are the hooks of `listen`. Callbacks use them under the lock held for reading, so none does now
        // that we have it for writing, and no one finds them any more.
        Some(unsafe { KBox::from_raw(hooks.as_ptr()) })
    }
}

impl Resource for ListenSocket {
    type Rest = Option<KBox<Hooks>>;

    /// Stops to listen and resets the connections that were not accepted.
    fn close(self) -> Self::Rest {
        let hooks = self.unhook();
        drop(self.socket);
        hooks
    }
}

/// # Safety
///
/// To be called by TCP, as `sk_data_ready` of a listening socket, or of a child of it that was not accepted yet.
unsafe extern "C" fn data_ready_callback(sk: *mut bindings::sock) {
    {
        // SAFETY: The socket is valid during the callback.
        let _lock = unsafe { hook::ReadLock::new(sk) };
        // SAFETY: As above.
        let hooks = unsafe { hook::get(sk) };
        // A child that has been accepted and attached meanwhile has hooks of another kind.
        // SAFETY: As above.
        if let Some(hooks) = hooks.filter(|_| unsafe { bindings::weft_helper_sk_listens(sk) }) {
            // SAFETY: These are the hooks of a listener, see `ListenSocket`: it gets them before it listens and loses
            // them before it stops, and no child ever listens. They are valid as long as the lock is held.
            unsafe { hooks.cast::<Hooks>().as_ref() }.owner.ready();
        }
    }
    if let Some(callback) = default_data_ready() {
        // SAFETY: This is what TCP calls for a socket without callbacks of its own.
        unsafe { callback(sk) }
    }
}
