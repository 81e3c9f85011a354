"""make same-bits: does this version still compute what an older one did, bit for bit?"""
