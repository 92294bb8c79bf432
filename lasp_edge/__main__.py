"""`python -m lasp_edge` is the `lasp-edge` command."""

import sys

from lasp_edge.command_line import main

sys.exit(main())
