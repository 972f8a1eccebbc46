"""What tests wrote down (Swift Testing's records in JUnit's format), and what a failed step's log says of the cause."""
import glob, os, re
import xml.etree.ElementTree as xml
from dataclasses import dataclass, field


@dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    # By test target.
    skipped: dict = field(default_factory=dict)
    # `Target.Suite/test()`.
    failures: list = field(default_factory=list)

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.failures += other.failures
        for target, number in other.skipped.items():
            self.skipped[target] = self.skipped.get(target, 0) + number


def read(path):
    """The counts of one record; None where there is none, or none that is whole."""
    try:
        cases = xml.parse(path).getroot().iter('testcase')
    except (FileNotFoundError, xml.ParseError):
        return None
    counts = Counts()
    for case in cases:
        suite = case.get('classname', '')
        if case.find('failure') is not None:
            counts.failed += 1
            counts.failures.append(f'{suite}/{case.get("name")}')
        elif case.find('skipped') is not None:
            target = suite.split('.')[0]
            counts.skipped[target] = counts.skipped.get(target, 0) + 1
        else:
            counts.passed += 1
    return counts


def read_all(folder):
    """The counts of all records in a step's folder."""
    counts = Counts()
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), '*-swift-testing.xml'))):
        counts.add(read(path) or Counts())
    return counts


def plain(text):
    """Without colours and carriage returns."""
    return re.sub(r'\x1b\[[0-9;]*m', '', text).replace('\r', '')


def not_ended(text):
    """The tests that a log saw begin and not end."""
    begun = {}
    for line in text.splitlines():
        if match := re.match(r'◇ Test (.*) started\.$', line):
            if not re.match(r'(case|run) ', match[1]):
                begun[match[1]] = True
        elif match := re.match(r'[✔✘➜] Test (.*?)(?: with \d+ test cases?)? (?:passed|failed|skipped)', line):
            begun.pop(match[1], None)
    return list(begun)


def issues(text):
    """Each issue that a test recorded, with what it shows below: of what a program has printed, its last lines."""
    told, shown, within = [], set(), None

    def tell():
        if within is not None:
            block = '\n'.join(within[1:])
            if not block or block not in shown:
                shown.add(block)
                told.extend(within[:1] + within[1:][-6:])

    for line in text.splitlines():
        if re.match(r'[◇✔✘➜] ', line):
            tell()
            within = [line] if 'recorded an issue' in line else None
        elif within is not None:
            within.append(line)
    tell()
    return told


def crash(text):
    """What crashed and where, of the runtime's own backtraces (SWIFT_BACKTRACE): the reason, and the innermost frames."""
    told, frames = [], False
    for line in text.splitlines():
        if match := re.match(r'\*\*\* (Program crashed: .*?) \*\*\*$', line):
            told, frames = [match[1]], False
        elif re.match(r'Thread \d+.* crashed:$', line):
            frames = True
        elif frames and (match := re.match(r' *\d+ +(?:\[[^\]]*\] +)*0x[0-9a-f]+ (.*)', line)):
            told.append('  ' + re.sub(r' in \S+(?= at )', '', match[1]))
        elif frames and line.strip():
            frames = False
    return told[:12]


def why(log, most=20):
    """What a failed step's log says of the cause, for a reader who sees the last lines only."""
    try:
        with open(log, errors='replace') as file:
            text = plain(file.read())
    except FileNotFoundError:
        return ['it left no log']
    lines = text.splitlines()
    told = [line for line in lines if re.match(r'stalled: |(controller|bridge): ', line) or 'was cut off' in line]
    told += crash(text)
    if told:
        told += [f'had not ended: {name}' for name in not_ended(text)]
    found = issues(text)
    if not found:
        found = [line for line in lines if re.search(
            r'error:|FAILED|WARNING|SUMMARY|: NO$|^ +#[0-9].*(Sources|Plugins|Tests)/', line)]
    told += found or lines[-8:]
    return [line[:200] for line in told[:most]]
