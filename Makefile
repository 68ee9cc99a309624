# Targets are listed by `make help`. Only Go and make are needed for build, run and test.
GO       ?= go
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  := -s -w -X main.version=$(VERSION)
# Without the tag gRPC brings trace pages, and html/template with them: 3 MB resident that nothing calls (google.golang.org/grpc, trace_withtrace.go).
TAGS     := grpcnotrace
CONTROLLER_GEN := sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.1.4
# Not hack/kube/programs: vet would compile Kubernetes, which takes minutes.
MODULES  := hack/ui hack/protogen hack/csiaddons hack/packages hack/chart
CORPUS   ?= $(or $(DRIVEBAY_CORPUS),../shared/corpus)
export CGO_ENABLED ?= 0

.DEFAULT_GOAL := build
.PHONY: help build run test test-long test-race hammer test-root test-addons test-ui test-packages test-chart lab lab-volumes lab-long kube kube-api kube-scale fuzz assess bench lint generate image packages clean need-go

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1|\2/p' Makefile | column -t -s '|'

need-go:
	@command -v $(GO) >/dev/null || { echo 'make: Go 1.26 or newer is needed and "$(GO)" is not in PATH: see README.md, "What you need"' >&2; exit 1; }

build: need-go ## build bin/drivebay, static
	$(GO) build -trimpath -tags $(TAGS) -ldflags '$(LDFLAGS)' -o bin/drivebay ./cmd/drivebay

run: build ## run the daemon: on spare drives, else as root on loop devices, else on a simulated rack (ctrl-c stops it)
	@$(GO) build -o bin/rack ./hack/rack
	@exec bin/rack ./bin/drivebay

# The package that takes longest is begun first: the others run beside it. The tests allocate much and keep little: a
# seventh of their time was garbage collection. Less so under the race detector, which multiplies the memory.
test test-long: export GOGC ?= 400
test-race: export GOGC ?= 200
# Some packages wait for real daemons most of the time: more of them than processors run at once.
test test-long test-race: AT_ONCE = -p $$(n=$$(nproc); echo $$((n < 4 ? 4 : n)))

test: need-go ## the fast tests: no root, no network, no C compiler; of the kill points, a fixed sample
	$(GO) test $(AT_ONCE) -timeout 20m ./volume ./...

test-long: need-go ## the same, killed at every point (build tag long)
	$(GO) run ./hack/tier -name long -skips -slow 10 -min 1000 -- -tags long $(AT_ONCE) -timeout 30m ./volume ./...

test-race: need-go ## the same as test with the race detector and fewer kill points (needs a C compiler)
	CGO_ENABLED=1 $(GO) run ./hack/tier -name race -skips -slow 30 -min 1000 -- -race $(AT_ONCE) -timeout 30m ./volume ./...

hammer: need-go ## random operations against a model of every acknowledged byte: 25,000 steps, three minutes at most (DRIVEBAY_HAMMER_TIME=1h DRIVEBAY_HAMMER_STEPS=1000000)
	DRIVEBAY_HAMMER_TIME=$(or $(DRIVEBAY_HAMMER_TIME),3m) DRIVEBAY_HAMMER_STEPS=$(or $(DRIVEBAY_HAMMER_STEPS),25000) \
	DRIVEBAY_HAMMER_WORKERS=$(or $(DRIVEBAY_HAMMER_WORKERS),$(shell nproc)) $(GO) test -count=1 -timeout 24h -v -run 'TestHammer$$' ./volume

# One package after the other: an engine finds the volumes of every loop device that there is.
test-root: need-go ## tests on loop devices and the real kernel (needs root)
	$(GO) run ./hack/tier -name root -min 5 -- -tags root -p 1 -timeout 20m -run Root ./...

# DRIVEBAY_PICTURES=$$PWD/docs writes the pictures of docs/page.md; npm fetches axe-core once (DRIVEBAY_AXE=FILE: that one).
test-ui: need-go ## the page in headless Chromium, on a simulated rack (needs chromium and npm)
	$(GO) run ./hack/tier -name ui -dir hack/ui -min 17 -- -timeout 10m .

test-addons: need-go ## the daemon against the released programs of CSI-Addons (needs root; builds them from their modules)
	$(GO) run ./hack/tier -name addons -dir hack/csiaddons -min 6 -- -timeout 30m .

# With SHORT=1 the tests of the lab try fewer cases that differ little, and these are left out: the commands of docs/lab.md and
# the Debian package; of volumes, the longest enumerations of what can end a move or a creation, which the simulator has in full.
LAB_LONGEST     = LabPage|LabPackage
VOLUMES_LONGEST = LabVolumeEvacuateSteps|LabVolumeEvacuateDied|LabVolumeEvacuateSpareDied|LabVolumeKilled

lab: need-go ## tests on emulated machines whose hardware breaks (docs/lab.md)
	$(GO) run ./hack/lab build
	$(GO) run ./hack/tier -name lab -min 20 -- -tags lab -timeout 60m -parallel 3 -run Lab -skip 'LabVolume|LabLong$(if $(SHORT),|$(LAB_LONGEST))' $(if $(SHORT),-short) ./hack/lab/suite
	$(if $(SHORT),@echo 'left out: $(LAB_LONGEST) and cases of the others')

