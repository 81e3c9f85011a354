"""LoRA adapters: read as the models that they make of their base, merged through their products, written for peft."""
