//! The filters, tests and functions of templates, as people look them up. What they do is in `filters.rs`, `is.rs` and
//! `functions.rs`; a test holds this table against them, and others hold them against minijinja's.

use crate::terms::{Term, term};

/// `{{ value|filter }}`
#[rustfmt::skip]
pub const FILTERS: &[Term] = &[
    term("abs", "n|abs", "The number without its sign.",
        "{{ -3 | abs }}"),
    term("attr", "map|attr(key)", "What stands under the key.",
        "{{ {'a': 1} | attr('a') }}"),
    term("batch", "list|batch(3)", "Lists of so many items each.",
        "{{ [1, 2, 3] | batch(2) }}"),
    term("bool", "x|bool", "Whether it is true: not empty, not 0, not null.",
        "{{ 'x' | bool }}"),
    term("capitalize", "text|capitalize", "The first letter large, the rest small.",
        "{{ 'hello' | capitalize }}"),
    term("chain", "list|chain(other)", "Several lists, one after the other.",
        "{{ [1] | chain([2]) | list }}"),
    term("count", "x|count", "The same as `length`.",
        "{{ [1, 2] | count }}"),
    term("d", "x|d(value)", "The same as `default`.",
        "{{ missing | d('none') }}"),
    term("default", "x|default(value)", "The value instead, where x is absent.",
        "{{ missing | default('none') }}"),
    term("dictsort", "map|dictsort", "Keys with their values, in order.",
        "{{ {'b': 1, 'a': 2} | dictsort }}"),
    term("e", "text|e", "The same as `escape`.",
        "{{ '<b>' | e }}"),
    term("escape", "text|escape", "The text with HTML's special characters escaped.",
        "{{ '<b>' | escape }}"),
    term("first", "list|first", "The first item.",
        "{{ [3, 1] | first }}"),
    term("float", "x|float", "The number as a double.",
        "{{ '1.5' | float }}"),
    term("format", "text|format(x)", "The text with `%s` and the like filled in.",
        "{{ '%s: %d' | format('n', 3) }}"),
    term("groupby", "list|groupby(key)", "Items by what stands under the key.",
        "{% for kind, all in [{'k': 'a'}, {'k': 'a'}] | groupby('k') %}{{ kind }} {{ all | length }}{% endfor %}"),
    term("indent", "text|indent(2)", "Further lines indented by so many blanks.",
        "{{ 'a\nb' | indent(2) }}"),
    term("int", "x|int", "The number as an int.",
        "{{ '42' | int }}"),
    term("items", "map|items", "Keys with their values.",
        "{% for key, value in {'a': 1} | items %}{{ key }}={{ value }}{% endfor %}"),
    term("join", "list|join(', ')", "The items as one text.",
        "{{ ['a', 'b'] | join(', ') }}"),
    term("last", "list|last", "The last item.",
        "{{ [3, 1] | last }}"),
    term("length", "x|length", "How many items, keys or characters.",
        "{{ [1, 2] | length }}"),
    term("lines", "text|lines", "The lines, as a list.",
        "{{ 'one\ntwo' | lines }}"),
    term("list", "x|list", "A list: of the keys of a map, of the letters of a text.",
        "{{ 'ab' | list }}"),
    term("lower", "text|lower", "In small letters.",
        "{{ 'Hello' | lower }}"),
    term("map", "list|map(attribute='a')", "What stands under the key of each item, or each item through a filter.",
        "{{ [{'a': 1}, {'a': 2}] | map(attribute='a') | list }}"),
    term("max", "list|max", "The largest item.",
        "{{ [3, 1] | max }}"),
    term("min", "list|min", "The smallest item.",
        "{{ [3, 1] | min }}"),
    term("pprint", "x|pprint", "The value, laid out to be read.",
        "{{ [1, 2] | pprint }}"),
    term("reject", "list|reject('odd')", "The items that fail the test.",
        "{{ [1, 2, 3] | reject('odd') | list }}"),
    term("rejectattr", "list|rejectattr(key, 'test')", "The items whose key fails the test.",
        "{{ [{'a': 1}, {'a': 2}] | rejectattr('a', 'odd') | list }}"),
    term("replace", "text|replace('a', 'b')", "The text with every part replaced.",
        "{{ 'a-b' | replace('-', '+') }}"),
    term("reverse", "x|reverse", "Backwards.",
        "{{ [1, 2] | reverse }}"),
    term("round", "n|round(2)", "The nearest number with so many digits after the point.",
        "{{ 2.345 | round(1) }}"),
    term("safe", "x|safe", "The value itself; it is quoted all the same.",
        "{{ 'a' | safe }}"),
    term("select", "list|select('odd')", "The items that pass the test.",
        "{{ [1, 2, 3] | select('odd') | list }}"),
    term("selectattr", "list|selectattr(key, 'test')", "The items whose key passes the test.",
        "{{ [{'a': 1}, {'a': 2}] | selectattr('a', 'odd') | list }}"),
    term("slice", "list|slice(3)", "So many lists of about equal length.",
        "{{ [1, 2, 3] | slice(2) }}"),
    term("sort", "list|sort", "In order; `attribute='a'` by a key.",
        "{{ [3, 1] | sort }}"),
    term("split", "text|split(',')", "The parts, as a list.",
        "{{ 'a,b' | split(',') | list }}"),
    term("string", "x|string", "The value as a text.",
        "{{ 42 | string }}"),
    term("sum", "list|sum", "The sum.",
        "{{ [1, 2] | sum }}"),
    term("title", "text|title", "Each Word With A Large Letter.",
        "{{ 'hello you' | title }}"),
    term("tojson", "x|tojson", "The value as JSON text.",
        "{{ 'a text' | tojson }}"),
    term("trim", "text|trim", "Without blanks around it.",
        "{{ '  hi  ' | trim }}"),
    term("unique", "list|unique", "Without repetitions.",
        "{{ [1, 2, 1] | unique }}"),
    term("upper", "text|upper", "In capital letters.",
        "{{ 'Hello' | upper }}"),
    term("zip", "list|zip(other)", "Pairs of items.",
        "{{ [1, 2] | zip(['a', 'b']) | list }}"),
];

