"""What stops a launch: the simulator's one exception type, and an interrupt."""


class Headlined:
    """An exception whose message says all that its reader needs; to inherit from first.

    In a notebook it is shown as a panel in place of a traceback (`helpers.panels.notebook`).

    Attributes:
        headline: what stands above the message.
        code, file: the source that it speaks of and what that is called, empty if there is none.
    """

    headline = "This call cannot work"
    code = file = ""


class SimulatorError(Headlined, RuntimeError):
    """A launch that the simulator refuses or has to stop.

    `kind` names the sort of fault in one word, so that callers and tests need not parse the
    message: `compile`, `launch`, `argument`, `unsupported`, `out_of_bounds`, `misaligned`,
    `uninitialised`, `barrier`, `endless_loop`, `race`, `async`, `trap`, `assert`.
    `line` is the line of the caller's source where it happened, or None. `code` is that source
    and `file` what it is called, both empty where no source is at hand; `log` is the compiler's.
    """

    log = ""

    def __init__(self, kind: str, message: str, line: int | None = None):
        super().__init__(message)
        self.kind, self.line = kind, line


class Interrupted(Headlined, KeyboardInterrupt):
    """A launch that the user interrupted; `line`, `code` and `file` as for a SimulatorError."""

    def __init__(self, message: str, line: int | None = None):
        super().__init__(message)
        self.line = line
