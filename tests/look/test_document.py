"""The JSON: what docs/look.md says it holds, sound numbers, and the same weights as the tensors."""

import json
import math

import pytest
import torch


@pytest.mark.parametrize("vectors", [True, False])
def test_it_keeps_to_the_documented_schema(seen, schema, vectors):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    jsonschema.validate(json.loads(seen.to_json(vectors=vectors)), schema)


def test_the_schema_refuses_what_is_not_ours(seen, schema):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    tree = json.loads(seen.to_json())
    tree["maps"][0]["heads"][0]["surprise"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tree, schema)


def test_weights_are_the_tensors_to_four_decimals(seen):
    tree = json.loads(seen.to_json())
    for each, told in zip(seen.maps, tree["maps"], strict=True):
        weights = torch.tensor([head["weights"] for head in told["heads"]])
        torch.testing.assert_close(weights.double(), each.weights.double(), atol=5.1e-5, rtol=0)
        assert told["score"] == "scaled-dot"


def test_the_walk_can_be_walked_from_the_document(seen):
    """softmax(q·k / √K) of the document's numbers gives the document's weights."""
    for told in json.loads(seen.to_json())["maps"]:
        for head in told["heads"]:
            q, k = torch.tensor(head["q"]), torch.tensor(head["k"])
            weights = torch.tensor(head["weights"])
            scores = (q @ k.T / math.sqrt(q.shape[1])).masked_fill(weights == 0, -1e9)
            torch.testing.assert_close(scores.softmax(-1), weights, atol=2e-2, rtol=0)


def test_infinite_numbers_become_finite(seen):
    from regard.look.document import rounded

    assert all(math.isfinite(each) for each in rounded(torch.tensor([float("inf"), float("nan"), -0.0]), 3))
    assert str(rounded(torch.tensor([-0.0001]), 3)) == "[0.0]"
