"""Small changes of a kernel, and what each says of a mistake."""
