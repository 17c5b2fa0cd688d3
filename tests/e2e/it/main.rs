//! The real binary, attacked: killed, starved of disk, crowded, timed out. Each test has a directory of its
//! own and sees only what a user sees: exit codes, screens, files, processes.

mod agents;
mod artifacts;
mod budgets;
mod cassettes;
mod clock;
mod crowd;
mod damage;
mod escalation;
mod examples;
mod failures;
mod faults;
mod forks;
mod golden;
mod home;
mod isolation;
mod kill;
mod mcp;
mod models;
mod mutations;
mod once;
mod place;
mod power;
mod projects;
mod secrets;
mod siege;
mod stopped;
mod storage;
mod templates;
mod timeouts;
mod twice;
