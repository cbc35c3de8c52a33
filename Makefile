# bdp: `make help` lists what there is.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PREFIX ?= /usr/local
DESTDIR ?=
CARGO ?= cargo

HOST = $(shell rustc -vV | sed -n 's/^host: //p')
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
BDP := $(TARGET_DIR)/bdp
# What --version tells beside the number; nothing outside a repository.
COMMIT = $(shell git describe --always --dirty --exclude "*" 2>/dev/null)

MAN := $(PREFIX)/share/man/man1
MAN_TOPICS := $(PREFIX)/share/man/man7
BASH_SCRIPT := $(PREFIX)/share/bash-completion/completions/bdp
ZSH_SCRIPT := $(PREFIX)/share/zsh/site-functions/_bdp
FISH_SCRIPT := $(PREFIX)/share/fish/vendor_completions.d/bdp.fish
DOCS := $(PREFIX)/share/doc/bdp
KERNELS_INSTALLED := $(PREFIX)/lib/bdp/kernels
STACKS_INSTALLED := $(PREFIX)/lib/bdp/stacks

##@ Use

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# With --target the flags reach the program alone: build scripts and procedural macros stay as they are, for
# a procedural macro can't be linked statically. The program is linked elsewhere first and moved, so that a running one
# is not disturbed.
BUILD_STATIC = BDP_COMMIT="$(COMMIT)" RUSTFLAGS="$(RUSTFLAGS) -C target-feature=+crt-static" $(CARGO) build --locked --package bdp --target $(HOST)
.PHONY: build
build: ## Build bdp, one static binary: target/bdp
	$(BUILD_STATIC) --profile release
	@cp $(TARGET_DIR)/$(HOST)/release/bdp $(BDP).new && mv $(BDP).new $(BDP)
	@if readelf --version >/dev/null 2>&1 && readelf --program-headers $(BDP) | grep -q INTERP; then \
		echo "$(BDP) is linked dynamically" >&2; exit 1; fi
	@echo "built $(BDP)"

# Compiled in half the time of a release, by the profile of that name in Cargo.toml, and nothing to measure with: no other target takes it.
DEMO := $(TARGET_DIR)/bdp-demo
.PHONY: build-demo
build-demo:
	$(BUILD_STATIC) --profile demo
	@cp $(TARGET_DIR)/$(HOST)/demo/bdp $(DEMO).new && mv $(DEMO).new $(DEMO)

# By target/bdp where that was built before. The kernel is built beside: where it can't be, the demonstration goes by this machine's clock.
# Both by twice as many compilers as there are processors: beside other load each has its share, and who waits for a demonstration waits
# for them.
.PHONY: demo
demo: ## Run the demonstration; builds target/bdp-demo and a guest kernel: 5 minutes the first time, later 1 minute
	@bdp=$(DEMO) target=build-demo; [ ! -x $(BDP) ] || { bdp=$(BDP) target=build; }; \
	stacks/linux/build $(LINUX) $(KERNELS) & kernel=$$!; built=0; \
		CARGO_BUILD_JOBS=$${CARGO_BUILD_JOBS:-$$((2 * $$(nproc)))} $(MAKE) --no-print-directory $$target || built=$$?; \
		wait $$kernel || echo "no guest kernel (see above): the demonstration uses the real clock" >&2; \
	[ $$built -eq 0 ] || exit $$built; \
	$$bdp demo || { code=$$?; [ $$code -eq 5 ] || exit $$code; \
		echo "some cases are INVALID: this machine paused each time, and their figures are not shown; try again when it is quieter, or by a guest's kernel ('make kernel'): its clock stands still meanwhile" >&2; }; \
	[ $$bdp = $(BDP) ] || echo "$(DEMO) was compiled quickly, for this demonstration; 'make build' builds the bdp to measure with and to install"

# Kernels that hosts with a virtual clock run on: stacks/linux/README.md.
KERNELS := $(TARGET_DIR)/kernels
LINUX ?= 6.1
.PHONY: kernel
kernel: ## Build a guest kernel, 2 minutes, or copy it from the cache: LINUX=6.1 (or 6.12, 7.2, or the path of a source tree)
	@stacks/linux/build $(LINUX) $(KERNELS)

