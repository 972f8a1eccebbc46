"""What `make lint` holds test sources and lists to: who may read a clock, and that a test that waits has a limit."""
import glob, os, re

import floors
from selection import package
from table import Wrong, clocks, flakes, landings, load, root

clock = re.compile(r'\b(ContinuousClock|SuspendingClock|Task\.sleep|Thread\.sleep|usleep|nanosleep|SystemTime\(\)|Date\(\)'
                   r'|clock_gettime|DispatchTime|asyncAfter|ConformanceTime\.system)')
waiting = re.compile(r'\buntil(\(| \{)|\bwait\(for: ')
suite = re.compile(r'\b(?:struct|class|actor|enum|extension) ([A-Za-z0-9_]+Tests)\b')
declared = re.compile(r'\s*(?:@[A-Za-z]+(?:\([^()]*\))?\s+|[a-z]+\s+)*(?:struct|class|actor|enum|extension)\s+([A-Za-z0-9_]+)')


def limited(text):
    """The suites of a file that have a time limit."""
    for match in re.finditer(r'@Suite\(', text):
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += {'(': 1, ')': -1}.get(text[end], 0)
            end += 1
        if '.timeLimit(' in text[match.end():end] and (name := declared.match(text, end)):
            yield name[1]


def code(text):
    """Without comments and the contents of strings on one line."""
    text = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text)
    return re.sub(r'//.*', '', text)


def sources(folder):
    return sorted(path for path in glob.glob(os.path.join(root, folder, '**', '*.swift'), recursive=True))


def problems(modules=None, known=None):
    """A sentence for each place that breaks a rule."""
    modules = package() if modules is None else modules
    known = clocks() if known is None else known
    used, found = set(), []
    for module in modules.values():
        if not module.is_test:
            continue
        texts = {}
        for path in sources(module.folder):
            with open(path) as file:
                texts[path] = code(file.read())
        limits = {name for text in texts.values() for name in limited(text)}
        if module.name in known:
            used.add(module.name)
        for path, text in texts.items():
            place = os.path.relpath(path, root)
            suites = suite.findall(text)
            names = {f'{module.name}.{name}' for name in [*suites, os.path.basename(path)[:-len('.swift')]]}
            used |= names & known.keys()
            listed = module.name in known or f'{module.name}.{os.path.basename(path)[:-len(".swift")]}' in known \
                or suites and all(f'{module.name}.{name}' in known for name in suites)
            if not listed and (match := clock.search(text)):
                line = text[:match.start()].count('\n') + 1
                found.append(f'{place}:{line}: {match[1]} reads the system\'s clock. Use VirtualTime or `until` (TestSupport), or name '
                             f'the suite in Tests/RealClocks with the reason.')
            if waiting.search(text) and suites and not limits.intersection(suites):
                found.append(f'{place}: waits, and none of its suites has a time limit: {", ".join(suites)}.')
    for entry in sorted(known.keys() - used):
        found.append(f'Tests/RealClocks: {entry} names no test target, suite or file of one.')
    return found


def main():
    load()
    flakes()
    landings()
    found = problems() + floors.problems()
    if found:
        raise Wrong('\n'.join(found))
