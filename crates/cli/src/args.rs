//! What can be typed: verbs, flags and their help. Parsing only; what a verb does is in `verbs`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use wonder_engine::Status;

/// Durable workflows for AI agents: runs survive crashes, wait for people, and cost what you allow.
#[derive(Debug, Parser)]
#[command(name = "wonder", version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = "RUN is an id, the beginning or the end of one, or `last`.\n\
    Exit codes: 0 completed, 1 the run failed, 2 usage or definition error, 3 waiting, 4 cancelled,\n\
    5 timed out, 6 budget stop, 7 engine or storage error, 130 interrupted (the run is safe).")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Common {
    /// Where runs are kept [default: $WONDER_HOME, else ~/.local/share/wonder]
    #[arg(long, global = true, value_name = "DIR", help_heading = "Everywhere")]
    pub home: Option<PathBuf>,
    /// For people, or for programs; data goes to stdout, all else to stderr
    #[arg(
        short,
        long,
        global = true,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Everywhere"
    )]
    pub output: Format,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
    /// Only of `test`: for build servers
    Junit,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Run(RunArgs),
    Resume(ResumeArgs),
    Retry(RetryArgs),
    Fork(ForkArgs),
    Answer(AnswerArgs),
    Signal(SignalArgs),
    Tell(TellArgs),
    Cancel(CancelArgs),
    Kill(KillArgs),
    Pause(PauseArgs),
    #[command(visible_alias = "ps", alias = "ls")]
    List(ListArgs),
    #[command(visible_alias = "status")]
    Show(ShowArgs),
    Watch(WatchArgs),
    Logs(LogsArgs),
    Events(EventsArgs),
    Cost(CostArgs),
    Why(WhyArgs),
    Gates(GatesArgs),
    Artifacts(ArtifactsArgs),
    Serve(ServeArgs),
    Token(TokenArgs),
    Init(InitArgs),
    Validate(ValidateArgs),
    Plan(PlanArgs),
    Mcp(McpArgs),
    Test(TestArgs),
    Graph(GraphArgs),
    Schema(SchemaArgs),
    Explain(ExplainArgs),
    Completions(CompletionsArgs),
    /// What can stand where the cursor is
    #[command(name = "__complete", hide = true)]
    Complete(CompleteArgs),
    /// Ends what a process that was killed has left behind
    #[command(name = "__reaper", hide = true)]
    Reaper,
}

/// Start a run and follow it until it ends or waits
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    wonder run hello.yaml -i who=world -i times:=3\n  \
    wonder run judge.yaml --input @question.json --input draft.style=short\n  \
    wonder run nightly.yaml --detach --label team=docs\n  \
    wonder run build.yaml -o json | jq .output\n  \
    wonder run agent.yaml --record tests/agent    keeps what was asked and answered\n  \
    wonder run agent.yaml --replay tests/agent    the same again: no network, no key, no cost")]
pub(crate) struct RunArgs {
    /// The file that defines the workflow, or - for stdin; of several workflows the first is started, and the
    /// others can be called by name, those of further files too
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The run's input: KEY=TEXT (by `input_schema` a number, true or false), KEY:=JSON, a JSON object, @FILE, or
    /// - for stdin; later ones are laid over earlier ones
    #[arg(short, long = "input", value_name = "INPUT")]
    pub inputs: Vec<String>,
    /// Only record the start, print the run's id and leave
    #[arg(short, long)]
    pub detach: bool,
    /// At most so many tasks of this run at once; 1 is one after the other
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_parallel: Option<u32>,
    /// Something to find the run by
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub labels: Vec<String>,
    #[command(flatten)]
    pub tape: TapeArgs,
}

/// Whether what is asked of the outside is kept, or answered from what was kept.
#[derive(Args, Debug)]
pub(crate) struct TapeArgs {
    /// Write what models, servers and commands are asked and answer to a cassette: a directory that is empty, not there
    /// yet, or has the beginning of this run
    #[arg(long, value_name = "DIR", conflicts_with_all = ["replay", "detach"])]
    pub record: Option<PathBuf>,
    /// Answer from a cassette instead: nothing is performed, and a request that it does not have fails
    #[arg(long, value_name = "DIR", conflicts_with = "detach")]
    pub replay: Option<PathBuf>,
}

