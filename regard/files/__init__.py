"""Files of many kinds as segments of text, and back: `file` is what they share, then a file a format."""
