//! `test`: plays the cases of `*.test.yaml` files and says what is not as expected. Nothing is performed, nothing is
//! stored, and no engine is needed.

use std::path::{Path, PathBuf};

use wonder_spec::cases::{Case, TestFile, rewritten};
use wonder_spec::{Diagnostics, FILE_BYTES_MAX};
use wonder_trial::{Played, Stage, edits};

use crate::args::{Format, TestArgs};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::reading::{self, Bounded};
use crate::session::Session;
use crate::sources::{For, read};
use crate::text::Text;
use crate::verbs::tape::Cassettes;
use crate::view::test as view;
use crate::view::words::count;

const ENDINGS: [&str; 2] = [".test.yaml", ".test.yml"];
/// Directories that hold other people's files, or none that were written by hand.
const LEFT_ALONE: [&str; 2] = ["target", "node_modules"];

/// A file of cases, and what came of them.
pub(crate) struct Tested {
    pub file: String,
    pub cases: Vec<(Case, Played)>,
    /// It could not be played.
    pub broken: Option<Fault>,
    /// Expectations that were rewritten.
    pub updated: usize,
}

pub(crate) fn test(args: &TestArgs, format: Format, session: &Session) -> Result<Exit, Fault> {
    let screen = &session.screen;
    let files = files_of(&args.paths)?;
    let mut all = Vec::new();
    for file in files {
        let mut tested = play_file(&file, args.filter.as_deref());
        if args.update && tested.broken.is_none() {
            update(&file, &mut tested)?;
        }
        if format == Format::Text {
            if let Some(fault) = &tested.broken {
                screen.fault(fault);
            }
            screen.print(&view::file(&tested, screen.out))?;
        }
        all.push(tested);
    }
    let played: usize = all.iter().map(|tested| tested.cases.len()).sum();
    if let Some(filter) = args.filter.as_deref().filter(|_| played == 0 && !all.iter().any(Tested::is_broken))
    {
        let message = format!("no case has {filter:?} in its name");
        return Err(Fault::usage(message).help("without --filter all are played"));
    }
    match format {
        Format::Json => screen.print_json(&view::json(&all))?,
        Format::Junit => screen.print(&Text::block(&view::junit(&all)))?,
        Format::Text => screen.say(view::summary(&all)),
    }
    Ok(match () {
        () if all.iter().any(Tested::is_broken) => Exit::Usage,
        () if all.iter().any(|tested| tested.failed() > 0) => Exit::Failed,
        () => Exit::Fine,
    })
}

impl Tested {
    pub(crate) fn failed(&self) -> usize {
        self.cases.iter().filter(|(_, played)| !played.problems.is_empty()).count()
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }
}

/// Everything that was asked for: files as they are named, and what lies below directories.
fn files_of(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Fault> {
    let here = [PathBuf::from(".")];
    let paths = if paths.is_empty() { &here[..] } else { paths };
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            below(path, &mut found).map_err(|error| {
                Fault::usage(format!("{}: cannot read the directory: {error}", path.display()))
            })?;
        } else {
            found.push(named(path)?);
        }
    }
    found.sort();
    found.dedup();
    if found.is_empty() {
        let places: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let message = format!("there is no `*.test.yaml` in {}", places.join(", "));
        return Err(Fault::usage(message).help("`wonder explain test` shows how to write one"));
    }
    Ok(found)
}

fn is_test(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    ENDINGS.iter().any(|ending| name.ends_with(ending) && name.len() > ending.len())
}

/// A file of cases, or that of a workflow.
fn named(path: &Path) -> Result<PathBuf, Fault> {
    if is_test(path) || !path.exists() && path.extension().is_none() {
        return Ok(path.to_owned());
    }
    let beside = ENDINGS.map(|ending| path.with_extension(&ending[1..]));
    let found = beside.iter().find(|path| path.exists()).cloned();
    found.ok_or_else(|| {
        let message = format!("{}: there is no {} beside it", path.display(), beside[0].display());
        Fault::usage(message).help("cases stand in a file of that name; `wonder explain test` shows how")
    })
}

fn below(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let name = entry.file_name().to_string_lossy().into_owned();
        if kind.is_dir() && !name.starts_with('.') && !LEFT_ALONE.contains(&name.as_str()) {
            below(&path, found)?;
        } else if !kind.is_dir() && is_test(&path) {
            found.push(path.strip_prefix(".").map(Path::to_owned).unwrap_or(path));
        }
    }
    Ok(())
}

