//! Asking a person for the fields of a form, one after the other, on a terminal. What does not fit is asked
//! for again; nothing is sent before the person has seen the whole and said yes.

use std::io::{self, BufRead};

use wonder_core::Value;
use wonder_core::strict_json::{self, Why};
use wonder_engine::GateView;

use crate::form::{Field, FieldKind, fields, violations};
use crate::text::{Text, text};
use crate::typing::{number, spoken};

/// The answer, or nothing if the person gave up or the input ended.
pub(crate) fn ask(
    gate: &GateView,
    input: &mut dyn BufRead,
    output: &mut dyn FnMut(&Text),
) -> io::Result<Option<Value>> {
    let mut talk = Talk { input, output };
    talk.say(gate.title.as_str());
    for line in gate.body.iter().flat_map(|body| body.lines()) {
        talk.say(text!("  {}", line));
    }
    loop {
        let Some(answer) = talk.answer(&gate.form)? else { return Ok(None) };
        let wrong = violations(&gate.form, &answer);
        if !wrong.is_empty() {
            talk.say(format!("this does not fit: {}", wrong.join("; ")));
            continue;
        }
        talk.say(format!("your answer: {answer}"));
        match talk.yes_no("send it", Some(true))? {
            Some(true) => return Ok(Some(answer)),
            Some(false) => {}
            None => return Ok(None),
        }
    }
}

struct Talk<'t> {
    input: &'t mut dyn BufRead,
    output: &'t mut dyn FnMut(&Text),
}

impl Talk<'_> {
    fn say(&mut self, line: impl Into<Text>) {
        (self.output)(&text!("{}\n", line.into()));
    }

    /// One line; none at the end of the input.
    fn line(&mut self, prompt: &str) -> io::Result<Option<String>> {
        (self.output)(&text!("{}: ", prompt));
        let mut line = String::new();
        if self.input.read_line(&mut line)? == 0 {
            self.say("");
            return Ok(None);
        }
        Ok(Some(line.trim().to_owned()))
    }

    fn answer(&mut self, form: &Value) -> io::Result<Option<Value>> {
        let Some(fields) = fields(form) else { return self.whole(form) };
        let mut answer = Value::empty_map();
        for field in fields {
            match self.field(&field)? {
                FieldInput::Value(value) => answer.set_path(&[field.name.into()], value),
                FieldInput::Nothing => {}
                FieldInput::End => return Ok(None),
            }
        }
        Ok(Some(answer))
    }

    /// A form without fields: one value, by its type if it says one.
    fn whole(&mut self, form: &Value) -> io::Result<Option<Value>> {
        let outer = Value::map([
            ("properties", Value::map([("answer", form.clone())])),
            ("required", Value::list([Value::from("answer")])),
        ]);
        let field = fields(&outer).and_then(|fields| fields.into_iter().next());
        match field.map(|field| self.field(&field)).transpose()? {
            Some(FieldInput::Value(value)) => Ok(Some(value)),
            Some(FieldInput::Nothing | FieldInput::End) | None => Ok(None),
        }
    }

    /// Until what is typed can be a value of the field.
    fn field(&mut self, field: &Field) -> io::Result<FieldInput> {
        if let FieldKind::Choice(choices) = &field.kind {
            for (at, choice) in choices.iter().enumerate() {
                self.say(format!("  {}) {}", at + 1, spoken(choice)));
            }
        }
        loop {
            let Some(line) = self.line(&prompt(field))? else { return Ok(FieldInput::End) };
            if line.is_empty() && !field.required {
                return Ok(FieldInput::Nothing);
            }
            match value_of(&field.kind, &line) {
                Ok(value) => return Ok(FieldInput::Value(value)),
                Err(expected) => self.say(format!("  please type {expected}")),
            }
        }
    }

    fn yes_no(&mut self, question: &str, default: Option<bool>) -> io::Result<Option<bool>> {
        loop {
            let Some(line) = self.line(&format!("{question}? (Y/n)"))? else { return Ok(None) };
            match (value_of(&FieldKind::YesNo, &line), default) {
                (Ok(Value::Bool(yes)), _) => return Ok(Some(yes)),
                (_, Some(default)) if line.is_empty() => return Ok(Some(default)),
                _ => self.say("  please type y or n"),
            }
        }
    }
}

enum FieldInput {
    Value(Value),
    /// An optional field is left out.
    Nothing,
    End,
}

fn prompt(field: &Field) -> String {
    let about = if field.about.is_empty() { String::new() } else { format!(" - {}", field.about) };
    let wanted = match &field.kind {
        FieldKind::YesNo => " (y/n)".to_owned(),
        FieldKind::Choice(choices) => format!(" (1-{})", choices.len()),
        FieldKind::Integer => " (whole number)".to_owned(),
        FieldKind::Number => " (number)".to_owned(),
        FieldKind::Text => String::new(),
        FieldKind::Json => " (JSON)".to_owned(),
    };
    let optional = if field.required { "" } else { ", empty to leave out" };
    format!("{}{about}{wanted}{optional}", field.name)
}

