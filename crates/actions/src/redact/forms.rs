//! The forms that a secret is likely to come back in, by who writes them: itself, its lines, and as JSON, URLs, HTML,
//! string literals, shells, hex and base64 have it. Each table names what the encoders in use differ in.
//!
//! It knows encodings, not transformations: a secret that is reversed, encrypted, compressed or spelled out is not
//! found, nor is a part of one.

use std::collections::BTreeSet;

/// A part of a secret on its own, a line or a stretch of base64, must be this long to be told from chance.
pub(super) const PART_BYTES_MIN: usize = 6;

/// Every form of a secret, the secret included.
pub(super) fn forms_of(secret: &str, forms: &mut BTreeSet<String>) {
    // Shells drop the line break at the end, editors add one, and some systems write two characters for it.
    let mut written = BTreeSet::from([secret.to_owned(), secret.trim().to_owned()]);
    if secret.contains('\n') {
        written.extend([secret.replace("\r\n", "\n"), secret.replace("\r\n", "\n").replace('\n', "\r\n")]);
    }
    for text in &written {
        in_json(text, forms);
        in_urls(text, forms);
        in_html(text, forms);
        in_literals(text, forms);
        in_shells(text, forms);
        in_hex(text, forms);
        for alphabet in [STANDARD, URL_SAFE] {
            in_base64(text.as_bytes(), alphabet, forms);
        }
    }
    let lines = secret.lines().map(str::trim);
    forms.extend(lines.filter(|line| line.len() >= PART_BYTES_MIN).map(str::to_owned));
    forms.extend(written);
}

/// What encoders write as `\uHHHH` although they need not: nothing; Go; Gson; .NET and PHP's flags.
const JSON_CAUTION: [&str; 4] = ["", "<>&", "<>&='", "<>&'\"+`"];

fn in_json(text: &str, forms: &mut BTreeSet<String>) {
    let beyond_ascii = !text.is_ascii();
    for upper in [false, true] {
        for careful in ways(text.contains(|c| JSON_CAUTION.concat().contains(c)), &JSON_CAUTION) {
            for slash in ways(text.contains('/'), &["/", "\\/"]) {
                for ascii in ways(beyond_ascii, &[false, true]) {
                    forms.insert(mapped(text, |c| match c {
                        c if careful.contains(c) => utf16(c, upper),
                        '/' => (*slash).to_owned(),
                        '"' => "\\\"".to_owned(),
                        c if *ascii && !c.is_ascii() => utf16(c, upper),
                        c => control(c, upper),
                    }));
                }
            }
        }
        forms.insert(mapped(text, |c| utf16(c, upper)));
    }
    // JSON as a text in JSON.
    let escaped = |text: &str| mapped(text, |c| if c == '"' { "\\\"".to_owned() } else { control(c, false) });
    forms.insert(escaped(&escaped(text)));
}

/// The character with a backslash before it if it needs one in JSON and in most literals, quotes excepted.
fn control(c: char, upper: bool) -> String {
    match c {
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        c if c.is_ascii_control() => utf16(c, upper),
        c => c.to_string(),
    }
}

fn utf16(c: char, upper: bool) -> String {
    let mut units = [0; 2];
    let units = c.encode_utf16(&mut units).iter();
    units.map(|unit| if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") }).collect()
}

/// What stays itself in a URL, beside letters and digits: by RFC 3986; also as Python, `encodeURIComponent`, `encodeURI`,
/// forms, PHP and browsers (in a path and in a query) have it; nothing at all.
const URL_KEEPS: [&str; 8] = [
    "-._~",
    "-._~/",
    "-_.!~*'()",
    "-_.!~*'();,/?:@&=+$#",
    "*-._",
    "-._",
    "-_.!~*'();,/:@&=+$%|\\^[]",
    "-_.!~*();,/:@&=+$%|\\^[]?{}`",
];

fn in_urls(text: &str, forms: &mut BTreeSet<String>) {
    for hex in [percent, percent_lower] {
        for keeps in URL_KEEPS {
            let keeps = |byte: u8| byte.is_ascii_alphanumeric() || keeps.as_bytes().contains(&byte);
            let encoded = url_encoded(text, keeps, hex);
            forms.insert(encoded.replace("%20", "+"));
            forms.insert(encoded);
        }
        forms.insert(url_encoded(text, |_| false, hex));
    }
}

/// As it stands in a URL: everything but unreserved characters as `%HH`.
pub(crate) fn percent_encoded(text: &str) -> String {
    url_encoded(text, |byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte), percent)
}

