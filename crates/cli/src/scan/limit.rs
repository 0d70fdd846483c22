//! A number on the command line, or `all`.

/// A number, or no limit.
pub(super) type Limit = Option<usize>;

pub(super) fn limit(text: &str) -> Result<Limit, String> {
    match text {
        "all" => Ok(None),
        number => number.parse().map(Some).map_err(|_| "give a number, or `all`".to_owned()),
    }
}
