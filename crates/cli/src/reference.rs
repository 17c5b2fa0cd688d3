//! Everything that can be looked up, in one list: what the format and its language know, and what only this
//! program knows, which is its settings and the variables it reads and gives. The same list is `wonder explain` and
//! `docs/reference/`.

use std::collections::BTreeSet;

use wonder_core::foreign::FOREIGN;
use wonder_core::problem::nearest;
use wonder_spec::reference::{Group, Topic, topics};

use crate::config::{Known, PROJECT_SETTINGS, SETTINGS, VARIABLES, variable_of};

pub(crate) fn all() -> Vec<Topic> {
    let mut all = topics();
    all.extend(SETTINGS.iter().map(|setting| of_setting(setting, "")));
    all.extend(PROJECT_SETTINGS.iter().map(|setting| of_setting(setting, "projects")));
    all.extend(variables());
    all
}

fn of_setting(setting: &Known, inside: &str) -> Topic {
    let mut facts = vec![format!("Form: {}.", setting.form), format!("Default: {}.", setting.default)];
    if inside.is_empty() && !["projects", "mcp_servers"].contains(&setting.name) {
        facts.push(format!("As a variable: `{}`.", variable_of(setting.name)));
    }
    let mut topic = Topic::of_program(Group::Setting, setting.name, setting.about, facts, setting.example);
    topic.place = match inside {
        "" => "a setting: a key of `wonder.toml` or `~/.config/wonder/config.toml`".to_owned(),
        _ => "a setting of a project: a key of `[projects.NAME]`".to_owned(),
    };
    if !inside.is_empty() {
        topic.inside = vec![inside.to_owned()];
    }
    topic
}

fn variables() -> Vec<Topic> {
    let variable = |name: &str, about: &str, place: &str, line: &str| {
        let mut topic = Topic::of_program(Group::Variable, name, about, Vec::new(), line);
        topic.place = place.to_owned();
        topic
    };
    let settings = SETTINGS
        .iter()
        .filter(|setting| !["projects", "mcp_servers"].contains(&setting.name))
        .map(|setting| {
            let about = format!("The setting `{}`: {}", setting.name, setting.about);
            variable(
                &variable_of(setting.name),
                &about,
                "a variable that goes before the settings of files",
                "",
            )
        });
    let read =
        VARIABLES.iter().map(|(name, about, line)| variable(name, about, "a variable that is read", line));
    let given = wonder_actions::COMMAND_VARIABLES.iter().map(|(name, about)| {
        let line = format!("shell: 'echo \"${name}\"'");
        variable(name, about, "a variable that every command of a `shell` action is given", &line)
    });
    settings.chain(read).chain(given).collect()
}

/// The meanings of what was asked for, as it may be written: `timeout`, `node.timeout`, `timeout_ms`, `$WONDER_HOME`.
pub(crate) fn find<'t>(topics: &'t [Topic], asked: &str) -> Vec<&'t Topic> {
    let asked = asked.trim().trim_matches(['`', '$', ':', '|', ' ']).trim_end_matches("()");
    let named = |name: &str| -> Vec<&'t Topic> {
        let exact: Vec<&Topic> = topics.iter().filter(|topic| topic.name == name).collect();
        match exact.is_empty() {
            true => topics.iter().filter(|topic| topic.name.eq_ignore_ascii_case(name)).collect(),
            false => exact,
        }
    };
    let found = named(asked);
    if !found.is_empty() {
        return found;
    }
    if let Some((place, name)) = asked.rsplit_once('.') {
        let inside = |topic: &&Topic| topic.inside.iter().any(|known| known == place);
        return named(name).into_iter().filter(inside).collect();
    }
    let is_duration =
        |topic: &&Topic| topic.group == Group::Key && topic.facts.iter().any(|f| f.contains("_ms"));
    asked
        .strip_suffix("_ms")
        .map_or(Vec::new(), |short| named(short).into_iter().filter(is_duration).collect())
}

