import os
import signal
import threading

import pytest

from regard.process.stopping import ECHO, Stopped, listen


def test_the_first_signal_is_remembered_and_the_second_obeyed() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with listen() as request:
        assert request.signal == 0
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)  # an echo, as `timeout` sends it
        assert request.signal == signal.SIGTERM
        request.came -= ECHO
        with pytest.raises(Stopped) as stopped:
            os.kill(os.getpid(), signal.SIGINT)
    assert stopped.value.exit_code == 130
    assert signal.getsignal(signal.SIGTERM) == before


def test_another_thread_listens_in_vain_but_without_harm() -> None:
    found = []

    def listening() -> None:
        with listen() as request:
            found.append(request.signal)

    thread = threading.Thread(target=listening)
    thread.start()
    thread.join()
    assert found == [0]
