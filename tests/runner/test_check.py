# SPDX-License-Identifier: GPL-2.0
"""Tests of scripts/check: that no result gets lost or is taken for a better one. They need no guest."""

import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "scripts" / part) for part in ("checks", "guest")]
sys.dont_write_bytecode = True

import guests
import plan
import scenario
from cases import FAIL, PASS, SKIP, Cargo, Case, Fuzz, Unittest, Verdicts
from schedule import Schedule


def cases(parser, text):
    return [case for line in text.splitlines() if (case := parser.feed(line))]


class Parsers(unittest.TestCase):
    def test_verdicts(self):
        text = "PASS one\nnoise\nFAIL two: why: because\nSKIP three: no disk\nPASS a b [3.2 s]\nPASSED x\n"
        self.assertEqual(
            cases(Verdicts(), text),
            [
                Case("one", PASS),
                Case("two", FAIL, "why: because"),
                Case("three", SKIP, "no disk"),
                Case("a b", PASS),
            ],
        )

    def test_cargo(self):
        text = """\
     Running unittests weft_proto.rs (target/release/deps/weft_proto-0123456789abcdef)
test rds::window::tests::order ... ok
test rds::wire::tests::size ... FAILED
test slow ... ignored, takes an hour
   Doc-tests weft_proto
test rds.rs - rds (line 3) ... ok
test result: ok. 3 passed
"""
        self.assertEqual(
            [(case.name, case.result) for case in cases(Cargo(), text)],
            [
                ("weft_proto/rds::window::tests::order", PASS),
                ("weft_proto/rds::wire::tests::size", FAIL),
                ("weft_proto/slow", SKIP),
                ("weft_proto-doc/rds.rs_-_rds_(line_3)", PASS),
            ],
        )

    def test_unittest(self):
        text = """\
test_one (test_vm.Parts.test_one) ... ok
test_two (tests.runner.test_vm.Parts.test_two)
With a description. ... FAIL
test_three (test_vm.Guest.test_three) ... skipped 'no disk'
test_four (test_vm.Guest.test_four) ... noise
more noise
ERROR
Ran 4 tests
"""
        self.assertEqual(
            [(case.name, case.result) for case in cases(Unittest(), text)],
            [
                ("Parts/test_one", PASS),
                ("Parts/test_two", FAIL),
                ("Guest/test_three", SKIP),
                ("Guest/test_four", FAIL),
            ],
        )

    def test_fuzz(self):
        found = cases(Fuzz(), "stream: 123 inputs in 10 s\next: failed, see x\n1 passed, 1 failed\n")
        self.assertEqual([(case.name, case.result) for case in found], [("stream", PASS), ("ext", FAIL)])


class Scenarios(unittest.TestCase):
    def test_settings(self):
        text = "#!/bin/sh\n# SPDX\n# kernel: base debug\n# timeout: 10 30\n# mode: soak\n\n# impl: c\n"
        found = list(scenario.ways("40-x", text, "soak"))
        self.assertEqual([one.name for one in found], ["base/x", "debug/x"])
        self.assertEqual([one.timeout for one in found], [30, 60])
        self.assertEqual(list(scenario.ways("40-x", text, "check")), [])

    def test_pairs(self):
        (one, two) = scenario.ways("70-x", "# pair: rust,c c,rust\n# kernel: base\n", "check")
        self.assertEqual((one.name, two.name), ("base/x/rust,c", "base/x/c,rust"))
        self.assertTrue(one.pair and one.alone)

    def test_kernel_parameters(self):
        (one,) = scenario.ways("24-x", "# append: ipv6.disable=1 quiet\n", "check")
        self.assertTrue(one.alone)
        words = guests.command([one], Path("log"))
        self.assertEqual(words[words.index("--append") + 1], "ipv6.disable=1 quiet")

    def test_light_ones_have_a_guest_to_themselves(self):
        text = "# kernel: base\n"
        found = [*scenario.ways("50-x", text, "check"), *scenario.ways("56-y", text + "# load: light\n", "check")]
        groups = [(task.name, task.light) for task in plan.guest_tasks(found, 2, {})]
        self.assertEqual(sorted(groups), [("guest-base-rust", False), ("guest-base-rust-light", True)])

    def test_mistakes_are_told(self):
        for text in ("# kernel: bse\n", "# impl: rst\n", "# timeout: long\n", "# pair: rust\n"):
            with self.assertRaises(ValueError):
                list(scenario.ways("x", text, "check"))

    def test_all_of_the_tree_can_be_read(self):
        for mode in scenario.MODES:
            self.assertTrue(scenario.discover(mode))

    def test_groups(self):
        members = [scenario.Scenario(f"{n}-x", "base", "rust", 100, False, False) for n in range(5)]
        known = {one.name: 70.0 for one in members}
        tasks = plan.guest_tasks(members, 2, known)
        self.assertEqual(sorted(len(task.scenarios) for task in tasks), [2, 3])
        self.assertEqual(len(plan.guest_tasks(members, 2, {one.name: 5.0 for one in members})), 1)


