//! The host's clock: milliseconds since 1970, as the core counts.

use std::time::{SystemTime, UNIX_EPOCH};

use wonder_core::Time;

pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
