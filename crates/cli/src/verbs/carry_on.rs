//! Staying with a run until it ends or waits, as `run` does and all verbs that set a run going; and leaving:
//! when it is over, when somebody presses Ctrl-C, or at once with `--detach`.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval, sleep};
use wonder_core::Time;
use wonder_core::def::{Estimate, Name};
use wonder_core::event::{Event, EventKind, NewChild};
use wonder_engine::ahead::taught;
use wonder_engine::json::Outcome;
use wonder_engine::timeline::Timeline;
use wonder_engine::{
    Engine, EngineError, ErrorCode, Filter, Follow, GateView, Heard, Listen, Reply, RunView, Status, Updates,
};
use wonder_host::{Connection, Drive, Leaving, Purpose};

use crate::args::somebody;
use crate::display::Display;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::in_place::{Desk, News};
use crate::interrupts::Interrupts;
use crate::screen::Screen;
use crate::session::Session;
use crate::text::text;
use crate::verbs::draw::definition;
use crate::verbs::tape;
use crate::view::result::{failure, remedies, summary, waits};
use crate::view::tree::Background;
use crate::view::words::shell_word;

/// How long one question for the end of a run is held.
const WAIT_MS: u64 = 30_000;
/// The same for a watcher, who wants to know soon if nobody carries the run on any more.
const WATCH_MS: u64 = 2_000;
/// How long one question for text is held.
const LISTEN_MS: u64 = 10_000;
/// After a question for news failed; whether the run goes on is asked elsewhere.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// How many events of a past run are read to tell how long its nodes take.
const PAST_EVENTS_MAX: u32 = 5_000;

/// How a person came to be with the run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Role {
    /// Set it going.
    Driver,
    /// Only looks.
    Watcher,
}

enum Ending {
    /// It has ended, or nothing happens until somebody says something.
    Over(Box<RunView>),
    Interrupted,
}

/// Asks for something that sets a run going, then stays with the run, or leaves with `detach`. What happened
/// before `since` is not told line by line.
pub(crate) async fn set_going(
    session: &Session,
    detached: bool,
    since: Option<Time>,
    asks: impl AsyncFnOnce(&dyn Engine) -> Result<Box<RunView>, Fault>,
) -> Result<Exit, Fault> {
    let connection = session.open(Purpose::Act).await?;
    tape::refuse_elsewhere(session, &connection).await?;
    // Who leaves at once carries nothing on, unless another process does it anyway.
    let drive = if detached && connection.owner().is_none() { Drive::Off } else { Drive::On };
    match asks(connection.with(drive).engine()).await {
        Ok(view) if detached => detach(session, connection, &view).await,
        Ok(view) => {
            session.tape().into_iter().for_each(|tape| tape.begun());
            let exit = carry_on(session, connection, view.row.root, since).await?;
            Ok(tape::tell(session, exit))
        }
        Err(fault) => {
            connection.close(Leaving::Drain).await;
            Err(fault)
        }
    }
}

/// Follows the run until it is over or waits, then leaves as it stands.
async fn carry_on(
    session: &Session,
    connection: Connection,
    run: String,
    since: Option<Time>,
) -> Result<Exit, Fault> {
    let mut interrupts = Interrupts::listen();
    let asks = session.screen.asks();
    let stay = Stay { session, engine: connection.engine(), run: &run, since, role: Role::Driver, asks };
    match stay.until_over(&mut interrupts).await {
        Ok(Ending::Over(view)) => {
            let printed = print_outcome(session, connection.engine(), &view).await;
            leave(session, connection, &mut interrupts).await;
            printed.map(|()| Exit::of_run(&view))
        }
        Ok(Ending::Interrupted) => Ok(interrupted(session, connection, &run, &mut interrupts).await),
        Err(fault) => {
            connection.close(Leaving::Now).await;
            Err(fault)
        }
    }
}