# With DRIVEBAY_LAB_UNTIL, in seconds since 1970, no test is begun after that time, and they are in random order.
lab-volumes: need-go ## the same for volumes: real LVM, csi-sanity, power cuts
	$(GO) run ./hack/lab build
	$(GO) run ./hack/tier -name lab-volumes $(if $(DRIVEBAY_LAB_UNTIL),-skips -min 10,-min 20) -- -tags lab -timeout 60m -parallel 3 $(if $(DRIVEBAY_LAB_UNTIL),-shuffle on) -run LabVolume $(if $(SHORT),-short -skip '$(VOLUMES_LONGEST)') ./hack/lab/suite
	$(if $(SHORT),@echo 'left out: $(VOLUMES_LONGEST) and cases of the others')

# DRIVEBAY_LAB_LONG adds backings and steps to tests of volumes only.
lab-long: need-go ## the same as lab-volumes with nothing left out, every backing, every step of a move; and replication for long (over two hours)
	$(GO) run ./hack/lab build
	DRIVEBAY_LAB_LONG=1 $(GO) run ./hack/tier -name lab-long -min 5 -- -tags lab -timeout 4h -parallel 2 -run 'LabVolume|LabLong' ./hack/lab/suite

# SHORT=1 leaves out the specs of Kubernetes that it calls slow or of a feature.
kube: need-go ## the chart in a real Kubernetes cluster of one node, with Kubernetes' own storage tests (needs root; builds Kubernetes once: CONTRIBUTING.md)
	$(GO) run ./hack/kube build
	$(GO) run ./hack/tier -name kube -min 10 -- -tags kube -timeout 40m $(if $(SHORT),-short) -run Kube ./hack/kube/suite

# SHORT=1 leaves out measurements, and waits that are long.
kube-api: need-go ## the objects of Kubernetes against a real API server, without nodes (builds Kubernetes once: CONTRIBUTING.md)
	$(GO) run ./hack/tier -name kube-api -min $(if $(SHORT),73,76) -- -tags kube -timeout 60m -run Kube $(if $(SHORT),-skip 'KubeAPIMemory|KubeAPIObjects/a_drive_that_comes_and_goes|KubeAPIRequests/replace') ./hack/kube/apisuite

kube-scale: need-go ## the controller with 100,000 objects against a real API server: time and memory (needs 8 GiB)
	$(GO) run ./hack/tier -name kube-scale -min 1 -- -tags kube -timeout 30m -v -run TestScale ./hack/kube/apisuite

fuzz: need-go ## a short run of every fuzz target (FUZZTIME=5000x, or 30s; FUZZ=FuzzDriver for one)
	$(GO) run ./hack/fuzz -time $(or $(FUZZTIME),5000x) -target '$(FUZZ)'

assess: build ## judge the recorded fleet and print the table
	./bin/drivebay assess --table $(CORPUS)/fleet-x.jsonl.gz

bench: build ## the budgets, as a table
	$(GO) run ./hack/bench

lint: need-go ## gofmt, vet, staticcheck; govulncheck where its database can be reached
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofmt: $$out" >&2; exit 1; fi
	$(GO) vet ./... && $(GO) vet -tags root,lab,long,kube ./...
	for m in $(MODULES); do $(GO) -C $$m vet ./... || exit 1; done
	$(GO) run $(STATICCHECK) -tags root,lab,long,kube ./...
	@out=$$($(GO) run $(GOVULNCHECK) ./... 2>&1) || case "$$out" in \
	*'no such host'*|*'connection refused'*|*'i/o timeout'*) echo 'govulncheck: its database cannot be reached from here: not run' >&2 ;; \
	*) echo "$$out" >&2; exit 1 ;; esac

generate: need-go ## write the generated code and pages anew
	$(GO) -C hack/protogen run . ../../addons healer/healer.proto
	$(GO) run $(CONTROLLER_GEN) object crd paths=./api/... output:crd:dir=deploy/chart/drivebay/crds
	$(GO) run ./cmd/drivebay docs rules >docs/health-rules.md
	$(GO) run ./cmd/drivebay docs conditions >docs/volume-conditions.md
	$(GO) run ./cmd/drivebay docs repairs >docs/repairs.md
	$(GO) run ./cmd/drivebay docs usage >docs/drive-usage.md
	$(GO) run ./cmd/drivebay docs events >docs/events.md
	$(GO) run ./cmd/drivebay docs cli >docs/cli.md
	$(GO) run ./cmd/drivebay docs config >examples/drivebay.yaml
	$(GO) run ./hack/thirdparty >THIRD_PARTY
	$(GO) test -count=1 -run OpenAPI ./internal/api -update
	$(GO) test -count=1 -run TestArchitectureDiagrams . -update
	$(GO) test -count=1 -run TestScreens ./cmd/drivebay -update
	$(GO) -C hack/chart test -count=1 -run TestGolden . -update

image: ## build the container image (needs docker, podman or buildah)
	@engine=$$(command -v docker podman 2>/dev/null | head -n 1); \
	if [ -z "$$engine" ]; then echo 'make image: no docker or podman here; `go test ./deploy/...` proves the list of files without one' >&2; exit 1; fi; \
	"$$engine" build --build-arg VERSION=$(VERSION) -t drivebay:$(VERSION) .

packages: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
packages: build ## build bin/packages/*.deb and *.rpm, the same bytes for the same commit
	$(GO) -C hack/packages run . -version '$(VERSION)' -arch $$($(GO) env GOARCH)

test-packages: need-go ## what the packages contain, byte for byte the same twice; lintian, dpkg and rpm look at them where they are installed
	$(GO) run ./hack/tier -name packages -dir hack/packages -min 5 -- -timeout 20m .

test-chart: need-go ## the Helm chart: lint, schema, rights, and that what it renders is committed
	$(GO) run ./hack/tier -name chart -dir hack/chart -min 5 -- -timeout 20m .

clean: ## remove what was built
	rm -rf bin .cache
