// SPDX-License-Identifier: GPL-2.0

//! Classes, devices, directories, files and links in sysfs.
//!
//! C headers: [`include/linux/kobject.h`](srctree/include/linux/kobject.h),
//! [`include/linux/sysfs.h`](srctree/include/linux/sysfs.h), [`include/linux/device.h`](srctree/include/linux/device.h)
//!
//! A module makes a [`Class`], in it one [`ClassDevice`] for each of its objects, and below these [`Kobj`]s and
//! [`Link`]s. A device or a directory has the files of a static table, [`Attributes`], which lead to a data object:
//!
//! ```ignore
//! static FILES: Attributes<Path, 2> = Attributes::new::<LocalModule>([
//!     Attribute::ro(c"hca_port", |path, page| page.emit(fmt!("{}\n", path.port()))),
//!     Attribute::rw(c"remove_path", usage, |path, input, active| {
//!         if !sysfs::is(input, b"1") {
//!             return Err(EINVAL);
//!         }
//!         active.leave()?;
//!         path.close();
//!         path.directory.remove();
//!         Ok(())
//!     }),
//! ]);
//! ```
//!
//! # Ownership
//!
//! * A directory holds a reference to its data until it is removed: by `remove`, or by the drop of the handle. When
//!   that has returned, none of its files is being read or written, and none will be. Where the data owns the handle,
//!   this is a circle that `remove` opens.
//! * What C may free late (a `kobject` or a `device` whose last reference somebody else drops) has no pointer to Rust
//!   data nor to a module's code: it comes from the kernel itself. The files are a separate allocation, which lives
//!   exactly as long as the files do.
//! * A directory that goes takes all that is below it along, as C does: what was below keeps its data until its own
//!   handle is removed or dropped, but nobody reaches it any more.
//! * As with every registration of the kernel crate, a module must not forget a handle and be unloaded.
//!
//! # Context and locks
//!
//! Everything here sleeps, functions of files run in process context. Removal waits for the files' functions. So no
//! lock may be held over it that such a function takes, and a function may not remove its own directory, or anything
//! above it, unless it has called [`Active::leave`]. Creation takes a lock of the parent under which nothing waits for
//! files, so files' functions may create.

mod active;
mod attribute;
mod class;
mod files;
mod kobj;
pub(crate) mod life;
mod link;
mod node;
mod text;

pub use self::{
    active::Active,
    attribute::{
        Attribute,
        Attributes,
        Show,
        Store, //
    },
    class::{
        Class,
        ClassDevice, //
    },
    kobj::Kobj,
    link::Link,
    node::{
        KobjRef,
        Node,
        Uevent, //
    },
    text::{
        check_name,
        escaped,
        is,
        parse,
        parse_bool,
        parse_decimal,
        text,
        PageWriter, //
    },
};
