"""The signals that end a command, and those that it was started to ignore."""

import os
import signal

import pytest

from prony.cli.talk import Terminated, status_of, terminate_as_interrupt


@pytest.fixture
def handled():
    """Sets what a signal does, until the end of the test."""
    before = {}

    def handle(number, handler):
        before.setdefault(number, signal.signal(number, handler))

    yield handle
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_end_is_an_interruption_by_its_name(handled, number):
    handled(number, signal.SIG_DFL)
    with pytest.raises(Terminated, match=number.name), terminate_as_interrupt():
        os.kill(os.getpid(), number)
    assert signal.getsignal(number) == signal.SIG_DFL


def test_after_nohup_the_end_of_the_terminal_ends_nothing(handled):
    handled(signal.SIGHUP, signal.SIG_IGN)
    with terminate_as_interrupt():
        os.kill(os.getpid(), signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def test_what_goes_on_to_its_end_knows_which_signal_came(handled):
    handled(signal.SIGHUP, signal.SIG_DFL)
    with terminate_as_interrupt() as seen:
        try:
            os.kill(os.getpid(), signal.SIGHUP)
        except KeyboardInterrupt as interrupt:
            assert status_of(interrupt) == 129
    assert [status_of(one) for one in seen] == [129]
