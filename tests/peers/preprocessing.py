#!/usr/bin/env python3
"""Preprocessing compared with cv2, Pillow and, where it can be imported, torchvision: every interpolation, making pictures
smaller and larger, odd sizes, grey pictures and pictures with alpha; letterbox, padding, and every preset.

  preprocessing.py --qcalib PROGRAM PICTURES [--limit N]

Pictures are decoded by cv2 once and kept as PNG, so that differences between JPEG decoders do not show; these are measured
apart. Pillow is one before 13, which resizes rows before columns where the height shrinks much more. Each line: the case, the peer, the largest and the mean difference in grey levels of 0 to 255. A case passes where no
pixel differs by more than one level (and rounding of floats). Exit code 1 where one does not.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import cv2
import numpy
import onnx
import PIL.Image
import PIL.ImageOps

try:
    import torch
    import torchvision
except ImportError:
    torch = torchvision = None

IMAGENET_MEAN = numpy.float32([0.485, 0.456, 0.406])
IMAGENET_STD = numpy.float32([0.229, 0.224, 0.225])
MOST = 1.0 + 2e-3  # one level, and float32 rounding of normalised values
CV2 = {"nearest": cv2.INTER_NEAREST, "bilinear": cv2.INTER_LINEAR, "bicubic": cv2.INTER_CUBIC, "area": cv2.INTER_AREA,
       "lanczos": cv2.INTER_LANCZOS4}
PILLOW = {"pillow-nearest": PIL.Image.Resampling.NEAREST, "pillow-box": PIL.Image.Resampling.BOX,
          "pillow-bilinear": PIL.Image.Resampling.BILINEAR, "pillow-hamming": PIL.Image.Resampling.HAMMING,
          "pillow-bicubic": PIL.Image.Resampling.BICUBIC, "pillow-lanczos": PIL.Image.Resampling.LANCZOS}


class Peers:
    def __init__(self, qcalib: str, folder: Path):
        self.qcalib, self.folder, self.failed, self.count = qcalib, folder, [], 0
        self.models = {channels: self.identity(channels) for channels in (1, 3)}

    def identity(self, channels: int) -> Path:
        shape = [1, channels, "h", "w"]
        value = lambda name: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["x"], ["y"])], "g", [value("x")], [value("y")])
        path = self.folder / f"identity{channels}.onnx"
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8), path)
        return path

    def ours(self, pictures: list, steps: list, channels: int = 3) -> list:
        """What the model sees of each picture, [H, W, C]."""
        self.count += 1
        out = self.folder / f"run{self.count}"
        listing = self.folder / f"list{self.count}.txt"
        listing.write_text("".join(f"{p}\n" for p in pictures))
        flags = [flag for step in steps or ["scale: {multiply: 1}"] for flag in ("--preprocess", step)]
        run = subprocess.run([self.qcalib, "--model", self.models[channels], "--data", listing, "--statistics", "extremes",
                              "--strict", "--quiet", "--dump-input", out / "seen", "-o", out, *flags],
                             capture_output=True, text=True)
        if run.returncode not in (0, 1):
            sys.exit(f"qcalib failed for {steps}: {run.stderr}")
        return [numpy.load(f)[0].transpose(1, 2, 0) for f in sorted((out / "seen").glob("*.npy"))]

    def compare(self, case: str, peer: str, ours: list, theirs: list, unit=1.0) -> None:
        """`unit`: what one grey level is in these values."""
        worst, sums, elements = 0.0, 0.0, 0
        for a, b in zip(ours, theirs, strict=True):
            b = b[:, :, None] if b.ndim == 2 else b
            if a.shape != b.shape:
                self.failed.append(case)
                print(f"{case:58} {peer:12} SIZES DIFFER: {a.shape} and {b.shape}")
                return
            difference = numpy.abs(a.astype(numpy.float64) - b) / unit
            worst, sums, elements = max(worst, difference.max()), sums + difference.sum(), elements + difference.size
        print(f"{case:58} {peer:12} {worst:8.4f} {sums / elements:10.6f}{'' if worst <= MOST else '  BEYOND'}")
        if worst > MOST:
            self.failed.append(case)


def read_rgb(path: Path) -> numpy.ndarray:
    """The colours; alpha is left out."""
    picture = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    if picture.ndim == 2:
        return numpy.repeat(picture[:, :, None], 3, axis=2)
    return numpy.ascontiguousarray(picture[:, :, 2::-1])


def make_pictures(folder: Path, source: Path, limit: int) -> tuple:
    """PNG copies of the pictures; of the first also an odd and a small cut, a grey one and one with alpha."""
    jpegs = sorted(p for p in source.iterdir() if p.suffix.lower() in (".jpg", ".jpeg", ".png"))[:limit]
    if not jpegs:
        sys.exit(f"{source}: no pictures")
    pictures = []
    for index, jpeg in enumerate(jpegs):
        picture = cv2.imread(str(jpeg))
        scale = 900 / max(picture.shape[:2])  # whole photographs of many megapixels only cost time
        if scale < 1:
            picture = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        pictures.append(folder / f"{index:03}.png")
        cv2.imwrite(str(pictures[-1]), picture)
        if index:
            continue
        extra = {"odd": picture[3:400, 5:304], "small": picture[:61, :97], "narrow": picture[:301, :33],
                 "grey": cv2.cvtColor(picture[:333, :251], cv2.COLOR_BGR2GRAY)}
        alpha = numpy.random.default_rng(1).integers(0, 256, picture.shape[:2], dtype=numpy.uint8)
        extra["alpha"] = numpy.dstack([picture, alpha])[:255, :411]
        for name, content in extra.items():
            pictures.append(folder / f"{index:03}.{name}.png")
            cv2.imwrite(str(pictures[-1]), content)
    return jpegs, pictures


def resizes(peers: Peers, pictures: list) -> None:
    decoded = [read_rgb(p) for p in pictures]
    for width, height in ((224, 224), (173, 131), (1000, 701), (640, 97)):
        for name, flag in CV2.items():
            ours = peers.ours(pictures, [f"resize: {{size: {width}x{height}, interpolation: {name}}}"])
            theirs = [cv2.resize(p, (width, height), interpolation=flag) for p in decoded]
            peers.compare(f"resize {width}x{height} {name}", "cv2", ours, theirs)
        for name, flag in PILLOW.items():
            ours = peers.ours(pictures, [f"resize: {{size: {width}x{height}, interpolation: {name}}}"])
            theirs = [numpy.asarray(PIL.Image.fromarray(p).resize((width, height), flag)) for p in decoded]
            peers.compare(f"resize {width}x{height} {name}", "Pillow", ours, theirs)
    grey = [cv2.cvtColor(p, cv2.COLOR_RGB2GRAY) for p in decoded]
    for name, flag in {**CV2, **PILLOW}.items():
        ours = peers.ours(pictures, [f"resize: {{size: 150x141, interpolation: {name}}}"], channels=1)
        if name in CV2:
            theirs = [cv2.resize(p, (150, 141), interpolation=flag) for p in grey]
        else:
            theirs = [numpy.asarray(PIL.Image.fromarray(p).resize((150, 141), flag)) for p in grey]
        peers.compare(f"grey input, resize 150x141 {name}", "cv2" if name in CV2 else "Pillow", ours, theirs)
    for name in ("bilinear", "bicubic"):  # after the scaling, so in floating point
        ours = peers.ours(pictures, ["scale: {multiply: 1/255}", f"resize: {{size: 200x149, interpolation: pillow-{name}}}"])
        flag = PILLOW[f"pillow-{name}"]
        theirs = [numpy.dstack([numpy.asarray(PIL.Image.fromarray(numpy.float32(p[:, :, c]) / 255).resize((200, 149), flag))
                                for c in range(3)]) for p in decoded]
        peers.compare(f"floats, resize 200x149 pillow-{name}", "Pillow F", ours, theirs, 1 / 255)
        if torch is not None:
            theirs = [torch.nn.functional.interpolate(torch.from_numpy(numpy.float32(p).transpose(2, 0, 1)[None] / 255),
                                                      (149, 200), mode=name, antialias=True)[0].numpy().transpose(1, 2, 0)
                      for p in decoded]
            peers.compare(f"floats, resize 200x149 pillow-{name}", "torch", ours, theirs, 1 / 255)


def torchvision_steps(picture: numpy.ndarray, size: int, crop: int, resample, name: str) -> numpy.ndarray:
    """Resize(size), CenterCrop(crop), ToTensor, Normalize: by torchvision, or by Pillow as torchvision calls it."""
    image = PIL.Image.fromarray(picture)
    if torchvision is not None:
        mode = getattr(torchvision.transforms.InterpolationMode, name.upper())
        transforms = torchvision.transforms
        steps = transforms.Compose([transforms.Resize(size, mode), transforms.CenterCrop(crop), transforms.ToTensor(),
                                    transforms.Normalize(IMAGENET_MEAN.tolist(), IMAGENET_STD.tolist())])
        return steps(image).numpy().transpose(1, 2, 0)
    width, height = image.size
    short, long = min(width, height), max(width, height)
    other = int(size * long / short)
    image = image.resize((size, other) if width <= height else (other, size), resample)
    left, top = int(round((image.size[0] - crop) / 2)), int(round((image.size[1] - crop) / 2))
    pixels = numpy.asarray(image.crop((left, top, left + crop, top + crop)))
    return (numpy.float32(pixels) / 255 - IMAGENET_MEAN) / IMAGENET_STD


def keras_steps(picture: numpy.ndarray, mode: str) -> numpy.ndarray:
    """load_img(target_size) and imagenet_utils.preprocess_input."""
    x = numpy.float32(PIL.Image.fromarray(picture).resize((224, 224), PIL.Image.Resampling.NEAREST))
    if mode == "tf":
        return x / 127.5 - 1
    if mode == "torch":
        return (x / 255 - IMAGENET_MEAN) / IMAGENET_STD
    return x[:, :, ::-1] - numpy.float32([103.939, 116.779, 123.68])


def paddle_det_steps(picture: numpy.ndarray, limit: int, limit_type: str) -> numpy.ndarray:
    """DetResizeForTest, NormalizeImage on BGR."""
    height, width = picture.shape[:2]
    ratio = 1.0
    if limit_type == "max" and max(height, width) > limit:
        ratio = float(limit) / max(height, width)
    if limit_type == "min" and min(height, width) < limit:
        ratio = float(limit) / min(height, width)
    sides = [max(int(round(int(side * ratio) / 32) * 32), 32) for side in (width, height)]
    resized = cv2.resize(picture[:, :, ::-1], sides)
    return (numpy.float32(resized) / 255 - IMAGENET_MEAN) / IMAGENET_STD


def paddle_rec_steps(picture: numpy.ndarray) -> numpy.ndarray:
    """resize_norm_img of rec_image_shape 3,48,320."""
    height, width = picture.shape[:2]
    scaled = int(numpy.ceil(48 * (width / float(height))))
    resized = numpy.float32(cv2.resize(picture[:, :, ::-1], (min(scaled, 320), 48))) / 255
    result = numpy.zeros((48, 320, 3), numpy.float32)
    result[:, :resized.shape[1]] = (resized - 0.5) / 0.5
    return result


def letterbox(picture: numpy.ndarray, size: int, centre: bool = True) -> numpy.ndarray:
    """Ultralytics' LetterBox."""
    height, width = picture.shape[:2]
    ratio = min(size / height, size / width)
    inner = int(round(width * ratio)), int(round(height * ratio))
    dw, dh = ((size - inner[0]) / 2, (size - inner[1]) / 2) if centre else (size - inner[0], size - inner[1])
    if (width, height) != inner:
        picture = cv2.resize(picture, inner, interpolation=cv2.INTER_LINEAR)
    top, left = (int(round(dh - 0.1)), int(round(dw - 0.1))) if centre else (0, 0)
    return cv2.copyMakeBorder(picture, top, int(round(dh + 0.1)), left, int(round(dw + 0.1)), cv2.BORDER_CONSTANT,
                              value=(114, 114, 114))


