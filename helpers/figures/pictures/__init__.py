"""One module a picture of what a kernel did in a small run."""
