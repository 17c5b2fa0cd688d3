//! Whose key goes where, and what can be in an address.

use wonder_models::{Header, KeyChoice, Provider, Wire, encode, key_for};

use crate::support::{ALL, KEY, ask, exchange, target};

fn environment(name: &str) -> Option<String> {
    let known = [("OPENAI_API_KEY", "sk-o"), ("ANTHROPIC_API_KEY", "sk-a"), ("GOOGLE_API_KEY", "sk-g")];
    known.iter().find(|(known, _)| *known == name).map(|(_, key)| (*key).to_owned())
}

/// The language's table and the codecs know the same providers.
#[test]
fn every_provider_of_the_language_can_be_asked() {
    let known: Vec<&str> = wonder_lang::def::PROVIDERS.iter().map(|(name, _)| *name).collect();
    assert_eq!(known, Provider::ALL.map(Provider::as_str));
}

#[test]
fn a_key_goes_only_where_it_was_given_for() {
    let key = |provider, base_url, api_key| {
        let choice = key_for(provider, base_url, api_key, environment).unwrap();
        choice.key().map(|key| key.expose().to_owned())
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(key(Provider::OpenAi, None, None), some("sk-o"));
    assert_eq!(key(Provider::OpenAi, Some("https://API.openai.com:443/v1/"), None), some("sk-o"));
    assert_eq!(key(Provider::Gemini, None, None), some("sk-g"));
    assert_eq!(key(Provider::Ollama, None, None), None);
    assert_eq!(key(Provider::OpenAiCompatible, Some("https://api.openai.com/v1"), None), None);
    for elsewhere in [
        "http://api.openai.com/v1",
        "https://api.openai.com:8443/v1",
        "https://api.openai.com.evil.example/v1",
        "https://evil.example/api.openai.com/v1",
        "http://127.0.0.1:9000",
    ] {
        let choice = key_for(Provider::OpenAi, Some(elsewhere), None, environment).unwrap();
        assert_eq!(choice, KeyChoice::Withheld { variable: "OPENAI_API_KEY" }, "{elsewhere}");
        assert_eq!(key(Provider::OpenAi, Some(elsewhere), Some("own")), some("own"));
    }
}

#[test]
fn a_missing_key_is_said_before_anything_is_sent() {
    let problem = key_for(Provider::Gemini, None, None, |_| None).unwrap_err();
    assert!(problem.to_string().contains("set GEMINI_API_KEY"), "{problem}");
    assert_eq!(
        key_for(Provider::Gemini, Some("http://127.0.0.1:1"), None, |_| None),
        Ok(KeyChoice::NotNeeded)
    );
    assert!(key_for(Provider::OpenAi, None, Some(" "), environment).is_err());
}

#[test]
fn a_key_is_in_one_header_and_nowhere_else() {
    for one in ALL {
        let exchange = exchange(&ask(one.1), one);
        let carries = |header: &&Header| header.value.contains(KEY);
        assert_eq!(exchange.call.headers.iter().filter(carries).count(), 1);
        assert!(exchange.call.headers.iter().filter(carries).all(|header| header.is_secret));
        assert!(!exchange.call.url.contains(KEY));
        assert!(!String::from_utf8_lossy(&exchange.call.body).contains(KEY));
        assert!(!format!("{exchange:?} {:?}", target(one.0, one.1)).contains(KEY));
    }
}

#[test]
fn addresses_are_completed_and_checked() {
    let url = |provider, wire, base: &str, stream| {
        let mut target = target(provider, wire);
        target.base_url = Some(base.to_owned());
        let request = wonder_models::Request { stream, ..ask(wire) };
        encode(&request, &target).map(|exchange| exchange.call.url)
    };
    let chat = |provider, base: &str| url(provider, Wire::Chat, base, false).unwrap();
    assert_eq!(
        chat(Provider::Ollama, "http://127.0.0.1:11434"),
        "http://127.0.0.1:11434/v1/chat/completions"
    );
    assert_eq!(chat(Provider::Ollama, "http://h/v1/"), "http://h/v1/chat/completions");
    assert_eq!(chat(Provider::OpenAiCompatible, "https://h/api"), "https://h/api/chat/completions");
    let anthropic = url(Provider::Anthropic, Wire::Anthropic, "https://gw/claude", false).unwrap();
    assert_eq!(anthropic, "https://gw/claude/v1/messages");
    let gemini = url(Provider::Gemini, Wire::Gemini, "https://g", true).unwrap();
    assert_eq!(gemini, "https://g/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse");
    for base in
        ["h/v1", "ftp://h", "https://", "https://u:p@h", "https://h/?key=1", "https://h/ x", "https://h/#a"]
    {
        let problem = url(Provider::OpenAi, Wire::Chat, base, false).unwrap_err();
        assert_eq!(problem.place, "base_url", "{base}");
    }
}

#[test]
fn a_header_cannot_smuggle_another() {
    for header in [Header::new("x-a", "1\r\nhost: evil"), Header::new("x a", "1"), Header::new("", "1")] {
        let mut target = target(Provider::OpenAi, Wire::Chat);
        target.headers = vec![header];
        assert!(encode(&ask(Wire::Chat), &target).is_err());
    }
    let mut target = target(Provider::OpenAi, Wire::Chat);
    target.headers = vec![Header::new("Authorization", "Basic x"), Header::new("X-Team", "a")];
    let headers = encode(&ask(Wire::Chat), &target).unwrap().call.headers;
    let values: Vec<&str> = headers
        .iter()
        .filter(|header| ["authorization", "x-team"].contains(&&*header.name))
        .map(|header| &*header.value)
        .collect();
    assert_eq!(values, ["Basic x", "a"]);
}
