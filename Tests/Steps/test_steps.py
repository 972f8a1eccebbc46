"""Tests of scripts/steps: what a change selects, that the turns cover everything, and what a run makes of failures and flakes.

    python3 -m unittest discover -s Tests/Steps
"""
import contextlib, dataclasses, importlib.machinery, importlib.util, io, json, os, sys, tempfile, time, unittest, unittest.mock

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(root, 'scripts', 'feedback'))
import floors, records, rules, run, selection, table  # noqa: E402

loader = importlib.machinery.SourceFileLoader('faults', os.path.join(root, 'scripts', 'faults'))
faults = importlib.util.module_from_spec(importlib.util.spec_from_loader('faults', loader))
loader.exec_module(faults)

steps = table.load()
modules = selection.package()
landing = {step.name for step in steps.of('landing')}


def selected(*paths):
    return set(selection.select(paths, steps, modules))


class Selection(unittest.TestCase):
    """One file of each part, and the steps that its change selects beside make test and the turn."""

    def test_codec(self):
        self.assertEqual(selected('Plugins/Codecs/FerryJSON/JSONCodec.swift'), {'apple'})

    def test_le_host(self):
        self.assertEqual(selected('Sources/Bluetooth/BluetoothHost/LEHost.swift'), {'interop-hosts', 'interop-kernel', 'interop-mixed', 'apple'})

    def test_gateway(self):
        self.assertEqual(selected('Sources/Gateway/FerryGateway/Gateway.swift'), {'fleet'})

    def test_core(self):
        self.assertEqual(selected('Sources/Core/Ferry/Framing/Varint.swift'), landing - {'report', 'keys', 'installation', 'plain', 'package', 'docs'})

    def test_sequenced_framing(self):
        self.assertEqual(selected('Plugins/Framings/FerrySequenced/SequencedFraming.swift'), {'schedules', 'memory', 'apple', 'firmware'})

    def test_bluez(self):
        self.assertEqual(selected('Plugins/Transports/FerryBlueZ/BlueZAdapter.swift'), {'interop-bluez', 'interop-mixed'})

    def test_core_bluetooth(self):
        self.assertEqual(selected('Plugins/Apple/CoreBluetooth/CoreBluetooth.swift'), {'updates', 'docs', 'apple'})

    def test_records(self):
        self.assertEqual(selected('Plugins/Services/FerryRecords/Store/RecordStore.swift'), {'records', 'fleet', 'strangers'})

    def test_page(self):
        self.assertEqual(selected('Documentation/Formats.md'), set())

    def test_article(self):
        self.assertEqual(selected('Sources/Core/Ferry/Ferry.docc/Tutorial.md') & {'docs'}, {'docs'})

    def test_tests_select_the_steps_that_run_them_and_no_more(self):
        self.assertEqual(selected('Plugins/Transports/FerryHCI/Tests/KitTests.swift'), {'interop-hosts'})
        self.assertEqual(selected('Tests/Core/FerryTests/TimerTests.swift'), set())

    def test_the_package_and_the_scripts_select_everything(self):
        for path in ('Package.swift', 'scripts/library', '.ci/run', 'Makefile'):
            self.assertEqual(selected(path), landing, path)

    def test_every_module_is_reached(self):
        """A change of any module that people embed selects a step, is one that make test covers whole, or has a turn: the builds that
        FerryHTTP and FerryProtobuf need are too long for each landing."""
        whole = {'FerryHTTP', 'FerryMQTT', 'FerryProtobuf', 'FerryObservability', 'FerrySeal', 'FerryTransports', 'FerryLab', 'FerryCommand'}
        missed = {module.name for module in modules.values()
                  if module.folder.startswith(('Sources/', 'Plugins/')) and module.name.startswith(('Ferry', 'BluetoothHost', 'CoreBluetooth')) and not module.is_test
                  and not selected(f'{module.folder}/File.swift')}
        self.assertEqual(missed - whole, set())


