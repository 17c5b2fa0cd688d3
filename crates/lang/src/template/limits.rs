//! A look at the words of a template before it is parsed, so that no text can make the parser, the tree or a rendering
//! recurse deeper than the stack allows.

use minijinja::machinery::{Token, Tokenizer};
use minijinja::syntax::SyntaxConfig;

use super::TemplateError;

/// How deep tags nest; a further `elif` counts as well.
pub const TAGS_NESTED_MAX: usize = 64;
/// How deep brackets nest in one tag.
pub const BRACKETS_MAX: usize = 32;
/// How deep operators, filters, selections and calls nest in one tag, as in `a.b.c` or `1 + 2 + 3`.
pub const OPERATORS_NESTED_MAX: usize = 200;

/// Refuses what nests too deep. What is no template at all is the parser's to report.
pub(super) fn check(text: &str, syntax: &SyntaxConfig) -> Result<(), TemplateError> {
    let mut tokens = Tokenizer::new(text, "", false, syntax.clone());
    let mut tags = Tags::default();
    let mut levels = vec![Level::default()];
    while let Ok(Some((token, span))) = tokens.next_token() {
        match &token {
            Token::VariableStart | Token::BlockStart => {
                levels.clear();
                levels.push(Level::default());
            }
            token => step(&mut levels, token),
        }
        tags.step(&token, levels.len() == 1);
        let message = match () {
            _ if tags.nested() > TAGS_NESTED_MAX => format!("tags nest at most {TAGS_NESTED_MAX} deep"),
            _ if levels.len() > BRACKETS_MAX + 1 => format!("brackets nest at most {BRACKETS_MAX} deep"),
            _ if levels.iter().map(Level::depth).sum::<usize>() > OPERATORS_NESTED_MAX => {
                format!("operators nest at most {OPERATORS_NESTED_MAX} deep")
            }
            _ => continue,
        };
        let (line, offset) = (Some(span.start_line.into()), Some(span.start_offset as usize));
        return Err(TemplateError { message, line, offset });
    }
    Ok(())
}

/// What is known of one level of brackets. Commas start a new part; each operator of one part lies a level deeper.
#[derive(Default)]
struct Level {
    chain: usize,
    inner: usize,
    done: usize,
}

impl Level {
    fn depth(&self) -> usize {
        self.done.max(self.chain + self.inner)
    }
}

fn step(levels: &mut Vec<Level>, token: &Token<'_>) {
    let nested = levels.len() > 1;
    let Some(level) = levels.last_mut() else { return };
    match token {
        Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => {
            level.chain += 1;
            levels.push(Level::default());
        }
        Token::ParenClose | Token::BracketClose | Token::BraceClose if nested => {
            let depth = level.depth();
            levels.pop();
            if let Some(outer) = levels.last_mut() {
                outer.inner = outer.inner.max(depth);
            }
        }
        Token::Comma | Token::Colon => {
            level.done = level.depth();
            (level.chain, level.inner) = (0, 0);
        }
        Token::Plus
        | Token::Minus
        | Token::Mul
        | Token::Div
        | Token::FloorDiv
        | Token::Pow
        | Token::Mod
        | Token::Dot
        | Token::Tilde
        | Token::Pipe
        | Token::Eq
        | Token::Ne
        | Token::Gt
        | Token::Gte
        | Token::Lt
        | Token::Lte
        | Token::Ident("and" | "or" | "not" | "is" | "if" | "else" | "in") => level.chain += 1,
        _ => {}
    }
}

/// The tags that are open, each with how many more levels its `elif`s make.
#[derive(Default)]
struct Tags {
    open: Vec<usize>,
    total: usize,
    /// The first word of the tag that is being read.
    first: Option<Opening>,
    starts: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Opening {
    Always,
    /// `set`: a block of its own unless something is assigned.
    UnlessAssigned,
}

impl Tags {
    fn nested(&self) -> usize {
        self.total
    }

    fn step(&mut self, token: &Token<'_>, outside_brackets: bool) {
        let first = std::mem::take(&mut self.starts);
        match token {
            Token::BlockStart => (self.starts, self.first) = (true, None),
            Token::Ident("for" | "if" | "with" | "filter" | "autoescape") if first => {
                self.first = Some(Opening::Always);
            }
            Token::Ident("set") if first => self.first = Some(Opening::UnlessAssigned),
            Token::Ident("elif") if first => {
                if let Some(open) = self.open.last_mut() {
                    *open += 1;
                    self.total += 1;
                }
            }
            Token::Ident(word) if first && word.starts_with("end") => {
                self.total -= self.open.pop().unwrap_or(0);
            }
            Token::Assign if outside_brackets && self.first == Some(Opening::UnlessAssigned) => {
                self.first = None;
            }
            Token::BlockEnd if self.first.take().is_some() => {
                self.open.push(1);
                self.total += 1;
            }
            _ => {}
        }
    }
}
