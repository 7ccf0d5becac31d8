"""Sound to numbers that a model reads: files to samples, another rate, frames, and harder ones."""
