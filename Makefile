# Everything a developer of cniscope does. `make help` lists it. What belongs to one folder is
# in that folder's .mk file.
.DEFAULT_GOAL := help
SHELL := /bin/bash
# Nothing here needs C but the race detector and runc, and without it programs link in half of the time.
export CGO_ENABLED := 0
# Tests share what they compile with cniscope and the parts, which are built as for a release.
export GOFLAGS := $(strip $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath)
OTLP ?=

.PHONY: help
help: ## say what there is
	@awk 'BEGIN {FS = ":.*## "} /^[a-z][a-z-]*:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  make demo OTLP=127.0.0.1:4317    also sends the demo's spans to a Jaeger of yours"

include test/tools/tools.mk
include test/page/page.mk
include configs/image/image.mk
include configs/release/release.mk
include test/kubernetes/kubernetes.mk
include test/packages/packages.mk
include test/upgrade/upgrade.mk
include test/runtimes/runtimes.mk
include test/cnis/cnis.mk
include test/examples/examples.mk
include configs/helm/chart.mk
include test/fleet/fleet.mk

##### the program

LDFLAGS := -s -w $(if $(VERSION),-X main.linked=$(VERSION))
.PHONY: build
build: ## build bin/cniscope, static
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/cniscope ./plugin/cniscope

.PHONY: cross
cross: ## check that every platform builds: amd64 and arm64, and Windows for the parts that are not Linux's
	CGO_ENABLED=0 GOOS=linux GOARCH=amd64 go build -trimpath -o /dev/null ./plugin/cniscope
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 go build -trimpath -o /dev/null ./plugin/cniscope
	CGO_ENABLED=0 GOOS=windows GOARCH=amd64 go build -o /dev/null ./plugin/cniscope
	# Of the six platforms of the plugin, two; make release builds all.
	CGO_ENABLED=0 GOOS=linux GOARCH=amd64 go build -trimpath -o /dev/null ./plugin/kubectl-cniscope
	CGO_ENABLED=0 GOOS=windows GOARCH=amd64 go build -trimpath -o /dev/null ./plugin/kubectl-cniscope

.PHONY: docs
docs: build ## write man pages and shell completions to bin/share
	bin/cniscope docs bin/share

.PHONY: install
install: build docs ## install to $(DESTDIR)$(PREFIX): the program, its options, its systemd unit, man pages, completions
	install -D -m 0755 bin/cniscope $(DESTDIR)$(PREFIX)/bin/cniscope
	test -e $(DESTDIR)/etc/cniscope/cniscope.toml || install -D -m 0600 configs/cniscope.toml $(DESTDIR)/etc/cniscope/cniscope.toml
	install -D -m 0644 configs/systemd/cniscope.service $(DESTDIR)/etc/systemd/system/cniscope.service
	cp -r bin/share $(DESTDIR)$(PREFIX)/
PREFIX ?= /usr/local

##### see it

.PHONY: demo
demo: tools ## run pods over real CNI plugins and draw what they waited for (root; OTLP=HOST:PORT sends it on)
	go run ./test/demo $(if $(OTLP),-otlp $(OTLP))

.PHONY: show-demo
show-demo: ## draw a recorded demo (no root)
	go run ./plugin/cniscope show examples/recordings/three-pods.rec

##### test it

# Small forms are what a change passes; `make test-all` has the long ones.
OUTAGE       ?= 20s
OVERLOAD     ?= 10s
TENANTS      ?= small
NEIGHBOURS   ?= 20s
FILES        ?= 1
SECRETS_TIME ?= 30s
ORDINARY     ?= 60
FUZZTIME     ?= 10s

# Tests by what they need. PURE need no root. HOST observe all processes of the machine, so they run one after
# another. STORIES and RIGS start a containerd of their own; a cniscope sees the calls of every rig, so these also run
# one after another.
HOST    := ./pkg/probe ./pkg/probe/subprocess ./pkg/probe/connector ./pkg/probe/kernel ./plugin/cniscope
# The package with the longest tests comes first: they run while the rest compiles.
PURE    := ./plugin/cniscope $(shell go list -find ./... 2>/dev/null | grep -v -e /test/ -e /pkg/probe$$ -e /pkg/probe/subprocess$$ -e /pkg/probe/connector$$ -e /pkg/probe/kernel$$ -e /plugin/cniscope$$) ./test/realtime ./test/harness
SLOW    := $(addprefix ./,$(sort $(dir $(shell grep -rl --include=*_test.go 'harness\.Slow' pkg plugin))))
STORIES := ./test/scenarios ./test/doctor
RIGS    := ./test/rig ./test/e2e ./test/examples ./test/chart ./test/bench ./test/words

