//! `plan`: what a file's first workflow will do, without doing any of it. No engine is needed; if one has
//! past runs of a dag to tell of, they are heard, and if not, nothing is missed.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use wonder_actions::{Secrets, Worker};
use wonder_core::def::{Estimate, Implementation, Name};
use wonder_core::graph::Graph;
use wonder_core::limits::Limits;
use wonder_plan::{Around, Known, plan as planned};

use crate::args::PlanArgs;
use crate::config::Config;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::secrets::Found;
use crate::session::Session;
use crate::sources::{For, read};
use crate::verbs::look::look;
use crate::verbs::run::no_workflow;
use crate::view::plan::page;
use crate::view::words::{count, shell_word};

pub(crate) fn plan(args: &PlanArgs, session: &Session) -> Result<Exit, Fault> {
    let reading = read(&args.files, For::Look)?;
    let file = args.files.first().map_or(Path::new("-"), |file| file.as_path());
    let Some(graph) = reading.graphs.first() else { return Err(no_workflow(file, &reading)) };
    let around = Here::of(session)?;
    let known = Known {
        estimates: learnt(graph, session),
        prices: BTreeMap::new(),
        callable: reading.graphs.iter().map(|graph| (graph.name.clone(), &**graph)).collect(),
        limits: Limits::default(),
        around: &around,
    };
    let plan = planned(graph, &known);
    let screen = &session.screen;
    match screen.json {
        true => screen.print_json(&plan)?,
        false => screen.print(&page(&plan, screen.page()))?,
    }
    let file = file.to_string_lossy();
    if !reading.warnings.is_empty() {
        let warnings = count(reading.warnings.len() as u64, "warning");
        screen.say(format!("{warnings}: `wonder validate {}` shows them", shell_word(&file)));
    }
    if args.strict && !plan.missing.is_empty() {
        screen.say("something is missing, and --strict was asked for");
        return Ok(Exit::Usage);
    }
    Ok(Exit::Fine)
}

/// What past runs taught; only those of a dag are asked for, and who cannot tell is not pressed.
fn learnt(graph: &Graph, session: &Session) -> BTreeMap<Name, Estimate> {
    if !graph.is_dag() {
        return BTreeMap::new();
    }
    let workflow = graph.name.to_string();
    let told = session.block_on(look(session, async |engine| Ok(engine.learnt(workflow).await?)));
    told.unwrap_or_default()
}

/// What a run would find on this machine.
#[derive(Debug)]
struct Here {
    secrets: Found,
    path: PathBuf,
    worker: Worker,
}

impl Here {
    fn of(session: &Session) -> Result<Here, Fault> {
        // Where runs are kept is of no interest, so that a machine without a home directory will do.
        let config = Config::read(Some(Path::new(".")), &session.around)?;
        let secrets = Found::read(config.secrets_file.as_deref(), &session.around)?;
        let own = || session.around.path_variable("PATH");
        let path = secrets.dotenv.get("PATH").map(PathBuf::from).or_else(own).unwrap_or_default();
        Ok(Here { secrets, path, worker: Worker::new(wonder_actions::Settings::default()) })
    }
}

impl Around for Here {
    fn has_variable(&self, name: &str) -> bool {
        self.secrets.find(name).is_some_and(|value| !value.is_empty())
    }

    fn has_program(&self, name: &str) -> bool {
        let starts = |file: &Path| {
            file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        };
        std::env::split_paths(&self.path).any(|folder| starts(&folder.join(name)))
    }

    fn can_perform(&self, implementation: &Implementation) -> bool {
        self.worker.can_perform(implementation)
    }
}
