//! Random workflows: all that must hold holds, every row of the lifecycle is walked, and a seed repeats.

use wonder_sim::monitor::Walked;
use wonder_sim::seeds;
use wonder_sim::world::World;

const SEEDS: u64 = 2_000;
/// Two at a time; each takes a share.
const SHARES: u64 = 2;

fn run(share: u64) -> Walked {
    let mut walked = Walked::default();
    let mut wrong = Vec::new();
    for seed in (0..SEEDS).filter(|seed| seed % SHARES == share) {
        let verdict = seeds::run(seed);
        walked.add(&verdict.walked);
        wrong.extend(verdict.wrong.first().map(|what| format!("seed {seed}: {what}")));
    }
    let shown: Vec<&str> = wrong.iter().take(5).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} of {SEEDS} seeds failed; the first:\n{}", wrong.len(), shown.join("\n\n"));
    walked
}

#[test]
fn all_seeds_hold_and_walk_the_lifecycle() {
    let mut walked = Walked::default();
    std::thread::scope(|scope| {
        let shares: Vec<_> = (0..SHARES).map(|share| scope.spawn(move || run(share))).collect();
        for share in shares {
            walked.add(&share.join().expect("a share that failed has said why"));
        }
    });
    assert_eq!(walked.missing(), vec![], "rows that nobody walked");
}

#[test]
fn a_seed_gives_the_same_log_every_time() {
    for seed in 0..40 {
        let logs = |seed: u64| {
            let mut world = World::new(seeds::setting(seed).expect("generated workflows are valid"));
            world.run_on();
            let logs = world.runs().map(|(id, hosted)| (id.clone(), serde_json::to_string(&hosted.log)));
            logs.map(|(id, log)| (id, log.expect("events can be stored"))).collect::<Vec<_>>()
        };
        assert_eq!(logs(seed), logs(seed), "seed {seed}");
    }
}
