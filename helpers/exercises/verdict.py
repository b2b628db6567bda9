"""What a check says: its steps, and the student's lines that matter, as HTML and as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from ..kernels.listing import Listing, listing

PASSED, FAILED, NOT_REACHED = "passed", "failed", "not reached"
WIDTH = 100
_AROUND = 3  # lines shown before and after a marked one
_NEAR = 8  # marked lines as close as this share an excerpt
_SIGNS = {PASSED: "✓", FAILED: "✗", NOT_REACHED: "·"}

_STYLE = """
.kernel-verdict {
  --kv-text: var(--jp-content-font-color1, var(--vscode-editor-foreground, #1f2328));
  --kv-faint: var(--jp-content-font-color2, #6a737d);
  --kv-line: var(--jp-border-color2, rgba(128, 128, 128, 0.35));
  --kv-good: light-dark(#1a7f37, #56d364);
  --kv-bad: light-dark(#c62828, #ff7b72);
  color-scheme: light; color: var(--kv-text);
  border: 1px solid var(--kv-line); border-left: 4px solid var(--kv-bad); border-radius: 4px;
  padding: 8px 12px; margin: 4px 0; max-width: 60rem;
  font-family: var(--jp-content-font-family, system-ui, sans-serif); line-height: 1.5;
}
[data-jp-theme-light="false"] .kernel-verdict, .vscode-dark .kernel-verdict { color-scheme: dark; }
.kernel-verdict.kv-passed { border-left-color: var(--kv-good); }
.kernel-verdict .kv-head { font-weight: 600; margin: 0 0 4px 0; }
.kernel-verdict ol { list-style: none; margin: 0; padding: 0; }
.kernel-verdict li { display: flex; gap: 0.6em; margin: 0; }
.kernel-verdict li > .kv-sign { width: 1em; text-align: center; font-weight: 700; flex: none; }
.kernel-verdict li > .kv-name { width: 5.5em; flex: none; font-weight: 600; }
.kernel-verdict li > .kv-said { min-width: 0; overflow-wrap: anywhere; }
.kernel-verdict .kv-step-passed > .kv-sign { color: var(--kv-good); }
.kernel-verdict .kv-step-failed > .kv-sign, .kernel-verdict .kv-step-failed > .kv-name {
  color: var(--kv-bad);
}
.kernel-verdict .kv-step-not-reached { color: var(--kv-faint); }
.kernel-verdict .kv-step-not-reached > .kv-name { font-weight: 400; }
.kernel-verdict .kv-todo { margin: 6px 0 4px 0; }
.kernel-verdict pre { margin: 4px 0; white-space: pre-wrap; font-size: 0.9em; color: inherit; }
"""


@dataclass(frozen=True)
class Step:
    """One step of a check.

    Attributes:
        name: `compiles`, `right`, `no race`, `goal` or `time`.
        state: `passed`, `failed` or `not reached`.
        message: what was seen; empty if not reached.
    """

    name: str
    state: str
    message: str = ""


@dataclass(frozen=True, repr=False)
class Verdict:
    """The outcome of a check; shows itself in a notebook and prints as text.

    Attributes:
        exercise: its name.
        title: its title.
        steps: what was looked at, in order; the first that fails is the last one reached.
        todo: what to try next; may be empty.
        lines: numbers of the lines of the answer that matter.
        source: the answer's text.
        log: what the compiler said, whole.
        printed: what the kernel printed.
    """

    exercise: str
    title: str
    steps: tuple[Step, ...]
    todo: str = ""
    lines: tuple[int, ...] = ()
    source: str = ""
    log: str = ""
    printed: str = ""

    @property
    def passed(self) -> bool:
        """Whether no step failed and all were reached."""
        return all(step.state == PASSED for step in self.steps)

    @property
    def failed(self) -> Step | None:
        """The step that failed."""
        return next((step for step in self.steps if step.state == FAILED), None)

    @property
    def line(self) -> int | None:
        """The first of the lines that matter."""
        return self.lines[0] if self.lines else None

    @property
    def excerpts(self) -> tuple[Listing, ...]:
        """The lines that matter, marked, with a few around them."""
        total = len(self.source.rstrip("\n").split("\n"))
        marked = sorted({n for n in self.lines if 1 <= n <= total})
        groups: list[list[int]] = []
        for number in marked:
            if groups and number - groups[-1][-1] <= _NEAR:
                groups[-1].append(number)
            else:
                groups.append([number])
        return tuple(
            listing(
                self.source,
                max(1, group[0] - _AROUND),
                min(total, group[-1] + _AROUND),
                title=f"{self.exercise}.cu",
                detail=_lines(group),
                marked=group,
            )
            for group in groups
        )

    def _head(self) -> str:
        if self.passed:
            return f"{self.exercise}: solved"
        return f"{self.exercise}: not yet"

    def _repr_html_(self) -> str:
        steps = "".join(
            f'<li class="kv-step-{step.state.replace(" ", "-")}">'
            f'<span class="kv-sign" role="img" aria-label="{step.state}">'
            f"{_SIGNS[step.state]}</span>"
            f'<span class="kv-name">{step.name}</span>'
            f'<span class="kv-said">{escape(step.message)}</span></li>'
            for step in self.steps
        )
        parts = [f'<p class="kv-head">{escape(self._head())}</p><ol>{steps}</ol>']
        if self.todo:
            parts.append(f'<p class="kv-todo">{escape(self.todo)}</p>')
        parts += [excerpt._repr_html_() for excerpt in self.excerpts]
        for name, text in (("The compiler's log", self.log), ("Printed", self.printed)):
            if text:
                parts.append(
                    f"<details><summary>{name}</summary><pre>{escape(text)}</pre></details>"
                )
        role, state = ("status", " kv-passed") if self.passed else ("alert", "")
        return (
            f'<style>{_STYLE}</style><div class="kernel-verdict{state}" role="{role}">'
            f"{''.join(parts)}</div>"
        )

    def __repr__(self) -> str:
        rows = [self._head()]
        for step in self.steps:
            first = f"  {_SIGNS[step.state]} {step.name:<9}"
            rows.append(
                textwrap.fill(f"{first} {step.message}".rstrip(), WIDTH, subsequent_indent=" " * 14)
            )
        if self.todo:
            rows.append(
                textwrap.fill(self.todo, WIDTH, initial_indent="  ", subsequent_indent="  ")
            )
        rows += [repr(excerpt) for excerpt in self.excerpts]
        if self.printed:
            rows.append(f"Printed:\n{self.printed.rstrip()}")
        return "\n".join(rows)


def _lines(numbers: Iterable[int]) -> str:
    numbers = [str(n) for n in numbers]
    if len(numbers) == 1:
        return f"line {numbers[0]}"
    return f"lines {', '.join(numbers[:-1])} and {numbers[-1]}"