/// Go on with a run that was paused or interrupted, and follow it
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  wonder resume last\n  wonder resume 7Q2M4K1Z --detach")]
pub(crate) struct ResumeArgs {
    /// A run: its id, the beginning or end of it, or `last`
    pub run: String,
    #[command(flatten)]
    pub tape: TapeArgs,
    #[command(flatten)]
    pub how: How,
}

/// Try the failed parts of a run again, in the same run, and follow it
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  wonder retry last\n  wonder retry 7Q2M4K1Z -o json\n  \
    wonder retry last --definition fixed.yaml\n\n\
    The run keeps the definition it was started with, unless you name a file.")]
pub(crate) struct RetryArgs {
    /// A run that failed, timed out or was cancelled
    pub run: String,
    /// Go on with the workflow of this file, if everything that happened fits it
    #[arg(long, value_name = "FILE")]
    pub definition: Option<PathBuf>,
    #[command(flatten)]
    pub tape: TapeArgs,
    #[command(flatten)]
    pub how: How,
}

/// Make a new run that goes on from a node of another, and follow it
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    wonder fork last --from review\n  \
    wonder fork 7Q2M4K1Z --from draft --input style=short\n  \
    wonder fork last --from judge --branch 2 --definition judge.yaml\n  \
    wonder fork last --from fix/think --turn 4 --set @edited.json\n\n\
    The new run has all that happened before the node's last dispatch, what it cost included.\n\
    The old run stays as it is.")]
pub(crate) struct ForkArgs {
    /// A run: its id, the beginning or end of it, or `last`
    pub run: String,
    /// The node to go on from: just before it was last dispatched; CALLER/NODE is one of a run that was called, an
    /// agent's `think`, say
    #[arg(long, value_name = "NODE")]
    pub from: String,
    /// Of a node that was come to again and again: which visit, the first being 1 [default: the last]
    #[arg(long, visible_alias = "turn", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub visit: Option<u32>,
    /// Of a node in a fan-out, the branch
    #[arg(long, value_name = "I")]
    pub branch: Option<u32>,
    /// Laid over the node's input: KEY=TEXT, KEY:=JSON, a JSON object, @FILE, or - for stdin
    #[arg(short, long = "input", value_name = "INPUT")]
    pub inputs: Vec<String>,
    /// Laid over the state of the run that the node is in, as --input is: another message of a conversation, say
    #[arg(long, value_name = "STATE")]
    pub set: Vec<String>,
    /// Go on with the workflow of this file; it must have every node that the run is at
    #[arg(long, value_name = "FILE")]
    pub definition: Option<PathBuf>,
    /// Only record it and leave; do not carry the run on
    #[arg(short, long)]
    pub detach: bool,
}

/// Whether to stay, and who asks.
#[derive(Args, Debug)]
pub(crate) struct How {
    /// Only record it and leave; do not carry the run on
    #[arg(short, long)]
    pub detach: bool,
    /// Who does it [default: $USER]
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
}

/// Answer a gate, and follow the run that waited for it
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    wonder answer 7Q2M4K1Z:1 ok=true\n  \
    wonder answer 7Q2M4K1Z:1 '{\"ok\": false, \"comment\": \"too long\"}'\n  \
    wonder answer 7Q2M4K1Z:1            asks for each field, on a terminal")]
pub(crate) struct AnswerArgs {
    /// The gate as `wonder gates` lists it: RUN:NUMBER, or as much of it as is unique
    pub gate: String,
    /// The answer: KEY=TEXT… (by the gate's form a number, true or false), KEY:=JSON, JSON, @FILE, or - for
    /// stdin; without it you are asked
    #[arg(value_name = "ANSWER", allow_negative_numbers = true)]
    pub answer: Vec<String>,
    #[command(flatten)]
    pub tape: TapeArgs,
    #[command(flatten)]
    pub how: How,
}

/// Tell a run of an outside event, and follow it
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    wonder signal last paid amount:=12 currency=EUR\n  \
    wonder signal 7Q2M4K1Z deployed '{\"version\": 3}' --key production")]
pub(crate) struct SignalArgs {
    /// A run: its id, the beginning or end of it, or `last`
    pub run: String,
    /// The event's name, as its `wait_event` says it
    pub name: String,
    /// What the event carries: KEY=TEXT…, KEY:=JSON, JSON, @FILE, or - for stdin [default: null]
    #[arg(value_name = "PAYLOAD", allow_negative_numbers = true)]
    pub payload: Vec<String>,
    /// The key that tells one such event from another: a text, or JSON behind `:=`
    #[arg(long)]
    pub key: Option<String>,
    #[command(flatten)]
    pub how: How,
}

