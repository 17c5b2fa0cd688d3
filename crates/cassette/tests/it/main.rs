//! The format: what is written is read again as it was, a conversation takes as much room as it adds, and what is not
//! there is told by what is nearest.

use std::collections::BTreeMap;

use proptest::prelude::*;
use wonder_cassette::{Contents, Exchange, Outcome, Place, Player, Request, Stop, Writer};
use wonder_core::cost::Spend;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::execution::{Delivery, TryFailure};
use wonder_core::value::Value;

fn value(json: &str) -> Value {
    Value::from_json_str(json).unwrap()
}

fn request(kind: &str, fields: &str) -> Request {
    Request { kind: kind.to_owned(), fields: value(fields) }
}

fn place(node: &str, token: u64) -> Place {
    Place { node: node.to_owned(), step: node.to_owned(), token, attempt: 1, ..Place::default() }
}

fn exchange(request: Request, place: Place, outcome: Outcome) -> Exchange {
    let spend = Spend { calls: 1, input_tokens: 7, ..Spend::default() };
    Exchange { place, request, outcome, spend, took_ms: 12, artifacts: Vec::new() }
}

fn said(text: &str) -> Outcome {
    Outcome::Result(Value::map([("text", Value::str(text))]))
}

fn written(exchanges: &[Exchange]) -> Vec<(String, String)> {
    let mut writer = Writer::default();
    exchanges.iter().map(|exchange| writer.write(exchange)).collect()
}

fn read(exchanges: &[Exchange]) -> Vec<Exchange> {
    let contents = Contents::read(written(exchanges)).unwrap();
    contents.exchanges.into_iter().map(|(_, exchange)| exchange).collect()
}

fn player(exchanges: &[Exchange]) -> Player {
    Player::new(Contents::read(written(exchanges)).unwrap())
}

/// Anything that JSON can say, with floats that keep their digits.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        (-1e9..1e9).prop_map(Value::Float),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,4}", inner, 0..4)
                .prop_map(|map: BTreeMap<String, Value>| Value::map(map)),
        ]
    })
}

