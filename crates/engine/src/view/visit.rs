//! One visit and one gate with everything that is known of them, from the events of their run.

use serde::{Deserialize, Serialize};
use wonder_core::Value;
use wonder_core::event::{GateId, TokenId};

use super::GateView;
use crate::run_tree::{item_of, node_name, place_label, visit_label};
use crate::timeline::{GateHistory, Timeline, Visit};

/// One visit of one node: its moves, its attempts with what each was given, and what came of it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct VisitView {
    pub run: String,
    /// With its branch: `judge[2]`.
    pub label: String,
    #[serde(flatten)]
    pub visit: Visit,
}

impl VisitView {
    pub fn of(run: &str, timeline: &Timeline, token: TokenId) -> Option<VisitView> {
        let visit = timeline.visits.get(&token)?;
        let label = visit_label(timeline, visit);
        Some(VisitView { run: run.to_owned(), label, visit: visit.clone() })
    }
}

/// One gate, open or closed, with its history: who was asked, who answered when and what.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct GateDetails {
    /// `RUN:NUMBER`.
    pub id: String,
    pub run: String,
    /// The run that nobody called.
    pub root: String,
    pub workflow: String,
    /// The visit that waits at it, as it is shown.
    pub at: Option<String>,
    pub open: bool,
    #[serde(flatten)]
    pub gate: GateHistory,
}

impl GateDetails {
    pub fn of(run: &str, root: &str, timeline: &Timeline, gate: GateId) -> Option<GateDetails> {
        let history = timeline.gates.get(&gate)?;
        let visit = history.token.and_then(|token| timeline.visits.get(&token));
        Some(GateDetails {
            id: format!("{run}:{gate}"),
            run: run.to_owned(),
            root: root.to_owned(),
            workflow: timeline.workflow.as_deref().unwrap_or_default().to_owned(),
            at: visit.map(|visit| visit_label(timeline, visit)),
            open: history.is_open(),
            gate: history.clone(),
        })
    }
}

impl GateView {
    /// The open gates of a run by its events.
    pub fn open_in(run: &str, root: &str, timeline: &Timeline) -> Vec<GateView> {
        let view = |(id, gate): (GateId, &GateHistory)| {
            let visit = gate.token.and_then(|token| timeline.visits.get(&token));
            GateView {
                id: format!("{run}:{id}"),
                run: run.to_owned(),
                root: root.to_owned(),
                workflow: timeline.workflow.as_deref().unwrap_or_default().to_owned(),
                node: visit.map(|visit| node_name(&visit.node).to_owned()),
                kind: gate.kind,
                title: gate.title.clone(),
                body: gate.body.clone(),
                form: gate.form.clone(),
                assignees: gate.assignees.iter().map(ToString::to_string).collect(),
                opened_at: gate.opened_at,
                deadline: gate.deadline,
                visit: visit.map(|visit| place_label(timeline, visit)),
                item: visit.map_or(Value::Null, |visit| item_of(timeline, visit).clone()),
            }
        };
        timeline.open_gates().map(view).collect()
    }
}
