//! A command line for a shell, with values that stay values. No value is ever part of the shell's program:
//! each goes in as a variable, and the line refers to it in the way that fits the quotes it stands in. So a
//! value is one word, or a part of one, whatever is in it and however the author quoted it.
//!
//! Following the quotes decides only how a variable is referred to; should a line confuse it, a value may
//! be split at its blanks, but it still is not run. Where another shell would read it as a program (`eval`, `trap`,
//! `sh -c "{{ x }}"`) it is refused; it cannot protect from other commands that take programs: `ssh`, `python -c`.

use wonder_core::command_line::Quotes;

use crate::parts::Part;

/// How the line gets at a value: from the environment, once, so that commands do not inherit it.
const GIVEN: &str = "WONDER_VALUE_";
const KEPT: &str = "_wonder_";

/// A program for `sh -c`, and the variables it needs.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Line {
    pub(super) script: String,
    pub(super) variables: Vec<(String, String)>,
}

/// Puts the line together. Says why it cannot.
pub(super) fn line(parts: Vec<Part>) -> Result<Line, String> {
    let mut quotes = Quotes::default();
    let mut line = Line::default();
    for part in parts {
        match part {
            Part::Written(text) => {
                text.chars().for_each(|c| quotes.read(c));
                line.script.push_str(&text);
            }
            Part::Value(value) => {
                let number = line.variables.len() + 1;
                let reference = quotes.reference(&format!("{KEPT}{number}"), &value)?;
                if quotes.follows_dollar() {
                    // `$` before a value is a dollar sign, not the start of another variable.
                    line.script.pop();
                    line.script.push_str("\\$");
                }
                quotes.read('x');
                line.script.push_str(&reference);
                line.variables.push((format!("{GIVEN}{number}"), value));
            }
        }
    }
    if !line.variables.is_empty() {
        line.script = format!("{}{}", preamble(line.variables.len()), line.script);
    }
    Ok(line)
}

