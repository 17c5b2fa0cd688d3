//! Schemas as each provider can hold a model to them; the rest is told in words and checked by us.

use serde_json::{Value as Json, json};
use wonder_models::{Effort, FailureKind, Provider, Request, ToolChoice, Wire, encode};

use crate::support::{answered, ask, body, exchange, schema, target, tool, weather};

fn sent(wire: Wire, provider: Provider, doc: &str) -> Json {
    body(&exchange(&Request { output_schema: Some(schema(doc)), ..ask(wire) }, (provider, wire)))
}

const STRICT: &str =
    r#"{"type":"object","required":["a"],"properties":{"a":{"type":"string","maxLength":5}}}"#;
const OPTIONAL: &str = r#"{"type":"object","properties":{"a":{"type":"string"}}}"#;
const FREE: &str = r#"{"type":"object"}"#;
const LIST: &str = r#"{"type":"array","items":{"type":"string"}}"#;
const RECURSIVE: &str = r##"{"type":"object","required":["next"],"properties":{"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}}"##;

#[test]
fn openai_is_strict_where_that_changes_nothing() {
    let strict = |doc: &str| sent(Wire::Responses, Provider::OpenAi, doc)["text"]["format"]["strict"].clone();
    assert_eq!(strict(STRICT), json!(true));
    assert_eq!(strict(RECURSIVE), json!(true));
    assert_eq!(strict(OPTIONAL), json!(false));
    assert_eq!(strict(FREE), json!(false));
    // A list at the top cannot be said at all.
    let list = sent(Wire::Responses, Provider::OpenAi, LIST);
    assert!(list.get("text").is_none() && list["instructions"].to_string().contains("JSON Schema"));
    let format = sent(Wire::Chat, Provider::OpenAi, STRICT)["response_format"]["json_schema"].clone();
    let a = json!({ "type": "string", "description": "{maxLength: 5}" });
    let expected = json!({ "type": "object", "properties": { "a": a }, "required": ["a"], "additionalProperties": false });
    assert_eq!(format["schema"], expected);
}

#[test]
fn anthropic_is_told_in_words_what_its_grammar_cannot_say() {
    let format =
        |doc: &str| sent(Wire::Anthropic, Provider::Anthropic, doc)["output_config"]["format"].clone();
    assert_eq!(format(OPTIONAL)["schema"]["additionalProperties"], json!(false));
    assert_eq!(format(LIST)["type"], "json_schema");
    for doc in [FREE, RECURSIVE, r#"{"type":"object","additionalProperties":{"type":"string"}}"#, "{}"] {
        let body = sent(Wire::Anthropic, Provider::Anthropic, doc);
        assert!(body.get("output_config").is_none(), "{doc}");
        assert!(body["system"][0]["text"].as_str().unwrap().contains("JSON Schema"), "{doc}");
    }
}

#[test]
fn gemini_takes_json_schema_but_not_beside_tools_before_its_third_generation() {
    let config = sent(Wire::Gemini, Provider::Gemini, FREE)["generationConfig"].clone();
    assert_eq!(
        config,
        json!({ "responseMimeType": "application/json", "responseJsonSchema": { "type": "object" } })
    );
    for (model, native) in [("gemini-3-pro", true), ("gemini-2.5-pro", false)] {
        let request = Request {
            model: model.to_owned(),
            tools: vec![weather()],
            output_schema: Some(schema(STRICT)),
            ..ask(Wire::Gemini)
        };
        let body = body(&exchange(&request, (Provider::Gemini, Wire::Gemini)));
        assert_eq!(body["generationConfig"]["responseJsonSchema"].is_object(), native);
        assert_eq!(body["systemInstruction"].is_object(), !native);
    }
}

/// Libraries drop it there. Its grammar leaves no room for calls, so beside tools it is said in words.
#[test]
fn ollama_gets_the_schema_too() {
    let body = sent(Wire::Chat, Provider::Ollama, STRICT);
    assert_eq!(body["response_format"]["json_schema"]["strict"], json!(true));
}

