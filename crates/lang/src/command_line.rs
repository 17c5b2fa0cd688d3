//! Where in a shell's command line a value stands: in which quotes, in a here-document, in a sum. For the worker, who
//! refers to each value by a variable in the way that fits, and for checks, who say before the run where none can
//! stand. It quotes nothing itself.

mod words;

use words::Words;
pub use words::program_among;

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
    /// A shell reads it as its program.
    program: bool,
}

/// Follows a shell's quotes through what the author wrote.
#[derive(Debug, Default)]
pub struct Quotes {
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
    /// The command that is read, and those around it with how deep in the stack they begin.
    words: Words,
    outer: Vec<(usize, Words)>,
}

impl Quotes {
    /// Why no value at all can stand here.
    pub fn refuse(&self) -> Option<String> {
        if self.escaped {
            return Some(
                "a value follows a backslash: leave the backslash out, values are quoted".to_owned(),
            );
        }
        if self.opening.is_some() {
            return Some(
                "a value stands in the delimiter of a here-document: write the delimiter out".to_owned(),
            );
        }
        let Some(document) = &self.inside else {
            let comment = self.stack.last() == Some(&In::Comment);
            let program = self.words.program().filter(|_| !comment)?;
            return Some(program.refusal().to_owned());
        };
        if document.program {
            return Some(
                "a value stands in a here-document that a shell reads as its program: give it as an argument, sh -s -- \
                 {{ … }} <<'EOF', and write \"$1\" in it, or by `env`"
                    .to_owned(),
            );
        }
        document.quoted.then(|| {
            format!(
                "a value stands in a here-document whose delimiter is quoted, where nothing can be put in: \
             write <<{} without quotes, or use `stdin`",
                document.delimiter
            )
        })
    }

