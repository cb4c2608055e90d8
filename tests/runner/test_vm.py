# SPDX-License-Identifier: GPL-2.0
"""Tests of scripts/vm: that what happens in a guest arrives on the host, and that no fault of a kernel gets lost.

They need the base kernel (scripts/sdk base) and no built modules. Run them with pytest, or with
`python3 -m unittest` on a machine that has nothing but Python.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
VM = TOP / "scripts/vm"

sys.path.insert(0, str(TOP / "scripts/guest"))
sys.dont_write_bytecode = True

import modules
import output
import report
import sdk
import shares


def vm(*words, cwd=TOP, **variables):
    """Runs scripts/vm with the C modules, which are always there."""
    command = [VM, *words] if "--impl" in words else [VM, "--impl", "c", *words]
    return subprocess.run(command, cwd=cwd, env=os.environ | variables, capture_output=True)


def processes_with(text):
    """How many processes have `text` in their command line."""
    count = 0
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            count += text.encode() in entry.read_bytes()
        except OSError:
            pass
    return count


class Parts(unittest.TestCase):
    """What can be tried without a guest."""

    def test_token_ends_stream_wherever_it_is_cut(self):
        text, token = b"one abcab two abcabcabd rest", b"abcabd"
        for size in range(1, len(text)):
            stream = output.UntilToken(token)
            parts = [stream.feed(text[at : at + size]) for at in range(0, len(text), size)]
            self.assertEqual(b"".join(parts), b"one abcab two abc", size)
            self.assertTrue(stream.ended)

    def test_complaints(self):
        faults = [
            b"[    1.0] BUG: KASAN: slab-use-after-free in rds_conn_create+0x1/0x2",
            b"[    1.0] WARNING: net/rds/tcp.c:12 at rds_tcp_tune+0x1/0x2, CPU#0: swapper/0",
            b"[    1.0] rust_kernel: panicked at rust/rds/lib.rs:1:1:",
            b"[    1.0] unregister_netdevice: waiting for lo to become free. Usage count = 2",
            b"[    1.0] INFO: task modprobe:12 blocked for more than 60 seconds.",
            b"[    1.0] rcu: INFO: rcu_sched self-detected stall on CPU",
            b"[    1.0] weft-leakcheck: leaked kernel memory, see the report on stderr",
        ]
        for line in faults:
            console = report.Console()
            console.feed(b"before\r\n" + line + b"\r\nafter\r\n")
            self.assertEqual(console.complaints, [1], line)
            self.assertIn(line, console.report())
        console = report.Console()
        console.feed(b"[    0.0] kasan: KernelAddressSanitizer initialized (generic)\r\nRDS/tcp: debug\r\n")
        console.feed(b"[    1.0] ref_tracker: memory allocation failure, unreliable refcount tracker.\r\n")
        self.assertEqual(console.complaints, [])

    def test_shares_that_are_visible_anyway_are_left_out(self):
        folders = shares.plan("/w/p", "/h/cache", ["/w/p/sub", "/s", "/s/t"])
        self.assertEqual([share.path for share in folders], ["/h/cache", "/s", "/w/p"])
        self.assertEqual([share.writable for share in folders], [False, True, True])
        self.assertTrue(shares.visible("/w/p/sub/x", folders))
        self.assertFalse(shares.visible("/w", folders))

    def test_bad_usage_is_one_sentence(self):
        for words in [
            (),
            ("--impl", "x", "--", "true"),
            ("--pair", "--", "true"),
            ("--share", "/nowhere", "--", "true"),
        ]:
            done = vm(*words)
            self.assertEqual(done.returncode, 125)
            self.assertEqual(done.stderr.count(b"\n"), 1)


class Modules(unittest.TestCase):
    """The tree that holds our modules beside those of the kernel."""

    def setUp(self):
        (TOP / "build").mkdir(exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(dir=TOP / "build", prefix="test-vm-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def test_ours_come_first(self):
        own = modules.own_modules("base", sdk.prepared("base"))
        ours = self.folder / "rds.ko"
        shutil.copy(own / "kernel/net/rds/rds.ko", ours)
        tree = modules.combined(self.folder / "trees", own, [ours])
        lines = (tree / "modules.dep").read_text().splitlines()
        self.assertEqual([line for line in lines if line.partition(":")[0].endswith("/rds.ko")], ["updates/rds.ko:"])
        self.assertTrue(any(line.startswith("kernel/drivers/block/null_blk") for line in lines))
        self.assertEqual(modules.combined(self.folder / "trees", own, [ours]), tree)
        ours.write_bytes(ours.read_bytes() + b" ")
        self.assertNotEqual(modules.combined(self.folder / "trees", own, [ours]), tree)


class OneGuest(unittest.TestCase):
    def test_output_arguments_and_status(self):
        words = ["", "a b", "it's", '"$HOME" `x` \\', "two\nlines", "\u00e9\u0081", "--", "*"]
        script = (
            'import os, sys; sys.stdout.buffer.write(bytes(range(256)) * 4096 + os.fsencode("\\0".join(sys.argv[1:])))'
        )
        shell = 'python3 -c "$0" "$@"; echo to stderr >/dev/stderr; exit 7'
        done = vm("--", "bash", "-c", shell, script, *words)
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertEqual(done.stdout, bytes(range(256)) * 4096 + "\0".join(words).encode())
        self.assertEqual(done.stderr, b"to stderr\n")

    def test_surroundings(self):
        (TOP / "build").mkdir(exist_ok=True)
        share = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, share)
        script = f"""
            set -eu
            test "$PWD" = {TOP}/tests/runner; test "$HOME" = /root; test -z "${{WEFT_CACHE-}}"
            test "$WEFT_KERNEL $WEFT_IMPL $WEFT_TEST_OF_VM" = "base c it's"
            test "$(id -u) $(nproc)" = "0 1"
            echo from the guest >{share}/file
            touch /etc/a /usr/b /tmp/c /run/d /dev/shm/e
            ping -qc1 127.0.0.1 >/dev/null
            modprobe rds_tcp; modinfo -n rds
            mountpoint -q /sys/kernel/debug; test -e /sys/kernel/config; test -e /dev/ptmx
            ip netns add x; ip -n x link add v type veth peer name w; ip netns del x
            modprobe -r rds_tcp rds
            cat <(echo done)"""
        words = ("--cpus", "1", "--share", share, "--", "bash", "-c", script)
        done = vm(*words, cwd=TOP / "tests/runner", WEFT_TEST_OF_VM="it's")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertRegex(done.stdout, rb"^/lib/modules/[^/]+/kernel/net/rds/rds.ko\ndone\n$")
        self.assertEqual(Path(share, "file").read_text(), "from the guest\n")

    def test_crash(self):
        # A line is on its way to the caller for a moment, and what is on its way a crash takes along.
        done = vm("--", "sh", "-c", "echo before; sleep 1; echo c >/proc/sysrq-trigger")
        self.assertEqual((done.returncode, done.stdout), (99, b"before\n"))
        self.assertIn(b"sysrq triggered crash", done.stderr)

    def test_warning(self):
        done = vm("--", "sh", "-c", 'echo "<4>WARNING: not a real one" >/dev/kmsg')
        self.assertEqual(done.returncode, 99)
        self.assertIn(b"WARNING: not a real one", done.stderr)

    def test_early_end(self):
        done = vm("--", "sh", "-c", "echo o >/proc/sysrq-trigger; sleep 60")
        self.assertEqual(done.returncode, 99)
        self.assertIn(b"ended before its command", done.stderr)

    def test_timeout(self):
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as share:
            done = vm("--timeout", "8", "--share", share, "--", "sleep", "100")
            self.assertEqual(processes_with(f"path={share}"), 0)
        self.assertEqual(done.returncode, 124)
        self.assertIn(b"timed out after 8 s", done.stderr)
        self.assertLess(time.monotonic() - begin, 14)

    def test_signals_leave_nothing(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number.name), tempfile.TemporaryDirectory() as share:
                command = [VM, "--impl", "c", "--share", share, "--", "sh", "-c", "echo running; sleep 100"]
                with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
                    self.assertEqual(process.stdout.readline(), b"running\n")
                    self.assertEqual(processes_with(f"path={share}"), 1)
                    process.send_signal(number)
                    self.assertEqual(process.wait(10), -number)
                self.assertEqual(processes_with(f"path={share}"), 0)


class TwoGuests(unittest.TestCase):
    def test_link_and_prefixes(self):
        server = 'echo "I am $(hostname)"; modprobe rds_tcp && weft-ready; sleep 100'
        client = (
            'weft-await; ping -qc1 $WEFT_PEER >&2 && ping -qc1 $WEFT_PEER6 >&2; echo "$WEFT_ADDR $WEFT_ADDR6"; exit 5'
        )
        done = vm("--pair", "--impl", "c,c", "--", "sh", "-c", server, "--", "sh", "-c", client)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()), [b"A: I am weft-a", b"B: 10.9.0.2 fd09::2"])
        self.assertEqual(done.stderr.count(b"B: 1 packets transmitted, 1 received"), 2)

    def test_failure_of_the_server(self):
        done = vm("--pair", "--impl", "c,c", "--", "sh", "-c", "exit 3", "--", "sleep", "100")
        self.assertEqual(done.returncode, 3, done.stderr)


if __name__ == "__main__":
    unittest.main()
