"""What pyproject.toml cannot say: the native parts, the engine and the loops of training.

They are built where there is a C++ compiler. A build that fails fails nothing: Regard then translates with
its readable decoder and says so, and trains by torch alone. In a checkout,
`python setup.py build_ext --inplace` builds them anew.
"""

from pathlib import Path

from setuptools import Extension, setup


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


setup(ext_modules=[native("fused"), native("engine")])
