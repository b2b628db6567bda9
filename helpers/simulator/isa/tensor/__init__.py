"""What a Hopper tensor core computes, and which lane and register holds which element."""