    /// How a variable is referred to here so that its value stays as it is.
    pub fn reference(&self, name: &str, value: &str) -> Result<String, String> {
        if let Some(why) = self.refuse() {
            return Err(why);
        }
        let bare = format!("${{{name}}}");
        match (&self.inside, self.stack.last()) {
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
    pub fn follows_dollar(&self) -> bool {
        let single = matches!(self.stack.last(), Some(In::Single | In::Comment)) && self.inside.is_none();
        self.last[0] == Some('$') && self.last[1] != Some('$') && !single
    }

    fn in_double_braces(&self) -> bool {
        let outer = self.stack.iter().rev().find(|place| **place != In::Braces);
        outer == Some(&In::Double)
    }

    /// One character of what the author wrote, or anything for a value.
    pub fn read(&mut self, c: char) {
        let escaped = std::mem::take(&mut self.escaped);
        if self.inside.is_some() {
            self.escaped = c == '\\' && !escaped;
            self.read_document(c);
        } else if self.opening.is_some() {
            self.read_delimiter(c);
        } else if escaped {
            self.words.push(c);
        } else {
            self.read_code(c);
        }
        // A character that was escaped begins nothing.
        self.last = [Some(if escaped { 'x' } else { c }), self.last[0]];
    }

    fn read_code(&mut self, c: char) {
        self.read_word(c);
        let depth = self.stack.len();
        self.read_quotes(c);
        if self.stack.len() > depth && matches!(self.stack.last(), Some(In::Command | In::Backquote)) {
            let outer = std::mem::take(&mut self.words);
            self.outer.push((self.stack.len(), outer));
        }
        while let Some((depth, outer)) = self.outer.pop_if(|(depth, _)| *depth > self.stack.len()) {
            debug_assert!(depth > self.stack.len());
            self.words = outer;
        }
    }

    /// What a character is to the words of its command.
    fn read_word(&mut self, c: char) {
        let words = &mut self.words;
        match (self.stack.last(), c) {
            (Some(In::Comment), _) | (Some(In::Single), '\'') | (Some(In::Double), '"' | '\\') => {}
            (Some(In::Single | In::Double | In::Braces | In::Sum(_)), c) => words.push(c),
            (_, '"' | '\'' | '\\') => words.begin(),
            (_, ' ' | '\t') => words.end_word(),
            (_, '&') if matches!(self.last[0], Some('>' | '<')) => {}
            (_, '(') if self.last[0] == Some('$') => {}
            (_, '\n' | ';' | '|' | '&' | '(' | ')') => words.end_command(),
            (_, '<') if self.last == [Some('<'), Some('<')] => words.here_string(),
            (_, '<') if self.last[0] == Some('<') => words.here_document(),
            (_, '<' | '>') => words.redirect(),
            (_, '#') if words.is_between() => {}
            (_, '`') => {}
            (_, c) => words.push(c),
        }
    }

    fn read_quotes(&mut self, c: char) {
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
            (_, '<') if self.last[0] == Some('<') => {
                self.opening = Some(Document { program: self.words.is_fed_shell(), ..Document::default() });
            }
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
            '<' if !document.begun => {
                self.opening = None;
                self.words.here_string();
            }
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
    use super::*;

    fn refused(text: &str) -> Option<String> {
        let mut quotes = Quotes::default();
        text.chars().for_each(|c| quotes.read(c));
        quotes.refuse()
    }

    #[test]
    fn no_value_can_stand_where_nothing_is_put_in() {
        assert!(refused("cat <<'EOF'\nhello ").is_some_and(|why| why.contains("<<EOF")));
        assert!(refused("cat <<\"EOF\"\nhello ").is_some());
        assert!(refused("cat <<E").is_some_and(|why| why.contains("delimiter")));
        assert!(refused("echo \\").is_some_and(|why| why.contains("backslash")));
        for fine in
            ["cat <<EOF\nhello ", "cat <<'EOF'\nhello\nEOF\necho ", "echo '", "echo \"", "cat <<<'x' "]
        {
            assert_eq!(refused(fine), None, "{fine}");
        }
    }

    #[test]
    fn no_value_can_stand_in_a_program_that_another_shell_reads() {
        for (text, word) in [
            ("eval ", "`eval`"),
            ("eval \"echo ", "`eval`"),
            ("eval echo 'a' ", "`eval`"),
            ("x=1; if true; then eval \"", "`eval`"),
            ("A=b command eval '", "`eval`"),
            ("true && eval \"", "`eval`"),
            ("echo $(eval \"", "`eval`"),
            ("trap 'rm -f ", "`trap`"),
            ("trap \"rm -f ", "`trap`"),
            ("trap -- 'rm ", "`trap`"),
            ("set -e; trap 'rm -rf /tmp/", "`trap`"),
            ("sh -c \"echo ", "another shell"),
            ("sh -c 'echo ", "another shell"),
            ("bash -lc \"", "another shell"),
            ("bash -euo pipefail -c '", "another shell"),
            ("bash -c -e '", "another shell"),
            ("/bin/bash -c ", "another shell"),
            ("sudo -u me sh -c \"", "another shell"),
            ("ls | xargs -n 1 sh -c 'cp ", "another shell"),
            ("find . -exec sh -c 'cp ", "another shell"),
            ("docker exec box sh -c \"", "another shell"),
            ("2>&1 sh -c '", "another shell"),
            ("sh 2>/dev/null -c '", "another shell"),
            ("su me -c \"", "another shell"),
            ("out=$(sh -c \"", "another shell"),
            ("sh <<EOF\necho ", "here-document"),
            ("bash -s a <<EOF\necho ", "here-document"),
            ("ssh host bash <<EOF\necho ", "here-document"),
            ("bash <<< \"echo ", "another shell"),
        ] {
            assert!(refused(text).is_some_and(|why| why.contains(word)), "{text}: {:?}", refused(text));
        }
        for fine in [
            "sh -c 'echo \"$1\"' sh ",
            "sh -c 'echo \"$1\"' sh \"a ",
            "sh script.sh -c ",
            "bash ./run.sh ",
            "sh -c 'true'; echo ",
            "sh -c 'true' && echo \"",
            "trap 'rm -f \"$x\"' ",
            "trap 'rm -f x' EXIT; cp ",
            "x=1; trap - EXIT\necho ",
            "echo eval ",
            "evaluate ",
            "echo 'eval ",
            "sh -c \"$(cat ",
            "eval \"$(tool ",
            "cat <<EOF | sh\nhello\nEOF\necho ",
            "sh -s <<'EOF' ",
            "bash run.sh <<EOF\n",
            "cat > run.sh <<EOF\n",
            "sh -c 'x' > ",
            "gcc -c ",
            "# eval ",
            "case $x in a) echo ",
            "f() { echo ",
        ] {
            assert_eq!(refused(fine), None, "{fine}");
        }
    }
}
