//! What templates promise, and what no template can do.

use super::*;

fn scope() -> Value {
    Value::from_json_str(
        r#"{"name":"Ada <b>","n":3,"f":2.0,"none":null,"state":{"plan":{"title":"T"},"xs":[1,{"a":"é"}]}}"#,
    )
    .unwrap()
}

fn render(text: &str) -> Result<String, String> {
    let template = Template::compile(text).map_err(|error| error.message)?;
    template.render(&scope()).map_err(|error| error.message)
}

#[test]
fn strings_are_written_as_they_are_and_the_rest_as_json() {
    assert_eq!(render("plain\n").unwrap(), "plain\n");
    assert_eq!(render("Hi {{ name }}\n").unwrap(), "Hi Ada <b>\n");
    assert_eq!(render("{{ n }} {{ f }} {{ none }} {{ n > 2 }}").unwrap(), "3 2.0 null true");
    assert_eq!(
        render("{{ state.xs }} {{ state }}").unwrap(),
        r#"[1,{"a":"é"}] {"plan":{"title":"T"},"xs":[1,{"a":"é"}]}"#
    );
    assert_eq!(
        render("{{ state.xs[1].a }}{{ [1, 'x'] }}{{ state.plan|tojson }}").unwrap(),
        r#"é[1,"x"]{"title":"T"}"#
    );
    assert_eq!(render("{% for k, v in state.plan|items %}{{ k }}={{ v }}{% endfor %}").unwrap(), "title=T");
    assert_eq!(
        render("{% for x in state.xs %}{{ loop.index }}{% endfor %}{{ state.xs|length }}").unwrap(),
        "122"
    );
    assert_eq!(render("{{ 'x' if n > 5 }}").unwrap(), "");
}

#[test]
fn undefined_variables_are_named() {
    assert!(render("{{ missing }}").unwrap_err().contains("missing"));
    assert!(render("{{ state.plan.missing }}").unwrap_err().contains("state.plan.missing"));
    assert!(render("{{ state.missing.title }}").unwrap_err().contains("state.missing"));
    assert_eq!(render("{{ missing|default('d') }}{{ missing is defined }}").unwrap(), "dfalse");
}

#[test]
fn mistakes_are_found_when_compiling_with_their_place() {
    let error = Template::compile("a\n{{ name").unwrap_err();
    assert_eq!(error.line, Some(2));
    assert!(Template::compile("{{ x|nofilter }}").is_ok_and(|template| template.render(&scope()).is_err()));
    for tag in
        ["{% include 'x' %}", "{% extends 'x' %}", "{% import 'x' as y %}", "{% macro f() %}{% endmacro %}"]
    {
        assert!(Template::compile(tag).is_err(), "{tag}");
    }
}

#[test]
fn reads_are_maximal_paths() {
    let template = Template::compile(
            "{{ state.plan.title }}{{ input.q|upper }}{% for x in state.xs %}{{ x.a }}{% endfor %}{{ range(3) }}{{ item }}",
        )
        .unwrap();
    let reads: Vec<String> = template.reads().iter().map(Read::to_string).collect();
    assert_eq!(reads, ["input.q", "item", "state.plan.title", "state.xs"]);
}

#[test]
fn every_substituted_value_is_escaped() {
    let quote = |value: &Value| format!("'{}'", value.as_str().map_or(value.to_string(), str::to_owned));
    let template = Template::compile("echo {{ name }} {{ state.xs }} {{ name|safe }} {{ n + 1 }}").unwrap();
    let text = template.render_with(&scope(), Some(quote)).unwrap();
    assert_eq!(text, r#"echo 'Ada <b>' '[1,{"a":"é"}]' 'Ada <b>' '4'"#);
    let absent = Template::compile("ls {{ '-l' if n > 9 }}").unwrap();
    assert_eq!(absent.render_with(&scope(), Some(quote)).unwrap(), "ls ");
}

#[test]
fn output_and_work_are_limited() {
    let long = "{% for i in range(90000) %}xxxxxxxxxxxxxxxxxxxx{% endfor %}";
    assert!(render(long).unwrap_err().contains("grows beyond"));
    let busy = "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}";
    assert!(render(busy).unwrap_err().contains("too much work"));
}