fn url_encoded(text: &str, keeps: impl Fn(u8) -> bool, hex: fn(u8) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if keeps(byte) { out.push(byte as char) } else { out.push_str(&hex(byte)) }
    }
    out
}

fn percent(byte: u8) -> String {
    format!("%{byte:02X}")
}

fn percent_lower(byte: u8) -> String {
    format!("%{byte:02x}")
}

/// How a quote and an apostrophe are written in HTML and XML; encoders pair them so.
const HTML_QUOTES: [(&str, &str); 9] = [
    ("\"", "'"),
    ("\"", "&apos;"),
    ("&quot;", "'"),
    ("&quot;", "&#39;"),
    ("&quot;", "&#x27;"),
    ("&quot;", "&#039;"),
    ("&quot;", "&apos;"),
    ("&#34;", "&#39;"),
    ("&#x22;", "&#x27;"),
];
const HTML_SLASHES: [&str; 4] = ["/", "&#x2F;", "&#x2f;", "&#47;"];
const HTML_BREAKS: [&str; 3] = ["\n", "&#10;", "&#xA;"];

fn in_html(text: &str, forms: &mut BTreeSet<String>) {
    let references: [fn(char) -> String; 4] = [
        |c| c.to_string(),
        |c| format!("&#{};", u32::from(c)),
        |c| format!("&#x{:x};", u32::from(c)),
        |c| format!("&#x{:X};", u32::from(c)),
    ];
    for (quote, apostrophe) in ways(text.contains(['"', '\'']), &HTML_QUOTES) {
        for slash in ways(text.contains('/'), &HTML_SLASHES) {
            for line_break in ways(text.contains('\n'), &HTML_BREAKS) {
                for reference in ways(!text.is_ascii(), &references) {
                    forms.insert(mapped(text, |c| match c {
                        '&' => "&amp;".to_owned(),
                        '<' => "&lt;".to_owned(),
                        '>' => "&gt;".to_owned(),
                        '"' => (*quote).to_owned(),
                        '\'' => (*apostrophe).to_owned(),
                        '/' => (*slash).to_owned(),
                        '\n' => (*line_break).to_owned(),
                        c if c.is_ascii() => c.to_string(),
                        c => reference(c),
                    }));
                }
            }
        }
    }
    // Some leave `>` alone where nothing asks for it, some write all of it by number.
    forms.insert(text.replace('&', "&amp;").replace('<', "&lt;"));
    forms.extend(references.map(|reference| mapped(text, reference)));
}

/// Literals of Rust, Python, C, JavaScript and the `$'…'` of shells: which quotes have a backslash, and what becomes of
/// characters beyond ASCII.
fn in_literals(text: &str, forms: &mut BTreeSet<String>) {
    let bytes =
        |c: char, way: fn(u8) -> String| c.encode_utf8(&mut [0; 4]).bytes().map(way).collect::<String>();
    let beyond: [&dyn Fn(char) -> String; 7] = [
        &|c| c.to_string(),
        &|c| bytes(c, hex_escape),
        &|c| bytes(c, |byte| format!("\\x{byte:02X}")),
        &|c| bytes(c, |byte| format!("\\{byte:03o}")),
        &|c| format!("\\u{{{:x}}}", u32::from(c)),
        &python,
        &|c| utf16(c, true),
    ];
    let quotes = [("\"", "'"), ("\\\"", "'"), ("\"", "\\'"), ("\\\"", "\\'")];
    for (quote, apostrophe) in ways(text.contains(['"', '\'']), &quotes) {
        for beyond in ways(!text.is_ascii(), &beyond) {
            forms.insert(mapped(text, |c| match c {
                '"' => (*quote).to_owned(),
                '\'' => (*apostrophe).to_owned(),
                c if c.is_ascii() => control(c, false),
                c => beyond(c),
            }));
        }
    }
}