/// The value of what was typed, or what was expected.
fn value_of(kind: &FieldKind, line: &str) -> Result<Value, String> {
    match kind {
        FieldKind::YesNo => match line.to_ascii_lowercase().as_str() {
            "y" | "yes" | "true" => Ok(Value::Bool(true)),
            "n" | "no" | "false" => Ok(Value::Bool(false)),
            _ => Err("y or n".to_owned()),
        },
        FieldKind::Choice(choices) => {
            let numbered = line.parse::<usize>().ok().and_then(|number| choices.get(number.wrapping_sub(1)));
            let named = || choices.iter().find(|choice| spoken(choice) == line);
            numbered.or_else(named).cloned().ok_or_else(|| format!("a number from 1 to {}", choices.len()))
        }
        FieldKind::Integer => line.parse().map(Value::Int).map_err(|_| "a whole number".to_owned()),
        FieldKind::Number => number(line).ok_or_else(|| "a number".to_owned()),
        FieldKind::Text if line.is_empty() => Err("something".to_owned()),
        FieldKind::Text => Ok(Value::str(line)),
        FieldKind::Json => strict_json::read(line).map_err(|error| match error.why {
            Why::NotJson => "JSON; a text has quotes: \"text\"".to_owned(),
            Why::KeyTwice | Why::TooLarge => format!("something else: {error}; {}", error.help()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wonder_core::Time;
    use wonder_core::event::GateKind;

    fn gate(form: &str) -> GateView {
        GateView {
            id: "RUN:1".to_owned(),
            run: "RUN".to_owned(),
            root: "RUN".to_owned(),
            workflow: "judge_panel".to_owned(),
            node: Some("sign_off".to_owned()),
            kind: GateKind::Node,
            title: "Publish anyway?".to_owned(),
            body: Some("The mean is 5.2.\nThe draft is below.".to_owned()),
            form: Value::from_json_str(form).unwrap(),
            assignees: Vec::new(),
            opened_at: Time(0),
            deadline: None,
            visit: None,
            item: Value::Null,
        }
    }

    /// The whole conversation: what is typed stands where a terminal would show it.
    fn talk(form: &str, typed: &str) -> String {
        struct Echo<'t>(std::io::Cursor<&'t str>, std::rc::Rc<std::cell::RefCell<Vec<u8>>>);
        impl io::Read for Echo<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                io::Read::read(&mut self.0, buffer)
            }
        }
        impl BufRead for Echo<'_> {
            fn fill_buf(&mut self) -> io::Result<&[u8]> {
                self.0.fill_buf()
            }
            fn consume(&mut self, amount: usize) {
                let at = self.0.position() as usize;
                self.1.borrow_mut().extend_from_slice(&self.0.get_ref().as_bytes()[at..at + amount]);
                self.0.consume(amount);
            }
        }
        let screen: std::rc::Rc<std::cell::RefCell<Vec<u8>>> = std::rc::Rc::default();
        let mut output = |text: &Text| screen.borrow_mut().extend_from_slice(text.as_str().as_bytes());
        let mut input = Echo(std::io::Cursor::new(typed), std::rc::Rc::clone(&screen));
        let answer = ask(&gate(form), &mut input, &mut output).unwrap();
        let shown = String::from_utf8(screen.borrow().clone()).unwrap();
        let sent = answer.map_or("nothing".to_owned(), |answer| answer.to_string());
        format!("{shown}--- sent: {sent}")
    }

    #[test]
    fn fields_are_asked_for_one_by_one() {
        let form = r#"{"type":"object","required":["ok","score"],"properties":{"ok":{"type":"boolean"},
            "score":{"type":"integer","minimum":1},"comment":{"type":"string","description":"what you think"},
            "tone":{"enum":["kind","strict"]}}}"#;
        insta::assert_snapshot!(talk(form, "maybe\ny\nseven\n7\n\n3\n2\n\n"));
        insta::assert_snapshot!("does_not_fit", talk(form, "n\n0\n\n\nn\n3\nno\nstrict\ny\n"));
        insta::assert_snapshot!("gives_up", talk(form, "y\n"));
    }

    #[test]
    fn a_form_without_fields_is_one_value() {
        insta::assert_snapshot!(talk(r#"{"type":"string"}"#, "go on\ny\n"), @r#"
        Publish anyway?
          The mean is 5.2.
          The draft is below.
        answer: go on
        your answer: "go on"
        send it? (Y/n): y
        --- sent: "go on"
        "#);
        insta::assert_snapshot!(talk("null", "go\n{\"a\":1}\ny\n"), @r#"
        Publish anyway?
          The mean is 5.2.
          The draft is below.
        answer (JSON): go
          please type JSON; a text has quotes: "text"
        answer (JSON): {"a":1}
        your answer: {"a":1}
        send it? (Y/n): y
        --- sent: {"a":1}
        "#);
    }
}