.PHONY: kernels
kernels: ## Build the three guest kernels
	@for version in 6.1 6.12 7.2; do stacks/linux/build $$version $(KERNELS); done

# TCP stacks that are no kernel, each a program: stacks/README.md.
STACKS := $(TARGET_DIR)/stacks
.PHONY: stack-gvisor
stack-gvisor: ## Build the TCP stack of gVisor, half a minute; needs Go
	@stacks/gvisor/build $(STACKS)

.PHONY: stack-lwip
stack-lwip: ## Build the TCP stack lwIP with Debian's library, seconds; needs liblwip-dev and libjson-c-dev
	@stacks/lwip/build $(STACKS)

.PHONY: stacks
stacks: stack-gvisor stack-lwip ## Build both TCP stacks

# What is built is installed as it is: under sudo there is often no cargo.
.PHONY: install
install: ## Install bdp, manual pages, documents and completions in PREFIX (/usr/local), staged below DESTDIR
	@test -x $(BDP) || $(MAKE) build
	install -d "$(DESTDIR)$(PREFIX)/bin"
	install -m 755 $(BDP) "$(DESTDIR)$(PREFIX)/bin/bdp"
	$(BDP) man --dir "$(DESTDIR)$(MAN)"
	$(BDP) man --topics --dir "$(DESTDIR)$(MAN_TOPICS)"
	install -d "$(DESTDIR)$(DOCS)"
	install -m 644 docs/*.md docs/*.schema.json "$(DESTDIR)$(DOCS)"
	install -d $(foreach script,$(BASH_SCRIPT) $(ZSH_SCRIPT) $(FISH_SCRIPT),"$(DESTDIR)$(dir $(script))")
	$(BDP) completions bash > "$(DESTDIR)$(BASH_SCRIPT)"
	$(BDP) completions zsh > "$(DESTDIR)$(ZSH_SCRIPT)"
	$(BDP) completions fish > "$(DESTDIR)$(FISH_SCRIPT)"
	for kernel in $$(find $(KERNELS) -maxdepth 1 -type f -name 'linux-*[0-9]' 2>/dev/null); do \
		install -D -m 755 "$$kernel" "$(DESTDIR)$(KERNELS_INSTALLED)/$${kernel##*/}"; done
	for stack in $$(find $(STACKS) -maxdepth 1 -type f -name 'bdp-stack-*[a-z]' ! -name '*.new' 2>/dev/null); do \
		install -D -m 755 "$$stack" "$(DESTDIR)$(STACKS_INSTALLED)/$${stack##*/}"; done

