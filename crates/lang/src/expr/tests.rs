//! Expressions as authors write them. Standard CEL is also run by the `cel` crate's own interpreter,
//! and the two must agree.

use std::sync::Arc;

use super::*;

struct Json(Value);

impl Scope for Json {
    fn read(&self, root: &str, path: &[Arc<str>]) -> Option<Value> {
        self.0.get(root)?.get_path(path).cloned()
    }
}

fn scope() -> Json {
    let text = r#"{
        "input": {"question": "why?", "empty": []},
        "state": {
            "x": 4, "mean": 7, "none": null, "text": "Hello Wörld", "plan": {"title": "T", "steps": ["a", "b"]},
            "votes": [{"score": 8, "by": "x"}, {"score": 6.5, "by": "y"}, {"score": 8}], "zoo": {"b": 1, "a": 2}
        }
    }"#;
    Json(Value::from_json_str(text).unwrap())
}

fn eval(text: &str) -> Result<Value, String> {
    let expr = Expr::compile(text).map_err(|error| format!("compile: {error}"))?;
    expr.eval(&scope()).map_err(|error| error.message)
}

#[track_caller]
fn gives(text: &str, json: &str) {
    assert_eq!(eval(text).map(|value| value.to_string()), Ok(json.to_owned()), "{text}");
}

#[track_caller]
fn fails(text: &str, part: &str) {
    let message = eval(text).expect_err(text);
    assert!(message.contains(part), "{text}: {message}");
}

/// What the crate's interpreter makes of it, as JSON text.
fn reference(text: &str) -> Result<String, String> {
    let mut env = cel::Env::stdlib();
    env.add_extension(cel::extensions::strings).unwrap();
    let context = cel::Context::with_env(Arc::new(env));
    let program = cel::Program::compile(text).map_err(|error| error.to_string())?;
    let value = program.execute(&context).map_err(|error| error.to_string())?;
    Ok(from_cel(&value).to_string())
}

fn from_cel(value: &cel::Value) -> Value {
    match value {
        cel::Value::Null => Value::Null,
        cel::Value::Bool(flag) => Value::Bool(*flag),
        cel::Value::Int(number) => Value::Int(*number),
        cel::Value::UInt(number) => Value::Int(i64::try_from(*number).unwrap()),
        cel::Value::Float(number) => Value::Float(*number),
        cel::Value::String(text) => Value::str(text.as_str()),
        cel::Value::List(items) => Value::list(items.iter().map(from_cel)),
        cel::Value::Map(map) => {
            Value::map(map.map.iter().map(|(key, value)| (key.to_string(), from_cel(value))))
        }
        other => panic!("{other:?}"),
    }
}

