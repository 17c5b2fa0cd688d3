//! A look at the text before it is parsed, so that no text can make the parser or the evaluator
//! recurse deeper than the stack allows.

use super::{BRACKETS_MAX, DEPTH_MAX, ExprError, TEXT_BYTES_MAX};

/// What is known of one level of brackets. `&&`, `||` and commas start a new part: the tree stays flat
/// there, whereas each further operator, selection or call of one part lies a level deeper.
#[derive(Default)]
struct Level {
    /// Operators in this part so far.
    chain: usize,
    /// The deepest bracket in this part so far.
    inner: usize,
    /// The deepest finished part.
    done: usize,
    /// Conditionals, which nest to the right across parts.
    conditionals: usize,
}

impl Level {
    fn depth(&self) -> usize {
        self.done.max(self.chain + self.inner) + self.conditionals
    }

    fn next_part(&mut self) {
        self.done = self.done.max(self.chain + self.inner);
        (self.chain, self.inner) = (0, 0);
    }
}

/// Refuses what is too long or too deep. Text inside quotes does not count; a quote left open is the
/// parser's to report.
pub(super) fn check(text: &str) -> Result<(), ExprError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(ExprError::at(format!("an expression has at most {TEXT_BYTES_MAX} bytes"), None));
    }
    let mut levels = vec![Level::default()];
    let (mut quote, mut escaped, mut before) = (None, false, b' ');
    for (offset, byte) in text.bytes().enumerate() {
        if let Some(open) = quote {
            if !escaped && byte == open {
                quote = None;
            }
            escaped = !escaped && byte == b'\\';
            continue;
        }
        if matches!(byte, b'\'' | b'"') {
            quote = Some(byte);
        }
        step(&mut levels, byte, before);
        before = byte;
        let open: usize = levels.iter().map(Level::depth).sum();
        let message = match () {
            _ if levels.len() > BRACKETS_MAX + 1 => format!("brackets nest at most {BRACKETS_MAX} deep"),
            _ if open > DEPTH_MAX => format!("operators nest at most {DEPTH_MAX} deep"),
            _ => continue,
        };
        return Err(ExprError::at(message, Some((offset, 1))));
    }
    Ok(())
}

fn step(levels: &mut Vec<Level>, byte: u8, before: u8) {
    let nested = levels.len() > 1;
    let Some(level) = levels.last_mut() else { return };
    match byte {
        b'(' | b'[' | b'{' => {
            level.chain += 1;
            levels.push(Level::default());
        }
        b')' | b']' | b'}' if nested => {
            let depth = level.depth();
            levels.pop();
            if let Some(outer) = levels.last_mut() {
                outer.inner = outer.inner.max(depth);
            }
        }
        b',' => level.next_part(),
        b'&' | b'|' if before == byte => level.next_part(),
        b'?' => level.conditionals += 1,
        // The `n` of `in`; that it may end a name only makes the count too high.
        b'n' if before == b'i' => level.chain += 1,
        b'.' | b'!' | b'+' | b'-' | b'*' | b'/' | b'%' | b'<' | b'>' => level.chain += 1,
        b'=' if !matches!(before, b'<' | b'>' | b'!') => level.chain += 1,
        _ => {}
    }
}
