//! `explain`: the reference, topic by topic, and the page of each error code. It needs no engine and no settings.

use clap::CommandFactory;
use serde_json::{Value as Json, json};
use wonder_engine::{EngineError, ErrorCode};
use wonder_spec::reference::{Group, Sample, Topic};

use crate::args::{Cli, ExplainArgs};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::reference;
use crate::screen::Screen;
use crate::text::{Text, text};
use crate::view::words::shell_word;

/// How wide a list of names gets where nobody says how wide the screen is.
const WIDTH: usize = 100;

pub(crate) fn explain(args: &ExplainArgs, screen: &Screen) -> Result<Exit, Fault> {
    let topics = reference::all();
    let asked = args.topic.as_deref().map(str::trim).filter(|asked| !asked.is_empty());
    let Some(asked) = asked else { return list(&topics, screen) };
    let found = reference::find(&topics, asked);
    if args.example {
        return example(asked, &found, screen);
    }
    if found.is_empty() {
        return code(asked, &topics, screen);
    }
    if screen.json {
        screen.print_json(&found.iter().map(|topic| as_json(topic)).collect::<Vec<_>>())?;
        return Ok(Exit::Fine);
    }
    screen.print(&Text::block(&match found.as_slice() {
        [one] => one.page(),
        several => meanings(asked, several),
    }))?;
    Ok(Exit::Fine)
}

/// Each meaning with its place, and the line of its example where it stands.
fn meanings(asked: &str, topics: &[&Topic]) -> String {
    let mut text = format!("`{}` has {} meanings, by where it stands.\n", asked.trim(), topics.len());
    for topic in topics {
        let mut bare = (*topic).clone();
        bare.sample = Sample::None;
        text.push_str(&format!("\n{}", bare.page()));
        match &topic.sample {
            Sample::None => {}
            Sample::File(example) => {
                let line = line_with(topic, example.text).trim_start();
                text.push_str(&format!(
                    "\n    {line}\n\n`wonder explain {}` has the whole example.\n",
                    topic.address()
                ));
            }
            Sample::Line(line, _) => text.push_str(&format!("\n    {line}\n")),
        }
    }
    text
}

/// The line where it stands: a key before a colon, a word behind its key, a root before a dot.
fn line_with<'e>(topic: &Topic, example: &'e str) -> &'e str {
    let mark = match (topic.group, topic.inside.first().and_then(|place| place.rsplit_once('.'))) {
        (Group::Word, Some((_, key))) => format!("{key}:"),
        (Group::Root, _) => format!("{}.", topic.name),
        _ => format!("{}:", topic.name),
    };
    let lines = || example.lines().filter(|line| !line.starts_with('#') && line.contains(&topic.name));
    let exact = lines().find(|line| line.contains(&mark));
    exact.or_else(|| lines().next()).unwrap_or_default()
}

fn example(asked: &str, found: &[&Topic], screen: &Screen) -> Result<Exit, Fault> {
    let file = found.iter().find_map(|topic| match &topic.sample {
        Sample::File(example) => Some(example.text),
        _ => None,
    });
    let Some(text) = file else {
        let message = format!("there is no example file for `{asked}`");
        return Err(
            Fault::usage(message).help(format!("`wonder explain {}` says what there is", shell_word(asked)))
        );
    };
    screen.print(&Text::block(text))?;
    Ok(Exit::Fine)
}

/// The page of a code, or what may have been meant.
fn code(asked: &str, topics: &[Topic], screen: &Screen) -> Result<Exit, Fault> {
    let Some(page) = wonder_spec::explain(asked) else {
        let verb =
            Cli::command().get_subcommands().any(|verb| verb.get_name() == asked && !verb.is_hide_set());
        let help = match reference::near(topics, asked) {
            _ if verb => format!("that is a verb: `wonder help {asked}`"),
            Some(near) => format!("{near}\n      `wonder explain` lists all topics"),
            None => "`wonder explain` lists all topics".to_owned(),
        };
        let error = EngineError::new(ErrorCode::NotFound, format!("there is no topic `{asked}`"));
        return Err(error.help(help).into());
    };
    match screen.json {
        true => screen.print_json(&json!({"code": asked.to_ascii_uppercase(), "text": page}))?,
        false => screen.print(&Text::block(page))?,
    }
    Ok(Exit::Fine)
}

/// All names by group, then all codes with their titles.
fn list(topics: &[Topic], screen: &Screen) -> Result<Exit, Fault> {
    let codes = wonder_spec::explained();
    if screen.json {
        let topics = topics.iter().map(|topic| {
            json!({"group": topic.group.page(), "name": topic.name, "place": topic.place, "about": topic.about})
        });
        let codes =
            codes.iter().map(|(code, page)| json!({"group": "codes", "name": code, "about": title(page)}));
        screen.print_json(&topics.chain(codes).collect::<Vec<_>>())?;
        return Ok(Exit::Fine);
    }
    let mut text = Text::EMPTY;
    for group in Group::ALL {
        let mut names: Vec<&str> =
            topics.iter().filter(|topic| topic.group == group).map(|topic| topic.name.as_str()).collect();
        names.dedup();
        text.push(text!("{}\n{}\n", screen.out.strong(group.title()), Text::block(&wrapped(&names))));
    }
    text.push_line(screen.out.strong("Codes of errors and warnings"));
    codes.iter().for_each(|(code, page)| text.push_line(text!("  {}  {}", code, title(page))));
    text.push(text!("\n`wonder explain TOPIC` says more about one of them.\n"));
    screen.print(&text)?;
    Ok(Exit::Fine)
}

fn wrapped(names: &[&str]) -> String {
    let mut lines = String::new();
    let mut line = String::new();
    for name in names {
        if !line.is_empty() && line.len() + name.len() + 2 > WIDTH {
            lines.push_str(&format!("{line}\n"));
            line.clear();
        }
        line.push_str(&format!("  {name}"));
    }
    format!("{lines}{line}\n")
}

fn as_json(topic: &Topic) -> Json {
    let lists: serde_json::Map<String, Json> = topic
        .lists
        .iter()
        .map(|list| {
            let items = list
                .items
                .iter()
                .map(|(name, about)| json!({"name": name, "about": about.trim_start_matches(": ")}));
            (list.title.to_lowercase(), items.collect())
        })
        .collect();
    let example = match &topic.sample {
        Sample::None => Json::Null,
        Sample::File(example) => json!({"file": example.file(), "text": example.text}),
        Sample::Line(line, value) => json!({"text": line, "gives": value}),
    };
    json!({
        "group": topic.group.page(), "name": topic.name, "place": topic.place, "address": topic.address(),
        "about": topic.about, "facts": topic.facts, "lists": lists, "example": example,
    })
}

/// The first line of a page, without what makes it a heading and without the code.
fn title(page: &str) -> &str {
    let line = page.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
    line.split_once(':').map_or(line, |(_, title)| title.trim_start())
}