# One story for each main cause: what `make test` runs of STORIES. Subtests stand after the slash.
CAUSES := ^(TestReportsAreJudged|TestBehindTheAgent|TestACallThatIsStuckIsFound|TestWhatSandboxesThatAreGoneStillHold|TestAnAgentThatEnds)$$
CAUSES := $(CAUSES)/^(xtables_lock|a_slow_agent|rtnl|nobody_listens|a_hung_call|a_missing_binary|the_API_server|a_slow_command|stall-agent|killed)$$

ROOT := $(filter 0,$(shell id -u))
SUB  := $(MAKE) --no-print-directory

# One line for each package or test, with what it took, and at the end what failed and why. What skips must be listed.
# Without debugging information (-s) the tests link in two thirds of the time; `make lint` vets them. NRI's runtime of
# WebAssembly would take 12 s of compiling.
PACKAGES := go run ./test/skips -ldflags=-s -vet=off -tags nri_no_wasm
TESTS    := $(PACKAGES) -v
# SEED=N: tests run in a random order that N determines.
ORDER    := $(if $(SEED),-shuffle=$(SEED))

.PHONY: check
check: ## formatting, unit tests, golden recordings and fuzz corpora, without the slow tests (no root)
	@test/steps.sh 'format: files=$$(gofmt -l configs docs pkg plugin test) && test -z "$$files" || { echo "$$files"; false; }' \
		'unit tests: $(SUB) test-pure'

.PHONY: test-pure test-slow test-host test-stories test-causes
test-pure:
	@echo "compiling the tests, a minute or two the first time"
	@# Modules come while the standard library compiles.
	@go list -deps -test $(PURE) >/dev/null & go build net/http; wait
	$(PACKAGES) -short -timeout 10m $(filter-out $(ELSEWHERE),$(PURE))

test-slow: ## unit tests of packages that have slow tests, including these
	$(PACKAGES) -timeout 30m $(SLOW)

test-host: ## tests that observe all processes of the machine (root)
	$(TESTS) -p 1 -count=1 $(ORDER) -timeout 30m $(HOST)

test-stories: tools ## all stories on the rig: a cause each, and what cniscope says of it (root)
	$(TESTS) -p 1 -count=1 $(ORDER) -timeout 30m $(STORIES)

test-causes: tools ## one story for each main cause (root)
	$(TESTS) -p 1 -count=1 -timeout 30m -run '$(CAUSES)' $(STORIES)

.PHONY: test
test: ## check, tests that observe the machine, and one story for each main cause (root for all but check)
ifdef ROOT
	@# Tests of check run these; if it fails, so does the step tools.
	-@$(SUB) debian-run
	@# Host observers mostly wait, so the unit tests take the processors meanwhile.
	@test/steps.sh 'tools: $(SUB) -j2 tools &' 'check: $(SUB) check ELSEWHERE=%/plugin/cniscope &' 'host observers: $(SUB) test-host' \
		'check: $(SUB) check ELSEWHERE=%/plugin/cniscope' 'tools: $(SUB) -j2 tools' 'stories: $(SUB) test-causes'
else
	@$(SUB) check
	@echo "host observers and stories need root: sudo make test"
endif

ROUND = 'host observers, seed $(1): $(SUB) test-host SEED=$(1)' 'stories, seed $(1): $(SUB) test-stories SEED=$(1)'
nightly: SEED := $(or $(SEED),$(shell date +%s))
.PHONY: nightly
nightly: tools ## host observers and all stories three times in random order, beside four busy loops, 3,000 idle processes and a foreign plugin every 0.3 s (root)
	@go build -o bin/noise ./test/noise
	@bin/noise $(TOOLS_BIN)/cni/bridge test/steps.sh $(foreach n,1 2 3,$(call ROUND,$(SEED)$(n)))

.PHONY: test-rig
test-rig: tools tools-older tools-jaeger tools-promtool tools-helm debian-test ## everything else on the rig: backends, crashes, installation, containerd of before (root)
	$(TESTS) -p 1 -count=1 -timeout 60m $(RIGS)

