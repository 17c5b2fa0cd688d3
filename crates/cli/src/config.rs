//! Settings: flags over environment over `./wonder.toml` over `~/.config/wonder/config.toml`. An unknown key
//! or a value of the wrong kind is an error that names the file; nothing is guessed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use toml::{Table, Value};
use wonder_core::def::{McpServer, Name};
use wonder_core::problem::nearest;
use wonder_core::time::parse_duration_ms;
use wonder_host::{Period, ProjectBudget};

use crate::fault::Fault;
use crate::reading::{self, Bounded};

/// Of a file of settings.
const FILE_BYTES_MAX: usize = 1 << 20;
/// How many tasks run at once unless somebody says otherwise.
const TASKS_MAX: usize = 64;

/// A setting, for whoever looks it up. What is not in these tables is refused.
#[derive(Debug)]
pub(crate) struct Known {
    pub name: &'static str,
    pub form: &'static str,
    pub default: &'static str,
    pub about: &'static str,
    /// A line of `wonder.toml`.
    pub example: &'static str,
}

/// Each is also the variable `WONDER_NAME`, but for `projects` and `mcp_servers`, which are tables.
#[rustfmt::skip]
pub(crate) const SETTINGS: [Known; 13] = [
    Known { name: "home", form: "a path; relative to the file it stands in, `~/` is your home directory",
        default: "`~/.local/share/wonder`", about: "Where runs are kept.",
        example: "home = \"~/runs\"" },
    Known { name: "artifact_store", form: "a path of a directory, as for `home`", default: "`artifacts` in the `home`",
        about: "Where files that runs keep are kept. A directory is for one home: what no run of it refers to is collected some day.",
        example: "artifact_store = \"/big/disk/artifacts\"" },
    Known { name: "durability", form: "`\"full\"` or `\"normal\"`", default: "`full`",
        about: "Whether what was acknowledged is on the disk. With `normal` a power loss may take the last moments; \
                a crash of the program takes nothing either way.",
        example: "durability = \"normal\"" },
    Known { name: "max_parallel_tasks", form: "a whole number above 0", default: "64",
        about: "How many tasks this machine performs at once, over all runs.",
        example: "max_parallel_tasks = 8" },
    Known { name: "queue_timeout", form: "a duration with its unit", default: "none: tasks wait as long as it takes",
        about: "How long a task may wait for its turn on this machine before it fails as `timeout`.",
        example: "queue_timeout = \"10m\"" },
    Known { name: "grace", form: "a duration with its unit", default: "`5s`",
        about: "How long a command may take to end when it is told to (SIGTERM), before it is ended (SIGKILL).",
        example: "grace = \"10s\"" },
    Known { name: "storage_patience", form: "a duration with its unit", default: "`30s`",
        about: "How long a run waits for a disk that is full or does not work before it is given up here; it goes on by itself if there is room by then, and with `wonder resume` later.",
        example: "storage_patience = \"10m\"" },
    Known { name: "allow_hosts", form: "a list of names or addresses, each perhaps with `:port`", default: "none",
        about: "Private addresses that `http_request` and `llm_call` may reach; public ones it may reach anyway.",
        example: "allow_hosts = [\"localhost:8000\", \"10.0.0.7\"]" },
    Known { name: "sandbox_read", form: "a list of paths, as for `home`", default: "none",
        about: "What a command under `isolation: sandbox` may read beside programs and libraries of the system and its working directory: a toolchain below your home directory, say.",
        example: "sandbox_read = [\"~/.cargo\", \"~/.rustup\"]" },
    Known { name: "pass_env", form: "a list of names; `PREFIX_*` is all that begin so", default: "none",
        about: "Variables that commands without isolation are given beside the ordinary ones (`PATH`, `HOME`, `LANG`, toolchains): of the environment and of `.env` they see nothing else.",
        example: "pass_env = [\"SSH_AUTH_SOCK\", \"AWS_*\"]" },
    Known { name: "secrets_file", form: "a path, as for `home`", default: "none",
        about: "A file of `NAME=value` lines that `{{ secret.NAME }}` finds values in, after the environment and `.env`.",
        example: "secrets_file = \"~/.config/wonder/secrets\"" },
    Known { name: "mcp_servers", form: "tables `[mcp_servers.NAME]` with the keys that `mcp_servers` has in a workflow", default: "none",
        about: "MCP servers that workflows need only name.",
        example: "[mcp_servers.files]\ncommand = [\"npx\", \"-y\", \"@modelcontextprotocol/server-filesystem\", \".\"]\nisolation = \"sandbox\"" },
    Known { name: "projects", form: "tables `[projects.NAME]`", default: "no bounds",
        about: "What all runs of a project may spend together. A workflow says its project by `project_id`, else it is `default`.",
        example: "[projects.default]\nbudget_usd = 20\nper = \"day\"" },
];

