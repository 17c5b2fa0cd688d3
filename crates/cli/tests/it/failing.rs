//! What a run does about failures and timeouts, as whoever runs it sees it: what was tried how often, what went on.

use crate::home::Home;

/// How often the command has run: it leaves a line each time.
fn times(home: &Home) -> usize {
    std::fs::read_to_string(home.work().join("times")).unwrap_or_default().lines().count()
}

#[test]
fn a_timeout_that_is_to_fail_repeats_no_side_effect() {
    let slow = "echo once >> times; sleep 30";
    for work in [
        format!("{{shell: {{command: '{slow}', timeout: 100ms}}, on_timeout: fail}}"),
        format!("{{shell: {{command: '{slow}', timeout: 100ms, execution: {{on_timeout: fail}}}}}}"),
        format!(
            "{{steps: [{{ref: s, shell: {{command: '{slow}', timeout: 100ms, execution: {{on_timeout: fail}}}}}}, {{ref: t, mock: {{}}}}]}}"
        ),
    ] {
        let home = Home::with(&format!("name: slow\nnodes:\n  a: {work}\n"));
        let shot = home.wonder(&["run", "flow.yaml"]);
        assert!(shot.contains("a action timed out after [TIME]: it fails"), "{work}: {shot}");
        assert_eq!(times(&home), 1, "{work}: {shot}");
    }
}

#[test]
fn a_node_is_tried_as_often_as_it_says() {
    let home = Home::with(
        "name: often\nnodes:\n  a: {shell: {command: 'echo go >> times; exit 3', timeout: 9s}, retry: {max_attempts: 3, \
         backoff: none}}\n",
    );
    let shot = home.wonder(&["run", "flow.yaml"]);
    assert!(shot.contains("a started attempt 3") && !shot.contains("attempt 4"), "{shot}");
    assert_eq!(times(&home), 3, "attempts include the first");
}

#[test]
fn what_a_task_went_on_after_is_told() {
    let home = Home::with(
        "name: patient\nnodes:\n  a:\n    steps:\n      - {ref: slow, shell: {command: sleep 30, timeout: 100ms}, \
         on_failure: continue}\n      - {ref: rest, mock: {output: {v: 1}}}\n",
    );
    let shot = home.wonder(&["run", "flow.yaml"]);
    assert!(shot.contains("a action timed out after [TIME]: its task goes on"), "{shot}");
    assert!(shot.contains("a goes on after slow failed: timeout: shell took longer than 100 ms"), "{shot}");
    let shown = home.wonder(&["show", "last"]);
    assert!(shown.contains("went on after slow failed: timeout"), "{shown}");
    let events = home.wonder(&["events", "last"]);
    assert!(events.contains("step_failed") && events.contains("policy_applied=continue"), "{events}");
    let failed = home.json(&["show", "last", "-o", "json"])["nodes"][0]["steps_failed"].clone();
    assert_eq!(failed[0]["step"], "slow");
}

#[test]
fn a_dag_goes_on_after_a_failure_unless_it_is_to_fail_fast() {
    let dag = |fail_fast: bool| {
        format!(
            "name: build\nfail_fast: {fail_fast}\nnodes:\n  lint: {{shell: {{command: exit 1, timeout: 9s}}}}\n  \
             publish: {{needs: lint, mock: {{}}}}\n  compile: {{mock: {{delay: 300ms}}}}\n  \
             docs: {{needs: compile, shell: {{command: echo docs >> times, timeout: 9s}}}}\n"
        )
    };
    let patient = Home::with(&dag(false));
    let shot = patient.wonder(&["run", "flow.yaml"]);
    assert!(shot.contains("docs completed") && shot.contains("run failed at lint"), "{shot}");
    assert!(shot.contains("shell_exit at lint") && !shot.contains("publish started"), "{shot}");
    let hasty = Home::with(&dag(true));
    let shot = hasty.wonder(&["run", "flow.yaml"]);
    assert!(shot.contains("run failed at lint") && !shot.contains("docs started"), "{shot}");
    assert_eq!((times(&patient), times(&hasty)), (1, 0));
}

#[test]
fn a_raised_budget_is_shown_as_it_is_now() {
    let home = Home::with(
        "name: spends\nbudget: {usd: 0.01}\nnodes:\n  a: {mock: {output: {}, usage: {cost_usd: 0.02}}}\n",
    );
    let waits = home.json(&["run", "flow.yaml", "-o", "json"])["waiting"][0]["gate"].clone();
    let warned = home.wonder(&["events", "last"]);
    let (warning, end) = (warned.find("budget_warning"), warned.find("budget_exceeded"));
    assert!(warning.is_some() && warning < end, "{warned}");
    home.wonder(&["answer", waits.as_str().unwrap(), r#"{"action": "raise", "usd": 0.03}"#]);
    let shown = home.wonder(&["show", "last"]);
    assert!(shown.contains("$0.0200 of $0.0400 spent · raised by $0.0300"), "{shown}");
    assert_eq!(home.json(&["show", "last", "-o", "json"])["budget_usd"], 0.04);
}
