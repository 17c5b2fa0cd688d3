//! What is shown goes through one place, and what keeps its colours there is listed.

use crate::{files, read, root};

/// Who hands drawings of libraries to the screen; each cleans what the library draws.
const MAY_DRAW: [&str; 4] = ["fault.rs", "main.rs", "text.rs", "verbs/write.rs"];

/// Whatever writes past the screen. Clippy knows these too; this also sees what nobody compiles.
const STREAMS: [&str; 7] =
    ["io::stdout", "io::stderr", "println!", "print!(", "Term::stdout", "Term::stderr", "/dev/tty"];

#[test]
fn only_the_screen_writes_and_few_draw() {
    let folder = root().join("crates/cli/src");
    for path in files(&folder, "rs") {
        let name = path.strip_prefix(&folder).expect("it was found there").to_string_lossy().into_owned();
        let text = read(&path);
        for stream in STREAMS.iter().filter(|stream| text.contains(**stream)) {
            assert!(
                name == "screen.rs",
                "{name}: {stream} writes past the screen, which cleans: see ADR 0025"
            );
        }
        if text.contains("Text::drawn") {
            assert!(MAY_DRAW.contains(&name.as_str()), "{name}: Text::drawn keeps colours: see ADR 0025");
        }
    }
}
