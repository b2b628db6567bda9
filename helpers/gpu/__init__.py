"""Which machine is this: CuPy or its stand-in, the driver, and one kernel at a time on a GPU."""