.PHONY: test-long
test-long: ## what takes too long for .ci/run: kernels, a Kubernetes node, Windows, a release, fuzzing, soak (root; an hour and a half)
	@test/steps.sh 'kernels: $(SUB) test-kernels &' 'release: $(SUB) test-release' 'fuzzing: $(SUB) fuzz-explore FUZZTIME=5s' \
		'fuzzing of ETL: $(SUB) fuzz-etl' 'functions: test/own.sh $(SUB) test-functions' 'kernels: $(SUB) test-kernels' 'kubernetes: test/own.sh $(SUB) test-kubernetes' \
		'soak: test/own.sh $(SUB) test-soak' 'windows: test/own.sh $(SUB) test-windows'
	@# Fuzzing finds by chance, perhaps in code that a change did not touch: nothing that the change must fix.
	@if [ -d .cache/findings ]; then echo "fuzzing found these inputs; report them:"; find .cache/findings -type f; fi

.PHONY: test-all
test-all: OUTAGE := 5m
test-all: OVERLOAD := 5m
test-all: TENANTS := full
test-all: NEIGHBOURS := 10m
test-all: FILES := 600
test-all: SECRETS_TIME := 24h
test-all: ORDINARY := 500
test-all: POINTS := 100
test-all: FUNCTIONS := 100
test-all: IO := whole
test-all: STARTS := 100
test-all: FUZZTIME := 5m
test-all: CACHE := cold
test-all: test test-slow test-stories race test-release test-packages test-install test-rig test-crio test-nerdctl test-nested test-html test-queries test-alerts test-dashboard test-npd test-outage test-ordinary test-behind test-delays test-unexplained test-functions test-tenants test-overload test-drops test-neighbours test-files test-io test-secrets test-kubernetes test-fleet test-soak test-cnis test-cilium test-kernels test-starts test-clocks test-ways test-windows test-windows-packages fuzz fuzz-etl fuzz-long ## all of it, each in its long form, for a release (root, most of a day)

.PHONY: race
race: ## unit tests of packages that share memory between goroutines, under the race detector (needs a C compiler)
	CGO_ENABLED=1 $(PACKAGES) -race -short -timeout 30m $(RACE)
RACE ?= $(addprefix ./,$(sort $(dir $(shell grep -rlE --include=*.go --exclude=*_test.go --exclude=*_windows.go '\<go func|sync\.(Mutex|RWMutex)|sync/atomic' pkg | grep -v ^pkg/probe/))))

.PHONY: test-outage
test-outage: tools ## the endpoint is down for OUTAGE (20s), 200 pods come and go, cniscope is killed: nothing kept is lost (root)
	CNISCOPE_OUTAGE=$(OUTAGE) go test ./test/e2e -run '^TestNothingKeptIsLostInAnOutage$$' -count=1 -timeout 40m -v

.PHONY: test-contacts
test-contacts: tools ## every packet is seen while pods come and go: cniscope contacts its endpoint and nobody else, whatever its environment names (root)
	go test ./test/e2e -run '^TestItContactsNothingElse$$' -count=1 -timeout 10m -v

.PHONY: test-overload
test-overload: tools ## one plugin makes 200,000 events a second for OVERLOAD (10s) while 100 pods come and go: time goes on, it alone pays, it is said (root)
	CNISCOPE_OVERLOAD=$(OVERLOAD) go test ./test/e2e -run '^TestOverload$$' -count=1 -timeout 60m -v

.PHONY: test-ordinary
test-ordinary: tools tools-jaeger ## ORDINARY (60) ordinary pods, of which none may look broken (root)
	CNISCOPE_TEST_PODS=$(ORDINARY) go test ./test/e2e -run TestOrdinaryPods -count=1 -timeout 30m -v

.PHONY: test-behind
test-behind: tools ## lose 2 s at POINTS (20) random points behind an agent, anew each time (SEED=N: those of an earlier run): they are charged to the place, and each of 1,000 statements called certain is right (root)
	CNISCOPE_TEST_POINTS=$(POINTS) CNISCOPE_TEST_SEED=$(SEED) go test ./test/scenarios -run '^TestRandomPointsBehindTheAgent$$' -count=1 -timeout 40m -v
POINTS ?= 20

.PHONY: test-delays
test-delays: tools tools-older ## delay DELAYS (40) sandboxes of containerd 2.4 and 1.7 at random places of their start (SEED=N: those of an earlier run): cause and name are right each time (root)
	CNISCOPE_TEST_POINTS=$(DELAYS) CNISCOPE_TEST_SEED=$(SEED) go test ./test/scenarios -run '^TestRandomDelaysOfAStart' -count=1 -timeout 20m -v
