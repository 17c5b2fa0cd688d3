//! Every form of a secret is hidden, alone, in values, folded into lines and where two overlap; nothing else is touched.

use super::*;

const SECRET: &str = "p@ss wörd'\"9";

fn hide(text: &str) -> String {
    Redactor::new([SECRET]).hide(text.to_owned())
}

#[test]
fn every_form_of_a_secret_is_hidden() {
    let forms = [
        SECRET,
        "p@ss wörd'\\\"9",
        "p@ss wörd'\\''\"9",
        "p@ss wörd'\"'\"'\"9",
        "p%40ss%20w%C3%B6rd%27%229",
        "p%40ss%20w%c3%b6rd%27%229",
        "p%40ss+w%C3%B6rd%27%229",
        "p@ss%20w%C3%B6rd'%229",
        "p%40ss%20w%C3%B6rd'%229",
        "%70%40%73%73%20%77%C3%B6%72%64%27%22%39",
        "p@ss w\\u00f6rd'\\\"9",
        "p@ss w\\u00F6rd'\\\"9",
        "p@ss w\\u00F6rd\\u0027\\u00229",
        "p@ss wörd\\u0027\\u00229",
        "p@ss w\\xf6rd\\'\"9",
        "p@ss w\\xc3\\xb6rd\\'\"9",
        "p@ss w\\u{f6}rd'\\\"9",
        "p@ss w\\303\\266rd\\'\"9",
        "p@ss wörd&#39;&quot;9",
        "p@ss wörd&#x27;&quot;9",
        "p@ss w&#246;rd&apos;&quot;9",
        "p@ss wörd&#39;&#34;9",
        "p@ss\\ wörd\\'\\\"9",
        "70407373207 7c3b6726427 2239".replace(' ', "").leak(),
        "70407373 2077C3B6 72642722 39".replace(' ', "").leak(),
        "70:40:73:73:20:77:c3:b6:72:64:27:22:39",
        "70 40 73 73 20 77 c3 b6 72 64 27 22 39",
        "\\x70\\x40\\x73\\x73\\x20\\x77\\xc3\\xb6\\x72\\x64\\x27\\x22\\x39",
        "cEBzcyB3w7ZyZCciOQ==",
        "cEBzcyB3w7ZyZCciOQ",
    ];
    for form in forms {
        assert_eq!(hide(&format!("<{form}>")), "<***>", "{form}");
    }
    assert_eq!(hide("nothing here"), "nothing here");
}

#[test]
fn what_encoders_do_to_slashes_and_tags_is_known() {
    let redactor = Redactor::new(["a/b<c>&d+e=f?"]);
    for form in [
        "a\\/b<c>&d+e=f?",
        "a/b\\u003cc\\u003e\\u0026d+e=f?",
        "a/b\\u003Cc\\u003E\\u0026d\\u002Be=f?",
        "a\\/b\\u003Cc\\u003E\\u0026d\\u002Be=f?",
        "a/b&lt;c&gt;&amp;d+e=f?",
        "a&#x2F;b&lt;c&gt;&amp;d+e=f?",
        "a/b%3Cc%3E&d+e=f?",
        "a/b%3Cc%3E%26d%2Be%3Df%3F",
        "a%2Fb%3Cc%3E%26d%2Be%3Df%3F",
    ] {
        assert_eq!(redactor.hide(form.to_owned()), "***", "{form}");
    }
}

#[test]
fn base64_of_a_longer_text_does_not_give_it_away() {
    // What `printf 'BEFOREsecretAFTER' | base64` writes, for every way the secret can fall.
    for whole in [
        "cEBzcyB3w7ZyZCciOXRhaWw=",
        "dXBAc3Mgd8O2cmQnIjl0YWls",
        "dXNwQHNzIHfDtnJkJyI5dGFpbA==",
        "dXNlcEBzcyB3w7ZyZCciOXRhaWw=",
        "dXNlcjpwQHNzIHfDtnJkJyI5dGFpbA==",
    ] {
        let hidden = hide(whole);
        assert!(hidden.contains(HIDDEN), "{whole} became {hidden}");
        assert!(hidden.len() < whole.len() - 10, "{whole} became {hidden}");
    }
}

