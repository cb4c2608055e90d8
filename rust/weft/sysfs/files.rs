// SPDX-License-Identifier: GPL-2.0

//! The files of one directory, as C sees them.
//!
//! What C calls is in this module and knows no type; it calls functions of the module of the files, which do.

use super::{
    active::{
        Active,
        Left, //
    },
    attribute::{
        Attribute,
        Attributes, //
    },
    check_name,
    text::PageWriter, //
};
use crate::bindings;
use core::{
    cell::Cell,
    ptr,
    slice, //
};
use kernel::{
    error::code::{
        EEXIST,
        EIO, //
    },
    ffi::{
        c_char,
        c_void, //
    },
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
};

type ShowFn = unsafe fn(*const c_void, *const c_void, &mut PageWriter<'_>) -> Result;
type StoreFn = unsafe fn(*const c_void, *const c_void, &[u8], Active<'_>) -> Result;

/// Whose files these are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Kobject,
    Device,
}

/// What C has for a file; both variants begin with a `struct attribute`.
#[repr(C)]
union Raw {
    kobject: bindings::kobj_attribute,
    device: bindings::device_attribute,
}

/// One file.
///
/// # Invariants
///
/// `object` comes from [`Arc::into_raw`] and is valid; `file` points to an [`Attribute`] of the same type, which
/// `show` and `store` take, and which belongs to `module`.
#[repr(C)]
pub(super) struct Row {
    raw: Raw,
    object: *const c_void,
    file: *const c_void,
    show: Option<ShowFn>,
    store: Option<StoreFn>,
    pub(super) module: &'static ThisModule,
}

impl Row {
    fn new<T: Send + Sync + 'static>(
        kind: Kind,
        module: &'static ThisModule,
        file: &'static Attribute<T>,
        object: *const c_void,
    ) -> Self {
        // INVARIANT: The functions are those of `T`.
        Self {
            raw: Raw::new(kind, file.name, file.mode, file.key.get()),
            object,
            file: ptr::from_ref(file).cast(),
            show: file.show.map(|_| show::<T> as ShowFn),
            store: file.store.map(|_| store::<T> as StoreFn),
            module,
        }
    }

    /// The C part of the file.
    pub(super) fn attr(&self) -> *mut bindings::attribute {
        // `raw` comes first, and in it the attribute.
        ptr::from_ref(self).cast_mut().cast()
    }
}

impl Raw {
    /// Not inline: what C calls must be in this module.
    #[inline(never)]
    fn new(kind: Kind, name: &'static CStr, mode: u16, key: *mut bindings::lock_class_key) -> Self {
        // With lockdep there are more fields.
        #[allow(clippy::needless_update)]
        let mut attr = bindings::attribute {
            name: name.as_char_ptr(),
            mode,
            ..Default::default()
        };
        // SAFETY: `attr` is valid, and `key` is of a static.
        unsafe { bindings::weft_helper_sysfs_attr_key(&mut attr, key) };
        match kind {
            Kind::Kobject => {
                let mut kobject = bindings::kobj_attribute {
                    attr,
                    ..Default::default()
                };
                kobject.__bindgen_anon_1.show = Some(kobject_show_callback);
                kobject.__bindgen_anon_2.store = Some(kobject_store_callback);
                Self { kobject }
            }
            Kind::Device => {
                let mut device = bindings::device_attribute {
                    attr,
                    ..Default::default()
                };
                device.__bindgen_anon_1.show = Some(device_show_callback);
                device.__bindgen_anon_2.store = Some(device_store_callback);
                Self { device }
            }
        }
    }
}

/// # Safety
///
/// `object` and `file` must be those of a [`Row`] made for `T`.
unsafe fn show<T: Send + Sync + 'static>(
    object: *const c_void,
    file: *const c_void,
    page: &mut PageWriter<'_>,
) -> Result {
    // SAFETY: By the invariants of `Row`; the file is not removed before this returns.
    let (object, file) = unsafe { (&*object.cast::<T>(), &*file.cast::<Attribute<T>>()) };
    file.show.ok_or(EIO)?(object, page)
}

