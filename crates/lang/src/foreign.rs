//! What other tools call things, and what they are called here. One table: keys of files, functions of
//! expressions, filters, tests and functions of templates. Consulted where a name is not known and is no slip of a known
//! one.

/// Where a word stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// A key of this object of the format, as the table of shapes names it; `""` is any.
    Key(&'static str),
    /// A function or method of an expression.
    Function,
    /// A filter or function of a template.
    Filter,
    /// A test of a template: what stands after `is`.
    Test,
}

/// A word of other tools.
#[derive(Clone, Copy, Debug)]
pub struct Foreign {
    pub place: Place,
    pub words: &'static [&'static str],
    /// What it is called here, if that is a word of the same kind.
    pub ours: Option<&'static str>,
    /// What to write, as the end of a sentence that begins "here".
    pub say: &'static str,
}

const fn key(
    of: &'static str,
    words: &'static [&'static str],
    ours: &'static str,
    say: &'static str,
) -> Foreign {
    Foreign { place: Place::Key(of), words, ours: Some(ours), say }
}

const fn other(place: Place, words: &'static [&'static str], say: &'static str) -> Foreign {
    Foreign { place, words, ours: None, say }
}

const fn function(words: &'static [&'static str], ours: &'static str, say: &'static str) -> Foreign {
    Foreign { place: Place::Function, words, ours: Some(ours), say }
}

const fn filter(words: &'static [&'static str], ours: &'static str, say: &'static str) -> Foreign {
    Foreign { place: Place::Filter, words, ours: Some(ours), say }
}

const fn test(words: &'static [&'static str], ours: &'static str, say: &'static str) -> Foreign {
    Foreign { place: Place::Test, words, ours: Some(ours), say }
}

const NO_CLOCK: &str =
    "nothing reads a clock or rolls dice: `run.started_at` and `run.id` are there, or give it as input";

