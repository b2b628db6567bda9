"""What a kernel is run on: inputs, results in float64, and the rungs of the ladders."""