class Floors(unittest.TestCase):
    """Who may lean on whom, as Documentation/Design.md says it."""

    page = open(os.path.join(root, 'Documentation/Design.md')).read()

    def wrong(self, name, **changed):
        """What is said of the package when one module is another."""
        return floors.problems(modules | {name: dataclasses.replace(modules[name], **changed)}, self.page)

    def test_the_package_has_the_floors_of_the_page(self):
        self.assertEqual(floors.problems(modules, self.page), [])
        order = list(floors.listed(self.page)[0])
        self.assertEqual((order[0], order[-1], len(order)), ('Sources/Core', 'Sources/Programs', 14))

    def test_no_floor_leans_on_a_higher_one(self):
        self.assertEqual(self.wrong('Ferry', needs=frozenset({'FerryBluetooth'})), [
            'Ferry, on Sources/Core, leans on FerryBluetooth, on Sources/Bluetooth: no floor leans on a higher one.'])

    def test_a_plugin_leans_on_no_other_plugin_that_the_page_does_not_name(self):
        self.assertEqual(self.wrong('FerrySMP', needs=modules['FerrySMP'].needs | {'FerryJSON', 'FerryUART'}), [
            f'FerrySMP leans on {name}, another plugin. Documentation/Design.md names those that may, each with its reason.'
            for name in ('FerryJSON', 'FerryUART')])
        self.assertEqual(self.wrong('FerrySMP', needs=modules['FerrySMP'].needs - {'FerryCBOR'}), [
            'Documentation/Design.md lets FerrySMP lean on FerryCBOR, which it does not.'])

    def test_a_module_is_on_its_floor(self):
        self.assertEqual(self.wrong('FerryDigest', folder='Sources/Testing/FerryDigest')[:1], [
            'FerryDigest is in Sources/Testing/FerryDigest, and the tree of Documentation/Design.md does not have it on that floor.'])
        self.assertEqual(floors.problems(modules, self.page.replace('        FerryDigest ', '        FerryGone   \n        FerryDigest ')), [
            'Documentation/Design.md has FerryGone in its tree, and there is no such folder.'])


class Turns(unittest.TestCase):
    def test_as_many_landings_as_there_are_turns_run_every_step_that_is_no_releases(self):
        for first in (0, 5, 123):
            ran = {step.name for number in range(first, first + steps.turns) for step in steps.in_turn(number % steps.turns)}
            self.assertEqual(ran, {step.name for step in steps.of('landing', 'turn')})

    def test_the_longest_landing_ends_in_twenty_five_minutes(self):
        """A landing whose change selects every step. Steps that compute run beside those that wait, and each takes longer so."""
        before = sum(step.expected('full') for step in steps.of('test'))
        for turn in range(steps.turns):
            full = {step.name for step in steps.in_turn(turn)}
            ran = [(step, step.expected('full' if step.name in full else 'short')) for step in steps.of('landing', 'turn')
                   if step.tier == 'landing' or step.name in full]
            serial = sum(seconds for step, seconds in ran if not step.beside)
            after = max(serial, 0.7 * sum(seconds for _, seconds in ran))
            self.assertLessEqual(before + after, 25 * 60, f'turn {turn}')


