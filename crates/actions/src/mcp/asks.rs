//! What a server wants to know from a person. A person takes longer than a connection lives: the call is given up, a gate
//! asks, and the next attempt answers when the server asks the same again.

use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequests, InputResponses,
};
use wonder_core::command::InputAnswer;
use wonder_core::def::Name;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::value::Value;

use crate::json;

/// The key of our own among the details of a question.
const OWN: &str = "mcp";

/// The answers that people gave to earlier attempts; each is used once.
#[derive(Debug)]
pub(super) struct Answers<'a> {
    given: &'a [InputAnswer],
    used: Vec<bool>,
}

/// What is sent with a call that goes on where an earlier one stopped.
#[derive(Debug, Default)]
pub(super) struct GoesOn {
    pub(super) responses: Option<InputResponses>,
    pub(super) state: Option<String>,
}

/// What a server that keeps nothing wants to know, and what it wants to have back with it.
#[derive(Clone, Debug)]
pub(super) struct Stopped {
    pub(super) requests: InputRequests,
    pub(super) state: Option<String>,
}

impl<'a> Answers<'a> {
    pub(super) fn new(given: &'a [InputAnswer]) -> Answers<'a> {
        Answers { given, used: vec![false; given.len()] }
    }

    /// What somebody said to just this.
    pub(super) fn to(&mut self, asked: &ElicitRequestParams) -> Option<ElicitResult> {
        let question = question(asked);
        let fits = |answer: &InputAnswer| {
            answer.asked.get(OWN).and_then(|own| own.get("question")) == Some(&question)
        };
        let at = (0..self.given.len()).find(|at| !self.used[*at] && fits(&self.given[*at]))?;
        self.used[at] = true;
        let answer = &self.given[at].answer;
        if answer.get("action").and_then(Value::as_str) != Some("accept") {
            return Some(ElicitResult::new(ElicitationAction::Decline));
        }
        let accepted = ElicitResult::new(ElicitationAction::Accept);
        Some(match (asked, answer.get("content")) {
            (ElicitRequestParams::FormElicitationParams { .. }, content) => {
                let content = content.map_or_else(|| serde_json::json!({}), Value::to_json);
                accepted.with_content(content)
            }
            _ => accepted,
        })
    }

    /// What the last attempt stopped at, if the server asked in a way that outlives a connection.
    pub(super) fn stopped(&self) -> Option<Stopped> {
        let own = self.given.last()?.asked.get(OWN)?;
        let requests = serde_json::from_value(own.get("requests")?.to_json()).ok()?;
        Some(Stopped { requests, state: own.get("state").and_then(Value::as_str).map(str::to_owned) })
    }
}

/// What it is known again by. The address and the id of a page are others each time.
fn question(asked: &ElicitRequestParams) -> Value {
    match asked {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            Value::map([("message", Value::from(message.clone())), ("schema", as_value(requested_schema))])
        }
        ElicitRequestParams::UrlElicitationParams { message, .. } => {
            Value::map([("message", Value::from(message.clone())), ("mode", Value::from("url"))])
        }
        _ => Value::Null,
    }
}

fn as_value(part: &impl serde::Serialize) -> Value {
    json::value_of(&serde_json::to_string(part).unwrap_or_default())
}

/// The failure that opens a gate.
pub(super) fn required(server: &Name, asked: &ElicitRequestParams, stopped: Option<&Stopped>) -> Failure {
    let (message, body, content) = match asked {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            (message.clone(), None, Some(as_value(requested_schema)))
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            let body = format!("Open {url} and do there what is asked for. Then answer here.");
            (message.clone(), Some(body), None)
        }
        _ => (format!("{server} asks something that cannot be shown here"), None, None),
    };
    let words = Value::list(["accept", "decline"].map(Value::from));
    let mut properties = vec![("action", Value::map([("enum", words)]))];
    properties.extend(content.map(|content| ("content", content)));
    let form = Value::map([
        ("type", Value::from("object")),
        ("required", Value::list([Value::from("action")])),
        ("properties", Value::map(properties)),
    ]);
    let mut own = vec![("server", Value::String(server.clone())), ("question", question(asked))];
    if let Some(stopped) = stopped {
        own.push(("requests", as_value(&stopped.requests)));
        own.extend(stopped.state.as_ref().map(|state| ("state", Value::from(state.clone()))));
    }
    let mut details = vec![("title", Value::from(message.clone())), ("form", form), (OWN, Value::map(own))];
    details.extend(body.map(|body| ("body", Value::from(body))));
    let message = format!("the MCP server `{server}` asks: {message}");
    Failure::new(ErrorKind::InputRequired, message).with_details(Value::map(details))
}

/// The first request that a person has to answer and has not.
pub(super) fn elicitation(request: &InputRequest) -> Option<&ElicitRequestParams> {
    match request {
        InputRequest::Elicitation(request) => Some(&request.params),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(message: &str) -> ElicitRequestParams {
        let json = serde_json::json!({"mode": "form", "message": message, "requestedSchema":
            {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}});
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn an_answer_is_for_the_question_it_was_given_to_and_is_used_once() {
        let required = required(&"crm".into(), &form("Who?"), None);
        assert_eq!(required.kind, ErrorKind::InputRequired);
        assert_eq!(required.details.get("title").and_then(Value::as_str), Some("Who?"));
        let answer = Value::from_json_str(r#"{"action":"accept","content":{"name":"Ann"}}"#).unwrap();
        let given = [InputAnswer { asked: required.details.clone(), answer }];
        let mut answers = Answers::new(&given);
        assert!(answers.to(&form("When?")).is_none(), "another question");
        let said = answers.to(&form("Who?")).unwrap();
        assert_eq!(said.content, Some(serde_json::json!({"name": "Ann"})));
        assert!(answers.to(&form("Who?")).is_none(), "asked twice, it needs two answers");
        assert!(answers.stopped().is_none());
    }

    #[test]
    fn a_page_shows_its_address_and_is_known_again_by_what_it_is_for() {
        let page = |id: &str| -> ElicitRequestParams {
            let url = format!("https://crm.example/{id}");
            let json =
                serde_json::json!({"mode": "url", "message": "Log in", "url": url, "elicitationId": id});
            serde_json::from_value(json).unwrap()
        };
        let required = required(&"crm".into(), &page("1"), None);
        let body = required.details.get("body").and_then(Value::as_str).unwrap();
        assert!(body.contains("https://crm.example/1"), "{body}");
        let answer = Value::map([("action", Value::from("decline"))]);
        let given = [InputAnswer { asked: required.details.clone(), answer }];
        let said = Answers::new(&given).to(&page("2")).unwrap();
        assert_eq!(said.action, ElicitationAction::Decline);
    }
}
