//! Asking a person whether a tool may be called as a model wants it: one key says it. What is edited is sent only if
//! it fits the form; nothing is sent before a key was pressed that says so.

use std::io;

use wonder_core::Value;
use wonder_core::strict_json;
use wonder_engine::GateView;

use crate::form::violations;
use crate::text::{Text, text};
use crate::view::words::shell_word;

/// Lines of what a gate says that are shown.
const BODY_LINES_MAX: usize = 12;

/// Whoever is asked.
pub(crate) trait Person {
    fn say(&mut self, line: Text);
    /// One key; none if they are gone.
    fn key(&mut self, prompt: &str) -> Option<char>;
    /// One line; none if they are gone.
    fn line(&mut self, prompt: &str) -> Option<String>;
    /// The text as they leave it.
    fn edit(&mut self, text: &str) -> io::Result<String>;
}

/// Whether a form asks for an approval: its `action` is to approve, to refuse, or to approve always.
pub(crate) fn is_approval(form: &Value) -> bool {
    let actions = form.get("properties").and_then(|all| all.get("action")).and_then(|one| one.get("enum"));
    let Some(actions) = actions.and_then(Value::as_list) else { return false };
    ["approve", "refuse", "always"].iter().all(|word| actions.iter().any(|one| one.as_str() == Some(word)))
}

/// The answer, or nothing if the gate is to stay open.
pub(crate) fn approve(gate: &GateView, person: &mut dyn Person) -> Option<Value> {
    person.say(gate.title.as_str().into());
    let mut body = gate.body.iter().flat_map(|body| body.lines());
    body.by_ref().take(BODY_LINES_MAX).for_each(|line| person.say(text!("  {}", line)));
    match body.count() {
        0 => {}
        more => {
            person.say(text!("  … {} more lines: `wonder gates {}` shows all", more, shell_word(&gate.id)))
        }
    }
    let action = |name: &str| ("action", Value::str(name));
    loop {
        let prompt = "y approve · n refuse · a always this tool · e edit the arguments · s skip";
        match person.key(prompt)?.to_ascii_lowercase() {
            'y' => return Some(Value::map([action("approve")])),
            'a' => return Some(Value::map([action("always")])),
            's' => return None,
            'n' => {
                let reason = person.line("why (empty: no reason)")?;
                let reason = Some(reason).filter(|text| !text.is_empty());
                let reason = reason.map(|text| ("reason", Value::str(&*text)));
                return Some(Value::map([action("refuse")].into_iter().chain(reason)));
            }
            'e' => match edited(gate, person) {
                Ok(arguments) => return Some(Value::map([action("approve"), ("arguments", arguments)])),
                Err(why) => person.say(text!("  {}", why)),
            },
            _ => person.say("  please press y, n, a, e or s".into()),
        }
    }
}

/// What the call is to be given instead; or why that will not do.
fn edited(gate: &GateView, person: &mut dyn Person) -> Result<Value, String> {
    let before = arguments(gate);
    let text = serde_json::to_string_pretty(&before).unwrap_or_default();
    let after = person.edit(&text).map_err(|error| format!("the editor: {error}"))?;
    let arguments = strict_json::read(&after).map_err(|error| format!("{error}; {}", error.help()))?;
    let answer = Value::map([("action", Value::str("approve")), ("arguments", arguments.clone())]);
    match violations(&gate.form, &answer).as_slice() {
        [] => Ok(arguments),
        wrong => Err(format!("this does not fit: {}", wrong.join("; "))),
    }
}

/// What the model wants to call it with: the call that the branch is for, else what the form proposes.
fn arguments(gate: &GateView) -> Value {
    let proposed = || gate.form.get("properties")?.get("arguments")?.get("default");
    gate.item.get("arguments").or_else(proposed).cloned().unwrap_or_else(Value::empty_map)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use wonder_core::Time;
    use wonder_core::event::GateKind;

    use super::*;

    const FORM: &str = r#"{"type":"object","required":["action"],"properties":{
        "action":{"enum":["approve","refuse","always"]},
        "arguments":{"type":"object","required":["path"],"properties":{"path":{"type":"string"}}},
        "reason":{"type":"string"}}}"#;

    fn gate() -> GateView {
        GateView {
            id: "RUN:1".to_owned(),
            run: "RUN".to_owned(),
            root: "RUN".to_owned(),
            workflow: "fix".to_owned(),
            node: Some("approve".to_owned()),
            kind: GateKind::Node,
            title: "write_file".to_owned(),
            body: Some("path: a.rs\nbecause it is wrong".to_owned()),
            form: Value::from_json_str(FORM).unwrap(),
            assignees: Vec::new(),
            opened_at: Time(0),
            deadline: None,
            visit: None,
            item: Value::from_json_str(r#"{"id":"c1","tool":"write_file","arguments":{"path":"a.rs"}}"#)
                .unwrap(),
        }
    }

    /// Types these keys, lines and edits, one after the other.
    struct Script {
        types: VecDeque<&'static str>,
        seen: String,
    }

    impl Person for Script {
        fn say(&mut self, line: Text) {
            self.seen.push_str(&format!("{line}\n"));
        }

        fn key(&mut self, prompt: &str) -> Option<char> {
            let key = self.types.pop_front()?.chars().next();
            self.seen.push_str(&format!("[{prompt}] {}\n", key.unwrap_or(' ')));
            key
        }

        fn line(&mut self, prompt: &str) -> Option<String> {
            let line = self.types.pop_front()?.to_owned();
            self.seen.push_str(&format!("{prompt}: {line}\n"));
            Some(line)
        }

        fn edit(&mut self, text: &str) -> io::Result<String> {
            let after = self.types.pop_front().unwrap_or_default().to_owned();
            self.seen
                .push_str(&format!("edits {} to {after}\n", text.split_whitespace().collect::<String>()));
            Ok(after)
        }
    }

    fn answered(types: &[&'static str]) -> (Option<String>, String) {
        let mut person = Script { types: types.iter().copied().collect(), seen: String::new() };
        let answer = approve(&gate(), &mut person).map(|answer| answer.to_string());
        (answer, person.seen)
    }

    #[test]
    fn one_key_answers() {
        assert!(is_approval(&gate().form));
        assert!(!is_approval(
            &Value::from_json_str(r#"{"properties":{"action":{"enum":["approve"]}}}"#).unwrap()
        ));
        assert_eq!(answered(&["y"]).0.as_deref(), Some(r#"{"action":"approve"}"#));
        assert_eq!(answered(&["A"]).0.as_deref(), Some(r#"{"action":"always"}"#));
        assert_eq!(
            answered(&["n", "not now"]).0.as_deref(),
            Some(r#"{"action":"refuse","reason":"not now"}"#)
        );
        assert_eq!(answered(&["n", ""]).0.as_deref(), Some(r#"{"action":"refuse"}"#));
        assert_eq!(answered(&["s"]).0, None);
        assert_eq!(answered(&[]).0, None, "who is gone answers nothing");
        assert_eq!(answered(&["n"]).0, None, "a refusal that was not finished is none");
    }

    #[test]
    fn edited_arguments_must_fit_or_it_is_asked_again() {
        let (answer, seen) = answered(&["x", "e", "{", "e", r#"{"path":1}"#, "e", r#"{"path":"b.rs"}"#]);
        assert_eq!(answer.as_deref(), Some(r#"{"action":"approve","arguments":{"path":"b.rs"}}"#));
        insta::assert_snapshot!(seen);
    }
}
