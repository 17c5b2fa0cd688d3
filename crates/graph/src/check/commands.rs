//! Texts that go out of the process: addresses, methods, command lines, and the filters that any of them names.

use super::Check;
use super::reads::list;
use crate::codes;
use crate::texts::{ActionText, TextKind};
use wonder_lang::command_line::{Quotes, program_among};
use wonder_lang::def::{ActionDef, CommandLine, Implementation, Text};
use wonder_lang::foreign::{Place, foreign};
use wonder_lang::problem::{Problem, nearest};
use wonder_lang::template::{Named, NamedKind, Piece, Template, nearest_term};

/// Methods that servers know: HTTP's own, and WebDAV's.
const METHODS: [&str; 20] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "QUERY",
    "PURGE",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "REPORT",
    "SEARCH",
    "LINK",
];
const SCHEMES: [&str; 2] = ["https://", "http://"];

impl Check<'_> {
    /// What can be told of an action's templates as they are written.
    pub(super) fn texts_of(&mut self, def: &ActionDef, texts: &[ActionText]) {
        let templates =
            texts.iter().filter(|text| matches!(text.kind, TextKind::Template | TextKind::CalleeTemplate));
        // The texts of a prompt are looked at where the prompt is.
        for text in templates.filter(|text| text.prompt.is_none()) {
            self.words_of_template(&text.text);
        }
        if let Implementation::Shell(shell) = &def.implementation {
            match &shell.command {
                CommandLine::Line(line) => self.command_line(line),
                CommandLine::Arguments(words) => self.arguments(words),
            }
        }
    }

    /// Filters, tests and functions that there are not: the template would fail when it is filled in.
    pub(super) fn words_of_template(&mut self, text: &Text) {
        let Ok(template) = self.parsed.template(text) else { return };
        for named in template.unknown() {
            let (what, place) = match named.kind {
                NamedKind::Filter => ("filter", Place::Filter),
                NamedKind::Test => ("test", Place::Test),
                NamedKind::Function => ("function", Place::Filter),
            };
            let problem = Problem::error(
                codes::UNKNOWN_FILTER,
                text.spot,
                format!("templates have no {what} `{}`", named.name),
            )
            .label(format!("expected a {what} of templates"))
            .within(named.offset, named.name.len());
            self.report(problem.help(way_out(&named, place)));
        }
    }

    fn command_line(&mut self, line: &Text) {
        let Ok(template) = self.parsed.template(line) else { return };
        let Some((offset, len, why)) = misplaced(&template) else { return };
        self.misplaced_value(line, (offset, len), &why);
    }

    /// The same for a program among the arguments: `[sh, -c, "…"]`.
    fn arguments(&mut self, words: &[Text]) {
        let texts: Vec<&str> = words.iter().map(Text::as_str).collect();
        let Some((at, why)) = program_among(&texts) else { return };
        let Ok(template) = self.parsed.template(&words[at]) else { return };
        let value = template.pieces().into_iter().find_map(|piece| match piece {
            Piece::Value(inside, offset) => Some((offset.saturating_sub(2), inside.len() + 4)),
            _ => None,
        });
        if let Some(place) = value {
            self.misplaced_value(&words[at], place, why);
        }
    }

    fn misplaced_value(&mut self, line: &Text, (offset, len): (usize, usize), why: &str) {
        let (what, help) = why.split_once(": ").unwrap_or((why, ""));
        self.report(
            Problem::error(
                codes::MISPLACED_VALUE,
                line.spot,
                format!("{what}, so the command cannot be put together"),
            )
            .label("no value can stand here")
            .help(help.to_owned())
            .within(offset, len),
        );
    }

    pub(super) fn address(&mut self, url: &Text) {
        let text = url.as_str().trim_start();
        // What the value brings is known in the run only.
        let written = text.split("{{").next().unwrap_or_default().split("{%").next().unwrap_or_default();
        let lower = written.to_ascii_lowercase();
        let whole = written.len() == text.len();
        let begins = |scheme: &&str| lower.starts_with(*scheme) || (!whole && scheme.starts_with(&lower));
        if SCHEMES.iter().any(begins) {
            return;
        }
        let (message, help) = match lower.split_once("://") {
            _ if text.is_empty() => {
                ("`url` is empty".to_owned(), "write the address: `https://…`".to_owned())
            }
            Some((scheme, _)) => (
                format!("`{scheme}` is no scheme of HTTP"),
                "addresses begin with `https://` or `http://`; other protocols are for a `shell` command"
                    .to_owned(),
            ),
            None => (
                format!("`{}` has no scheme", super::brief(text)),
                format!("write `https://{}`", super::brief(text.trim_start_matches('/'))),
            ),
        };
        self.report(
            Problem::error(codes::BAD_URL, url.spot, message)
                .label("expected `https://…` or `http://…`")
                .help(help),
        );
    }

    pub(super) fn method(&mut self, method: &Text) {
        let text = method.as_str().trim();
        if text.contains("{{")
            || text.contains("{%")
            || METHODS.iter().any(|known| known.eq_ignore_ascii_case(text))
        {
            return;
        }
        let help = match nearest(text, METHODS) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("usual are {}", list(METHODS[..7].iter().copied())),
        };
        self.report(
            Problem::error(codes::UNKNOWN_METHOD, method.spot, format!("HTTP has no method `{text}`"))
                .label("expected a method such as `GET` or `POST`")
                .help(help),
        );
    }
}

/// The first value that stands where a command line can take none: where it is, and why. Of alternatives (`else`)
/// only one is there at a time, which cannot be followed.
fn misplaced(template: &Template) -> Option<(usize, usize, String)> {
    let mut quotes = Quotes::default();
    for piece in template.pieces() {
        match piece {
            Piece::Written(text) => text.chars().for_each(|c| quotes.read(c)),
            Piece::Tag(inside, _) if inside.trim_matches(['-', ' ']).starts_with("el") => return None,
            Piece::Tag(..) => {}
            Piece::Value(inside, offset) => {
                if let Some(why) = quotes.refuse() {
                    return Some((offset.saturating_sub(2), inside.len() + 4, why));
                }
                quotes.read('x');
            }
        }
    }
    None
}

fn way_out(named: &Named<'_>, place: Place) -> String {
    match (foreign(place, named.name), nearest_term(named)) {
        (Some(foreign), _) => format!("here {}", foreign.say),
        (None, Some(near)) => format!("did you mean `{near}`?"),
        (None, None) if named.kind == NamedKind::Function => {
            "functions belong to expressions: map the value, `input_mapping: {x: EXPRESSION}`, and write `{{ x }}`".to_owned()
        }
        (None, None) => format!("known are {}", list(wonder_lang::template::terms(named.kind).iter().map(|term| term.name))),
    }
}
