"""The steps of instructions by which a warp moves and multiplies matrices."""
