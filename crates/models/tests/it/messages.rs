//! The neutral form of a conversation: what is written is what is read, and what is wrong is said.

use proptest::prelude::*;
use wonder_lang::Value;
use wonder_models::{
    Arguments, Image, Item, Message, Part, Provider, Request, Role, ToolCall, ToolResult, Wire, encode,
};

use crate::support::{ALL, ask, body, exchange, target, value};

#[test]
fn what_people_write_is_read() {
    let written = value(
        r#"[{"role":"user","content":"Hi"},
            {"role":"user","content":["And",{"type":"image","url":"data:image/png;base64,AA=="}]},
            {"role":"assistant","content":[{"type":"tool_call","id":"c","tool":"t","arguments":{}}]},
            {"role":"tool","content":[{"type":"tool_result","id":"c","tool":"t","content":{"n":1}}]}]"#,
    );
    let messages = Message::list_from_value(&written).unwrap();
    assert_eq!(messages[0], Message::user("Hi"));
    let picture = Image::Data { media_type: "image/png".into(), data: "AA==".into() };
    assert_eq!(messages[1].content, [Part::text("And"), Part::Image(picture)]);
    let Part::ToolResult(result) = &messages[3].content[0] else { panic!() };
    assert_eq!(result.content, [Part::text(r#"{"n":1}"#)]);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (written, expected) in [
        ("{}", "messages: is a list of `{role, content}`, not a map"),
        (r#"["x"]"#, "messages[0]: is a map, not a string"),
        (r#"[{"role":"user"}]"#, "messages[0].content: is a text or a list of parts"),
        (
            r#"[{"role":"system","content":"x"}]"#,
            "messages[0].role: what the system says stands in the field `system`",
        ),
        (r#"[{"role":"human","content":"x"}]"#, "messages[0].role: is one of user, assistant, tool"),
        (r#"[{"role":"user","content":"x","name":"n"}]"#, "messages[0]: `name` is not known here"),
        (r#"[{"role":"tool","content":"x"}]"#, "messages[0].content: is a list of `{type: tool_result"),
        (
            r#"[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]"#,
            "messages[0].content[0].type: in a message of role `user`, a part's type is text or image",
        ),
        (
            r#"[{"role":"user","content":[{"type":"image","data":"x"}]}]"#,
            "messages[0].content[0]: `data` needs",
        ),
        (
            r#"[{"role":"assistant","content":[{"type":"tool_call","id":"a","tool":"t","arguments":"{}"}]}]"#,
            "messages[0].content[0].arguments: is a map",
        ),
        (
            r#"[{"role":"assistant","content":[{"type":"tool_call","tool":"t","arguments":{}}]}]"#,
            "messages[0].content[0]: has no `id`",
        ),
    ] {
        let problem = Message::list_from_value(&value(written)).unwrap_err().to_string();
        assert!(problem.starts_with(expected), "{problem}\n{expected}");
    }
}

#[test]
fn a_conversation_that_is_none_is_not_sent() {
    let call = r#"{"role":"assistant","content":[{"type":"tool_call","id":"a","tool":"t","arguments":{}}]}"#;
    let result = r#"{"role":"tool","content":[{"type":"tool_result","id":"a","tool":"t","content":"x"}]}"#;
    let user = r#"{"role":"user","content":"x"}"#;
    for (written, expected) in [
        ("[]".to_owned(), "messages: there is nothing to ask"),
        (format!("[{user},{result}]"), "messages[1].content[0]: answers the call `a`, which"),
        (format!("[{user},{call}]"), "messages: the call `a` of `t` has no result"),
        (format!("[{user},{call},{user}]"), "messages[2]: the call `a` of `t` has no result"),
        (
            format!("[{user},{call},{result},{result}]"),
            "messages[3].content[0]: the call `a` has a result already",
        ),
        (r#"[{"role":"user","content":" "}]"#.to_owned(), "messages[0]: says nothing"),
    ] {
        for (provider, wire) in ALL {
            let messages = Message::list_from_value(&value(&written)).unwrap();
            let request = Request { messages, ..ask(wire) };
            let problem = encode(&request, &target(provider, wire)).unwrap_err().to_string();
            assert!(problem.starts_with(expected), "{problem}\n{expected}");
        }
    }
}

/// Providers that number their calls anew in each reply can be followed by one that looks at all ids.
#[test]
fn ids_that_come_again_are_told_apart() {
    let call = Message::list_from_value(&value(
        r#"[{"role":"user","content":"x"},
            {"role":"assistant","content":[{"type":"tool_call","id":"call_0","tool":"t","arguments":{}}]},
            {"role":"tool","content":[{"type":"tool_result","id":"call_0","tool":"t","content":"1"}]},
            {"role":"assistant","content":[{"type":"tool_call","id":"call_0","tool":"t","arguments":{}}]},
            {"role":"tool","content":[{"type":"tool_result","id":"call_0","tool":"t","content":"2"}]}]"#,
    ));
    let request = Request { messages: call.unwrap(), ..ask(Wire::Anthropic) };
    let sent = body(&exchange(&request, (Provider::Anthropic, Wire::Anthropic)));
    assert_eq!(sent["messages"][1]["content"][0]["id"], "call_0");
    assert_eq!(sent["messages"][2]["content"][0]["tool_use_id"], "call_0");
    assert_eq!(sent["messages"][3]["content"][0]["id"], "call_0_2");
    assert_eq!(sent["messages"][4]["content"][0]["tool_use_id"], "call_0_2");
}

fn text() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[a-zé\u{1f600}\"\\\\\n ]{0,12}").unwrap()
}

fn item() -> impl Strategy<Value = Option<Item>> {
    proptest::option::of((text(), any::<i64>()).prop_map(|(origin, number)| Item {
        origin: origin.into(),
        value: Value::map([("n", Value::Int(number))]),
    }))
}

fn user_part() -> impl Strategy<Value = Part> {
    prop_oneof![
        text().prop_map(Part::text),
        Just(Part::Image(Image::Data { media_type: "image/png".into(), data: "AA==".into() })),
        Just(Part::Image(Image::Url { url: "https://h/a".into(), media_type: Some("image/gif".into()) })),
    ]
}

fn assistant_part() -> impl Strategy<Value = Part> {
    let arguments = prop_oneof![
        any::<i64>().prop_map(|n| Arguments::Read(Value::map([("n", Value::Int(n))]))),
        (text(), text())
            .prop_map(|(raw, error)| Arguments::Unreadable { raw: raw.into(), error: error.into() }),
    ];
    prop_oneof![
        (text(), item()).prop_map(|(text, item)| Part::Text { text: text.into(), item }),
        (text(), item()).prop_map(|(text, item)| Part::Reasoning { text: text.into(), item }),
        (text(), text(), arguments, item()).prop_map(|(id, tool, arguments, item)| {
            Part::ToolCall(ToolCall { id: id.into(), tool: tool.into(), arguments, item })
        }),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let result = (text(), text(), proptest::collection::vec(user_part(), 1..4), any::<bool>());
    let result = result.prop_map(|(id, tool, content, is_error)| {
        Part::ToolResult(ToolResult { id: id.into(), tool: tool.into(), content, is_error })
    });
    let of = |role: Role| move |content: Vec<Part>| Message { role, content };
    prop_oneof![
        proptest::collection::vec(user_part(), 0..4).prop_map(of(Role::User)),
        proptest::collection::vec(assistant_part(), 0..4).prop_map(of(Role::Assistant)),
        proptest::collection::vec(result, 1..4).prop_map(of(Role::Tool)),
    ]
}

proptest! {
    #[test]
    fn a_message_survives_being_written(message in message()) {
        let written = message.to_value();
        prop_assert_eq!(Message::from_value(&written, "m").unwrap(), message);
        let text = written.to_string();
        prop_assert_eq!(Value::from_json_str(&text).unwrap(), written);
    }

    /// A tool's name comes back from a provider as it was, whatever it is and whatever stands beside it.
    #[test]
    fn names_of_tools_go_and_come_back(names in proptest::collection::btree_set("[a-z/_. é-]{1,80}", 1..6)) {
        let tools = names.iter().map(|name| crate::support::tool(name, r#"{"type":"object"}"#)).collect();
        let request = Request { tools, ..ask(Wire::Chat) };
        let exchange = exchange(&request, (Provider::OpenAiCompatible, Wire::Chat));
        let sent = body(&exchange);
        let mut outer: Vec<&str> = Vec::new();
        for (at, name) in names.iter().enumerate() {
            let sent = sent["tools"][at]["function"]["name"].as_str().unwrap();
            let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            prop_assert!(sent.len() <= 64 && !sent.is_empty() && sent.chars().all(allowed), "{}", sent);
            prop_assert!(!outer.contains(&sent), "{} twice", sent);
            outer.push(sent);
            let reply = format!(
                r#"{{"choices":[{{"message":{{"tool_calls":[{{"id":"c","function":{{"name":"{sent}","arguments":""}}}}]}},"finish_reason":"tool_calls"}}]}}"#
            );
            let reply = crate::support::answered(&exchange, 200, &reply).unwrap();
            prop_assert_eq!(&*reply.tool_calls().next().unwrap().tool, name.as_str());
        }
    }
}
