"""`python -m lasp_edge` is the `lasp-edge` command."""

import sys

from lasp_edge.tool.command_line import main

sys.exit(main())
