"""The errors that dragoman raises on purpose: each message says what is wrong, where, and what to do about it."""


class DragomanError(Exception):
    """A failure that the user can act on. The command line prints its message without a traceback."""

    exit_code = 1


class ConfigError(DragomanError):
    """A setting that does not exist, has the wrong type, or contradicts another one."""

    exit_code = 2


class DataError(DragomanError):
    """A corpus that cannot be read: missing, empty, unequal sides, broken encoding."""


class ModelError(DragomanError):
    """A model folder that is missing, damaged, or does not fit what is asked of it."""


class ResourceError(DragomanError):
    """Too little memory or disk space for what is asked."""


class DivergenceError(DragomanError):
    """Training has left the region where it can recover: a loss that is not finite, or one that exploded."""