/// Of a table `[projects.NAME]`.
#[rustfmt::skip]
pub(crate) const PROJECT_SETTINGS: [Known; 4] = [
    Known { name: "budget_usd", form: "dollars above 0", default: "no bound", about: "How much the project's runs may cost.",
        example: "[projects.default]\nbudget_usd = 0.5" },
    Known { name: "budget_tokens", form: "a whole number above 0", default: "no bound",
        about: "How many model tokens the project's runs may use.", example: "[projects.default]\nbudget_tokens = 1000000" },
    Known { name: "per", form: "`\"day\"` or `\"month\"`, of UTC", default: "for ever",
        about: "How long the budget has to last.", example: "[projects.default]\nbudget_usd = 20\nper = \"month\"" },
    Known { name: "mcp", form: "a list of names", default: "any",
        about: "The MCP servers that the project's runs may use, and no others.", example: "[projects.default]\nmcp = [\"files\"]" },
];

/// Variables that are read beside those of the settings.
pub(crate) const VARIABLES: [(&str, &str, &str); 7] = [
    (
        "WONDER_MCP_SERVER",
        "Set for programs that are MCP servers: by it they are found and ended should wonder be killed.",
        "",
    ),
    ("NO_COLOR", "If it is set to anything, nothing is coloured.", "NO_COLOR=1 wonder show last"),
    (
        "TERM",
        "With `dumb`, or without it, nothing is coloured or redrawn.",
        "TERM=dumb wonder run hello.yaml",
    ),
    (
        "USER",
        "Who answers, cancels and resumes, unless `--by` says it.",
        "USER=ann wonder answer last ok=true",
    ),
    ("HOME", "Your home directory: `~` in settings.", ""),
    ("XDG_CONFIG_HOME", "Where `wonder/config.toml` is, if not in `~/.config`.", ""),
    ("XDG_DATA_HOME", "Where the directory `wonder` with the runs is, if not in `~/.local/share`.", ""),
];

fn keys() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().map(|setting| setting.name)
}

/// `WONDER_HOME`
pub(crate) fn variable_of(setting: &str) -> String {
    format!("WONDER_{}", setting.to_ascii_uppercase())
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    /// Where runs are kept.
    pub home: PathBuf,
    /// Where artifacts are kept, if not in the home.
    pub artifact_store: Option<PathBuf>,
    /// Acknowledged means on the disk; if not, a power loss may take the last moments.
    pub durable: bool,
    pub tasks_max: usize,
    pub queue_timeout_ms: Option<u64>,
    /// How long a command may take to end when told to; the worker's own if absent.
    pub grace_ms: Option<u64>,
    /// The host's own if absent.
    pub storage_patience_ms: Option<u64>,
    pub allow_hosts: Vec<String>,
    pub sandbox_read: Vec<PathBuf>,
    /// Variables that commands are given though they are not ordinary.
    pub pass_env: Vec<String>,
    pub secrets_file: Option<PathBuf>,
    /// What each project may spend.
    pub projects: BTreeMap<String, ProjectBudget>,
    /// The MCP servers that each project may use; any, if it is not here.
    pub mcp_allowed: BTreeMap<String, Vec<String>>,
    /// MCP servers that workflows need only name.
    pub mcp_servers: BTreeMap<Name, McpServer>,
}

