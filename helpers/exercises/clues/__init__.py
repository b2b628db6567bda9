"""What an answer shows by itself, in its run or its text, whatever mistakes are known."""