/// `{% if value is test %}`
#[rustfmt::skip]
pub const TESTS: &[Term] = &[
    term("boolean", "x is boolean", "A boolean.",
        "{{ true is boolean }}"),
    term("defined", "x is defined", "It is there.",
        "{{ missing is defined }}"),
    term("divisibleby", "n is divisibleby(3)", "Without a remainder.",
        "{{ 6 is divisibleby(3) }}"),
    term("endingwith", "text is endingwith('a')", "Ends with the part.",
        "{{ 'a.md' is endingwith('.md') }}"),
    term("eq", "x is eq(y)", "The same as `==`.",
        "{{ 1 is eq(1) }}"),
    term("equalto", "x is equalto(y)", "The same as `==`.",
        "{{ 1 is equalto(1) }}"),
    term("escaped", "x is escaped", "Marked as safe.",
        "{{ 'a' is escaped }}"),
    term("even", "n is even", "An even number.",
        "{{ 4 is even }}"),
    term("false", "x is false", "False itself.",
        "{{ 0 is false }}"),
    term("filter", "'name' is filter", "There is such a filter.",
        "{{ 'upper' is filter }}"),
    term("float", "x is float", "A double.",
        "{{ 1.5 is float }}"),
    term("ge", "x is ge(y)", "The same as `>=`.",
        "{{ 2 is ge(2) }}"),
    term("greaterthan", "x is greaterthan(y)", "The same as `>`.",
        "{{ 2 is greaterthan(1) }}"),
    term("gt", "x is gt(y)", "The same as `>`.",
        "{{ 2 is gt(1) }}"),
    term("in", "x is in(list)", "One of them.",
        "{{ 1 is in([1, 2]) }}"),
    term("int", "x is int", "An int.",
        "{{ 1 is int }}"),
    term("integer", "x is integer", "An int.",
        "{{ 1 is integer }}"),
    term("iterable", "x is iterable", "Something to loop over.",
        "{{ [1] is iterable }}"),
    term("le", "x is le(y)", "The same as `<=`.",
        "{{ 1 is le(1) }}"),
    term("lessthan", "x is lessthan(y)", "The same as `<`.",
        "{{ 1 is lessthan(2) }}"),
    term("lower", "text is lower", "All small letters.",
        "{{ 'a' is lower }}"),
    term("lt", "x is lt(y)", "The same as `<`.",
        "{{ 1 is lt(2) }}"),
    term("mapping", "x is mapping", "A map.",
        "{{ {'a': 1} is mapping }}"),
    term("ne", "x is ne(y)", "The same as `!=`.",
        "{{ 1 is ne(2) }}"),
    term("none", "x is none", "Null.",
        "{{ none is none }}"),
    term("number", "x is number", "A number.",
        "{{ 1.5 is number }}"),
    term("odd", "n is odd", "An odd number.",
        "{{ 3 is odd }}"),
    term("safe", "x is safe", "Marked as safe.",
        "{{ 'a' is safe }}"),
    term("sameas", "x is sameas(y)", "The very same.",
        "{{ true is sameas(true) }}"),
    term("sequence", "x is sequence", "A list.",
        "{{ [1] is sequence }}"),
    term("startingwith", "text is startingwith('a')", "Begins with the part.",
        "{{ 'v1' is startingwith('v') }}"),
    term("string", "x is string", "A text.",
        "{{ 'a' is string }}"),
    term("test", "'name' is test", "There is such a test.",
        "{{ 'odd' is test }}"),
    term("true", "x is true", "True itself.",
        "{{ 1 is true }}"),
    term("undefined", "x is undefined", "It is not there.",
        "{{ missing is undefined }}"),
    term("upper", "text is upper", "All capital letters.",
        "{{ 'A' is upper }}"),
];

