//! What can stand where the cursor is: the words of a command line, walked along the verbs and flags of `args`. It
//! knows no run; for what only an engine knows it says what is wanted.

use clap::{Arg, Command};

/// What can stand there.
#[derive(Debug, PartialEq)]
pub(crate) enum Wanted {
    /// These: the word, and what it is.
    Words(Vec<(String, String)>),
    Runs,
    /// Open gates, and, if told so, runs as well.
    Gates {
        runs: bool,
    },
    /// Nodes of the run that the line names, if it names one.
    Nodes {
        run: Option<String>,
    },
    Workflows,
    /// What `explain` knows.
    Topics,
    /// A file: shells know them.
    Files,
}

/// `words`: those behind the program's name, the last being the one that is typed.
pub(crate) fn wanted(root: &Command, words: &[String]) -> Wanted {
    let (typed, before) =
        words.split_last().map_or(("", &[][..]), |(typed, before)| (typed.as_str(), before));
    let mut line = Line { verb: root, root, places: Vec::new(), flag: None };
    before.iter().for_each(|word| line.pass(word));
    if let Some(flag) = line.flag {
        return line.value(flag);
    }
    match typed.split_once('=') {
        Some((flag, _)) if flag.starts_with("--") => {
            line.find(flag).map_or(Wanted::Files, |found| prefixed(line.value(found), flag))
        }
        _ if typed.starts_with('-') => line.flags(),
        _ if line.verb.has_subcommands() => Wanted::Words(verbs(line.verb)),
        _ => line.place().map_or(Wanted::Files, |place| line.value(place)),
    }
}

/// As far as a line has been read.
struct Line<'c> {
    verb: &'c Command,
    root: &'c Command,
    /// What stands in the verb's places so far.
    places: Vec<String>,
    /// A flag that wants its value next.
    flag: Option<&'c Arg>,
}

impl<'c> Line<'c> {
    fn pass(&mut self, word: &str) {
        if self.flag.take().is_some() {
            return;
        }
        if word.starts_with('-') && word.len() > 1 {
            self.flag = self.find(word).filter(|flag| flag.get_action().takes_values());
        } else if let Some(verb) = self.verb.find_subcommand(word) {
            self.verb = verb;
        } else {
            self.places.push(word.to_owned());
        }
    }

    /// The flag of this name: the verb's, or one that is for all of them.
    fn find(&self, word: &str) -> Option<&'c Arg> {
        let named = |arg: &&Arg| match word.strip_prefix("--") {
            Some(long) => arg.get_long() == Some(long),
            None => arg.get_short().is_some_and(|short| word == format!("-{short}")),
        };
        self.all_flags().find(named)
    }

    fn all_flags(&self) -> impl Iterator<Item = &'c Arg> + use<'c> {
        let everywhere = self.root.get_arguments().filter(|arg| arg.is_global_set());
        let own = self.verb.get_arguments().filter(|arg| !arg.is_global_set());
        own.chain(everywhere).filter(|arg| !arg.is_positional() && !arg.is_hide_set())
    }

    fn flags(&self) -> Wanted {
        let flag = |arg: &Arg| Some((format!("--{}", arg.get_long()?), about(arg.get_help())));
        Wanted::Words(self.all_flags().filter_map(flag).collect())
    }

    /// The place that is filled next; the last takes all that follow if it takes several.
    fn place(&self) -> Option<&'c Arg> {
        let places: Vec<&Arg> = self.verb.get_positionals().collect();
        let several = |arg: &&&Arg| arg.get_num_args().is_some_and(|number| number.max_values() > 1);
        places.get(self.places.len()).or_else(|| places.last().filter(several)).copied()
    }

    fn value(&self, arg: &Arg) -> Wanted {
        let known = arg.get_possible_values();
        if !known.is_empty() {
            let word =
                |value: &clap::builder::PossibleValue| (value.get_name().to_owned(), about(value.get_help()));
            return Wanted::Words(known.iter().filter(|value| !value.is_hide_set()).map(word).collect());
        }
        match (self.verb.get_name(), arg.get_id().as_str()) {
            ("gates", "run") => Wanted::Gates { runs: true },
            (_, "gate") => Wanted::Gates { runs: false },
            (_, "run" | "parent") | ("list", "after") | ("graph", "what") => Wanted::Runs,
            (_, "node" | "from") => Wanted::Nodes { run: self.places.first().cloned() },
            (_, "workflow") => Wanted::Workflows,
            ("explain", _) => Wanted::Topics,
            _ => Wanted::Files,
        }
    }
}

/// Of `--flag=value`, with the flag before each.
fn prefixed(wanted: Wanted, flag: &str) -> Wanted {
    match wanted {
        Wanted::Words(words) => {
            Wanted::Words(words.into_iter().map(|(word, about)| (format!("{flag}={word}"), about)).collect())
        }
        other => other,
    }
}

/// Those that are for people.
fn verbs(command: &Command) -> Vec<(String, String)> {
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    shown.map(|verb| (verb.get_name().to_owned(), about(verb.get_about()))).collect()
}

fn about(help: Option<&clap::builder::StyledStr>) -> String {
    help.map(ToString::to_string).unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory;

    fn at(line: &str) -> Wanted {
        let mut root = Cli::command();
        root.build();
        wanted(&root, &line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    fn words(line: &str) -> Vec<String> {
        match at(line) {
            Wanted::Words(words) => words.into_iter().map(|(word, _)| word).collect(),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn each_place_of_a_line_wants_its_own() {
        assert!(words("").contains(&"resume".to_owned()));
        assert!(
            words("re").iter().all(|verb| !verb.starts_with("__")),
            "internal verbs are no words for people"
        );
        assert!(
            words("list --").contains(&"--label".to_owned())
                && words("list --").contains(&"--home".to_owned())
        );
        assert!(words("list --status ").contains(&"interrupted".to_owned()));
        assert!(words("list --status=").contains(&"--status=interrupted".to_owned()));
        assert_eq!(words("-o "), ["text", "json", "junit"]);
        assert_eq!(at("show "), Wanted::Runs);
        assert_eq!(at("show -o json 01"), Wanted::Runs);
        assert_eq!(at("status "), Wanted::Runs, "an alias is a verb");
        assert_eq!(at("answer "), Wanted::Gates { runs: false });
        assert_eq!(at("gates "), Wanted::Gates { runs: true });
        assert_eq!(at("logs 01AB --node "), Wanted::Nodes { run: Some("01AB".to_owned()) });
        assert_eq!(at("fork last --from "), Wanted::Nodes { run: Some("last".to_owned()) });
        assert_eq!(at("list --workflow "), Wanted::Workflows);
        assert_eq!(at("explain E0"), Wanted::Topics);
        assert_eq!(at("run "), Wanted::Files);
        assert_eq!(at("validate a.yaml b"), Wanted::Files);
    }
}
