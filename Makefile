# Each of these works on a fresh Debian 12 with Swift 6.3 in PATH, and says what it does.

.PHONY: run install uninstall test verify land mutants bench docs docs-open format lint setup

# A business card crosses a virtual Bluetooth LE radio. ARGS="..." is handed on: make run ARGS="--chunk 64 --log"
run: setup
	swift run business-card $(ARGS)

# ferry and business-card with manual pages and completions, in /usr/local: make install PREFIX=$HOME/.local TRAITS=HCI,BlueZ
install: setup
	PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" TRAITS="$(TRAITS)" scripts/install

# Takes them away again.
uninstall:
	PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" scripts/install --uninstall

# What must hold before each commit: one build, all of its tests, a card over every transport. Minutes.
test: setup
	@scripts/setup steps
	scripts/steps test

# What must hold before a release: sanitizers, fuzzing, others' stacks, a real bluetoothd, documentation, benchmarks' gates.
# STEPS="..." runs some of its steps: make verify STEPS="sanitize-thread docs"
verify: setup
	@scripts/setup steps
	scripts/steps verify $(STEPS)

# What a landing runs besides make test: what the change since BASE (the last landing) selects of make verify, and the turn.
land: setup
	@scripts/setup steps
	scripts/steps land $(BASE)

# Which changes of a file the tests do not notice: make mutants FILE=Sources/Core/Ferry/Framing/Varint.swift
mutants: setup
	scripts/mutants $(FILE) $(ARGS)

# The micro benchmarks: allocations, copies and bytes on the wire against thresholds, speed beside peers in the same run.
bench: setup
	scripts/bench

# The documentation of every library as one site, in .docs/site; warnings are errors.
docs: setup
	scripts/docs

# Shows it, from a server of this machine at http://localhost:8000, until Ctrl-C.
docs-open:
	PORT="$(PORT)" scripts/docs open

format:
	scripts/lint --format

lint:
	@scripts/setup steps
	scripts/lint

# Installs the one library that the build needs, when it is missing.
setup:
	@scripts/setup
