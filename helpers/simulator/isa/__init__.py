"""What single instructions compute, on NumPy arrays of lanes."""
