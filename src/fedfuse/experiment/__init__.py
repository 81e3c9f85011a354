"""From a file to a result: what an experiment may say, how it is put together, run and compared."""
