//! Directories of caches, by their tag: <https://bford.info/cachedir/>.

use crate::sys::Sys;

/// What a tag begins with.
const SIGNATURE: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// Whether a directory says that it is a cache.
pub(crate) fn is_cache<S: Sys>(sys: &S, directory: &S::Directory) -> bool {
    sys.read_file(directory, c"CACHEDIR.TAG", SIGNATURE.len()).is_ok_and(|tag| tag == SIGNATURE)
}
