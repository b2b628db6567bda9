"""Chapters as files that need no network and no kernel: decks of slides, and pages to read.

    jupyter nbconvert --to offline_slides notebooks/03_tiling.ipynb
    jupyter nbconvert --to offline_page notebooks/03_tiling.ipynb
    python -m helpers.slides                # every chapter into slides/, with a start page
    python -m helpers.slides.pages.site     # a web site of the course into site/, decks and all

The notebook is executed first. What a deck shows is chosen by the cells' own metadata: the
slideshow type, `source_hidden`, and the tags `hide-input`, `hide-output` and `notes`.

Nothing is imported here: what runs in the kernel of a notebook is spared nbconvert.
"""