class Faults(unittest.TestCase):
    def test_an_expression_and_statements_are_planted(self):
        text = 'func f() {\n    a = b + c\n    end()\n}\n'
        edits = [(7, {'line': 'b + c', 'fault': 'b - c'}), (8, {'line': '    end()', 'fault': ''})]
        self.assertEqual(faults.planted(text, edits), (
            'func f() {\n    a = (ferryMutant == 7 ? (b - c) : (b + c))\n    if ferryMutant == 8 {\n\n} else {\n    end()\n}\n}\n'
        ).replace('    if', 'if'))

    def test_two_faults_at_one_place_are_refused(self):
        edits = [(1, {'line': 'b + c', 'fault': ''}), (2, {'line': 'c', 'fault': ''})]
        with self.assertRaisesRegex(table.Wrong, 'same place'):
            faults.planted('a = b + c\n', edits)

    def test_a_line_that_is_gone_is_told(self):
        gone = faults.Fault(1, {'name': 'Gone.', 'file': 'Makefile', 'line': 'no such line', 'fault': ''})
        self.assertIn('Makefile has 0 times', faults.problems([gone])[0])
        self.assertEqual(faults.problems(faults.load()), [])

    def test_the_tests_of_a_faults_module_come_first(self):
        fault = faults.Fault(1, {'name': 'One.', 'file': 'Plugins/Compression/FerryZlib/Inflater.swift', 'line': '', 'fault': ''})
        names = faults.ordered(fault, modules)
        self.assertEqual(names[0], 'FerryZlibTests')
        self.assertLess(names.index('EndToEndTests'), names.index('FerryFleetTests'))

    def test_steps_that_build_apart_are_left_out(self):
        _, pairs = faults.plan(None, steps, modules, faults.STAGES)
        names = {step.name for step, *_ in pairs}
        self.assertFalse(names & {'firmware', 'firmware-run', 'far-end', 'fuzz-host', 'sanitize-thread'})
        self.assertTrue(names >= {'keys', 'records', 'card-loopback', 'interop-bluez'})

    def test_a_fault_that_is_found_ends_all_targets(self):
        with tests_that('case $4 in *Slow*) sleep 600;; esac\n'
                        'echo "<t><testcase classname=\'Bad.FirstTests\' name=\'a()\'><failure/></testcase></t>" > "$6"\nexit 1\n') as folder:
            began = time.monotonic()
            running = faults.Tests(steps, faults.Path(folder) / 'logs', {})
            self.assertEqual(running.run(['SlowTests', 'Bad', 'SlowerSlowTests']), ('Bad', ['Bad.FirstTests/a()']))
            self.assertLess(time.monotonic() - began, 60)

    def test_what_computes_runs_a_few_tests_at_a_time_and_what_waits_all_at_once(self):
        with tests_that('echo "<t><testcase classname=\'A.BTests\' name=\'c()\'/></t>" > "$6"\n'
                        'echo "at a time: ${SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH-all}"\n') as folder:
            runner = faults.tests.Runner(folder, steps)
            for name, width in [('FerryTests', '8'), (steps.waiting[0], 'all')]:
                _, log, *_ = runner.run(name, f'^{name}\\.')
                with open(log) as file:
                    self.assertEqual(file.read(), f'at a time: {width}\n')


class Tables(unittest.TestCase):
    def test_a_gap_between_turns_is_refused(self):
        with self.assertRaisesRegex(table.Wrong, 'without a gap'):
            table.check(table.Table(2, [], [], [], [step('a', turn=1)]))

    def test_a_step_that_stands_twice_is_refused(self):
        with self.assertRaisesRegex(table.Wrong, 'twice'):
            table.check(table.Table(1, [], [], [], [step('a'), step('a')]))

    def test_a_fourth_flake_is_refused(self):
        with written('\n'.join(f'2026-01-01\ttest {number}\tunknown' for number in range(4))) as path:
            with self.assertRaisesRegex(table.Wrong, 'three are the most'):
                table.flakes(path)

    def test_a_flake_without_a_date_is_refused(self):
        with written('a test\tunknown') as path, self.assertRaisesRegex(table.Wrong, 'date'):
            table.flakes(path)


class Rules(unittest.TestCase):
    def test_a_clock_outside_of_the_list_is_found(self):
        with tempfile.TemporaryDirectory(dir=os.path.join(root, 'Tests')) as folder:
            module = selection.Module('SampleTests', os.path.relpath(folder, root), frozenset(), True)
            with open(os.path.join(folder, 'SomeTests.swift'), 'w') as file:
                file.write('// Task.sleep in a comment\nstruct SomeTests { func f() async { try? await Task.sleep(for: .zero) } }\n')
            found = rules.problems({'SampleTests': module}, {})
            self.assertEqual(len(found), 1)
            self.assertIn('SomeTests.swift:2: Task.sleep reads', found[0])
            self.assertEqual(rules.problems({'SampleTests': module}, {'SampleTests.SomeTests': 'because'}), [])

    def test_a_wait_without_a_time_limit_is_found(self):
        with tempfile.TemporaryDirectory(dir=os.path.join(root, 'Tests')) as folder:
            module = selection.Module('SampleTests', os.path.relpath(folder, root), frozenset(), True)
            for head, count in (('@Suite(.tags(.core))', 1), ('@Suite(.tags(.core), .timeLimit(.minutes(5)))', 0)):
                with open(os.path.join(folder, 'SomeTests.swift'), 'w') as file:
                    file.write(f'{head} struct SomeTests {{ func f() async throws {{ try await until("x") {{ true }} }} }}\n')
                self.assertEqual(len(rules.problems({'SampleTests': module}, {})), count, head)


