"""Files of every format, made of some texts; and a stand-in for a translator that changes words alone."""

import html
import io
import zipfile
from collections.abc import Mapping, Sequence

from regard.text.tags import pieces

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
T = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
O = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"  # noqa: E741


def loud(segment: str) -> str:
    """Words in capitals, tags as they are; what is fixed stays."""
    found, fixed = [], 0
    for piece in pieces(segment):
        fixed += (piece.name in ("code", "script", "style")) * {"opening": 1, "closing": -1}.get(
            piece.kind, 0
        )
        found.append(
            html.escape(html.unescape(piece.raw).upper(), quote=False)
            if piece.kind == "text" and not fixed
            else piece.raw
        )
    return "".join(found)


def packed(members: Mapping[str, str | bytes], *, stored: Sequence[str] = ()) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in members.items():
            made.writestr(name, data, zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED)
    return out.getvalue()


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as read:
        return {name: read.read(name) for name in read.namelist()}


def run(text: str, style: str = "") -> str:
    style = f"<w:rPr>{style}</w:rPr>" if style else ""
    return f'<w:r>{style}<w:t xml:space="preserve">{html.escape(text)}</w:t></w:r>'


def docx(*paragraphs: Sequence[str]) -> bytes:
    body = "".join(f'<w:p><w:pPr><w:jc w:val="left"/></w:pPr>{"".join(runs)}</w:p>' for runs in paragraphs)
    return packed(
        {
            "[Content_Types].xml": "<Types/>",
            "word/document.xml": f'{HEAD}<w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>',
            "word/styles.xml": "<styles>kept</styles>",
        }
    )


def pptx(*texts: str) -> bytes:
    lines = "".join(
        f'<a:p><a:r><a:rPr lang="en"/><a:t>{html.escape(text)}</a:t></a:r><a:endParaRPr/></a:p>'
        for text in texts
    )
    return packed(
        {"ppt/slides/slide1.xml": f'<p:sld xmlns:p="p" xmlns:a="{A}"><a:txBody>{lines}</a:txBody></p:sld>'}
    )


def odt(*texts: str) -> bytes:
    bold = '<text:span text:style-name="T1"> Bold</text:span><text:tab/>end'
    lines = "".join(f'<text:p text:style-name="P1">{html.escape(text)}{bold}</text:p>' for text in texts)
    content = f'<o:document-content xmlns:o="{O}" xmlns:text="{T}">{lines}</o:document-content>'
    return packed(
        {"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content}, stored=["mimetype"]
    )


def epub(*texts: str) -> bytes:
    page = "".join(f"<p>{html.escape(text)} <i>x</i></p>\n" for text in texts)
    return packed(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": "<container/>",
            "OEBPS/one.xhtml": f'<?xml version="1.0"?>\n<!DOCTYPE html>\n<html><body>{page}</body></html>',
            "OEBPS/toc.ncx": "<ncx><navLabel><text>First</text></navLabel></ncx>",
            "OEBPS/cover.jpg": b"\xff\xd8\x00",
        },
        stored=["mimetype"],
    )


def xliff(*texts: str) -> bytes:
    units = "".join(
        f'<trans-unit id="{n}"><source>{html.escape(text)} <g id="1">a</g><x id="2"/></source></trans-unit>'
        for n, text in enumerate(texts)
    )
    done = '<trans-unit id="d"><source>done</source><target>fertig</target></trans-unit>'
    body = f"<file><body>{units}{done}</body></file>"
    return f'{HEAD}<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">{body}</xliff>'.encode()


def po(*texts: str) -> bytes:
    head = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=utf-8\\n"\n'
    head += '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n'
    quoted = [
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        for text in dict.fromkeys(texts)
        if text
    ]
    body = "".join(f'#: main.c:{n}\nmsgid "{text}"\nmsgstr ""\n\n' for n, text in enumerate(quoted, 1))
    more = 'msgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n\n'
    more += 'msgid "kept as is"\nmsgstr "so belassen"\n'
    return (head + body + more).encode()


def srt(*texts: str) -> bytes:
    cues = [f"{n}\n00:00:{n:02},500 --> 00:00:{n + 1:02},000\n{text}\n" for n, text in enumerate(texts, 1)]
    return "\n".join(cues).encode()


def vtt(*texts: str) -> bytes:
    cues = [
        f"c{n}\n00:{n:02}.500 --> 00:{n + 1:02}.000 align:start\n{html.escape(text)}\n"
        for n, text in enumerate(texts, 1)
    ]
    return ("WEBVTT - a film\n\nNOTE kept\n\n" + "\n".join(cues)).encode()


def lines(*texts: str) -> bytes:
    return "\r\n".join(texts).encode()


def markdown(*texts: str) -> bytes:
    return (
        "---\ntitle: kept\n---\n\n# "
        + "\n\n- ".join(texts)
        + "\n\n```\ncode kept\n```\n\n| a | b |\n|---|---|\n| c | `d` |\n"
    ).encode()


def page(*texts: str) -> bytes:
    return (
        "<html><body>"
        + "".join(f"<p>{html.escape(text)}</p>" for text in texts)
        + "<script>kept()</script></body></html>"
    ).encode()


MAKERS = {
    "txt": lines,
    "md": markdown,
    "html": page,
    "srt": srt,
    "vtt": vtt,
    "po": po,
    "xliff": xliff,
    "docx": lambda *texts: docx(
        *([run(text), run(" bold", "<w:b/>"), "<w:r><w:br/></w:r>"] for text in texts)
    ),
    "pptx": pptx,
    "odt": odt,
    "epub": epub,
}
