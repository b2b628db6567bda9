"""Names of kernels: what C++ mangling (Itanium C++ ABI, section 5.1) makes of them, and back."""

import difflib
import re

_BUILTIN_TYPES = {
    "v": "void", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short",
    "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long",
    "x": "long long", "y": "unsigned long long", "f": "float", "d": "double",
}  # fmt: skip
_LITERAL_SUFFIX = {"j": "u", "l": "l", "m": "ul", "x": "ll", "y": "ull"}
_ENTRY = re.compile(r"^[ \t]*(?:\.\w+[ \t]+)*\.entry[ \t]+([\w$]+)", re.MULTILINE)


def entries(ptx: str) -> dict[str, str]:
    """Map the name of each kernel in `ptx` to its name in the source, in order."""
    return {mangled: source_name(mangled) for mangled in _ENTRY.findall(ptx)}


def source_name(mangled: str) -> str:
    """Return the source's name of a kernel: `_ZN1a1kIfLi3EEvPT_` gives `a::k<float, 3>`.

    A name that C++ did not mangle comes back as it is. Template arguments that refer back to
    other parts of the name (the ABI's substitutions) show as `...`.
    """
    if not mangled.startswith("_Z"):
        return mangled
    try:
        return _Reader(mangled).name()
    except (IndexError, KeyError, ValueError):
        return mangled


def plain_name(name: str) -> str:
    """Return a source name without namespaces and template arguments: `a::k<float>` gives `k`."""
    return re.sub(r"<.*", "", name, flags=re.DOTALL).rsplit("::", 1)[-1].strip()


def find_entry(name: str, known: dict[str, str]) -> list[str]:
    """List the mangled names that `name` may mean, the most literal reading first to match.

    `name` is a mangled name, a source name (`a::k`, `k<float, 3>`), or a plain name (`k`).
    """
    if name in known:
        return [name]
    wanted = _without_spaces(name)
    exact = [m for m, source in known.items() if _without_spaces(source) == wanted]
    if exact:
        return exact
    return [m for m, source in known.items() if plain_name(source) == name]


def unknown_entry(name: str, known: dict[str, str], filename: str) -> str:
    """Say that `filename` has no kernel `name`, and which it has."""
    fix = 'A kernel is found by its name when it starts with extern "C" __global__ void.'
    if not known:
        return (
            f"{filename} has no kernel {name}: it has no __global__ function at all, except "
            "perhaps templates. Of those a kernel is made where one is asked for: by "
            f'RawModule(code=..., name_expressions=["{plain_name(name)}<float>"]), or by '
            f"`template __global__ void {plain_name(name)}<float>(...);` in the source."
        )
    names = list(known.values())
    near = difflib.get_close_matches(name, [plain_name(n) for n in names], n=1)
    asked = f" Did you mean {near[0]}?" if near else ""
    return f"{filename} has no kernel {name}; it has {', '.join(names)}.{asked} {fix}"


def _without_spaces(name: str) -> str:
    return re.sub(r"\s+", "", name)


class _Reader:
    def __init__(self, mangled: str):
        self.text = mangled
        self.at = 2

    def take(self, prefix: str) -> bool:
        if self.text.startswith(prefix, self.at):
            self.at += len(prefix)
            return True
        return False

    def name(self) -> str:
        if not self.take("N"):
            return self.part()
        while self.take("K") or self.take("V") or self.take("r"):
            pass
        parts = []
        while not self.take("E"):
            parts.append(self.part())
        return "::".join(parts)

    def part(self) -> str:
        self.take("L")
        digits = re.compile(r"\d+").match(self.text, self.at)
        if digits is None:
            raise ValueError(self.text)
        start = digits.end()
        self.at = start + int(digits[0])
        if self.at > len(self.text):
            raise ValueError(self.text)
        identifier = self.text[start : self.at]
        if identifier.startswith("_GLOBAL__N_"):
            identifier = "(anonymous namespace)"
        return identifier + (self.template_arguments() if self.take("I") else "")

    def template_arguments(self) -> str:
        arguments = []
        while not self.take("E"):
            if self.take("J"):
                while not self.take("E"):
                    arguments.append(self.type())
            elif self.take("L"):
                arguments.append(self.literal())
            else:
                arguments.append(self.type())
        return f"<{', '.join(arguments)}>"

    def literal(self) -> str:
        kind = self.text[self.at]
        self.type()
        end = self.text.index("E", self.at)
        value = self.text[self.at : end].replace("n", "-")
        self.at = end + 1
        if kind == "b":
            return "true" if value == "1" else "false"
        return value + _LITERAL_SUFFIX.get(kind, "")

    def type(self) -> str:
        if self.take("P"):
            return self.type() + "*"
        if self.take("K"):
            return "const " + self.type()
        if self.take("S"):
            self.at = self.text.index("_", self.at) + 1
            return "..."
        if self.text[self.at] == "N" or self.text[self.at].isdigit():
            return self.name()
        self.at += 1
        return _BUILTIN_TYPES[self.text[self.at - 1]]