/// A request of a conversation that branches: each goes on with an earlier one, or begins anew.
fn any_requests() -> impl Strategy<Value = Vec<Request>> {
    let turn =
        (any::<prop::sample::Index>(), prop::collection::vec(any_value(), 0..3), any_value(), any::<bool>());
    prop::collection::vec(turn, 1..8).prop_map(|turns| {
        let mut all: Vec<Request> = Vec::new();
        for (from, new, other, anew) in turns {
            let before = (!anew && !all.is_empty()).then(|| from.get(&all).fields.get("messages").cloned());
            let before = before.flatten().and_then(|list| list.as_list().map(<[Value]>::to_vec));
            let messages = before.unwrap_or_default().into_iter().chain(new);
            let mut fields = vec![("messages", Value::list(messages))];
            // Some fields come and go.
            let name = if other.is_null() { "tools" } else { "system" };
            fields.push((name, other));
            all.push(Request { kind: "llm_call".to_owned(), fields: Value::map(fields) });
        }
        all
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_folded_is_unfolded_as_it_was(requests in any_requests(), result in any_value()) {
        let each = requests.into_iter().enumerate();
        let all: Vec<Exchange> = each
            .map(|(at, request)| exchange(request, place("think", at as u64), Outcome::Result(result.clone())))
            .collect();
        prop_assert_eq!(read(&all), all);
    }
}

#[test]
fn failures_and_stops_come_back_as_they_were() {
    let failure = Failure::new(ErrorKind::RateLimited, "later").with_status(429).with_retry_after_ms(1_500);
    let outcomes = [
        Outcome::Failed(TryFailure { failure, delivery: Delivery::Unknown }),
        Outcome::Stopped(Stop::ActionTimeout),
        Outcome::Result(Value::Null),
    ];
    let ask = || request("http_request", r#"{"url": "https://a.example"}"#);
    let each = outcomes.into_iter().enumerate();
    let all: Vec<Exchange> =
        each.map(|(at, outcome)| exchange(ask(), place("get", at as u64), outcome)).collect();
    assert_eq!(read(&all), all);
}

#[test]
fn a_file_reads_like_what_happened() {
    let one = exchange(
        request(
            "llm_call",
            r#"{"model": "m", "system": "Be kind.", "messages": [{"role": "user", "content": "Hi"}]}"#,
        ),
        place("think", 3),
        said("Hello"),
    );
    let messages = r#"[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "Bye"}]"#;
    let two = format!(r#"{{"model": "m", "system": "Be kind.", "messages": {messages}}}"#);
    let two = exchange(request("llm_call", &two), place("think", 5), said("Bye"));
    let files = written(&[one, two]);
    let shown: Vec<String> = files.iter().map(|(name, text)| format!("{name}\n{text}")).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_turn_takes_as_much_room_as_it_says() {
    let mut messages = Vec::new();
    let mut exchanges = Vec::new();
    let system = "s".repeat(4_000);
    for turn in 0..100 {
        messages.push(Value::map([
            ("role", Value::str("user")),
            ("content", Value::from(format!("{turn:>1000}"))),
        ]));
        let list = Value::list(messages.clone());
        let fields = Value::map([("system", Value::str(system.as_str())), ("messages", list)]);
        let request = Request { kind: "llm_call".to_owned(), fields };
        exchanges.push(exchange(request, place("think", turn), said("ok")));
    }
    let sizes: Vec<usize> = written(&exchanges).iter().map(|(_, text)| text.len()).collect();
    assert!(sizes[0] > 5_000, "the first has all of it: {}", sizes[0]);
    assert!(sizes[1..].iter().all(|size| *size < 2_000), "{sizes:?}");
    assert_eq!(read(&exchanges), exchanges);
}

#[test]
fn equal_requests_are_told_apart_by_their_place_then_by_their_order_and_given_once() {
    let ask = || request("shell", r#"{"command": "date"}"#);
    let all = [
        exchange(ask(), place("a", 1), said("first")),
        exchange(ask(), place("b", 2), said("second")),
        exchange(ask(), place("c", 3), Outcome::Stopped(Stop::Cancelled)),
        exchange(ask(), place("d", 4), said("third")),
    ];
    let mut player = player(&all);
    assert_eq!(player.answer(&ask(), &place("b", 2)).unwrap().outcome, said("second"));
    assert_eq!(player.answer(&ask(), &place("x", 9)).unwrap().outcome, said("first"));
    assert_eq!(player.answer(&ask(), &place("x", 9)).unwrap().outcome, said("third"));
    assert_eq!(player.answer(&ask(), &place("x", 9)).unwrap().outcome, Outcome::Stopped(Stop::Cancelled));
    let out = player.answer(&ask(), &place("x", 9)).unwrap_err();
    insta::assert_snapshot!(out.to_string());
}

#[test]
fn a_try_that_nobody_heard_of_gives_way_to_the_one_that_was_made_again() {
    let ask = || request("shell", r#"{"command": "date"}"#);
    let all = [exchange(ask(), place("a", 1), said("lost")), exchange(ask(), place("a", 1), said("kept"))];
    let mut player = player(&all);
    assert_eq!(player.answer(&ask(), &place("a", 1)).unwrap().outcome, said("kept"));
    assert!(player.answer(&ask(), &place("a", 1)).is_err());
}

#[test]
fn what_is_not_there_is_told_by_what_is_nearest() {
    let ask = |prompt: &str, model: &str| {
        let fields = Value::map([
            ("model", Value::str(model)),
            ("system", Value::str("You are careful.\nYou are short.")),
            (
                "messages",
                Value::list([Value::map([("role", Value::str("user")), ("content", Value::str(prompt))])]),
            ),
        ]);
        Request { kind: "llm_call".to_owned(), fields }
    };
    let all = [
        exchange(request("llm_call", r#"{"model": "other"}"#), place("other", 1), said("no")),
        exchange(ask("What is two and two?\nThink.", "m"), place("think", 2), said("4")),
        exchange(request("shell", r#"{"command": "What is two and two?"}"#), place("sh", 3), said("no")),
    ];
    let mut player = player(&all);
    let changed = player.answer(&ask("What is two and three?\nThink.", "m"), &place("think", 2)).unwrap_err();
    let unlike = player.answer(&request("http_request", r#"{"url": "https://a.example"}"#), &place("get", 1));
    insta::assert_snapshot!(format!("{changed}\n\n{}", unlike.unwrap_err()));
}

#[test]
fn what_was_changed_or_written_by_another_version_is_refused() {
    let one = exchange(request("shell", r#"{"command": "date"}"#), place("a", 1), said("now"));
    let files = written(&[one]);
    let (name, text) = &files[0];
    let why = |text: String| Contents::read(vec![(name.clone(), text)]).unwrap_err().to_string();
    let changes = [
        why(text.replace("\"date\"", "\"rm\"")),
        why(text.replace("\"cassette\": 1", "\"cassette\": 2")),
        why(text.replace("\"took_ms\"", "\"took\"")),
        why(text.replace("  \"result\"", "  \"stopped\": \"cancelled\",\n  \"result\"")),
        why(text[..40].to_owned()),
    ];
    insta::assert_snapshot!(changes.join("\n"));
    // What came of it may be edited: that is what a person wants to try.
    assert!(Contents::read(vec![(name.clone(), text.replace("\"now\"", "\"then\""))]).is_ok());
}
