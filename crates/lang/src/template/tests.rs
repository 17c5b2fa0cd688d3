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

/// What a rendering fails with, and how many bytes it made until then.
fn failing(text: &str) -> (String, usize) {
    let template = Template::compile(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut budget = Budget::default();
    let error = match template.render_within(&large(), &mut budget) {
        Err(error) => error.message,
        Ok(output) => panic!("{text} gave {} bytes", output.len()),
    };
    (error, budget.made())
}

/// A scope with as much in it as a run may hand over.
fn large() -> Value {
    let texts = Value::list((0..1_000).map(|number| Value::from(number.to_string().repeat(300))));
    let deep = (0..90).fold(Value::Null, |inner, _| Value::list([inner]));
    let text = "<a b>\n".repeat(200_000);
    let entries =
        [("x", Value::str("0123456789")), ("text", Value::from(text)), ("texts", texts), ("deep", deep)];
    Value::map(entries)
}

const TOO_MUCH: &str = "the template makes too much on its way (limit 16777216 bytes)";
const TOO_BUSY: &str = "the template does too much work (limit 1000000 steps)";
const TOO_LONG: &str = "the text grows beyond 1048576 bytes";
const TOO_DEEP: &str = "lists and maps that a template makes nest at most 64 deep";

#[test]
fn whatever_a_template_makes_is_bounded() {
    let double = |what: &str| {
        let again = what.replace('$', "v.x");
        format!(
            "{{% set v = namespace(x='ab') %}}{{% for i in range(60) %}}{{% set v.x = {again} %}}{{% endfor %}}"
        )
    };
    let twice = |tags: &str, times: usize| tags.repeat(times);
    for (text, limit) in [
        ("{{ x|batch(99999999999, 'a') }}".to_owned(), TOO_MUCH),
        ("{{ x|slice(99999999999, 'a') }}".to_owned(), TOO_MUCH),
        ("{{ text|replace('', text) }}".to_owned(), TOO_MUCH),
        ("{{ text|replace('a', text) }}".to_owned(), TOO_MUCH),
        ("{{ '%9999999999s'|format('a') }}".to_owned(), TOO_MUCH),
        ("{{ '%.9999999999f'|format(1.5) }}".to_owned(), TOO_MUCH),
        ("{{ '%099999999999999999999999d'|format(1) }}".to_owned(), TOO_MUCH),
        (format!("{{{{ '{}'|format(t=text) }}}}", "%(t)s".repeat(100)), TOO_MUCH),
        ("{{ text|indent(9999999999) }}".to_owned(), TOO_MUCH),
        ("{{ text|indent(1000) }}".to_owned(), TOO_MUCH),
        ("{{ texts|join(text) }}".to_owned(), TOO_MUCH),
        ("{{ ([text] * 100)|join }}".to_owned(), TOO_MUCH),
        ("{{ ([text] * 100)|pprint }}".to_owned(), TOO_MUCH),
        ("{{ ([text] * 100)|tojson }}".to_owned(), TOO_MUCH),
        ("{{ ([text] * 100)|string }}".to_owned(), TOO_MUCH),
        ("{{ [text] * 100 }}".to_owned(), TOO_LONG),
        ("{{ text|e|e|list }}".to_owned(), TOO_MUCH),
        ("{{ text|list|length }}".to_owned(), TOO_MUCH),
        ("{{ text|split(' ')|length }}{{ text|split('')|length }}".to_owned(), TOO_MUCH),
        ("{{ 'x' * 99999999999 }}".to_owned(), TOO_MUCH),
        ("{{ 'x' * 17000000 }}".to_owned(), TOO_MUCH),
        ("{{ [1] * 99999999999 }}".to_owned(), TOO_MUCH),
        (double("$ ~ $"), TOO_MUCH),
        (double("$ + $"), TOO_MUCH),
        (double("$ * 2"), TOO_MUCH),
        (double("$|replace('a', $)"), TOO_MUCH),
        (double("$|format ~ $|trim ~ $|reverse"), TOO_MUCH),
        (double("$|upper ~ $|lower"), TOO_MUCH),
        (double("[$, $]|string"), TOO_MUCH),
        (double("$|list|chain($)|join"), TOO_MUCH),
        (double("($|list + $|list)|join"), TOO_MUCH),
        (double("$|tojson"), TOO_MUCH),
        (double("$[:] ~ $[::-1]"), TOO_MUCH),
        ("{% set v = namespace(x=[1]) %}{% for i in range(60) %}{% set v.x = v.x + v.x %}{% endfor %}".to_owned(), TOO_MUCH),
        ("{% set v = namespace(x=[1]) %}{% for i in range(60) %}{% set v.x = v.x|chain(v.x) %}{% endfor %}".to_owned(), TOO_MUCH),
        (format!("{{% set x = 'ab' %}}{}", twice("{% set x = x ~ x %}", 40)), TOO_MUCH),
        (format!("{{% set x = 'ab' %}}{}{}", twice("{% for x in [x ~ x] %}", 40), twice("{% endfor %}", 40)), TOO_MUCH),
        (format!("{}{}", twice("{% with x = x ~ x %}", 40), twice("{% endwith %}", 40)), TOO_MUCH),
        (twice("{% set x %}{{ x }}{{ x }}{% endset %}", 40), TOO_MUCH),
        (format!("{}a{}", twice("{% filter upper %}{{ text }}", 20), twice("{% endfilter %}", 20)), TOO_MUCH),
        ("{% set y %}{% for i in range(90000) %}raw text, again and again and again and again and again and again and again\
          and again and again and again and again and again and again and again{% endfor %}{% endset %}".to_owned(), TOO_MUCH),
        ("{% filter length %}{% for i in range(100000) %}{{ text }}{% endfor %}{% endfilter %}".to_owned(), TOO_MUCH),
        ("{% for i in range(100000) %}{{ text }}{% endfor %}".to_owned(), TOO_LONG),
        ("{% for x in [text] recursive %}{{ x }}{{ loop([x ~ x]) }}{% endfor %}".to_owned(), TOO_LONG),
        ("{% for x in ['a'] recursive %}{{ loop([x ~ x]) }}{% endfor %}".to_owned(), TOO_MUCH),
        ("{% set y = namespace(a=1) %}{% for i in range(100000) %}{% set y.b = dict(y.b|default({}), **{'k' ~ i: i}) %}\
          {% endfor %}".to_owned(), TOO_MUCH),
        ("{% for i in range(100000) %}{% set y = namespace(a=1) %}{% endfor %}{% for i in range(100000) %}\
          {% set y = namespace(a=1) %}{% endfor %}".to_owned(), TOO_MUCH),
    ] {
        let (error, made) = failing(&text);
        assert_eq!(error, limit, "{text}");
        assert!(made <= super::budget::MADE_BYTES_MAX, "{text}: {made}");
    }
}

/// Small in memory, huge when looked at: what is shared is paid for each time.
#[test]
fn values_that_unfold_to_more_than_memory_end_at_a_limit() {
    let folded =
        "{% set v = namespace(x=['ab']) %}{% for i in range(60) %}{% set v.x = [v.x, v.x] %}{% endfor %}";
    let other =
        "{% set w = namespace(x=['ab']) %}{% for i in range(60) %}{% set w.x = [w.x, w.x] %}{% endfor %}";
    for (use_it, limit) in [
        ("{{ v.x }}", TOO_LONG),
        ("{{ v.x|tojson }}", TOO_MUCH),
        ("{{ v.x|string }}", TOO_MUCH),
        ("{{ 'a' ~ v.x }}", TOO_MUCH),
        ("{{ v.x|pprint }}", TOO_MUCH),
        ("{{ v.x == w.x }}", TOO_BUSY),
        ("{{ v.x < w.x }}", TOO_BUSY),
        ("{{ v.x in [w.x] }}", TOO_BUSY),
        ("{{ [v.x, w.x]|sort }}", TOO_BUSY),
        ("{{ [v.x, w.x]|unique }}", TOO_BUSY),
        ("{{ [v.x, w.x]|max }}", TOO_BUSY),
    ] {
        assert_eq!(failing(&format!("{folded}{other}{use_it}")).0, limit, "{use_it}");
    }
    let template = Template::compile(&format!("{folded}{{{{ v.x }}}}")).unwrap();
    let escaped = template.render_with(&large(), Some(Value::to_string)).unwrap_err();
    assert_eq!(escaped.message, TOO_MUCH);
}

#[test]
fn nothing_takes_long() {
    for text in [
        "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
        "{% for i in range(100000) %}{% if text|length %}{% endif %}{% endfor %}",
        "{% for i in range(100000) %}{% if 'zz' in text %}{% endif %}{% endfor %}",
        "{% for i in range(100000) %}{% if 'zz' in texts %}{% endif %}{% endfor %}",
        "{% for i in range(100000) %}{% if text == text ~ '' %}{% endif %}{% endfor %}",
        "{% for i in range(100000) %}{% if texts|sum(attribute='a') %}{% endif %}{% endfor %}",
        "{% for i in range(100000) %}{% if texts|max %}{% endif %}{% endfor %}",
        "{% for i in range(100000) %}{% if text is lower %}{% endif %}{% endfor %}",
        "{% for i in range(100000) %}{% if texts|select('gt', text)|length %}{% endif %}{% endfor %}",
        "{% for i in range(100000) %}{% if text[1000000] %}{% endif %}{% endfor %}",
        "{% set y = text|int(0) %}{% for i in range(100000) %}{% if text|int(0) %}{% endif %}{% endfor %}",
        "{% for i in range(100000) %}{% if {text: 1}[text] %}{% endif %}{% endfor %}",
        "{% set m = dict(**{text: 1}) %}{% for i in range(100000) %}{% if text in m and m == m %}{% endif %}{% endfor %}",
        "{{ range(100000)|map('batch', 1)|list }}",
    ] {
        let (error, _) = failing(text);
        assert!(
            [TOO_BUSY, TOO_MUCH].contains(&error.as_str()) || error.contains("has no items"),
            "{text}: {error}"
        );
    }
}

#[test]
fn values_of_a_template_nest_only_so_deep() {
    for nest in
        ["[v.x]", "(v.x,)", "{'a': v.x}", "dict(a=v.x)", "[v.x]|list", "[v.x]|batch(1)", "{'a': v.x}|items"]
    {
        let text = format!(
            "{{% set v = namespace(x=deep) %}}{{% for i in range(99) %}}{{% set v.x = {nest} %}}{{% endfor %}}"
        );
        assert_eq!(failing(&text).0, TOO_DEEP, "{nest}");
    }
    // What was handed over is as deep as it is, and can be put into what is made.
    let text = "{% set v = namespace(x=deep) %}{% for i in range(60) %}{% set v.x = [v.x] %}{% endfor %}{{ v.x|string ~ v.x }}";
    let shown = Template::compile(text).unwrap().render(&large()).unwrap();
    assert_eq!(shown, format!("{}None{}", "[".repeat(150), "]".repeat(150)).repeat(2));
}

#[test]
fn what_nests_too_deep_is_refused_before_it_is_parsed() {
    let many = 100_000;
    let around =
        |open: &str, close: &str, times: usize| format!("{}1{}", open.repeat(times), close.repeat(times));
    for (text, limit) in [
        (format!("{{{{ {}1 }}}}", "not ".repeat(many)), "operators nest at most 200 deep"),
        (format!("{{{{ {}1 }}}}", "-".repeat(many)), "operators nest"),
        (format!("{{{{ 1{} }}}}", " + 1".repeat(many)), "operators nest"),
        (format!("{{{{ a{} }}}}", ".b".repeat(many)), "operators nest"),
        (format!("{{{{ a{} }}}}", "[0]".repeat(many)), "operators nest"),
        (format!("{{{{ a{} }}}}", "()".repeat(many)), "operators nest"),
        (format!("{{{{ a{} }}}}", "|upper".repeat(many)), "operators nest"),
        (format!("{{{{ a{} }}}}", " is odd".repeat(many)), "operators nest"),
        (format!("{{{{ a{} }}}}", " if a".repeat(many)), "operators nest"),
        (format!("{{{{ a{} }}}}", " if a else a".repeat(50_000)), "operators nest"),
        (format!("{{{{ {} }}}}", around("(", ")", many)), "brackets nest at most 32 deep"),
        (format!("{{{{ {} }}}}", around("[", "]", many)), "brackets nest"),
        (format!("{{{{ {} }}}}", around("{1:", "}", many)), "brackets nest"),
        (format!("{{{{ {} }}}}", around("a(", ")", many)), "brackets nest"),
        (format!("{{{{ {} }}}}", around("a[", "]", many)), "brackets nest"),
        (format!("{{% set {}x{} = 1 %}}", "(".repeat(many), ")".repeat(many)), "brackets nest"),
        (format!("{{% set x{} = 1 %}}", ".a".repeat(many)), "operators nest"),
        (around("{%if 1%}", "{%endif%}", 30_000), "tags nest at most 64 deep"),
        (around("{%for x in y%}", "{%endfor%}", 30_000), "tags nest"),
        (around("{%with%}", "{%endwith%}", 30_000), "tags nest"),
        (around("{%set x%}", "{%endset%}", 30_000), "tags nest"),
        (around("{%filter e%}", "{%endfilter%}", 30_000), "tags nest"),
        (around("{%autoescape 1%}", "{%endautoescape%}", 30_000), "tags nest"),
        (format!("{{%if 1%}}{}{{%endif%}}", "{%elif 1%}".repeat(30_000)), "tags nest"),
        (format!("{}{}", "{%for x in y%}{%else%}".repeat(20_000), "{%endfor%}".repeat(20_000)), "tags nest"),
    ] {
        let error = Template::compile(&text).unwrap_err();
        assert!(error.message.contains(limit), "{}: {error}", &text[..40]);
        assert!(error.line.is_some() && error.offset.is_some(), "{error}");
    }
}

/// As deep as it gets: the parser, the tree and a rendering have enough with a stack of 1 MiB, without optimisation.
#[test]
fn the_deepest_template_needs_little_stack() {
    let sum = format!("{}1{}", "[(".repeat(16), ")][0] + 1 ".repeat(16));
    let chain = format!("{{{{ 1{} }}}}", " + 1".repeat(199));
    let tags: [(&str, &str); 5] = [
        ("{% for i in [1] %}", "{% endfor %}"),
        ("{% with %}", "{% endwith %}"),
        ("{% if 1 %}", "{% endif %}"),
        ("{% set x %}", "{% endset %}{{ x }}"),
        ("{% filter upper %}", "{% endfilter %}"),
    ];
    let mut texts: Vec<String> = tags
        .iter()
        .flat_map(|(open, close)| {
            [&chain, &format!("{{{{ {sum} }}}}")]
                .map(|inner| format!("{}{inner}{}", open.repeat(64), close.repeat(64)))
        })
        .collect();
    texts.push("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}".to_owned());
    texts.push(
        "{% for x in [1] recursive %}{% if 1 %}{{ [loop([1])|upper ~ 1]|join|upper }}{% endif %}{% endfor %}"
            .to_owned(),
    );
    texts.push("{% set v = namespace(x=deep) %}{% for i in range(60) %}{% set v.x = [v.x] %}{% endfor %}{{ v.x|pprint }}{{ v.x == [] }}".to_owned());
    let results = std::thread::Builder::new().stack_size(1 << 20).spawn(move || {
        let render = |text: &String| Template::compile(text).map(|template| template.render(&large()));
        texts.iter().map(render).collect::<Vec<_>>()
    });
    let results = results.unwrap().join().unwrap();
    let (recursive, rest) = (&results[10..12], &results[..10]);
    assert!(rest.iter().all(|result| matches!(result, Ok(Ok(_)))), "{rest:?}");
    for result in recursive {
        let Ok(Err(error)) = result else { panic!("{result:?}") };
        assert_eq!(error.message, "the template recurses too deep (limit 300 levels)");
    }
}

#[test]
fn reads_are_found_wherever_they_stand() {
    for (text, expected) in [
        ("{{ state.xs[1:] }}{{ a[input.n] }}", "a input.n state.xs"),
        ("{% set x = x|default(1) %}{{ x }}", "x"),
        ("{% set y %}{{ a }}{% endset %}{{ y }}", "a"),
        ("{% filter replace(a, b.c) %}x{% endfilter %}", "a b.c"),
        ("{% for x in xs if x > limit %}{{ loop.index }}{{ x }}{% else %}{{ x }}{% endfor %}", "limit x xs"),
        ("{% with a = b %}{{ a }}{% endwith %}{{ a }}", "a b"),
        ("{{ f(a=b) }}{{ g.h(c) }}{{ range(n) }}{{ dict(**d) }}", "b c d f g n"),
        ("{{ a if b else c }}{{ d is in(e) }}{{ 'x' in f }}", "a b c d e f"),
    ] {
        let template = Template::compile(text).unwrap();
        let reads: Vec<String> = template.reads().iter().map(Read::to_string).collect();
        assert_eq!(reads.join(" "), expected, "{text}");
    }
}

#[test]
fn several_texts_share_what_they_may_use() {
    let long = Template::compile("{{ text[:1000000] }}").unwrap();
    let busy = Template::compile("{% for i in range(90000) %}{% endfor %}").unwrap();
    for (template, most, limit) in [(&long, 16, TOO_MUCH), (&busy, 12, TOO_BUSY)] {
        let (scope, mut budget) = (large(), Budget::default());
        let results: Vec<_> = (0..100).map(|_| template.render_within(&scope, &mut budget)).collect();
        let rendered = results.iter().take_while(|result| result.is_ok()).count();
        assert!((2..=most).contains(&rendered), "{rendered}");
        assert_eq!(results[rendered].as_ref().unwrap_err().message, limit);
        assert!(results[99].is_err());
    }
}
