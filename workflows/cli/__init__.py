"""The command line: one file a group of commands."""

from workflows.installation import check_packages

# Here, too: `workflows/__init__.py` may be another package's.
check_packages()
