//! `answer`: a gate's answer as it was typed, or asked for field by field.

use std::io;

use wonder_core::Value;
use wonder_engine::{Answer, Engine, EngineError, GateView};

use crate::args::{AnswerArgs, somebody};
use crate::ask::ask;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::inputs::{self, Wanted};
use crate::screen::now;
use crate::session::Session;
use crate::verbs::carry_on::set_going;
use crate::verbs::last::chosen_gate;
use crate::verbs::look::look;
use crate::view::words::shell_word;

pub(crate) async fn answer(args: AnswerArgs, session: &Session) -> Result<Exit, Fault> {
    session.use_tape(&args.tape)?;
    let by = somebody(args.how.by);
    if !args.answer.is_empty() {
        return set_going(session, args.how.detach, Some(now()), async |engine| {
            let gate = chosen_gate(engine, &args.gate, &session.screen).await?;
            session.begin_tape(engine, run_of(&gate)).await?;
            let form = form_of(engine, &gate).await?;
            let answer = inputs::any(&Wanted::answer(&form), &args.answer)?.unwrap_or_default();
            let answered = engine.answer(Answer { request_id: None, gate, answer, by }).await;
            answered.map_err(|error| Fault::from(error).takes(&form))
        })
        .await;
    }
    let Some((gate, answer)) = answer_on_terminal(&args.gate, session).await? else {
        session.screen.say("nothing was answered; the gate stays open");
        return Ok(Exit::Waiting);
    };
    set_going(session, args.how.detach, Some(now()), async |engine| {
        session.begin_tape(engine, run_of(&gate)).await?;
        Ok(engine.answer(Answer { request_id: None, gate, answer, by }).await?)
    })
    .await
}

/// `RUN:NUMBER`, or a run.
fn run_of(gate: &str) -> &str {
    gate.rsplit_once(':').map_or(gate, |(run, _)| run)
}

/// What an answer is typed by. A gate that cannot be found, or has been closed, is for the engine to refuse.
async fn form_of(engine: &dyn Engine, gate: &str) -> Result<Value, Fault> {
    if gate.contains(':') {
        return Ok(engine.gate(gate.to_owned()).await?.gate.form);
    }
    Ok(find(engine, gate).await?.form)
}

/// Asks the person. Nothing is held open meanwhile: people take their time.
async fn answer_on_terminal(gate: &str, session: &Session) -> Result<Option<(String, Value)>, Fault> {
    if !session.screen.interactive {
        let message = "no answer was given, and there is no terminal to ask on";
        return Err(Fault::usage(message)
            .help(format!("wonder answer {} '{{\"key\": …}}', or key=value", shell_word(gate))));
    }
    let gate = look(session, async |engine| {
        let gate = chosen_gate(engine, gate, &session.screen).await?;
        find(engine, &gate).await
    })
    .await?;
    let answer = ask(&gate, &mut io::stdin().lock(), &mut |text| session.screen.draw(text));
    let answer = answer.map_err(|error| Fault::usage(format!("cannot ask: {error}")))?;
    Ok(answer.map(|answer| (gate.id, answer)))
}

/// The open gate that is meant: `RUN:NUMBER`, or a run that has only one.
async fn find(engine: &dyn Engine, text: &str) -> Result<GateView, Fault> {
    let (run, number) = text.rsplit_once(':').map_or((text, None), |(run, number)| (run, Some(number)));
    let run = engine.find(run.to_owned()).await?.row.run;
    let mut open = engine.gates(Some(run.clone())).await?;
    if let Some(number) = number {
        let id = format!("{run}:{number}");
        open.retain(|gate| gate.id == id);
    }
    match (open.len(), open.pop()) {
        (1, Some(gate)) => Ok(gate),
        (0, _) | (_, None) if number.is_some() => Err(EngineError::no_such_gate(text).into()),
        (0, _) | (_, None) => Err(EngineError::no_open_gate(&run).into()),
        (_, Some(last)) => {
            let ids = open.into_iter().chain([last]).map(|gate| gate.id).collect();
            Err(EngineError::several_gates(&run, ids).into())
        }
    }
}
