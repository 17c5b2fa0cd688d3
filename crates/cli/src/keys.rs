//! Keys as they are pressed, without waiting for the end of a line and without echo. Ctrl-C stays the signal that it
//! is. The terminal is as it was before as soon as nobody listens any more.

use std::collections::VecDeque;
use std::io;

use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use tokio::net::unix::pipe::Receiver;

use crate::screen::terminal_keys;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    Backspace,
    /// Ctrl-U: what was typed goes.
    Clear,
    Escape,
    /// Ctrl-D, or nobody is there any more.
    End,
}

/// Listening from the moment it is made until it is dropped.
#[derive(Debug)]
pub(crate) struct Keys {
    terminal: Receiver,
    before: Termios,
    bytes: VecDeque<u8>,
}

impl Keys {
    pub(crate) fn listen() -> io::Result<Keys> {
        let terminal = terminal_keys()?;
        let before = termios::tcgetattr(&terminal)?;
        let mut modes = before.clone();
        modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        // A terminal is read as a pipe is: by whoever is told that something is there.
        let terminal = Receiver::from_file_unchecked(terminal)?;
        termios::tcsetattr(&terminal, OptionalActions::Now, &modes)?;
        Ok(Keys { terminal, before, bytes: VecDeque::new() })
    }

    /// Nothing is lost by not waiting to the end.
    pub(crate) async fn next(&mut self) -> Key {
        loop {
            if let Some(key) = decoded(&mut self.bytes) {
                return key;
            }
            let mut buffer = [0; 256];
            match self.terminal.try_read(&mut buffer) {
                Ok(0) => return Key::End,
                Ok(read) => self.bytes.extend(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.terminal.readable().await.is_err() {
                        return Key::End;
                    }
                }
                Err(_) => return Key::End,
            }
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // A terminal that is gone needs no mending.
        let _ = termios::tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

/// The first key of what has come; None if that is not whole yet. Keys that move a cursor are no keys here.
fn decoded(bytes: &mut VecDeque<u8>) -> Option<Key> {
    while let Some(first) = bytes.front().copied() {
        match first {
            0x1b if matches!(bytes.get(1), Some(b'[' | b'O')) => {
                let end = (2..bytes.len()).find(|at| matches!(bytes[*at], 0x40..=0x7e))?;
                bytes.drain(..=end);
                continue;
            }
            0x80.. => {
                let length = match first {
                    0xc0..=0xdf => 2,
                    0xe0..=0xef => 3,
                    0xf0..=0xf7 => 4,
                    _ => 1,
                };
                if bytes.len() < length {
                    return None;
                }
                let whole: Vec<u8> = bytes.drain(..length).collect();
                let typed = std::str::from_utf8(&whole).ok().and_then(|text| text.chars().next());
                return Some(Key::Char(typed.unwrap_or(char::REPLACEMENT_CHARACTER)));
            }
            _ => {}
        }
        bytes.pop_front();
        match first {
            b'\r' | b'\n' => return Some(Key::Enter),
            0x7f | 0x08 => return Some(Key::Backspace),
            0x15 => return Some(Key::Clear),
            0x1b => return Some(Key::Escape),
            // What ended the input before somebody listened comes as a nought.
            0x04 | 0x00 => return Some(Key::End),
            b' '..=b'~' => return Some(Key::Char(char::from(first))),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_keys_and_what_moves_a_cursor_is_none() {
        let mut bytes: VecDeque<u8> = "yä\u{1b}[A\u{1b}[1;5C\n\u{7f}\u{15}\u{4}".bytes().collect();
        let keys: Vec<Key> = std::iter::from_fn(|| decoded(&mut bytes)).collect();
        let expected = [Key::Char('y'), Key::Char('ä'), Key::Enter, Key::Backspace, Key::Clear, Key::End];
        assert_eq!(keys, expected);
        let mut half: VecDeque<u8> = [0xc3].into();
        assert_eq!(decoded(&mut half), None);
        half.push_back(0xa4);
        assert_eq!(decoded(&mut half), Some(Key::Char('ä')));
        assert_eq!(decoded(&mut [0x1b].into()), Some(Key::Escape));
    }
}
