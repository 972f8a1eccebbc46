"""Which steps a change selects, and which turn and which seeds a commit has. Nothing here runs a step."""
import json, subprocess
from dataclasses import dataclass

from table import Wrong, landings, matches, root


@dataclass(frozen=True)
class Module:
    name: str
    folder: str
    needs: frozenset
    is_test: bool


def package(dump=None):
    """The modules of Package.swift by name."""
    if dump is None:
        ran = subprocess.run(['swift', 'package', 'dump-package'], cwd=root, capture_output=True, text=True)
        if ran.returncode:
            raise Wrong(f'Package.swift cannot be read:\n{ran.stderr}')
        dump = json.loads(ran.stdout)
    modules = {}
    for target in dump['targets']:
        is_test = target['type'] == 'test'
        folder = target.get('path') or ('Tests/' if is_test else 'Sources/') + target['name']
        needs = frozenset(next(iter(need.values()))[0] for need in target['dependencies'])
        modules[target['name']] = Module(target['name'], folder, needs, is_test)
    return modules


def owner(path, modules):
    """The module in whose folder a path is: of folders within one another, the innermost."""
    found = [module for module in modules.values() if path.startswith(module.folder + '/')]
    return max(found, key=lambda module: len(module.folder), default=None)


def select(paths, table, modules):
    """The steps of the tier "landing" that a change of these paths selects, each with the reason, in the table's order.

    A step covers modules and paths. It is selected by a change of one of them, and by a change of a module that a covered module
    imports itself: one floor outward, and not more, for what lies further out is tested by what lies between.
    """
    changed = {}
    for path in paths:
        module = owner(path, modules)
        if module:
            changed.setdefault(module.name, path)
    reasons = {}
    for step in table.of('landing'):
        for path in paths:
            whole = next((pattern for pattern in table.everything if matches(path, pattern)), None)
            direct = next((cover for cover in step.covers if cover not in modules and matches(path, cover)), None)
            if whole or direct:
                reasons.setdefault(step.name, f'{path} selects {"all" if whole else "it"}')
        for cover in step.covers:
            if cover not in modules:
                continue
            if cover in changed:
                reasons.setdefault(step.name, f'{changed[cover]} is of {cover}')
            # A test target stands for itself: it imports half the package.
            outward = frozenset() if modules[cover].is_test else modules[cover].needs & changed.keys()
            for name in sorted(outward):
                reasons.setdefault(step.name, f'{changed[name]} is of {name}, which {cover} imports')
    return {step.name: reasons[step.name] for step in table.of('landing') if step.name in reasons}


def git(*arguments):
    ran = subprocess.run(['git', *arguments], cwd=root, capture_output=True, text=True)
    return ran.stdout.strip() if ran.returncode == 0 else None


@dataclass(frozen=True)
class Landing:
    """What a commit's landing runs besides `make test`."""
    commit: str
    base: str | None
    number: int
    turn: int
    seed: int
    since: str | None
    paths: list | None


def landing(table, base=None):
    """The landing of the commit that is checked out.

    Its change is all since the last landing in .ci/landings (or `base`); where that cannot be known, everything. Its number is how
    many landings .ci/landings has, its turn that number modulo the turns there are, its seed the beginning of the commit's hash.
    """
    commit = git('rev-parse', 'HEAD')
    if not commit:
        raise Wrong('this is no checkout of git, so nothing says what has changed.')
    earlier = [entry for entry in landings() if git('merge-base', '--is-ancestor', entry, 'HEAD') is not None]
    base = base or (earlier[-1] if earlier else None)
    paths = None
    if base and git('cat-file', '-e', f'{base}^{{commit}}') is not None:
        # What is not committed counts too, so that a change can be tried before.
        listed = [git('diff', '--name-only', base), git('ls-files', '--others', '--exclude-standard')]
        paths = sorted({line for text in listed for line in (text or '').splitlines()})
    number = len(landings())
    held = earlier[-table.turns] if len(earlier) >= table.turns else None
    return Landing(commit, base, number, number % table.turns, int(commit[:6], 16), held, paths)
