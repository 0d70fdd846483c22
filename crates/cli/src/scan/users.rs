//! Users and groups by the system's own look-up: `/etc/passwd`, LDAP or what else it is told to
//! ask.

/// The name of a user.
#[cfg(unix)]
pub(super) fn name_of(user: u32) -> Option<String> {
    uzers::get_user_by_uid(user).map(|user| user.name().to_string_lossy().into_owned())
}

/// None: such a system does not number its users.
#[cfg(not(unix))]
pub(super) fn name_of(_: u32) -> Option<String> {
    None
}

/// The number of a user, by a name or the number itself.
pub(super) fn user(text: &str) -> Result<u32, String> {
    #[cfg(unix)]
    let found = uzers::get_user_by_name(text).map(|user| user.uid());
    #[cfg(not(unix))]
    let found = None;
    number(text, found, "user")
}

/// The number of a group, by a name or the number itself.
pub(super) fn group(text: &str) -> Result<u32, String> {
    #[cfg(unix)]
    let found = uzers::get_group_by_name(text).map(|group| group.gid());
    #[cfg(not(unix))]
    let found = None;
    number(text, found, "group")
}

/// As `chown` has it: a name of digits is looked for first.
fn number(text: &str, found: Option<u32>, what: &str) -> Result<u32, String> {
    if cfg!(windows) {
        return Err("owners and groups are not available on Windows".to_owned());
    }
    found.or_else(|| text.parse().ok()).ok_or_else(|| format!("there is no such {what}"))
}
