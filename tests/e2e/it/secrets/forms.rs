//! What encoders make of a text, written here once more: what hides secrets shares no code with what looks for them.

use std::collections::BTreeMap;

type Bytes<'b> = dyn Fn(u8) -> String + 'b;
type Chars<'c> = dyn Fn(char) -> Option<String> + 'c;

/// Every form of a text, by what made it.
pub(crate) fn forms(text: &str) -> BTreeMap<String, String> {
    let mut forms = BTreeMap::new();
    let mut add = |name: &str, form: String| drop(forms.insert(name.to_owned(), form));
    add("plain", text.to_owned());
    add("trimmed", text.trim().to_owned());
    for (name, form) in json(text).into_iter().chain(urls(text)).chain(html(text)).chain(literals(text)) {
        add(&name, form);
    }
    let each = |each: &Bytes<'_>, between: &str| text.bytes().map(each).collect::<Vec<_>>().join(between);
    add("hex", each(&|byte| format!("{byte:02x}"), ""));
    add("HEX", each(&|byte| format!("{byte:02X}"), ""));
    add("hex with colons", each(&|byte| format!("{byte:02x}"), ":"));
    add("hex with blanks", each(&|byte| format!("{byte:02x}"), " "));
    add("bytes in a literal", each(&|byte| format!("\\x{byte:02x}"), ""));
    for (name, alphabet) in [("base64", "+/"), ("base64url", "-_")] {
        let whole = base64(text.as_bytes(), alphabet);
        add(name, whole.trim_end_matches('=').to_owned());
        add(&format!("{name} padded"), whole);
        for before in 0..3 {
            add(&format!("{name} after {before}"), within_base64(text, before, alphabet));
        }
    }
    forms
}

fn replaced(text: &str, way: &Chars<'_>) -> String {
    text.chars().map(|c| way(c).unwrap_or_else(|| c.to_string())).collect()
}

