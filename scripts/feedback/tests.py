"""All tests: a process for each test target, two that compute and one that waits for other programs at a time.

A test that fails is run once more, alone, when its suite is one that Tests/RealClocks names, since other processes and a real
clock can make a test fail that has nothing wrong. A test in virtual time is never tried twice.
"""
import json, os, queue, re, shutil, signal, subprocess, sys, threading, time

import records, sessions
from table import Wrong, clocks, load, reads_a_clock, root
from selection import package

build = '.build-traits'
bundle = f'{build}/debug/ferryPackageTests.xctest'
# What a target may take at most, and when to look where it hangs: a busy machine is slow by several times.
deadline, stalls = 900, 600
# Tests of a target that computes, at a time: with all at once, each waits for the others, and its time limit counts that.
width = 8
# A process that crashes writes down where. Those that it starts are told not to (ChildProcess): some are to crash.
backtrace = 'enable=yes,interactive=no,color=no,threads=crashed,images=none,registers=none,limit=24'


def unprivileged():
    """Root may do what most people may not: tests that are root's would pass where theirs fail. Mapped to another user, root has no
    more powers than anybody, and owns its files all the same."""
    words = ['unshare', '--user', '--map-user=1000', '--map-group=1000']
    if os.getuid() == 0 and shutil.which('unshare') and subprocess.run([*words, 'true'], capture_output=True).returncode == 0:
        return words
    return []


