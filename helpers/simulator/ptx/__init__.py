"""PTX as data, and what ptxas changes about it on the way to machine code."""
