//! `show --graph`: the graph as one run has it now.

use std::sync::Arc;

use wonder_core::graph::Graph;
use wonder_engine::timeline::Timeline;
use wonder_engine::{Engine, EngineError, RunView};

use crate::args::Drawing;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::screen::Screen;
use crate::text::Text;
use crate::view::graph::{GraphJson, RunGraph};

pub(crate) async fn show_graph(
    engine: &dyn Engine,
    (view, timeline): (&RunView, &Timeline),
    format: Drawing,
    screen: &Screen,
) -> Result<Exit, Fault> {
    let before = definition(engine, &view.row.run).await?;
    let misfit = || EngineError::internal("what the run added does not fit its stored definition");
    let graph = RunGraph::of(&before, timeline).ok_or_else(misfit)?;
    match screen.json {
        true => screen.print_json(&GraphJson::of(view, &graph, format))?,
        false => screen.print(&Text::block(&graph.text(view, format)))?,
    }
    Ok(Exit::Fine)
}

/// The graph that a run was started with.
pub(crate) async fn definition(engine: &dyn Engine, run: &str) -> Result<Arc<Graph>, Fault> {
    let workflow = engine.definition(run.to_owned()).await?;
    match workflow.graph {
        Some(graph) => Ok(graph),
        None => match Graph::compile(&workflow.bundle) {
            Ok(graph) => Ok(Arc::new(graph)),
            Err(error) => Err(EngineError::internal(error.to_string()).into()),
        },
    }
}
