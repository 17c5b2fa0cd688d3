# `make test` guards main; `make demo` shows the point. Both work on a fresh machine with Rust alone.

.PHONY: demo test check sim soak bench fmt

# The judge panel, on each of its paths, on virtual time: the workflow and what every token did.
demo:
	cargo run --quiet -p wonder-sim -- scenario examples/judge_panel.scenario.yaml

# Everything: format, lints, unit tests, doc tests, scenarios with crashes and replays, 2 000 random
# workflows with the lifecycle report, screens of diagnostics, purity and tidiness.
test:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo test --workspace

# The fast part of `make test`, for while you work.
check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

# One random workflow, as a readable trace: make sim SEED=17
sim:
	cargo run --quiet --release -p wonder-sim -- --seed $(or $(SEED),1)

# What takes too long for every change.
soak:
	cargo run --quiet --release -p wonder-sim -- --seeds 100000

# Cost per node as graphs, fan-outs and states grow.
bench:
	cargo run --quiet --release -p wonder-sim -- scale

fmt:
	cargo fmt --all
