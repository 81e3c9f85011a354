"""The datasets known by name; a new one is one more card."""

from __future__ import annotations

from fedfuse.catalogue.card import Card, Format, Hub, Layout, Normalisation, Package


def find_card(name: str) -> Card | None:
    return CATALOGUE.get(name)


def _parquet(name: str, test: str = "test") -> Layout:
    return Layout(f"{name}-train*.parquet", f"{name}-{test}*.parquet")


def _hub(name: str, folder: str, test: str = "test") -> Hub:
    return Hub(name, Layout(f"{folder}/train-*.parquet", f"{folder}/{test}-*.parquet"))


def _idx(*folders: str, prefix: str = "", test: str = "t10k", format: Format = "idx") -> tuple[Layout, ...]:
    """The original files, gzipped or not, in each of the folders that tools unpack them into."""
    return tuple(
        Layout(f"{folder}{prefix}train-images-idx3-ubyte*", f"{folder}{prefix}{test}-images-idx3-ubyte*", format)
        for folder in folders
    )


def _sentiment(name: str, train: str) -> Layout:
    return Layout(f"{name}-{train}*.parquet", f"{name}-test*.parquet", validation=f"{name}-validation*.parquet")


def _jsonl(name: str) -> Hub:
    return Hub(name, Layout("train.jsonl", "test.jsonl", "jsonl", "dev.jsonl"))


