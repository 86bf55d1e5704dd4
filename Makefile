SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
STATICCHECK := go run honnef.co/go/tools/cmd/staticcheck@v0.8.2
SDK_FILES   := abort,ask_user,builtin_tools,byok_bearer_token_provider,client,client_api,client_lifecycle,client_options,commands_and_elicitation,connection_token,error_resilience,event_fidelity,hooks,multi_client,pending_work_resume,permissions,rpc_event_log,rpc_queue,session,session_config,streaming_fidelity,suspend,system_message_sections,system_message_transform,tool_results,tools
# The race detector leaves out the code that is translated from C, and the C library under it: they share no data with Go code, and take most of the time.
RACE        := $(shell command -v $${CC:-gcc} >/dev/null 2>&1 && echo -race $(patsubst %,'-gcflags=modernc.org/%=-race=false',sqlite/lib libc/... memory))
SLOW        := bench|cmd/abide|audit|daemon(/backup)?|difftest|eventlog/sqlite|memory/worker|approval/(protect|scope)|killtest|process|upgradetest|tool/(bash|files|guard)|workspace(/bridge|/local|/local/walk)?
MODULES     := $(patsubst %/go.mod,%,$(shell find . -name go.mod -not -path './.git/*'))
each         = for module in $(MODULES); do (cd $$module; $(1)); done
fuzz_targets = for dir in $$(go list -f '{{.Dir}}' ./...); do sed -n "s|^func \(Fuzz[A-Za-z0-9_]*\)(.*|$$dir \1|p" /dev/null $$(find $$dir -maxdepth 1 -name '*_test.go'); done
fuzzed       = $(fuzz_targets) | xargs -r -L 1 -P $$(getconf _NPROCESSORS_ONLN) \
               bash -c 'go test -run "^$$" -fuzz "^$$1$$" -fuzztime $(1) -fuzzminimizetime 10x -parallel 1 "$$0"'

.PHONY: help build install man run test quick lint fmt bench fuzz fuzz-short bench-sdk conformance soak web web-check test-web screens clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## make bin/abide, one static binary
	CGO_ENABLED=0 go build -trimpath -o bin/abide ./cmd/abide

PREFIX ?= $(HOME)/.local

install: build ## install abide and its manual pages below PREFIX (~/.local)
	install -d '$(DESTDIR)$(PREFIX)/bin' '$(DESTDIR)$(PREFIX)/share/man/man1'
	install -m 755 bin/abide '$(DESTDIR)$(PREFIX)/bin/abide'
	bin/abide man --dir '$(DESTDIR)$(PREFIX)/share/man/man1'
	@case ":$$PATH:" in *':$(PREFIX)/bin:'*) ;; *) echo 'Add $(PREFIX)/bin to PATH to run it as: abide' ;; esac

man: build ## make the manual pages in bin/man
	bin/abide man --dir bin/man

run: build ## build, say hello to the model that needs no key, and show what to try next
	bin/abide run -p 'Hello! What can you do?'
	@printf '%s\n' '' 'Try next:' \
	  '  bin/abide demo                          # half a minute: nothing is lost, not even by kill -9' \
	  "  bin/abide run -p 'Reply with exactly: HELLO'" \
	  "  bin/abide run --output-format json -p 'Ask me: which colour do you like?'" \
	  '  bin/abide sessions list' \
	  '  bin/abide --help'

test: lint ## check the code and run all tests with the race detector
	@[ -n "$(RACE)" ] || echo 'There is no C compiler ($${CC:-gcc}), so the tests run without the race detector.'
	$(call each,go test $(RACE) -vet=off -timeout 40m ./...)

quick: ## go vet, and the tests that take little time
	go vet ./...
	go test -short -vet=off $$(go list ./... | grep -vE '/($(SLOW))$$')

lint: ## gofmt, go vet, staticcheck
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "run make fmt, gofmt differs in:" $$unformatted; exit 1; fi
	$(call each,go vet ./... && $(STATICCHECK) ./...)

fmt: ## format the code
	gofmt -w .

bench: build ## measure a turn beside the least that it could cost
	CGO_ENABLED=0 go run ./bench -abide bin/abide -dir bin

fuzz: ## fuzz every decoder for 10 minutes
	$(call each,$(call fuzzed,10m))

fuzz-short: ## fuzz every decoder with a few thousand inputs
	$(call each,$(call fuzzed,4000x))

conformance: build ## run the end-to-end tests of the Copilot SDK against bin/abide, with the kit in the folder KIT
	go -C $(KIT) run ./cmd/conformance -runtime $(CURDIR)/bin/abide -generic -files '$(SDK_FILES)' -v

bench-sdk: build ## measure the protocol through the real Go SDK beside the engine alone
	go -C sdk run ./bench -abide $(CURDIR)/bin/abide

soak: export ABIDE_SEED := random
soak: ## new random numbers for every test that draws some; 10,000 turns in one session; kill the real program at random for 10 minutes, and 200 clients 10 times each
	RAPID_CHECKS=2000 go test -timeout 60m $$(grep -rl --include='*_test.go' pgregory.net/rapid internal | xargs -n 1 dirname | sort -u | sed 's|^|./|')
	ABIDE_TURNS=10000 go test -timeout 60m -run 'Soak' -v ./internal/session
	ABIDE_SOAK=10m go test -race -timeout 60m -run 'Random|Relay|Stop' -v ./internal/test/killtest
	ABIDE_SOAK=10m go test -race -timeout 120m -run 'Matrix' -v ./cmd/abide
	ABIDE_CROWD=200x10 go -C sdk test -race -timeout 60m -run 'Crowd|EveryEvent' -v .
	$(MAKE) fuzz-short

web/node_modules: web/package-lock.json
	npm --prefix web ci --no-audit --no-fund --silent
	@touch $@

web: web/node_modules ## build the console in internal/server/console/dist from its sources in web
	cd web && node node_modules/typescript/bin/tsc --noEmit && node build.mjs

web-check: web/node_modules ## check that internal/server/console/dist is what the sources give, byte for byte
	cd web && node node_modules/typescript/bin/tsc --noEmit && node build.mjs ../bin/console
	diff -r bin/console internal/server/console/dist

test-web: ## test the console in Chromium, against bin/abide
	@if ! command -v npm >/dev/null || ! command -v chromium >/dev/null; then echo 'test-web is skipped: it needs npm and chromium.'; \
	else $(MAKE) --no-print-directory build web/node_modules && cd web && node --test --test-concurrency=1 --test-reporter=spec test/console.test.mjs; fi

screens: build web/node_modules ## make the pictures of the console in docs/screens
	cd web && node test/screens.mjs ../docs/screens

clean: ## remove what build made
	rm -rf bin
