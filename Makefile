# Weft's front door. Meson does the work; every command here is what CI runs as well.
# A comment after "##" is the line that bare `make` prints for its target.

PREFIX ?= /usr/local
# ARCH=arm64 makes deb, image and portable for it on another machine.
ARCH ?=
FOREIGN := $(if $(ARCH),$(filter-out $(shell dpkg --print-architecture 2>/dev/null),$(ARCH)))
SUFFIX := $(addprefix -,$(FOREIGN))
BUILD  ?= build$(SUFFIX)
# Seconds per fuzz target, and the target; the lab test to run.
S ?= 60
F ?=
T ?=
# Seconds at rest, and under load, of `make soak`.
SOAK_S ?= 3600
# Parts of the benchmark; all without it. Machines of the part "scale"; 2,000 without it.
PARTS ?=
NODES ?=
# Debian packages that the image has besides, such as libipsec-mb1.
IMAGE_PACKAGES ?=
# Q=1: `make test` runs only what needs no network namespace and takes seconds.
Q ?=
# FULL=1: `make test` also runs the tests that take longest, and what needs Kubernetes, torch 2,
# RCCL or an emulator of arm64.
FULL ?=

PYTHON  := /usr/bin/python3
PYTEST  := $(PYTHON) -m pytest
INSTALL := tools/install-packages

.DEFAULT_GOAL := help
.PHONY: help build programs test core quick demo lab soak san kube torch2 rccl arm64 foreign fuzz bench golden check tidy fmt docs install deb dist sbom image portable clean

help:
	@echo 'Weft: an encrypted overlay network for GPU clusters.'
	@echo
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/\1	\2/p' $(MAKEFILE_LIST) | \
	    while IFS='	' read -r name text; do printf '  make %-8s %s\n' "$$name" "$$text"; done
	@echo
	@echo 'docs/HACKING.md leads from a clone to a passing lab.'

build: ## compile; the program is build/weft
	@$(INSTALL) build
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) --prefix=$(PREFIX)
	ninja -C $(BUILD)

# For another machine not its tests, which take longer to compile.
programs:
ifeq ($(FOREIGN),)
	@$(MAKE) --no-print-directory build
else
	@$(MAKE) --no-print-directory foreign
	@tools/arm64 setup $(BUILD)
	ninja -C $(BUILD) weft weft-wg
endif

test: ## build and run the tests; Q=1 for unit tests and corpus replays only, FULL=1 for those that take longest, Kubernetes, torch 2, RCCL and arm64 too
	@$(INSTALL) build $(if $(Q),,run test deb)
	@$(MAKE) --no-print-directory build
	tools/in-reach tools/run-tests $(BUILD) $(if $(Q),--only unit corpus,$(if $(FULL),--full))

core: ## build src/core alone, run its tests and the example that needs nothing else
	@$(INSTALL) build
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) --prefix=$(PREFIX)
	ninja -C $(BUILD) core
	meson test -C $(BUILD) --no-rebuild --suite core --quiet

quick: ## the same as `make test Q=1`
	@$(MAKE) --no-print-directory test Q=1

demo: ## four nodes behind two NATs train a model over Weft; KEEP=1 leaves it up
	@$(INSTALL) build run test
	@$(MAKE) --no-print-directory build
	KEEP=$(KEEP) tools/in-reach $(PYTHON) test/lab/demo.py

lab: ## the tests in network namespaces; T=name for one
	@$(INSTALL) build run test
	@$(MAKE) --no-print-directory build
	WEFT_LAB_TRANSFER=$${WEFT_LAB_TRANSFER:-1073741824} WEFT_LAB_IDLE_S=$${WEFT_LAB_IDLE_S:-60} \
	    tools/in-reach $(PYTEST) -v test/lab $(if $(T),-k '$(T)')

soak: ## six nodes at rest for an hour, and under full load for another: nothing is found; SOAK_S=60 (seconds each)
	@$(INSTALL) build run test
	@$(MAKE) --no-print-directory build
	WEFT_SOAK_S=$(SOAK_S) tools/in-reach $(PYTEST) -v test/lab/health/test_soak.py

san: ## unit, corpus, interop and lab tests under ASan+UBSan, then under TSan
	@$(INSTALL) build run test
	tools/run-sanitizers

kube: ## a real Kubernetes API server for test/kube, built once into a cache; KUBE_MODERN=1, KUBE_KUBELET=1, KUBE_CONTROLLERS=1, KUBE_RENDER=1
	@$(INSTALL) kube
	tools/kube build

torch2: ## Debian 13's torch 2 for test/lab/jobs/test_torch2.py, built once into a cache
	@$(INSTALL) torch2
	tools/torch2 build

rccl: ## NCCL's code without a GPU for test/lab/jobs/test_rccl.py, unpacked once into a cache
	tools/rccl build

