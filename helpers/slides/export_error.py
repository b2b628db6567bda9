"""What an export stops with."""

from __future__ import annotations

from nbconvert.utils.exceptions import ConversionException


class ExportError(ConversionException):
    """A notebook that cannot be exported; the message names it, the cell and the error."""
