//! Gates that are asked where they are seen: below the live tree, while the rest of the run goes on. One gate at a
//! time. Who skips a gate leaves it open; who leaves leaves all of them open.
//!
//! The questions themselves are `ask`'s and `approval`'s, which are conversations with somebody who types: they run
//! on a thread of their own, and this stands between them and the terminal.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::future::{Future, pending};
use std::io::{self, BufRead, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::pin::Pin;
use std::process::Command;
use std::sync::mpsc;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use wonder_core::Value;
use wonder_engine::{Answer, Engine, GateView, Reply, RunView};

use crate::approval::{Person, approve, is_approval};
use crate::ask::ask;
use crate::keys::{Key, Keys};
use crate::screen::terminal_for;
use crate::text::{Text, text};
use crate::view::paint::{Paint, Tone};
use crate::view::streaming::wrapped;
use crate::view::words::short_id;

/// Lines of a conversation that are shown.
const LINES_MAX: usize = 24;
const CURSOR: &str = "▏";

/// What has changed at the desk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum News {
    /// Something to be drawn.
    Said,
    /// A gate was answered, or left open: the run may go on, or be over.
    Settled,
    /// An editor has the terminal until the next news.
    Away,
    Back,
}

pub(crate) struct Desk<'e> {
    engine: &'e dyn Engine,
    by: String,
    /// Gates that were answered or are to stay open: they are not asked again.
    settled: BTreeSet<String>,
    talk: Option<Talk>,
    answering: Option<Answering<'e>>,
    keys: Option<Keys>,
    notice: Option<String>,
}

struct Answering<'e> {
    gate: GateView,
    answer: Pin<Box<dyn Future<Output = Reply<Box<RunView>>> + 'e>>,
}

