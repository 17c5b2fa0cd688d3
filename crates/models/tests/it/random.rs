//! Bytes of any kind: a reply or a failure, never a panic, however they come.

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use wonder_lang::Time;

use crate::answers::{fixture, question};
use crate::support::{ALL, BYTES_MAX, exchange, streamed};

fn kinds() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    prop_oneof![
        Just(vec![("content-type", "text/event-stream")]),
        Just(vec![("content-type", "application/json")]),
        Just(vec![]),
    ]
}

/// JSON made of the words that providers use, in any place.
fn near() -> impl Strategy<Value = Json> {
    let word = prop_oneof![
        Just("text"),
        Just("tool_use"),
        Just("function_call"),
        Just("stop"),
        Just("STOP"),
        Just("message_stop"),
        Just("content_block_start"),
        Just("content_block_delta"),
        Just("input_json_delta"),
        Just("response.completed"),
        Just("message"),
        Just("completed"),
        Just("end_turn"),
        Just("error"),
    ];
    let key = prop_oneof![
        Just("type"),
        Just("choices"),
        Just("delta"),
        Just("message"),
        Just("content"),
        Just("tool_calls"),
        Just("function"),
        Just("arguments"),
        Just("name"),
        Just("id"),
        Just("index"),
        Just("usage"),
        Just("output"),
        Just("candidates"),
        Just("parts"),
        Just("functionCall"),
        Just("args"),
        Just("finishReason"),
        Just("finish_reason"),
        Just("stop_reason"),
        Just("response"),
        Just("item"),
        Just("error"),
        Just("content_block"),
        Just("status"),
        Just("prompt_tokens"),
    ];
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        any::<f64>().prop_map(|number| json!(number)),
        word.prop_map(Json::from),
    ];
    leaf.prop_recursive(6, 40, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            proptest::collection::vec((key.clone(), inner), 0..5).prop_map(|map| Json::Object(
                map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            )),
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300), kind in kinds(), status in 100_u16..600) {
        for one in ALL {
            let mut decoder = exchange(&question(one.1), one).decoder(status, kind.iter().copied(), BYTES_MAX);
            decoder.push(&bytes);
            let _ = decoder.finish(Time(0));
        }
    }

    #[test]
    fn json_that_is_nearly_an_answer(events in proptest::collection::vec(near(), 1..6), status in prop_oneof![Just(200_u16), Just(429)]) {
        for one in ALL {
            let exchange = exchange(&question(one.1), one);
            let stream: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
            let _ = streamed(&exchange, [format!("{stream}data: [DONE]\n\n").as_bytes()]);
            let _ = crate::support::answered(&exchange, status, &events[0].to_string());
        }
    }

    /// A good stream with something else in its place.
    #[test]
    fn a_stream_with_a_flaw(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in 0_usize..200) {
        for one in ALL {
            let exchange = exchange(&question(one.1), one);
            let mut stream = fixture(one.1).1.into_bytes();
            let at = at.index(stream.len());
            let end = (at + cut).min(stream.len());
            stream.splice(at..end, [byte]);
            let (_, whole) = streamed(&exchange, [stream.as_slice()]);
            let (_, pieces) = streamed(&exchange, stream.chunks(7));
            prop_assert_eq!(whole, pieces);
        }
    }
}
