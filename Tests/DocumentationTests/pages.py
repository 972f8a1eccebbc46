"""Holds what pages show to what there is: python3 pages.py FOLDER-OF-PROGRAMS, from the package's folder (scripts/check readme).

- Each block marked `swift` stands in a file that the build compiles: its lines one after the other, whatever their indentation.
  Imports may stand elsewhere in that file, and lines of the file that end with "// not shown" are passed over. What belongs into a
  Package.swift names products and traits that there are.
- Each line of a command names what there is: for ferry and business-card the subcommand and its options, with values where they
  take some; targets of make; scripts and their first words; suites of `swift test --filter`; products of `swift run`.
- Those commands are run that need neither a radio, nor another side, nor more than seconds."""
import glob, json, os, re, shlex, subprocess, sys

programs = sys.argv[1]
pages = ['README.md', 'CONTRIBUTING.md'] + sorted(
    glob.glob('Documentation/*.md') + glob.glob('Sources/*/*.docc/*.md') + glob.glob('Plugins/*/*.docc/*.md'))
manifest = open('Package.swift').read()
problems, blocks, commands, run = [], 0, 0, 0


def compiled():
    """The lines of each file, stripped, without those that are not shown, and its imports."""
    files = []
    for folder in ('Tests', 'Examples', 'Sources', 'Plugins'):
        for path in glob.glob(f'{folder}/**/*.swift', recursive=True):
            lines = [line.strip() for line in open(path)]
            lines = [line for line in lines if line and not line.endswith('// not shown')]
            imports = {line for line in lines if line.startswith('import ')}
            files.append((path, [line for line in lines if line not in imports], imports))
    return files


def stands_in(block, lines, imports):
    wanted = [line.strip() for line in block if line.strip()]
    if any(line.startswith('import ') and line not in imports for line in wanted):
        return False
    wanted = [line for line in wanted if not line.startswith('import ')]
    return any(lines[i:i + len(wanted)] == wanted for i, line in enumerate(lines) if line == wanted[0])


def check_manifest(where, text):
    for product in re.findall(r'\.product\(name: "(\w+)", package: "ferry"', text):
        if not re.search(rf'(library|plugin)\((name: )?"{product}"', manifest) and f'"{product}"' not in manifest:
            problems.append(f'{where}: there is no product {product}')
    for trait in re.findall(r'"(\w+)"', ''.join(re.findall(r'traits: \[([^\]]*)\]', text))):
        if f'name: "{trait}", description:' not in manifest:
            problems.append(f'{where}: there is no trait {trait}')


def commands_of(lines):
    """Indented lines and lines of blocks marked sh that are commands, with what goes on in the next put together."""
    found, inside, held = [], None, ''
    for number, line in enumerate(lines, 1):
        fence = re.match(r'```(\w*)', line)
        if fence:
            inside = None if inside is not None else fence.group(1)
            continue
        if inside not in (None, 'sh') or (inside is None and not line.startswith('    ')):
            continue
        text = held + line.strip()
        held = ''
        if text.endswith('\\'):
            held = text[:-1]
            continue
        found.append((number, text))
    # Those that stand in a line of prose or a table.
    for number, line in enumerate(lines, 1):
        found += [(number, text) for text in re.findall(r'`((?:ferry|business-card|make|scripts/\w+|swift (?:run|test)) [^`]*)`', line)]
    return found


helps = {name: json.loads(subprocess.check_output([f'{programs}/{name}', '--experimental-dump-help']))['command']
         for name in ('ferry', 'business-card')}


def check_program(where, name, words):
    command = helps[name]
    while words and (below := next((c for c in command.get('subcommands', []) if c['commandName'] == words[0]), None)):
        command, words = below, words[1:]
    if name == 'ferry' and command is helps[name] and not (words and words[0].startswith('-')):
        return problems.append(f'{where}: ferry has no subcommand {words[0] if words else ""}')
    # Without a subcommand it is the default's.
    if command is helps[name] and command.get('defaultSubcommand'):
        command = next(c for c in command['subcommands'] if c['commandName'] == command['defaultSubcommand'])
    options = {}
    for argument in command.get('arguments', []):
        for spelled in argument.get('names') or []:
            dashes = {'long': '--', 'short': '-', 'longWithSingleDash': '-'}[spelled['kind']]
            options[dashes + spelled['name']] = argument['kind'] == 'option'
    values, waits = [], None
    for word in words:
        if waits:
            waits = None
        elif word.startswith('-') and len(word) > 1:
            spelled = word.split('=')[0]
            if spelled not in options:
                problems.append(f'{where}: {command["commandName"]} has no {spelled}')
            elif options[spelled] and '=' not in word:
                waits = spelled
        else:
            values.append(word)
    if waits and is_line:
        problems.append(f'{where}: {waits} needs a value')
    places = [argument for argument in command.get('arguments', []) if argument['kind'] == 'positional']
    if len(values) > len(places) and not any(place.get('isRepeating') for place in places):
        problems.append(f'{where}: {command["commandName"]} takes no {values[-1]}')