.PHONY: uninstall
uninstall: ## Remove the files of 'make install'
	rm -f "$(DESTDIR)$(PREFIX)/bin/bdp" "$(DESTDIR)$(MAN)/bdp.1" "$(DESTDIR)$(MAN)"/bdp-*.1 "$(DESTDIR)$(MAN_TOPICS)"/bdp-*.7
	rm -f $(foreach file,$(notdir $(wildcard docs/*.md docs/*.schema.json)),"$(DESTDIR)$(DOCS)/$(file)")
	rm -f "$(DESTDIR)$(BASH_SCRIPT)" "$(DESTDIR)$(ZSH_SCRIPT)" "$(DESTDIR)$(FISH_SCRIPT)"
	rm -f "$(DESTDIR)$(KERNELS_INSTALLED)"/linux-*[0-9] "$(DESTDIR)$(STACKS_INSTALLED)"/bdp-stack-*

# The package is of the static binary, and needs nothing of the system that it is installed on.
.PHONY: deb
deb: build ## Make a Debian package: target/bdp_VERSION_ARCHITECTURE.deb; its service is installed disabled
	packaging/debian/build $(BDP) $(TARGET_DIR)

##@ Contribute

# What tests boot and hold against each other, as far as this machine can build it: without, they are SKIPPED.
.PHONY: guests
guests:
	@stacks/linux/build $(LINUX) $(KERNELS) || echo "no guest kernel (see above): tests that boot one are SKIPPED"
	@if [ -e /usr/include/lwip/lwip/tcp.h ] && [ -e /usr/include/json-c/json.h ]; then \
		stacks/lwip/build $(STACKS) || echo "lwIP stack not built (see above): its tests are SKIPPED"; \
		else echo "lwIP stack not built, whose tests are SKIPPED: it wants liblwip-dev and libjson-c-dev"; fi
	@if command -v go >/dev/null; then \
		stacks/gvisor/build $(STACKS) || echo "gVisor stack not built (see above): its tests are SKIPPED"; \
		else echo "gVisor stack not built, whose tests are SKIPPED: it wants Go"; fi

# Most tests of the command line wait more than they work: more of them run side by side than there are processors.
TEST_THREADS ?= 8
# --tests: rustdoc would read each library for the tests of its doc comments, and there are none (crates/bdp/tests/architecture).
# Empty where `make test-live` runs too, whose tables are the same and longer.
SHORT_TABLES ?= 1
.PHONY: test
test: guests ## Run the tests that do not depend on the machine
	RUST_TEST_THREADS=$(TEST_THREADS) .ci/tests $(CARGO) test --locked --workspace --tests --no-fail-fast \
		$(if $(SHORT_TABLES),,-- $(addprefix --skip ,$(SHORT_FORMS)))

# Those in guests, whose time is exact whatever runs beside them, side by side; one that goes by this machine's clock waits until it is alone.
LIVE_THREADS ?= $(shell nproc)
# Of which `make test` has a short form.
SHORT_FORMS := tune_killed::ended_before_any_step_by_kill_or_without_power_all_goes_back
LONG_TABLES := tune_killed::ended_before_each_step_by_kill_and_without_power_all_goes_back
.PHONY: test-live
test-live: ## Run the tests with real time and real peers; lists the figures that this machine could not judge
	RUST_TEST_THREADS=$(LIVE_THREADS) .ci/tests $(CARGO) test --locked --workspace --test live
	.ci/tests $(CARGO) test --locked --workspace --test cli -- --ignored --exact $(LONG_TABLES)

.PHONY: lint
lint: format-check clippy doc rules ## Check format, lints, documentation and the rules of ARCHITECTURE.md

.PHONY: format
format: ## Format the code
	$(CARGO) fmt --all

# By the test that holds them to the types.
.PHONY: schemas
schemas: ## Write docs/*.schema.json, and the tables of members in docs/, from the types
	INSTA_UPDATE=always $(CARGO) test --locked --package bdp --bin bdp schemas::

.PHONY: format-check
format-check:
	$(CARGO) fmt --all --check

.PHONY: clippy
clippy:
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) clippy --locked --workspace --test live -- -D warnings

# Libraries: the doc comments of the command line are its help texts, and the brackets in them no links.
.PHONY: doc
doc: ## Build the code documentation: target/doc
	RUSTDOCFLAGS="$(RUSTDOCFLAGS) -D warnings" $(CARGO) doc --locked --workspace --lib --no-deps --document-private-items

# The whole workspace is named so that features, and with them what is built, are those of `make test`.
.PHONY: rules
rules:
	$(CARGO) test --locked --workspace --test architecture

# By cargo-deny: cargo install cargo-deny --locked. Whether a crate was yanked, and faults that were found, only the network knows.
.PHONY: deny
deny: ## Check licences, duplicates and sources of the shipped crates (deny.toml)
	$(CARGO) deny --locked check licenses bans sources

.PHONY: advisories
advisories: ## Check the shipped crates for RustSec advisories; needs the network
	$(CARGO) deny --locked check advisories

# web/dist is committed, so that cargo alone builds bdp. npm's packages build nothing here: esbuild brings its binary.
NPM := npm --prefix web
web/node_modules: web/package.json web/package-lock.json
	$(NPM) ci --no-audit --no-fund --ignore-scripts
	touch $@

.PHONY: page
page: web/node_modules ## Build the page of 'bdp page', web/dist; needs Node 20
	$(NPM) run types
	$(NPM) run build

.PHONY: page-check
page-check: page ## Check the page: types, lint, unit tests, size, and that web/dist is what its sources make
	$(NPM) run check
	$(NPM) run size
	git diff --exit-code --stat -- web/dist || { echo "commit what 'make page' writes" >&2; exit 1; }

.PHONY: page-e2e
page-e2e: build web/node_modules ## Drive the page in Chromium, with accessibility checks; pictures go to target/page
	BDP=$(abspath $(BDP)) $(NPM) run e2e

# Beside what tests cover: the static binary as it is installed.
.PHONY: smoke
smoke: build ## Smoke test of the built binary
	$(BDP) --version
	$(BDP)
	$(BDP) calc bdp --rate 1G --rtt 2.55ms
	$(BDP) lab check scenarios/*.toml

# Those of another release of the peers: .ci/debian-peers SUITE FOLDER, then PEERS=FOLDER/bin.
INTEROP ?= iperf3 iperf3_udp logins iperf2 iperf_figures
.PHONY: interop
interop: ## Run the tests with iperf3 and iperf2, those in the folder PEERS if it is set
	PATH="$(if $(PEERS),$(PEERS):)$$PATH" RUST_TEST_THREADS=$(TEST_THREADS) .ci/tests $(CARGO) test --locked --workspace \
		--test cli -- $(addsuffix ::,$(INTEROP))
	PATH="$(if $(PEERS),$(PEERS):)$$PATH" RUST_TEST_THREADS=$(LIVE_THREADS) .ci/tests $(CARGO) test --locked --workspace \
		--test live -- $(addsuffix ::,$(INTEROP))

.PHONY: fuzz-short
fuzz-short: ## Test each parser with the stored inputs and 5,000 mutations, seconds in total
	$(CARGO) test --locked --workspace --test corpus

# One parser after the other. cargo-fuzz wants a nightly compiler: cargo install cargo-fuzz, rustup toolchain install nightly.
FUZZ_SECONDS ?= 600
FUZZ_TARGETS ?= $$($(CARGO) run --quiet --package bdp-fuzz --bin bdp-fuzz list)
.PHONY: fuzz
fuzz: ## Fuzz each parser with libFuzzer for FUZZ_SECONDS (600); FUZZ_TARGETS selects parsers
	$(CARGO) run --quiet --package bdp-fuzz --bin bdp-fuzz seeds fuzz/target/seeds
	for target in $(FUZZ_TARGETS); do \
		mkdir -p fuzz/target/found/$$target fuzz/corpus/$$target; \
		BDP_FUZZ_TARGET=$$target $(CARGO) +nightly fuzz run --features libfuzzer any fuzz/target/found/$$target \
			fuzz/target/seeds/$$target fuzz/corpus/$$target -- -max_total_time=$(FUZZ_SECONDS) -max_len=32768 -timeout=10; \
		rmdir --ignore-fail-on-non-empty fuzz/corpus/$$target; \
	done

.PHONY: bench
bench: build ## Run the benchmarks; results go to benches/
	BDP=$(abspath $(BDP)) benches/run

.PHONY: bench-lab
bench-lab: build ## Benchmark the virtual clock: segments per second of each stack, 1,000 flows, memory per host
	BDP=$(abspath $(BDP)) benches/lab

.PHONY: bench-beside
bench-beside: build ## Compare the emulator with rattan, and with netem in a guest; as root
	BDP=$(abspath $(BDP)) benches/beside

.PHONY: bench-explain
bench-explain: build ## Judge findings on paths with faults: right, unknown or wrong
	BDP=$(abspath $(BDP)) benches/explain

.PHONY: explain-short
explain-short: build ## bench-explain with three cases per fault; requires 95 % right and at most 3 % wrong
	BDP=$(abspath $(BDP)) BENCH_CASES=3 BENCH_BARS=1 benches/explain

.PHONY: bench-mixed
bench-mixed: build ## Judge findings on random paths with several limits: 120 cases, 20 minutes
	BDP=$(abspath $(BDP)) benches/mixed

.PHONY: calibrate
calibrate: ## Fit the probability of each limit from transfers with known limits: seconds; needs python3-numpy
	benches/calibrate

.PHONY: bench-experiments
bench-experiments: build ## Judge 'bdp measure' with and without its experiments: 96 paths, virtual clock, ten minutes
	BDP=$(abspath $(BDP)) benches/experiments

.PHONY: bench-remedies
bench-remedies: build ## Apply the remedies for 210 paths with faults, virtual clock, and print the effect
	BDP=$(abspath $(BDP)) benches/remedies

.PHONY: bench-until-settled
bench-until-settled: build ## Compare --until settled with 10 s tests: 200 paths, virtual clock, ten minutes
	BDP=$(abspath $(BDP)) benches/until-settled

.PHONY: mixed-short
mixed-short: build ## bench-mixed with 24 cases, five minutes
	BDP=$(abspath $(BDP)) BENCH_CASES=24 benches/mixed

.PHONY: bench-twin
bench-twin: build ## Measure 12 lab paths, derive their twins from the measurements, and compare
	BDP=$(abspath $(BDP)) benches/twin

.PHONY: twin-short
twin-short: build ## bench-twin with four paths, all of which must match
	BDP=$(abspath $(BDP)) BENCH_PATHS="receive window,long queue,random loss,fq_codel" BENCH_BAR=4 benches/twin

.PHONY: bench-loop
bench-loop: build ## Rehearse, apply and verify changes on 15 lab paths: predictions and outcomes
	BDP=$(abspath $(BDP)) benches/loop

.PHONY: loop-short
loop-short: build ## bench-loop with three paths; requires goodput predictions within 10 %
	BDP=$(abspath $(BDP)) BENCH_PATHS="receive window,long queue,random loss" BENCH_BAR=0.1 benches/loop

.PHONY: bench-captures
bench-captures: build ## Judge findings on captures of paths with faults, by the emulator, tshark and tcptrace
	BDP=$(abspath $(BDP)) benches/captures
	BDP=$(abspath $(BDP)) benches/capture-pairs
	BDP=$(abspath $(BDP)) benches/datagrams-judge

.PHONY: bench-captures-read
bench-captures-read: build ## Fetch public captures that were analysed by hand, and judge findings on them
	benches/captures-read --fetch target/public
	BDP=$(abspath $(BDP)) benches/captures-read target/public

.PHONY: bench-programs
bench-programs: build ## Judge findings at both ends of nginx, ssh, databases, git and 20 other programs on limited paths
	BDP=$(abspath $(BDP)) benches/programs --json

.PHONY: bench-cases
bench-cases: build ## Build the synthetic captures of ../shared/cases and compare findings with the expected ones
	BDP=$(abspath $(BDP)) benches/cases

.PHONY: bench-capture-speed
bench-capture-speed: build ## Time large captures, compared with tcptrace and tshark
	BDP=$(abspath $(BDP)) benches/capture-speed

.PHONY: captures-short
captures-short: build ## bench-captures with two cases per fault; requires a verdict for each disagreement and 70 % right at the sender
	BDP=$(abspath $(BDP)) BENCH_CASES=2 BENCH_JUDGED_MB=10 BENCH_BARS=1 benches/captures
	BDP=$(abspath $(BDP)) BENCH_CASES=1 BENCH_BARS=1 benches/capture-pairs
	if [ -d ../shared/cases ]; then BDP=$(abspath $(BDP)) BENCH_BARS=1 benches/cases; fi
	BDP=$(abspath $(BDP)) benches/datagrams-judge

.PHONY: export-judges
export-judges: build ## Check the output of 'bdp tune export' with shells, Ansible, the Kubernetes schema and wine; installs nothing
	BDP=$(abspath $(BDP)) benches/export-judges

.PHONY: bench-explain-real
bench-explain-real: build ## bench-explain in real time, between network namespaces: 60 cases, ten minutes; as root
	BDP=$(abspath $(BDP)) benches/explain-real

.PHONY: bench-explain-beside
bench-explain-beside: build ## Judge the results of bench-explain (BENCH_KEEP) with kernel counters, NDT, T-RAT and TAPO
	BDP=$(abspath $(BDP)) benches/explain-beside

.PHONY: images
images: build ## Draw the figures of docs/findings.md from its scenarios, virtual clock
	BDP=$(abspath $(BDP)) docs/images/draw

MDBOOK := $(TARGET_DIR)/tools/bin/mdbook
.PHONY: docs
docs: ## Make a site of docs/ that can be searched: target/docs/index.html
	@[ -x $(MDBOOK) ] || $(CARGO) install --locked --quiet --root $(TARGET_DIR)/tools mdbook@0.5.4
	$(MDBOOK) build

.PHONY: bench-watch
bench-watch: build ## Measure the CPU load of 'bdp watch' with 10,000 sockets
	BDP=$(abspath $(BDP)) benches/watch

.PHONY: ci
ci: ## Run all CI steps, from the format check to a run of the static binary
	.ci/run

.PHONY: clean
clean: ## Remove all build results
	$(CARGO) clean