/// A conversation about one gate.
struct Talk {
    gate: GateView,
    /// Gates that will be asked after it.
    more: usize,
    said: Vec<Text>,
    prompt: Text,
    wants: Wants,
    typed: String,
    /// None: the person has left the conversation.
    types: Option<mpsc::Sender<String>>,
    words: UnboundedReceiver<Word>,
    answer: JoinHandle<Option<Value>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Wants {
    Nothing,
    Key,
    Line,
    /// The terminal: an editor is at it.
    Terminal,
}

/// What a conversation says to the desk.
enum Word {
    /// Whole lines, or a prompt if its line is not ended.
    Said(Text),
    Wants(Wants),
}

impl<'e> Desk<'e> {
    pub(crate) fn new(engine: &'e dyn Engine, by: String) -> Desk<'e> {
        let (settled, notice) = (BTreeSet::new(), None);
        Desk { engine, by, settled, talk: None, answering: None, keys: None, notice }
    }

    /// Somebody is being asked, or has just answered.
    pub(crate) fn is_busy(&self) -> bool {
        self.talk.is_some() || self.answering.is_some()
    }

    /// An editor has the terminal.
    pub(crate) fn is_away(&self) -> bool {
        self.talk.as_ref().is_some_and(|talk| talk.wants == Wants::Terminal)
    }

    /// These gates are open: asks about the first that was not asked about, and stops asking about one that is not
    /// open any more.
    pub(crate) fn look(&mut self, open: Vec<GateView>) {
        if let Some(talk) = self.talk.as_ref().filter(|talk| open.iter().all(|gate| gate.id != talk.gate.id))
        {
            self.notice = Some(format!("gate {} was closed meanwhile", talk.gate.id));
            (self.talk, self.keys) = (None, None);
        }
        if self.is_busy() {
            return;
        }
        let mut unasked = open.into_iter().filter(|gate| !self.settled.contains(&gate.id));
        let Some(gate) = unasked.next() else { return };
        let more = unasked.count();
        match Keys::listen() {
            Ok(keys) => (self.keys, self.talk) = (Some(keys), Some(Talk::begin(gate, more))),
            Err(error) => {
                self.notice = Some(format!("cannot ask here: {error}"));
                self.settled.insert(gate.id);
            }
        }
    }

    /// Waits for ever if nobody is asked. Nothing is lost by not waiting to the end.
    pub(crate) async fn next(&mut self) -> News {
        if let Some(answering) = &mut self.answering {
            let answered = answering.answer.as_mut().await;
            return self.answered(answered);
        }
        let Desk { talk: Some(talk), keys, .. } = self else { return pending().await };
        let listens = matches!(talk.wants, Wants::Key | Wants::Line);
        tokio::select! {
            biased;
            word = talk.words.recv() => match word {
                Some(word) => self.heard(word),
                None => self.over().await,
            },
            key = next_key(keys), if listens => {
                talk.press(key);
                News::Said
            }
        }
    }

    fn heard(&mut self, word: Word) -> News {
        let Some(talk) = &mut self.talk else { return News::Said };
        let was_away = talk.wants == Wants::Terminal;
        match word {
            Word::Said(text) => talk.say(&text),
            Word::Wants(Wants::Terminal) => {
                self.keys = None;
                talk.wants = Wants::Terminal;
                return News::Away;
            }
            Word::Wants(wants) => talk.wants = wants,
        }
        if !was_away {
            return News::Said;
        }
        talk.wants = Wants::Nothing;
        match Keys::listen() {
            Ok(keys) => self.keys = Some(keys),
            Err(_) => talk.types = None,
        }
        News::Back
    }

    /// The editor may have the terminal now.
    pub(crate) fn hand_over(&mut self) {
        if let Some(types) = self.talk.as_ref().and_then(|talk| talk.types.as_ref()) {
            let _ = types.send(String::new());
        }
    }

    async fn over(&mut self) -> News {
        let Some(talk) = self.talk.take() else { return News::Said };
        self.keys = None;
        self.notice = None;
        let answer = talk.answer.await.ok().flatten();
        self.settled.insert(talk.gate.id.clone());
        let Some(answer) = answer else { return News::Settled };
        let (engine, gate, by) = (self.engine, talk.gate.id.clone(), self.by.clone());
        let answer = Answer { request_id: None, gate, answer, by };
        self.answering =
            Some(Answering { gate: talk.gate, answer: Box::pin(async move { engine.answer(answer).await }) });
        News::Said
    }

    fn answered(&mut self, answered: Reply<Box<RunView>>) -> News {
        let Some(Answering { gate, .. }) = self.answering.take() else { return News::Said };
        if let Err(error) = answered {
            self.notice = Some(format!("gate {}: {}", gate.id, error.message));
        }
        News::Settled
    }

    /// What is asked, to be shown below everything else.
    pub(crate) fn lines(&self, paint: Paint, width: usize) -> Vec<Text> {
        let mut lines: Vec<Text> =
            self.notice.iter().map(|notice| paint.tone(Tone::Attention, notice.as_str())).collect();
        if let Some(talk) = &self.talk {
            lines.extend(talk.lines(paint, width));
        }
        if let Some(Answering { gate, .. }) = &self.answering {
            lines.push(paint.dim(format!("answering gate {} …", gate.id)));
        }
        lines
    }
}

async fn next_key(keys: &mut Option<Keys>) -> Key {
    match keys {
        Some(keys) => keys.next().await,
        None => Key::End,
    }
}

impl Talk {
    fn begin(gate: GateView, more: usize) -> Talk {
        let (types, typed) = mpsc::channel();
        let (words_in, words) = unbounded_channel();
        let asked = gate.clone();
        let answer = tokio::task::spawn_blocking(move || converse(&asked, typed, words_in));
        Talk {
            gate,
            more,
            said: Vec::new(),
            prompt: Text::EMPTY,
            wants: Wants::Nothing,
            typed: String::new(),
            types: Some(types),
            words,
            answer,
        }
    }

    fn say(&mut self, text: &Text) {
        let ended = text.as_str().ends_with('\n');
        let mut lines: Vec<Text> = text.lines().collect();
        self.prompt = if ended { Text::EMPTY } else { lines.pop().unwrap_or_default() };
        self.said.extend(lines);
    }

    fn press(&mut self, key: Key) {
        match (key, self.wants) {
            (Key::Escape | Key::End, _) => self.types = None,
            (Key::Char(c), Wants::Key) => self.send(c.to_string()),
            (Key::Char(c), _) => self.typed.push(c),
            (Key::Backspace, _) => drop(self.typed.pop()),
            (Key::Clear, _) => self.typed.clear(),
            (Key::Enter, Wants::Line) => {
                let typed = std::mem::take(&mut self.typed);
                self.send(typed);
            }
            (Key::Enter, _) => {}
        }
    }

