// SPDX-License-Identifier: GPL-2.0

//! Classes and their devices.

use super::{
    attribute::Attributes,
    check_name,
    files::{
        Kind,
        Table, //
    },
    kobj::{
        Files,
        Kobj, //
    },
    life::Stay,
    node::{
        is_taken,
        Node, //
    },
};
use crate::{
    bindings,
    sync::take::TakeCell, //
};
use core::{
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::{
    error::{
        code::{
            EEXIST,
            ENODEV, //
        },
        from_err_ptr,
        to_result, //
    },
    new_mutex,
    prelude::*,
    str::{
        CStr,
        CString, //
    },
    sync::{
        Arc,
        Mutex, //
    },
    types::Opaque, //
};

/// A class, `/sys/class/<name>`. A clone is the same class.
///
/// It is there until the last clone has dropped and the last [`ClassDevice`] of it; that drop sleeps.
#[derive(Clone)]
pub struct Class(Arc<Registered>);

/// # Invariants
///
/// `names` are those of the devices that are there or are being made.
#[pin_data]
struct Registered {
    #[pin]
    names: Mutex<KVec<CString>>,
    class: Registration,
}

/// # Invariants
///
/// The class is registered. Its memory is freed by C's call of [`RawClass::release_callback`].
struct Registration(NonNull<RawClass>);

// SAFETY: A registered class may be used from any thread.
unsafe impl Send for Registration {}
// SAFETY: As above.
unsafe impl Sync for Registration {}

/// What C may keep a while after the class is gone.
#[repr(C)]
struct RawClass {
    class: Opaque<bindings::class>,
    name: CString,
    _stay: Stay,
}

impl Class {
    /// Registers a class. Sleeps. `EEXIST` if there is one of that name, or an error of [`check_name`].
    pub fn new(name: &CStr) -> Result<Self> {
        let class = Registration::new(name)?;
        let registered = pin_init!(Registered {
            names <- new_mutex!(KVec::new(), "sysfs.Class"),
            class,
        });
        Ok(Self(Arc::pin_init(registered, GFP_KERNEL)?))
    }

    /// Takes a name for a device.
    fn reserve(&self, name: &CStr) -> Result<Name> {
        check_name(name)?;
        let (entry, name) = (CString::try_from(name)?, CString::try_from(name)?);
        let mut names = self.0.names.lock();
        if names.iter().any(|taken| **taken == *name) {
            return Err(EEXIST);
        }
        names.push(entry, GFP_KERNEL)?;
        Ok(Name {
            class: self.clone(),
            name,
        })
    }
}

impl Registration {
    #[inline(never)]
    fn new(name: &CStr) -> Result<Self> {
        check_name(name)?;
        if class_is_taken(name) {
            return Err(EEXIST);
        }
        let name = CString::try_from(name)?;
        let class = bindings::class {
            name: name.as_char_ptr(),
            class_release: Some(RawClass::release_callback),
            ..Default::default()
        };
        let raw = KBox::new(
            RawClass {
                class: Opaque::new(class),
                name,
                _stay: Stay::new(),
            },
            GFP_KERNEL,
        )?;
        // SAFETY: The class stays where it is until C releases it, and so does its name.
        to_result(unsafe { bindings::class_register(raw.class.get()) })?;
        // SAFETY: A pointer of a box is not null.
        // INVARIANT: It is registered, and the box is left to C.
        Ok(Self(unsafe { NonNull::new_unchecked(KBox::into_raw(raw)) }))
    }

    fn as_ptr(&self) -> *mut bindings::class {
        // SAFETY: By the type invariants it is valid.
        unsafe { self.0.as_ref() }.class.get()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: By the type invariants it is registered. No device is left: each holds a reference to what this is in.
        unsafe { bindings::class_unregister(self.as_ptr()) };
    }
}

impl RawClass {
    /// # Safety
    ///
    /// To be called by C when nobody uses the class any more.
    #[inline(never)]
    unsafe extern "C" fn release_callback(class: *const bindings::class) {
        // SAFETY: The class is the first thing in a `RawClass`, whose box was left to C.
        drop(unsafe { KBox::from_raw(class.cast_mut().cast::<Self>()) });
    }
}

/// Whether there is a `/sys/class/<name>`. C would print the stack if it were asked to make another.
fn class_is_taken(name: &CStr) -> bool {
    // SAFETY: `/sys/kernel` is always there, and so is what it is in; that has no namespaces.
    let classes = unsafe {
        let root = (*(*bindings::kernel_kobj).sd).__parent;
        bindings::kernfs_find_and_get_ns(root, c"class".as_char_ptr(), ptr::null())
    };
    if classes.is_null() {
        return false;
    }
    // SAFETY: `/sys/class` has no namespaces.
    let taken = unsafe { is_taken(classes, name) };
    // SAFETY: The reference is ours.
    unsafe { bindings::kernfs_put(classes) };
    taken
}

/// A name in [`Registered::names`].
struct Name {
    class: Class,
    name: CString,
}

impl Drop for Name {
    fn drop(&mut self) {
        let mut names = self.class.0.names.lock();
        if let Some(index) = names.iter().position(|taken| **taken == *self.name) {
            let _ = names.remove(index);
        }
    }
}

/// A device of a class that no hardware stands behind, `/sys/class/<class>/<name>`. Dropping it is [`Self::remove`].
///
/// It can be used as a [`Node`], to put more below it. The kernel tells user space of its coming and going.
pub struct ClassDevice {
    kobj: Kobj,
    name: TakeCell<Name>,
    // Keeps the class until the device is gone.
    _class: Class,
}

impl ClassDevice {
    /// Creates the device `name` in `class` with the files of `attributes`, that lead to `data`. Sleeps.
    ///
    /// The files may be used before this returns. `EEXIST` if `class` has a device of that name or if a file has a name
    /// that is C's (`uevent`, `power`, `subsystem`), or an error of [`check_name`].
    pub fn new<T: Send + Sync + 'static, const N: usize>(
        class: &Class,
        name: &CStr,
        attributes: &'static Attributes<T, N>,
        data: Arc<T>,
    ) -> Result<Self> {
        let table = Table::new(Kind::Device, attributes, data)?;
        Self::create(class, name, table)
    }

    #[inline(never)]
    fn create(class: &Class, name: &CStr, table: KBox<Table>) -> Result<Self> {
        let reserved = class.reserve(name)?;
        // SAFETY: The class is registered and stays so as long as the device is there, and the table outlives it. The
        // format takes one string.
        let device = from_err_ptr(unsafe {
            bindings::device_create_with_groups(
                class.0.class.as_ptr(),
                ptr::null_mut(),
                0,
                ptr::null_mut(),
                table.groups(),
                c"%s".as_char_ptr(),
                name.as_char_ptr(),
            )
        })?;
        // SAFETY: It is registered, and the reference is ours.
        let files = unsafe { Files::of_device(NonNull::new(device).ok_or(ENODEV)?, table) };
        Ok(Self {
            kobj: Kobj::from_files(files)?,
            name: TakeCell::new(reserved),
            _class: class.clone(),
        })
    }

    /// Removes the device with everything below it, and waits until none of its files is in use: as [`Kobj::remove`].
    /// Its name can be used again then.
    pub fn remove(&self) -> bool {
        let removed = self.kobj.remove();
        if removed {
            drop(self.name.take());
        }
        removed
    }
}

impl Deref for ClassDevice {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.kobj
    }
}
