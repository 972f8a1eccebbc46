#!/usr/bin/env python3
"""Whether what `ferry bench` simulates is what it measures where the pacing is exact: on the loopback radio, and over two
HCI controllers that pace by the connection interval. usage: pacing.py FERRY (built with the trait HCI)"""
import json, os, subprocess, sys, tempfile, time

PACKETS = 6  # in each connection event
LIMIT = 0.10
POINTS = ['--interval', '15,30', '--seconds', '2']
PROFILE = {'name': 'paced', 'source': 'Tests/Interop/controllers.py --interval', 'packetsPerEvent': PACKETS,
           'controllerBuffers': 8, 'reportsAtEventEnd': True}


def bench(ferry, profile, *arguments):
    command = [ferry, 'bench', '--json', '--profile-file', profile, *POINTS, *arguments]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=180).stdout)['results']


def differences(name, simulated, measured):
    """By how much each point is off, 0.1 for 10 %; printed too."""
    result = []
    for a, b in zip(simulated, measured, strict=True):
        off = b['goodput'] / a['goodput'] - 1
        result.append(abs(off))
        s = a['settings']
        print(f"{name}: MTU {s['attMTU']:3}, {s['interval']:4} ms: simulated {a['goodput']:6.1f} kbit/s, "
              f"measured {b['goodput']:6.1f} ({off * 100:+.1f} %)", flush=True)
    return result


def agrees(name, simulate, measure):
    """Each point is the best of five measurements, for what else the machine does only delays timers. They end when the rest
    cannot change the verdict."""
    simulated, best = simulate(), None
    for _ in range(5):
        off = differences(name, simulated, measure())
        best = off if best is None else [min(pair) for pair in zip(best, off)]
        if max(best) <= LIMIT: return True
        print(f'{name}: {max(best):.1%} apart at best so far', flush=True)
    return False


def main():
    ferry = sys.argv[1]
    controllers = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'controllers.py')
    with tempfile.TemporaryDirectory() as folder:
        profile = os.path.join(folder, 'paced.json')
        with open(profile, 'w') as file: json.dump(PROFILE, file)
        # A connection event of the loopback radio takes no time, so its queue has to hold what crosses in one. It paces by
        # whole values, so a value is one packet here.
        loopback = ('--mtu', '23,247', '--queue-depth', '64')
        isGood = agrees('loopback', lambda: bench(ferry, profile, *loopback),
                        lambda: bench(ferry, profile, *loopback, '--transport', 'loopback'))
        paths = [os.path.join(folder, name) for name in ('0', '1')]
        process = subprocess.Popen(
            [sys.executable, controllers, *(f'unix-server:{path}' for path in paths), '--interval', '--per-event',
             str(PACKETS)], stdout=subprocess.PIPE, text=True)
        try:
            for _ in paths: process.stdout.readline()  # one line each, once it listens
            transport = ','.join(f'hci:unix:{path}' for path in paths)
            hci = ('--mtu', '23,247,517')
            isGood &= agrees('hci', lambda: bench(ferry, profile, *hci),
                             lambda: bench(ferry, profile, *hci, '--transport', transport))
        finally:
            process.kill()
            process.wait()
    sys.exit(0 if isGood else 1)


main()
