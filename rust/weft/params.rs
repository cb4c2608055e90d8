// SPDX-License-Identifier: GPL-2.0

//! Parameters of a module that are given when it is loaded and shown in `/sys/module/<module>/parameters`.
//!
//! C header: [`include/linux/moduleparam.h`](srctree/include/linux/moduleparam.h)
//!
//! The kernel crate's `module!` has parameters too, but hides them and knows no strings.
//! [`module_params!`](crate::module_params) makes those that C makes with mode 0444: C's own functions parse and print
//! them. Whether a value is in range is the module's business when it is loaded.

use crate::bindings;
use core::{
    cell::UnsafeCell,
    ptr, //
};
use kernel::{
    ffi::c_uint,
    module::{
        this_module,
        ModuleMetadata, //
    },
    str::{
        as_char_ptr_in_const_context,
        CStr, //
    },
};

/// Everybody reads, nobody writes.
const MODE: u16 = 0o444;

/// Defines the parameters of a module, as statics that are visible in its crate. To be used once, in a Rust module of
/// its own below the crate root, which has `module!`.
///
/// Types are `bool` (`Y`, `N` and so on, or the name alone), `i32`, `u16` (any base that C knows), and `Text<N>`, a
/// string of less than `N` bytes. A value that is no such thing makes loading fail: with `EINVAL` or `ERANGE`, or
/// `ENOSPC` for a text that is too long. If one is given twice, the last counts.
///
/// ```ignore
/// mod params {
///     weft::module_params! {
///         /// The port to listen on.
///         port_nr: u16 = 1234, "The port number the server is listening on";
///         /// Where devices are looked for.
///         search_path: Text<4096> = "/", "Where devices are looked for";
///     }
/// }
///
/// let port = params::port_nr.value();
/// ```
// `crate` is the crate that uses the macro: `module!` defines `LocalModule` there.
#[allow(clippy::crate_in_macro_def)]
#[macro_export]
macro_rules! module_params {
    ($($(#[$attr:meta])* $name:ident : $type:ident $(< $len:literal >)? = $default:expr, $about:literal;)*) => {
        $($crate::module_params! { @param [$(#[$attr])*] $name $type $($len)? = $default, $about })*
    };
    (@param [$(#[$attr:meta])*] $name:ident Text $len:literal = $default:expr, $about:literal) => {
        $(#[$attr])*
        #[allow(non_upper_case_globals)]
        pub(crate) static $name: $crate::params::Text<$len> = $crate::params::Text::new($default);

        const _: () = {
            static TEXT: $crate::params::TextArg = $crate::params::TextArg::new(&$name);
            $crate::module_params! { @register $name "string" $about TEXT }
        };
    };
    (@param [$(#[$attr:meta])*] $name:ident $type:ident = $default:expr, $about:literal) => {
        $(#[$attr])*
        #[allow(non_upper_case_globals)]
        pub(crate) static $name: $crate::params::Param<$type> = $crate::params::Param::new($default);

        const _: () = {
            $crate::module_params! { @type $type $name $about }
        };
    };
    (@type bool $name:ident $about:literal) => {
        $crate::module_params! { @register $name "bool" $about $name }
    };
    (@type i32 $name:ident $about:literal) => {
        $crate::module_params! { @register $name "int" $about $name }
    };
    (@type u16 $name:ident $about:literal) => {
        $crate::module_params! { @register $name "ushort" $about $name }
    };
    (@register $name:ident $type:literal $about:literal $param:ident) => {
        #[link_section = "__param"]
        #[used(compiler)]
        static ENTRY: $crate::params::Entry = $param.entry::<crate::LocalModule>(
            match ::core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("the name has a NUL in it"),
            },
        );

        const TYPE: &str = concat!("parmtype=", stringify!($name), ":", $type, "\0");
        #[link_section = ".modinfo"]
        #[used(compiler)]
        static TYPE_INFO: [u8; TYPE.len()] = $crate::params::info(TYPE);

        const ABOUT: &str = concat!("parm=", stringify!($name), ":", $about, "\0");
        #[link_section = ".modinfo"]
        #[used(compiler)]
        static ABOUT_INFO: [u8; ABOUT.len()] = $crate::params::info(ABOUT);
    };
}

/// A type of [`Param`].
///
/// # Safety
///
/// The functions of [`Self::OPS`] must leave a valid `Self` behind the pointer they get.
pub unsafe trait ParamType: Copy + Send + Sync + 'static {
    /// C's functions.
    #[doc(hidden)]
    const OPS: Ops;
}

/// C's functions for a type.
#[doc(hidden)]
pub struct Ops(*const bindings::kernel_param_ops);

// SAFETY: `param_set_bool` writes a `bool`.
unsafe impl ParamType for bool {
    const OPS: Ops = Ops(&raw const bindings::param_ops_bool);
}

// SAFETY: `param_set_int` writes an `int`.
unsafe impl ParamType for i32 {
    const OPS: Ops = Ops(&raw const bindings::param_ops_int);
}

// SAFETY: `param_set_ushort` writes an `unsigned short`.
unsafe impl ParamType for u16 {
    const OPS: Ops = Ops(&raw const bindings::param_ops_ushort);
}

/// A parameter that is a number or a truth value.
///
/// # Invariants
///
/// Only C writes it, before any other code of the module runs.
pub struct Param<T>(UnsafeCell<T>);

// SAFETY: By the type invariants there is no write that a read could meet.
unsafe impl<T: ParamType> Sync for Param<T> {}

impl<T: ParamType> Param<T> {
    /// A parameter that has `default` if it is not given.
    #[doc(hidden)]
    pub const fn new(default: T) -> Self {
        Self(UnsafeCell::new(default))
    }

    /// What the loader has to find, in module `M`.
    #[doc(hidden)]
    pub const fn entry<M: ModuleMetadata>(&'static self, name: &'static CStr) -> Entry {
        let arg = bindings::kernel_param__bindgen_ty_1 {
            arg: self.0.get().cast(),
        };
        Entry::new::<M>(name, T::OPS.0, arg)
    }

    /// The value. Any context.
    pub fn value(&self) -> T {
        // SAFETY: By the type invariants nobody writes now.
        unsafe { *self.0.get() }
    }
}

/// A parameter that is a string of less than `N` bytes.
///
/// # Invariants
///
/// Only C writes it, before any other code of the module runs, and there is a NUL in it.
pub struct Text<const N: usize>(UnsafeCell<[u8; N]>);

// SAFETY: By the type invariants there is no write that a read could meet.
unsafe impl<const N: usize> Sync for Text<N> {}

impl<const N: usize> Text<N> {
    /// A parameter that has `default` if it is not given. Does not compile if that is too long or has a NUL in it.
    #[doc(hidden)]
    pub const fn new(default: &str) -> Self {
        let text = default.as_bytes();
        assert!(text.len() < N, "the default is too long");
        let mut value = [0; N];
        let mut index = 0;
        while index < text.len() {
            assert!(text[index] != 0, "the default has a NUL in it");
            value[index] = text[index];
            index += 1;
        }
        // INVARIANT: At least the last byte is a NUL.
        Self(UnsafeCell::new(value))
    }

    /// The value, as it was given. Any context.
    pub fn value(&self) -> &CStr {
        // SAFETY: By the type invariants nobody writes now.
        let bytes = unsafe { &*self.0.get() };
        CStr::from_bytes_until_nul(bytes).unwrap_or_default()
    }
}

/// Where C finds a string.
#[doc(hidden)]
pub struct TextArg(bindings::kparam_string);

// SAFETY: It does not change.
unsafe impl Sync for TextArg {}

impl TextArg {
    /// Of `text`.
    pub const fn new<const N: usize>(text: &'static Text<N>) -> Self {
        Self(bindings::kparam_string {
            // CAST: C limits it to less anyway.
            maxlen: N as c_uint,
            string: text.0.get().cast(),
        })
    }

    /// What the loader has to find, in module `M`.
    pub const fn entry<M: ModuleMetadata>(&'static self, name: &'static CStr) -> Entry {
        let arg = bindings::kernel_param__bindgen_ty_1 {
            str_: ptr::from_ref(&self.0),
        };
        Entry::new::<M>(name, &raw const bindings::param_ops_string, arg)
    }
}

/// What the loader finds in the section `__param`.
#[doc(hidden)]
#[repr(transparent)]
pub struct Entry(bindings::kernel_param);

// SAFETY: It does not change.
unsafe impl Sync for Entry {}

impl Entry {
    const fn new<M: ModuleMetadata>(
        name: &'static CStr,
        ops: *const bindings::kernel_param_ops,
        arg: bindings::kernel_param__bindgen_ty_1,
    ) -> Self {
        Self(bindings::kernel_param {
            name: as_char_ptr_in_const_context(name),
            mod_: this_module::<M>().as_ptr(),
            ops,
            perm: MODE,
            level: -1,
            flags: 0,
            __bindgen_anon_1: arg,
        })
    }
}

/// The bytes of `text`, for the section `.modinfo`.
#[doc(hidden)]
pub const fn info<const N: usize>(text: &str) -> [u8; N] {
    let bytes = text.as_bytes();
    assert!(bytes.len() == N, "it is as long as it is");
    let mut info = [0; N];
    let mut index = 0;
    while index < N {
        info[index] = bytes[index];
        index += 1;
    }
    info
}