/// Where settings come from, so that tests can bring their own.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    pub environment: BTreeMap<String, String>,
    /// Variables whose values are no UTF-8 text: a path may be one.
    pub not_text: BTreeMap<String, OsString>,
    pub workdir: PathBuf,
}

impl Surroundings {
    pub(crate) fn real() -> Surroundings {
        let (mut environment, mut not_text) = (BTreeMap::new(), BTreeMap::new());
        for (name, value) in std::env::vars_os() {
            let Ok(name) = name.into_string() else { continue };
            match value.into_string() {
                Ok(text) => environment.insert(name, text).map(OsString::from),
                Err(value) => not_text.insert(name, value),
            };
        }
        Surroundings { environment, not_text, workdir: std::env::current_dir().unwrap_or_default() }
    }

    pub(crate) fn path_variable(&self, name: &str) -> Option<PathBuf> {
        self.variable(name).map(PathBuf::from).or_else(|| self.not_text.get(name).map(PathBuf::from))
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn person(&self) -> Option<PathBuf> {
        self.path_variable("HOME")
    }

    /// A directory of the XDG kind: its variable, else its place below the home directory.
    fn xdg(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        let own = self.path_variable(variable).filter(|path| path.is_absolute());
        own.or_else(|| Some(self.person()?.join(below_home)))
    }
}

/// A setting as it was found.
struct Setting {
    value: Value,
    /// How to name the place in an error.
    place: String,
    /// What a relative path is relative to.
    base: PathBuf,
    /// What stands there if it is no UTF-8 text; a path may be that, and nothing else.
    not_text: Option<OsString>,
}

impl Setting {
    fn path(&self, text: &str, around: &Surroundings) -> PathBuf {
        let below_home = text.strip_prefix("~/").and_then(|rest| Some(around.person()?.join(rest)));
        below_home.unwrap_or_else(|| self.base.join(text))
    }
}

impl Config {
    pub(crate) fn read(home_flag: Option<&Path>, around: &Surroundings) -> Result<Config, Fault> {
        let settings = Settings::read(around)?;
        let home = match home_flag {
            Some(flag) => around.workdir.join(flag),
            None => match settings.path("home", around)? {
                Some(path) => path,
                None => default_home(around)?,
            },
        };
        let tasks_max = settings.count("max_parallel_tasks")?.unwrap_or(TASKS_MAX);
        let (projects, mcp_allowed) = settings.projects()?;
        Ok(Config {
            home,
            durable: settings.durable()?,
            tasks_max,
            queue_timeout_ms: settings.duration("queue_timeout")?,
            grace_ms: settings.duration("grace")?,
            storage_patience_ms: settings.duration("storage_patience")?,
            allow_hosts: settings.list("allow_hosts")?,
            artifact_store: artifact_store(&settings, around)?,
            sandbox_read: settings.paths("sandbox_read", around)?,
            pass_env: settings.list("pass_env")?,
            secrets_file: settings.path("secrets_file", around)?,
            projects,
            mcp_allowed,
            mcp_servers: settings.mcp_servers()?,
        })
    }
}

fn artifact_store(settings: &Settings, around: &Surroundings) -> Result<Option<PathBuf>, Fault> {
    let path = settings.path("artifact_store", around)?;
    match path.as_ref().filter(|path| path.to_string_lossy().contains(":/")) {
        None => Ok(path),
        Some(url) => {
            let message = format!("artifact_store: {} is no path of a directory", url.display());
            Err(Fault::usage(message)
                .help("this version keeps artifacts in a directory; mount what is elsewhere"))
        }
    }
}

fn default_home(around: &Surroundings) -> Result<PathBuf, Fault> {
    let data = around.xdg("XDG_DATA_HOME", ".local/share").map(|data| data.join("wonder"));
    data.ok_or_else(|| {
        Fault::usage("there is no home directory to keep runs in").help("set WONDER_HOME, or give --home DIR")
    })
}

struct Settings(BTreeMap<&'static str, Setting>);

impl Settings {
    fn read(around: &Surroundings) -> Result<Settings, Fault> {
        let mut found = BTreeMap::new();
        let personal = around.xdg("XDG_CONFIG_HOME", ".config").map(|dir| dir.join("wonder/config.toml"));
        let local = around.workdir.join("wonder.toml");
        for path in personal.into_iter().chain([local]) {
            found.extend(file(&path)?);
        }
        for key in keys() {
            let variable = variable_of(key);
            if let Some(text) = around.variable(&variable) {
                let (place, base) = (format!("${variable}"), around.workdir.clone());
                let value = Value::String(text.to_owned());
                found.insert(key, Setting { value, place, base, not_text: None });
            } else if let Some(other) = around.not_text.get(&variable) {
                let value = Value::String(other.to_string_lossy().into_owned());
                let (place, base) = (format!("${variable}"), around.workdir.clone());
                found.insert(key, Setting { value, place, base, not_text: Some(other.clone()) });
            }
        }
        Ok(Settings(found))
    }

    fn text(&self, key: &str) -> Result<Option<&str>, Fault> {
        match self.0.get(key) {
            None => Ok(None),
            Some(Setting { value: Value::String(text), .. }) => Ok(Some(text)),
            Some(other) => Err(wrong(other, "a text in quotes")),
        }
    }

    fn path(&self, key: &str, around: &Surroundings) -> Result<Option<PathBuf>, Fault> {
        let Some(setting) = self.0.get(key) else { return Ok(None) };
        match (&setting.not_text, &setting.value) {
            (Some(path), _) => Ok(Some(setting.base.join(path))),
            (None, Value::String(text)) => Ok(Some(setting.path(text, around))),
            (None, _) => Err(wrong(setting, "a text in quotes")),
        }
    }

    fn paths(&self, key: &str, around: &Surroundings) -> Result<Vec<PathBuf>, Fault> {
        let texts = self.list(key)?;
        let Some(setting) = self.0.get(key) else { return Ok(Vec::new()) };
        Ok(texts.iter().map(|text| setting.path(text, around)).collect())
    }

    fn durable(&self) -> Result<bool, Fault> {
        match self.text("durability")? {
            None | Some("full") => Ok(true),
            Some("normal") => Ok(false),
            Some(_) => Err(wrong(&self.0["durability"], "\"full\" or \"normal\"")),
        }
    }

    fn count(&self, key: &str) -> Result<Option<usize>, Fault> {
        let Some(setting) = self.0.get(key) else { return Ok(None) };
        let number = match &setting.value {
            Value::Integer(number) => usize::try_from(*number).ok(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        number.filter(|number| *number > 0).map(Some).ok_or_else(|| wrong(setting, "a whole number above 0"))
    }

    fn duration(&self, key: &str) -> Result<Option<u64>, Fault> {
        let Some(setting) = self.0.get(key) else { return Ok(None) };
        let bare = |text: &str| text.trim().parse::<u64>().is_ok();
        let ms = match &setting.value {
            Value::String(text) if !bare(text) => parse_duration_ms(text),
            _ => None,
        };
        ms.map(Some).ok_or_else(|| wrong(setting, "a duration with its unit, such as \"30s\" or \"5m\""))
    }

    /// `[projects.NAME]` with `budget_usd`, `budget_tokens` and `per`, and with `mcp`.
    fn projects(&self) -> Result<Projects, Fault> {
        let Some(setting) = self.0.get("projects") else { return Ok(Projects::default()) };
        let Value::Table(projects) = &setting.value else {
            return Err(wrong(setting, "a table such as [projects.default]"));
        };
        let (mut budgets, mut servers) = Projects::default();
        for (name, value) in projects {
            let (budget, allowed) = project(setting, name, value)?;
            budgets.insert(name.clone(), budget);
            servers.extend(allowed.map(|allowed| (name.clone(), allowed)));
        }
        Ok((budgets, servers))
    }

    /// `[mcp_servers.NAME]`: read as a workflow file is.
    fn mcp_servers(&self) -> Result<BTreeMap<Name, McpServer>, Fault> {
        let Some(setting) = self.0.get("mcp_servers") else { return Ok(BTreeMap::new()) };
        let Value::Table(servers) = &setting.value else {
            return Err(wrong(setting, "a table such as [mcp_servers.files]"));
        };
        let servers = serde_json::to_string(servers).unwrap_or_default();
        wonder_spec::read_mcp_servers(&servers).map_err(|problem| {
            let fault = Fault::usage(format!("{}: {}", setting.place, problem.message));
            fault.help(
                problem.help.unwrap_or_else(|| "`wonder explain mcp_servers` shows the keys".to_owned()),
            )
        })
    }

    /// From the environment: with commas between.
    fn list(&self, key: &str) -> Result<Vec<String>, Fault> {
        let Some(setting) = self.0.get(key) else { return Ok(Vec::new()) };
        let texts = match &setting.value {
            _ if setting.not_text.is_some() => None,
            Value::String(text) => {
                let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
                Some(parts.map(str::to_owned).collect())
            }
            Value::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
            _ => None,
        };
        texts.ok_or_else(|| wrong(setting, "a list of texts"))
    }
}

/// What projects may spend, and which MCP servers they may use.
type Projects = (BTreeMap<String, ProjectBudget>, BTreeMap<String, Vec<String>>);

fn project(
    setting: &Setting,
    name: &str,
    value: &Value,
) -> Result<(ProjectBudget, Option<Vec<String>>), Fault> {
    let at = |key: &str, value: &Value| Setting {
        value: value.clone(),
        place: format!("{}.{name}{key}", setting.place),
        base: PathBuf::new(),
        not_text: None,
    };
    let Value::Table(table) = value else { return Err(wrong(&at("", value), "a table")) };
    let (mut budget, mut servers) = (ProjectBudget::default(), None);
    for (key, value) in table {
        let place = at(&format!(".{key}"), value);
        match (key.as_str(), value) {
            ("budget_usd", Value::Integer(usd)) if *usd > 0 => budget.usd_micros = *usd as u64 * 1_000_000,
            ("budget_usd", Value::Float(usd)) if *usd > 0.0 && *usd < 1e12 => {
                budget.usd_micros = (usd * 1_000_000.0).round() as u64;
            }
            ("budget_usd", _) => return Err(wrong(&place, "dollars above 0, such as 20 or 0.5")),
            ("budget_tokens", Value::Integer(tokens)) if *tokens > 0 => budget.tokens = *tokens as u64,
            ("budget_tokens", _) => return Err(wrong(&place, "a whole number above 0")),
            ("per", Value::String(per)) if per == "day" => budget.per = Period::Day,
            ("per", Value::String(per)) if per == "month" => budget.per = Period::Month,
            ("per", _) => {
                return Err(wrong(&place, "\"day\" or \"month\"; without it the budget is for ever"));
            }
            ("mcp", value) => {
                let names =
                    value.as_array().map(|list| list.iter().map(|name| name.as_str().map(str::to_owned)));
                let names = names.and_then(Iterator::collect::<Option<Vec<String>>>);
                servers = Some(names.ok_or_else(|| wrong(&place, "a list of names of MCP servers"))?);
            }
            _ => {
                let message = format!("{}: there is no such setting", place.place);
                let known = PROJECT_SETTINGS.map(|setting| setting.name).join(", ");
                return Err(Fault::usage(message).help(format!("a project has {known}")));
            }
        }
    }
    Ok((budget, servers))
}

fn wrong(setting: &Setting, expected: &str) -> Fault {
    Fault::usage(format!("{}: expected {expected}, found {}", setting.place, shown(&setting.value)))
}

/// As it stands in a file, as far as one line holds it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{text}\""),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(flag) => flag.to_string(),
        Value::Datetime(time) => time.to_string(),
        Value::Array(_) => "a list".to_owned(),
        Value::Table(_) => "a table".to_owned(),
    }
}

/// The settings of a file; none if it is not there.
fn file(path: &Path) -> Result<Vec<(&'static str, Setting)>, Fault> {
    let name = path.display();
    let text = match reading::file(path, FILE_BYTES_MAX) {
        Ok(Bounded::Whole(text)) => text,
        Ok(Bounded::TooLong) => {
            let message =
                format!("{name}: it has more than {FILE_BYTES_MAX} bytes, the most that are read of it");
            return Err(Fault::usage(message));
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Fault::usage(format!("{name}: cannot read the settings: {error}"))),
    };
    let table: Table = toml::from_str(&text)
        .map_err(|error| Fault::usage(format!("{name}: {}", error.to_string().trim_end())))?;
    let base = path.parent().unwrap_or(Path::new("")).to_owned();
    table
        .into_iter()
        .map(|(key, value)| {
            let known = keys().find(|known| *known == key).ok_or_else(|| unknown(path, &key))?;
            let place = format!("{name}: {key}");
            Ok((known, Setting { value, place, base: base.clone(), not_text: None }))
        })
        .collect()
}

fn unknown(path: &Path, key: &str) -> Fault {
    let help = match nearest(key, keys()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known keys: {}", keys().collect::<Vec<_>>().join(", ")),
    };
    Fault::usage(format!("{}: there is no setting `{key}`", path.display())).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::paint::Paint;

    fn around(dir: &Path, variables: &[(&str, &str)]) -> Surroundings {
        let home = ("HOME", dir.join("me").to_string_lossy().into_owned());
        let own = variables.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let environment =
            std::iter::once(home).chain(own).map(|(name, value)| (name.to_owned(), value)).collect();
        Surroundings { environment, not_text: BTreeMap::new(), workdir: dir.join("desk") }
    }

    fn write(path: PathBuf, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn told(dir: &Path, result: Result<Config, Fault>) -> String {
        let text = result.unwrap_err().render(Paint::NONE);
        text.as_str().replace(&*dir.to_string_lossy(), "DIR")
    }

    #[test]
    fn flags_go_before_environment_before_the_directory_before_the_person() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let plain = Config::read(None, &around(dir, &[])).unwrap();
        assert_eq!(plain.home, dir.join("me/.local/share/wonder"));
        assert_eq!((plain.tasks_max, plain.durable), (64, true));

        write(
            dir.join("me/.config/wonder/config.toml"),
            "home = \"~/runs\"\ndurability = \"normal\"\ngrace = \"3s\"\n",
        );
        write(dir.join("desk/wonder.toml"), "home = \"here\"\nallow_hosts = [\"db:5432\"]\n");
        let both = Config::read(None, &around(dir, &[])).unwrap();
        assert_eq!(both.home, dir.join("desk/here"));
        assert_eq!((both.durable, both.grace_ms), (false, Some(3_000)));
        assert_eq!(both.allow_hosts, ["db:5432"]);

        write(dir.join("desk/wonder.toml"), "[projects.lab]\nbudget_usd = 0.5\nper = \"month\"\n");
        let lab = ProjectBudget { usd_micros: 500_000, tokens: 0, per: Period::Month };
        let budgets = Config::read(None, &around(dir, &[])).unwrap().projects;
        assert_eq!(budgets, BTreeMap::from([("lab".to_owned(), lab)]));

        let told = around(dir, &[("WONDER_HOME", "there"), ("WONDER_MAX_PARALLEL_TASKS", "2")]);
        let environment = Config::read(None, &told).unwrap();
        assert_eq!((environment.home, environment.tasks_max), (dir.join("desk/there"), 2));
        assert_eq!(Config::read(Some(Path::new("/flag")), &told).unwrap().home, Path::new("/flag"));
    }

    #[test]
    fn a_wrong_setting_names_its_file_and_what_was_meant() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let case = |text: &str, variables: &[(&str, &str)]| {
            write(dir.join("desk/wonder.toml"), text);
            told(dir, Config::read(None, &around(dir, variables)))
        };
        insta::assert_snapshot!(case("max_paralel_tasks = 2\n", &[]), @"
        error: DIR/desk/wonder.toml: there is no setting `max_paralel_tasks`
        help: did you mean `max_parallel_tasks`?
        ");
        insta::assert_snapshot!(case("grace = 5\n", &[]), @r#"error: DIR/desk/wonder.toml: grace: expected a duration with its unit, such as "30s" or "5m", found 5"#);
        insta::assert_snapshot!(case("durability = \"fast\"\n", &[]), @r#"error: DIR/desk/wonder.toml: durability: expected "full" or "normal", found "fast""#);
        insta::assert_snapshot!(case("", &[("WONDER_MAX_PARALLEL_TASKS", "many")]), @r#"error: $WONDER_MAX_PARALLEL_TASKS: expected a whole number above 0, found "many""#);
        insta::assert_snapshot!(case("[projects.default]\nbudget_usd = \"much\"\n", &[]), @r#"error: DIR/desk/wonder.toml: projects.default.budget_usd: expected dollars above 0, such as 20 or 0.5, found "much""#);
        insta::assert_snapshot!(case("[projects.default]\nper = \"year\"\n", &[]), @r#"error: DIR/desk/wonder.toml: projects.default.per: expected "day" or "month"; without it the budget is for ever, found "year""#);
        insta::assert_snapshot!(case("[projects.default]\nbudget = 3\n", &[]), @"
        error: DIR/desk/wonder.toml: projects.default.budget: there is no such setting
        help: a project has budget_usd, budget_tokens, per, mcp
        ");
        insta::assert_snapshot!(case("home = [", &[]), @"
        error: DIR/desk/wonder.toml: TOML parse error at line 1, column 9
            |
          1 | home = [
            |         ^
          unclosed array, expected `]`
        ");
    }

    /// Each example is a file that is read, and each default is what holds without it.
    #[test]
    fn every_setting_can_be_written_as_its_example_says() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        for setting in SETTINGS.iter().chain(&PROJECT_SETTINGS) {
            write(dir.join("desk/wonder.toml"), &format!("{}\n", setting.example));
            assert!(setting.example.contains(setting.name), "{}", setting.name);
            let read = Config::read(None, &around(dir, &[]));
            assert!(read.is_ok(), "{}: {:?}", setting.example, read.err());
            let changed = read.unwrap() != plain(dir);
            assert!(changed, "{} changes nothing", setting.example);
        }
        let (plain, shown) =
            (plain(dir), |name: &str| SETTINGS.iter().find(|s| s.name == name).unwrap().default);
        assert_eq!(shown("max_parallel_tasks"), plain.tasks_max.to_string());
        assert_eq!((shown("durability"), plain.durable), ("`full`", true));
        let grace = wonder_actions::Settings::default().grace_ms;
        assert_eq!(parse_duration_ms(shown("grace").trim_matches('`')), Some(grace));
        let patience = parse_duration_ms(shown("storage_patience").trim_matches('`'));
        assert_eq!(patience, Some(wonder_host::STORAGE_PATIENCE_MS));
    }

    fn plain(dir: &Path) -> Config {
        write(dir.join("desk/wonder.toml"), "");
        Config::read(None, &around(dir, &[])).unwrap()
    }
}
