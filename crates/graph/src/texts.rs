//! Every text that an action has, and what kind of text each is.

use wonder_lang::def::{
    ActionDef, Assert, Callee, CommandLine, HttpRequest, HumanGate, Implementation, LlmCall, Mock, Shell,
    Text, Tree,
};

/// What a text of an action is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum TextKind {
    Template,
    Expr,
    /// Which workflow to call: an expression over the run, since a call's input is the child's.
    Callee,
    CalleeTemplate,
}

pub(super) type Visit<'v, 'a> = &'v mut dyn FnMut(TextKind, &'a Text);

pub(super) fn each<'a>(action: &'a ActionDef, visit: Visit<'_, 'a>) {
    use TextKind::{Callee as Whom, CalleeTemplate, Expr, Template};
    match &action.implementation {
        Implementation::LlmCall(call) => of_model(call, visit),
        Implementation::McpTool(tool) => {
            visit(Template, &tool.server);
            visit(Template, &tool.tool);
            in_tree(tool.arguments.as_ref(), Template, visit);
        }
        Implementation::HttpRequest(http) => of_http(http, visit),
        Implementation::Shell(shell) => of_shell(shell, visit),
        Implementation::UpdateContext(update) => {
            update.set.0.iter().for_each(|write| in_tree(Some(&write.value), Expr, visit));
        }
        Implementation::Assert(assert) => of_assert(assert, visit),
        Implementation::ArtifactWrite(write) => {
            write
                .artifact_type
                .iter()
                .chain([&write.name])
                .chain(&write.path)
                .for_each(|t| visit(Template, t));
            in_tree(write.content.as_ref(), Template, visit);
        }
        Implementation::ArtifactRead(read) => visit(Template, &read.reference),
        Implementation::HumanGate(gate) => of_gate(gate, visit),
        Implementation::WorkflowCall(call) => match &call.workflow {
            Callee::Named(name) => visit(CalleeTemplate, name),
            Callee::FromContext { from_context } => visit(Whom, from_context),
        },
        Implementation::WaitEvent(wait) => {
            visit(Template, &wait.event);
            wait.key.iter().for_each(|text| visit(Expr, text));
        }
        Implementation::Sleep(sleep) => {
            sleep.duration.iter().for_each(|text| visit(Template, text));
            sleep.until.iter().for_each(|text| visit(Expr, text));
        }
        Implementation::Mock(mock) => of_mock(mock, visit),
    }
}

fn of_model<'a>(call: &'a LlmCall, visit: Visit<'_, 'a>) {
    call.prompt.iter().chain(&call.system).for_each(|text| visit(TextKind::Template, text));
    in_tree(call.messages.as_ref(), TextKind::Template, visit);
}

fn of_http<'a>(http: &'a HttpRequest, visit: Visit<'_, 'a>) {
    http.method.iter().chain([&http.url]).chain(&http.body).for_each(|text| visit(TextKind::Template, text));
    for tree in [&http.query, &http.headers, &http.json] {
        in_tree(tree.as_ref(), TextKind::Template, visit);
    }
}

fn of_shell<'a>(shell: &'a Shell, visit: Visit<'_, 'a>) {
    match &shell.command {
        CommandLine::Line(line) => visit(TextKind::Template, line),
        CommandLine::Arguments(list) => list.iter().for_each(|text| visit(TextKind::Template, text)),
    }
    shell.cwd.iter().chain(&shell.stdin).chain(&shell.image).for_each(|text| visit(TextKind::Template, text));
    in_tree(shell.env.as_ref(), TextKind::Template, visit);
}

fn of_assert<'a>(assert: &'a Assert, visit: Visit<'_, 'a>) {
    assert.that.iter().chain(&assert.value).chain(&assert.score).for_each(|text| visit(TextKind::Expr, text));
    in_tree(assert.score_at_least.as_ref(), TextKind::Expr, visit);
    assert.message.iter().for_each(|text| visit(TextKind::Template, text));
}

fn of_gate<'a>(gate: &'a HumanGate, visit: Visit<'_, 'a>) {
    let texts = gate.title.iter().chain(&gate.body).chain(&gate.assignees).chain(&gate.escalate);
    texts.for_each(|text| visit(TextKind::Template, text));
}

fn of_mock<'a>(mock: &'a Mock, visit: Visit<'_, 'a>) {
    for outcome in &mock.outcomes {
        in_tree(outcome.output.as_ref(), TextKind::Template, visit);
        outcome
            .error
            .iter()
            .flat_map(|error| &error.message)
            .for_each(|text| visit(TextKind::Template, text));
    }
}

fn in_tree<'a>(tree: Option<&'a Tree>, kind: TextKind, visit: Visit<'_, 'a>) {
    match tree {
        None | Some(Tree::Literal(_)) => {}
        Some(Tree::Text(text)) => visit(kind, text),
        Some(Tree::List(list)) => list.iter().for_each(|tree| in_tree(Some(tree), kind, visit)),
        Some(Tree::Map(map)) => map.values().for_each(|tree| in_tree(Some(tree), kind, visit)),
    }
}
