"""The lines of a source that a message is about, marked, with a few around them."""

from collections.abc import Collection

from helpers.kernels.listing import Listing, listing
from helpers.simulator.compile.source_text import numbered_lines

AROUND = 2  # lines shown before and after each


def excerpt(code: str, file: str, lines: Collection[int]) -> Listing | None:
    """A listing of `lines` of a file, each with a few lines before and after it.

    Args:
        code: the source as the compiler got it; `#line` directives in it are followed.
        file: the file whose lines are meant.
        lines: numbers of the lines to mark; those that the file does not have are left out.
    """
    texts = {
        number: text
        for name, number, text in numbered_lines(code, file)
        if name == file and not text.lstrip().startswith("#line ")
    }
    marked = sorted({line for line in lines if line in texts})
    if not marked:
        return None
    last = max(texts)
    # What was expanded in place, such as an #include, leaves a gap in the numbers.
    source = "\n".join(texts.get(number, "") for number in range(1, last + 1))
    wanted = sorted(
        {
            number
            for line in marked
            for number in range(max(1, line - AROUND), min(last, line + AROUND) + 1)
        }
    )
    while len(wanted) > len(marked) and not texts.get(wanted[-1], "").strip():
        wanted.pop()
    while wanted[0] not in marked and not texts.get(wanted[0], "").strip():
        wanted.pop(0)
    whole = listing(source, wanted[0], wanted[-1], title=file, marked=marked)
    return Listing(file, "", (), tuple(line for line in whole.lines if line.number in set(wanted)))