class Runs(unittest.TestCase):
    """Steps that are one line of shell."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        # Fails the first time only.
        self.once = f'test -e {self.folder.name}/ran || {{ touch {self.folder.name}/ran; echo "error: the first time"; exit 1; }}'

    def run_steps(self, *chosen, listed=(), overlaps=False):
        """The status of a run, and its last lines."""
        runner = run.Run('test-of-steps', folder=self.folder.name, overlaps=overlaps)
        shown = io.TextIOWrapper(io.BytesIO())
        with contextlib.redirect_stdout(shown):
            runner.all([(one, 'full') for one in chosen])
            status = runner.finish(steps, time.monotonic(), {name: [] for name in listed})
        shown.seek(0)
        return status, shown.read()

    def test_steps_that_hold(self):
        status, text = self.run_steps(step('a', 'true'), step('b', 'true', beside=True))
        self.assertEqual(status, 0)
        self.assertTrue(text.endswith('No test was skipped.\n0 passed, 0 failed\n'), text)

    def test_at_a_landing_steps_that_compute_run_beside_those_that_wait(self):
        def waits(name):
            return f'until [ -e {self.folder.name}/{name} ]; do sleep 0.01; done'

        # The first waits for what computes; the second finds the first's end, for the two are not beside each other.
        status, text = self.run_steps(
            step('a', f'{waits("c")}; sleep 0.1; touch {self.folder.name}/a'), step('b', f'[ -e {self.folder.name}/a ]'),
            step('c', f'touch {self.folder.name}/c; {waits("a")}', beside=True), step('d', 'true', beside=True), overlaps=True)
        self.assertEqual(status, 0, text)

    def test_a_step_that_fails_is_named_with_its_cause_and_the_others_run(self):
        status, text = self.run_steps(step('a', 'echo "error: a cause"; exit 3'), step('b', f'touch {self.folder.name}/b'))
        self.assertEqual(status, 1)
        self.assertIn('FAILED: a\n    error: a cause', text)
        self.assertTrue(os.path.exists(f'{self.folder.name}/b'))
        self.assertTrue(text.endswith('0 passed, 1 failed\n'), text)

    def test_a_step_in_virtual_time_is_never_tried_twice(self):
        status, text = self.run_steps(step('a', self.once))
        self.assertEqual(status, 1)
        self.assertNotIn('flaky', text)

    def test_a_flake_that_is_listed_holds_and_is_named(self):
        status, text = self.run_steps(step('a', self.once, again=True), listed=['a'])
        self.assertEqual(status, 0, text)
        self.assertIn('flaky: a, which failed and held', text)
        self.assertIn('error: the first time', text)

    def test_a_flake_that_is_not_listed_fails_the_run(self):
        status, text = self.run_steps(step('a', self.once, again=True))
        self.assertEqual(status, 1)
        self.assertIn('FAILED: a is flaky, and .ci/flakes does not name it', text)
        self.assertTrue(text.endswith('0 passed, 1 failed\n'), text)

    def test_a_step_that_fails_twice_has_failed(self):
        status, text = self.run_steps(step('a', 'echo "error: always"; exit 1', again=True), listed=['a'])
        self.assertEqual(status, 1)
        self.assertIn('FAILED: a\n    error: always', text)

    def test_a_step_past_its_deadline_is_ended(self):
        runner = run.Run('test-of-steps', folder=self.folder.name)
        running = runner.begin(step('a', 'sleep 100'), 'full')
        running.limit = 0
        time.sleep(0.05)
        self.assertTrue(runner.ended(running, grace=0).failed)
        self.assertTrue(any('was cut off' in line for line in records.why(running.log)))

    def test_what_a_step_leaves_running_is_ended(self):
        # In a process group of its own, as Foundation starts processes.
        left = f'python3 -c "import subprocess; p = subprocess.Popen([\'sleep\', \'1000\'], process_group=0); print(p.pid)" >{self.folder.name}/left'
        self.assertEqual(self.run_steps(step('a', left))[0], 0)
        with open(f'{self.folder.name}/left') as file:
            left = int(file.read())
        for _ in range(1000):
            if not os.path.exists(f'/proc/{left}'):
                return
            time.sleep(0.01)
        self.fail('it still runs')

    def test_skipped_tests_are_told_with_the_steps_that_run_them(self):
        told = run.skipped_line([{'skipped': {'FerryHCITests': 33, 'FerryTests': 1}}], steps)
        self.assertEqual(told, '34 tests were skipped: 33 of FerryHCITests, run by interop-hosts; 1 of FerryTests, run by no step.')


class Held(unittest.TestCase):
    """What has been seen to hold on a commit."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.write('test', steps.of('test'))
        self.write('verify', steps.of('landing', 'turn', 'release'))

    def write(self, tier, ran, size='full', commit='abc', failed=0, report=()):
        os.makedirs(f'{self.folder.name}/{tier}', exist_ok=True)
        with open(f'{self.folder.name}/{tier}/summary.json', 'w') as file:
            held = [one.name for one in ran if size == 'full']
            json.dump({'commit': commit, 'failed': failed, 'failing': [], 'held': held, 'report': report}, file)

    def lacking(self):
        return run.lacking(steps, 'abc', self.folder.name)

    def test_both_tiers_in_full_on_this_commit_hold(self):
        self.assertEqual(self.lacking(), [])

    def test_another_commit_a_changed_one_and_no_run_at_all_are_told(self):
        self.write('test', steps.of('test'), commit='abd')
        self.assertEqual(self.lacking(), ['make test was last run on abd, not on abc.'])
        self.write('test', steps.of('test'), commit=None)
        self.assertEqual(self.lacking(), ['make test was last run on a commit with changes, not on abc.'])
        os.remove(f'{self.folder.name}/test/summary.json')
        self.assertEqual(self.lacking(), ['make test has not been run here.'])

    def test_a_failure_is_named(self):
        self.write('verify', steps.of('landing', 'turn', 'release'), failed=1, report=['flaky: a', 'FAILED: b', '    why'])
        self.assertEqual(self.lacking(), ['make verify failed: FAILED: b'])

    def test_steps_that_are_missing_or_ran_at_their_short_size_are_named(self):
        self.write('verify', steps.of('landing', 'turn'))
        releases = ' '.join(one.name for one in steps.of('release'))
        self.assertEqual(self.lacking(), [f'make verify was run without {len(steps.of("release"))} of its steps: {releases}'])
        self.write('verify', steps.of('landing', 'turn', 'release'), size='short')
        self.assertEqual(len(self.lacking()), 1)


