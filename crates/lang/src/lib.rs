//! The language of Wonder: values, paths, expressions, templates, schemas, and definitions as they are stored.
//!
//! Plain data and pure functions. It knows nothing of runs: what a workflow's parts mean together is the graph's
//! (`wonder-graph`), what happens to them is the coordinator's (`wonder-core`). No clock, no randomness, no IO.

pub mod artifact;
pub mod command_line;
pub mod cost;
pub mod def;
pub mod diff;
pub mod error;
pub mod expr;
pub mod foreign;
pub mod limits;
pub mod path;
pub mod problem;
pub mod schema;
pub mod strict_json;
pub mod template;
pub mod terms;
pub mod time;
pub mod value;
pub mod visible;

pub use error::{ErrorKind, Failure};
pub use time::Time;
pub use value::Value;
