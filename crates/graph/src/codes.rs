//! Stable codes of what can be wrong with a definition. A code never changes its meaning and is never used
//! again for another one; `docs/errors/` has a page for each.

use wonder_lang::problem::Code;

/// Declares each code once, and the list of all of them.
macro_rules! codes {
    ($($name:ident = $code:literal, $title:literal;)*) => {
        $(#[doc = $title] pub const $name: Code = Code($code);)*
        /// Every code with its title, in order.
        pub const ALL: &[(Code, &str)] = &[$(($name, $title)),*];
    };
}

codes! {
    DUPLICATE_REF = "E0101", "a ref is used twice";
    BAD_REF = "E0102", "not a usable ref";
    UNKNOWN_NODE = "E0103", "unknown node";
    UNKNOWN_TASK = "E0104", "unknown task";
    UNKNOWN_ACTION = "E0105", "unknown action";
    UNKNOWN_PROMPT = "E0106", "unknown prompt";
    UNKNOWN_MODEL = "E0107", "unknown model profile";
    UNKNOWN_TOOL = "E0108", "unknown tool";
    UNKNOWN_GROUP = "E0109", "`sibling_group` names nothing that fans out";
    NO_NODES = "E0110", "a workflow without nodes";
    TOO_MANY_NODES = "E0111", "too many nodes";
    UNREACHABLE = "E0112", "a node that cannot be reached";
    NO_END = "E0113", "no terminal node can be reached";
    DAG_CYCLE = "E0114", "a cycle in a dag";
    ENDLESS_CYCLE = "E0115", "a cycle that cannot be left";
    DAG_ONLY = "E0116", "only a dag has this";
    GRAPH_ONLY = "E0117", "only a graph has this";
    BAD_DAG_JOIN = "E0118", "a join that its needs cannot meet";
    NEVER_TAKEN = "E0119", "a transition that can never be taken";
    UNFED_FAN_IN = "E0120", "a fan-in that no fan-out can feed";
    TWO_TARGETS = "E0121", "a group with two fan-ins";
    CONFLICTING_FAN_IN = "E0122", "one fan-in, described in two ways";
    GROUP_NOT_OPEN = "E0123", "`sibling_group` names a group that is not open here";
    BAD_M_OF_N = "E0124", "`m_of_n` can never be met";
    LONE_FAN_OUT = "E0125", "`fan_out: all` with a single transition";
    EMPTY_SPREAD = "E0126", "`spawn_count: 0`";
    TWO_SPREADS = "E0127", "`spawn_count` and `foreach` on one transition";
    NESTED_TOO_DEEP = "E0128", "fan-outs nest too deeply";
    PAUSING_STEP = "E0130", "an action that waits in a task of several steps";
    RETRY_AFTER_ONCE = "E0131", "a retry of what may happen only once";
    BAD_FIELDS = "E0132", "fields of an action that do not go together";
    NO_STEPS = "E0133", "a task without steps";
    BAD_URL = "E0135", "a URL without a scheme";
    UNKNOWN_METHOD = "E0136", "an unknown HTTP method";
    MISPLACED_VALUE = "E0137", "a value where a command line can take none";
    BAD_EXPRESSION = "E0140", "an expression that does not parse";
    UNDECLARED_IN_EXPRESSION = "E0141", "an expression reads an undeclared name";
    BAD_TEMPLATE = "E0142", "a template that does not parse";
    UNDECLARED_IN_TEMPLATE = "E0143", "a template reads an undeclared name";
    NOT_NEEDED = "E0144", "`needs.x` of a node that is not needed";
    WRITE_TO_INPUT = "E0145", "a mapping into `input`";
    BAD_TARGET = "E0146", "not a target path";
    SCHEMA_FORBIDS = "E0147", "a mapping that a schema forbids";
    MISSING_INPUT = "E0148", "a required input is not mapped";
    UNKNOWN_FILTER = "E0149", "an unknown filter, test or function in a template";
    BAD_SCHEMA = "E0150", "an invalid JSON Schema";
    REMOTE_REF = "E0151", "a remote `$ref`";
    NO_SUCH_INPUT = "E0152", "an input that is never there";
    NEVER_WRITTEN = "E0153", "a part of `state` that nobody writes";
    NO_SUCH_FIELD = "E0154", "a field that is never there";
    TIMEOUT_ORDER = "E0160", "timeouts in the wrong order";
    ZERO_LIMIT = "E0161", "a limit of zero";
    EMPTY_BUDGET = "E0162", "a budget of nothing";
    MODEL_CYCLE = "E0163", "model profiles that lead back to themselves";
    UNPRICED_BUDGET = "E0164", "a budget in dollars over a model without prices";
    BAD_PROFILE = "E0165", "a model profile that nobody can be asked by";
    UNKNOWN_SERVER = "E0166", "an unknown MCP server";
    BAD_SERVER = "E0167", "an MCP server that nobody can reach";
    MUTATION_NOT_ALLOWED = "E0170", "a node that may not add nodes";
    MUTATION_BAD_NODE = "E0171", "an added node must be over a known task";
    MUTATION_BAD_TRANSITION = "E0172", "an added transition starts elsewhere";
    MUTATION_TWICE = "E0173", "a second validator or review";
    NOT_COMPILED = "E0180", "a definition that cannot be compiled";
    UNKNOWN_ARTIFACT_TYPE = "E0190", "unknown artifact type";
    BAD_ARTIFACT = "E0191", "an artifact that cannot be called or read so";
    NO_DEFAULT = "W0201", "no default transition";
    UNJOINED_WRITES = "W0202", "writes that stay in their branch";
    CLEAR_SECRET = "W0203", "a secret in clear";
    NO_TIMEOUT = "W0204", "an external action without a timeout";
    PERHAPS_NEVER_WRITTEN = "W0205", "a part of `state` that perhaps nobody writes";
    UNDECLARED_FIELD = "W0206", "a field that is not declared and looks like a slip";
    UNDESCRIBED_TOOL = "W0207", "a tool without a description";
    IDLE_RETRY = "W0210", "a `retry` that nothing can trigger";
    NO_RETRY = "W0211", "`on_failure: retry` in a task without `retry`";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_order_and_unique() {
        assert!(ALL.is_sorted_by(|a, b| a.0 < b.0));
    }
}
