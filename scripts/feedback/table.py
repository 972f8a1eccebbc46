"""The table of steps, scripts/steps.toml, and what is written down beside it: landings, flakes, suites that read a clock."""
import fnmatch, os, re, tomllib
from dataclasses import dataclass, field

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
tiers = ('test', 'landing', 'turn', 'release')


class Wrong(Exception):
    """A mistake in a table, or in what was asked for, in a sentence for a person."""


@dataclass(frozen=True)
class Step:
    name: str
    tier: str
    command: str
    what: str
    seconds: list
    turn: int | None = None
    covers: list = field(default_factory=list)
    short: str = ''
    full: str = ''
    again: bool = False
    beside: bool = False
    own: bool = False
    build: bool = False
    runs: list = field(default_factory=list)

    def expected(self, size):
        """Seconds on two idle cores, at the size "short" or "full"."""
        return self.seconds[0 if size == 'short' else -1]

    def environment(self, size):
        return dict(pair.split('=', 1) for pair in (self.short if size == 'short' else self.full).split())


@dataclass(frozen=True)
class Table:
    turns: int
    everything: list
    heavy: list
    waiting: list
    steps: list

    def named(self, name):
        for step in self.steps:
            if step.name == name:
                return step
        raise Wrong(f'there is no step {name}. There are: {" ".join(step.name for step in self.steps)}')

    def of(self, *tiers):
        return [step for step in self.steps if step.tier in tiers]

    def in_turn(self, turn):
        return [step for step in self.steps if step.turn == turn]


def load(path=os.path.join(root, 'scripts', 'steps.toml')):
    with open(path, 'rb') as file:
        read = tomllib.load(file)
    steps = [Step(**row) for row in read.pop('step')]
    table = Table(steps=steps, **read)
    check(table)
    return table


def check(table):
    names = [step.name for step in table.steps]
    for step in table.steps:
        if names.count(step.name) > 1:
            raise Wrong(f'{step.name} stands twice in scripts/steps.toml.')
        if step.tier not in tiers:
            raise Wrong(f'{step.name} has the tier {step.tier}. There are: {" ".join(tiers)}')
        if (step.turn is None) != (step.tier in ('test', 'release')):
            raise Wrong(f'{step.name}: a step has a turn when its tier is "landing" or "turn", and no other step has.')
        if step.tier == 'landing' and (not step.covers or len(step.seconds) != 2):
            raise Wrong(f'{step.name}: a step of the tier "landing" covers something and has seconds for its short and its full size.')
        if step.tier == 'turn' and step.short:
            raise Wrong(f'{step.name}: a step that comes in its turn alone has no short size.')
    used = {step.turn for step in table.steps if step.turn is not None}
    if used != set(range(table.turns)):
        raise Wrong(f'the turns must be 0 to {table.turns - 1} without a gap; there are {sorted(used)}.')


def matches(path, pattern):
    """Whether a path is what a pattern names; `*` stands for slashes too."""
    return fnmatch.fnmatchcase(path, pattern)


def lines(path):
    """The rows of a file of tab-separated columns; `#` begins a comment."""
    try:
        with open(os.path.join(root, path)) as file:
            text = file.read()
    except FileNotFoundError:
        return []
    return [line.split('\t') for line in text.splitlines() if line.strip() and not line.startswith('#')]


def landings():
    """Commit, oldest first, of each landing that is written down in .ci/landings."""
    return [row[1] for row in lines('.ci/landings')]


def flakes(path='.ci/flakes'):
    """The names of .ci/flakes, each with its date and cause. More than three are refused: causes are to be found."""
    found = {}
    for row in lines(path):
        if len(row) != 3 or not re.fullmatch(r'\d{4}-\d\d-\d\d', row[0]):
            raise Wrong(f'.ci/flakes: a row has a date, a name and a cause, with tabs between them: {" ".join(row)}')
        found[row[1]] = row
    if len(found) > 3:
        raise Wrong(f'.ci/flakes has {len(found)} names, and three are the most: find causes before anything else.')
    return found


def clocks():
    """Which suites may read a clock, by the beginning of `Target.Suite`, with the reason."""
    found = {}
    for row in lines('Tests/RealClocks'):
        if len(row) != 2:
            raise Wrong(f'Tests/RealClocks: a row has a suite and a reason, with a tab between them: {" ".join(row)}')
        found[row[0]] = row[1]
    return found


def reads_a_clock(name, known=None):
    """Whether `Target.Suite` or `Target.Suite/test()` is of a suite that Tests/RealClocks names."""
    suite = name.split('/')[0]
    return any(suite == entry or suite.startswith(entry + '.') for entry in (clocks() if known is None else known))


def markdown(table):
    """CONTRIBUTING's part: a table for each of the two commands."""
    def seconds(step):
        return f'{step.seconds[0]} / {step.seconds[-1]}' if step.tier == 'landing' else str(step.seconds[-1])

    def comes(step):
        if step.tier == 'release':
            return 'a release'
        modules = [f'`{name}`' for name in step.covers]
        return (', '.join(modules) + '; ' if modules else '') + f'turn {step.turn}'

    text = ['| `make test` | seconds | what it covers |', '|---|---|---|']
    text += [f'| {step.name} | {seconds(step)} | {step.what} |' for step in table.of('test')]
    text += ['', '| `make verify` | seconds | when a landing runs it | what it covers |', '|---|---|---|---|']
    text += [f'| {step.name} | {seconds(step)} | {comes(step)} | {step.what} |' for step in table.of('landing', 'turn', 'release')]
    return '\n'.join(text)