#[test]
fn what_an_encoder_folds_is_found_across_its_lines() {
    let secret = "the-quick-brown-fox-jumps-over-the-lazy-dog-and-is-gone-before-anybody-has-seen-it";
    // `base64` folds after 76 characters, `openssl` and PEM after 64, MIME with two characters, `xxd -p` after 60.
    let alone = "dGhlLXF1aWNrLWJyb3duLWZveC1qdW1wcy1vdmVyLXRoZS1sYXp5LWRvZy1hbmQtaXMtZ29uZS1iZWZvcmUtYW55Ym9keS1oYXMtc2Vlbi1pdA==";
    let inside = "eHh0aGUtcXVpY2stYnJvd24tZm94LWp1bXBzLW92ZXItdGhlLWxhenktZG9nLWFuZC1pcy1nb25lLWJlZm9yZS1hbnlib2R5LWhhcy1zZWVuLWl0";
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let redactor = Redactor::new([secret]);
    for (text, left) in [(alone, 0), (inside, 6), (&hex, 0)] {
        for width in [60, 64, 76] {
            for line_break in ["\n", "\r\n", "\\n", "\\r\\n"] {
                let lines: Vec<&str> =
                    text.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap()).collect();
                let hidden = redactor.hide(format!("<{}>", lines.join(line_break)));
                assert!(hidden.len() <= "<***>".len() + left, "{hidden}");
            }
        }
    }
    // Words on lines of their own are no fold.
    assert_eq!(Redactor::new(["foobar"]).hide("foo\nbar".to_owned()), "foo\nbar");
}

#[test]
fn a_key_of_several_lines_is_hidden_line_by_line_and_as_a_whole() {
    let key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\n}\n-----END KEY-----\n";
    let redactor = Redactor::new([key]);
    assert_eq!(redactor.hide("got MIIEvQIBADANBg".into()), "got ***");
    assert_eq!(redactor.hide("}".into()), "}");
    assert_eq!(redactor.hide(format!("<{key}>")), "<***>");
    assert_eq!(redactor.hide(format!("<{}>", key.replace('\n', "\r\n"))), "<***>");
    assert_eq!(redactor.hide(format!("<{}>", key.trim().replace('\n', "\\n"))), "<***>");
    assert_eq!(
        redactor.hide("LS0tLS1CRUdJTiBLRVktLS0tLQpNSUlFdlFJQkFEQU5CZwp9Ci0tLS0tRU5EIEtFWS0tLS0t".into()),
        "***"
    );
}

#[test]
fn what_overlaps_is_hidden_together() {
    let redactor = Redactor::new(["abcdef", "defghi"]);
    assert_eq!(redactor.hide("<abcdefghi>".into()), "<***>");
    assert_eq!(redactor.hide("<abcdef><defghi>".into()), "<***><***>");
}

#[test]
fn values_are_searched_to_the_last_key_and_number() {
    let redactor = Redactor::new(["12345678", "tok-en"]);
    let value = Value::from_json_str(r#"{"a":[12345678,1,"x tok-en"],"tok-en":null}"#).unwrap();
    assert_eq!(redactor.hide_in(value).to_string(), r#"{"***":null,"a":["***",1,"x ***"]}"#);
}

#[test]
fn a_value_without_secrets_is_the_same_value() {
    let value = Value::from_json_str(r#"{"a":[{"b":"nothing"}]}"#).unwrap();
    let (Value::Map(before), Value::Map(after)) = (&value, Redactor::new(["tok-en"]).hide_in(value.clone()))
    else {
        panic!("a map stays one")
    };
    assert!(std::sync::Arc::ptr_eq(before, &after));
}

#[test]
fn a_deep_value_is_searched_once() {
    let deep = (0..120).fold(Value::str("tok-en"), |inner, _| Value::list([inner]));
    let hidden = Redactor::new(["tok-en"]).hide_in(deep).to_string();
    assert!(hidden.contains(HIDDEN) && !hidden.contains("tok-en"));
}

#[test]
fn short_values_are_left_alone() {
    assert!(Redactor::new(["abc", "", "      "]).is_idle());
}
