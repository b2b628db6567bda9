"""Warps and threads followed through time: who reads and writes what, when, and who waits."""
