//! Server-sent events, however the bytes come: any line end, any split, comments between. What an event's data
//! means is for whoever gets it.

/// Puts lines together to events. Holds no more than one event.
#[derive(Debug, Default)]
pub(crate) struct Events {
    line: Vec<u8>,
    data: String,
    has_data: bool,
    /// The last byte was a carriage return: a line feed now belongs to it.
    after_return: bool,
    /// A byte order mark may stand before the first line.
    begun: bool,
}

impl Events {
    /// Takes bytes and hands on the data of each event that they complete. Names of events are not needed: all
    /// providers say in the data what it is.
    pub(crate) fn push(&mut self, bytes: &[u8], mut event: impl FnMut(&str)) {
        for &byte in bytes {
            let after_return = std::mem::replace(&mut self.after_return, byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => self.line_ends(&mut event),
                _ => self.line.push(byte),
            }
        }
    }

    fn line_ends(&mut self, event: &mut impl FnMut(&str)) {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = if self.begun { &line } else { line.strip_prefix('\u{feff}').unwrap_or(&line) };
        self.begun = true;
        if line.is_empty() {
            if std::mem::take(&mut self.has_data) {
                event(&std::mem::take(&mut self.data));
            }
            return;
        }
        // A comment begins with the colon; other fields say nothing that we need.
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        if field == "data" {
            if self.has_data {
                self.data.push('\n');
            }
            self.has_data = true;
            self.data.push_str(value.strip_prefix(' ').unwrap_or(value));
        }
    }

    /// What is left when no more comes: an event whose end was not sent.
    pub(crate) fn rest(&mut self) -> Option<String> {
        let mut last = None;
        self.line_ends(&mut |data| last = Some(data.to_owned()));
        self.line_ends(&mut |data| last = Some(data.to_owned()));
        last
    }
}
