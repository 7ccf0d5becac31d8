"""Every error a person can meet, and the exit code it ends the command with.

    RegardError (1)
    ├── UsageError (2)        a flag, a config key or a rule broken
    ├── DataError (2)         a text file that cannot be used, with file and line
    ├── ModelError (2)        a model folder that is missing, broken or foreign
    ├── QualityError (3)      a quality gate missed
    ├── DivergedError (4)     training met too many non-finite steps in a row
    └── StorageError (5)      the disk or the network

The message is one line: what, where, what to do. The command line prints it without a traceback.
"""


class RegardError(Exception):
    """The root of the tree; `exit_code` is what the command ends with."""

    exit_code = 1


class UsageError(RegardError, ValueError):
    """A flag, a config key or a rule was broken."""

    exit_code = 2


class DataError(RegardError, ValueError):
    """A data file cannot be used as it is."""

    exit_code = 2


class ModelError(RegardError, ValueError):
    """A model folder is missing, broken, or not ours."""

    exit_code = 2


class QualityError(RegardError):
    """A score stayed below the gate that was asked for."""

    exit_code = 3


class DivergedError(RegardError):
    """Too many steps in a row had a loss or gradient that was not finite."""

    exit_code = 4


class StorageError(RegardError, OSError):
    """The disk or the network failed; what was saved before is intact."""

    exit_code = 5