#[test]
fn an_answer_is_checked_by_us_always() {
    let request = Request { output_schema: Some(schema(STRICT)), ..ask(Wire::Chat) };
    let exchange = exchange(&request, (Provider::OpenAiCompatible, Wire::Chat));
    let reply = |content: &str| {
        let message = json!({ "role": "assistant", "content": content });
        let usage = json!({ "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 });
        let choices = json!([{ "index": 0, "message": message, "finish_reason": "stop" }]);
        answered(&exchange, 200, &json!({ "choices": choices, "usage": usage }).to_string())
    };
    assert_eq!(reply(r#"{"a":"x"}"#).unwrap().json.unwrap().to_string(), r#"{"a":"x"}"#);
    assert_eq!(reply("```json\n{\"a\":\"x\"}\n```").unwrap().json.unwrap().to_string(), r#"{"a":"x"}"#);
    for wrong in [r#"{"a":"too long"}"#, r#"{"a":1}"#, "certainly: {}", r#"{"a":"#] {
        let failure = reply(wrong).unwrap_err();
        assert_eq!(failure.kind, FailureKind::ContractViolation, "{wrong}");
        // What was said goes back to the model, and what it cost is paid.
        assert_eq!(failure.reply.unwrap().message.text(), wrong);
        assert_eq!(failure.usage.unwrap().output_tokens, 2);
    }
}

#[test]
fn claude_thinks_as_its_generation_does() {
    let ask = |model: &str, max_tokens, choice: ToolChoice| {
        let request = Request {
            model: model.to_owned(),
            tools: vec![tool("t", FREE)],
            reasoning: Some(Effort::High),
            max_tokens,
            tool_choice: choice,
            ..ask(Wire::Anthropic)
        };
        encode(&request, &target(Provider::Anthropic, Wire::Anthropic)).map(|exchange| body(&exchange))
    };
    let new = ask("claude-opus-4-8", None, ToolChoice::Auto).unwrap();
    assert_eq!(
        (&new["thinking"], &new["output_config"]),
        (&json!({"type":"adaptive"}), &json!({"effort":"high"}))
    );
    let old = ask("claude-sonnet-4-5-20250929", None, ToolChoice::Auto).unwrap();
    assert_eq!(old["thinking"], json!({ "type": "enabled", "budget_tokens": 24_576 }));
    assert_eq!(old["max_tokens"], json!(8_192 + 24_576));
    let small = ask("claude-sonnet-4-5", Some(4_000), ToolChoice::Auto).unwrap();
    assert_eq!((&small["thinking"]["budget_tokens"], &small["max_tokens"]), (&json!(3_000), &json!(4_000)));
    assert_eq!(ask("claude-sonnet-4-5", Some(500), ToolChoice::Auto).unwrap_err().place, "max_tokens");
    // A tool that must be called and thinking exclude each other there.
    assert!(ask("claude-opus-4-8", None, ToolChoice::Required).unwrap().get("thinking").is_none());
}

#[test]
fn requests_that_cannot_be_meant_are_not_sent() {
    let problem = |change: fn(&mut Request)| {
        let mut request = ask(Wire::Chat);
        change(&mut request);
        encode(&request, &target(Provider::OpenAi, Wire::Chat)).unwrap_err().place
    };
    assert_eq!(problem(|request| request.model.clear()), "model");
    assert_eq!(problem(|request| request.max_tokens = Some(0)), "max_tokens");
    assert_eq!(problem(|request| request.temperature = Some(f64::NAN)), "temperature");
    assert_eq!(problem(|request| request.tool_choice = ToolChoice::Required), "tool_choice");
    assert_eq!(problem(|request| request.tool_choice = ToolChoice::parse("x")), "tool_choice");
    assert_eq!(problem(|request| request.tools = vec![weather(), weather()]), "tools");
    assert_eq!(problem(|request| request.tools = vec![tool("l", LIST)]), "tools.l");
    let own = |request: &mut Request| {
        request.parameters.insert("messages".into(), wonder_lang::Value::Null);
    };
    assert_eq!(problem(own), "parameters.messages");
}