/// The first that fits is taken.
#[rustfmt::skip]
pub const FOREIGN: &[Foreign] = &[
    // The file.
    key("workflow", &["jobs", "steps", "stages", "states", "activities", "operators", "blocks", "task", "graph"], "nodes", "it is `nodes:`, a map of nodes by their refs"),
    key("workflow", &["edges", "links", "connections", "flow"], "transitions", "it is `transitions:`, or `next:` under each node"),
    key("workflow", &["start", "start_at", "StartAt", "startAt", "entry", "entrypoint", "entry_point", "initial", "first"], "initial_node", "it is `initial_node: REF`; without it a run starts at the first node"),
    key("workflow", &["on", "schedule", "cron", "trigger"], "triggers", "it is `triggers:`, for a server"),
    key("workflow", &["inputs", "parameters", "params", "arguments", "args", "schema"], "input_schema", "it is `input_schema:`, a JSON Schema; `run --input k=v` gives the values"),
    key("workflow", &["outputs", "return", "returns"], "output_mapping", "it is `output_mapping: {name: EXPRESSION}`"),
    key("workflow", &["max_concurrency", "max_active_tasks", "parallelism"], "max_parallel", "it is `max_parallel: N`"),
    other(Place::Key("workflow"), &["vars", "variables", "state", "context"], "values are the run's `input`, or a node sets them: `update_context: {set: {state.x: EXPRESSION}}`; `context_schema` describes `state`"),
    other(Place::Key("workflow"), &["env", "environment"], "variables are given to the command that needs them: `shell: {command: ..., env: {NAME: \"{{ input.x }}\"}}`"),
    other(Place::Key("workflow"), &["defaults", "default_args"], "there are no defaults for all nodes: write them on a task, and let the nodes name it"),
    other(Place::Key(""), &["secrets"], "secrets are not declared: write `{{ secret.NAME }}` where one is needed"),
    // Nodes and steps.
    key("node", &["depends_on", "dependsOn", "depends", "dependencies", "requires", "after", "upstream"], "needs", "it is `needs: [REF]`"),
    key("node", &["if", "condition", "only_if", "only", "when_expression"], "when", "it is `when: EXPRESSION` on a node of a dag; in a graph it stands on the transition: `next: [{to: REF, when: EXPRESSION}]`"),
    key("node", &["then", "goto", "Next", "successors", "on_success", "downstream"], "next", "it is `next: REF`, or a list of transitions"),
    key("node", &["each", "for_each", "forEach", "with_items", "loop", "matrix", "map"], "foreach", "it is `foreach: {items: EXPRESSION, as: NAME}`: on the node in a dag, on the transition that leads here in a graph"),
    key("node", &["retries", "max_retries", "attempts", "retry_policy", "max_attempts"], "retry", "it is `retry: N`, the first try included"),
    key("node", &["catch", "rescue", "on_failure", "onError", "on_fail", "error_handler"], "on_error", "it is `on_error: [{when: EXPRESSION, do: retry}]`; a way out after a failure is `next: [{to: REF, on: failure}]`"),
    other(Place::Key("node"), &["continue_on_error", "continue-on-error", "ignore_errors", "allow_failure"], "it is `on_error: {do: skip}`"),
    other(Place::Key("node"), &["env", "environment"], "variables are given inside: `shell: {command: ..., env: {NAME: \"{{ input.x }}\"}}`"),
    other(Place::Key("node"), &["type", "kind"], "the kind of work is itself the key: `shell: ...`, `http_request: ...`, `human_gate: ...`"),
    other(Place::Key("node"), &["parallel"], "in a graph it is `fan_out: all` with several transitions; in a dag everything ready runs"),
    other(Place::Key("node"), &["timeout-minutes", "timeout_minutes", "timeout_seconds", "timeout_secs", "timeoutSeconds"], "it is `timeout: 5m`, with the unit"),
    key("work", &["run", "cmd", "command", "script", "bash", "sh", "exec", "execute"], "shell", "it is `shell: COMMAND`"),
    key("work", &["http", "request", "fetch", "curl", "url", "webhook"], "http_request", "it is `http_request: {url: ...}`"),
    key("work", &["llm", "prompt", "chat", "completion", "model", "ai"], "llm_call", "it is `llm_call: {model: ..., prompt: ...}`"),
    key("work", &["mcp", "tool"], "mcp_tool", "it is `mcp_tool: {server: ..., tool: ..., arguments: {...}}`"),
    key("work", &["approval", "approve", "manual", "human", "human_input", "input_request", "interrupt", "ask"], "human_gate", "it is `human_gate: QUESTION`"),
    key("work", &["workflow", "call", "subworkflow", "sub_workflow", "subflow", "child", "invoke", "uses"], "workflow_call", "it is `workflow_call: NAME`, or `task: NAME` for a task"),
    key("work", &["delay", "wait", "timer", "pause"], "sleep", "it is `sleep: 5m`"),
    key("work", &["wait_for", "event", "signal", "wait_for_event", "receive"], "wait_event", "it is `wait_event: NAME`"),
    key("work", &["set", "assign", "set_state", "set_variable", "pass", "transform"], "update_context", "it is `update_context: {set: {state.x: EXPRESSION}}`"),
    key("work", &["check", "expect", "verify", "validate", "require"], "assert", "it is `assert: EXPRESSION`"),
    key("work", &["write_artifact", "artifact", "upload"], "artifact_write", "it is `artifact_write: {name: ..., content: ...}`"),
    key("work", &["read_artifact", "download"], "artifact_read", "it is `artifact_read: REF`"),
    key("work", &["with", "inputs", "input", "args", "params", "parameters", "arguments"], "input_mapping", "it is `input_mapping: {name: EXPRESSION}`; a template may also name `{{ input.x }}` and `{{ state.x }}` itself"),
    key("work", &["outputs", "output", "register", "save_as", "assign_to", "result"], "output_mapping", "it is `output_mapping: {state.x: result}`; without it a node writes `state.<ref>`"),
    key("work", &["action_id", "task_id", "task_def_id"], "task", "it is `task: NAME`"),
    key("transition", &["if", "cond", "guard"], "when", "it is `when: EXPRESSION`"),
    key("transition", &["target", "node", "next"], "to", "it is `to: REF`"),
    key("transition", &["join", "sync", "wait_for", "fan_in"], "synchronization", "it is `synchronization: {strategy: all}`"),
    key("transition", &["max_loops", "max_visits", "limit"], "max_iterations", "it is `max_iterations: N`"),
    key("foreach", &["in", "list", "over", "items_path"], "items", "it is `items: EXPRESSION`"),
    key("foreach", &["var", "item", "variable", "name"], "as", "it is `as: NAME`"),
    key("retry", &["attempts", "max", "count", "limit", "max_retries", "times"], "max_attempts", "it is `max_attempts: N`, the first try included"),
    key("retry", &["delay", "interval", "wait"], "initial_delay", "it is `initial_delay: 1s`"),
    key("rule", &["if", "match", "on"], "when", "it is `when: error.kind == 'timeout'`"),
    key("rule", &["action", "then", "response"], "do", "it is `do: retry`"),
    key("shell", &["cmd", "run", "script", "args"], "command", "it is `command: ...`: one text for a shell, or a list of arguments"),
    key("shell", &["dir", "workdir", "working_directory", "working-directory"], "cwd", "it is `cwd: DIRECTORY`"),
    key("shell", &["input"], "stdin", "it is `stdin: TEXT`"),
    key("http_request", &["uri", "endpoint", "address"], "url", "it is `url: https://...`"),
    key("http_request", &["params", "parameters"], "query", "it is `query: {name: value}`"),
    key("http_request", &["data", "payload"], "json", "it is `json: {...}`, or `body: TEXT`"),
    key("http_request", &["status", "expected_status"], "expect", "it is `expect: 2xx`"),
    key("human_gate", &["question", "message", "prompt"], "title", "it is `title: QUESTION`"),
    key("human_gate", &["approvers", "reviewers", "users"], "assignees", "it is `assignees: [NAME]`"),
    key("human_gate", &["schema", "fields", "choices", "options"], "form", "it is `form:`, a JSON Schema of the answer"),
    key("workflow_call", &["name", "workflow_def_id", "workflow_id"], "workflow", "it is `workflow: NAME`, or `file: ./other.yaml`"),
    key("workflow_call", &["path"], "file", "it is `file: ./other.yaml`"),
    other(Place::Key("workflow_call"), &["input", "inputs", "with", "input_mapping", "args"], "what it is given stands on the node: `input_mapping: {name: EXPRESSION}`"),
    key("sleep", &["duration", "seconds", "time"], "for", "it is `for: 30s`"),
    // Expressions.
    function(&["len", "length", "count", "strlen"], "size", "it is `size(x)`"),
    function(&["str", "toString", "text"], "string", "it is `string(x)`"),
    function(&["float", "number", "toNumber", "parseFloat"], "double", "it is `double(x)`"),
    function(&["parseInt", "integer"], "int", "it is `int(x)`"),
    function(&["upper", "uppercase", "toUpperCase", "toUpper"], "upperAscii", "it is `x.upperAscii()`"),
    function(&["lower", "lowercase", "toLowerCase", "toLower"], "lowerAscii", "it is `x.lowerAscii()`"),
    function(&["strip"], "trim", "it is `x.trim()`"),
    function(&["includes"], "contains", "it is `text.contains(part)`, and `x in list` for a list"),
    function(&["mean", "average"], "avg", "it is `avg(list)`"),
    function(&["parse_json", "fromJson", "fromJSON", "from_json", "json_parse"], "json", "it is `json(text)`"),
    function(&["toJson", "toJSON", "tojson", "stringify", "json_stringify", "dump"], "to_json", "it is `to_json(x)`"),
    function(&["default", "coalesce", "ifnull", "nvl", "or_else"], "get", "it is `get(state, 'a.b', default)`"),
    function(&["distinct", "uniq", "set"], "unique", "it is `unique(list)`"),
    function(&["regex", "match", "test"], "matches", "it is `text.matches('pattern')`"),
    function(&["exists", "defined", "isset", "is_defined"], "has", "it is `has(state.x)`"),
    function(&["any", "some"], "exists", "it is `list.exists(x, condition)`"),
    function(&["every"], "all", "it is `list.all(x, condition)`"),
    other(Place::Function, &["keys"], "a map gives its keys to macros: `x.map(k, k)`"),
    other(Place::Function, &["values"], "a map gives its keys to macros: `x.map(k, x[k])`"),
    other(Place::Function, &["concat", "append", "push"], "texts and lists are put together with `+`"),
    other(Place::Function, &["not"], "it is `!x`"),
    other(Place::Function, &["if", "iff", "cond", "ternary", "iif"], "it is `test ? this : that`"),
    other(Place::Function, &["env", "getenv"], "an expression sees no environment: give the value as input, or read `{{ secret.NAME }}` in a template"),
    other(Place::Function, &["success", "failure", "always", "cancelled"], "after which end a transition is taken is its `on`: `success`, `failure` or `any`"),
    other(Place::Function, &["now", "date", "time", "today", "timestamp", "random", "rand", "uuid"], NO_CLOCK),
    // Templates.
    filter(&["len", "size"], "length", "it is `x|length`"),
    filter(&["json", "to_json", "toJson", "toJSON", "to_nice_json", "dump", "json_encode"], "tojson", "it is `x|tojson`"),
    filter(&["uppercase", "upcase", "upperAscii"], "upper", "it is `x|upper`"),
    filter(&["lowercase", "downcase", "lowerAscii"], "lower", "it is `x|lower`"),
    filter(&["strip"], "trim", "it is `x|trim`"),
    filter(&["str", "to_string"], "string", "it is `x|string`"),
    filter(&["number", "to_number", "double"], "float", "it is `x|float`"),
    filter(&["keys"], "list", "it is `x|list`: a map gives its keys"),
    filter(&["distinct", "uniq"], "unique", "it is `x|unique`"),
    filter(&["filter", "where"], "select", "it is `x|select('test')` or `x|selectattr('key', 'equalto', value)`"),
    test(&["exists"], "defined", "it is `x is defined`"),
    test(&["empty", "null", "nil"], "none", "it is `x is none`, or `x|length == 0`"),
    test(&["list", "array"], "sequence", "it is `x is sequence`"),
    test(&["dict", "object"], "mapping", "it is `x is mapping`"),
    test(&["equal", "equals"], "equalto", "it is `x == y`"),
    other(Place::Filter, &["fromjson", "from_json", "parse_json", "json_decode"], "an expression does that: `input_mapping: {x: json(state.text)}`, then `{{ x.key }}`"),
    other(Place::Filter, &["quote", "shell_quote", "shellquote", "shell_escape"], "values in a command line are quoted without it"),
    other(Place::Filter, &["urlencode", "url_encode", "encode_uri"], "values in a `url` and in `query` are percent-encoded without it"),
    other(Place::Filter, &["date", "strftime", "datetime", "now", "random", "uuid"], NO_CLOCK),
    other(Place::Filter, &["env", "lookup", "getenv"], "a template sees no environment: write `{{ secret.NAME }}`, or give the value as input"),
    other(Place::Filter, &["regex_replace", "b64encode", "b64decode", "md5", "sha256", "to_yaml", "from_yaml"], "a `shell` step does that; templates only put values into texts"),
];

