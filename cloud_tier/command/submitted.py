"""`lasp-edge cloud` as the application of `spark-submit`, which takes a file and no command."""

import sys

from lasp_edge.tool.command_line import main

if __name__ == "__main__":
    sys.exit(main(["cloud", *sys.argv[1:]]))