fn hex_escape(byte: u8) -> String {
    format!("\\x{byte:02x}")
}

/// As `ascii()` writes it.
fn python(c: char) -> String {
    match u32::from(c) {
        code @ ..=0xff => format!("\\x{code:02x}"),
        code @ ..=0xffff => format!("\\u{code:04x}"),
        code => format!("\\U{code:08x}"),
    }
}

fn in_shells(text: &str, forms: &mut BTreeSet<String>) {
    // JSON or a literal after an `echo` that takes its backslashes in pairs.
    forms.insert(text.replace('"', "\\\""));
    forms.insert(text.replace('\'', "\\'"));
    forms.insert(text.replace('\'', "'\\''"));
    forms.insert(text.replace('\'', "'\"'\"'"));
    forms.insert(with_backslashes(text, |c| "$`\"\\".contains(c)));
    // As `printf %q` has it.
    forms.insert(with_backslashes(text, |c| {
        c.is_ascii() && !c.is_alphanumeric() && !"_./:@%+,=-".contains(c)
    }));
}

fn with_backslashes(text: &str, before: impl Fn(char) -> bool) -> String {
    mapped(text, |c| if before(c) { format!("\\{c}") } else { c.to_string() })
}

fn in_hex(text: &str, forms: &mut BTreeSet<String>) {
    for (before, between) in [("", ""), ("", ":"), ("", " "), ("", "-"), ("\\x", "")] {
        let lower: Vec<String> = text.bytes().map(|byte| format!("{before}{byte:02x}")).collect();
        let upper: Vec<String> = text.bytes().map(|byte| format!("{before}{byte:02X}")).collect();
        forms.extend([lower.join(between), upper.join(between)]);
    }
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The secret alone, and as a part of something longer: base64 takes three bytes at a time, so there are
/// three ways it can fall, and what its neighbours have a say in is left out.
fn in_base64(secret: &[u8], alphabet: &[u8; 64], forms: &mut BTreeSet<String>) {
    let alone = base64(secret, alphabet);
    forms.insert(format!("{alone}{}", "=".repeat((4 - alone.len() % 4) % 4)));
    forms.insert(alone);
    for shift in 0..3 {
        let shifted = [&[0; 2][..shift], secret].concat();
        let text = base64(&shifted, alphabet);
        let own = &text[(shift * 8).div_ceil(6)..shifted.len() * 8 / 6];
        if own.len() >= PART_BYTES_MIN {
            // Some encoders of JSON and URLs do not leave these alone.
            for (slash, plus) in [("/", "+"), ("\\/", "+"), ("%2F", "%2B"), ("%2f", "%2b"), ("/", "\\u002B")]
            {
                forms.insert(own.replace('/', slash).replace('+', plus));
            }
        }
    }
}

/// Without padding.
fn base64(bytes: &[u8], alphabet: &[u8; 64]) -> String {
    let mut text = String::with_capacity(bytes.len() * 4 / 3 + 3);
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..=chunk.len() {
            let six = word >> (18 - 6 * at) & 63;
            text.push(char::from(alphabet[six as usize]));
        }
    }
    text
}

/// All ways, or only the first where the text has nothing that they differ in.
fn ways<T>(differ: bool, all: &[T]) -> &[T] {
    if differ { all } else { &all[..1] }
}

fn mapped(text: &str, way: impl Fn(char) -> String) -> String {
    text.chars().map(way).collect()
}
