"""The version of the package, one place for the build, the CLI and the report."""

__version__ = "0.1.0"