fn unicode(c: char, upper: bool) -> Option<String> {
    let mut units = [0; 2];
    let units = c.encode_utf16(&mut units).iter();
    Some(units.map(|unit| if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") }).collect())
}

fn json(text: &str) -> Vec<(String, String)> {
    let quoted = |text: &str| {
        let quoted = serde_json::to_string(text).expect("a text");
        quoted[1..quoted.len() - 1].to_owned()
    };
    let plain = quoted(text);
    let beyond = |upper: bool| move |c: char| if c.is_ascii() { None } else { unicode(c, upper) };
    let tags = |upper: bool| move |c: char| if "<>&".contains(c) { unicode(c, upper) } else { None };
    let php = |c: char| if c == '/' { Some("\\/".to_owned()) } else { beyond(false)(c) };
    let all = [
        ("JSON in JSON", quoted(&plain)),
        ("JSON of Python", replaced(&plain, &beyond(false))),
        ("JSON in ASCII, capitals", replaced(&plain, &beyond(true))),
        ("JSON of Go", replaced(&plain, &tags(false))),
        ("JSON of .NET", replaced(&plain, &|c| tags(true)(c).or_else(|| beyond(true)(c)))),
        ("JSON of PHP", replaced(&plain, &php)),
        ("JSON with slashes", plain.replace('/', "\\/")),
        ("JSON by number", replaced(text, &|c| unicode(c, false))),
        ("JSON", plain),
    ];
    all.map(|(name, form)| (name.to_owned(), form)).into()
}

fn urls(text: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (name, keeps) in [
        ("RFC 3986", "-._~"),
        ("Python", "-._~/"),
        ("encodeURIComponent", "-_.!~*'()"),
        ("encodeURI", "-_.!~*'();,/?:@&=+$#"),
        ("a form", "*-._"),
    ] {
        let encoded = |upper: bool| {
            let way = |byte: u8| match byte {
                byte if byte.is_ascii_alphanumeric() || keeps.as_bytes().contains(&byte) => {
                    char::from(byte).to_string()
                }
                byte if upper => format!("%{byte:02X}"),
                byte => format!("%{byte:02x}"),
            };
            text.bytes().map(way).collect::<String>()
        };
        all.push((format!("URL by {name}"), encoded(true)));
        all.push((format!("URL by {name}, small"), encoded(false)));
        all.push((format!("URL by {name}, with +"), encoded(true).replace("%20", "+")));
    }
    all.push(("URL, all of it".to_owned(), text.bytes().map(|byte| format!("%{byte:02X}")).collect()));
    all
}

fn html(text: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (name, quote, apostrophe) in [
        ("HTML of Python", "&quot;", "&#x27;"),
        ("HTML of Go", "&#34;", "&#39;"),
        ("HTML of PHP", "&quot;", "&#039;"),
        ("XML", "&quot;", "&apos;"),
        ("HTML, tags only", "\"", "'"),
    ] {
        let way = |c: char| {
            let reference = match c {
                '&' => "&amp;",
                '<' => "&lt;",
                '>' => "&gt;",
                '"' => quote,
                '\'' => apostrophe,
                _ => return None,
            };
            Some(reference.to_owned())
        };
        all.push((name.to_owned(), replaced(text, &way)));
    }
    all.push(("HTML by number".to_owned(), replaced(text, &|c| Some(format!("&#{};", u32::from(c))))));
    all.push(("HTML by hex number".to_owned(), replaced(text, &|c| Some(format!("&#x{:x};", u32::from(c))))));
    all
}

fn literals(text: &str) -> Vec<(String, String)> {
    let rust = format!("{text:?}");
    let all = [
        ("a literal of Rust", rust[1..rust.len() - 1].to_owned()),
        ("JSON after echo", text.replace('"', "\\\"")),
        ("a word of a shell", text.replace('\'', "'\\''")),
        ("a word of Python's shlex", text.replace('\'', "'\"'\"'")),
    ];
    all.map(|(name, form)| (name.to_owned(), form)).into()
}

/// With its padding; `alphabet` has the last two characters.
pub(crate) fn base64(bytes: &[u8], alphabet: &str) -> String {
    let letters: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(alphabet.chars()).collect();
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits: String = chunk.iter().map(|byte| format!("{byte:08b}")).collect();
        let sixes = bits.as_bytes().chunks(6).map(|six| {
            let six = format!("{:0<6}", String::from_utf8_lossy(six));
            letters[usize::from_str_radix(&six, 2).expect("bits")]
        });
        text.extend(sixes);
        (chunk.len()..3).for_each(|_| text.push('='));
    }
    text
}

/// What a text is in the base64 of a longer one, whatever stands around it: the characters all of whose bits are its own.
fn within_base64(text: &str, before: usize, alphabet: &str) -> String {
    let whole = base64(format!("{}{text}???", "?".repeat(before)).as_bytes(), alphabet);
    whole[(before * 8).div_ceil(6)..(before + text.len()) * 8 / 6].to_owned()
}

#[test]
fn encoders_are_as_the_world_has_them() {
    let forms = forms("a'b/<ö>");
    for (name, form) in [
        ("JSON of Python", "a'b/<\\u00f6>"),
        ("JSON of Go", "a'b/\\u003cö\\u003e"),
        ("JSON of PHP", "a'b\\/<\\u00f6>"),
        ("URL by RFC 3986", "a%27b%2F%3C%C3%B6%3E"),
        ("URL by encodeURI", "a'b/%3C%C3%B6%3E"),
        ("HTML of Python", "a&#x27;b/&lt;ö&gt;"),
        ("hex", "6127622f3cc3b63e"),
        ("base64 padded", "YSdiLzzDtj4="),
        ("base64url", "YSdiLzzDtj4"),
        ("base64 after 1", "EnYi88w7Y+"),
        ("a word of a shell", "a'\\''b/<ö>"),
    ] {
        assert_eq!(forms[name], form, "{name}");
    }
}
