"""What pyproject.toml cannot say: the native parts, the name of a wheel, README as a package index shows it.

The native parts, the engine and the loops of training, are built where there is a C++ compiler. A build that
fails fails nothing: Regard then translates with its readable decoder and says so, and trains by torch alone.
In a checkout, `python setup.py build_ext --inplace` builds them anew; `make wheel` makes what is shared.
"""

import re
import sysconfig
import tomllib
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

HOME = Path(__file__).parent


def native(room: str) -> Extension:
    """The compiled part of a room."""
    home = Path("regard") / room / "native"  # relative, as setuptools wants it
    return Extension(
        f"regard.{room}._native",
        sources=sorted(map(str, home.glob("*.cpp"))),
        depends=sorted(map(str, [*home.glob("*.h"), *home.glob("*.inc")])),
        language="c++",
        extra_compile_args=["-std=gnu++17", "-O3", "-fvisibility=hidden", "-Wno-psabi"],
        extra_link_args=["-pthread"],
        optional=True,
    )


class Build(build_ext):
    """Libraries of a wheel have no Python in their names: ctypes opens them, and they know of none."""

    def finalize_options(self) -> None:
        self.shared = not (self.inplace or self.editable_mode)  # in a checkout each Python keeps its own
        super().finalize_options()

    def get_ext_filename(self, fullname: str) -> str:
        name = str(super().get_ext_filename(fullname))
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        return name.removesuffix(suffix) + Path(suffix).suffix if self.shared else name


class Wheel(bdist_wheel):
    """One wheel a platform, for every Python."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


def long_description() -> str:
    """README, whose pictures and links lead to the repository: a package index has no files beside it."""
    project = tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    package = (HOME / "regard" / "__init__.py").read_text(encoding="utf-8")
    version = re.findall(r'^__version__ = "(.+)"$', package, re.MULTILINE)[0]

    def absolute(match: re.Match[str]) -> str:
        picture, text, path = match.groups()
        place = "raw" if picture else "blob"
        return f"{picture}[{text}]({project['urls']['Repository']}/{place}/v{version}/{path})"

    readme = (HOME / "README.md").read_text(encoding="utf-8")
    return re.sub(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)", absolute, readme)


if __name__ == "__main__":
    setup(
        ext_modules=[native("fused"), native("engine")],
        cmdclass={"build_ext": Build, "bdist_wheel": Wheel},
        long_description=long_description(),
        long_description_content_type="text/markdown",
    )
