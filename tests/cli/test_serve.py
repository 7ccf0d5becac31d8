"""`regard serve` as a command: what it refuses before it listens, and what it warns of."""

import shutil
import socket
import subprocess

import pytest
from command import call, command, complaint, environment


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-m", "nowhere"], "nowhere does not exist"),
        (["-m", "en-de=nowhere"], "nowhere does not exist"),
        (["-m", "."], "has no config.json"),
        ([], "Missing option"),
        (["-m", ".", "--port", "70000"], "65535"),
        (["-m", ".", "--queue", "0"], "--queue"),
        (["-m", ".", "--api-key", ""], "empty"),
    ],
)
def test_what_cannot_be_served(arguments, words, tmp_path):
    assert words in complaint(call("serve", *arguments, cwd=tmp_path))


def test_two_models_for_one_pair(model):
    said = complaint(call("serve", "-m", f"en-de={model}", "-m", f"en-de={model}"))
    assert "two models for en-de" in said


def test_a_broken_model_ends_the_server_with_one_line(model, tmp_path):
    folder = tmp_path / "broken"
    shutil.copytree(model, folder)
    (folder / "model.safetensors").write_bytes(b"nothing")
    said = complaint(call("serve", "-m", f"en-de={folder}", "--port", "0"))
    assert "model.safetensors is damaged" in said


def test_a_port_that_is_taken(model):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"cannot listen on 127.0.0.1:{port}" in complaint(call("serve", "-m", model, "--port", port))


def test_open_to_all_without_a_key_is_warned_of(model):
    words = command("serve", "-m", model, "--host", "0.0.0.0", "--port", 0)
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if "serving at" in line:
                break
        process.terminate()
        assert process.wait(timeout=60) == 143
    assert any("warning" in line and "no --api-key" in line for line in said)
    assert any("does not know its languages" in line for line in said)
