"""Plausible wrong answers to the exercises of chapters 06 to 09."""

from __future__ import annotations

from exercise_answers import Wrong

WRONG: dict[str, tuple[Wrong, ...]] = {}
