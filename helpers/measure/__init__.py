"""Times and profiles: measured on this machine's GPU, or recorded on a named one."""
