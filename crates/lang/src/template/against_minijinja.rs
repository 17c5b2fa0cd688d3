//! Ours and minijinja's interpreter on the same templates: the same text from both, or an error from both.

use super::oracle;
use super::{FILTERS, FUNCTIONS, TESTS, Template};
use crate::value::Value;

fn scope() -> Value {
    Value::from_json_str(
        r#"{
            "name": "Ada <b>", "n": 3, "z": 0, "neg": -7, "f": 2.5, "two": 2.0, "none": null, "yes": true, "no": false,
            "empty": [], "nothing": {}, "blank": "", "lines": "one\ntwo\n\nthree\n", "words": "the quick  brown\tfox",
            "state": {"plan": {"title": "T", "steps": [{"id": 1, "tags": ["x", "y"]}, {"id": 2, "tags": []}]}},
            "xs": [3, 1, 2], "names": ["bob", "Ada", "cleo"], "mixed": [1, "a", null, 2.5, true, [1], {"k": 1}],
            "people": [{"n": "bob", "a": {"b": 2}, "g": "x"}, {"n": "Ada", "a": {"b": 1}, "g": "y"},
                       {"n": "cleo", "a": {"b": 3}, "g": "x"}, {"n": "dan"}],
            "map": {"b": 1, "a": "two", "c": [1, 2]}, "quote": "it's \"so\"\t\\ \u0001", "é": "umlaut", "uni": "Größe ß",
            "tree": [{"n": "a", "c": [{"n": "b", "c": []}, {"n": "c", "c": [{"n": "d", "c": []}]}]}, {"n": "e", "c": []}]
        }"#,
    )
    .unwrap()
}

fn ours(text: &str) -> Result<String, String> {
    let template = Template::compile(text).map_err(|error| error.message)?;
    template.render(&scope()).map_err(|error| error.message)
}

/// Each line is a template of its own.
const TEMPLATES: &str = include_str!("corpus.txt");

fn templates() -> Vec<String> {
    let lines = TEMPLATES.lines().filter(|line| !line.is_empty() && !line.starts_with("## "));
    let mut all: Vec<String> = lines.map(|line| line.replace("\\N", "\n")).collect();
    all.extend(
        [FILTERS, TESTS, FUNCTIONS].iter().flat_map(|table| table.iter()).map(|term| term.example.to_owned()),
    );
    all
}

#[test]
fn the_same_text_or_an_error_from_both() {
    let mut different = String::new();
    for text in templates() {
        let (ours, theirs) = (ours(&text), oracle::render(&text, &scope(), None));
        if ours.as_ref().ok() != theirs.as_ref().ok() {
            different += &format!("{text}\n  ours:   {ours:?}\n  theirs: {theirs:?}\n");
        }
    }
    assert!(different.is_empty(), "\n{different}");
}

#[test]
fn the_same_text_with_an_escape() {
    fn quote(value: &Value) -> String {
        format!("<{}>", value.as_str().map_or(value.to_string(), str::to_owned))
    }
    for text in templates() {
        let template = Template::compile(&text);
        let ours = template.map(|template| template.render_with(&scope(), Some(quote)).ok());
        let theirs = oracle::render(&text, &scope(), Some(quote)).ok();
        assert_eq!(ours.ok().flatten(), theirs, "{text}");
    }
}

