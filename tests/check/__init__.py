"""The gates of `make test`, in one command with one summary at the end: python3 -m tests.check."""
