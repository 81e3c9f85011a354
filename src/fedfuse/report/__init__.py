"""Pictures and tables of runs."""


def draw_run(*args, **kw):
    pass