class Runner:
    def __init__(self, results, table):
        self.results = results
        self.table = table
        self.prefix = unprivileged()
        self.running = set()
        self.lock = threading.Lock()
        self.targets = {}
        self.broken = []

    def run(self, name, pattern):
        """Runs the tests that a pattern finds; their counts, and the log."""
        record, log = (os.path.join(self.results, name + ending) for ending in ('-swift-testing.xml', '.log'))
        for path in (record, log):
            if os.path.exists(path):
                os.remove(path)
        words = [*self.prefix, bundle, '--testing-library', 'swift-testing', '--filter', pattern, '--xunit-output', record]
        environment = {**os.environ, 'SWIFT_BACKTRACE': backtrace}
        if name not in self.table.waiting:
            environment['SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH'] = str(width)
        began = time.monotonic()
        with open(log, 'w') as output:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
                                       env=environment)
        with self.lock:
            self.running.add(process)
        watch = threading.Timer(stalls, self.stall, [process, log])
        end = threading.Timer(deadline, self.cut_off, [process, log, name])
        for timer in (watch, end):
            timer.daemon = True
            timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        for timer in (watch, end):
            timer.cancel()
        with self.lock:
            self.running.discard(process)
        # What a test has left running.
        sessions.end(process.pid)
        counts = records.read(record)
        # 69: the filter found no test, because a trait is off.
        if process.returncode == 69 and not (counts and counts.failed):
            counts = records.Counts()
        elif counts is None or process.returncode != 0 and not counts.failed:
            ended = f'a signal, {signal.Signals(-process.returncode).name}' if process.returncode < 0 else f'status {process.returncode}'
            counts = counts or records.Counts()
            counts.failed += 1
            with self.lock:
                self.broken.append(f'{name} ended with {ended}')
                self.broken += [f'{name}: {line}' for line in self.crash(log)]
        return counts, log, time.monotonic() - began, usage.ru_utime + usage.ru_stime

    def crash(self, log):
        with open(log, errors='replace') as file:
            return records.crash(records.plain(file.read()))

    def cut_off(self, process, log, name):
        with open(log, 'a') as output:
            output.write(f'\ntests: {name} had not ended after {deadline} s, and was cut off.\n')
        sessions.end(process.pid)

    def stall(self, process, log):
        """What a process waits for when it has run for long: its timers, which are due when nothing is left of them, and where its
        threads stand, if there is a debugger."""
        with open(log, 'a') as output:
            try:
                for entry in sorted(os.listdir(f'/proc/{process.pid}/fdinfo')):
                    with open(f'/proc/{process.pid}/fdinfo/{entry}') as file:
                        text = file.read()
                    if 'clockid' in text:
                        told = [line for line in text.splitlines() if re.match('clockid|ticks|it_value', line)]
                        output.write(f'stalled: a timer: {" ".join(told)}\n')
            except OSError:
                pass
            if not shutil.which('gdb'):
                return
            words = ['gdb', '--batch', '-p', str(process.pid), '-ex', 'thread apply all backtrace 40']
            try:
                text = subprocess.run(words, capture_output=True, text=True, errors='replace', timeout=200).stdout
            except subprocess.TimeoutExpired:
                return
            places = {}
            for thread in re.split(r'(?m)^Thread ', text)[1:]:
                if match := re.search(r' at .*?([^/\s]*\.swift:\d+)', thread):
                    places[match[1]] = places.get(match[1], 0) + 1
            for place, number in places.items():
                output.write(f'stalled: {number} threads within {place}\n')

    def target(self, name):
        counts, log, seconds, processor = self.run(name, f'^{name}\\.')
        with self.lock:
            self.targets[name] = counts
            print(f'{name}: {counts.passed} passed, {counts.failed} failed, {sum(counts.skipped.values())} skipped, '
                  f'{seconds:.1f} s, {processor:.1f} s of a processor', flush=True)
            if counts.failed:
                with open(log, errors='replace') as file:
                    print(records.plain(file.read()), flush=True)

    def all(self, names):
        """Runs targets, those that compute two at a time and those that wait one after another beside them."""
        computing, waiting = queue.SimpleQueue(), queue.SimpleQueue()
        first = {name: place for place, name in enumerate(self.table.heavy + self.table.waiting)}
        for name in sorted(names, key=lambda name: first.get(name, len(first))):
            (waiting if name in self.table.waiting else computing).put(name)

        def work(*queues):
            for source in queues:
                while True:
                    try:
                        name = source.get_nowait()
                    except queue.Empty:
                        break
                    self.target(name)

        workers = [threading.Thread(target=work, args=queues, daemon=True)
                   for queues in ((computing,), (computing,), (waiting, computing))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def again(self, failures):
        """Runs tests once more, each alone; of those that pass now, what was seen the first time."""
        seen = []
        for name in failures:
            suite, test = name.split('/', 1)
            target = suite.split('.')[0]
            first = records.why(os.path.join(self.results, target + '.log'), most=2)
            pattern = '^' + re.escape(suite) + '/' + re.escape(test.split('(')[0]) + r'\('
            print(f'{name} is run once more, alone', flush=True)
            counts, log, *_ = self.run(f'again-{target}', pattern)
            os.rename(os.path.join(self.results, f'again-{target}-swift-testing.xml'), log + '.xml')
            if counts.passed and not counts.failed:
                seen.append((name, ' '.join(first)))
        return seen


def main(names):
    os.chdir(root)
    table = load()
    there_are = [module.name for module in package().values() if module.is_test]
    for name in names:
        if name not in there_are:
            raise Wrong(f'there is no test target {name}. There are: {" ".join(sorted(there_are))}')
    if not os.path.exists(bundle):
        raise Wrong('the tests are not built: scripts/check build')
    results = os.environ.get('FERRY_RESULTS_FOLDER', '.build-results/alone')
    os.makedirs(results, exist_ok=True)
    runner = Runner(results, table)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        runner.all(names or there_are)
        counts = records.Counts()
        for found in runner.targets.values():
            counts.add(found)
        known = clocks()
        timed = [name for name in counts.failures if reads_a_clock(name, known)]
        # More than three fail a run anyway.
        flaky = runner.again(timed) if 0 < len(timed) <= 3 else []
    finally:
        for process in list(runner.running):
            sessions.end(process.pid)
    told = {name for name, _ in flaky}
    counts.failures = [name for name in counts.failures if name not in told]
    counts.failed -= len(told)
    counts.passed += len(told)
    with open(os.path.join(results, 'counts.json'), 'w') as file:
        json.dump({**counts.__dict__, 'flaky': flaky}, file)
    for line in runner.broken + [f'failed: {name}' for name in counts.failures]:
        print(f'tests: {line}', file=sys.stderr)
    return 1 if counts.failed or counts.passed == 0 else 0
