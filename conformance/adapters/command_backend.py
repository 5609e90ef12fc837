"""Any program as a backend, the lowest rung: it reads a folder and writes a file.

  vaecheck --backend py:conformance/adapters/command_backend.py --option 'command=./decode {folder}'
For each decode the folder holds model.safetensors (diffusers' keys), latents.npy (float32, [N, C, H, W],
as a pipeline's denoiser leaves them), config.json and case.json (the request); the command writes
picture.npy (float32, the decoder's raw output) and exits with 0. Exit code 77: this family is not
supported. Whole decodes only. SPDX-License-Identifier: MIT
"""
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np  # noqa: E402

import vaeproof_backend as vp  # noqa: E402


class Job:
    def __init__(self, q, command):
        self.command, self.request = command, {k: v for k, v in q.items() if k not in ("verb", "model")}
        self.folder = tempfile.mkdtemp(prefix="vaeproof-command-")
        shutil.copy(q["model"], os.path.join(self.folder, "model.safetensors"))
        config = {"scaling_factor": q["scaling_factor"], "shift_factor": q["shift_factor"], "norm_num_groups": q["norm_num_groups"]}
        for name, value in (("config.json", config), ("case.json", self.request)):
            with open(os.path.join(self.folder, name), "w") as f:
                json.dump(value, f)

    def __del__(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, first, last, feeds, wants):
        out = os.path.join(self.folder, "picture.npy")
        np.save(os.path.join(self.folder, "latents.npy"), feeds[0].squeeze(2).astype(np.float32))
        if os.path.exists(out):
            os.remove(out)
        words = [w.replace("{folder}", self.folder).replace("{arch}", self.request["arch"]) for w in shlex.split(self.command)]
        done = subprocess.run(words, stdout=sys.stderr)
        if done.returncode == 77:
            raise vp.Unsupported("the command answers 77: not supported")
        if done.returncode != 0:
            raise ValueError("the command ended with exit code %d" % done.returncode)
        return {wants[0]: np.load(out)[:, :, None]}


class Command(vp.Backend):
    name, vendor, caps, storage = "command", "", vp.MODEL | vp.BATCH, [vp.F32]
    command = None

    def open(self, options):
        if not options or not options.startswith("command="):
            raise vp.Unsupported("want --option 'command=PROGRAM {folder}'")
        self.command = options[len("command="):]

    def prepare(self, q, exchange):
        if "model" not in q:
            raise vp.Unsupported("programs are not taken, model files are")
        return Job(q, self.command)


if __name__ == "__main__":
    Command().serve()