/// The same for somebody who only looks: Ctrl-C changes nothing for the run.
pub(crate) async fn watch(session: &Session, connection: Connection, run: String) -> Result<Exit, Fault> {
    let mut interrupts = Interrupts::listen();
    let engine = connection.engine();
    // Without an owner there is nobody who could take an answer.
    let asks = session.screen.asks() && connection.owner().is_some();
    let stay = Stay { session, engine, run: &run, since: None, role: Role::Watcher, asks };
    let exit = match stay.until_over(&mut interrupts).await {
        Ok(Ending::Over(view)) => print_outcome(session, engine, &view).await.map(|()| Exit::of_run(&view)),
        Ok(Ending::Interrupted) => Ok(Exit::Interrupted),
        Err(fault) => Err(fault),
    };
    connection.close(Leaving::Now).await;
    exit
}

/// Somebody stays with a run.
struct Stay<'s> {
    session: &'s Session,
    engine: &'s dyn Engine,
    run: &'s str,
    since: Option<Time>,
    role: Role,
    /// Gates are asked here, where they are seen.
    asks: bool,
}

impl Stay<'_> {
    /// What a tree shows beside what happens. Whatever of it cannot be had is left out.
    async fn background(&self) -> Background {
        let Ok(graph) = definition(self.engine, self.run).await else { return Background::default() };
        let name = graph.name.to_string();
        let learnt = match self.engine.learnt(name.clone()).await.unwrap_or_default() {
            nothing if nothing.is_empty() => past(self.engine, name).await.unwrap_or_default(),
            learnt => learnt,
        };
        Background { graph: Some(graph), learnt, told: None }
    }

    async fn until_over(&self, interrupts: &mut Interrupts) -> Result<Ending, Fault> {
        let (engine, screen) = (self.engine, &self.session.screen);
        let background =
            if screen.live && !screen.json { self.background().await } else { Background::default() };
        let mut display = Display::new(self.run, self.since, background, screen);
        let mut desk = Desk::new(engine, somebody(None));
        let mut frames = interval(display.period());
        frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (first_ms, wait_ms) = match self.role {
            Role::Driver => (WAIT_MS, WAIT_MS),
            Role::Watcher => (0, WATCH_MS),
        };
        let mut end = self.end(first_ms);
        let mut news = Box::pin(next_news(engine, display.question()));
        let mut text = Box::pin(next_text(engine, self.run, 0, display.listens()));
        let mut trouble = Trouble::default();
        let ending = loop {
            tokio::select! {
                biased;
                () = interrupts.next(), if !desk.is_away() => break Ending::Interrupted,
                view = &mut end => {
                    let view = view?;
                    end = self.end(wait_ms);
                    if is_over(&view, self.role) {
                        catch_up(engine, &mut display, screen).await;
                        self.ask(&mut desk, &mut display);
                        if !desk.is_busy() {
                            break Ending::Over(view);
                        }
                        // It is quiet until somebody has answered, which is asked for below.
                        end = Box::pin(std::future::pending());
                    }
                }
                updates = &mut news => {
                    match updates {
                        Ok(updates) => display.learn(&updates, screen),
                        Err(error) => {
                            trouble.tell(&error, screen);
                            sleep(AGAIN_AFTER).await;
                        }
                    }
                    let asked = desk.is_busy();
                    self.ask(&mut desk, &mut display);
                    if asked && !desk.is_busy() {
                        end = self.end(0);
                    }
                    news = Box::pin(next_news(engine, display.question()));
                }
                heard = &mut text => {
                    display.hear(&heard.pieces, screen);
                    text = Box::pin(next_text(engine, self.run, heard.cursor, display.listens()));
                }
                asked = desk.next() => {
                    self.asked(asked, &mut desk, &mut display);
                    match asked {
                        // What was typed at an editor was not for us.
                        News::Back => *interrupts = Interrupts::listen(),
                        News::Settled => end = self.end(0),
                        News::Said | News::Away => {}
                    }
                }
                _ = frames.tick() => display.tick(screen),
            }
        };
        drop(news);
        if matches!(ending, Ending::Over(_)) {
            catch_up(engine, &mut display, screen).await;
        }
        display.finish(screen);
        Ok(ending)
    }

    /// How the run stands when it is over or waits, or after so long.
    fn end(&self, wait_ms: u64) -> Pin<Box<dyn Future<Output = Reply<Box<RunView>>> + '_>> {
        Box::pin(self.engine.wait(self.run.to_owned(), wait_ms))
    }

    /// Asks about what is open now, if this is the place to ask.
    fn ask(&self, desk: &mut Desk<'_>, display: &mut Display) {
        if self.asks {
            desk.look(display.open_gates());
            let screen = &self.session.screen;
            let width = screen.size().1.saturating_sub(1).max(20);
            display.ask(desk.lines(screen.err, width), screen);
        }
    }

    fn asked(&self, news: News, desk: &mut Desk<'_>, display: &mut Display) {
        match news {
            News::Away => {
                display.give_away(true);
                desk.hand_over();
            }
            News::Back => display.give_away(false),
            News::Said | News::Settled => {}
        }
        self.ask(desk, display);
    }
}

