//! A command line for a shell, with values that stay values. No value is ever part of the shell's program:
//! each goes in as a variable, and the line refers to it in the way that fits the quotes it stands in. So a
//! value is one word, or a part of one, whatever is in it and however the author quoted it.
//!
//! Following the quotes decides only how a variable is referred to; should a line confuse it, a value may
//! be split at its blanks, but it still is not run. It cannot protect from a command that itself takes
//! programs: `sh -c "{{ x }}"`, `eval`, `ssh`.

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
    let mut reader = Reader::default();
    let mut line = Line::default();
    for part in parts {
        match part {
            Part::Written(text) => {
                text.chars().for_each(|c| reader.read(c));
                line.script.push_str(&text);
            }
            Part::Value(value) => {
                let number = line.variables.len() + 1;
                let reference = reader.reference(&format!("{KEPT}{number}"), &value)?;
                if reader.follows_dollar() {
                    // `$` before a value is a dollar sign, not the start of another variable.
                    line.script.pop();
                    line.script.push_str("\\$");
                }
                reader.read('x');
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

/// What the next character stands in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum In {
    Single,
    Double,
    Comment,
    /// `$( )`, `( )` or backquotes: a command of its own, quotes start anew.
    Command,
    Backquote,
    /// `${ }`
    Braces,
    /// `$(( ))`, with how many brackets are open.
    Sum(u32),
}

#[derive(Clone, Debug, Default)]
struct Document {
    delimiter: String,
    /// Nothing is expanded in it.
    quoted: bool,
    /// `<<-`: leading tabs do not count.
    tabs: bool,
    begun: bool,
}

/// Follows a shell's quotes through what the author wrote.
#[derive(Debug, Default)]
struct Reader {
    stack: Vec<In>,
    escaped: bool,
    /// The last character, and the one before.
    last: [Option<char>; 2],
    /// `<<` was read, and its delimiter is being read.
    opening: Option<Document>,
    /// Documents that begin with the next line.
    waiting: Vec<Document>,
    inside: Option<Document>,
    /// The line of the document so far.
    text: String,
}

impl Reader {
    /// How a variable is referred to here so that its value stays as it is.
    fn reference(&self, name: &str, value: &str) -> Result<String, String> {
        if self.escaped {
            return Err("a value follows a backslash: leave the backslash out, values are quoted".to_owned());
        }
        if self.opening.is_some() {
            return Err(
                "a value stands in the delimiter of a here-document: write the delimiter out".to_owned()
            );
        }
        let bare = format!("${{{name}}}");
        match (&self.inside, self.stack.last()) {
            (Some(document), _) if document.quoted => Err(format!(
                "a value stands in a here-document whose delimiter is quoted, where nothing can be put in: \
                 write <<{} without quotes, or use `stdin`",
                document.delimiter
            )),
            (Some(_), _) | (None, Some(In::Double)) => Ok(bare),
            (None, Some(In::Single)) => Ok(format!("'\"{bare}\"'")),
            (None, Some(In::Braces)) if self.in_double_braces() => Ok(bare),
            // Some shells run what stands in an index there: only a number is surely harmless.
            (None, Some(In::Sum(_))) if value.trim().parse::<i64>().is_err() => {
                Err("a value in $(( )) must be a whole number".to_owned())
            }
            (None, Some(In::Sum(_))) => Ok(bare),
            _ => Ok(format!("\"{bare}\"")),
        }
    }

    /// A lone `$` was the last character, and not as text.
    fn follows_dollar(&self) -> bool {
        let single = matches!(self.stack.last(), Some(In::Single | In::Comment)) && self.inside.is_none();
        self.last[0] == Some('$') && self.last[1] != Some('$') && !single
    }

    fn in_double_braces(&self) -> bool {
        let outer = self.stack.iter().rev().find(|place| **place != In::Braces);
        outer == Some(&In::Double)
    }

    fn read(&mut self, c: char) {
        let escaped = std::mem::take(&mut self.escaped);
        if self.inside.is_some() {
            self.escaped = c == '\\' && !escaped;
            self.read_document(c);
        } else if self.opening.is_some() {
            self.read_delimiter(c);
        } else if !escaped {
            self.read_code(c);
        }
        // A character that was escaped begins nothing.
        self.last = [Some(if escaped { 'x' } else { c }), self.last[0]];
    }

    fn read_code(&mut self, c: char) {
        match (self.stack.last().copied(), c) {
            (Some(In::Single), '\'') | (Some(In::Double), '"') | (Some(In::Braces), '}') => self.close(),
            (Some(In::Single), _) => {}
            (Some(In::Comment), '\n') => {
                self.close();
                self.end_line();
            }
            (Some(In::Comment), _) => {}
            (_, '\\') => self.escaped = true,
            (Some(In::Backquote), '`') => self.close(),
            (_, '`') => self.stack.push(In::Backquote),
            (_, '{') if self.last[0] == Some('$') => self.stack.push(In::Braces),
            (_, '(') if self.last[0] == Some('$') => self.stack.push(In::Command),
            (Some(In::Double), _) => {}
            (_, '"') => self.stack.push(In::Double),
            (_, '\'') if !(self.stack.last() == Some(&In::Braces) && self.in_double_braces()) => {
                self.stack.push(In::Single);
            }
            (_, '(' | ')') => self.read_bracket(c),
            (Some(In::Braces | In::Sum(_)), _) => {}
            (_, '#') if self.last[0].is_none_or(|c| c.is_whitespace() || ";&|()`".contains(c)) => {
                self.stack.push(In::Comment);
            }
            (_, '<') if self.last == [Some('<'), Some('<')] => self.opening = None,
            (_, '<') if self.last[0] == Some('<') => self.opening = Some(Document::default()),
            (_, '\n') => self.end_line(),
            _ => {}
        }
    }

    fn read_bracket(&mut self, c: char) {
        match (self.stack.last_mut(), c) {
            (Some(In::Sum(open)), '(') => *open += 1,
            (Some(In::Sum(open)), _) if *open > 1 => *open -= 1,
            (Some(top @ In::Command), '(') if self.last == [Some('('), Some('$')] => *top = In::Sum(2),
            (_, '(') => self.stack.push(In::Command),
            (Some(In::Sum(_) | In::Command), _) => self.close(),
            _ => {}
        }
    }

    fn close(&mut self) {
        self.stack.pop();
    }

    /// The word after `<<`.
    fn read_delimiter(&mut self, c: char) {
        let Some(document) = &mut self.opening else { return };
        match c {
            // `<<<` is a word, not a document.
            '<' if !document.begun => self.opening = None,
            '-' if !document.begun && !document.tabs => document.tabs = true,
            ' ' | '\t' if !document.begun => {}
            '\'' | '"' | '\\' => {
                document.begun = true;
                document.quoted = true;
            }
            c if c.is_whitespace() || ";&|<>()".contains(c) => {
                self.waiting.extend(self.opening.take());
                if c == '\n' {
                    self.end_line();
                } else {
                    self.read_code(c);
                }
            }
            c => {
                document.begun = true;
                document.delimiter.push(c);
            }
        }
    }

    fn end_line(&mut self) {
        if !self.waiting.is_empty() {
            self.inside = Some(self.waiting.remove(0));
            self.text.clear();
        }
    }

    fn read_document(&mut self, c: char) {
        let Some(document) = &self.inside else { return };
        if c != '\n' {
            self.text.push(c);
            return;
        }
        let line = if document.tabs { self.text.trim_start_matches('\t') } else { &self.text };
        let over = line == document.delimiter;
        self.text.clear();
        if over {
            self.inside = None;
            self.end_line();
        }
    }
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
