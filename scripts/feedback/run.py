"""Runs steps: each with a log, a deadline and its own folder of results, one that may meet a busy machine once more when it failed.

The last lines say what failed and why, what was flaky, how long each step took beside what the table says, how many tests were
skipped and which steps run them, and how many tests passed and failed.
"""
import json, os, shutil, signal, subprocess, sys, time
from dataclasses import dataclass, field

import records, sessions
from selection import git
from table import flakes, root


def limit(step, size):
    """How many seconds a step may take before it counts as one that hangs: a busy machine is given four times what an idle one takes,
    and idle machines differ by three. A step with a build of its own, which its seconds do not say, has half an hour more."""
    return 4 * 3 * step.expected(size) + 300 + (1800 if step.build else 0)


@dataclass
class Outcome:
    step: object
    size: str
    status: int
    seconds: float
    processor: float
    counts: records.Counts
    # Name and what was seen, of what failed and held when it was run once more, alone.
    flaky: list = field(default_factory=list)

    @property
    def failed(self):
        return self.status != 0


class Stopped(Exception):
    """Ctrl-C, or a signal."""


class Run:
    def __init__(self, tier, environment=None, folder='.build-results', overlaps=False):
        """With `overlaps` steps that compute run beside those that wait for other programs: for steps that no load makes fail."""
        self.overlaps = overlaps
        self.folder = os.path.join(root, folder, tier)
        self.environment = {**os.environ, **(environment or {}), 'SWIFT_DETERMINISTIC_HASHING': '1'}
        self.outcomes = []
        self.running = {}
        self.commit = checked_out()
        self.earlier = Seen.of(self.folder, self.commit)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        self.keep()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.stop)

    def keep(self):
        """Keeps what has been seen so far: a run of hours may be cut off, and the next one goes on from there."""
        place = os.path.join(self.folder, 'seen.json')
        with open(f'{place}.new', 'w') as file:
            json.dump({'commit': self.commit, **self.earlier.after(self.outcomes).words()}, file)
        os.replace(f'{place}.new', place)

    def note(self, outcome):
        self.outcomes.append(outcome)
        self.keep()

    def stop(self, number, _):
        raise Stopped(signal.Signals(number).name)

    def set_up(self, *kinds):
        """Installs what the steps need. What the build needs must be there; the rest says itself what it lacks."""
        for kind in kinds:
            status = subprocess.run(['scripts/setup', kind], cwd=root, stdin=subprocess.DEVNULL).returncode
            if status and kind == 'build':
                print('\n0 passed, 1 failed')
                sys.exit(status)

    # One step

    def begin(self, step, size, builds=False, place=None):
        folder = os.path.join(self.folder, place or step.name)
        os.makedirs(folder, exist_ok=True)
        environment = {**self.environment, **step.environment(size), 'FERRY_RESULTS_FOLDER': os.path.relpath(folder, root)}
        if builds:
            environment['FERRY_BUILD_ONLY'] = '1'
        log = open(os.path.join(folder, 'log'), 'wb')
        process = subprocess.Popen(['bash', '-c', step.command], cwd=root, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log, start_new_session=True)
        log.close()
        running = Running(step, size, process, folder, time.monotonic(), limit(step, size))
        self.running[process.pid] = running
        return running

    def ended(self, running, grace=5):
        """The outcome of a step that has ended, or None. One past its deadline is ended."""
        found, status, usage = os.wait4(running.process.pid, os.WNOHANG)
        seconds = time.monotonic() - running.began
        if not found:
            if seconds < running.limit:
                return None
            with open(running.log, 'a') as log:
                log.write(f'\nsteps: {running.step.name} had not ended after {running.limit} s, and was cut off.\n')
            sessions.end(running.process.pid, signal.SIGTERM)
            time.sleep(grace)
            sessions.end(running.process.pid, signal.SIGKILL)
            _, status, usage = os.wait4(running.process.pid, 0)
            status = status or 1
        running.process.returncode = status
        # What the step has left running.
        sessions.end(running.process.pid, signal.SIGKILL)
        self.running.pop(running.process.pid, None)
        counts, flaky = running.results()
        if status and not counts.failed:
            # A step that fails without a failed test counts as one.
            counts.failed = 1
        return Outcome(running.step, running.size, status, seconds, usage.ru_utime + usage.ru_stime, counts, flaky)

    def tell(self, outcome):
        how = f'FAILED after {outcome.seconds:.0f} s' if outcome.failed else f'{outcome.seconds:.0f} s'
        print(f'-- {outcome.step.name}: {how}, {outcome.processor:.0f} s of a processor', flush=True)

    # Several

    def alone(self, step, size, builds=False, place=None):
        """Runs a step, with what it says; the outcome."""
        print(f'\n== {place or step.name}' + (', its build' if builds else '') + ''.join(f', {key}={value}' for key, value in step.environment(size).items()), flush=True)
        running = self.begin(step, size, builds, place)
        with open(running.log, 'rb') as log:
            while True:
                outcome = self.ended(running)
                if text := log.read():
                    show(text)
                if outcome:
                    self.tell(outcome)
                    return outcome
                time.sleep(0.1)

    def beside(self, pairs, serial=(), most=2):
        """Runs steps that compute, some at a time, and beside them those of `serial`, one after another; what each says is shown when
        it has ended."""
        pairs, serial, running, first = list(pairs), list(serial), [], None
        while pairs or serial or running:
            if serial and first not in running:
                first = self.begin(*serial.pop(0))
                running.append(first)
            while pairs and len(running) < most:
                running.append(self.begin(*pairs.pop(0)))
            for one in list(running):
                if outcome := self.ended(one):
                    running.remove(one)
                    print(f'\n== {one.step.name}', flush=True)
                    with open(one.log, 'rb') as log:
                        show(log.read())
                    self.tell(outcome)
                    self.note(outcome)
            time.sleep(0.1)

    def all(self, pairs):
        """Runs steps, each with its size: builds first, then one after another, then side by side those that may be; with `overlaps` those
        that may be beside the others. At last those that failed and may be tried again, once and alone. One that is stopped counts
        as failed, and no other step begins."""
        try:
            self.in_order(list(pairs))
        except (Stopped, KeyboardInterrupt) as stop:
            print(f'\nsteps: stopped by {stop}', file=sys.stderr)
            for number in (signal.SIGTERM, signal.SIGKILL):
                for running in self.running.values():
                    sessions.end(running.process.pid, number)
                if self.running and number == signal.SIGTERM:
                    time.sleep(5)
            for running in self.running.values():
                self.outcomes.append(Outcome(running.step, running.size, 130, time.monotonic() - running.began, 0, records.Counts(failed=1)))

    def in_order(self, pairs):
        beside = [(step, size) for step, size in pairs if step.beside]
        serial = [(step, size) for step, size in pairs if not step.beside]
        if self.overlaps:
            beside.sort(key=lambda pair: -pair[0].expected(pair[1]))
        else:
            for step, size in pairs:
                if step.build and len(pairs) > 1:
                    self.alone(step, size, builds=True, place=f'{step.name}-build')
        while serial and (not self.overlaps or serial[0][0].name == 'build'):
            step, size = serial.pop(0)
            self.note(self.alone(step, size))
            if step.name == 'build':
                if self.outcomes[-1].failed:
                    return
                self.environment['FERRY_IS_BUILT'] = '1'
        self.beside(beside, serial)
        for place, outcome in enumerate(self.outcomes):
            if outcome.failed and outcome.step.again:
                seen = ' '.join(records.why(self.log(outcome.step.name), most=3))
                again = self.alone(outcome.step, outcome.size, place=f'{outcome.step.name}-again')
                if not again.failed:
                    again.flaky.append((outcome.step.name, seen))
                    again.seconds += outcome.seconds
                    self.outcomes[place] = again
                    self.keep()

    def log(self, name):
        return os.path.join(self.folder, name, 'log')

    def finish(self, table, began, listed=None):
        """Prints and keeps what is seen at the end; 0 when all held. `listed` are the flakes that are known: those of .ci/flakes."""
        total, told = records.Counts(), {}
        with open(os.path.join(self.folder, 'seconds.tsv'), 'w') as file:
            for outcome in self.outcomes:
                total.add(outcome.counts)
                expected = outcome.step.expected(outcome.size)
                file.write(f'{outcome.step.name}\t{outcome.size}\t{outcome.seconds:.0f}\t{outcome.processor:.0f}\t{expected}\n')
        listed = flakes() if listed is None else listed
        report = []
        for outcome in self.outcomes:
            for name, seen in outcome.flaky:
                told[name] = seen
                report.append(f'flaky: {name}, which failed and held when it was run once more, alone. Seen: {seen[:300]}')
                if name not in listed:
                    report.append(f'FAILED: {name} is flaky, and .ci/flakes does not name it: add it with the date, and look for the cause.')
        unlisted = [name for name in told if name not in listed]
        for outcome in self.outcomes:
            if outcome.failed:
                place = f'{outcome.step.name}-again' if os.path.exists(self.log(f'{outcome.step.name}-again')) else outcome.step.name
                report.append(f'FAILED: {outcome.step.name}')
                report += [f'    {line}' for line in records.why(self.log(place))]
        # The commit of which this was seen; none when something was changed before or meanwhile.
        if self.commit != checked_out():
            self.commit = None
        self.keep()
        summary = {
            'passed': total.passed, 'failed': total.failed + len(unlisted), 'skipped': total.skipped, 'report': report,
            'seconds': [[outcome.step.name, outcome.size, outcome.seconds, outcome.processor, outcome.step.expected(outcome.size)]
                        for outcome in self.outcomes],
            'together': time.monotonic() - began,
            'commit': self.commit,
            **self.earlier.after(self.outcomes).words(),
        }
        with open(os.path.join(self.folder, 'summary.json'), 'w') as file:
            json.dump(summary, file)
        held = bool(self.outcomes) and not any(outcome.failed for outcome in self.outcomes) and not unlisted
        print_summary([summary], table)
        return 0 if held else 1


