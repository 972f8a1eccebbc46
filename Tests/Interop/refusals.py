#!/usr/bin/env python3
"""What people get wrong, and what they read then: each command line of Tests/Vectors/refusals.txt ends with its status, and says
what stands there, within LIMIT seconds. Each runs in a folder of its own, with the files below, without a terminal and with
nothing on standard input.   usage: refusals.py FOLDER-OF-PROGRAMS TABLE [--write]   (--write: make the table anew, to be read)"""
import concurrent.futures, os, re, shlex, subprocess, sys, tempfile

LIMIT = 120
FILES = {
    'f': b'hello\n', 'empty': b'', 'bad.json': b'not json\n', 'rec.jsonl': b'{"a":1}\n', 'bin': bytes(range(256)) * 12,
    'bad.vcf': b'BEGIN:VCARD\nVERSION:4.0\nFN:\n',
}


def run(line, programs):
    """The status, and the lines of the error without how the command is used."""
    words = shlex.split(line)
    with tempfile.TemporaryDirectory() as folder:
        for name, content in FILES.items():
            with open(os.path.join(folder, name), 'wb') as file: file.write(content)
        os.mkdir(os.path.join(folder, 'd'))
        environment = {'HOME': os.path.join(folder, 'home'), 'PATH': os.environ['PATH'], 'LANG': 'C.UTF-8'}
        try:
            done = subprocess.run([os.path.join(programs, words[0]), *words[1:]], cwd=folder, env=environment, timeout=LIMIT,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        except subprocess.TimeoutExpired: return f'does not end within {LIMIT} s'
        text = done.stderr.decode(errors='replace').replace(folder, 'FOLDER')
        error = [l for l in text.splitlines() if l.startswith(('Error: ', 'business-card: '))]
        return f'{done.returncode} {error[0] if error else "says nothing"}'


def main():
    programs, table = os.path.abspath(sys.argv[1]), sys.argv[2]
    with open(table) as file: text = file.read()
    head = text[:text.index('$ ')]
    blocks = re.findall(r'^\$ (.*)\n(?!\$)(.*)$|^\$ (.*)$', text, re.M)
    lines = [(a or c, b) for a, b, c in blocks]
    with concurrent.futures.ThreadPoolExecutor(2) as pool: found = list(pool.map(lambda row: run(row[0], programs), lines))
    if '--write' in sys.argv:
        with open(table, 'w') as file: file.write(head + '\n'.join(f'$ {l}\n{f}' for (l, _), f in zip(lines, found)) + '\n')
    wrong = [(line, told, is_now) for (line, told), is_now in zip(lines, found) if told != is_now and '--write' not in sys.argv]
    for line, told, is_now in wrong: print(f'refusals.py: {line}\n  was: {told}\n  is:  {is_now}')
    print(f'refusals.py: {len(lines)} command lines, {len(wrong)} say something else')
    if wrong: sys.exit('refusals.py: what is meant is written to the table with --write')


main()
