"""The default list is possible; a person's own list is read, or refused in a line."""

import pytest

from regard.compare.variants import Variant, family, read_variants
from regard.config import Config, merge
from regard.errors import UsageError
from regard.tasks.translation import TASK
from regard.tasks.translation.family import VARIANTS


@pytest.mark.parametrize("name", VARIANTS)
def test_every_member_is_a_setting_there_is(name):
    merge(Config(), {"model.n_heads": 4, "model.d_model": 128} | VARIANTS[name])


def test_members_differ_from_the_reference_in_one_setting():
    first, *rest = family(TASK)
    assert first.overrides == {}
    assert all(len(variant.overrides) == 1 for variant in rest)
    assert len({variant.slug for variant in family(TASK)}) == len(VARIANTS)


def test_tables_and_dotted_keys_are_the_same(tmp_path):
    path = tmp_path / "variants.toml"
    path.write_text('[reference]\n[a.positions]\nkind = "rotary"\n["b c"]\n"positions.kind" = "rotary"\n')
    assert read_variants(path) == [
        Variant("reference", {}),
        Variant("a", {"positions.kind": "rotary"}),
        Variant("b c", {"positions.kind": "rotary"}),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("[a\n", "is not TOML"),
        ("a = 1\n", "a is no table"),
        ("[a.model]\nn_haeds = 1\n", r"sets model.n_haeds, unknown; did you mean model.n_heads\?"),
        ("[a.train]\nminutes = 1\n", "sets train.minutes, which is one for all"),
        ("[a.text]\nvocab_size = 300\n", "sets text.vocab_size, which is one for all"),
        ('["a b"]\n["a-b"]\n', "'a-b' is used twice"),
        ('["..."]\n', "has no letter or digit"),
        ('["../a"]\n[a]\n', "'a' is used twice"),
    ],
)
def test_what_is_refused(text, message, tmp_path):
    path = tmp_path / "variants.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=message) as caught:
        read_variants(path)
    assert "\n" not in str(caught.value)


def test_bytes_and_missing_files_are_refused(tmp_path):
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not TOML"):
        read_variants(tmp_path / "bytes.toml")
    with pytest.raises(UsageError, match=r"cannot read variants .*missing.toml: No such file"):
        read_variants(tmp_path / "missing.toml")
