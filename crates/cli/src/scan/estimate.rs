//! How many entries a scan will find, where the file systems say how many they hold.

use std::path::PathBuf;

/// The total of the file systems, if each path is the top of a file system that counts its files.
/// They count a file with several names once, and do not count file systems mounted below.
#[cfg(target_os = "linux")]
pub(super) fn estimate(paths: &[PathBuf]) -> Option<u64> {
    use std::collections::HashSet;
    use std::os::unix::fs::MetadataExt as _;

    let mut met = HashSet::new();
    let mut sum = 0_u64;
    for path in paths {
        let own = path.metadata().ok()?;
        let above = path.join("..").metadata().ok()?;
        let top = own.dev() != above.dev() || own.ino() == above.ino();
        if !top {
            return None;
        }
        if met.insert(own.dev()) {
            let found = rustix::fs::statvfs(path).ok()?;
            sum += found.f_files.checked_sub(found.f_ffree).filter(|&used| used > 0)?;
        }
    }
    (sum > 0).then_some(sum)
}

/// Nothing: such a system does not say.
#[cfg(not(target_os = "linux"))]
pub(super) fn estimate(_: &[PathBuf]) -> Option<u64> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_the_top_of_a_file_system_has_an_estimate() {
        assert_eq!(estimate(&[]), None);
        assert_eq!(estimate(&["src".into()]), None);
        assert_eq!(estimate(&["/".into(), "src".into()]), None);
        // File systems differ in what they report: some count no files.
        let once = estimate(&["/".into()]);
        let twice = estimate(&["/".into(), "/".into()]);
        assert_eq!(once.is_some(), twice.is_some());
        // Other programs make files meanwhile, but not as many as there are.
        assert!(twice.unwrap_or(0) < 2 * once.unwrap_or(1), "{once:?} and {twice:?}");
    }
}
