//! What a specification's fields must be, in one line each where they are not.

use crate::error::Error;
use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;

pub(super) const HOUR_NS: u64 = 3_600_000_000_000;

pub(crate) fn require(
    holds: bool,
    field: &str,
    value: impl std::fmt::Display,
    expected: &str,
) -> Result<(), Error> {
    holds
        .then_some(())
        .ok_or_else(|| Error::InvalidSpec(format!("`{field}` is `{value}`; expected {expected}")))
}

pub(crate) fn require_time(field: &str, value: u64) -> Result<(), Error> {
    require(
        (1..=24 * HOUR_NS).contains(&value),
        field,
        value,
        "1 ns to a day, in nanoseconds",
    )
}

pub(crate) fn decoded(field: &str, text: Option<&str>) -> Result<Option<Vec<u8>>, Error> {
    text.map(|text| {
        STANDARD
            .decode(text)
            .map_err(|error| Error::InvalidSpec(format!("`{field}` is not base64: {error}")))
    })
    .transpose()
}

pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':')
}

pub(crate) fn is_on_one_line(value: &str) -> bool {
    !value.contains(['\r', '\n', '\0'])
}

pub(crate) fn check_method(method: &str) -> Result<(), Error> {
    let field = "workload.request.method";
    require(is_token(method), field, method, "a method such as GET")?;
    let expected = "another: that asks for a tunnel, not for a path";
    require(method != "CONNECT", field, method, expected)
}

pub(crate) fn check_path(field: &str, path: &str) -> Result<(), Error> {
    let fits = path.starts_with('/') && path.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    require(fits, field, path, "a path that starts with / and has no blanks")
}