/// Why there is no news, said once.
#[derive(Default)]
struct Trouble(Option<String>);

impl Trouble {
    fn tell(&mut self, error: &EngineError, screen: &Screen) {
        let known = self.0.as_deref() == Some(&error.message);
        if error.code == ErrorCode::Storage && !known {
            screen.say(text!("trying again: {}", &error.message));
            self.0 = Some(error.message.clone());
        }
    }
}

/// What the last run of a workflow that completed teaches; of a long one, what its beginning does.
async fn past(engine: &dyn Engine, workflow: String) -> Reply<BTreeMap<Name, Estimate>> {
    let (workflow, status) = (Some(workflow), Some(Status::Completed));
    let last = engine.list(Filter { workflow, status, limit: Some(1), ..Filter::default() }).await?;
    let Some(last) = last.into_iter().next() else { return Ok(BTreeMap::new()) };
    let events_after = vec![(last.run, 0)];
    let read = Follow { events_after, limit: Some(PAST_EVENTS_MAX), ..Follow::default() };
    let events = engine.follow(read).await?.events;
    Ok(taught(&Timeline::of(events.iter().map(|(_, event)| event))))
}

/// Nobody will carry on a run that nobody drives: a watcher would wait for ever.
fn is_over(view: &RunView, role: Role) -> bool {
    view.row.status.is_end() || view.quiet || (role == Role::Watcher && !view.row.driven)
}

/// What is new, and with a child that is new all that is known of it: what a child did is told before what
/// its parent did next.
async fn next_news(engine: &dyn Engine, question: Option<Follow>) -> Reply<Updates> {
    let Some(question) = question else { return std::future::pending().await };
    let mut news = engine.follow(question.clone()).await?;
    let mut children = started(&news);
    while !children.is_empty() {
        let events_after = children.into_iter().map(|child| (child, 0)).collect();
        let more = Follow { events_after, logs_after: None, wait_ms: 0, ..question.clone() };
        // A child that has not begun is not known yet; it is asked for again with the rest.
        let Ok(more) = engine.follow(more).await else { break };
        children = started(&more);
        news.events.extend(more.events);
    }
    Ok(news)
}

/// The next of what models say. Where nobody can be listened to there is none: what was said is told at its end.
async fn next_text(engine: &dyn Engine, run: &str, after: u64, listens: bool) -> Heard {
    if !listens {
        return std::future::pending().await;
    }
    let listen = Listen { run: run.to_owned(), after, wait_ms: LISTEN_MS };
    match engine.listen(listen).await {
        Ok(heard) => heard,
        Err(error) if error.code == ErrorCode::Unsupported => std::future::pending().await,
        Err(_) => {
            sleep(AGAIN_AFTER).await;
            Heard { cursor: after, ..Heard::default() }
        }
    }
}

