"""Pictures to numbers, and back to what people see."""