class Transcripts(unittest.TestCase):
    def test_scenario_in_which_the_guest_ends(self):
        transcript = guests.Transcript()
        for line in ("@begin a", "PASS x", "@end a", "@begin b", "PASS y", "scripts/vm: failed", "FAIL z: no"):
            transcript.feed(line)
        self.assertEqual((transcript.begun, transcript.ended, transcript.running), (["a", "b"], {"a"}, "b"))
        self.assertEqual(transcript.cases["b"], [Case("y", PASS)])

    def test_pair(self):
        transcript = guests.Transcript()
        lines = ("A: @begin a", "B: @begin a", "A: PASS unload", "A: @end a", "B: FAIL x: y", "B: @end a")
        ended = [transcript.feed(line) for line in lines]
        self.assertEqual(ended, [None] * 5 + ["a"])
        self.assertEqual(transcript.cases["a"], [Case("a/unload", PASS), Case("b/x", FAIL, "y")])

    def test_faults_belong_to_scenarios(self):
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "log")
            log.write_text(
                "boot\n[1] weft-check: begin one\n[2] weft-check: end one\n[3] weft-check: begin two\n"
                "[4] WARNING: net/x.c:1 at f\r\n[5] trace\n[6] weft-check: begin leaks\n[7] weft-leakcheck: found\n"
            )
            faults = guests.kernel_faults(log)
        self.assertEqual(list(faults), ["two"])
        self.assertEqual(faults["two"][0], "[4] WARNING: net/x.c:1 at f")
        self.assertIn("[5] trace", faults["two"][1])


class FakeTask:
    def __init__(self, name, needs=(), result=True, seconds=0.0, light=False):
        self.name, self.needs, self.now, self.light = name, set(needs), "", light
        self._result, self._seconds = result, seconds

    def run(self, context):
        context.started.append(self.name)
        time.sleep(self._seconds)
        if isinstance(self._result, Exception):
            raise self._result
        return self._result


class FakeContext:
    def __init__(self):
        self.started, self.reports = [], []

    def report(self, name, found, *_):
        self.reports += [(name, case.result) for case in found]

    def stop(self):
        pass


class FakeResults:
    def say(self, text):
        pass

    def silent_for(self):
        return 0


class Schedules(unittest.TestCase):
    def _run(self, *tasks, slots=2):
        context = FakeContext()
        thread = threading.Thread(target=Schedule(tasks, slots, FakeResults(), context).run, daemon=True)
        thread.start()
        thread.join(30)
        self.assertFalse(thread.is_alive())
        return context

    def test_needs_come_first(self):
        context = self._run(FakeTask("b", ["a"]), FakeTask("c"), FakeTask("a", seconds=0.1))
        self.assertLess(context.started.index("a"), context.started.index("b"))

    def test_failure_spreads(self):
        context = self._run(FakeTask("a", result=False), FakeTask("b", ["a"]), FakeTask("c", ["b"]), FakeTask("d"))
        self.assertEqual(sorted(context.started), ["a", "d"])
        self.assertEqual(context.reports, [("b", FAIL), ("c", FAIL)])

    def test_one_light_task_more_than_slots(self):
        tasks = [FakeTask(name, seconds=0.5, light=name in "cde") for name in "abcdef"]
        context = FakeContext()
        thread = threading.Thread(target=Schedule(tasks, 2, FakeResults(), context).run, daemon=True)
        thread.start()
        time.sleep(0.25)
        self.assertEqual(sorted(context.started), ["a", "b", "c"])
        thread.join(30)
        self.assertEqual(sorted(context.started), list("abcdef"))

    def test_mistake_in_a_task_is_a_failure(self):
        context = self._run(FakeTask("a", result=ValueError("x")), FakeTask("b", ["a"]))
        self.assertEqual(context.reports, [("a", FAIL), ("b", FAIL)])


if __name__ == "__main__":
    unittest.main()
