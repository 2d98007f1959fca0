"""Times the loader of `akin` beside torchvision's `DataLoader` with the same augmentation, on the same images, with the
same number of threads, in turns, in one sitting: read, decoded, a random crop resized to 224 pixels, mirrored or not, and
turned into normalised numbers. Every image is decoded each time.

    python3 -m venv venv && venv/bin/pip install -r tests/peers/requirements.txt
    venv/bin/python tests/peers/loader.py --akin target/release/akin

Then it loads ten times as many images once, and prints the peak memory of both numbers.

Nothing in akin needs this file. Without `--folder` the images are JPEG files of 500 × 375 pixels with drawn clouds.
"""

import argparse
import csv
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--akin", required=True, help="the program")
parser.add_argument("--images", type=int, default=2000)
parser.add_argument("--folder", help="a folder with JPEG files to load, instead of drawn ones")
parser.add_argument("--batch", type=int, default=128)
parser.add_argument("--threads", type=int, default=os.cpu_count())
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--skip-memory", action="store_true", help="do not load ten times as many images")
arguments = parser.parse_args()

for variable in ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"]:
    os.environ[variable] = str(arguments.threads)

# After the numbers of threads are set.
import numpy  # noqa: E402
import PIL  # noqa: E402
import torch  # noqa: E402
import torchvision  # noqa: E402
from PIL import Image  # noqa: E402
from torchvision import transforms  # noqa: E402

SIDE = 224
CONFIG = """
run = {{ steps = 1, device = "cpu" }}
data = {{ kind = "csv", path = "{table}", levels = ["class"] }}
model = {{ backbone = {{ kind = "resnet50" }}, preprocessing = {{ name = "imagenet", crop = {side} }} }}
augment = {{ crop_scale = [0.4, 1.0], flip = true }}
loss = {{ kind = "contrastive" }}
sampler = {{ kind = "random", batch_size = {batch} }}
"""


class Pictures(torch.utils.data.Dataset):
    """The same images with the same augmentation."""

    def __init__(self, paths):
        self.paths = paths
        self.transform = transforms.Compose(
            [
                transforms.RandomResizedCrop(SIDE, scale=(0.4, 1.0)),
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
                transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
            ]
        )

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, item):
        with Image.open(self.paths[item]) as picture:
            return self.transform(picture.convert("RGB"))


def draw(folder):
    """JPEG files of clouds, which are about as long as photos."""
    random = numpy.random.default_rng(0)
    paths = []
    for number in range(arguments.images):
        clouds = numpy.zeros((375, 500, 3), numpy.float32)
        for cells in [4, 16, 64, 250]:
            noise = Image.fromarray(random.integers(0, 256, (cells, cells, 3), numpy.uint8))
            clouds += numpy.asarray(noise.resize((500, 375), Image.BICUBIC), numpy.float32) / cells**0.5
        clouds = (clouds / clouds.max() * 255).astype(numpy.uint8)
        paths.append(os.path.join(folder, f"{number}.jpg"))
        Image.fromarray(clouds).save(paths[-1], quality=90)
    return paths


def find(folder):
    """JPEG files in a folder and the folders below it."""
    ends = (".jpg", ".jpeg")
    inside = (os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)
    return sorted(os.path.abspath(path) for path in inside if path.lower().endswith(ends))[: arguments.images]


def write_config(folder, name, paths):
    """A config whose training images are these. Evaluation has the first two, under other names."""
    table = os.path.join(folder, name + ".csv")
    with open(table, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["path", "class", "split"])
        rows.writerows([path, str(number % 50), "train"] for number, path in enumerate(paths))
        rows.writerows([path, "0", "test"] for path in paths[:2])
    config = os.path.join(folder, name + ".toml")
    with open(config, "w") as file:
        file.write(CONFIG.format(table=table, side=SIDE, batch=arguments.batch))
    return config


def processor_time():
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def akin(config, images):
    """Loads the images once. Returns the peak memory in MiB."""
    command = [arguments.akin, "bench", "loader", config, "--images", str(images), "--once"]
    run = subprocess.run(command, stdout=subprocess.PIPE)
    if run.returncode != 0:
        sys.exit("akin failed")
    return int(run.stdout) / 2**20


def torch_loader(paths):
    """Loads the images once."""
    loader = torch.utils.data.DataLoader(
        Pictures(paths), batch_size=arguments.batch, shuffle=True, num_workers=arguments.threads
    )
    seen = sum(len(batch) for batch in loader)
    assert seen == len(paths)


def main():
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        paths = find(arguments.folder) if arguments.folder else draw(folder)
        if not paths:
            sys.exit("there are no JPEG files")
        config = write_config(folder, "small", paths)
        work = {"akin": lambda: akin(config, len(paths)), "torchvision": lambda: torch_loader(paths)}
        seconds, processor = ({name: [] for name in work} for _ in range(2))
        # The first round, which reads the files from the disk, is not counted.
        for round in range(arguments.rounds + 1):
            for name, load in work.items():
                start, before = time.perf_counter(), processor_time()
                load()
                if round > 0:
                    seconds[name].append(time.perf_counter() - start)
                    processor[name].append(processor_time() - before)
        print(
            f"{len(paths):,} images, {sum(map(os.path.getsize, paths)) / len(paths) / 1024:.0f} KiB each, batches of "
            f"{arguments.batch}, {arguments.threads} threads, load {os.getloadavg()[0]:.1f}, median of "
            f"{arguments.rounds}; torchvision {torchvision.__version__}, Pillow {PIL.__version__}"
        )
        print(f"{'':14}{'images/s':>10}{'processor ms':>14}")
        for name in work:
            rate = len(paths) / statistics.median(seconds[name])
            each = 1000 * statistics.median(processor[name]) / len(paths)
            print(f"{name:14}{rate:>10.0f}{each:>14.2f}")
        ratio = {
            what: statistics.median(times["torchvision"]) / statistics.median(times["akin"])
            for what, times in [("images/s", seconds), ("processor time", processor)]
        }
        print(f"akin has {ratio['images/s']:.2f} × the images/s, and {ratio['processor time']:.2f} × per processor time")
        if arguments.skip_memory:
            return
        # The same files under ten names each.
        many = list(paths)
        for copy in range(1, 10):
            for number, path in enumerate(paths):
                many.append(os.path.join(folder, f"{copy}-{number}.jpg"))
                os.symlink(path, many[-1])
        large = write_config(folder, "large", many)
        small, large = akin(config, len(paths)), akin(large, len(many))
        print(f"peak memory of akin: {small:.0f} MiB for {len(paths):,} images, {large:.0f} MiB for {len(many):,}")


main()
