"""Keys as other tools, papers and people call them, so that a guess can be answered."""

from __future__ import annotations

OTHER_WORDS = {
    "lr": "learning_rate",
    "eta": "learning_rate",
    "wd": "weight_decay",
    "bs": "batch_size",
    "batch": "batch_size",
    "optim": "optimizer",
    "optimiser": "optimizer",
    "num_rounds": "rounds",
    "communication_rounds": "rounds",
    "global_epochs": "rounds",
    "local_epochs": "epochs",
    "num_epochs": "epochs",
    "num_clients": "clients",
    "n_clients": "clients",
    "client_fraction": "participation",
    "fraction_fit": "participation",
    "sample_rate": "participation",
    "dataset": "data",
    "model": "models",
    "strategy": "method",
    "algorithm": "method",
    "aggregation": "merge",
    "random_seed": "seed",
    "n_jobs": "workers",
    "gpu": "device",
    "normalization": "normalisation",
}
"""Whatever the section."""
WORDS_FOR_DATA = {
    **dict.fromkeys(("sep", "delimiter", "delim"), "separator"),
    **dict.fromkeys(("target", "label", "y", "class_column", "target_column", "outcome"), "label_column"),
    **dict.fromkeys(("x", "input", "text_column", "image_column"), "input_column"),
    **dict.fromkeys(("client", "clients_column", "group", "groups", "site", "user_column"), "client_column"),
    **dict.fromkeys(("ignore", "drop", "drop_columns", "exclude", "index_col", "id_column"), "ignore_columns"),
    **dict.fromkeys(("categorical", "categorical_columns", "one_hot", "onehot"), "categories"),
    **dict.fromkeys(("missing", "nan", "fillna", "impute", "imputation", "na"), "empty_cells"),
    **dict.fromkeys(("na_values", "missing_values", "null_values"), "empty_values"),
    **dict.fromkeys(("class_names", "names", "label_names", "mapping"), "labels"),
    **dict.fromkeys(("file", "filename", "folder", "dir", "url"), "path"),
    **dict.fromkeys(("test_file", "test_data"), "test_path"),
    **dict.fromkeys(("normalization", "normalize", "normalise", "standardize", "scale", "scaler"), "normalisation"),
    **dict.fromkeys(("charset", "codec"), "encoding"),
    **dict.fromkeys(("decimal_point", "decimal_sign"), "decimal"),
    **dict.fromkeys(("val", "valid", "validation_split"), "validation"),
    **dict.fromkeys(("test_size", "test_split"), "test"),
    **dict.fromkeys(("augmentation", "augmentations", "transform", "transforms"), "augment"),
    **dict.fromkeys(("kind", "type", "dataset", "format"), "name"),
}
"""In the section ``data``, where the same words would mean something else elsewhere."""
