"""Keys as Notebook 7 hears them: on the way down, by the rules of lumino's command registry."""

# From the focused element upwards: one that bears the attribute ends the search, one that matches
# a shortcut's selector makes the key the notebook's. `:focus` is what the arrows' selectors end in.
HEARD_FIRST = """() => {
    window.heard = [];
    document.addEventListener("keydown", (event) => {
        let node = event.target;
        while (node && !node.hasAttribute("data-lm-suppress-shortcuts")) {
            if (node.matches(":focus, body")) {
                window.heard.push(event.key);
                break;
            }
            node = node.parentElement;
        }
    }, true);
}"""
