# `make demo` and `make test` are all that a newcomer needs; `make help` lists the rest.

CARGO ?= cargo
WALRAS = target/release/walras
LAB = target/release/walras-lab
APT = $(if $(filter 0,$(shell id -u)),,sudo) apt-get
APT_PACKAGES = gcc libc6-dev make
NODE_MAJOR = $(shell node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/')
HAS_NODE = $(shell [ "$(NODE_MAJOR)" -ge 20 ] 2>/dev/null && command -v npm >/dev/null && echo yes)

PYTHON ?= python3
VENV = sdk/python/.venv
CLIENTS = sdk/ethereum
TYPESCRIPT = sdk/typescript
HAS_PYTHON = $(shell $(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && echo yes)

.PHONY: help setup page build lab demo test test-build test-rust test-networks test-golden test-page test-ethereum test-described test-python test-typescript test-ways python net-test dist test-dist book test-docs test-users check tidy operations api-reference bench bench-papers soak clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 14

setup: ## Install what a fresh Debian machine with a Rust toolchain and Node lacks
	@command -v cc >/dev/null || ($(APT) update && $(APT) install -y --no-install-recommends $(APT_PACKAGES))
	@[ -n "$(HAS_PYTHON)" ] || ($(APT) update && $(APT) install -y --no-install-recommends python3 python3-venv)
	@[ -z "$(HAS_NODE)" ] || command -v chromium >/dev/null || ($(APT) update && $(APT) install -y --no-install-recommends chromium)

web/node_modules/.package-lock.json: web/package-lock.json
	cd web && npm ci --no-audit --no-fund
	touch $@

# Built when its sources have changed: the binary embeds it, so that a new page makes a new binary.
web/dist/index.html: web/node_modules/.package-lock.json web/index.html $(wildcard web/*.ts) \
  $(shell find web/src web/public sdk/typescript/src -type f)
	cd web && npm run --silent build

page: $(if $(HAS_NODE),web/dist/index.html) ## Build the page, which the binary embeds
ifneq ($(HAS_NODE),yes)
	@echo "Node.js 20 or later is missing: the exchange is built without its page, which then says so."
endif

build: page ## Build the release binary
	$(CARGO) build --locked --release -p walras

lab: page ## Build the laboratory: measurements, simulations, tables of papers
	$(CARGO) build --locked --release -p lab

demo: page ## Start a local exchange with traders and the page
	$(CARGO) build --locked --release -p walras --no-default-features --features etcd
	./$(WALRAS) demo

HAS_LINTS = $(shell $(CARGO) fmt --version >/dev/null 2>&1 && clippy-driver --version >/dev/null 2>&1 && echo yes)
# What the tests run is linted by the compiler that makes it: to lint it apart would compile every dependency twice.
LINTED = $(if $(HAS_LINTS),RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings)
DEBUG = CARGO_INCREMENTAL=0 $(LINTED) $(CARGO)

# Many tests wait for networks, so three suites run side by side once everything is built. What is built for the Rust
# tests is not built again.
test: setup page $(if $(HAS_LINTS),tidy) test-build ## Run every test
	+@$(MAKE) --no-print-directory --jobs=3 --output-sync=target BUILT=yes \
	  test-rust test-networks test-golden test-python test-page test-ethereum test-typescript test-described test-dist test-docs test-users
	+@$(MAKE) --no-print-directory BUILT=yes test-ways

test-build:
	$(DEBUG) test --locked --no-run

# Tests of running networks and processes, which hardly use a processor while they wait.
NETWORKS = cluster custody epochs ethereum founding kill lane lane_restart lane_shards late light midnight network operator pay \
  pay_bls pay_trust pay_watch pit proxies readme restart signer staking switch validators wallet
# A test is a file, or a folder with a main.rs.
TESTS = $(basename $(wildcard crates/*/tests/*.rs)) $(patsubst %/main.rs,%,$(wildcard crates/*/tests/*/main.rs))
OTHERS = $(filter-out $(NETWORKS),$(sort $(notdir $(TESTS))))
TEST = $(DEBUG) test --locked

# Its progress is shown as it comes.
test-rust: $(if $(BUILT),,test-build)
	+$(TEST) --lib --bins $(OTHERS:%=--test %)
	+$(TEST) --doc

test-networks: $(if $(BUILT),,test-build)
	$(TEST) $(NETWORKS:%=--test %)

# Prices have the same last bit in optimised code.
test-golden:
	$(CARGO) test --locked --release -p clearing --test golden

# The page in a real browser, against a real node: the binary that the Rust tests run too.
test-page: $(if $(BUILT),,page test-build)
ifeq ($(HAS_NODE),yes)
	cd web && npm run --silent check && npm test
	./web/tests/with-demo.sh target/debug/walras
else
	@echo "Node.js 20 or later is missing: the page is not tested."
endif

# Libraries of Ethereum as they come from their registries; installed again when their lists change.
$(CLIENTS)/node_modules/.ready: $(CLIENTS)/package-lock.json
	cd $(CLIENTS) && npm ci --no-audit --no-fund
	touch $@

$(CLIENTS)/.venv/.ready: $(CLIENTS)/requirements.txt
	$(PYTHON) -m venv $(CLIENTS)/.venv
	$(CLIENTS)/.venv/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

$(CLIENTS)/.boa/.ready: $(CLIENTS)/requirements-boa.txt
	$(PYTHON) -m venv $(CLIENTS)/.boa
	$(CLIENTS)/.boa/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

test-ethereum: ## viem, ethers, web3.py, titanoboa and go-ethereum's client, unmodified, against a node
	@if [ "$(HAS_NODE)" = yes ] && [ "$(HAS_PYTHON)" = yes ]; then \
	  $(MAKE) --no-print-directory --silent $(CLIENTS)/node_modules/.ready $(CLIENTS)/.venv/.ready \
	    $(CLIENTS)/.boa/.ready && \
	  $(if $(BUILT),,$(DEBUG) build --locked --quiet -p walras &&) node $(CLIENTS)/compile.mjs && \
	  $(CLIENTS)/with-demo.sh target/debug/walras ./test.sh && \
	  $(CLIENTS)/with-demo.sh --developer target/debug/walras ./test-developer.sh; \
	else echo "Node.js 20 and Python 3.10 are needed: Ethereum's libraries are not tested."; fi

$(TYPESCRIPT)/node_modules/.ready: $(TYPESCRIPT)/package-lock.json
	cd $(TYPESCRIPT) && npm ci --no-audit --no-fund
	touch $@

test-typescript: ## The client for TypeScript, its examples and its README, against a node
ifeq ($(HAS_NODE),yes)
	@$(MAKE) --no-print-directory --silent $(TYPESCRIPT)/node_modules/.ready
	@$(if $(BUILT),,$(DEBUG) build --locked --quiet -p walras)
	$(CLIENTS)/with-demo.sh target/debug/walras npm --prefix ../typescript test
else
	@echo "Node.js 20 or later is missing: the TypeScript client is not tested."
endif

# Validators and generators as they come from their registries.
DESCRIBED = sdk/described
$(DESCRIBED)/.ready: $(DESCRIBED)/package-lock.json $(DESCRIBED)/requirements.txt
	cd $(DESCRIBED) && npm ci --silent --no-audit --no-fund --ignore-scripts && $(PYTHON) -m venv .venv && \
	  .venv/bin/pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

test-described: ## What a node says of its interface, by validators, by requests made from it, and by generated clients
	@if [ "$(HAS_NODE)" = yes ] && [ "$(HAS_PYTHON)" = yes ]; then \
	  $(MAKE) --no-print-directory --silent $(DESCRIBED)/.ready && \
	  $(if $(BUILT),,$(DEBUG) build --locked --quiet -p walras &&) \
	  $(CLIENTS)/with-demo.sh target/debug/walras ../described/test.sh; \
	else echo "Node.js 20 and Python 3.10 are needed: the descriptions of the interface are not tested."; fi

# It takes what the suites of the page, of Python, of Ethereum's libraries and of TypeScript install, so it comes after them.
test-ways: python ## One order by every way in, all filled in one batch; the same with sealed orders
	@if [ "$(HAS_NODE)" = yes ] && [ "$(HAS_PYTHON)" = yes ] && command -v curl >/dev/null; then \
	  $(MAKE) --no-print-directory --silent page $(CLIENTS)/node_modules/.ready $(TYPESCRIPT)/node_modules/.ready && \
	  npm --prefix $(TYPESCRIPT) run --silent build && \
	  $(VENV)/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps target/wheels/walras-*.whl && \
	  $(if $(BUILT),,$(DEBUG) build --locked --quiet -p walras &&) \
	  $(CLIENTS)/with-demo.sh --developer target/debug/walras node --test --test-reporter=spec ../ways/one-batch.test.mjs && \
	  $(CLIENTS)/with-demo.sh --sealed target/debug/walras node --test --test-reporter=spec ../ways/one-sealed-batch.test.mjs; \
	else echo "Node.js 20, Python 3.10 and curl are needed: one order by every way in is not tested."; fi

# What the Python package is built and tested with; installed again when the list changes.
$(VENV)/.ready: sdk/python/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

python: ## Build the wheel of the Python package into target/wheels
	@if [ "$(HAS_PYTHON)" = yes ]; then \
	  $(MAKE) --no-print-directory --silent $(VENV)/.ready && \
	  cd sdk/python && .venv/bin/maturin build --release --locked --quiet --out ../../target/wheels; \
	else echo "Python 3.10 or later with venv is missing: its package is neither built nor tested."; fi

# The wheel as it is given out, in the environment that built it, held against the command line.
test-python: python
	@if [ "$(HAS_PYTHON)" = yes ]; then \
	  $(if $(BUILT),,$(DEBUG) build --locked --quiet -p walras -p lab &&) \
	  $(DEBUG) build --locked --quiet -p protocols --example fix_acceptor && \
	  $(VENV)/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps target/wheels/walras-*.whl && \
	  cd sdk/python && .venv/bin/python -m pytest --quiet && .venv/bin/mypy; fi

# A static binary where its target and its C compiler are there: C code is linked, too.
MUSL = $(shell rustc -vV | sed -n 's/^host: \(.*\)-gnu$$/\1-musl/p')
HAS_MUSL = $(shell [ -d "$$(rustc --print sysroot)/lib/rustlib/$(MUSL)" ] && command -v musl-gcc >/dev/null && echo yes)
PACKAGES ?= target/packages

dist: page ## The binary as archive, Debian package and image, with bill of materials and checksums, into target/packages
ifeq ($(HAS_MUSL),yes)
	$(CARGO) build --locked --profile dist -p walras --target $(MUSL)
	$(PYTHON) deploy/package/dist.py target/$(MUSL)/dist/walras --out $(PACKAGES)
else
	@echo "The musl target of Rust or musl-gcc is missing (rustup target add $(MUSL); apt-get install musl-tools): the" \
	  "binary will ask for this machine's glibc."
	$(CARGO) build --locked --profile dist -p walras
	$(PYTHON) deploy/package/dist.py target/dist/walras --out $(PACKAGES)
endif

# The packages of the binary that the Rust tests run: how they are made, not how fast it is.
test-dist:
	@if $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	  $(if $(BUILT),,$(DEBUG) build --locked --quiet -p walras &&) $(PYTHON) deploy/package/test_dist.py target/debug/walras; \
	else echo "Python 3.11 or later is missing: the packages are not tested."; fi

# `cargo install --locked mdbook` makes the tool.
book: ## The documents as a site, into target/book
	@command -v mdbook >/dev/null || { echo "mdbook is missing: cargo install --locked mdbook"; exit 1; }
	mdbook build && $(PYTHON) docs/outside.py copy target/book && $(PYTHON) docs/test_docs.py target/book

test-docs:
	@if $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then $(PYTHON) docs/test_docs.py; \
	else echo "Python 3.10 or later is missing: links of the documents are not tested."; fi

test-users: ## What users are told to type, typed from the documents
	@if $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then \
	  $(if $(BUILT),,$(DEBUG) build --locked --quiet -p walras -p lab &&) $(PYTHON) docs/test_users.py target/debug; \
	else echo "Python 3.10 or later is missing: the commands of the documents are not tried."; fi

net-test: page ## Networks of validators on real sockets, seven processes among them
	WALRAS_NET_VALIDATORS=7 $(CARGO) test --locked --release -p walras --test founding -p node --test validators --test epochs \
	  -p bench --test cluster --test switch

# What it needs beside cargo: rustfmt, clippy, cargo-deny. Advisories are looked up where their database can be reached.
check: tidy ## Formatting, lints, documentation, licences and duplicates of dependencies
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps

# What needs nothing compiled.
tidy:
	$(CARGO) fmt --all --check
	@if $(CARGO) deny --version >/dev/null 2>&1; then \
	  $(CARGO) deny --log-level error check licenses bans sources && \
	  { ! $(CARGO) deny fetch db >/dev/null 2>&1 || $(CARGO) deny --log-level error check advisories; }; \
	else echo "cargo-deny is missing: licences, duplicates and advisories are not checked."; fi

operations: ## Renew what follows from the table of operations: in docs/specification.md and in the clients
	WALRAS_WRITE_OPERATIONS=1 $(CARGO) test --quiet --locked -p primitives --test generated

api-reference: ## Renew the reference in docs/api.md from the handlers and bodies
	$(CARGO) test --quiet --locked -p doors --lib write_reference -- --ignored

# Daily prices and volumes of 50 assets: one file SYMBOL-usd-max.csv each, with columns snapped_at, price, market_cap and
# total_volume, as coingecko.com exports them.
DATA = $(or $(WALRAS_DATA),../shared/data)

bench: lab ## Run every measurement
	for suite in scaling assets hard thin decomposition figure2 figure8; do ./$(LAB) bench clearing --suite $$suite || exit 1; done
	@if [ -d "$(DATA)/coingecko" ]; then ./$(LAB) bench clearing --suite coingecko --data "$(DATA)/coingecko"; \
	else echo "$(DATA)/coingecko is missing: the daily batches of SPEEDEX 6.2 are skipped. Export the files from" \
	  "coingecko.com (historical data, CSV) into a folder coingecko, and name the folder above it in WALRAS_DATA."; fi
	./$(LAB) bench onyx --all --size full
	for suite in matching settle venue exchange hostile payments filter recovery consensus transaction-management transport stm evm payments-lane evm-rpc doors floods diablo; do ./$(LAB) bench $$suite || exit 1; done

# Where a machine has many cores, all figures with as many threads: make bench-papers SIZE=full THREADS=1,2,4,8,16
SIZE ?= small
THREADS ?= 1,2
OUT ?= target/papers

bench-papers: lab ## Every table and figure of the five papers into OUT
	for paper in speedex red-belly block-stm accept onyx; do \
	  ./$(LAB) bench $$paper --all --size $(SIZE) --threads $(THREADS) --data "$(DATA)" --out "$(OUT)" || exit 1; done

soak: lab ## Long simulations, and a million hostile books
	./$(LAB) sim --seeds 10000
	./$(LAB) sim --mistakes
	./$(LAB) sim --crash-points 500
	./$(LAB) sim --lane --seeds 1000
	./$(LAB) sim --edge --seeds 500
	./$(LAB) sim --market --seeds 5000
	for engine in dbft tendermint; do for twins in '' --twins; do \
	  ./$(LAB) sim --consensus --engine $$engine $$twins --seeds 1000 || exit 1; done; done
	FUZZ_CASES=300000 $(CARGO) test --locked --release -p fuzz -p doors -p protocols --test decoders --test fuzz --test session_keys -- --include-ignored
	FUZZ_CASES=300000 $(CARGO) test --locked --release -p transport -p walras strangers
	./$(LAB) bench hostile --tries 600
	./$(LAB) bench clearing --suite hostile --books 1000000
	./$(LAB) bench clearing --suite minimum --books 1000000
	$(CARGO) test --locked --release -p payments -- --ignored
	$(CARGO) test --locked --release -p matching -p venue -p ledger -p consensus -- --ignored

clean: ## Remove what was built
	$(CARGO) clean
	rm -rf web/dist web/node_modules $(VENV) $(CLIENTS)/node_modules $(CLIENTS)/.venv $(CLIENTS)/.boa $(CLIENTS)/build \
	  $(TYPESCRIPT)/node_modules $(TYPESCRIPT)/dist