DELAYS ?= 40

.PHONY: test-unexplained
test-unexplained: tools ## start PODS (1000), 30 at once: with the relay, p99 of what is unexplained of RunPodSandbox is up to 5 % (root)
	CNISCOPE_TEST_PODS=$(PODS) go test ./test/scenarios -run '^TestUnexplainedTimeOfStarts$$' -count=1 -timeout 40m -v
PODS ?= 1000

.PHONY: test-functions
test-functions: tools ## lose 2 s at FUNCTIONS (40) random functions of a Go agent or plugin (SEED=N: those of an earlier run): 95 % are named, none wrongly (root)
	CNISCOPE_TEST_POINTS=$(FUNCTIONS) CNISCOPE_TEST_SEED=$(SEED) go test ./test/scenarios -run '^TestRandomFunctions$$' -count=1 -timeout 40m -v
FUNCTIONS ?= 40

.PHONY: test-stops
test-stops: tools ## stop, trace and freeze a plugin, an agent and a lock's holder TIMES (30) times each: the verdict says so (root)
	CNISCOPE_TEST_TIMES=$(TIMES) go test ./test/scenarios -run '^TestWhoIsStoppedIsSaid$$' -count=1 -timeout 90m -v
TIMES ?= 30

.PHONY: test-tenants
test-tenants: tools ## hostile pods connect, run programs and forge calls while others come and go: nobody gets into another's trace (root; TENANTS=full: 15 minutes)
	CNISCOPE_TENANTS=$(TENANTS) go test ./test/tenants -count=1 -timeout 60m -v

.PHONY: test-drops
test-drops: TIMES = 2
test-drops: ## TIMES (2) pods each wait for what 21 kinds drop, IPv4 and IPv6, while 30 others talk: 95 % are named, none wrongly (root; TIMES=20: three minutes)
	CNISCOPE_TIMES=$(TIMES) test/own.sh go test ./pkg/probe/drops -run '^TestManyPods|^TestAFullTable' -count=1 -timeout 30m -v

.PHONY: lines
lines: ## count the lines of product, tables of data and tests
	@go run ./test/lines

.PHONY: structure
structure: ## measure the product's packages: calls against the main direction, and what is too long
	@go run ./test/structure

.PHONY: prose
prose: ## count the words of documents and comments, and the forbidden ones
	@go test ./docs -run '^TestProse$$' -v -count=1 | grep -v -e '^=== ' -e '^--- ' -e '^PASS' -e '^ok'

.PHONY: recordings-hash
recordings-hash: build ## print a hash of what `show` says of each recording, here and in the folders RECORDINGS: a restructuring leaves it as it is
	@for recording in $$(find docs examples pkg plugin $(RECORDINGS) -name '*.rec' -o -name '*.rec.gz' | sort); do \
		printf '%s %s\n' "$$(bin/cniscope show --format json "$$recording" 2>&1 | sha256sum | cut -c1-16)" "$$recording"; done
RECORDINGS ?=

.PHONY: outdated
outdated: ## direct requirements that are behind their newest version, of the program and of what builds a release
	@for module in . configs/release; do (cd $$module && go list -m -f '{{if not (or .Main .Indirect .Replace)}}{{.Path}}{{end}}' all | \
		xargs go list -m -e -u -f '{{with .Update}}{{.Path}} {{$$.Version}} -> {{.Version}}{{end}}' | sed '/^$$/d'); done

.PHONY: test-neighbours
test-neighbours: tools tools-older ## hostile connections to relay and metrics for NEIGHBOURS (20s): 2000 of any kind, then 4000 of each of seven manners by another user, then 40 that guess passwords; and a cniscope that is stopped (root)
	CNISCOPE_NEIGHBOURS=$(NEIGHBOURS) go test ./test/neighbours -count=1 -timeout 40m -v

.PHONY: test-files
test-files: ## look at recordings made by whoever wishes cniscope ill, of FILES MB unpacked (1): what is left out is said; FILES=600: memory and time, too (root, an hour)
	CNISCOPE_FILES=$(FILES) go test ./test/files -count=1 -timeout 3h -v

FUZZED := probe:FuzzDecode probe:FuzzCall pipeline:FuzzPipeline record:FuzzReader record:FuzzDecode config:FuzzParse cniconf:FuzzLoad baseline:FuzzParse spool:FuzzScan \
	relay:FuzzSpans text:FuzzClean redact:FuzzRedact redact:FuzzTokens doctor:FuzzLegacyTable doctor:FuzzNetworksAsLoaded install:FuzzImports windows/etw:FuzzDecode replay:FuzzTrace