/// # Safety
///
/// As for [`show`]. Both must stay valid until `active` is used.
unsafe fn store<T: Send + Sync + 'static>(
    object: *const c_void,
    file: *const c_void,
    input: &[u8],
    active: Active<'_>,
) -> Result {
    // SAFETY: By the invariants of `Row`; the file is a static of a module, which `active` holds when it is used.
    let (object, file) = unsafe {
        (
            ArcBorrow::<'_, T>::from_raw(object.cast()),
            &*file.cast::<Attribute<T>>(),
        )
    };
    // The table may be gone when the function returns, and with it its reference.
    let object: Arc<T> = object.into();
    file.store.ok_or(EIO)?(&object, input, active)
}

/// All files of a directory. It must not be dropped before C has removed them.
///
/// # Invariants
///
/// Once `attach` was called, nothing changes, and the pointers lead to the rows and to `group`.
pub(super) struct Table {
    rows: KVec<Row>,
    attrs: KVec<*mut bindings::attribute>,
    group: bindings::attribute_group,
    groups: [*const bindings::attribute_group; 2],
    object: *const c_void,
    drop: unsafe fn(*const c_void),
}

// SAFETY: The object is `Send + Sync`, and all else belongs to no thread in particular.
unsafe impl Send for Table {}

/// # Safety
///
/// `object` must come from [`Arc::<T>::into_raw`](Arc::into_raw), and its reference must be given up.
unsafe fn drop_object<T>(object: *const c_void) {
    // SAFETY: As the caller promises.
    drop(unsafe { Arc::<T>::from_raw(object.cast()) });
}

impl Table {
    /// Prepares the files of `attributes` for `data`.
    pub(super) fn new<T: Send + Sync + 'static, const N: usize>(
        kind: Kind,
        attributes: &'static Attributes<T, N>,
        data: Arc<T>,
    ) -> Result<KBox<Self>> {
        let mut table = KBox::new(
            Self {
                rows: KVec::new(),
                attrs: KVec::new(),
                group: bindings::attribute_group::default(),
                groups: [ptr::null(); 2],
                object: Arc::into_raw(data).cast(),
                drop: drop_object::<T>,
            },
            GFP_KERNEL,
        )?;
        table.rows.reserve(N, GFP_KERNEL)?;
        for file in &attributes.files {
            let row = Row::new(kind, attributes.module, file, table.object);
            table.check(kind, file.name)?;
            table.rows.push(row, GFP_KERNEL)?;
        }
        Self::attach(&mut table)?;
        Ok(table)
    }
}

/// The files that C itself gives to each device of a class.
const OF_DEVICE: [&[u8]; 3] = [b"uevent", b"power", b"subsystem"];

impl Table {
    /// Whether a file of this name may be added.
    fn check(&self, kind: Kind, name: &CStr) -> Result {
        check_name(name)?;
        let taken = kind == Kind::Device && OF_DEVICE.contains(&name.to_bytes());
        // SAFETY: The names are those of statics.
        let same = |row: &Row| unsafe { CStr::from_char_ptr((*row.attr()).name) } == name;
        if taken || self.rows.iter().any(same) {
            return Err(EEXIST);
        }
        Ok(())
    }

    /// Makes the pointers that C follows.
    fn attach(table: &mut KBox<Self>) -> Result {
        let Self {
            rows,
            attrs,
            group,
            groups,
            ..
        } = &mut **table;
        for row in rows.iter() {
            attrs.push(row.attr(), GFP_KERNEL)?;
        }
        attrs.push(ptr::null_mut(), GFP_KERNEL)?;
        // INVARIANT: The rows are all there, and the table is in a box.
        group.__bindgen_anon_2.attrs = attrs.as_mut_ptr();
        *groups = [&raw const *group, ptr::null()];
        Ok(())
    }

    /// The files as a group without a name.
    pub(super) fn group(&self) -> *const bindings::attribute_group {
        &raw const self.group
    }

