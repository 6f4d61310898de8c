"""What is read of a machine, from texts of other machines than this one."""

import os
from pathlib import Path

import pytest

from prony.machine.activity import (
    busiest,
    frequencies,
    parse_load,
    parse_process,
    parse_psi,
    shares,
    watch_machine,
)
from prony.machine.cgroups import (
    ancestors,
    chosen,
    limit_in,
    lowest_limit,
    parse_groups,
    parse_meminfo,
    parse_quota,
)
from prony.machine.checks import KernelLog, KernelMessage, kept_of, kernel_log_kept, parse_message
from prony.machine.cpus import agreed, parse_cpuinfo, parse_turbo
from prony.machine.fingerprint import container_kind, engine, guest, package_names, preemption_of
from prony.machine.network import interfaces, parse_sockets

AMD = """\
processor	: 0
vendor_id	: AuthenticAMD
cpu family	: 25
model		: 1
model name	: AMD EPYC 7763 64-Core Processor
stepping	: 1
microcode	: 0xa0011d5
cpu MHz		: 2450.000
flags		: fpu vme de pse avx2

processor	: 1
vendor_id	: AuthenticAMD
model name	: AMD EPYC 7763 64-Core Processor
cpu MHz		: 3241.5
"""
GRAVITON = """\
processor	: 0
BogoMIPS	: 243.75
Features	: fp asimd evtstrm aes crc32 atomics
CPU implementer	: 0x41
CPU architecture: 8
CPU variant	: 0x3
CPU part	: 0xd0c
CPU revision	: 1

processor	: 1
BogoMIPS	: 243.75
CPU implementer	: 0x41
CPU part	: 0xd0c
"""
POWER = """\
processor	: 0
cpu		: POWER9, altivec supported
clock		: 3800.000000MHz
revision	: 2.2 (pvr 004e 1202)
"""
SILENT = {"missing": "`/proc/cpuinfo` does not say"}


# --- the processor ----------------------------------------------------------------------------------------


def test_an_x86_processor_is_described_by_its_first_cpu():
    assert parse_cpuinfo(AMD) == {
        "vendor": "AuthenticAMD",
        "model": "AMD EPYC 7763 64-Core Processor",
        "family": "25",
        "stepping": "1",
        "microcode": "0xa0011d5",
        "flags": "fpu vme de pse avx2",
    }


def test_an_arm_processor_is_named_by_its_numbers_and_what_it_does_not_tell_is_missing():
    found = parse_cpuinfo(GRAVITON)
    assert found["model"] == "ARM Neoverse N1"
    assert (found["family"], found["stepping"]) == ("8", "1")
    assert found["flags"] == "fp asimd evtstrm aes crc32 atomics"
    assert found["vendor"] == found["microcode"] == SILENT


def test_an_arm_processor_that_is_not_known_keeps_its_numbers():
    assert (
        parse_cpuinfo("CPU implementer : 0x61\nCPU part : 0x022")["model"] == "implementer 0x61, part 0x022"
    )


def test_other_processors_are_read_by_their_own_names():
    assert parse_cpuinfo(POWER)["model"] == "POWER9, altivec supported"
    assert parse_cpuinfo("hart : 0\nisa : rv64imafdc\nuarch : sifive,u74")["model"] == "sifive,u74"


def test_an_empty_text_says_nothing():
    assert set(map(str, parse_cpuinfo("").values())) == {str(SILENT)}


def test_clocks_are_one_value_where_all_cpus_agree_and_absent_where_none_is_told():
    assert frequencies(AMD) == {"0": 2450.0, "1": 3241.5}
    assert frequencies(AMD.replace("3241.5", "2450.000").replace("processor\t: 1", "processor : 1")) == 2450.0
    assert frequencies(GRAVITON) == SILENT


@pytest.mark.parametrize(
    ("boost", "no_turbo", "turbo"),
    [
        ("1", {"missing": "x"}, True),
        ("0", {"missing": "x"}, False),
        ({"missing": "x"}, "1", False),
        ({"missing": "x"}, "0", True),
        ({"missing": "x"}, {"missing": "y"}, {"missing": "x"}),
    ],
)
def test_turbo_is_read_from_the_switch_of_either_driver(boost, no_turbo, turbo):
    assert parse_turbo(boost, no_turbo) == turbo


def test_a_fact_without_a_value_is_said_once_for_all_cpus():
    reason = {"missing": "no such file"}
    assert agreed({"0": reason, "1": reason}) == reason
    assert agreed({"0": "a", "1": reason}) == {"0": "a", "1": reason}


# --- memory and control groups ----------------------------------------------------------------------------


