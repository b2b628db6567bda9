"""Cases about memory: patterns of accesses, and programs of several."""
