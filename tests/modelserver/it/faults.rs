//! What goes wrong, as it goes wrong with providers.

use wonder_models::{FailureKind, FinishReason, Message, Request, Wire};

use crate::client::{ALL, Connection, ask, get, model, server, target};

fn hello(wire: Wire, stream: bool) -> Request {
    Request { model: model(wire), messages: vec![Message::user("hello")], stream, ..Request::default() }
}

#[tokio::test]
async fn errors_come_as_scripted_and_go() {
    let script = "turns:
      - {error: {status: 429, retry_after: 2}, times: 1}
      - {error: {status: 529}, times: 1}
      - {error: {status: 500, message: 'the disk is full'}, times: 1}
      - {text: fine}";
    for one in ALL {
        for stream in [false, true] {
            let server = server(script).await;
            let target = target(&server, one);
            let request = hello(one.1, stream);
            let limited = ask(&request, &target).await.1.unwrap_err();
            assert_eq!(
                (limited.kind, limited.retry_after_ms),
                (FailureKind::RateLimited, Some(2_000)),
                "{}",
                one.1
            );
            assert_eq!(limited.request_id.as_deref(), Some("req_1"));
            let busy = ask(&request, &target).await.1.unwrap_err();
            assert_eq!((busy.kind, busy.status), (FailureKind::Overloaded, Some(529)));
            let broken = ask(&request, &target).await.1.unwrap_err();
            assert_eq!((broken.kind, broken.status), (FailureKind::HttpStatus, Some(500)));
            assert!(broken.message.ends_with("the disk is full"), "{broken}");
            assert_eq!(ask(&request, &target).await.1.unwrap().text, "fine");
            let count = get(&format!("{}/count", server.url())).await;
            assert_eq!((&count["count"], &count["refused"]), (&4.into(), &3.into()));
        }
    }
}

#[tokio::test]
async fn refusals_filters_and_cuts_are_told() {
    let script = "turns:
      - {when: {contains: refuse}, refusal: 'I will not.'}
      - {when: {contains: filter}, text: Half, finish: content_filter}
      - {when: {contains: length}, text: Half, finish: length}
      - {when: {contains: fault}, text: Half a loaf, chunk_chars: 2, error: {status: 529}, fault_after: 4}
      - {when: {contains: odd}, text: Half, finish: something_new}";
    let server = server(script).await;
    for one in ALL {
        let target = target(&server, one);
        let said =
            |text: &str, stream| Request { messages: vec![Message::user(text)], ..hello(one.1, stream) };
        for stream in [false, true] {
            // Gemini has no refusals: it holds back. Anthropic has no filter: it refuses.
            let refused = ask(&said("refuse", stream), &target).await.1.unwrap_err();
            let expected =
                if one.1 == Wire::Gemini { FailureKind::ContentFiltered } else { FailureKind::ModelRefused };
            assert_eq!(refused.kind, expected, "{}", one.1);
            assert!(refused.message.contains("I will not.") && refused.usage.is_some(), "{refused}");
            let filtered = ask(&said("filter", stream), &target).await.1.unwrap_err();
            let expected = if one.1 == Wire::Anthropic {
                FailureKind::ModelRefused
            } else {
                FailureKind::ContentFiltered
            };
            assert_eq!(filtered.kind, expected, "{}", one.1);
            let cut = ask(&said("length", stream), &target).await.1.unwrap();
            assert_eq!((&*cut.text, cut.finish_reason), ("Half", FinishReason::Length));
            let odd = ask(&said("odd", stream), &target).await.1.unwrap_err();
            assert_eq!(odd.kind, FailureKind::HttpStatus, "{}", one.1);
        }
        let (deltas, busy) = ask(&said("fault", true), &target).await;
        assert_eq!(busy.unwrap_err().kind, FailureKind::Overloaded, "{}", one.1);
        assert!(!deltas.is_empty());
    }
}

#[tokio::test]
async fn a_connection_that_breaks_is_told_wherever_it_breaks() {
    for one in ALL {
        // Where an answer breaks off without a word, the codec says so; where the transport does, the client.
        for cut in 1..6 {
            let server =
                server(&format!("turns: [{{text: 'a longer answer', chunk_chars: 3, cut_after: {cut}}}]"))
                    .await;
            for stream in [false, true] {
                let failure = ask(&hello(one.1, stream), &target(&server, one)).await.1.unwrap_err();
                assert_eq!(failure.kind, FailureKind::Network, "{} {cut} {stream}", one.1);
            }
        }
    }
}

/// Whoever gives up on a server that hangs leaves nothing behind there.
#[tokio::test]
async fn a_hanging_answer_can_be_left() {
    let server = server("turns: [{text: 'a longer answer', chunk_chars: 3, hang_after: 3}]").await;
    for one in ALL {
        let exchange = wonder_models::encode(&hello(one.1, true), &target(&server, one)).unwrap();
        let mut connection = Connection::open(&exchange.call).await.unwrap();
        for _ in 0..3 {
            assert!(connection.piece().await.unwrap().is_some());
        }
        let url = format!("{}/count", server.url());
        assert_eq!(get(&url).await["open"], 1);
        drop(connection);
        let mut asked = 0;
        while get(&url).await["open"] != 0 {
            asked += 1;
            assert!(asked < 1_000, "it is still open");
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn slow_answers_come_in_pieces() {
    let server =
        server("turns: [{text: 'one two three', chunk_chars: 4, chunk_delay_ms: 1, delay_ms: 1}]").await;
    for one in ALL {
        let (deltas, reply) = ask(&hello(one.1, true), &target(&server, one)).await;
        assert_eq!((deltas.len(), &*reply.unwrap().text), (4, "one two three"), "{}", one.1);
    }
}