/// On the line of the program's first, so that the shell's own line numbers stay right.
fn preamble(values: usize) -> String {
    let keep = (1..=values).map(|number| format!("{KEPT}{number}=$") + GIVEN + &number.to_string());
    let drop = (1..=values).map(|number| format!("{GIVEN}{number}"));
    format!("{}; unset {}; ", keep.collect::<Vec<_>>().join(" "), drop.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use wonder_core::template::Template;
    use wonder_core::value::Value;

    use super::*;
    use crate::parts::parts;

    /// What a shell makes of the line, in an empty directory; the second is what it left there.
    fn run(text: &str, value: &str) -> Result<(String, usize), String> {
        let scope = Value::map([("x", Value::str(value)), ("y", Value::str("why"))]);
        let line = line(parts(&Template::compile(text).unwrap(), &scope).unwrap())?;
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(&line.script).current_dir(&folder).envs(line.variables);
        let output = command.output().unwrap();
        let left = std::fs::read_dir(&folder).unwrap().count();
        Ok((String::from_utf8_lossy(&output.stdout).into_owned(), left))
    }

    const HOSTILE: [&str; 14] = [
        "plain",
        "two  words * ?",
        "$(touch pwned)",
        "`touch pwned`",
        "; touch pwned #",
        "'; touch pwned; '",
        "\"; touch pwned; \"",
        "\"'; touch pwned; '\"",
        "\n touch pwned \n",
        "EOF\ntouch pwned\n",
        "${IFS}&& touch pwned || $HOME",
        "\\",
        "-n $'\\x27; touch pwned'",
        "",
    ];

    #[test]
    fn a_value_is_itself_in_every_kind_of_quotes() {
        let places = [
            ("printf '<%s>' {{ x }}", "<{}>"),
            ("printf '<%s>' \"{{ x }}\"", "<{}>"),
            ("printf '<%s>' '{{ x }}'", "<{}>"),
            ("printf '<%s>' a{{ x }}b\"c {{ x }}\"'d {{ x }}'", "<a{}bc {}d {}>"),
            ("printf '<%s>' \"$(printf %s {{ x }}.)\"", "<{}.>"),
            ("printf '<%s>' \"$(printf %s \"{{ x }}\".)\"", "<{}.>"),
            ("printf '<%s>' `printf %s \"{{ y }}\"` {{ x }}", "<why><{}>"),
            ("printf '<%s>' \"${none:-{{ x }}}\"", "<{}>"),
            ("printf '<%s>' ${none:-\"{{ x }}\"}", "<{}>"),
            ("(printf '<%s>' {{ x }})", "<{}>"),
            ("printf '<%s>' \\\"\\' {{ x }}", "<\"'><{}>"),
            ("# it's {{ x }}\nprintf '<%s>' {{ x }}", "<{}>"),
            ("printf '<%s>' \"#\" a#b {{ x }}", "<#><a#b><{}>"),
            ("cat <<EOF\n<{{ x }}>\nEOF", "<{}>\n"),
            ("cat <<-EOF; printf '<%s>' {{ x }}\n\tit's\n\tEOF\n", "it's\n<{}>"),
            ("printf '<%s>' \"costs ${{ x }}\"", "<costs ${}>"),
            ("printf '<%s>' ${{ x }}", "<${}>"),
            ("f() { printf '<%s>' {{ x }} \"$1\"; }; set -- z; f 1", "<{}><1>"),
            ("sh -c 'printf \"<%s>\" \"$1\"' sh {{ x }}", "<{}>"),
            ("x={{ x }}; trap 'printf \"<%s>\" \"$x\"' EXIT", "<{}>"),
            ("sh -s -- {{ x }} <<'EOF'\nprintf '<%s>' \"$1\"\nEOF", "<{}>"),
        ];
        for (text, expected) in places {
            for value in HOSTILE {
                let (printed, left) = run(text, value).unwrap();
                assert_eq!(printed, expected.replace("{}", value), "{text} with {value:?}");
                assert_eq!(left, 0, "{text} with {value:?} ran something");
            }
        }
    }

    #[test]
    fn a_line_that_confuses_the_reader_still_runs_no_value() {
        let places = [
            "cat <<'EOF' ; echo {{ x }}\nit's\nEOF\n",
            "echo $'it\\'s' {{ x }}",
            "echo \"$(case a in a) echo \"{{ x }}\";; esac)\"",
            "echo \"`echo \\\"{{ x }}\\\"`\"",
            "echo ))) \" {{ x }}",
            "cat << E\"O\"F\na\nEOF\necho '{{ x }}",
        ];
        for text in places {
            for value in HOSTILE {
                if let Ok((_, left)) = run(text, value) {
                    assert_eq!(left, 0, "{text} with {value:?} ran something");
                }
            }
        }
    }

    #[test]
    fn where_no_value_can_stand_it_is_refused() {
        for (text, word) in [
            ("echo \\{{ x }}", "backslash"),
            ("cat <<'EOF'\n{{ x }}\nEOF", "here-document"),
            ("cat <<{{ x }}\na\n", "delimiter"),
            ("echo $(( {{ x }} + 1 ))", "whole number"),
            ("eval \"echo {{ x }}\"", "eval"),
            ("trap 'echo {{ x }}' EXIT", "trap"),
            ("sh -c \"echo {{ x }}\"", "another shell"),
            ("ls | xargs sh -c 'echo {{ x }}'", "another shell"),
            ("sh <<EOF\necho {{ x }}\nEOF", "here-document"),
        ] {
            assert!(run(text, "a[$(touch pwned)]").unwrap_err().contains(word), "{text}");
        }
        assert_eq!(run("echo $(( ({{ x }}) + 1 )) {{ y }}", "41").unwrap().0, "42 why\n");
    }

    #[test]
    fn commands_do_not_inherit_the_values() {
        assert_eq!(run("echo {{ x }}; env | grep -c needle-in", "needle-in").unwrap().0, "needle-in\n0\n");
    }
}
