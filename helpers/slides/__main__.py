"""`python -m helpers.slides`: make the decks."""

from .build import main

raise SystemExit(main())
