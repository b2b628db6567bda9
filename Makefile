# The two commands of this project are `make lab` and `make test`; `make` alone lists the rest.
# Both install what they need into .venv first, which a second call does not repeat.
# `make test ARGS="-k device"` and `make lab ARGS="--port 9000"` pass options on.

.DEFAULT_GOAL := help
.PHONY: help lab test bench slides site chapter lists hub rehearse grade lint format clean

BIN := .venv/bin
ARGS ?=

# The first Python that all packages have wheels for; `make lab PYTHON=python3.13` names one.
PYTHON ?= python3 python3.13 python3.12 python3.11 python3.14
SUITS = import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))
install = @for python in $(PYTHON) ""; do \
	"$$python" -c "$(SUITS)" 2>/dev/null && break; \
done; \
if [ -z "$$python" ]; then \
	echo "Python 3.11 to 3.14 is needed, and none of these commands is one: $(PYTHON)." >&2; exit 1; \
fi; \
"$$python" tools/install.py $(1)

help: ## list the commands
	@sed -n 's/^\([a-z]*\):.*## /make \1	/p' Makefile | expand -t 16

lab: ## open the chapters in JupyterLab
	$(call install,lab)
	@$(BIN)/python tools/lab.py $(ARGS)

test: ## run all tests
	$(call install,lab hub test)
	@$(BIN)/python -m pytest --numprocesses auto --dist loadgroup --no-loadscope-reorder $(ARGS); status=$$?; \
	[ $$status -ne 5 ] || echo "pytest found no test to run." >&2; exit $$status

bench: ## time the ladder against PyTorch on a GPU, or the simulator against plain NumPy
	$(call install,lab test bench)
	@if [ -d tests/benchmarks ]; then $(BIN)/python -m tests.benchmarks $(ARGS); \
	else echo "There are no benchmarks yet: tests/benchmarks is missing."; fi

slides: ## make a deck of every chapter, for a lecture with no network
	$(call install,lab)
	@$(BIN)/python -m helpers.slides $(ARGS)

site: ## make a web site of the course, its decks among it: make site ARGS="--to DIR"
	$(call install,lab)
	@$(BIN)/python -m helpers.slides.pages.site $(ARGS)

chapter: ## begin a chapter: make chapter NAME=12_demo
	$(call install,lab)
	@$(BIN)/python tools/chapter.py "$(NAME)"

lists: ## write the lists of chapters in README, TEACHING and chapter 00 from the notebooks
	$(call install,lab)
	@$(BIN)/python tools/lists.py $(ARGS)

grade: ## check the exercises of a class: make grade DIR=path ARGS="--csv grades.csv"
	$(call install,lab)
	@$(BIN)/python -m helpers.exercises.grade $(if $(DIR),"$(DIR)") $(ARGS)

hub: ## serve a class through JupyterHub
	$(call install,lab hub)
	@exec $(BIN)/python tools/hub/serve.py --config=tools/hub/jupyterhub_config.py $(ARGS)

rehearse: ## let ten students at once run chapter 07 through a JupyterHub
	$(call install,lab hub)
	@$(BIN)/python tools/hub/rehearsal.py $(ARGS)

lint: ## check style, and the order of layers
	$(call install,lab test)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/lint-imports --no-cache --no-logo

format: ## put the style right
	$(call install,lab test)
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

clean: ## remove .venv and everything that was made
	rm -rf .venv build slides site .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
