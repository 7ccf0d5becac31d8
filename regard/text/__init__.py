"""Text to ids and back: normalisation, the tokenizer, and the embedded phrasebook.

The first room a sentence enters and the last it leaves; `regard.data` comes next.
"""