    fn send(&mut self, typed: String) {
        self.said.push(text!("{}{}", self.prompt, typed));
        (self.prompt, self.wants) = (Text::EMPTY, Wants::Nothing);
        if let Some(types) = &self.types {
            let _ = types.send(typed);
        }
    }

    fn lines(&self, paint: Paint, width: usize) -> Vec<Text> {
        let more = if self.more == 0 { String::new() } else { format!(" · {} more after it", self.more) };
        let head = format!("── gate {}{more} · Esc leaves it open ──", short_id(&self.gate.id));
        let mut lines = vec![paint.tone(Tone::Attention, head)];
        // Whoever approves something sees all of it.
        let said = self.said.iter().flat_map(|line| wrapped(line.as_str(), width)).map(Text::from);
        let said: Vec<Text> = said.collect();
        lines.extend(said[said.len().saturating_sub(LINES_MAX)..].iter().cloned());
        if matches!(self.wants, Wants::Key | Wants::Line) {
            let asked = text!("{}{}{}", self.prompt, self.typed, CURSOR);
            lines.extend(wrapped(asked.as_str(), width).into_iter().map(|line| paint.strong(line)));
        }
        lines
    }
}

/// The whole conversation; nothing if the person leaves it.
fn converse(gate: &GateView, typed: mpsc::Receiver<String>, words: UnboundedSender<Word>) -> Option<Value> {
    let mut typist = Typist { typed, words: words.clone(), line: io::Cursor::default() };
    if is_approval(&gate.form) {
        return approve(gate, &mut typist);
    }
    let mut output = |text: &Text| drop(words.send(Word::Said(text.clone())));
    ask(gate, &mut typist, &mut output).ok().flatten()
}

/// Who types, as a conversation sees them.
struct Typist {
    typed: mpsc::Receiver<String>,
    words: UnboundedSender<Word>,
    line: io::Cursor<Vec<u8>>,
}

impl Typist {
    /// None: they have left.
    fn wait(&mut self, wants: Wants) -> Option<String> {
        self.words.send(Word::Wants(wants)).ok()?;
        self.typed.recv().ok()
    }

    fn prompt(&mut self, prompt: &str) {
        let _ = self.words.send(Word::Said(text!("{}: ", prompt)));
    }
}

impl Person for Typist {
    fn say(&mut self, line: Text) {
        let _ = self.words.send(Word::Said(text!("{}\n", line)));
    }

    fn key(&mut self, prompt: &str) -> Option<char> {
        self.prompt(prompt);
        self.wait(Wants::Key)?.chars().next()
    }

    fn line(&mut self, prompt: &str) -> Option<String> {
        self.prompt(prompt);
        self.wait(Wants::Line).map(|line| line.trim().to_owned())
    }

    fn edit(&mut self, text: &str) -> io::Result<String> {
        self.wait(Wants::Terminal).ok_or_else(|| io::Error::other("nobody is there"))?;
        let edited = edit(text);
        let _ = self.words.send(Word::Wants(Wants::Nothing));
        edited
    }
}

impl Read for Typist {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Typist {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.line.position() >= self.line.get_ref().len() as u64 {
            let line = self.wait(Wants::Line).map(|line| format!("{line}\n"));
            self.line = io::Cursor::new(line.unwrap_or_default().into_bytes());
        }
        self.line.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.line.consume(amount);
    }
}

/// The text as the person's editor leaves it. The file is theirs alone, and gone afterwards.
fn edit(text: &str) -> io::Result<String> {
    let path = std::env::temp_dir().join(format!("wonder-{}-arguments.json", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    writeln!(file, "{text}")?;
    drop(file);
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    // Whatever words the variable has, as a shell reads them.
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(&path);
    let left = terminal_for(&mut command).and_then(Command::status);
    let edited = std::fs::read_to_string(&path);
    let _ = std::fs::remove_file(&path);
    match left? {
        left if left.success() => edited,
        left => Err(io::Error::other(format!("{editor} left with {left}"))),
    }
}
