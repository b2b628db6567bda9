"""What axe-core finds in a page: rules of WCAG and of good practice that a machine can judge."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe

_GRAVE = ("serious", "critical")


def serious(page, context: str | list | dict | None = None) -> list[str]:
    """The serious and critical findings in one of Playwright's pages, a line each.

    Args:
        page: as it is now; what is hidden is not judged.
        context: a part of it, as axe-core takes it; the whole, if left out.
    """
    found = Axe().run(page, context).response["violations"]
    return [
        f"{one['id']}: {one['help']}, {len(one['nodes'])} times, first at "
        f"{' '.join(map(str, one['nodes'][0]['target']))}: {one['nodes'][0]['html'][:160]}"
        for one in found
        if one["impact"] in _GRAVE
    ]