def presets(peers: Peers, pictures: list) -> None:
    decoded = [read_rgb(p) for p in pictures]
    peer = "torchvision" if torchvision is not None else "Pillow"
    for size, crop, name in ((256, 224, "bilinear"), (299, 299, "bicubic"), (235, 224, "bicubic")):
        ours = peers.ours(pictures, [f"torchvision: {{size: {size}, crop: {crop}, interpolation: pillow-{name}}}"])
        theirs = [torchvision_steps(p, size, crop, PILLOW[f"pillow-{name}"], name) for p in decoded]
        peers.compare(f"torchvision {size} {crop} {name}", peer, ours, theirs, 1 / 255 / IMAGENET_STD)
    for mode, unit in (("tf", 1 / 127.5), ("caffe", 1), ("torch", 1 / 255 / IMAGENET_STD)):
        ours = peers.ours(pictures, [f"keras: {{mode: {mode}}}"])
        peers.compare(f"keras {mode}", "formula", ours, [keras_steps(p, mode) for p in decoded], unit)
    for limit, kind, side in ((960, "max", "longer"), (736, "min", "shorter"), (320, "max", "longer")):
        ours = peers.ours(pictures, [f"paddleocr-det: {{limit: {limit}, side: {side}}}"])
        theirs = [paddle_det_steps(p, limit, kind) for p in decoded]
        peers.compare(f"paddleocr-det {limit} {kind}", "formula, cv2", ours, theirs, 1 / 255 / IMAGENET_STD)
    peers.compare("paddleocr-rec", "formula, cv2", peers.ours(pictures, ["paddleocr-rec"]),
                  [paddle_rec_steps(p) for p in decoded], 2 / 255)
    for size in (640, 416):
        for place in ("centre", "corner"):
            ours = peers.ours(pictures, [f"yolo: {{size: {size}, place: {place}}}"])
            theirs = [numpy.float32(letterbox(p, size, place == "centre")) / 255 for p in decoded]
            peers.compare(f"yolo {size} {place}", "formula, cv2", ours, theirs, 1 / 255)


