#!/usr/bin/env python3
"""Makes inputs for speech models from recordings (float32, 16 kHz, one channel): audio_inputs.py DIR OUT.

DIR holds *.f32 files. In OUT, for each recording, come four seconds of sound for melspectrogram, the windows that the
speech embedding takes of what that makes, the embeddings that keyword heads take, and for the Silero detectors a chunk
in the middle with the state that the chunks before it leave. The models are fetched; onnxruntime runs them. Prints, for
each model of scripts/models.tsv that takes such inputs, its name and the options for onnxruntime_agreement.py.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime

ROOT = Path(__file__).resolve().parents[2]
HEADS = ["hey-jarvis", "hey-mycroft", "hey-rhasspy", "alexa", "timer", "weather", "hello-deepa", "hello-deepa-old",
         "namaste-deepa", "coca-cola", "hey-lookdeep", "need-help-now"]
SHAPES = {  # of inputs that leave dimensions open
    "wake-melspectrogram": "--shape input=1,64000",
    "wake-embedding": "--shape input_1=1,76,32,1",
    "silero-v5": "--shape input=1,512 --shape state=2,1,128",
    "silero-v6": "--shape input=1,512 --shape state=2,1,128",
    "silero-legacy": "--shape input=1,512 --shape h=2,1,64 --shape c=2,1,64",
}
RATE, CHUNK, MEL_WINDOW, MEL_STEP = 16000, 512, 76, 8


def session(name: str) -> onnxruntime.InferenceSession:
    path = subprocess.run([ROOT / "scripts/fetch-models", name], check=True, capture_output=True, text=True).stdout.strip()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


class Writer:
    def __init__(self, out: Path) -> None:
        self.out = out
        self.samples: dict[str, list[str]] = {}

    def add(self, model: str, **values: np.ndarray) -> None:
        number = len(self.samples.setdefault(model, []))
        words = []
        for name, value in values.items():
            file = self.out / f"{model}.{number}.{len(words)}.npy"
            np.save(file, value)
            words.append(f"{name}={file}")
        self.samples[model].append("--inputs " + " ".join(words))

    def print(self) -> None:
        for model, samples in self.samples.items():
            print(f"{model}\t{' '.join([SHAPES.get(model, ''), *samples])}")


def chunk_with_state(detector: onnxruntime.InferenceSession, sound: np.ndarray, states: dict[str, np.ndarray]) -> dict:
    """The middle chunk and the states before it; the second outputs on are the next states, in order."""
    chunks = [sound[i:i + CHUNK][None] for i in range(0, len(sound) - CHUNK + 1, CHUNK)]
    rate = np.array(RATE, np.int64)
    for chunk in chunks[: len(chunks) // 2]:
        results = detector.run(None, {"input": chunk, "sr": rate, **states})
        states = dict(zip(states, results[1:]))
    return {"input": chunks[len(chunks) // 2], "sr": rate, **states}


def main() -> None:
    recordings = sorted(Path(sys.argv[1]).glob("*.f32"))
    out = Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    writer = Writer(out)
    mel, embedding = session("wake-melspectrogram"), session("wake-embedding")
    heads = {f"wake-{name}": session(f"wake-{name}") for name in HEADS}
    detectors = {name: session(name) for name in ("silero-v5", "silero-v6", "silero-legacy")}
    for recording in recordings:
        sound = np.fromfile(recording, np.float32)
        four_seconds = np.resize(sound, 4 * RATE)[None] * 32767
        writer.add("wake-melspectrogram", input=four_seconds)
        spectrum = mel.run(None, {"input": four_seconds})[0].reshape(-1, 32) / 10 + 2
        starts = range(0, len(spectrum) - MEL_WINDOW + 1, MEL_STEP)
        windows = np.stack([spectrum[i:i + MEL_WINDOW] for i in starts])[..., None].astype(np.float32)
        writer.add("wake-embedding", input_1=windows[:1])
        features = embedding.run(None, {"input_1": windows})[0].reshape(-1, 96)
        for name, head in heads.items():
            argument = head.get_inputs()[0]
            frames = argument.shape[1]
            writer.add(name, **{argument.name: np.resize(features, (frames, 96))[None].astype(np.float32)})
        for name, detector in detectors.items():
            legacy = name == "silero-legacy"
            size = (2, 1, 64 if legacy else 128)
            states = {key: np.zeros(size, np.float32) for key in (("h", "c") if legacy else ("state",))}
            writer.add(name, **chunk_with_state(detector, sound, states))
    writer.print()


if __name__ == "__main__":
    main()
