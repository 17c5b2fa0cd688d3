//! A filled-in text as what the author wrote and what was put into it, kept apart, so that a value can be
//! treated by where it stands: quoted in a command line, percent-encoded in a URL.

use wonder_core::template::Template;
use wonder_core::value::Value;

/// Marks around a substituted value. Unicode sets these two aside for use within a program.
const START: char = '\u{fdd0}';
const END: char = '\u{fdd1}';

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Part {
    Written(String),
    Value(String),
}

/// Fills the template in. Says why it cannot.
pub(crate) fn parts(template: &Template, scope: &Value) -> Result<Vec<Part>, String> {
    if template.text().contains([START, END]) {
        return Err("the text has a character (U+FDD0 or U+FDD1) that stands for nothing".to_owned());
    }
    let text = template.render_with(scope, Some(mark)).map_err(|error| error.message)?;
    let mut parts = Vec::new();
    let mut rest = text.as_str();
    while let Some((written, after)) = rest.split_once(START) {
        let (value, after) = after.split_once(END).unwrap_or((after, ""));
        if !written.is_empty() {
            parts.push(Part::Written(written.to_owned()));
        }
        parts.push(Part::Value(unmark(value)));
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(Part::Written(rest.to_owned()));
    }
    Ok(parts)
}

fn mark(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    // What is marked has no marks of its own, so the first end is the end.
    let text = text.replace('%', "%25").replace(START, "%S").replace(END, "%E");
    format!("{START}{text}{END}")
}

/// The value as it was. A block that a template kept (`{% set %}`) has marks inside: they go too.
fn unmark(marked: &str) -> String {
    let text = marked.replace("%S", &START.to_string()).replace("%E", &END.to_string()).replace("%25", "%");
    if !text.contains([START, END]) {
        return text;
    }
    let mut plain = String::new();
    for (at, part) in text.split([START, END]).enumerate() {
        // Between a start and its end is a value that was marked before.
        if at % 2 == 1 { plain.push_str(&unmark(part)) } else { plain.push_str(part) }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<Part> {
        let scope = Value::map([("a", Value::str("100%S of 'x'")), ("n", Value::Int(3))]);
        parts(&Template::compile(text).unwrap(), &scope).unwrap()
    }

    #[test]
    fn what_was_written_and_what_was_put_in_stay_apart() {
        let (written, value) = (|t: &str| Part::Written(t.into()), |t: &str| Part::Value(t.into()));
        assert_eq!(
            split("echo {{ a }}{{ n }}!"),
            [written("echo "), value("100%S of 'x'"), value("3"), written("!")]
        );
        assert_eq!(split("{% set b %}<{{ a }}>{% endset %}{{ b }}"), [value("<100%S of 'x'>")]);
        assert_eq!(split("plain"), [written("plain")]);
        assert!(parts(&Template::compile("\u{fdd0}").unwrap(), &Value::Null).is_err());
    }
}