/// Give a running agent a message, which it reads before its next turn
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    wonder tell last \"also look at the docs\"\n  \
    wonder tell last/fix \"only the parser\"     of several, the one that node fix has called\n  \
    wonder tell 7Q2M4K1Z --stop               it ends with what it has\n\n\
    It goes to the run, or to the one below it, that awaits the event `tell`. Where another process carries the\n\
    run on it is only recorded; else the run is followed, as `signal` does.")]
pub(crate) struct TellArgs {
    /// A run: its id, the beginning or end of it, or `last`; RUN/NODE is the run that a node of it has called
    #[arg(value_name = "RUN[/NODE]")]
    pub run: String,
    /// What to say
    #[arg(required_unless_present = "stop")]
    pub text: Option<String>,
    /// It is to stop, with what it has
    #[arg(long)]
    pub stop: bool,
    #[command(flatten)]
    pub how: How,
}

/// End a run: what is out may finish within its grace
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  wonder cancel last --reason \"wrong input\"")]
pub(crate) struct CancelArgs {
    /// A run: its id, the beginning or end of it, or `last`
    pub run: String,
    #[command(flatten)]
    pub because: Because,
}

/// End a run at once, without waiting for what is out
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  wonder kill last")]
pub(crate) struct KillArgs {
    /// A run: its id, the beginning or end of it, or `last`
    pub run: String,
    #[command(flatten)]
    pub because: Because,
}

/// Why a run is ended, and by whom.
#[derive(Args, Debug)]
pub(crate) struct Because {
    /// Why; kept with the run
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Who does it [default: $USER]
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
}

/// Stop starting tasks; what is out finishes
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  wonder pause last\n  wonder resume last")]
pub(crate) struct PauseArgs {
    /// A run: its id, the beginning or end of it, or `last`
    pub run: String,
    /// Who does it [default: $USER]
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
}

/// A run that is not over, waits for nobody, and that no process carries on.
pub(crate) const INTERRUPTED: &str = "interrupted";

fn statuses() -> Vec<&'static str> {
    Status::ALL.map(Status::as_str).into_iter().chain([INTERRUPTED]).collect()
}

/// List runs, the newest first
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    wonder list --status waiting\n  \
    wonder list --workflow judge_panel --limit 5 -o json\n  \
    wonder list --label team=docs --since 7d\n  \
    wonder list --limit 20 --after 7Q2M4K1Z    the next page")]
pub(crate) struct ListArgs {
    /// Only runs of this workflow
    #[arg(long, value_name = "NAME")]
    pub workflow: Option<String>,
    /// Only runs that are so
    #[arg(long, value_parser = statuses())]
    pub status: Option<String>,
    /// Only runs that have this label; of several, all of them
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub labels: Vec<String>,
    /// Only runs of this project
    #[arg(long, value_name = "NAME")]
    pub project: Option<String>,
    /// Only runs that this one called
    #[arg(long, value_name = "RUN")]
    pub parent: Option<String>,
    /// Only runs started since then: 7d, 24h, or a day such as 2026-01-31
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Only runs started before then
    #[arg(long, value_name = "WHEN")]
    pub until: Option<String>,
    /// Only what comes after this run in the list: the last one of the page before
    #[arg(long, value_name = "RUN")]
    pub after: Option<String>,
    /// Child runs too
    #[arg(short, long)]
    pub all: bool,
    /// At most so many [default: 20]
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<u32>,
}

/// Show one run: its nodes with times, attempts and cost, its gates, what came out
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    wonder show last\n  \
    wonder show 7Q2M4K1Z -o json | jq .nodes\n  \
    wonder show last --at 120\n  \
    wonder show last --graph --format dot | dot -Tsvg > run.svg")]
pub(crate) struct ShowArgs {
    /// A run: its id, the beginning or end of it, or `last`
    #[arg(default_value = "last")]
    pub run: String,
    /// As it was after this event, by its number in `wonder events`
    #[arg(long, value_name = "SEQ")]
    pub at: Option<u64>,
    /// Draw the graph as this run has it: where it stands, and what it added
    #[arg(long)]
    pub graph: bool,
    #[arg(long, default_value = "mermaid", requires = "graph")]
    pub format: Drawing,
}