/// Standard CEL, an expression between each two `;;`.
const STANDARD: &str = r#"
    1 + 2 * 3 - 4 / 3 % 2 ;; -7 / 2 ;; -7 % 3 ;; -(3) ;; 1.5 * 2.0 - 0.25 ;; 7.0 / 2.0 ;; 1 / 0 ;; 1 % 0 ;;
    9223372036854775807 + 1 ;; 1 + 1.0 ;; 'a' + 1 ;; 'a' + 'b' ;; [1] + [2, 'x'] ;; true + true ;;
    1 < 2.5 ;; 2.5 > 1 ;; 7 >= 7.0 ;; 7 == 7.0 ;; 7.0 == 7 ;; [1, {'a': 2}] == [1.0, {'a': 2.0}] ;;
    1 == '1' ;; 'a' < 'b' ;; false < true ;; 1 < 'a' ;; null == null ;; null == false ;; [1] == [1, 2] ;;
    1 != 1.0 ;; 1 in [1.0, 2] ;; 'a' in {'a': 1} ;; 3 in [1] ;; 1 in 'text' ;; !true ;; !1 ;;
    true || 1 / 0 == 1 ;; 1 / 0 == 1 || true ;; 1 / 0 == 1 || false ;; false && 1 / 0 == 1 ;;
    1 / 0 == 1 && false ;; true && 1 ;; 1 || true ;; true ? 'y' : 'n' ;; 1 ? 2 : 3 ;; [1, 2, 3][1] ;;
    [1][1] ;; [1][-1] ;; {'a': 1}['a'] ;; {'a': 1}.a ;; {'a': 1}.b ;; has({'a': 1}.a) ;; has({'a': 1}.b) ;;
    {'a': 1, 'a': 2} ;; [1, 2, 3].map(x, x * 2) ;; [1, 2, 3].map(x, x > 1, x * 2) ;;
    [1, 2, 3].filter(x, x > 1) ;; [1, 2].all(x, x > 0) ;; [1, 2].exists(x, x > 1) ;;
    [1, 2, 2].exists_one(x, x == 2) ;; [1, 2].exists_one(x, x == 2) ;; [0, 1].exists(x, 1 / x == 1) ;;
    [0, 1].all(x, 1 / x == 1) ;; [0, 2].all(x, 1 / x == 1) ;; [].all(x, false) ;;
    [[1, 2], [3]].map(x, x.map(y, y + size(x))) ;; [1].map(x, [2].map(x, x)) ;; {'k': 1}.map(k, k) ;;
    1.map(x, x) ;; [1, 'a'].map(x, x + 1) ;; size('Wörld') ;; 'Wörld'.size() ;; size([1, 2]) ;;
    size({'a': 1}) ;; size(1) ;; string(1) ;; string(1.0) ;; string(1.5) ;; string(true) ;; string([1]) ;;
    int('12') ;; int('x') ;; int(1.9) ;; int(-1.9) ;; int(1e300) ;; double(1) ;; double('1.5') ;;
    bool('true') ;; bool('yes') ;; dyn(3.0) == 3 ;; 'hello'.contains('ell') ;; 'hello'.startsWith('he') ;;
    'hello'.endsWith('lo') ;; 'hello'.matches('^h.*o$') ;; ' a '.trim() ;; 'a,b,,c'.split(',') ;;
    'a,b,c'.split(',', 2) ;; 'a,b'.split(',', 0) ;; 'äbc'.split('') ;; ''.split('') ;; ''.split(',') ;;
    'abc'.split('', 2) ;; 'a'.split(',', 1) ;; ['a', 'b'].join('-') ;; ['a', 'b'].join() ;;
    [1].join('-') ;; 'banana'.replace('an', 'o') ;; 'banana'.replace('an', 'o', 1) ;;
    'banana'.replace('an', 'o', 0) ;; 'wörld'.substring(1, 3) ;; 'wörld'.substring(2) ;;
    'abc'.substring(2, 1) ;; 'abc'.substring(4) ;; 'wörld'.indexOf('r') ;; 'aXbXc'.indexOf('X', 2) ;;
    'a'.indexOf('z') ;; 'abc'.indexOf('') ;; 'aXbX'.lastIndexOf('X') ;; 'TacoCÄt'.lowerAscii() ;;
    'tacocät'.upperAscii() ;; type(1) == int ;; type('a') == string ;; type(null) == null_type ;;
    type([]) == map ;; 0x1F ;; 1u ;; r'\d' ;; '''a'b''' ;; '\u00e9'
"#;

#[test]
fn standard_cel_agrees_with_the_crate() {
    for text in STANDARD.split(";;").map(str::trim) {
        let (ours, theirs) = (eval(text).map(|value| value.to_string()), reference(text));
        match (&ours, &theirs) {
            (Err(_), Err(_)) => {}
            _ => assert_eq!(ours.as_ref().ok(), theirs.as_ref().ok(), "{text}: {ours:?} {theirs:?}"),
        }
    }
}

