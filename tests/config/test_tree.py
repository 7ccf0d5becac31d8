"""The config tree: what comes in goes out again, and what breaks a rule is refused by name."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.config import (
    Config,
    flatten,
    from_dict,
    known_keys,
    merge,
    parse_set,
    read_toml,
    to_dict,
    to_json,
)
from regard.errors import UsageError
from regard.presets import PRESETS, preset


def test_known_keys_are_the_leaves_of_the_tree():
    assert {"task": "translation"} | known_keys() == flatten(to_dict(Config()))


@pytest.mark.parametrize("name", PRESETS)
def test_presets_keep_every_rule_and_come_back_from_json(name):
    config = merge(Config(), preset(name))
    assert from_dict(json.loads(to_json(config))) == config


def test_base_is_the_paper():
    model = merge(Config(), preset("base")).model
    assert (model.d_model, model.n_heads, model.d_ff) == (512, 8, 2048)
    assert (model.encoder_layers, model.decoder_layers, model.norm) == (6, 6, "post")


def test_unknown_preset_names_those_there_are():
    with pytest.raises(UsageError, match="unknown preset huge; there are tiny, small, base, deep"):
        preset("huge")


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("model.d_modle", "model.d_model"),
        ("train.learning_rate", r"train\.lr\?"),
        ("train.learnig_rate", r"train\.lr\?"),
        ("train.batch-size", r"train\.batch_tokens\?"),
        ("lr", r"train\.lr\?"),
        ("d_model", "model.d_model"),
        ("beam", "decode.beam"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest(key, near):
    with pytest.raises(UsageError, match=f"unknown config key {key}; did you mean {near}"):
        merge(Config(), {key: 1})


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("model.d_model", "wide", "model.d_model takes a whole number, not 'wide'"),
        ("model.d_model", 256.0, "model.d_model takes a whole number, not 256.0"),
        ("model.d_model", True, "model.d_model takes a whole number, not True"),
        ("train.lr", True, "train.lr takes a number, not True"),
        ("train.tensorboard", 1, "train.tensorboard takes true or false, not 1"),
        ("model.norm", 3, "model.norm takes a word, not 3"),
        ("train.lr", [1.0], "train.lr takes a number, not a list"),
    ],
)
def test_a_wrong_type_is_refused(key, value, message):
    with pytest.raises(UsageError, match=message):
        merge(Config(), {key: value})


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"model.n_heads": 6, "model.d_model": 512}, r"n_heads \(6\) must divide d_model \(512\)"),
        ({"model.norm": "middle"}, r"model.norm \(middle\) must be one of pre, post"),
        ({"model.dropout": 1.0}, r"model.dropout \(1\) must be between 0 and 0.95"),
        ({"model.d_model": 0}, r"model.d_model \(0\) must be between 1 and"),
        ({"decode.beam": 0}, r"decode.beam \(0\) must be between 1 and"),
        ({"train.minutes": -1.0}, r"train.minutes \(-1\) must be between 0 and"),
        ({"train.lr": float("nan")}, r"train.lr \(nan\)"),
        ({"train.precision": "fp8"}, r"train.precision \(fp8\) must be one of auto, fp32, bf16"),
    ],
)
def test_a_broken_rule_is_named_with_its_numbers(overrides, message):
    with pytest.raises(UsageError, match=message):
        merge(Config(), overrides)


def test_a_whole_number_passes_for_a_fraction():
    assert merge(Config(), {"train.minutes": 15}).train.minutes == 15.0
    assert isinstance(merge(Config(), {"train.minutes": 15}).train.minutes, float)


def test_merge_leaves_the_original_alone():
    config = Config()
    merge(config, {"model.d_model": 512})
    assert config == Config()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.model.d_model = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model.d_model=512", ("model.d_model", 512)),
        ("train.lr = 1e-3", ("train.lr", 1e-3)),
        ("model.norm=post", ("model.norm", "post")),
        ('model.norm="post"', ("model.norm", "post")),
        ("train.tensorboard=true", ("train.tensorboard", True)),
        ("a.b=c=d", ("a.b", "c=d")),
    ],
)
def test_parse_set(text, expected):
    assert parse_set(text) == expected


@pytest.mark.parametrize("text", ["model.d_model", "=3", " =3", ""])
def test_parse_set_wants_key_and_value(text):
    with pytest.raises(UsageError, match="--set takes KEY=VALUE"):
        parse_set(text)


def test_read_toml_gives_dotted_keys(tmp_path: Path):
    file = tmp_path / "settings.toml"
    file.write_text('[model]\nd_model = 64\nnorm = "post"\n[train]\nlr = 1e-3\n')
    assert read_toml(file) == {"model.d_model": 64, "model.norm": "post", "train.lr": 1e-3}


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"[model\n", "is not TOML"), (b"a = '\xff'\n", "is not TOML"), (None, "cannot read config")],
)
def test_a_config_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None, message: str):
    file = tmp_path / "settings.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError, match=message) as caught:
        read_toml(file)
    assert str(file) in str(caught.value)


def _values(default: Any) -> st.SearchStrategy[Any]:
    if isinstance(default, bool):
        return st.booleans()
    if isinstance(default, int):
        return st.integers(1, 64)
    if isinstance(default, float):
        return st.floats(0, 0.9)
    return st.just(default)


@given(st.fixed_dictionaries({}, optional={key: _values(default) for key, default in known_keys().items()}))
def test_any_config_that_keeps_the_rules_survives_json(overrides):
    try:
        config = merge(Config(), overrides)
    except UsageError:
        return
    assert from_dict(json.loads(to_json(config))) == config
    assert flatten(to_dict(config)) == {"task": "translation"} | known_keys() | overrides