/// Follow a run that somebody else carries on
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  wonder watch last\n\nLeaves when the run ends or waits, with its exit code."
)]
pub(crate) struct WatchArgs {
    /// A run: its id, the beginning or end of it, or `last`
    #[arg(default_value = "last")]
    pub run: String,
}

/// Print what a run's tasks said
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  wonder logs last --node build\n  wonder logs last --follow")]
pub(crate) struct LogsArgs {
    /// A run: its id, the beginning or end of it, or `last`
    #[arg(default_value = "last")]
    pub run: String,
    /// Only what this node said
    #[arg(long, value_name = "NODE")]
    pub node: Option<String>,
    /// Stay for more until the run ends
    #[arg(short, long)]
    pub follow: bool,
}

/// Print a run's events: everything that became true, in order
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    wonder events last\n  \
    wonder events last --after 120 --follow -o json | jq -c .kind\n  \
    wonder events --all --follow -o json")]
pub(crate) struct EventsArgs {
    /// A run: its id, the beginning or end of it, or `last`
    #[arg(default_value = "last")]
    pub run: String,
    /// Of all runs, in the order in which they were recorded
    #[arg(long, conflicts_with = "run")]
    pub all: bool,
    /// Stay for more until the run ends
    #[arg(short, long)]
    pub follow: bool,
    /// Only those after this number; with --all, after this `cursor`
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub after: u64,
}

/// Say what a run cost, or all runs together
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    wonder cost last\n  \
    wonder cost 7Q2M4K1Z --attempts -o json | jq .total\n  \
    wonder cost --by day --since 7d\n\n\
    A run is counted with all it called. TRIES are those of actions beyond the first; TIME is task time.")]
pub(crate) struct CostArgs {
    /// A run: its id, the beginning or end of it, or `last`; without one, all runs
    pub run: Option<String>,
    /// Each attempt too
    #[arg(long, requires = "run")]
    pub attempts: bool,
    /// What all runs are put together by
    #[arg(long, default_value = "workflow", conflicts_with = "run")]
    pub by: By,
    /// Only runs started since then: 7d, 24h, or a day such as 2026-01-31
    #[arg(long, value_name = "WHEN", conflicts_with = "run")]
    pub since: Option<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum By {
    Workflow,
    /// The `project_id` of its workflow, else `default`
    Project,
    /// Of its start, in UTC
    Day,
    Status,
}

/// Say what each part of a run waits for
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  wonder why last")]
pub(crate) struct WhyArgs {
    /// A run: its id, the beginning or end of it, or `last`
    #[arg(default_value = "last")]
    pub run: String,
}

/// List open gates: what waits for a person; or show one with its history
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    wonder gates\n  \
    wonder gates last -o json | jq -r '.[].id'\n  \
    wonder gates 7Q2M4K1Z:1")]
pub(crate) struct GatesArgs {
    /// Only those of this run and its children; RUN:NUMBER is one gate, open or not, with its history
    #[arg(value_name = "RUN|GATE")]
    pub run: Option<String>,
}

/// List what a run has kept, or print one of these files
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    wonder artifacts\n  \
    wonder artifacts last report.md\n  \
    wonder artifacts last plots/first.png --to first.png\n\n\
    Children's are listed too. Of several with one name the newest is meant; `blake3:HASH` (see -o json) is any of them.")]
pub(crate) struct ArtifactsArgs {
    /// A run: its id, the beginning or end of it, or `last`
    #[arg(default_value = "last")]
    pub run: String,
    /// The name of one, to be printed as it is
    #[arg(value_name = "NAME")]
    pub artifact: Option<String>,
    /// Save it to this file, which must not be there yet
    #[arg(long, value_name = "FILE", requires = "artifact")]
    pub to: Option<PathBuf>,
}

/// Try MCP servers by hand: those of a workflow file, and those of the settings
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    wonder mcp servers\n  \
    wonder mcp tools fix.yaml files\n  \
    wonder mcp call files read_file path=README.md")]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    pub what: McpVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpVerb {
    Servers(McpServersArgs),
    Tools(McpToolsArgs),
    Call(McpCallArgs),
}