/// Where ours differs on purpose, with what it gives: `docs/adr/0024` says why.
#[test]
fn departures_are_known() {
    for (text, expected) in [
        // What is lazy there is a list here, and has the place of one in the order of things.
        ("{{ range(3) < {} }}{{ xs[1:] < {} }}{{ xs[1:] is sequence }}", "truetruetrue"),
        ("{{ xs|chain([9], 'ab')|length }}{{ map|items|length }}", "63"),
        // Backwards, an end of 0 is one.
        ("{{ xs[2:0:-1] }}", "[2,1]"),
        ("{{ {'a': 1, 'b': 2}|reverse }}{{ {'a': 1, 'b': 2}|last }}", r#"["b","a"]b"#),
        ("{{ xs is sameas(xs) }}{{ 1 is filter }}", "truefalse"),
        // Every parameter can be given by its name.
        ("{{ xs|batch(count=2) }}{{ ''|default('x', boolean=true) }}", "[[3,1],[2]]x"),
        // Keys are texts.
        ("{% for k in {1: 'a'} %}{{ k ~ {1: 'b'}[1] ~ (k is string) }}{% endfor %}", "1bTrue"),
    ] {
        assert_eq!(ours(text).as_deref(), Ok(expected), "{text}");
        assert_ne!(oracle::render(text, &scope(), None).as_deref(), Ok(expected), "{text}");
    }
    for text in [
        // Whole numbers are those of JSON and CEL.
        "{{ 9223372036854775807 + 1 }}",
        "{{ 2 ** 64 }}",
        "{{ (-9223372036854775807 - 1)|abs }}",
        // Nothing contains itself.
        "{% set ns = namespace() %}{% set ns.a = ns %}",
        "{% set ns = namespace() %}{% set x = [ns] %}",
        // Nothing is undefined without a word, needed or not.
        "{{ 'a'|format(missing) }}",
    ] {
        assert!(ours(text).is_err(), "{text}");
        assert!(oracle::render(text, &scope(), None).is_ok(), "{text}");
    }
}

/// The numbers of a fixed sequence that looks like chance.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.roll(choices.len())]
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.of(ATOMS).to_owned();
        }
        let mut inner = |of: usize| self.expression(of - 1);
        let (a, b) = (inner(depth), inner(depth));
        match self.roll(12) {
            0..=2 => format!("({a} {} {b})", self.of(OPERATORS)),
            3..=6 => format!("({a})|{}", self.of(FILTERED).replace('$', &b)),
            7 => format!("({a}) is {}", self.of(TESTED).replace('$', &b)),
            8 => format!("[{a}, {b}]"),
            9 => format!("({a} if {b} else none)"),
            10 => format!("({a})[{}]", self.of(&["0", "-1", "5", "'a'"])),
            _ => format!("{{'a': {a}, 'b': {b}}}"),
        }
    }
}

const ATOMS: &[&str] = &[
    "1",
    "0",
    "-2",
    "2.5",
    "'a'",
    "'b c'",
    "''",
    "none",
    "true",
    "xs",
    "names",
    "map",
    "people",
    "mixed",
    "n",
    "f",
    "name",
    "[]",
    "{}",
    "missing",
    "state.plan.title",
    "state.plan.nope",
    "lines",
    "(1, 'x')",
];
const OPERATORS: &[&str] =
    &["+", "-", "*", "/", "//", "%", "~", "<", "<=", "==", "!=", ">", "in", "not in", "and", "or"];
const FILTERED: &[&str] = &[
    "upper",
    "length",
    "first",
    "list|last",
    "list",
    "join(', ')",
    "join($)",
    "default($)",
    "sort",
    "list|reverse|list",
    "unique",
    "string",
    "tojson",
    "int(0)",
    "float(1.5)",
    "abs",
    "trim",
    "title",
    "capitalize",
    "items|list",
    "map('string')|list",
    "sum",
    "e",
    "map(attribute='n', default=$)|list",
    "select|list",
    "reject('odd')|list",
    "selectattr('n')|list",
    "batch(2)",
    "slice(2)",
    "replace('a', $)",
    "split",
    "lines",
    "indent(1)",
    "max",
    "min",
    "round(1)",
    "zip(names)|list",
    "chain($)|list",
    "pprint",
    "bool",
    "dictsort",
    "attr('a')",
    "groupby('n')|length",
    "batch(2, $)",
    "safe",
    "format(n)",
];
const TESTED: &[&str] = &[
    "defined",
    "none",
    "string",
    "number",
    "mapping",
    "odd",
    "iterable",
    "eq($)",
    "in([1, $])",
    "lt($)",
    "boolean",
    "lower",
    "startingwith('a')",
    "divisibleby(2)",
];

/// Templates that nobody thought of.
#[test]
fn random_templates_give_the_same() {
    let mut dice = Dice(24);
    let (mut different, mut rendered) = (String::new(), 0);
    for _ in 0..20_000 {
        let depth = 1 + dice.roll(3);
        let text = format!("{{{{ {} }}}}", dice.expression(depth));
        let (ours, theirs) = (ours(&text), oracle::render(&text, &scope(), None));
        rendered += usize::from(theirs.is_ok());
        if ours.as_ref().ok() != theirs.as_ref().ok() {
            different += &format!("{text}\n  ours:   {ours:?}\n  theirs: {theirs:?}\n");
        }
    }
    assert!(rendered > 4_000, "{rendered}");
    assert!(different.is_empty(), "\n{different}");
}