def check_command(where, text):
    """Whether it was one."""
    global run
    for part in re.split(r'(?<![\'"\w])\s*(?:\||;|&&)\s*(?![^\']*\'$)', re.sub(r'\s#\s.*$', '', text)):
        try:
            words = shlex.split(part.split(' > ')[0].rstrip('&'))
        except ValueError:
            continue
        while words and re.fullmatch(r'[A-Z_]+=.*', words[0]):
            words = words[1:]
        if len(words) < 2:
            continue
        name, rest = words[0], words[1:]
        if '...' in part or '|' in ' '.join(rest[:2]):
            continue  # an outline, not a command
        if name in ('ferry', 'business-card'):
            check_program(where, name, rest)
            is_quick = name == 'ferry' and (
                rest[0] == 'advise' or (rest[0] in ('scan', 'inspect') and 'loopback' in rest and '--json' not in rest))
            if is_quick and is_line:
                run += 1
                ended = subprocess.run([f'{programs}/ferry'] + rest + (['--seconds', '2'] if rest[0] == 'scan' else []),
                                       capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
                if ended.returncode or not ended.stdout:
                    problems.append(f'{where}: {part} ended with {ended.returncode}: {ended.stderr}')
        elif name == 'make':
            for target in rest:
                if '=' in target:
                    break
                if not re.search(rf'^{re.escape(target)}:', open('Makefile').read(), re.M):
                    problems.append(f'{where}: there is no make {target}')
        elif re.fullmatch(r'scripts/\w+', name):
            if not os.access(name, os.X_OK):
                problems.append(f'{where}: there is no {name}')
            elif re.fullmatch('[a-z-]+', rest[0]) and not re.search(rf'\b{rest[0]}\b', open(name).read()):
                problems.append(f'{where}: {name} knows no {rest[0]}')
        elif name == 'swift' and rest[0] == 'run':
            after = [word for index, word in enumerate(rest[1:], 1) if not word.startswith('-') and
                     rest[index - 1] not in ('-c', '--traits', '--scratch-path', '--package-path')]
            if after and not any(f'"{after[0]}"' in text for text in (manifest, open('Benchmarks/Package.swift').read(), page_text)):
                problems.append(f'{where}: there is no product {after[0]}')
            elif after and after[0] in helps:
                check_program(where, after[0], rest[rest.index(after[0]) + 1:])
        elif name == 'swift' and '--filter' in rest:
            for suite in re.split(r'\\?\|', rest[rest.index('--filter') + 1]):
                word = re.findall(r'\w+', suite)[-1 if '/' not in suite else 0]
                if not any(word in name for name in suites):
                    problems.append(f'{where}: there is no suite {word}')
        else:
            continue
        return True
    return False


files = compiled()
suites = {name for path, lines, _ in files if '/Tests/' in f'/{path}' for line in lines
          for name in re.findall(r'(?:struct|class|extension|enum) (\w+)', line)} 
suites |= set(re.findall(r'"(\w+Tests)"', manifest)) | {
    f'{name}Tests' for name in re.findall(r'plugin\("(\w+)"', manifest)}
for page in pages:
    text = page_text = open(page).read()
    for match in re.finditer(r'^```swift\n(.*?)^```$', text, re.M | re.S):
        blocks += 1
        where = f'{page}:{text[:match.start()].count(chr(10)) + 1}'
        block = match.group(1).splitlines()
        first = next(line for line in block if line.strip())
        if first.strip().startswith(('// Package.swift', '// swift-tools-version', '.package(', '.product(')):
            check_manifest(where, match.group(1))
        elif not any(stands_in(block, lines, imports) for _, lines, imports in files):
            problems.append(f'{where}: no file that is built has this block, which begins with: {first.strip()}')
    for number, line in commands_of(text.splitlines()):
        is_line = line in text.splitlines()[number - 1] and '`' not in text.splitlines()[number - 1]
        commands += check_command(f'{page}:{number}', line)
for problem in problems:
    print(f'readme: {problem}', file=sys.stderr)
if blocks < 20 or commands < 40 or run < 2:
    sys.exit(f'readme: too few were looked at: {blocks} blocks, {commands} commands, {run} run')
print(f'readme: {blocks} blocks of code are built, {commands} command lines name what there is, {run} of them were run')
sys.exit(bool(problems))
