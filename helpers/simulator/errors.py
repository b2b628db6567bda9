"""The simulator's one exception type."""


class SimulatorError(RuntimeError):
    """A launch that the simulator refuses or has to stop.

    `kind` names the sort of fault in one word, so that callers and tests need not parse the
    message: `compile`, `launch`, `argument`, `unsupported`, `out_of_bounds`, `misaligned`,
    `uninitialised`, `barrier`, `endless_loop`, `race`, `async`, `trap`, `assert`.
    `line` is the line of the caller's source where it happened, or None.
    """

    def __init__(self, kind: str, message: str, line: int | None = None):
        super().__init__(message)
        self.kind = kind
        self.line = line
