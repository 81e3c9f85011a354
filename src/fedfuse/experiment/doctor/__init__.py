"""Whether fedfuse works here: what is installed, found and missing, and what would mend it."""

from fedfuse.experiment.doctor.diagnosis import Diagnosis, Finding
from fedfuse.experiment.doctor.examine import doctor

__all__ = ["Diagnosis", "Finding", "doctor"]
