//! Definitions as they are stored: workflow, node, transition, task, step, action, and what they name.
//!
//! Plain data with nothing filled in but defaults that serde knows. A definition here may be nonsense;
//! only [`crate::graph::Graph`] is checked. Reading files and remembering where in a file a text stood
//! is the reader's business: the core hands a [`Spot`] back and never looks inside it.

mod action;
mod mock;
mod model;
mod policy;
mod task;
mod text;
mod tool;
mod workflow;

pub use action::*;
pub use mock::{Mock, MockError, MockOutcome, MockUsage};
pub use model::*;
pub use policy::*;
pub use task::*;
pub use text::{Spot, Text, Tree, Write, Writes};
pub use tool::{McpServer, Sampling, ToolUse, as_key};
pub use workflow::*;

use std::sync::Arc;

/// A ref, a definition's name, a key: shared, never changed.
pub type Name = Arc<str>;

pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
