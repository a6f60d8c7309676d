"""Every state in which a folder can be left by a process that is killed while it writes there.

A process changes files by system calls only. So it is stopped before and after each of them, and whenever the files are
not what they were, that is one more state. It needs Linux and the right to trace one's own child processes, which some
containers withhold.
"""

import ctypes
import os
import signal
import sys

import pytest

TRACE_ME, CONTINUE_TO_CALL, SET_OPTIONS = 0, 24, 0x4200
MARK_CALLS, KILL_WITH_TRACER = 1, 0x100000
CALL = signal.SIGTRAP | 0x80


def states_on_disk(folder, action):
    """The contents by name of the files in `folder`, in each state that they are in while another process acts."""
    if sys.platform != "linux":
        pytest.skip("system calls are traced on Linux only")
    child = os.fork()
    if child == 0:
        _act_traced(action)
    _, status = os.waitpid(child, 0)
    if not os.WIFSTOPPED(status):
        pytest.skip("this machine does not let a process trace its children")
    _trace(SET_OPTIONS, child, MARK_CALLS | KILL_WITH_TRACER)
    states, forwarded = [read_folder(folder)], 0
    while True:
        _trace(CONTINUE_TO_CALL, child, forwarded)
        _, status = os.waitpid(child, 0)
        if not os.WIFSTOPPED(status):
            assert os.waitstatus_to_exitcode(status) == 0, "it failed by itself"
            return states
        forwarded = 0 if os.WSTOPSIG(status) == CALL else os.WSTOPSIG(status)
        state = read_folder(folder)
        if state != states[-1]:
            states.append(state)


def read_folder(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def write_folder(folder, state):
    """Put the folder into this state."""
    for file in folder.iterdir():
        file.unlink()
    for name, contents in state.items():
        (folder / name).write_bytes(contents)


def _act_traced(action):
    try:
        _trace(TRACE_ME, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        action()
        os._exit(0)
    finally:
        os._exit(1)


def _trace(request, pid, data=0):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes, libc.ptrace.restype = [ctypes.c_long] * 4, ctypes.c_long
    if libc.ptrace(request, pid, 0, data) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
