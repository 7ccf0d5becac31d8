"""Models that go to other programs and come from them: one file a foreign format."""
