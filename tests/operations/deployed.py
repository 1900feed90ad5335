# SPDX-License-Identifier: Apache-2.0
"""What compose file and manifests have in common: images, and servers started as configured."""
import re
import tempfile
from pathlib import Path

import suite


def docker_targets():
    text = (suite.SOURCE / "deploy/docker/Dockerfile").read_text()
    return set(re.findall(r"^FROM \S+ AS (\w+)$", text, re.M)) - {"build", "base"}


def start_as_configured(name, arguments, environment):
    """Starts and stops a server with these flags and variables; ports and folders of this test's.
    An unknown flag, a missing permission or a value it refuses is an error."""
    with tempfile.TemporaryDirectory() as folder:
        def here(text):
            text = re.sub(r"0\.0\.0\.0:\d+", "0.0.0.0:0", text)
            text = text.replace("/var/lib/sextant", f"{folder}/state")
            return re.sub(r"(operator.cost|network.sim):\d+", "127.0.0.1:1", text)
        environment = {key: here(value) for key, value in environment.items()}
        server = suite.Server(name, [here(argument) for argument in arguments],
                              Path(folder) / "log", environment=environment)
        if server.stop() != 0:
            raise RuntimeError(server.log.read_text())
