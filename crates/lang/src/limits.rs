//! Every bound, with its unit in its name. Beyond one there is a typed refusal or failure that names it,
//! never an out-of-memory.

use serde::{Deserialize, Serialize};

/// Bounds of one run; pinned in `run_started`, so that a new binary cannot change a run under way.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Tokens and groups a run may make, from its start to its end.
    pub tokens_max: u64,
    /// Branches of one group.
    pub branches_max: u32,
    /// Groups within groups.
    pub nesting_max: u32,
    /// Bytes of `state` and `output` together, roughly as JSON.
    pub context_bytes_max: u64,
    /// Bytes of one result, answer or event payload.
    pub result_bytes_max: u64,
    /// Runs within runs.
    pub child_depth_max: u32,
    /// Events kept for a `wait_event` that has not come yet.
    pub events_kept_max: u32,
    /// Moves the coordinator makes for one input before it yields, so that a step stays small.
    pub moves_per_input_max: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            tokens_max: 1_000_000,
            branches_max: 200_000,
            nesting_max: 16,
            context_bytes_max: 64 << 20,
            result_bytes_max: 16 << 20,
            child_depth_max: 16,
            events_kept_max: 1_000,
            moves_per_input_max: 20_000,
        }
    }
}

/// Nodes a workflow may have in all, unless it says less.
pub const NODES_MAX: u32 = 200_000;
/// Mutations of one run, unless the workflow says otherwise.
pub const MUTATIONS_MAX: u32 = 20;
/// How long a workflow may take, unless it says otherwise: one hour.
pub const WORKFLOW_TIMEOUT_MS: u64 = 3_600_000;
/// The longest computed fan-in timeout: half an hour.
pub const FAN_IN_TIMEOUT_MS_MAX: u64 = 30 * 60 * 1_000;
/// How long a cancelled run waits for its tasks to report.
pub const CANCEL_GRACE_MS: u64 = 30_000;
/// What a call reserves when neither it nor its profile says how much a model may answer.
pub const OUTPUT_TOKENS_RESERVED: u64 = 8_192;
/// What a call reserves for each image that it sends: the most that providers bill.
pub const IMAGE_TOKENS_RESERVED: u64 = 3_000;
/// Turns of an agent that does not say how many it may have.
pub const AGENT_TURNS_MAX: u32 = 40;
/// Bytes of a tool's result that a model gets as it is; a larger one goes to an artifact.
pub const TOOL_RESULT_BYTES_MAX: u64 = 256 << 10;
/// How often an MCP server may ask a model while it performs one call, unless it says otherwise.
pub const SAMPLING_CALLS_MAX: u32 = 5;
/// What an MCP server may send to a model at once.
pub const SAMPLING_BYTES_MAX: u64 = 32 << 10;
