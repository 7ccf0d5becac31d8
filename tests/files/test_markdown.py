"""Markdown: what is code, address or structure is kept; marks go with their words."""

from formats import loud

from regard.files.markdown import Markdown

TEXT = """# A *big* title

A paragraph that is
wrapped, with `code()` and
a [link](http://a.b/c) and **bold words**.

> quoted words
> go on

- one ![pic](x.png)
- [ ] two
  goes on

1. first

    indented code

| head | more |
|------|------|
| cell | `x`  |

```python
print("kept")
```

<div>kept</div>

[ref]: http://kept
"""


def test_structure():
    opened = Markdown(TEXT.encode())
    made = opened.written([loud(each) for each in opened.segments]).decode()
    assert "# A *BIG* TITLE\n\nA PARAGRAPH THAT IS WRAPPED, WITH `code()`\nAND A [LINK](http://a.b/c)" in made
    assert "AND **BOLD\nWORDS**.\n\n> QUOTED WORDS GO ON\n\n- ONE ![pic](x.png)\n- [ ] TWO GOES ON\n" in made
    kept = TEXT[TEXT.index("    indented code") :]
    assert made.endswith(kept.replace("head", "HEAD").replace("more", "MORE").replace("cell", "CELL"))


def test_same_segments_same_file():
    opened = Markdown(TEXT.encode())
    assert Markdown(opened.written(opened.segments)).segments == opened.segments
