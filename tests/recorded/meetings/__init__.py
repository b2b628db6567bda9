"""Accesses to shared memory that meet others at the banks, and those that do not."""
