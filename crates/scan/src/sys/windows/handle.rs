//! The calls that safe code cannot make: opening by a name in a directory, asking of a handle, and
//! deleting by one.

use std::ffi::CStr;
use std::io;
use std::os::windows::io::{AsRawHandle as _, BorrowedHandle, FromRawHandle as _, OwnedHandle};
use std::ptr;

use windows_sys::Wdk::Foundation::OBJECT_ATTRIBUTES;
use windows_sys::Wdk::Storage::FileSystem::{
    FILE_OPEN, FILE_OPEN_FOR_BACKUP_INTENT, FILE_SYNCHRONOUS_IO_NONALERT, NtCreateFile,
};
use windows_sys::Win32::Foundation::{
    ERROR_CALL_NOT_IMPLEMENTED, ERROR_INVALID_FUNCTION, ERROR_INVALID_PARAMETER,
    ERROR_NOT_SUPPORTED, RtlNtStatusToDosError, UNICODE_STRING,
};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_DISPOSITION_FLAG_DELETE,
    FILE_DISPOSITION_FLAG_IGNORE_READONLY_ATTRIBUTE, FILE_DISPOSITION_FLAG_POSIX_SEMANTICS,
    FILE_DISPOSITION_INFO, FILE_DISPOSITION_INFO_EX, FILE_INFO_BY_HANDLE_CLASS, FILE_SHARE_DELETE,
    FILE_SHARE_READ, FILE_SHARE_WRITE, FileDispositionInfo, FileDispositionInfoEx, FileIdInfo,
    GetFileInformationByHandle, GetFileInformationByHandleEx, SYNCHRONIZE,
    SetFileInformationByHandle,
};
use windows_sys::Win32::System::IO::IO_STATUS_BLOCK;

use super::names;

/// Other programs may do anything with an entry while it is open here.
pub(super) const SHARE: u32 = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

/// Opens an entry by its name in an open directory.
pub(super) fn open(
    parent: BorrowedHandle<'_>,
    name: &CStr,
    access: u32,
    options: u32,
) -> io::Result<OwnedHandle> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let mut name = names::read(name.to_bytes()).ok_or_else(invalid)?;
    let length = u16::try_from(name.len() * 2).map_err(|_| invalid())?;
    let text = UNICODE_STRING { Length: length, MaximumLength: length, Buffer: name.as_mut_ptr() };
    let attributes = OBJECT_ATTRIBUTES {
        Length: size_of::<OBJECT_ATTRIBUTES>() as u32,
        RootDirectory: parent.as_raw_handle(),
        ObjectName: &raw const text,
        ..OBJECT_ATTRIBUTES::default()
    };
    let (mut handle, mut block) = (ptr::null_mut(), IO_STATUS_BLOCK::default());
    // SAFETY: `attributes`, the text it points to and that text's units live until the call
    // returns, and hold as many bytes as they say. `handle` and `block` may be written to, and
    // the call is synchronous, so nothing writes to `block` later. The parent is open as long
    // as it is borrowed. No allocation size and no extended attributes are given, as null allows.
    let status = unsafe {
        NtCreateFile(
            &raw mut handle,
            access | SYNCHRONIZE,
            &raw const attributes,
            &raw mut block,
            ptr::null(),
            0,
            SHARE,
            FILE_OPEN,
            options | FILE_SYNCHRONOUS_IO_NONALERT | FILE_OPEN_FOR_BACKUP_INTENT,
            ptr::null(),
            0,
        )
    };
    if status < 0 {
        // SAFETY: the function takes any number.
        let number = unsafe { RtlNtStatusToDosError(status) };
        return Err(io::Error::from_raw_os_error(number as i32));
    }
    // SAFETY: the call succeeded, so this is an open handle, and nobody else has it.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// Fills words with what the system says of a handle, or with the next entries of a directory.
pub(super) fn ask(
    handle: BorrowedHandle<'_>,
    class: FILE_INFO_BY_HANDLE_CLASS,
    words: &mut [u64],
) -> io::Result<()> {
    let bytes = u32::try_from(size_of_val(words)).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the handle is open as long as it is borrowed. The words may be written to, are as
    // many bytes as is said, have the alignment that the records want, which is eight bytes,
    // and take any content.
    let done = unsafe {
        GetFileInformationByHandleEx(
            handle.as_raw_handle(),
            class,
            words.as_mut_ptr().cast(),
            bytes,
        )
    };
    if done == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The volume and the number of what a handle is of.
pub(super) fn identity(handle: BorrowedHandle<'_>) -> io::Result<(u64, u64)> {
    let mut words = [0; 3];
    if ask(handle, FileIdInfo, &mut words).is_ok() && words[1] != 0 {
        let [volume, low, high] = words;
        // Numbers of 128 bits are mixed into 64: two files are taken for one by an accident of one
        // in 2^64.
        return Ok((volume, low ^ high.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    }
    let mut known = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open as long as it is borrowed, and `known` may be written to.
    let done = unsafe { GetFileInformationByHandle(handle.as_raw_handle(), &raw mut known) };
    if done == 0 {
        return Err(io::Error::last_os_error());
    }
    let number = u64::from(known.nFileIndexHigh) << 32 | u64::from(known.nFileIndexLow);
    Ok((known.dwVolumeSerialNumber.into(), number))
}

/// Deletes what a handle, opened with the right to delete, is of: its name is gone at once. Where
/// the system or the file system cannot do that, the name goes when every handle of it has been
/// closed, and a file that is marked as read-only is refused.
pub(super) fn delete(handle: BorrowedHandle<'_>) -> io::Result<()> {
    const CANNOT: [u32; 4] = [
        ERROR_INVALID_FUNCTION,
        ERROR_INVALID_PARAMETER,
        ERROR_NOT_SUPPORTED,
        ERROR_CALL_NOT_IMPLEMENTED,
    ];
    let flags = FILE_DISPOSITION_FLAG_DELETE
        | FILE_DISPOSITION_FLAG_POSIX_SEMANTICS
        | FILE_DISPOSITION_FLAG_IGNORE_READONLY_ATTRIBUTE;
    let at_once = FILE_DISPOSITION_INFO_EX { Flags: flags };
    // SAFETY: the handle is open as long as it is borrowed, and `at_once` is the record that its
    // class wants and as long as is said. The call only reads it.
    let done = unsafe {
        SetFileInformationByHandle(
            handle.as_raw_handle(),
            FileDispositionInfoEx,
            (&raw const at_once).cast(),
            size_of_val(&at_once) as u32,
        )
    };
    if done != 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if !CANNOT.iter().any(|&number| error.raw_os_error() == Some(number as i32)) {
        return Err(error);
    }
    let on_close = FILE_DISPOSITION_INFO { DeleteFile: true };
    // SAFETY: the handle is open as long as it is borrowed, and `on_close` is the record that its
    // class wants and as long as is said. The call only reads it.
    let done = unsafe {
        SetFileInformationByHandle(
            handle.as_raw_handle(),
            FileDispositionInfo,
            (&raw const on_close).cast(),
            size_of_val(&on_close) as u32,
        )
    };
    if done == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