fn started(news: &Updates) -> Vec<String> {
    let child = |(_, event): &(String, Event)| match &event.kind {
        EventKind::ChildStarted(NewChild { child, .. }) => Some(child.to_string()),
        _ => None,
    };
    news.events.iter().filter_map(child).collect()
}

/// What happened before the end and has not been shown yet.
async fn catch_up(engine: &dyn Engine, display: &mut Display, screen: &Screen) {
    while let Some(question) = display.question() {
        match next_news(engine, Some(Follow { wait_ms: 0, ..question })).await {
            Ok(updates) if !updates.events.is_empty() || !updates.logs.is_empty() => {
                display.learn(&updates, screen);
            }
            _ => return,
        }
    }
}

/// How it stands: the output on stdout, the rest on stderr; or one object.
async fn print_outcome(session: &Session, engine: &dyn Engine, view: &RunView) -> Result<(), Fault> {
    let screen = &session.screen;
    if screen.json {
        return screen.print_json(&Outcome::of(view));
    }
    if view.row.status == Status::Completed {
        screen.print_json(&view.output)?;
    }
    let gates = if view.waiting.is_empty() { Vec::new() } else { open_gates(engine, view).await };
    let mut lines = vec![summary(view, screen.err)];
    lines.extend(failure(view).iter().map(|line| text!("  {}", line)));
    lines.extend(remedies(view));
    lines.extend(waits(view, &gates, screen.err));
    if !view.row.status.is_end() && !view.quiet {
        lines.push(text!("  nobody carries it on: `wonder resume {}` does", shell_word(&view.row.run)));
    }
    lines.into_iter().for_each(|line| screen.say(line));
    Ok(())
}

/// Their forms make the example better; without them there is still a line to type.
async fn open_gates(engine: &dyn Engine, view: &RunView) -> Vec<GateView> {
    engine.gates(Some(view.row.run.clone())).await.unwrap_or_default()
}

/// Leaves when the own run is over: what others asked of this process is finished first.
async fn leave(session: &Session, connection: Connection, interrupts: &mut Interrupts) {
    if connection.serves_others() {
        session
            .screen
            .say("tasks of other runs are still out here: finishing them first (Ctrl-C leaves now)");
    }
    tokio::select! {
        () = connection.close(Leaving::Drain) => {}
        () = interrupts.next() => {}
    }
}

async fn interrupted(
    session: &Session,
    connection: Connection,
    run: &str,
    interrupts: &mut Interrupts,
) -> Exit {
    let screen = &session.screen;
    let owner = connection.owner();
    tokio::select! {
        () = connection.close(Leaving::Now) => {}
        // A second Ctrl-C: whatever is still to be stopped, the run is safe without it.
        () = interrupts.next() => {}
    }
    let typed = shell_word(run);
    match owner {
        Some(process) => {
            screen.say(format!("left: run {run} goes on in process {process}"));
            screen.say(format!("  `wonder watch {typed}` follows it, `wonder cancel {typed}` ends it"));
        }
        None => {
            screen.say(format!("interrupted: run {run} is safe"));
            screen.say(format!("  `wonder resume {typed}` goes on with it"));
        }
    }
    Exit::Interrupted
}

/// Leaves what was recorded. Says who goes on with it.
async fn detach(session: &Session, connection: Connection, view: &RunView) -> Result<Exit, Fault> {
    let (screen, run) = (&session.screen, &view.row.root);
    let printed = match screen.json {
        true => screen.print_json(&Outcome::of(view)),
        false => screen.print_line(run),
    };
    let typed = shell_word(run);
    match connection.owner() {
        Some(process) => {
            screen.say(format!("process {process} carries it on: `wonder watch {typed}` follows it"))
        }
        None if view.row.status.is_end() => {}
        None => screen.say(format!("recorded; nobody carries it on until you type `wonder resume {typed}`")),
    }
    connection.close(Leaving::Drain).await;
    printed.map(|()| Exit::Fine)
}