arm64: ## build for arm64 in build-arm64, run the tests of src/ in qemu-user; for deb, image, portable: ARCH=arm64
	@$(MAKE) --no-print-directory foreign ARCH=arm64
	@tools/arm64 setup build-arm64
	ninja -C build-arm64 weft weft-wg rooms
	meson test -C build-arm64 --no-rebuild $(foreach room,core host dataplane control cmd,--suite $(room)) --quiet --timeout-multiplier 4

# What a build for ARCH needs, where that is another one than this machine's.
foreign:
	@test -z '$(filter-out arm64,$(FOREIGN))' || \
	    { echo 'ARCH=$(ARCH): this can be built here for arm64, and for this machine' >&2; exit 2; }
	@test -z '$(FOREIGN)' || { $(INSTALL) build arm64 && tools/arm64 fetch; }

fuzz: ## fuzz one decoder or all of them; F=addr S=60 (seconds each)
	@$(INSTALL) build dev
	tools/run-fuzz $(S) $(F)

bench: ## the data plane beside wireguard-go in one run, relay, ciphers; tables and JSON
	@$(INSTALL) build run test
	@$(MAKE) --no-print-directory build
	ninja -C $(BUILD) test/bench/bench-aead test/bench/bench-store test/bench/scale/bench-scale \
	    test/bench/reconcile/bench-reconcile test/bench/bench-access test/bench/bench-access-own
	tools/in-reach $(PYTHON) test/bench/run.py $(if $(PARTS),--parts $(PARTS)) $(if $(NODES),--nodes $(NODES))

golden: ## rewrite test/golden from what the program says now; read the diff
	@$(INSTALL) build run test
	@$(MAKE) --no-print-directory build
	GOLDEN_REWRITE=1 tools/in-reach $(PYTEST) -q test/golden
	GOLDEN_REWRITE=1 meson test -C build -q fabric train-profile

check: ## what a change must pass besides its tests: style checkers, gcc and clang
	@$(INSTALL) build run test dev
	tools/run-checks

tidy: ## clang-tidy over all of src/
	@$(INSTALL) build dev
	tools/run-tidy

fmt: ## clang-format over all C files
	@$(INSTALL) test dev
	tools/format

docs: build ## rewrite the documents that are made from the code
	@$(INSTALL) test
	tools/gen-drops > docs/DROPS.md
	$(BUILD)/src/test-base-metrics --print > docs/METRICS.md
	$(BUILD)/src/test-health-finding --print > docs/HEALTH.md
	tools/gen-crds > deploy/kubernetes/crds.yaml
	tools/gen-crds --without-cel > deploy/kubernetes/crds-before-1.25.yaml
	tools/gen-finding-rules > deploy/monitoring/rules/findings.yml
	tools/gen-prometheus-rule > deploy/monitoring/kubernetes/prometheus-rule.yaml

deb: ## the Debian packages weft and weft-hub, in build/deb
	@$(INSTALL) build deb
	@$(MAKE) --no-print-directory foreign
	$(if $(FOREIGN),WEFT_DEB_ARCH=$(FOREIGN) )tools/make-deb

install: build ## install under PREFIX (/usr/local), below DESTDIR
	@meson configure $(BUILD) -Dprefix=$(PREFIX)
	DESTDIR='$(DESTDIR)' meson install -C $(BUILD) --quiet
	@test -n '$(DESTDIR)' || ! command -v systemd-sysusers >/dev/null || \
	    systemd-sysusers '$(CURDIR)/deploy/sysusers.d/weft.conf'
	@# A machine without systemd gets the same user.
	@test -n '$(DESTDIR)' || test "$$(id -u)" != 0 || getent passwd weft >/dev/null || \
	    useradd --system --user-group --no-create-home --home-dir /var/lib/weft \
	    --shell /usr/sbin/nologin weft

dist: ## the last commit as a source tarball, dist/weft-VERSION.tar.xz; the same bytes each time
	@$(INSTALL) dist
	tools/dist dist

sbom: build ## what is in it, with licences and checksums, in SPDX: dist/weft-VERSION.spdx.json
	@mkdir -p dist
	tools/sbom $(BUILD) > dist/weft-$$(tools/version).spdx.json

image: ## an OCI image of hub and agent: dist/weft-VERSION-image.tar; IMAGE_PACKAGES="..." for more
	@$(INSTALL) build image
	@$(MAKE) --no-print-directory programs
	tools/image $(BUILD) dist/weft-$$(tools/version)-image$(SUFFIX).tar $(IMAGE_PACKAGES)

portable: ## the program with all its libraries in one folder: dist/weft-VERSION-portable.tar.gz
	@$(INSTALL) build portable
	@$(MAKE) --no-print-directory programs
	tools/portable $(BUILD) dist/weft-$$(tools/version)-portable$(SUFFIX).tar.gz

clean: ## remove the build folders, and what was made for others in dist/
	rm -rf $(BUILD) build-* dist
