//! Texts from files and from stdin, never more of them than is asked for: whatever is named may be a device without an
//! end, or a pipe that somebody feeds for ever.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// What was read of something.
#[derive(Debug, PartialEq)]
pub(crate) enum Bounded {
    /// All of it.
    Whole(String),
    /// There is more than was asked for: the first byte too many was seen, and no other.
    TooLong,
}

/// A file. Why not, if it cannot be read or is no text.
pub(crate) fn file(path: &Path, bytes_max: usize) -> io::Result<Bounded> {
    bounded(File::open(path)?, bytes_max)
}

pub(crate) fn stdin(bytes_max: usize) -> io::Result<Bounded> {
    bounded(io::stdin().lock(), bytes_max)
}

fn bounded(from: impl Read, bytes_max: usize) -> io::Result<Bounded> {
    let mut bytes = Vec::new();
    from.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        return Ok(Bounded::TooLong);
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("byte {} is not part of a UTF-8 text", at + 1))
    });
    text.map(Bounded::Whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_one_byte_too_many() {
        struct Endless(usize);
        impl Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0 += buffer.len();
                assert!(self.0 < 1 << 20, "it is read for ever");
                buffer.fill(b'x');
                Ok(buffer.len())
            }
        }
        assert_eq!(bounded(Endless(0), 100_000).unwrap(), Bounded::TooLong);
        assert_eq!(bounded(&b"abc"[..], 3).unwrap(), Bounded::Whole("abc".to_owned()));
        assert_eq!(bounded(&b"abc"[..], 2).unwrap(), Bounded::TooLong);
        assert!(bounded(&b"ab\xff"[..], 3).unwrap_err().to_string().contains("byte 3"));
    }
}
