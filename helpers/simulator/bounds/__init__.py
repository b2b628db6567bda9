"""What a kernel occupies of a GPU that need not be here, and the least time that it can take."""
