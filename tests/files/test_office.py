"""Office documents: runs stay runs, in the order of their words; what is no text is kept."""

from formats import docx, members, run

from regard.files.office import Docx

BOLD = "<w:b/>"


def body(data):
    return members(data)["word/document.xml"].decode()


def test_runs_go_with_their_words():
    opened = Docx(docx([run("a "), run("red", BOLD), run(" car")], [run("12")]))
    assert opened.segments == ['<span id="0">a </span><span id="1">red</span><span id="2"> car</span>']
    made = body(opened.written(['<span id="0">ein </span><span id="2">Auto </span><span id="1">rot</span>']))
    assert made.count("<w:b/>") == 1
    assert made.index("ein") < made.index("Auto") < made.index("<w:b/>") < made.index("rot")
    assert ">12<" in made
    assert made.count('<w:jc w:val="left"/>') == 2


def test_runs_that_look_the_same_are_one():
    opened = Docx(
        docx([run("Hel"), '<w:proofErr w:type="spellStart"/>', run("lo"), "<w:r><w:br/></w:r>", run("you")])
    )
    assert opened.segments == ['<span id="1">Hello<img id="0">you</span>']


def test_words_outside_of_a_run_get_one():
    opened = Docx(docx([run("a", BOLD), run("b")]))
    made = body(opened.written(['<span id="0">x</span> <span id="1">y</span>\x01']))
    assert "".join(part.split("<")[0] for part in made.split(">")).strip() == "x y"
    assert made.count("<w:r>") == 3
