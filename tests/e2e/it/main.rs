//! The real binary, attacked: killed, starved of disk, crowded, timed out. Each test has a directory of its
//! own and sees only what a user sees: exit codes, screens, files, processes.

mod crowd;
mod examples;
mod kill;
mod once;
mod place;
mod storage;
mod timeouts;
