//! What an artifact is where nobody says so: by its name, else by what is in it.

/// By what names end with. Few: whoever wants another one says so with a type.
const BY_ENDING: [(&str, &str); 20] = [
    ("md", "text/markdown"),
    ("txt", "text/plain"),
    ("log", "text/plain"),
    ("csv", "text/csv"),
    ("html", "text/html"),
    ("json", "application/json"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("xml", "application/xml"),
    ("patch", "text/x-diff"),
    ("diff", "text/x-diff"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("svg", "image/svg+xml"),
    ("zip", "application/zip"),
    ("gz", "application/gzip"),
];

/// As much as pictures show at their beginning.
const HEAD_BYTES: usize = 16;

/// Looks at what passes, piece by piece.
#[derive(Debug, Default)]
pub(super) struct MediaSniffer {
    head: Vec<u8>,
    is_binary: bool,
    /// The beginning of a character whose end has not come yet.
    open: Vec<u8>,
}

impl MediaSniffer {
    pub(super) fn see(&mut self, piece: &[u8]) {
        let room = HEAD_BYTES - self.head.len();
        self.head.extend_from_slice(&piece[..room.min(piece.len())]);
        if self.is_binary {
            return;
        }
        self.is_binary = piece.contains(&0);
        let joined;
        let mut text = piece;
        if !self.open.is_empty() {
            joined = [&self.open[..], piece].concat();
            text = &joined;
        }
        self.open = match std::str::from_utf8(text) {
            Ok(_) => Vec::new(),
            Err(error) if error.error_len().is_none() => text[error.valid_up_to()..].to_vec(),
            Err(_) => {
                self.is_binary = true;
                Vec::new()
            }
        };
    }

    pub(super) fn media_type(&self, name: &str) -> &'static str {
        let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        let by_ending = BY_ENDING.iter().find(|(known, _)| ending.as_deref() == Some(known));
        if let Some((_, media_type)) = by_ending {
            return media_type;
        }
        let is_text = !self.is_binary && self.open.is_empty();
        let text = || if is_text { "text/plain" } else { "application/octet-stream" };
        crate::llm::picture_type(&self.head).unwrap_or_else(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, pieces: &[&[u8]]) -> &'static str {
        let mut sniffer = MediaSniffer::default();
        pieces.iter().for_each(|piece| sniffer.see(piece));
        sniffer.media_type(name)
    }

    #[test]
    fn a_name_says_what_it_is_else_the_content_does() {
        assert_eq!(of("report.MD", &[b"\0"]), "text/markdown");
        assert_eq!(of("report", &[b"plain ", b"text"]), "text/plain");
        assert_eq!(of("report", &[]), "text/plain");
        assert_eq!(of("report", &["ä".as_bytes()]), "text/plain");
        assert_eq!(of("report", &[&"ä".as_bytes()[..1], &"ä".as_bytes()[1..]]), "text/plain");
        assert_eq!(of("report", &[&"ä".as_bytes()[..1]]), "application/octet-stream");
        assert_eq!(of("report", &[b"a\0b"]), "application/octet-stream");
        assert_eq!(of("report", &[b"\xff\xfe"]), "application/octet-stream");
        assert_eq!(of("shot", &[b"\x89PNG", b"\r\n\x1a\nrest"]), "image/png");
    }
}
