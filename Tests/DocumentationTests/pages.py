"""Holds what pages show to what there is: python3 pages.py FOLDER-OF-PROGRAMS, from the package's folder (scripts/check readme).

- Each block marked `swift` stands in a file that the build compiles: its lines one after the other, whatever their indentation.
  Imports may stand elsewhere in that file, and lines of the file that end with "// not shown" are passed over. What belongs into a
  Package.swift names products and traits that there are.
- Each line of a command names what there is: for ferry and business-card the subcommand and its options, with values where they
  take some; targets of make; scripts and their first words; suites of `swift test --filter`; products of `swift run`.
- Each row of Trust.md names a test that there is.
- Lines of ferry and business-card are run, in a folder of their own, unless they need what is not here; which, and why, is printed.
  Lines that name the same socket are the two sides of one transfer, and run together."""
import glob, json, os, re, shlex, signal, subprocess, sys, tempfile, time

programs = sys.argv[1]
pages = ['README.md', 'CONTRIBUTING.md'] + sorted(
    glob.glob('Documentation/*.md') + glob.glob('Sources/*/*/*.docc/*.md') + glob.glob('Plugins/*/*/*.docc/*.md'))
manifest = open('Package.swift').read()
problems, blocks, commands = [], 0, 0


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
    needed = [place for place in places if not place.get('isOptional')]
    if values and len(values) < len(needed):
        problems.append(f'{where}: {command["commandName"]} needs {needed[len(values)]["valueName"]} as well')
    if len(values) > len(places) and not any(place.get('isRepeating') for place in places):
        problems.append(f'{where}: {command["commandName"]} takes no {values[-1]}')


def check_command(where, text):
    """Whether it was one."""
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
        elif name == 'make':
            for target in rest:
                if '=' in target:
                    break
                if not re.search(rf'^{re.escape(target)}:', open('Makefile').read(), re.M):
                    problems.append(f'{where}: there is no make {target}')
        elif re.fullmatch(r'scripts/\w+', name):
            if not os.access(name, os.X_OK):
                problems.append(f'{where}: there is no {name}')
            elif re.fullmatch('[a-z-]+', rest[0]) and not re.search(rf'(?<!\w){rest[0]}\b', open(name).read()):
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


# Why a line is read and not run: the first that fits.
OBSTACLES = [(r'(hci|bluez)\b|ferry capture', 'needs a Bluetooth adapter'), (r'--nats|/run/ferry', 'needs a nats-server'),
             (r'\.\.\.', 'is an outline'),
             (r'tcp:(?!127\.|localhost)', 'needs another machine'), (r'^(make|scripts/\w+|swift)\b', 'builds for minutes')]
# Pages whose lines are run together elsewhere.
RUN_ELSEWHERE = {'Documentation/Operations.md': 'is run by scripts/check operations'}
# What makes a line end soon.
SHORTENED = {'scan': '--seconds 1', 'watch': '--count 1', 'advise': '--seconds 1', 'bench': '--seconds 1'}
# What lines take for granted.
SURROUNDINGS = """
mkdir photos; head -c 100000 /dev/urandom > photos/one.jpg; echo two > photos/two.jpg
printf '> 05 48 65 6c 6c 6f\\n' > chunks.log
for i in $(seq 40); do echo '{"name":"Ada '$i'","mail":"ada@example.org"}'; done > cards.jsonl
echo '{"mail":"ada@example.org","name":"Ada ' > card.dictionary
"""


