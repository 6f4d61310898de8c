"""Two measurements at once on one machine refuse each other."""

import os
import secrets
import subprocess
import sys

import pytest

from prony.errors import ExitCode, HostError
from prony.host.claim import claim_machine


@pytest.fixture
def name():
    return f"\0prony-test-{secrets.token_hex(8)}"


def test_the_second_is_told_who_the_first_is(name):
    with claim_machine(name), pytest.raises(HostError) as caught, claim_machine(name):
        pytest.fail("both hold it")
    assert f"process {os.getpid()}, `" in caught.value.message
    assert caught.value.exit_code == ExitCode.COULD_NOT_MEASURE


def test_it_is_free_again_afterwards_and_after_a_failure(name):
    with pytest.raises(ZeroDivisionError), claim_machine(name):
        raise ZeroDivisionError
    with claim_machine(name):
        pass


def test_a_holder_that_is_killed_holds_nothing(name):
    program = (
        "import sys, time\n"
        "from prony.host.claim import claim_machine\n"
        "with claim_machine(sys.argv[1].replace('@', chr(0))):\n"
        "    print('held', flush=True)\n"
        "    time.sleep(600)\n"
    )
    given = name.replace("\0", "@")
    with subprocess.Popen([sys.executable, "-c", program, given], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(HostError, match=f"process {holder.pid}"), claim_machine(name):
            pytest.fail("both hold it")
        holder.kill()
    with claim_machine(name):
        pass
