"""The toy that training is tried on."""

from toy import toy, toy_files, toy_settings  # noqa: F401  (fixtures)
