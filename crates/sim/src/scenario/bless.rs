//! Rewriting the traces of a file, and nothing else of it: by lines, so that comments, order and quoting stay
//! byte for byte.

use super::{Scenario, Trace};

/// The file with these traces in it, one for each case; a case with `trace: false` keeps that.
pub fn bless(scenario: &Scenario, traces: &[String]) -> Result<String, String> {
    let mut lines: Vec<&str> = scenario.text.split_inclusive('\n').collect();
    let rendered: Vec<Vec<String>> = scenario
        .cases
        .iter()
        .zip(traces)
        .map(|(case, trace)| match &case.expect.trace {
            Trace::Written(_, mark) => block(trace, mark.column),
            _ => Vec::new(),
        })
        .collect();
    // From the last to the first: what stands above keeps its line number.
    for (case, block) in scenario.cases.iter().zip(&rendered).rev() {
        match &case.expect.trace {
            Trace::Off => {}
            Trace::Missing => {
                let line = case.mark.line + 1;
                return Err(format!("{}:{line}: write `trace:` under `expect`", scenario.path.display()));
            }
            Trace::Written(_, mark) => {
                let end = end_of_block(&lines, mark.line, mark.column);
                lines.splice(mark.line..end, block.iter().map(String::as_str));
            }
        }
    }
    Ok(lines.concat())
}

fn block(trace: &str, column: usize) -> Vec<String> {
    let indent = " ".repeat(column);
    let lines = trace.lines().map(|line| format!("{indent}  {line}\n"));
    std::iter::once(format!("{indent}trace: |\n")).chain(lines).collect()
}

/// The first line after the key at `line` that does not belong to its value.
fn end_of_block(lines: &[&str], line: usize, column: usize) -> usize {
    let deeper = |text: &str| {
        let blank = text.trim().is_empty();
        blank || text.len() - text.trim_start_matches(' ').len() > column
    };
    let more = lines[line + 1..].iter().take_while(|text| deeper(text)).count();
    // Blank lines at the end separate what follows.
    let body = &lines[line + 1..line + 1 + more];
    let blank = body.iter().rev().take_while(|text| text.trim().is_empty()).count();
    line + 1 + more - blank
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_ends_where_its_indentation_does() {
        let text = "cases:\n  - expect:\n      status: x  # kept\n      trace: |\n        a\n        b\n\n  - name: next\n";
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        assert_eq!(end_of_block(&lines, 3, 6), 6);
        assert_eq!(block("x y\nz\n", 6).concat(), "      trace: |\n        x y\n        z\n");
    }
}
