//! The words of the command that a place in a command line belongs to, to tell whether another shell will read them as a
//! program: of `eval`, of `trap`, of `sh -c`, of a here-document that a shell is fed with. There no quotes of ours help,
//! for the value is read a second time without them.
//!
//! It knows shells and what starts them with their own words behind it (`sudo`, `xargs`, `find -exec`, `docker exec`); it
//! does not know other languages, nor what goes through a pipe or to another machine.

/// Programs that read the word behind `-c` as a program for a shell.
const SHELLS: [&str; 9] = ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash"];
/// The same, with words of their own before it.
const BECOME: [&str; 2] = ["su", "runuser"];
/// Long options of shells that take the next word.
const WITH_WORD: [&str; 2] = ["--rcfile", "--init-file"];
/// What may stand before the name of a command.
const BEFORE: [&str; 16] = [
    "if", "then", "else", "elif", "while", "until", "do", "!", "{", "time", "exec", "command", "builtin",
    "nohup", "function", "coproc",
];

/// A command as far as it is read.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    whole: Vec<String>,
    /// The one that is being read.
    word: Option<String>,
    /// It names a file: `> FILE`.
    redirects: bool,
    /// It is what a shell reads: `sh <<< TEXT`.
    feeds: bool,
}

impl Words {
    /// A character of a word, its quotes left out.
    pub(super) fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    /// A quote opens: there is a word, though it may be empty.
    pub(super) fn begin(&mut self) {
        self.word.get_or_insert_default();
    }

    /// No word is being read.
    pub(super) fn is_between(&self) -> bool {
        self.word.is_none()
    }

    pub(super) fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        self.feeds = false;
        if !std::mem::take(&mut self.redirects) {
            self.whole.push(word);
        }
    }

    pub(super) fn end_command(&mut self) {
        *self = Words::default();
    }

    /// `<` or `>`: what stands right before it may be the number of a stream.
    pub(super) fn redirect(&mut self) {
        if self.word.as_ref().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        self.redirects = true;
    }

    /// `<<<`: the next word is what the command reads.
    pub(super) fn here_string(&mut self) {
        self.feeds = self.is_fed_shell();
        self.redirects = true;
    }

    /// `<<`: the next word is a delimiter, which is read elsewhere.
    pub(super) fn here_document(&mut self) {
        self.redirects = false;
    }

    /// What the word that is read, or comes next, is a program for, if it is one: as it is said.
    pub(super) fn program(&self) -> Option<Program> {
        if self.redirects {
            return self.feeds.then_some(Program::Shell);
        }
        let words: Vec<&str> = self.whole.iter().map(String::as_str).collect();
        let start = words.iter().position(|word| !BEFORE.contains(word) && !is_assignment(word))?;
        match words[start] {
            "eval" => return Some(Program::Eval),
            "trap" if words[start + 1..].iter().all(|word| *word == "--") => return Some(Program::Trap),
            _ => {}
        }
        (script_at(&words) == Some(words.len())).then_some(Program::Shell)
    }

    /// Whether a shell reads its program from what it is fed with.
    pub(super) fn is_fed_shell(&self) -> bool {
        let current = self.word.iter().filter(|_| !self.redirects);
        let words: Vec<&str> = self.whole.iter().chain(current).map(String::as_str).collect();
        let Some(at) = words.iter().position(|word| is_one_of(&SHELLS, word)) else { return false };
        let options = options_of(&words[at + 1..]);
        let rest = &words[at + 1 + options..];
        let takes =
            |letter: char| words[at + 1..at + 1 + options].iter().any(|word| has_letter(word, letter));
        !takes('c') && (rest.is_empty() || takes('s'))
    }
}

/// A place whose text another shell reads as a program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Program {
    Eval,
    Trap,
    Shell,
}

impl Program {
    pub(super) fn refusal(self) -> &'static str {
        match self {
            Program::Eval => {
                "a value stands in what `eval` reads as a program: leave `eval` out, or give the value by `env` and \
                 name the variable there"
            }
            Program::Trap => {
                "a value stands in the program of a `trap`: keep it in a variable before, x={{ … }}; trap 'rm -f \
                 \"$x\"' EXIT"
            }
            Program::Shell => {
                "a value stands in a program that another shell reads: give it as an argument, sh -c '… \"$1\" …' sh \
                 {{ … }}, or by `env`"
            }
        }
    }
}

/// Which of the arguments of a command is a program for a shell, and why no value can stand in it.
pub fn program_among(words: &[&str]) -> Option<(usize, &'static str)> {
    let at = script_at(words).filter(|at| *at < words.len())?;
    Some((at, Program::Shell.refusal()))
}

/// Which of the words is a program for a shell, behind `-c`: the first that is no option. It may be one that is not
/// there yet.
fn script_at(words: &[&str]) -> Option<usize> {
    let (at, becomes) = words.iter().enumerate().find_map(|(at, word)| {
        let becomes = is_one_of(&BECOME, word);
        (becomes || is_one_of(&SHELLS, word)).then_some((at, becomes))
    })?;
    let rest = &words[at + 1..];
    let options = if becomes { rest.len() } else { options_of(rest) };
    let told = rest[..options].iter().position(|word| has_letter(word, 'c') || *word == "--command")?;
    let behind = &rest[told + 1..];
    // `su -c` takes the very next word; shells take options first.
    let more = if becomes { 0 } else { options_of(behind) };
    Some(at + 1 + told + 1 + more)
}

/// How many words at the beginning are options of a shell.
fn options_of(words: &[&str]) -> usize {
    let mut count = 0;
    while let Some(word) = words.get(count).filter(|word| word.starts_with(['-', '+']) && word.len() > 1) {
        // `-o pipefail`, also behind others: `-euo pipefail`.
        let names_option = !word.starts_with("--") && word.ends_with(['o', 'O']);
        count += if names_option || WITH_WORD.contains(word) { 2 } else { 1 };
    }
    count.min(words.len())
}

/// Whether an option of one dash has this letter: `-c`, `-ec`, `-lc`.
fn has_letter(word: &str, letter: char) -> bool {
    word.strip_prefix('-').is_some_and(|letters| !letters.starts_with('-') && letters.contains(letter))
}

fn is_one_of(names: &[&str], word: &str) -> bool {
    names.contains(&word.rsplit('/').next().unwrap_or(word))
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
