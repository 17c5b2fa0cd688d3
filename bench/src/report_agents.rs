//! What was measured of agents, each beside the bare client that sends the same: W8 with a real agent, W10, and how
//! soon a watcher sees text. Medians of three, each part a process of its own.

use std::path::Path;

use crate::agents::{Crowd, Mark, output, part};
use crate::provider::{Provider, long_script, short_script, stamped_script};
use crate::raw;
use crate::report::{Report, median_of};

const TIMES: usize = 3;
const TURNS: usize = 200;
const AGENTS: usize = 500;
const HEARD: usize = 100;

fn asked<T: for<'d> serde::Deserialize<'d>>(name: &str, url: &str, count: usize, dir: &Path) -> T {
    output(&mut part(name, &[url, &count.to_string(), &dir.display().to_string()]))
}

/// What a turn took: from the call of a tool to that of the next, the middle one of ten around it.
fn of_turn(marks: &[Mark], turn: usize, figure: impl Fn(&Mark) -> f64) -> f64 {
    let last = (turn + 5).min(marks.len() - 1);
    let each = (last - 9..=last).map(|at| figure(&marks[at]) - figure(&marks[at - 1]));
    crate::median(each.collect())
}

pub(crate) fn w8(report: &mut Report) {
    let dir = report.dir.clone();
    let provider = Provider::start(&dir, &long_script(TURNS));
    let (mut bare, mut own) = (Vec::new(), Vec::new());
    let mut commit_ms = Vec::new();
    for _ in 0..TIMES {
        bare.push(asked::<Vec<Mark>>("bare-conversation", &provider.url, TURNS, &dir));
        let before = raw::measure(&dir);
        own.push(asked::<Vec<Mark>>("conversation", &provider.url, TURNS, &dir));
        commit_ms.push(before.between(raw::measure(&dir)).commit_ms);
    }
    let cpu = |all: &[Vec<Mark>], turn| median_of(all, |marks| of_turn(marks, turn, |mark| mark.cpu_ms));
    let raw = [10, 100, 200].map(|turn| cpu(&bare, turn));
    let all = [10, 100, 200].map(|turn| cpu(&own, turn));
    for (at, turn) in [10, 100, 200].into_iter().enumerate() {
        report.line(&format!("W8 agent: bare client, CPU of turn {turn}"), raw[at], "ms", "-", true);
    }
    for (at, turn) in [10, 100, 200].into_iter().enumerate() {
        report.line(&format!("W8 agent: CPU of turn {turn}"), all[at], "ms", "-", true);
        report.line(&format!("W8 agent: of that ours, turn {turn}"), all[at] - raw[at], "ms", "-", true);
    }
    report.line("W8 agent: bare client, turn 200 against 10", raw[2] / raw[0], "x", "-", true);
    report.line("W8 agent: CPU, turn 200 against 10", all[2] / all[0], "x", "-", true);
    // A moment in which the bare client took longer than we did says nothing of how ours grows.
    let ours = [0, 2].map(|at| all[at] - raw[at]);
    let grown = if ours[0] > 0.0 { ours[1] / ours[0] } else { f64::NAN };
    report.line("W8 agent: CPU of ours, turn 200 against 10", grown, "x", "<= 1.3", grown <= 1.3);
    let bytes = |turn| median_of(&own, |marks| of_turn(marks, turn, |mark| mark.bytes as f64));
    let first = median_of(&own, |marks| (marks[1].bytes - marks[0].bytes) as f64);
    report.line("W8 agent: bytes stored by the first turn", first, "bytes", "-", true);
    for turn in [100, 200] {
        let ratio = bytes(turn) / first;
        let name = format!("W8 agent: bytes of turn {turn} against the first");
        report.line(&name, ratio, "x", "<= 1.2", ratio <= 1.2);
    }
    let commits = median_of(&own, |marks| of_turn(marks, 100, |mark| mark.commits as f64));
    report.line("W8 agent: commits a turn, with its tool call", commits, "", "<= 2", commits <= 2.0);
    let ms = |all: &[Vec<Mark>]| median_of(all, |marks| of_turn(marks, 10, |mark| mark.at_ms));
    let commit_ms = crate::median(commit_ms);
    report.line("W8 agent: bare client, turn 10", ms(&bare), "ms", "-", true);
    report.line("W8 agent: turn 10", ms(&own), "ms", "-", true);
    report.line("W8 agent: raw commit beside it", commit_ms, "ms", "-", true);
    let over = (ms(&own) - ms(&bare)) / commit_ms;
    report.line("W8 agent: a turn over the bare one, in raw commits", over, "commits", "-", true);
}

pub(crate) async fn w10(report: &mut Report) {
    let dir = report.dir.clone();
    let provider = Provider::start(&dir, &short_script());
    let (mut bare, mut own) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        bare.push(asked::<Crowd>("bare-crowd", &provider.url, AGENTS, &dir));
        own.push(asked::<Crowd>("crowd", &provider.url, AGENTS, &dir));
    }
    let rate = |all: &[Crowd]| median_of(all, |one| one.turns_per_s(AGENTS));
    let cpu = |all: &[Crowd]| median_of(all, |one| one.cpu_ms_per_turn(AGENTS));
    report.line("W10 bare clients, 500 at once", rate(&bare), "turns/s", "-", true);
    report.line("W10 bare clients, CPU a turn", cpu(&bare), "ms", "-", true);
    report.line("W10 500 agents at once", rate(&own), "turns/s", "-", true);
    report.line("W10 share of the bare clients' turns", rate(&own) / rate(&bare), "", "-", true);
    report.line("W10 CPU a turn, with two tool calls", cpu(&own), "ms", "-", true);
    let over = 1_000.0 / rate(&own) - 1_000.0 / rate(&bare);
    report.line("W10 a turn over the bare one", over, "ms", "-", true);
    let grown = own.iter().map(|one| one.growth_mb).fold(0.0, f64::max);
    report.line("W10 memory for them", grown, "MB", "<= 200", grown <= 200.0);
    let commits = median_of(&own, |one| one.commits as f64) / (AGENTS * 10) as f64;
    report.line("W10 commits a turn", commits, "", "<= 2", commits <= 2.0);
}

pub(crate) async fn first_text(report: &mut Report) {
    let dir = report.dir.clone();
    let provider = Provider::start(&dir, &stamped_script(HEARD));
    let all: Vec<[Vec<f64>; 2]> = (0..TIMES).map(|_| asked("texts", &provider.url, HEARD, &dir)).collect();
    for (at, place) in ["within the process", "in another process"].into_iter().enumerate() {
        let of = |percent: usize| median_of(&all, |one| one[at][one[at].len() * percent / 100]);
        let heard = all.iter().map(|one| one[at].len()).min().unwrap_or_default();
        report.line(&format!("text {place}: turns heard of 100"), heard as f64, "", "-", true);
        report.line(&format!("text {place}: sent to seen, p50"), of(50), "ms", "-", true);
        report.line(&format!("text {place}: sent to seen, p99"), of(99), "ms", "<= 5", of(99) <= 5.0);
    }
}
