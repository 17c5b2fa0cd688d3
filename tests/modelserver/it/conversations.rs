//! Whole conversations, streamed and not, in every format and across formats.

use wonder_lang::Value;
use wonder_lang::schema::Schema;
use wonder_models::{Cache, Delta, Effort, FinishReason, Message, Request, Tool, Usage, Wire};

use crate::client::{ALL, Connection, ask, get, model, server, target};

const WEATHER: &str = r#"
key: sk-test
turns:
  - when: {turn: 1, contains: weather}
    reasoning: "Two cities, two calls."
    text: "One moment."
    tool_calls:
      - {tool: weather/now, arguments: {city: Paris}}
      - {tool: weather/now, arguments: {city: Rome}}
    usage: {input_tokens: 100, cached_input_tokens: 64, output_tokens: 20, reasoning_tokens: 5}
  - when: {turn: 2, last: tool}
    text: "In turn {turn}: {last}"
    chunk_chars: 3
"#;

fn question(wire: Wire, stream: bool) -> Request {
    let schema = r#"{"type":"object","required":["city"],"properties":{"city":{"type":"string"}}}"#;
    let schema = Value::from_json_str(schema).unwrap();
    Request {
        model: model(wire),
        system: Some("You know the weather.".to_owned()),
        messages: vec![Message::user("What is the weather?")],
        tools: vec![Tool { name: "weather/now".into(), description: Some("Tells it.".into()), schema }],
        reasoning: (wire != Wire::Chat).then_some(Effort::Medium),
        cache: Cache::Auto,
        stream,
        ..Request::default()
    }
}

#[tokio::test]
async fn a_conversation_with_tools_in_every_format() {
    let server = server(WEATHER).await;
    for one in ALL {
        for stream in [false, true] {
            let target = target(&server, one);
            let mut request = question(one.1, stream);
            let (_, reply) = ask(&request, &target).await;
            let reply = reply.unwrap();
            assert_eq!(
                (&*reply.text, reply.finish_reason),
                ("One moment.", FinishReason::ToolCalls),
                "{}",
                one.1
            );
            assert_eq!(reply.reasoning(), "Two cities, two calls.");
            let cities: Vec<String> = reply.tool_calls().map(|call| call.to_value().to_string()).collect();
            assert!(cities[0].contains("Paris") && cities[1].contains("weather/now"), "{cities:?}");
            let usage = Usage {
                input_tokens: 100,
                cached_input_tokens: 64,
                output_tokens: 20,
                reasoning_tokens: 5,
                cache_write_tokens: 0,
            };
            assert_eq!(reply.usage, Some(usage), "{}", one.1);
            assert!(reply.request_id.as_deref().unwrap().starts_with("req_"));
            request.messages.push(reply.message.clone());
            for (call, result) in reply.tool_calls().zip(["sunny", "no such city"]) {
                request.messages.push(Message::tool_result(call, result, result != "sunny"));
            }
            let (deltas, last) = ask(&request, &target).await;
            let last = last.unwrap();
            assert!(last.text.starts_with("In turn 2: sunny\n"), "{} {}", one.1, last.text);
            assert!(last.text.ends_with("no such city"));
            let shown: String = deltas
                .into_iter()
                .map(|delta| match delta {
                    Delta::Text(text) => text,
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(shown, if stream { last.text.as_str() } else { "" });
        }
    }
    assert_eq!(get(&format!("{}/count", server.url())).await["answered"], 16);
}

/// A run whose provider fails goes on with another: what the first one signed is not held against it.
#[tokio::test]
async fn a_conversation_goes_on_with_another_provider() {
    let server = server(WEATHER).await;
    for from in ALL {
        let request = question(from.1, true);
        let reply = ask(&request, &target(&server, from)).await.1.unwrap();
        for to in ALL {
            let mut next = question(to.1, false);
            next.messages.push(reply.message.clone());
            for call in reply.tool_calls() {
                next.messages.push(Message::tool_result(call, "fine", false));
            }
            let last = ask(&next, &target(&server, to)).await.1;
            assert_eq!(
                last.map(|reply| reply.text),
                Ok("In turn 2: fine\nfine".to_owned()),
                "{} to {}",
                from.1,
                to.1
            );
        }
    }
}

#[tokio::test]
async fn an_answer_by_schema_passes_what_providers_demand() {
    let server = server("turns: [{json: {city: Rome, tags: [a]}}]").await;
    let schema = r#"{"type":"object","required":["city","tags"],"properties":{
        "city":{"type":"string","minLength":2},"tags":{"type":"array","items":{"oneOf":[{"type":"string"},{"type":"null"}]}}}}"#;
    for one in ALL {
        let schema = Schema::compile(&Value::from_json_str(schema).unwrap()).unwrap();
        let request = Request { output_schema: Some(schema), ..question(one.1, true) };
        let reply = ask(&request, &target(&server, one)).await.1.unwrap();
        assert_eq!(reply.json.unwrap().to_string(), r#"{"city":"Rome","tags":["a"]}"#);
    }
}

#[tokio::test]
async fn the_journal_shows_what_was_asked() {
    let server = server("turns: [{text: hello}]").await;
    let request = Request { idempotency_key: Some("key-1".to_owned()), ..question(Wire::Responses, false) };
    ask(&request, &target(&server, ALL[1])).await.1.unwrap();
    let journal = get(&format!("{}/journal", server.url())).await;
    assert_eq!((&journal["count"], &journal["open"]), (&1.into(), &0.into()));
    let entry = &journal["requests"][0];
    assert_eq!(entry["headers"]["authorization"], "Bearer sk-test");
    assert_eq!(entry["headers"]["idempotency-key"], "key-1");
    assert_eq!(
        (&entry["body"]["model"], &entry["wire"], &entry["turn"]),
        (&"gpt-5.2".into(), &"responses".into(), &0.into())
    );
    let url = format!("{}/journal", server.url());
    Connection::send("DELETE", &url, String::new(), b"").await.unwrap();
    assert_eq!(get(&url).await["requests"], serde_json::json!([]));
}

#[tokio::test]
async fn many_agents_at_once() {
    let server = server(WEATHER).await;
    let agents: Vec<_> = (0..200)
        .map(|number| {
            let one = ALL[number % ALL.len()];
            let (target, mut request) = (target(&server, one), question(one.1, true));
            tokio::spawn(async move {
                let reply = ask(&request, &target).await.1.unwrap();
                request.messages.push(reply.message.clone());
                for call in reply.tool_calls() {
                    request.messages.push(Message::tool_result(call, &*format!("{number}"), false));
                }
                let text = ask(&request, &target).await.1.unwrap().text;
                assert_eq!(text, format!("In turn 2: {number}\n{number}"));
            })
        })
        .collect();
    for agent in agents {
        agent.await.unwrap();
    }
    assert_eq!(get(&format!("{}/count", server.url())).await["answered"], 400);
}
