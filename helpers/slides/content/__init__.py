"""A chapter's cells as HTML: prose, code, formulas, outputs, widgets."""
