//! Reads what people write: YAML or JSON text to checked definitions, with diagnostics that say where, what
//! was expected, and what to do.
//!
//! It does no IO, runs nothing and resolves nothing outside the text it is given, except through a
//! [`Library`] that the caller fills. What a workflow means is `wonder-graph`'s business; this crate finds
//! the place in the file for whatever core has to say.
//!
//! ```
//! let text = "wonder: 1\nname: hello\nnodes:\n  greet: {shell: \"echo {{ input.who }}\"}\n";
//! let reading = wonder_spec::read(text, "hello.yaml").map_err(|problems| problems.render(false)).unwrap();
//! assert_eq!(reading.bundles[0].workflow.name.as_str(), "hello");
//!
//! let problems = wonder_spec::read("wonder: 1\nname: hello\nnods: {}\n", "hello.yaml").unwrap_err();
//! assert!(problems.render(false).contains("did you mean `nodes`?"));
//! ```

mod build;
pub mod cases;
mod check;
pub mod codes;
mod diagnostics;
mod draw;
mod expand;
mod explain;
mod files;
mod mutations;
mod place;
mod reader;
pub mod reference;
mod repair;
mod resolve;
mod scalar;
mod schema;
mod shape;
mod snippet;
mod syntax;
mod tree;
mod unused;
mod within;

pub use diagnostics::{Diagnostic, Diagnostics, PROBLEMS_MAX};
pub use draw::{Mark, Overlay, Stand, dot, dot_of_run, mermaid, mermaid_of_run};
pub use expand::{expand, from_stored, stored};
pub use explain::{all as explained, explain};
pub use files::{FileText, Files, NoFiles, Unable};
pub use mutations::mutations;
pub use place::Span;
pub use reader::{
    Around, CannotPerform, Definition, Reading, documents, read, read_everything, read_files,
    read_mcp_servers, read_with, workflow_names,
};
pub use resolve::Library;
pub use schema::{schema, test_schema};
pub use tree::{COPIES_MAX, DEPTH_MAX, FILE_BYTES_MAX, NODES_MAX};
