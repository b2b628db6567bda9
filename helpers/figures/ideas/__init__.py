"""One module a picture of an idea that needs no kernel."""