/// List servers: how each is reached, and how many tools it has. Each is started for that
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  wonder mcp servers\n  wonder mcp servers fix.yaml -o json")]
pub(crate) struct McpServersArgs {
    /// A file that defines a workflow, for its `mcp_servers`
    pub file: Option<PathBuf>,
}

/// List the tools of a server, with their effects
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  wonder mcp tools files\n  wonder mcp tools fix.yaml files -o json")]
pub(crate) struct McpToolsArgs {
    /// The server's name; before it, perhaps, the file that defines it
    #[arg(required = true, num_args = 1..=2, value_names = ["FILE", "SERVER"])]
    pub words: Vec<String>,
}

/// Call a tool and print what it gives
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    wonder mcp call files read_file path=README.md\n  \
    wonder mcp call fix.yaml files read_file --input '{\"path\": \"README.md\"}'\n\n\
    Nothing is recorded: it is no run. A server that asks something is told that nobody answers.")]
pub(crate) struct McpCallArgs {
    /// The server's and the tool's name, before them perhaps the file that defines the server, and behind them
    /// arguments as KEY=TEXT or KEY:=JSON
    #[arg(required = true, num_args = 2.., value_name = "WORD")]
    pub words: Vec<String>,
    /// Arguments: KEY=TEXT, KEY:=JSON, a JSON object, @FILE, or - for stdin
    #[arg(short, long = "input", value_name = "INPUT")]
    pub inputs: Vec<String>,
}

/// Write a workflow to start from: a small one, or a recipe
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    wonder init               a first workflow\n  \
    wonder init --list        what else there is\n  \
    wonder init approval\n\n\
    Files are written into the working directory, and never over another.")]
pub(crate) struct InitArgs {
    /// The name of a template
    pub template: Option<String>,
    /// List the templates
    #[arg(long, conflicts_with = "template")]
    pub list: bool,
}

