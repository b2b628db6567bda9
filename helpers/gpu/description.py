"""A short table of facts that prints as text and shows as HTML in a notebook."""

from ..show import Shows, render


class Description(Shows):
    """Facts as (label, value) rows."""

    def __init__(self, rows: list[tuple[str, str]]):
        self.rows = rows

    def __getitem__(self, label: str) -> str:
        """The value beside a label; KeyError if there is none."""
        return dict(self.rows)[label]

    def __str__(self) -> str:
        width = max(len(label) for label, _ in self.rows)
        return "\n".join(f"{label:<{width}}  {value}" for label, value in self.rows)

    __repr__ = __str__

    def html(self):
        return render("description.html", rows=self.rows)
