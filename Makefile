# `make test` guards main; `make demo` shows the point. Both work on a fresh machine with Rust.

.PHONY: demo test tools check sim soak bench bench-peers model-bodies fmt

# A release: builds in parallel, a flaky one, a merge, a child run, a person who approves; then the timeline.
# Built without optimisation, to be there soon: `cargo install --path crates/cli` builds the fast one.
demo:
	cargo build --profile demo -p wonder-cli -p wonder-modelserver
	scripts/demo.sh target/demo/wonder
	scripts/demo-agent.sh target/demo/wonder target/demo/wonder-modelserver

# Everything: format, lints, unit tests, doc tests, scenarios with crashes and replays, all of them
# again on the embedded host, 2 000 random workflows with the lifecycle report, screens, purity and tidiness; and the real binary, killed and starved.
test: tools
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo test --workspace

# What tests need beside Rust: bubblewrap, for the sandbox; faketime, to set a clock that nobody else sees; ip, unshare
# and setpriv, for a network of their own and to be somebody else; aimock, a double of model providers, and the providers'
# own Python libraries, for the types of what is sent to them; MCP servers from npm and PyPI. All of pinned versions.
PROVIDER_TYPES = openai==3.51.0 anthropic==2.9.0 google-genai==3.3.0
NPM = npm ci --silent --no-audit --no-fund --ignore-scripts --prefix
tools:
	for tool in bwrap faketime ip unshare setpriv; do command -v $$tool >/dev/null || missing=1; done; \
	test -z "$$missing" || { apt-get update -qq && apt-get install -y -qq bubblewrap faketime iproute2 util-linux; }
	test -d tests/providers/node_modules/@copilotkit/aimock || $(NPM) tests/providers
	test "$$(cat target/model-bodies/versions 2>/dev/null)" = "$(PROVIDER_TYPES)" || { \
	python3 -m venv target/model-bodies && target/model-bodies/bin/pip install --quiet $(PROVIDER_TYPES) && \
	echo "$(PROVIDER_TYPES)" > target/model-bodies/versions; }
	test -d tests/e2e/npm/node_modules || $(NPM) tests/e2e/npm
	test -x target/mcp-servers/bin/mcp-server-time || { python3 -m venv target/mcp-servers && \
	target/mcp-servers/bin/pip install --quiet -r tests/e2e/npm/requirements.txt; }

# The fast part of `make test`, for while you work.
check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

# One random workflow, as a readable trace: make sim SEED=17
sim:
	cargo run --quiet --release -p wonder-sim -- --seed $(or $(SEED),1)

# What takes too long for every change: 100 000 random workflows, then the attacks of `make test` on the release build,
# many times over (docs/reliability.md), the faults for SOAK minutes. Each prints its counts.
soak:
	cargo run --quiet --release -p wonder-sim -- --seeds 100000
	cargo build --quiet --release -p wonder-cli
	WONDER_SOAK=$(or $(SOAK),60) WONDER_BINARY=$(CURDIR)/target/release/wonder cargo test -p wonder-e2e -- --nocapture \
		kill:: siege:: power:: damage:: twice:: faults:: home:: storage:: secrets:: templates:: models::

# What the engine costs, beside the raw limits of the same run; then the core alone, as things grow.
bench:
	cargo build --quiet --release -p wonder-cli -p wonder-bench -p wonder-modelserver
	target/release/wonder-bench --json target/bench.json
	cargo run --quiet --release -p wonder-sim -- scale

# The same work on the peers, installed into target/peers; writes bench/RESULTS.md. About 30 minutes.
bench-peers:
	cargo build --quiet --release -p wonder-cli -p wonder-bench -p wonder-modelserver
	mkdir -p target/peers/data
	target/release/wonder-bench --dir target/peers/data --json target/bench.json w1 w2 w3 w4 w5 w6 start
	python3 -B bench/peers/agents.py
	python3 -B bench/peers/run.py

# The bodies that are sent to model providers against the types of their own libraries as they are today; `make test` has
# those of PROVIDER_TYPES. Needs PyPI.
model-bodies:
	python3 -m venv target/model-bodies-today
	target/model-bodies-today/bin/pip install --quiet --upgrade openai anthropic google-genai
	target/model-bodies-today/bin/python -B scripts/check-model-bodies.py

fmt:
	cargo fmt --all