@dataclass
class Seen:
    """Steps that held in full on a commit when they ran there last, in one run or several, and those that failed."""
    held: set = field(default_factory=set)
    failing: set = field(default_factory=set)

    @staticmethod
    def of(folder, commit):
        try:
            with open(os.path.join(folder, 'seen.json')) as file:
                seen = json.load(file)
        except FileNotFoundError:
            return Seen()
        return Seen(set(seen['held']), set(seen['failing'])) if commit and seen['commit'] == commit else Seen()

    def after(self, outcomes):
        full = [outcome for outcome in outcomes if outcome.size == 'full']
        held = {outcome.step.name for outcome in full if not outcome.failed}
        failed = {outcome.step.name for outcome in outcomes if outcome.failed}
        return Seen(self.held - failed | held, self.failing - held | failed)

    def words(self):
        return {'held': sorted(self.held), 'failing': sorted(self.failing)}


def checked_out():
    """The commit that is checked out, without a change; else None."""
    return git('rev-parse', 'HEAD') if git('status', '--porcelain') == '' else None


def lacking(steps, commit, folder='.build-results'):
    """What of `make test` and `make verify` has not been seen to hold on a commit, a line each."""
    found = []
    for tier, wanted in (('test', steps.of('test')), ('verify', steps.of('landing', 'turn', 'release'))):
        try:
            with open(os.path.join(root, folder, tier, 'summary.json')) as file:
                summary = json.load(file)
        except FileNotFoundError:
            found.append(f'make {tier} has not been run here.')
            continue
        absent = [step.name for step in wanted if step.name not in summary.get('held', [])]
        if summary.get('commit') != commit:
            found.append(f'make {tier} was last run on {summary.get("commit") or "a commit with changes"}, not on {commit}.')
        elif summary.get('failing') or summary['failed']:
            # One that is flaky, and not on the list, fails a run whose steps held.
            told = [line for line in summary['report'] if line.startswith('FAILED')] or summary['failing']
            found.append(f'make {tier} failed: {"; ".join(told)}')
        elif absent:
            found.append(f'make {tier} was run without {len(absent)} of its steps: {" ".join(absent)}')
    return found