fn play_file(path: &Path, filter: Option<&str>) -> Tested {
    let file = path.display().to_string();
    match played(path, &file, filter) {
        Ok(cases) => Tested { file, cases, broken: None, updated: 0 },
        Err(fault) => Tested { file, cases: Vec::new(), broken: Some(fault), updated: 0 },
    }
}

fn played(path: &Path, name: &str, filter: Option<&str>) -> Result<Vec<(Case, Played)>, Fault> {
    let file = TestFile::read(&text_of(path)?, name);
    let workflow = match &file.workflow {
        Some(written) => path.parent().unwrap_or(Path::new("")).join(written),
        None => beside(path),
    };
    if !workflow.is_file() {
        let why = format!("there is no file {}", workflow.display());
        return Err(definition(file.without_workflow(&why)));
    }
    let reading = read(std::slice::from_ref(&workflow), For::Look)?;
    let file = file.against(&reading.graphs).map_err(definition)?;
    let Some(stage) = Stage::of(&reading, file.start.as_ref()) else {
        return Err(crate::verbs::run::no_workflow(&workflow, &reading));
    };
    let wanted = |case: &Case| filter.is_none_or(|filter| case.name.contains(filter));
    let mut cassettes = Cassettes::default();
    let beside = path.parent().unwrap_or(Path::new(""));
    let play = |case: Case| {
        let recordings = case.cassette.as_ref().map(|written| cassettes.open(&beside.join(written)));
        let recordings = recordings.transpose().map_err(|fault| fault.in_case(name, &case.name))?;
        Ok((stage.play(&case, recordings), case))
    };
    let played = file.cases.into_iter().filter(wanted).map(play);
    played.map(|played| played.map(|(played, case)| (case, played))).collect()
}

fn definition(problems: Diagnostics) -> Fault {
    Fault::Definition(Box::new(problems))
}

/// The workflow of the same name.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    let [yaml, yml] = ["yaml", "yml"].map(|ending| path.with_file_name(format!("{stem}.{ending}")));
    if !yaml.exists() && yml.exists() { yml } else { yaml }
}

fn text_of(path: &Path) -> Result<String, Fault> {
    let why = match reading::file(path, FILE_BYTES_MAX) {
        Ok(Bounded::Whole(text)) => return Ok(text),
        Ok(Bounded::TooLong) => format!("it has more than {FILE_BYTES_MAX} bytes"),
        Err(error) => error.to_string(),
    };
    Err(Fault::usage(format!("{}: cannot read the file: {why}", path.display())))
}

/// Writes down what came out where something else was expected. Cases that could not be played as they are written
/// keep what they say.
fn update(path: &Path, tested: &mut Tested) -> Result<(), Fault> {
    let text = text_of(path)?;
    let order: Vec<String> = TestFile::read(&text, "").cases.into_iter().map(|case| case.name).collect();
    let mut changes = Vec::new();
    for (case, played) in &tested.cases {
        let at = order.iter().position(|name| *name == case.name).unwrap_or_default();
        if played.is_comparable() {
            changes.extend(edits(at, case, &played.actual));
        }
    }
    let Some(new) = rewritten(&text, &changes).filter(|new| *new != text) else { return Ok(()) };
    let unwritable =
        |error: std::io::Error| Fault::usage(format!("{}: cannot write: {error}", path.display()));
    // Whoever reads it meanwhile sees the old text or the new one.
    let beside = path.with_extension("yaml.new");
    std::fs::write(&beside, new).map_err(unwritable)?;
    std::fs::rename(&beside, path).map_err(unwritable)?;
    tested.updated = changes.len();
    Ok(())
}

/// `12 passed, 1 failed`
pub(crate) fn counted(all: &[Tested]) -> String {
    let failed: usize = all.iter().map(Tested::failed).sum();
    let played: usize = all.iter().map(|tested| tested.cases.len()).sum();
    let broken = all.iter().filter(|tested| tested.is_broken()).count();
    let updated: usize = all.iter().map(|tested| tested.updated).sum();
    let mut parts = vec![format!("{} passed", played - failed)];
    parts.extend((failed > 0).then(|| format!("{failed} failed")));
    parts.extend((broken > 0).then(|| format!("{} could not be read", count(broken as u64, "file"))));
    parts.extend((updated > 0).then(|| format!("{} rewritten", count(updated as u64, "expectation"))));
    parts.join(", ")
}