#[test]
fn paths_are_read_from_the_scope() {
    gives("state.plan.title", r#""T""#);
    gives("state['plan'].steps[1]", r#""b""#);
    gives("state.votes.map(v, v.score)", "[8,6.5,8]");
    gives("state.votes.filter(v, has(v.by)).map(v, v.by)", r#"["x","y"]"#);
    gives("state.x > 3 && state.mean >= 7.0", "true");
    gives("state.zoo.map(k, k)", r#"["a","b"]"#);
    gives("{'z': state.x, 'a': [state.none]}", r#"{"a":[null],"z":4}"#);
    gives(
        "has(state.plan.title) && !has(state.plan.nothing) && !has(state.no.such.path) && !has(state.none.x)",
        "true",
    );
    fails("state.plan.titel", "no such key: state.plan.titel");
    fails("state.no.such", "no such key: state.no.such (state.no is absent)");
    fails("nowhere", "no such key: nowhere");
    fails("state.votes.map(v, v.by)", "no such key: v.by");
    fails("state.votes[3].score", "no such index: state.votes[3] of 3");
    fails("state.votes.map(v, v.score * 2)", "write double(x)");
    fails("state.x.y.z", "no such key: state.x.y.z");
}

#[test]
fn functions_beyond_the_standard() {
    gives("sum(state.votes.map(v, v.score))", "22.5");
    gives("state.votes.map(v, v.score).avg()", "7.5");
    gives("sum([1, 2])", "3");
    gives("sum(1, 2.5)", "3.5");
    gives("avg(2)", "2.0");
    gives("min(3, 2.5)", "2.5");
    gives("max(state.votes.map(v, v.score))", "8");
    gives("[abs(-3), abs(-2.5), round(2.5), round(-2.5), round(2.345, 2), round(7)]", "[3,2.5,3,-3,2.35,7]");
    gives("json('{\"a\": [1, 2.0]}').a", "[1,2.0]");
    gives("to_json(state.zoo)", r#""{\"a\":2,\"b\":1}""#);
    gives("lines('a\\nb\\n')", r#"["a","b"]"#);
    gives("get(state, 'plan.steps[1]', 'none')", r#""b""#);
    gives("get(state, 'plan.steps[9]', 'none')", r#""none""#);
    gives("get([[1, 2]], '[0][1]')", "2");
    gives("merge({'a': 1, 'b': 1}, {'b': 2})", r#"{"a":1,"b":2}"#);
    gives("[first([1, 2]), last([1, 2])]", "[1,2]");
    gives("sort([3, 1.5, 2])", "[1.5,2,3]");
    gives("['b', 'a'].sort()", r#"["a","b"]"#);
    gives("unique([1, 'a', 1.0, [1], 'a', [1.0], null])", r#"[1,"a",[1],null]"#);
    for empty in ["sum([])", "avg(input.empty)", "min([])", "max([])"] {
        fails(empty, "there are no numbers");
    }
    fails("sum(['a'])", "sum: expected numbers");
    fails("first([])", "first: the list is empty");
    fails("sort([1, 'a'])", "sort: expected only numbers");
    fails("json('{')", "json: ");
    fails("get(state, 'a..b')", "a path such as");
    fails("1e308 * 10.0", "no finite number");
    fails("double('inf')", "no finite number");
}

#[test]
fn conditions_must_be_boolean() {
    let check = |text: &str| Expr::compile(text).unwrap().eval_bool(&scope());
    assert_eq!(check("state.x == 4"), Ok(true));
    assert!(check("state.x").unwrap_err().message.contains("it is the int 4"));
    assert!(check("state.none").unwrap_err().message.contains("it is null"));
}

#[test]
fn reads_are_static_and_minimal() {
    for (text, expected) in [
        ("state.plan.title", "state.plan.title"),
        ("state.votes.map(v, v.score + state.x)", "state.votes state.x"),
        ("size(state.plan) + state.plan.steps[0]", "state.plan"),
        ("has(state.a.b) ? input.x : needs['the ref'].y", "input.x needs[\"the ref\"].y state.a.b"),
        ("state.items[input.i].name", "input.i state.items"),
        ("state.map(state, state.x)", "state"),
        ("get(state, 'a.b[0].c', input.d)", "input.d state.a.b"),
        ("state.text.matches('x') && 'a' in {'k': _branch.index}", "_branch.index state.text"),
        ("type(state.x) == string", "state.x"),
        ("1 + 2", ""),
    ] {
        let expr = Expr::compile(text).unwrap();
        let reads: Vec<String> = expr.reads().iter().map(Read::to_string).collect();
        assert_eq!(reads.join(" "), expected, "{text}");
    }
    let expr = Expr::compile("state.a + state.b + input.c").unwrap();
    assert_eq!(expr.roots().collect::<Vec<_>>(), ["input", "state"]);
    assert!(expr.as_path().is_none());
    assert_eq!(Expr::compile("state.a.b").unwrap().as_path().unwrap().to_string(), "state.a.b");
}

#[test]
fn mistakes_are_found_when_compiling() {
    for (text, part, place) in [
        ("", "missing", ""),
        ("1 +", "ends too early", ""),
        ("state.x = 3", "compare with `==`", "="),
        ("'ä' + summ(state.x)", "did you mean `sum`", "summ(state.x)"),
        ("state.text.startswith('a')", "did you mean `startsWith`", ""),
        ("now()", "unknown function `now`", ""),
        ("xs.map(x)", "write list.map(x, value)", ""),
        ("has(x)", "has()", ""),
        ("xs.filter(1, true)", "", ""),
        ("round()", "write round(number)", ""),
        ("b'abc'", "bytes", ""),
        ("{1: 2}", "map keys are strings", "1"),
        ("Foo{a: 1}", "write a map", ""),
        ("'a'.matches('(')", "no pattern", ""),
        ("'a'.matches('(a{1000}){1000}')", "too large", ""),
        ("[1].map(a, [1].map(b, [1].map(c, [1].map(d, [1].map(e, e)))))", "at most 4 deep", ""),
        ("a.?b", "", ""),
        ("18446744073709551615u", "too large", ""),
    ] {
        let error = Expr::compile(text).expect_err(text);
        assert!(error.message.contains(part), "{text}: {error}");
        if let (false, Some(offset), Some(len)) = (place.is_empty(), error.offset, error.len) {
            assert!(place.starts_with(&text[offset..offset + len]), "{text}: {offset} {len} {error}");
        } else {
            assert!(place.is_empty(), "{text}: no place in {error:?}");
        }
    }
}

/// Rust's test threads have 2 MiB of stack: what the limits let through must fit.
#[test]
fn hostile_nesting_neither_overflows_nor_hangs() {
    let nested = |open: &str, close: &str, n: usize| format!("{}1{}", open.repeat(n), close.repeat(n));
    for text in [
        nested("(", ")", 4000),
        nested("[", "]", 4000),
        nested("{'a':", "}", 1000),
        nested("(", ")", BRACKETS_MAX),
        nested("[", "]", BRACKETS_MAX),
        nested("size(", ")", BRACKETS_MAX),
        nested("!", "", 4000),
        nested("-", "", 500),
        nested("!", "", 511),
        nested("1 + ", "", 500),
        nested("true ? 1 : ", "", 500),
        nested("true && ", "", 250),
        format!("a{}", ".b".repeat(500)),
        format!("a{}", "[0]".repeat(250)),
        format!("a{}", "['b']".repeat(500)),
        nested("1 - (", ")", BRACKETS_MAX),
        "(".repeat(8000),
        "'".repeat(8000),
        "x".repeat(9000),
        "1 in ".repeat(1500),
        format!("a{}", ".size()".repeat(250)),
        nested("1 in [", "]", BRACKETS_MAX),
        nested("1 < ", "", 500),
        nested("1 + ", "", DEPTH_MAX),
        nested("1 in ", "", DEPTH_MAX),
        format!("a{}", "['b']".repeat(DEPTH_MAX)),
        format!("a{}", "[0]".repeat(DEPTH_MAX)),
        format!("({}){}", nested("1 + ", "", 190), " + 1".repeat(190)),
        nested("true ? 1 : ", "", 60),
        format!("{}true", "state.a.b == 'x' && ".repeat(300)),
    ] {
        if let Ok(expr) = Expr::compile(&text) {
            let _ = expr.eval(&scope());
        }
    }
    assert!(Expr::compile(&format!("{}true", "state.a.b == 'x' && ".repeat(300))).is_ok());
    assert!(Expr::compile(&format!("[{}1]", "1.5 + 2.5, ".repeat(600))).is_ok());
}

#[test]
fn work_is_bounded() {
    let digits = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]";
    let hundred = format!("{digits}.map(a, {digits})");
    gives(&format!("size({hundred})"), "10");
    let thousand = Value::list((0..1000).map(Value::Int));
    let scope = Json(Value::map([("xs", thousand), ("big", Value::from("x".repeat(1 << 20)))]));
    for text in [
        "xs.map(a, xs.map(b, xs.map(c, a + b + c)))",
        "xs.all(a, xs.all(b, xs.all(c, c >= 0)))",
        "xs.exists(a, xs.exists(b, xs.exists(c, c < 0))) || true",
        "xs.map(a, big + big)",
        "xs.map(a, big.replace('x', big))",
        "to_json(xs.map(a, xs.map(b, big)))",
        "unique(xs.map(a, xs.map(b, big)))",
        "xs.map(a, xs.map(b, 'x'.matches('y' + string(b))))",
    ] {
        // A hundredth of the real limit, to keep the test quick.
        let expr = Expr::compile(text).unwrap();
        let error = eval::eval_within(&expr.0.node, &scope, WORK_MAX / 100).expect_err(text);
        assert!(error.message.contains("too much work"), "{text}: {error}");
    }
    assert!(Expr::compile("xs.map(a, xs.filter(b, b == a)[0]) == xs").unwrap().eval_bool(&scope).unwrap());
}

#[test]
fn every_function_can_be_tried() {
    let nothing = Json(Value::empty_map());
    for term in functions() {
        assert!(term.example.contains(term.name), "{} is not in its example", term.name);
        let expr = Expr::compile(term.example).unwrap_or_else(|error| panic!("{}: {error}", term.example));
        let value = expr.eval(&nothing);
        assert!(value.is_ok(), "{}: {value:?}", term.example);
    }
}

#[test]
fn a_slip_that_comes_from_elsewhere_is_answered_with_what_to_write() {
    fails("state.x > 1 and state.mean > 1", "write `&&`");
    fails("state.x > 1 or true", "write `||`");
    fails("not state.x", "write `!x`");
    // What is left of `{total: sum(state.votes.map(v, v.score))}` before YAML's comma.
    fails("sum(state.votes.map(v", "put the expression in quotes");
    fails("state.x +", "ends too early");
    assert!(!eval("state.x +").unwrap_err().contains("quotes"));
}
