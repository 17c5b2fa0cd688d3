//! What is sent, byte for byte: `golden/*.json`. `WONDER_BLESS=1 cargo test -p wonder-models` rewrites them: read
//! the difference. `make model-bodies` holds the same files against the providers' own libraries.

use std::path::Path;

use serde_json::{Value as Json, json};
use wonder_lang::value::Map;
use wonder_models::{
    Arguments, Cache, Effort, Exchange, Image, Item, Message, Part, Provider, Request, Role, ToolCall,
    ToolChoice, ToolResult, Wire,
};

use crate::support::{ALL, ask, exchange, schema, tool, value, weather};

fn golden(name: &str, wire: Wire, exchange: &Exchange) {
    let body: Json = serde_json::from_slice(&exchange.call.body).unwrap();
    let headers: Vec<String> = exchange.call.headers.iter().map(|header| format!("{header:?}")).collect();
    let sent = json!({ "url": exchange.call.url, "headers": headers, "body": body });
    let sent = serde_json::to_string_pretty(&sent).unwrap() + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/golden/{name}.{wire}.json"));
    if std::env::var_os("WONDER_BLESS").is_some() {
        std::fs::write(&path, &sent).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(sent, expected, "{}", path.display());
}

#[test]
fn a_plain_question() {
    for (provider, wire) in ALL {
        let request = Request {
            system: Some("You are brief.".to_owned()),
            max_tokens: Some(500),
            temperature: Some(0.2),
            stop: if wire == Wire::Responses { Vec::new() } else { vec!["END".to_owned()] },
            ..ask(wire)
        };
        golden("plain", wire, &exchange(&request, (provider, wire)));
    }
}

/// What a model of this format would have said itself, beside what one of another said.
fn items(wire: Wire) -> (Part, Option<Item>) {
    let origin = match wire {
        Wire::Chat => "chat llm.example/v1",
        Wire::Responses => "responses api.openai.com/v1",
        Wire::Anthropic => "anthropic api.anthropic.com/v1",
        Wire::Gemini => "gemini generativelanguage.googleapis.com/v1beta",
    };
    let item = |json: &str| Item { origin: origin.into(), value: value(json) };
    let (thought, call) = match wire {
        Wire::Chat => (
            r#"{"text_in":"reasoning_content"}"#,
            r#"{"extra_content":{"google":{"thought_signature":"c2ln"}}}"#,
        ),
        Wire::Responses => (
            r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"}"#,
            r#"{"id":"fc_1","status":"completed"}"#,
        ),
        Wire::Anthropic => (r#"{"type":"thinking","signature":"c2ln"}"#, r#"{"caller":{"type":"direct"}}"#),
        Wire::Gemini => (r#"{"thought":true}"#, r#"{"thoughtSignature":"c2ln"}"#),
    };
    (Part::Reasoning { text: "I should look.".into(), item: Some(item(thought)) }, Some(item(call)))
}

fn call(id: &str, tool: &str, arguments: &str, item: Option<Item>) -> Part {
    Part::ToolCall(ToolCall {
        id: id.into(),
        tool: tool.into(),
        arguments: Arguments::Read(value(arguments)),
        item,
    })
}

fn result(id: &str, content: Vec<Part>, is_error: bool) -> Part {
    Part::ToolResult(ToolResult { id: id.into(), tool: "weather/now".into(), content, is_error })
}

fn conversation(wire: Wire) -> Vec<Message> {
    let (thought, item) = items(wire);
    let foreign = Item { origin: "elsewhere".into(), value: value(r#"{"type":"thinking","signature":"x"}"#) };
    let picture = Image::Data { media_type: "image/png".into(), data: "iVBORw0KGgo=".into() };
    let question = vec![Part::text("Is this Paris or Rome?"), Part::Image(picture.clone())];
    let calls = vec![
        thought,
        Part::Reasoning { text: "Of somebody else.".into(), item: Some(foreign) },
        Part::text("Let me look."),
        call("call_1", "weather/now", r#"{"city":"Paris"}"#, item),
        call("call_2", "weather/now", r#"{"city":"Rome"}"#, None),
    ];
    let first = result("call_1", vec![Part::text("Sunny."), Part::Image(picture)], false);
    let second = result("call_2", vec![Part::text("no such city")], true);
    vec![
        Message { role: Role::User, content: question },
        Message { role: Role::Assistant, content: calls },
        Message { role: Role::Tool, content: vec![first] },
        Message { role: Role::Tool, content: vec![second] },
        Message::user("Well?"),
    ]
}

#[test]
fn a_conversation_with_tools() {
    for (provider, wire) in ALL {
        let tools = vec![
            weather(),
            tool("weather__now", r#"{"type":"object","properties":{"n":{"type":"integer","minimum":0}}}"#),
            tool("no arguments", r#"{"type":"object"}"#),
        ];
        let request = Request {
            messages: conversation(wire),
            tools,
            tool_choice: ToolChoice::Tool("weather/now".into()),
            stream: true,
            idempotency_key: Some("run-1/think/1".to_owned()),
            ..ask(wire)
        };
        golden("tools", wire, &exchange(&request, (provider, wire)));
    }
}

#[test]
fn an_answer_by_schema_with_reasoning_and_parameters() {
    for (provider, wire) in ALL {
        let answer = schema(
            r#"{"type":"object","required":["city","degrees"],"properties":{
                "city":{"type":"string","minLength":2,"description":"Its name."},
                "degrees":{"type":["number","null"],"minimum":-90}}}"#,
        );
        let own = match wire {
            Wire::Chat => r#"{"top_k":20,"max_tokens":900}"#,
            Wire::Responses => r#"{"reasoning":{"summary":"auto"},"max_tokens":900}"#,
            Wire::Anthropic => r#"{"output_config":{"effort":"max"},"max_tokens":900}"#,
            Wire::Gemini => r#"{"generationConfig":{"topK":20},"max_tokens":900}"#,
        };
        let own = value(own);
        let request = Request { reasoning: Some(Effort::High), output_schema: Some(answer), ..ask(wire) };
        let request = request.with_parameters(own.as_map().unwrap_or(&Map::new())).unwrap();
        golden("schema", wire, &exchange(&request, (provider, wire)));
    }
}

#[test]
fn openai_speaks_chat_when_told_so_or_when_only_that_can_say_it() {
    let asked = Request {
        model: "gpt-4.1".to_owned(),
        tools: vec![weather()],
        max_tokens: Some(500),
        idempotency_key: Some("run-1/ask/1".to_owned()),
        ..ask(Wire::Chat)
    };
    let chat = exchange(&asked, (Provider::OpenAi, Wire::Chat));
    golden("openai", Wire::Chat, &chat);
    let mut target = crate::support::target(Provider::OpenAi, Wire::Chat);
    target.wire = None;
    let mut request = ask(Wire::Chat);
    assert_eq!(wonder_models::encode(&request, &target).unwrap().wire, Wire::Responses);
    request.stop = vec!["END".to_owned()];
    assert_eq!(wonder_models::encode(&request, &target).unwrap().wire, Wire::Chat);
}

/// Anthropic is told what to cache: tools, the system, and where the conversation ends now and ended before. A
/// question that stands alone is not written to the cache.
#[test]
fn what_stays_the_same_is_marked_for_the_cache() {
    let marks = |request: &Request| {
        let body = crate::support::body(&exchange(request, (Provider::Anthropic, Wire::Anthropic)));
        let count = |key: &str| body[key].to_string().matches("cache_control").count();
        [count("system"), count("tools"), count("messages")]
    };
    let mut request = Request { system: Some("Be brief.".to_owned()), ..ask(Wire::Anthropic) };
    assert_eq!(marks(&request), [1, 0, 0]);
    request.tools = vec![weather(), tool("b", r#"{"type":"object"}"#)];
    assert_eq!(marks(&request), [1, 1, 1]);
    request.messages = conversation(Wire::Anthropic);
    assert_eq!(marks(&request), [1, 1, 2]);
    request.cache = Cache::Off;
    assert_eq!(marks(&request), [0, 0, 0]);
}

#[test]
fn an_estimate_is_rather_too_high() {
    let mut request = ask(Wire::Chat);
    let small = wonder_models::estimate_tokens(&request);
    assert!((10..60).contains(&small), "{small}");
    request.messages.push(Message::assistant("word ".repeat(1_000)));
    let large = wonder_models::estimate_tokens(&request);
    assert!((1_250..2_500).contains(&(large - small)), "{large}");
}
