"""rotini, an engine plugin for hipDNN.

hipDNN of the ROCm wheels (`rocm-sdk-libraries`) finds the plugin by itself: it lies in that package's directory. Another hipDNN finds it
with HIPDNN_PLUGIN_DIR set to `rotini.plugin_directory()`.
"""

import os
import pathlib
import sys

_PREFIX = pathlib.Path(__file__).resolve().parent.parent / "_rocm_sdk_libraries"


def plugin_directory():
    """The directory that the plugin is in."""
    return str(_PREFIX / "lib" / "hipdnn_plugins" / "engines")


def main():
    """Becomes the command, which finds the plugin and the worker in its own prefix."""
    program = str(_PREFIX / "bin" / "rotini")
    os.execv(program, [program, *sys.argv[1:]])
