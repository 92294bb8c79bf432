"""Commands that read a lake start quickly where pandas is installed, too."""

import subprocess
import sys
from importlib.util import find_spec

from tests.support_missing import lacks

SCRIPT = """
import sys
import pyarrow as pa
from cloud_tier.command.table import leave_pandas_out

leave_pandas_out()
table = pa.table({"a": pa.array([1, None])})
print("pandas" in sys.modules, len(table.to_pandas()))
"""


def test_pyarrow_imports_pandas_only_where_a_frame_is_asked_for():
    if find_spec("pandas") is None:
        lacks("pandas is not installed; type: pip install pandas")
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "2"]