/// `{{ function(…) }}`
#[rustfmt::skip]
pub const FUNCTIONS: &[Term] = &[
    term("dict", "dict(a=1)", "A map.",
        "{{ dict(a=1, b=2) }}"),
    term("namespace", "namespace(a=1)", "A map that `{% set ns.a = … %}` can change inside a loop.",
        "{% set ns = namespace(n=0) %}{% for x in [1, 2] %}{% set ns.n = ns.n + x %}{% endfor %}{{ ns.n }}"),
    term("range", "range(3)", "The numbers from 0 up to, and without, the last.",
        "{% for i in range(3) %}{{ i }}{% endfor %}"),
];

/// Words that are called without being functions.
pub(super) const CALLED: [&str; 3] = ["loop", "caller", "super"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::Template;
    use crate::value::Value;

    fn render(text: &str) -> String {
        Template::compile(text).unwrap().render(&Value::empty_map()).unwrap()
    }

    #[test]
    fn the_tables_say_what_is_there() {
        for filter in FILTERS {
            assert_eq!(render(&format!("{{{{ '{}' is filter }}}}", filter.name)), "true", "{}", filter.name);
        }
        for test in TESTS {
            assert_eq!(render(&format!("{{{{ '{}' is test }}}}", test.name)), "true", "{}", test.name);
        }
        for function in FUNCTIONS {
            assert_eq!(
                render(&format!("{{{{ {} is defined }}}}", function.name)),
                "true",
                "{}",
                function.name
            );
        }
        for table in [FILTERS, TESTS, FUNCTIONS] {
            assert!(table.is_sorted_by(|a, b| a.name < b.name));
            assert!(table.iter().all(|term| term.about.ends_with('.')));
            for term in table {
                assert!(term.example.contains(term.name), "{} is not in its example", term.name);
                render(term.example);
            }
        }
    }
}
