"""Who may lean on whom: the floors of Documentation/Design.md, held to Package.swift. Nothing here builds."""
import os, re

from selection import package
from table import root

page = 'Documentation/Design.md'


def listed(text):
    """The tree of the page: for each floor, the lowest first, its modules; and the plugins that a plugin may lean on, by its name."""
    floors, plugins = {}, {}
    for line in text[text.index('## Tree\n'):text.index('## The seams')].split('\n'):
        if match := re.fullmatch(r' {4}((?:Sources|Plugins)/\w+)', line):
            floor = floors.setdefault(match[1], [])
        elif match := re.match(r' {8}(\w+) ', line):
            floor.append(match[1])
        elif match := re.match(r' {4}(\w+) -> (\w+(?: \w+)*)  ', line):
            plugins[match[1]] = set(match[2].split())
    return floors, plugins


def problems(modules=None, text=None):
    """A sentence for each module that the page has elsewhere, and for each that leans on one that it may not."""
    if text is None:
        with open(os.path.join(root, page)) as file:
            text = file.read()
    modules = {name: module for name, module in (package() if modules is None else modules).items()
               if not module.is_test and module.folder.startswith(('Sources/', 'Plugins/'))}
    floors, plugins = listed(text)
    order = list(floors)
    floor = {name: module.folder.rsplit('/', 1)[0] for name, module in modules.items()}
    found, used = [], set()
    for name, module in sorted(modules.items()):
        if name not in floors.get(floor[name], ()):
            found.append(f'{name} is in {module.folder}, and the tree of {page} does not have it on that floor.')
            continue
        for need in sorted(module.needs & modules.keys()):
            if floor[need] not in order or order.index(floor[need]) > order.index(floor[name]):
                found.append(f'{name}, on {floor[name]}, leans on {need}, on {floor[need]}: no floor leans on a higher one.')
            elif floor[name].startswith('Plugins/') and floor[need].startswith('Plugins/') and need.startswith(('Ferry', 'CoreB')):
                used.add((name, need))
                if need not in plugins.get(name, ()):
                    found.append(f'{name} leans on {need}, another plugin. {page} names those that may, each with its reason.')
    for name in sorted(plugins):
        for need in sorted(plugins[name]):
            # A Mac has no CoreBluetooth of ours.
            if (name, need) not in used and {name, need} <= modules.keys():
                found.append(f'{page} lets {name} lean on {need}, which it does not.')
    for name in (name for names in floors.values() for name in names):
        if name not in modules and not any(os.path.isdir(os.path.join(root, place, name)) for place in floors):
            found.append(f'{page} has {name} in its tree, and there is no such folder.')
    return found
