"""What repeats a table or a figure of a paper: studies by name, and one of advection."""
