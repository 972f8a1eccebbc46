"""Tests of scripts/release: a commit that lacks something cannot be tagged, and is told everything that is missing.

    python3 -m unittest discover -s Tests/Steps
"""
import json, os, re, shutil, subprocess, sys, tempfile, unittest

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(root, 'scripts', 'feedback'))
import table  # noqa: E402

steps = table.load()
# What the check reads, beside the files of Formats.md's table.
paths = ['CHANGELOG.md', 'README.md', '.gitignore', '.ci', 'Documentation/Formats.md', 'scripts', 'Tests/Outside',
         'Sources/Programs/FerryTransports/FerryVersion.swift']
added = r'(ferry\.git", from: ")[^"]*'


class Release(unittest.TestCase):
    """In a repository that could be tagged but for one thing."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.clone = folder.name
        with open(os.path.join(root, 'Documentation/Formats.md')) as file:
            vectors = re.findall(r'^\| .* \| `((?:Tests|Plugins)[^`]*\.(?:swift|txt))` \|$', file.read(), re.M)
        listed = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard', '--', *paths, *vectors], cwd=root, capture_output=True,
                                text=True, check=True).stdout.split('\n')
        for path in filter(os.path.exists, filter(None, listed)):
            os.makedirs(os.path.dirname(os.path.join(cls.clone, path)), exist_ok=True)
            shutil.copy(os.path.join(root, path), os.path.join(cls.clone, path))
        cls.edit('Sources/Programs/FerryTransports/FerryVersion.swift', r'(text = ").*', r'\g<1>9.0.0"')
        cls.edit('CHANGELOG.md', r'\n## .*', '\n## 9.0.0 (2030-01-01)')
        for path in ('README.md', 'Tests/Outside/App/Package.swift', 'Tests/Outside/FerryForApp/Package.swift'):
            cls.edit(path, added, r'\g<1>9.0.0', count=0)
        with open(os.path.join(cls.clone, '.ci/api-breaks'), 'w') as file:
            file.write('# None.\n')
        cls.git('init', '-q')
        cls.commit()
        cls.base = cls.git('rev-parse', 'HEAD')

    def setUp(self):
        self.git('reset', '-q', '--hard', self.base)
        for tag in self.git('tag').split(): self.git('tag', '-d', tag)
        self.seen()

    @classmethod
    def edit(cls, path, pattern, new, count=1):
        with open(os.path.join(cls.clone, path)) as file:
            text, found = re.subn(pattern, new, file.read(), count=count)
        if not found: raise LookupError(f'{path} has no {pattern}')
        with open(os.path.join(cls.clone, path), 'w') as file:
            file.write(text)

    @classmethod
    def git(cls, *arguments):
        return subprocess.run(['git', '-c', 'user.name=release', '-c', 'user.email=release@localhost', *arguments], cwd=cls.clone,
                              capture_output=True, text=True, check=True).stdout.strip()

    @classmethod
    def commit(cls):
        cls.git('add', '-A')
        cls.git('commit', '-qm', 'Release', '--allow-empty')

    def seen(self):
        """All steps have held on the commit that is checked out."""
        for tier, ran in (('test', steps.of('test')), ('verify', steps.of('landing', 'turn', 'release'))):
            folder = os.path.join(self.clone, '.build-results', tier)
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, 'summary.json'), 'w') as file:
                json.dump({'commit': self.git('rev-parse', 'HEAD'), 'failed': 0, 'report': [], 'failing': [],
                           'held': [one.name for one in ran]}, file)

    def refused(self, *reasons):
        ran = subprocess.run(['scripts/release', 'check'], cwd=self.clone, capture_output=True, text=True, timeout=60)
        self.assertEqual(ran.returncode, 1 if reasons else 0, ran.stderr)
        for reason in reasons:
            self.assertIn(reason, ran.stderr)
        return ran.stdout + ran.stderr

    def test_that_lacks_nothing_can_be_tagged(self):
        self.assertIn('git tag -a 9.0.0', self.refused())

    def test_all_that_is_missing_is_told_at_once(self):
        self.edit('CHANGELOG.md', '\n## ', '\n## Unreleased\n\nMore.\n\n## ')
        self.edit('Tests/Outside/App/Package.swift', added, r'\g<1>8.0.0')
        with open(os.path.join(self.clone, '.ci/api-breaks'), 'a') as file:
            file.write('Ferry: API breakage: func a() has been removed\n')
        self.commit()
        self.refused('changes that are in no release', 'another version of the package than 9.0.0', 'api-breaks names breaks', 'make test was last run on',
                     'make verify was last run on', '4 of the above')

    def test_a_version_in_the_making_and_another_than_the_changelogs(self):
        self.edit('Sources/Programs/FerryTransports/FerryVersion.swift', '"9.0.0"', '"9.1.0-dev"')
        self.commit()
        self.seen()
        self.refused("prints 9.1.0-dev, which is no release's")
        self.edit('Sources/Programs/FerryTransports/FerryVersion.swift', '"9.1.0-dev"', '"9.1.0"')
        self.commit()
        self.seen()
        self.refused("prints 9.1.0, and CHANGELOG.md's last release is 9.0.0")

    def test_tags_of_this_commit_and_of_others(self):
        self.git('tag', '9.0.0')
        self.refused()
        self.commit()
        self.seen()
        self.refused("the tag 9.0.0 is another commit's")
        self.git('tag', '-d', '9.0.0')
        self.git('tag', '10.0.0')
        self.commit()
        self.seen()
        self.refused('9.0.0 is not higher than 10.0.0')

    def test_vectors_that_went_since_the_last_tag(self):
        self.git('tag', '8.0.0')
        self.edit('Tests/Vectors/envelope.txt', r'(?m)^bytes ', 'bytes ff')
        self.commit()
        self.seen()
        self.refused('these vectors are of 8.0.0')

    def test_a_file_of_vectors_that_moved(self):
        self.git('tag', '8.0.0')
        self.git('mv', 'Tests/Vectors/envelope.txt', 'Tests/Vectors/moved.txt')
        self.edit('Documentation/Formats.md', 'Tests/Vectors/envelope.txt', 'Tests/Vectors/moved.txt')
        self.commit()
        self.seen()
        self.refused()
        self.edit('Tests/Vectors/moved.txt', r'(?m)^bytes .*\n', '')
        self.commit()
        self.seen()
        self.refused('these vectors are of 8.0.0')

    def test_changes_that_are_in_no_commit(self):
        self.edit('README.md', '# ', '#  ')
        self.refused('the working copy has changes')
