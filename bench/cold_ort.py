# SPDX-License-Identifier: Apache-2.0
"""The peer of coldstart.sh: one sentence through onnxruntime and tokenizers, with as few imports as that needs.

    cold_ort.py MODEL_DIRECTORY MODEL.onnx [THREADS [--rss]]
"""
import sys

import numpy as np
import onnxruntime as ort
from tokenizers import Tokenizer

options = ort.SessionOptions()
options.intra_op_num_threads = int(sys.argv[3]) if len(sys.argv) > 3 else 2
session = ort.InferenceSession(sys.argv[2], options, providers=["CPUExecutionProvider"])
tokenizer = Tokenizer.from_file(sys.argv[1] + "/tokenizer.json")
tokenizer.no_padding()
e = tokenizer.encode("The cat sat on the mat and watched the rain.")
feed = {"input_ids": e.ids, "attention_mask": e.attention_mask, "token_type_ids": e.type_ids}
feed = {i.name: np.array([feed[i.name]], np.int64) for i in session.get_inputs()}
v = session.run(None, feed)[0][0].mean(0)
v /= np.linalg.norm(v)
if "--rss" in sys.argv:
    status = dict(x.split(":", 1) for x in open("/proc/self/status", encoding="utf-8") if ":" in x)
    print(f"onnxruntime: VmRSS {int(status['VmRSS'].split()[0]) * 1024 / 1e6:.1f} MB after the first forward, "
          f"{int(status['RssAnon'].split()[0]) * 1024 / 1e6:.1f} MB of it private")
