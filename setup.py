"""What pyproject.toml cannot say: the native engine, built where there is a C++ compiler.

A build that fails fails nothing: Regard then translates with its readable decoder and says so. In a checkout,
`python setup.py build_ext --inplace` builds it anew.
"""

from pathlib import Path

from setuptools import Extension, setup

HOME = Path("regard/engine/native")  # relative, as setuptools wants it

setup(
    ext_modules=[
        Extension(
            "regard.engine._native",
            sources=sorted(map(str, HOME.glob("*.cpp"))),
            depends=sorted(map(str, [*HOME.glob("*.h"), *HOME.glob("*.inc")])),
            language="c++",
            extra_compile_args=["-std=gnu++17", "-O3", "-fvisibility=hidden", "-Wno-psabi"],
            extra_link_args=["-pthread"],
            optional=True,
        )
    ]
)
