"""The nbconvert exporters: `--to offline_slides` and `--to offline_page`."""

from __future__ import annotations

from pathlib import Path

from nbconvert.exporters import Exporter
from nbformat import NotebookNode
from traitlets import Integer, Unicode, default

from .chapter import chapter
from .deck import deck
from .execute import execute
from .page import reading_page


class _Offline(Exporter):
    """One HTML file of a notebook, executed first, that asks no host for anything."""

    output_mimetype = "text/html"
    timeout = Integer(300, help="Seconds that a cell may take.").tag(config=True)
    file_extension = Unicode(".html")

    @default("template_file")
    def _no_template(self):
        return ""

    def from_notebook_node(
        self, nb: NotebookNode, resources: dict | None = None, **kwargs
    ) -> tuple[str, dict]:
        """The page of a notebook, and what nbconvert wants to know of it.

        Raises:
            ExportError: the notebook cannot be executed or shown; names the cell.
        """
        resources = self._init_resources(resources or {})
        metadata = resources.get("metadata", {})
        folder, name = Path(metadata.get("path") or "."), metadata.get("name") or "notebook"
        executed = execute(nb, str(folder / f"{name}.ipynb"), folder, self.timeout)
        return self.render(executed, name, folder), resources

    def render(self, executed, name: str, folder: Path) -> str:
        raise NotImplementedError


class OfflineSlides(_Offline):
    """A deck of slides."""

    export_from_notebook = "Slides that need no network"

    def render(self, executed, name: str, folder: Path) -> str:
        return deck(chapter(executed, name, folder))


class OfflinePage(_Offline):
    """A page to read."""

    export_from_notebook = "Page that needs no network"

    def render(self, executed, name: str, folder: Path) -> str:
        return reading_page(chapter(executed, name, folder, whole=True))