/// What was probably meant, as the end of a sentence: a word of other tools, or a slip of one of ours.
pub(crate) fn near(topics: &[Topic], asked: &str) -> Option<String> {
    let asked = asked.trim();
    if let Some(foreign) = FOREIGN.iter().find(|known| known.words.contains(&asked)) {
        return Some(format!("here {}", foreign.say));
    }
    let slip = |near: &str| format!("did you mean `{near}`?");
    if let Some((place, name)) = asked.rsplit_once('.') {
        let places: BTreeSet<&str> =
            topics.iter().flat_map(|topic| &topic.inside).map(String::as_str).collect();
        let place = places.get(place).copied().or_else(|| nearest(place, places));
        let inside =
            |topic: &&Topic| place.is_some_and(|place| topic.inside.iter().any(|known| known == place));
        let known = topics.iter().filter(inside).map(|topic| topic.name.as_str());
        let near = nearest(name, known).map(|name| format!("{}.{name}", place.unwrap_or_default()));
        return near.as_deref().or_else(|| nearest(name, names(topics))).map(slip);
    }
    nearest(asked, names(topics)).map(slip)
}

fn names(topics: &[Topic]) -> impl Iterator<Item = &str> {
    let codes = wonder_spec::explained().iter().map(|(code, _)| *code);
    topics.iter().map(|topic| topic.name.as_str()).chain(codes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use wonder_spec::reference::Sample;

    use super::*;

    const HEAD: &str = "Made from the tables of the program by `WONDER_BLESS=1 cargo test -p wonder-cli reference`; \
                        `wonder explain TOPIC` shows the same on a terminal.";

    /// The pages of `docs/reference/`, by name.
    fn pages() -> BTreeMap<String, String> {
        let mut pages: BTreeMap<String, String> = BTreeMap::new();
        let mut index = format!("# Reference\n\n{HEAD}\n");
        for group in Group::ALL {
            let all = all();
            let topics: Vec<&Topic> = all.iter().filter(|topic| topic.group == group).collect();
            let page = pages.entry(group.page().to_owned()).or_default();
            let (title, link) = (group.title(), group.page());
            page.push_str(&format!("{}# {title}\n\n{HEAD}\n", if page.is_empty() { "" } else { "\n" }));
            index.push_str(&format!("\n## [{title}]({link}.md)\n\n"));
            let mut names: Vec<String> = topics.iter().map(|topic| format!("`{}`", topic.name)).collect();
            names.dedup();
            index.push_str(&format!("{}\n", names.join(" ")));
            topics.iter().for_each(|topic| page.push_str(&section(topic)));
        }
        pages.insert("README".to_owned(), index);
        pages
    }

    /// Keys and words say where their example is; an object or an action shows its own.
    fn section(topic: &Topic) -> String {
        let page = match &topic.sample {
            Sample::File(example) if matches!(topic.group, Group::Key | Group::Word) => {
                let mut bare = (*topic).clone();
                bare.sample = Sample::None;
                let (name, file) = (example.name, example.file());
                format!("{}\nExample: [{name}.yaml](../../{file})\n", bare.page())
            }
            _ => topic.page(),
        };
        format!("\n#{page}")
    }

    #[test]
    fn the_reference_is_what_the_tables_say() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
        let pages = pages();
        if std::env::var_os("WONDER_BLESS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            pages
                .iter()
                .for_each(|(name, text)| std::fs::write(folder.join(format!("{name}.md")), text).unwrap());
        }
        let on_disk: BTreeMap<String, String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| {
                let name = path.file_stem().unwrap().to_string_lossy().into_owned();
                (name, std::fs::read_to_string(&path).unwrap())
            })
            .collect();
        assert_eq!(on_disk.keys().collect::<Vec<_>>(), pages.keys().collect::<Vec<_>>());
        for (name, text) in &pages {
            assert!(
                on_disk[name] == *text,
                "docs/reference/{name}.md is behind: WONDER_BLESS=1 cargo test -p wonder-cli reference"
            );
        }
    }

    /// A table of Markdown between `<!-- NAME -->` and `<!-- end -->`.
    fn with_table(page: &str, name: &str, rows: &[Vec<String>]) -> String {
        let mark = format!("<!-- {name} -->\n");
        let (before, rest) = page.split_once(&mark).unwrap_or_else(|| panic!("no table of {name}"));
        let (_, after) = rest.split_once("<!-- end -->").unwrap();
        let mut table = String::new();
        for (at, row) in rows.iter().enumerate() {
            table.push_str(&format!("| {} |\n", row.join(" | ")));
            if at == 0 {
                table.push_str(&format!("|{}\n", " --- |".repeat(row.len())));
            }
        }
        format!("{before}{mark}\n{table}\n<!-- end -->{after}")
    }

    fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Vec<Vec<String>> {
        std::iter::once(head.iter().map(|cell| (*cell).to_owned()).collect()).chain(rows).collect()
    }

    #[test]
    fn the_page_about_configuration_has_the_programs_own_tables() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
        let page = std::fs::read_to_string(&path).unwrap();
        let settings = |all: &[Known]| {
            let rows = all.iter().map(|known| {
                vec![
                    format!("`{}`", known.name),
                    known.about.to_owned(),
                    known.form.to_owned(),
                    known.default.to_owned(),
                ]
            });
            table(&["key", "what it is", "value", "default"], rows.collect::<Vec<_>>().into_iter())
        };
        let variables = |group: Vec<(&str, &str)>| {
            let rows: Vec<_> =
                group.iter().map(|(name, about)| vec![format!("`{name}`"), (*about).to_owned()]).collect();
            table(&["variable", "what it is"], rows.into_iter())
        };
        let read = VARIABLES.iter().map(|(name, about, _)| (*name, *about)).collect();
        let mut now = with_table(&page, "settings", &settings(&SETTINGS));
        now = with_table(&now, "project settings", &settings(&PROJECT_SETTINGS));
        now = with_table(&now, "variables", &variables(read));
        now = with_table(&now, "command variables", &variables(wonder_actions::COMMAND_VARIABLES.to_vec()));
        if std::env::var_os("WONDER_BLESS").is_some() {
            std::fs::write(&path, &now).unwrap();
        }
        assert!(
            std::fs::read_to_string(&path).unwrap() == now,
            "docs/configuration.md is behind: WONDER_BLESS=1"
        );
    }

    #[test]
    fn every_topic_is_found_by_its_name_and_by_its_address() {
        let all = all();
        for topic in &all {
            let found = find(&all, &topic.name);
            assert!(found.iter().any(|found| found.about == topic.about), "{}", topic.name);
            let address = topic.address();
            let there = find(&all, &address);
            assert!(there.len() == 1 && there[0].about == topic.about, "{address} is {} topics", there.len());
        }
        let places = |asked: &str| find(&all, asked).len();
        assert!(places("timeout") > 4 && places("retry") > 3 && places("on_timeout") > 3 && places("to") > 1);
        assert_eq!((places("node.timeout"), places("nothing")), (1, 0));
        assert_eq!((places("root.error"), places("object.retry"), places("filter.map")), (1, 1, 1));
        assert_eq!((places("timeout_ms") > 4, places("name_ms")), (true, 0));
        assert_eq!((places("$WONDER_HOME"), places("size()"), places("`shell`")), (1, 1, 1));
    }

    /// Every variable that the program reads is in the table, or is there for tests only.
    #[test]
    fn every_variable_is_known() {
        const FOR_TESTS: [&str; 1] = ["WONDER_FAILPOINT"];
        let known: Vec<String> = variables().into_iter().map(|topic| topic.name).collect();
        let mut read = Vec::new();
        for folder in ["cli", "actions", "host"] {
            let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder).join("src")];
            while let Some(folder) = open.pop() {
                for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                    if path.is_dir() {
                        open.push(path);
                        continue;
                    }
                    let text = std::fs::read_to_string(&path).unwrap();
                    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                    let literals = code.split('"').skip(1).step_by(2);
                    read.extend(literals.filter(|name| is_ours(name)).map(str::to_owned));
                }
            }
        }
        assert!(read.len() > 3, "the sources were not understood: {read:?}");
        for name in read.iter().filter(|name| !FOR_TESTS.contains(&name.as_str())) {
            assert!(known.contains(name), "{name} is in no table");
        }
    }

    /// A whole name: not a beginning such as that of the values a command line is given.
    fn is_ours(text: &str) -> bool {
        text.starts_with("WONDER_")
            && !text.ends_with('_')
            && text.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    }
}