class Limit(unittest.TestCase):
    def test_a_step_with_its_own_build_has_time_for_it(self):
        for one in steps.steps:
            expected = 12 * one.expected('full') + 300
            self.assertEqual(run.limit(one, 'full'), expected + 1800 if one.build else expected, one.name)
        self.assertTrue(all(steps.named(name).build for name in ('fuzz-codecs', 'http', 'sanitize-thread', 'plain')))

    def test_a_slow_machine_is_not_taken_for_one_that_hangs(self):
        # It was cut off after 540 s at a landing, and held when it was run again; 292 s were seen on an idle machine.
        self.assertGreater(run.limit(steps.named('interop-mixed'), 'short'), 900)
        # The build was cut off after 1660 s beside three busy loops, on a machine where it takes 1000 to 1200 s alone.
        self.assertGreater(run.limit(steps.named('build'), 'full'), 3600)


class Seen(unittest.TestCase):
    """What several runs have seen of one commit."""

    def outcome(self, name, status=0, size='full'):
        return run.Outcome(step(name), size, status, 1, 1, records.Counts())

    def test_runs_of_a_commit_add_up_and_the_last_of_a_step_counts(self):
        first = run.Seen().after([self.outcome('lint'), self.outcome('tests', 1), self.outcome('core', size='short')])
        self.assertEqual(first.words(), {'held': ['lint'], 'failing': ['tests']})
        second = first.after([self.outcome('tests'), self.outcome('lint', 1)])
        self.assertEqual(second.words(), {'held': ['tests'], 'failing': ['lint']})

    def test_another_commit_begins_anew(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(f'{folder}/seen.json', 'w') as file:
                json.dump({'commit': 'abc', 'held': ['lint'], 'failing': ['tests']}, file)
            self.assertEqual(run.Seen.of(folder, 'abc').words(), {'held': ['lint'], 'failing': ['tests']})
            self.assertEqual(run.Seen.of(folder, 'abd').words(), {'held': [], 'failing': []})
            self.assertEqual(run.Seen.of(folder, None).words(), {'held': [], 'failing': []})
            self.assertEqual(run.Seen.of(f'{folder}/none', 'abc').words(), {'held': [], 'failing': []})

    def test_what_was_seen_before_a_run_was_cut_off_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            cut = run.Run.__new__(run.Run)
            cut.folder, cut.commit, cut.outcomes, cut.earlier = folder, 'abc', [], run.Seen({'lint'}, set())
            cut.keep()
            self.assertEqual(run.Seen.of(folder, 'abc').words(), {'held': ['lint'], 'failing': []})
            cut.note(self.outcome('tests'))
            cut.note(self.outcome('lint', 1))
            self.assertEqual(run.Seen.of(folder, 'abc').words(), {'held': ['tests'], 'failing': ['lint']})


class Records(unittest.TestCase):
    def test_a_crash_is_told_with_its_place(self):
        text = """\
*** Signal 11: Backtracing from 0x7fe93e78b8b3... done ***

*** Program crashed: Bad pointer dereference at 0x00007f25d66ab000 ***

Platform: x86_64 Linux (Debian GNU/Linux 12 (bookworm))

Thread 4 "oot.default-qos" crashed:

 0                  0x00007f25ef58b8b3 __memcpy_avx512_unaligned_erms + 179 in libc.so.6
 1 [ra]             0x00007f25f075c81d Process.run() + 6428 in libFoundation.so
 2 [ra] [thunk]     0x0000556ec7b1afa9 Worker.init(_:_:) + 2520 in ferryPackageTests.xctest at /here/Tests/ProcessTests.swift:43:29
...

Backtrace took 18.47s
"""
        self.assertEqual(records.crash(text), [
            'Program crashed: Bad pointer dereference at 0x00007f25d66ab000',
            '  __memcpy_avx512_unaligned_erms + 179 in libc.so.6',
            '  Process.run() + 6428 in libFoundation.so',
            '  Worker.init(_:_:) + 2520 at /here/Tests/ProcessTests.swift:43:29'])
        self.assertEqual(records.crash('tests: all passed'), [])

    def test_counts(self):
        with written('<?xml version="1.0"?><testsuites><testsuite>'
                     '<testcase classname="A.B" name="c()"/><testcase classname="A.B" name="d()"><failure message="x"/></testcase>'
                     '<testcase classname="A.B" name="e()"><skipped/></testcase></testsuite></testsuites>') as path:
            counts = records.read(path)
        self.assertEqual((counts.passed, counts.failed, counts.skipped, counts.failures), (1, 1, {'A': 1}, ['A.B/d()']))

    def test_a_record_that_is_not_whole_is_none(self):
        with written('<?xml version="1.0"?><testsuites><testsuite>') as path:
            self.assertIsNone(records.read(path))

    def test_suites_that_read_a_clock(self):
        known = {'FerryBlueZTests': '', 'FerryTests.TimerTests': ''}
        self.assertTrue(table.reads_a_clock('FerryBlueZTests.KitTests/a()', known))
        self.assertTrue(table.reads_a_clock('FerryTests.TimerTests/a()', known))
        self.assertTrue(table.reads_a_clock('FerryTests.TimerTests.Inner/a()', known))
        self.assertFalse(table.reads_a_clock('FerryTests.TimerTestsToo/a()', known))


def step(name, command='true', turn=None, **more):
    return table.Step(name=name, tier='test' if turn is None else 'turn', command=command, what='', seconds=[1], turn=turn, **more)


@contextlib.contextmanager
def tests_that(script):
    """Puts a script in the place of the built tests, and gives it a folder. It is called with
    --testing-library swift-testing --filter PATTERN --xunit-output RECORD."""
    with tempfile.TemporaryDirectory() as folder:
        bundle = os.path.join(folder, 'bundle')
        with open(bundle, 'w') as file:
            file.write('#!/bin/sh\n' + script)
        os.chmod(bundle, 0o755)
        with unittest.mock.patch.object(faults.tests, 'bundle', bundle):
            yield folder


@contextlib.contextmanager
def written(text):
    with tempfile.NamedTemporaryFile('w') as file:
        file.write(text)
        file.flush()
        yield file.name


if __name__ == '__main__':
    unittest.main()
