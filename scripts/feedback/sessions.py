"""Ends what a step or a test has left running."""
import os, signal


def processes(session):
    """The processes of a session, whatever process group each is in."""
    found = []
    for name in os.listdir('/proc') if os.path.isdir('/proc') else []:
        if not name.isdigit():
            continue
        try:
            with open(f'/proc/{name}/stat') as file:
                # Behind the name, which may have spaces and brackets: state, parent, group, session.
                if int(file.read().rpartition(')')[2].split()[3]) == session:
                    found.append(int(name))
        except (OSError, IndexError, ValueError):
            continue
    return found


def end(session, number=signal.SIGKILL):
    """Signals all processes of a session. Foundation gives each process that it starts a group of its own, which a signal to the
    group of the session's leader does not reach."""
    for process in processes(session):
        try:
            os.kill(process, number)
        except (ProcessLookupError, PermissionError):
            pass
    try:
        os.killpg(session, number)
    except (ProcessLookupError, PermissionError):
        pass
