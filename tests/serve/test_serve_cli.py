"""`rlea serve` as a person runs it."""

import os
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent as a signal")
def test_it_serves_until_ctrl_c(towns_file):
    command = [sys.executable, "-u", "-m", "rlea.cli", "serve", str(towns_file), "--port", "0", "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ})
    try:
        line = process.stdout.readline()
        assert line.startswith("128 entities at http://127.0.0.1:")
        address = line.split(" at ")[1].split(" ")[0]
        with urllib.request.urlopen(address, timeout=30) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (0, "Ended.\n", "")


def test_a_port_in_use_is_said_in_a_sentence(run_cli, towns_file):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run_cli("serve", towns_file, "--port", taken.getsockname()[1], "--quiet")
    assert done.code == 2
    assert "cannot listen at 127.0.0.1 port" in " ".join(done.err.split())
    assert "choose another --port" in " ".join(done.err.split())


def test_other_addresses_than_loopback_are_warned_of(run_cli, towns_file):
    done = run_cli("serve", towns_file, "--host", "192.0.2.1")  # for documentation: no machine has this address
    assert done.code == 2
    assert "192.0.2.1 is no loopback address: others may read this graph" in " ".join(done.err.split())


def test_a_file_that_is_no_graph_is_said_in_a_sentence(run_cli, tmp_path):
    (tmp_path / "x.nt").write_text("nonsense\n")
    done = run_cli("serve", tmp_path / "x.nt")
    assert done.code == 2
    assert "line 1" in done.err
