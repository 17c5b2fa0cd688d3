//! MCP servers and their tools, as tables.

use serde::Serialize;
use wonder_actions::ListedTool;

use super::list::Page;
use super::paint::Tone;
use super::table::Table;
use crate::text::Text;

#[derive(Debug, Serialize)]
pub(crate) struct ServerRow {
    pub name: String,
    /// Its command or address.
    pub reached: String,
    /// How many, or why that is not known.
    pub tools: Result<usize, String>,
}

pub(crate) fn servers(rows: &[ServerRow], page: Page) -> Text {
    if rows.is_empty() {
        return Text::EMPTY;
    }
    let mut table = Table::new(&["SERVER", "STATE", "REACHED"]);
    for row in rows {
        let state = match &row.tools {
            Ok(count) => (Tone::Good, format!("{count} tools")),
            Err(why) => (Tone::Bad, why.clone()),
        };
        table.row(vec![(Tone::Strong, row.name.clone()), state, (Tone::Dim, row.reached.clone())]);
    }
    table.render(page.paint, page.width)
}

pub(crate) fn tools(tools: &[ListedTool], page: Page) -> Text {
    let mut table = Table::new(&["TOOL", "EFFECTS", "WHAT IT DOES"]);
    for tool in tools {
        let about = tool.description.as_deref().and_then(|text| text.lines().next()).unwrap_or_default();
        table.row(vec![
            (Tone::Strong, tool.name.to_string()),
            (Tone::Plain, tool.effect.as_str().to_owned()),
            (Tone::Dim, about.to_owned()),
        ]);
    }
    table.render(page.paint, page.width)
}
