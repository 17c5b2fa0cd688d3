//! Nothing but tests: every scenario on every host. See `it/main.rs`.