def test_sizes_of_memory_are_bytes_and_counts_are_counts():
    found = parse_meminfo("MemTotal:       16318480 kB\nHugePages_Total:      12\nCommitLimit:  odd\n")
    assert found == {"MemTotal": 16_318_480 * 1024, "HugePages_Total": 12}


def test_the_chosen_word_is_the_one_in_brackets():
    assert (chosen("[always] madvise never"), chosen("performance")) == ("always", "performance")


def test_groups_are_read_on_version_1_on_version_2_and_on_both():
    assert parse_groups("0::/user.slice/session.scope") == {"": "/user.slice/session.scope"}
    assert parse_groups("5:cpu,cpuacct:/docker/ab:c\n1:name=systemd:/\n0::/") == {
        "cpu": "/docker/ab:c",
        "cpuacct": "/docker/ab:c",
        "name=systemd": "/",
        "": "/",
    }


@pytest.mark.parametrize(
    ("text", "limit"),
    [("max", None), ("536870912\n", 536870912), ("9223372036854771712", None), ("-1", None)],
)
def test_a_limit_is_a_number_or_none_in_either_versions_words(text, limit):
    assert limit_in(text) == limit


@pytest.mark.parametrize(("text", "cpus"), [("max 100000", None), ("50000 100000", 0.5), ("-1 100000", None)])
def test_a_quota_is_in_cpus(text, cpus):
    assert parse_quota(text) == cpus


def test_the_limit_of_a_group_is_the_lowest_of_all_that_hold_it():
    assert lowest_limit([4096, None, 1024]) == 1024
    assert lowest_limit([None, {"missing": "x"}]) is None
    assert lowest_limit([{"missing": "x"}]) == {"missing": "x"}
    assert ancestors(Path("/sys/fs/cgroup"), "/") == [Path("/sys/fs/cgroup")]