@dataclass
class Running:
    step: object
    size: str
    process: object
    folder: str
    began: float
    limit: float

    @property
    def log(self):
        return os.path.join(self.folder, 'log')

    def results(self):
        """What its tests came to: in its own words where it wrote them down, else from the records of its tests."""
        try:
            with open(os.path.join(self.folder, 'counts.json')) as file:
                read = json.load(file)
            flaky = [tuple(pair) for pair in read.pop('flaky')]
            return records.Counts(**read), flaky
        except FileNotFoundError:
            return records.read_all(self.folder), []


def show(text):
    """Prints bytes, whatever their encoding."""
    sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()


def print_summary(summaries, table):
    """The last lines of one tier or of several."""
    print()
    for summary in summaries:
        for name, size, seconds, processor, expected in summary['seconds']:
            grown = '   more than half again' if seconds > 1.5 * expected + 5 else ''
            print(f'{name:18} {size:5} {seconds:6.0f} s of {expected:4} s, {processor:6.0f} s of a processor{grown}')
    print(f'All together: {sum(summary["together"] for summary in summaries):.0f} s')
    for summary in summaries:
        for line in summary['report']:
            print(line)
    print(skipped_line(summaries, table))
    print(f'{sum(s["passed"] for s in summaries)} passed, {sum(s["failed"] for s in summaries)} failed', flush=True)


def skipped_line(summaries, table):
    """How many tests were skipped, and which steps run them."""
    skipped = {}
    for summary in summaries:
        for target, number in summary['skipped'].items():
            skipped[target] = skipped.get(target, 0) + number
    if not skipped:
        return 'No test was skipped.'
    parts = []
    for target, number in sorted(skipped.items()):
        steps = [step.name for step in table.steps if target in step.runs]
        parts.append(f'{number} of {target}, run by {" and ".join(steps) if steps else "no step"}')
    return f'{sum(skipped.values())} tests were skipped: {"; ".join(parts)}.'