.PHONY: test-io
test-io: ## every operation on a file of the spool, the installer, recordings and options fails once, and the power at each (IO=whole: all faults at all of them)
	IO=$(IO) go test ./pkg/disk/... ./pkg/spool ./pkg/install ./pkg/record ./pkg/config -run 'EachCall|GoesPastTheInterface' -count=1 -timeout 60m -v
IO ?= small

.PHONY: fuzz fuzz-explore fuzz-long
fuzz: ## fuzz what parses foreign input, FUZZTIME each (10s), and fail where something is found
	@set -e; for target in $(FUZZED); do test/fuzz.sh ./pkg/$${target%:*} $${target#*:} $(FUZZTIME); done

fuzz-explore: ## the same, but what is found is kept in .cache/findings for `make fuzz-found`, and fails nothing
	@set -e; for target in $(FUZZED); do test/fuzz.sh ./pkg/$${target%:*} $${target#*:} $(FUZZTIME) .cache/findings; done

.PHONY: fuzz-found
fuzz-found: ## what fuzz-explore found, as seeds of the tests: they fail until it is mended
	@test -d .cache/findings && cp -rv .cache/findings/pkg . && $(PACKAGES) -short $(PURE)

fuzz-long: ## fuzz timeline and judge with events in any order, for 10 minutes
	test/fuzz.sh ./pkg/pipeline FuzzPipeline 10m

.PHONY: mutants
mutants: MUTANTS ?= 100
mutants: SEED ?= $(shell date +%Y%m%d)
mutants: PACKAGES := pkg/judge pkg/active pkg/pods pkg/timeline pkg/timeline/losses.go pkg/trace pkg/pipeline pkg/probe/agents pkg/spool pkg/queue pkg/relay pkg/redact
mutants: ## make MUTANTS (100) small changes in PACKAGES, drawn by SEED (the date), and print those that no test notices
	go run ./test/mutants -n $(MUTANTS) -seed $(SEED) $(PACKAGES)

SECRETS_PAIRS ?= 1000000
.PHONY: test-secrets
test-secrets: ## SECRETS_PAIRS (1000000, or as many as SECRETS_TIME, 30s, gives time for) pairs of a configuration and a message that repeats its secret in some spelling: nothing of it leaves
	SECRETS_PAIRS=$(SECRETS_PAIRS) SECRETS_TIME=$(SECRETS_TIME) go test ./pkg/redact -run 'TestNoPartOfASecretLeaves|TestRealMessages' -count=1 -timeout 24h -v

.PHONY: words
words: ## write the list of words that may leave anew (needs Debian's scowl)
	go run ./test/words -scowl $(SCOWL) $$(test/words/folders.sh) > pkg/redact/words.txt.next
	mv pkg/redact/words.txt.next pkg/redact/words.txt
SCOWL ?= /usr/share/dict/scowl

.PHONY: golden
golden: ## write the expected output of the golden recordings anew, after a change that is meant
	go test ./plugin/cniscope ./pkg/metrics ./docs -run Golden -update
	go test ./pkg/windows/etw/etl -run Seed -update

.PHONY: lint
lint: tools-lint ## run the linters
	$(TOOLS_BIN)/golangci-lint run ./...
	cd configs/release && ../../$(TOOLS_BIN)/golangci-lint run ./...

##### the kernel side

.PHONY: generate
generate: debian-generate ## compile the BPF programs (clang), write the attributes' constants and tables
	go generate ./pkg/attr ./pkg/probe/kernel ./pkg/probe/drops

.PHONY: options
options: ## write cniscope.toml, docs/options.md and the chart's schema of options from pkg/config
	go generate ./pkg/config

.PHONY: drift
drift: generate options chart ## check that what is generated and committed is what the source gives
	git diff --exit-code --stat -- pkg/probe pkg/attr docs/spans.md docs/options.md configs/cniscope.toml examples/kubernetes configs/helm
	@# What builds a release requires what the program does.
	for module in . configs/release; do (cd "$$module" && GOWORK=off go mod tidy -diff) || exit; done

include test/bench/bench.mk
include test/kernels/kernels.mk
include test/soak/soak.mk
include pkg/probe/connector/connector.mk
include test/windows/windows.mk
include pkg/windows/etw/etw.mk