TEXT = ()
SST_HOME = "https://nlp.stanford.edu/sentiment"
SST_LICENCE = "cite Socher et al. 2013"
HALF_COLOUR = Normalisation((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
MNIST_GRAY = Normalisation((0.1307,), (0.3081,))
STL10_HOME = "https://cs.stanford.edu/~acoates/stl10"

CATALOGUE: dict[str, Card] = {
    "digits": Card("Handwritten digits of scikit-learn", (1, 8, 8), 10, "CC BY 4.0"),
    "blobs": Card("Gaussian blobs on a circle", (2,), 3, "generated"),
    "swiss_roll": Card("Spiral arms in the plane (the toy of FedBE, figure 1)", (2,), 3, "generated"),
    "mnist": Card(
        "MNIST",
        (1, 28, 28),
        10,
        "CC BY-SA 3.0",
        MNIST_GRAY,
        (_parquet("mnist"), *_idx("mnist/", "MNIST/raw/")),
        sizes=(60_000, 10_000),
        home="http://yann.lecun.com/exdb/mnist",
        hub=_hub("ylecun/mnist", "mnist"),
    ),
    "emnist_letters": Card(
        "EMNIST letters",
        (1, 28, 28),
        26,
        "public domain (NIST)",
        MNIST_GRAY,  # the FedED thesis' code
        (
            _parquet("emnist_letters"),
            *_idx("", "gzip/", "EMNIST/raw/", prefix="emnist-letters-", test="test", format="emnist"),
        ),
        sizes=(124_800, 20_800),
        home="https://www.nist.gov/itl/products-and-services/emnist-dataset",
    ),
    "fashion_mnist": Card(
        "Fashion-MNIST",
        (1, 28, 28),
        10,
        "MIT",
        Normalisation((0.2860,), (0.3530,)),  # measured on the training file
        (_parquet("fashion_mnist"), *_idx("fashion-mnist/", "FashionMNIST/raw/")),
        sizes=(60_000, 10_000),
        home="https://github.com/zalandoresearch/fashion-mnist",
        hub=_hub("zalando-datasets/fashion_mnist", "fashion_mnist"),
        package=Package("Debian's dataset-fashion-mnist", "/usr/share/datasets/fashion-mnist", *_idx("")),
    ),
    "cifar10": Card(
        "CIFAR-10",
        (3, 32, 32),
        10,
        "cite Krizhevsky 2009",
        Normalisation((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),  # FedDF's code
        (
            _parquet("cifar10"),
            Layout("cifar-10-batches-bin/data_batch_*.bin", "cifar-10-batches-bin/test_batch.bin", "cifar10"),
        ),
        sizes=(50_000, 10_000),
        home="https://www.cs.toronto.edu/~kriz/cifar.html",
        hub=_hub("uoft-cs/cifar10", "plain_text"),
    ),
    "cifar100": Card(
        "CIFAR-100",
        (3, 32, 32),
        100,
        "cite Krizhevsky 2009",
        Normalisation((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761)),  # FedDF's code
        (
            _parquet("cifar100"),
            Layout("cifar-100-binary/train.bin", "cifar-100-binary/test.bin", "cifar100"),
            # Class-balanced draws of all 60,000 images: not the official split.
            Layout("cifar100-pool-0of*.parquet", "cifar100-pool-1of*.parquet"),
        ),
        sizes=(50_000, 10_000),
        home="https://www.cs.toronto.edu/~kriz/cifar.html",
        label_column="fine_label",
        hub=_hub("uoft-cs/cifar100", "cifar100"),
    ),
    "svhn": Card(
        "SVHN, cropped digits",
        (3, 32, 32),
        10,
        "non-commercial research",
        Normalisation((0.4377, 0.4438, 0.4728), (0.1980, 0.2010, 0.1970)),
        (_parquet("svhn"), Layout("train_32x32.mat", "test_32x32.mat", "svhn")),
        sizes=(73_257, 26_032),
        home="http://ufldl.stanford.edu/housenumbers",
        hub=_hub("ufldl-stanford/svhn", "cropped_digits"),
    ),
    "stl10": Card(
        "STL-10",
        (3, 96, 96),
        10,
        "ImageNet's terms, research",
        HALF_COLOUR,  # FedDF's code
        (_parquet("stl10"), Layout("stl10_binary/train_X.bin", "stl10_binary/test_X.bin", "stl10")),
        sizes=(5_000, 8_000),
        home=STL10_HOME,
        hub=_hub("tanganke/stl10", "data"),
    ),
    "stl10_unlabelled": Card(
        "STL-10's images without labels, as distillation inputs",
        (3, 96, 96),
        1,
        "ImageNet's terms, research",
        HALF_COLOUR,  # FedDF's code
        (Layout("stl10_binary/unlabeled_X.bin", format="stl10"),),
        home=STL10_HOME,
    ),
    "tiny_imagenet": Card(
        "Tiny-ImageNet",
        (3, 64, 64),
        200,
        "non-commercial research",
        HALF_COLOUR,  # FedGKD's code
        (
            _parquet("tiny_imagenet", "val"),
            Layout("tiny-imagenet-200/train", "tiny-imagenet-200/val", "tiny_imagenet"),
            Layout("tiny_imagenet-val*.parquet"),
        ),
        sizes=(100_000, 10_000),
        home="http://cs231n.stanford.edu/tiny-imagenet-200.zip",
        hub=_hub("zh-plus/tiny-imagenet", "data", "valid"),
    ),
    "imagenet32": Card(
        "ImageNet at 32 x 32",
        (3, 32, 32),
        1000,
        "non-commercial research",
        HALF_COLOUR,  # FedDF's code
        (
            _parquet("imagenet32", "val"),
            Layout("Imagenet32_train_npz/train_data_batch_*.npz", "Imagenet32_val_npz/val_data.npz", "imagenet32"),
            Layout("train_data_batch_*.npz", "val_data.npz", "imagenet32"),
        ),
        sizes=(1_281_167, 50_000),
        home="https://image-net.org/download-images",
        hub=_hub("benjamin-paine/imagenet-1k-32x32", "data", "validation"),
    ),
    "usps": Card(
        "USPS digits",
        (1, 16, 16),
        10,
        "unknown",
        Normalisation((0.2545,), (0.3846,)),  # measured on the training file
        (_parquet("usps"),),
        sizes=(7_291, 2_007),
        hub=_hub("flwrlabs/usps", "data"),
    ),
    "omniglot": Card(
        "Omniglot characters at 28 x 28",
        (1, 28, 28),
        242,
        "MIT",
        Normalisation((0.1543,), (0.3349,)),  # measured on the file
        (Layout("omniglot28*.parquet"),),
        home="https://github.com/brendenlake/omniglot",
    ),
    "femnist_digits": Card(
        "FEMNIST, digits of a few writers",
        (1, 28, 28),
        10,
        "BSD 2-Clause (LEAF)",
        Normalisation((0.0369,), (0.1608,)),  # measured on the file
        (Layout("femnist_digits*.parquet"),),
        home="https://github.com/TalwalkarLab/leaf",
        client_column="client",
    ),
    "ag_news": Card(
        "AG News: topics of news, in one or two sentences",
        TEXT,
        4,
        "non-commercial research",
        layouts=(_parquet("ag_news"),),
        sizes=(120_000, 7_600),
        home="http://groups.di.unipi.it/~gulli/AG_corpus_of_news_articles.html",
        hub=_hub("fancyzhx/ag_news", "data"),
    ),
    "sst2": Card(
        "SST-2: sentences of film reviews, for or against",
        TEXT,
        2,
        SST_LICENCE,
        layouts=(_sentiment("sst2", "train-sentences"),),
        sizes=(6_920, 1_821),
        validation_size=872,
        home=SST_HOME,
        hub=_jsonl("SetFit/sst2"),
    ),
    "sst2_phrases": Card(
        "SST-2 as in GLUE: also phrases of the sentences; tested on its validation split, as test labels are secret",
        TEXT,
        2,
        SST_LICENCE,
        layouts=(Layout("sst2-train-glue_phrases*.parquet", "sst2-validation*.parquet"),),
        sizes=(67_349, 872),
        home=SST_HOME,
        hub=_hub("stanfordnlp/sst2", "data", "validation"),
    ),
    "sst5": Card(
        "SST-5: sentences of film reviews, from very negative to very positive",
        TEXT,
        5,
        SST_LICENCE,
        layouts=(_sentiment("sst5", "train"),),
        sizes=(8_544, 2_210),
        validation_size=1_101,
        home=SST_HOME,
        hub=_jsonl("SetFit/sst5"),
    ),
}
