// SPDX-License-Identifier: GPL-2.0

use super::*;
use std::string::{
    String,
    ToString, //
};

fn device(path: &str) -> DevicePath<'_> {
    DevicePath::new(path.as_bytes()).unwrap()
}

fn resolve(search: &str, path: &str) -> Result<String, DevicePathError> {
    let mut space = [0xff; PATH_SPACE];
    let session = SessionName::new(b"vec").unwrap();
    let search = SearchPath::new(search.as_bytes()).unwrap();
    let full = search.resolve(&session, device(path), &mut space)?;
    Ok(full.to_str().unwrap().to_string())
}

#[test]
fn folders() {
    for (search, path, full) in [
        ("/", "/dev/ram0", "/dev/ram0"),
        ("/", "dev/ram0", "/dev/ram0"),
        ("/dev", "ram0", "/dev/ram0"),
        ("/dev/", "//ram0", "/dev/ram0"),
        ("//dev///disks//", "./a//b/", "/dev/disks/./a/b/"),
        ("/dev/%SESSNAME%", "ram0", "/dev/vec/ram0"),
        ("/dev/%SESSNAME%/", "ram0", "/dev/vec/ram0"),
        ("/dev%SESSNAME%", "ram0", "/dev/vec/ram0"),
        ("/dev/%SESSNAME%/disks", "ram0", "/dev/vec/disks/ram0"),
        ("/dev/%SESSNAME%-disks", "ram0", "/dev/vec-disks/ram0"),
        ("/%SESSNAME%", "%SESSNAME%", "/vec/%SESSNAME%"),
    ] {
        assert_eq!(
            resolve(search, path).as_deref(),
            Ok(full),
            "{search} {path}"
        );
    }
}

#[test]
fn long_paths() {
    // 4095 bytes and a zero are the most: slash, folder, slash, five bytes of device.
    let folder = |len| std::format!("/{}", "d".repeat(len));
    assert_eq!(resolve(&folder(4088), "/ram0").unwrap().len(), 4094);
    assert_eq!(resolve(&folder(4089), "/ram0").unwrap().len(), 4095);
    assert_eq!(
        resolve(&folder(4090), "/ram0"),
        Err(DevicePathError::FullTooLong)
    );
    assert_eq!(
        resolve(&folder(4094), "/ram0"),
        Err(DevicePathError::FullTooLong)
    );
    assert_eq!(DevicePathError::FullTooLong.errno(), Errno::ENAMETOOLONG);
    let error = SearchPath::new(folder(4095).as_bytes()).unwrap_err();
    assert_eq!(error, SearchPathError::TooLong { len: 4096 });
}

#[test]
fn bad_folders() {
    let error = |text: &[u8]| SearchPath::new(text).unwrap_err();
    assert_eq!(error(b""), SearchPathError::NotAbsolute);
    assert_eq!(error(b"dev"), SearchPathError::NotAbsolute);
    assert_eq!(error(b"/dev\n"), SearchPathError::Character);
    assert_eq!(error(b"/dev\xff"), SearchPathError::Character);
    assert_eq!(error(b"/%SESSNAME%/%SESSNAME%"), SearchPathError::Twice);
}

#[test]
fn device_paths() {
    for path in [
        "ram0",
        "/dev/ram0",
        "a..b",
        "..a",
        "a..",
        "a/...",
        ".",
        "disk äöü",
    ] {
        let wire = device(path).to_wire();
        assert_eq!(DevicePath::from_wire(&wire), Ok(device(path)), "{path}");
    }
    for path in ["..", "../etc", "a/..", "a/../b", "/..", "//../"] {
        assert_eq!(
            DevicePath::new(path.as_bytes()),
            Err(DevicePathError::Parent),
            "{path}"
        );
    }
    assert_eq!(DevicePath::new(b""), Err(DevicePathError::Empty));
    assert_eq!(DevicePath::new(b"a\nb"), Err(DevicePathError::Character));
    assert_eq!(DevicePath::new(b"a\0b"), Err(DevicePathError::Character));
    assert_eq!(DevicePath::new(b"a\xff"), Err(DevicePathError::Character));
    assert!(DevicePath::new(&[b'a'; 254]).is_ok());
    assert_eq!(
        DevicePath::new(&[b'a'; 255]),
        Err(DevicePathError::TooLong { len: 255 })
    );
    assert_eq!(
        DevicePath::from_wire(&[b'a'; 255]),
        Err(DevicePathError::NotEnded)
    );
    assert_eq!(
        DevicePath::from_wire(&[0; 255]),
        Err(DevicePathError::Empty)
    );
}

#[test]
fn links() {
    let session = SessionName::new(b"vec").unwrap();
    let link = LinkName::new(device("/dev/ram0"), &session).unwrap();
    assert_eq!(link.to_string(), "!dev!ram0@vec");
    let long = SessionName::new(&[b's'; 240]).unwrap();
    let path = "p".repeat(240);
    let error = LinkName::new(device(&path), &long).unwrap_err();
    assert_eq!(error, DevicePathError::LinkTooLong { len: 481 });
    assert_eq!(error.errno(), Errno::ENAMETOOLONG);
    assert!(LinkName::new(device(&path[..14]), &long).is_ok());
    assert!(LinkName::new(device(&path[..15]), &long).is_err());
}
