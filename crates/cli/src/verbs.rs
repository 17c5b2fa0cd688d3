//! What each verb does: asks the engine, hands the answer to a screen, chooses the exit code.

pub(crate) mod act;
pub(crate) mod answer;
pub(crate) mod artifacts;
pub(crate) mod carry_on;
pub(crate) mod complete;
pub(crate) mod cost;
pub(crate) mod draw;
pub(crate) mod explain;
pub(crate) mod init;
pub(crate) mod last;
pub(crate) mod look;
pub(crate) mod mcp;
pub(crate) mod plan;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod stream;
pub(crate) mod tape;
pub(crate) mod tell;
pub(crate) mod test;
pub(crate) mod token;
pub(crate) mod write;