    /// An array with that group, for a device.
    pub(super) fn groups(&self) -> *mut *const bindings::attribute_group {
        self.groups.as_ptr().cast_mut()
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: `object` and `drop` are of one type, and no file uses the reference any more.
        unsafe { (self.drop)(self.object) };
    }
}

/// # Safety
///
/// To be called by C to show the file `row`, with a page to write to.
unsafe fn show_row(row: *const Row, page: *mut c_char) -> isize {
    // SAFETY: C calls this only as long as the file is there, and the table outlives it.
    let row = unsafe { &*row };
    // SAFETY: C gives a page, which it has zeroed. The last byte is left: a full page makes C complain.
    let page = unsafe { slice::from_raw_parts_mut(page.cast::<u8>(), PAGE_SIZE - 1) };
    let Some(show) = row.show else {
        return errno(EIO);
    };
    let mut page = PageWriter::new(page);
    // SAFETY: By the type invariants these belong together.
    match unsafe { show(row.object, row.file, &mut page) }.and_then(|()| page.finish()) {
        // CAST: Less than a page.
        Ok(len) => len as isize,
        Err(error) => errno(error),
    }
}

/// # Safety
///
/// To be called by C to write `count` bytes at `input` to the file `row` of `kobj`.
unsafe fn store_row(
    kobj: *mut bindings::kobject,
    row: *const Row,
    input: *const c_char,
    count: usize,
) -> isize {
    let left: Cell<Option<Left>> = Cell::new(None);
    // SAFETY: As C promises.
    let bytes = unsafe { slice::from_raw_parts(input.cast::<u8>(), count) };
    // SAFETY: C calls this only as long as the file is there. Nothing of it is used below.
    let (store, object, file) = unsafe { ((*row).store, (*row).object, (*row).file) };
    let Some(store) = store else {
        return errno(EIO);
    };
    // SAFETY: This is C's call; `left` is dropped when this returns, and `row` is not used again.
    let active = unsafe { Active::new(kobj, row, &left) };
    // SAFETY: By the type invariants these belong together.
    match unsafe { store(object, file, bytes, active) } {
        // CAST: At most a page.
        Ok(()) => count as isize,
        Err(error) => errno(error),
    }
}

fn errno(error: Error) -> isize {
    // CAST: A small number.
    error.to_errno() as isize
}

/// # Safety
///
/// To be called by C, with a `raw` of a [`Row`].
#[inline(never)]
unsafe extern "C" fn kobject_show_callback(
    _kobj: *mut bindings::kobject,
    attr: *mut bindings::kobj_attribute,
    page: *mut c_char,
) -> isize {
    // SAFETY: `attr` is the first thing in a row.
    unsafe { show_row(attr.cast(), page) }
}

/// # Safety
///
/// As for [`kobject_show_callback`].
#[inline(never)]
unsafe extern "C" fn device_show_callback(
    _dev: *mut bindings::device,
    attr: *mut bindings::device_attribute,
    page: *mut c_char,
) -> isize {
    // SAFETY: `attr` is the first thing in a row.
    unsafe { show_row(attr.cast(), page) }
}

/// # Safety
///
/// As for [`kobject_show_callback`].
#[inline(never)]
unsafe extern "C" fn kobject_store_callback(
    kobj: *mut bindings::kobject,
    attr: *mut bindings::kobj_attribute,
    input: *const c_char,
    count: usize,
) -> isize {
    // SAFETY: `attr` is the first thing in a row.
    unsafe { store_row(kobj, attr.cast(), input, count) }
}

/// # Safety
///
/// As for [`kobject_show_callback`].
#[inline(never)]
unsafe extern "C" fn device_store_callback(
    dev: *mut bindings::device,
    attr: *mut bindings::device_attribute,
    input: *const c_char,
    count: usize,
) -> isize {
    // SAFETY: `attr` is the first thing in a row, and `dev` is valid.
    unsafe { store_row(&raw mut (*dev).kobj, attr.cast(), input, count) }
}
