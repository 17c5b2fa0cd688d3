//! Two texts side by side, for the person who has to find the line that is not as it should be.

use std::fmt::Write;

/// Lines around a difference that are shown with it.
const CONTEXT: usize = 3;

/// A line diff, `-` for what was expected and `+` for what came; nothing if the texts are the same.
pub fn lines(expected: &str, found: &str) -> Option<String> {
    let (a, b): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), found.lines().collect());
    if a == b {
        return None;
    }
    let marks = marks(&a, &b);
    let mut shown = vec![false; marks.len()];
    for (at, (mark, _)) in marks.iter().enumerate() {
        if *mark != ' ' {
            let end = (at + CONTEXT + 1).min(marks.len());
            shown[at.saturating_sub(CONTEXT)..end].fill(true);
        }
    }
    let mut text = String::new();
    let mut skipped = false;
    for ((mark, line), shown) in marks.iter().zip(shown) {
        if shown {
            let _ = writeln!(text, "{}{mark} {line}", if skipped { "  …\n" } else { "" });
        }
        skipped = !shown;
    }
    Some(text)
}

/// Every line of both with its mark, by the longest common subsequence.
fn marks<'a>(a: &[&'a str], b: &[&'a str]) -> Vec<(char, &'a str)> {
    let mut common = vec![vec![0_u32; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i][j] =
                if a[i] == b[j] { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut marks = Vec::new();
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            marks.push((' ', a[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == b.len() || (i < a.len() && common[i + 1][j] >= common[i][j + 1]) {
            marks.push(('-', a[i]));
            i += 1;
        } else {
            marks.push(('+', b[j]));
            j += 1;
        }
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_shown_with_its_surroundings() {
        assert_eq!(lines("a\nb\n", "a\nb"), None);
        let diff = lines("1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\nx\n6\n").unwrap();
        assert_eq!(diff, "  …\n  2\n  3\n  4\n- 5\n+ x\n  6\n");
    }
}
