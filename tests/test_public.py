"""The public face: the names are there, they are loaded when used, and importing costs nothing."""

import subprocess
import sys
import tomllib

import pytest
from command import ROOT, environment

import regard


def test_every_public_name_is_there():
    for name in regard.__all__:
        assert getattr(regard, name) is not None
    assert set(regard.__all__) <= set(dir(regard))


def test_names_are_the_ones_of_their_homes():
    from regard.config import Config
    from regard.data.corpus import Corpus
    from regard.tasks.task import load
    from regard.tasks.train import train

    assert (regard.Config, regard.Corpus) == (Config, Corpus)
    assert (regard.load, regard.train) == (load, train)


def test_other_names_are_refused():
    with pytest.raises(AttributeError, match="module 'regard' has no attribute 'attent'"):
        regard.attent  # noqa: B018


def test_importing_loads_nothing_heavy():
    heavy = "{'torch', 'numpy', 'rich', 'typer'}"
    code = f"import regard, sys; dir(regard); sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], env=environment(), check=False).returncode == 0


def test_the_version_is_said_once():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" in project["dynamic"]
    assert regard.__version__.count(".") == 2


def test_python_dash_m_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "regard", "--version"],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == f"regard {regard.__version__}\n"
