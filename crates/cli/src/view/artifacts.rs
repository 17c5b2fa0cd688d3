//! What a run has kept, as a table.

use wonder_engine::ArtifactView;

use super::list::Page;
use super::paint::Tone;
use super::table::Table;
use super::words::{ago, short_id};
use crate::text::Text;

/// The oldest first. `run`: the one that was asked about; of others it is said which they are.
pub(crate) fn table(artifacts: &[ArtifactView], run: &str, page: Page) -> Text {
    if artifacts.is_empty() {
        return Text::EMPTY;
    }
    let mut table =
        Table::new(&["NAME", "TYPE", "MEDIA TYPE", "BYTES", "NODE", "KEPT", "RUN"]).with_numbers([3]);
    for artifact in artifacts {
        let other = if artifact.run == run { "" } else { short_id(&artifact.run) };
        table.row(vec![
            (Tone::Strong, artifact.name.clone()),
            (Tone::Plain, artifact.artifact_type.clone().unwrap_or_default()),
            (Tone::Dim, artifact.media_type.clone()),
            (Tone::Plain, artifact.bytes.to_string()),
            (Tone::Plain, artifact.node.clone()),
            (Tone::Dim, ago(artifact.at, page.now)),
            (Tone::Dim, other.to_owned()),
        ]);
    }
    let table = table.without_empty();
    let table = match page.width {
        Some(width) => table.narrowed(width, &["MEDIA TYPE", "RUN"]),
        None => table,
    };
    table.render(page.paint, page.width)
}
