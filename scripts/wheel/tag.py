"""Tags the wheel: for any Python 3, since nothing links Python, and for the platform that its binaries are for."""

import pathlib

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Tag(BuildHookInterface):
    def initialize(self, version, build_data):
        platform = (pathlib.Path(self.root) / "PLATFORM").read_text().strip()
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