def decoding(peers: Peers, jpegs: list) -> None:
    """What decoders differ by, for the record."""
    for name, read in (("cv2", lambda p: cv2.imread(str(p))[:, :, ::-1]),
                       ("Pillow", lambda p: numpy.asarray(PIL.ImageOps.exif_transpose(PIL.Image.open(p)).convert("RGB")))):
        worst = max(int(numpy.abs(a.astype(numpy.int32) - read(p)).max())
                    for p, a in zip(jpegs, peers.ours(jpegs, []), strict=True))
        print(f"{'decoding of the JPEGs (not judged)':58} {name:12} {worst:8.4f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--qcalib", required=True)
    parser.add_argument("--limit", type=int, default=6, help="take this many pictures (6)")
    parser.add_argument("pictures", type=Path)
    arguments = parser.parse_args()
    if int(PIL.__version__.split(".")[0]) > 12:
        sys.exit(f"expected Pillow 12 or older, whose order of passes torchvision models were trained with, found {PIL.__version__}")
    print(f"cv2 {cv2.__version__}, Pillow {PIL.__version__}, "
          f"torchvision {torchvision.__version__ if torchvision is not None else 'not there'}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peers = Peers(str(Path(arguments.qcalib).resolve()), folder)
        jpegs, pictures = make_pictures(folder, arguments.pictures, arguments.limit)
        print(f"{'case':58} {'peer':12} {'largest':>8} {'mean':>10}")
        resizes(peers, pictures)
        presets(peers, pictures)
        decoding(peers, jpegs)
    if peers.failed:
        print(f"beyond one grey level: {', '.join(peers.failed)}")
    return 1 if peers.failed else 0


if __name__ == "__main__":
    sys.exit(main())