/// Check files and show every problem
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    wonder validate flows/*.yaml\n  \
    wonder validate judge.yaml -o json\n  \
    wonder validate judge.yaml --expand > long.yaml")]
pub(crate) struct ValidateArgs {
    /// Files, or - for stdin; the workflows of one may be called by name from another
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Print what the short forms stand for: a file with every layer written out, which can be read again
    #[arg(long)]
    pub expand: bool,
}

/// Say what a workflow will do, cost and take, and what is missing; nothing is run
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    wonder plan judge.yaml\n  \
    wonder plan nightly.yaml --strict -o json | jq .missing")]
pub(crate) struct PlanArgs {
    /// The file that defines the workflow, or - for stdin; of several workflows the first is planned, and the
    /// others can be called by name, those of further files too
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Exit with 2 if something is missing: a secret, a key, a program
    #[arg(long)]
    pub strict: bool,
}

/// Play the cases of `*.test.yaml` files, with mocks and on virtual time; nothing is run or spent
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    wonder test                       all below the working directory\n  \
    wonder test release.yaml --filter refused\n  \
    wonder test flows -o junit > tests.xml\n  \
    wonder test --update              writes what came out into the files\n\n\
    Exit codes: 0 all hold, 1 one does not, 2 a file cannot be read.")]
pub(crate) struct TestArgs {
    /// Files of cases, workflows that have one beside them, or directories [default: .]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Only cases with this in their name
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Write what came out into the files, where they expect something else
    #[arg(long)]
    pub update: bool,
}

/// Draw a workflow
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  wonder graph judge.yaml\n  wonder graph last --format dot | dot -Tsvg > run.svg"
)]
pub(crate) struct GraphArgs {
    /// A file, - for stdin, or a run whose workflow is drawn
    #[arg(value_name = "FILE|RUN")]
    pub what: String,
    #[arg(long, default_value = "mermaid")]
    pub format: Drawing,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Drawing {
    Mermaid,
    Dot,
}

/// Print the JSON Schema of workflow files, for editors
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  wonder schema > wonder.schema.json\n  \
    wonder schema --tests > wonder.test.schema.json")]
pub(crate) struct SchemaArgs {
    /// The schema of `*.test.yaml` files
    #[arg(long)]
    pub tests: bool,
}

/// Explain a word of workflow files, a setting, a variable or an error code; without one, list them all
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    wonder explain shell              an action, with its keys and its result\n  \
    wonder explain timeout            every place where it means something\n  \
    wonder explain node.timeout       one of them, with an example\n  \
    wonder explain foreach --example > try.yaml\n  \
    wonder explain E0101              a code that `validate` gave")]
pub(crate) struct ExplainArgs {
    /// A word as it is written in a file or a template, PLACE.KEY, a setting, a variable, or a code
    pub topic: Option<String>,
    /// Only the example, to try it
    #[arg(long, requires = "topic")]
    pub example: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CompleteArgs {
    /// Those behind the program's name, the last being the one that is typed
    #[arg(last = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

/// Print what a shell needs to complete commands, and runs, gates, nodes and codes with them
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    wonder completions bash > ~/.local/share/bash-completion/completions/wonder\n  \
    wonder completions zsh > ~/.zfunc/_wonder    with fpath+=~/.zfunc before compinit\n  \
    wonder completions fish > ~/.config/fish/completions/wonder.fish")]
pub(crate) struct CompletionsArgs {
    pub shell: clap_complete::Shell,
}

/// Stay, carry all runs on, and answer over HTTP
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    wonder serve\n  \
    wonder serve --listen 0.0.0.0:4747 --tls-cert cert.pem --tls-key key.pem --host wonder.example.org\n  \
    wonder serve -o json                one line with the address and, at the first start, the token\n\n\
    The first start in a home makes a token for an admin and shows it once. Ctrl-C and SIGTERM end the server;\n\
    its runs are safe, and the next owner of the home goes on with them.")]
pub(crate) struct ServeArgs {
    /// The address; only this machine reaches the default one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4747")]
    pub listen: std::net::SocketAddr,
    /// A certificate chain in PEM, for TLS
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// A name that the server is reached by, beside localhost and addresses
    #[arg(long = "host", value_name = "NAME")]
    pub hosts: Vec<String>,
    /// Ask nobody for a token; refused where others than this machine can reach the address
    #[arg(long)]
    pub no_auth: bool,
}

/// Make, list and revoke the tokens that a server asks for
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    wonder token create --role operator --name ci --expires 30d\n  \
    wonder token create --role viewer --project docs\n  \
    wonder token list\n  \
    wonder token revoke ci\n\n\
    A token belongs to a home, and works whether a server runs or not. It is shown once.")]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    pub what: TokenVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenVerb {
    Create(TokenCreateArgs),
    /// List tokens, without their secrets
    List,
    Revoke(TokenRevokeArgs),
}

/// Make a token and print it, alone, on stdout
#[derive(Args, Debug)]
pub(crate) struct TokenCreateArgs {
    /// viewer reads, operator acts on runs, admin may do all
    #[arg(long, value_parser = ["viewer", "operator", "admin"])]
    pub role: String,
    /// Whose it is: recorded with what is done with it [default: the role and a number]
    #[arg(long)]
    pub name: Option<String>,
    /// Sees and starts only runs of this project
    #[arg(long, value_name = "NAME")]
    pub project: Option<String>,
    /// After how long it is refused: 30d [default: never]
    #[arg(long, value_name = "DURATION")]
    pub expires: Option<String>,
}

/// Refuse a token from now on
#[derive(Args, Debug)]
pub(crate) struct TokenRevokeArgs {
    /// Its name in `wonder token list`
    pub name: String,
}

/// Who asks, if nobody says.
pub(crate) fn somebody(by: Option<String>) -> String {
    let user = || std::env::var("USER").ok().filter(|name| !name.is_empty());
    by.or_else(user).unwrap_or_else(|| "somebody".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// Wide enough for people, and the same on every machine.
    const WIDTH: usize = 100;

    #[test]
    fn every_verb_has_help_with_examples() {
        let mut wonder = Cli::command().term_width(WIDTH);
        wonder.build();
        let mut pages = format!("{}\n", wonder.render_help());
        for verb in wonder.get_subcommands_mut().filter(|verb| !verb.is_hide_set()) {
            let help = verb.render_help().to_string();
            let name = verb.get_name().to_owned();
            assert!(name == "help" || help.contains("Examples:"), "{name} has no examples");
            pages.push_str(&format!("=== wonder {name}\n\n{help}\n"));
        }
        insta::assert_snapshot!(pages);
    }

    #[test]
    fn what_can_be_typed_makes_sense() {
        Cli::command().debug_assert();
    }
}
