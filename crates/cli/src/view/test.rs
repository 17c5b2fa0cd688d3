//! What came of tests: a line a case, every difference of those that failed; for programs as JSON, for build servers
//! as JUnit's XML.

use serde_json::{Value as Json, json};
use wonder_spec::cases::Case;
use wonder_trial::{Played, Problem};

use super::paint::{Paint, Tone};
use crate::text::{Text, text};
use crate::verbs::test::{Tested, counted};

/// Lines of one value that are shown.
const LINES_MAX: usize = 40;

pub(crate) fn file(tested: &Tested, paint: Paint) -> Text {
    let mut out = Text::EMPTY;
    for (case, played) in &tested.cases {
        let failed = !played.problems.is_empty();
        let (tone, mark) = if failed { (Tone::Bad, "FAIL") } else { (Tone::Good, "ok  ") };
        let place = if failed { format!("{}:{}", tested.file, case.line) } else { tested.file.clone() };
        out.push_line(text!("{} {}: {}", paint.tone(tone, mark), place, case.name));
        played.problems.iter().for_each(|found| out.push(problem(found, paint)));
    }
    if tested.updated > 0 {
        out.push_line(text!("     {}: rewritten", tested.file));
    }
    out
}

fn problem(problem: &Problem, paint: Paint) -> Text {
    let mut out = text!("  {}\n", paint.strong(problem.about.as_str()));
    for (label, tone, value) in
        [("expected", Tone::Good, &problem.expected), ("actual  ", Tone::Bad, &problem.actual)]
    {
        let Some(value) = value else { continue };
        for (at, line) in Text::block(value).lines().take(LINES_MAX).enumerate() {
            let label = if at == 0 { label } else { "        " };
            out.push_line(text!("    {}  {}", label, paint.tone(tone, line)));
        }
    }
    for line in problem.says.iter().take(LINES_MAX) {
        out.push_line(text!("    {}", line));
    }
    if let Some(help) = &problem.help {
        out.push_line(text!("    {}: {}", paint.tone(Tone::Active, "help"), help));
    }
    out
}

/// One line for the person who waited.
pub(crate) fn summary(all: &[Tested]) -> Text {
    counted(all).into()
}

pub(crate) fn json(all: &[Tested]) -> Json {
    let files: Vec<Json> = all
        .iter()
        .map(|tested| {
            let cases: Vec<Json> = tested.cases.iter().map(case_json).collect();
            let mut file = json!({"file": tested.file, "cases": cases});
            if let Some(fault) = &tested.broken {
                file["error"] = fault.to_json()["error"].clone();
            }
            file
        })
        .collect();
    let failed: usize = all.iter().map(Tested::failed).sum();
    let played: usize = all.iter().map(|tested| tested.cases.len()).sum();
    json!({"files": files, "passed": played - failed, "failed": failed})
}

fn case_json((case, played): &(Case, Played)) -> Json {
    let problems: Vec<Json> = played
        .problems
        .iter()
        .map(|problem| {
            let mut json = json!({
                "about": problem.about,
                "expected": problem.expected,
                "actual": problem.actual,
                "help": problem.help,
            });
            if !problem.says.is_empty() {
                json["says"] = json!(problem.says);
            }
            if let Some(fields) = json.as_object_mut() {
                fields.retain(|_, value| !value.is_null());
            }
            json
        })
        .collect();
    json!({
        "name": case.name,
        "line": case.line,
        "ok": problems.is_empty(),
        "status": played.actual.status,
        "cost_usd": played.actual.usd_micros as f64 / 1e6,
        "virtual_ms": played.actual.took_ms,
        "problems": problems,
    })
}

/// JUnit's XML, as build servers read it.
pub(crate) fn junit(all: &[Tested]) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"wonder\">\n");
    for tested in all {
        let (file, tests, failures) = (escaped(&tested.file), tested.cases.len(), tested.failed());
        let errors = usize::from(tested.is_broken());
        out.push_str(&format!(
            "  <testsuite name=\"{file}\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\">\n",
            tests + errors
        ));
        if let Some(fault) = &tested.broken {
            let said = escaped(fault.render(Paint::default()).as_str().trim_end());
            out.push_str(&format!(
                "    <testcase classname=\"{file}\" name=\"(the file)\">\n      <error message=\"it cannot be \
                 read\">{said}</error>\n    </testcase>\n"
            ));
        }
        for (case, played) in &tested.cases {
            let name = escaped(&case.name);
            out.push_str(&format!("    <testcase classname=\"{file}\" name=\"{name}\""));
            if played.problems.is_empty() {
                out.push_str("/>\n");
                continue;
            }
            let about: Vec<&str> = played.problems.iter().map(|problem| problem.about.as_str()).collect();
            let all: Vec<Text> =
                played.problems.iter().map(|found| problem(found, Paint::default())).collect();
            let said = escaped(Text::joined(all, "").as_str().trim_end());
            let about = escaped(&about.join(", "));
            out.push_str(&format!(
                ">\n      <failure message=\"{about}\">{said}</failure>\n    </testcase>\n"
            ));
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

/// A text inside XML. What XML has no way to write is left out.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if (c as u32) < 0x20 || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}
