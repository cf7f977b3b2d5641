"""`python -m dragoman`: the same as the `dragoman` command."""

import sys

from dragoman.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
