"""Folders as ``save_pretrained`` of transformers writes them: classifiers of images and of texts."""
