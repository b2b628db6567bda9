"""What a launch did: counters, trace, findings and the report of them."""
