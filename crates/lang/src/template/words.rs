//! The filters, tests and functions of templates. They are minijinja's; a test holds this table against it.

use crate::terms::{Term, term};

/// `{{ value|filter }}`
#[rustfmt::skip]
pub const FILTERS: &[Term] = &[
    term("abs", "n|abs", "The number without its sign."),
    term("attr", "map|attr(key)", "What stands under the key."),
    term("batch", "list|batch(3)", "Lists of so many items each."),
    term("bool", "x|bool", "Whether it is true: not empty, not 0, not null."),
    term("capitalize", "text|capitalize", "The first letter large, the rest small."),
    term("chain", "list|chain(other)", "Several lists, one after the other."),
    term("count", "x|count", "The same as `length`."),
    term("d", "x|d(value)", "The same as `default`."),
    term("default", "x|default(value)", "The value instead, where x is absent."),
    term("dictsort", "map|dictsort", "Keys with their values, in order."),
    term("e", "text|e", "The same as `escape`."),
    term("escape", "text|escape", "The text with HTML's special characters escaped."),
    term("first", "list|first", "The first item."),
    term("float", "x|float", "The number as a double."),
    term("format", "text|format(x)", "The text with `%s` and the like filled in."),
    term("groupby", "list|groupby(key)", "Items by what stands under the key."),
    term("indent", "text|indent(2)", "Further lines indented by so many blanks."),
    term("int", "x|int", "The number as an int."),
    term("items", "map|items", "Keys with their values."),
    term("join", "list|join(', ')", "The items as one text."),
    term("last", "list|last", "The last item."),
    term("length", "x|length", "How many items, keys or characters."),
    term("lines", "text|lines", "The lines, as a list."),
    term("list", "x|list", "A list: of the keys of a map, of the letters of a text."),
    term("lower", "text|lower", "In small letters."),
    term("map", "list|map(attribute='a')", "What stands under the key of each item, or each item through a filter."),
    term("max", "list|max", "The largest item."),
    term("min", "list|min", "The smallest item."),
    term("pprint", "x|pprint", "The value, laid out to be read."),
    term("reject", "list|reject('odd')", "The items that fail the test."),
    term("rejectattr", "list|rejectattr(key, 'test')", "The items whose key fails the test."),
    term("replace", "text|replace('a', 'b')", "The text with every part replaced."),
    term("reverse", "x|reverse", "Backwards."),
    term("round", "n|round(2)", "The nearest number with so many digits after the point."),
    term("safe", "x|safe", "The value itself; it is quoted all the same."),
    term("select", "list|select('odd')", "The items that pass the test."),
    term("selectattr", "list|selectattr(key, 'test')", "The items whose key passes the test."),
    term("slice", "list|slice(3)", "So many lists of about equal length."),
    term("sort", "list|sort", "In order; `attribute='a'` by a key."),
    term("split", "text|split(',')", "The parts, as a list."),
    term("string", "x|string", "The value as a text."),
    term("sum", "list|sum", "The sum."),
    term("title", "text|title", "Each Word With A Large Letter."),
    term("tojson", "x|tojson", "The value as JSON text."),
    term("trim", "text|trim", "Without blanks around it."),
    term("unique", "list|unique", "Without repetitions."),
    term("upper", "text|upper", "In capital letters."),
    term("zip", "list|zip(other)", "Pairs of items."),
];

/// `{% if value is test %}`
#[rustfmt::skip]
pub const TESTS: &[Term] = &[
    term("boolean", "x is boolean", "A boolean."),
    term("defined", "x is defined", "It is there."),
    term("divisibleby", "n is divisibleby(3)", "Without a remainder."),
    term("endingwith", "text is endingwith('a')", "Ends with the part."),
    term("eq", "x is eq(y)", "The same as `==`."),
    term("equalto", "x is equalto(y)", "The same as `==`."),
    term("escaped", "x is escaped", "Marked as safe."),
    term("even", "n is even", "An even number."),
    term("false", "x is false", "False itself."),
    term("filter", "'name' is filter", "There is such a filter."),
    term("float", "x is float", "A double."),
    term("ge", "x is ge(y)", "The same as `>=`."),
    term("greaterthan", "x is greaterthan(y)", "The same as `>`."),
    term("gt", "x is gt(y)", "The same as `>`."),
    term("in", "x is in(list)", "One of them."),
    term("int", "x is int", "An int."),
    term("integer", "x is integer", "An int."),
    term("iterable", "x is iterable", "Something to loop over."),
    term("le", "x is le(y)", "The same as `<=`."),
    term("lessthan", "x is lessthan(y)", "The same as `<`."),
    term("lower", "text is lower", "All small letters."),
    term("lt", "x is lt(y)", "The same as `<`."),
    term("mapping", "x is mapping", "A map."),
    term("ne", "x is ne(y)", "The same as `!=`."),
    term("none", "x is none", "Null."),
    term("number", "x is number", "A number."),
    term("odd", "n is odd", "An odd number."),
    term("safe", "x is safe", "Marked as safe."),
    term("sameas", "x is sameas(y)", "The very same."),
    term("sequence", "x is sequence", "A list."),
    term("startingwith", "text is startingwith('a')", "Begins with the part."),
    term("string", "x is string", "A text."),
    term("test", "'name' is test", "There is such a test."),
    term("true", "x is true", "True itself."),
    term("undefined", "x is undefined", "It is not there."),
    term("upper", "text is upper", "All capital letters."),
];

/// `{{ function(…) }}`
#[rustfmt::skip]
pub const FUNCTIONS: &[Term] = &[
    term("dict", "dict(a=1)", "A map."),
    term("namespace", "namespace(a=1)", "A map that `{% set ns.a = … %}` can change inside a loop."),
    term("range", "range(3)", "The numbers from 0 up to, and without, the last."),
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
        }
    }
}
