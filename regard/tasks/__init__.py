"""What a person asks for: a folder a task. `regard.kinds` has the table of them."""