def run_lines(where, texts):
    """Runs one line, or the lines of one transfer: the first, which receives, again beside each of the others."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        scripts = []
        for text in texts:
            text = re.sub(r'\s#\s.*$', '', text).strip().replace('/tmp/ferry', f'{folder}/s')
            for name, option in SHORTENED.items():
                if re.match(rf'ferry {name}\b', text) and option.split()[0] not in text:
                    text += f' {option}'
            # Of many points to measure, the first.
            text = re.sub(r'(?<= )([\w.]+)(,[\w.]+)+', r'\1', text) if text.startswith('ferry bench') else text
            scripts.append(text)
        script = 'readings() { seq 5; }\n' + SURROUNDINGS
        if len(scripts) == 1:
            script += scripts[0]
        else:
            for other in scripts[1:]:
                script += f'{scripts[0]} & first=$!\n{{ {other}; }} || {{ kill $first; exit 1; }}\nwait $first || exit\n'
        process = subprocess.Popen(['bash', '-uo', 'pipefail', '-c', script], cwd=folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace',
                                   env=os.environ | {'FERRY_HOME': f'{folder}/keys', 'PATH': f'{os.path.abspath(programs)}:{os.environ["PATH"]}'}, start_new_session=True)
        try:
            output, _ = process.communicate(timeout=120)
            if process.returncode:
                problems.append(f'{where}: {"; ".join(scripts)} ended with {process.returncode}: {output}')
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            problems.append(f'{where}: {"; ".join(scripts)} did not end within 120 s: {process.communicate()[0]}')
    was_run.append(f'{where} ({time.monotonic() - began:.1f} s)')


def run_page(page, lines):
    """Of the lines (number, text), which are whole lines of the page, those that can be run; the others are noted."""
    together = []
    for number, text in lines + [(0, '')]:
        joins = together and number == together[-1][0] + 1 and 'unix:/tmp/ferry' in text and 'unix:/tmp/ferry' in together[0][1]
        if together and not joins:
            run_lines(f'{page}:{together[0][0]}', [text for _, text in together])
            together = []
        obstacle = text and (
            RUN_ELSEWHERE.get(str(page)) or next((why for pattern, why in OBSTACLES if re.search(pattern, text)), None))
        if obstacle:
            was_read.setdefault(obstacle, []).append(f'{page}:{number}')
        elif re.search(r'(^|\| )(ferry|business-card) ', text):
            together.append((number, text))
        elif text:
            was_read.setdefault("is another program's", []).append(f'{page}:{number}')


was_run, was_read = [], {}
files = compiled()
# Of each file, the suites and the tests in it.
tests_of_files = [{name for line in lines for name in re.findall(r'(?:struct|enum) (\w+Tests)|(func \w+)', line) for name in name if name}
                  for path, lines, _ in files if '/Tests/' in f'/{path}']
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
    outside = re.sub(r'^```.*?^```$', lambda found: '\n' * found.group(0).count('\n'), text, flags=re.M | re.S)
    for match in re.finditer(r'^ {4,}(let|var|try|await|import|func|struct|for try|for await|guard) .*$', outside, re.M):
        problems.append(f'{page}:{outside[:match.start()].count(chr(10)) + 1}: put Swift between ```swift and ```, so that it is built: '
                        f'{match.group(0).strip()}')
    lines = []
    for number, line in commands_of(text.splitlines()):
        is_line = line in text.splitlines()[number - 1] and '`' not in text.splitlines()[number - 1]
        is_command = check_command(f'{page}:{number}', line)
        commands += is_command
        if is_line and is_command:
            lines.append((number, line))
    run_page(page, sorted(lines))
    # What a page says of trust names its tests.
    for number, line in enumerate(text.splitlines(), 1) if page == 'Documentation/Trust.md' else []:
        named = re.findall(r'`(\w+Tests)/(\w+)`', line)
        for suite, test in named:
            if not any({f'func {test}', suite} <= found for found in tests_of_files):
                problems.append(f'{page}:{number}: there is no test {suite}/{test}')
        if line.startswith('|') and not named and not re.match(r'\|(---|.*\| held by \||.*held by \|$)', line):
            problems.append(f'{page}:{number}: the row names no test, as `Suite/test`')
for problem in problems:
    print(f'readme: {problem}', file=sys.stderr)
if blocks < 25 or commands < 40 or len(was_run) < 8:
    sys.exit(f'readme: too few were looked at: {blocks} blocks, {commands} commands, {len(was_run)} run')
print(f'readme: run: {", ".join(was_run)}')
for why, places in was_read.items():
    print(f'readme: read, for it {why}: {", ".join(places)}')
print(f'readme: {blocks} blocks of code are built, {commands} commands name what there is')
sys.exit(bool(problems))
