//! Two texts side by side, for the person who has to find the line that is not as it should be.

use std::fmt::Write;

/// Lines around a difference that are shown with it.
const CONTEXT: usize = 3;
/// Of texts that differ in more than this, pairs of lines, all of one is shown before all of the other.
const PAIRS_MAX: usize = 4_000_000;

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

/// Every line of both with its mark.
fn marks<'a>(a: &[&'a str], b: &[&'a str]) -> Vec<(char, &'a str)> {
    let equal = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let before = a.iter().zip(b).take_while(equal).count();
    let (a_rest, b_rest) = (&a[before..], &b[before..]);
    let after = a_rest.iter().rev().zip(b_rest.iter().rev()).take_while(equal).count();
    let (a_rest, b_rest) = (&a_rest[..a_rest.len() - after], &b_rest[..b_rest.len() - after]);
    let same = |lines: &[&'a str]| lines.iter().map(|line| (' ', *line)).collect::<Vec<_>>();
    let mut marks = same(&a[..before]);
    if a_rest.len().saturating_mul(b_rest.len()) > PAIRS_MAX {
        marks.extend(a_rest.iter().map(|line| ('-', *line)));
        marks.extend(b_rest.iter().map(|line| ('+', *line)));
    } else {
        marks.extend(marks_between(a_rest, b_rest));
    }
    marks.extend(same(&a[a.len() - after..]));
    marks
}

/// The same by the longest common subsequence.
fn marks_between<'a>(a: &[&'a str], b: &[&'a str]) -> Vec<(char, &'a str)> {
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

    #[test]
    fn long_texts_that_share_nothing_take_no_square_of_memory() {
        let text = |from: usize| (from..from + 3_000).map(|n| format!("{n}\n")).collect::<String>();
        let diff = lines(&text(0), &text(10_000)).unwrap();
        assert!(diff.starts_with("- 0\n- 1\n") && diff.ends_with("+ 12999\n"), "{diff}");
    }
}
