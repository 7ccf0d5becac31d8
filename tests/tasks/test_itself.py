"""What uses a model shows itself."""

from torch import nn

from regard.tasks.detection.detector import Detector
from regard.tasks.embed.embedder import Embedder
from regard.tasks.gan.drawer import Drawer
from regard.tasks.image.classifier import Classifier
from regard.tasks.itself import ShowsItself
from regard.tasks.labels.labeller import Labels
from regard.tasks.language.writer import Writer
from regard.tasks.masked.filler import Filler
from regard.tasks.speech.listener import Listener
from regard.tasks.translation.translator import Translator

USERS = (Classifier, Detector, Drawer, Embedder, Filler, Labels, Listener, Translator, Writer)


class Named(ShowsItself):
    """One of its kind."""

    def __init__(self, names: list[str]) -> None:
        self.model, self.names = nn.Linear(3, 5), names


def test_a_line_at_a_prompt_and_a_table_in_a_notebook() -> None:
    assert repr(Named([])) == "<Named: Linear, 20 parameters>"
    assert repr(Named(list("abcdefg"))) == "<Named: Linear, 20 parameters, 7 labels: a, b, c, d, e, ...>"
    assert Named(["a|b", "c"])._repr_markdown_() == (
        "| Named | |\n|---|---|\n| model | Linear, 20 parameters |\n| labels | 2 labels: a\\|b, c |\n"
    )


def test_all_that_use_a_model_do() -> None:
    assert all(issubclass(each, ShowsItself) for each in USERS)