# --- what the machine runs in -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("marks", "group", "environment", "kind"),
    [
        (["/.dockerenv"], "0::/", {}, "docker"),
        ([], "12:memory:/docker/4f5e\n0::/docker/4f5e", {}, "docker"),
        (["/run/.containerenv"], "0::/", {"container": "podman"}, "podman"),
        (["/.dockerenv"], "0::/", {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ([], "0::/kubepods.slice/kubepods-burstable.slice", {}, "kubernetes"),
        ([], "0::/", {"container": "lxc"}, "lxc"),
        ([], "0::/init.scope", {}, None),
    ],
)
def test_a_container_is_known_by_what_its_engine_leaves(marks, group, environment, kind):
    assert container_kind(marks, group, environment) == kind


@pytest.mark.parametrize(
    ("flags", "vendor", "product", "found"),
    [
        ("fpu hypervisor", {"missing": "x"}, {"missing": "x"}, True),
        ("fpu vme", "Dell Inc.", "PowerEdge R650", False),
        ("fp asimd", "QEMU", "KVM Virtual Machine", True),
        ("fp asimd", "Amazon EC2", "m6g.large", True),
        ("fp asimd", "Amazon EC2", "m6g.metal", False),
        ("fp asimd", "Ampere", "Altra", False),
    ],
)
def test_a_guest_is_known_by_the_processor_or_by_the_makers_names(flags, vendor, product, found):
    assert guest(flags, vendor, product) is found


def test_where_nobody_says_whether_this_is_a_guest_nothing_is_invented():
    assert list(guest("fp asimd", {"missing": "x"}, {"missing": "y"})) == ["missing"]


# --- network, kernel, software ----------------------------------------------------------------------------


def test_sockets_are_counted_by_protocol():
    text = "sockets: used 312\nTCP: inuse 14 orphan 0 tw 9001 alloc 20 mem 3\nUDP: inuse 2 mem 1\n"
    assert parse_sockets(text)["TCP"] == {"inuse": 14, "orphan": 0, "tw": 9001, "alloc": 20, "mem": 3}


def test_the_loopback_has_an_mtu_and_each_offload_is_on_off_or_missing():
    loopback = interfaces()["lo"]
    assert loopback["mtu"] >= 1500
    assert len(loopback["offloads"]) == 6
    assert all(isinstance(one, bool) or list(one) == ["missing"] for one in loopback["offloads"].values())


def test_the_preemption_model_is_taken_from_the_version_or_missing():
    assert preemption_of("#1 SMP PREEMPT_RT Debian 6.1") == "PREEMPT_RT"
    assert list(preemption_of("#41-Ubuntu SMP Mon")) == ["missing"]


def test_requirements_are_reduced_to_the_names_that_every_user_has():
    texts = ["uv>=0.9", "typing_extensions", "a.b[c]>=1; python_version<'4'", "pytest; extra == 'dev'"]
    assert package_names(texts) == ["a.b", "typing_extensions", "uv"]


def test_the_engines_digest_is_that_of_its_file():
    import hashlib

    import prony._engine

    digest = hashlib.sha256(Path(prony._engine.__file__).read_bytes()).hexdigest()
    assert engine() == {"version": prony._engine.__version__, "sha256": digest}


# --- what it does now -------------------------------------------------------------------------------------


def test_shares_of_the_cpus_time_add_up_and_busy_leaves_out_waiting_and_steal():
    found = shares("cpu  10 0 10 100 5 0 1 2 0 0", "cpu  40 0 20 140 15 0 6 7 0 0")
    assert found["busy"] == pytest.approx((30 + 10 + 5) / 100)
    assert (found["steal"], found["soft_irq"], found["io_wait"]) == (0.05, 0.05, 0.10)
    assert sum(share for state, share in found.items() if state != "busy") == pytest.approx(1)


def test_a_counter_that_steps_back_counts_as_nothing():
    # Linux's idle and iowait may (proc(5)).
    assert shares("cpu 0 0 0 100 9 0 0 0", "cpu 50 0 0 150 8 0 0 0")["io_wait"] == 0


def test_load_and_pressure_are_read_by_name():
    assert parse_load("1.96 4.31 2.38 3/960 4242")["running"] == 3
    some, full = "some avg10=38.10 avg60=15.20 avg300=8.13 total=9", "full avg10=0 avg60=0 avg300=0 total=0"
    found = parse_psi(f"{some}\n{full}")
    assert found["some"]["avg10"] == 38.1
    assert found["full"]["total"] == 0


def test_the_busiest_processes_are_named_with_their_share_of_one_cpu():
    before = {1: ("init", 100), 2: ("cron job", 0), 3: ("node", 50), 4: ("gone", 9)}
    after = {1: ("init", 100), 2: ("cron job", 25), 3: ("node", 55), 5: ("node", 3), 6: ("new", 4)}
    assert busiest(before, after, ticks=25) == {"cron job": 1.0, "node": 0.2}


def test_a_number_that_another_process_took_over_is_not_the_first_ones_time():
    assert busiest({7: ("old", 10)}, {7: ("other", 900)}, ticks=25) == {}


def test_a_process_may_call_itself_anything():
    assert parse_process("12 (x) S 1) R 1 1 1 0 -1 4194560 1 0 0 0 7 5 0 0 20") == ("x) S 1", 12)


def test_what_this_machine_does_is_seen():
    seen = watch_machine(0.1)
    assert sum(share for state, share in seen.cpu.items() if state != "busy") == pytest.approx(1)
    assert 0 <= seen.cpu["busy"] <= 1


# --- the kernel's log -------------------------------------------------------------------------------------


def test_a_message_of_the_kernel_has_its_level_and_time():
    record = "3,1042,987654321,-,caller=T7;Out of memory: Killed process 4242 (python)\n SUBSYSTEM=x\n"
    assert parse_message(record) == KernelMessage(3, 987654321, "Out of memory: Killed process 4242 (python)")


@pytest.mark.parametrize("priority", [8 * 1 + 6, 8 * 3 + 4])
def test_what_a_program_wrote_into_the_kernels_log_is_left_out(priority):
    assert parse_message(f"{priority},1,2,-;password is hunter2") is None


def test_a_long_log_is_cut_and_what_was_left_out_is_counted():
    records = [*(f"6,{number},{number},-;message {number}\n" for number in range(130)), None, "14,1,1,-;mine"]
    found = kept_of(records)
    assert (len(found["messages"]), found["left_out"], found["gaps"]) == (100, 30, 1)
    assert found["messages"][99] == {"level": 6, "boot_us": 99, "text": "message 99"}


def test_a_log_that_cannot_be_read_is_missing_with_its_reason(tmp_path):
    log = KernelLog(tmp_path / "no-kmsg")
    assert log.since() == {"missing": f"cannot read `{tmp_path}/no-kmsg`: No such file or directory"}
    log.close()


def test_the_log_is_kept_however_the_run_ends():
    kept = []
    with pytest.raises(ZeroDivisionError), kernel_log_kept(kept.append):
        raise ZeroDivisionError
    assert list(kept[0]) == ["kernel_log"]
    assert "missing" in kept[0]["kernel_log"] or kept[0]["kernel_log"]["left_out"] >= 0


@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK | os.W_OK), reason="only root reads the kernel's log")
def test_only_what_came_after_the_beginning_is_told():
    kept = []
    Path("/dev/kmsg").write_text("<14>prony-test: before and not the kernel's")
    with kernel_log_kept(kept.append):
        Path("/dev/kmsg").write_text("<14>prony-test: within and not the kernel's")
    messages = kept[0]["kernel_log"]["messages"]
    assert all("prony-test" not in one["text"] for one in messages)
