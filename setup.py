"""The part of the set-up that pyproject.toml cannot say: the native engine, built where there is a C++ compiler.

A build that fails fails nothing: Regard then translates with its readable decoder and says so. In a checkout,
`python setup.py build_ext --inplace` builds it anew.
"""

from glob import glob

from setuptools import Extension, setup

HOME = "regard/engine/native"

setup(
    ext_modules=[
        Extension(
            "regard.engine._native",
            sources=sorted(glob(f"{HOME}/*.cpp")),
            depends=sorted([*glob(f"{HOME}/*.h"), *glob(f"{HOME}/*.inc")]),
            language="c++",
            extra_compile_args=["-std=gnu++17", "-O3", "-fvisibility=hidden", "-Wno-psabi"],
            extra_link_args=["-pthread"],
            optional=True,
        )
    ]
)
