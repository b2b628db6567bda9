"""Decks, reading pages and the site, with their scripts, styles and templates."""
