"""``python -m p2p_labeldp`` is ``p2p-labeldp``."""

import sys

from p2p_labeldp.cli import main

if __name__ == "__main__":  # a package walked through for its documentation runs nothing
    sys.exit(main())
