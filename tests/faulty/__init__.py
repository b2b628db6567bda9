"""Small kernels with one fault each, and some that only look faulty; see cases.py."""
