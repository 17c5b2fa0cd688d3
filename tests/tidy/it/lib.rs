//! Nothing but tests live here.