/// What a word of other tools is here.
pub fn foreign(place: Place, word: &str) -> Option<&'static Foreign> {
    FOREIGN.iter().find(|known| fits(known.place, place) && known.words.contains(&word))
}

fn fits(known: Place, asked: Place) -> bool {
    match (known, asked) {
        (Place::Key(""), Place::Key(_)) => true,
        // Nodes, steps and actions have kinds of work.
        (Place::Key("work"), Place::Key(of)) => matches!(of, "node" | "step" | "action"),
        (Place::Key(known), Place::Key(asked)) => known == asked,
        (known, asked) => known == asked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{expr, template};

    #[test]
    fn what_is_offered_is_there_and_what_is_foreign_is_not() {
        for known in FOREIGN {
            let (names, what): (Vec<&str>, _) = match known.place {
                Place::Key(_) => continue,
                Place::Function => (expr::functions().map(|term| term.name).collect(), "function"),
                Place::Filter => (
                    template::FILTERS.iter().chain(template::FUNCTIONS).map(|term| term.name).collect(),
                    "filter",
                ),
                Place::Test => (template::TESTS.iter().map(|term| term.name).collect(), "test"),
            };
            if let Some(ours) = known.ours {
                assert!(names.contains(&ours), "there is no {what} {ours}");
            }
            for word in known.words.iter().filter(|word| **word != "exists") {
                assert!(!names.contains(word), "{word} is a {what} of ours");
            }
        }
    }
}
